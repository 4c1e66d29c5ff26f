"""Amaranth's own simulator: nothing to install, every named wire in the waves."""

from contextlib import nullcontext

import numpy as np
from amaranth.hdl import Cat
from amaranth.sim import Simulator

from hwnorm.hdl.engine import RowEngine


def run(design, x, loads, stall, seed, vcd, progress):
    """Simulate; see `hwnorm.sim.simulate`. Returns the members of `SimResult` behind its name."""
    engine = RowEngine(design)
    beats = len(x) * design.beats
    # A cycle that moves nothing is at worst followed by one that does.
    limit = int((beats + engine.latency + 64) * 4 / (1 - stall) ** 2) + 1000
    sent, got, loaded = [], [], []

    async def load(ctx):
        for name, values in loads.items():
            port = getattr(engine, f"i_{name}")
            await _send(ctx, port, _beats(values[None], design.parameters[name], design.lanes))
        loaded.append(True)

    async def source(ctx):
        rng = np.random.default_rng([seed, 0])
        while not loaded:
            await ctx.tick()
        words = _beats(x, design.x, design.lanes)
        await _send(ctx, engine.i, words, stall, rng, sent, lambda: cycle[0])

    cycle = [0]

    async def clock(ctx):
        async for _ in ctx.tick():
            cycle[0] += 1

    async def sink(ctx):
        rng = np.random.default_rng([seed, 1])
        payload = Cat(engine.o.payload.as_value())
        while len(got) < beats:
            take = stall == 0 or rng.random() >= stall
            ctx.set(engine.o.ready, take)
            _, _, valid, word = await ctx.tick().sample(engine.o.valid, payload)
            if valid and take:
                got.append((cycle[0], word))
                if progress and len(got) % design.beats == 0:
                    progress(1)
            if cycle[0] > limit:
                raise TimeoutError(
                    f"the design must give {beats} beats in {limit} cycles, got {len(got)}"
                )
        flags.append((bool(ctx.get(engine.saturated)), bool(ctx.get(engine.framing_error))))

    flags = []
    simulator = Simulator(engine)
    simulator.add_clock(design.period_ns * 1e-9)
    simulator.add_process(clock)
    simulator.add_testbench(load)
    simulator.add_testbench(source)
    simulator.add_testbench(sink)
    with simulator.write_vcd(str(vcd)) if vcd else nullcontext():
        simulator.run()
    y = _elements([word for _, word in got], design, len(x))
    first_in, first_out, last_out = sent[0], got[0][0], got[-1][0]
    return (
        y,
        last_out - first_in + 1,
        first_out - first_in,
        len(got) / (last_out - first_out + 1),
        *flags[0],
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


def _elements(words, design, rows):
    """Payload words as rows of y; a wrong `last` is an error."""
    width, lanes = design.y.width, design.lanes
    flat = []
    for n, word in enumerate(words):
        last = bool(word >> width * lanes)
        if last != ((n + 1) % design.beats == 0):
            raise ValueError(f"last must mark every {design.beats}th beat, got {last} at beat {n}")
        for lane in range(lanes):
            element = word >> lane * width & (1 << width) - 1
            flat.append(element - (element >> width - 1 << width))
    return np.array(flat, dtype=np.int64).reshape(rows, design.dim)


async def _send(ctx, port, words, stall=0.0, rng=None, sent=None, now=None):
    payload = port.payload.as_value()
    for word in words:
        while stall and rng.random() < stall:
            ctx.set(port.valid, 0)
            await ctx.tick()
        ctx.set(payload, word)
        ctx.set(port.valid, 1)
        ready = False
        while not ready:
            _, _, ready = await ctx.tick().sample(port.ready)
        if sent is not None:
            sent.append(now())
    ctx.set(port.valid, 0)
