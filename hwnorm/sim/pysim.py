"""Amaranth's own simulator: nothing to install, every named wire in the waves."""

from collections import deque
from contextlib import nullcontext

import numpy as np
from amaranth.hdl import EnableInserter, Signal
from amaranth.lib.wiring import In
from amaranth.sim import Simulator

from hwnorm.sim.beats import input_formats
from hwnorm.sim.job import Outcome, changed, hangs, too_many, withdrawn, wrong_last
from hwnorm.sim.stalls import PERIOD_CYCLES

#: Waves it can write.
WAVES = (".vcd",)


def missing():
    """What this engine lacks here: nothing."""
    return None


def run(job):
    """Simulate; see `hwnorm.sim.base.ENGINES`."""
    if job.dut.files:
        raise ValueError("engine pysim takes no Verilog; verilator and icarus do")
    core, outcome = job.dut.core, []
    whole, pause = core, _no_pause
    if job.dut.design.clock_enable:
        enable = Signal(init=1)
        whole, pause = EnableInserter(enable)(core), _pauses(job, core, enable)

    async def bench(ctx):
        design = job.dut.design
        for name, values in job.loads.items():
            port = getattr(core, f"i_{name}")
            for word in _beats(values[None], design.parameters[name], design.lanes):
                await pause(ctx)
                ctx.set(port.payload.as_value(), word)
                ctx.set(port.valid, 1)
                await ctx.tick()
            ctx.set(port.valid, 0)
        sink = _Sink(job)
        await _stream(ctx, job, core, sink, pause)
        flags = (bool(ctx.get(core.saturated)), bool(ctx.get(core.framing_error)))
        outcome.append(sink.outcome(*flags))

    simulator = Simulator(whole)
    simulator.add_clock(job.dut.design.period_ns * 1e-9)
    simulator.add_testbench(bench)
    with simulator.write_vcd(str(job.waves)) if job.waves else nullcontext():
        simulator.run()
    return outcome[0]


async def _stream(ctx, job, core, sink, pause):
    """Feed all rows and take all beats, then watch some cycles for more."""
    source, stalls = _words(job), job.stalls
    ports = [core.i, *(getattr(core, f"i_{name}") for name in job.dut.design.streamed)]
    payloads, data_out = [port.payload.as_value() for port in ports], core.o.payload.as_value()
    may_offer = [stalls.shifted(n) for n in range(len(ports))]
    beat, fetched, after, more = None, 0, 0, True
    started, taken = [False] * len(ports), [False] * len(ports)
    while after < 32:
        await pause(ctx)
        phase = sink.cycle % PERIOD_CYCLES
        for n in range(len(ports)):
            if more and not started[n] and may_offer[n][phase]:
                if beat is None:
                    beat = next(source, None)
                    more = beat is not None
                    fetched += more
                    if more:
                        sink.expect(bool(beat[0] >> len(payloads[0]) - 1))
                started[n] = more
        # What is taken of a beat waits for the rest of it, as a source in step does.
        offers = [s and not t for s, t in zip(started, taken, strict=True)]
        for port, payload, offer, word in zip(ports, payloads, offers, beat or ports, strict=True):
            ctx.set(port.valid, offer)
            if offer:
                ctx.set(payload, word)
        take = bool(stalls.sink[phase])
        if job.dut.design.ready:
            ctx.set(core.o.ready, take)
        readies = [port.ready for port in ports]
        _, _, valid, word, *readies = await ctx.tick().sample(core.o.valid, data_out, *readies)
        taken = [t or (o and bool(r)) for t, o, r in zip(taken, offers, readies, strict=True)]
        whole = all(taken)
        sink.step((offers[0], bool(readies[0]), bool(valid), take), whole, word)
        if whole:
            beat, started, taken = None, [False] * len(ports), [False] * len(ports)
        if not more and sink.beats_out == fetched:
            after += 1
        elif sink.beats_out < fetched:
            limit = job.limit(fetched)
            if sink.cycle > limit:
                raise hangs(limit, sink.beats_in, sink.beats_out)


def _pauses(job, core, enable):
    """What lets edges pass while the clock is not enabled, with junk on all inputs."""
    allowed, edge = job.stalls.shifted(-1), 0
    members = core.signature.members.items()
    ports = [getattr(core, n) for n, m in members if m.flow is In and not m.is_port]

    async def pause(ctx):
        nonlocal edge
        while not allowed[edge % PERIOD_CYCLES]:
            ctx.set(enable, 0)
            for port in ports:
                ctx.set(port.valid, 1)
                ctx.set(port.payload.as_value(), edge * 0x5A5A5A5)
            ctx.set(core.clear, 1)
            await ctx.tick()
            edge += 1
        edge += 1
        ctx.set(enable, 1)
        ctx.set(core.clear, 0)
        for port in ports:
            ctx.set(port.valid, 0)

    return pause


async def _no_pause(ctx):
    pass


def _words(job):
    """The payloads in, one by one, each with those that come along with it."""
    design = job.dut.design
    formats = input_formats(design)
    for parts in job.blocks:
        for rows in zip(*parts, strict=True):
            words = (
                _beats(row[None], fmt, design.lanes) for row, fmt in zip(rows, formats, strict=True)
            )
            yield from zip(*words, strict=True)


class _Sink:
    """Checks the stream rules and puts rows together."""

    def __init__(self, job):
        self._job, self._design = job, job.dut.design
        self._held, self._row, self._handshakes = None, [], []
        self._lasts = deque()
        self._first_in = self._first_out = self._last_out = 0
        self.cycle = self.beats_in = self.beats_out = 0

    def expect(self, last):
        """A beat is on its way in; whether it is a row's last."""
        self._lasts.append(last)

    def step(self, handshakes, taken, word):
        """What was on the handshakes in a cycle, and whether a beat in is taken as a whole."""
        *_, valid, take = handshakes
        if self.cycle < self._job.trace_cycles:
            self._handshakes.append(handshakes)
        if self._held is not None and not valid:
            raise withdrawn(self.cycle)
        if self._held is not None and word != self._held:
            raise changed(self.cycle)
        self._held = word if valid and not take else None
        if valid and take:
            if self.beats_out == self.beats_in:
                raise too_many(self.cycle)
            self._take(word)
        if taken:
            if not self.beats_in:
                self._first_in = self.cycle
            self.beats_in += 1
        self.cycle += 1

    def _take(self, word):
        width, lanes, last = self._design.y.width, self._design.lanes, self._lasts.popleft()
        if not self.beats_out:
            self._first_out = self.cycle
        self._last_out = self.cycle
        self.beats_out += 1
        if bool(word >> width * lanes) != last:
            raise wrong_last(self._design, self.beats_out - 1)
        for lane in range(lanes):
            element = word >> lane * width & (1 << width) - 1
            self._row.append(element - (element >> width - 1 << width))
        if last:
            self._job.give(np.array([self._row], dtype=np.int64))
            self._row = []

    def outcome(self, saturated, framing_error):
        handshakes = np.array(self._handshakes, dtype=bool).reshape(-1, 4)
        return Outcome(
            self._first_in, self._first_out, self._last_out, saturated, framing_error, handshakes
        )


def _beats(rows, fmt, lanes):
    """Rows as payload words: lanes from the lowest bits up, `last` on top."""
    width = fmt.width
    words = []
    for row in rows:
        masked = [int(v) & (1 << width) - 1 for v in row]
        for start in range(0, len(masked), lanes):
            word = 0
            for lane in reversed(range(lanes)):
                word = word << width | masked[start + lane]
            words.append(word | (start + lanes == len(masked)) << width * lanes)
    return words
