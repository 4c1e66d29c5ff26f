"""Formats: a fixed-point number is an integer k, lo <= k <= hi, that means ``k * 2**-frac``."""

import re
import sys
from dataclasses import dataclass
from functools import cached_property

import numpy as np

ROUNDINGS = ("nearest_even", "nearest_up", "floor")
OVERFLOWS = ("saturate", "wrap")

_SPELLING = re.compile(r"(?:fxp-)?([su])([0-9]{1,4})/(-?[0-9]{1,4})")


@dataclass(frozen=True)
class Fixed:
    """An interval of fixed-point numbers on one grid.

    Parameters
    ----------
    lo, hi : int
        Smallest and largest integer, in units of ``2**-frac``; ``lo <= hi``.
    frac : int
        Fraction bits. May exceed the width, or be negative.

    Raises
    ------
    ValueError
        If ``lo > hi``.

    Examples
    --------
    >>> Fixed.parse("s16/8")
    Fixed(lo=-32768, hi=32767, frac=8)
    >>> str(Fixed(0, 255, 4)), str(Fixed(0, 200, 4))
    ('u8/4', 'u8/4 [0..200]')
    """

    lo: int
    hi: int
    frac: int = 0

    def __post_init__(self):
        if self.lo > self.hi:
            raise ValueError(f"lo must not exceed hi, got lo={self.lo} and hi={self.hi}")

    @classmethod
    def of(cls, signed, width, frac=0):
        """The full range of a ``width``-bit word, two's complement if ``signed``."""
        if width < (2 if signed else 1):
            raise ValueError(
                f"width must be at least {2 if signed else 1} bits for "
                f"{'a signed' if signed else 'an unsigned'} format, got {width}"
            )
        lo = -(1 << width - 1) if signed else 0
        return cls(lo, lo + (1 << width) - 1, frac)

    @classmethod
    def parse(cls, text):
        """Read ``s16/8``, ``u8/0`` or fxpmath's ``fxp-s16/8``.

        Raises
        ------
        ValueError
            If `text` is not of that form.
        """
        if isinstance(text, Fixed):
            return text
        found = _SPELLING.fullmatch(text) if isinstance(text, str) else None
        if not found:
            raise ValueError(f"a format is spelled like s16/8 or u8/0, got {text!r}")
        return cls.of(found[1] == "s", int(found[2]), int(found[3]))

    @property
    def signed(self):
        """Whether the word needs a sign bit."""
        return self.lo < 0

    @cached_property
    def width(self):
        """Bits of the smallest word that holds the interval (at least 1)."""
        if self.signed:
            return max(max(self.hi, 0).bit_length(), (-1 - self.lo).bit_length()) + 1
        return max(self.hi.bit_length(), 1)

    @property
    def word(self):
        """The full range of a word of this width and signedness."""
        return Fixed.of(self.signed, max(self.width, 2 if self.signed else 1), self.frac)

    @property
    def lsb(self):
        """The real value of one unit in the last place."""
        return 2.0**-self.frac

    @property
    def dtype(self):
        """The word in fxpmath's spelling."""
        return "fxp-" + self.spelling

    @property
    def spelling(self):
        """The word, as in ``s16/8``, whatever part of it the interval uses."""
        return f"{'s' if self.signed else 'u'}{self.word.width}/{self.frac}"

    def __str__(self):
        full = (self.lo, self.hi) == (self.word.lo, self.word.hi)
        return self.spelling if full else f"{self.spelling} [{self.lo}..{self.hi}]"

    def holds(self, other):
        """Whether every number of `other` lies on this grid and in this interval."""
        if other.frac > self.frac:
            return False
        up = self.frac - other.frac
        return self.lo <= other.lo << up and other.hi << up <= self.hi

    def ints(self, reals, what="x"):
        """Quantise floats to the grid, ties to even.

        Parameters
        ----------
        reals : array_like of float, any shape
            Finite numbers that fit the interval once rounded.
        what : str
            The name used in messages.

        Returns
        -------
        numpy.ndarray of int64
            In units of ``2**-frac``.

        Raises
        ------
        ValueError
            On NaN or infinity, or if elements do not fit; the message counts them
            and names a format that holds them.
        """
        reals = np.asarray(reals, dtype=np.float64)
        bad = int(np.count_nonzero(~np.isfinite(reals)))
        if bad:
            raise ValueError(f"{what} must be finite, got {bad} NaN or infinite elements")
        scaled = np.rint(np.ldexp(reals, self.frac))
        # What int64 cannot hold is outside as well, whatever the format.
        far = np.abs(scaled) >= 2.0**63
        out = int(np.count_nonzero((scaled < self.lo) | (scaled > self.hi) | far))
        if out:
            raise ValueError(
                f"{what} must fit {self.spelling}, got {out} of {reals.size} elements outside it; "
                f"{format_for(reals, self.frac).spelling} holds them all"
            )
        return scaled.astype(np.int64)

    def reals(self, ints):
        """The float64 values of integers in units of ``2**-frac``."""
        return np.ldexp(np.asarray(ints, dtype=np.float64), -self.frac)


def is_integer(value):
    """Whether a value is an integer, and no truth value."""
    return isinstance(value, int) and not isinstance(value, bool)


def format_for(reals, frac):
    """The narrowest signed format with `frac` fraction bits that holds finite floats."""
    scaled = np.rint(np.ldexp(np.asarray(reals, dtype=np.float64), frac))
    return _signed_word(int(np.min(scaled, initial=0)), int(np.max(scaled, initial=0)), frac)


def _signed_word(lo, hi, frac):
    return Fixed.of(True, max(Fixed(min(lo, -1), max(hi, 0)).width, 2), frac)


def is_fxp(value):
    """Whether `value` is an ``fxpmath.Fxp`` (without importing fxpmath)."""
    module = sys.modules.get("fxpmath")
    return module is not None and isinstance(value, module.Fxp)


def quantise(fmt, values, what="x"):
    """Bring integers, floats or ``fxpmath.Fxp`` to integers of a format.

    Integers are taken as they are, in units of ``2**-fmt.frac``; floats are rounded to
    the nearest even; an ``Fxp`` is taken by value.

    Raises
    ------
    ValueError
        If elements do not fit `fmt`, or an ``Fxp`` has more fraction bits than `fmt`.
    """
    if is_fxp(values):
        if values.n_frac > fmt.frac:
            raise ValueError(
                f"{what} must have at most {fmt.frac} fraction bits ({fmt.spelling}), "
                f"got {values.dtype}"
            )
        # As Python integers, since the shift may leave 64 bits.
        values = np.asarray(np.asarray(values.val, dtype=object) << (fmt.frac - values.n_frac))
        return _checked(fmt, values, what).astype(np.int64)
    values = np.asarray(values)
    if values.dtype.kind == "f":
        return fmt.ints(values, what)
    if values.dtype.kind not in "iu":
        raise ValueError(f"{what} must be integers or floats, got dtype {values.dtype}")
    return _checked(fmt, values, what)


def _checked(fmt, values, what):
    """Integers as they are, if all of them fit a format."""
    lo, hi = (int(np.min(values)), int(np.max(values))) if values.size else (fmt.lo, fmt.hi)
    if lo < fmt.lo or hi > fmt.hi:
        out = int(np.count_nonzero((values < fmt.lo) | (values > fmt.hi)))
        raise ValueError(
            f"{what} must fit {fmt.spelling}, got {out} of {values.size} elements outside it; "
            f"{_signed_word(lo, hi, fmt.frac).spelling} holds them all"
        )
    return values


def to_fxp(fmt, ints):
    """Integers of a format as an ``fxpmath.Fxp``."""
    from fxpmath import Fxp

    return Fxp(np.asarray(ints), fmt.signed, fmt.word.width, fmt.frac, raw=True, rounding="around")
