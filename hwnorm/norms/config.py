"""How a norm approximates: the ``[rsqrt]`` and ``[log]`` sections of a design file."""

from dataclasses import dataclass

from hwnorm.fixed import is_integer
from hwnorm.functions import RSQRT

#: What ``rsqrt.method`` can be.
METHODS = ("direct", "linear", "quadratic", "log", "exact")


@dataclass(frozen=True)
class Rsqrt:
    """How the reciprocal square root is taken: the ``[rsqrt]`` section of a design file.

    Parameters
    ----------
    method : str
        ``direct``, ``linear``, ``quadratic``: a table of that degree. ``log``: subtraction in
        the log domain. ``exact``: correctly rounded; a model only, no hardware.
    segments : int or None
        Table entries, a power of two. None: the smallest that the error budget allows, at
        most 4096.
    guard_bits : int
        Extra bits of the scale. 2 is the smallest that keeps errors below one ulp, unless a
        wide beta asks for more.
    """

    method: str = "linear"
    segments: int | None = None
    guard_bits: int = 2

    def __post_init__(self):
        if self.method not in METHODS:
            raise ValueError(
                f"rsqrt.method must be one of {', '.join(METHODS)}, got {self.method!r}"
            )
        check_segments("rsqrt.segments", self.segments)
        if not is_integer(self.guard_bits) or not 0 <= self.guard_bits <= 12:
            raise ValueError(
                f"rsqrt.guard_bits must be an integer in 0..12, got {self.guard_bits!r}"
            )

    def segments_for(self, target):
        """`segments`, or the smallest table whose limit stays under a relative error."""
        if self.segments is not None:
            return self.segments
        segments = 2
        while RSQRT.limits[self.method](segments) > target and segments < 4096:
            segments *= 2
        return segments


@dataclass(frozen=True)
class LogTables:
    """The tables of the log domain: the ``[log]`` section of a design file.

    Parameters
    ----------
    method : str
        ``direct``, ``mitchell`` or ``linear`` (which needs a small multiplier an element).
    segments : int or None
        Entries of the log2 tables and of the exp2 table, a power of two. None: 64, or as many
        as a narrow argument can address.
    frac : int or None
        Fraction bits of the logarithms. None: the output's width plus the guard bits.
    """

    method: str = "mitchell"
    segments: int | None = None
    frac: int | None = None

    def __post_init__(self):
        if self.method not in ("direct", "mitchell", "linear"):
            raise ValueError(
                f"log.method must be one of direct, mitchell, linear, got {self.method!r}"
            )
        check_segments("log.segments", self.segments)
        if self.frac is not None and not (is_integer(self.frac) and 2 <= self.frac <= 30):
            raise ValueError(f"log.frac must be an integer in 2..30, got {self.frac!r}")


def check_segments(name, segments):
    """Raise unless a number of table entries is None or a power of two."""
    if segments is None:
        return
    if not is_integer(segments) or not 2 <= segments <= 65536 or segments & (segments - 1):
        raise ValueError(f"{name} must be a power of two in 2..65536, got {segments!r}")
