"""The parts of the test benches for designs with ``control = "axilite"``."""

from hwnorm.hdl.axi import lane_bits
from hwnorm.hdl.axilite import ADDRESS_BITS, CHANNELS, ID, registers

_TASKS = """
  task axil_wait;
    input which;
    integer tries;
    begin
      @(posedge aclk);
      tries = 0;
      while (tries < 100 && !(which ? s_axil_bvalid || s_axil_rvalid
                                    : s_axil_awready || s_axil_arready)) begin
        @(posedge aclk);
        tries = tries + 1;
      end
      if (tries == 100) begin
        wrong = wrong + 1;
        $display("the register block does not answer");
      end
    end
  endtask

  task axil_write;
    input [{top_bit}:0] address;
    input [31:0] value;
    begin
      s_axil_awaddr <= address;
      s_axil_wdata <= value;
      s_axil_wstrb <= 4'hf;
      s_axil_awvalid <= 1;
      s_axil_wvalid <= 1;
      s_axil_bready <= 1;
      axil_wait(0);
      s_axil_awvalid <= 0;
      s_axil_wvalid <= 0;
      axil_wait(1);
      s_axil_bready <= 0;
      if (s_axil_bresp !== 0) begin
        wrong = wrong + 1;
        $display("write to register %h: response %b", address, s_axil_bresp);
      end
    end
  endtask

  task axil_check;
    input [{top_bit}:0] address;
    input [31:0] expected;
    begin
      s_axil_araddr <= address;
      s_axil_arvalid <= 1;
      s_axil_rready <= 1;
      axil_wait(0);
      s_axil_arvalid <= 0;
      axil_wait(1);
      s_axil_rready <= 0;
      if (s_axil_rresp !== 0 || s_axil_rdata !== expected) begin
        wrong = wrong + 1;
        $display("register %h: got %h, expected %h", address, s_axil_rdata, expected);
      end
    end
  endtask
"""


def address(register):
    """A register's offset as a Verilog literal."""
    return f"{ADDRESS_BITS}'h{register.offset:02x}"


def verilog_parts(design, loads, saturated):
    """What a test bench in Verilog has more, by the places of its template.

    Parameters
    ----------
    design : hwnorm.Norm
    loads : dict of str to tuple
        Parameter to its format and values.
    saturated : bool
        Whether an output of the rows is limited.

    Returns
    -------
    dict of str to str
        Text for ``signals``, ``ports``, ``memories``, ``read``, ``drive``, ``tasks``, ``final``.
    """
    at = {register.name: address(register) for register in registers(design)}
    signals = "".join(
        f"  {'wire' if driven else 'reg '} [{bits - 1}:0] s_axil_{name}{' = 0' * (not driven)};\n"
        for name, bits, driven in CHANNELS
    )
    ports = "".join(f"    .s_axil_{name}(s_axil_{name}),\n" for name, _, _ in CHANNELS)
    drive = f"    axil_check({at['ID']}, 32'h{ID:08x});\n"
    drive += f"    axil_check({at['DIM']}, {design.dim});\n"
    for name, (fmt, _) in loads.items():
        step = lane_bits(fmt)
        drive += (
            f"    for (n = 0; n < {design.dim}; n = n + 1)\n"
            f"      axil_write({at[f'{name.upper()}_DATA']}, "
            f"{name}[n / {design.lanes}][(n % {design.lanes}) * {step} +: {step}]);\n"
            f"    axil_check({at[f'{name.upper()}_INDEX']}, 0);\n"
        )
    if loads:
        drive += "    repeat (8) @(posedge aclk);\n"
    final = (
        f"    axil_check({at['FLAGS']}, {2 * saturated});\n"
        f"    axil_write({at['FLAGS']}, 3);\n"
        f"    axil_check({at['FLAGS']}, 0);\n"
    )
    return {
        "signals": signals,
        "ports": ports,
        "memories": "".join(
            f"  reg [{lane_bits(fmt) * design.lanes - 1}:0] {name} [0:BEATS-1];\n"
            for name, (fmt, _) in loads.items()
        ),
        "read": "".join(f'    $readmemh("{name}.mem", {name});\n' for name in loads),
        "drive": drive,
        "tasks": _TASKS.format(top_bit=ADDRESS_BITS - 1),
        "final": final,
    }


COCOTB = """\
    control = AxiLiteMaster(
        AxiLiteBus.from_prefix(dut, "s_axil"), dut.$clock, dut.$reset, reset_active_level=$active
    )
    assert await control.read_dword(REGISTERS["DIM"]) == BEATS * LANES
    for name, bits in PARAMETERS.items():
        (row,) = read(name)
        for beat in row:
            for lane in range(LANES):
                element = beat >> lane * bits & (1 << bits) - 1
                await control.write_dword(REGISTERS[f"{name.upper()}_DATA"], element)
        assert await control.read_dword(REGISTERS[f"{name.upper()}_INDEX"]) == 0
    await ClockCycles(dut.$clock, 8)  # what was written last is in use now
"""


def cocotb_constants(design):
    """What a cocotb test must know of the registers, as lines of Python."""
    offsets = ", ".join(f'"{r.name}": 0x{r.offset:02x}' for r in registers(design))
    loaded = design.parameters if design.store == "ram" else {}
    bits = ", ".join(f'"{name}": {lane_bits(fmt)}' for name, fmt in loaded.items())
    return (
        f"LANES = {design.lanes}\n"
        f"PARAMETERS = {{{bits}}}  # loaded first: name and bits of an element in its file\n"
        f"REGISTERS = {{{offsets}}}\n"
    )


def header(design, top):
    """The register map as a C header."""
    upper = top.upper()
    lines = "".join(
        f"#define {upper}_{r.name} 0x{r.offset:02x}u /* {r.access}: {r.what} */\n"
        for r in registers(design)
    )
    return (
        f"/* Registers of {top}: byte offsets, 32 bits each. */\n"
        f"#ifndef {upper}_REGS_H\n#define {upper}_REGS_H\n\n{lines}\n#endif\n"
    )
