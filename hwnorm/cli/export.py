"""Commands that write files for other tools: lut, verilog, fusesoc."""

from pathlib import Path

import click

from hwnorm.cli.base import (
    as_json,
    bench_of,
    commands,
    data_option,
    design_argument,
    layers_of,
    period_option,
    print_result,
    seed_option,
    target_option,
    timed,
)
from hwnorm.design import load
from hwnorm.export import (
    TABLE_FORMATS,
    design_tables,
    generate,
    table_files,
    write_bundle,
)
from hwnorm.files import write_tree
from hwnorm.hdl.style import CLOCKS, PROFILES, RESETS, TABLES, Style
from hwnorm.rows import Layer, bench_rows
from hwnorm.tables import Table

#: The folder that FuseSoC takes as a library.
LIBRARY = Path(__file__).resolve().parent / "fusesoc"


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
    print_result(
        as_json,
        {"folder": output, "files": sorted(files), "tables": facts},
        "\n".join([*lines, f"{len(files)} files in {output}"]),
    )


@commands.command()
@design_argument
@click.option("-o", "--output", required=True, metavar="DIR")
@click.option("--name", help="Of the top module; without, from DESIGN.")
@click.option(
    "--profile", type=click.Choice(list(PROFILES)), default="generic", show_default=True,
    help="Whose attributes memories, multipliers and ports carry.",
)  # fmt: skip
@click.option(
    "--tables", type=click.Choice(TABLES), default="embedded", show_default=True,
    help="Memory contents in the Verilog, or in files.",
)  # fmt: skip
@click.option(
    "--clock", type=click.Choice(CLOCKS), default="aclk", show_default=True, help="Its port."
)
@click.option(
    "--reset", type=click.Choice(RESETS), default="aresetn", show_default=True,
    help="Active low if it ends in n.",
)  # fmt: skip
@click.option("--rows", type=click.IntRange(1), default=16, show_default=True, help="In the bench.")
@target_option
@period_option
@data_option
@seed_option
@click.option("--force", is_flag=True, help="Also into a folder with other files.")
@as_json
def verilog(
    design, output, name, profile, tables, clock, reset, rows, target, period, data, seed, force,
    as_json,
):  # fmt: skip
    """Write DESIGN as Verilog with test benches and files for other tools."""
    name = name or Path(design).stem
    style = Style(profile, tables, clock, reset)
    design = timed(load(design), target, period)
    if data is None:
        layers = [Layer("corner and random rows", bench_rows(design, rows, seed))]
    else:
        layers = layers_of(design, data, None, seed)[0]
    _, x, given = bench_of(design, layers, rows)
    files = write_bundle(design, output, name, x, **given, style=style, force=force)
    print_result(
        as_json,
        {"folder": output, "files": files, "latency_cycles": design.latency},
        "\n".join([design.headline, *(f"{output}/{file}" for file in files)]),
    )


@commands.command()
@click.argument("request", required=False)
@as_json
def fusesoc(request, as_json):
    """Print the FuseSoC library with the generator hwnorm; with REQUEST, be that generator."""
    if request is None:
        print_result(as_json, {"library": str(LIBRARY)}, str(LIBRARY))
        return
    design, files = generate(request, ".")
    print_result(as_json, {"files": files}, f"{design.headline}: {len(files)} files")
