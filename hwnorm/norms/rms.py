"""RMSNorm: y = gamma * x / sqrt(mean(x**2) + eps) (Zhang and Sennrich, 2019)."""

from math import ceil, log2, sqrt
from typing import ClassVar

from hwnorm.approx import Exp2, Log2, square_by_adders
from hwnorm.fixed import Fixed
from hwnorm.norms.base import Norm
from hwnorm.ops import const, select


class RMSNorm(Norm):
    """Root mean square normalisation.

    With ``T = sum(x**2) + dim * eps``, which is exact, ``y = gamma * x * sqrt(dim) / sqrt(T)``:
    nothing is ever divided by dim. With ``rsqrt.method = "log"`` the same is done on
    logarithms, ``y = sign * 2**(log2|x| + log2(dim)/2 - log2(T)/2 + log2|gamma|)``, without a
    multiplier an element.
    """

    kind: ClassVar[str] = "rmsnorm"
    parameter_names: ClassVar[tuple] = ("gamma",)
    methods: ClassVar[tuple] = ("direct", "linear", "quadratic", "log")

    @property
    def logarithmic(self):
        """Whether the design works in the log domain."""
        return self.rsqrt.method == "log"

    def gather(self, x):
        return {"sumsq": square_by_adders(x) if self.logarithmic else x * x}

    def solve(self, sumsq):
        total = (sumsq + self.eps_constant(self.dim, smallest=1)).named("total")
        if self.logarithmic:
            half_log = self.log2(total.fmt)(total) >> 1
            return {"inv": const(log2(self.dim) / 2, half_log.fmt.frac) - half_log}
        return {"inv": self.root(total, sqrt(self.dim))(total)}

    def load(self, name, value):
        stored = super().load(name, value)
        if not self.logarithmic:
            return stored
        gamma = stored["gamma"]
        magnitude = abs(gamma)
        return {
            "gamma_log": self.log2(magnitude.fmt)(magnitude),
            "gamma_negative": gamma < 0,
            "gamma_some": magnitude > 0,
        }

    def apply(self, x, inv, **stored):
        if self.logarithmic:
            return self._apply_log(x, inv, **stored)
        y = self.normalised(x, inv, after="gamma" in stored)
        if "gamma" in stored:
            y = y * stored["gamma"]
        return y.fit(self.y, self.rounding, self.overflow)

    # -- the log domain -----------------------------------------------------------------

    def log2(self, arg):
        """The logarithm of a wire of an interval."""
        frac = self.log.frac or self.y.width + self.rsqrt.guard_bits
        return Log2(arg, self.log.method, self.log.segments, frac)

    def exp2(self, arg):
        """The power of two of a wire of an interval."""
        return Exp2(
            arg,
            self.log.method,
            self.log.segments,
            self.y.width + self.rsqrt.guard_bits,
            self.y.frac,
            self.rounding,
        )

    def _apply_log(self, x, inv, **stored):
        magnitude = abs(x)
        exponent = self.log2(magnitude.fmt)(magnitude).named("log_x") + inv
        negative, some = (x < 0).named("x_negative"), magnitude > 0
        if stored:
            exponent = exponent + stored["gamma_log"]
            negative = (negative + stored["gamma_negative"])[0:1]
            some = select(stored["gamma_some"], some, 0)
        power = self.exp2(exponent.fmt)(exponent.named("log_y"))
        top = ceil(self.peak * self.gain * (1 + self.scale_error) * 2.0**self.y.frac) + 1
        size = select(some, power, 0).within(0, top).named("size")
        return select(negative, -size, size).fit(self.y, self.rounding, self.overflow)

    # -- error --------------------------------------------------------------------------

    @property
    def scale_error(self):
        if not self.logarithmic:
            return self.root(self.total, sqrt(self.dim)).max_error
        parts = [self.log2(_magnitude(self.x)).max_error, 0.5 * self.log2(self.total).max_error]
        # The constant log2(dim)/2 is rounded to the grid of the halved logarithm.
        parts.append(2.0 ** -(self.log2(self.total).frac + 2))
        if self.gamma is not None:
            parts.append(self.log2(self._gamma_magnitude).max_error)
        exponent = sum(parts)
        return (1 + self._exp_error) * 2.0**exponent - 1

    @property
    def _gamma_magnitude(self):
        """The interval of ``|gamma + offset|``."""
        steps = round(self.gamma_offset * 2.0**self.gamma.frac)
        return _magnitude(
            Fixed(self.gamma.lo + steps, self.gamma.hi + steps, self.gamma.frac)
        )

    @property
    def _exp_error(self):
        frac = self.log2(self.total).frac + 1
        return self.exp2(Fixed(0, 1, frac)).max_error

    @property
    def error_terms(self):
        after = self.gamma is not None and not self.logarithmic
        return self.scale_terms(self.eps_ulp(self.dim, smallest=1), after)


def _magnitude(fmt):
    lo = max(fmt.lo, -fmt.hi, 0)
    return Fixed(lo, max(-fmt.lo, fmt.hi), fmt.frac)
