"""Binary logarithm and power: leading-one detection and one table each."""

from dataclasses import dataclass

from hwnorm.approx.reach import unreachable_entries
from hwnorm.fixed import Fixed
from hwnorm.ops import Clamp, Normalise, ShiftRight, leading_zeros, take_bits, wire
from hwnorm.tables import Table


@dataclass(frozen=True)
class Log2:
    """``log2(v)`` of a positive wire.

    Parameters
    ----------
    arg : Fixed
        Interval of v, unsigned. For v = 0 the result means nothing.
    method : str
        ``direct``, ``mitchell`` (the mantissa itself plus a correction) or ``linear``.
    segments : int
    frac : int
        Fraction bits of the result.
    """

    arg: Fixed
    method: str
    segments: int
    frac: int

    @property
    def code_bits(self):
        """Mantissa bits under the leading one that reach the table."""
        return min(self.frac + 2, self.arg.width - 1)

    @property
    def truncated(self):
        """Whether mantissa bits are dropped on the way to the table."""
        return self.code_bits < self.arg.width - 1

    @property
    def table(self):
        """The table of ``log2(1 + u)``."""
        return Table("log2", self.method, self.segments, self.code_bits, self.frac, self.truncated)

    @property
    def max_error(self):
        """Proven absolute error: the table's, and half an lsb of a cut mantissa."""
        # The slope of log2(1 + u) is at most 1/ln 2 < 1.4427.
        cut = 1.4427 * 2.0 ** -(self.code_bits + 1) if self.truncated else 0.0
        return self.table.max_error + cut

    @property
    def unreachable(self):
        """Table entries that no argument reaches."""
        return unreachable_entries(self.arg, self.table.index_bits)

    def __call__(self, v):
        """Build it on a wire."""
        width = self.arg.width
        zeros = leading_zeros(v)
        mantissa = Normalise(v, zeros)
        code = mantissa[width - 1 - self.code_bits : width - 1]
        return (wire(width - 1 - self.arg.frac) - zeros) + self.table(code)


@dataclass(frozen=True)
class Exp2:
    """``2**a``, rounded to `frac` fraction bits by a shift.

    Parameters
    ----------
    arg : Fixed
        Interval of a, with at least one fraction bit.
    method : str
        ``direct``, ``mitchell`` or ``linear``.
    segments : int
    sig_bits : int
        Fraction bits of the mantissa in [1, 2).
    frac : int
        Fraction bits of the result.
    rounding : str
    """

    arg: Fixed
    method: str
    segments: int
    sig_bits: int
    frac: int
    rounding: str

    @property
    def table(self):
        """The table of ``2**u``."""
        return Table("exp2", self.method, self.segments, self.arg.frac, self.sig_bits)

    @property
    def max_error(self):
        """Proven relative error before the last rounding."""
        return self.table.max_error

    @property
    def unreachable(self):
        """Table entries that no argument reaches: none, every fraction occurs."""
        return 0

    def __call__(self, a):
        """Build it on a wire."""
        lowest = self.arg.lo >> self.arg.frac
        code = (a - lowest) << self.arg.frac  # an unsigned integer in units of the lsb
        whole = take_bits(code, self.arg.frac, code.fmt.width)
        mantissa = self.table(take_bits(code, 0, self.arg.frac))
        # Beyond `gone` places not even the half of an lsb is left.
        gone = self.frac + whole.fmt.hi + lowest + 3
        shift = Clamp(wire(whole.fmt.hi) - whole, 0, max(gone, 1)).named("exp2_shift")
        return ShiftRight(mantissa << whole.fmt.hi + lowest, shift, self.frac, self.rounding)
