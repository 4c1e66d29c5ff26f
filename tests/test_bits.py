"""Building blocks of the hardware, exhaustively at small widths."""

from itertools import product

import numpy as np
import pytest
from amaranth.hdl import Cat, Const, Module, Signal, Value, signed, unsigned
from amaranth.sim import Simulator

from hwnorm import bits
from hwnorm.fixed import ROUNDINGS, Fixed
from hwnorm.flow import trace
from hwnorm.ops import leading_zeros


def evaluate(build, *shapes):
    """All values of a combinational function: operand tuple to result.

    `build` takes a module and a signal a shape, and returns an amaranth value.
    """
    m = Module()
    operands = [Signal(shape, name=f"a{n}") for n, shape in enumerate(shapes)]
    value = Value.cast(build(m, *operands))
    result = Signal(value.shape())
    m.d.comb += result.eq(value)
    table = {}

    async def bench(ctx):
        for code in range(1 << sum(map(len, operands))):
            ctx.set(Cat(*operands), code)
            await ctx.delay(1e-9)
            table[tuple(ctx.get(signal) for signal in operands)] = ctx.get(result)

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()
    return table


@pytest.mark.parametrize(
    ("fmt", "shape"),
    [
        (Fixed(0, 8), unsigned(4)),
        (Fixed(-8, 7), signed(4)),
        (Fixed(-9, 0), signed(5)),
        (Fixed(-8, -8), signed(4)),
        (Fixed(0, 0), unsigned(1)),
    ],
)
def test_shape_is_that_of_the_smallest_word(fmt, shape):
    assert bits.shape(fmt) == shape


@pytest.mark.parametrize("width", [1, 3, 4, 9])
@pytest.mark.parametrize("shape", [signed(3), unsigned(3)])
def test_extend_keeps_the_value_and_never_cuts(shape, width):
    extended = bits.extend(Signal(shape), width)
    assert (len(extended), extended.shape().signed) == (max(width, 3), shape.signed)
    for (a,), got in evaluate(lambda m, a: bits.extend(a, width), shape).items():
        assert got == a


@pytest.mark.parametrize("count", range(1, 18))
def test_tree_is_of_logarithmic_depth_and_keeps_order(count):
    def combine(a, b):
        return a[0] + b[0], max(a[1], b[1]) + 1

    leaves = [([n], 0) for n in range(count)]
    values, depth = bits.tree(combine, leaves)
    assert values == list(range(count))
    assert depth == (count - 1).bit_length()
    assert leaves == [([n], 0) for n in range(count)]


def test_signed_digits_are_the_fewest():
    # What k powers of two, added or subtracted, can make.
    powers = [sign << n if sign > 0 else -(1 << n) for n in range(11) for sign in (1, -1)]
    fewest, sums = {}, {0}
    for count in range(1, 5):
        sums = {a + b for a, b in product(sums, powers)}
        for value in sums:
            fewest.setdefault(value, count)
    for value in range(-300, 301):
        digits = bits.signed_digits(value)
        if not value or value not in fewest:
            assert digits is None, value
            continue
        assert len(digits) == fewest[value], value
        assert sum(1 << n if plus else -(1 << n) for n, plus in digits) == value
        assert bits.signed_digits(value, most=fewest[value] - 1) is None


@pytest.mark.parametrize("shape", [signed(5), unsigned(5)])
def test_outside_tells_the_side(shape):
    limits = [(-4, 3), (-16, 15), (0, 7), (2, 5), (-99, 99), (-1, 0), (-7, -3), (40, 50), (5, 5)]

    def build(m, a):
        return Cat(*(Cat(*bits.outside(a, lo, hi)) for lo, hi in limits))

    for (a,), got in evaluate(build, shape).items():
        want = "".join(f"{a > hi:d}{a < lo:d}" for lo, hi in reversed(limits))
        assert got == int(want, 2), a


@pytest.mark.parametrize(("bits_of_amount", "width"), [(1, 5), (3, 4), (3, 9), (4, 11)])
def test_shift_left_drops_what_leaves_the_word(bits_of_amount, width):
    def build(m, a, n):
        return bits.shift_left(m, a, n, width)

    for (a, n), got in evaluate(build, unsigned(4), unsigned(bits_of_amount)).items():
        assert got == a * 2**n % 2**width


@pytest.mark.parametrize("shape", [signed(5), unsigned(5), signed(1)])
@pytest.mark.parametrize("bits_of_amount", [1, 3, 4])
def test_shift_right_tells_whether_a_one_was_lost(shape, bits_of_amount):
    def build(m, a, n):
        kept, lost = bits.shift_right(m, a, n)
        return Cat(lost, kept)

    for (a, n), got in evaluate(build, shape, unsigned(bits_of_amount)).items():
        assert got & 1 == (a % 2**n != 0), (a, n)
        assert got >> 1 == a // 2**n % 2**shape.width, (a, n)


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("shape", [signed(6), unsigned(6), signed(2)])
@pytest.mark.parametrize("drop", [1, 2, 4, 7])
def test_round_off_minds_what_was_lost_below(shape, drop, rounding):
    def build(m, a, lost):
        return bits.round_off(a, lost, drop, rounding)

    for (a, lost), got in evaluate(build, shape, unsigned(1)).items():
        # A lost one is less than half of the lowest bit: a quarter stands for all of them.
        quarters, unit = 4 * a + lost, 4 * 2**drop
        below = quarters % unit
        up = below * 2 > unit or (
            below * 2 == unit
            and (rounding == "nearest_up" or (rounding == "nearest_even" and quarters // unit % 2))
        )
        assert got == quarters // unit + (up and rounding != "floor"), (a, lost)


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_round_off_takes_a_plain_integer_for_lost(rounding):
    for (a,), got in evaluate(lambda m, a: bits.round_off(a, 0, 1, rounding), signed(4)).items():
        assert got == {"nearest_even": round(a / 2), "nearest_up": (a + 1) // 2}.get(
            rounding, a // 2
        )


@pytest.mark.parametrize("width", range(1, 11))
def test_leading_zeros(width):
    def build(m, a):
        return bits.count_leading_zeros(m, a, width)

    for (a,), got in evaluate(build, unsigned(width)).items():
        assert got == width - len(bin(a)[2:].lstrip("0"))


def test_constants_are_taken_where_signals_are():
    def build(m, a):
        shifted, lost = bits.shift_right(m, a, Const(2, 2))
        return Cat(bits.extend(Const(-1, signed(1)), 2), bits.round_off(shifted, lost, 1, "floor"))

    for (a,), got in evaluate(build, unsigned(5)).items():
        assert got == 3 + 4 * (a >> 3)


@pytest.mark.parametrize("width", [1, 2, 31, 32, 52, 53, 54, 55, 62, 63, 70])
def test_leading_zeros_of_wide_words(width):
    # Beyond 53 bits float64, whose exponent counts them, would round up to the next octave.
    flow = trace(lambda x: {"y": leading_zeros(x)}, x=Fixed(0, 2**width - 1))
    values = [0, *(value for k in range(1, width + 1) for value in (2 ** (k - 1), 2**k - 1))]
    found = flow.run(x=np.array(values, dtype=np.int64 if width < 63 else object))["y"]
    assert [int(zeros) for zeros in found] == [width - value.bit_length() for value in values]
