"""Designs side by side on the same rows."""

import numpy as np

from hwnorm.measure import Errors
from hwnorm.plots import new_figure, save_figure
from hwnorm.tune.cost import estimate

#: Figures of the table: key, heading and how they are written.
_ROWS = (
    ("max_ulp", "largest error, ulp", "{:.4f}"),
    ("bound_ulp", "proven bound, ulp", "{:.4f}"),
    ("rms_ulp", "rms error, ulp", "{:.4f}"),
    ("misrounded", "misrounded", "{:.3%}"),
    ("sqnr_db", "SQNR, dB", "{:.2f}"),
    ("ideal_sqnr_db", "ideal SQNR, dB", "{:.2f}"),
    ("saturated", "saturated outputs", "{:d}"),
    ("worst_layer_max_ulp", "worst layer, ulp", "{:.4f}"),
    ("worst_layer", "worst layer", "{}"),
    ("rom_bits", "ROM bits", "{:d}"),
    ("lut", "LUTs (estimate)", "{:d}"),
    ("dsp", "multipliers (estimate)", "{:d}"),
    ("bram", "block RAMs (estimate)", "{:d}"),
    ("latency_cycles", "latency, cycles", "{:d}"),
)

_COLOURS = ("#2f6f9f", "#b04a3f", "#4d8a3c", "#8a5fa8", "#d98e32", "#5b6570")


def compared(designs, layers, progress=None):
    """The figures of several designs on the same layers.

    Parameters
    ----------
    designs : dict of str to hwnorm.Norm
    layers : list of hwnorm.rows.Layer
    progress : callable or None
        Called with 1 after each design.

    Returns
    -------
    dict of str to dict
        The keys of ``hwnorm eval --json``, the figures of cost (None for a design without
        hardware), ``worst_layer`` and ``layers``: name to largest error.

    Raises
    ------
    ValueError
        If designs differ in norm or dim, or the rows do not fit one of them.
    """
    kinds = {(design.kind, design.dim) for design in designs.values()}
    if len(kinds) > 1:
        words = ", ".join(f"{kind} of dim {dim}" for kind, dim in sorted(kinds))
        raise ValueError(f"designs must be of one norm and dim, got {words}")
    result = {}
    for name, design in designs.items():
        parts = []
        for layer in layers:
            given = {key: getattr(layer, key) for key in design.parameters}
            given = {key: value for key, value in given.items() if value is not None}
            try:
                parts.append(Errors.of(design, layer.x, **given))
            except ValueError as error:
                raise ValueError(f"{name}, {layer.name}: {error}") from None
        peaks = {
            layer.name: float(np.max(np.abs(part.error)))
            for layer, part in zip(layers, parts, strict=True)
        }
        figures = Errors.joined(parts).report().to_dict()
        cost = {} if design.rsqrt.method == "exact" else estimate(design)
        worst = max(peaks, key=peaks.get)
        result[name] = {
            "design": design.headline,
            **dict.fromkeys(("rom_bits", "lut", "dsp", "bram", "latency_cycles")),
            **figures, **cost,
            "worst_layer": worst, "worst_layer_max_ulp": peaks[worst], "layers": peaks,
        }  # fmt: skip
        if progress:
            progress(1)
    return result


def compare_text(data):
    """The table of a comparison."""
    lines = [["", *data]]
    for key, heading, form in _ROWS:
        cells = [figures[key] for figures in data.values()]
        lines.append([heading, *("-" if v is None else form.format(v) for v in cells)])
    widths = [max(len(line[n]) for line in lines) for n in range(len(lines[0]))]
    table = [
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]).rstrip()
        for line in lines
    ]
    return "\n".join([*(f"{name}: {one['design']}" for name, one in data.items()), "", *table])


def draw_comparison(data, path):
    """Draw the largest error of each design, layer by layer."""
    figure, axes = new_figure()
    names = list(next(iter(data.values()))["layers"])
    place = np.arange(len(names))
    for (name, figures), colour in zip(
        data.items(), _COLOURS * (len(data) // len(_COLOURS) + 1), strict=False
    ):
        peaks = list(figures["layers"].values())
        bits = figures["rom_bits"]
        label = name if bits is None else f"{name} ({bits} ROM bits)"
        axes.plot(place, peaks, "o-", color=colour, markersize=3.5, linewidth=0.9, label=label)
        axes.axhline(figures["bound_ulp"], color=colour, linestyle="--", linewidth=0.8)
    axes.plot([], [], color="#333333", linestyle="--", linewidth=0.8, label="proven bound")
    axes.set_yscale("log")
    step = max(1, len(names) // 16)
    axes.set_xticks(place[::step], names[::step], rotation=60, ha="right", fontsize=6)
    axes.set_ylabel("largest error of y in ulp")
    axes.grid(alpha=0.3, which="major", axis="y")
    figure.legend(loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    save_figure(figure, path)
