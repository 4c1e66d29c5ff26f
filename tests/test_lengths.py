"""Rows of any length up to ``dim_max``: model, hardware, frames."""

import numpy as np
import pytest
from amaranth.lib.fifo import SyncFIFO
from oracles import refused
from test_engine import beats_of, by_chance, drive
from test_variants import drive as drive_streams

from hwnorm import LayerNorm, LogTables, RMSNorm, Rsqrt, load, measure, model, simulate
from hwnorm.bitexact import assert_bit_exact, compare
from hwnorm.cli import main
from hwnorm.design import dumps, parse
from hwnorm.model import evaluate
from hwnorm.rows import endless_rows, random_rows
from hwnorm.testing import checks_of

DESIGNS = {
    "wide": RMSNorm(dim_max=576, lanes=8, x="s24/8", gamma="s16/13", y="s16/9"),
    "one lane": RMSNorm(
        dim_max=96, x="s16/8", gamma="s16/6", y="s12/4", rsqrt=Rsqrt("quadratic")
    ),
    "odd": RMSNorm(dim_max=12, lanes=3, x="s6/3", y="s8/4", rsqrt=Rsqrt("direct")),
    "one beat": RMSNorm(dim_max=4, lanes=4, x="s8/4", y="s8/4"),
    "in step": RMSNorm(dim_max=24, lanes=2, x="s8/4", gamma="s8/6", y="s10/6", store="stream"),
    "fast": RMSNorm(
        dim_max=40, lanes=4, x="s20/8", gamma="s16/13", y="s16/9", target="ecp5", period_ns=5.5
    ),
    "tiny eps": RMSNorm(dim_max=60, lanes=4, eps=1e-12, x="s16/4", y="s16/8"),
}  # fmt: skip


def lengths_of(design):
    """The shortest, the longest, and some between."""
    dims = design.dims
    return sorted({dims[0], dims[len(dims) // 3], dims[len(dims) // 2], dims[-1]})


def parameters(design, seed=0):
    rng = np.random.default_rng(seed)
    return {n: rng.integers(f.lo, f.hi + 1, design.dim) for n, f in design.parameters.items()}


def rows_of(design, run):
    """What came out, row by row."""
    beats = np.array(run.y).reshape(-1, design.lanes)
    return [row.ravel() for row in np.split(beats, np.flatnonzero(run.last) + 1)[:-1]]


# -- the model --------------------------------------------------------------------------


@pytest.mark.parametrize("name", DESIGNS)
def test_the_bound_holds_at_every_length(name):
    design, given = DESIGNS[name], parameters(DESIGNS[name])
    rng, worst = np.random.default_rng(1), 0.0
    for dim in lengths_of(design):
        x = np.concatenate(
            [
                random_rows(design, 200)[:, :dim],
                rng.integers(-3, 4, (100, dim)),
                rng.choice([design.x.lo, design.x.hi], (20, dim)),
                np.zeros((1, dim), dtype=int),
                np.eye(dim, dtype=int)[:10],
            ]
        )
        report = measure(design, x, **given)
        assert report.all.holds, (dim, report.all.max_ulp)
        evaluate(design, x, **given, check=True)
        worst = max(worst, report.all.max_ulp)
    assert worst > 0.5, "rows that test nothing"


@pytest.mark.parametrize("name", ["wide", "odd", "tiny eps"])
def test_a_length_is_about_as_good_as_a_design_of_that_length(name):
    design, given = DESIGNS[name], parameters(DESIGNS[name])
    for dim in lengths_of(design):
        fixed = RMSNorm(
            dim=dim, lanes=design.lanes, eps=design.eps, x=design.x, gamma=design.gamma,
            y=design.y, rsqrt=design.rsqrt,
        )  # fmt: skip
        x = random_rows(fixed, 50)
        some = {key: value[:dim] for key, value in given.items()}
        difference = np.abs(model(design, x, **given) - model(fixed, x, **some))
        assert difference.max() <= 1
    assert design.bound_ulp < fixed.bound_ulp + 0.25


def test_sizes_are_those_of_the_longest_row():
    design = DESIGNS["wide"]
    assert (design.dim, design.beats, design.least_beats) == (576, 72, 1)
    assert list(design.dims) == list(range(8, 577, 8))
    assert "dim up to 576" in design.headline
    assert design.turns == {}, "a row of one beat leaves no time to share"
    assert parse(dumps(design)) == design
    assert "dim_max = 576\n" in dumps(design)
    assert "\ndim = " not in dumps(design)


# -- the hardware -----------------------------------------------------------------------


@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_the_hardware_equals_the_model(name, stall):
    design = DESIGNS[name]
    blocks = list(endless_rows(design, 40 if name != "wide" else 16))
    result = assert_bit_exact(
        design, iter(blocks), **parameters(design), stall=stall, seed=len(name)
    )
    assert result.rows == sum(map(len, blocks))
    assert not result.framing_error


@pytest.mark.parametrize("name", ["odd", "in step"])
def test_engines_agree(name):
    design, cycles = DESIGNS[name], set()
    blocks = list(endless_rows(design, 60))
    for engine in ("pysim", "verilator", "cxxrtl", "icarus"):
        result = assert_bit_exact(
            design, iter(blocks), **parameters(design), engine=engine, stall=0.3, seed=5
        )
        cycles.add(result.cycles)
    assert len(cycles) == 1


@pytest.mark.parametrize("name", ["odd", "one beat", "fast"])
def test_equal_rows_of_any_length_come_without_a_gap(name):
    design = DESIGNS[name]
    for dim in lengths_of(design):
        x = random_rows(design, 40)[:, :dim]
        result = simulate(design, x)
        assert (result.y == model(design, x)).all()
        assert result.beats_per_cycle == 1
        assert result.latency_cycles == design.latency - (design.dim - dim) // design.lanes


def test_outputs_of_several_lengths_are_a_list():
    design = DESIGNS["odd"]
    x = [np.full((2, 3), 5), np.full((1, 3), 7), np.full((1, 12), 9)]
    result = simulate(design, iter(x))
    assert [part.shape for part in result.y] == [(3, 3), (1, 12)]


def test_a_row_without_an_end_is_dropped():
    """Longer than dim_max: the rows around it are right, and the flag tells."""
    design, rng = DESIGNS["odd"], np.random.default_rng(3)
    beats, good = [], []
    for row in random_rows(design, 60):
        dim = int(rng.choice(design.dims))
        if rng.random() < 0.2:
            beats += beats_of(design, [row], int(rng.integers(design.beats + 1, 15)))
        else:
            good.append(row[:dim])
            beats += beats_of(design, [row[:dim]], dim // design.lanes)
    run = drive(design, beats, offer=by_chance(0.7, 1), take=by_chance(0.6, 2))
    assert 20 < len(good) < 60
    got = rows_of(design, run)
    assert len(got) == len(good)
    for row, wanted in zip(got, good, strict=True):
        np.testing.assert_array_equal(row, model(design, wanted))
    assert run.framing_error[-1]


def test_a_parameter_that_ends_elsewhere_drops_its_row():
    """x says where a row ends; a streamed gamma that disagrees is misframed."""
    design = DESIGNS["in step"]
    x, gamma = random_rows(design, 6), parameters(design)["gamma"]

    def beats(rows, dims):
        return [
            beat
            for row, n in zip(rows, dims, strict=True)
            for beat in beats_of(design, [row[:n]], n // design.lanes)
        ]

    dims = [4, 24, 2, 8, 6, 24]
    for wrong, kept in ((None, range(6)), (2, (0, 1, 3, 4, 5))):
        other = [n + 2 * (at == wrong) for at, n in enumerate(dims)]
        run = drive_streams(design, {"i": beats(x, dims), "i_gamma": beats([gamma] * 6, other)})
        assert run.framing_error[-1] == (wrong is not None)
        got = rows_of(design, run)
        assert len(got) == len(kept)
        for row, at in zip(got, kept, strict=True):
            wanted = model(design, x[at][: dims[at]], np.resize(gamma, 24))
            np.testing.assert_array_equal(row, wanted)


# -- commands ---------------------------------------------------------------------------


def test_commands_take_it(tmp_path, capsys):
    """Without data, a simulation has rows of all lengths; with data, those of the data."""
    file = tmp_path / "any.toml"
    file.write_text(dumps(DESIGNS["odd"]))
    assert load(file) == DESIGNS["odd"]
    for arguments in (["check"], ["sim", "--rows", "30", "--stall", "0.3"], ["eval"]):
        assert main([arguments[0], str(file), *arguments[1:]]) in (0, None)
    assert "30 rows of corner and random rows of all lengths" in capsys.readouterr().out
    np.savez(tmp_path / "six.npz", x=np.arange(12).reshape(2, 6) * 0.125)
    for command in ("sim", "eval"):
        assert main([command, str(file), "--data", str(tmp_path / "six.npz")]) in (0, None)
    np.savez(tmp_path / "odd.npz", x=np.zeros((2, 7)))
    assert main(["eval", str(file), "--data", str(tmp_path / "odd.npz")]) == 2
    assert "must have at most dim=12 in whole beats, got 7" in capsys.readouterr().err


@pytest.mark.parametrize("check", ["text", "golden", "bound", "lengths", "rate"])
def test_conformance(check):
    checks_of(DESIGNS["odd"])[check](DESIGNS["odd"])


def test_conformance_finds_a_row_that_is_counted_wrong(monkeypatch):
    monkeypatch.setattr("hwnorm.hdl.engine.SyncFIFO", shallow)
    with pytest.raises(AssertionError):
        checks_of(DESIGNS["one lane"])["lengths"](DESIGNS["one lane"])


def shallow(width, depth):
    """Lengths of a few rows only, as if all rows were long."""
    return SyncFIFO(width=width, depth=depth if width > 8 else 4)


@pytest.mark.parametrize("length", [3, 12])
def test_what_differs_is_told_and_kept(length, tmp_path, monkeypatch):
    """The run of rows of the first mismatch's length is kept, and enough to replay it."""
    design = DESIGNS["odd"]
    zeros = [np.zeros((3, n), dtype=int) for n in (6, 9)]
    blocks = [*zeros, np.full((2, length), 20), *zeros]
    monkeypatch.setattr("hwnorm.ops.ShiftRight.rtl", lambda self, m, a, s, **_: (a >> s) << 1)
    found = compare(design, iter(blocks))
    row = found.first[0]
    starts = np.cumsum([0] + [len(block) for block in blocks])
    at = int(np.searchsorted(starts, row, side="right")) - 1
    assert at in (1, 2), "in the row that is not zero, or beside it"
    np.testing.assert_array_equal(found.rows, blocks[at])
    assert found.skipped == starts[at]
    with pytest.raises(AssertionError) as error:
        assert_bit_exact(design, iter(blocks), folder=tmp_path / "kept")
    assert f"first in row {row}, element " in str(error.value)
    said = f"reproducer: {tmp_path / 'kept'} (without the first {starts[at]} rows)"
    assert said in str(error.value)
    assert np.load(tmp_path / "kept/x.npy").shape == blocks[at].shape


# -- bad input --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RMSNorm(), "dim must be given, got none"),
        (lambda: RMSNorm(dim=4, dim_max=8), "dim must not be given with dim_max, got 4"),
        (lambda: RMSNorm(dim_max="8"), "dim_max must be an integer, got '8'"),
        (lambda: RMSNorm(dim_max=1), "dim_max must lie in 2..16384, got 1"),
        (lambda: RMSNorm(dim_max=8, lanes=3), "lanes must divide dim, got lanes=3 and dim=8"),
        (lambda: LayerNorm(dim_max=8), "dim_max is not for layernorm, got 8"),
        (
            lambda: RMSNorm(dim_max=8, ready=False),
            "dim_max needs ready: a short row waits behind a long one, got ready false",
        ),
        (
            lambda: RMSNorm(dim_max=8, rsqrt=Rsqrt("log"), log=LogTables()),
            "dim_max needs rsqrt.method direct, linear or quadratic, got 'log'",
        ),
        (
            lambda: RMSNorm(dim_max=64, solver="shared"),
            "solve must be pipelined where a row has less than 10 beats, got shared and 1",
        ),
        (
            lambda: model(DESIGNS["odd"], np.zeros((2, 4))),
            "x must have rows of up to 12 elements in whole beats, got shape (2, 4)",
        ),
        (
            lambda: model(DESIGNS["odd"], np.zeros((2, 15))),
            "x must have rows of up to 12 elements in whole beats, got shape (2, 15)",
        ),
    ],
)
def test_what_is_refused(make, message):
    with refused(message):
        make()


@pytest.mark.parametrize("name", ["odd", "one lane", "wide"])
def test_the_scale_keeps_its_error(name):
    """Of many totals and lengths, against float64: a rounding that is not to nearest is seen."""
    design, rng = DESIGNS[name], np.random.default_rng(0)
    dims = rng.choice(design.dims, 20000)
    top = np.log2(design.x.hi**2 * dims)
    sumsq = np.floor(2.0 ** (rng.random(len(dims)) * top)).astype(np.int64)
    found = design.flows.solve.run(sumsq=sumsq, count=dims)
    hidden = design.flows.solve.results["inv"].hidden
    sig = found["inv"] + (0 if hidden is None else 1 << hidden)
    scale = np.ldexp(sig.astype(float), -design.flows.solve.outputs["inv"].fmt.frac)
    scale = scale * 2.0 ** -found["inv_exp"].astype(float)
    real = np.ldexp(sumsq.astype(float), -2 * design.x.frac)
    ideal = dims / np.sqrt(dims * (real + dims * design.eps_used))
    error = scale / ideal - 1
    assert np.abs(error).max() <= design.scale_error
    assert abs(error.mean()) < design.scale_error / 20
