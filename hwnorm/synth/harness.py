"""The loopback: any design between two registers and three pins."""

#: Names in it.
TOP, INSTANCE = "hwnorm_loopback", "dut"


def harness(top, ports, clock):
    """Verilog of a top level with the pins ``clk``, ``si`` and ``so``.

    A design with wide streams has more ports than packages have pins, and the paths from its
    inputs would not be timed. Here every input comes out of a register of a shift chain, and
    every output goes into a register, from which a tree of exclusive ors with a register a level
    leads to the pin. Between two registers of its own there is at most one LUT, so it does not
    limit the clock.

    Parameters
    ----------
    top : str
        The design's module.
    ports : dict of str to (str, int)
        Port to direction (``input`` or ``output``) and width.
    clock : str
        The port that is the clock.

    Raises
    ------
    ValueError
        If there is no such clock, or a port is neither input nor output.
    """
    if clock not in ports:
        raise ValueError(f"clock must be a port of {top}, got {clock!r}")
    lines = [f"module {TOP}(clk, si, so);", "  input clk, si;", "  output so;"]
    wiring, widths = [f".{clock}(clk)"], {"input": 0, "output": 0}
    for name, (direction, width) in ports.items():
        if direction not in widths:
            raise ValueError(f"port {name} must be an input or an output, got {direction}")
        if name != clock:
            bus = "from_pin" if direction == "input" else "to_pin"
            wiring.append(f".{name}({bus}[{widths[direction]} +: {width}])")
            widths[direction] += width
    inputs, outputs = widths["input"], widths["output"]
    if not inputs or not outputs:
        raise ValueError(f"{top} must have inputs and outputs, got {inputs} and {outputs} bits")
    lines += [
        f"  reg [{inputs - 1}:0] from_pin;",
        f"  wire [{outputs - 1}:0] to_pin;",
        "  always @(posedge clk) from_pin <= {from_pin, si};",
        f"  {top} {INSTANCE}({', '.join(wiring)});",
        f"  reg [{outputs - 1}:0] fold0;",
        "  always @(posedge clk) fold0 <= to_pin;",
    ]
    level, width = 0, outputs
    while width > 1:
        narrow = (width + 3) // 4
        lines += [f"  reg [{narrow - 1}:0] fold{level + 1};", "  always @(posedge clk) begin"]
        for n in range(narrow):
            top_bit = min(4 * n + 3, width - 1)
            lines.append(f"    fold{level + 1}[{n}] <= ^fold{level}[{top_bit}:{4 * n}];")
        lines.append("  end")
        level, width = level + 1, narrow
    return "\n".join([*lines, f"  assign so = fold{level};", "endmodule", ""])
