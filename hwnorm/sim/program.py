"""Simulators that are compiled to a program: building and driving them."""

import os
import select
import shutil
import signal
import subprocess
import tempfile
from contextlib import contextmanager
from importlib import resources

import numpy as np

from hwnorm.hdl.axi import lane_bits
from hwnorm.sim.beats import RowCollector, block_bytes, to_bytes
from hwnorm.sim.cache import built, call
from hwnorm.sim.job import (
    HANG_SECONDS,
    HangError,
    Outcome,
    broke_down,
    changed,
    hangs,
    too_many,
    warm_cycles,
    withdrawn,
    wrong_last,
)
from hwnorm.sim.stalls import PERIOD_CYCLES, SHIFT_CYCLES

#: Of g++; -fcoroutines for Verilator's headers.
CXX_FLAGS = ("-std=c++20", "-fcoroutines", "-O3")


def missing_compiler():
    """How to get a C++ compiler, or None if there is one."""
    if shutil.which("g++"):
        return None
    return "g++ is missing; install it with: apt-get install g++"


def ports_header(dut, spell, absent):
    """The part of dut.h that names the ports.

    Parameters
    ----------
    dut : hwnorm.sim.dut.Dut
    spell : callable
        A port's Verilog name to the C++ expression for it.
    absent : str
        The declaration of a variable, which is 1, in place of ports that the design lacks.
    """
    names = [name for name in dut.ports if not name.startswith("s_axis_") or name.count("_") == 2]
    macro = {name: name.replace("_axis", "").upper() for name in names}
    lines = [f"#define {macro[name]} {spell(name)}" for name in names]
    for name in ("ce", "s_axis_tready", "m_axis_tready"):
        if name not in names:
            macro[name] = name.replace("_axis", "").upper()
            variable = f"absent_{name}"
            lines += [f"static {absent.format(variable)};", f"#define {macro[name]} {variable}"]
    lines.append(
        "static void drive_load(Dut &dut, int which, const uint8_t *data, size_t bytes,\n"
        "                       bool valid, bool last) {\n  uint8_t v = valid, l = last;"
    )
    for n, name in enumerate(_loadable(dut.design)):
        bus = f"s_axis_{name}"
        lines.append(
            f"  if (which == {n}) {{\n    put({spell(bus + '_tdata')}, data, bytes);\n"
            f"    put({spell(bus + '_tvalid')}, &v, 1);\n"
            f"    put({spell(bus + '_tlast')}, &l, 1);\n  }}"
        )
    lines.append("  (void)dut, (void)which, (void)data, (void)bytes, (void)v, (void)l;\n}")
    lines.append("static bool load_ready(Dut &dut, int which) {\n  uint8_t bit = 1;")
    for n, name in enumerate(dut.design.streamed):
        lines.append(f"  if (which == {n}) get({spell(f's_axis_{name}_tready')}, &bit, 1);")
    lines.append("  (void)dut, (void)which;\n  return bit & 1;\n}")
    return "\n".join(lines) + "\n"


def _loadable(design):
    """The parameters that have a stream."""
    return list(design.loaded | design.streamed)


@contextmanager
def program(name, key, sources, build, cache):
    """The compiled simulator; see `hwnorm.sim.cache.built`.

    Parameters
    ----------
    build : callable
        From a folder with the sources, ``dut.h`` among them, to further arguments of g++.
    """
    harness = resources.files("hwnorm.sim").joinpath("harness.cpp").read_text(encoding="utf-8")

    def compile_all(folder):
        extra = build(folder)
        call(folder, ["g++", *CXX_FLAGS, "-I.", "harness.cpp", *extra, "-o", "sim"])
        return folder / "sim"

    sources = {**sources, "harness.cpp": harness}
    with built(name, (key, CXX_FLAGS), sources, compile_all, cache) as path:
        yield path


def drive(job, path):
    """Run a job in a compiled simulator; returns its `Outcome`."""
    command = [path] if job.waves is None else [path, job.waves.resolve()]
    pipe = subprocess.PIPE
    with (
        tempfile.TemporaryFile() as printed,
        subprocess.Popen(
            command, bufsize=0, cwd=job.dut.folder, stdin=pipe, stdout=pipe, stderr=printed
        ) as process,
    ):
        try:
            return _Session(job, process, printed).run()
        finally:
            process.kill()


class _Session:
    """The talk with a running simulator, in the frames that harness.cpp describes."""

    def __init__(self, job, process, printed):
        self._job, self._process, self._printed = job, process, printed
        self._collector = RowCollector(job.dut.design, job.give)
        self._beat_bytes = lane_bits(job.dut.design.y) // 8 * job.dut.design.lanes
        self._beats_fed = self._beats_out = 0

    def run(self):
        job, collector = self._job, self._collector
        self._begin()
        blocks = iter(job.blocks)
        while True:
            kind, data = self._frame()
            if kind == "m":
                self._feed(next(blocks, None))
            elif kind == "d":
                self._beats_out += len(data) // self._beat_bytes
                collector.take(data)
            else:
                return self._end(data)

    def _begin(self):
        design, loads = self._job.dut.design, self._job.loads
        data = to_bytes(np.zeros((1, design.dim)), design.x, design.lanes)
        self._send_numbers(
            len(loads), PERIOD_CYCLES, design.beats, data.shape[1], self._beat_bytes,
            self._job.trace_cycles, warm_cycles(design), len(design.streamed),
            design.clock_enable, SHIFT_CYCLES,
        )  # fmt: skip
        for n, name in enumerate(_loadable(design)):
            if name in loads:
                beats = to_bytes(loads[name][None], design.parameters[name], design.lanes)
                self._send_numbers(n, *beats.shape)
                self._send(beats.tobytes())
        for fmt in design.streamed.values():
            self._send_numbers(lane_bits(fmt) // 8 * design.lanes)
        for side in (self._job.stalls.source, self._job.stalls.sink):
            self._send(side.astype(np.uint8).tobytes())

    def _feed(self, block):
        design = self._job.dut.design
        if block is None:
            return self._send_numbers(0, 0)
        beats = block_bytes(design, block)
        self._collector.expect(block[0].shape)
        self._beats_fed += len(beats)
        self._send_numbers(len(beats), self._job.limit(self._beats_fed))
        return self._send(beats.tobytes())

    def _send_numbers(self, *numbers):
        self._send(np.array(numbers, dtype=np.uint64).tobytes())

    def _send(self, data):
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._process.stdin.fileno(), view) :]
        except OSError:
            raise self._broken() from None

    def _frame(self):
        kind, size = np.frombuffer(self._receive(16), dtype=np.uint64)
        return chr(kind), self._receive(int(size))

    def _receive(self, size):
        parts, fd = [], self._process.stdout.fileno()
        while size:
            if not select.select([fd], [], [], HANG_SECONDS)[0]:
                raise HangError(
                    f"the simulator must finish a cycle in {HANG_SECONDS} s, got none "
                    f"after {self._beats_out} beats out"
                )
            part = os.read(fd, min(size, 1 << 20))
            if not part:
                raise self._broken()
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _broken(self):
        code = self._process.wait()
        return self._told(
            f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        )

    def _told(self, reason):
        self._printed.seek(0)
        text = self._printed.read().decode("utf-8", "replace")
        return broke_down(reason, self._beats_out, text)

    def _end(self, data):
        numbers = [int(n) for n in np.frombuffer(data[:72], dtype=np.uint64)]
        status, cycles, first_in, first_out, last_out, beats_in, beats_out, saturated, framing = (
            numbers
        )
        design = self._job.dut.design
        if status:
            raise (
                lambda: hangs(self._job.limit(self._beats_fed), beats_in, beats_out),
                lambda: withdrawn(cycles - 1),
                lambda: changed(cycles - 1),
                lambda: wrong_last(design, beats_out - 1),
                lambda: too_many(cycles - 1),
                lambda: self._told("$finish"),
            )[status - 1]()
        bits = np.frombuffer(data[72:], dtype=np.uint8)[:, None] >> np.arange(4) & 1
        return Outcome(
            first_in, first_out, last_out, bool(saturated), bool(framing), bits.astype(bool)
        )
