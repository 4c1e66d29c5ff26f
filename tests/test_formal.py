"""The proofs of `tools/prove.py` that are fast, and that each notices a broken design."""

import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from amaranth.hdl import Fragment
from test_fixed import raises

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

import monitors
import properties
import prove

FAST = [prop for prop in properties.PROPERTIES if prop.fast]
DOCS = Path(__file__).resolve().parent.parent / "docs" / "formal.md"


@pytest.mark.parametrize("prop", FAST, ids=lambda prop: prop.name)
def test_property_holds(prop):
    found, good, _ = prove.holds(prop)
    assert good, f"{prop.name}: {found}"


@pytest.mark.parametrize("prop", FAST, ids=lambda prop: prop.name)
def test_property_fails_if_the_design_is_broken(prop):
    found, good, _ = prove.fails(prop)
    assert good, f"{prop.name}: {found}"


def test_the_table_and_the_status(capsys, monkeypatch):
    name = "framing_error exact and sticky"
    assert prove.main(["--fast", name]) == 0
    lines = re.sub(r" +\d+\.\d ", " T ", capsys.readouterr().out).splitlines()
    assert lines == [
        "property                              engine depth seconds",
        "framing_error exact and sticky        pdr      all T PASS",
        "1 properties, 0 not as they should be",
    ]
    # What is proved for all time is never reached.
    (prop,) = (prop for prop in FAST if prop.name == name)
    wrong = replace(prop, engine="cover", depth=5)
    monkeypatch.setattr(prove, "PROPERTIES", [wrong])
    assert prove.main([]) == 1
    assert "FAIL (none)" in capsys.readouterr().out
    with raises("no property has a name that holds nonsense", SystemExit):
        prove.main(["nonsense"])


def test_a_missing_solver_is_an_error(monkeypatch):
    monkeypatch.setattr(prove, "find_spec", lambda name: None)
    with raises("proofs need the wheel pyosys with its yosys-abc, got none", FileNotFoundError):
        prove.holds(FAST[0])


def test_a_signal_that_is_gone_is_said():
    bench = monitors.ring()
    Fragment.get(bench.m, None)  # or Amaranth complains of an unused module
    with raises("gone must be a signal that the device drives, got none"):
        bench.inside("gone")


def test_the_documentation_names_every_property():
    text = DOCS.read_text(encoding="utf-8")
    for prop in FAST:
        assert f"| {prop.name} |" in text
