"""What users ask for beyond the plain streams: streamed parameters, no ready, a clock enable."""

import subprocess
from dataclasses import replace

import numpy as np
import pytest
from amaranth.sim import Simulator
from oracles import all_rows, parameters, refused
from test_cocotb import python
from test_engine import Run, beats_of, put

from hwnorm import LayerNorm, RMSNorm, Rsqrt, measure, model, simulate
from hwnorm.bitexact import assert_bit_exact, compare
from hwnorm.cli import main
from hwnorm.design import dumps, parse
from hwnorm.estimate import estimate
from hwnorm.export.bundle import bundle
from hwnorm.files import write_tree
from hwnorm.hdl import RowEngine
from hwnorm.hdl.axi import port_bits
from hwnorm.rows import bench_rows, corner_rows, random_rows

RMS = RMSNorm(dim=12, lanes=3, gamma="s12/9", y="s12/8", gamma_offset=1.0)
LAYER = LayerNorm(dim=6, lanes=6, x="s9/4", gamma="s12/9", beta="s9/4", y="s10/5")
LOG = RMSNorm(dim=6, lanes=2, x="s8/4", gamma="s8/5", y="s8/4", rsqrt=Rsqrt("log"))
SLIM = RMSNorm(dim=8, x="s4/2", y="s8/5", period_ns=2.0)

VARIANTS = {
    "stream": replace(RMS, store="stream"),
    "stream, one beat": replace(LAYER, store="stream"),
    "stream, log": replace(LOG, store="stream"),
    "no ready": replace(RMS, ready=False),
    "no ready, one beat": replace(LAYER, ready=False),
    "no ready, rom": replace(LOG, ready=False, store="rom"),
    "no ready, slow": replace(SLIM, ready=False),
    "enable": replace(RMS, clock_enable=True),
    "enable, stream": replace(LAYER, clock_enable=True, store="stream"),
    "enable, no ready": replace(LAYER, clock_enable=True, ready=False),
}


def given_of(design, rows, seed=0):
    """Parameters; a row of them for each of x, where they are streamed."""
    rng = np.random.default_rng(seed)
    shape = (rows, design.dim) if design.store == "stream" else design.dim
    has = {} if design.store == "rom" else design.parameters
    return {name: rng.integers(fmt.lo, fmt.hi + 1, shape) for name, fmt in has.items()}


def rows_of(design, rows=24):
    return np.concatenate([corner_rows(design)[:8], random_rows(design, rows)])


@pytest.mark.parametrize("engine", ["pysim", "icarus"])
@pytest.mark.parametrize("name", VARIANTS)
def test_the_hardware_equals_the_model(name, engine):
    design = VARIANTS[name]
    x = rows_of(design)
    given = given_of(design, len(x))
    for stall in (0.0, 0.6) if engine == "pysim" else (0.5,):
        result = assert_bit_exact(design, x, **given, engine=engine, stall=stall, seed=3)
        if not stall:
            assert result.latency_cycles == design.latency
            assert result.cycles == len(x) * design.beats + design.latency


@pytest.mark.parametrize(
    ("name", "engine"), [("enable, stream", "verilator"), ("enable, no ready", "cxxrtl")]
)
def test_compiled_engines_take_the_same_cycles(name, engine):
    design = VARIANTS[name]
    x = rows_of(design)
    given = given_of(design, len(x))
    cycles = [
        assert_bit_exact(design, x, **given, engine=e, stall=0.6, pattern="bursty", seed=4).cycles
        for e in ("pysim", engine)
    ]
    assert cycles[0] == cycles[1]


# -- streamed parameters ----------------------------------------------------------------------


@pytest.mark.parametrize("design", [RMS, LAYER, LOG])
def test_streamed_is_loaded_anew_for_every_row(design):
    streamed = replace(design, store="stream")
    x = rows_of(design)
    given = given_of(streamed, len(x))
    want = [
        model(design, x[n : n + 1], **{name: v[n] for name, v in given.items()})
        for n in range(len(x))
    ]
    np.testing.assert_array_equal(model(streamed, x, **given), np.concatenate(want))
    report = measure(streamed, x, **given)
    assert report.all.max_ulp <= streamed.bound_ulp == design.bound_ulp
    # One for all rows, or none: as where they are stored.
    some = parameters(design, seed=1)
    np.testing.assert_array_equal(model(streamed, x, **some), model(design, x, **some))
    np.testing.assert_array_equal(simulate(streamed, x[:3], **some).y, model(design, x[:3], **some))
    np.testing.assert_array_equal(simulate(streamed, x[:3]).y, model(design, x[:3]))


def test_exact_takes_a_parameter_for_every_row():
    exact = replace(LAYER, store="stream", rsqrt=Rsqrt("exact"))
    x = rows_of(exact)
    given = given_of(exact, len(x))
    report = measure(replace(LAYER, store="stream"), x, **given)
    wrong = model(exact, x, **given) != model(replace(LAYER, store="stream"), x, **given)
    assert report.all.misrounded == pytest.approx(wrong.mean(), abs=0.02)
    assert measure(exact, x, **given).all.max_ulp <= 0.5 + 1e-9


def drive(design, streams, *, offer=None, take=None):
    """Beats on every stream by itself; a source holds what it has offered."""
    engine = RowEngine(design)
    run = Run(engine)
    names = ["i", *(f"i_{name}" for name in design.streamed)]

    async def bench(ctx):
        at, held = dict.fromkeys(names, 0), dict.fromkeys(names, False)
        for cycle in range(60 + engine.latency + 4 * sum(map(len, streams.values()))):
            for name in names:
                more = at[name] < len(streams[name])
                held[name] = more and (held[name] or offer is None or offer(name, cycle))
                put(ctx, getattr(engine, name), streams[name][at[name]] if held[name] else None)
            if design.ready:
                ctx.set(engine.o.ready, take is None or take(cycle))
            lanes = [engine.o.payload.data[n] for n in range(design.lanes)]
            readies = [getattr(engine, name).ready for name in names]
            _, _, valid, last, error, ready, *more = await ctx.tick().sample(
                engine.o.valid, engine.o.payload.last, engine.framing_error,
                engine.o.ready, *readies, *lanes,
            )  # fmt: skip
            for name, taken in zip(names, more[: len(names)], strict=True):
                if held[name] and taken:
                    at[name], held[name] = at[name] + 1, False
            if valid and ready:
                run.y += more[len(names) :]
                run.last.append(bool(last))
                run.given.append(cycle)
            run.framing_error.append(bool(error))
        assert at == {name: len(streams[name]) for name in names}, "all beats are taken"

    simulator = Simulator(engine)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()
    return run


@pytest.mark.parametrize("lengths", [(3, 4), (4, 2), (4, 6), (7, 4), (6, 9), (1, 1), (9, 1)])
@pytest.mark.parametrize("p", [None, 0.4])
def test_streams_find_back_into_step(lengths, p):
    """A row whose `last` is misplaced on either stream is dropped; the rows around it are not."""
    design = VARIANTS["stream"]
    x = all_rows(design, seed=1)[:5]
    gamma = given_of(design, 5)["gamma"]
    streams = {
        name: beats_of(design, rows[:2])
        + beats_of(design, rows[2:3], length)
        + beats_of(design, rows[3:])
        for (name, rows), length in zip({"i": x, "i_gamma": gamma}.items(), lengths, strict=True)
    }
    draws = np.random.default_rng(5).random((2, 4000)) < (p or 1)
    run = drive(design, streams, offer=lambda name, cycle: draws[int(len(name) > 1), cycle])
    keep = [0, 1, 3, 4]
    want = model(design, x[keep], gamma[keep])
    np.testing.assert_array_equal(run.rows(design), want)
    assert run.framing_error[-1]


def test_streams_wait_for_each_other():
    """Neither goes ahead; a source that sends both beats in step never locks up."""
    design = VARIANTS["stream"]
    x = all_rows(design, seed=2)[:6]
    gamma = given_of(design, 6)["gamma"]
    streams = {"i": beats_of(design, x), "i_gamma": beats_of(design, gamma)}
    late = drive(design, streams, offer=lambda name, cycle: name == "i" or cycle >= 40)
    np.testing.assert_array_equal(late.rows(design), model(design, x, gamma))
    assert late.given[0] == 40 + design.latency
    assert not any(late.framing_error)
    # The sink stalls: the ring fills with both.
    slow = drive(design, streams, take=lambda cycle: cycle > 60)
    np.testing.assert_array_equal(slow.rows(design), model(design, x, gamma))


def test_rows_of_parameters_are_counted(capsys):
    design = VARIANTS["stream"]
    x = random_rows(design, 4)
    for count in (3, 5):
        gamma = given_of(design, count)["gamma"]
        with pytest.raises(
            ValueError, match=rf"^gamma must have a row for each of x.* got {count}$"
        ):
            model(design, x, gamma)
        with pytest.raises(
            ValueError, match=rf"^gamma must have a row for each of x.* got {count}$"
        ):
            simulate(design, x, gamma)
    with refused("gamma must have dim=12 elements, got shape (4, 12)"):
        model(RMS, x, given_of(design, 4)["gamma"])


def test_a_failure_is_replayed_with_its_parameters(tmp_path, monkeypatch, capsys):
    design = VARIANTS["stream"]
    x = random_rows(design, 5)
    given = given_of(design, 5)
    with monkeypatch.context() as patch:
        patch.setattr("hwnorm.ops.ShiftRight.rtl", lambda self, m, a, s, **_: (a >> s) + 1)
        with pytest.raises(AssertionError, match="wires of apply in the model") as caught:
            assert_bit_exact(design, x, **given, folder=tmp_path)
    assert "gamma" in str(caught.value)
    monkeypatch.chdir(tmp_path)
    # The RTL is right again, and so are the rows with the parameters of each.
    assert main("sim design.toml --data data.npz --rows 5".split()) == 0
    assert "bit-exact: 5 rows" in capsys.readouterr().out
    np.testing.assert_array_equal(np.load("gamma.npy"), given["gamma"])


# -- without ready ----------------------------------------------------------------------------


def test_without_ready_there_is_none():
    design = VARIANTS["no ready"]
    assert not [name for name in port_bits(design) if "ready" in name]
    engine, plain = RowEngine(design), RowEngine(RMS)
    assert engine.signature.members["i"] != plain.signature.members["i"]
    assert (engine.latency, engine.ring_beats) == (plain.latency, plain.ring_beats)
    assert estimate(design).lut <= estimate(RMS).lut
    for unused in (engine, plain):
        unused._MustUse__silence = True


@pytest.mark.parametrize("length", [1, 3, 5, 9])
@pytest.mark.parametrize("p", [None, 0.4])
def test_without_ready_a_misframed_row_is_dropped(length, p):
    design = VARIANTS["no ready"]
    x = all_rows(design, seed=3)[:7]
    beats = beats_of(design, x[:3]) + beats_of(design, x[3:4], length) + beats_of(design, x[4:])
    draws = np.random.default_rng(6).random(4000) < (p or 1)
    run = drive(design, {"i": beats}, offer=lambda name, cycle: draws[cycle])
    np.testing.assert_array_equal(run.rows(design), model(design, x[[0, 1, 2, 4, 5, 6]]))
    assert run.framing_error[-1]


@pytest.mark.parametrize(("dim", "lanes"), [(4, 4), (4, 2), (8, 2), (6, 1)])
def test_without_ready_the_ring_is_just_long_enough(dim, lanes, monkeypatch):
    design = RMSNorm(dim=dim, lanes=lanes, gamma="s12/9", ready=False)
    x = np.resize(all_rows(design, seed=6), (40, dim))
    assert compare(design, x).bit_exact
    right = RowEngine.ring_beats.fget
    monkeypatch.setattr(RowEngine, "ring_beats", property(lambda self: right(self) - 1))
    assert not compare(design, x).bit_exact


# -- what comes along in a bundle -------------------------------------------------------------


@pytest.mark.parametrize("name", ["stream", "no ready", "enable, stream", "enable, no ready"])
def test_the_bench_of_a_bundle(name, tmp_path):
    design = VARIANTS[name]
    x = bench_rows(design, 6)
    files = bundle(design, "mine", x, **given_of(design, len(x)))
    write_tree(tmp_path, files)
    build = "iverilog -g2005 -o tb.vvp mine_tb.v ../rtl/mine.v"
    subprocess.run(build.split(), cwd=tmp_path / "tb", check=True)

    def runs(stall):
        done = subprocess.run(
            ["vvp", "-N", "tb.vvp", f"+stall={stall}"],
            cwd=tmp_path / "tb", capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout

    for stall in (0, 30, 80):
        code, text = runs(stall)
        assert code == 0, text
        assert "PASS: 6 rows" in text
    gold = tmp_path / "tb" / "gold.mem"
    gold.write_text(gold.read_text().replace("0", "1", 1))
    assert runs(30)[0] == 1
    ports = {f"| `{port}` |" for port in port_bits(design)}
    assert all(port in files["README.md"] for port in ports)
    assert ("tready" in files["templates/mine_litex.py"]) == design.ready
    assert ("i_ce=self.ce" in files["templates/mine_litex.py"]) == design.clock_enable


@pytest.mark.parametrize("name", ["enable, stream", "enable, no ready"])
def test_the_cocotb_test_of_a_bundle(name, tmp_path):
    design = VARIANTS[name]
    x = bench_rows(design, 4)
    write_tree(tmp_path, bundle(design, "mine", x, **given_of(design, len(x))))
    code, text = python(tmp_path, "run_mine.py", "icarus")
    assert code == 0, text
    assert "TESTS=2 PASS=2" in text


@pytest.mark.parametrize("changes", [{"store": "stream"}, {"ready": False}])
def test_with_registers(changes, tmp_path):
    design = replace(RMS, control="axilite", **changes)
    x = bench_rows(design, 4)
    write_tree(tmp_path, bundle(design, "mine", x, **given_of(design, len(x))))
    build = "iverilog -g2005 -o tb.vvp mine_tb.v ../rtl/mine.v"
    subprocess.run(build.split(), cwd=tmp_path / "tb", check=True)
    subprocess.run(["vvp", "-N", "tb.vvp"], cwd=tmp_path / "tb", check=True)
    assert ("s_axis_gamma_tdata" in port_bits(design)) == (design.store == "stream")


# -- rules ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", VARIANTS)
def test_design_files_keep_them(name):
    design = VARIANTS[name]
    assert parse(dumps(design)) == design


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"store": "stream", "gamma": None, "gamma_offset": 0.0},
         "store 'stream' needs format.gamma or format.beta, got none"),
        ({"store": "stream", "gamma_init": (0,) * 12},
         "gamma_init must not be given with store 'stream', got contents"),
        ({"store": "stream", "ready": False},
         "store 'stream' needs ready: its streams wait for each other, got false"),
        ({"clock_enable": True, "control": "axilite"},
         "clock_enable needs control 'none': a bus does not stop, got 'axilite'"),
        ({"ready": 0}, "ready must be true or false, got 0"),
        ({"clock_enable": "yes"}, "clock_enable must be true or false, got 'yes'"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(changes, message):
    with refused(message):
        replace(RMS, **changes)


def test_a_design_file_says_true_or_false():
    text = 'norm = "rmsnorm"\ndim = 8\nready = '
    assert not parse(text + "false").ready
    with refused("ready must be true or false, got 1"):
        parse(text + "1")
    with refused("dim must be an integer, got True"):
        parse('norm = "rmsnorm"\ndim = true')


# -- lanes and widths -------------------------------------------------------------------------

#: Lanes up to 64, x and y from 4 to 32 bits; the engine is tried where rows are short.
CORNERS = [
    {"dim": 64, "lanes": 64, "gamma": "s16/14"},
    {"dim": 576, "lanes": 64, "x": "s24/8", "y": "s16/9"},
    {"dim": 64, "lanes": 16, "x": "s4/2", "y": "s4/1"},
    {"dim": 64, "lanes": 16, "x": "s4/0", "y": "s32/20"},
    {"dim": 64, "lanes": 16, "x": "s32/16", "y": "s4/1"},
    {"dim": 64, "lanes": 16, "x": "s32/0", "y": "s32/24", "rsqrt": Rsqrt("quadratic")},
    {"dim": 128, "lanes": 64, "x": "s32/16", "gamma": "s4/2", "y": "s24/12"},
]


@pytest.mark.parametrize("kind", [RMSNorm, LayerNorm])
@pytest.mark.parametrize("fields", CORNERS, ids=str)
def test_corners_of_lanes_and_widths(kind, fields):
    design = kind(**fields)
    x = np.concatenate([corner_rows(design), random_rows(design, 40)])
    given = given_of(design, len(x))
    report = measure(design, x, **given)
    assert report.all.max_ulp <= design.bound_ulp
    rows = 3 if fields["lanes"] > 16 else 6
    some = np.random.default_rng(7).permutation(x)[:rows]
    assert_bit_exact(design, some, **given, stall=0.3)


@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 32, 64])
def test_every_lane_count_gives_the_same_rows(lanes):
    design = RMSNorm(dim=64, lanes=lanes, x="s8/4", gamma="s8/6", y="s8/4")
    x = random_rows(design, 2)
    given = given_of(replace(design, lanes=1), 2)
    result = assert_bit_exact(design, x, **given)
    assert result.cycles == 2 * (64 // lanes) + design.latency
