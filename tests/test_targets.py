"""Targets: what a period needs, what is refused, and what is estimated."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import hwnorm
from hwnorm import LayerNorm, RMSNorm, ops
from hwnorm.cli import main
from hwnorm.design import CATALOGUE
from hwnorm.estimate import estimate
from hwnorm.fixed import Fixed
from hwnorm.flow import trace
from hwnorm.norms.timing import accumulator_lag, least_period
from hwnorm.ops import Column, Cost
from hwnorm.ops.multiplier import Tiling
from hwnorm.rows import corner_rows, random_rows
from hwnorm.targets import GENERIC, TARGETS

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

import calibration_designs
import probes

DATA = Path(__file__).resolve().parent.parent / "tools" / "calibration.json"
ECP5 = TARGETS["ecp5"]
WIDE = RMSNorm(dim=24, lanes=4, x="s24/8", gamma="s16/13", y="s16/9")


def tiling(a, b=None, target=ECP5):
    formats = {"a": Fixed.parse(a)} | ({"b": Fixed.parse(b)} if b else {})
    flow = trace(lambda a, b=None: {"y": a * (a if b is None else b)}, **formats)
    return Tiling.of(*flow.outputs["y"].args, target)


@pytest.mark.parametrize(
    ("a", "b", "blocks", "rows"),
    [
        ("s18/0", None, 1, 0),
        ("s24/0", None, 1, 7),
        ("s30/0", None, 3, 0),
        ("s18/0", "s18/0", 1, 0),
        ("s24/0", "s18/0", 1, 7),
        ("s18/0", "s24/0", 1, 7),
        ("s30/0", "s18/0", 2, 0),
        ("s30/0", "s30/0", 4, 0),
        ("u18/0", "s18/0", 1, 1),
    ],
)
def test_tilings(a, b, blocks, rows):
    found = tiling(a, b)
    assert (len(found.pairs), found.rows) == (blocks, rows)


def test_other_families_have_other_blocks():
    assert tiling("s24/0", "s18/0", TARGETS["xc7"]).rows == 0
    assert tiling("s18/0", "s16/0", TARGETS["ice40"]).rows == 3


@pytest.mark.parametrize("period_ns", [4.6, 6.0, 9.0])
@pytest.mark.parametrize("stall", [0.0, 0.3])
def test_rtl_is_the_model_at_any_period_of_a_family(period_ns, stall):
    for design in (
        replace(WIDE, target="ecp5", period_ns=period_ns),
        LayerNorm(
            dim=12, lanes=2, x="s12/6", gamma="s9/7", beta="s8/4", y="s10/5",
            target="ecp5", period_ns=period_ns,
        ),
    ):  # fmt: skip
        x = np.concatenate([corner_rows(design), random_rows(design, 4, 1)])
        result = hwnorm.simulate(design, x, stall=stall, seed=1)
        assert (result.y == hwnorm.model(design, x)).all()
        assert stall or result.latency_cycles == design.latency


def test_a_long_accumulator_adds_in_pieces():
    assert accumulator_lag(replace(WIDE, target="ecp5", period_ns=9.0)) == 0
    assert accumulator_lag(replace(WIDE, target="ecp5", period_ns=4.6)) > 0


@pytest.mark.parametrize("target", [name for name in TARGETS if name != "generic"])
def test_unreachable_periods_are_refused(target):
    design = CATALOGUE["smollm2"]
    with pytest.raises(ValueError, match=r"^period_ns must be at least ") as caught:
        replace(design, target=target, period_ns=1.0)
    message = str(caught.value)
    assert f"for {target}, got 1: " in message
    assert " is limited by a" in message
    least = float(message.split()[5])
    assert least_period(replace(design, target=target, period_ns=least))[0] == least
    with pytest.raises(ValueError, match=r"^period_ns must be at least "):
        replace(design, target=target, period_ns=least - 0.1)


def test_nothing_exceeds_the_period():
    for name in ("smollm2", "vit-layernorm-768", "ice40-log-256"):
        design = CATALOGUE[name]
        target = TARGETS[design.target]
        for flow in (design.flows.gather, design.flows.solve, design.flows.apply):
            assert design.schedule(flow).slowest_ns + target.clock_ns <= design.period_ns


def test_a_generic_part_refuses_no_period():
    assert RMSNorm(dim=8, period_ns=0.1).latency > RMSNorm(dim=8, period_ns=8).latency
    assert GENERIC.calibrated == "none"


def test_target_and_period_on_the_command_line(capsys):
    assert main(["check", "tiny-64", "--target", "ecp5", "--period", "6", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert set(data["estimate"]) == {
        "target", "calibrated", "fmax_mhz", "limited_by", "lut", "ff", "dsp", "bram"
    }  # fmt: skip
    assert data["estimate"]["target"] == "ecp5"
    assert data["estimate"]["dsp"] == 9
    assert main(["check", "tiny-64", "--target", "ecp5", "--period", "2"]) == 2
    assert "period_ns must be at least" in capsys.readouterr().err
    assert main(["check", "tiny-64", "--target", "ecp"]) == 2
    assert "target of rmsnorm must be one of generic, ecp5" in capsys.readouterr().err


def test_more_lanes_and_shorter_periods_take_more():
    few, many = (estimate(replace(WIDE, lanes=n, target="ecp5", period_ns=8.0)) for n in (2, 8))
    assert (few.lut, few.ff, few.dsp) < (many.lut, many.ff, many.dsp)
    fast = estimate(replace(WIDE, target="ecp5", period_ns=5.5))
    slow = estimate(replace(WIDE, target="ecp5", period_ns=12.0))
    assert fast.fmax_mhz > slow.fmax_mhz
    assert fast.ff > slow.ff


def test_cost_adds_up():
    def function(x, i):
        entry = Column("t", (1, 2, -3, 4), 0)[i]
        return {"y": (x * entry + 5) * 3, "wide": (x << 0) * 6}

    flow = trace(function, x=Fixed.of(True, 25), i=Fixed(0, 3))
    by_op = {type(w).__name__: w.cost for w in flow.wires if w.cost != Cost()}
    assert by_op["Lookup"] == Cost(rom_bits=16, luts=4)
    assert by_op["Add"] == Cost(adder_bits=28)
    # Of 25 bits, 17 take a multiplier and 8 are rows of adders; a factor of 3 or 6 is an addition.
    assert [w.cost for w in flow.wires if isinstance(w, ops.Mul)] == [
        Cost(luts=48, multipliers=1, adder_bits=48), Cost(adder_bits=29), Cost(adder_bits=28)
    ]  # fmt: skip
    assert flow.cost == Cost(luts=52, multipliers=1, rom_bits=16, adder_bits=133)


@pytest.mark.parametrize("family", ["ecp5", "ice40", "gowin"])
def test_estimates_are_within_the_errors_that_are_stated(family):
    known = json.loads(DATA.read_text(encoding="utf-8"))[family]
    designs = calibration_designs.synthesised(family)
    assert set(known) == set(designs)
    off = {"fmax_mhz": [], "lut": [], "ff": [], "dsp": [], "bram": []}
    for name, cells in known.items():
        guess = estimate(designs[name])
        if "fmax_mhz" in cells and guess.calibrated == "nextpnr":
            off["fmax_mhz"].append(guess.fmax_mhz / float(np.median(cells["fmax_mhz"])) - 1)
        for what in ("lut", "ff", "dsp", "bram"):
            if cells[what]:
                off[what].append(getattr(guess, what) / cells[what] - 1)
    assert len(off["fmax_mhz"]) >= (0 if family == "gowin" else 30)
    # As docs/timing.md says of nine tenths of the designs: a fifth, flip-flops a quarter.
    most = {"fmax_mhz": 0.20, "lut": 0.20, "ff": 0.25, "dsp": 0.0, "bram": 0.05}
    for what, errors in off.items():
        # Yosys packs no registers into Gowin's multipliers.
        if errors and (family, what) != ("gowin", "ff"):
            assert np.quantile(np.abs(errors), 0.9) <= most[what], what


def test_estimates_of_the_catalogue():
    known = json.loads(DATA.read_text(encoding="utf-8"))["catalogue"]
    assert set(known) == set(CATALOGUE)
    for name, cells in known.items():
        design = CATALOGUE[name]
        family = "ecp5" if design.target == "generic" else design.target
        guess = estimate(replace(design, target=family))
        assert abs(guess.fmax_mhz / cells["fmax_mhz"][0] - 1) <= 0.20, name
        assert abs(guess.lut / cells["lut"] - 1) <= 0.15, name
        assert (guess.dsp, guess.bram) == (cells["dsp"], cells["bram"]), name


def test_the_ends_of_rows_of_any_length_limit_the_clock():
    given = {"lanes": 4, "x": "s16/8", "y": "s16/10", "gamma": "s16/14"}
    design = RMSNorm(dim_max=768, target="ecp5", period_ns=6.0, **given)
    # Median of 3 seeds on an LFE5U-25F, docs/decisions/0014.
    assert abs(estimate(design).fmax_mhz / 99.7 - 1) <= 0.20
    assert estimate(replace(design, dim_max=None, dim=768)).fmax_mhz > 130


@pytest.mark.parametrize("family", ["ecp5", "ice40"])
def test_delays_are_those_of_the_probes(family):
    periods = json.loads((DATA.parent / "probes.json").read_text(encoding="utf-8"))[family]
    assert set(periods) == set(probes.probes())
    for name, (_, delays) in probes.probes().items():
        used = zip(delays, probes.DELAYS, strict=True)
        expected = sum(n * getattr(TARGETS[family], delay) for n, delay in used)
        assert abs(expected / periods[name] - 1) < 0.2, name
