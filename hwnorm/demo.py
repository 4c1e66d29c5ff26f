"""``hwnorm demo``: the whole way of one design, on the activations of a language model."""

import shutil
import subprocess
import tempfile
import time

import numpy as np

from hwnorm.design import CATALOGUE
from hwnorm.export import write_bundle
from hwnorm.measure import Errors
from hwnorm.model import evaluate
from hwnorm.rows import real_layers
from hwnorm.sim import simulate

PRESET = "smollm2"
SIMULATED_ROWS = 6


def run_demo(output, progress):
    """Run the tour.

    Parameters
    ----------
    output : str
        Folder for the Verilog bundle.
    progress : callable
        Called with 1 after each of four steps.

    Returns
    -------
    dict, str
        The figures, with ``passed``; and the text to print.
    """
    start = time.perf_counter()
    design = CATALOGUE[PRESET]
    layers = real_layers("smollm2")
    errors = Errors.joined([Errors.of(design, layer.x, layer.gamma) for layer in layers])
    report = errors.report()
    every = report.all
    peak = max(float(np.max(np.abs(layer.x))) for layer in layers)
    lines = [
        design.headline,
        "",
        f"1. Model against float64: {len(layers)} RMSNorm layers of SmolLM2-135M,",
        f"   {every.rows} rows, |x| up to {peak:.0f} (massive activations).",
        f"   max error {every.max_ulp:.3f} ulp (proven bound {every.bound_ulp:.3f}), "
        f"{every.misrounded:.2%} misrounded,",
        f"   SQNR {every.sqnr_db:.2f} dB where {design.y.spelling} allows "
        f"{every.ideal_sqnr_db:.2f} dB, {every.saturated} saturated.",
    ]
    progress(1)
    # Layer 12 is where the massive activation is born: its first row is all outlier.
    layer = layers[24]
    x, gamma = design.x.ints(layer.x), design.gamma.ints(layer.gamma)
    rows = x[:SIMULATED_ROWS]
    expected = evaluate(design, rows, gamma)
    full = simulate(design, rows, gamma)
    stalled = simulate(design, rows, gamma, stall=0.3)
    exact = bool((full.y == expected.y).all() and (stalled.y == expected.y).all())
    lines += [
        "",
        f"2. RTL against model: {len(rows)} rows of {layer.name} in Amaranth's simulator.",
        f"   {'bit-exact' if exact else 'NOT BIT-EXACT'}, with and without stalls; "
        f"{full.cycles} cycles =",
        f"   {len(rows)} rows x {design.beats} beats + latency {full.latency_cycles}.",
    ]
    progress(1)
    files = write_bundle(design, output, PRESET, rows, gamma)
    lines += ["", f"3. Verilog: {len(files)} files in {output}"]
    lines += [f"   {file}" for file in files]
    progress(1)
    bench = _run_bench(output)
    lines += ["", f"4. The test bench in Icarus Verilog: {bench}"]
    progress(1)
    seconds = time.perf_counter() - start
    passed = exact and every.max_ulp <= every.bound_ulp and not bench.startswith("FAIL")
    lines += ["", f"{'Passed' if passed else 'FAILED'} in {seconds:.1f} s."]
    data = {
        "passed": passed,
        "max_ulp": every.max_ulp,
        "bound_ulp": every.bound_ulp,
        "misrounded": every.misrounded,
        "sqnr_db": every.sqnr_db,
        "ideal_sqnr_db": every.ideal_sqnr_db,
        "bit_exact": exact,
        "cycles": full.cycles,
        "latency_cycles": full.latency_cycles,
        "files": files,
        "icarus": bench,
        "seconds": round(seconds, 2),
    }
    return data, "\n".join(lines)


def _run_bench(output):
    """The last line of the exported test bench, or why it was not run."""
    if not shutil.which("iverilog"):
        return "not run, since iverilog is not installed (apt-get install iverilog)"
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/tb.vvp"
        build = ["iverilog", "-g2005", "-o", program, f"{PRESET}_tb.v", f"../rtl/{PRESET}.v"]
        for command in (build, ["vvp", "-N", program]):
            done = subprocess.run(
                command, cwd=f"{output}/tb", capture_output=True, text=True, check=False
            )
            if done.returncode:
                return f"FAIL: {(done.stderr or done.stdout).strip().splitlines()[-1]}"
    return next(line for line in done.stdout.splitlines() if line.startswith("PASS"))
