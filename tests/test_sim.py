"""Engines: the same rows, the same stalls, the same bits and the same cycles in all."""

import re

import numpy as np
import pytest

from hwnorm import Fixed, LayerNorm, RMSNorm, Rsqrt, model, simulate
from hwnorm.rows import corner_rows, random_rows
from hwnorm.sim import ENGINES
from hwnorm.sim.beats import from_bytes, to_bytes
from hwnorm.sim.stalls import PERIOD_CYCLES, Stalls, make_stalls

#: Widths under, at and over a byte, a word and a long word; every kind of parameter store.
DESIGNS = {
    "words": RMSNorm(dim=12, lanes=3, x="s24/8", gamma="s9/7", y="s11/6"),
    "wide": LayerNorm(dim=40, lanes=10, x="s16/8", gamma="s16/13", beta="s7/3", y="s12/8"),
    "log": RMSNorm(dim=16, lanes=1, x="s8/4", gamma="s8/6", y="s8/4", rsqrt=Rsqrt("log")),
    "rom": RMSNorm(dim=8, lanes=8, x="s12/4", gamma="s6/4", y="s9/5", store="rom"),
}


def given(design):
    """Seeded parameters, of those that are loaded."""
    rng = np.random.default_rng(3)
    if design.store == "rom":
        return {}
    return {n: rng.integers(f.lo, f.hi + 1, design.dim) for n, f in design.parameters.items()}


@pytest.mark.parametrize("name", DESIGNS)
def test_engines_agree(name):
    design = DESIGNS[name]
    x = np.concatenate([corner_rows(design), random_rows(design, 20)])
    expected = model(design, x, **given(design))
    for stall, pattern in ((0.0, "random"), (0.4, "random"), (0.5, "bursty")):
        results = {
            engine: simulate(
                design,
                x,
                **given(design),
                engine=engine,
                stall=stall,
                pattern=pattern,
                seed=7,
                trace_cycles=60,
            )
            for engine in ENGINES
        }
        for engine, result in results.items():
            assert (result.y == expected).all(), engine
            first = results["pysim"]
            assert (result.cycles, result.latency_cycles) == (first.cycles, first.latency_cycles)
            assert (result.saturated, result.framing_error) == (first.saturated, False)
            assert (result.handshakes == first.handshakes).all()
            assert len(result.handshakes) == 60
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
    with pytest.raises(
        TimeoutError, match=r"^the design must give all beats in \d+ cycles, got 0 out and \d+ in$"
    ):
        simulate(DESIGNS["rom"], np.zeros((3, 8)), engine=engine)


def test_icarus_counts_limits_beyond_32_bits(monkeypatch):
    """As some thousand beats at 99 % of stalls have; here without the stalls, to be fast."""
    always = Stalls(*np.ones((2, PERIOD_CYCLES), bool))
    monkeypatch.setattr("hwnorm.sim.base.make_stalls", lambda *_: always)
    result = simulate(DESIGNS["rom"], np.zeros((200, 8)), engine="icarus", stall=0.9995)
    assert result.rows == 200


@pytest.mark.parametrize("engine", ENGINES)
def test_waves_have_the_named_wires(engine, tmp_path):
    path, design = tmp_path / "w.vcd", DESIGNS["rom"]
    simulate(design, np.zeros((1, 8)), engine=engine, vcd=path)
    text = path.read_text()
    assert "lead_zeros" in text
    assert "$enddefinitions" in text
    # To the end: 4 cycles of reset, the row, 32 more; in the units of the file.
    unit = {"1 fs": 1e-6, "1ps": 1e-3, "1 ps": 1e-3}[
        re.search(r"\$timescale\s+(.*?)\s+\$", text)[1]
    ]
    last = int(re.findall(r"^#(\d+)", text, re.M)[-1]) * unit
    assert last >= (design.latency + 32) * design.period_ns


@pytest.mark.parametrize("engine", ["verilator", "icarus"])
def test_waves_as_fst(engine, tmp_path):
    simulate(DESIGNS["rom"], np.zeros((1, 8)), engine=engine, fst=tmp_path / "w.fst")
    # The block type of an FST header, and its length.
    assert (tmp_path / "w.fst").read_bytes()[:9] == b"\0" + (329).to_bytes(8, "big")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"engine": "pysim", "fst": "w.fst"}, "engine pysim writes no fst; verilator, icarus do"),
        ({"engine": "cxxrtl", "fst": "w.fst"}, "engine cxxrtl writes no fst; verilator, icarus do"),
        ({"vcd": "w.fst"}, "vcd must be a file named *.vcd, got w.fst"),
        ({"vcd": "w.vcd", "fst": "w.fst"}, "vcd and fst must not be given together, got both"),
        ({"vcd": "no/w.vcd"}, "vcd no/w.vcd must be writable, got: No such file or directory"),
    ],
)
def test_waves_that_cannot_be(settings, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        simulate(DESIGNS["rom"], np.zeros((1, 8)), **settings)


@pytest.mark.parametrize(("x", "stall"), [(0.0, 2), (1e9, 0.0)])
def test_bad_input_leaves_no_waves(x, stall, tmp_path):
    with pytest.raises(ValueError, match=r"^(x|stall) must "):
        simulate(DESIGNS["rom"], np.full((1, 8), x), stall=stall, vcd=tmp_path / "w.vcd")
    assert not (tmp_path / "w.vcd").exists()


@pytest.mark.parametrize("stall", [0.9999999, float(np.nextafter(1, 0))])
def test_a_pattern_in_which_nothing_moves_is_refused(stall):
    with pytest.raises(ValueError, match=r"^stall must let something through in 65537 cycles, "):
        simulate(DESIGNS["rom"], np.zeros((1, 8)), engine="icarus", stall=stall)


@pytest.mark.parametrize("seed", [-1, 1.5, "x", True])
def test_seeds_are_integers(seed):
    with pytest.raises(ValueError, match=r"^seed must be an integer of at least 0, got "):
        simulate(DESIGNS["rom"], np.zeros((1, 8)), seed=seed)


def test_fst_by_verilator_names_what_it_needs(monkeypatch, tmp_path):
    monkeypatch.setattr("hwnorm.sim.verilator._FST_HEADERS", "#include <no_such_header.h>\n")
    with pytest.raises(ValueError, match=r"^fst by verilator needs .* apt-get install liblz4-dev"):
        simulate(DESIGNS["rom"], np.zeros((1, 8)), engine="verilator", fst=tmp_path / "w.fst")
