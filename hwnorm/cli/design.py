"""Commands about a design by itself: new, show, check, eval; and the tour."""

import json
from pathlib import Path

import click

from hwnorm.cli.base import (
    CheckError,
    as_json,
    commands,
    data_option,
    design_argument,
    layers_of,
    parameters_in,
    period_option,
    print_result,
    progress_bar,
    seed_option,
    target_option,
    timed,
)
from hwnorm.design import dumps, load, template
from hwnorm.files import write_text
from hwnorm.measure import Errors
from hwnorm.plots import check_plot_path, draw_error_histogram
from hwnorm.report import check_data, check_text, eval_data, eval_text


@commands.command()
@click.argument("norm")
@click.option("-o", "--output", metavar="FILE", help="Where to write; without, to stdout.")
@as_json
def new(norm, output, as_json):
    """Write a commented design file for NORM with good defaults."""
    text = template(norm)
    if output:
        if Path(output).exists():
            raise ValueError(f"output {output} must not exist yet, got an existing file")
        write_text(output, text)
    if as_json:
        click.echo(json.dumps({"norm": norm, "file": output, "text": text}))
    elif not output:
        click.echo(text, nl=False)


@commands.command()
@design_argument
@click.option("--wires", is_flag=True, help="Also list every wire: format, width, cycle.")
@target_option
@period_option
@as_json
def check(design, wires, target, period, as_json):
    """Widths, latency, tables, error bound and cost of DESIGN."""
    design = timed(load(design), target, period)
    print_result(as_json, check_data(design), check_text(design, wires))


@commands.command("eval")
@design_argument
@data_option
@click.option("--rows", type=click.IntRange(1), help="At most so many rows.")
@click.option("--plot", metavar="FILE", help="Draw the error histogram (needs hwnorm[plot]).")
@seed_option
@as_json
def evaluate_command(design, data, rows, plot, seed, as_json):
    """Accuracy of DESIGN against float64, on real activations or a data file."""
    design = load(design)
    if plot:
        check_plot_path(plot)
    layers, source = layers_of(design, data, rows, seed)
    parts = []
    with progress_bar(sum(len(layer.x) for layer in layers), "rows") as bar:
        for layer in layers:
            given = parameters_in(design, layer)
            try:
                parts.append(Errors.of(design, layer.x, **given, progress=bar.update))
            except ValueError as error:
                raise ValueError(f"{layer.name}: {error}") from None
    total = Errors.joined(parts)
    reports = [(layer.name, part.report()) for layer, part in zip(layers, parts, strict=True)]
    report = total.report()
    text = eval_text(design, report, reports, source)
    others = {layer.eps for layer in layers if layer.eps and abs(layer.eps / design.eps - 1) > 0.01}
    for eps in sorted(others):
        text += f"\nnote: the model behind the data has eps {eps:.3g}, the design {design.eps:g}"
    print_result(as_json, eval_data(report, reports) | {"data_eps": sorted(others)}, text)
    if plot:
        draw_error_histogram(total, plot, f"{design.headline}: {source}")
    if not report.all.holds:
        raise CheckError(
            f"max error must keep the bound {report.all.bound_ulp:.4f} ulp, "
            f"got {report.all.max_ulp:.4f}"
        )


@commands.command()
@click.argument("design")
@as_json
def show(design, as_json):
    """Print DESIGN (a file or a preset) as a complete design file."""
    text = dumps(load(design))
    print_result(as_json, {"text": text}, text.rstrip())


@commands.command()
@click.option("-o", "--output", metavar="DIR", default="out/demo", show_default=True)
@as_json
def demo(output, as_json):
    """The tour: real activations, model against float64, RTL against model, Verilog."""
    from hwnorm.demo import run_demo

    with progress_bar(4, "demo") as bar:
        data, text = run_demo(output, bar.update)
    print_result(as_json, data, text)
    if not data["passed"]:
        raise CheckError("every step of the demo must pass")
