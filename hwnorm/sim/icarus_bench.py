"""The bench that runs a design in Icarus Verilog, on files that stream."""

import re

from hwnorm.sim.job import warm_cycles
from hwnorm.sim.stalls import PERIOD_CYCLES, SHIFT_CYCLES, shift_of

_BENCH = """\
`timescale 1ns/1ps
module hwnorm_bench;
  reg aclk = 0, aresetn = 0, clear = 0{ce};
  reg [{s}:0] s_axis_tdata = 0;
  reg s_axis_tvalid = 0, s_axis_tlast = 0, m_axis_tready = 0;
  wire s_axis_tready{tready};
  wire m_axis_tvalid, m_axis_tlast, framing_error, saturated;
  wire [{m}:0] m_axis_tdata;
{signals}
  {top} dut (
{ports}  );
  reg [1:0] go [0:{period}-1];
  reg [8*4096-1:0] path;
  reg [{word}:0] word;
  reg [{streams}:0] started, taken;
  reg [{m}:0] held;
  reg held_last, stalled, failed;
  reg [63:0] limit;
  integer total, trace, cycle, offered, sent, got, first_in, first_out, last_out, after;
  integer n, k, stim, file{edge};
  reg part;

  task reset;
    begin
      aresetn = 0;
      repeat (4) begin #{half} aclk = 1; #{half} aclk = 0; end
      aresetn = 1;
    end
  endtask

  // The parameters that are given; half of a row of each, if `part` is set.
  task load;
    begin
{loads}    end
  endtask
{pause}
  // A line of the output: what is wrong, and in which cycle.
  task fail(input [8*9-1:0] what);
    begin
      $fdisplay(file, "%0s %0d", what, cycle);
      failed = 1;
    end
  endtask

  initial begin
    if (!$value$plusargs("total=%d", total) || !$value$plusargs("limit=%d", limit)
        || !$value$plusargs("trace=%d", trace)) $finish;
    if ($value$plusargs("go=%s", path)) $readmemb(path, go);
    if ($value$plusargs("stim=%s", path)) stim = $fopen(path, "r");
    if ($value$plusargs("out=%s", path)) file = $fopen(path, "w");
    if ($value$plusargs("waves=%s", path)) begin
      $dumpfile(path);
      $dumpvars(0, dut);
    end
    reset;
    // Rows, one of them too short and one without an end, and a reset in the midst of all:
    // afterwards nothing may remember.
    part = 1;
    load;
    for (n = 0; n < {warm}; n = n + 1) begin
{wait}      s_axis_tvalid = 1;
      for (k = 0; k < {bytes}; k = k + 1) s_axis_tdata[8*k +: 8] = n * 37 + k * 11;
      s_axis_tlast = ((n + 1) % {beats} == 0 || n == 2 * {beats}) && n < 3 * {beats};
      m_axis_tready = n % 2;
{warm_streams}      #{half} aclk = 1; #{half} aclk = 0;
    end
    s_axis_tvalid = 0;
    m_axis_tready = 0;
{idle_streams}    reset;
    part = 0;
    load;
    cycle = 0; offered = 0; sent = 0; got = 0; first_in = 0; first_out = 0; last_out = 0;
    after = 0; stalled = 0; failed = 0; started = 0; taken = 0;
    // After the last beat it watches some cycles for more.
    while (after < 32 && !failed) begin
{wait}      // What is taken of a beat waits for the rest of it.
      for (n = 0; n <= {streams}; n = n + 1)
        if (!started[n] && go[(cycle + {shift} * n) % {period}][0]
            && (offered > sent || offered < total)) begin
          if (offered == sent) begin
            k = $fscanf(stim, "%h", word);
            offered = offered + 1;
          end
          started[n] = 1;
        end
      s_axis_tvalid = started[0] && !taken[0];
      s_axis_tdata = s_axis_tvalid ? word[{s}:0] : {junk};
      s_axis_tlast = !s_axis_tvalid || word[{last}];
{drive_streams}      m_axis_tready = go[cycle % {period}][1];
      #{half};
      if (cycle < trace)
        $fdisplay(file, "h %b%b%b%b", s_axis_tvalid, s_axis_tready, m_axis_tvalid, m_axis_tready);
      if ((m_axis_tvalid ^ m_axis_tvalid) !== 1'b0 || (s_axis_tready ^ s_axis_tready) !== 1'b0)
        fail_unknown("a valid or ready");
      else if (m_axis_tvalid && (^{{m_axis_tdata, m_axis_tlast}} ^ 1'b0) === 1'bx)
        fail_unknown("a beat");
      else if (stalled && !m_axis_tvalid) fail("withdrawn");
      else if (stalled && (m_axis_tdata !== held || m_axis_tlast !== held_last)) fail("changed");
      else if (m_axis_tvalid && m_axis_tready) begin
        if (got == sent) fail("many");
        else begin
          $fdisplay(file, "d %b %h", m_axis_tlast, m_axis_tdata);
          if (got == 0) first_out = cycle;
          last_out = cycle;
          got = got + 1;
        end
      end
      stalled = m_axis_tvalid && !m_axis_tready;
      held = m_axis_tdata;
      held_last = m_axis_tlast;
      if (s_axis_tvalid && s_axis_tready) taken[0] = 1;
{take_streams}      if (&taken) begin
        if (sent == 0) first_in = cycle;
        sent = sent + 1;
        started = 0;
        taken = 0;
      end
      aclk = 1;
      #{half} aclk = 0;
      cycle = cycle + 1;
      if (cycle % 1024 == 0) begin
        $fdisplay(file, "t");
        $fflush(file);
      end
      if (got == total) after = after + 1;
      else if (cycle > limit && !failed) begin
        $fdisplay(file, "hangs %0d %0d", sent, got);
        failed = 1;
      end
    end
    #{half};
    $fdisplay(file, "end %0d %0d %0d %b %b", first_in, first_out, last_out, saturated,
              framing_error);
    $finish;
  end

  task fail_unknown(input [8*16-1:0] what);
    begin
      $fdisplay(file, "x %0s %b %b %b %h %0d", what, s_axis_tready, m_axis_tvalid, m_axis_tlast,
                m_axis_tdata, cycle);
      failed = 1;
    end
  endtask
endmodule
"""


def junk(high):
    """What is on a bus that is not valid."""
    return f"{{{(high + 1) // 8}{{8'ha5}}}}"


def _streams(design, ports):
    """What drives streamed parameters in step with x, by the places of the template."""
    low = ports["s_axis_tdata"][1]
    part = dict.fromkeys(
        ("signals", "warm_streams", "idle_streams", "drive_streams", "take_streams"), ""
    )
    for n, name in enumerate(design.streamed, 1):
        bus, bits = f"s_axis_{name}", ports[f"s_axis_{name}_tdata"][1]
        part["signals"] += (
            f"  reg [{bits - 1}:0] {bus}_tdata = 0;\n  reg {bus}_tvalid = 0, {bus}_tlast = 0;\n"
            f"  wire {bus}_tready;\n"
        )
        part["warm_streams"] += (
            f"      {bus}_tdata = {{{bits // 8}{{n[7:0]}}}};\n"
            f"      {bus}_tvalid = 1; {bus}_tlast = s_axis_tlast;\n"
        )
        part["idle_streams"] += f"    {bus}_tvalid = 0; {bus}_tlast = 1;\n"
        part["drive_streams"] += (
            f"      {bus}_tvalid = started[{n}] && !taken[{n}];\n"
            f"      {bus}_tdata = {bus}_tvalid ? word[{low} +: {bits}] : {junk(bits - 1)};\n"
            f"      {bus}_tlast = !{bus}_tvalid || word[{{last}}];\n"
        )
        part["take_streams"] += f"      if ({bus}_tvalid && {bus}_tready) taken[{n}] = 1;\n"
        low += bits
    drive = part["drive_streams"].replace("{last}", str(low))
    return part | {
        "drive_streams": drive, "streams": len(design.streamed), "word": low + 7, "last": low
    }  # fmt: skip


def _pause(design, ports, half):
    """A task that lets edges pass while the clock is not enabled, with junk on all inputs."""
    buses = [name.removesuffix("_tdata") for name in ports if re.match("s_.*_tdata", name)]
    on = "".join(
        f"        {bus}_tvalid = 1; {bus}_tlast = edges % 3 == 0;\n"
        f"        {bus}_tdata = {{{ports[f'{bus}_tdata'][1] // 8}{{edges[7:0]}}}};\n"
        for bus in buses
    )
    off = "".join(f"      {bus}_tvalid = 0;\n" for bus in buses)
    at = f"(edges + {shift_of(-1)}) % {PERIOD_CYCLES}"
    return (
        f"\n  task pause;\n    begin\n      while (!go[{at}][0]) begin\n"
        f"        ce = 0; clear = 1; m_axis_tready = edges % 2;\n{on}"
        f"        #{half} aclk = 1; #{half} aclk = 0;\n        edges = edges + 1;\n      end\n"
        f"      edges = edges + 1; ce = 1; clear = 0;\n{off}    end\n  endtask\n"
    )


def bench(dut):
    """The text of the bench, which depends on the design alone; the rest comes as plusargs.

    Parameters
    ----------
    dut : hwnorm.sim.dut.Dut

    Returns
    -------
    str
    """
    design, ports = dut.design, dut.ports
    signals, loads = "", ""
    half = f"{design.period_ns / 2:g}"
    streams = _streams(design, ports)
    signals += streams.pop("signals")
    for name in design.loaded:
        bus = f"s_axis_{name}"
        high = ports[f"{bus}_tdata"][1] - 1
        signals += (
            f"  reg [{high}:0] {bus}_tdata = 0;\n  reg {bus}_tvalid = 0, {bus}_tlast = 0;\n"
            + f"  wire {bus}_tready;\n" * design.ready
            + f"  reg [{high}:0] {name} [0:{design.beats}-1];\n"
        )
        loads += (
            f'      if ($value$plusargs("{name}=%s", path)) begin\n'
            f"        $readmemh(path, {name});\n"
            f"        n = 0; k = 0;\n"
            f"        while (n < (part ? {(design.beats + 1) // 2} : {design.beats})) begin\n"
            + "          pause;\n"
            * design.clock_enable
            + f"          {bus}_tvalid = go[k][0];\n"
            f"          {bus}_tdata = {bus}_tvalid ? {name}[n] : {junk(high)};\n"
            f"          n = n + {bus}_tvalid; k = (k + 1) % {PERIOD_CYCLES};\n"
            f"          {bus}_tlast = !{bus}_tvalid || n == {design.beats};\n"
            f"          #{half} aclk = 1; #{half} aclk = 0;\n"
            f"        end\n"
            f"        {bus}_tvalid = 0; {bus}_tlast = 1; {bus}_tdata = {junk(high)};\n"
            f"      end\n"
        )
    return _BENCH.format(
        s=ports["s_axis_tdata"][1] - 1,
        m=ports["m_axis_tdata"][1] - 1,
        top=dut.top,
        ports=",\n".join(f"    .{port}({port})" for port in ports) + "\n",
        beats=design.beats,
        period=PERIOD_CYCLES,
        half=half,
        junk=junk(ports["s_axis_tdata"][1] - 1),
        warm=warm_cycles(design),
        bytes=ports["s_axis_tdata"][1] // 8,
        ce=", ce = 1" * design.clock_enable,
        edge=", edges = 0" * design.clock_enable,
        pause=_pause(design, ports, half) if design.clock_enable else "",
        wait="      pause;\n" * design.clock_enable,
        tready="" if design.ready else " = 1",
        shift=SHIFT_CYCLES,
        signals=signals,
        **streams,
        loads=loads,
    )
