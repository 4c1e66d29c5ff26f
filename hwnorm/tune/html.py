"""The report of a tuning: one HTML page that needs no network.

The pictures are drawn by plotly.js, which is copied into the page.
"""

import json
from importlib import resources

import numpy as np

from hwnorm.files import finite
from hwnorm.tune.front import describe
from hwnorm.tune.limits import COSTS
from hwnorm.tune.pool import missing
from hwnorm.tune.report import (
    columns_of,
    file_of,
    name_of,
    trades,
    unit_of,
    verification,
    warnings,
    written,
)
from hwnorm.tune.synth import CELLS
from hwnorm.tune.toml import point_toml
from hwnorm.tune.views import fronts_by_method, limit_lines, smallest_tables

#: Points that the pictures show at most; the fronts of the methods are always shown.
MOST_POINTS = 2000

#: Bars of the histogram.
BINS = 121


def plotly_script():
    """The text of plotly.js.

    Raises
    ------
    ValueError
        If plotly is not installed.
    """
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise missing("the report needs", "plotly", "tune") from None
    return get_plotlyjs()


def page(tuning, view, cells=None):
    """The report as text.

    Parameters
    ----------
    tuning : hwnorm.tune.Tuning
    view : hwnorm.tune.views.View
    cells : dict or None
        The synthesised front, of `hwnorm.tune.synth.measured_cells`.
    """
    template = resources.files("hwnorm.tune").joinpath("page.html").read_text(encoding="utf-8")
    # Within a script element, "</" would end it.
    data = json.dumps(finite(page_data(tuning, view, cells))).replace("</", "<\\/")
    head, rest = template.split("/*PLOTLY*/")
    middle, tail = rest.split("/*DATA*/")
    return "".join([head, plotly_script(), middle, data, tail])


def page_data(tuning, view, cells=None):
    """All that the page shows."""
    space, front = tuning.space, tuning.front
    shown = _shown(tuning)
    place = {id(one): n for n, one in enumerate(shown)}
    names = columns_of(space)
    measured = {f"{name}, {cells['target']}": name for name in CELLS} if cells else {}
    unit = unit_of(space.error).strip()
    layer, row, channel, size = view.worst
    return {
        "design": space.base.headline,
        "lead": _lead(tuning),
        "recommended": {
            "words": describe(tuning.recommended.point, space),
            "reason": f"{file_of(tuning.choice[0])}: {tuning.choice[1]}.",
            "trades": [*trades(tuning), *_verified(tuning)],
        },
        "methods": list(dict.fromkeys(one.point["method"] for one in shown)),
        "cost": space.cost,
        "error_title": f"{name_of(space.error)}, {space.layers} layer" + f" ({unit})" * bool(unit),
        "error_log": not space.error.endswith("_db"),
        "points": [_point(one, space) for one in shown],
        "front": [place[id(one)] for one in front],
        "best": place[id(tuning.recommended)],
        "limits": limit_lines(tuning),
        "layers": {
            "names": view.names,
            "max_ulp": [one.max_ulp for one in view.layers],
            "rms_ulp": [one.rms_ulp for one in view.layers],
            "bound_ulp": view.layers[0].bound_ulp,
        },
        "places": {
            "z": np.round(view.where, 4).tolist(),
            "x": list(range(0, view.where.shape[1] * view.channels, view.channels)),
        },
        "worst": f"The largest error, {size:.4g} ulp, is in {layer}, row {row}, channel {channel}.",
        "histogram": _histogram(view),
        "table": {
            "heads": ["point", *names, *measured, "design"],
            "rows": [
                {
                    "point": place[id(one)],
                    "best": one is tuning.recommended,
                    "cells": [
                        n + 1, *(one.value(name, space.layers) for name in names),
                        *(cells["points"][n]["measured"][name] for name in measured.values()),
                        describe(one.point, space),
                    ],
                }
                for n, one in enumerate(front)
            ],
        },
        "smallest": _smallest(tuning),
        "warnings": warnings(tuning) or ["nothing to warn of"],
    }  # fmt: skip


def _shown(tuning):
    """The points of the pictures: all fronts, and of the others as many as a browser likes."""
    done = [
        one for one in tuning.outcomes
        if one.state == "done" and one.value(tuning.space.error, tuning.space.layers) is not None
    ]  # fmt: skip
    kept = {id(one): one for one in tuning.front}
    for cost in ("rom_bits", "lut"):
        for points in fronts_by_method(tuning, cost).values():
            kept |= {id(one): one for one in points}
    step = -(-len(done) // MOST_POINTS)
    kept |= {id(one): one for one in done[::step]}
    return [one for one in done if id(one) in kept]


def _point(one, space):
    figures = [*COSTS, "max_ulp", "rms_ulp", "misrounded", "sqnr_db"]
    lines = [f"<b>{describe(one.point, space)}</b>"]
    for name in dict.fromkeys([space.cost, space.error, *figures]):
        value = one.value(name, space.layers)
        if value is not None:
            lines.append(f"{name_of(name)} {written(name, value)}")
    lines.append(f"worst in {one.accuracy['worst_layer']}")
    return {
        "method": one.point["method"],
        "rom_bits": one.value("rom_bits"),
        "lut": one.value("lut"),
        "error": one.value(space.error, space.layers),
        "words": describe(one.point, space),
        "hover": "<br>".join(lines),
        "toml": point_toml(space, one.point),
    }


def _lead(tuning):
    rows, states = tuning.rows, tuning.states
    words = f"{len(tuning.outcomes)} points ({tuning.method}): "
    words += ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    words += f". {len(rows.names)} layers, {rows.chosen} rows choose"
    words += f", {len(rows.x) - rows.chosen} are held out."
    limits = tuning.space.limits
    return words + (f" Limits: {', '.join(map(str, limits))}." if limits else "")


def _verified(tuning):
    check = verification(tuning)
    if not check:
        return []
    worse = max(check["largest_difference"], 0)
    return [
        f"on the {check['rows']} held-out rows the {name_of(check['metric'])} of the front is at "
        f"most {worse:.3g}{unit_of(check['metric'])} worse"
    ]


def _histogram(view):
    errors = view.errors
    report = errors.report().all
    reach = max(report.bound_ulp, report.max_ulp) * 1.08
    edges = np.linspace(-reach, reach, BINS + 1)
    inside = errors.fits
    return {
        "x": np.round((edges[1:] + edges[:-1]) / 2, 6).tolist(),
        "mine": np.histogram(errors.error[inside], edges)[0].tolist(),
        "ideal": np.histogram(errors.ideal_error[inside], edges)[0].tolist(),
    }


def _smallest(tuning):
    found = smallest_tables(tuning)
    heads = ["output", "method", "largest error below", "entries", "guard bits", "largest error"]
    return {
        "heads": heads,
        "rows": [
            {
                "cells": [
                    one["y"], one["method"], one["below_ulp"], one["segments"], one["guard_bits"],
                    one["max_ulp"],
                ]
            }
            for one in found
        ],
    }  # fmt: skip
