"""Test rows and data files."""

import numpy as np
import pytest

from hwnorm import LayerNorm, RMSNorm
from hwnorm.rows import (
    bench_rows,
    corner_rows,
    load_layers,
    random_rows,
    real_layers,
    real_rows,
    shipped_layers,
)

DESIGNS = [
    RMSNorm(dim=2, x="s8/4", y="s8/4"),
    RMSNorm(dim=576, x="s24/8", y="s16/9"),
    LayerNorm(dim=3, x="s16/8", y="s16/9"),
]


@pytest.mark.parametrize("design", DESIGNS, ids=lambda d: f"{d.kind}-{d.dim}")
@pytest.mark.parametrize(
    "make", [corner_rows, lambda d: random_rows(d, 20), lambda d: real_rows(d, 9)]
)
def test_rows_fit_the_format(design, make):
    x = make(design)
    assert x.dtype == np.int64
    assert x.shape[1] == design.dim
    assert x.min() >= design.x.lo
    assert x.max() <= design.x.hi


def test_corners_hold_what_breaks_first():
    design = RMSNorm(dim=8, x="s8/4", y="s8/4")
    x = corner_rows(design)
    sums = (x**2).sum(axis=1)
    assert 0 in sums
    assert 1 in sums
    assert design.x.lo**2 * 8 in sums
    # Leading ones of both parities.
    assert {int(s).bit_length() % 2 for s in sums if s} == {0, 1}


def test_random_rows_are_seeded_and_have_outliers():
    design = RMSNorm(dim=576, x="s24/8", y="s16/9")
    assert (random_rows(design, 30, 3) == random_rows(design, 30, 3)).all()
    x = random_rows(design, 60).astype(float)
    assert (np.abs(x).max(axis=1) / np.sqrt((x**2).mean(axis=1)) > 20).any()


def test_real_layers_are_the_published_ones():
    layers = real_layers("smollm2")
    assert len(layers) == 61
    assert layers[0].x.shape == (16, 576)
    assert max(np.abs(layer.x).max() for layer in layers) == 23024
    assert len(real_layers("minilm")) == 13
    assert shipped_layers(DESIGNS[1])[0].name == layers[0].name
    assert shipped_layers(DESIGNS[0]) == []


def test_bench_rows_count():
    assert len(bench_rows(DESIGNS[0], 1)) == 1
    assert len(bench_rows(DESIGNS[0], 12)) == 12


def test_data_files(tmp_path):
    x = np.arange(24.0).reshape(2, 3, 4)
    np.save(tmp_path / "x.npy", x)
    (layer,) = load_layers(tmp_path / "x.npy")
    assert layer.x.shape == (6, 4)
    gamma = np.ones((2, 4), np.float32)
    names = np.array(["a", "b"])
    np.savez(tmp_path / "x.npz", x=x.astype(np.float16), gamma=gamma, names=names, eps=1e-3)
    first, second = load_layers(tmp_path / "x.npz")
    assert (first.name, second.name) == ("a", "b")
    assert second.x.dtype == np.float64
    assert (layer.eps, first.eps, second.eps) == (None, 1e-3, 1e-3)
    assert (second.x == x[1]).all()


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"z": np.ones(3)}, "must have an array x, got none$"),
        ({"x": np.array(["a"])}, "must hold numbers, got <U1$"),
        ({"x": np.ones((0, 4))}, r"must have rows, got shape \(0, 4\)$"),
        (
            {"x": np.ones((2, 3, 4)), "gamma": np.ones((3, 4))},
            r"gamma of .* must have shape \(2, 4\) as x has layers and dim, got \(3, 4\)$",
        ),
    ],
)
def test_bad_data_files(tmp_path, arrays, message):
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        load_layers(tmp_path / "bad.npz")


@pytest.mark.parametrize("name", ["bad.npz", "bad.npy"])
def test_corrupt_and_missing_files(tmp_path, name):
    with pytest.raises(ValueError, match=r"^data file .*bad\.np. must exist, got none$"):
        load_layers(tmp_path / name)
    (tmp_path / name).write_bytes(b"no numbers")
    with pytest.raises(ValueError, match=r"must be a \.npy or \.npz of numbers, got another$"):
        load_layers(tmp_path / name)
