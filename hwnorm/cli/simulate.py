"""Commands that run the hardware: sim, engines."""

import click

from hwnorm.bitexact import compare
from hwnorm.cli.base import (
    CheckError,
    as_json,
    commands,
    data_option,
    design_argument,
    given_rows,
    print_result,
    progress_bar,
    seed_option,
)
from hwnorm.design import load
from hwnorm.plots import check_plot_path, draw_timeline
from hwnorm.sim import ENGINES, PATTERNS
from hwnorm.sim.base import usable_engine

#: Rows that a timeline shows, without stalls.
_TIMELINE_ROWS = 4


@commands.command()
@design_argument
@click.option("--engine", help=f"One of {', '.join(ENGINES)}; see: hwnorm engines.")
@click.option("--rows", type=click.IntRange(1), default=8, show_default=True)
@click.option(
    "--stall", type=float, default=0.0, show_default=True, help="Chance of a gap, 0 to <1."
)
@click.option(
    "--pattern", type=click.Choice(PATTERNS), default="random", help="How the gaps are spread."
)
@data_option
@click.option("--vcd", metavar="FILE", help="Write waves.")
@click.option("--fst", metavar="FILE", help="Write waves as FST (icarus and verilator).")
@click.option(
    "--timeline", metavar="FILE", help="Draw beats and stalls of the first rows (hwnorm[plot])."
)
@click.option(
    "--verilog", metavar="FILE", multiple=True, help="Simulate this instead; may be repeated."
)
@click.option("--top", help="Module of --verilog; without, named as its first file.")
@click.option("--no-cache", is_flag=True, help="Neither keep nor use compiled simulators.")
@seed_option
@as_json
def sim(design, rows, data, timeline, verilog, no_cache, as_json, **settings):
    """Simulate the RTL of DESIGN against the model, bit for bit."""
    design = load(design)
    if timeline:
        check_plot_path(timeline)
        settings["trace_cycles"] = 2 * (design.latency + _TIMELINE_ROWS * design.beats)
    settings["engine"] = usable_engine(settings["engine"], bool(verilog))
    name, x, given = given_rows(design, data, rows, settings["seed"])
    with progress_bar(rows, "rows") as bar:
        found = compare(
            design,
            x,
            **given,
            **settings,
            verilog=verilog or None,
            cache=not no_cache,
            progress=bar.update,
        )
    result = found.result
    facts = {
        "engine": settings["engine"],
        "bit_exact": found.bit_exact,
        "rows": result.rows if result else found.elements // design.dim,
        **dict.fromkeys(("cycles", "latency_cycles", "beats_per_cycle", "saturated")),
        "mismatches": found.mismatches,
    }
    text = f"{design.headline}\n{'bit-exact' if found.bit_exact else 'NOT BIT-EXACT'}"
    if result:
        facts |= {key: getattr(result, key) for key, value in facts.items() if value is None}
        text += (
            f": {result.rows} rows of {name} in {result.cycles} cycles, latency "
            f"{result.latency_cycles}, {result.beats_per_cycle:.3f} beats a cycle ({result.engine})"
        )
    print_result(as_json, facts, text)
    if timeline and result:
        draw_timeline(result.handshakes, design.beats, timeline, design.headline)
    if not found.bit_exact:
        raise CheckError(f"RTL and model must agree: {found.summary}")


@commands.command()
@as_json
def engines(as_json):
    """The simulation engines, and how to install those that are not usable here."""
    lacks = {name: engine.missing() for name, engine in ENGINES.items()}
    text = "\n".join(f"{name:<10} {lack or 'usable'}" for name, lack in lacks.items())
    print_result(
        as_json, {"engines": {name: {"missing": lack} for name, lack in lacks.items()}}, text
    )
