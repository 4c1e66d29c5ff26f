"""Shared hardware gives what the model says, on time, for inputs that come now and then."""

from dataclasses import replace
from math import isqrt

import numpy as np
import pytest
from amaranth.hdl import ClockDomain, Module
from amaranth.sim import Simulator
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from oracles import all_rows, refused
from test_pipeline import flows, vectors

import hwnorm
from hwnorm import ops
from hwnorm.design import CATALOGUE, dumps, parse
from hwnorm.estimate import estimate
from hwnorm.fixed import Fixed
from hwnorm.flow import trace
from hwnorm.hdl.sequencer import Sequencer
from hwnorm.model import model
from hwnorm.sharing import STRIDES, UnshareableError
from hwnorm.sim import simulate
from hwnorm.targets import GENERIC, TARGETS

QUADRATIC = hwnorm.Rsqrt(method="quadratic")
DESIGNS = CATALOGUE | {
    "quadratic": hwnorm.RMSNorm(dim=96, y="s16/10", rsqrt=QUADRATIC),
    "wide": hwnorm.LayerNorm(
        dim=96, lanes=4, x="s20/8", gamma="s16/14", beta="s16/12", rsqrt=QUADRATIC
    ),
    "direct": hwnorm.RMSNorm(dim=64, y="s8/4", rsqrt=hwnorm.Rsqrt(method="direct")),
}


def check_sequencer(flow, period_ns, interval, target=GENERIC, strides=(), seed=0, inputs=None):
    """Model and hardware agree on every output, wherever the inputs are apart by the interval.

    Between them the inputs are anything.
    """
    rng = np.random.default_rng(seed)
    inputs = inputs or vectors(flow, rng, count=10)
    count = next(iter(inputs.values())).shape[-1]
    expected = flow.run(check=True, **inputs)
    # Asked first: what raises must not leave hardware behind that nobody uses.
    flow.schedule(period_ns, target, interval, strides)
    dut = Sequencer(flow, period_ns, interval, target, strides)
    starts = np.cumsum(interval + rng.choice([0, 0, 1, 3], count)).tolist()
    got = []

    async def bench(ctx):
        for cycle in range(starts[-1] + dut.latency + 2):
            asked = cycle in starts
            ctx.set(dut.mark_in, asked)
            for key, wire in flow.inputs.items():
                junk = int(rng.integers(wire.fmt.lo, wire.fmt.hi, endpoint=True))
                value = int(inputs[key][0][starts.index(cycle)]) if asked else junk
                ctx.set(dut.input(key), value)
            outputs = (dut.output(key) for key in flow.outputs)
            _, _, done, *values = await ctx.tick().sample(dut.mark_out, *outputs)
            if done:
                got.append((cycle, values))

    top = Module()
    top.domains.sync = ClockDomain()
    top.submodules.dut = dut
    simulator = Simulator(top)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert [cycle for cycle, _ in got] == [start + dut.latency for start in starts]
    for n, key in enumerate(flow.outputs):
        model = np.broadcast_to(np.asarray(expected[key]), (1, count))[0]
        assert [values[n] for _, values in got] == [int(v) for v in model], key


def totals_of(design, count=10):
    """Totals that rows can have."""
    rng = np.random.default_rng(1)
    inputs = vectors(design.flows.solve, rng, count=count)
    if "sum" in inputs:
        tops = [isqrt(design.dim * int(v)) for v in inputs["sumsq"][0]]
        limit = design.flows.solve.inputs["sum"].fmt.hi
        inputs["sum"] = np.array([[(-1) ** n * min(t, limit) for n, t in enumerate(tops)]])
    return inputs


@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("target", [("generic", 8.0), ("generic", 3.0), ("ecp5", 6.0)])
def test_solve_of_every_norm(name, target):
    design = DESIGNS[name]
    flow, (family, period_ns) = design.flows.solve, target
    checked = 0
    for interval, strides in ((2, ()), (7, ()), (24, (8, 1)), (48, (4, 1)), (72, (1,))):
        try:
            check_sequencer(
                flow, period_ns, interval, TARGETS[family], strides, inputs=totals_of(design)
            )
        except UnshareableError:
            continue
        checked += 1
    assert checked >= 2


@settings(
    max_examples=12, phases=[Phase.generate], suppress_health_check=list(HealthCheck), deadline=None
)
@given(
    flow=flows(), seed=st.integers(0, 99), interval=st.integers(2, 90),
    strides=st.sampled_from(STRIDES), target=st.sampled_from([("generic", 8.0), ("ecp5", 5.0)]),
)  # fmt: skip
def test_random_flows(flow, seed, interval, strides, target):
    try:
        check_sequencer(flow, target[1], interval, TARGETS[target[0]], strides, seed)
    except UnshareableError:
        assert sum(wire.products(TARGETS[target[0]]) for wire in flow.wires) > 1


def test_one_multiplier_and_one_memory():
    design = CATALOGUE["vit-layernorm-768"]
    flow = design.flows.solve
    shared = flow.schedule(8.0, interval=20)
    assert flow.cost_of(shared).multipliers == 1
    assert flow.cost.multipliers == 4
    text = hwnorm.verilog(replace(design, dim=24, lanes=1, solver="shared"), "top")
    solver = text[text.index("module top_engine_solver") :].split("endmodule")[0]
    assert solver.count(" * ") == 1
    assert solver.count("  reg [") > 5
    memories = [line for line in solver.splitlines() if ":0];" in line and "reg" in line]
    assert len([line for line in memories if line.count("[") == 2]) == 1


def test_registers_are_kept_instead_of_passed_on():
    def function(x):
        slow = x
        for n in range(5):
            slow = ops.Column(f"t{n}", tuple(v ^ n + 9 for v in range(64)), 0)[slow]
        return {"y": slow + x, "x": x}

    flow = trace(function, x=Fixed.of(False, 6))
    plain, shared = flow.schedule(8), flow.schedule(8, interval=16)
    x = flow.inputs["x"]
    assert plain.copies(x, plain.latency) == plain.latency == 6
    assert shared.copies(x, shared.latency) == 1
    # Inputs that follow closely need more than one.
    assert flow.schedule(8, interval=2).copies(x, plain.latency) == 3
    for interval in (2, 3, 5, 16):
        check_sequencer(flow, 8, interval)


def test_products_that_could_begin_together_do_not():
    x = Fixed.of(True, 9)
    flow = trace(lambda x, z: {"a": x * z, "b": z * z, "c": x * (x + z)}, x=x, z=x)
    for interval in (3, 4):
        check_sequencer(flow, 8, interval)
    with pytest.raises(UnshareableError, match="must have time for 3 products, got inputs every 2"):
        flow.schedule(8, interval=2)


def test_a_product_of_limbs_takes_turns():
    flow = trace(lambda x, z: {"y": x * z}, x=Fixed.of(True, 34), z=Fixed.of(True, 34))
    assert [wire.products(GENERIC) for wire in flow.wires] == [0, 0, 4]
    for target, period_ns, interval in ((GENERIC, 3, 4), (TARGETS["ecp5"], 6, 5)):
        check_sequencer(flow, period_ns, interval, target)
    # Its blocks are of 16 bits.
    check_sequencer(flow, 30, 9, TARGETS["ice40"])
    with pytest.raises(UnshareableError, match="must have time for 4 products, got inputs every 3"):
        flow.schedule(8, interval=3)


@pytest.mark.parametrize("strides", [s for s in STRIDES if s])
def test_shift_register(strides):
    def function(x):
        zeros = ops.leading_zeros(x, 21)
        return {"top": ops.Normalise(x, zeros), "zeros": zeros}

    flow = trace(function, x=Fixed(1, (1 << 20) - 1, 0))
    powers = np.array([[1 << n for n in range(20)] + [(1 << 20) - 1, 5]])
    schedule = flow.schedule(8, interval=30, strides=strides)
    assert schedule.sharing.normalised
    check_sequencer(flow, 8, 30, strides=strides, inputs={"x": powers})
    # A word that can be zero has no highest one, and is shifted as ever.
    flow = trace(function, x=Fixed(0, (1 << 20) - 1, 0))
    assert not flow.schedule(8, interval=30, strides=strides).sharing.normalised
    check_sequencer(flow, 8, 30, strides=strides)


# -- in a design ------------------------------------------------------------------------------


def test_what_is_smaller_is_the_default():
    design = CATALOGUE["vit-layernorm-768"]
    assert design.turns["interval"] == design.beats
    pipelined = replace(design, solver="pipelined")
    assert pipelined.turns == {}
    saved = [d.flows.solve.cost_of(d.schedule(d.flows.solve)) for d in (pipelined, design)]
    assert saved[0].multipliers - saved[1].multipliers == 3
    assert saved[0].luts > saved[1].luts
    assert estimate(design).ff < estimate(pipelined).ff
    # At most a quarter of a row later.
    assert 0 <= design.latency - pipelined.latency <= design.beats // 4
    # Without a family's delays, a shift register is only taken if it is asked for.
    plain = replace(design, target="generic", period_ns=8.0)
    assert plain.turns == {"interval": design.beats, "strides": ()}
    assert replace(plain, solver="shared").turns["strides"] == (1,)
    # A row of one beat leaves no time, whatever is wanted.
    assert hwnorm.RMSNorm(dim=8, lanes=8).turns == {}


def test_bad_input():
    with refused("solve of rmsnorm must be one of pipelined, shared, got 'serial'"):
        hwnorm.RMSNorm(dim=8, solver="serial")
    with refused("solve must be pipelined where a row has less than 2 beats, got shared and 1"):
        hwnorm.RMSNorm(dim=8, lanes=8, solver="shared")
    # Five products need five cycles, and time to follow one another.
    with refused("solve must be pipelined where a row has less than 10 beats, got shared and 6"):
        replace(DESIGNS["wide"], dim=96, lanes=16, solver="shared")


def test_design_file():
    text = 'norm = "rmsnorm"\ndim = 64\nsolve = "pipelined"\n'
    design = parse(text)
    assert design.solver == "pipelined"
    assert 'solve = "pipelined"' in dumps(design)
    assert parse(dumps(design)) == design
    assert "solve" not in dumps(replace(design, solver=None))


@pytest.mark.parametrize("solver", ["pipelined", "shared"])
@pytest.mark.parametrize(
    "design",
    [
        hwnorm.RMSNorm(dim=30, lanes=3, x="s8/4", gamma="s8/6", y="s8/4"),
        hwnorm.LayerNorm(dim=24, lanes=2, x="s16/8", y="s16/10", rsqrt=QUADRATIC),
    ],
    ids=["rms", "layer"],
)
def test_engine(design, solver):
    design = replace(design, solver=solver)
    assert bool(design.turns) == (solver == "shared")
    rows = all_rows(design, 2)[:12]
    for stall in (0.0, 0.4):
        found = simulate(design, rows, engine="pysim", stall=stall)
        assert (found.y == model(design, rows)).all()
    # Without stalls no cycle is lost: rows follow one another, as late as is stated.
    found = simulate(design, rows, engine="pysim")
    assert (found.beats_per_cycle, found.latency_cycles) == (1.0, design.latency)
