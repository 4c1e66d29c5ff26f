"""The hardware against the model: every bit, every cycle, every stall, every broken row."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from amaranth.hdl import ResetInserter, Signal
from amaranth.sim import Simulator
from oracles import all_rows, corner_rows, parameters, refused

from hwnorm.hdl import RowEngine
from hwnorm.model import evaluate, model
from hwnorm.norms import LayerNorm, LogTables, RMSNorm, Rsqrt
from hwnorm.sim import simulate

# -- a test bench of its own: one step a clock, everything recorded ---------------------------


@dataclass
class Run:
    """What happened, cycle by cycle."""

    engine: RowEngine
    y: list = field(default_factory=list)  # elements of every beat that was taken
    last: list = field(default_factory=list)
    accepted: list = field(default_factory=list)  # the cycle of every accepted beat
    given: list = field(default_factory=list)  # ... and of every beat that was taken
    ready: list = field(default_factory=list)
    framing_error: list = field(default_factory=list)
    saturated: list = field(default_factory=list)

    def rows(self, design):
        """The outputs as rows; `last` must mark the end of each and nothing else."""
        beats = design.beats
        assert self.last == [n % beats == beats - 1 for n in range(len(self.last))]
        return np.array(self.y, dtype=np.int64).reshape(-1, design.dim)


def beats_of(design, rows, length=None):
    """Rows as (elements, last); `length` in beats breaks the frame of a single row."""
    lanes = design.lanes
    made = []
    for row in rows:
        whole = np.resize(row, (length or design.beats) * lanes).reshape(-1, lanes)
        made += [(beat.tolist(), n == len(whole) - 1) for n, beat in enumerate(whole)]
    return made


def put(ctx, port, beat):
    """A beat, or nothing, on a stream."""
    ctx.set(port.valid, beat is not None)
    if beat is not None:
        for lane, value in enumerate(beat[0]):
            ctx.set(port.payload.data[lane], value)
        ctx.set(port.payload.last, beat[1])


def drive(design, beats, *, offer=None, take=None, clear=(), loads=None, reset=()):
    """Put beats into an engine and watch it.

    offer and take say, for a cycle, whether the source has something and the sink takes
    something; clear and reset are cycles; loads maps the name of a parameter to what is on its
    stream, a dict of cycle to (elements, last).
    """
    engine, rst = RowEngine(design), Signal()
    assert engine.latency == design.latency
    run, y = Run(engine), design.y

    async def bench(ctx):
        at, quiet, cycle, held, holding = 0, 0, 0, None, False
        while quiet < engine.latency + 20:
            # A source keeps what it has offered, as the sink of a stream may rely on.
            holding = at < len(beats) and (holding or offer is None or offer(cycle))
            taking = take is None or take(cycle)
            put(ctx, engine.i, beats[at] if holding else None)
            ctx.set(engine.o.ready, taking)
            ctx.set(engine.clear, cycle in clear)
            ctx.set(rst, cycle in reset)
            for name, words in (loads or {}).items():
                put(ctx, getattr(engine, f"i_{name}"), words.get(cycle))
            lanes = [engine.o.payload.data[n] for n in range(design.lanes)]
            _, _, ready, valid, last, framing_error, saturated, *data = await ctx.tick().sample(
                engine.i.ready,
                engine.o.valid,
                engine.o.payload.last,
                engine.framing_error,
                engine.saturated,
                *lanes,
            )
            assert all(y.lo <= value <= y.hi for value in data), "lanes are words of y"
            if held is not None and cycle - 1 not in reset:
                assert valid, "valid must not be withdrawn"
                assert (data, last) == held, "the payload must be stable"
            held = (data, last) if valid and not taking else None
            if holding and ready:
                run.accepted.append(cycle)
                at, holding = at + 1, False
            if valid and taking:
                run.y += data
                run.last.append(bool(last))
                run.given.append(cycle)
            run.ready.append(bool(ready))
            run.framing_error.append(bool(framing_error))
            run.saturated.append(bool(saturated))
            quiet = 0 if at < len(beats) or valid else quiet + 1
            cycle += 1
            assert cycle < 20000, "the engine hangs"

    simulator = Simulator(ResetInserter(rst)(engine))
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()
    return run


def at_cycle(start, beats):
    return {start + n: beat for n, beat in enumerate(beats)}


def by_chance(p, seed):
    """True in a share p of the cycles, the same ones on every run."""
    draws = np.random.default_rng(seed).random(20000) < p
    return lambda cycle: bool(draws[cycle])


# -- bit for bit ------------------------------------------------------------------------------

DESIGNS = {
    "plain": RMSNorm(dim=6),
    "narrow y": RMSNorm(dim=6, lanes=2, y="s8/6"),
    "wide y": RMSNorm(dim=6, lanes=6, y="s24/10"),
    "gamma": RMSNorm(dim=6, lanes=2, gamma="s16/12"),
    "one beat": RMSNorm(dim=5, lanes=5, gamma="s16/12"),
    "two beats": RMSNorm(dim=6, lanes=3, gamma="u8/7", rounding="nearest_up"),
    "offset": RMSNorm(dim=8, lanes=2, gamma="s10/8", gamma_offset=1.0, rounding="floor"),
    "wrap": RMSNorm(dim=8, lanes=4, y="s6/4", gamma="s8/6", overflow="wrap"),
    "wide x": RMSNorm(dim=6, lanes=2, x="s32/16", y="s20/12", eps=1e-12),
    "short x": RMSNorm(dim=4, lanes=2, x="s4/2", y="s8/5", rsqrt=Rsqrt("linear", 8)),
    "large eps": RMSNorm(dim=4, lanes=2, x="s6/8", eps=4.0),
    "direct": RMSNorm(dim=6, lanes=3, rsqrt=Rsqrt("direct", 64)),
    "quadratic": RMSNorm(dim=6, lanes=3, rsqrt=Rsqrt("quadratic")),
    "log": RMSNorm(dim=6, lanes=2, gamma="s16/12", rsqrt=Rsqrt("log")),
    "log none": RMSNorm(dim=4, lanes=1, rsqrt=Rsqrt("log"), log=LogTables("linear", 16)),
    "log offset": RMSNorm(
        dim=4, lanes=4, gamma="s10/6", gamma_offset=-1.0, y="s10/6", rsqrt=Rsqrt("log")
    ),
    "layer": LayerNorm(dim=6),
    "layer gamma": LayerNorm(dim=6, lanes=2, gamma="s16/12"),
    "layer beta": LayerNorm(dim=6, lanes=3, beta="s12/8", y="s12/8"),
    "layer both": LayerNorm(dim=5, lanes=5, gamma="s16/12", beta="s16/12"),
    "layer wide": LayerNorm(dim=6, lanes=2, x="s24/12", gamma="s12/10", rsqrt=Rsqrt("quadratic")),
}


@pytest.mark.parametrize("stall", [0.0, 0.4])
@pytest.mark.parametrize("name", DESIGNS)
def test_the_hardware_equals_the_model(name, stall):
    design = DESIGNS[name]
    x, given = all_rows(design, seed=1), parameters(design, seed=2)
    result = simulate(design, x, **given, stall=stall, seed=3)
    np.testing.assert_array_equal(result.y, model(design, x, **given))
    assert not result.framing_error
    if not stall:
        assert result.latency_cycles == design.latency
        assert result.cycles == len(x) * design.beats + design.latency
        assert result.beats_per_cycle == 1


@pytest.mark.parametrize("period_ns", [2.0, 5.0, 1e6])
@pytest.mark.parametrize("lanes", [1, 2, 3, 6])
def test_any_lanes_and_clock_budget(lanes, period_ns):
    """From a register behind every op to none at all: the same bits, and the stated latency."""
    fields = {"dim": 6, "lanes": lanes, "gamma": "s12/9", "period_ns": period_ns}
    for design in (LayerNorm(**fields, beta="s12/9"), RMSNorm(**fields, rsqrt=Rsqrt("log"))):
        x, given = all_rows(design, seed=4)[::3], parameters(design, seed=5)
        result = simulate(design, x, **given)
        np.testing.assert_array_equal(result.y, model(design, x, **given))
        assert result.cycles == len(x) * design.beats + design.latency
        assert result.latency_cycles == design.latency


@pytest.mark.parametrize(("dim", "lanes"), [(4, 4), (4, 2), (8, 2), (6, 1)])
def test_a_hundred_short_rows_at_full_rate(dim, lanes):
    """Rows far shorter than the latency of solve: many are in flight, and no cycle is lost."""
    design = RMSNorm(dim=dim, lanes=lanes, gamma="s12/9")
    x = np.resize(all_rows(design, seed=6), (100, dim))
    result = simulate(design, x)
    assert design.latency > 2 * design.beats
    np.testing.assert_array_equal(result.y, model(design, x))
    assert result.cycles == 100 * design.beats + design.latency


@pytest.mark.parametrize("stall", [0.1, 0.5, 0.85])
@pytest.mark.parametrize("name", ["one beat", "two beats", "layer both", "offset"])
def test_random_stalls_on_either_side_or_both(name, stall):
    design = DESIGNS[name]
    x = all_rows(design, seed=7)
    beats = beats_of(design, x)
    for offer, take in (
        (by_chance(1 - stall, 1), None),
        (None, by_chance(1 - stall, 2)),
        (by_chance(1 - stall, 3), by_chance(1 - stall, 4)),
    ):
        run = drive(design, beats, offer=offer, take=take)
        np.testing.assert_array_equal(run.rows(design), model(design, x))
        assert not any(run.framing_error)


@pytest.mark.parametrize("name", ["one beat", "gamma", "layer both"])
def test_a_long_stall_fills_everything_and_loses_nothing(name):
    design = DESIGNS[name]
    x = np.resize(all_rows(design, seed=8), (80, design.dim))
    run = drive(design, beats_of(design, x), take=lambda cycle: cycle >= 300)
    np.testing.assert_array_equal(run.rows(design), model(design, x))
    # The source was stopped, after the row buffer and the output FIFO were full ...
    assert not run.ready[299]
    before = sum(cycle < 300 for cycle in run.accepted)
    assert before == run.engine.ring_beats + run.engine.output_beats
    # ... and from then on a beat a clock came out.
    assert run.given == list(range(300, 300 + 80 * design.beats))


# -- parameters -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [RMSNorm, LayerNorm])
def test_every_way_to_have_parameters(kind):
    """Loaded, initial, in ROM, or none: one result wherever the numbers are the same."""
    names = ("gamma", "beta") if kind is LayerNorm else ("gamma",)
    formats = dict.fromkeys(names, "s12/8")
    rng = np.random.default_rng(9)
    values = {name: rng.integers(-2048, 2048, 6) for name in names}
    contents = {f"{name}_init": tuple(int(v) for v in value) for name, value in values.items()}
    fields = {"dim": 6, "lanes": 2, "gamma_offset": 0.5}
    loaded = kind(**fields, **formats)
    x = all_rows(loaded, seed=10)[::2]
    want = model(loaded, x, **values)
    np.testing.assert_array_equal(simulate(loaded, x, **values, stall=0.3).y, want)
    initial = kind(**fields, **formats, **contents)
    np.testing.assert_array_equal(simulate(initial, x).y, want)
    fixed = kind(**fields, **formats, **contents, store="rom")
    ports = drive(fixed, beats_of(fixed, x[:1])).engine.signature.members
    assert not any(name.startswith("i_") for name in ports)
    np.testing.assert_array_equal(simulate(fixed, x).y, want)
    with refused(f"{', '.join(names)} must not be given: the design stores in ROM"):
        simulate(fixed, x, **values)
    # Not loaded: gamma + offset is 1 and beta 0, as if there were none.
    plain = kind(dim=6, lanes=2)
    difference = simulate(loaded, x).y - simulate(plain, x).y
    assert np.abs(difference).max() <= 1


def test_new_parameters_between_rows():
    design = DESIGNS["layer both"]
    x = all_rows(design, seed=11)[::4]
    first, second = parameters(design, seed=12), parameters(design, seed=13)
    loads = {
        name: at_cycle(0, beats_of(design, [first[name]]))
        | at_cycle(100, beats_of(design, [second[name]]))
        for name in first
    }
    run = drive(
        design,
        beats_of(design, np.concatenate([x, x])),
        offer=lambda cycle: 10 <= cycle < 20 or cycle >= 110,
        loads=loads,
    )
    want = np.concatenate([model(design, x, **first), model(design, x, **second)])
    np.testing.assert_array_equal(run.rows(design), want)


@pytest.mark.parametrize("beats", [1, 3, 5, 9])
def test_a_parameter_row_of_another_length(beats):
    """It is flagged, what follows it is not stored, and the next row is right again."""
    design = DESIGNS["offset"]
    x = all_rows(design, seed=14)[::5]
    wrong, right = parameters(design, seed=15)["gamma"], parameters(design, 16)["gamma"]
    # What is too much differs from all that should be stored.
    first = beats_of(design, [np.concatenate([wrong, right, right])], beats)
    loads = at_cycle(0, first) | at_cycle(20, beats_of(design, [right]))

    def late(cycle):
        return cycle > 30

    run = drive(design, beats_of(design, x), offer=late, loads={"gamma": loads})
    np.testing.assert_array_equal(run.rows(design), model(design, x, right))
    # The frame is lost where `last` is early, or where it should have been.
    assert run.framing_error.index(True) == min(beats, design.beats)
    assert all(run.framing_error[min(beats, design.beats) :])
    # A row that ends too early is stored up to there, one that ends too late in full.
    run = drive(design, beats_of(design, x), offer=late, loads={"gamma": at_cycle(0, first)})
    kept = np.array(design.initial("gamma"))
    kept[: beats * 2] = wrong[: beats * 2]
    np.testing.assert_array_equal(run.rows(design), model(design, x, kept))


# -- broken rows ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gamma", "two beats", "one beat", "layer"])
def test_broken_rows_are_dropped_whole(name):
    """`last` too early, or too late by any number of beats: the rows around it are right."""
    design = DESIGNS[name]
    x, whole = all_rows(design, seed=17)[::3], design.beats
    for length in sorted({1, whole - 1, whole + 1, 2 * whole, 3 * whole + 1} - {0, whole}):
        broken = beats_of(design, [x[0][::-1]], length)
        run = drive(design, [beat for row in x for beat in beats_of(design, [row]) + broken])
        np.testing.assert_array_equal(run.rows(design), model(design, x))
        # Sticky from the beat on at which the frame was lost.
        seen = run.accepted[whole + min(length, whole) - 1] + 1
        assert run.framing_error.index(True) == seen
        assert all(run.framing_error[seen:])
        # What is dropped leaves the row buffer as it was, or the source would be stopped.
        assert all(run.ready)
    assert not any(drive(design, beats_of(design, x)).framing_error)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["gamma", "two beats", "one beat"])
def test_random_broken_rows_and_stalls(name, seed):
    design = DESIGNS[name]
    rng = np.random.default_rng(seed)
    x = all_rows(design, seed=18)
    beats, good = [], []
    for row in np.resize(x, (60, design.dim)):
        length = int(rng.integers(1, 2 * design.beats + 3)) if rng.random() < 0.4 else None
        if length in (None, design.beats):
            good.append(row)
        beats += beats_of(design, [row], length)
    offer, take = by_chance(0.7, [seed, 1]), by_chance(0.5 + 0.4 * (seed % 2), [seed, 2])
    run = drive(design, beats, offer=offer, take=take)
    assert 20 < len(good) < 60
    np.testing.assert_array_equal(run.rows(design), model(design, np.array(good)))


def test_clear_and_an_event_in_the_same_cycle():
    """A clear takes the flags away, but not what happens in its own cycle."""
    design = RMSNorm(dim=4, lanes=2, y="s4/3", eps=1e-3)
    # Eps keeps the first row small; the second would be 1.0, of which 0.875 is left.
    calm, loud = [2, 0, 0, 0], [1000] * 4
    assert model(design, [calm, loud]).tolist() == [[2, 0, 0, 0], [7, 7, 7, 7]]
    beats = beats_of(design, [calm]) + beats_of(design, [loud], 1) + beats_of(design, [loud])
    beats += beats_of(design, [calm] * 8)
    plain = drive(design, beats)
    for flag in ("framing_error", "saturated"):
        raised = getattr(plain, flag).index(True)
        assert all(getattr(plain, flag)[raised:])
        # The limited row has two beats, the broken one a single event.
        events = 2 if flag == "saturated" else 1
        for clear in range(raised - 2, raised + 4):
            seen = getattr(drive(design, beats, clear={clear}), flag)
            assert seen.index(True) == raised
            assert seen[clear + 1] == (raised - 1 <= clear < raised - 1 + events)
            assert any(seen[raised + 4 :]) == (clear < raised - 1 + events)
            # Cleared once and for all, or never.
            assert len(set(seen[raised + 4 :])) == 1


@pytest.mark.parametrize("name", ["narrow y", "layer both", "wrap", "plain"])
def test_the_flag_tells_whether_an_output_was_limited(name):
    design = DESIGNS[name]
    given = parameters(design, seed=19)
    for row in corner_rows(design.x, design.dim)[::3]:
        limited = evaluate(design, row[None], **given).saturated > 0
        assert simulate(design, row[None], **given).saturated == limited


@pytest.mark.parametrize("stall", [0.0, 0.5])
def test_the_flag_sees_outputs_only(stall):
    """Between rows the pipeline multiplies one row's elements by another row's scale."""
    design = RMSNorm(dim=6, lanes=2, y="s8/6")
    x = np.outer(np.resize([1, 12346, -3, -20004, 100, 3], 60), np.ones(6, dtype=np.int64))
    result = simulate(design, x, stall=stall)
    assert np.abs(result.y).max() == 64
    assert not result.saturated


def test_reset_in_the_middle_of_everything():
    """Rows in flight are gone, an open one too; the next row is as after power-up."""
    design = RMSNorm(dim=6, lanes=2, y="s8/6")
    x = np.resize(all_rows(design, seed=20), (30, 6))
    beats = beats_of(design, x)
    for at in (31, 32, 33):
        run = drive(
            design,
            beats[:at] + beats,
            offer=lambda cycle, at=at: cycle < at or cycle > at,
            reset={at},
        )
        made = len(run.given) - len(beats)
        assert run.given[made] > at
        after = Run(run.engine, run.y[made * 2 :], run.last[made:])
        np.testing.assert_array_equal(after.rows(design), model(design, x))
        assert not any(run.framing_error)


def test_the_exact_method_has_no_hardware():
    with refused("rsqrt.method exact is a model only, it has no hardware"):
        RowEngine(RMSNorm(dim=4, rsqrt=Rsqrt("exact")))
