"""Engines: the same rows, the same stalls, the same bits and the same cycles in all."""

import numpy as np
import pytest

from hwnorm import Fixed, LayerNorm, RMSNorm, Rsqrt, model, simulate
from hwnorm.rows import corner_rows, random_rows
from hwnorm.sim import ENGINES
from hwnorm.sim.compiled import from_bytes, to_bytes
from hwnorm.sim.stalls import PERIOD_CYCLES, Stalls, make_stalls

#: Widths under, at and over a byte, a word and a long word; every kind of parameter store.
DESIGNS = {
    "words": RMSNorm(dim=12, lanes=3, x="s24/8", gamma="s9/7", y="s11/6"),
    "wide": LayerNorm(dim=40, lanes=20, x="s16/8", gamma="s16/13", beta="s7/3", y="s12/8"),
    "log": RMSNorm(dim=16, lanes=1, x="s8/4", gamma="s8/6", y="s8/4", rsqrt=Rsqrt("log")),
    "rom": RMSNorm(dim=8, lanes=8, x="s12/4", gamma="s6/4", y="s9/5", store="rom"),
}


def given(design):
    """Seeded parameters, of those that are loaded."""
    rng = np.random.default_rng(3)
    if design.store == "rom":
        return {}
    return {n: rng.integers(f.lo, f.hi + 1, design.dim) for n, f in design.parameters.items()}


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.mark.parametrize("name", DESIGNS)
def test_engines_agree(name):
    design = DESIGNS[name]
    x = np.concatenate([corner_rows(design), random_rows(design, 20)])
    expected = model(design, x, **given(design))
    for stall, pattern in ((0.0, "random"), (0.4, "random"), (0.5, "bursty")):
        results = {
            engine: simulate(
                design, x, **given(design), engine=engine, stall=stall, pattern=pattern, seed=7
            )
            for engine in ENGINES
        }
        for engine, result in results.items():
            assert (result.y == expected).all(), engine
            first = results["pysim"]
            assert (result.cycles, result.latency_cycles) == (first.cycles, first.latency_cycles)
            assert (result.saturated, result.framing_error) == (first.saturated, False)
        if not stall:
            assert first.cycles == len(x) * design.beats + design.latency


@pytest.mark.parametrize("text", ["s5/0", "s8/0", "s13/0", "s24/0", "s32/0"])
def test_bytes_of_beats_and_back(text):
    fmt = Fixed.parse(text)
    rows = np.random.default_rng(0).integers(fmt.lo, fmt.hi + 1, (5, 12))
    rows[0, :2] = fmt.lo, fmt.hi
    beats = to_bytes(rows, fmt, 4)
    assert beats.shape == (15, 4 * ((fmt.width + 7) // 8))
    assert (from_bytes(beats, fmt, 12) == rows).all()


@pytest.mark.parametrize("pattern", ["random", "bursty"])
def test_stalls_are_seeded_and_of_the_share(pattern):
    stalls = make_stalls(0.3, 5, pattern)
    again = make_stalls(0.3, 5, pattern)
    assert (stalls.source == again.source).all()
    assert len(stalls.sink) == PERIOD_CYCLES
    assert not (stalls.source == stalls.sink).all()
    for side in (stalls.source, stalls.sink):
        assert abs(np.mean(side) - 0.7) < 0.05
    changes = np.mean(stalls.source[1:] != stalls.source[:-1])
    assert (changes < 0.1) == (pattern == "bursty")


def test_a_missing_engine_names_its_install_line(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(ValueError, match=r"^engine icarus is not usable here: .* apt-get install"):
        simulate(DESIGNS["rom"], np.zeros((1, 8)), engine="icarus")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_design_that_gives_nothing_is_reported(monkeypatch, engine):
    """A sink that takes nothing stands for a design that hangs."""
    never = Stalls(np.ones(PERIOD_CYCLES, bool), np.zeros(PERIOD_CYCLES, bool))
    monkeypatch.setattr("hwnorm.sim.base.make_stalls", lambda *_: never)
    with pytest.raises(TimeoutError, match=r"^the design must give 3 beats in \d+ cycles, got 0$"):
        simulate(DESIGNS["rom"], np.zeros((3, 8)), engine=engine)


@pytest.mark.parametrize("engine", ["verilator", "cxxrtl"])
def test_compiled_engines_write_no_waves(engine, tmp_path):
    with pytest.raises(ValueError, match=rf"^engine {engine} writes no waves, got vcd="):
        simulate(DESIGNS["rom"], np.zeros((1, 8)), engine=engine, vcd=tmp_path / "w.vcd")


def test_icarus_writes_waves(tmp_path):
    simulate(DESIGNS["rom"], np.zeros((1, 8)), engine="icarus", vcd=tmp_path / "w.vcd")
    assert "lead_zeros" in (tmp_path / "w.vcd").read_text()


def test_the_cache_is_used_and_can_be_missing(monkeypatch, tmp_path):
    design, x = DESIGNS["rom"], np.arange(16).reshape(2, 8)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = simulate(design, x, engine="cxxrtl")
    (kept,) = (tmp_path / "hwnorm").iterdir()
    monkeypatch.setattr("hwnorm.sim.compiled.call", None)
    assert (simulate(design, x, engine="cxxrtl").y == first.y).all()
    monkeypatch.undo()
    kept.unlink()
    (tmp_path / "hwnorm").rmdir()
    (tmp_path / "hwnorm").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert (simulate(design, x, engine="cxxrtl").y == first.y).all()


def test_a_compiler_error_is_one_line(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("hwnorm.sim.cxxrtl._DUT", "not C++ at all\n")
    with pytest.raises(ValueError, match=r"^g\+\+ must compile the design in .*, got: "):
        simulate(DESIGNS["rom"], np.zeros((1, 8)), engine="cxxrtl")
    assert not (tmp_path / "hwnorm").exists()
