"""Registers move into ECP5's blocks where they can, and nowhere else."""

import copy
import re
from dataclasses import replace
from importlib import util
from pathlib import Path

import numpy as np

from hwnorm import Fixed, verilog
from hwnorm.bitexact import assert_bit_exact
from hwnorm.design import CATALOGUE
from hwnorm.rows import corner_rows, random_rows
from hwnorm.synth import tools
from hwnorm.synth.netlist import build_netlist
from hwnorm.synth.packing import pack_registers
from hwnorm.synth.tools import yosys_arguments


def register(d, q, **settings):
    return {
        "type": "TRELLIS_FF",
        "parameters": {"CEMUX": "1 ", "CLKMUX": "CLK"} | settings,
        "port_directions": {"CLK": "input", "DI": "input", "LSR": "input", "Q": "output"},
        "connections": {"CLK": [2], "DI": [d], "LSR": ["0"], "Q": [q]},
    }


def netlist():
    """A product of two registered bits, registered; and a memory's bit likewise."""
    factors = {f"{side}{n}": ["0"] for side in "AB" for n in range(18)}
    multiplier = {
        "type": "MULT18X18D",
        "parameters": {},
        "port_directions": dict.fromkeys(factors, "input") | {"P0": "output", "P1": "output"},
        "connections": factors | {"A0": [20], "B0": [21], "P0": [30], "P1": [31]},
    }
    memory = {
        "type": "DP16KD",
        "parameters": {"REGMODE_B": "NOREG"},
        "port_directions": {"DOB0": "output", "CLKB": "input"},
        "connections": {"DOB0": [40], "CLKB": [2]},
    }
    ports = {"clk": [2], "a": [10], "b": [11], "y": [50], "z": [51]}
    return {
        "modules": {
            "top": {
                "attributes": {"top": "00000000000000000000000000000001"},
                "ports": {name: {"bits": bits} for name, bits in ports.items()},
                "cells": {
                    "mul": multiplier, "ram": memory, "fa": register(10, 20),
                    "fb": register(11, 21), "fy": register(30, 50), "fz": register(40, 51),
                },
            }
        }
    }  # fmt: skip


def cells(data):
    return data["modules"]["top"]["cells"]


def test_all_registers_are_taken_in():
    data = netlist()
    assert pack_registers(data) == {"inputs": 2, "outputs": 1, "memories": 1, "removed": 4}
    assert set(cells(data)) == {"mul", "ram"}
    mul, ram = cells(data)["mul"], cells(data)["ram"]
    assert (mul["connections"]["A0"], mul["connections"]["B0"]) == ([10], [11])
    assert mul["connections"]["P0"] == [50]
    assert mul["connections"]["CLK0"] == [2]
    for which in ("INPUTA", "INPUTB", "OUTPUT"):
        assert mul["parameters"][f"REG_{which}_CLK"] == "CLK0"
    assert ram["connections"]["DOB0"] == [51]
    assert ram["parameters"]["REGMODE_B"] == "OUTREG"


def test_a_product_that_is_read_elsewhere_stays():
    data = netlist()
    data["modules"]["top"]["ports"]["more"] = {"bits": [30]}
    before = copy.deepcopy(cells(data)["mul"])
    assert pack_registers(data)["outputs"] == 0
    assert cells(data)["mul"] == before


def test_a_register_with_other_readers_stays_as_well():
    data = netlist()
    data["modules"]["top"]["ports"]["more"] = {"bits": [20]}
    assert pack_registers(data) == {"inputs": 2, "outputs": 1, "memories": 1, "removed": 3}
    assert "fa" in cells(data)


def test_registers_with_enable_or_reset_stay():
    for change in ({"parameters": {"CEMUX": "CE"}}, {"connections": {"LSR": [60]}}):
        data = netlist()
        for name in ("fy", "fz"):
            for key, value in change.items():
                cells(data)[name][key] |= value
        assert pack_registers(data)["removed"] == 0


def test_a_factor_that_is_partly_registered_stays_outside():
    data = netlist()
    cells(data)["mul"]["connections"]["A1"] = [12]
    assert pack_registers(data)["inputs"] == 1
    assert cells(data)["mul"]["connections"]["A0"] == [20]


#: A multiplier block as the data sheet has it, of what packing uses: registers at both factors and
#: at the product, always enabled.
MULTIPLIER = """
module MULT18X18D({ports},
    input SIGNEDA, SIGNEDB, SOURCEA, SOURCEB, CLK0, CE0, RST0);
  parameter REG_INPUTA_CLK = "NONE", REG_INPUTB_CLK = "NONE", REG_OUTPUT_CLK = "NONE";
  parameter REG_INPUTA_CE = "CE0", REG_INPUTB_CE = "CE0", REG_OUTPUT_CE = "CE0";
  parameter REG_INPUTA_RST = "RST0", REG_INPUTB_RST = "RST0", REG_OUTPUT_RST = "RST0";
  wire [17:0] a = {{{a}}}, b = {{{b}}};
  reg [17:0] held_a = 0, held_b = 0;
  reg [35:0] held = 0;
  wire [17:0] x = REG_INPUTA_CLK == "NONE" ? a : held_a;
  wire [17:0] y = REG_INPUTB_CLK == "NONE" ? b : held_b;
  wire signed [36:0] p = $signed({{SIGNEDA & x[17], x}}) * $signed({{SIGNEDB & y[17], y}});
  always @(posedge CLK0) begin held_a <= a; held_b <= b; held <= p[35:0]; end
  assign {{{p}}} = REG_OUTPUT_CLK == "NONE" ? p[35:0] : held;
endmodule
"""


def words(letter, count):
    """The bits of a port of the block, which are ports of their own."""
    return ", ".join(f"{letter}{n}" for n in reversed(range(count)))


def models():
    """Yosys' models of the family's cells, and of a multiplier."""
    share = Path(util.find_spec("pyosys").origin).parent / "share" / "ecp5"
    text = (share / "cells_sim.v").read_text()
    text = re.sub(r'`include "(\S+)"', lambda found: (share / found[1]).read_text(), text)
    # Icarus 11 knows no $error outside of procedures.
    text = re.sub(r"^`include.*$|\$error\(.*?\);", "", text, flags=re.M)
    ports = ", ".join(f"input {words(x, 18)}" for x in "ABC") + f", output {words('P', 36)}"
    return text + MULTIPLIER.format(
        ports=ports, a=words("A", 18), b=words("B", 18), p=words("P", 36)
    )


def test_packed_cells_compute_what_they_should(tmp_path):
    """The cells of a design, packed, in a simulator; memories as logic: they have no model."""
    design = replace(CATALOGUE["tiny-64"], dim=16, gamma=Fixed.parse("s16/14"), target="ecp5",
                     period_ns=5.5)  # fmt: skip
    packed = []

    def finish(netlist):
        packed.append(pack_registers(netlist))

    script = ("synth_ecp5 -nobram -top norm", "setattr -unset src t:*")
    tool = tools.yosys()
    build_netlist(tool, tmp_path, verilog(design, "norm"), "norm", script, finish)
    assert min(packed[0]["inputs"], packed[0]["outputs"]) > 10
    commands = ("read_json netlist.json", "write_verilog -noattr cells.v")
    status, said = tool.run(tmp_path, *yosys_arguments(tool, commands))
    assert status == 0, said
    (tmp_path / "models.v").write_text(models())
    files = [tmp_path / "cells.v", tmp_path / "models.v"]
    x = np.concatenate([corner_rows(design), random_rows(design, 200)])
    gamma = np.linspace(design.gamma.lo, design.gamma.hi, 16).astype(int)
    assert_bit_exact(design, x, gamma, verilog=files, top="norm", engine="icarus", stall=0.3)
