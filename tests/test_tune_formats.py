"""What formats rows need, and designs side by side."""

import dataclasses
import json

import numpy as np
import pytest
from test_fixed import raises
from test_tune import RMS, layers_of, measured

import hwnorm
from hwnorm import Rsqrt
from hwnorm.cli import main
from hwnorm.design import dumps
from hwnorm.golden import rms_norm
from hwnorm.rows import Layer
from hwnorm.tune.compare import compare_text, compared
from hwnorm.tune.cost import estimate
from hwnorm.tune.formats import WIDTHS, draw_formats, formats_text, needed_formats


@pytest.fixture(scope="module")
def spiked():
    rng = np.random.default_rng(3)
    quiet, loud = rng.normal(size=(8, 576)) / 16, rng.normal(size=(8, 576))
    loud[5, 100] = -800.0
    return [Layer("quiet", quiet, np.full(576, 0.5)), Layer("loud", loud, np.full(576, 1.5))]


def test_ranges_and_massive_activations(spiked):
    found = needed_formats(spiked)
    quiet, loud = found.layers
    assert (quiet["name"], quiet["rows"], quiet["max"]) == ("quiet", 8, np.abs(spiked[0].x).max())
    assert loud["max"] == 800
    row = spiked[1].x[5]
    assert loud["crest"] == pytest.approx(800 / np.sqrt(np.mean(row**2)))
    assert quiet["bits"] == pytest.approx(np.log2(800 / np.sqrt(np.mean(spiked[0].x ** 2))))
    ((one),) = found.massive
    assert (one["layer"], one["row"], one["channel"], one["value"]) == ("loud", 5, 100, -800)
    assert one["times_median"] == pytest.approx(800 / np.median(np.abs(row)))
    assert "1 activation in 1 layer, channel 100" in formats_text(found, "rows")


def test_losses_by_another_way(spiked):
    found = needed_formats(spiked)
    for entry in found.widths[4::5]:
        fmt = hwnorm.Fixed.parse(entry["static"])
        assert fmt.width == entry["width"]
        assert fmt.hi * fmt.lsb >= 1600 * (1 - 2.0 ** (2 - fmt.width))
        static, block = [], []
        for layer in spiked:
            ideal = rms_norm(layer.x, layer.gamma)
            rows = [fmt.ints(np.clip(row, -1000, 1000)) * fmt.lsb for row in layer.x]
            own = []
            for row in layer.x:
                # The finest grid of that width that holds the row's largest element.
                step = 2.0 ** (np.floor(np.log2(np.abs(row).max())) + 2 - entry["width"])
                top = 2 ** (entry["width"] - 1)
                own.append(np.clip(np.round(row / step), -top, top - 1) * step)
            for values, list_ in ((rows, static), (own, block)):
                noise = rms_norm(np.array(values), layer.gamma) - ideal
                list_.append(10 * np.log10(np.sum(ideal**2) / np.sum(noise**2)))
        assert entry["static_db"] == pytest.approx(min(static), abs=1e-6)
        assert entry["block_db"] == pytest.approx(min(block), abs=1e-6)


def test_bits_that_are_needed(spiked):
    found = needed_formats(spiked, target_db=40)
    for bits, key in ((found.static_bits, "static_db"), (found.block_bits, "block_db")):
        by_width = {one["width"]: one[key] for one in found.widths}
        assert by_width[bits] >= 40 > by_width[bits - 1]
    assert found.block_bits < found.static_bits
    assert set(found.suggested) == {"x", "gamma", "y"}
    gamma = hwnorm.Fixed.parse(found.suggested["gamma"])
    assert 3 <= gamma.hi * gamma.lsb * (1 + 2**-14) < 6
    assert needed_formats(spiked, target_db=900).static_bits is None


def test_rows_without_formats(tmp_path, spiked):
    with raises("a: x must be floats, got integers of unknown unit"):
        needed_formats([Layer("a", np.ones((2, 4), dtype=np.int64))])
    with raises("a: x must be finite, got 1 NaN or infinite elements"):
        needed_formats([Layer("a", np.array([[1.0, np.inf]]))])
    with raises("data must have a row that is not all zero, got zeros only"):
        needed_formats([Layer("a", np.zeros((2, 4)))])
    few = needed_formats([Layer("a", np.eye(4))])
    assert [one["width"] for one in few.widths] == list(WIDTHS)
    draw_formats(needed_formats(spiked), tmp_path / "formats.svg")
    assert (tmp_path / "formats.svg").stat().st_size > 5000


def test_formats_as_json(tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(4, 32)))
    command = ["formats", "--data", str(tmp_path / "x.npy"), "--norm", "layernorm", "--json"]
    assert main([*command, "--plot", str(tmp_path / "plot.png")]) == 0
    data = json.loads(capsys.readouterr().out)
    assert set(data) == {
        "layers", "massive", "widths", "static_bits", "block_bits", "target_db", "suggested",
    }  # fmt: skip
    assert (tmp_path / "plot.png").exists()


def test_compared_designs():
    layers = layers_of()
    designs = {
        "fine": RMS,
        "rough": dataclasses.replace(RMS, rsqrt=Rsqrt("direct", 32)),
        "exact": dataclasses.replace(RMS, rsqrt=Rsqrt("exact")),
    }
    found = compared(designs, layers)
    for name, design in designs.items():
        each, together = measured(design, layers)
        peaks = [one.max_ulp for one in each]
        assert list(found[name]["layers"].values()) == peaks
        assert found[name]["worst_layer_max_ulp"] == max(peaks) == together.max_ulp
        assert found[name]["sqnr_db"] == together.sqnr_db
    assert found["fine"]["lut"] == estimate(RMS)["lut"]
    assert found["exact"]["rom_bits"] is None
    lines = compare_text(found).splitlines()
    assert lines[:2] == [f"fine: {RMS.headline}", f"rough: {designs['rough'].headline}"]
    rom = next(line for line in lines if line.startswith("ROM bits"))
    assert rom.split()[-1] == "-"


def test_compare_draws(tmp_path, capsys):
    for name, design in (("a", RMS), ("b", dataclasses.replace(RMS, rsqrt=Rsqrt("quadratic")))):
        (tmp_path / f"{name}.toml").write_text(dumps(design))
    files = [str(tmp_path / "a.toml"), str(tmp_path / "b.toml")]
    assert main(["compare", *files, "--plot", str(tmp_path / "both.png"), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert list(data["designs"]) == ["a", "b"]
    assert (tmp_path / "both.png").stat().st_size > 10000
    assert main(["compare", *files, "--plot", str(tmp_path / "both.gif")]) == 2
    assert "a plot is written as .png, .svg or .pdf" in capsys.readouterr().err
