"""The checks for users' norms: pass for norms that are right, and catch those that are not."""

import re
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_docs import blocks, matches, steps
from test_fixed import raises

import hwnorm
from hwnorm import LayerNorm, RMSNorm, Rsqrt, testing
from hwnorm.cli import main
from hwnorm.ops import const

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "mean_abs_norm.py"
PAGE = ROOT / "docs" / "own-norm.md"

MEAN_ABS = hwnorm.load(f"{EXAMPLE}:MeanAbsNorm")
MeanAbsNorm = type(MEAN_ABS)
SMALL = MeanAbsNorm(dim=24, lanes=3, eps=0.25, x="s8/4", gamma="s8/6", y="s8/2")


@testing.parametrize_with_checks(
    [
        MEAN_ABS,
        SMALL,
        replace(SMALL, store="rom", rounding="floor", overflow="wrap", gamma_offset=1.0),
        LayerNorm(dim=40, lanes=4, x="s12/6", gamma="s12/9", beta="s7/3", y="s12/8"),
        RMSNorm(dim=16, x="s8/4", gamma="s8/6", y="s8/4", rsqrt=Rsqrt("log")),
        RMSNorm(dim=16, x="s8/4", gamma="s8/6", y="s8/4", rsqrt=Rsqrt("exact")),
    ]
)
def test_norms_pass(design, check):
    check(design)


def test_check_norm_runs_them_all(monkeypatch):
    ran = []
    checks = {name: lambda design, name=name: ran.append((name, design)) for name in "ab"}
    monkeypatch.setattr(testing, "checks_of", lambda design, engines: checks)
    assert testing.check_norm(SMALL) is None
    assert ran == [("a", SMALL), ("b", SMALL)]


def test_names_of_checks():
    assert list(testing.checks_of(SMALL, engines=("icarus", "cxxrtl"))) == [
        "text", "golden", "corners", "bound", "intervals", "rtl at 2 ns", "rtl at 8 ns",
        "rtl at 100 ns", "rtl with lanes=1", "rtl with lanes=6", "rtl with lanes=12", "stalls",
        "bursts of stalls", "rate", "verilog in icarus", "verilog in cxxrtl",
    ]  # fmt: skip
    exact = RMSNorm(dim=16, rsqrt=Rsqrt("exact"))
    assert list(testing.checks_of(exact)) == ["text", "golden", "corners", "bound"]


# -- norms that are wrong ---------------------------------------------------------------


class NoScaleTerm(MeanAbsNorm):
    """Its bound forgets the error of the table."""

    @property
    def error_terms(self):
        return {"rounding of y": 0.5}


class NoGamma(MeanAbsNorm):
    """It forgets gamma."""

    def apply(self, x, inv, gamma=None):
        return super().apply(x, inv)


class NoEps(MeanAbsNorm):
    """It adds half of eps."""

    @property
    def eps_constant(self):
        return const(self.dim * self.eps / 2, self.x.frac)


class NarrowPeak(MeanAbsNorm):
    """It claims that outputs are smaller than they get."""

    @property
    def peak(self):
        return self.dim / 4


class GoldenOverAll(MeanAbsNorm):
    """Its golden averages over all rows."""

    def golden(self, x, gamma=None, beta=None):
        y = x / (np.mean(np.abs(x)) + self.eps)
        return y if gamma is None else y * gamma


class GoldenWithoutEps(MeanAbsNorm):
    """Its golden divides zero by zero."""

    def golden(self, x, gamma=None, beta=None):
        with np.errstate(invalid="ignore"):
            return x / np.mean(np.abs(x), axis=-1, keepdims=True)


class TakenName(MeanAbsNorm):
    """Its name is that of another."""

    kind = "rmsnorm"


class WrongExact(RMSNorm):
    """It inherits an exact form that is not its own."""

    kind = "half-norm"

    def golden(self, x, gamma=None, beta=None):
        return super().golden(x, gamma) / 2


def made(cls):
    """The small design as a norm of another class."""
    return cls(dim=24, lanes=3, eps=0.25, x="s8/4", gamma="s8/6", y="s8/2")


@pytest.mark.parametrize(
    ("cls", "check", "error", "sentence"),
    [
        (NoScaleTerm, "corners", AssertionError, r"max error must keep the bound 0\.5000 ulp"),
        (NoGamma, "bound", AssertionError, r"max error must keep the bound .* ulp, got .* in row"),
        (NoEps, "corners", AssertionError, r"max error must keep the bound"),
        (NarrowPeak, "intervals", OverflowError, r"unit"),
        (GoldenOverAll, "golden", AssertionError, r"golden of a row must not depend on other rows"),
        (GoldenWithoutEps, "golden", AssertionError, r"golden must be finite"),
        (TakenName, "text", AssertionError, r"kind must be a new name, got 'rmsnorm'"),
        (WrongExact, "golden", AssertionError, r"exact must round golden, got \d+\.\d{4} ulp"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_wrong_norm_is_caught(cls, check, error, sentence):
    design = made(cls)
    with pytest.raises(error, match=sentence):
        testing.checks_of(design)[check](design)
    with pytest.raises((AssertionError, OverflowError)):
        testing.check_norm(design)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            lambda r: {},
            r"RTL \(pysim\) and model must agree: 1 of \d+ (?s:.*)files cannot name the norm",
        ),
        (lambda r: {"saturated": not r.saturated}, "the flag saturated must be"),
        (lambda r: {"framing_error": True}, "the flag framing_error must be False, got True"),
        (
            lambda r: {"latency_cycles": r.latency_cycles + 1},
            r"latency must be \d+ cycles, got \d+",
        ),
        (lambda r: {"beats_per_cycle": 0.5}, "a beat must come every cycle, got 0.500"),
    ],
)
def test_wrong_hardware_is_caught(change, sentence, monkeypatch):
    def broken(*args, sink, **options):
        rows = []
        result = hwnorm.simulate(*args, sink=rows.append, **options)
        changes = change(result)
        rows[0][0, 5] ^= not changes
        sink(np.concatenate(rows))
        return replace(result, **changes)

    monkeypatch.setattr("hwnorm.bitexact.simulate", broken)
    with pytest.raises(AssertionError, match=sentence):
        testing.check_rate(SMALL)


def test_bad_arguments_are_refused():
    with raises("designs must be hwnorm norms, got 'tiny-64'"):
        testing.parametrize_with_checks(["tiny-64"])
    message = "engine must be one of pysim, verilator, cxxrtl, icarus, got 'modelsim'"
    with raises(message):
        testing.check_norm(SMALL, engines=["modelsim"])


# -- the example and its page -----------------------------------------------------------


def test_example_is_small():
    lines = EXAMPLE.read_text(encoding="utf-8").split("class MeanAbsNorm")[1].splitlines()[2:]
    assert len([line for line in lines if line.strip()]) <= 40


def test_example_has_rules():
    with raises("dim * eps must be a multiple of the lsb of x, got 0.16384 lsb"):
        MeanAbsNorm(eps=1e-5)
    message = "rsqrt.method of mean-abs-norm must be one of direct, linear, quadratic, got 'exact'"
    with raises(message):
        MeanAbsNorm(rsqrt=Rsqrt("exact"))


def test_no_exact_form_is_said(capsys):
    assert hwnorm.measure(SMALL, np.ones((1, 24), dtype=int)).all.misrounded is None
    assert main(["eval", f"{EXAMPLE}:MeanAbsNorm"]) == 0
    assert "misrounded      unknown" in capsys.readouterr().out


def test_page_shows_the_example_and_runs(monkeypatch, capsys):
    monkeypatch.chdir(EXAMPLE.parent)
    assert blocks(PAGE, "python")[0] == EXAMPLE.read_text(encoding="utf-8")
    shown = [step for block in blocks(PAGE, "sh") for step in steps(block)]
    assert len(shown) >= 3
    for command, expected in shown:
        words = shlex.split(command)
        assert words[0] == "hwnorm"
        assert main(words[1:]) == 0
        printed = capsys.readouterr().out
        assert matches(expected, printed), f"{command} prints\n{printed}"


def test_page_shows_a_test(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLE.parent)
    names = {}
    exec(blocks(PAGE, "py")[0], names)
    (mark,) = names["test_mean_abs_norm"].pytestmark
    designs = {case.values[0]: None for case in mark.args[1]}
    assert [design.dim for design in designs] == [64, 24]
    assert len(mark.args[1]) == sum(len(testing.checks_of(design)) for design in designs)


def test_page_lists_every_check():
    text = PAGE.read_text(encoding="utf-8")
    for name in testing.checks_of(SMALL):
        words = re.sub(r"[\d.]+ ns|=\d+| icarus", "", name)
        assert f"`{words.strip()}" in text, name


# -- norms of a file --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Thing = 3", "{path}:Thing must be a norm or a design, got 3"),
        ("", "{path}:Thing must be a norm or a design, got None"),
        ("1 / 0", "{path}:Thing: ZeroDivisionError: division by zero"),
        (
            "from hwnorm import RMSNorm as Thing",
            "{path}:Thing: ValueError: dim must be given, got none",
        ),
    ],
)
def test_load_of_a_file_without_a_norm(text, sentence, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(text, encoding="utf-8")
    with raises(sentence.format(path=path)):
        hwnorm.load(f"{path}:Thing")


def test_load_of_a_design_in_a_file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("import hwnorm\nWIDE = hwnorm.RMSNorm(dim=96)\n", encoding="utf-8")
    assert hwnorm.load(f"{path}:WIDE") == RMSNorm(dim=96)
    with raises(f"norm file {tmp_path / 'no.py'} must exist, got none"):
        hwnorm.load(f"{tmp_path / 'no.py'}:WIDE")
