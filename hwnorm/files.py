"""Writing files so that an interrupted run leaves nothing half-written."""

import hashlib
import math
import os
import shutil
import tempfile
from pathlib import Path


def finite(data):
    """Data for JSON, which knows no infinity: numbers that are not finite become None."""
    if isinstance(data, dict):
        return {key: finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def write_text(path, text):
    """Write a text file under a temporary name, then rename it.

    Raises
    ------
    ValueError
        If the place cannot be written to.
    """
    write_bytes(path, text.encode())


def write_bytes(path, data):
    """Write a file likewise."""
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise ValueError(f"output {path} must be writable, got: {error.strerror}") from None


def write_tree(folder, files):
    """Write a folder of files: all of it, or nothing.

    Files that the folder has besides stay as they are.

    Parameters
    ----------
    folder : str or pathlib.Path
    files : dict of str to str
        Relative path to text.

    Raises
    ------
    ValueError
        If the place cannot be written to.
    """
    folder = Path(folder)
    for name in files:
        if (folder / name).is_dir():
            raise ValueError(f"output {folder / name} must be a file, got a folder")
        for parent in (folder / name).parents:
            if parent.exists() and not parent.is_dir():
                raise ValueError(f"output {parent} must be a folder, got a file")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        stage = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    except OSError as error:
        raise ValueError(f"output {folder} must be writable, got: {error.strerror}") from None
    try:
        for name, text in files.items():
            write_text(stage / name, text)
        for name in files:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(stage / name, folder / name)
    except OSError as error:
        raise ValueError(f"output {folder} must be writable, got: {error.strerror}") from None
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def code_digest(folder):
    """A checksum of the Python files in a folder and below it."""
    files = sorted(Path(folder).rglob("*.py"))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()
