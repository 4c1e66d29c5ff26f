"""Accuracy of a design against the float64 golden model."""

from dataclasses import asdict, dataclass

import numpy as np

from hwnorm.model import evaluate, exact_block, parameters_at, parameters_of, rows_of

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
        Over all elements; golden is limited to the output format (or wrapped, as the design).
    mean_ulp, rms_ulp, p999_ulp, bias_ulp : float
        Mean, root mean square, 99.9 % quantile of the absolute error; mean signed error.
        Over the elements that do not saturate, as all that follow.
    misrounded : float or None
        Share of elements that differ from the correctly rounded result; None where the norm
        has no exact form.
    sqnr_db, ideal_sqnr_db : float
        Signal to quantisation noise ratio, and that of golden rounded to the output format.
    saturated : int
        Elements that the design limited.
    bound_ulp : float
        The proven bound; for ``exact`` the rounding of y alone.
    """

    rows: int
    elements: int
    max_ulp: float
    mean_ulp: float
    rms_ulp: float
    p999_ulp: float
    bias_ulp: float
    misrounded: float | None
    sqnr_db: float
    ideal_sqnr_db: float
    saturated: int
    bound_ulp: float

    @property
    def holds(self):
        """Whether the observed maximum keeps the proven bound, as far as float64 can tell."""
        return self.max_ulp <= self.bound_ulp * (1 + 1e-9)


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
    return design.golden(*_reals(design, x, gamma, beta))


def _reals(design, x, gamma, beta):
    def real(name, value):
        fmt = getattr(design, name)
        if value is None and fmt is not None and name != "x":
            value = np.array(design.initial(name))
        if value is None:
            return None
        if fmt is None:
            raise ValueError(f"{name} must not be given: the design has no format.{name}")
        value = np.asarray(value)
        by_row = name != "x" and value.ndim == 2 and design.store == "stream"
        if name != "x" and value.shape[by_row:] != (design.dim,):
            raise ValueError(f"{name} must have dim={design.dim} elements, got shape {value.shape}")
        if name != "x":
            value = value[..., : np.shape(x)[-1]]
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
        As of `hwnorm.model`.
    progress : callable or None
        Called with the number of rows done since the last call.

    Returns
    -------
    Report
    """
    return Errors.of(design, x, gamma, beta, progress).report()


@dataclass(frozen=True)
class Errors:
    """Errors of y on some rows, element by element, before they are summed up.

    Members
    -------
    design : hwnorm.Norm
    error : numpy.ndarray of float64, (rows, dim)
        ``y - golden`` in ulp, golden being limited to the output format; of wrapping designs
        modulo the word.
    ideal_error : numpy.ndarray of float64, (rows, dim)
        The same for golden rounded to the output format.
    signal : numpy.ndarray of float64, (rows, dim)
        Golden in ulp, limited unless the design wraps.
    misrounded, fits, spikes, saturated : numpy.ndarray of bool, (rows, dim)
        y differs from the correctly rounded result (None where the norm has no exact form);
        golden needs no limiting; the element of x exceeds 20 times its row's rms; the design
        limited y.
    gamma_quantisation_ulp, x_quantisation_ulp : float
    """

    design: object
    error: np.ndarray
    ideal_error: np.ndarray
    signal: np.ndarray
    misrounded: np.ndarray | None
    fits: np.ndarray
    spikes: np.ndarray
    saturated: np.ndarray
    gamma_quantisation_ulp: float
    x_quantisation_ulp: float

    @classmethod
    def of(cls, design, x, gamma=None, beta=None, progress=None):
        """The errors of a design on some rows; the arguments are those of `measure`."""
        x_int = rows_of(design, x)
        if not len(x_int):
            raise ValueError("x must have at least one row, got none")
        parameters = parameters_of(design, gamma=gamma, beta=beta)
        step = max(1, BLOCK_ELEMENTS // x_int.shape[1])
        parts = []
        for start in range(0, len(x_int), step):
            rows = x_int[start : start + step]
            some = parameters_at(parameters, start, start + len(rows))
            parts.append(cls._block(design, rows, some))
            if progress:
                progress(len(rows))
        return cls.joined(
            parts,
            gamma_quantisation_ulp=_shift(design, x_int, parameters, gamma=gamma),
            x_quantisation_ulp=_shift(design, x_int, parameters, x=x),
        )

    @classmethod
    def _block(cls, design, x, parameters):
        limited_by_design = np.zeros(x.shape, dtype=bool)
        result = evaluate(design, x, **parameters, limited=limited_by_design)
        ideal = np.ldexp(golden(design, x, **parameters), design.y.frac)
        fits = (ideal >= design.y.lo - 0.5) & (ideal <= design.y.hi + 0.5)
        limited = np.clip(ideal, design.y.lo, design.y.hi)
        error = result.y - limited
        if design.overflow == "wrap":
            # Where golden leaves the word, y is right if it is golden's low bits.
            limited, fits = ideal, np.ones_like(fits)
            span = 2.0**design.y.width
            error = result.y - ideal
            error = error - span * np.rint(error / span)
        size = np.abs(x.astype(np.float64))
        rms = np.sqrt(np.mean(np.square(size), axis=1, keepdims=True))
        return cls(
            design,
            error=error,
            ideal_error=np.rint(limited) - limited,
            signal=limited,
            misrounded=result.y != exact_block(design, x, parameters)[0]
            if design.has_exact
            else None,
            fits=fits,
            spikes=size > OUTLIER_CREST * rms,
            saturated=limited_by_design,
            gamma_quantisation_ulp=0.0,
            x_quantisation_ulp=0.0,
        )

    @classmethod
    def joined(cls, parts, **shares):
        """Errors of several runs of a design as one."""
        arrays = (
            "error", "ideal_error", "signal", "fits", "spikes", "saturated",
            *(["misrounded"] if parts[0].misrounded is not None else []),
        )  # fmt: skip
        largest = ("gamma_quantisation_ulp", "x_quantisation_ulp")
        return cls(
            parts[0].design,
            **{"misrounded": None}
            | {name: np.concatenate([getattr(p, name) for p in parts]) for name in arrays},
            **{name: max(getattr(p, name) for p in parts) for name in largest} | shares,
        )

    def report(self):
        """The figures."""
        outlier = np.broadcast_to(self.spikes.any(axis=1)[:, None], self.spikes.shape)
        some, ordinary = outlier.any(), (~outlier).any()
        return Report(
            all=self.over(np.ones_like(outlier)),
            ordinary=self.over(~outlier) if ordinary else None,
            outlier=self.over(outlier) if some else None,
            non_outlier=self.over(outlier & ~self.spikes) if some else None,
            gamma_quantisation_ulp=self.gamma_quantisation_ulp,
            x_quantisation_ulp=self.x_quantisation_ulp,
            worst=self.worst,
        )

    @property
    def worst(self):
        """Row and element of the largest error."""
        place = np.unravel_index(np.argmax(np.abs(self.error)), self.error.shape)
        return int(place[0]), int(place[1])

    def over(self, mask):
        """The `Accuracy` of the masked elements."""
        inside = mask & self.fits
        if not inside.any():
            inside = mask
        error = self.error[inside]
        size = np.abs(error)
        power = float(np.sum(np.square(self.signal[inside])))
        noise = float(np.sum(np.square(self.ideal_error[inside])))
        return Accuracy(
            rows=int(np.count_nonzero(mask.any(axis=1))),
            elements=int(np.count_nonzero(mask)),
            max_ulp=float(np.max(np.abs(self.error[mask]))),
            mean_ulp=float(np.mean(size)),
            rms_ulp=float(np.sqrt(np.mean(np.square(error)))),
            p999_ulp=float(np.quantile(size, 0.999)),
            bias_ulp=float(np.mean(error)),
            misrounded=None if self.misrounded is None else float(np.mean(self.misrounded[inside])),
            sqnr_db=decibels(power, float(np.sum(np.square(error)))),
            ideal_sqnr_db=decibels(power, noise),
            saturated=int(np.count_nonzero(self.saturated & mask)),
            bound_ulp=self.design.bound_ulp,
        )


def _shift(design, x_int, parameters, **given):
    """The largest change of golden, in ulp, that quantising one input makes."""
    ((name, value),) = given.items()
    if value is None or np.asarray(value).dtype.kind != "f":
        return 0.0
    inputs = {"x": x_int, **parameters}
    raw = inputs | {name: np.asarray(value).reshape(np.shape(inputs[name]))}
    change = golden(design, **raw) - golden(design, **inputs)
    return float(np.max(np.abs(change)) * 2.0**design.y.frac)


def decibels(signal, noise):
    if not noise:
        return float("inf")
    return float(10 * np.log10(signal / noise)) if signal else 0.0
