"""Prove the properties of `properties.py` with Yosys and ABC, and print a table.

    python tools/prove.py [--fast] [--mutants] [WORD ...]

With words, only the properties whose name holds all of them; with --fast, those that take two
minutes together. With --mutants, each property is tried on a design that is broken on purpose and
must fail. Exits 1 if anything is not as it should be. See docs/formal.md.
"""

import re
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from amaranth.back import rtlil
from amaranth.hdl import Signal
from properties import PROPERTIES

#: Seconds after which a proof is given up.
PATIENCE = 300

# A failing pass ends the whole process, so each property gets one of its own. Undefined are only
# the bits that Yosys itself gives a register whose enable is low.
_SCRIPT = """
from pyosys import libyosys
design = libyosys.Design()
for command in ("read_rtlil top.il", "hierarchy -top top", "prep -flatten", "memory_map",
                "opt -full", "setundef -zero", "techmap", "opt -fast", "dffunmap", "aigmap",
                "opt_clean -purge", "write_aiger -zinit top.aig"):
    libyosys.run_pass(command, design)
"""


def abc():
    """The path of ABC, which the wheel pyosys brings.

    Raises
    ------
    FileNotFoundError
        If it is not installed.
    """
    spec = find_spec("pyosys")
    path = Path(spec.origin).parent / "yosys-abc" if spec else None
    if path is None or not path.exists():
        raise FileNotFoundError("proofs need the wheel pyosys with its yosys-abc, got none")
    return path


def write_aiger(prop, folder):
    """The monitor of a property and its device, as top.aig.

    Returns
    -------
    bool
        Whether Yosys' simplifications have left a constant zero, which is a proof by itself.
    """
    bench = prop.bench()
    bad = Signal(name="bad")
    # Through a register: ABC's pdr does not decide a network that is a constant.
    bench.m.d.sync += bad.eq(prop.monitor(bench))
    ports = [bench.clock.clk, *bench.inputs, bad]
    (folder / "top.il").write_text(rtlil.convert(bench.m, ports=ports), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"yosys must accept {prop.name}, got: {done.stdout[-300:].strip()}")
    lines = (folder / "top.aig").read_bytes().split(b"\n")
    # aig variables inputs latches outputs gates; a line a latch; a line an output
    latches, outputs = (int(number) for number in lines[0].split()[3:5])
    if outputs != 1:
        raise RuntimeError(f"{prop.name} must have one output, got {outputs}")
    return lines[1 + latches] == b"0"


def prove(prop, folder):
    """Ask ABC; returns what it found and the last cycle that it looked at.

    Returns
    -------
    (str, int or None)
        ``proved``, ``none`` (nothing found up to that cycle), ``found`` (a trace to it) or
        ``unknown`` (given up).
    """
    solver = abc()
    if write_aiger(prop, folder):
        return "proved", None
    how = "pdr" if prop.engine == "pdr" else f"bmc3 -F {prop.depth + 1}"
    done = subprocess.run(
        [solver, "-q", f"read_aiger top.aig; {how} -T {PATIENCE}"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout + done.stderr
    if found := re.search(r"asserted in frame (\d+)", said):
        return "found", int(found[1])
    if "Property proved" in said:
        return "proved", None
    if bounded := re.search(r"No output asserted in (\d+) frames", said):
        depth = int(bounded[1]) - 1
        return "none" if depth >= prop.depth else "unknown", depth
    return "unknown", None


def holds(prop):
    """Prove one property; returns whether it holds and the row of the table."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        found, depth = prove(prop, Path(folder))
    wanted = {"pdr": "proved", "bmc": "none", "cover": "found"}[prop.engine]
    seconds = time.perf_counter() - start
    reach = "all" if found == "proved" else "-" if depth is None else str(depth)
    return found, found == wanted, f"{prop.name:37} {prop.engine:6} {reach:>5} {seconds:7.1f}"


def fails(prop):
    """Whether a property notices that its design was broken, and the row of the table."""
    from mutate import patched, rewrite

    with patched(rewrite(*prop.mutant)):
        found, _, row = holds(prop)
    # A solver that gave up has noticed nothing.
    wanted = ("none", "proved") if prop.engine == "cover" else ("found",)
    return found, found in wanted, row


def main(words):
    """Prove, print a table; returns the exit status."""
    fast, mutants = "--fast" in words, "--mutants" in words
    words = [word for word in words if word not in ("--fast", "--mutants")]
    chosen = [
        prop
        for prop in PROPERTIES
        if (prop.fast or not fast) and all(word in prop.name for word in words)
    ]
    if not chosen:
        raise SystemExit(f"no property has a name that holds {' and '.join(words)}")
    print(f"{'property':37} {'engine':6} {'depth':>5} {'seconds':>7}")
    bad = 0
    for prop in chosen:
        found, good, row = fails(prop) if mutants else holds(prop)
        bad += not good
        verdict = ("NOTICED" if good else "MISSED") if mutants else "PASS" if good else "FAIL"
        print(row, verdict if good else f"{verdict} ({found})", flush=True)
    print(f"{len(chosen)} properties, {bad} not as they should be")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
