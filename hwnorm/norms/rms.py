"""RMSNorm: y = gamma * x / sqrt(mean(x**2) + eps) (Zhang and Sennrich, 2019)."""

from math import ceil, log2, sqrt
from typing import ClassVar

from hwnorm.approx import CountedRoot, Exp2, Log2, square_by_adders
from hwnorm.fixed import Fixed
from hwnorm.golden import rms_norm
from hwnorm.norms.scaling import ScalingNorm
from hwnorm.ops import Input, const, select

#: Entries of a logarithm's table, if the design does not say.
LOG_SEGMENTS = 64


class RMSNorm(ScalingNorm):
    """Root mean square normalisation.

    With ``T = sum(x**2) + dim * eps``, which is exact, ``y = gamma * x * sqrt(dim) / sqrt(T)``:
    nothing is ever divided by dim. With ``rsqrt.method = "log"`` the same is done on
    logarithms, ``y = sign * 2**(log2|x| + log2(dim)/2 - log2(T)/2 + log2|gamma|)``, without a
    multiplier an element.

    With ``dim_max`` the length d of a row is counted while it comes; with the exact
    ``V = d * (sum(x**2) + d * eps)`` it is ``y = gamma * x * d / sqrt(V)``.
    """

    kind: ClassVar[str] = "rmsnorm"
    parameter_names: ClassVar[tuple] = ("gamma",)
    has_exact: ClassVar[bool] = True
    has_lengths: ClassVar[bool] = True
    methods: ClassVar[tuple] = ("direct", "linear", "quadratic", "log")

    @property
    def folds(self):
        """Whether a constant gamma can be in the scale: not as logarithms."""
        return not self.logarithmic

    @property
    def logarithmic(self):
        """Whether the design works in the log domain."""
        return self.rsqrt.method == "log"

    @property
    def eps_weight(self):
        return self.dim, 1

    def golden(self, x, gamma=None, beta=None):
        return rms_norm(x, gamma, self.eps)

    def gather(self, x):
        terms = {"sumsq": square_by_adders(x) if self.logarithmic else x * x}
        return terms if self.dim_max is None else terms | {"count": const(1, 0)}

    def total_of(self, sumsq, count=None):
        if count is None:
            return (sumsq + self.eps_constant).named("total")
        return ((sumsq + count * self.eps_constant) * count).named("total")

    def solve(self, sumsq, count=None):
        total = self.total_of(sumsq, count)
        if count is not None:
            return {"inv": self.counted_root(total, count.fmt)(total, count)}
        if self.logarithmic:
            half_log = self.log2(total.fmt)(total) >> 1
            return {"inv": const(log2(self.dim) / 2, half_log.fmt.frac) - half_log}
        return {"inv": self.root(total, sqrt(self.dim))(total)}

    def counted_root(self, total, count):
        """What a row's elements are multiplied by, where its length is counted."""
        largest = max(-self.x.lo, self.x.hi) * self.x.lsb
        ends = (1 / sqrt(square + self.eps_used) for square in (largest**2, 0.0))
        return CountedRoot(self.root(total, 1.0), count, *ends)

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
        segments = self.log.segments or min(LOG_SEGMENTS, 1 << max(arg.width - 1, 1))
        return Log2(arg, self.log.method, segments, frac)

    def exp2(self, arg):
        """The power of two of a wire of an interval."""
        return Exp2(
            arg,
            self.log.method,
            self.log.segments or LOG_SEGMENTS,
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
    def units(self):
        if not self.logarithmic:
            return {"rsqrt": self.root(self.total, sqrt(self.dim) if self.dim_max is None else 1.0)}
        logs = {"log2_total": self.total, "log2_x": abs(Input("x", self.x)).fmt}
        if self.gamma is not None:
            gamma = super().load("gamma", Input("gamma", self.gamma))["gamma"]
            logs["log2_gamma"] = abs(gamma).fmt
        units = {name: self.log2(arg) for name, arg in logs.items()}
        # The exponent carries one bit more than the logarithms: half of log2(T).
        return units | {"exp2": self.exp2(Fixed(0, 1, units["log2_total"].frac + 1))}

    @property
    def scale_error(self):
        if self.dim_max is not None:
            return self.counted_root(self.total, self.row_flows[1]["count"]).max_error
        if not self.logarithmic:
            return self.units["rsqrt"].max_error
        errors = {name: unit.max_error for name, unit in self.units.items()}
        power = errors.pop("exp2")
        errors["log2_total"] /= 2
        # The constant log2(dim)/2 is rounded to the grid of the halved logarithm.
        constant = 2.0 ** -(self.units["log2_total"].frac + 2)
        return (1 + power) * 2.0 ** (sum(errors.values()) + constant) - 1

    @property
    def error_terms(self):
        after = self.gamma is not None and not self.logarithmic and self.folded is None
        return self.scale_terms(after)
