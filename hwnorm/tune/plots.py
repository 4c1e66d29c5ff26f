"""Pictures of a tuning, as PNG and SVG. Needs the extra ``hwnorm[plot]``."""

import numpy as np

from hwnorm.plots import STYLES, draw_error_histogram, new_figure, save_figure
from hwnorm.tune.front import describe
from hwnorm.tune.report import name_of, unit_of
from hwnorm.tune.views import fronts_by_method, limit_lines

#: The recommended point.
_STAR = {"marker": "*", "markersize": 15, "color": "#d9a400", "markeredgecolor": "#333333"}

KINDS = ("png", "svg")


def draw_all(tuning, view, folder):
    """Draw every picture of a tuning into a folder.

    Parameters
    ----------
    tuning : hwnorm.tune.Tuning
    view : hwnorm.tune.views.View
    folder : pathlib.Path

    Returns
    -------
    list of str
        The files.
    """
    title = describe(tuning.recommended.point, tuning.space)
    drawers = {
        "error-against-rom": lambda path: draw_front(tuning, "rom_bits", path),
        "error-against-lut": lambda path: draw_front(tuning, "lut", path),
        "error-per-layer": lambda path: draw_layers(view, title, path),
        "error-histogram": lambda path: draw_error_histogram(view.errors, path, title),
        "error-places": lambda path: draw_places(view, title, path),
    }
    files = []
    for name, draw in drawers.items():
        for kind in KINDS:
            files.append(f"plots/{name}.{kind}")
            draw(folder / files[-1])
    return files


def draw_front(tuning, cost, path):
    """Draw accuracy against a cost: every method's own front, limit lines, the front of all."""
    space = tuning.space
    figure, axes = new_figure()
    for method, points in fronts_by_method(tuning, cost).items():
        colour, marker = STYLES.get(method, ("#555555", "o"))
        axes.plot(
            [one.value(cost) for one in points],
            [one.value(space.error, space.layers) for one in points],
            color=colour, marker=marker, markersize=4, linewidth=0.9, label=method,
        )  # fmt: skip
    if cost == "rom_bits":
        for name, line in limit_lines(tuning).items():
            colour = STYLES.get(name.split()[0], ("#555555", "o"))[0]
            axes.plot(*zip(*line, strict=True), color=colour, linestyle=":", linewidth=1)
        if limit_lines(tuning):
            axes.plot([], [], color="#333333", linestyle=":", linewidth=1, label="table's limit")
    best = tuning.recommended
    axes.plot(
        best.value(cost), best.value(space.error, space.layers), linestyle="",
        label="recommended", zorder=5, **_STAR,
    )  # fmt: skip
    axes.set_xscale("log")
    if not space.error.endswith("_db"):
        axes.set_yscale("log")
    axes.set_xlabel(name_of(cost) + (" (estimate)" if cost != "rom_bits" else ""))
    unit = unit_of(space.error).strip()
    axes.set_ylabel(f"{name_of(space.error)}, {space.layers} layer{f' ({unit})' if unit else ''}")
    axes.set_title(space.base.headline, fontsize=9)
    axes.grid(alpha=0.3, which="major")
    figure.legend(loc="outside lower center", ncols=6, fontsize=8, frameon=False)
    save_figure(figure, path)


def draw_layers(view, title, path):
    """Draw the largest and the rms error of each layer."""
    figure, axes = new_figure()
    place = np.arange(len(view.names))
    axes.bar(place, [one.max_ulp for one in view.layers], color="#2f6f9f", label="largest")
    axes.plot(
        place, [one.rms_ulp for one in view.layers], "o", color="#d98e32", markersize=3, label="rms"
    )
    axes.axhline(
        view.layers[0].bound_ulp, color="#333333", linestyle="--", linewidth=1,
        label="proven bound",
    )  # fmt: skip
    step = max(1, len(place) // 16)
    axes.set_xticks(place[::step], view.names[::step], rotation=60, ha="right", fontsize=6)
    axes.set_ylabel("error of y in ulp")
    axes.set_title(title, fontsize=9)
    figure.legend(loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    save_figure(figure, path)


def draw_places(view, title, path):
    """Draw where errors are: layers against channels, and the largest one."""
    figure, axes = new_figure()
    picture = axes.imshow(
        view.where, aspect="auto", cmap="viridis", interpolation="nearest",
        extent=(0, view.where.shape[1] * view.channels, len(view.names) - 0.5, -0.5),
    )  # fmt: skip
    layer, row, channel, size = view.worst
    axes.plot(channel, view.names.index(layer), "o", mfc="none", mec="#e03020", markersize=10)
    axes.set_title(
        f"{title}\nlargest: {size:.3g} ulp, {layer}, row {row}, channel {channel}", fontsize=8
    )
    step = max(1, len(view.names) // 16)
    axes.set_yticks(np.arange(len(view.names))[::step], view.names[::step], fontsize=6)
    axes.set_xlabel("channel")
    figure.colorbar(picture, label="largest error in ulp")
    save_figure(figure, path)
