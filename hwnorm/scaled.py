"""Numbers with an exponent of their own: multiply first, shift after."""

from dataclasses import dataclass

from hwnorm.fixed import Fixed
from hwnorm.ops import Input, MulHidden, ShiftRight, Wire


@dataclass(frozen=True)
class ScaledFormat:
    """The formats of a `Scaled`, for passing it from one flow to the next."""

    sig: Fixed
    exp: Fixed
    hidden: int | None = None

    def input(self, name):
        """The number as inputs ``name`` and ``name_exp`` of a flow."""
        return Scaled(Input(name, self.sig), Input(f"{name}_exp", self.exp), self.hidden)


@dataclass(frozen=True, eq=False)
class Scaled:
    """``(sig + hidden one) * 2**-exp``, with two wires that are computed once a row.

    A significand times an element costs one multiplier; the shift comes behind it, where
    the product still has all its bits.

    Parameters
    ----------
    sig : Wire
    exp : Wire
        Unsigned integer.
    hidden : int or None
        If set, ``2**hidden`` lsb are to be added to `sig`. It makes the significand one or two
        bits shorter, which pays where it then fits one hardware multiplier.
    """

    sig: Wire
    exp: Wire
    hidden: int | None = None

    def __mul__(self, other):
        if self.hidden is None:
            product = self.sig * other
        else:
            product = MulHidden(other, self.sig, self.hidden)
        return Scaled(product.named("product"), self.exp)

    __rmul__ = __mul__

    def round(self, frac, rounding="nearest_even"):
        """The plain number: shifted, and rounded to `frac` fraction bits."""
        if self.hidden is not None:
            raise ValueError("a hidden one must be multiplied out before rounding")
        return ShiftRight(self.sig, self.exp, frac, rounding)

    @property
    def fmt(self):
        """The formats of the two wires."""
        return ScaledFormat(self.sig.fmt, self.exp.fmt, self.hidden)

    def wires(self, name):
        """The two wires under the names ``name`` and ``name_exp``."""
        return {name: self.sig.named(name), f"{name}_exp": self.exp.named(f"{name}_exp")}
