"""Amaranth's own simulator: nothing to install, every named wire in the waves."""

from contextlib import nullcontext

import numpy as np
from amaranth.sim import Simulator

from hwnorm.hdl.engine import RowEngine
from hwnorm.sim.stalls import PERIOD_CYCLES


def missing():
    """What this engine lacks here: nothing."""
    return None


def run(design, x, loads, stalls, limit, vcd, progress):
    """Simulate; see `hwnorm.sim.base.Engine`."""
    engine = RowEngine(design)
    beats = len(x) * design.beats
    words = _beats(x, design.x, design.lanes)
    sent, got, flags = [], [], []

    async def bench(ctx):
        for name, values in loads.items():
            port = getattr(engine, f"i_{name}")
            for word in _beats(values[None], design.parameters[name], design.lanes):
                ctx.set(port.payload.as_value(), word)
                ctx.set(port.valid, 1)
                await ctx.tick()
            ctx.set(port.valid, 0)
        data_in, data_out = engine.i.payload.as_value(), engine.o.payload.as_value()
        cycle = offered = 0
        while len(got) < beats:
            if offered == len(sent) and offered < beats and stalls.source[cycle % PERIOD_CYCLES]:
                ctx.set(data_in, words[offered])
                offered += 1
            take = bool(stalls.sink[cycle % PERIOD_CYCLES])
            ctx.set(engine.i.valid, offered > len(sent))
            ctx.set(engine.o.ready, take)
            _, _, ready, valid, word = await ctx.tick().sample(
                engine.i.ready, engine.o.valid, data_out
            )
            if ready and offered > len(sent):
                sent.append(cycle)
            if valid and take:
                got.append((cycle, word))
                if progress and len(got) % design.beats == 0:
                    progress(1)
            cycle += 1
            if cycle > limit:
                raise TimeoutError(
                    f"the design must give {beats} beats in {limit} cycles, got {len(got)}"
                )
        flags.append((bool(ctx.get(engine.saturated)), bool(ctx.get(engine.framing_error))))

    simulator = Simulator(engine)
    simulator.add_clock(design.period_ns * 1e-9)
    simulator.add_testbench(bench)
    with simulator.write_vcd(str(vcd)) if vcd else nullcontext():
        simulator.run()
    y = _elements([word for _, word in got], design, len(x))
    return y, (sent[0], got[0][0], got[-1][0]), *flags[0]


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
