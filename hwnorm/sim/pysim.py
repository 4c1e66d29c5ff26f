"""Amaranth's own simulator: nothing to install, every named wire in the waves."""

from contextlib import nullcontext

import numpy as np
from amaranth.sim import Simulator

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

    async def bench(ctx):
        design = job.dut.design
        for name, values in job.loads.items():
            port = getattr(core, f"i_{name}")
            for word in _beats(values[None], design.parameters[name], design.lanes):
                ctx.set(port.payload.as_value(), word)
                ctx.set(port.valid, 1)
                await ctx.tick()
            ctx.set(port.valid, 0)
        sink = _Sink(job)
        await _stream(ctx, job, core, sink)
        flags = (bool(ctx.get(core.saturated)), bool(ctx.get(core.framing_error)))
        outcome.append(sink.outcome(*flags))

    simulator = Simulator(core)
    simulator.add_clock(job.dut.design.period_ns * 1e-9)
    simulator.add_testbench(bench)
    with simulator.write_vcd(str(job.waves)) if job.waves else nullcontext():
        simulator.run()
    return outcome[0]


async def _stream(ctx, job, core, sink):
    """Feed all rows and take all beats, then watch some cycles for more."""
    source, stalls = _words(job), job.stalls
    data_in, data_out = core.i.payload.as_value(), core.o.payload.as_value()
    offered = after = 0
    more = True
    while after < 32:
        phase = sink.cycle % PERIOD_CYCLES
        if more and offered == sink.beats_in and stalls.source[phase]:
            word = next(source, None)
            more = word is not None
            if more:
                ctx.set(data_in, word)
                offered += 1
        offer, take = offered > sink.beats_in, bool(stalls.sink[phase])
        ctx.set(core.i.valid, offer)
        ctx.set(core.o.ready, take)
        _, _, ready, valid, word = await ctx.tick().sample(core.i.ready, core.o.valid, data_out)
        sink.step(offer, bool(ready), bool(valid), take, word)
        if not more and sink.beats_out == offered:
            after += 1
        elif sink.beats_out < offered:
            limit = job.limit(offered)
            if sink.cycle > limit:
                raise hangs(limit, sink.beats_in, sink.beats_out)


def _words(job):
    """The payloads in, one by one."""
    design = job.dut.design
    for block in job.blocks:
        for row in block:
            yield from _beats(row[None], design.x, design.lanes)


class _Sink:
    """Checks the stream rules and puts rows together."""

    def __init__(self, job):
        self._job, self._design = job, job.dut.design
        self._held, self._row, self._handshakes = None, [], []
        self._first_in = self._first_out = self._last_out = 0
        self.cycle = self.beats_in = self.beats_out = 0

    def step(self, offer, ready, valid, take, word):
        """What was on the handshakes in a cycle."""
        if self.cycle < self._job.trace_cycles:
            self._handshakes.append((offer, ready, valid, take))
        if self._held is not None and not valid:
            raise withdrawn(self.cycle)
        if self._held is not None and word != self._held:
            raise changed(self.cycle)
        self._held = word if valid and not take else None
        if valid and take:
            if self.beats_out == self.beats_in:
                raise too_many(self.cycle)
            self._take(word)
        if offer and ready:
            if not self.beats_in:
                self._first_in = self.cycle
            self.beats_in += 1
        self.cycle += 1

    def _take(self, word):
        width, lanes, beats = self._design.y.width, self._design.lanes, self._design.beats
        if not self.beats_out:
            self._first_out = self.cycle
        self._last_out = self.cycle
        self.beats_out += 1
        if bool(word >> width * lanes) != (self.beats_out % beats == 0):
            raise wrong_last(self._design, self.beats_out - 1)
        for lane in range(lanes):
            element = word >> lane * width & (1 << width) - 1
            self._row.append(element - (element >> width - 1 << width))
        if self.beats_out % beats == 0:
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
