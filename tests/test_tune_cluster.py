"""Tuning on a Dask cluster on the loopback address, of which a worker is killed."""

import os
import signal

import pytest
from test_tune import layers_of
from test_tune_space import space_of

from hwnorm.tune import pool
from hwnorm.tune.report import tuning_data
from hwnorm.tune.rows import Rows
from hwnorm.tune.tuning import run

# The library's own threads and sockets end when they like.
pytestmark = pytest.mark.filterwarnings("ignore")

TABLES = {"method": ["direct", "linear", "quadratic"], "segments": {"from": 2, "to": 64},
          "guard_bits": [1, 2, 3]}  # fmt: skip


def test_a_killed_worker_loses_nothing(tmp_path):
    from distributed import LocalCluster

    rows, space = Rows.of(layers_of(), 0.25), space_of(**TABLES)
    killed = []
    with LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
    ) as cluster:

        def strike(progress):
            if progress.done > 5 and not killed:
                killed.append(progress.done)
                os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)

        found = run(space, rows, tmp_path, scheduler=cluster.scheduler_address, report=strike)
    assert killed
    assert found.evaluated == len(found.outcomes)
    assert tuning_data(found) == tuning_data(run(space, rows))
    assert run(space, rows, tmp_path, resume=True).evaluated == 0


def test_a_scheduler_that_cannot_be_reached(monkeypatch):
    monkeypatch.setattr(pool, "CONNECT_SECONDS", 1)
    with pytest.raises(
        ValueError, match=r"^scheduler must be one that runs at tcp://HOST:PORT, got 'tcp://127"
    ):
        run(space_of(segments=[4]), Rows.of(layers_of()), scheduler="tcp://127.0.0.1:9")


def test_a_scheduler_that_dies(tmp_path):
    from distributed import LocalCluster

    rows, space = Rows.of(layers_of(), 0.25), space_of(**TABLES)
    cluster = LocalCluster(
        n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
    )

    def stop(progress):
        if progress.done:
            cluster.close()

    with pytest.raises(TimeoutError, match=r"^the scheduler at tcp://127\.0\.0\.1:\d+ was lost \("):
        run(space, rows, tmp_path, scheduler=cluster.scheduler_address, report=stop)
    found = run(space, rows, tmp_path, resume=True)
    assert 0 < found.evaluated < len(found.outcomes)
