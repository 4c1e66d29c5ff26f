"""Icarus Verilog: the exported Verilog, four-state, so that unknown values are seen."""

import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from hwnorm.hdl.axi import lane_bits
from hwnorm.sim.beats import RowCollector, block_bytes, to_bytes
from hwnorm.sim.cache import BuildError, built, call
from hwnorm.sim.icarus_bench import bench
from hwnorm.sim.job import (
    HANG_SECONDS,
    HangError,
    Outcome,
    broke_down,
    changed,
    hangs,
    too_many,
    unknown,
    withdrawn,
    wrong_last,
)

#: Waves it can write.
WAVES = (".vcd", ".fst")


def missing():
    """What this engine lacks here, with the install line; None if nothing."""
    if shutil.which("iverilog"):
        return None
    return "iverilog is missing; install it with: apt-get install iverilog"


def run(job):
    """Simulate; see `hwnorm.sim.base.ENGINES`."""
    dut = job.dut

    def build(folder):
        include = [f"-I{dut.folder}"] if dut.folder else []
        command = [
            "iverilog",
            "-g2012",
            "-Wportbind",
            "-s",
            "hwnorm_bench",
            "-o",
            "sim.vvp",
            *include,
            "bench.v",
        ]
        try:
            text = call(folder, [*command, *dut.texts])
        except BuildError as error:
            _check_ports(dut, error.output)
            raise
        _check_ports(dut, text)
        return folder / "sim.vvp"

    version = subprocess.run(["iverilog", "-V"], capture_output=True, check=False).stdout[:60]
    sources = {"bench.v": bench(dut), **dut.texts}
    cache = job.cache and dut.whole
    with (
        built("icarus", version, sources, build, cache) as program,
        tempfile.TemporaryDirectory(prefix="hwnorm-icarus-") as folder,
    ):
        return _simulate(job, program.resolve(), Path(folder))


def _check_ports(dut, text):
    """Find in what the compiler says whether a user's module has other ports."""
    if not dut.files:
        return
    ports = dict(dut.ports)
    for name in re.findall(r"port ``(\w+)'' is not a port of dut", text):
        ports.pop(name, None)
    for name, bits in re.findall(rf"Port \d+ \((\w+)\) of {dut.top} expects (\d+) bits", text):
        ports[name] = (dut.ports[name][0], int(bits))
    dangling = rf"module {dut.top} with dangling input port \d+ \((\w+)\)"
    for name in re.findall(dangling, text):
        ports.setdefault(name, ("input", 0))
    dut.check_ports(ports)


def _simulate(job, program, folder):
    shapes = _write(job, folder)
    beats = sum(rows * dim for rows, dim in shapes) // job.dut.design.lanes
    limit = job.limit(beats)
    options = {
        "stim": folder / "stim.mem", "go": folder / "go.mem", "out": folder / "out.txt",
        "total": beats, "limit": limit, "trace": job.trace_cycles,
    }  # fmt: skip
    options |= {name: folder / f"{name}.mem" for name in job.loads}
    if job.waves:
        options["waves"] = job.waves.resolve()
    command = [
        "vvp",
        "-N",
        program,
        *(["-fst"] if job.waves and job.waves.suffix == ".fst" else []),
    ]
    command += [f"+{name}={value}" for name, value in options.items()]
    reader = _Reader(job, limit, shapes)
    (folder / "out.txt").touch()
    with (
        open(folder / "printed.txt", "w+b") as printed,
        open(folder / "out.txt", encoding="utf-8") as out,
    ):
        process = subprocess.Popen(
            command, cwd=job.dut.folder or folder, stdout=printed, stderr=printed
        )
        try:
            _follow(process, out, reader)
        finally:
            process.kill()
            process.wait()
        if reader.outcome is None:
            printed.seek(0)
            text = printed.read().decode("utf-8", "replace")
            reason = f"exit code {process.returncode}" if process.returncode else "$finish"
            raise broke_down(reason, reader.beats, text)
    _check_flags(reader.flags)
    return reader.outcome


def _follow(process, out, reader):
    """Read what the bench writes while it runs; a bench that stops writing is ended."""
    heard, rest = time.monotonic(), ""
    while reader.outcome is None:
        ended = process.poll() is not None
        text = out.read(1 << 20)
        if text:
            heard = time.monotonic()
            *lines, rest = (rest + text).split("\n")
            for line in lines:
                reader.take(line.split())
            reader.flush()
        elif ended:
            return
        elif time.monotonic() - heard > HANG_SECONDS:
            raise HangError(
                f"the simulator must finish a cycle in {HANG_SECONDS} s, got none after "
                f"{reader.beats} beats out"
            )
        else:
            time.sleep(0.01)


def _write(job, folder):
    """The files that the bench reads; returns the blocks' rows and elements of a row."""
    design, shapes = job.dut.design, []
    for name, values in job.loads.items():
        fmt = design.parameters[name]
        (folder / f"{name}.mem").write_text(_words(to_bytes(values[None], fmt, design.lanes)))
    with open(folder / "stim.mem", "w", encoding="ascii") as file:
        for block in job.blocks:
            shapes.append(block[0].shape)
            file.write(_words(block_bytes(design, block)))
    go = job.stalls.source + 2 * job.stalls.sink.astype(int)
    (folder / "go.mem").write_text("\n".join(format(n, "02b") for n in go) + "\n")
    return shapes


def _words(beats):
    return "".join(f"{bytes(row[::-1]).hex()}\n" for row in beats)


def _check_flags(flags):
    for name, bit in zip(("saturated", "framing_error"), flags, strict=True):
        if bit not in "01":
            raise unknown(f"{name} = {bit}", "the last")


def _lasts(shapes, lanes):
    """Beat by beat, whether it is a row's last."""
    for rows, dim in shapes:
        for _ in range(rows):
            yield from (n == dim - lanes for n in range(0, dim, lanes))


class _Reader:
    """Understands the lines that the bench writes."""

    def __init__(self, job, limit, shapes):
        self._design, self._limit = job.dut.design, limit
        self._collector = RowCollector(job.dut.design, job.give)
        for shape in shapes:
            self._collector.expect(shape)
        self._lasts = _lasts(shapes, job.dut.design.lanes)
        self._digits = lane_bits(self._design.y) // 4 * self._design.lanes
        self._hex, self._handshakes = [], []
        self.beats, self.flags, self.outcome = 0, (), None

    def take(self, words):
        """One line, as words."""
        kind, *rest = words
        if kind == "d":
            last, data = rest
            self.beats += 1
            if (last == "1") != next(self._lasts):
                raise wrong_last(self._design, self.beats - 1)
            self._hex.append(data)
        elif kind == "h":
            self._handshakes.append([bit == "1" for bit in rest[0]])
        elif kind == "x":
            raise unknown(" ".join(rest[:-1]), rest[-1])
        elif kind in ("withdrawn", "changed", "many"):
            rules = {"withdrawn": withdrawn, "changed": changed, "many": too_many}
            raise rules[kind](int(rest[0]))
        elif kind == "hangs":
            raise hangs(self._limit, *(int(n) for n in rest))
        elif kind == "end":
            self.flush()
            self.flags = tuple(rest[3:])
            flags = (bit == "1" for bit in self.flags)
            handshakes = np.array(self._handshakes, dtype=bool).reshape(-1, 4)
            self.outcome = Outcome(*(int(n) for n in rest[:3]), *flags, handshakes)

    def flush(self):
        """Pass the beats so far on."""
        data = np.frombuffer(bytes.fromhex("".join(self._hex)), dtype=np.uint8)
        self._hex.clear()
        self._collector.take(data.reshape(-1, self._digits // 2)[:, ::-1].tobytes())
