"""What the pictures and the page show, as plain numbers: drawn by `plots` and by `html`."""

from dataclasses import dataclass
from math import log

import numpy as np

from hwnorm.measure import Errors
from hwnorm.tune.front import oriented, pareto
from hwnorm.tune.space import largest_output

#: Columns of the picture of where errors are: channels are joined to at most so many.
CHANNEL_GROUPS = 96


@dataclass(frozen=True)
class View:
    """Figures of the recommended point, layer by layer and element by element.

    Members
    -------
    errors : hwnorm.measure.Errors
        Of the rows that choose.
    names : list of str
        Of the layers.
    layers : list of hwnorm.measure.Accuracy
    where : numpy.ndarray of float, (layers, groups of channels)
        The largest error in ulp.
    channels : int
        Channels of a group.
    worst : (str, int, int, float)
        Layer, row of it, channel and size of the largest error.
    """

    errors: Errors
    names: list
    layers: list
    where: np.ndarray
    channels: int
    worst: tuple

    @classmethod
    def of(cls, tuning):
        """Of the recommended point, measured anew by `hwnorm.measure`."""
        design, parts, names = tuning.design, [], []
        for layer in tuning.rows.layers():
            given = {name: getattr(layer, name) for name in design.parameters}
            given = {name: value for name, value in given.items() if value is not None}
            parts.append(Errors.of(design, layer.x, **given))
            names.append(layer.name)
        channels = -(-design.dim // CHANNEL_GROUPS)
        starts = np.arange(0, design.dim, channels)
        peaks = np.stack([np.abs(part.error).max(axis=0) for part in parts])
        layer = int(peaks.max(axis=1).argmax())
        row, channel = parts[layer].worst
        return cls(
            errors=Errors.joined(parts),
            names=names,
            layers=[part.report().all for part in parts],
            where=np.maximum.reduceat(peaks, starts, axis=1),
            channels=channels,
            worst=(names[layer], row, channel, float(peaks[layer, channel])),
        )


def fronts_by_method(tuning, cost):
    """Of each method, the points that nothing of the same method dominates.

    Returns
    -------
    dict of str to list of Outcome
        The cheapest first.
    """
    space, result = tuning.space, {}
    for method in dict.fromkeys(one.point["method"] for one in tuning.outcomes):
        mine = [
            one for one in tuning.outcomes
            if one.state == "done" and one.point["method"] == method
            and one.value(space.error, space.layers) is not None
        ]  # fmt: skip
        if not mine:
            continue
        costs = oriented(cost, [one.value(cost) for one in mine])
        errors = oriented(space.error, [one.value(space.error, space.layers) for one in mine])
        places = np.flatnonzero(pareto(costs, errors))
        pairs = {(costs[n], errors[n]): mine[n] for n in places[::-1]}
        result[method] = [pairs[key] for key in sorted(pairs)]
    return result


def limit_lines(tuning):
    """The theoretical limit of each method: the smallest largest error that its tables can give.

    Half an ulp of rounding, and the error of ideal tables on the largest output seen. Of the
    largest errors only; of outputs in one format.

    Returns
    -------
    dict of str to list of (float, float)
        Method to pairs of ROM bits and ulp.
    """
    space = tuning.space
    if space.error not in ("max_ulp", "end_max_ulp"):
        return {}
    shape = tuning.recommended.point
    formats = ("x", "gamma", "beta", "y", "rounding")
    lines = {}
    largest = None
    for one in tuning.outcomes:
        point = one.point
        if not one.cost or any(point[key] != shape[key] for key in formats):
            continue
        if point["guard_bits"] != max(space.values.get("guard_bits", [point["guard_bits"]])):
            continue
        design = space.design(point)
        if largest is None:
            top = max(-design.y.lo, design.y.hi)
            largest = min(largest_output(design, tuning.rows) / design.y.lsb, top)
        name = f"log {point['log_method']}" if point["method"] == "log" else point["method"]
        lines.setdefault(name, []).append(
            (one.value("rom_bits"), 0.5 + largest * _ideal(design.units))
        )
    return {name: sorted(set(points)) for name, points in lines.items() if len(points) > 1}


def _ideal(units):
    """The relative error of a scale whose tables are ideal."""
    total = 0.0
    for name, unit in units.items():
        # Logarithms add up in the exponent, that of the total by half.
        weight = {"log2_total": log(2) / 2}.get(name, log(2) if name.startswith("log2") else 1)
        total += weight * unit.table.limit
    return total


def smallest_tables(tuning, limits_ulp=(1.0, 2.0)):
    """The smallest table of each output format and method whose largest error is below a limit.

    Returns
    -------
    list of dict
        ``y``, ``method``, ``below_ulp``, ``segments``, ``guard_bits``, ``max_ulp``; segments
        None where no point of the space does.
    """
    found = []
    for y in dict.fromkeys(one.point["y"] for one in tuning.outcomes):
        for method in dict.fromkeys(one.point["method"] for one in tuning.outcomes):
            for bound in limits_ulp:
                good = [
                    one for one in tuning.outcomes
                    if one.state == "done" and one.point["y"] == y
                    and one.point["method"] == method
                    and one.value("max_ulp", "worst") < bound
                ]  # fmt: skip
                best = min(
                    good,
                    key=lambda one: (one.point["segments"] or 0, one.value("rom_bits")),
                    default=None,
                )
                found.append(
                    {
                        "y": y, "method": method, "below_ulp": bound,
                        "segments": best and best.point["segments"],
                        "guard_bits": best and best.point["guard_bits"],
                        "max_ulp": best and best.value("max_ulp", "worst"),
                    }
                )  # fmt: skip
    return found
