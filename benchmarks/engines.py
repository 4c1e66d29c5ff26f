"""The simulation engines side by side: the same bits and cycles, and how fast each is.

python benchmarks/engines.py exact [--rows 256] [--preset NAME ...]
python benchmarks/engines.py speed [--preset NAME ...]
"""

import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import click
import numpy as np

from hwnorm import simulate
from hwnorm.bitexact import compare
from hwnorm.design import CATALOGUE
from hwnorm.export import write_bundle
from hwnorm.hdl.verilog import top_name
from hwnorm.rows import corner_rows, endless_rows, random_rows, real_rows
from hwnorm.sim import ENGINES

#: Cycles that take each engine some seconds; of the fast ones, on wide designs a quarter of it. The
#: first rows are corner rows, in which little moves: there must be many more than those.
CYCLES = {"pysim": 16_000, "icarus": 24_000, "cxxrtl": 12_000_000, "verilator": 16_000_000}


def parameters(design):
    """Seeded parameters of both signs."""
    rng = np.random.default_rng(0)
    return {
        name: rng.integers(fmt.lo, fmt.hi + 1, design.dim)
        for name, fmt in design.parameters.items()
    }


@click.group()
def main():
    """Compare the engines."""


@main.command()
@click.option("--rows", default=256, show_default=True, help="Real rows, besides the corners.")
@click.option("--preset", multiple=True, help="Only these.")
def exact(rows, preset):
    """All engines on the same rows, with stalls; exit code 1 unless all is the same."""
    failed = False
    for name in preset or CATALOGUE:
        design = CATALOGUE[name]
        x = np.concatenate([corner_rows(design), real_rows(design, rows)])
        cycles, parts = set(), []
        for engine in ENGINES:
            start = time.perf_counter()
            given = parameters(design)
            found = compare(design, x, **given, engine=engine, stall=0.2, seed=3)
            failed |= not found.bit_exact
            cycles.add(found.result.cycles if found.result else None)
            verdict = "exact" if found.bit_exact else f"DIFFERS: {found.summary}"
            parts.append(f"{engine} {verdict} ({time.perf_counter() - start:.0f} s)")
        failed |= len(cycles) > 1
        click.echo(
            f"{name}: {len(x)} rows, {' or '.join(map(str, cycles))} cycles; {', '.join(parts)}"
        )
    raise SystemExit(int(failed))


def rate(design, engine, cycles, stall):
    """The seconds until a simulation is under way, and its cycles and rows a second from then on.

    All of Python is included. The first is what two rows take once the compiled simulator is in
    the cache: most of it is Amaranth's elaboration.
    """

    def seconds(blocks):
        start = time.perf_counter()
        result = simulate(design, iter(blocks), engine=engine, stall=stall, sink=lambda y: None)
        return time.perf_counter() - start, result.cycles

    short, few = min(seconds(list(endless_rows(design, 2))) for _ in range(3))
    rows = int(cycles * (1 - stall) ** 2) // design.beats
    long, many = seconds(list(endless_rows(design, rows)))
    return short, (many - few) / (long - short), (rows - 2) / (long - short)


def build_seconds(design, engine):
    """The seconds of a simulation of one row that compiles everything anew."""
    start = time.perf_counter()
    simulate(design, random_rows(design, 1), engine=engine, cache=False)
    return time.perf_counter() - start


def cocotb_rate(design, name, rows, optimise):
    """Cycles a second of the bundle's cocotb test in Verilator, its building left out.

    As the bundle has it, or compiled as `hwnorm.sim` does it.
    """
    with tempfile.TemporaryDirectory() as folder:
        write_bundle(design, folder, name, random_rows(design, rows))
        script = Path(folder, "tb", f"run_{top_name(name)}.py")
        if optimise:
            script.write_text(script.read_text().replace("-O0", "-O3"))
        subprocess.run(
            [sys.executable, script.name, "verilator"],
            cwd=script.parent, check=True, capture_output=True,
        )  # fmt: skip
        results = ElementTree.parse(Path(folder, "tb", "build", "verilator", "results.xml"))
    cases = list(results.iter("testcase"))
    spent = results.iterfind(".//property[@name='sim_time_duration']")
    cycles = sum(float(found.get("value")) for found in spent) / design.period_ns
    return cycles / sum(float(case.get("time")) for case in cases)


@main.command()
@click.option("--preset", multiple=True, default=("tiny-64", "smollm2"), show_default=True)
def speed(preset):
    """Cycles a second, with pysim as 1; without and with stalls; and cocotb's."""
    for name in preset:
        design = replace(CATALOGUE[name], lanes=8 if name == "smollm2" else CATALOGUE[name].lanes)
        click.echo(f"{name}: {design.headline}")
        base = {}
        for engine, cycles in CYCLES.items():
            cold = build_seconds(design, engine)
            cycles = cycles // 4 if design.dim > 64 and cycles > 1_000_000 else cycles
            for stall in (0.0, 0.3):
                start, speed, rows = rate(design, engine, cycles, stall)
                base.setdefault(stall, speed)
                click.echo(
                    f"  {engine:<10} stall {stall:g}: {speed:12,.0f} cycles/s "
                    f"= {speed / base[stall]:7,.1f} x pysim, {rows:9,.1f} rows/s; "
                    f"start {start:.1f} s"
                    + (f", with everything compiled anew {cold:.1f} s" if not stall else "")
                )
        _, fast, _ = rate(design, "verilator", CYCLES["verilator"] // 4, 0.3)
        for how, optimise in (("as in the bundle", False), ("optimised", True)):
            slow = cocotb_rate(design, name, 200 if design.dim <= 64 else 40, optimise)
            click.echo(
                f"  cocotb + Verilator, {how}: {slow:,.0f} cycles/s; "
                f"verilator is {fast / slow:,.1f} x"
            )


if __name__ == "__main__":
    main()
