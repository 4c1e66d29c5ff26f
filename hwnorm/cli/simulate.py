"""Commands that run the hardware: sim, engines."""

import click
import numpy as np

from hwnorm.cli.base import (
    CheckError,
    as_json,
    bench_of,
    commands,
    data_option,
    design_argument,
    layers_of,
    print_result,
    progress_bar,
    seed_option,
)
from hwnorm.design import load
from hwnorm.model import evaluate
from hwnorm.sim import ENGINES, PATTERNS, simulate


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
    name, x, given = bench_of(design, layers_of(design, data, None, seed)[0], rows)
    expected = evaluate(design, x, **given)
    with progress_bar(len(x), "rows") as bar:
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
    print_result(
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
    print_result(
        as_json, {"engines": {name: {"missing": lack} for name, lack in lacks.items()}}, text
    )
