"""Reciprocal square root: even-exponent range reduction, then one table."""

from dataclasses import dataclass
from functools import cached_property
from math import floor, log2

from hwnorm.approx.reach import unreachable_entries
from hwnorm.fixed import Fixed
from hwnorm.functions import RSQRT
from hwnorm.ops import MULTIPLIER_BITS, Cat, Normalise, leading_zeros, take_bits, wire
from hwnorm.scaled import Scaled
from hwnorm.tables import Table


@dataclass(frozen=True)
class ReciprocalRoot:
    """``scale / sqrt(v)`` as a significand and a shift.

    The argument is split as ``v = M * 4**-j * constant`` with M in [1, 4) and j half the
    leading zeros; a table addressed by the parity of the zeros and the top mantissa bits
    gives ``scale / sqrt(M)``. The constant scale costs nothing, since it is in the table.

    Parameters
    ----------
    arg : Fixed
        Interval of v; never zero or negative.
    method : str
        ``direct``, ``linear`` or ``quadratic``.
    segments : int
        Table entries, a power of two.
    sig_bits : int
        Significant bits of the result.
    mantissa_bits : int
        Fraction bits of the mantissa that the table sees.
    scale : float
        Positive.
    step : int
        Arguments differ by multiples of it; it tells which table entries are reached.

    Raises
    ------
    ValueError
        If v may be zero or negative.
    """

    arg: Fixed
    method: str
    segments: int
    sig_bits: int
    mantissa_bits: int
    scale: float = 1.0
    step: int = 1

    def __post_init__(self):
        if self.arg.lo < 1:
            raise ValueError(f"the argument of rsqrt must be positive, got {self.arg}")

    @cached_property
    def word_bits(self):
        """Width of the normalised argument.

        One bit more moves the even exponents by one octave, which scales the significands by
        the root of two. The range must not cross the ends of what a significand less its hidden
        one can hold; then fewer bits of the shift count, since every lane has a shifter, and
        then the higher range, since it is rounded more finely.
        """
        width = self.arg.width
        if self.sig_bits != MULTIPLIER_BITS:
            return width

        def merit(bits):
            lead = self._peak(bits) / 2 * 2.0 ** (self._frac_of(bits) - self.sig_bits + 1)
            margin = 2 * RSQRT.limits[self.method](self.segments) + 2.0 ** (3 - self.sig_bits)
            fits = abs(lead - 1) > margin and lead < 1.5 * (1 - margin)
            return fits, -self._most(bits).bit_length(), lead

        return max((width, width + 1), key=merit)

    @property
    def code_bits(self):
        """Mantissa bits under the leading one that reach the table."""
        return min(self.mantissa_bits, self.word_bits - 1)

    @property
    def truncated(self):
        """Whether mantissa bits are dropped on the way to the table."""
        return self.code_bits < self.word_bits - 1

    def _most(self, width):
        """The largest half count of leading zeros."""
        return (width - self.arg.lo.bit_length()) >> 1

    def _peak(self, width):
        """The largest significand: ``scale / sqrt(v)`` for M = 1, without the exponent."""
        return self.scale * 2.0 ** ((self.arg.frac - width + 2) / 2 + self._most(width))

    def _frac_of(self, width):
        """Fraction bits that make the smallest significand 0.75 to 1.5 of its top bit."""
        return self.sig_bits - 1 - floor(log2(self._peak(width) / 2 / 0.75))

    @property
    def frac(self):
        """Fraction bits of the significand."""
        return self._frac_of(self.word_bits)

    @property
    def smallest(self):
        """The smallest significand, without an error, in its lsb."""
        return self._peak(self.word_bits) / 2 * 2.0**self.frac

    @property
    def hidden(self):
        """Power of two, in lsb, that is left out of the significand; None if none is.

        Left out only where the significand then fits one hardware multiplier and would not
        otherwise.
        """
        smallest = self.smallest
        largest_width = (int(2 * smallest) + 1).bit_length() + 1
        if largest_width <= MULTIPLIER_BITS or self.sig_bits > MULTIPLIER_BITS:
            return None
        return self.sig_bits - (smallest < 1 << self.sig_bits - 1)

    @property
    def table(self):
        """The table, with `scale` and the hidden one in its entries."""
        return Table(
            function="rsqrt",
            method=self.method,
            segments=self.segments,
            arg_bits=self.code_bits,
            frac=self.frac,
            truncated=self.truncated,
            scale=self._peak(self.word_bits),
            offset=0 if self.hidden is None else 1 << self.hidden,
        )

    @property
    def max_error(self):
        """Proven relative error: the table's, and a quarter lsb of a cut mantissa."""
        cut = 2.0 ** -(self.code_bits + 2) if self.truncated else 0.0
        # The second-order terms of (1 + e)**-1/2 stay below e itself, for e < 1/2.
        return (1 + self.table.max_error) * (1 + cut * (1 + 2 * cut)) - 1

    @property
    def unreachable(self):
        """Table entries that no argument reaches."""
        return unreachable_entries(self.arg, self.table.index_bits, self.word_bits, self.step)

    def __call__(self, v):
        """Build it on a wire; returns a `Scaled`."""
        zeros = leading_zeros(v, self.word_bits).named("lead_zeros")
        mantissa = Normalise(v, zeros).named("mantissa")
        top = self.word_bits - 1
        code = mantissa[top - self.code_bits : top]
        sig = self.table(Cat(zeros[0:1], code)).named("rsqrt_sig")
        most = wire(self._most(self.word_bits))
        exp = (most - take_bits(zeros, 1, zeros.fmt.width)).named("rsqrt_exp")
        return Scaled(sig, exp, self.hidden)
