"""Who computes: this process, all its cores, or the workers of a Dask cluster.

Each is a function that takes an evaluator and chunks of points, and yields the outcomes of one
chunk after the other, in the order in which they are ready.
"""

import logging
import pickle
import zlib
from contextlib import contextmanager

#: How long to wait for a cluster's first worker.
WORKER_SECONDS = 30

#: How long to wait for the scheduler itself.
CONNECT_SECONDS = 10


def serial(evaluator, chunks):
    """In this process."""
    for chunk in chunks:
        yield evaluator(chunk)


@contextmanager
def _workers(executor):
    try:
        yield executor
    except BaseException:
        # What runs is of no use any more, and what is stored is stored.
        executor.shutdown(wait=True, kill_workers=True)
        raise


_evaluator = None


def _begin(evaluator):
    global _evaluator
    _evaluator = evaluator


def _evaluate(chunk):
    return _evaluator(chunk)


def processes(jobs):
    """On some cores of this machine, by loky.

    Parameters
    ----------
    jobs : int
    """

    def run(evaluator, chunks):
        try:
            from loky import ProcessPoolExecutor, as_completed
            from loky.process_executor import BrokenProcessPool
        except ImportError:
            raise missing("more than one job needs", "loky", "tune") from None
        with _workers(
            ProcessPoolExecutor(jobs, timeout=None, initializer=_begin, initargs=(evaluator,))
        ) as executor:
            waiting = [executor.submit(_evaluate, chunk) for chunk in chunks]
            try:
                for future in as_completed(waiting):
                    yield future.result()
            except BrokenProcessPool:
                raise TimeoutError(
                    "a worker process died, killed or out of memory; the finished points are "
                    "stored, go on with --resume"
                ) from None
            executor.shutdown(wait=True)

    return run


def cluster(address):
    """On the workers of a Dask scheduler.

    The rows travel in the task that sets an evaluator up, so that a cluster which loses every
    worker can do it again.

    Parameters
    ----------
    address : str
        ``tcp://HOST:PORT``.
    """

    def run(evaluator, chunks):
        try:
            import distributed
        except ImportError:
            raise missing("--scheduler needs", "dask.distributed", "cluster") from None
        # What it would print is said in one line below.
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        try:
            client = distributed.Client(address, timeout=CONNECT_SECONDS, name="hwnorm-tune")
        except (OSError, ValueError, TimeoutError) as error:
            raise ValueError(
                f"scheduler must be one that runs at tcp://HOST:PORT, got {address!r}: "
                f"{type(error).__name__}"
            ) from None
        try:
            _wait_for_workers(client, address)
            yield from _on_cluster(distributed, client, evaluator, chunks)
        except (OSError, distributed.CancelledError, RuntimeError) as error:
            raise TimeoutError(
                f"the scheduler at {address} was lost ({type(error).__name__}); the finished "
                f"points are stored, go on with --resume"
            ) from None
        finally:
            client.close(timeout=2)

    return run


def _wait_for_workers(client, address):
    try:
        client.wait_for_workers(1, timeout=WORKER_SECONDS)
    except TimeoutError:
        raise ValueError(
            f"scheduler {address} must have a worker within {WORKER_SECONDS} s, got none"
        ) from None


def _on_cluster(distributed, client, evaluator, chunks):
    packed = zlib.compress(pickle.dumps(evaluator))
    base = client.submit(_unpack, packed, pure=False, retries=10)
    # Chunks hold state of nothing: a worker that dies with some is replaced by any other.
    futures = [
        client.submit(_call, base, chunk, pure=False, retries=10, priority=-n)
        for n, chunk in enumerate(chunks)
    ]
    for future in distributed.as_completed(futures):
        yield future.result()


def _unpack(packed):
    return pickle.loads(zlib.decompress(packed))


def _call(evaluator, chunk):
    return evaluator(chunk)


def missing(what, package, extra):
    """The error of a package that is not installed."""
    return ValueError(f"{what} {package}, got none; install it with: pip install hwnorm[{extra}]")
