"""Exact evaluation: the figures are those of `hwnorm.measure`, to the last bit."""

import dataclasses
from functools import cache

import numpy as np
import pytest
from test_fixed import raises

import hwnorm
from hwnorm import LayerNorm, LogTables, RMSNorm, Rsqrt
from hwnorm.measure import Errors
from hwnorm.rows import Layer, real_layers
from hwnorm.tune import evaluate
from hwnorm.tune.evaluate import Bench
from hwnorm.tune.figures import FIGURES
from hwnorm.tune.rows import Rows, format_with_margin

SAME = ("max_ulp", "rms_ulp", "misrounded", "sqnr_db")


@cache
def layers_of(count=3, rows=12, dim=64, gamma=True, beta=False):
    """Rows of several scales, one of them with outliers."""
    rng = np.random.default_rng(5)
    found = []
    for n in range(count):
        x = rng.normal(size=(rows + n, dim)) * 4.0**n / 8
        x[0, 3] = 25 * np.abs(x).max() / 4
        found.append(
            Layer(
                f"layer {n}",
                np.float64(np.float16(x)),
                rng.uniform(0.2, 1.5, dim) if gamma else None,
                rng.uniform(-1, 1, dim) if beta else None,
            )
        )
    return found


def measured(design, layers):
    """`hwnorm.measure`, layer by layer and of all together."""
    parts = []
    for layer in layers:
        given = {name: getattr(layer, name) for name in design.parameters}
        parts.append(Errors.of(design, layer.x, **given))
    return [part.report().all for part in parts], Errors.joined(parts).report().all


RMS = RMSNorm(dim=64, lanes=4, x="s20/10", gamma="s16/13", y="s16/11")
DESIGNS = {
    "linear": RMS,
    "direct": dataclasses.replace(RMS, rsqrt=Rsqrt("direct", 64, 1)),
    "quadratic": dataclasses.replace(RMS, rsqrt=Rsqrt("quadratic", 16, 0)),
    "log": dataclasses.replace(RMS, rsqrt=Rsqrt("log"), log=LogTables("linear", 32, 14)),
    "few bits": dataclasses.replace(RMS, y="s8/3", rounding="nearest_up"),
    "floor": dataclasses.replace(RMS, rounding="floor"),
    "saturates": dataclasses.replace(RMS, y="s8/6"),
    "wraps": dataclasses.replace(RMS, y="s8/6", overflow="wrap"),
    "no gamma": dataclasses.replace(RMS, gamma=None),
    "layernorm": LayerNorm(
        dim=64, x="s20/10", gamma="s16/13", beta="s12/9", y="s16/10", rsqrt=Rsqrt("linear", 32)
    ),
}


@pytest.mark.parametrize("name", DESIGNS)
def test_same_as_measure(name):
    design = DESIGNS[name]
    layers = layers_of(gamma=design.gamma is not None, beta=design.beta is not None)
    found = Bench(Rows.of(layers)).evaluate(design, complete=True)
    each, together = measured(design, layers)
    for key in SAME:
        assert found.pooled[key] == getattr(together, key), key
        for layer, one in zip(layers, each, strict=True):
            assert found.layers[layer.name][key] == getattr(one, key), (key, layer.name)
        pick = min if FIGURES[key] else max
        assert found.worst[key] == pick(getattr(one, key) for one in each)
        assert found.mean[key] == pytest.approx(np.mean([getattr(one, key) for one in each]))
    assert found.saturated == together.saturated
    assert (found.saturated > 0) == (name == "saturates")
    assert found.layers[found.worst_layer]["max_ulp"] == found.worst["max_ulp"]


def test_the_same_on_real_activations():
    layers = real_layers("smollm2")[::20]
    bench = Bench(Rows.of(layers))
    base = hwnorm.load("smollm2")
    for rsqrt in (Rsqrt("linear", 512), Rsqrt("quadratic", 8, 3), Rsqrt("direct", 256, 0)):
        design = dataclasses.replace(base, rsqrt=rsqrt)
        found, (_, together) = bench.evaluate(design), measured(design, layers)
        assert [found.pooled[k] for k in SAME] == [getattr(together, k) for k in SAME]


def test_figures_of_one_design_do_not_leak_into_the_next():
    bench = Bench(Rows.of(layers_of()))
    names = [name for name in DESIGNS if DESIGNS[name].kind == "rmsnorm" and DESIGNS[name].gamma]
    first = {name: bench.evaluate(DESIGNS[name], complete=True) for name in names}
    for name in reversed(names):
        bench._done.clear()
        assert bench.evaluate(DESIGNS[name], complete=True) == first[name]


def test_end_figures_judge_the_quantisation_too():
    layers = layers_of(1, 8)
    rows = Rows.of(layers)
    coarse = dataclasses.replace(RMS, x="s16/4")
    found = Bench(rows).evaluate(coarse).pooled
    y = hwnorm.model(coarse, layers[0].x, layers[0].gamma)
    ideal = hwnorm.golden(coarse, layers[0].x, layers[0].gamma) * 2.0**coarse.y.frac
    error = y - ideal
    assert found["end_max_ulp"] == np.abs(error).max() > 2 * found["max_ulp"]
    assert found["end_rms_ulp"] == pytest.approx(np.sqrt(np.mean(error**2)))
    assert found["end_sqnr_db"] == pytest.approx(10 * np.log10(np.sum(ideal**2) / np.sum(error**2)))
    assert Bench(rows, ends=False).evaluate(coarse).pooled["end_max_ulp"] is None
    ints = Rows.of([dataclasses.replace(layers[0], x=coarse.x.ints(layers[0].x), gamma=None)])
    found = Bench(ints).evaluate(dataclasses.replace(coarse, gamma=None)).pooled
    assert found["end_max_ulp"] == found["max_ulp"]


def test_held_out_rows_have_figures_of_their_own():
    layers = layers_of()
    rows = Rows.of(layers, 0.25)
    assert rows.chosen == 9 + 10 + 11
    assert len(rows.x) == 12 + 13 + 14
    found = Bench(rows).evaluate(RMS)
    mine, _ = measured(RMS, rows.layers())
    held, _ = measured(RMS, rows.layers(chosen=False))
    assert found.worst["rms_ulp"] == max(one.rms_ulp for one in mine)
    assert found.held["rms_ulp"] == max(one.rms_ulp for one in held)
    assert found.held["sqnr_db"] == min(one.sqnr_db for one in held)
    every = np.concatenate([*(one.x for one in rows.layers()), *(o.x for o in rows.layers(False))])
    assert sorted(every.tolist()) == sorted(np.concatenate([one.x for one in layers]).tolist())


def test_probes_give_up_early_and_are_lower_bounds():
    bench = Bench(Rows.of(layers_of()))
    rough = dataclasses.replace(RMS, rsqrt=Rsqrt("direct", 4))
    early, full = bench.evaluate(rough, 1.0), bench.evaluate(rough)
    assert early.early
    assert not full.early
    assert 1 < early.pooled["max_ulp"] <= full.pooled["max_ulp"]
    assert bench.evaluate(RMS, 1.0).early is False
    lost = bench.evaluate(DESIGNS["saturates"])
    assert lost.early
    assert lost.saturated > 0


@pytest.mark.parametrize("sign", [-1, 1])
def test_probes_see_every_saturation(sign):
    x = np.ones((4, 64))
    x[2, 40] = sign * 3.0
    bench = Bench(Rows.of([Layer("a", x)]))
    for y in ("s8/6", "s8/5"):
        design = dataclasses.replace(RMS, gamma=None, y=y)
        early, full = bench.evaluate(design), bench.evaluate(design, complete=True)
        assert (early.saturated > 0) == (full.saturated > 0) == (y == "s8/6")
        assert full.saturated == (1 if y == "s8/6" else 0)
        assert early.early == (y == "s8/6")


def test_no_early_end_where_the_error_is_allowed():
    bench = Bench(Rows.of(layers_of()))
    rough = dataclasses.replace(RMS, rsqrt=Rsqrt("direct", 64))
    size = bench.evaluate(rough).pooled["max_ulp"]
    assert not bench.evaluate(rough, size).early


def test_nothing_is_computed_twice(monkeypatch):
    rows = Rows.of(layers_of())
    bench = Bench(rows)
    bench.evaluate(RMS)
    calls = []
    monkeypatch.setattr(evaluate, "totals_of", lambda *a: calls.append("totals"))
    monkeypatch.setattr(evaluate, "golden", lambda *a, **k: calls.append("golden"))
    monkeypatch.setattr(evaluate, "exact_block", lambda *a: calls.append("exact"))
    bench.evaluate(dataclasses.replace(RMS, rsqrt=Rsqrt("quadratic", 32)))
    bench.evaluate(DESIGNS["log"])
    assert calls == []
    before = bench.evaluate(RMS)
    assert bench.evaluate(dataclasses.replace(RMS, lanes=8, period_ns=4.0)) is before


def test_the_scalar_path_runs_on_distinct_totals_only():
    layer = layers_of(1, 6)[0]
    twice = dataclasses.replace(layer, x=np.concatenate([layer.x, layer.x[::-1], -layer.x]))
    bench = Bench(Rows.of([twice]))
    bench.evaluate(RMS)
    ((distinct, back),) = bench._totals.values()
    assert len(distinct["sumsq"]) == 6
    assert len(back) == 18


def test_rows_that_do_not_fit_the_format():
    bench = Bench(Rows.of(layers_of()))
    for _ in range(2):
        with pytest.raises(ValueError, match=r"x must fit s8/6, got .* elements outside it"):
            bench.evaluate(dataclasses.replace(RMS, x="s8/6"))


@pytest.mark.parametrize(
    ("layers", "holdout", "sentence"),
    [
        (
            [Layer("a", np.array([[1.0, np.nan]]))],
            0,
            "a: x must be finite, got 1 NaN or infinite elements",
        ),
        (
            [Layer("a", np.zeros((3, 4)))],
            0,
            "data must have a row that is not all zero, got zeros only",
        ),
        ([], 0, "data must have at least one row, got none"),
        ([Layer("a", np.ones((1, 4)))], 0.7, "holdout must lie in 0..0.5, got 0.7"),
        (
            [Layer("a", np.ones((1, 4))), Layer("b", np.ones((1, 6)))],
            0,
            "layers must have one dim, got 4, 6",
        ),
        (
            [Layer("a", np.ones((1, 4)), np.ones(4)), Layer("b", np.ones((1, 4)))],
            0,
            "gamma must be given for all layers or for none",
        ),
    ],
)
def test_bad_rows(layers, holdout, sentence):
    with raises(sentence):
        Rows.of(layers, holdout)


def test_what_rows_cannot_show():
    one = Rows.of([Layer("a", np.ones((1, 8)))], 0.25)
    assert one.chosen == 1
    words = " ".join(one.warnings(1e-5))
    for part in ("few rows", "nothing is held out", "no outliers seen", "eps never active"):
        assert part in words
    many = np.ones((40, 576))
    many[3, 5] = 1e4
    many[7] = 1e-3
    many[9] = 0
    rows = Rows.of([Layer("a", many, eps=1e-6)], 0.25)
    assert rows.warnings(1e-6) == ["1 of 40 rows are all zero and show nothing"]
    assert rows.warnings(1e-5)[1:] == [
        "the model behind the rows has eps 1e-06, the design 1e-05: rows near zero are judged by "
        "the design's"
    ]


def test_layers_of_the_same_name_stay_apart():
    layer = layers_of(1)[0]
    assert Rows.of([layer, layer]).names == ("layer 0", "layer 0 (2)")


@pytest.mark.parametrize(
    ("largest", "fmt"), [(1.0, "s16/13"), (0.99, "s16/14"), (23024.0, "s16/-1"), (0.1, "s16/17")]
)
def test_formats_leave_a_bit_of_margin(largest, fmt):
    found = format_with_margin(largest, 16)
    assert found.spelling == fmt
    assert found.hi * found.lsb >= 2 * largest * (1 - 2**-14)
