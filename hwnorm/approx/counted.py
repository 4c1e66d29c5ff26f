"""The root of a row whose length is known when it has come: count / sqrt(v)."""

from dataclasses import dataclass
from math import ceil, floor, log2

from hwnorm.approx.rsqrt import ReciprocalRoot
from hwnorm.fixed import Fixed
from hwnorm.ops import const, leading_zeros, select
from hwnorm.ops.words import Normalise
from hwnorm.scaled import Scaled


@dataclass(frozen=True)
class CountedRoot:
    """``count / sqrt(v)`` as a `Scaled` of the same significant bits as the root's.

    The count is normalised like v, so that its significand times the root's spans two octaves;
    the lower one is doubled, and the product rounded back to the root's format. Nothing else is
    lost: ``count`` and ``v`` are exact.

    Parameters
    ----------
    root : ReciprocalRoot
        Of v.
    count : Fixed
        Interval of the count, positive integers.
    least, most : float
        What the result lies between, without its error: count and v belong together, so this is
        narrower than their intervals say, and it saves bits of the shift.
    """

    root: ReciprocalRoot
    count: Fixed
    least: float
    most: float

    @property
    def max_error(self):
        """Proven relative error: the root's, and half an lsb of the smallest significand."""
        rounding = 0.5 / (self.root.smallest * (1 - self.root.max_error))
        return (1 + self.root.max_error) * (1 + rounding) - 1

    def __call__(self, v, count):
        """Build it on wires; returns a `Scaled`."""
        inv, bits = self.root(v), self.count.width
        zeros = leading_zeros(count).named("count_zeros")
        product = (inv * Normalise(count, zeros).named("count_mantissa")).sig
        frac = product.fmt.frac
        # The significands' product is at least `least`, and less than four times it.
        least = product.fmt.lo
        low = (product < const(2 * least * 2.0**-frac, frac)).named("count_low")
        both = select(low, product + product, product)
        both = both.within(2 * least, max(4 * least, product.fmt.hi)).named("counted")
        sig = both.round(frac - bits, "nearest_up")
        # The exponent is log2(sig / result): counted from its smallest on.
        error = 1 + 2 * self.max_error
        low_exp = floor(log2(sig.fmt.lo * sig.fmt.lsb / (self.most * error)))
        high_exp = ceil(log2(sig.fmt.hi * sig.fmt.lsb * error / self.least))
        exp = inv.exp + zeros + low - low_exp
        hidden = self.root.hidden
        if hidden is not None:
            sig = sig - const(2.0 ** (hidden - sig.fmt.frac), sig.fmt.frac)
        return Scaled(sig >> low_exp, exp.within(0, high_exp - low_exp), hidden)
