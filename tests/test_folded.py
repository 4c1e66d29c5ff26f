"""A constant gamma that is a power of two is in the scale, and costs nothing."""

import numpy as np
import pytest
from oracles import all_rows, refused

import hwnorm
from hwnorm.design import dumps, parse
from hwnorm.estimate import estimate
from hwnorm.model import evaluate, model
from hwnorm.sim import simulate


def rms(gamma, **changes):
    """A design with one gamma for all elements."""
    fields = {"dim": 24, "lanes": 2, "x": "s12/6", "gamma": "s10/6", "y": "s12/8", "store": "rom"}
    return hwnorm.RMSNorm(**fields | {"gamma_init": (gamma,) * 24} | changes)


@pytest.mark.parametrize("exponent", [-6, -3, -1, 0, 1, 2])
@pytest.mark.parametrize("norm", ["rms", "layer", "layer with beta"])
def test_the_bound_holds_with_one_rounding(norm, exponent):
    fields = {
        "dim": 24, "lanes": 2, "x": "s12/6", "gamma": "s10/6", "y": "s12/8", "store": "rom",
        "gamma_init": (1 << exponent + 6,) * 24,
    }  # fmt: skip
    kind = hwnorm.RMSNorm if norm == "rms" else hwnorm.LayerNorm
    if norm == "layer with beta":
        fields["beta"] = "s10/6"
    design = kind(**fields)
    assert design.folded == exponent
    assert ("rounding before gamma" in design.error_terms) == (norm == "layer with beta")
    rows = all_rows(design, 3)
    evaluate(design, rows, check=True)
    report = hwnorm.measure(design, rows * design.x.lsb)
    assert report.all.max_ulp <= design.bound_ulp
    # The reference knows of no folding: it multiplies by gamma.
    assert report.all.max_ulp < 1
    if exponent in (-3, 2):
        assert (simulate(design, rows[:12], engine="pysim").y == model(design, rows[:12])).all()


def test_what_it_saves():
    folded, multiplied = rms(32), rms(33)
    assert (folded.folded, multiplied.folded) == (-1, None)
    saved = [estimate(d) for d in (multiplied, folded)]
    assert saved[0].dsp - saved[1].dsp == 2
    assert folded.bound_ulp < multiplied.bound_ulp
    assert folded.latency <= multiplied.latency
    assert "store_gamma" not in hwnorm.verilog(folded)
    assert "store_gamma" in hwnorm.verilog(multiplied)


def test_what_is_not_folded():
    assert rms(0).folded is rms(-64).folded is rms(48).folded is None
    assert rms(64, store="ram").folded is None
    assert rms(64, gamma_init=(64,) * 23 + (32,)).folded is None
    assert rms(64, gamma_init=None).folded is None
    assert rms(64, y="s8/4", rsqrt=hwnorm.Rsqrt(method="log")).folded is None
    # What counts is gamma with its offset.
    assert rms(0, gamma_offset=1.0).folded == 0
    assert rms(64, gamma_offset=1.0).folded == 1
    assert rms(32, gamma_offset=1.0).folded is None


def test_another_gamma_is_refused():
    design = rms(64)
    rows = all_rows(design, 1)[:2]
    same = np.ones(24)
    assert (model(design, rows, gamma=same) == model(design, rows)).all()
    with refused("gamma must be the constant 1 that the design has in its scale, got others"):
        model(design, rows, gamma=same * 0.5)


def test_design_file():
    assert parse(dumps(rms(64))) == rms(64)
