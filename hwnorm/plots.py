"""Pictures of errors. Needs the extra ``hwnorm[plot]``."""

from pathlib import Path

import numpy as np

#: One colour a method, told apart in print as well by the markers.
STYLES = {
    "direct": ("#b04a3f", "o"),
    "linear": ("#2f6f9f", "s"),
    "quadratic": ("#4d8a3c", "^"),
    "log": ("#8a5fa8", "D"),
}


def new_figure():
    """A figure and its axes.

    Raises
    ------
    ValueError
        If matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ValueError(
            "plots need matplotlib, got none; install it with: pip install hwnorm[plot]"
        ) from None
    figure = Figure(figsize=(7.5, 4.2), layout="constrained")
    return figure, figure.add_subplot()


def check_plot_path(path):
    """Raise ValueError unless a picture can be written under that name."""
    if Path(path).suffix not in (".png", ".svg", ".pdf"):
        raise ValueError(f"a plot is written as .png, .svg or .pdf, got {path}")
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"output {path} must be writable, got: {error.strerror}") from None
    new_figure()


def save_figure(figure, path):
    """Write a figure, the same file for the same picture."""
    from matplotlib import rc_context

    check_plot_path(path)
    path = Path(path)
    kind = path.suffix.lstrip(".")
    # No date and no version, so that the same picture is the same file.
    metadata = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with rc_context({"svg.hashsalt": "hwnorm"}):
            figure.savefig(path, dpi=150, metadata=metadata[kind])
    except OSError as error:
        raise ValueError(f"output {path} must be writable, got: {error.strerror}") from None


def draw_error_histogram(errors, path, title):
    """Draw how often which error of y occurs, beside that of an ideal rounding.

    Parameters
    ----------
    errors : hwnorm.measure.Errors
    path : str or pathlib.Path
        ``.png``, ``.svg`` or ``.pdf``.
    title : str
    """
    figure, axes = new_figure()
    report = errors.report().all
    reach = max(report.bound_ulp, report.max_ulp) * 1.08
    bins = np.linspace(-reach, reach, 121)
    inside = errors.fits
    ideal = axes.hist(
        errors.ideal_error[inside], bins, color="#b8c4cc", label="golden, rounded (ideal)"
    )
    axes.hist(errors.error[inside], bins, histtype="step", color="#b04a3f", label="this design")
    for side in (-1, 1):
        axes.axvline(
            side * report.bound_ulp, color="#333333", linestyle="--", linewidth=1,
            label="proven bound" if side > 0 else None,
        )  # fmt: skip
        axes.axvline(
            side * report.max_ulp, color="#2f6f9f", linestyle=":", linewidth=1.2,
            label="largest error seen" if side > 0 else None,
        )  # fmt: skip
    axes.set_yscale("log")
    axes.set_ylim(0.5, ideal[0].max() * 3)
    axes.set_xlabel("error of y in ulp")
    axes.set_ylabel("elements")
    axes.set_title(title, fontsize=9)
    figure.legend(loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    save_figure(figure, path)


def draw_error_against_segments(series, path, title):
    """Draw the largest error against table size, a line a method.

    Parameters
    ----------
    series : dict of str to list of (int, float, float)
        Method to (segments, largest error seen, proven bound), in ulp.
    path : str or pathlib.Path
    title : str
    """
    figure, axes = new_figure()
    for method, points in series.items():
        colour, marker = STYLES[method]
        segments, seen, bound = zip(*points, strict=True)
        axes.plot(segments, seen, color=colour, marker=marker, markersize=4, label=method)
        axes.plot(segments, bound, color=colour, linestyle="--", linewidth=0.8)
    axes.plot([], [], color="#333333", linestyle="--", linewidth=0.8, label="proven bound")
    axes.axhline(0.5, color="#999999", linewidth=0.8)
    axes.annotate("correct rounding", (axes.get_xlim()[1], 0.5), fontsize=8, ha="right",
                  xytext=(-4, -10), textcoords="offset points", color="#666666")  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("table entries")
    axes.set_ylabel("largest error of y in ulp")
    axes.set_title(title, fontsize=9)
    axes.grid(alpha=0.3, which="major")
    axes.legend(fontsize=8, frameon=False)
    save_figure(figure, path)


def draw_timeline(handshakes, row_beats, path, title):
    """Draw which cycles beats go in and out, and where either side waits.

    Parameters
    ----------
    handshakes : numpy.ndarray of bool, (cycles, 4)
        As of `hwnorm.sim.SimResult`.
    row_beats : int
        Beats of a row; rows are told apart by their shade and number.
    path : str or pathlib.Path
        ``.svg``, ``.png`` or ``.pdf``.
    title : str
    """
    figure, axes = new_figure()
    figure.set_size_inches(9, 2.6)
    sides = (("beats out", 0, 2), ("beats in", 1, 0))
    for _, level, column in sides:
        valid, ready = handshakes[:, column], handshakes[:, column + 1]
        beats = np.cumsum(valid & ready) - 1
        for row in range(beats[-1] // row_beats + 1 if len(beats) else 0):
            cycles = np.flatnonzero(valid & ready & (beats // row_beats == row))
            colour = ("#2f6f9f", "#8fb8d6")[row % 2]
            axes.broken_barh(_spans(cycles), (level - 0.2, 0.4), facecolors=colour)
            axes.annotate(
                str(row), (np.median(cycles) + 0.5, level + 0.22), ha="center", fontsize=7,
                color="#555555",
            )  # fmt: skip
        for cycles, colour in (
            (np.flatnonzero(valid & ~ready), "#b04a3f"),
            (np.flatnonzero(~valid), "#d9d9d9"),
        ):
            axes.broken_barh(_spans(cycles), (level - 0.3, 0.07), facecolors=colour)
    for colour, label in (
        ("#2f6f9f", "beat, rows by shade and number"),
        ("#b04a3f", "stalled: valid, not ready"),
        ("#d9d9d9", "idle: not valid"),
    ):
        axes.plot([], [], color=colour, linewidth=5, label=label)
    axes.set_yticks([level for _, level, _ in sides], [name for name, _, _ in sides])
    axes.set_ylim(-0.5, 1.5)
    axes.set_xlim(0, len(handshakes))
    axes.set_xlabel("clock cycle")
    axes.set_title(title, fontsize=9)
    figure.legend(loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    save_figure(figure, path)


def _spans(cycles):
    """Runs of consecutive cycles as (start, length)."""
    breaks = np.flatnonzero(np.diff(cycles) != 1) + 1
    return [(run[0], len(run)) for run in np.split(cycles, breaks) if len(run)]


def draw_calibration(points, path, title):
    """Estimate against measurement, a panel for each quantity.

    Parameters
    ----------
    points : dict of str to list of (float, float, bool)
        For ``fmax_mhz`` and ``lut``: measured, estimated, and whether it was held out.
    path : str or pathlib.Path
    title : str
    """
    figure, axes = new_figure()
    axes.remove()
    labels = {"fmax_mhz": "fmax in MHz", "lut": "LUTs"}
    for n, (what, found) in enumerate(points.items()):
        panel = figure.add_subplot(1, len(points), n + 1)
        top = 1.1 * max(max(m, g) for m, g, _ in found)
        ends = np.array([1e-3, top])
        panel.plot(ends, ends, color="#888888", linewidth=0.8)
        share = {"fmax_mhz": 0.2, "lut": 0.15}[what]
        band = (ends * (1 - share), ends * (1 + share))
        panel.fill_between(ends, *band, color="#888888", alpha=0.15)
        for apart, colour, mark in ((False, "#2f6f9f", "o"), (True, "#b04a3f", "s")):
            some = [(m, g) for m, g, held in found if held == apart]
            if some:
                panel.plot(*zip(*some, strict=True), mark, color=colour, markersize=4,
                           label="held out" if apart else "fitted")  # fmt: skip
        low, scale = 0, "linear"
        if what == "lut":
            # Over two orders of magnitude, most of them at the small end.
            low, scale = 0.8 * min(min(m, g) for m, g, _ in found), "log"
        panel.set(xscale=scale, yscale=scale, xlim=(low, top), ylim=(low, top),
                  xlabel=f"measured {labels[what]}",
                  ylabel=f"estimated (band: {share:.0%})")  # fmt: skip
        if scale == "log":
            ticks = [n * 10**k for k in range(1, 6) for n in (1, 2, 5) if low < n * 10**k < top]
            panel.set_xticks(ticks, ticks)
            panel.set_yticks(ticks, ticks)
            panel.minorticks_off()
        panel.legend(frameon=False)
    figure.suptitle(title, fontsize=10)
    save_figure(figure, path)
