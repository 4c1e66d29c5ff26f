"""Small circuits that time one thing each: levels of logic, adders, block RAM, multipliers.

Every input of a probe comes out of a register of the loopback that `hwnorm.synth` puts around it,
and every output goes into one: the period that nextpnr reaches is `clock_ns` of the family and
what lies between.
"""

import numpy as np

from hwnorm.synth import synthesise_verilog

#: Of each probe, how often each delay of `hwnorm.targets.Target` is in its period.
DELAYS = ("clock_ns", "lut_ns", "mux_ns", "adder_ns", "carry_ns", "memory_ns", "read_ns",
          "multiplier_ns")  # fmt: skip


def probes():
    """Name to Verilog and the delays in its longest path."""
    found = {}
    for levels in (1, 2, 3, 4):
        text = _module(f"input [{4**levels - 1}:0] a, output y", "assign y = ^a;")
        found[f"parity of {4**levels}"] = text, {"clock_ns": 1, "lut_ns": levels}
    for stages in (1, 2, 3, 4, 5):
        ports = f"input [31:0] a, input [{stages - 1}:0] n, output [31:0] y"
        text = _module(ports, "assign y = a << n;")
        found[f"shift of {stages} stages"] = text, {"clock_ns": 1, "mux_ns": stages}
    for bits in (8, 16, 24, 32, 48):
        text = _module(f"input [{bits - 1}:0] a, b, output [{bits - 1}:0] y", "assign y = a + b;")
        found[f"adder of {bits} bits"] = text, {"clock_ns": 1, "adder_ns": 1, "carry_ns": bits}
    # The address also leaves: its register stays outside the block, which has one of its own.
    memory = (
        "reg [15:0] words [0:255]; reg [7:0] near; initial $readmemh(\"words.hex\", words);"
    )
    return found


def _module(ports, body):
    return f"module top(input clk, {ports});\n  {body}\nendmodule\n"
