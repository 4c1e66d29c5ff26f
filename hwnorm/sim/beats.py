"""Rows as beats on the bus, block by block."""

from collections import deque
from collections.abc import Iterator
from itertools import chain

import numpy as np

from hwnorm.hdl.axi import lane_bits
from hwnorm.model import first_of, parameters_at, rows_of

#: Beats that cross into a simulator at once: what a simulation needs of memory at a time.
BLOCK_BEATS = 1 << 14


def blocks_of(design, x):
    """Rows in blocks of integers, whatever they are given as.

    Parameters
    ----------
    design : hwnorm.Norm
    x : array_like, (rows, dim), or iterator of such
        An array is cut into blocks, and only a block of it is looked at a time, so it may be
        larger than the memory (``numpy.memmap``).

    Returns
    -------
    iterator of numpy.ndarray of int, (rows, dim)

    Raises
    ------
    ValueError
        If there is no row; and, when its block is asked for, if a row does not fit the design.
    """
    parts = x if isinstance(x, Iterator) else [x]
    blocks = (rows_of(design, block) for part in parts for block in _cut(design, part))
    first = next(blocks, None)
    if first is None:
        raise ValueError("x must have at least one row, got none")
    return chain([first], blocks)


def _cut(design, x):
    """Parts of rows that are small enough; none of no rows."""
    if not isinstance(x, np.ndarray) or x.ndim != 2:
        x = rows_of(design, x)
    step = max(1, BLOCK_BEATS * design.lanes // x.shape[1])
    for at in range(0, len(x), step):
        yield x[at : at + step]


def with_streams(design, blocks, streams):
    """Blocks of x, each with what comes along with its rows.

    Parameters
    ----------
    design : hwnorm.Norm
    blocks : iterator of numpy.ndarray of int, (rows, dim)
    streams : dict of str to numpy.ndarray of int, (dim,) or (rows, dim)
        The streamed parameters, in the order of the design's.

    Yields
    ------
    list of numpy.ndarray of int, (rows, dim)
        x, and each of the parameters.

    Raises
    ------
    ValueError
        If a parameter has another number of rows than x.
    """
    done = 0
    for x in blocks:
        some = first_of(parameters_at(streams, done, done + len(x)), x.shape[1])
        done += len(x)
        yield [x, *(np.broadcast_to(value, x.shape) for value in some.values())]
    for name, value in streams.items():
        if value.ndim == 2 and len(value) != done:
            raise ValueError(f"{name} must have a row for each of x={done}, got {len(value)}")


def input_formats(design):
    """The formats of what `with_streams` yields: of x, and of what comes with it."""
    return [design.x, *design.streamed.values()]


def block_bytes(design, parts):
    """Rows of all that comes together as the bytes of beats, one behind the other.

    The last byte says whether the beat is a row's last.
    """
    formats = input_formats(design)
    found = [to_bytes(p, fmt, design.lanes) for p, fmt in zip(parts, formats, strict=True)]
    rows, dim = parts[0].shape
    last = np.zeros((rows, dim // design.lanes), dtype=np.uint8)
    last[:, -1] = 1
    return np.concatenate([*found, last.reshape(-1, 1)], axis=1)


def to_bytes(rows, fmt, lanes):
    """Rows as the bytes of beats, lanes in whole bytes: uint8, (beats, bytes)."""
    size = lane_bits(fmt) // 8
    wide = np.ascontiguousarray(rows, dtype="<i4").view(np.uint8).reshape(-1, 4)
    return np.ascontiguousarray(wide[:, :size]).reshape(-1, lanes * size)


def from_bytes(data, fmt, dim):
    """The bytes of beats as rows of signed integers."""
    size = lane_bits(fmt) // 8
    wide = np.zeros((data.size // size, 4), dtype=np.uint8)
    # Into the upper bytes, so that an arithmetic shift brings the sign along.
    wide[:, 4 - size :] = data.reshape(-1, size)
    return (wide.view("<i4")[:, 0] >> 32 - 8 * size).astype(np.int64).reshape(-1, dim)


class RowCollector:
    """Puts beats together to rows and passes whole rows on.

    Parameters
    ----------
    design : hwnorm.Norm
    give : callable
        Called with y of whole rows, numpy.ndarray of int64, (rows, dim).
    """

    def __init__(self, design, give):
        self._design, self._give = design, give
        self._rest, self._due = b"", deque()

    def expect(self, shape):
        """Rows that went in: how many, and of how many elements."""
        self._due.append(shape)

    def take(self, data):
        """Bytes of beats, as many as there are."""
        data, at = self._rest + data, 0
        while self._due:
            rows, dim = self._due.popleft()
            size = lane_bits(self._design.y) // 8 * dim
            whole = min(rows, (len(data) - at) // size)
            if whole:
                part = np.frombuffer(data, dtype=np.uint8, count=whole * size, offset=at)
                self._give(from_bytes(part, self._design.y, dim))
                at += whole * size
            if whole < rows:
                self._due.appendleft((rows - whole, dim))
                break
        self._rest = data[at:]
