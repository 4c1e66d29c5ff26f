"""The model: against hand-written norms, on real activations, and its border with users."""

from functools import cache
from pathlib import Path

import numpy as np
import oracles
import pytest
from fxpmath import Fxp
from oracles import all_rows, check_bound, misrounded, parameters, random_rows, refused

import hwnorm
from hwnorm.golden import exact
from hwnorm.model import BLOCK_ELEMENTS, evaluate, model, parameters_of, rows_of
from hwnorm.norms import LayerNorm, LogTables, RMSNorm, Rsqrt

DATA = Path(hwnorm.__file__).parent / "data"


# -- the oracles ------------------------------------------------------------------------------

RMS = [
    {},
    {"gamma": "s16/12"},
    {"gamma": "s16/12", "gamma_offset": 1.0, "rounding": "nearest_up"},
    {"gamma": "u8/7", "overflow": "wrap", "y": "s8/4"},
    {"rounding": "floor", "overflow": "wrap", "y": "s8/6"},
    {"x": "s32/16", "gamma": "s16/12", "eps": 1e-12, "y": "s20/14"},
    {"x": "s8/4", "y": "s8/5", "eps": 1e-6},
    {"rsqrt": Rsqrt("linear", 16, 0), "gamma": "s6/3", "y": "s8/3"},
    {"rsqrt": Rsqrt("quadratic", guard_bits=5), "y": "s20/15"},
    {"rsqrt": Rsqrt("direct", 256), "y": "s10/6", "gamma": "s12/9"},
]

LAYER = [
    *RMS,
    {"beta": "s16/10"},
    {"gamma": "s16/12", "beta": "s16/12"},
    {"gamma": "s16/12", "gamma_offset": -0.5, "beta": "s8/20", "rounding": "floor"},
    {"gamma": "s12/9", "beta": "s16/3", "overflow": "wrap", "y": "s10/5"},
]


@pytest.mark.parametrize("dim", [2, 3, 16, 96])
@pytest.mark.parametrize("fields", RMS)
def test_rms_norm_equals_the_hand_written_one(fields, dim):
    design = RMSNorm(dim=dim, **fields)
    x, given = all_rows(design, seed=dim), parameters(design, seed=dim)
    gamma = given["gamma"].tolist() if given else None
    made = evaluate(design, x, **given, check=True).y
    assert made.tolist() == [oracles.rms_norm(design, row, gamma) for row in x.tolist()]


@pytest.mark.parametrize("dim", [2, 3, 16, 96])
@pytest.mark.parametrize("fields", LAYER)
def test_layer_norm_equals_the_hand_written_one(fields, dim):
    design = LayerNorm(dim=dim, **fields)
    x, given = all_rows(design, seed=dim), parameters(design, seed=dim)
    lists = {name: value.tolist() for name, value in given.items()}
    made = evaluate(design, x, **given, check=True).y
    assert made.tolist() == [oracles.layer_norm(design, row, **lists) for row in x.tolist()]


def test_a_long_row_equals_the_hand_written_one():
    for kind, oracle in ((RMSNorm, oracles.rms_norm), (LayerNorm, oracles.layer_norm)):
        design = kind(dim=4096, gamma="s16/12")
        x, gamma = random_rows(design.x, 4096, seed=1)[::5], parameters(design, 1)["gamma"]
        made = model(design, x, gamma)
        assert made.tolist() == [oracle(design, row, gamma.tolist()) for row in x.tolist()]


# -- real activations -------------------------------------------------------------------------


@cache
def activations(name):
    with np.load(DATA / f"{name}_prenorm.npz", allow_pickle=False) as file:
        keys = [key for key in ("x", "gamma", "beta", "eps") if key in file]
        return {key: np.asarray(file[key], dtype=np.float64) for key in keys}


@pytest.mark.parametrize("method", ["direct", "linear", "quadratic", "log"])
def test_every_smollm2_layer_keeps_the_bound(method):
    data = activations("smollm2")
    assert data["x"].shape == (61, 16, 576)
    # The largest activation is 23024, the largest gamma 3.4.
    design = RMSNorm(
        dim=576,
        x="s24/8",
        gamma="s16/12",
        eps=float(data["eps"]),
        rsqrt=Rsqrt(method),
        log=LogTables("mitchell", 256),
    )
    for x, gamma in zip(data["x"], data["gamma"], strict=True):
        check_bound(design, design.x.ints(x), design.gamma.ints(gamma))


@pytest.mark.parametrize("method", ["direct", "linear", "quadratic"])
def test_every_minilm_layer_keeps_the_bound(method):
    data = activations("minilm")
    assert data["x"].shape == (13, 24, 384)
    formats = {"x": "s20/11", "gamma": "s16/13", "beta": "s16/13", "y": "s16/11"}
    design = LayerNorm(dim=384, **formats, eps=float(data["eps"]), rsqrt=Rsqrt(method))
    for x, gamma, beta in zip(data["x"], data["gamma"], data["beta"], strict=True):
        check_bound(design, design.x.ints(x), design.gamma.ints(gamma), design.beta.ints(beta))


@pytest.mark.parametrize("method", ["linear", "quadratic"])
def test_real_activations_are_rounded_correctly_but_for_a_few(method):
    """Gamma folded into the next layer: 0.781 ulp at most, 0.5 % not the nearest."""
    for kind, name, x_format in ((RMSNorm, "smollm2", "s24/8"), (LayerNorm, "minilm", "s20/11")):
        x = activations(name)["x"]
        dim = x.shape[-1]
        design = kind(dim=dim, x=x_format, y="s16/11", rsqrt=Rsqrt(method, guard_bits=2))
        assert design.bound_ulp <= 0.781
        x_int = design.x.ints(x).reshape(-1, dim)
        y, _ = check_bound(design, x_int)
        assert misrounded(design, x_int, y) <= 0.005 * x.size


# -- the border -------------------------------------------------------------------------------


def test_integers_floats_and_fxp_agree():
    design = LayerNorm(dim=12, x="s16/7", gamma="s12/8", beta="s12/8", y="s16/9")
    rng = np.random.default_rng(1)
    x, gamma, beta = (rng.integers(-2000, 2000, shape) for shape in ((5, 12), 12, 12))
    x[0, 0], x[1, 1] = -32768, 32767
    want = model(design, x, gamma, beta)
    assert want.dtype == np.int64
    for dtype in (np.int16, np.int32, np.int64, np.float32, np.float64):
        scale = 1 if np.issubdtype(dtype, np.integer) else 2.0**-7
        fine = 1 if scale == 1 else 2.0**-8
        made = model(design, (x * scale).astype(dtype), (gamma * fine).astype(dtype), beta * fine)
        np.testing.assert_array_equal(made, want)
        assert made.dtype == np.int64
    np.testing.assert_array_equal(model(design, x.tolist(), gamma.tolist(), beta.tolist()), want)
    fxp = Fxp(x / 2**7, signed=True, n_word=16, n_frac=7)
    made = model(design, fxp, Fxp(gamma / 2**8, signed=True, n_word=12, n_frac=8), beta)
    assert isinstance(made, Fxp)
    assert made.dtype == "fxp-s16/9"
    np.testing.assert_array_equal(np.asarray(made.val), want)
    # A coarser Fxp is taken by value.
    coarse = Fxp(x[2:] // 16 / 8, signed=True, n_word=14, n_frac=3)
    np.testing.assert_array_equal(
        np.asarray(model(design, coarse, gamma, beta).val),
        model(design, x[2:] // 16 * 16, gamma, beta),
    )


def test_floats_are_rounded_to_even():
    design = RMSNorm(dim=4, x="s8/1")
    x = np.array([0.25, 0.75, -0.25, -1.25])
    assert rows_of(design, x).tolist() == [[0, 2, 0, -2]]


def test_shapes_are_kept():
    design = RMSNorm(dim=6, gamma="s8/4")
    x = np.arange(2 * 3 * 4 * 6).reshape(2, 3, 4, 6)
    y = model(design, x)
    assert y.shape == x.shape
    np.testing.assert_array_equal(model(design, x[1, 2, 3]), y[1, 2, 3])
    assert model(design, x[:, :0]).shape == (2, 0, 4, 6)
    # The caller's array is left alone.
    assert (x == np.arange(144).reshape(x.shape)).all()


def test_rows_do_not_depend_on_their_block():
    design = RMSNorm(dim=300, gamma="s8/4")
    x = np.random.default_rng(2).integers(-9999, 9999, (3 * BLOCK_ELEMENTS // 300, 300))
    y = model(design, x)
    for row in (0, BLOCK_ELEMENTS // 300 - 1, BLOCK_ELEMENTS // 300, len(x) - 1):
        np.testing.assert_array_equal(model(design, x[row]), y[row])
    out = np.empty(x.shape, dtype=np.int64)
    assert evaluate(design, x, out=out).y is out
    np.testing.assert_array_equal(out, y)


def test_what_is_not_given_is_initial():
    gamma, beta = (3, -7, 0, 9, 127, -128), (1, 2, 3, -4, -5, 6)
    fields = {"dim": 6, "gamma": "s8/4", "beta": "s8/4", "gamma_offset": 0.5}
    x = np.random.default_rng(3).integers(-999, 999, (9, 6))
    plain = LayerNorm(**fields)
    for store in ("ram", "rom"):
        held = LayerNorm(**fields, gamma_init=gamma, beta_init=beta, store=store)
        np.testing.assert_array_equal(model(held, x), model(plain, x, gamma, beta))
    # gamma + offset is 1 and beta 0 if nothing else is said.
    np.testing.assert_array_equal(model(plain, x), model(plain, x, np.full(6, 8), np.zeros(6, int)))
    assert parameters_of(plain)["gamma"].tolist() == [8] * 6


def test_limited_outputs_are_counted():
    design = RMSNorm(dim=16, y="s8/6", gamma="s8/4")
    x = all_rows(design, seed=4)
    gamma = parameters(design, seed=4)["gamma"]
    result = evaluate(design, x, gamma)
    # The same design with room for every output tells which ones had to be limited.
    wide = RMSNorm(dim=16, y="s20/6", gamma="s8/4", rsqrt=Rsqrt("linear", 32, 2))
    assert evaluate(wide, x, gamma).saturated == 0
    narrow = RMSNorm(dim=16, y="s8/6", gamma="s8/4", rsqrt=Rsqrt("exact"))
    nearest = exact("rmsnorm", x, x_frac=8, y_frac=6, eps=1e-5, gamma=gamma, gamma_frac=4)
    outside = np.count_nonzero((nearest < -128) | (nearest > 127))
    assert 50 < outside < x.size
    assert evaluate(narrow, x, gamma).saturated == outside
    # Of the faithful design, only outputs at the very edge may be judged otherwise.
    edge = np.count_nonzero(np.isin(nearest, (-129, -128, 127, 128)))
    assert abs(result.saturated - outside) <= edge
    assert np.count_nonzero(np.isin(result.y, (-128, 127))) >= result.saturated


def test_wrapped_outputs_are_not_counted():
    design = RMSNorm(dim=4, y="s4/2", overflow="wrap")
    result = evaluate(design, np.array([[1000, 0, 0, 0]]))
    # sqrt(4) is 8 quarters, which wraps to -8.
    assert result.y.tolist() == [[-8, 0, 0, 0]]
    assert result.saturated == 0


@pytest.mark.parametrize("kind", [RMSNorm, LayerNorm])
def test_the_exact_method_is_the_correctly_rounded_norm(kind):
    fields = {"gamma": "s12/8"} | ({"beta": "s12/8"} if kind is LayerNorm else {})
    design = kind(dim=20, y="s10/6", rsqrt=Rsqrt("exact"), gamma_offset=1.0, **fields)
    x, given = all_rows(design, seed=5), parameters(design, seed=5)
    fracs = {f"{name}_frac": 8 for name in given}
    nearest = exact(
        design.kind, x, x_frac=8, y_frac=6, eps=1e-5, gamma_offset=1.0, **given, **fracs
    )
    result = evaluate(design, x, **given)
    np.testing.assert_array_equal(result.y, np.clip(nearest, -512, 511))
    assert result.saturated == np.count_nonzero(np.abs(nearest + 0.5) > 512)
    np.testing.assert_array_equal(model(design, x, **given), result.y)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([[0.0, np.nan]], "x must be finite, got 1 NaN or infinite elements"),
        (
            [[np.inf, -np.inf], [0.0, np.nan]],
            "x must be finite, got 3 NaN or infinite elements",
        ),
        (
            [[1.0, 8.0], [-8.1, 0.0]],
            "x must fit s8/4, got 2 of 4 elements outside it; s9/4 holds them all",
        ),
        (
            [[1, 128], [-300, 0]],
            "x must fit s8/4, got 2 of 4 elements outside it; s10/4 holds them all",
        ),
        ([[1, 2, 3]], "x must have rows of dim=2 elements, got shape (1, 3)"),
        (7, "x must have rows of dim=2 elements, got shape ()"),
        ([["a", "b"]], "x must be integers or floats, got dtype <U1"),
        ([[True, False]], "x must be integers or floats, got dtype bool"),
        ([[1j, 0]], "x must be integers or floats, got dtype complex128"),
    ],
)
def test_rows_that_do_not_fit_are_refused(x, message):
    with refused(message):
        model(RMSNorm(dim=2, x="s8/4"), np.asarray(x))


def test_an_fxp_that_does_not_fit_is_refused():
    design = RMSNorm(dim=2, x="s8/4")
    with refused("x must have at most 4 fraction bits (s8/4), got fxp-s16/5"):
        model(design, Fxp([1.0, 2.0], signed=True, n_word=16, n_frac=5))
    with refused("x must fit s8/4, got 1 of 2 elements outside it; s9/4 holds them all"):
        model(design, Fxp([1.0, 9.0], signed=True, n_word=16, n_frac=4))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"gamma": [1, 2]}, "gamma must have dim=3 elements, got shape (2,)"),
        ({"gamma": [[1, 2, 3]]}, "gamma must have dim=3 elements, got shape (1, 3)"),
        (
            {"gamma": [1, 2, 128]},
            "gamma must fit s8/4, got 1 of 3 elements outside it; s9/4 holds them all",
        ),
        ({"gamma": [1.0, np.nan, 2.0]}, "gamma must be finite, got 1 NaN or infinite elements"),
        ({"beta": [1, 2, 3]}, "beta must not be given: the design has no format.beta"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(given, message):
    with refused(message):
        model(LayerNorm(dim=3, gamma="s8/4"), np.zeros((1, 3), dtype=int), **given)
