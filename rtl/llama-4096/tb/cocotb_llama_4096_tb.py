"""cocotb test of llama_4096: feeds stim.mem, compares with gold.mem."""

import logging
import random
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles
from cocotbext.axi import AxiStreamBus, AxiStreamSink, AxiStreamSource

BEATS = 256  # of a row
LATENCY = 273  # cycles
PERIOD_PS = 8000
PARAMETERS = ("gamma",)  # loaded first, each through a stream of its own


def read(name):
    """The rows of a .mem file next to this one: lists of beats."""
    words = (Path(__file__).parent / f"{name}.mem").read_text(encoding="utf-8").split()
    beats = [int(word, 16) for word in words]
    return [beats[at : at + BEATS] for at in range(0, len(beats), BEATS)]


STIM, GOLD = read("stim"), read("gold")
LIMIT_PS = PERIOD_PS * (1000 + 40 * (len(STIM) * BEATS + LATENCY))


def pauses(share, seed):
    """For every cycle, whether a side pauses: the same for the same seed."""
    rng = random.Random(seed)
    while True:
        yield rng.random() < share


@cocotb.test(timeout_time=LIMIT_PS, timeout_unit="ps")
@cocotb.parametrize(share=[0.0, 0.3])
async def every_beat(dut, share):
    """Every beat and every tlast is as expected, with this share of pauses on both sides."""
    dut._log.setLevel(logging.WARNING)  # or every frame is logged
    inputs = ["s_axis", *(f"s_axis_{name}" for name in PARAMETERS)]
    dut.aresetn.value = 0
    for signal in ("clear", "m_axis_tready", *(f"{bus}_tvalid" for bus in inputs)):
        getattr(dut, signal).value = 0
    Clock(dut.aclk, PERIOD_PS, unit="ps").start()
    await ClockCycles(dut.aclk, 4)
    dut.aresetn.value = 1
    await ClockCycles(dut.aclk, 1)

    def stream(kind, prefix, seed):
        # One byte lane: an item of a frame is a whole beat.
        bus = AxiStreamBus.from_prefix(dut, prefix)
        end = kind(bus, dut.aclk, dut.aresetn, reset_active_level=False, byte_lanes=1)
        end.set_pause_generator(pauses(share, seed))
        return end

    source, sink = stream(AxiStreamSource, "s_axis", 1), stream(AxiStreamSink, "m_axis", 2)
    for seed, name in enumerate(PARAMETERS, 3):
        load = stream(AxiStreamSource, f"s_axis_{name}", seed)
        (row,) = read(name)
        await load.send(row)
        await load.wait()
        await ClockCycles(dut.aclk, 8)  # what was taken last is in use now

    assert len(STIM) == len(GOLD), f"{len(STIM)} rows in stim.mem, {len(GOLD)} in gold.mem"
    for row in STIM:
        await source.send(row)
    for n, expected in enumerate(GOLD):
        got = list((await sink.recv()).tdata)
        for beat, (value, good) in enumerate(zip(got, expected, strict=False)):
            assert value == good, f"row {n} beat {beat}: got {value:x}, expected {good:x}"
        assert len(got) == len(expected), f"row {n}: tlast must be at beat {BEATS}, got {len(got)}"

    await ClockCycles(dut.aclk, 64 + LATENCY)
    assert sink.empty(), "a row too many"
    assert sink.idle(), "a beat too many"
    assert dut.framing_error.value == 0, f"framing_error is {dut.framing_error.value}, expected 0"
