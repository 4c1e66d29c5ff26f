"""The cocotb test of a bundle, as a user runs it, in Icarus Verilog and in Verilator."""

import ast
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from hwnorm import LayerNorm, RMSNorm
from hwnorm.design import CATALOGUE
from hwnorm.export.bundle import bundle
from hwnorm.export.cocotb_test import cocotb_files
from hwnorm.files import write_tree
from hwnorm.hdl.verilog import top_name
from hwnorm.rows import bench_rows

SMALL = LayerNorm(dim=12, lanes=3, x="s12/6", gamma="s9/7", beta="s8/4", y="s10/5", period_ns=3.3)


def files_of(design, name, rows):
    """A bundle with parameters of both signs."""
    rng = np.random.default_rng(0)
    given = {
        field: rng.integers(fmt.lo, fmt.hi + 1, design.dim)
        for field, fmt in design.parameters.items()
    }
    return bundle(design, name, bench_rows(design, rows), **given)


def python(folder, *arguments):
    """Run Python in a bundle's folder of tests; returns exit code and output."""
    # This session's pytest is no business of the one inside.
    environment = {key: v for key, v in os.environ.items() if not key.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder / "tb", env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("simulator", ["icarus", "verilator"])
@pytest.mark.parametrize(("name", "rows"), [("tiny-64", 12), ("vit-layernorm-768", 3)])
def test_presets_pass(name, rows, simulator, tmp_path):
    write_tree(tmp_path / "b", files_of(CATALOGUE[name], name, rows))
    code, text = python(tmp_path / "b", f"run_{top_name(name)}.py", simulator)
    assert code == 0, text
    assert "TESTS=2 PASS=2 FAIL=0 SKIP=0" in text


def test_pytest_takes_it(tmp_path):
    write_tree(tmp_path / "b", files_of(SMALL, "narrow", 6))
    code, text = python(
        tmp_path / "b", "-m", "pytest", "-W", "error", "run_narrow.py", "-k", "icarus"
    )
    assert code == 0, text
    assert "1 passed, 1 deselected" in text


def flip(*lines):
    """A change of a .mem file: the lowest bit of these lines."""

    def damage(text):
        words = text.split()
        for n in lines:
            words[n] = format(int(words[n], 16) ^ 1, f"0{len(words[n])}x")
        return "".join(f"{word}\n" for word in words)

    return damage


def stuck(target, value):
    """A change of Verilog: always the same is assigned."""
    return lambda text: re.sub(rf"^( +{target} <?= )\w.*;$", rf"\g<1>{value};", text, flags=re.M)


@pytest.mark.parametrize(
    ("file", "damage", "message"),
    [
        ("tb/gold.mem", flip(9), r"row 2 beat 1: got \w+, expected \w+"),
        ("tb/gold.mem", lambda text: text[: len(text) * 5 // 6], "6 rows in stim.mem, 5 in gold"),
        ("tb/gamma.mem", flip(0, 1, 2, 3), r"row \d+ beat \d+: got"),
        ("tb/beta.mem", flip(1), "row 0 beat 1: got"),
        ("rtl/narrow.v", stuck("assign m_axis_tlast", "1'h0"), "SimTimeoutError"),
        ("rtl/narrow.v", stuck("assign m_axis_tlast", "1'h1"), "tlast must be at beat 4, got 1"),
        ("rtl/narrow.v", stuck("framing_error", "1'h1"), "framing_error is 1, expected 0"),
    ],
    ids=["data", "rows", "gamma", "beta", "no last", "early last", "framing"],
)
def test_it_fails_when_it_should(file, damage, message, tmp_path):
    files = files_of(SMALL, "narrow", 6)
    damaged = damage(files[file])
    assert damaged != files[file]
    write_tree(tmp_path / "b", files | {file: damaged})
    code, text = python(tmp_path / "b", "run_narrow.py")
    assert code == 1, text
    assert re.search(message, text), text


def test_unknown_simulator_is_refused(tmp_path):
    write_tree(tmp_path / "b", {f"tb/{k}": v for k, v in cocotb_files(SMALL, "narrow").items()})
    code, text = python(tmp_path / "b", "run_narrow.py", "ghdl")
    assert (code, text) == (1, "simulator must be one of icarus, verilator, got ghdl\n")


@pytest.mark.parametrize(
    ("design", "loaded"),
    [
        (SMALL, ("gamma", "beta")),
        (CATALOGUE["smollm2"], ("gamma",)),
        (CATALOGUE["tiny-64"], ()),
        (RMSNorm(dim=8, x="s8/4", gamma="s8/6", y="s8/4", store="rom"), ()),
    ],
)
def test_text(design, loaded):
    files = cocotb_files(design, "t")
    assert list(files) == ["cocotb_t_tb.py", "run_t.py"]
    assert files == cocotb_files(design, "t")
    named = re.findall(
        r"^(BEATS|LATENCY|PERIOD_PS|PARAMETERS) = ([^#\n]+)", files["cocotb_t_tb.py"], re.M
    )
    assert {name: ast.literal_eval(value.strip()) for name, value in named} == {
        "BEATS": design.beats,
        "LATENCY": design.latency,
        "PERIOD_PS": design.period_ns * 1000,
        "PARAMETERS": loaded,
    }
