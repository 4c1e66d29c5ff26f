"""What norms that multiply a row by one scale have in common: widths, eps, error terms."""

from functools import cached_property
from math import ceil, log2, sqrt
from typing import ClassVar

from hwnorm.approx import ReciprocalRoot
from hwnorm.fixed import Fixed
from hwnorm.flow import trace
from hwnorm.norms.base import Norm
from hwnorm.ops import MULTIPLIER_BITS, const


class ScalingNorm(Norm):
    """A norm ``y = element * scale * gamma + beta``, with ``scale = constant / sqrt(total)``."""

    #: Whether `apply` leaves a constant gamma to `normalised`, see `folded`.
    folds: ClassVar[bool] = False

    @cached_property
    def folded(self):
        """The log2 of a constant gamma that the scale has in it; None: it is multiplied.

        That is one power of two, positive, given for all elements, in ``store = "rom"``.
        """
        if not self.folds or self.gamma is None or self.gamma_init is None or self.store != "rom":
            return None
        offset = int(self.gamma_offset * 2.0**self.gamma.frac)
        steps = {value + offset for value in self.gamma_init}
        step = steps.pop()
        if steps or step < 1 or step & step - 1:
            return None
        return step.bit_length() - 1 - self.gamma.frac

    def load(self, name, value):
        """What is stored; nothing of a gamma that is folded."""
        folded = name == "gamma" and self.folded is not None
        return {} if folded else super().load(name, value)

    def total_of(self, **totals):
        """The wire whose root is taken, from a row's totals: never zero."""
        raise TypeError(f"{self.kind} has no total")

    @cached_property
    def total(self):
        """The interval of that wire."""
        totals = self.row_flows[1]
        return trace(lambda **t: {"total": self.total_of(**t)}, **totals).results["total"]

    @property
    def gain(self):
        """The largest ``|gamma + offset|`` that can be stored; 1 without gamma."""
        if self.gamma is None:
            return 1.0
        if self.folded is not None:
            return 2.0**self.folded
        ends = (v * self.gamma.lsb + self.gamma_offset for v in (self.gamma.lo, self.gamma.hi))
        return max(abs(v) for v in ends)

    @property
    def _full_ulp(self):
        """The largest scaled element in ulp, of those that are not limited to the format."""
        full = self.peak * self.gain * 2.0**self.y.frac
        if self.overflow == "wrap":
            return full
        shift = 0.0 if self.beta is None else max(-self.beta.lo, self.beta.hi) * self.beta.lsb
        reach = 2.0 ** (self.y.width - 1) + shift * 2.0**self.y.frac
        return min(reach, full)

    @property
    def peak(self):
        """The largest ``|y|`` before gamma and beta (Cauchy-Schwarz)."""
        return sqrt(self.dim)

    def root(self, total, scale):
        """``scale / sqrt(total)`` as wide as the error budget of y asks.

        Parameters
        ----------
        total : Wire or Fixed
            Its interval is what counts.
        scale : float
        """
        sig_bits = self.y.width + self.rsqrt.guard_bits
        arg = total if isinstance(total, Fixed) else total.fmt
        return ReciprocalRoot(
            arg=arg,
            method=self.rsqrt.method,
            segments=self.rsqrt.segments_for(2.0 ** -(sig_bits + 1)),
            sig_bits=sig_bits,
            mantissa_bits=sig_bits + 1,
            scale=scale,
            # Below the lsb of a square there is nothing but eps; it counts with the length.
            step=1 << arg.frac - 2 * self.x.frac if self.dim_max is None else 1,
        )

    @property
    def eps_weight(self):
        """What eps is multiplied by, and the smallest total it is added to, in its lsb."""
        raise TypeError(f"{self.kind} has no eps")

    @property
    def eps_lsb(self):
        """Eps in units of the lsb of a total of squares."""
        return self.eps_weight[0] * self.eps * 2.0 ** (2 * self.x.frac)

    @property
    def eps_share(self):
        """How many times the constant is part of a total: once, or for every element."""
        return 1 if self.dim_max is None else self.dim

    @property
    def eps_constant(self):
        """Eps as it is added to the total, a constant wire that is never zero.

        It has at least the fraction bits of a square of x, and as many more as the error
        budget asks.
        """
        exact, extra = self.eps_lsb / self.eps_share, 0
        if exact < 0.5:
            extra = ceil(log2(50 / exact))
        budget = 2.0 ** -(self.rsqrt.guard_bits + 4)
        while self._eps_ulp(self.eps_share * round(exact * 2**extra) / 2**extra) > budget:
            extra += 1
        return const(self.eps_weight[0] / self.eps_share * self.eps, 2 * self.x.frac + extra)

    @property
    def eps_used(self):
        """The eps that is added, in real units."""
        fmt = self.eps_constant.fmt
        return fmt.lo * fmt.lsb * self.eps_share / self.eps_weight[0]

    @property
    def eps_ulp(self):
        """What the rounding of eps does to y, at its worst, in ulp."""
        fmt = self.eps_constant.fmt
        return self._eps_ulp(self.eps_share * fmt.lo * 2.0 ** (2 * self.x.frac - fmt.frac))

    def _eps_ulp(self, used):
        # |y| <= peak * gain * sqrt(S / (S + eps)) for a total S. The change of y with eps is
        # largest at S = eps/2, or at the smallest S there is; and with the longest row.
        exact = self.eps_lsb
        worst = max(exact / 2, self.eps_weight[1])
        rest = worst + min(exact, used)
        scale = self.peak * self.gain * 2.0**self.y.frac
        return scale * sqrt(worst) * 0.5 * abs(exact - used) / rest**1.5

    def unit_frac(self, after):
        """Fraction bits of the normalised element, before gamma.

        Parameters
        ----------
        after : bool
            Whether gamma or beta follow; without, the element is the output.
        """
        if not after:
            return self.y.frac
        if self.folded is not None:
            return self.y.frac + self.rsqrt.guard_bits
        frac = self.y.frac + self.rsqrt.guard_bits + max(0, ceil(log2(self.gain)))
        width = Fixed(0, self._unit_peak(frac), 0).width + 1
        # One bit too many for a hardware multiplier costs a second one, and buys little.
        return frac - (width == MULTIPLIER_BITS + 1)

    def _unit_peak(self, frac):
        return ceil(self.peak * (1 + 2.0**-4) * 2.0**frac) + 1

    def normalised(self, element, inv, after):
        """``element * inv`` rounded, and narrowed by the theorem that bounds it."""
        frac, fold = self.unit_frac(after), self.folded or 0
        scaled = (element << fold if fold else element) * inv
        unit = scaled.round(frac, "nearest_up" if after else self.rounding)
        top = ceil(self.peak * (1 + self.scale_error) * 2.0 ** (frac + fold)) + 1
        return unit.within(-top, top).named("unit")

    @property
    def scale_error(self):
        """Proven relative error of the row's scale."""
        raise TypeError(f"{self.kind} has no scale")

    def scale_terms(self, after):
        """The error terms of norms that multiply by a scale."""
        lsb_ulp = 2.0 ** (self.y.frac - self.unit_frac(after))
        terms = {
            "rounding of y": 1.0 if self.rounding == "floor" else 0.5,
            "scale": self._full_ulp * self.scale_error,
            # The scale is wrong by its own error on top of what eps does to it.
            "eps": self.eps_ulp * (1 + self.scale_error),
        }
        if after:
            # What is folded into the scale is behind nothing, beta is added to it.
            gain = self.gain if self.folded is None else 1.0
            terms["rounding before gamma"] = 0.5 * lsb_ulp * gain
        return terms
