"""Spaces, limits and objectives: what they mean, and what is said of bad ones."""

import dataclasses
import re

import numpy as np
import pytest
from test_fixed import raises
from test_tune import RMS, layers_of

import hwnorm
from hwnorm.design import dumps, parse
from hwnorm.tune.cost import estimate
from hwnorm.tune.limits import Limit, parse_limits, parse_objectives
from hwnorm.tune.rows import Rows
from hwnorm.tune.space import KEYS, Space, parse_choice, point_key, promise, varied
from hwnorm.tune.toml import point_toml


def space_of(settings=None, **values):
    return Space.of({"design": RMS, "space": values} | (settings or {}))


def test_the_default_space_around_a_design():
    space = Space.around(hwnorm.load("smollm2"))
    points = space.points()
    # Three tables and three kinds of logarithms, of 2 to 4096 entries and 0 to 4 guard bits.
    assert len(points) == (3 + 3) * 12 * 5
    assert len({point_key(point) for point in points}) == len(points)
    assert all(tuple(point) == KEYS for point in points)
    assert Space.around(hwnorm.LayerNorm(dim=8)).size == 3 * 12 * 5


def test_values_and_ranges():
    space = space_of(
        method="linear", segments={"from": 3, "to": 40}, guard_bits={"from": 0, "to": 4, "step": 2},
        lanes=[4, 8], period_ns={"from": 4, "to": 5, "step": 0.5}, gamma=["s16/13", "none"],
    )  # fmt: skip
    assert space.values["segments"] == (4, 8, 16, 32)
    assert space.values["guard_bits"] == (0, 2, 4)
    assert space.values["period_ns"] == (4, 4.5, 5)
    assert space.size == len(space.points()) == 4 * 3 * 2 * 3 * 2
    assert {point["gamma"] for point in space.points()} == {"s16/13", None}


def test_what_does_not_count_makes_no_points():
    space = space_of(method=["linear", "log"], log_method=["mitchell", "linear"], segments=[8])
    assert space.size == 4
    assert [p["log_method"] for p in space.points()] == [None, "linear", "mitchell"]
    # The default number of segments is spelled out, so that it is not tried twice.
    assert len(space_of(guard_bits=[2]).points()) == 1
    assert space_of(guard_bits=[2]).points()[0]["segments"] == 512


def test_a_point_is_its_design():
    space = space_of(
        method=["direct", "quadratic", "log"], segments=[4, 64], guard_bits=[0, 3], log_frac=[12],
        x=["s18/9"], gamma=["none", "s12/9"], y=["s12/7"], rounding=["floor"], lanes=[2],
        period_ns=[5.0],
    )  # fmt: skip
    for point in space.points():
        design = space.design(point)
        assert parse(point_toml(space, point)) == design
        assert parse(dumps(design)) == design
        assert str(design.y) == point["y"] == "s12/7"
        assert design.rsqrt.method == point["method"]
        size = design.log if point["method"] == "log" else design.rsqrt
        assert size.segments == point["segments"]
        assert (design.lanes, design.period_ns, design.rounding) == (2, 5.0, "floor")


def test_formats_chosen_from_data():
    rows = Rows.of(layers_of())
    space = space_of(x=["s20/auto", "auto"], y=["s12/auto"], gamma=["s10/auto"]).resolved(rows)
    largest = {
        "x": rows.largest("x"), "gamma": rows.largest("gamma"),
        "y": max(np.abs(hwnorm.golden(RMS, one.x, one.gamma)).max() for one in layers_of()),
    }  # fmt: skip
    for name, values in space.values.items():
        for value in values:
            fmt = hwnorm.Fixed.parse(value)
            assert fmt.hi * fmt.lsb >= 1.99 * largest[name]
            assert fmt.hi * fmt.lsb < 4.01 * largest[name]
    assert len(space.values["x"]) == 1  # both are 20 bits wide


def test_objectives_by_what_varies():
    rows = Rows.of(layers_of())
    assert space_of(guard_bits=[1, 2]).resolved(rows).error == "max_ulp"
    varied = space_of(y=["s16/11", "s12/7"]).resolved(rows)
    assert (varied.error, varied.cost, varied.ends) == ("end_sqnr_db", "rom_bits", True)
    chosen = space_of({"objectives": ["sqnr", "lut"]}).resolved(rows)
    assert (chosen.error, chosen.cost, chosen.ends) == ("sqnr_db", "lut", False)


def test_space_files(tmp_path):
    (tmp_path / "mine.toml").write_text(dumps(RMS))
    path = tmp_path / "space.toml"
    path.write_text(
        'design = "mine.toml"\nlimits = ["max_ulp <= 1", "bram = 0"]\nobjectives = ["rms_ulp"]\n'
        'layers = "mean"\nholdout = 0.1\nbudget = 50\nseed = 3\n[space]\nguard_bits = [1, 2]\n'
    )
    space = Space.load(path)
    assert space.base == RMS
    assert list(map(str, space.limits)) == ["max_ulp <= 1", "bram = 0"]
    assert (space.error, space.layers, space.holdout) == ("rms_ulp", "mean", 0.1)
    assert (space.budget, space.seed, len(space.points())) == (50, 3, 2)
    assert Space.load(tmp_path / "mine.toml") == Space.around(RMS)
    assert Space.load("tiny-64") == Space.around(hwnorm.load("tiny-64"))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"spaces": {}},
            "unknown key spaces; a space file has design, space, limits, objectives, "
            "layers, holdout, budget, seed",
        ),
        ({"design": 3}, "design must be a file or a preset, got 3"),
        ({"space": 3}, "space must be a section [space], got 3"),
        (
            {"space": {"segment": [2]}},
            f"unknown key space.segment; a space may vary {', '.join(KEYS)}",
        ),
        ({"space": {"segments": []}}, "space.segments must have at least one value, got none"),
        (
            {"space": {"segments": {"from": 65, "to": 127}}},
            "space.segments must have at least one value, got none",
        ),
        ({"space": {"segments": [3]}}, "space.segments must be a power of two in 2..65536, got 3"),
        (
            {"space": {"guard_bits": {"from": 3}}},
            "space.guard_bits as a range has from, to and step, got {'from': 3}",
        ),
        (
            {"space": {"guard_bits": {"from": 3, "to": 1}}},
            "space.guard_bits must have from <= to and a positive step, got {'from': 3, 'to': 1}",
        ),
        (
            {"space": {"guard_bits": {"from": "a", "to": 1}}},
            "space.guard_bits as a range must be of numbers, got 'a'",
        ),
        ({"space": {"guard_bits": [13]}}, "rsqrt.guard_bits must be an integer in 0..12, got 13"),
        (
            {"space": {"method": ["exact"]}},
            "space.method must be of direct, linear, quadratic, log, got 'exact'",
        ),
        ({"space": {"beta": ["s8/4"]}}, "space.beta: rmsnorm has no beta"),
        ({"space": {"x": ["16.8"]}}, "space.x: a format is spelled like s16/8 or u8/0, got '16.8'"),
        (
            {"space": {"x": ["s40/auto"]}},
            "space.x: s16/auto needs a width of 2 to 32, got 's40/auto'",
        ),
        ({"space": {"lanes": [3]}}, "lanes must divide dim, got lanes=3 and dim=64"),
        ({"space": {"log_frac": [1]}}, "log.frac must be an integer in 2..30, got 1"),
        (
            {"space": {"scale_bits": [18]}},
            "scale_bits is the width of y plus guard_bits; vary guard_bits",
        ),
        ({"layers": "best"}, "layers must be one of worst, mean, pooled, got 'best'"),
        ({"budget": 0}, "budget must be a positive integer, got 0"),
        ({"holdout": "x"}, "holdout must be a number in 0..0.5, got 'x'"),
        (
            {"limits": "max_ulp <= 1"},
            "limits must be a list like ['max_ulp <= 1'], got 'max_ulp <= 1'",
        ),
        ({"limits": ["max_ulp"]}, "a limit is written like max_ulp <= 1, got 'max_ulp'"),
        (
            {"limits": ["max_ulp <= 1", "max_ulp > 1"]},
            "limits must not contradict, got max_ulp <= 1 and max_ulp > 1",
        ),
        ({"objectives": "lut"}, "objectives must be a list, got 'lut'"),
        ({"objectives": ["lut", "dsp"]}, "objectives must name one figure of cost, got lut, dsp"),
    ],
)
def test_bad_spaces(settings, sentence):
    with raises(sentence):
        Space.of({"design": RMS} | settings)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("= 3", "must be TOML, got:"),
        ("layers = 'x'", "design must be a file or a preset, got None"),
        ("design = 'nothing.toml'", "design file .*nothing.toml must be readable"),
    ],
)
def test_bad_space_files(tmp_path, text, sentence):
    path = tmp_path / "space.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: {sentence}"):
        Space.load(path)
    with pytest.raises(ValueError, match=r"space .*gone.toml must be readable, got: No such file"):
        Space.load(tmp_path / "gone.toml")


@pytest.mark.parametrize(
    ("text", "good", "bad"),
    [
        ("max_ulp<=1", 1.0, 1.01), ("sqnr >= 58", 58, 57.9), ("dsp = 0", 0, 1), ("dsp == 0", 0, 2),
        ("lut < 1500", 1499, 1500), ("fmax >= 150", 150, 149.9), ("misrounded < 1%", 0.0099, 0.01),
    ],
)  # fmt: skip
def test_limits(text, good, bad):
    limit = Limit.parse(text)
    assert limit.holds(good)
    assert not limit.holds(bad)
    assert not limit.holds(None)
    assert limit.excess(good) == 0 < limit.excess(bad + 0.001)
    assert Limit.parse(str(limit)) == limit


def test_varied_from_the_command_line():
    texts = ["segments=2..8", "y=s8/3,s16/11", "period_ns=4.5", "method=linear"]
    found = varied(Space.around(RMS), map(parse_choice, texts))
    assert found.values["segments"] == (2, 4, 8)
    assert found.values["y"] == ("s8/3", "s16/11")
    assert found.values["period_ns"] == (4.5,)
    assert found.values["guard_bits"] == (0, 1, 2, 3, 4)
    for bad in ("segments", "segments="):
        with raises(f"vary is written like segments=2..64 or y=s8/3,s16/11, got {bad!r}"):
            parse_choice(bad)
    with raises("space.guard_bits as a range must be of numbers, got 'a'"):
        varied(Space.around(RMS), [parse_choice("guard_bits=a..4")])


def test_unknown_figures():
    with pytest.raises(ValueError, match=r"^a figure must be one of max_ulp, .*, got 'speed'$"):
        Limit.parse("speed > 3")
    assert parse_limits(["lut <= 5", "lut <= 5", "lut >= 5"])[1].relation == ">="
    assert parse_objectives(["rom"]) == (None, "rom_bits")


def test_promise_prefers_the_smallest_table_that_the_budget_allows():
    points = space_of(segments={"from": 2, "to": 4096}, guard_bits=[2]).points()
    best = min(points, key=promise)
    assert best["segments"] in (256, 512)


def test_estimates():
    cost = estimate(RMS)
    assert cost["rom_bits"] == sum(unit.table.rom_bits for unit in RMS.units.values())
    assert cost["latency_cycles"] == RMS.latency
    assert cost["bound_ulp"] == RMS.bound_ulp
    faster = estimate(dataclasses.replace(RMS, period_ns=4.0))
    assert faster["fmax_mhz"] > cost["fmax_mhz"]
    assert faster["latency_cycles"] > cost["latency_cycles"]
    more = estimate(hwnorm.load("smollm2"))
    assert more["dsp"] > cost["dsp"] > 0
    assert estimate(hwnorm.load("ice40-log-256"))["dsp"] == 0
