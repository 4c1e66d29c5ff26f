"""Exact accuracy of many designs on the same rows, without doing anything twice.

A row's totals depend on the input format only, golden and the correctly rounded results on the
formats only, and the accuracy on neither lanes nor clock. What is left for a design is its
``solve`` on the distinct totals and its ``apply``, both run by the design's own flows.
"""

from collections import OrderedDict
from dataclasses import dataclass, fields
from functools import cached_property
from math import sqrt

import numpy as np

from hwnorm.fixed import quantise
from hwnorm.flow import narrowest
from hwnorm.measure import decibels, golden
from hwnorm.model import BLOCK_ELEMENTS, exact_block, small_buffer, stored_of, totals_of
from hwnorm.tune.figures import FIGURES, Evaluation

#: Bytes of references that are kept, of the formats used last; two are kept in any case.
KEPT_BYTES = 1 << 28

#: Fields of a design that change no result.
_FREE = ("lanes", "period_ns", "store")


@dataclass(frozen=True)
class Target:
    """What outputs are compared with.

    Members
    -------
    limited : numpy.ndarray of float64, (rows, dim)
        Golden in ulp, limited to the output format unless the design wraps.
    fits : numpy.ndarray of bool or None, (rows, dim)
        Golden needs no limiting; None: nowhere.
    power : list of float
        Sum of squares of the fitting elements of each group of rows.
    exact : numpy.ndarray of int or None, (rows, dim)
        The correctly rounded results.
    """

    limited: np.ndarray
    fits: np.ndarray | None
    power: list
    exact: np.ndarray | None


@dataclass(frozen=True)
class Reference:
    """All that designs of the same formats share.

    Members
    -------
    x : numpy.ndarray of int, (rows, dim)
    parameters : dict of str to numpy.ndarray of int, (layers, dim)
    target : Target
        Golden of the quantised inputs, as ``hwnorm eval`` has it.
    end : Target or None
        Golden of the inputs as they came; None if those were integers.
    probe : numpy.ndarray of int, (chosen rows, 2)
        Places of the largest and the smallest golden output of each row that chooses.
    """

    x: np.ndarray
    parameters: dict
    target: Target
    end: Target | None
    probe: np.ndarray


class Bench:
    """Rows with everything that designs share on them.

    Parameters
    ----------
    rows : hwnorm.tune.rows.Rows
    ends : bool
        Also compare with golden of the inputs before they were quantised; without, the
        ``end_...`` figures are None.
    """

    def __init__(self, rows, ends=True):
        self.rows, self.ends = rows, ends
        self._totals, self._references, self._done = {}, OrderedDict(), OrderedDict()

    def __reduce__(self):
        # What was computed is cheaper to do again than to send.
        return Bench, (self.rows, self.ends)

    def evaluate(self, design, most_ulp=None, complete=False):
        """The accuracy of a design, bit for bit that of `hwnorm.measure`.

        Parameters
        ----------
        design : hwnorm.Norm
        most_ulp : float or None
            A largest error beyond which nobody wants to know more.
        complete : bool
            Go on although outputs saturate or `most_ulp` is exceeded.

        Returns
        -------
        Evaluation
            Early if the probes saturate or exceed `most_ulp`.

        Raises
        ------
        ValueError
            If the rows do not fit the design's formats.
        """
        key = tuple(
            getattr(design, field.name) for field in fields(design) if field.name not in _FREE
        ), most_ulp, complete  # fmt: skip
        if key not in self._done:
            self._done[key] = self._evaluate(design, most_ulp, complete)
            if len(self._done) > 64:
                self._done.popitem(last=False)
        return self._done[key]

    def _evaluate(self, design, most_ulp, complete):
        reference = self.reference(design)
        with small_buffer():
            scalars = self._scalars(design, reference)
            stored = stored_of(design, reference.parameters)
            if not complete:
                early = self._probe(design, reference, scalars, stored, most_ulp)
                if early:
                    return early
            return self._full(design, reference, scalars, stored)

    # -- what designs share -------------------------------------------------------------

    def reference(self, design):
        """The `Reference` for a design's formats."""
        key = (
            design.kind, design.eps, design.x, design.gamma, design.beta, design.y,
            design.gamma_offset, design.overflow, design.gamma_init, design.beta_init,
        )  # fmt: skip
        if key in self._references:
            self._references.move_to_end(key)
        else:
            try:
                self._references[key] = self._reference(design)
            except ValueError as error:
                self._references[key] = error
            # An element has two floats, an input and a result, for either end.
            most = max(2, KEPT_BYTES // (32 * self.rows.x.size))
            while len(self._references) > most:
                self._references.popitem(last=False)
        if isinstance(self._references[key], ValueError):
            raise self._references[key]
        return self._references[key]

    def _reference(self, design):
        rows = self.rows
        x = quantise(design.x, rows.x, "x")
        parameters, raw = {}, {}
        for name, fmt in design.parameters.items():
            value = getattr(rows, name)
            if value is None:
                value = np.tile(
                    np.array(design.initial(name), dtype=np.int64), (len(rows.names), 1)
                )
            raw[name] = value
            parameters[name] = np.asarray(quantise(fmt, value, name)).astype(np.int64)
        floats = any(value.dtype.kind == "f" for value in (rows.x, *raw.values()))
        target, probe = self._target(design, x, parameters, design.has_exact)
        narrow = narrowest(design.x.lo, design.x.hi)
        return Reference(
            x=x.astype(narrow),
            parameters=parameters,
            target=target,
            end=self._target(design, rows.x, raw, False)[0] if floats and self.ends else None,
            probe=probe,
        )

    def _target(self, design, x, parameters, has_exact):
        ideal = np.empty(x.shape)
        exact = np.empty(x.shape, narrowest(design.y.lo, design.y.hi)) if has_exact else None
        for first, last, layer, _ in self.rows.spans:
            given = {name: value[layer] for name, value in parameters.items()}
            block = slice(first, last)
            ideal[block] = np.ldexp(golden(design, x[block], **given), design.y.frac)
            if has_exact:
                exact[block] = exact_block(design, x[block], given)[0]
        fits, limited = None, ideal
        if design.overflow != "wrap":
            fits = (ideal >= design.y.lo - 0.5) & (ideal <= design.y.hi + 0.5)
            fits = None if fits.all() else fits
            limited = np.clip(ideal, design.y.lo, design.y.hi)
        squares = np.square(limited)
        chosen = ideal[: self.rows.chosen]
        probe = np.stack([chosen.argmax(axis=1), chosen.argmin(axis=1)], axis=1)
        power = [
            float(np.sum(_inside(squares[a:b], None if fits is None else fits[a:b])))
            for a, b in self._groups
        ]
        return Target(limited, fits, power, exact), probe

    @cached_property
    def _groups(self):
        """First and last row of what gets figures: each layer's side, and all that choose."""
        return [(a, b) for a, b, _, _ in self.rows.spans] + [(0, self.rows.chosen)]

    def _scalars(self, design, reference):
        """The row scalars: solve on the distinct totals, handed back to all rows."""
        totals = design.flows.totals
        key = design.x, *((name, fmt.frac) for name, fmt in totals.items())
        if key not in self._totals:
            self._totals[key] = _distinct(totals_of(design.flows, reference.x))
        distinct, back = self._totals[key]
        count = len(next(iter(distinct.values())))
        return {
            name: np.broadcast_to(value, count)[back]
            for name, value in design.flows.solve.run(**distinct).items()
        }

    # -- what a design does -------------------------------------------------------------

    def _probe(self, design, reference, scalars, stored, most_ulp):
        """An early result if a few elements show enough, else None."""
        chosen = self.rows.chosen
        row = np.arange(chosen)[:, None]
        layer = self.rows.layer[:chosen, None]
        result = design.flows.apply.run(
            x=reference.x[row, reference.probe],
            **{name: value[layer, reference.probe] for name, value in stored.items()},
            **{name: value[:chosen, None] for name, value in scalars.items()},
        )
        saturated = int(np.count_nonzero(np.broadcast_to(result["saturated"], (chosen, 2))))
        error = result["y"] - reference.target.limited[row, reference.probe]
        size = np.abs(_unwrapped(design, error))
        largest = float(size.max())
        if not saturated and (most_ulp is None or largest <= most_ulp):
            return None
        where = self.rows.names[self.rows.layer[int(size.max(axis=1).argmax())]]
        return Evaluation(
            True, saturated, 0, {"max_ulp": largest}, {"max_ulp": largest}, {}, {}, where, {}
        )

    def _full(self, design, reference, scalars, stored):
        shape = reference.x.shape
        step = max(1, BLOCK_ELEMENTS // shape[1])
        targets = [target for target in (reference.target, reference.end) if target]
        errors = [np.empty(shape) for _ in targets]
        exact = reference.target.exact
        wrong = None if exact is None else np.empty(shape, dtype=bool)
        saturated = [0, 0]
        for first in range(0, shape[0], step):
            block = slice(first, first + step)
            layer = self.rows.layer[block]
            result = design.flows.apply.run(
                x=reference.x[block],
                **{name: value[layer] for name, value in stored.items()},
                **{name: value[block, None] for name, value in scalars.items()},
            )
            y = result["y"]
            for error, target in zip(errors, targets, strict=True):
                np.subtract(y, target.limited[block], out=error[block])
            if wrong is not None:
                np.not_equal(y, exact[block], out=wrong[block])
            lost = np.broadcast_to(result["saturated"], y.shape)
            if np.any(lost):
                mine = int(np.count_nonzero(lost[: max(self.rows.chosen - first, 0)]))
                saturated[0] += mine
                saturated[1] += int(np.count_nonzero(lost)) - mine
        errors = [_unwrapped(design, error) for error in errors]
        figures = self._figures(targets, errors, wrong)
        return self._evaluation(figures, saturated)

    def _figures(self, targets, errors, wrong):
        """The figures of each group of rows."""
        ends = []
        for target, error in zip(targets, errors, strict=True):
            # Rows first, while what is left is small: maxima have no order.
            peaks = np.maximum(error.max(axis=1), -error.min(axis=1))
            np.square(error, out=error)
            ends.append([self._error(target, error, peaks, n) for n in range(len(self._groups))])
        shares = self._shares(targets[0].fits, wrong)
        # Integers have no error of quantisation: both ends are the same.
        last = ends[-1] if self.ends else [(None, None, None)] * len(ends[0])
        return [
            dict(zip(FIGURES, (*mine[:2], share, mine[2], *end), strict=True))
            for mine, end, share in zip(ends[0], last, shares, strict=True)
        ]

    def _error(self, target, squares, peaks, n):
        a, b = self._groups[n]
        inside = _inside(squares[a:b], None if target.fits is None else target.fits[a:b])
        noise = float(np.add.reduce(inside))
        return float(peaks[a:b].max()), sqrt(noise / inside.size), decibels(target.power[n], noise)

    def _shares(self, fits, wrong):
        """The share of wrong elements of each group, among those that fit."""
        if wrong is None:
            return [None] * len(self._groups)
        if fits is not None:
            return [float(np.mean(_inside(wrong[a:b], fits[a:b]))) for a, b in self._groups]
        counts = np.concatenate([[0], np.cumsum(np.count_nonzero(wrong, axis=1))]).tolist()
        dim = wrong.shape[1]
        return [(counts[b] - counts[a]) / ((b - a) * dim) for a, b in self._groups]

    def _evaluation(self, figures, saturated):
        mine, held = {}, []
        for found, (_, _, layer, chosen) in zip(figures, self.rows.spans, strict=False):
            if chosen:
                mine[self.rows.names[layer]] = found
            else:
                held.append(found)
        parts = list(mine.values())
        return Evaluation(
            early=False,
            saturated=saturated[0],
            held_saturated=saturated[1],
            pooled=figures[-1],
            worst={name: _worst(name, parts) for name in FIGURES},
            mean={
                name: None if parts[0][name] is None else float(np.mean([p[name] for p in parts]))
                for name in FIGURES
            },
            held={name: _worst(name, held) for name in FIGURES} if held else {},
            worst_layer=max(mine, key=lambda name: mine[name]["max_ulp"]),
            layers=mine,
        )


def _worst(name, parts):
    values = [part[name] for part in parts]
    if values[0] is None:
        return None
    return min(values) if FIGURES[name] else max(values)


def _distinct(totals):
    """Totals of rows without those that occurred before, and where each row finds its own.

    As Python numbers, which totals beyond 62 bits are anyway.
    """
    places = {}
    rows = zip(*(values.tolist() for values in totals.values()), strict=True)
    back = np.array([places.setdefault(row, len(places)) for row in rows])
    first = np.unique(back, return_index=True)[1]
    return {name: values[first] for name, values in totals.items()}, back


def _inside(values, fits):
    """The fitting elements, or all if none fits, in one dimension."""
    if fits is None or not fits.any():
        return values.reshape(-1)
    return values[fits]


def _unwrapped(design, error):
    """Errors of a wrapping design modulo its word."""
    if design.overflow != "wrap":
        return error
    span = 2.0**design.y.width
    return error - span * np.rint(error / span)
