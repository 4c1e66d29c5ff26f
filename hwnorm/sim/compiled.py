"""Simulators that are compiled to a shared library: building, keeping, driving them."""

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from importlib import resources
from pathlib import Path

import numpy as np

from hwnorm.hdl.axi import lane_bits
from hwnorm.sim.stalls import PERIOD_CYCLES

#: Statuses of the harness, in its order.
_STATUS = (
    "",
    "the design must give {expected} beats in {limit} cycles, got {got}",
    "valid must stay until a beat is taken, got it withdrawn in cycle {cycle}",
    "a stalled beat must not change, got another payload in cycle {cycle}",
    "last must mark every {row}th beat, got it wrong at beat {got}",
    "the design must give {expected} beats, got one too many in cycle {cycle}",
)

_CXX = ("-std=c++20", "-fcoroutines", "-O2", "-fPIC", "-shared")


class _Result(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_uint64) for name in ("first_in", "first_out", "last_out")),
        ("beats_out", ctypes.c_uint64),
        ("cycles", ctypes.c_uint64),
        *((name, ctypes.c_uint32) for name in ("status", "saturated", "framing_error")),
    ]


def missing_compiler():
    """How to get a C++ compiler, or None if there is one."""
    if shutil.which("g++"):
        return None
    return "g++ is missing; install it with: apt-get install g++"


def cache_folder():
    """Where compiled simulators are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "hwnorm"


def ports_header(design, spell):
    """The part of dut.h that names the ports.

    Parameters
    ----------
    design : hwnorm.Norm
    spell : callable
        A port's Verilog name to the C++ expression for it.
    """
    fixed = {
        "ARESETN": "aresetn", "S_TDATA": "s_axis_tdata", "S_TVALID": "s_axis_tvalid",
        "S_TREADY": "s_axis_tready", "S_TLAST": "s_axis_tlast", "M_TDATA": "m_axis_tdata",
        "M_TVALID": "m_axis_tvalid", "M_TREADY": "m_axis_tready", "M_TLAST": "m_axis_tlast",
        "SATURATED": "saturated", "FRAMING_ERROR": "framing_error",
    }  # fmt: skip
    lines = [f"#define {macro} {spell(port)}" for macro, port in fixed.items()]
    lines.append(
        "static void drive_load(Dut &dut, int which, const uint8_t *data, size_t bytes,\n"
        "                       bool valid, bool last) {\n  uint8_t v = valid, l = last;"
    )
    for n, name in enumerate(design.parameters if design.store == "ram" else ()):
        bus = f"s_axis_{name}"
        lines.append(
            f"  if (which == {n}) {{\n    put({spell(bus + '_tdata')}, data, bytes);\n"
            f"    put({spell(bus + '_tvalid')}, &v, 1);\n"
            f"    put({spell(bus + '_tlast')}, &l, 1);\n  }}"
        )
    lines.append("  (void)dut, (void)which, (void)data, (void)bytes, (void)v, (void)l;\n}")
    return "\n".join(lines) + "\n"


def library(name, key, sources, build):
    """The compiled simulator of a design, from the cache or newly built.

    Parameters
    ----------
    name : str
        The engine's.
    key : str
        What else the result depends on: versions.
    sources : dict of str to str
        File name to text; ``dut.h`` among them.
    build : callable
        From a folder with the sources to the further arguments of the compiler.

    Returns
    -------
    ctypes.CDLL

    Raises
    ------
    ValueError
        If it cannot be compiled; the message ends with the compiler's last line and names the
        folder, which is kept.
    """
    harness = resources.files("hwnorm.sim").joinpath("harness.cpp").read_text(encoding="utf-8")
    digest = hashlib.sha256(repr((name, key, _CXX, harness, sorted(sources.items()))).encode())
    path = cache_folder() / f"{name}-{digest.hexdigest()[:32]}.so"
    if path.exists():
        return ctypes.CDLL(str(path))
    folder = Path(tempfile.mkdtemp(prefix=f"hwnorm-{name}-"))
    for file, text in {**sources, "harness.cpp": harness}.items():
        (folder / file).write_text(text, encoding="utf-8")
    extra = build(folder)
    call(folder, ["g++", *_CXX, "-I.", "harness.cpp", *extra, "-o", "sim.so"])
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Under a name of its own first: another process may build the same one right now.
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        os.close(handle)
        shutil.copyfile(folder / "sim.so", temporary)
        os.replace(temporary, path)
    except OSError:
        # A cache that is full or read-only only costs time.
        path = folder / "sim.so"
    loaded = ctypes.CDLL(str(path))
    shutil.rmtree(folder)
    return loaded


def call(folder, command):
    """Run a build step in a folder."""
    done = subprocess.run(
        [str(part) for part in command], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        text = (done.stderr or done.stdout).strip().splitlines()
        raise ValueError(
            f"{Path(command[0]).name} must compile the design in {folder}, got: "
            f"{text[-1] if text else done.returncode}"
        )


def to_bytes(rows, fmt, lanes):
    """Rows as the bytes of beats, lanes in whole bytes: uint8, (beats, bytes)."""
    size = lane_bits(fmt) // 8
    wide = np.ascontiguousarray(rows, dtype="<i4").view(np.uint8).reshape(-1, 4)
    return np.ascontiguousarray(wide[:, :size]).reshape(-1, lanes * size)


def from_bytes(data, fmt, dim):
    """The bytes of beats as rows of signed integers."""
    size = lane_bits(fmt) // 8
    wide = np.zeros((data.size // size, 4), dtype=np.uint8)
    # Into the upper bytes, so that an arithmetic shift brings the sign along.
    wide[:, 4 - size :] = data.reshape(-1, size)
    return (wide.view("<i4")[:, 0] >> 32 - 8 * size).astype(np.int64).reshape(-1, dim)


def drive(lib, design, x, loads, stalls, limit, progress):
    """Run rows through a compiled design; see `hwnorm.sim.base.ENGINES`."""
    lib.bench_new.restype = ctypes.c_void_p
    bench = ctypes.c_void_p(lib.bench_new())
    u64 = ctypes.c_uint64
    try:
        for n, name in enumerate(design.parameters):
            if name in loads:
                beats = to_bytes(loads[name][None], design.parameters[name], design.lanes)
                lib.bench_load(bench, n, _pointer(beats), u64(len(beats)), u64(beats.shape[1]))
        data = to_bytes(x, design.x, design.lanes)
        out = np.zeros((len(data), lane_bits(design.y) // 8 * design.lanes), dtype=np.uint8)
        source, sink = (np.ascontiguousarray(s, np.uint8) for s in (stalls.source, stalls.sink))
        result = _Result()
        lib.bench_run(
            bench, _pointer(data), u64(len(data)), u64(data.shape[1]), _pointer(out),
            u64(len(out)), u64(out.shape[1]), u64(design.beats), _pointer(source),
            _pointer(sink), u64(PERIOD_CYCLES), u64(limit), ctypes.byref(result),
        )  # fmt: skip
    finally:
        lib.bench_delete(bench)
    if result.status:
        text = _STATUS[result.status].format(
            expected=len(out), limit=limit, got=result.beats_out, cycle=result.cycles,
            row=design.beats,
        )  # fmt: skip
        raise TimeoutError(text) if result.status == 1 else ValueError(text)
    if progress:
        progress(len(x))
    y = from_bytes(out, design.y, design.dim)
    times = (result.first_in, result.first_out, result.last_out)
    return y, times, bool(result.saturated), bool(result.framing_error)


def _pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)
