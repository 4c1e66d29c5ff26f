"""Independent references: float64, and correctly rounded integers.

Nothing here knows the core's formats, ops or flows, so that an error which the model and
the hardware share is still found.
"""

from fractions import Fraction
from math import isqrt

import numpy as np


def rms_norm(x, gamma=None, eps=1e-5):
    """RMSNorm in float64 (Zhang and Sennrich, 2019).

    Parameters
    ----------
    x : array_like of float, (..., dim)
    gamma : array_like of float or None, (dim,)
    eps : float
        Added to the mean square.

    Returns
    -------
    numpy.ndarray of float64, the shape of x
    """
    x = np.asarray(x, dtype=np.float64)
    y = x / np.sqrt(np.mean(np.square(x), axis=-1, keepdims=True) + eps)
    return y if gamma is None else y * gamma


def layer_norm(x, gamma=None, beta=None, eps=1e-5):
    """LayerNorm in float64 (Ba, Kiros and Hinton, 2016), with the biased variance.

    Parameters
    ----------
    x : array_like of float, (..., dim)
    gamma, beta : array_like of float or None, (dim,)
    eps : float
        Added to the variance.

    Returns
    -------
    numpy.ndarray of float64, the shape of x
    """
    x = np.asarray(x, dtype=np.float64)
    # A row's offset changes nothing; without it (the difference is exact for numbers on one
    # grid) a large mean costs no digits.
    x = x - x[..., :1]
    centred = x - np.mean(x, axis=-1, keepdims=True)
    y = centred / np.sqrt(np.mean(np.square(centred), axis=-1, keepdims=True) + eps)
    if gamma is not None:
        y = y * gamma
    return y if beta is None else y + beta


def reference(kind, x, gamma=None, beta=None, eps=1e-5):
    """The float64 norm of a name: ``rmsnorm`` or ``layernorm``."""
    if kind == "rmsnorm":
        return rms_norm(x, gamma, eps)
    return layer_norm(x, gamma, beta, eps)


def exact(
    kind,
    x,
    *,
    x_frac,
    y_frac,
    eps,
    gamma=None,
    gamma_frac=0,
    gamma_offset=0.0,
    beta=None,
    beta_frac=0,
):
    """The correctly rounded norm of fixed-point rows, ties to even, never limited.

    ``y**2`` (less beta) is a rational number, so whether a result lies above or below the
    middle between two output codes is decided by comparing integers. Floats settle every
    element that is clearly away from such a middle; the rest are compared exactly.

    Parameters
    ----------
    kind : str
        ``rmsnorm`` or ``layernorm``.
    x : numpy.ndarray of int, (rows, dim)
        In units of ``2**-x_frac``.
    x_frac, y_frac : int
        Fraction bits of input and output.
    eps : float
        Taken as the exact binary fraction that it is.
    gamma, beta : numpy.ndarray of int or None, (dim,) or (rows, dim)
        In units of ``2**-gamma_frac`` and ``2**-beta_frac``.
    gamma_offset : float
        Added to gamma.

    Returns
    -------
    numpy.ndarray of int64, (rows, dim)
        In units of ``2**-y_frac``; of Python integers if some need more than 62 bits.
    """
    x = np.asarray(x, dtype=np.int64)
    dim = x.shape[-1]
    gamma, beta = (p if p is None else np.broadcast_to(p, x.shape) for p in (gamma, beta))
    gain = None if gamma is None else np.ldexp(gamma.astype(float), -gamma_frac) + gamma_offset
    shift = None if beta is None else np.ldexp(beta.astype(float), -beta_frac)
    real = np.ldexp(
        reference(kind, np.ldexp(x.astype(np.float64), -x_frac), gain, shift, eps), y_frac
    )
    near = np.abs(np.abs(real - np.floor(real)) - 0.5) < 1e-6 + 1e-12 * np.abs(real)
    # Beyond this floats know no fractions any more; Python integers take over.
    near |= np.abs(real) >= 2.0**50
    wide = np.abs(real).max(initial=0.0) >= 2.0**62
    y = np.rint(real).astype(object if wide else np.int64)
    for row in np.flatnonzero(near.any(axis=-1)):
        ints = [int(v) for v in x[row]]
        squares = sum(v * v for v in ints)
        # All of what follows is exact: unit is the lsb of x, squared.
        unit = Fraction(1, 4**x_frac) if x_frac >= 0 else Fraction(4**-x_frac)
        if kind == "rmsnorm":
            total = squares * unit + dim * Fraction(eps)
            weight = dim
            elements = ints
        else:
            spread = dim * squares - sum(ints) ** 2
            total = spread * unit + dim * dim * Fraction(eps)
            weight = 1
            elements = [dim * v - sum(ints) for v in ints]
        for column in np.flatnonzero(near[row]):
            factor = Fraction(elements[column]) * Fraction(2) ** (y_frac - x_frac)
            if gamma is not None:
                factor *= Fraction(int(gamma[row, column])) / Fraction(2) ** gamma_frac + Fraction(
                    gamma_offset
                )
            added = Fraction(0)
            if beta is not None:
                added = Fraction(int(beta[row, column])) * Fraction(2) ** (y_frac - beta_frac)
            y[row, column] = _round_root(factor, weight, total, added)
    return y


def _round_root(factor, weight, total, added):
    """``factor * sqrt(weight / total) + added`` to the nearest integer, ties to even."""

    def above(middle):
        """Sign of the exact value less `middle`: -1, 0 or 1."""
        target = middle - added
        left, right = (factor >= 0) * 2 - 1, (target >= 0) * 2 - 1
        square = factor * factor * weight - target * target * total
        if left != right:
            return left
        return left * ((square > 0) - (square < 0))

    square = factor * factor * weight / total
    size = isqrt(square.numerator // square.denominator)
    guess = (size if factor >= 0 else -size) + round(added)
    for candidate in range(guess - 2, guess + 3):
        low, high = above(Fraction(2 * candidate - 1, 2)), above(Fraction(2 * candidate + 1, 2))
        even = candidate % 2 == 0
        if (low > 0 or (low == 0 and even)) and (high < 0 or (high == 0 and even)):
            return candidate
    raise ArithmeticError("internal: no candidate is the nearest integer")
