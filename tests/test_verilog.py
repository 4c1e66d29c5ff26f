"""The exported Verilog: memories keep their contents, names are legal everywhere."""

import re
import subprocess

import numpy as np
import pytest

from hwnorm import LayerNorm, LogTables, RMSNorm, Rsqrt, model, simulate, verilog
from hwnorm.export.bundle import bundle
from hwnorm.files import write_tree
from hwnorm.hdl.verilog import top_name
from hwnorm.rows import bench_rows, corner_rows, random_rows

#: Memories of 31, 32, 33 and 64 bits (Yosys prints them differently), and all-zero contents.
GAMMA = tuple(range(10000, 10016))
DESIGNS = {
    "rom 32": RMSNorm(dim=16, lanes=2, gamma="s16/14", store="rom", gamma_init=GAMMA),
    "rom 64": RMSNorm(dim=16, lanes=4, gamma="s16/14", store="rom", gamma_init=GAMMA),
    "ram 32": RMSNorm(dim=16, lanes=2, gamma="s16/14", gamma_init=GAMMA),
    "ram 31": RMSNorm(dim=16, lanes=1, gamma="s31/29", gamma_init=GAMMA),
    "ram 33": RMSNorm(dim=15, lanes=3, gamma="s11/9", gamma_init=tuple(range(500, 515))),
    "zero beta": LayerNorm(dim=16, lanes=2, gamma="s16/14", beta="s16/12", store="rom"),
    "zero beta in ram": LayerNorm(dim=16, lanes=2, gamma="s16/14", beta="s16/12"),
    "zero gamma": RMSNorm(dim=16, lanes=4, gamma="s8/6", gamma_init=(0,) * 16),
    "wide column": RMSNorm(
        dim=48, lanes=16, eps=1e-12, x="s6/-8", y="s26/1", gamma="s8/16", gamma_offset=1.0,
        rsqrt=Rsqrt("quadratic", None, 4),
    ),
    "log tables": RMSNorm(
        dim=8, x="s6/2", gamma="s6/4", y="s16/9", rsqrt=Rsqrt("log"), log=LogTables("linear", 32)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DESIGNS)
def test_memories_keep_their_contents(name):
    """Nothing is loaded: what the engine multiplies by is what the Verilog says."""
    design = DESIGNS[name]
    x = np.concatenate([corner_rows(design), random_rows(design, 8)])
    result = simulate(design, x, engine="icarus")
    assert (result.y == model(design, x)).all()


@pytest.mark.parametrize("name", DESIGNS)
def test_every_word_of_a_table_and_a_parameter_is_written(name):
    design = DESIGNS[name]
    text = verilog(design, "dut")
    words = len(re.findall(r"^ +\w+\[\d+\] = ", text, re.M))
    copies = design.lanes if design.rsqrt.method == "log" else 1
    tables = sum(
        len(column.values) * (1 if use in ("rsqrt", "log2_total") else copies)
        for use, unit in design.units.items()
        # Shared hardware has the columns of a table side by side.
        for column in unit.table.columns[: 1 if design.turns and use == "rsqrt" else None]
        if not (use == "log2_gamma" and design.store == "rom")
    )
    assert words == tables + design.beats * len(design.parameters)


@pytest.mark.parametrize(
    ("name", "top"),
    [
        ("tiny-64", "tiny_64"), ("64x", "n64x"), ("a b/c", "a_b_c"), ("small", "small_top"),
        ("table", "table_top"), ("logic", "logic_top"), ("module", "module_top"), ("ünï", "_n_"),
    ],
)  # fmt: skip
def test_names_are_legal_in_every_tool(name, top, tmp_path):
    assert top_name(name) == top
    design = RMSNorm(dim=4, x="s6/2", y="s6/3")
    write_tree(tmp_path, bundle(design, name, bench_rows(design, 4)))
    for command in (
        ["iverilog", "-g2005", "-o", "tb.vvp", f"{top}_tb.v", f"../rtl/{top}.v"],
        ["iverilog", "-g2012", "-t", "null", f"../rtl/{top}.v"],
        ["vvp", "-N", "tb.vvp"],
    ):
        subprocess.run(command, cwd=tmp_path / "tb", check=True, capture_output=True)


def test_the_bench_checks_the_latency_it_states(tmp_path):
    design = RMSNorm(dim=8, x="s6/2", y="s6/3")
    files = bundle(design, "d", bench_rows(design, 4))
    text = files["tb/d_tb.v"]
    files["tb/d_tb.v"] = text.replace(
        f"LATENCY = {design.latency};", f"LATENCY = {design.latency + 1};"
    )
    write_tree(tmp_path, files)
    build = ["iverilog", "-g2005", "-o", "tb.vvp", "d_tb.v", "../rtl/d.v"]
    subprocess.run(build, cwd=tmp_path / "tb", check=True)
    done = subprocess.run(
        ["vvp", "-N", "tb.vvp", "+stall=0"],
        cwd=tmp_path / "tb", capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert f"latency is {design.latency} cycles, expected {design.latency + 1}" in done.stdout


def test_the_bench_stands_almost_any_stall(tmp_path):
    design = RMSNorm(dim=8, x="s6/2", y="s6/3")
    write_tree(tmp_path, bundle(design, "d", bench_rows(design, 4)))
    build = ["iverilog", "-g2005", "-o", "tb.vvp", "d_tb.v", "../rtl/d.v"]
    subprocess.run(build, cwd=tmp_path / "tb", check=True)
    for stall, code in ((0, 0), (99, 0), (100, 1)):
        done = subprocess.run(
            ["vvp", "-N", "tb.vvp", f"+stall={stall}"],
            cwd=tmp_path / "tb", capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stdout


def test_no_beat_is_taken_during_reset(tmp_path):
    """A beat taken in the cycle of a reset would be lost."""
    (tmp_path / "d.v").write_text(verilog(RMSNorm(dim=4, x="s6/2", y="s6/3"), "d"))
    (tmp_path / "b.v").write_text("""
module b;
  reg aclk = 0, aresetn = 0;
  wire s_ready, m_valid;
  d dut (.aclk(aclk), .aresetn(aresetn), .clear(1'b0), .s_axis_tvalid(1'b1),
         .s_axis_tlast(1'b0), .s_axis_tdata(8'd1), .s_axis_tready(s_ready),
         .m_axis_tready(1'b1), .m_axis_tvalid(m_valid));
  integer n;
  initial begin
    for (n = 0; n < 3; n = n + 1) begin
      #1 $display("%b%b", s_ready, m_valid);
      aclk = 1; #1 aclk = 0;
    end
    aresetn = 1;
    #1 $display("%b%b", s_ready, m_valid);
  end
endmodule
""")
    subprocess.run(["iverilog", "-g2005", "-o", "b", "b.v", "d.v"], cwd=tmp_path, check=True)
    done = subprocess.run(["vvp", "b"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["00", "00", "00", "10"]


@pytest.mark.parametrize("store", ["ram", "rom", "stream"])
def test_no_vector_without_bits(store):
    """A row of one beat needs no address, and the lowest piece of a sum has nothing below it."""
    for changes in ({}, {"target": "ecp5", "period_ns": 5.5, "x": "s24/8"}):
        design = RMSNorm(dim=8, lanes=8, gamma="s8/6", store=store, **changes)
        assert "[-1:0]" not in verilog(design)
