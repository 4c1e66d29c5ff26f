"""The streaming shell, for `mutate.py`: what is broken, and a short test bench of every rule."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from amaranth.sim import Simulator

import hwnorm
from hwnorm.fixed import Fixed
from hwnorm.flow import trace
from hwnorm.hdl import RowEngine
from hwnorm.hdl.reduce import Reducer
from hwnorm.hdl.store import ParameterStore, Ring
from hwnorm.model import evaluate
from hwnorm.ops import maximum

#: Cycles after which a phase of the test bench has stopped for good.
PATIENCE = 250
#: Cycles behind the last expected beat in which nothing more may come.
QUIET = 30

#: Owner, method, text, and what it is changed into: each must be noticed by a check below.
MUTATIONS = (
    (RowEngine, "_take", "count == 0,", "count == 1,"),
    (RowEngine, "_take", "room | skip", "1"),
    (RowEngine, "_take", "(skip | wrong) & ~last", "wrong & ~last"),
    (RowEngine, "_take", "(skip | wrong) & ~last", "0"),
    (RowEngine, "_take", "ring.drop.eq(misframed)", "ring.drop.eq(0)"),
    (RowEngine, "_take", "ring.commit.eq(take & final & ~wrong)", "ring.commit.eq(take & final)"),
    (RowEngine, "_take", "Mux(final | wrong, 0, count + 1)", "Mux(final, 0, count + 1)"),
    (RowEngine, "_take", "take & wrong", "take & (end & ~last)"),
    (RowEngine, "_sum_and_solve", "self.sum_cycles,", "self.sum_cycles - 1,"),
    (RowEngine, "_sum_and_solve", "1 + accumulator_lag", "accumulator_lag"),
    (RowEngine, "_sum_and_solve", "1 + accumulator_lag", "2 + accumulator_lag"),
    (RowEngine, "_give", "queued & ~broke", "queued"),
    (RowEngine, "_account", "issue & (credit == 1)", "issue & (credit == 2)"),
    (RowEngine, "_account", "Mux(issue, credit - 1, credit + 1)", "Mux(issue, credit, credit + 1)"),
    (RowEngine, "_account", "self.o.valid & self.o.ready", "self.o.ready"),
    (RowEngine, "_account", "self.o.valid & self.o.ready", "issue & ~issue"),
    (RowEngine, "_give", "pop.eq(issue & end)", "pop.eq(end)"),
    (RowEngine, "_give", "Cat(issue, end)", "Cat(issue, count == 0)"),
    (RowEngine, "_give", "READ_CYCLES + self.apply.latency", "1 + self.apply.latency"),
    (RowEngine, "_give", "scalars, READ_CYCLES,", "scalars, 1,"),
    (RowEngine, "_give", "store.beat.eq(count)", "store.beat.eq(0)"),
    (RowEngine, "_give", "valid & Cat(*limits).any()", "valid & Cat(*limits).all()"),
    (RowEngine, "_keep", "(flag & ~self.clear) | event", "event"),
    (RowEngine, "_keep", "(flag & ~self.clear) | event", "flag | event"),
    (RowEngine, "_account", "init=self.output_beats", "init=self.output_beats - 1"),
    (RowEngine, "_sum_and_solve", ".least_beats + 1", ".least_beats - 2"),
    (RowEngine, "ring_beats", "- READ_CYCLES", "- READ_CYCLES - 1"),
    (RowEngine, "output_beats", "READ_CYCLES + 2", "READ_CYCLES + 1"),
    (Ring, "elaborate", "used == self.depth - 1", "used == self.depth - 2"),
    (Ring, "elaborate", "(head != tail) | full", "0"),
    (Ring, "elaborate", "head.eq(base)", "head.eq(head_next)"),
    (Ring, "elaborate", "base.eq(head_next)", "base.eq(head)"),
    (Ring, "elaborate", "used - pending - self.read", "used - self.read"),
    (Ring, "elaborate", "used - pending - self.read", "used - pending"),
    (Ring, "elaborate", "Mux(self.read, used, used + 1)", "used + 1"),
    (Ring, "elaborate", "Mux(self.read, used - 1, used)", "used"),
    (Ring, "elaborate", "pointer == self.depth - 1", "pointer == self.depth - 2"),
    (ParameterStore, "_load", "self.i.valid & ~skip", "self.i.valid"),
    (ParameterStore, "_load", "range(self.loader.latency)", "range(0)"),
    (ParameterStore, "_load", "beat.eq(beat + 1)", "beat.eq(beat)"),
    (ParameterStore, "_load", "end | self.i.payload.last", "end"),
    (ParameterStore, "_load", "end != self.i.payload.last", "0"),
    (ParameterStore, "elaborate", "init=self.words", "init=[]"),
    (Reducer, "elaborate", "Mux(self.first, term,", "Mux(Signal(), term,"),
    (Reducer, "elaborate", "m.If(self.accept)", "m.If(1)"),
    (Reducer, "elaborate", "Max if self.maximum else Add", "Add"),
    (Reducer, "elaborate", "term, self.extra,", "term, self.extra - 1,"),
    (Reducer, "elaborate", "term, self.extra,", "term, self.extra + 1,"),
    (Reducer, "elaborate", "total, self.lag,", "total, self.lag + 1,"),
    (Reducer, "_add_in_pieces", "carry = over", "carry = 0"),
    (Reducer, "_add_in_pieces", "Mux(first, 0, part)", "part"),
)  # fmt: skip


@dataclass(frozen=True)
class Phase:
    """Beats that go in, beats that must come out, and the flags behind them."""

    name: str
    beats: list = ()
    gamma_beats: list = ()
    wanted: list = ()
    gap: float = 0.0
    stall: float = 0.0
    hold: int = 0
    quiet: int = QUIET
    saturated: bool = False
    framing_error: bool = False


def frame(*rows):
    """Rows as beats: four elements, and whether they are the last of a row."""
    beats = []
    for row in rows:
        words = row.reshape(-1, 4).tolist()
        beats += [(word, n == len(words) - 1) for n, word in enumerate(words)]
    return beats


@cache
def design():
    """Four beats a row; gamma is stored with an offset, and large outputs saturate."""
    gamma = tuple(int(v) for v in np.random.default_rng(7).integers(-32, 32, 16))
    return hwnorm.RMSNorm(
        dim=16, lanes=4, x="s8/4", y="s6/4", gamma="s6/6", gamma_offset=1.0, gamma_init=gamma
    )


@cache
def scenario():
    """The phases; what must come out is the model's, computed before anything is changed."""
    rng = np.random.default_rng(3)
    level = rng.choice([-20, 20], (6, 16))  # |y| is gamma: nothing saturates
    gamma, late, early = rng.integers(-32, 32, (3, 16))

    def rows(count):
        """Rows of which every third one saturates."""
        drawn = rng.integers(-128, 128, (count, 16))
        drawn[::3] = np.eye(16, dtype=int)[rng.integers(16, size=len(drawn[::3]))] * 100
        return drawn

    def phase(name, rows, gamma=None, **rest):
        """Rows, of which those of four beats must come out."""
        whole = np.array([row for row in rows if len(row) == 16])
        wanted = evaluate(design(), whole, gamma)
        flags = {"saturated": wanted.saturated > 0, "framing_error": len(whole) < len(rows)}
        return Phase(name, frame(*rows), wanted=frame(*wanted.y), **flags, **rest)

    def cut(*beats):
        return [np.resize(row, 4 * n) for row, n in zip(rows(len(beats)), beats, strict=True)]

    def load(name, *values):
        wrong = any(len(v) != 16 for v in values)
        return Phase(name, gamma_beats=frame(*values), framing_error=wrong)

    # Idle for different times, so that a miscounted credit cannot come round by chance.
    held = [phase(f"held {n}", rows(3), hold=36, quiet=QUIET + n) for n in (1, 4, 8, 9)]
    return [
        phase("full rate", level),
        phase("full ring", rows(12), hold=90),
        *held,
        # Eight beats could be taken for two rows, or the last four of them for one.
        phase(
            "broken rows", cut(1, 4, 6, 2, 4, 4, 9, 3, 4, 8, 4, 4, 5, 4, 2, 4), gap=0.3, stall=0.2
        ),
        phase("broken at full rate", cut(4, 1, 4, 2, 4, 3, 4, 4, 2, 1, 1, 4, 3, 2, 4, 4)),
        phase("full rate behind it", level),
        # What comes beyond a row's end is not stored; of a short row, what came is.
        load("late gamma", np.concatenate([late, early])),
        phase("rows behind it", level, late),
        load("early gamma", early[:8]),
        phase("rows behind that", level, np.concatenate([early[:8], late[8:]])),
        load("gamma", gamma),
        phase("stalls", rows(12), gamma, gap=0.4, stall=0.5, hold=65),
    ]


async def play(ctx, dut, phase, rng):
    """One phase; returns the cycles in which beats went in and came out."""
    ports = [(dut.i, list(phase.beats)), (dut.i_gamma, list(phase.gamma_beats))]
    taps = [dut.i.ready, dut.i_gamma.ready, dut.o.valid, dut.o.payload]
    sent, came, got, quiet, cycle = [], [], [], 0, 0
    while quiet < phase.quiet:
        for port, beats in ports:
            # What is offered stays until it is taken.
            valid = bool(beats) and (ctx.get(port.valid) or rng.random() >= phase.gap)
            ctx.set(port.valid, valid)
            if valid:
                ctx.set(port.payload, {"data": beats[0][0], "last": beats[0][1]})
        ready = cycle >= phase.hold and rng.random() >= phase.stall
        ctx.set(dut.o.ready, ready)
        _, _, *accepted, valid, payload = await ctx.tick().sample(*taps)
        for (port, beats), taken in zip(ports, accepted, strict=True):
            if ctx.get(port.valid) and taken:
                beats.pop(0)
                ctx.set(port.valid, 0)
                sent.append(cycle)
        if valid and ready:
            got.append((list(payload.data), bool(payload.last)))
            came.append(cycle)
        cycle += 1
        done = len(got) >= len(phase.wanted) and not any(beats for _, beats in ports)
        quiet += done
        assert cycle < PATIENCE, f"{phase.name}: {len(got)} of {len(phase.wanted)} beats came"
    assert got == list(phase.wanted), f"{phase.name}: other beats came than the model's"
    return sent, came


def check_engine():
    """Rate, latency, order and data, framing, flags: under full rate, stalls and broken rows."""
    phases, dut = scenario(), RowEngine(design())

    async def bench(ctx):
        rng = np.random.default_rng(11)
        for phase in phases:
            sent, came = await play(ctx, dut, phase, rng)
            if came and not (phase.framing_error or phase.gap or phase.stall or phase.hold):
                assert came[0] - sent[0] == dut.latency == design().latency, (
                    f"{phase.name}: latency"
                )
                assert came[-1] - came[0] == len(came) - 1, f"{phase.name}: a bubble"
            flags = bool(ctx.get(dut.saturated)), bool(ctx.get(dut.framing_error))
            assert flags == (phase.saturated, phase.framing_error), f"{phase.name}: flags {flags}"
            ctx.set(dut.clear, 1)
            await ctx.tick()
            ctx.set(dut.clear, 0)
            assert not ctx.get(dut.saturated) | ctx.get(dut.framing_error), "flags stay"

    _simulate(dut, bench)


def check_reducer():
    """Sums and maxima of rows of one to five beats, with gaps, beside a slower tree."""
    fmt, total = Fixed(-8, 7), Fixed(-200, 200)
    for maximum_wanted in (False, True):
        flow = trace(
            lambda lane0, lane1, top=maximum_wanted: {
                "total": maximum(lane0, lane1) if top else lane0 + lane1
            },
            lane0=fmt,
            lane1=fmt,
        )
        dut = Reducer(flow, total, maximum_wanted, 8, flow.schedule(8).latency + 2)
        _check_totals(dut, max if maximum_wanted else sum)
        if not maximum_wanted:
            cycles = flow.schedule(8).latency
            _check_totals(Reducer(flow, total, False, 8, cycles, pieces=3, lag=3), sum)


def _check_totals(dut, reduced):
    rng = np.random.default_rng(4)
    delay = dut.tree.latency + dut.extra + dut.lag

    async def bench(ctx):
        marks, row, wanted = [(0, 0)] * (delay - dut.lag), [], []
        for length in (1, 3, 5, 1, 1, 2, 4):
            for n in range(length):
                for gap in reversed(range(int(rng.integers(1, 4)))):
                    terms = rng.integers(-8, 8, 2).tolist()
                    ctx.set(dut.lane0, terms[0])
                    ctx.set(dut.lane1, terms[1])
                    # The marks of a beat come when its terms are through the tree.
                    marks.append((gap == 0, gap == 0 and n == 0))
                    accept, first = marks.pop(0)
                    ctx.set(dut.accept, accept)
                    ctx.set(dut.first, first)
                    if gap == 0:
                        row = [*row, *terms] if n else terms
                    wanted.append(reduced(row) if row else 0)
                    await ctx.tick()
                    if len(wanted) > delay:
                        assert ctx.get(dut.total) == wanted[-1 - delay], "total of a row"

    _simulate(dut, bench)


def _simulate(dut, bench):
    simulator = Simulator(dut)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()
