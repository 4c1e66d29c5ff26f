"""Every figure of a report, computed again from its definition."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from fxpmath import Fxp
from oracles import ideal_of

from hwnorm.golden import exact, layer_norm, rms_norm
from hwnorm.measure import golden, measure
from hwnorm.model import evaluate, model
from hwnorm.norms import LayerNorm, RMSNorm, Rsqrt

# A table far too small for the output: errors of several ulp, and many outputs limited.
COARSE = RMSNorm(dim=24, y="s10/8", gamma="s10/7", rsqrt=Rsqrt("direct", 16))


def coarse_rows():
    rng = np.random.default_rng(1)
    x = np.rint(rng.normal(0, 1, (40, 24)) * 2.0 ** rng.uniform(2, 12, (40, 1))).astype(int)
    return x, rng.integers(-200, 201, 24)


def figures(design, y, ideal, nearest, mask, saturated):
    """An `Accuracy` as a dict, from scratch; `ideal` in ulp, unlimited."""
    lo, hi = design.y.lo, design.y.hi
    limited = np.clip(ideal, lo, hi)
    inside = mask & (ideal >= lo - 0.5) & (ideal <= hi + 0.5)
    error = (y - limited)[inside]
    signal = np.sum(limited[inside] ** 2)
    ideal_noise = np.sum((np.round(limited) - limited)[inside] ** 2)
    return {
        "rows": int(mask.any(axis=1).sum()),
        "elements": int(mask.sum()),
        "max_ulp": np.abs(y - limited)[mask].max(),
        "mean_ulp": np.abs(error).sum() / error.size,
        "rms_ulp": np.sqrt((error**2).sum() / error.size),
        "p999_ulp": np.quantile(np.abs(error), 0.999),
        "bias_ulp": error.sum() / error.size,
        "misrounded": np.count_nonzero((y != np.clip(nearest, lo, hi))[inside]) / error.size,
        "sqnr_db": 10 * np.log10(signal / np.sum(error**2)),
        "ideal_sqnr_db": 10 * np.log10(signal / ideal_noise),
        "saturated": saturated,
        "bound_ulp": design.bound_ulp,
    }


def check(accuracy, expected):
    for name, value in expected.items():
        assert getattr(accuracy, name) == pytest.approx(value, rel=1e-12, abs=1e-12), name
    assert set(expected) == set(accuracy.__dataclass_fields__)


def test_every_figure():
    x, gamma = coarse_rows()
    report = measure(COARSE, x, gamma)
    made = evaluate(COARSE, x, gamma)
    ideal = ideal_of(COARSE, x, gamma)
    nearest = exact("rmsnorm", x, x_frac=8, y_frac=8, eps=1e-5, gamma=gamma, gamma_frac=7)
    everywhere = np.ones(x.shape, dtype=bool)
    check(report.all, figures(COARSE, made.y, ideal, nearest, everywhere, made.saturated))
    # The example shows something: errors, limits, and results that are not the nearest.
    assert report.all.saturated > 20
    assert report.all.max_ulp > 2
    assert 0.05 < report.all.misrounded < 1
    assert report.all.holds
    error = np.abs(made.y - np.clip(ideal, -512, 511))
    assert report.worst == np.unravel_index(error.argmax(), error.shape)
    assert (report.gamma_quantisation_ulp, report.x_quantisation_ulp) == (0, 0)
    assert report.outlier is None
    assert report.non_outlier is None
    assert replace(report.ordinary, saturated=made.saturated) == report.all


def outlier_rows():
    """Ordinary rows; rows with one and two hot elements; a row of zeros."""
    rng = np.random.default_rng(2)
    x = np.rint(rng.normal(0, 20, (12, 1024))).astype(np.int64)
    x[3, 100] = 20000
    # A pair of equal elements is sqrt(512) = 22.6 times the rms; three would be no outliers.
    x[5, [7, 1020]] = 15000, -15000
    x[6, [1, 2, 3]] = 9000
    x[8] = 0
    x[11, 0] = -32768
    return x


@pytest.mark.parametrize("dtype", [np.int64, np.int16, np.float64])
def test_outlier_rows_are_told_apart(dtype):
    design = RMSNorm(dim=1024, x="s16/8", y="s12/9", rsqrt=Rsqrt("linear", 16))
    x = outlier_rows()
    given = (x / 256 if dtype == np.float64 else x).astype(dtype)
    report = measure(design, given)
    made = evaluate(design, x)
    ideal = ideal_of(design, x)
    nearest = exact("rmsnorm", x, x_frac=8, y_frac=9, eps=1e-5)
    # Written down by hand: three rows, four elements.
    rows = np.zeros(x.shape, dtype=bool)
    rows[[3, 5, 11]] = True
    hot = np.zeros(x.shape, dtype=bool)
    hot[3, 100] = hot[5, 7] = hot[5, 1020] = hot[11, 0] = True
    limits = evaluate(design, x[~rows[:, 0]]).saturated
    check(report.ordinary, figures(design, made.y, ideal, nearest, ~rows, limits))
    check(
        report.outlier,
        figures(design, made.y, ideal, nearest, rows, made.saturated - limits),
    )
    # In their rows, only the hot elements are beyond the output format: 22 or more, of 4.
    check(report.non_outlier, figures(design, made.y, ideal, nearest, rows & ~hot, 0))
    assert report.outlier.saturated == 4
    assert report.non_outlier.elements == 3 * 1024 - 4


def test_all_rows_with_outliers():
    design = RMSNorm(dim=1024, y="s16/10")
    report = measure(design, outlier_rows()[[3, 5]])
    assert report.ordinary is None
    assert report.outlier == report.all


def test_parts_count_the_limited_elements_of_the_whole():
    """Of a coarse table golden and the design disagree on what is limited; the design counts."""
    design = RMSNorm(dim=576, y="s10/8", rsqrt=Rsqrt("direct", 2))
    rng = np.random.default_rng(3)
    x = np.rint(rng.normal(0, 500, (6, 576))).astype(int)
    x[:3] = np.rint(rng.normal(0, 5, (3, 576)))
    x[:3, 9] = 30000
    report = measure(design, x)
    assert report.all.saturated == evaluate(design, x).saturated > 0
    assert report.ordinary.saturated == evaluate(design, x[3:]).saturated
    assert report.outlier.saturated == evaluate(design, x[:3]).saturated


def test_blocks_change_nothing(monkeypatch):
    x, gamma = coarse_rows()
    whole = measure(COARSE, x, gamma)
    # The package has a function of the same name.
    monkeypatch.setattr(sys.modules["hwnorm.measure"], "BLOCK_ELEMENTS", 7 * 24)
    done = []
    assert measure(COARSE, x, gamma, progress=done.append) == whole
    assert done == [7, 7, 7, 7, 7, 5]


def test_the_bound_is_compared():
    x, gamma = coarse_rows()
    accuracy = measure(COARSE, x, gamma).all
    assert accuracy.holds
    assert replace(accuracy, bound_ulp=accuracy.max_ulp).holds
    assert not replace(accuracy, bound_ulp=accuracy.max_ulp - 0.01).holds


@pytest.mark.parametrize("kind", [RMSNorm, LayerNorm])
def test_the_exact_method_is_never_misrounded(kind):
    design = kind(dim=24, y="s12/9", gamma="s10/7", rsqrt=Rsqrt("exact"))
    x, gamma = coarse_rows()
    accuracy = measure(design, x, gamma).all
    assert accuracy.misrounded == 0
    assert accuracy.bound_ulp == 0.5
    assert accuracy.holds
    assert accuracy.sqnr_db == pytest.approx(accuracy.ideal_sqnr_db, rel=1e-9)


def test_a_tie_does_not_break_the_bound_of_the_exact_method():
    """-1/2 exactly, which float64 puts at -0.5000000000000001: y = 0 is right."""
    design = LayerNorm(dim=5, x="s8/0", y="s8/0", eps=1250.0, rsqrt=Rsqrt("exact"))
    x = np.array([[-3, -1, 9, 16, -18]])
    assert layer_norm(x[0].astype(float), eps=1250.0)[4] == -0.5000000000000001
    assert model(design, x)[0, 4] == 0
    assert measure(design, x).all.holds


def test_no_error_and_no_signal():
    zeros = measure(RMSNorm(dim=4), np.zeros((2, 4), dtype=int)).all
    assert (zeros.max_ulp, zeros.misrounded, zeros.saturated) == (0, 0, 0)
    assert zeros.sqnr_db == zeros.ideal_sqnr_db == float("inf")
    # Outputs of exactly one lsb: +-1 is all that a pair of equal elements gives.
    design = RMSNorm(dim=2, y="s8/0", eps=1e-12)
    assert measure(design, np.array([[5, -5]])).all.max_ulp < 1e-6


def test_rows_that_saturate_throughout_are_judged_all_the_same():
    design = RMSNorm(dim=4, y="s4/3", x="s8/0")
    accuracy = measure(design, np.array([[100, 100, 100, 100]])).all
    assert accuracy.saturated == 4
    assert accuracy.max_ulp == accuracy.mean_ulp == 0


# -- quantisation -----------------------------------------------------------------------------


def test_shares_of_quantisation():
    """What rounding gamma (x) to its format changes, with everything else as it is used."""
    design = RMSNorm(dim=16, x="s12/4", gamma="s8/5", y="s16/10", gamma_offset=1.0)
    rng = np.random.default_rng(4)
    x, gamma = rng.normal(0, 20, (9, 16)), rng.normal(0, 1, 16)
    x_used, gamma_used = np.round(x * 16) / 16, np.round(gamma * 32) / 32
    report = measure(design, x, gamma)
    clean = rms_norm(x_used, gamma_used + 1)
    share = np.abs(rms_norm(x_used, gamma + 1) - clean).max() * 1024
    assert report.gamma_quantisation_ulp == pytest.approx(share, rel=1e-12)
    share = np.abs(rms_norm(x, gamma_used + 1) - clean).max() * 1024
    assert report.x_quantisation_ulp == pytest.approx(share, rel=1e-12)
    # The errors themselves are those of the quantised numbers.
    ints = measure(design, np.round(x * 16).astype(int), np.round(gamma * 32).astype(int))
    assert ints.all == report.all
    assert (ints.gamma_quantisation_ulp, ints.x_quantisation_ulp) == (0, 0)


def test_the_shares_are_not_those_of_beta():
    """Rounding beta is not the fault of gamma, nor of x."""
    design = LayerNorm(dim=8, gamma="s16/12", beta="s8/2", x="s16/8")
    x = np.random.default_rng(5).integers(-1000, 1000, (3, 8))
    report = measure(design, x / 256, np.ones(8), np.full(8, 0.1))
    assert report.gamma_quantisation_ulp == 0
    assert report.x_quantisation_ulp == 0


def test_an_fxp_is_measured_as_its_integers():
    x, gamma = coarse_rows()
    fxp = Fxp(x / 2**8, signed=True, n_word=16, n_frac=8)
    assert measure(COARSE, fxp, gamma) == measure(COARSE, x, gamma)


# -- golden of a design -----------------------------------------------------------------------


def test_golden_takes_floats_as_they_are_and_integers_by_format():
    design = LayerNorm(dim=6, gamma="s8/4", beta="s8/3", gamma_offset=1.0, eps=0.25)
    rng = np.random.default_rng(6)
    x, gamma, beta = rng.normal(0, 3, (2, 3, 6)), rng.normal(0, 1, 6), rng.normal(0, 1, 6)
    np.testing.assert_array_equal(
        golden(design, x, gamma, beta), layer_norm(x, gamma + 1, beta, 0.25)
    )
    x_int, gamma_int, beta_int = rng.integers(-99, 99, (2, 6)), np.arange(6), np.arange(6) - 3
    np.testing.assert_array_equal(
        golden(design, x_int, gamma_int, beta_int),
        layer_norm(x_int / 256, gamma_int / 16 + 1, beta_int / 8, 0.25),
    )


def test_golden_of_the_initial_parameters():
    x = np.random.default_rng(7).normal(0, 3, (2, 4))
    np.testing.assert_array_equal(
        golden(RMSNorm(dim=4, gamma="s8/4", gamma_init=(16, 8, -8, 0)), x),
        rms_norm(x, np.array([1, 0.5, -0.5, 0])),
    )
    np.testing.assert_array_equal(golden(RMSNorm(dim=4, gamma="s8/4"), x), rms_norm(x))
    np.testing.assert_array_equal(golden(RMSNorm(dim=4), x), rms_norm(x))


def test_the_dict_has_the_keys_of_the_command_line():
    x, gamma = coarse_rows()
    report = measure(COARSE, x, gamma)
    plain = report.to_dict()
    for name in report.all.__dataclass_fields__:
        assert plain[name] == getattr(report.all, name)
    rest = {name: value for name, value in plain.items() if name not in vars(report.all)}
    assert rest == {
        "ordinary_rows": vars(report.ordinary),
        "outlier_rows": None,
        "non_outlier_elements": None,
        "gamma_quantisation_ulp": 0.0,
        "x_quantisation_ulp": 0.0,
        "worst_row": report.worst[0],
        "worst_element": report.worst[1],
    }
    for value in plain.values():
        assert value is None or type(value) in (int, float, dict)


def test_wrapped_elements_are_judged_by_their_low_bits():
    """Golden leaves s8/5 at 4; what wraps must still be golden's low bits."""
    design = RMSNorm(dim=64, x="s8/4", y="s8/5", overflow="wrap")
    x = np.zeros((3, 64), dtype=int)
    x[:, 7] = [100, -100, 60]
    x[2, 8:40] = 3
    report = measure(design, x)
    assert np.abs(golden(design, x)).max() > 4
    assert report.all.holds
    assert report.all.max_ulp < 1
    assert report.all.saturated == 0
    assert measure(replace(design, rsqrt=Rsqrt("exact")), x).all.misrounded == 0


def test_no_rows_are_refused():
    with pytest.raises(ValueError, match=r"^x must have at least one row, got none$"):
        measure(RMSNorm(dim=4), np.zeros((0, 4)))
