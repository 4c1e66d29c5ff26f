"""Measure the calibration designs with Yosys and nextpnr, compare with the estimates, draw.

    python tools/calibrate.py measure [--family ecp5|ice40|gowin|xc7] [--seeds N]
    python tools/calibrate.py fit [--family ecp5|ice40|gowin|xc7]
    python tools/calibrate.py compare [--family ecp5|ice40|gowin|xc7] [--picture FILE]
    python tools/calibrate.py catalogue

``measure`` adds to ``tools/calibration.json`` what is not there yet, design by design: it can be
stopped and goes on where it was. ``fit`` prints the factors of ``hwnorm/targets.py``, fitted to
two thirds of the designs: `luts_of`, and `slack`. ``compare`` prints the errors of the estimates,
of all designs and of the third that was held out; ``catalogue`` those of the presets.
``tools/probes.py`` measures the delays that the schedules are made with. See docs/timing.md.
"""

import hashlib
import json
import sys
from dataclasses import asdict, replace
from math import sqrt
from pathlib import Path
from statistics import median

import click
import numpy as np
from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).resolve().parent))

from calibration_designs import DRAWN, placed, synthesised

from hwnorm.design import CATALOGUE
from hwnorm.estimate import estimate, longest_path, lut_amounts
from hwnorm.files import write_text
from hwnorm.hdl import verilog
from hwnorm.mapping import KINDS
from hwnorm.plots import draw_calibration
from hwnorm.synth import synthesise
from hwnorm.targets import TARGETS

DATA = Path(__file__).resolve().parent / "calibration.json"
CELLS = ("lut", "ff", "dsp", "bram")


def load():
    """The measurements so far: family to name to what was found."""
    return json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else {}


def save(data):
    """Write them, a line a design."""
    families = []
    for family, designs in data.items():
        lines = [f"  {json.dumps(name)}: {json.dumps(found)}" for name, found in designs.items()]
        families.append(f" {json.dumps(family)}: {{\n" + ",\n".join(lines) + "\n }")
    write_text(DATA, "{\n" + ",\n".join(families) + "\n}\n")


family_option = click.option(
    "--family", type=click.Choice(list(DRAWN)), default="ecp5", show_default=True
)


@click.group()
def main():
    """Measure, or compare with the estimates."""


@main.command()
@family_option
@click.option("--seeds", default=3, show_default=True)
@click.option("--only", multiple=True, metavar="NAME", help="Of a design; without, all.")
def measure(family, seeds, only):
    """Synthesise and route what is not measured yet, or has changed."""
    routed = placed(family)
    designs = [item for item in synthesised(family).items() if not only or item[0] in only]
    # Large and small ones in turn, so that a stopped run has some of each.
    turns = [item for n in range(4) for item in designs[n::4]]
    for name, design in tqdm(turns, disable=None):
        digest = hashlib.sha256(verilog(design, "top").encode()).hexdigest()[:16]
        known = load().get(family, {}).get(name, {})
        asked = seeds if name in routed else 0
        if known.get("verilog") == digest and len(known.get("fmax_mhz", ())) >= asked:
            continue
        found = synthesise(design, family, pnr=asked > 0, seeds=max(asked, 1), jobs=2)
        known = {"verilog": digest} | {kind: found.cells[kind] for kind in CELLS}
        if asked:
            known["fmax_mhz"] = [round(seed["fmax_mhz"], 1) for seed in found.seeds]
        data = load()
        data.setdefault(family, {})[name] = known
        save(data)


def measured(family):
    """The designs that are measured as they are now: name, design, cells and median clock."""
    data, routed = load().get(family, {}), placed(family)
    for name, design in synthesised(family).items():
        if name in data:
            clock = median(data[name]["fmax_mhz"]) if name in routed else None
            yield name, design, data[name] | {"fmax_mhz": clock}


def held_out(index):
    """Whether a design is kept from the fit; the same design at three periods is so once."""
    return (index + index // 3) % 3 == 2


def nonnegative(rows, wanted):
    """Factors of the columns, none negative, with the least relative squares."""
    rows = np.array(rows) / np.array(wanted)[:, None]
    left = [n for n in range(rows.shape[1]) if rows[:, n].any()]
    while True:
        found = np.linalg.lstsq(rows[:, left], np.ones(len(rows)), rcond=None)[0]
        if (found >= 0).all():
            factors = np.zeros(rows.shape[1])
            factors[left] = found
            return tuple(round(float(f), 3) for f in factors)
        # The one whose share of all is the most negative.
        left.pop(int(np.argmin(found * rows[:, left].mean(axis=0))))


@main.command()
@family_option
def fit(family):
    """Factors of the estimates that suit the measurements best."""
    target = TARGETS[family]
    kept = [item for n, item in enumerate(measured(family)) if not held_out(n)]
    amounts = [lut_amounts(design, target) for _, design, _ in kept]
    luts = nonnegative([[a[kind] for kind in KINDS] for a in amounts], [c["lut"] for *_, c in kept])
    pairs = tuple((kind, f) for kind, f in zip(KINDS, luts, strict=True) if f)
    click.echo(f"{len(kept)} designs: luts_of={pairs}")
    timed = [(design, cells) for _, design, cells in kept if cells["fmax_mhz"]]
    paths = [
        (1.0, longest_path(d, target)[0] + target.clock_ns, sqrt(c["lut"] / 1000)) for d, c in timed
    ]
    slack = nonnegative(paths, [1000 / c["fmax_mhz"] for _, c in timed])
    click.echo(f"{len(timed)} designs: slack={slack}")


@main.command()
@family_option
@click.option("--picture", metavar="FILE", help="Draw estimate against measurement.")
@click.option("--every", is_flag=True, help="Design by design.")
def compare(family, picture, every):
    """Errors of the estimates."""
    points = {"fmax_mhz": [], **{kind: [] for kind in CELLS}}
    for n, (name, design, cells) in enumerate(measured(family)):
        guess = asdict(estimate(design))
        for what, known in points.items():
            if cells[what] is not None:
                known.append((cells[what], guess[what], held_out(n)))
        if every:
            click.echo(f"{name:16}" + ", ".join(f"{k} {guess[k]:g} / {cells[k]}" for k in points))
    for what, known in points.items():
        _summarise(what, known)
        held = [point for point in known if point[2]]
        if held and what in ("fmax_mhz", "lut"):
            _summarise(f"{what}, held out", held)
    if picture:
        drawn = {what: points[what] for what in ("fmax_mhz", "lut") if points[what]}
        draw_calibration(drawn, picture, f"{len(points['lut'])} designs, {family}")


@main.command()
@click.option("--seeds", default=3, show_default=True)
@click.option("--only", multiple=True, metavar="NAME", help="Of a preset; without, all.")
def catalogue(seeds, only):
    """Measure the presets; prints a table for docs/timing.md, with the clock's median."""
    click.echo("| | fmax | | LUT | | FF | | multipliers | block RAMs |\n|" + "---|" * 9)
    for name, design in CATALOGUE.items():
        if only and name not in only:
            continue
        family = design.target if design.target != "generic" else "ecp5"
        design = replace(design, target=family)
        found = synthesise(design, family, pnr=True, seeds=seeds, jobs=2)
        guess = estimate(design)
        data = load()
        known = {kind: found.cells[kind] for kind in CELLS}
        known["fmax_mhz"] = [round(found.fmax_mhz, 1)]
        data.setdefault("catalogue", {})[name] = known
        save(data)
        cells = [f"`{name}`, {family} {found.device}"]
        for kind, real in {"fmax_mhz": found.fmax_mhz, **found.cells}.items():
            if kind in ("fmax_mhz", "lut", "ff"):
                rough = getattr(guess, kind)
                cells += [f"{rough:g} / {real:.5g}", f"{rough / real - 1:+.1%}"]
            elif kind in CELLS:
                cells.append(f"{getattr(guess, kind)} / {real}")
        click.echo("| " + " | ".join(cells) + " |")


def _summarise(name, known):
    errors = sorted(abs(guess / real - 1) for real, guess, _ in known if real)
    if errors:
        click.echo(
            f"{name} of {len(errors)} designs: median error {median(errors):.1%}, "
            f"90% within {errors[int(0.9 * (len(errors) - 1))]:.1%}, largest {errors[-1]:.1%}"
        )


if __name__ == "__main__":
    main()
