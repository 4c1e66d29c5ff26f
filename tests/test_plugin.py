"""assert_bit_exact and the pytest plugin, on RTL that is right and RTL that is broken."""

import os
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest

from hwnorm import LayerNorm, RMSNorm, golden, model
from hwnorm.bitexact import assert_bit_exact
from hwnorm.cli import main
from hwnorm.design import load
from hwnorm.rows import random_rows

pytest_plugins = ["pytester"]

PAGE = Path(__file__).resolve().parent.parent / "docs" / "pytest.md"
HOME = os.environ.get("HOME", "")
SMALL = RMSNorm(dim=8, lanes=2, x="s8/4", gamma="s8/6", y="s10/6")
X = np.arange(-16, 16).reshape(4, 8)
GAMMA = np.arange(40, 80, 5)
TEST = """\
import numpy as np
import hwnorm

SMALL = hwnorm.RMSNorm(dim=8, lanes=2, x="s8/4", y="s10/6")
X = np.arange(-16, 16).reshape(4, 8)
"""


@pytest.fixture
def broken(monkeypatch):
    monkeypatch.setattr("hwnorm.ops.ShiftRight.rtl", lambda self, m, a, s, **_: (a >> s) + 1)


@pytest.fixture
def run(pytester, monkeypatch):
    """Run pytest on a text, with the plugin and no others, whatever is installed."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    # pytester's own empty home has no cache, and then Yosys is compiled for every test.
    monkeypatch.setenv("HOME", HOME)

    def call(text, *arguments):
        pytester.makepyfile(test_it=text)
        return pytester.runpytest_inprocess(
            "-p", "hwnorm.pytest_plugin", "-p", "no:cacheprovider", *arguments
        )

    return call


def failure(*arguments, **settings):
    with pytest.raises(AssertionError) as caught:
        assert_bit_exact(*arguments, **settings)
    return str(caught.value)


# -- the assertion ----------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["pysim", "icarus"])
def test_what_agrees_passes(engine, tmp_path):
    result = assert_bit_exact(SMALL, X, GAMMA, engine=engine, stall=0.3, seed=2, folder=tmp_path)
    assert (result.y == model(SMALL, X, GAMMA)).all()
    assert list(tmp_path.iterdir()) == []
    # Floats are quantised, presets found by name.
    assert_bit_exact("tiny-64", np.linspace(-1, 1, 64)[None])


def test_report(broken, tmp_path):
    text = failure(SMALL, X, GAMMA, seed=5, folder=tmp_path / "r")
    y = model(SMALL, X, GAMMA)
    head, *lines = text.splitlines()
    assert re.fullmatch(
        r"RTL \(pysim\) and model must agree: \d+ of 32 elements differ", head
    )  # fmt: skip
    place = re.fullmatch(r"first in row (\d+), element (\d+) \(beat (\d+), lane (\d+)\)", lines[0])
    row, element, beat, lane = map(int, place.groups())
    assert (beat, lane) == divmod(element, 2)
    expected, got = int(y[row, element]), int(lines[2].split()[1])
    assert lines[1].split() == ["expected", str(expected), "=", f"{expected / 64:.9g}"]
    assert lines[2].split() == ["got", str(got), "=", f"{got / 64:.9g}"]
    assert got != expected
    ideal = golden(SMALL, X, GAMMA)[row, element]
    assert lines[3].split() == ["golden", f"{ideal * 64:.2f}", "=", f"{ideal:.9g}"]
    wires = {line.split()[0]: line.split()[1] for line in lines if line.startswith("  ")}
    assert wires["sumsq"] == str(np.square(X[row]).sum())
    assert wires["x"] == str(X[row, element])
    assert wires["gamma"] == str(GAMMA[element])
    assert wires["y"] == str(expected)
    assert lines[-2] == f"reproducer: {tmp_path / 'r'}"


def test_reproducer_replays(tmp_path, monkeypatch, capsys):
    design = LayerNorm(dim=8, lanes=2, x="s8/4", gamma="s8/6", beta="s8/4", y="s10/6")
    x, beta = random_rows(design, 11, 1), np.arange(8)
    with monkeypatch.context() as broken:
        broken.setattr("hwnorm.ops.ShiftRight.rtl", lambda self, m, a, s, **_: (a >> s) + 1)
        text = failure(
            design, x, GAMMA / 64, beta, engine="icarus", stall=0.25, pattern="bursty", seed=3,
            folder=tmp_path,
        )  # fmt: skip
        monkeypatch.chdir(tmp_path)
        command = shlex.split(text.splitlines()[-1])
        assert main(command[1:]) == 1
        differ = re.search(r"(\d+) of 88", text)[1]
        assert f"must agree: {differ} of 88 elements differ" in capsys.readouterr().err
    assert main(command[1:]) == 0
    assert "bit-exact: 11 rows" in capsys.readouterr().out
    assert (tmp_path / "replay.sh").read_text() == (
        f'#!/bin/sh\ncd "$(dirname "$0")" && {shlex.join(command)}\n'
    )
    assert shlex.join(command) == (
        "hwnorm sim design.toml --data data.npz --rows 11 --engine icarus --stall 0.25 "
        "--pattern bursty --seed 3"
    )
    assert load(tmp_path / "design.toml") == design
    data = np.load(tmp_path / "data.npz")
    for name, values in {"x": x, "gamma": GAMMA, "beta": beta}.items():
        assert (np.load(tmp_path / f"{name}.npy") == values).all()
        assert (data[name] == values).all()
        assert data[name].dtype == np.int64


def test_flags_are_compared(monkeypatch, tmp_path):
    # Where a reproducer goes if no folder is given.
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("hwnorm.ops.Outside.rtl", lambda self, m, a: a == a)
    text = failure("tiny-64", np.zeros((1, 64), dtype=int))
    assert text.startswith(
        "RTL (pysim) and model must agree: the flag saturated must be False, got True\nreproducer: "
        f"{tmp_path}/hwnorm-mismatch-"
    )


def test_mismatch_is_told_where_nothing_can_be_written(broken, tmp_path):
    (tmp_path / "file").write_text("")
    text = failure(SMALL, X, folder=tmp_path / "file")
    assert "elements differ" in text
    assert "\nreproducer not written: output " in text


# -- the plugin -------------------------------------------------------------------------


def test_engines_parametrise(run):
    text = TEST + (
        "def test_a(hwnorm_simulate, hwnorm_engine):\n"
        "    assert hwnorm_simulate(SMALL, X).engine == hwnorm_engine\n"
        "def test_b(hwnorm_bit_exact):\n"
        "    assert hwnorm_bit_exact(SMALL, X, engine='pysim').engine == 'pysim'\n"
        "def test_c():\n    pass\n"
        "def test_d(request):\n"
        "    assert request.getfixturevalue('hwnorm_engine') == 'icarus'\n"
        "import pytest\n"
        "@pytest.mark.parametrize('hwnorm_engine', ['pysim'])\n"
        "def test_e(hwnorm_simulate):\n"
        "    assert hwnorm_simulate(SMALL, X).engine == 'pysim'\n"
    )
    result = run(text, "-v", "--hwnorm-engine=icarus,pysim,icarus")
    result.assert_outcomes(passed=7)
    for name in ("a[icarus]", "a[pysim]", "b[icarus]", "b[pysim]", "c", "d", "e[pysim]"):
        result.stdout.fnmatch_lines([f"*::test_{name.replace('[', '[[]')} PASSED*"])


def test_default_engine_and_design_files(run, pytester):
    pytester.path.joinpath("small.toml").write_text(
        'norm = "rmsnorm"\ndim = 8\n[format]\nx = "s8/4"\ny = "s10/6"\n'
    )
    text = TEST + (
        "def test_a(hwnorm_simulate, hwnorm_bit_exact):\n"
        "    result = hwnorm_simulate('small.toml', X)\n"
        "    assert result.engine == 'pysim'\n"
        "    assert (hwnorm_bit_exact('small.toml', X).y == result.y).all()\n"
    )
    run(text).assert_outcomes(passed=1)


def test_waves_of_failing_tests_only(run, pytester):
    text = TEST + (
        "def test_good(hwnorm_simulate):\n    hwnorm_simulate(SMALL, X)\n"
        "def test_bad(hwnorm_simulate):\n"
        "    hwnorm_simulate(SMALL, X)\n"
        "    hwnorm_simulate(SMALL, X, engine='pysim')\n"
        "    hwnorm_simulate(SMALL, X, fst='own.fst', engine='icarus')\n"
        "    assert False\n"
    )
    result = run(text, "--hwnorm-vcd=waves", "--hwnorm-engine=pysim,icarus")
    result.assert_outcomes(passed=2, failed=2)
    assert sorted(path.name for path in (pytester.path / "waves").iterdir()) == [
        f"test_it.py-test_bad-{engine}-{n}.vcd" for engine in ("icarus", "pysim") for n in (1, 2)
    ]
    for path in (pytester.path / "waves").iterdir():
        assert "$enddefinitions" in path.read_text()


@pytest.mark.usefixtures("broken")
def test_failing_bits_leave_report_reproducer_and_waves(run, pytester):
    text = TEST + "def test_a(hwnorm_bit_exact):\n    hwnorm_bit_exact(SMALL, X)\n"
    result = run(text, "--hwnorm-vcd=waves", "--hwnorm-seed=7", "--basetemp=tmp")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E *RTL (pysim) and model must agree: * of 32 elements differ",
            "E *reproducer: *hwnorm-1",
            "E *hwnorm sim design.toml --data data.npz * --seed 7",
            "E *waves: *test_it.py-test_a-1.vcd",
        ]
    )
    assert (pytester.path / "tmp/test_a0/hwnorm-1/data.npz").exists()
    # The report speaks; the insides of the assertion do not.
    result.stdout.no_fnmatch_line("*bitexact.py*")


def test_seeds(run):
    text = TEST + (
        "def test_a(hwnorm_simulate, hwnorm_seed):\n"
        "    assert hwnorm_seed == {seed}\n"
        "    cycles = [hwnorm_simulate(SMALL, X, stall=0.5).cycles for _ in range(2)]\n"
        "    given = [hwnorm_simulate(SMALL, X, stall=0.5, seed=s).cycles for s in (0, 9)]\n"
        "    assert given[0] != given[1]\n"
        "    assert cycles == [given[{place}]] * 2\n"
    )
    run(text.replace("{seed}", "9").replace("{place}", "1"), "--hwnorm-seed=9").assert_outcomes(
        passed=1
    )


def test_default_seed(run):
    run("def test_a(hwnorm_seed):\n    assert hwnorm_seed == 0\n").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--hwnorm-engine=pysim,icarsu"],
            "--hwnorm-engine must be one of pysim, verilator, cxxrtl, icarus, got 'icarsu'",
        ),
        (
            ["--hwnorm-engine="],
            "--hwnorm-engine must be one of pysim, verilator, cxxrtl, icarus, got ''",
        ),
        (
            ["--hwnorm-seed=-1"],
            "--hwnorm-seed must be an integer of at least 0, got '-1'",
        ),
    ],
)
def test_usage_errors(run, options, message):
    result = run("def test_a():\n    pass\n", *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.stderr.str().strip() == f"ERROR: {message}"


def test_missing_engine(run, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    result = run("def test_a():\n    pass\n", "--hwnorm-engine=icarus")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.stderr.str().strip() == (
        "ERROR: --hwnorm-engine icarus is not usable here: iverilog is missing; "
        "install it with: apt-get install iverilog"
    )


# -- the page ---------------------------------------------------------------------------


def test_page_is_true(run, pytester, monkeypatch):
    page = PAGE.read_text(encoding="utf-8")
    code = re.search(r"^```python\n(.*?)^```$", page, re.S | re.M)[1]
    run(code).assert_outcomes(passed=2)
    monkeypatch.setattr("hwnorm.ops.Clamp.rtl", lambda self, m, a: (a | 4)[: len(a)].as_signed())
    printed = run(code, "--basetemp=tmp").stdout.str()
    printed = printed.replace(f"{pytester.path}/", "")
    printed = re.sub(r"^E {7}(AssertionError: )?", "", printed, flags=re.M)
    report = re.search(r"^```text\n(.*?)^```$", page, re.S | re.M)[1]
    assert report in printed
