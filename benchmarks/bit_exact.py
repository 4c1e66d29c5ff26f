"""Model against RTL on every preset, and the exported Verilog against the model.

    python benchmarks/bit_exact.py [--rows 64] [--preset NAME ...]

For every preset: corner rows and real rows, at three clock budgets, with random stalls on both
sides, in Amaranth's simulator; then the Verilog of the preset in Icarus Verilog.
"""

import dataclasses
import subprocess
import tempfile
import time
from pathlib import Path

import click
import numpy as np

from hwnorm.design import CATALOGUE
from hwnorm.export import write_bundle
from hwnorm.hdl.verilog import top_name
from hwnorm.model import evaluate
from hwnorm.rows import corner_rows, random_rows, real_rows
from hwnorm.sim import simulate

PERIODS_NS = (4.0, 8.0, 25.0)


def parameters(design, seed=0):
    """Seeded parameters of both signs."""
    rng = np.random.default_rng(seed)
    return {
        name: rng.integers(fmt.lo, fmt.hi + 1, design.dim)
        for name, fmt in design.parameters.items()
    }


def run_icarus(design, name, x, given):
    """The closing line of the exported test bench, or why it failed."""
    top = top_name(name)
    with tempfile.TemporaryDirectory() as folder:
        write_bundle(design, folder, name, x, **given)
        program = f"{folder}/tb.vvp"
        build = ["iverilog", "-g2005", "-o", program, f"{top}_tb.v", f"../rtl/{top}.v"]
        for command in (build, ["vvp", "-N", program]):
            done = subprocess.run(
                command, cwd=Path(folder, "tb"), capture_output=True, text=True, check=False
            )
            if done.returncode:
                return "FAIL " + (done.stderr + done.stdout)[-300:]
    return done.stdout.strip().splitlines()[-1]


@click.command()
@click.option("--rows", default=64, show_default=True, help="Real rows.")
@click.option("--preset", multiple=True, help="Only these.")
def main(rows, preset):
    """Run and print a line a preset; exit code 1 if anything differs."""
    failed = False
    for name in preset or CATALOGUE:
        design = CATALOGUE[name]
        given = parameters(design)
        x = np.concatenate([corner_rows(design), real_rows(design, rows), random_rows(design, 8)])
        start = time.perf_counter()
        outcomes = []
        for period in PERIODS_NS:
            timed = dataclasses.replace(design, period_ns=period)
            expected = evaluate(timed, x, **given, check=True)
            result = simulate(timed, x, **given, stall=0.3, seed=1)
            same = bool((result.y == expected.y).all()) and not result.framing_error
            same = same and result.saturated == (expected.saturated > 0)
            failed |= not same
            outcomes.append(f"{period:g} ns {'exact' if same else 'DIFFERS'} ({result.cycles})")
        bench = run_icarus(design, name, x, given)
        failed |= not bench.startswith("PASS")
        click.echo(
            f"{name}: {len(x)} rows; {', '.join(outcomes)}; Icarus: {bench}; "
            f"{time.perf_counter() - start:.0f} s"
        )
    raise SystemExit(int(failed))


if __name__ == "__main__":
    main()
