"""Accuracy of a design against the float64 golden model."""

from dataclasses import asdict, dataclass

import numpy as np

from hwnorm.golden import reference
from hwnorm.model import evaluate, exact_block, parameters_of, rows_of

#: A row is an outlier row if an element exceeds this many times the row's rms.
OUTLIER_CREST = 20.0

#: Elements beyond this many are judged in blocks.
BLOCK_ELEMENTS = 1 << 20


@dataclass(frozen=True)
class Accuracy:
    """Errors of y in ulp (units of its lsb), over some rows.

    Members
    -------
    rows, elements : int
    max_ulp : float
        Over all elements; golden is limited to the output format.
    mean_ulp, rms_ulp, p999_ulp, bias_ulp : float
        Mean, root mean square, 99.9 % quantile of the absolute error; mean signed error.
        Over the elements that do not saturate, as all that follow.
    misrounded : float
        Share of elements that differ from the correctly rounded result.
    sqnr_db, ideal_sqnr_db : float
        Signal to quantisation noise ratio, and that of golden rounded to the output format.
    saturated : int
        Elements that the design limited.
    bound_ulp : float or None
        The proven bound; None for ``exact``, where it is the rounding of y alone.
    """

    rows: int
    elements: int
    max_ulp: float
    mean_ulp: float
    rms_ulp: float
    p999_ulp: float
    bias_ulp: float
    misrounded: float
    sqnr_db: float
    ideal_sqnr_db: float
    saturated: int
    bound_ulp: float

    @property
    def holds(self):
        """Whether the observed maximum keeps the proven bound."""
        return self.max_ulp <= self.bound_ulp


@dataclass(frozen=True)
class Report:
    """The accuracy of a design on some rows.

    Members
    -------
    all : Accuracy
    ordinary, outlier : Accuracy or None
        Rows without and with an element beyond 20 times the row's rms.
    non_outlier : Accuracy or None
        In the outlier rows, the elements that are not the outliers themselves.
    gamma_quantisation_ulp, x_quantisation_ulp : float
        Largest change of golden when gamma (x) is quantised to its format; 0 if it came as
        integers. Not part of the errors above.
    worst : tuple of int
        Row and element of the largest error.
    """

    all: Accuracy
    ordinary: Accuracy | None
    outlier: Accuracy | None
    non_outlier: Accuracy | None
    gamma_quantisation_ulp: float
    x_quantisation_ulp: float
    worst: tuple

    def to_dict(self):
        """Plain numbers, the keys of ``hwnorm eval --json`` on top."""
        return {
            **asdict(self.all),
            "ordinary_rows": self.ordinary and asdict(self.ordinary),
            "outlier_rows": self.outlier and asdict(self.outlier),
            "non_outlier_elements": self.non_outlier and asdict(self.non_outlier),
            "gamma_quantisation_ulp": self.gamma_quantisation_ulp,
            "x_quantisation_ulp": self.x_quantisation_ulp,
            "worst_row": self.worst[0],
            "worst_element": self.worst[1],
        }


def golden(design, x, gamma=None, beta=None):
    """The float64 output of a design's norm.

    Parameters
    ----------
    design : hwnorm.Norm
    x, gamma, beta : array_like
        Floats are taken as they are; integers in units of their formats' lsb. None: the
        design's initial contents.

    Returns
    -------
    numpy.ndarray of float64, the shape of x
    """
    return reference(design.kind, *_reals(design, x, gamma, beta), eps=design.eps)


def _reals(design, x, gamma, beta):
    def real(name, value):
        fmt = getattr(design, name)
        if value is None and fmt is not None and name != "x":
            value = np.array(design.initial(name))
        if value is None:
            return None
        value = np.asarray(value)
        if value.dtype.kind != "f":
            value = fmt.reals(value)
        return value + design.gamma_offset if name == "gamma" else value

    return real("x", x), real("gamma", gamma), real("beta", beta)


def measure(design, x, gamma=None, beta=None, progress=None):
    """Judge a design on some rows.

    The reference is golden of the *quantised* input and parameters, so that the figures are
    the arithmetic's own; what the quantisation of x and gamma does is reported apart.

    Parameters
    ----------
    design : hwnorm.Norm
    x : array_like, (..., dim)
        Floats (quantised here) or integers.
    gamma, beta : array_like or None, (dim,)
    progress : callable or None
        Called with the number of rows done since the last call.

    Returns
    -------
    Report
    """
    x_int = rows_of(design, x)
    parameters = parameters_of(design, gamma=gamma, beta=beta)
    parts = []
    step = max(1, BLOCK_ELEMENTS // design.dim)
    for start in range(0, len(x_int), step):
        rows = x_int[start : start + step]
        result = evaluate(design, rows, **parameters)
        nearest, _ = exact_block(design, rows, parameters)
        ideal = np.ldexp(golden(design, rows, **parameters), design.y.frac)
        parts.append((result, nearest, ideal))
        if progress:
            progress(len(rows))
    y = np.concatenate([p[0].y for p in parts])
    nearest = np.concatenate([p[1] for p in parts])
    ideal = np.concatenate([p[2] for p in parts])
    saturated = sum(p[0].saturated for p in parts)
    errors = _Errors(design, y, nearest, ideal)
    squares = np.square(x_int.astype(np.float64))
    rms = np.sqrt(np.mean(squares, axis=1, keepdims=True))
    spikes = np.abs(x_int) > OUTLIER_CREST * rms
    outlier = spikes.any(axis=1)[:, None] & np.ones_like(spikes)
    return Report(
        all=errors.over(np.ones_like(outlier), saturated),
        ordinary=errors.over(~outlier) if (~outlier).any() else None,
        outlier=errors.over(outlier) if outlier.any() else None,
        non_outlier=errors.over(outlier & ~spikes) if outlier.any() else None,
        gamma_quantisation_ulp=_shift(design, x_int, gamma, beta, parameters, "gamma"),
        x_quantisation_ulp=_shift(design, x, gamma, beta, parameters, "x"),
        worst=errors.worst,
    )


def _shift(design, x, gamma, beta, parameters, what):
    """The largest change of golden, in ulp, that quantising one input makes."""
    given = gamma if what == "gamma" else x
    if given is None or np.asarray(given).dtype.kind != "f":
        return 0.0
    x = np.asarray(x).reshape(-1, design.dim)
    raw = golden(design, x, gamma if what == "gamma" else parameters.get("gamma"), beta)
    quantised = golden(design, rows_of(design, x), **parameters)
    return float(np.max(np.abs(raw - quantised)) * 2.0**design.y.frac)


class _Errors:
    """Errors of y, sliced by element masks."""

    def __init__(self, design, y, nearest, ideal):
        self.design = design
        self.fits = (ideal >= design.y.lo - 0.5) & (ideal <= design.y.hi + 0.5)
        limited = np.clip(ideal, design.y.lo, design.y.hi)
        self.error = y - limited
        self.wrong = y != nearest
        self.rounding = np.rint(limited) - limited
        self.signal = limited
        self.limited = (y == design.y.lo) | (y == design.y.hi)

    @property
    def worst(self):
        row, column = np.unravel_index(np.argmax(np.abs(self.error)), self.error.shape)
        return int(row), int(column)

    def over(self, mask, saturated=None):
        """The `Accuracy` of the masked elements."""
        inside = mask & self.fits
        if not inside.any():
            inside = mask
        error = self.error[inside]
        size = np.abs(error)
        power = float(np.sum(np.square(self.signal[inside])))
        return Accuracy(
            rows=int(np.count_nonzero(mask.any(axis=1))),
            elements=int(np.count_nonzero(mask)),
            max_ulp=float(np.max(np.abs(self.error[mask]))),
            mean_ulp=float(np.mean(size)),
            rms_ulp=float(np.sqrt(np.mean(np.square(error)))),
            p999_ulp=float(np.quantile(size, 0.999)),
            bias_ulp=float(np.mean(error)),
            misrounded=float(np.mean(self.wrong[inside])),
            sqnr_db=_decibels(power, float(np.sum(np.square(error)))),
            ideal_sqnr_db=_decibels(power, float(np.sum(np.square(self.rounding[inside])))),
            saturated=int(np.count_nonzero(mask & ~self.fits)) if saturated is None else saturated,
            bound_ulp=0.5 if self.design.rsqrt.method == "exact" else self.design.bound_ulp,
        )


def _decibels(signal, noise):
    return float("inf") if noise == 0 else 10 * np.log10(signal / noise) if signal else 0.0
