"""What tuning found, in words and as data."""

import csv
import io
from math import isinf, log2

import numpy as np

from hwnorm.tune.figures import FIGURES
from hwnorm.tune.front import describe, oriented
from hwnorm.tune.limits import COSTS
from hwnorm.tune.space import largest_output

#: How figures are written.
_WORDS = {
    "max_ulp": "largest error", "rms_ulp": "rms error", "misrounded": "misrounded share",
    "sqnr_db": "SQNR", "end_max_ulp": "largest end-to-end error",
    "end_rms_ulp": "rms end-to-end error", "end_sqnr_db": "end-to-end SQNR",
    "bound_ulp": "proven bound", "rom_bits": "ROM bits", "lut": "LUTs", "dsp": "multipliers",
    "bram": "block RAMs", "ff": "flip-flops", "fmax_mhz": "clock", "latency_cycles": "latency",
}  # fmt: skip

_UNITS = {"fmax_mhz": " MHz", "latency_cycles": " cycles"}


def unit_of(metric):
    """What stands behind a figure."""
    if metric.endswith("_ulp"):
        return " ulp"
    return " dB" if metric.endswith("_db") else _UNITS.get(metric, "")


def written(metric, value):
    """A figure with its unit."""
    if value is None:
        return "unknown"
    if metric == "misrounded":
        return f"{value:.3%}"
    if metric in COSTS and metric != "bound_ulp":
        return f"{value:,.0f}{unit_of(metric)}"
    return f"{value:.4g}{unit_of(metric)}"


def name_of(metric):
    """A figure's name in words."""
    return _WORDS[metric]


def file_of(place):
    """The file of a point on the front."""
    return f"designs/point-{place + 1:02d}.toml"


def trades(tuning):
    """What the neighbours on the front of the recommended point would trade, a sentence each.

    Returns
    -------
    list of str
    """
    place, space = tuning.choice[0], tuning.space
    here, found = tuning.front[place], []
    for side, word in ((place - 1, "cheaper"), (place + 1, "better")):
        if not 0 <= side < len(tuning.front):
            found.append(f"nothing on the front is {word}")
            continue
        there = tuning.front[side]
        cost = _change(space.cost, here.value(space.cost), there.value(space.cost))
        error = _change(
            space.error, here.value(space.error, space.layers),
            there.value(space.error, space.layers),
        )  # fmt: skip
        found.append(f"the next {word} one, {describe(there.point, space)}, has {cost} and {error}")
    return found


def _change(metric, before, after):
    ratio = ""
    if not metric.endswith("_db") and before and not isinf(before):
        ratio = f" ({after / before:.2f} times)"
    return f"{name_of(metric)} {written(metric, after)} instead of {written(metric, before)}{ratio}"


def verification(tuning):
    """How the front does on the held-out rows.

    Returns
    -------
    dict or None
        ``rows``, ``metric``, ``largest_difference`` (positive: worse on the held-out rows),
        ``where`` (a file), and ``saturated`` (outputs of all points on the front).
    """
    space = tuning.space
    held = len(tuning.rows.x) - tuning.rows.chosen
    metric = space.error if space.error in FIGURES else "max_ulp"
    if not held:
        return None
    changes = [
        float(
            oriented(metric, one.value(metric, "held"))
            - oriented(metric, one.value(metric, "worst"))
        )
        for one in tuning.front
    ]
    place = max(range(len(changes)), key=changes.__getitem__)
    return {
        "rows": held,
        "metric": metric,
        "largest_difference": changes[place],
        "where": file_of(place),
        "saturated": sum(one.accuracy["held_saturated"] for one in tuning.front),
    }


def warnings(tuning):
    """What the engineer should know before trusting the result."""
    found = tuning.rows.warnings(tuning.space.base.eps)
    check = verification(tuning)
    if check and check["saturated"]:
        found.append(
            f"{check['saturated']} outputs of the front saturate on the held-out rows: the formats "
            f"have too little margin"
        )
    best = tuning.recommended
    seen, bound = best.value("max_ulp", tuning.space.layers), best.value("bound_ulp")
    if seen < 1 <= bound:
        found.append(
            f"the recommended point keeps below 1 ulp on these rows, but its proven bound is "
            f"{bound:.3g} ulp: rows unlike these may reach it; bound_ulp < 1 is a limit as well"
        )
    for name in ("x", "y"):
        margin = _margin_bits(tuning, name)
        if margin is not None and margin < 1:
            found.append(
                f"format {name} {tuning.recommended.point[name]} has less than one bit of margin "
                f"over the largest magnitude seen"
            )
    return found


def _margin_bits(tuning, name):
    rows, fmt = tuning.rows, getattr(tuning.design, name)
    if name == "x":
        if rows.x.dtype.kind != "f":
            return None
        largest = float(np.max(np.abs(rows.x)))
    else:
        largest = largest_output(tuning.design, rows)
    return log2(fmt.hi * fmt.lsb / largest) if largest else None


def tuning_data(tuning):
    """The result, ready for JSON; the same for the same space and rows, however computed."""
    space = tuning.space
    place, reason = tuning.choice
    return {
        "design": space.base.headline,
        "points": len(tuning.outcomes),
        "states": tuning.states,
        "search": tuning.method,
        "objectives": [space.error, space.cost],
        "layers": space.layers,
        "limits": [str(limit) for limit in space.limits],
        "rows": {
            "layers": len(tuning.rows.names),
            "choosing": tuning.rows.chosen,
            "held_out": len(tuning.rows.x) - tuning.rows.chosen,
        },
        "front": [
            {"file": file_of(n), "point": one.point, "cost": one.cost, "accuracy": one.accuracy}
            for n, one in enumerate(tuning.front)
        ],
        "recommended": {
            "place": place,
            "file": file_of(place),
            "reason": reason,
            "trades": trades(tuning),
        },
        "verification": verification(tuning),
        "warnings": warnings(tuning),
    }


def tuning_text(tuning, source, folder=None):
    """The result in words."""
    space, rows = tuning.space, tuning.rows
    counts = ", ".join(f"{n} {state}" for state, n in sorted(tuning.states.items()))
    place, reason = tuning.choice
    count = len(tuning.front)
    kind = f"{name_of(space.error)} ({space.layers})" if space.error in FIGURES else "proven bound"
    lines = [
        space.base.headline,
        f"space         {len(tuning.outcomes)} points by {tuning.method}: {counts}; "
        f"{tuning.evaluated} evaluated now",
        f"rows          {rows.chosen} of {source} choose, {len(rows.x) - rows.chosen} held out, "
        f"{len(rows.names)} layer{'s' * (len(rows.names) > 1)}",
    ]
    if space.limits:
        lines.append(f"limits        {', '.join(map(str, space.limits))}")
    lines += [
        f"front         {count} point{'s' * (count > 1)}: {kind} against {name_of(space.cost)}",
        "",
    ]
    lines += front_table(tuning)
    lines += [
        "",
        f"recommended   {file_of(place)}: {describe(tuning.recommended.point, space)};",
        f"              {reason}",
        *(f"              {sentence}" for sentence in trades(tuning)),
    ]
    check = verification(tuning)
    if check:
        lines.append(
            f"held out      {check['rows']} rows: {name_of(check['metric'])} of the front is at "
            f"most {max(check['largest_difference'], 0):.3g}{unit_of(check['metric'])} worse there"
        )
    lines += [f"note: {sentence}" for sentence in warnings(tuning)]
    if folder:
        lines.append(f"report        {folder}/report.html")
    return "\n".join(lines)


def columns_of(space):
    """Figures that a table of the front shows: the objectives first."""
    names = [space.cost, space.error, "rom_bits", "lut", "dsp", "bram", "max_ulp", "sqnr_db"]
    names += [limit.metric for limit in space.limits]
    return list(dict.fromkeys(names))


def front_table(tuning):
    """The front as aligned lines."""
    names = columns_of(tuning.space)
    rows = [["", *names, "design"]]
    for place, one in enumerate(tuning.front):
        figures = [
            "-" if (value := one.value(name, tuning.space.layers)) is None
            else f"{value:.0f}" if name in COSTS and name != "bound_ulp" else f"{value:.4g}"
            for name in names
        ]  # fmt: skip
        mark = "*" if place == tuning.choice[0] else ""
        rows.append([f"{mark}{place + 1}", *figures, describe(one.point, tuning.space)])
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    return [
        "  ".join(
            text.ljust(width) if n == len(row) - 1 else text.rjust(width)
            for n, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def front_csv(tuning):
    """The front as CSV text, one line a point."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    keys = list(tuning.front[0].point)
    figures = [*COSTS, *FIGURES]
    writer.writerow(["file", *keys, *figures, *(f"held_{name}" for name in FIGURES), "worst_layer"])
    for place, one in enumerate(tuning.front):
        values = [one.value(name, tuning.space.layers) for name in figures]
        values += [one.value(name, "held") for name in FIGURES]
        writer.writerow(
            [
                file_of(place), *one.point.values(),
                *("" if value is None else f"{value:.9g}" for value in values),
                one.accuracy["worst_layer"],
            ]
        )  # fmt: skip
    return text.getvalue()
