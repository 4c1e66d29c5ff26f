"""A self-checking test bench in Verilog-2005, with its stimuli and expected rows."""

import numpy as np

from hwnorm.export.bench_axilite import verilog_parts
from hwnorm.hdl.axi import lane_bits
from hwnorm.hdl.style import Style
from hwnorm.model import evaluate, parameters_of

_TEMPLATE = """\
// Self-checking test bench of {top}: feeds stim.mem, compares with gold.mem.
//
//   iverilog -g2005 -o tb.vvp {top}_tb.v ../rtl/{top}.v && vvp -N tb.vvp
//
// Plusargs: +stall=PERCENT (default 30) random gaps on both sides, +seed=N, +vcd=FILE.
// Prints PASS or FAIL. On failure it ends with $stop, which `vvp -N` turns into exit code 1.
`timescale 1ns/1ps

module {top}_tb;
  localparam ROWS = {rows};
  localparam BEATS = {beats};
  localparam TOTAL = ROWS * BEATS;
  localparam LATENCY = {latency};

  reg aclk = 0;
  reg aresetn = 0;
  reg clear = 0;
{enable}  wire framing_error, saturated;

  reg  [{s_high}:0] s_axis_tdata = 0;
  reg  s_axis_tvalid = 0, s_axis_tlast = 0;
  wire s_axis_tready{tready};
  wire [{m_high}:0] m_axis_tdata;
  wire m_axis_tvalid, m_axis_tlast;
  reg  m_axis_tready = 0;
{load_signals}
  {top} dut (
    .{clock}(aclk), .{reset}({level}aresetn),{ce}
    .s_axis_tdata(s_axis_tdata), .s_axis_tvalid(s_axis_tvalid),
    {s_ready}.s_axis_tlast(s_axis_tlast),
    .m_axis_tdata(m_axis_tdata), .m_axis_tvalid(m_axis_tvalid),
    {m_ready}.m_axis_tlast(m_axis_tlast),
{load_ports}    .clear(clear), .framing_error(framing_error), .saturated(saturated)
  );

  reg [{s_high}:0] stim [0:TOTAL-1];
  reg [{m_high}:0] gold [0:TOTAL-1];
{load_memories}
  integer stall, seed, cycle, sent, got, wrong, started, first, first_out, limit;
  reg [{m_high}:0] held;
  reg held_last, held_valid;
  reg [8*256-1:0] vcd;

  always #{half} aclk = ~aclk;

  // The source holds a beat until it is taken; the sink takes beats at random.
  task next_beat;
    begin
      if (sent < TOTAL && $unsigned($random(seed)) % 100 >= stall) begin
        s_axis_tvalid <= 1;
        s_axis_tdata <= stim[sent];
        s_axis_tlast <= (sent % BEATS) == BEATS - 1;
        sent = sent + 1;
      end else begin
        s_axis_tvalid <= 0;
      end
    end
  endtask

  task complain;
    input [8*24-1:0] what;
    begin
      wrong = wrong + 1;
      if (wrong <= 10)
        $display("row %0d beat %0d, cycle %0d: %0s, got %h, expected %h", got / BEATS,
                 got % BEATS, cycle, what, m_axis_tdata, got < TOTAL ? gold[got] : held);
    end
  endtask

  always @(posedge aclk) if (started{and_ce}) begin
    cycle = cycle + 1;
    if (!s_axis_tvalid || s_axis_tready) next_beat;
    if (first < 0 && s_axis_tvalid && s_axis_tready) first = cycle;
    m_axis_tready <= {take};
    if (m_axis_tvalid !== 1'b0 && m_axis_tvalid !== 1'b1) complain("valid is unknown");
    if (held_valid && (!m_axis_tvalid || m_axis_tdata !== held || m_axis_tlast !== held_last))
      complain("a stalled beat changed");
    held = m_axis_tdata;
    held_last = m_axis_tlast;
    held_valid = m_axis_tvalid && !m_axis_tready;
    if (m_axis_tvalid && m_axis_tready) begin
      if (got >= TOTAL) complain("a beat too many");
      else begin
        if (m_axis_tdata !== gold[got]) complain("data differs");
        if (m_axis_tlast !== ((got % BEATS) == BEATS - 1)) complain("last differs");
      end
      if (got == 0) first_out = cycle;
      got = got + 1;
      if (got == TOTAL) $display("%0d beats in %0d cycles", TOTAL, cycle - first + 1);
    end
  end

{load_tasks}  integer n;
  initial begin
    stall = 30;
    seed = 1;
    cycle = 0; sent = 0; got = 0; wrong = 0; started = 0; held_valid = 0;
    first = -1; first_out = -1;
    if ($value$plusargs("stall=%d", n)) stall = n;
    if ($value$plusargs("seed=%d", n)) seed = n;
    if ($value$plusargs("vcd=%s", vcd)) begin
      $dumpfile(vcd);
      $dumpvars(0, {top}_tb);
    end
    if (stall < 0 || stall > 99) begin
      $display("FAIL: +stall must lie in 0..99");
      $stop;
    end
    limit = 1000 + 4 * (TOTAL + LATENCY) * (100 / (100 - stall)) * (100 / (100 - stall) + 1);
    $readmemh("stim.mem", stim);
    $readmemh("gold.mem", gold);
{load_read}    repeat (4) @(posedge aclk);
    aresetn <= 1;
    @(posedge aclk);
{load_drive}    started = 1;
    n = 0;
    // Some cycles more, so that a beat too many is seen.
    while (n < 64 && cycle < limit) begin
      @(posedge aclk);
      if (got >= TOTAL) n = n + 1;
    end
    if (got != TOTAL) begin
      wrong = wrong + 1;
      $display("%0d of %0d beats came in %0d cycles", got, TOTAL, cycle);
    end
    // Without stalls the first beat comes exactly when it is promised.
    if (stall == 0 && first_out - first != LATENCY) begin
      wrong = wrong + 1;
      $display("latency is %0d cycles, expected %0d", first_out - first, LATENCY);
    end
    if (framing_error !== 1'b0) begin
      wrong = wrong + 1;
      $display("framing_error is set");
    end
    if (saturated !== 1'b{saturated}) begin
      wrong = wrong + 1;
      $display("saturated is %b, expected {saturated}", saturated);
    end
{load_final}    if (wrong != 0) begin
      $display("FAIL: %0d errors", wrong);
      $stop;
    end else begin
      $display("PASS: %0d rows of %0d elements", ROWS, {dim});
      $finish;
    end
  end
endmodule
"""


def testbench(design, top, x, gamma=None, beta=None, style=None):
    """The test bench of a design's Verilog.

    Parameters
    ----------
    design : hwnorm.Norm
    top : str
        Name of the Verilog module.
    x : numpy.ndarray of int, (rows, dim)
        Stimuli.
    gamma, beta : numpy.ndarray of int or None, (dim,)
        Loaded through their streams first, if the design stores in RAM; with the rows, if it
        streams them: then also (rows, dim).
    style : hwnorm.hdl.style.Style or None
        Of the Verilog.

    Returns
    -------
    dict of str to str
        File name to text: ``<top>_tb.v``, ``stim.mem``, ``gold.mem`` and one ``.mem`` a
        parameter.
    """
    style = style or Style()
    expected = evaluate(design, x, gamma, beta)
    parameters = parameters_of(design, gamma=gamma, beta=beta)
    loads = {name: (fmt, parameters[name]) for name, fmt in design.loaded.items()}
    saturated = expected.saturated > 0
    part = (
        stream_parts(design, loads)
        if design.control == "none"
        else verilog_parts(design, loads, saturated)
    )
    for key, value in step_parts(design).items():
        part[key] += value
    text = _TEMPLATE.format(
        top=top,
        clock=style.clock,
        reset=style.reset,
        level="" if style.reset_low else "!",
        rows=len(x),
        beats=design.beats,
        dim=design.dim,
        latency=design.latency,
        half=f"{design.period_ns / 2:g}",
        s_high=lane_bits(design.x) * design.lanes - 1,
        m_high=lane_bits(design.y) * design.lanes - 1,
        saturated=int(saturated),
        **_variant(design),
        **{f"load_{key}": value for key, value in part.items()},
    )
    files = {
        f"{top}_tb.v": text,
        "stim.mem": mem_text(x, design.x, design.lanes),
        "gold.mem": mem_text(expected.y, design.y, design.lanes),
    }
    return (
        files
        | {
            f"{name}.mem": mem_text(values[None], fmt, design.lanes)
            for name, (fmt, values) in loads.items()
        }
        | {
            f"{name}.mem": mem_text(np.broadcast_to(parameters[name], x.shape), fmt, design.lanes)
            for name, fmt in design.streamed.items()
        }
    )


def _variant(design):
    """What streams without ready and a clock enable change, by the places of the template."""
    enable = (
        "  reg ce = 1;\n  integer ce_seed = 7;\n"
        "  // Cycles in which the clock is not enabled do not count.\n"
        "  always @(posedge aclk)\n"
        "    if (started) ce <= $unsigned($random(ce_seed)) % 100 >= stall;\n\n"
    )
    return {
        "enable": enable * design.clock_enable,
        "ce": " .ce(ce)," * design.clock_enable,
        "and_ce": " && ce" * design.clock_enable,
        "tready": "" if design.ready else " = 1",
        "s_ready": ".s_axis_tready(s_axis_tready), " * design.ready,
        "m_ready": ".m_axis_tready(m_axis_tready), " * design.ready,
        "take": "$unsigned($random(seed)) % 100 >= stall" if design.ready else "1",
    }


def step_parts(design):
    """What feeds streamed parameters along with the rows, by the places of the template."""
    part = dict.fromkeys(("signals", "ports", "memories", "read", "drive", "tasks"), "")
    running = "started && ce" if design.clock_enable else "started"
    for n, (name, fmt) in enumerate(design.streamed.items(), 1):
        high, bus = lane_bits(fmt) * design.lanes - 1, f"s_axis_{name}"
        part["signals"] += (
            f"  reg  [{high}:0] {bus}_tdata = 0;\n"
            f"  reg  {bus}_tvalid = 0, {bus}_tlast = 0;\n  wire {bus}_tready;\n"
        )
        part["ports"] += _connections(bus, design.ready)
        part["memories"] += f"  reg [{high}:0] {name} [0:TOTAL-1];\n"
        part["read"] += f'    $readmemh("{name}.mem", {name});\n'
        part["drive"] += f"    {name}_seed = seed + {n};\n"
        part["tasks"] += (
            f"  // {name} comes with every row, with gaps of its own.\n"
            f"  integer {name}_sent = 0, {name}_seed = 0;\n"
            f"  always @(posedge aclk)\n"
            f"    if ({running} && (!{bus}_tvalid || {bus}_tready)) begin\n"
            f"      if ({name}_sent < TOTAL && "
            f"$unsigned($random({name}_seed)) % 100 >= stall) begin\n"
            f"        {bus}_tvalid <= 1;\n        {bus}_tdata <= {name}[{name}_sent];\n"
            f"        {bus}_tlast <= ({name}_sent % BEATS) == BEATS - 1;\n"
            f"        {name}_sent = {name}_sent + 1;\n"
            f"      end else {bus}_tvalid <= 0;\n    end\n\n"
        )
    return part


def _connections(bus, ready):
    fields = ("tdata", "tvalid", *(["tready"] if ready else []), "tlast")
    return "".join(f"    .{bus}_{field}({bus}_{field}),\n" for field in fields)


def stream_parts(design, loads):
    """What loads parameters through their streams, by the places of the template."""
    part = dict.fromkeys(("signals", "ports", "memories", "read", "drive", "tasks", "final"), "")
    for name, (fmt, _) in loads.items():
        high = lane_bits(fmt) * design.lanes - 1
        bus = f"s_axis_{name}"
        part["signals"] += (
            f"  reg  [{high}:0] {bus}_tdata = 0;\n"
            f"  reg  {bus}_tvalid = 0, {bus}_tlast = 0;\n"
            f"  wire {bus}_tready{'' if design.ready else ' = 1'};\n"
        )
        part["ports"] += _connections(bus, design.ready)
        part["memories"] += f"  reg [{high}:0] {name} [0:BEATS-1];\n"
        part["read"] += f'    $readmemh("{name}.mem", {name});\n'
        part["drive"] += (
            f"    for (n = 0; n < BEATS; n = n + 1) begin\n"
            f"      {bus}_tvalid <= 1;\n      {bus}_tdata <= {name}[n];\n"
            f"      {bus}_tlast <= n == BEATS - 1;\n      @(posedge aclk);\n"
            f"      while (!{bus}_tready) @(posedge aclk);\n    end\n"
            f"    {bus}_tvalid <= 0;\n    repeat (8) @(posedge aclk);\n"
        )
    return part


def mem_text(rows, fmt, lanes):
    """Rows as ``$readmemh`` words, a beat a line, lanes sign extended to whole bytes."""
    digits = lane_bits(fmt) // 4
    mask = (1 << lane_bits(fmt)) - 1
    lines = []
    for row in rows:
        words = [format(int(v) & mask, f"0{digits}x") for v in row]
        lines += [
            "".join(reversed(words[at : at + lanes])) + "\n" for at in range(0, len(words), lanes)
        ]
    return "".join(lines)
