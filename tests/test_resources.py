"""Cell counts on ECP5 and iCE40: what the README and the goals claim."""

import importlib.util
from pathlib import Path

import pytest

PATH = Path(__file__).resolve().parent.parent / "benchmarks" / "resources.py"
SPEC = importlib.util.spec_from_file_location("resources", PATH)
RESOURCES = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(RESOURCES)


@pytest.mark.parametrize(
    ("name", "luts", "multipliers"),
    [
        # MASE at 8 bits: 2619 LUT4 and 39 MULT18 with 4 lanes, 1808 and 24 with one.
        ("rmsnorm 768, 4 lanes, s16, gamma", 2000, 16),
        ("rmsnorm 768, 1 lane, s16, gamma", 1100, 8),
    ],
)
def test_ecp5(name, luts, multipliers):
    cells = RESOURCES.resources(name)
    assert 0 < cells["LUT4"] <= luts
    assert 0 < cells["MULT18X18D"] <= multipliers
    # Row buffer, parameters and tables are in block RAM.
    assert 0 < cells["DP16KD"] <= 6


def test_ice40_without_multipliers():
    cells = RESOURCES.resources("ice40-log-256")
    assert cells["SB_MAC16"] == 0
    # It fits the 5280 LUTs of an UP5K several times.
    assert 0 < cells["SB_LUT4"] < 1600
