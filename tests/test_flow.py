"""Flows: tracing, the integer interpreter in every dtype and layout, scheduling, printing."""

from itertools import product

import numpy as np
import pytest
from test_fixed import raises
from test_pipeline import BUDGETS_NS

import hwnorm
from hwnorm import ops
from hwnorm.fixed import Fixed
from hwnorm.flow import narrowest, trace
from hwnorm.ops import Column, const, leading_zeros, maximum, select, wire
from hwnorm.scaled import ScaledFormat
from hwnorm.targets import TARGETS

S4 = Fixed.parse("s4/0")
S8 = Fixed.parse("s8/2")
U8 = Fixed.parse("u8/0")


# -- how flows are written ------------------------------------------------------------------


def test_operators_mean_what_they_mean_on_integers():
    pairs = np.array(list(product(range(-8, 8), repeat=2)))

    def both(a, b):
        return {
            "add": a + b,
            "add_int": a + 3,
            "int_add": 3 + a,
            "sub": a - b,
            "sub_int": a - 3,
            "int_sub": 3 - a,
            "neg": -a,
            "mul": a * b,
            "mul_int": a * 7,
            "int_mul": 7 * a,
            "abs": abs(a),
            "less": a < b,
            "less_int": a < 3,
            "greater": a > b,
            "int_less": wire(3) < a if isinstance(a, ops.Wire) else a > 3,
        }

    a, b = pairs.T
    results = trace(both, a=S4, b=S4).run(check=True, a=a, b=b)
    for name, values in both(a, b).items():
        assert np.array_equal(results[name], values), name


def test_shifts_by_constants_move_the_point_only():
    flow = trace(lambda x: {"up": x << 3, "down": x >> 3}, x=S8)
    results = flow.run(x=np.arange(-128, 128))
    for name, frac in (("up", -1), ("down", 5)):
        assert results[name].tolist() == list(range(-128, 128))
        assert flow.outputs[name].fmt == Fixed(-128, 127, frac)


def test_bits_are_taken_like_list_elements():
    def parts(x):
        return {"low": x[:3], "middle": x[2:5], "high": x[5:], "all": x[:]}

    results = trace(parts, x=U8).run(x=np.arange(256))
    for x in range(256):
        got = {name: int(values[x]) for name, values in results.items()}
        assert got == {"low": x % 8, "middle": x // 4 % 8, "high": x // 32, "all": x}


def test_numbers_of_python_become_constants():
    assert wire(np.int64(5)).fmt == Fixed(5, 5)
    assert const(0.7, 4).fmt == Fixed(11, 11, 4)
    assert const(-0.5, 0).fmt == Fixed(0, 0)
    assert (select(wire(1), 7, 9).fmt, maximum(3, wire(8)).fmt) == (Fixed(7, 9), Fixed(8, 8))
    x = ops.Input("x", S8)
    assert wire(x) is x
    assert abs(ops.Input("u", U8)).fmt == U8


def test_what_changes_nothing_builds_nothing():
    x = ops.Input("x", S8)
    assert x.round(2) is x
    assert x.fit(Fixed.parse("s8/2")) is x
    assert x.fit(Fixed.parse("s16/2"), overflow="wrap") is x
    assert x.within(-500, 500).fmt == S8
    assert x.within(-3, 500).fmt == Fixed(-3, 127, 2)


def test_scaled_numbers_go_in_and_out_as_two_wires():
    number = ScaledFormat(Fixed(0, 15, 4), Fixed(0, 3), hidden=4)

    def function(x, inv):
        scaled = inv * x
        return {"y": scaled.round(3, "floor"), "scaled": scaled}

    flow = trace(function, x=S4, inv=number)
    assert list(flow.inputs) == ["x", "inv", "inv_exp"]
    assert list(flow.outputs) == ["y", "scaled", "scaled_exp"]
    assert flow.results["scaled"] == ScaledFormat(flow.outputs["scaled"].fmt, Fixed(0, 3))
    x, inv, exp = np.array(list(product(range(-8, 8), range(16), range(4)))).T
    got = flow.run(check=True, x=x, inv=inv, inv_exp=exp)
    assert got["scaled"].tolist() == (x * (inv + 16)).tolist()
    assert got["y"].tolist() == (x * (inv + 16) * 8 // (16 << exp)).tolist()
    with raises("a hidden one must be multiplied out before rounding"):
        number.input("inv").round(3)


def test_inputs_of_other_flows_are_refused():
    other = ops.Input("other", S4)
    with raises("input other is not one of this flow's inputs"):
        trace(lambda x: {"y": x + other}, x=S4)


# -- running --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lo", "hi", "dtype"),
    [
        (0, 1, np.int32),
        (0, 2**31 - 1, np.int32),
        (-(2**31), 0, np.int32),
        (0, 2**31, np.int64),
        (-(2**31) - 1, 0, np.int64),
        (0, 2**62 - 1, np.int64),
        (-(2**62), 5, np.int64),
        (0, 2**62, object),
        (-(2**62) - 1, 0, object),
    ],
)
def test_the_narrowest_dtype_that_is_exact(lo, hi, dtype):
    assert narrowest(lo, hi) is dtype


def _even(value, n):
    """``value * 2**-n`` to the nearest integer, ties to even."""
    whole, rest = divmod(value, 1 << n)
    return whole + (rest * 2 > 1 << n or (rest * 2 == 1 << n and whole % 2))


def _chain(x, y):
    """Products and sums up to 124 bits, and back below 62."""
    square = (x * x).named("square")
    cube = (square * x).named("cube")
    fourth = (cube * x + y).named("fourth")
    high = maximum(fourth, y).named("high")
    back = fourth.fit(Fixed.of(True, 40, -60), "nearest_even").named("back")
    size = (abs(cube) << 0).named("size")
    zeros = leading_zeros(size).named("zeros")
    top = ops.Normalise(size, zeros).named("top")
    return {
        "square": square, "cube": cube, "fourth": fourth, "high": high, "back": back,
        "zeros": zeros, "top": top[60:], "less": cube < y, "pick": select(x < y, cube, y),
        "wrap": fourth.fit(Fixed.of(True, 33, 0), overflow="wrap"),
    }  # fmt: skip


def test_beyond_62_bits_it_is_exact():
    fmt = Fixed.of(True, 31)
    flow = trace(_chain, x=fmt, y=fmt)
    rng = np.random.default_rng(5)
    x, y = rng.integers(fmt.lo, fmt.hi, (2, 300), endpoint=True) >> rng.integers(0, 30, 300)
    x[:3], y[:3] = (fmt.lo, fmt.hi, 0), (fmt.lo, fmt.hi, fmt.lo)
    got = flow.run(check=True, x=x, y=y)
    width = Fixed(0, 2**90).width
    for n, (a, b) in enumerate(zip(x.tolist(), y.tolist(), strict=True)):
        fourth, size = a**4 + b, abs(a) ** 3
        assert int(got["square"][n]) == a * a
        assert int(got["cube"][n]) == a**3
        assert int(got["fourth"][n]) == fourth
        assert int(got["high"][n]) == max(fourth, b)
        assert int(got["back"][n]) == min(_even(fourth, 60), 2**39 - 1)
        assert int(got["zeros"][n]) == width - size.bit_length()
        assert int(got["top"][n]) == (size << width - size.bit_length()) >> 60
        assert bool(got["less"][n]) == (a**3 < b)
        assert int(got["pick"][n]) == (a**3 if a < b else b)
        assert int(got["wrap"][n]) == (fourth + 2**32) % 2**33 - 2**32


def test_wide_wires_are_named():
    fmt = Fixed.of(True, 31)
    flow = trace(_chain, x=fmt, y=fmt)
    assert {"cube", "fourth", "high", "size", "top"} <= set(flow.wide_wires)
    assert not {"square", "x", "y"} & set(flow.wide_wires)
    assert trace(lambda x: {"y": (x * x * x).named("cube")}, x=S8).wide_wires == []


def test_dtypes_of_results():
    narrow, wide = Fixed.of(True, 15), Fixed.of(True, 31)
    flow = trace(lambda a, b: {"p": a * a, "q": b * b, "r": b * b * b}, a=narrow, b=wide)
    got = flow.run(a=np.array([-3]), b=np.array([-3]))
    assert [got[name].dtype for name in "pqr"] == [np.int32, np.int64, object]


def _every_rounding(x, s):
    table = Column("t", tuple(range(-5, 11)), 1)
    return {
        **{f"round_{r}": x.round(0, r) for r in hwnorm.fixed.ROUNDINGS},
        **{f"shift_{r}": ops.ShiftRight(x, s, 1, r) for r in hwnorm.fixed.ROUNDINGS},
        "clamp": x.fit(Fixed.parse("s5/2")),
        "outside": ops.Outside(x, -3, 9),
        "wrap": x.fit(Fixed.parse("s5/2"), overflow="wrap"),
        "table": table[abs(x)[:4]],
        "zeros": leading_zeros(abs(x)),
        "max": maximum(x, s),
    }


def test_the_layout_of_the_input_does_not_matter():
    flow = trace(_every_rounding, x=S8, s=Fixed(0, 3))
    x, s = np.arange(-128, 128).reshape(16, 16), np.arange(256).reshape(16, 16) % 4
    kept = x.copy()
    want = flow.run(x=x, s=s)
    layouts = {
        "fortran": np.asfortranarray,
        "strided": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
        "backwards": lambda a: np.ascontiguousarray(a[::-1])[::-1],
        "int8": lambda a: a.astype(np.int8),
        "object": lambda a: a.astype(object),
        "list": lambda a: a.tolist(),
    }
    for name, layout in layouts.items():
        got = flow.run(x=layout(x), s=layout(s))
        for key, values in want.items():
            assert np.broadcast_to(got[key], x.shape).tolist() == np.asarray(values).tolist(), (
                f"{key} of {name}"
            )
    assert np.array_equal(x, kept)


def test_shapes_broadcast():
    flow = trace(_every_rounding, x=S8, s=Fixed(0, 3))
    x, s = np.arange(-128, 128)[:, None], np.arange(4)
    want = flow.run(x=np.broadcast_to(x, (256, 4)), s=np.broadcast_to(s, (256, 4)))
    got = flow.run(x=x, s=s)
    for row, col in product((0, 1, 127, 200, 255), range(4)):
        one = flow.run(x=int(x[row, 0]), s=int(s[col]))
        zero_d = flow.run(x=np.array(x[row, 0]), s=np.array(s[col]))
        for key, values in want.items():
            assert int(one[key]) == int(zero_d[key]) == int(values[row, col]), key
            assert np.broadcast_to(got[key], (256, 4))[row, col] == values[row, col], key


def test_no_rows_give_no_rows():
    flow = trace(_every_rounding, x=S8, s=Fixed(0, 3))
    for values in flow.run(x=np.zeros(0, int), s=np.zeros(0, int)).values():
        assert np.broadcast_to(values, 0).tolist() == []


def test_constants_may_be_anything():
    def function(x):
        big = wire(1 << 70)
        return {
            "entry": x + Column("t", (3, 4, 5), 0)[wire(1)],
            "joined": ops.Cat(x, wire(5) - wire(3)),
            "clamped": x + ops.Clamp(big, 0, 1 << 69),
            "larger": x + maximum(big << 3, big * 7),
            "zeros": leading_zeros(big) + x,
            "alone": (wire(3) * 5).round(-1),
        }

    got = trace(function, x=U8).run(check=True, x=np.arange(3))
    assert {k: np.broadcast_to(v, 3).tolist() for k, v in got.items()} == {
        "entry": [4, 5, 6],
        "joined": [2, 6, 10],
        "clamped": [2**69, 2**69 + 1, 2**69 + 2],
        "larger": [2**73, 2**73 + 1, 2**73 + 2],
        "zeros": [0, 1, 2],
        "alone": [8, 8, 8],
    }


def test_probe_gets_every_wire_by_its_name():
    flow = trace(lambda x: {"y": (x * x).named("square") + 1}, x=S4)
    probe = {}
    flow.run(probe=probe, x=np.array([-8, 3]))
    assert {name: np.asarray(value).tolist() for name, value in probe.items()} == {
        "x": [-8, 3], "square": [64, 9], "const2": 1, "add3": [65, 10]
    }  # fmt: skip


def test_checked_runs_name_the_wire_that_left_its_interval():
    flow = trace(lambda x: {"y": ops.Within(x, -3, 5).named("bounded")}, "shape", x=S4)
    assert flow.run(x=np.array([-4, 0]))["y"].tolist() == [-4, 0]
    with raises("wire bounded of shape must stay in s4/0 [-3..5], got -4..0", OverflowError):
        flow.run(check=True, x=np.array([-4, 0]))
    with raises("wire x of shape must stay in s4/0, got 0..8", OverflowError):
        flow.run(check=True, x=np.array([0, 8]))


# -- names and printing ---------------------------------------------------------------------


def _design_flows():
    """The flows of three norms, traced afresh."""
    designs = [
        hwnorm.RMSNorm(dim=16, lanes=4, x="s8/4", y="s8/4", gamma="s8/6"),
        hwnorm.RMSNorm(
            dim=16, lanes=4, x="s8/4", y="s8/4", gamma="s8/6", rsqrt=hwnorm.Rsqrt(method="log")
        ),
        hwnorm.LayerNorm(dim=16, lanes=4, x="s8/4", y="s8/4", gamma="s8/6", beta="s8/4"),
    ]
    for design in designs:
        flows = design.flows
        yield from (flows.gather, flows.solve, flows.apply)
        yield from (*flows.load.values(), *flows.reduce.values())


def test_two_traces_are_printed_alike_and_names_are_distinct():
    for first, second in zip(_design_flows(), _design_flows(), strict=True):
        assert first is not second
        assert list(first.names.values()) == list(second.names.values())
        assert len(set(first.names.values())) == len(first.wires)
        for period_ns in BUDGETS_NS:
            assert first.describe(period_ns) == second.describe(period_ns)


def test_equal_names_are_numbered():
    def function(x):
        return {"y": (x + 1).named("t") + (x + 2).named("t") + (x + 3).named("t_2")}

    names = list(trace(function, x=S4).names.values())
    assert names == ["x", "const1", "t", "const3", "t_2", "add5", "const6", "t_2_2", "add8"]


def test_describe():
    def function(x, i):
        entry = Column("roots", (1, 2, -3, 4), 2)[i]
        return {"y": (x * entry).fit(Fixed.parse("s6/3"))}

    text = trace(function, "scale", x=S4, i=Fixed(0, 3)).describe(6)
    assert text.splitlines() == [
        "scale: latency 3 cycles at 6 ns",
        "wire    op      of        format          cycle",
        "x       Input             s4/0            0",
        "i       Input             u2/0            0",
        "roots   Lookup  i         s4/2 [-3..4]    1",
        "mul3    Mul     x, roots  s6/2 [-32..28]  2",
        "round4  Round   mul3      s7/3 [-64..56]  2",
        "clamp5  Clamp   round4    s6/3            2",
    ]


# -- time and cost --------------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS.values(), ids=str)
@pytest.mark.parametrize("period_ns", [1, 3, 6, 8, 1000])
def test_schedules_keep_the_budget(period_ns, target):
    budget = period_ns - target.clock_ns
    for flow in _design_flows():
        schedule = flow.schedule(period_ns, target)
        place, available = schedule.place, schedule.available
        arrival, longest = {}, 0.0
        for w in flow.wires:
            timed = [arg for arg in w.args if arg in place]
            if not timed and not isinstance(w, ops.Input):
                assert w not in place
                continue
            steps, cuts = w.steps(target, budget), (*schedule.cuts[w], 0)
            assert len(steps) == len(cuts)
            latest, ns = max(((available[a], arrival[a]) for a in timed), default=(0, 0.0))
            cycle = place[w]
            if cycle > latest:
                # Earliest: it waits only if the budget is full, and only for the next cycle.
                assert cycle == latest + 1
                assert ns > 0
                assert ns + steps[0].ns > budget
                ns = 0.0
            assert cycle >= latest
            for n, step in enumerate(steps):
                assert ns == 0 or ns + step.ns <= budget
                ns += step.ns
                longest = max(longest, ns)
                gap = step.registered if n == len(steps) - 1 else cuts[n] + step.own
                assert step.registered <= gap <= 1
                assert gap == step.registered or ns + steps[n + 1].ns > budget
                cycle, ns = (cycle + 1, 0.0) if gap else (cycle, ns)
            assert available[w] == cycle
            arrival[w] = ns
        ends = [available[w] + (arrival[w] > 0) for w in flow.outputs.values() if w in place]
        assert schedule.latency == max(ends, default=0)
        assert schedule.slowest_ns == pytest.approx(longest)


def test_more_time_never_takes_more_cycles():
    for flow in _design_flows():
        for target in TARGETS.values():
            latencies = [flow.schedule(ns, target).latency for ns in range(1, 60)]
            assert latencies == sorted(latencies, reverse=True), (flow.name, target.name)
