"""Compiled simulators: made once, kept under a hash of all that goes into them."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

#: Lines of a compiler's output that a message quotes.
_QUOTED_LINES = 5


def cache_folder():
    """Where compiled simulators are kept."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # A relative one is to be ignored, says the standard: it would be another in every folder.
    if not base.is_absolute():
        try:
            base = Path.home() / ".cache"
        except RuntimeError:
            # A user without a home, as in containers: a place where nothing can be kept.
            base = Path(os.devnull)
    return base / "hwnorm"


class BuildError(ValueError):
    """A step of a build that fails; the message ends with the last lines of what it printed.

    Members
    -------
    output : str
        All that it printed.
    """

    def __init__(self, message, output):
        super().__init__(message)
        self.output = output


@contextmanager
def built(name, key, sources, build, cache):
    """A built file, from the cache or newly made.

    Parameters
    ----------
    name : str
        What it is; becomes a part of the file's name.
    key : object
        What else it depends on: versions, options. Its ``repr`` counts.
    sources : dict of str to str
        File name to text.
    build : callable
        From a folder with the sources to the built file's path.
    cache : bool
        Whether to look into the cache and to keep the file there.

    Yields
    ------
    pathlib.Path
        For the time of the context.

    Raises
    ------
    BuildError
        If a step of the build fails; the folder is kept then.
    """
    digest = hashlib.sha256(repr((name, key, sorted(sources.items()))).encode())
    place = cache_folder() / f"{name}-{digest.hexdigest()[:32]}"
    if cache and place.exists():
        yield place
        return
    folder = Path(tempfile.mkdtemp(prefix=f"hwnorm-{name}-"))
    try:
        for file, text in sources.items():
            (folder / file).write_text(text, encoding="utf-8")
        path = build(folder)
    except ValueError:
        raise
    except BaseException:
        # An interrupt, or a full disk: there is nothing in it to look at.
        shutil.rmtree(folder, ignore_errors=True)
        raise
    try:
        if cache:
            path = _keep(path, place) or path
        if path == place:
            shutil.rmtree(folder)
        yield path
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _keep(path, place):
    """Put a file into the cache, whole or not at all; returns its place there, or None."""
    temporary = None
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        # Under a name of its own first: another process may make the same one right now.
        handle, temporary = tempfile.mkstemp(prefix=".new-", dir=place.parent)
        os.close(handle)
        shutil.copyfile(path, temporary)
        os.chmod(temporary, path.stat().st_mode)
        os.replace(temporary, place)
        return place
    except OSError:
        # A cache that is full or read-only only costs time.
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        return None


def call(folder, command, environment=None):
    """Run a step of a build in a folder; returns what it printed.

    Raises
    ------
    BuildError
        If it fails, with the last lines of its output and the folder.
    """
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    text = done.stderr + done.stdout
    if done.returncode:
        lines = [line for line in text.strip().splitlines() if line.strip()]
        raise BuildError(
            f"{Path(command[0]).name} must compile the design in {folder}, got exit code "
            f"{done.returncode}" + "".join(f"\n  {line}" for line in lines[-_QUOTED_LINES:]),
            text,
        )
    return text
