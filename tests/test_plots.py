"""Pictures are drawn, and drawn alike."""

import pytest

from hwnorm.design import CATALOGUE
from hwnorm.measure import Errors
from hwnorm.plots import draw_calibration, draw_error_against_segments, draw_error_histogram
from hwnorm.rows import random_rows


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_error_histogram(tmp_path, kind):
    design = CATALOGUE["tiny-64"]
    errors = Errors.of(design, random_rows(design, 50))
    for name in ("a", "b"):
        draw_error_histogram(errors, tmp_path / f"{name}.{kind}", "title")
    first = (tmp_path / f"a.{kind}").read_bytes()
    assert len(first) > 5000
    assert first == (tmp_path / f"b.{kind}").read_bytes()


def test_error_against_segments(tmp_path):
    series = {"direct": [(2, 90.0, 120.0), (4, 40.0, 50.0)], "linear": [(2, 3.0, 4.0)]}
    draw_error_against_segments(series, tmp_path / "a.png", "title")
    assert (tmp_path / "a.png").stat().st_size > 5000


def test_other_endings_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"^a plot is written as \.png, \.svg or \.pdf, got "):
        draw_error_against_segments({"direct": [(2, 1.0, 1.0)]}, tmp_path / "a.bmp", "title")


def test_calibration(tmp_path):
    points = {"fmax_mhz": [(100, 95, False), (150, 160, True)], "lut": [(500, 520, False)]}
    draw_calibration(points, tmp_path / "a.png", "title")
    assert (tmp_path / "a.png").stat().st_size > 5000
