"""The command line: parse, call, print. Every command is a thin skin on the Python API."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import click
import numpy as np

from hwnorm import __version__
from hwnorm.design import CATALOGUE, dumps, load, template
from hwnorm.export import TABLE_FORMATS, design_tables, table_files, write_bundle
from hwnorm.files import finite, write_text, write_tree
from hwnorm.fixed import quantise
from hwnorm.measure import Errors
from hwnorm.model import evaluate
from hwnorm.plots import check_plot_path, draw_error_histogram
from hwnorm.report import check_data, check_text, eval_data, eval_text
from hwnorm.rows import Layer, bench_rows, corner_rows, fitting_layers, load_layers, random_rows
from hwnorm.sim import ENGINES, PATTERNS, simulate
from hwnorm.tables import Table


class CheckError(Exception):
    """A check that the command made did not hold: exit code 1."""


def run():
    """The console script."""
    sys.exit(main())


def main(arguments=None):
    """Run the command line; returns the exit code."""
    try:
        commands.main(arguments, prog_name="hwnorm", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return 2
    except click.exceptions.Abort:
        click.echo("hwnorm: interrupted", err=True)
        return 130
    except click.ClickException as error:
        click.echo(f"hwnorm: {_one_line(error.format_message())}", err=True)
        return 2
    except ValueError as error:
        click.echo(f"hwnorm: {_one_line(str(error))}", err=True)
        return 2
    except (ArithmeticError, MemoryError, RecursionError) as error:
        # No rule foresaw it; still one line, and nothing is written.
        click.echo(f"hwnorm: input beyond what can be computed: {error!r:.200}", err=True)
        return 2
    except (CheckError, TimeoutError) as error:
        click.echo(f"hwnorm: {_one_line(str(error))}", err=True)
        return 1
    return 0


def _one_line(text):
    return " ".join(text.split())


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message="hwnorm %(version)s")
def commands():
    """Transformer norms without dividers or square roots: models, RTL, Verilog.

    DESIGN is a TOML file (see: hwnorm new rmsnorm), the name of a preset, or FILE.py:NAME.
    """


commands.help += "\n\nPresets: " + ", ".join(CATALOGUE) + "."

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
design_argument = click.argument("design")
data_option = click.option(
    "--data", metavar="FILE", help="Rows: .npy, or .npz with x, gamma, beta."
)
seed_option = click.option("--seed", type=click.IntRange(0), default=0, show_default=True)


def _print(as_json, data, text):
    click.echo(json.dumps(finite(data)) if as_json else text)


def _bar(length, label):
    """A progress bar on stderr, silent unless that is a terminal."""
    return click.progressbar(
        length=length, label=label, file=sys.stderr, hidden=not sys.stderr.isatty()
    )


def _layers(design, data, rows, seed):
    """What to run a design on, and what to call it."""
    if data is not None:
        layers, source = load_layers(data), Path(data).name
    elif layers := fitting_layers(design):
        source = "real activations"
    else:
        x = np.concatenate([corner_rows(design), random_rows(design, 256, seed)])
        layers, source = [Layer("corner and random rows", x)], "corner and seeded random rows"
    for layer in layers:
        if layer.x.shape[-1] != design.dim:
            raise ValueError(
                f"data of {source} must have dim={design.dim}, got {layer.x.shape[-1]}"
            )
    if rows is not None:
        layers = _first_rows(layers, rows)
    return layers, source


def _first_rows(layers, rows):
    """At most `rows` rows, of as few layers as hold them."""
    kept = []
    for layer in layers:
        if rows > 0:
            kept.append(replace(layer, x=layer.x[:rows]))
            rows -= len(kept[-1].x)
    return kept


def _bench(design, layers, rows):
    """At most `rows` rows of all layers, with the first one's parameters, as integers.

    Returns
    -------
    str, numpy.ndarray, dict
        What to call them; the rows; parameters, unless the design has them in ROM.
    """
    used = _first_rows(layers, rows)
    x = np.concatenate([quantise(design.x, layer.x, "x") for layer in used])
    given = {} if design.store == "rom" else _parameters(design, layers[0])
    given = {name: quantise(getattr(design, name), value, name) for name, value in given.items()}
    more = f" and {len(used) - 1} more" if len(used) > 1 else ""
    return used[0].name + more, x, given


def _parameters(design, layer):
    """The layer's parameters that the design has formats for."""
    return {
        name: getattr(layer, name) for name in design.parameters if getattr(layer, name) is not None
    }


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
@as_json
def check(design, wires, as_json):
    """Widths, latency, tables, error bound and cost of DESIGN."""
    design = load(design)
    _print(as_json, check_data(design), check_text(design, wires))


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
    layers, source = _layers(design, data, rows, seed)
    parts = []
    with _bar(sum(len(layer.x) for layer in layers), "rows") as bar:
        for layer in layers:
            given = _parameters(design, layer)
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
    _print(as_json, eval_data(report, reports) | {"data_eps": sorted(others)}, text)
    if plot:
        draw_error_histogram(total, plot, f"{design.headline}: {source}")
    if not report.all.holds:
        raise CheckError(
            f"max error must keep the bound {report.all.bound_ulp:.4f} ulp, "
            f"got {report.all.max_ulp:.4f}"
        )


@commands.command()
@design_argument
@click.option("--engine", default="pysim", show_default=True, help=f"One of {', '.join(ENGINES)}.")
@click.option("--rows", type=click.IntRange(1), default=8, show_default=True)
@click.option(
    "--stall", type=float, default=0.0, show_default=True, help="Chance of a gap, 0 to <1."
)
@click.option(
    "--pattern", type=click.Choice(PATTERNS), default="random", help="How the gaps are spread."
)
@data_option
@click.option("--vcd", metavar="FILE", help="Write waves (pysim and icarus).")
@seed_option
@as_json
def sim(design, engine, rows, stall, pattern, data, vcd, seed, as_json):
    """Simulate the RTL of DESIGN against the model, bit for bit."""
    design = load(design)
    name, x, given = _bench(design, _layers(design, data, None, seed)[0], rows)
    expected = evaluate(design, x, **given)
    with _bar(len(x), "rows") as bar:
        result = simulate(
            design,
            x,
            **given,
            engine=engine,
            stall=stall,
            pattern=pattern,
            seed=seed,
            vcd=vcd,
            progress=bar.update,
        )
    wrong = np.argwhere(result.y != expected.y)
    exact = not len(wrong) and result.saturated == (expected.saturated > 0)
    data = {
        "engine": engine,
        "bit_exact": exact,
        "rows": len(x),
        "cycles": result.cycles,
        "latency_cycles": result.latency_cycles,
        "beats_per_cycle": result.beats_per_cycle,
        "mismatches": len(wrong),
        "saturated": result.saturated,
    }
    _print(
        as_json,
        data,
        f"{design.headline}\n{'bit-exact' if exact else 'NOT BIT-EXACT'}: {len(x)} rows of "
        f"{name} in {result.cycles} cycles, latency {result.latency_cycles}, "
        f"{result.beats_per_cycle:.3f} beats a cycle ({engine})",
    )
    if not exact:
        where = "the saturated flag differs"
        if len(wrong):
            row, element = wrong[0]
            where = (
                f"{len(wrong)} elements differ, the first in row {row}, element {element}: "
                f"expected {expected.y[row, element]}, got {result.y[row, element]}"
            )
        raise CheckError(f"RTL and model must agree: {where}")


@commands.command()
@as_json
def engines(as_json):
    """The simulation engines, and how to install those that are not usable here."""
    lacks = {name: engine.missing() for name, engine in ENGINES.items()}
    text = "\n".join(f"{name:<10} {lack or 'usable'}" for name, lack in lacks.items())
    _print(as_json, {"engines": {name: {"missing": lack} for name, lack in lacks.items()}}, text)


@commands.command()
@click.argument("design", required=False)
@click.option("--function", help="A table without a design: rsqrt, log2 or exp2.")
@click.option("--method", help="Of --function; without, linear.")
@click.option("--segments", type=int, help="Of --function; without, 64.")
@click.option("--arg-bits", type=click.IntRange(1, 30), help="Of --function; without, 16.")
@click.option("--frac", type=click.IntRange(1, 40), help="Of --function; without, 18.")
@click.option(
    "--format", "kinds", multiple=True, type=click.Choice(list(TABLE_FORMATS)),
    help="File formats; without, all.",
)  # fmt: skip
@click.option("-o", "--output", required=True, metavar="DIR")
@as_json
def lut(design, function, method, segments, arg_bits, frac, kinds, output, as_json):
    """Write the tables of DESIGN, or of a function, as files for other tools."""
    if (design is None) == (function is None):
        raise ValueError("lut takes a design or --function, got both or none")
    chosen = {"method": method, "segments": segments, "arg_bits": arg_bits, "frac": frac}
    chosen = {key: value for key, value in chosen.items() if value is not None}
    if design and chosen:
        option = next(iter(chosen)).replace("_", "-")
        raise ValueError(f"--{option} goes with --function, a design has its own")
    shape = {"method": "linear", "segments": 64, "arg_bits": 16, "frac": 18} | chosen
    tables = design_tables(load(design)) if design else {function: Table(function, **shape)}
    files = {}
    for name, table in tables.items():
        for kind in kinds or TABLE_FORMATS:
            files |= table_files(table, name, kind)
    write_tree(output, files)
    facts = {
        name: {
            "segments": table.segments,
            "rom_bits": table.rom_bits,
            "max_error": table.max_error,
            "limit": table.limit,
        }
        for name, table in tables.items()
    }
    lines = [
        f"{name}: {table.method}, {table.segments} segments, {table.rom_bits} bits, "
        f"max error {table.max_error:.3g} ({table.proof})"
        for name, table in tables.items()
    ]
    _print(
        as_json,
        {"folder": output, "files": sorted(files), "tables": facts},
        "\n".join([*lines, f"{len(files)} files in {output}"]),
    )


@commands.command()
@design_argument
@click.option("-o", "--output", required=True, metavar="DIR")
@click.option("--name", help="Of the top module; without, from DESIGN.")
@click.option("--rows", type=click.IntRange(1), default=16, show_default=True, help="In the bench.")
@data_option
@seed_option
@as_json
def verilog(design, output, name, rows, data, seed, as_json):
    """Write DESIGN as Verilog with a self-checking test bench and a manifest."""
    name = name or Path(design).stem
    design = load(design)
    if data is None:
        layers = [Layer("corner and random rows", bench_rows(design, rows, seed))]
    else:
        layers = _layers(design, data, None, seed)[0]
    _, x, given = _bench(design, layers, rows)
    files = write_bundle(design, output, name, x, **given)
    _print(
        as_json,
        {"folder": output, "files": files, "latency_cycles": design.latency},
        "\n".join([design.headline, *(f"{output}/{file}" for file in files)]),
    )


@commands.command()
@click.option("-o", "--output", metavar="DIR", default="out/demo", show_default=True)
@as_json
def demo(output, as_json):
    """The tour: real activations, model against float64, RTL against model, Verilog."""
    from hwnorm.demo import run_demo

    with _bar(4, "demo") as bar:
        data, text = run_demo(output, bar.update)
    _print(as_json, data, text)
    if not data["passed"]:
        raise CheckError("every step of the demo must pass")


@commands.command()
@click.argument("design")
@as_json
def show(design, as_json):
    """Print DESIGN (a file or a preset) as a complete design file."""
    text = dumps(load(design))
    _print(as_json, {"text": text}, text.rstrip())
