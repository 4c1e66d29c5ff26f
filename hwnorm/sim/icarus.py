"""Icarus Verilog: the exported Verilog, four-state, so that unknown values are seen."""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from hwnorm.hdl.axi import lane_bits
from hwnorm.hdl.verilog import verilog
from hwnorm.sim.compiled import from_bytes, to_bytes
from hwnorm.sim.stalls import PERIOD_CYCLES

_BENCH = """\
`timescale 1ns/1ps
module bench;
  reg aclk = 0, aresetn = 0, clear = 0;
  reg [{s}:0] s_axis_tdata = 0;
  reg s_axis_tvalid = 0, s_axis_tlast = 0, m_axis_tready = 0;
  wire s_axis_tready, m_axis_tvalid, m_axis_tlast, framing_error, saturated;
  wire [{m}:0] m_axis_tdata;
{signals}
  dut dut (
    .aclk(aclk), .aresetn(aresetn), .clear(clear), .framing_error(framing_error),
    .saturated(saturated), .s_axis_tdata(s_axis_tdata), .s_axis_tvalid(s_axis_tvalid),
    .s_axis_tready(s_axis_tready), .s_axis_tlast(s_axis_tlast), .m_axis_tdata(m_axis_tdata),
    .m_axis_tvalid(m_axis_tvalid), .m_axis_tready(m_axis_tready),
    .m_axis_tlast(m_axis_tlast){ports});
  reg [{s}:0] stim [0:{total}-1];
  reg [1:0] go [0:{period}-1];
  integer cycle, offered, sent, got, first_in, first_out, n, file;
  initial begin
    $readmemh("stim.mem", stim);
    $readmemb("go.mem", go);
{reads}    file = $fopen("out.txt");
{waves}    repeat (4) begin #{half} aclk = 1; #{half} aclk = 0; end
    aresetn = 1;
{loads}    cycle = 0; offered = 0; sent = 0; got = 0; first_in = 0; first_out = 0;
    while (got < {total} && cycle <= {limit}) begin
      if (offered == sent && offered < {total} && go[cycle % {period}][0]) begin
        s_axis_tdata = stim[offered];
        offered = offered + 1;
        s_axis_tlast = offered % {beats} == 0;
      end
      s_axis_tvalid = offered > sent;
      m_axis_tready = go[cycle % {period}][1];
      #{half};
      if (m_axis_tvalid !== 1'b0 && m_axis_tready) begin
        $fdisplay(file, "%b %b %h", m_axis_tvalid, m_axis_tlast, m_axis_tdata);
        if (got == 0) first_out = cycle;
        got = got + 1;
      end
      if (offered > sent && s_axis_tready) begin
        if (sent == 0) first_in = cycle;
        sent = sent + 1;
      end
      aclk = 1;
      #{half} aclk = 0;
      cycle = cycle + 1;
    end
    #{half};
    $fdisplay(file, "end %0d %0d %0d %b %b", first_in, first_out, cycle - 1, saturated,
              framing_error);
    $finish;
  end
endmodule
"""


def missing():
    """What this engine lacks here, with the install line; None if nothing."""
    if shutil.which("iverilog"):
        return None
    return "iverilog is missing; install it with: apt-get install iverilog"


def run(design, x, loads, stalls, limit, vcd, progress):
    """Simulate; see `hwnorm.sim.base.ENGINES`."""
    with tempfile.TemporaryDirectory(prefix="hwnorm-icarus-") as name:
        folder = Path(name)
        _write(folder, design, x, loads, stalls, limit, vcd)
        command = ["iverilog", "-g2005", "-o", "sim.vvp", "bench.v", "dut.v"]
        for step in (command, ["vvp", "-N", "sim.vvp"]):
            done = subprocess.run(step, cwd=folder, capture_output=True, text=True, check=False)
            if done.returncode:
                text = (done.stderr + done.stdout).strip().splitlines()
                raise ValueError(f"{step[0]} must run the design, got: {text[-1]}")
        lines = (folder / "out.txt").read_text(encoding="utf-8").splitlines()
    return _read(design, x, lines, limit, progress)


def _write(folder, design, x, loads, stalls, limit, vcd):
    def words(beats):
        return "".join(f"{bytes(row[::-1]).hex()}\n" for row in beats)

    part = {"signals": "", "ports": "", "reads": "", "loads": ""}
    half = f"{design.period_ns / 2:g}"
    for name, values in loads.items():
        fmt = design.parameters[name]
        (folder / f"{name}.mem").write_text(words(to_bytes(values[None], fmt, design.lanes)))
        bus, high = f"s_axis_{name}", lane_bits(fmt) * design.lanes - 1
        part["signals"] += (
            f"  reg [{high}:0] {bus}_tdata = 0;\n  reg {bus}_tvalid = 0, {bus}_tlast = 0;\n"
            f"  reg [{high}:0] {name} [0:{design.beats}-1];\n"
        )
        part["ports"] += "".join(
            f",\n    .{bus}_{f}({bus}_{f})" for f in ("tdata", "tvalid", "tlast")
        )
        part["reads"] += f'    $readmemh("{name}.mem", {name});\n'
        part["loads"] += (
            f"    for (n = 0; n < {design.beats}; n = n + 1) begin\n"
            f"      {bus}_tvalid = 1; {bus}_tdata = {name}[n];\n"
            f"      {bus}_tlast = n == {design.beats} - 1;\n"
            f"      #{half} aclk = 1; #{half} aclk = 0;\n    end\n    {bus}_tvalid = 0;\n"
        )
    if design.store == "ram":
        for name in design.parameters:
            if name not in loads:
                part["ports"] += f",\n    .s_axis_{name}_tvalid(1'b0), .s_axis_{name}_tlast(1'b0)"
    waves = f'    $dumpfile("{Path(vcd).resolve()}");\n    $dumpvars(0, dut);\n' if vcd else ""
    text = _BENCH.format(
        s=lane_bits(design.x) * design.lanes - 1, m=lane_bits(design.y) * design.lanes - 1,
        total=len(x) * design.beats, beats=design.beats, period=PERIOD_CYCLES, limit=limit,
        half=half, waves=waves, **part,
    )  # fmt: skip
    (folder / "bench.v").write_text(text, encoding="utf-8")
    (folder / "dut.v").write_text(verilog(design, "dut"), encoding="utf-8")
    (folder / "stim.mem").write_text(words(to_bytes(x, design.x, design.lanes)))
    go = stalls.source + 2 * stalls.sink.astype(int)
    (folder / "go.mem").write_text("\n".join(format(n, "02b") for n in go) + "\n")


def _read(design, x, lines, limit, progress):
    beats = [line.split() for line in lines if not line.startswith("end")]
    end = next(line.split() for line in lines if line.startswith("end"))
    expected = len(x) * design.beats
    for n, (valid, last, data) in enumerate(beats):
        if re.search("[xz]", valid + last + data):
            raise ValueError(f"outputs must be known, got {valid} {last} {data} at beat {n}")
        if (last == "1") != ((n + 1) % design.beats == 0):
            raise ValueError(f"last must mark every {design.beats}th beat, got {last} at beat {n}")
    if len(beats) < expected:
        raise TimeoutError(
            f"the design must give {expected} beats in {limit} cycles, got {len(beats)}"
        )
    data = np.frombuffer(bytes.fromhex("".join(b[2] for b in beats)), dtype=np.uint8)
    data = data.reshape(expected, -1)[:, ::-1]
    if progress:
        progress(len(x))
    y = from_bytes(np.ascontiguousarray(data), design.y, design.dim)
    return y, tuple(int(v) for v in end[1:4]), end[4] == "1", end[5] == "1"
