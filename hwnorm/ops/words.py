"""Ops on the bits of unsigned words: slices, joins, leading zeros."""

import numpy as np
from amaranth.hdl import Cat as Concat

from hwnorm import bits
from hwnorm.fixed import Fixed
from hwnorm.ops.arithmetic import Const
from hwnorm.ops.base import UNCUT, Cost, Step, Wire

#: Integers of so many bits are exact in float64.
FLOAT_BITS = 53


def leading_zeros(a, width=None):
    """How many zeros stand above the highest one of `a` in a word of `width` bits."""
    return LeadingZeros(a, a.fmt.width if width is None else width)


def take_bits(a, lo, hi):
    """Bits [lo, hi) of an unsigned wire, with zeros where it is too narrow to have them."""
    hi = min(hi, a.fmt.width)
    return a[lo:hi] if lo < hi else Const(0)


class Slice(Wire):
    """Bits [lo, hi) of a wire that is never negative, as an unsigned integer."""

    def __init__(self, a, lo, hi):
        if a.fmt.signed:
            raise ValueError(f"bits are taken of unsigned wires, got {a.fmt}")
        if not 0 <= lo < hi <= a.fmt.width:
            raise ValueError(f"bits must lie in 0..{a.fmt.width} and not be empty, got {lo}:{hi}")
        self.lo, self.hi = lo, hi
        top = (1 << hi - lo) - 1
        span = (a.fmt.lo >> lo, a.fmt.hi >> lo) if hi == a.fmt.width else (0, top)
        super().__init__((a,), Fixed(*span, 0))

    @property
    def work(self):
        return 0, self.args[0].fmt.hi

    def ints(self, a):
        return (a >> self.lo) & ((1 << self.hi - self.lo) - 1)

    def rtl(self, m, a):
        return a[self.lo : self.hi]


class Cat(Wire):
    """The bits of ``high`` above those of ``low``, both unsigned integers."""

    def __init__(self, high, low):
        if high.fmt.signed or low.fmt.signed:
            raise ValueError(f"bits are joined of unsigned wires, got {high.fmt} and {low.fmt}")
        self.shift = low.fmt.width
        super().__init__(
            (high, low),
            Fixed(
                (high.fmt.lo << self.shift) + low.fmt.lo,
                (high.fmt.hi << self.shift) + low.fmt.hi,
                0,
            ),
        )

    def ints(self, high, low):
        return (high << self.shift) + low

    def rtl(self, m, high, low):
        return Concat(bits.extend(low, self.shift), high)


class LeadingZeros(Wire):
    """``width - bit_length(a)``; `width` for a = 0."""

    divisible = True

    def __init__(self, a, width):
        if a.fmt.signed:
            raise ValueError(f"leading zeros are counted of unsigned wires, got {a.fmt}")
        if width < a.fmt.width:
            raise ValueError(f"width must be at least {a.fmt.width}, got {width}")
        self.word_bits = width
        super().__init__(
            (a,), Fixed(width - a.fmt.hi.bit_length(), width - a.fmt.lo.bit_length(), 0)
        )

    @property
    def work(self):
        return 0, max(self.args[0].fmt.hi, self.word_bits)

    def steps(self, target, budget_ns):
        return (Step(target.mux_ns),) * self.word_bits.bit_length()

    def held_bits(self, steps, target):
        # Each level leaves half of the word, and a bit of the count.
        return tuple((self.word_bits >> n) + n for n in range(1, len(steps)))

    def cost_on(self, target):
        return Cost(luts=2 * self.word_bits)

    def ints(self, a):
        if self.args[0].fmt.width <= FLOAT_BITS:
            # float64 holds such integers exactly, and its exponent counts their bits.
            return self.word_bits - np.frexp(a)[1]
        length, step = a * 0, 1 << max(self.args[0].fmt.width - 1, 1).bit_length() - 1
        while step:
            tall = (a >> step) > 0
            length = length + step * tall
            a = np.where(tall, a >> step, a)
            step >>= 1
        return self.word_bits - length - (a > 0)

    def rtl(self, m, a, cut=UNCUT):
        return bits.count_leading_zeros(m, bits.extend(a, self.word_bits), self.word_bits, cut)


class Normalise(Wire):
    """``a`` shifted left by its own leading zeros, so that its highest one stands on top."""

    divisible = True

    def __init__(self, a, zeros):
        if not isinstance(zeros, LeadingZeros) or zeros.args[0] is not a:
            raise ValueError("normalise needs the leading zeros of the same wire")
        width = self.word_bits = zeros.word_bits
        super().__init__((a, zeros), Fixed(1 << width - 1 if a.fmt.lo else 0, (1 << width) - 1, 0))

    def steps(self, target, budget_ns):
        return (Step(target.mux_ns),) * self.args[1].fmt.width

    def cost_on(self, target):
        return self._cost_of_top(self.word_bits)

    def cost_among(self, readers, target):
        lows = [wire.lo if isinstance(wire, Slice) else 0 for wire in readers]
        return self._cost_of_top(self.word_bits - min(lows, default=0))

    def _cost_of_top(self, used_bits):
        # Lower bits are built as far as they can be shifted up to those that are used.
        stages = range(self.args[1].fmt.width)
        return Cost(luts=sum(min(used_bits + (1 << i) - 1, self.word_bits) for i in stages))

    def ints(self, a, zeros):
        return a << zeros

    def rtl_in_turns(self, m, a, load, strides, name):
        """Itself and its leading zeros, from a register that is shifted cycle by cycle.

        See `hwnorm.bits.normalise_in_turns`; both are there ``turns(strides)`` cycles behind the
        one after `load`.
        """
        return bits.normalise_in_turns(m, a, load, self.word_bits, strides, name)

    def turns(self, strides):
        """How many cycles that takes; None if ``a`` can be zero, which has no highest one."""
        zeros = self.args[1]
        return bits.turns(zeros.fmt.hi, strides) if self.args[0].fmt.lo > 0 else None

    def rtl(self, m, a, zeros, cut=UNCUT):
        return bits.shift_left(m, bits.extend(a, self.word_bits), zeros, self.word_bits, cut)
