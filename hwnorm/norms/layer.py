"""LayerNorm: y = gamma * (x - mean) / sqrt(var + eps) + beta (Ba, Kiros and Hinton, 2016)."""

from math import sqrt
from typing import ClassVar

from hwnorm.golden import layer_norm
from hwnorm.norms.scaling import ScalingNorm


class LayerNorm(ScalingNorm):
    """Layer normalisation.

    With ``V = dim * sum(x**2) - sum(x)**2`` and ``N = dim * x - sum(x)``, both exact
    integers, ``y = gamma * N / sqrt(V + dim**2 * eps) + beta``. No mean is rounded and
    nothing cancels.
    """

    kind: ClassVar[str] = "layernorm"
    parameter_names: ClassVar[tuple] = ("gamma", "beta")
    has_exact: ClassVar[bool] = True
    folds: ClassVar[bool] = True

    @property
    def peak(self):
        return sqrt(self.dim - 1)

    @property
    def affine(self):
        """Whether gamma or beta follow the scale."""
        return (self.gamma is not None and self.folded is None) or self.beta is not None

    def golden(self, x, gamma=None, beta=None):
        return layer_norm(x, gamma, beta, self.eps)

    def gather(self, x):
        return {"sum": x, "sumsq": x * x}

    def total_of(self, sum, sumsq):
        spread = sumsq * self.dim - sum * sum
        # Never negative (Cauchy-Schwarz), and zero for a constant row only.
        spread = spread.within(0, spread.fmt.hi).named("spread")
        return (spread + self.eps_constant).named("total")

    def solve(self, sum, sumsq):
        total = self.total_of(sum=sum, sumsq=sumsq)
        return {"inv": self.root(total, 1.0)(total), "sum": sum}

    def apply(self, x, inv, sum, gamma=None, beta=None):
        centred = (x * self.dim - sum).named("centred")
        y = self.normalised(centred, inv, self.affine)
        if gamma is not None:
            y = y * gamma
        if beta is not None:
            y = y + beta
        return y.fit(self.y, self.rounding, self.overflow)

    @property
    def eps_weight(self):
        # V = sum over pairs of (x_i - x_j)**2: one element one lsb off gives dim - 1.
        return self.dim**2, self.dim - 1

    @property
    def units(self):
        return {"rsqrt": self.root(self.total, 1.0)}

    @property
    def scale_error(self):
        return self.units["rsqrt"].max_error

    @property
    def error_terms(self):
        return self.scale_terms(self.affine)
