"""For `properties.py`: flows as hardware against the integer model, in monitors.

See `monitors.py`.
"""

import numpy as np
from amaranth.hdl import Array, Cat, Const, Mux, Signal
from monitors import Bench

from hwnorm.approx.rsqrt import ReciprocalRoot
from hwnorm.fixed import Fixed
from hwnorm.flow import trace
from hwnorm.hdl.pipeline import Pipeline
from hwnorm.hdl.sequencer import Sequencer
from hwnorm.norms import RMSNorm, Rsqrt


def reciprocal_root(method="direct"):
    """The reciprocal root of 1..63, a significand of 5 bits from a table of 8."""
    arg = Fixed(1, 63, 0)
    root = ReciprocalRoot(arg, method, 8, 5, 5)
    return trace(lambda v: {"root": root(v)}, "root", v=arg)


def rms_row():
    """A whole RMSNorm of two elements as one flow: their sum, its root, and the first output."""
    norm = RMSNorm(
        dim=2, eps=0.5, x="s3/1", gamma="s3/1", y="s3/1", rsqrt=Rsqrt(method="direct", segments=2)
    )

    def function(x0, x1, gamma):
        sumsq = norm.gather(x0)["sumsq"] + norm.gather(x1)["sumsq"]
        return {"y": norm.apply(x0, **norm.solve(sumsq), gamma=gamma)}

    return trace(function, "row", x0=norm.x, x1=norm.x, gamma=norm.gamma)


def pipeline(flow, period_ns):
    """A pipeline with any inputs in every cycle; `given` are those of its outputs now."""
    bench = Bench(Pipeline(flow(), period_ns))
    dut = bench.dut
    bench.given = [bench.past(bench.free(dut.input(key)), dut.latency) for key in dut.flow.inputs]
    started = bench.past(Const(1, 1), dut.latency)
    bench.legal = started
    for given, wire in zip(bench.given, dut.flow.inputs.values(), strict=True):
        value = given.as_signed() if wire.fmt.signed else given
        bench.legal = bench.legal & (value >= wire.fmt.lo) & (value <= wire.fmt.hi)
    bench.outputs = Cat(*(dut.output(key) for key in dut.flow.outputs))
    return bench


def sequencer(flow, period_ns, interval, strides=()):
    """Shared hardware with any inputs in every cycle, and marks that are `interval` apart."""
    bench = Bench(Sequencer(flow(), period_ns, interval, strides=strides))
    dut, m = bench.dut, bench.m
    rest = Signal(range(interval))
    asked = bench.choice() & (rest == 0)
    m.d.comb += dut.mark_in.eq(asked)
    m.d.sync += rest.eq(Mux(asked, interval - 1, Mux(rest == 0, 0, rest - 1)))
    bench.given, bench.legal = [], dut.mark_out
    for key, wire in dut.flow.inputs.items():
        given = bench.past(bench.free(dut.input(key)), dut.latency)
        bench.given.append(given)
        value = given.as_signed() if wire.fmt.signed else given
        bench.legal = bench.legal & (value >= wire.fmt.lo) & (value <= wire.fmt.hi)
    bench.outputs = Cat(*(dut.output(key) for key in dut.flow.outputs))
    return bench


def marks_are_on_time(bench):
    """The mark comes out `latency` cycles behind its inputs, and at no other time."""
    dut = bench.dut
    return dut.mark_out != bench.past(dut.mark_in, dut.latency)


def equals_model(bench):
    """For all inputs, the outputs are the integer model's, `latency` cycles later."""
    flow = bench.dut.flow
    widths = [wire.fmt.width for wire in flow.inputs.values()]
    codes, inputs, at = np.arange(1 << sum(widths)), {}, 0
    for (key, wire), width in zip(flow.inputs.items(), widths, strict=True):
        code = codes >> at & (1 << width) - 1
        code -= (code >> width - 1 << width) * wire.fmt.signed
        # Codes outside the interval are excluded by `legal`; the model must not see them.
        inputs[key] = np.clip(code, wire.fmt.lo, wire.fmt.hi)
        at += width
    words, at = np.zeros_like(codes), 0
    for key, value in flow.run(**inputs).items():
        width = flow.outputs[key].fmt.width
        words |= (np.asarray(value, dtype=np.int64) & (1 << width) - 1) << at
        at += width
    table = Array(Const(int(word), at) for word in words)
    return bench.legal & (bench.outputs != table[Cat(*bench.given)])


def equals_slow(bench):
    """For all inputs, the outputs are those of the flow with all time in the world, later."""
    dut = bench.dut
    slow = Pipeline(dut.flow, 1e9)
    bench.m.submodules.slow = slow
    for key in dut.flow.inputs:
        bench.m.d.comb += slow.input(key).eq(dut.input(key))
    outputs = Cat(*(slow.output(key) for key in dut.flow.outputs))
    return bench.legal & (bench.outputs != bench.past(outputs, dut.latency - slow.latency))
