"""Time small circuits with nextpnr: the delays that schedules are made with.

    python tools/probes.py measure [--family ecp5|ice40] [--seeds N]
    python tools/probes.py fit [--family ecp5|ice40]

Every input of a probe comes out of a register of the loopback that `hwnorm.synth` puts around it,
and every output goes into one. So the period that nextpnr reaches is `clock_ns` of the family and
what lies between. ``measure`` writes it to ``tools/probes.json``. ``fit`` prints what a level of
logic, a stage of a shifter, an adder of no bits and a bit more of it take, beside the figures in
``hwnorm/targets.py``. nextpnr times no block and no wide multiplexer of Gowin's: it is not there.
"""

import json
from pathlib import Path
from statistics import median

import click
import numpy as np

from hwnorm.files import write_text
from hwnorm.synth import synthesise_verilog
from hwnorm.targets import TARGETS

DATA = Path(__file__).resolve().parent / "probes.json"
DELAYS = ("clock_ns", "lut_ns", "mux_ns", "adder_ns", "carry_ns")


def probes():
    """Name to Verilog, and how often each of the `DELAYS` is in its longest path."""
    found = {}
    for levels in (2, 3, 4):
        found[f"parity of {levels} levels"] = (
            _module(f"input [{4**levels - 1}:0] a, output y", "assign y = ^a;"),
            (1, levels, 0, 0, 0),
        )
    for stages in (2, 3, 4, 5):
        ports = f"input [31:0] a, input [{stages - 1}:0] n, output [31:0] y"
        text = _module(ports, "assign y = a << n;")
        found[f"shifter of {stages} stages"] = text, (1, 0, stages, 0, 0)
    for bits in (8, 16, 24, 32, 48, 64):
        ports = f"input [{bits - 1}:0] a, b, output [{bits - 1}:0] y"
        found[f"adder of {bits} bits"] = _module(ports, "assign y = a + b;"), (1, 0, 0, 1, bits)
    return found


def _module(ports, body):
    return f"module top(input clk, {ports});\n  {body}\nendmodule\n"


family_option = click.option("--family", type=click.Choice(["ecp5", "ice40"]), default="ecp5")


@click.group()
def main():
    """Measure delays, or compare them with those in use."""


@main.command()
@family_option
@click.option("--seeds", default=5, show_default=True)
def measure(family, seeds):
    """Place and route the probes."""
    data = json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else {}
    data[family] = {}
    for name, (text, _) in probes().items():
        result = synthesise_verilog(text, "top", family, pnr=True, seeds=seeds, jobs=2)
        data[family][name] = round(median(1000 / run["fmax_mhz"] for run in result.seeds), 2)
    write_text(DATA, json.dumps(data, indent=1) + "\n")


@main.command()
@family_option
def fit(family):
    """Print the delays that suit the periods best, by least squares."""
    data = json.loads(DATA.read_text(encoding="utf-8"))[family]
    rows = np.array([probes()[name][1] for name in data], float)
    fitted = np.linalg.lstsq(rows, np.array(list(data.values())), rcond=None)[0]
    for name, value in zip(DELAYS, fitted, strict=True):
        click.echo(f"{name:10}{value:7.3f} ns, in use {getattr(TARGETS[family], name)}")
    click.echo(f"{'probe':24}{'measured':>9}{'in use':>9}")
    for (name, period), row in zip(data.items(), rows, strict=True):
        used = sum(n * getattr(TARGETS[family], d) for n, d in zip(row, DELAYS, strict=True))
        click.echo(f"{name:24}{period:9.2f}{used:9.2f}")


if __name__ == "__main__":
    main()
