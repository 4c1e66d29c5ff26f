"""Commands that choose: tune, compare, formats."""

import os
from pathlib import Path

import click

from hwnorm.cli.base import (
    CheckError,
    as_json,
    commands,
    layers_of,
    print_result,
    progress_bar,
    seed_option,
)
from hwnorm.design import load
from hwnorm.plots import check_plot_path
from hwnorm.rows import load_layers, real_layers, shipped_layers
from hwnorm.tune.compare import compare_text, compared, draw_comparison
from hwnorm.tune.formats import WIDTHS, draw_formats, formats_text, needed_formats
from hwnorm.tune.output import check_extras, write_tuning
from hwnorm.tune.report import tuning_data, tuning_text
from hwnorm.tune.rows import Rows
from hwnorm.tune.space import Space, parse_choice, varied
from hwnorm.tune.synth import cells_text, measured_cells
from hwnorm.tune.tuning import adjusted, run


@commands.command()
@click.argument("space")
@click.option("--data", metavar="FILE", help="Activations: .npy, or .npz with x, gamma, beta.")
@click.option("-o", "--output", required=True, metavar="DIR")
@click.option(
    "--objective", "objectives", multiple=True, metavar="FIGURE",
    help="A figure of accuracy or of cost to draw the front by; twice, one of each.",
)  # fmt: skip
@click.option(
    "--limit", "limits", multiple=True, metavar="LIMIT", help="Such as 'max_ulp <= 1'; repeatable."
)
@click.option(
    "--vary", multiple=True, metavar="KEY=VALUES",
    help="Such as segments=2..64 or y=s8/3,s16/11, instead of the space's; repeatable.",
)  # fmt: skip
@click.option("--layers", help="worst (default), mean or pooled.")
@click.option("--holdout", type=float, help="Share of rows that only verify; without, 0.25.")
@click.option("--budget", type=click.IntRange(1), help="Most points; beyond it, a search.")
@click.option("--jobs", type=click.IntRange(1), help="Processes; without, one a core.")
@click.option("--scheduler", metavar="tcp://HOST:PORT", help="A Dask cluster (hwnorm[cluster]).")
@click.option("--resume", is_flag=True, help="DIR must hold points of an earlier run.")
@click.option("--synth", metavar="TARGET", help="Also synthesise the front for a target.")
@as_json
def tune(
    space, data, output, objectives, limits, vary, layers, holdout, budget, jobs, scheduler, resume,
    synth, as_json,
):  # fmt: skip
    """The Pareto front of accuracy against cost of SPACE, a space file or a DESIGN."""
    check_extras()
    wanted = varied(Space.load(space), map(parse_choice, vary))
    wanted = adjusted(wanted, limits, objectives, layers, holdout, budget)
    found, source = _rows_of(wanted.base, data)
    rows = Rows.of(found, wanted.holdout)
    jobs = jobs or len(os.sched_getaffinity(0))
    with _Bar() as bar:
        try:
            result = run(
                wanted, rows, output, resume=resume, jobs=jobs, scheduler=scheduler, report=bar
            )
        except KeyboardInterrupt:
            click.echo(
                f"hwnorm: {bar.done} points of this run are stored in {output}; "
                f"go on with --resume",
                err=True,
            )
            raise
    cells = measured_cells(result, synth) if synth else None
    files = write_tuning(result, output, cells)
    facts = tuning_data(result) | {
        "evaluated": result.evaluated,
        "seconds": result.seconds,
        "points_per_second": result.evaluated / result.seconds,
        "folder": output,
        "files": files,
        "synthesised": cells,
    }
    text = tuning_text(result, source, output)
    print_result(as_json, facts, f"{text}\n{cells_text(cells)}" if cells else text)


def _rows_of(design, data):
    if data is not None:
        return load_layers(data), Path(data).name
    layers = shipped_layers(design)
    if not layers:
        raise ValueError(
            f"--data must be given: no activations are packaged for {design.kind} of dim "
            f"{design.dim}"
        )
    return layers, "real activations"


class _Bar:
    """A progress bar that begins when the number of points is known."""

    def __init__(self):
        self.done, self._bar = 0, None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self._bar:
            self._bar.__exit__(*error)

    def __call__(self, progress):
        if self._bar is None:
            self._bar = progress_bar(progress.total, "points")
            self._bar.item_show_func = lambda text: text or ""
            self._bar.__enter__()
        words = f"{progress.rate:.0f} points/s" + (f", {progress.best}" if progress.best else "")
        self._bar.update(progress.done - self.done, words)
        self.done = progress.done


@commands.command()
@click.argument("designs", nargs=-1, required=True)
@click.option("--data", metavar="FILE", help="Activations: .npy, or .npz with x, gamma, beta.")
@click.option("--rows", type=click.IntRange(1), help="At most so many rows.")
@click.option("--plot", metavar="FILE", help="Draw the error of each layer (hwnorm[plot]).")
@seed_option
@as_json
def compare(designs, data, rows, plot, seed, as_json):
    """DESIGNS side by side: accuracy on the same rows, and cost."""
    if plot:
        check_plot_path(plot)
    loaded = {}
    for path in designs:
        stem = Path(path).stem
        name = path if stem in loaded else stem
        if name in loaded:
            raise ValueError(f"designs must differ, got {path} twice")
        loaded[name] = load(path)
    layers, source = layers_of(next(iter(loaded.values())), data, rows, seed)
    with progress_bar(len(loaded), "designs") as bar:
        figures = compared(loaded, layers, bar.update)
    print_result(
        as_json,
        {"source": source, "designs": figures},
        f"on {sum(len(layer.x) for layer in layers)} rows of {source}\n{compare_text(figures)}",
    )
    if plot:
        draw_comparison(figures, plot)
    broken = [
        name for name, one in figures.items() if one["max_ulp"] > one["bound_ulp"] * (1 + 1e-9)
    ]
    if broken:
        raise CheckError(f"max error must keep the bound, got more in {', '.join(broken)}")


@commands.command()
@click.option("--data", metavar="FILE", help="Activations; without, the packaged ones of SmolLM2.")
@click.option(
    "--norm", default="rmsnorm", show_default=True, type=click.Choice(["rmsnorm", "layernorm"]),
    help="By whose output losses are judged.",
)  # fmt: skip
@click.option("--eps", type=float, default=1e-5, show_default=True, help="Of data without eps.")
@click.option("--sqnr", type=float, default=50.0, show_default=True, help="To reach, in dB.")
@click.option("--plot", metavar="FILE", help="Draw ranges and losses (hwnorm[plot]).")
@as_json
def formats(data, norm, eps, sqnr, plot, as_json):
    """What formats activations need: ranges, massive activations, bits of x."""
    if plot:
        check_plot_path(plot)
    if not eps > 0:
        raise ValueError(f"eps must be positive, got {eps}")
    packaged = {"rmsnorm": "smollm2", "layernorm": "minilm"}[norm]
    layers = real_layers(packaged) if data is None else load_layers(data)
    with progress_bar(len(WIDTHS), "widths") as bar:
        found = needed_formats(layers, norm, eps, sqnr, bar.update)
    source = f"packaged activations ({packaged})" if data is None else Path(data).name
    print_result(as_json, found.to_dict(), formats_text(found, source))
    if plot:
        draw_formats(found, plot)
