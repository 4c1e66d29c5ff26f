"""Your own norm: y = gamma * x / (mean|x| + eps), from parts that hwnorm has."""

from dataclasses import dataclass

import numpy as np

from hwnorm.norms import ScalingNorm
from hwnorm.ops import const


@dataclass(frozen=True, kw_only=True)
class MeanAbsNorm(ScalingNorm):
    """Mean-absolute norm: with ``S = sum|x| + dim * eps``, ``y = gamma * x * dim / sqrt(S**2)``."""

    kind, parameter_names = "mean-abs-norm", ("gamma",)
    eps_ulp = 0.0  # eps is exact, or refused below
    dim: int = 64
    eps: float = 2.0**-8

    def golden(self, x, gamma=None, beta=None):
        y = x / (np.mean(np.abs(x), axis=-1, keepdims=True) + self.eps)
        return y if gamma is None else y * gamma

    def gather(self, x):
        return {"sumabs": abs(x)}

    def total_of(self, sumabs):
        total = sumabs + self.eps_constant
        return total * total

    def solve(self, sumabs):
        total = self.total_of(sumabs)
        return {"inv": self.root(total, float(self.dim))(total)}

    def apply(self, x, inv, gamma=None):
        y = self.normalised(x, inv, after=gamma is not None)
        return (y if gamma is None else y * gamma).fit(self.y, self.rounding, self.overflow)

    @property
    def eps_weight(self):
        return self.dim, 1

    @property
    def eps_constant(self):
        lsbs = self.dim * self.eps * 2.0**self.x.frac
        if lsbs != int(lsbs) or not lsbs:
            raise ValueError(f"dim * eps must be a multiple of the lsb of x, got {lsbs} lsb")
        return const(self.dim * self.eps, self.x.frac)

    @property
    def peak(self):
        return float(self.dim)  # a single spike

    @property
    def units(self):
        return {"rsqrt": self.root(self.total, float(self.dim))}

    @property
    def scale_error(self):
        return self.units["rsqrt"].max_error

    @property
    def error_terms(self):
        return self.scale_terms(after=self.gamma is not None)
