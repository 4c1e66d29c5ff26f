"""Where evaluated points are kept: an SQLite file, written as results come."""

import json
import sqlite3
from pathlib import Path

from hwnorm.tune.space import point_key
from hwnorm.tune.work import Outcome

#: The file in the folder of a run.
NAME = "points.sqlite"

#: Of the tables' layout and of the meaning of what is in them.
VERSION = "1"

_TABLES = """
create table meta (key text primary key, value text not null);
create table points (
    key text primary key, point text not null, state text not null, reason text not null,
    cost text not null, accuracy text not null
);
"""


class Store:
    """Evaluated points of one base design on one set of rows.

    Only one run at a time may have a folder; the lock ends with the process. What is written is
    written by transactions, so that a killed run leaves whole points only.

    Parameters
    ----------
    folder : str, pathlib.Path or None
        None: in memory.
    identity : dict of str to str
        What all stored results depend on, besides the point.
    resume : bool
        There must be stored points already.

    Raises
    ------
    ValueError
        If another run has the folder; the file is no store; or it holds points of another
        design or other data.
    """

    def __init__(self, folder, identity, resume=False):
        self._lock = None
        if folder is None:
            self.path = None
            self._base = sqlite3.connect(":memory:")
            self._base.executescript(_TABLES)
            return
        folder = Path(folder)
        self.path = folder / NAME
        if resume and not self.path.exists():
            raise ValueError(f"--resume needs a store of an earlier run in {folder}, got none")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = open(folder / ".lock", "w")  # noqa: SIM115
        except OSError as error:
            raise ValueError(f"output {folder} must be writable, got: {error.strerror}") from None
        # Of Unix only; whoever stores nothing does not need it.
        import fcntl

        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise ValueError(f"only one run may write to {folder}, got a second one") from None
        try:
            self._base = self._open(identity)
        except BaseException:
            self._lock.close()
            raise

    def _open(self, identity):
        base = sqlite3.connect(self.path)
        try:
            fresh = not base.execute("select count(*) from sqlite_master").fetchone()[0]
            if fresh:
                base.executescript("begin;" + _TABLES + "commit;")
                base.executemany("insert into meta values (?, ?)", _meta(identity))
                base.commit()
            elif base.execute("pragma quick_check").fetchone()[0] != "ok":
                raise sqlite3.DatabaseError("its pages are damaged")
            found = dict(base.execute("select key, value from meta"))
            base.execute("select key, point, state, reason, cost, accuracy from points limit 1")
        except sqlite3.DatabaseError as error:
            base.close()
            raise ValueError(
                f"store {self.path} must be one that hwnorm tune wrote, got: {error}; move it "
                f"away to start anew"
            ) from None
        for key, value in _meta(identity):
            if found.get(key) != value:
                base.close()
                raise ValueError(
                    f"store {self.path} must be of the same {key}, got points of another; "
                    f"choose another folder"
                )
        return base

    def read(self):
        """All stored outcomes, key to `Outcome`.

        Raises
        ------
        ValueError
            If a row cannot be read.
        """
        try:
            return {
                key: Outcome(
                    json.loads(point), state, reason, json.loads(cost), json.loads(accuracy)
                )
                for key, point, state, reason, cost, accuracy in self._base.execute(
                    "select key, point, state, reason, cost, accuracy from points"
                )
            }
        except (sqlite3.DatabaseError, ValueError) as error:
            raise ValueError(
                f"store {self.path} must hold whole points, got: {error}; move it away to start "
                f"anew"
            ) from None

    def write(self, outcomes):
        """Store outcomes, all of them or none."""
        rows = [
            (
                point_key(one.point), json.dumps(one.point), one.state, one.reason,
                json.dumps(one.cost), json.dumps(one.accuracy),
            )
            for one in outcomes
        ]  # fmt: skip
        with self._base:
            self._base.executemany("insert or replace into points values (?,?,?,?,?,?)", rows)

    def close(self):
        """Give the folder free."""
        self._base.close()
        if self._lock:
            self._lock.close()


def _meta(identity):
    return [("version", VERSION), *sorted(identity.items())]
