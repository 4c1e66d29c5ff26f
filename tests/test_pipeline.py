"""Pipelines: random flows give in simulated hardware what the interpreter says, on time."""

from collections import Counter

import numpy as np
import pytest
from amaranth.hdl import ClockDomain, Fragment, Module, Signal
from amaranth.sim import Simulator
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st

from hwnorm import ops
from hwnorm.bits import shape
from hwnorm.fixed import OVERFLOWS, ROUNDINGS, Fixed
from hwnorm.flow import trace
from hwnorm.hdl.pipeline import Pipeline, Registers
from hwnorm.targets import GENERIC, TARGETS

BUDGETS_NS = (3, 8, 1000)

#: Wires of random flows stay below this: wide enough to leave int64 behind now and then.
WIDEST = 80

#: Op classes that the random flows of this run have held.
SEEN = Counter()


def stream(pipeline, inputs):
    """Simulate a pipeline: one vector a clock in, results taken `latency` cycles behind.

    Parameters
    ----------
    pipeline : Pipeline
    inputs : dict of str to numpy.ndarray of int, (lanes, count); (1, count) if shared

    Returns
    -------
    dict of str to numpy.ndarray of Python int, (lanes, count)
    """
    lanes = range(pipeline.lanes)
    feeds = [
        (pipeline.input(name, lane), rows[lane % len(rows)].tolist())
        for name, rows in inputs.items()
        for lane in lanes
    ]
    outputs = list(pipeline.flow.outputs)
    taps = [pipeline.output(name, lane) for name in outputs for lane in lanes]
    count = next(iter(inputs.values())).shape[-1]
    got = []

    async def bench(ctx):
        for n in range(count + pipeline.latency):
            for port, values in feeds if n < count else ():
                ctx.set(port, values[n])
            sampled = await ctx.tick().sample(*taps)
            if n >= pipeline.latency:
                got.append(sampled[2:])

    # A pipeline without registers has no clock of its own.
    top = Module()
    top.domains.sync = ClockDomain()
    top.submodules.dut = pipeline
    simulator = Simulator(top)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    table = np.array(got, dtype=object).reshape(count, len(outputs), len(lanes))
    return {name: table[:, n].T for n, name in enumerate(outputs)}


def vectors(flow, rng, lanes=1, shared=(), count=24):
    """Random inputs of a flow; both ends of every interval are among them."""
    inputs = {}
    for name, wire in flow.inputs.items():
        lo, hi = wire.fmt.lo, wire.fmt.hi
        shape = (1 if name in shared else lanes, count)
        inputs[name] = rng.integers(lo, hi, shape, endpoint=True)
        inputs[name][:, rng.integers(count)] = lo
        inputs[name][:, rng.integers(count)] = hi
    return inputs


def check_pipeline(flow, period_ns, lanes=1, shared=(), seed=0, target=GENERIC):
    """Model and hardware agree on every output; the checked model run does not raise."""
    inputs = vectors(flow, np.random.default_rng(seed), lanes, shared)
    expected = flow.run(check=True, **inputs)
    pipeline = Pipeline(flow, period_ns, lanes, shared, target)
    for name, rows in stream(pipeline, inputs).items():
        model = np.broadcast_to(np.asarray(expected[name]), rows.shape).astype(object)
        wrong = np.argwhere(model != rows)
        assert not len(wrong), (
            f"{name} at {period_ns} ns, first at (lane, vector) {wrong[0]}: "
            f"model {model[tuple(wrong[0])]}, hardware {rows[tuple(wrong[0])]}"
        )


# -- random flows ---------------------------------------------------------------------------


class Grower:
    """Draws one op after the other on wires that are there already."""

    def __init__(self, draw, wires):
        self.draw, self.wires = draw, wires

    def int(self, low, high):
        return self.draw(st.integers(low, high))

    def any(self):
        return self.draw(st.sampled_from(self.wires))

    def word(self):
        """A wire that is never negative, as an integer."""
        wire = abs(self.any())
        return wire << wire.fmt.frac if wire.fmt.frac else wire

    def low_bits(self, most):
        """The low bits of some word, at most so many."""
        word = self.word()
        return word[: min(word.fmt.width, self.int(1, most))]

    def rounding(self):
        return self.draw(st.sampled_from(ROUNDINGS))

    def limits(self, wire):
        """Two ordered limits, inside or outside of a wire's interval."""
        span = wire.fmt.hi - wire.fmt.lo + 4
        ends = [self.int(wire.fmt.lo - span // 4, wire.fmt.hi + span // 4) for _ in range(2)]
        return min(ends), max(ends)

    def grow(self, kind):
        """One more wire, unless it would be too wide."""
        wire = getattr(self, "make_" + kind)()
        if wire.fmt.width <= WIDEST and abs(wire.fmt.frac) <= 20:
            self.wires.append(wire)

    def make_const(self):
        return ops.Const(self.int(-40, 40), self.int(-1, 3))

    def make_add(self):
        return self.any() + self.any()

    def make_sub(self):
        return self.any() - self.any()

    def make_max(self):
        return ops.maximum(self.any(), self.any())

    def make_less(self):
        return self.any() < self.any()

    def make_select(self):
        return ops.select(self.low_bits(1), self.any(), self.any())

    def make_abs(self):
        return ops.Abs(self.any())

    def make_mul(self):
        return self.any() * self.any()

    def make_square(self):
        wire = self.any()
        return wire * wire

    def make_mul_const(self):
        return self.any() * self.int(-100, 400)

    def make_mul_hidden(self):
        return ops.MulHidden(self.any(), self.any(), self.int(0, 9))

    def make_scale(self):
        return self.any() << self.int(-3, 3)

    def make_round(self):
        wire = self.any()
        return ops.Round(wire, wire.fmt.frac - self.int(-2, 5), self.rounding())

    def make_shift_right(self):
        wire = self.any()
        frac = wire.fmt.frac - self.int(-3, 4)
        return ops.ShiftRight(wire, self.low_bits(4), frac, self.rounding())

    def make_clamp(self):
        wire = self.any()
        return ops.Clamp(wire, *self.limits(wire))

    def make_outside(self):
        wire = self.any()
        return ops.Outside(wire, *self.limits(wire))

    def make_wrap(self):
        wire = self.any()
        signed = self.draw(st.booleans())
        return ops.Wrap(wire, Fixed.of(signed, self.int(2, 9), wire.fmt.frac))

    def make_fit(self):
        fmt = Fixed.of(self.draw(st.booleans()), self.int(2, 12), self.int(-2, 6))
        return self.any().fit(fmt, self.rounding(), self.draw(st.sampled_from(OVERFLOWS)))

    def make_within(self):
        word = self.word()
        return ops.Within(word - word[: self.int(1, word.fmt.width)], 0, word.fmt.hi)

    def make_lookup(self):
        index = self.low_bits(4)
        values = [self.int(-50, 200) for _ in range(index.fmt.hi + 1 + self.int(0, 2))]
        return ops.Lookup(ops.Column("column", tuple(values), self.int(-1, 5)), index)

    def make_slice(self):
        word = self.word()
        low = self.int(0, word.fmt.width - 1)
        return word[low : self.int(low + 1, word.fmt.width)]

    def make_cat(self):
        return ops.Cat(self.word(), self.word())

    def make_leading_zeros(self):
        word = self.word()
        return ops.leading_zeros(word, word.fmt.width + self.int(0, 2))

    def make_normalise(self):
        word = self.word()
        return ops.Normalise(word, ops.leading_zeros(word, word.fmt.width + self.int(0, 2)))


KINDS = sorted(name[5:] for name in vars(Grower) if name.startswith("make_"))


@st.composite
def flows(draw):
    """A flow of some inputs and of every kind of op once, in any order; all wires are alive."""
    formats = {}
    for name in ("x", "row", "z")[: draw(st.integers(1, 3))]:
        reach = draw(st.sampled_from([1, 9, 100, 300, 1 << 40]))
        ends = draw(st.integers(-reach, reach)), draw(st.integers(-reach, reach))
        formats[name] = Fixed(min(ends), max(ends), draw(st.integers(-1, 4)))

    def function(**inputs):
        grower = Grower(draw, list(inputs.values()))
        for kind in draw(st.permutations(KINDS)):
            grower.grow(kind)
        used = {arg for wire in grower.wires for arg in wire.args}
        ends = [wire for wire in grower.wires if wire not in used]
        # One output is called like an input, and passes it through.
        return {"x": inputs["x"]} | {f"y{n}": wire for n, wire in enumerate(ends)}

    return trace(function, **formats)


# Without shrinking: a failing flow is printed as it is, and not simulated for minutes more.
@settings(max_examples=60, phases=[Phase.generate])
@given(flow=flows(), seed=st.integers(0, 99), lanes=st.sampled_from([1, 2]))
def check_random_flows(flow, seed, lanes):
    note(flow.describe(8))
    SEEN.update(type(wire) for wire in flow.wires)
    SEEN["wide"] += len(flow.wide_wires)
    for period_ns in BUDGETS_NS:
        check_pipeline(flow, period_ns, lanes, {"row"} & set(flow.inputs), seed)
    # Of a family: input registers of multipliers, output registers of memories, long adders.
    target = TARGETS[("ecp5", "xc7", "ice40")[seed % 3]]
    for factor in (0.7, 2):
        period_ns = factor * (target.clock_ns + target.multiplier_ns)
        check_pipeline(flow, period_ns, lanes, {"row"} & set(flow.inputs), seed, target)


def test_random_flows_over_all_ops_give_the_same_in_hardware():
    SEEN.clear()
    check_random_flows()
    assert set(ops.OPS) < set(SEEN), f"never drawn: {set(ops.OPS) - set(SEEN)}"
    assert SEEN["wide"], "no wire went beyond 62 bits"


# -- structure ------------------------------------------------------------------------------

S6 = Fixed.parse("s6/2")


def registers(pipeline):
    """Name to width of the pipeline's own registers; none of them may be reset."""
    found = [statement.lhs for statement in Fragment.get(pipeline, None).statements["sync"]]
    assert all(signal.reset_less for signal in found)
    return {signal.name: len(signal) for signal in found}


def test_registers_keep_the_names_and_are_shared():
    def function(x, row):
        product = (x * row).named("product")
        return {"y": (product + x).named("y"), "z": product - row}

    pipeline = Pipeline(trace(function, x=S6, row=S6), 4, lanes=2, shared={"row"})
    assert pipeline.latency == 2
    # The adders follow the multiplier's register, so x and row wait one cycle, row only once.
    assert registers(pipeline) == {
        "product_0": 12, "product_1": 12, "x_0_c1": 6, "x_1_c1": 6, "row_c1": 6,
        "y_0_c2": 12, "y_1_c2": 12, "sub4_0_c2": 12, "sub4_1_c2": 12,
    }  # fmt: skip


def test_what_lanes_share_is_built_once():
    def function(x, row):
        return {"y": x + (row * row).named("square"), "alone": row * 3}

    pipeline = Pipeline(trace(function, x=S6, row=S6), 1000, lanes=3, shared={"row"})
    assert [n for n in registers(pipeline) if "square" in n] == ["square"]
    assert sorted(pipeline.signature.members) == [
        "alone", "row", "x_0", "x_1", "x_2", "y_0", "y_1", "y_2"
    ]  # fmt: skip
    assert pipeline.input("row", 2) is pipeline.row
    assert pipeline.input("x", 2) is pipeline.x_2
    assert pipeline.output("alone", 1) is pipeline.alone
    check_pipeline(pipeline.flow, 1000, 3, {"row"})


def test_an_output_may_be_called_like_an_input():
    flow = trace(lambda x: {"x": x + 1}, x=S6)
    pipeline = Pipeline(flow, 8, lanes=1)
    assert registers(pipeline) == {"add2_c1": 7}
    assert sorted(pipeline.signature.members) == ["out_x", "x"]
    assert pipeline.output("x") is pipeline.out_x
    check_pipeline(flow, 8, lanes=2)


def test_an_input_may_be_given_another_name():
    flow = trace(lambda x, row: {"y": x.named("a") + row.named("b")}, x=S6, row=S6)
    for lanes in (1, 2):
        check_pipeline(flow, 8, lanes, {"row"})


@pytest.mark.parametrize("period_ns", BUDGETS_NS)
def test_expressions_of_constants(period_ns):
    def function(x):
        five, three = ops.wire(5), ops.wire(3)
        word = abs(x) << 2
        return {
            "entry": x + ops.Column("t", (3, 4, 5), 0)[ops.wire(1)],
            "joined": ops.Cat(word, five - three),
            "shifted": ops.ShiftRight(x, five - three, 1, "nearest_even"),
            "zeros": ops.leading_zeros(five * three, 9) + x,
            "clamped": ops.Clamp(five - three, -1, 1) * x,
            "alone": (five * 37 * 1001).round(-2),
        }

    check_pipeline(trace(function, x=S6), period_ns)


def test_an_input_goes_through_in_no_time():
    flow = trace(lambda x: {"y": x << 2, "k": ops.wire(9)}, x=S6)
    assert flow.schedule(3).latency == 0
    check_pipeline(flow, 3, lanes=2)


@pytest.mark.parametrize("target", TARGETS.values(), ids=str)
@pytest.mark.parametrize("widths", [(24, 18), (18, 18), (25, 17), (27, 30), (40, 8)])
def test_wide_products(widths, target):
    def function(x, z):
        return {"square": x * x, "product": z * x, "hidden": ops.MulHidden(x, z, 9)}

    for signed in (True, False):
        formats = [Fixed.of(signed, width) for width in widths]
        flow = trace(function, x=formats[0], z=formats[1])
        for period_ns in (3, 30):
            check_pipeline(flow, period_ns, target=target)


@settings(max_examples=30, phases=[Phase.generate])
@given(flow=flows(), target=st.sampled_from(list(TARGETS.values())), share=st.floats(0.3, 3))
def test_hardware_is_cut_at_each_step(flow, target, share):
    schedule = flow.schedule(share * (target.clock_ns + target.multiplier_ns), target)
    m = Module()
    for wire in flow.wires:
        if wire.divisible and wire in schedule.cuts:
            cut = Registers(m, schedule.cuts[wire], "wire", target)
            wire.rtl(m, *(Signal(shape(arg.fmt)) for arg in wire.args), cut=cut)
            assert cut.calls == len(schedule.cuts[wire]), type(wire).__name__
    Fragment.get(m, None)
