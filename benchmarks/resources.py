"""Cells of the engines on ECP5 and iCE40, by Yosys (the wheel ``pyosys``).

    python benchmarks/resources.py [--json]

The comparison is MASE ``rms_norm_2d`` (DeepWok/mase, commit ae4660b1) with 8-bit data, by the same
Yosys 0.70 and ``synth_ecp5``: dim 768 with 4 lanes 2619 LUT4 and 39 MULT18, with 1 lane 1808 LUT4
and 24 MULT18.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import click

from hwnorm import RMSNorm
from hwnorm.design import CATALOGUE
from hwnorm.hdl import verilog

#: Design, Yosys command, and the cells that are counted.
ECP5 = ("synth_ecp5", ("LUT4", "CCU2C", "TRELLIS_FF", "MULT18X18D", "DP16KD", "TRELLIS_DPR16X4"))
ICE40 = ("synth_ice40 -dsp", ("SB_LUT4", "SB_CARRY", "SB_DFF", "SB_MAC16", "SB_RAM40_4K"))
S16 = {"dim": 768, "x": "s16/8", "y": "s16/10"}
CASES = {
    "rmsnorm 768, 4 lanes, s16, gamma": (RMSNorm(lanes=4, gamma="s16/14", **S16), ECP5),
    "rmsnorm 768, 4 lanes, s16": (RMSNorm(lanes=4, **S16), ECP5),
    "rmsnorm 768, 1 lane, s16, gamma": (RMSNorm(lanes=1, gamma="s16/14", **S16), ECP5),
    "rmsnorm 768, 1 lane, s16": (RMSNorm(lanes=1, **S16), ECP5),
    "edge-int8-768": (CATALOGUE["edge-int8-768"], ECP5),
    "ice40-log-256": (CATALOGUE["ice40-log-256"], ICE40),
}

# A failing pass ends the whole process, so each synthesis gets one of its own.
_SCRIPT = """
import sys
from pyosys import libyosys
design = libyosys.Design()
for command in (f"read_verilog {sys.argv[1]}", f"hierarchy -top {sys.argv[2]}", "proc",
                "opt_clean -purge", sys.argv[3], f"tee -q -o {sys.argv[4]} stat -json"):
    libyosys.run_pass(command, design)
"""


def synthesise(design, command):
    """The cells of a design by kind, after a Yosys synthesis command."""
    with tempfile.TemporaryDirectory() as folder:
        source, report = Path(folder, "top.v"), Path(folder, "stat.json")
        source.write_text(verilog(design, "top"), encoding="utf-8")
        subprocess.run(
            [sys.executable, "-c", _SCRIPT, source, "top", command, report],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        text = report.read_text(encoding="utf-8")
    cells = json.loads(text)["design"]["num_cells_by_type"]
    return {kind: count for kind, count in cells.items() if not kind.startswith("$")}


def count(cells, kind):
    """The cells of a kind; for iCE40's flip-flops, of all that begin like it."""
    pattern = re.compile(kind + (r"\w*" if kind == "SB_DFF" else ""))
    return sum(n for name, n in cells.items() if pattern.fullmatch(name))


def resources(name):
    """The counted cells of a case."""
    design, (command, kinds) = CASES[name]
    cells = synthesise(design, command)
    return {kind: count(cells, kind) for kind in kinds}


@click.command()
@click.option("--json", "as_json", is_flag=True)
def main(as_json):
    """Synthesise and print."""
    results = {}
    for name in CASES:
        results[name] = resources(name)
        if not as_json:
            click.echo(f"{name}: " + ", ".join(f"{n} {kind}" for kind, n in results[name].items()))
    if as_json:
        click.echo(json.dumps(results))


if __name__ == "__main__":
    main()
