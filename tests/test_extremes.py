"""Designs and inputs at the far ends: what is allowed works, what is not gets one line."""

import re

import numpy as np
import pytest

from hwnorm import Fixed, LayerNorm, RMSNorm, Rsqrt, golden, measure, model, simulate
from hwnorm.cli import main
from hwnorm.rows import corner_rows, random_rows

#: Formats that rows leave many times over.
WRAPPING = [
    RMSNorm(dim=768, y="s16/15", overflow="wrap"),
    LayerNorm(dim=768, lanes=4, y="s8/6", overflow="wrap"),
    RMSNorm(dim=768, lanes=4, gamma="s16/14", y="s8/6", overflow="wrap"),
    RMSNorm(dim=64, y="s8/6", overflow="wrap"),
]


@pytest.mark.parametrize("design", WRAPPING, ids=lambda d: d.headline)
def test_the_bound_holds_for_what_wraps(design):
    x = np.concatenate([corner_rows(design), random_rows(design, 200)])
    peak = np.abs(golden(design, x)).max()
    report = measure(design, x).all
    assert peak > 4 * (design.y.hi * design.y.lsb)
    assert report.holds
    assert report.saturated == 0


@pytest.mark.parametrize("overflow", ["saturate", "wrap"])
@pytest.mark.parametrize(
    ("x", "y"), [("s5/2", "s32/32"), ("s16/8", "s16/52"), ("s16/-64", "s16/64")]
)
def test_exact_knows_outputs_beyond_floats(x, y, overflow):
    design = RMSNorm(dim=2, x=x, y=y, eps=1.0, overflow=overflow, rsqrt=Rsqrt("exact"))
    rows = corner_rows(design)
    report = measure(design, rows)
    assert report.all.misrounded == 0
    # Both elements of a row of equals are the same number.
    assert (model(design, rows)[3] == model(design, rows)[3, 0]).all()


def test_two_bit_inputs(capsys, tmp_path):
    (tmp_path / "d.toml").write_text('norm = "rmsnorm"\ndim = 6\n[format]\nx = "s2/0"\n')
    for command in (["eval"], ["sim"], ["verilog", "-o", str(tmp_path / "v")]):
        assert main([command[0], str(tmp_path / "d.toml"), *command[1:]]) == 0
    capsys.readouterr()


def test_real_rows_that_do_not_fit_are_not_forced(capsys, tmp_path):
    (tmp_path / "d.toml").write_text('norm = "rmsnorm"\ndim = 576\n[format]\nx = "s16/8"\n')
    assert main(["eval", str(tmp_path / "d.toml")]) == 0
    assert "of corner and seeded random rows" in capsys.readouterr().out


def test_numpy_numbers_and_arrays_are_taken():
    design = RMSNorm(
        dim=np.int64(4), lanes=np.int32(2), eps=np.float64(1e-5), gamma="s8/6",
        gamma_init=np.arange(4),
    )  # fmt: skip
    assert design == RMSNorm(dim=4, lanes=2, gamma="s8/6", gamma_init=[0, 1, 2, 3])
    assert hash(design) == hash(RMSNorm(dim=4, lanes=2, gamma="s8/6", gamma_init=(0, 1, 2, 3)))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"x": Fixed(-100, 100, 4)}, "format.x must be a whole word, got s8/4 [-100..100]"),
        ({"eps": 1e-320}, "eps must lie between 2**-100 and 2**64, got 1e-320"),
        ({"eps": 10**400}, "eps must be a finite number, got 1000000000"),
        ({"eps": True}, "eps must be a finite number, got True"),
        ({"period_ns": 0.01}, "period_ns must be at least 0.1, got 0.01"),
        (
            {"gamma": "s16/8", "gamma_offset": 1e300},
            "gamma_offset must keep gamma in 34 bits of lsb 0.00390625, got 1e+300",
        ),
        (
            {"rsqrt": Rsqrt("exact"), "rounding": "floor"},
            "exact rounds to nearest_even, got rounding 'floor'",
        ),
        ({"gamma": "s8/4", "gamma_init": 5}, "gamma_init must be a tuple of integers, got 5"),
        ({"x": "s99999999/1"}, "format.x: a format is spelled like s16/8 or u8/0, got"),
    ],
)
def test_rules_at_the_ends(fields, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        RMSNorm(dim=4, **fields)


@pytest.mark.parametrize(
    "text",
    [
        f"eps = 1{'0' * 400}",
        "eps = 5e-324",
        "gamma_offset = 1e300\n[format]\ngamma = 's16/64'",
        "gamma_init = [1, 1, 1, 0.5]\n[format]\ngamma = 's8/4'",
        "gamma_init = [[1, 1], [1, 1]]\n[format]\ngamma = 's8/4'",
        "gamma_init = [1, 1, 1, 1]\n[format]\ngamma = 'x8'",
        "[format]\nx = 's99999999999999999999/1'",
        "[format]\nx = 's\uff11\uff16/8'",
        "x = " + "[" * 3000 + "]" * 3000,
    ],
)
def test_bad_texts_get_one_line(capsys, tmp_path, text):
    (tmp_path / "d.toml").write_text(f'norm = "rmsnorm"\ndim = 4\n{text}\n', encoding="utf-8")
    assert main(["check", str(tmp_path / "d.toml")]) == 2
    captured = capsys.readouterr()
    assert re.fullmatch(r"hwnorm: .+\n", captured.err)
    assert captured.out == ""


def test_a_norm_that_is_no_name(capsys, tmp_path):
    (tmp_path / "d.toml").write_text('norm = ["rmsnorm"]\ndim = 4\n')
    assert main(["check", str(tmp_path / "d.toml")]) == 2
    assert "norm must be one of" in capsys.readouterr().err


def test_waves_that_cannot_be_written(capsys, tmp_path):
    (tmp_path / "folder.vcd").mkdir()
    for place in (tmp_path / "folder.vcd", tmp_path / "none" / "x.vcd"):
        assert main(["sim", "tiny-64", "--rows", "1", "--vcd", str(place)]) == 2
        assert re.fullmatch(r"hwnorm: vcd .* must be writable, got: .*\n", capsys.readouterr().err)


def test_a_bundle_is_written_whole_or_not_at_all(capsys, tmp_path):
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "tb").touch()
    assert main(["verilog", "tiny-64", "-o", str(tmp_path / "part"), "--force"]) == 2
    assert "tb must be a folder, got a file" in capsys.readouterr().err
    assert [p.name for p in (tmp_path / "part").iterdir()] == ["tb"]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"names": np.array(["a"])}, r"names of .* must be one a layer, got shape \(1,\)$"),
        ({"x": np.ones(4)}, r"x of .* must have layers and dim, got shape \(4,\)$"),
    ],
)
def test_layers_that_do_not_agree(arrays, message, tmp_path):
    from hwnorm.rows import load_layers

    np.savez(tmp_path / "d.npz", **{"x": np.ones((2, 3, 4)), "gamma": np.ones((2, 4)), **arrays})
    with pytest.raises(ValueError, match=message):
        load_layers(tmp_path / "d.npz")


def test_a_parameter_that_the_norm_does_not_have():
    for call in (model, simulate):
        with pytest.raises(
            ValueError, match=r"^beta must not be given: the design has no format\."
        ):
            call(RMSNorm(dim=4), np.ones((1, 4), int), beta=np.ones(4, int))


def test_golden_checks_what_the_model_checks():
    with pytest.raises(ValueError, match=r"^gamma must not be given: the design has no format\."):
        golden(RMSNorm(dim=4), np.ones((1, 4)), np.ones(4))
    with pytest.raises(ValueError, match=r"^gamma must have dim=4 elements, got shape \(3,\)$"):
        golden(RMSNorm(dim=4, gamma="s8/4"), np.ones((1, 4)), np.ones(3))
