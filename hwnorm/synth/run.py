"""From a design to its cells and its clock: all steps, each from the cache where it can be."""

import base64
import tempfile
from functools import partial
from pathlib import Path
from statistics import median

from hwnorm.hdl.verilog import verilog
from hwnorm.synth import tools
from hwnorm.synth.advice import advice
from hwnorm.synth.cache import cached
from hwnorm.synth.harness import TOP, harness
from hwnorm.synth.names import PARTS, part_of
from hwnorm.synth.netlist import build_netlist, cells_by_part, ports_of, raw_cells
from hwnorm.synth.place import TooLargeError, options_of
from hwnorm.synth.result import SynthResult
from hwnorm.synth.runs import Runs
from hwnorm.synth.targets import find_device, find_target


def synthesise(design, target, device=None, pnr=False, seeds=1, period_ns=None, **settings):
    """Cells of a design on a family, and with `pnr` the clock that nextpnr reaches.

    Parameters
    ----------
    design : hwnorm.Norm
    target : str
        ``ecp5``, ``ice40``, ``xc7`` or ``gowin``.
    device : str or None
        One of the family's; None: its first. If it is given, the design must fit it.
    pnr : bool
        Whether to place and route, with the design between the registers of a loopback.
    seeds : int
        How many runs of nextpnr, with the seeds 1, 2, 3 ...
    period_ns : float or None
        What nextpnr aims at, and what `SynthResult.meets` compares with. None: the device's.
    settings
        ``bitstream`` (bool), ``jobs`` (int, runs of nextpnr at a time), ``cache`` (bool) and
        ``progress`` (called with 1 after each of the `steps`).

    Returns
    -------
    SynthResult

    Raises
    ------
    ValueError
        If a name is unknown, a tool is missing, a tool refuses, or the design does not fit:
        with one line that says by how much, and which change of the design helps most.
    """
    # What needs no synthesis is asked first.
    _checked(target, device, pnr, seeds, period_ns, settings.get("bitstream", False))
    text = verilog(design, "top")
    return synthesise_verilog(
        text, "top", target, device, pnr, seeds, period_ns, clock="aclk", design=design, **settings
    )


def synthesise_verilog(
    text, top, target, device=None, pnr=False, seeds=1, period_ns=None, *, clock="clk",
    design=None, bitstream=False, jobs=1, cache=True, progress=None,
):  # fmt: skip
    """Likewise of any Verilog; parts and flows' wires are known of a `design`'s only.

    Parameters
    ----------
    text : str
        All modules.
    top : str
        The module.
    clock : str
        Its clock's port.

    Raises
    ------
    ValueError
        See `synthesise`.
    """
    family, device_name, part = _checked(target, device, pnr, seeds, period_ns, bitstream)
    tick = progress or (lambda steps: None)
    yosys = tools.yosys()
    used = [yosys.name]
    place_tool = pack_tool = None
    if pnr or bitstream:
        place_tool = tools.nextpnr(family.pnr)
        pack_tool = tools.packer(family.packer, family.pnr) if bitstream else None
        used += [tool.name for tool in (place_tool, pack_tool) if tool]
    question = (text, top, family.script(part, top), yosys.name)
    known = design is not None
    found = cached(
        ("cells", known, question), partial(_cells, yosys, known, question, family), cache
    )
    tick(1)
    parts = {}
    if found["parts"]:
        parts = {name: family.counted(found["parts"].get(name, {})) for name in PARTS}
    has = {what: getattr(part, what) for what in ("lut", "ff", "dsp", "bram")}
    result = {
        "target": target,
        "device": device_name,
        "tool": ", ".join(used),
        "cells": family.counted(found["raw"]),
        "parts": parts,
        "raw_cells": found["raw"],
        "needs": family.needs(found["raw"]),
        "has": has,
        "period_ns": period_ns,
    }
    plain = SynthResult(**result)
    if not plain.fits and (device or place_tool):
        raise _too_large(plain, design)
    if not place_tool:
        return plain
    runs = Runs(
        f"{text}\n{harness(top, found['ports'], clock)}", family.script(part, TOP, pads=True),
        design, target, part, options_of(part, period_ns), yosys, place_tool, pack_tool, cache,
    )  # fmt: skip
    try:
        done = runs.of(list(range(1, seeds + 1)), jobs, tick)
    except TooLargeError as error:
        raise _too_large(plain, design, error) from None
    untimed = tuple(words for kind, words in family.untimed.items() if result["cells"][kind])
    return SynthResult(**result, untimed=untimed, **_summary(done))


def steps(pnr, seeds):
    """How often `progress` is called."""
    return 1 + (seeds if pnr else 0)


def _checked(target, device, pnr, seeds, period_ns, bitstream):
    """Family, device's name, device; what can be known to be wrong is."""
    family = find_target(target)
    name, part = find_device(target, device)
    if pnr and not family.pnr:
        raise ValueError(f"pnr must be off for {target}, which has cells only, got it on")
    if bitstream and not family.packer:
        raise ValueError(f"bitstream must be for ecp5 or ice40, got target {target}")
    if isinstance(seeds, bool) or not isinstance(seeds, int) or seeds < 1:
        raise ValueError(f"seeds must be an integer of at least 1, got {seeds!r}")
    if period_ns is not None and not 0.1 <= period_ns <= 10000:
        raise ValueError(f"period must be 0.1 to 10000 ns, got {period_ns:g}")
    return family, name, part


def _cells(yosys, known, question, family):
    """Synthesis of the design by itself."""
    text, top, script, _ = question
    with tempfile.TemporaryDirectory(prefix="hwnorm-synth-") as folder:
        module = build_netlist(yosys, Path(folder), text, top, script, family.finish)
    parts = cells_by_part(module, part_of) if known else {}
    return {"raw": raw_cells(module), "parts": parts, "ports": ports_of(module)}


def _summary(runs):
    """The fields of a result that all runs together give."""
    order = sorted(runs, key=lambda run: run["fmax_mhz"])
    middle, best = order[(len(order) - 1) // 2], order[-1]
    halfway = median(run["fmax_mhz"] for run in runs)
    return {
        "seeds": tuple({"seed": run["seed"], "fmax_mhz": run["fmax_mhz"]} for run in runs),
        "fmax_mhz": halfway,
        "fmax_median_mhz": halfway,
        "fmax_best_mhz": best["fmax_mhz"],
        "critical_path": tuple(middle["path"]),
        "limit": middle["limit"],
        "limit_op": middle["limit_op"],
        "utilisation": middle["utilisation"],
        "bitstream": base64.b64decode(best["bits"]) if best["bits"] else None,
    }


def _too_large(result, design, refused=None):
    """The error of a design that does not fit, with what would help most."""
    if result.lacking:
        what = max(result.lacking, key=lambda w: result.needs[w] / max(result.has[w], 1))
        name, need, has = what.upper(), result.needs[what], result.has[what]
    else:
        name, need, has = refused.what, refused.need, refused.available
        what = next((k for k in ("dsp", "ram", "ff") if k in name.lower()), "lut")
        what = {"ram": "bram"}.get(what, what)
    more = f", {need / has - 1:.0%} too many" if has else ""
    text = f"design must fit {result.target} {result.device}, got {need} of {has} {name}{more}"
    helps = advice(design, what, has / need) if design is not None else None
    return ValueError(f"{text}; {helps}" if helps else text)
