"""Independent judges for the tests: plain integers and fractions, no ops and no flows.

The two norms at the end are written by hand from the mathematics. Of a design they read its
choices only (the integer eps, the fraction bits, the entries of its table), so that an error
which the model and the hardware share is still found.
"""

import re
from fractions import Fraction
from functools import cache
from math import isqrt, sqrt

import numpy as np
import pytest

from hwnorm.golden import exact, reference
from hwnorm.model import evaluate


def refused(message):
    """Expect a ValueError of exactly this message."""
    return pytest.raises(ValueError, match=f"^{re.escape(message)}$")


# -- rows -------------------------------------------------------------------------------------


def corner_rows(fmt, dim):
    """Rows at the edges of a format, (rows, dim) int64."""
    lo, hi = fmt.lo, fmt.hi

    def one_hot(value, rest=0, at=0):
        row = np.full(dim, rest, dtype=np.int64)
        row[at] = value
        return row

    alternating = np.where(np.arange(dim) % 2, hi, lo)
    return np.stack(
        [
            np.zeros(dim, dtype=np.int64),
            one_hot(1),
            one_hot(-1, at=dim - 1),
            one_hot(hi, at=dim // 2),
            one_hot(lo),
            one_hot(hi, rest=hi - 1),
            one_hot(lo, rest=1),
            one_hot(hi // 3, rest=hi // 3000),
            np.full(dim, 1),
            np.full(dim, -1),
            np.full(dim, hi // 5),
            np.full(dim, hi),
            np.full(dim, lo),
            alternating,
            -1 - alternating,
            np.where(np.arange(dim) % 2, 1, -1),
        ]
    ).astype(np.int64)


def random_rows(fmt, dim, seed):
    """Rows of every size from one lsb to full scale: Gaussian, heavy tails, hot outliers."""
    rng = np.random.default_rng(seed)
    rows = []
    for sigma in np.geomspace(1, fmt.hi / 4, 6):
        rows.append(rng.normal(0, sigma, dim))
        rows.append(sigma * rng.standard_t(2, dim))
        spiked = rng.normal(0, max(sigma / 1000, 1), dim)
        spiked[rng.integers(dim)] = 4 * sigma * rng.choice([-1, 1])
        rows.append(spiked)
        rows.append(rng.uniform(-2, 2) * sigma + rng.normal(0, 1 + sigma / 100, dim))
    return np.clip(np.rint(rows), fmt.lo, fmt.hi).astype(np.int64)


def all_rows(design, seed):
    """Corners first, then random rows."""
    rows = corner_rows(design.x, design.dim), random_rows(design.x, design.dim, seed)
    return np.concatenate(rows)


def drawn(fmt, dim, seed):
    """A parameter from all of its format, both ends in it."""
    values = np.random.default_rng(seed).integers(fmt.lo, fmt.hi + 1, dim)
    values[:2] = fmt.lo, fmt.hi
    return values


def parameters(design, seed):
    """What the design has of gamma and beta, for ``**``."""
    return {
        name: drawn(fmt, design.dim, [seed, n])
        for n, (name, fmt) in enumerate(design.parameters.items())
    }


# -- rounding and roots -----------------------------------------------------------------------


def rounded(value, drop, rounding):
    """``value / 2**drop`` as an integer, for Python integers and arrays alike."""
    if drop <= 0:
        return value * 2**-drop
    step = 2**drop
    if rounding == "floor":
        return value // step
    raised = value + step // 2
    result = raised // step
    if rounding == "nearest_up":
        return result
    assert rounding == "nearest_even", rounding
    return result - (raised % step == 0) * (result % 2)


def fitted(value, fmt, overflow):
    """An integer brought into a format."""
    if overflow == "saturate":
        return min(max(value, fmt.lo), fmt.hi)
    return (value - fmt.lo) % (fmt.hi - fmt.lo + 1) + fmt.lo


def nearest_root(sign, square, added=Fraction(0)):
    """``sign * sqrt(square) + added`` to the nearest integer, ties to even, exactly."""
    n, d = square.numerator, square.denominator
    root = isqrt(n * d)
    if root * root == n * d:
        # A rational root: the only case in which there can be a tie. round() is to even.
        return round(sign * Fraction(root, d) + added)
    low = Fraction(isqrt(n * d << 400), d << 200)
    ends = {round(sign * r + added) for r in (low, low + Fraction(1, d << 200))}
    assert len(ends) == 1, "200 bits do not decide"
    return ends.pop()


def nearest_row(kind, row, *, x_frac, y_frac, eps, gamma=None, beta=None):
    """The correctly rounded norm of one row of Python integers.

    gamma and beta are lists of Fraction (real values), or None.
    """
    dim, two = len(row), Fraction(2)
    mean = Fraction(sum(row), dim) if kind == "layernorm" else Fraction(0)
    centred = [(v - mean) * two**-x_frac for v in row]
    power = sum(c * c for c in centred) / dim + Fraction(eps)
    result = []
    for i, c in enumerate(centred):
        gain = (gamma[i] if gamma else 1) * two**y_frac
        shift = (beta[i] if beta else Fraction(0)) * two**y_frac
        sign = -1 if c * gain < 0 else 1
        result.append(nearest_root(sign, (c * gain) ** 2 / power, shift))
    return result


# -- bounds -----------------------------------------------------------------------------------


def ideal_of(design, x, gamma=None, beta=None):
    """The norm of integers in float64, in ulp of y and not limited."""

    def real(ints, fmt):
        return np.ldexp(np.asarray(ints, dtype=np.float64), -fmt.frac)

    gain = None if gamma is None else real(gamma, design.gamma) + design.gamma_offset
    shift = None if beta is None else real(beta, design.beta)
    ideal = reference(design.kind, real(x, design.x), gain, shift, design.eps)
    return np.ldexp(ideal, design.y.frac)


def check_bound(design, x, gamma=None, beta=None):
    """Run the model: every wire must keep its interval and every output the stated bound.

    Returns
    -------
    tuple of numpy.ndarray
        The outputs, and their errors in ulp.
    """
    y = evaluate(design, x, gamma, beta, check=True).y
    limited = np.clip(ideal_of(design, x, gamma, beta), design.y.lo, design.y.hi)
    error = np.abs(y - limited)
    worst = np.unravel_index(error.argmax(), error.shape)
    assert error.max() <= design.bound_ulp, (worst, x[worst[0]])
    return y, error


def misrounded(design, x, y):
    """How many elements of a norm without parameters differ from the correctly rounded one."""
    nearest = exact(design.kind, x, x_frac=design.x.frac, y_frac=design.y.frac, eps=design.eps)
    return int(np.count_nonzero(y != np.clip(nearest, design.y.lo, design.y.hi)))


# -- tables -----------------------------------------------------------------------------------


def table_value(table, code):
    """What a table gives for a code, in units of ``2**-table.frac``, its offset added back.

    Works on Python integers (of any width) and on int64 arrays.
    """

    def entry(column, index):
        return column.values[index] if isinstance(index, int) else np.take(column.values, index)

    frac, arg_bits = table.frac, table.arg_bits
    index, place = code // 2**table.offset_bits, code % 2**table.offset_bits
    constant, *slopes = table.columns
    total, total_frac = entry(constant, index), constant.frac
    if table.method == "mitchell":
        grid = max(total_frac, arg_bits)
        total = total * 2 ** (grid - total_frac) + code * 2 ** (grid - arg_bits)
        total_frac = grid
    elif slopes:
        # Places count from the middle of the segment.
        place = place - 2 ** (table.offset_bits - 1)
        product, product_frac = entry(slopes[-1], index) * place, slopes[-1].frac + arg_bits
        if len(slopes) == 2:
            slope, slope_frac = entry(slopes[0], index), slopes[0].frac
            product = rounded(product, product_frac - (slope_frac + 2), "nearest_up")
            product = (slope * 4 + product) * place
            product_frac = slope_frac + 2 + arg_bits
        total = total * 2 ** (product_frac - total_frac) + product
        total_frac = product_frac
    return rounded(total, total_frac - frac, "nearest_up") + table.offset


# -- the two norms ----------------------------------------------------------------------------


@cache
def _root_of(design, scale):
    """The design's choice of widths, and its table."""
    root = design.root(design.total, scale)
    return root, root.table


def _scale_of(design, scale, total):
    """``scale / sqrt(total)`` as an integer and its fraction bits."""
    root, table = _root_of(design, scale)
    zeros = root.word_bits - total.bit_length()
    mantissa = total * 2**zeros
    code = mantissa // 2 ** (root.word_bits - 1 - root.code_bits) % 2**root.code_bits
    code += zeros % 2 * 2**root.code_bits
    most = (root.word_bits - root.arg.lo.bit_length()) // 2
    return table_value(table, code), table.frac + most - zeros // 2


def _finish(design, element, element_frac, scale, gamma, beta):
    """From an element to its y: multiplied by the scale, by gamma, and beta added."""
    sig, sig_frac = scale
    after = gamma is not None or beta is not None
    unit_frac = design.unit_frac(after)
    rounding = "nearest_up" if after else design.rounding
    y = rounded(element * sig, element_frac + sig_frac - unit_frac, rounding)
    y_frac = unit_frac
    if gamma is not None:
        y *= gamma + round(design.gamma_offset * 2**design.gamma.frac)
        y_frac += design.gamma.frac
    if beta is not None:
        grid = max(y_frac, design.beta.frac)
        y = y * 2 ** (grid - y_frac) + beta * 2 ** (grid - design.beta.frac)
        y_frac = grid
    return fitted(rounded(y, y_frac - design.y.frac, design.rounding), design.y, design.overflow)


def rms_norm(design, row, gamma=None):
    """RMSNorm of one row of Python integers, as the hardware must compute it."""
    total_fmt = design.total
    low_bits = total_fmt.frac - 2 * design.x.frac
    # A row of zeros leaves eps alone, so the smallest total is eps itself.
    total = sum(v * v for v in row) * 2**low_bits + total_fmt.lo
    scale = _scale_of(design, sqrt(design.dim), total)
    gains = [None] * len(row) if gamma is None else gamma
    return [
        _finish(design, v, design.x.frac, scale, g, None) for v, g in zip(row, gains, strict=True)
    ]


def layer_norm(design, row, gamma=None, beta=None):
    """LayerNorm of one row of Python integers, as the hardware must compute it."""
    dim, total_fmt = design.dim, design.total
    low_bits = total_fmt.frac - 2 * design.x.frac
    plain = sum(row)
    spread = dim * sum(v * v for v in row) - plain * plain
    scale = _scale_of(design, 1.0, spread * 2**low_bits + total_fmt.lo)
    gains = [None] * dim if gamma is None else gamma
    shifts = [None] * dim if beta is None else beta
    return [
        _finish(design, dim * v - plain, design.x.frac, scale, g, b)
        for v, g, b in zip(row, gains, shifts, strict=True)
    ]
