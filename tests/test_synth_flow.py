"""Cells and clock rates by Yosys and nextpnr themselves, and the command ``synth``."""

import json
import subprocess
import sys
from dataclasses import replace
from importlib import util
from pathlib import Path

import pytest

from hwnorm.cli import main
from hwnorm.design import CATALOGUE, dumps
from hwnorm.export import write_bundle
from hwnorm.hdl import verilog
from hwnorm.rows import bench_rows
from hwnorm.synth import TARGETS, synthesise, synthesise_verilog, tools
from hwnorm.synth.netlist import SOURCE, build_netlist, raw_cells

TINY = CATALOGUE["tiny-64"]
SMALL = replace(TINY, dim=16, lanes=2)

FOREIGN = """
module add(input clk, input [7:0] a, b, output reg [8:0] y);
  reg [7:0] held;
  always @(posedge clk) begin held <= a; y <= held + b; end
endmodule
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    # That of YoWASP's compiled tools stays where it was.
    shared = Path.home() / ".cache" / "YoWASP"
    monkeypatch.setenv("YOWASP_CACHE_DIR", str(shared))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def run(capsys):
    def call(*arguments):
        code = main(["synth", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.mark.parametrize("target", TARGETS)
def test_cells(target):
    result = synthesise(SMALL, target)
    for kind, count in result.cells.items():
        assert sum(part[kind] for part in result.parts.values()) == count
    assert result.fits
    # A square a lane, a product a lane and one in solve; on iCE40, where multipliers have 16
    # bits, a product of 17 takes two.
    twice = 2 if target == "ice40" else 1
    dsps = {name: part["dsp"] for name, part in result.parts.items()}
    assert dsps == {"gather": 2, "solve": 1, "apply": 2 * twice, "buffer": 0, "control": 0}
    assert result.parts["solve"]["bram"] == result.cells["bram"] - result.parts["buffer"]["bram"]
    assert 0 < result.parts["control"]["lut"] < result.cells["lut"] / 10
    assert (result.seeds, result.fmax_mhz, result.critical_path) == ((), None, ())


def test_registers_are_packed_where_cells_are_counted(monkeypatch):
    design = replace(SMALL, target="ecp5", period_ns=5.5)
    packed = synthesise(design, "ecp5").cells
    monkeypatch.setitem(TARGETS, "ecp5", replace(TARGETS["ecp5"], finish=None))
    plain = synthesise(design, "ecp5", cache=False).cells
    assert packed["ff"] < plain["ff"] - 100
    assert packed | {"ff": 0} == plain | {"ff": 0}


def test_yosys_on_the_path_gives_the_same(monkeypatch, tmp_path):
    wheel = synthesise(SMALL, "ecp5")
    native = tmp_path / "yosys"
    # The wheel, behind the command line of the program.
    native.write_text(
        f"#!{sys.executable}\nimport sys\nfrom pyosys import libyosys\n"
        "if sys.argv[1] == '-V':\n    print('Yosys 0.70 (git sha1 0)')\n    sys.exit()\n"
        "design = libyosys.Design()\n"
        "for command in sys.argv[3].split('; '):\n    libyosys.run_pass(command, design)\n",
        encoding="utf-8",
    )
    native.chmod(0o755)
    find = util.find_spec
    monkeypatch.setattr(tools.util, "find_spec", lambda n: None if n == "pyosys" else find(n))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    result = synthesise(SMALL, "ecp5")
    assert result.tool == "yosys 0.70"
    assert (result.raw_cells, result.parts) == (wheel.raw_cells, wheel.parts)


def _simulated(folder, top, files):
    """What a bench says of iCE40's cells."""
    library = Path(util.find_spec("pyosys").origin).parent / "share" / "ice40" / "cells_sim.v"
    for command in (
        f"iverilog -g2012 -DNO_ICE40_DEFAULT_ASSIGNMENTS -o tb.vvp -s {top} {files} {library}",
        "vvp -N tb.vvp",
    ):
        done = subprocess.run(
            command.split(), cwd=folder, capture_output=True, text=True, check=True
        )
    return done.stdout


@pytest.mark.parametrize("lanes", [1, 4])
def test_ice40_multipliers_compute_what_they_should(lanes, tmp_path):
    # Yosys' packing into MAC16 breaks sums of two products, unless it is kept from it.
    design = replace(TINY, dim=16, lanes=lanes)
    write_bundle(design, tmp_path, "norm", bench_rows(design, 6, 0))
    target = TARGETS["ice40"]
    script = (*target.script(target.devices["up5k"], "norm"), "write_verilog -noattr cells.v")
    build_netlist(tools.yosys(), tmp_path / "tb", verilog(design, "norm"), "norm", script)
    assert SOURCE in {path.name for path in (tmp_path / "tb").iterdir()}
    assert "PASS: 6 rows" in _simulated(tmp_path / "tb", "norm_tb", "norm_tb.v cells.v")


TWICE = """module top(input clk, input signed [15:0] a, b, output reg signed [31:0] y);
  reg signed [15:0] one, other;
  reg signed [31:0] product;
  always @(posedge clk) begin
    one <= a; other <= b; product <= one * other; y <= {shape};
  end
endmodule
"""
TWICE_TB = """module tb;
  reg clk = 0; reg signed [15:0] a, b; wire [31:0] is, should; integer n, wrong = 0;
  top rtl(clk, a, b, should); gate cells(.clk(clk), .a(a), .b(b), .y(is));
  initial begin
    for (n = 0; n < 100; n = n + 1) begin
      a = $random; b = $random; #5 clk = 1; #5 clk = 0;
      if (n > 4 && is !== should) wrong = wrong + 1;
    end
    $display("%0d wrong", wrong);
  end
endmodule
"""


@pytest.mark.parametrize("shape", ["product", "product[15:0]", "product << 3"])
def test_ice40_products_survive_a_second_register(shape, tmp_path):
    # Without the guard, Yosys 0.70 ends by a signal, or leaves no cell of it all.
    text = TWICE.replace("{shape}", shape)
    (tmp_path / "rtl.v").write_text(text, encoding="utf-8")
    (tmp_path / "tb.v").write_text(TWICE_TB, encoding="utf-8")
    target = TARGETS["ice40"]
    script = (*target.script(target.devices["up5k"], "top"), "rename top gate",
              "write_verilog -noattr cells.v", "rename gate top")  # fmt: skip
    module = build_netlist(tools.yosys(), tmp_path, text, "top", script)
    assert target.counted(raw_cells(module))["dsp"] == 1
    assert _simulated(tmp_path, "tb", "tb.v rtl.v cells.v").strip() == "0 wrong"


def test_ecp5(tmp_path, monkeypatch):
    ticks = []
    result = synthesise(SMALL, "ecp5", "25k", pnr=True, seeds=2, jobs=2, progress=ticks.append)
    assert ticks == [1, 1, 1]
    assert [run["seed"] for run in result.seeds] == [1, 2]
    slow, fast = sorted(run["fmax_mhz"] for run in result.seeds)
    assert (result.fmax_best_mhz, result.fmax_median_mhz) == (fast, (slow + fast) / 2)
    assert 40 < slow < 400
    # The path is in the design, and the loopback's registers do not limit it.
    assert result.critical_path
    assert {name.split(".")[0] for name in result.critical_path} <= {
        "gather", "reduce_sumsq", "solve", "apply", "queue"
    }  # fmt: skip
    assert result.limit in result.critical_path
    assert result.utilisation["MULT18X18D"]["used"] == result.cells["dsp"]
    # What the device needs is estimated from below, and not by much.
    assert 0.85 < result.needs["lut"] / result.utilisation["TRELLIS_COMB"]["used"] < 1

    def never(*arguments):
        raise AssertionError("the cache has it")

    monkeypatch.setattr(tools.Tool, "run", never)
    assert synthesise(SMALL, "ecp5", "25k", pnr=True, seeds=2) == result
    with pytest.raises(AssertionError, match="the cache has it"):
        synthesise(SMALL, "ecp5", "25k", pnr=True, seeds=2, cache=False)


def test_gowin():
    result = synthesise(replace(SMALL, target="gowin"), "gowin", pnr=True)
    assert 40 < result.fmax_mhz < 800
    # With that, nobody may take it for the clock of the board.
    assert "multipliers" in result.untimed
    assert "at most: nextpnr does not time" in result.to_text()
    assert result.utilisation["LUT4"]["used"] > result.cells["lut"]


def test_ice40_to_a_bitstream(tmp_path, run):
    bits = tmp_path / "loop.bin"
    code, out, err = run("ice40-log-256", "--target", "ice40", "--bitstream", str(bits), "--json")
    assert (code, err) == (0, "")
    data = json.loads(out)
    assert (data["device"], data["cells"]["dsp"]) == ("up5k", 0)
    assert data["needs"]["lut"] < 5280 / 2
    assert data["bitstream_bytes"] == bits.stat().st_size > 100_000
    # iCE40's bitstreams begin with this word.
    assert bytes.fromhex("7eaa997e") in bits.read_bytes()[:64]
    assert data["fmax_mhz"] > 15


def test_ecp5_bitstream_of_foreign_verilog():
    # Its last line may have no end.
    plain = synthesise_verilog(FOREIGN.rstrip(), "add", "ecp5", "25k", pnr=True)
    # What is kept of that has no bitstream.
    result = synthesise_verilog(FOREIGN, "add", "ecp5", "25k", pnr=True, bitstream=True)
    assert (plain.bitstream, plain.fmax_mhz) == (None, result.fmax_mhz)
    assert len(result.bitstream) > 100_000
    assert result.cells["ff"] == 17
    assert result.parts == {}
    assert set(result.critical_path) <= {"held", "y", "a", "b"}


def test_period(run, tmp_path):
    (tmp_path / "small.toml").write_text(dumps(SMALL), encoding="utf-8")
    small = str(tmp_path / "small.toml")
    options = ("--target", "ecp5", "--device", "25k", "--pnr", "--period", "1", "--json")
    code, out, err = run(small, *options)
    assert code == 1
    assert json.loads(out)["period_ns"] == 1
    assert err.startswith("hwnorm: period must be reachable, got 1 ns: best ")
    assert "limited by " in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("tiny-64", "--target", "ecp6"), "target must be one of ecp5"),
        (("tiny-64", "--target", "ecp5", "--device", "12k"), "device of ecp5 must be one of 85k"),
        (("tiny-64", "--target", "xc7", "--pnr"), "pnr must be off for xc7"),
        (("tiny-64", "--target", "ecp5", "--seeds", "3"), "--seeds goes with --pnr"),
        (("tiny-64", "--target", "ecp5", "--period", "3"), "--period goes with --pnr"),
        (("tiny-64", "--target", "gowin", "--bitstream", "b"), "bitstream must be for ecp5 or"),
        (("tiny-64", "--target", "ecp5", "--bitstream", "."), "bitstream . must be a file, got"),
        (
            ("tiny-64", "--target", "ice40", "--pnr"),
            "design must fit ice40 up5k, got 13 of 8 DSP, 62% too many; rsqrt.method = ",
        ),
        (
            # Yosys' cells would fit; nextpnr counts flip-flops that share no cell with a LUT.
            ("ice40-log-256", "--target", "ice40", "--device", "hx1k", "--pnr"),
            "design must fit ice40 hx1k, got ",
        ),
    ],
)
def test_bad_input(arguments, sentence, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"hwnorm: {sentence}"), err
    assert [path.name for path in tmp_path.iterdir() if path.name != "cache"] == []


def test_text(run):
    code, out, err = run("tiny-64", "--target", "ecp5")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[1].startswith("ecp5 85k, by pyosys ")
    assert [line.split()[0] for line in lines[3:9]] == [
        "gather", "solve", "apply", "buffer", "control", "total"
    ]  # fmt: skip
