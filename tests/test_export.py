"""Files for other tools: tables, bundles, Verilog text."""

import json
import re
import subprocess

import numpy as np
import pytest

from hwnorm import LayerNorm, RMSNorm, Rsqrt, verilog
from hwnorm.export.tables import TABLE_FORMATS, json_text, table_files
from hwnorm.export.testbench import mem_text
from hwnorm.files import write_text, write_tree
from hwnorm.fixed import Fixed
from hwnorm.hdl.verilog import top_name
from hwnorm.tables import Table, load

TABLE = Table("rsqrt", "linear", 8, 12, 14, scale=1.5, offset=1 << 13)


def words(text, width):
    """Hexadecimal words, as signed integers."""
    values = [int(word, 16) for word in text]
    return [v - (v >> width - 1 << width) for v in values]


def test_every_format_holds_the_entries():
    c1 = TABLE.columns[1]
    width = c1.fmt.width
    assert c1.fmt.signed
    text = {kind: table_files(TABLE, "t", kind) for kind in TABLE_FORMATS}
    assert set(text["mem"]) == {"t_c0.mem", "t_c1.mem"}
    assert words(text["mem"]["t_c1.mem"].split(), width) == list(c1.values)
    assert words(text["hex"]["t_c1.hex"].split(), width) == list(c1.values)
    coe = text["coe"]["t_c1.coe"]
    assert words(re.findall(r"^([0-9a-f]+)[,;]$", coe, re.M), width) == list(c1.values)
    mif = text["mif"]["t_c1.mif"]
    assert words(re.findall(r"^\d+ : (\w+);$", mif, re.M), width) == list(c1.values)
    rows = [line.split(",") for line in text["csv"]["t_c1.csv"].split()[1:]]
    assert [int(row[1]) for row in rows] == list(c1.values)
    assert [float(row[2]) for row in rows] == [v * 2.0**-c1.frac for v in c1.values]
    assert json.loads(text["json"]["t.json"])["columns"][1]["values"] == list(c1.values)


def test_c_header_compiles(tmp_path):
    for n, text in enumerate(table_files(TABLE, "t", "c").values()):
        (tmp_path / f"c{n}.c").write_text(text)
        subprocess.run(
            ["gcc", "-Wall", "-Wno-unused-const-variable", "-Wno-unused-variable", "-Werror", "-c",
             f"c{n}.c"],
            cwd=tmp_path, check=True,
        )  # fmt: skip


def test_json_comes_back_as_the_same_table(tmp_path):
    (tmp_path / "t.json").write_text(json_text(TABLE))
    assert load(tmp_path / "t.json") == TABLE


def test_mem_text_packs_lanes_from_the_right():
    text = mem_text(np.array([[1, -1, 2, -128]]), Fixed.parse("s8/0"), 2)
    assert text == "ff01\n8002\n"
    assert mem_text(np.array([[-2, 5]]), Fixed.parse("s12/0"), 2) == "0005fffe\n"


@pytest.mark.parametrize(
    ("name", "top"), [("tiny-64", "tiny_64"), ("64x", "n64x"), ("a b/c", "a_b_c")]
)
def test_top_names(name, top):
    assert top_name(name) == top


def test_verilog_ports_and_names():
    design = LayerNorm(dim=12, lanes=3, x="s12/6", gamma="s9/7", beta="s8/4", y="s10/5")
    text = verilog(design, "ln")
    ports = dict(re.findall(r"^  (?:input|output) (\[\d+:0\] )?(\w+);$", text, re.M)[i][::-1]
                 for i in range(21))  # fmt: skip
    assert ports["s_axis_tdata"] == "[47:0] "
    assert ports["m_axis_tdata"] == "[47:0] "
    assert ports["s_axis_gamma_tdata"] == "[47:0] "
    assert ports["s_axis_beta_tdata"] == "[23:0] "
    for prefix in ("s_axis", "m_axis", "s_axis_gamma", "s_axis_beta"):
        assert {f"{prefix}_{f}" for f in ("tvalid", "tready", "tlast")} < set(ports)
    assert {"aclk", "aresetn", "clear", "framing_error", "saturated"} < set(ports)
    # Names of wires survive; nothing is escaped, and no source path or tool version is in it.
    assert re.search(r"\bspread\b", text)
    assert re.search(r"\bcentred_0\b", text)
    assert "\\" not in text
    assert not re.search(r"\.py|\.cc|/hwnorm|[Yy]osys|Amaranth", text)
    assert text == verilog(design, "ln")


def test_rom_designs_have_no_load_port():
    text = verilog(RMSNorm(dim=8, x="s8/4", gamma="s8/6", y="s8/4", store="rom"))
    assert "s_axis_gamma" not in text
    assert "module rmsnorm_8(" in text


def test_exact_is_refused():
    with pytest.raises(ValueError, match=r"^rsqrt\.method exact is a model only"):
        verilog(RMSNorm(dim=8, rsqrt=Rsqrt("exact")))


def test_writing_is_all_or_nothing(tmp_path):
    (tmp_path / "f").write_text("here")
    with pytest.raises(ValueError, match=r"must be a folder, got a file$"):
        write_tree(tmp_path / "f", {"a": "1"})
    with pytest.raises(ValueError, match=r"^output .* must be writable, got: File exists$"):
        write_text(tmp_path / "f" / "x", "1")
    with pytest.raises(ValueError, match="must be writable, got: "):
        write_tree(tmp_path / "d", {"a": "1", "b/c": "2", "a/b": "3"})
    assert [p.name for p in tmp_path.iterdir()] == ["f"]
    write_tree(tmp_path / "d", {"a": "1", "b/c": "2"})
    assert (tmp_path / "d/b/c").read_text() == "2"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["d", "f"]
