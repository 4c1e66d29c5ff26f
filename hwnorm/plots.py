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
