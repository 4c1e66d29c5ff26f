"""Exact arithmetic: sums, products, comparisons, constants."""

from math import ceil, log2

import numpy as np
from amaranth.hdl import Mux

from hwnorm import bits
from hwnorm.fixed import Fixed
from hwnorm.ops.base import UNCUT, Cost, Step, Wire
from hwnorm.ops.multiplier import Tiling


def wire(value):
    """A wire as it is, an integer as a constant."""
    if isinstance(value, Wire):
        return value
    if isinstance(value, (int, np.integer)):
        return Const(int(value))
    raise TypeError(f"a wire combines with wires and integers, got {value!r}; see const()")


def const(value, frac):
    """A real constant, rounded to the nearest ``2**-frac``.

    Parameters
    ----------
    value : float or fractions.Fraction
    frac : int
        Fraction bits of the result.
    """
    return Const(round(value * 2**frac), frac)


def select(condition, yes, no):
    """``yes`` where `condition` (one bit) holds, else ``no``; a plain 0 has any grid."""
    yes, no = wire(yes), wire(no)
    if (no.fmt.lo, no.fmt.hi) == (0, 0):
        no = const(0, yes.fmt.frac)
    return Select(condition, yes, no)


def maximum(a, b):
    """The larger of two wires."""
    return Max(wire(a), wire(b))


class Input(Wire):
    """A named input of a flow."""

    def __init__(self, name, fmt):
        super().__init__((), fmt)
        self.name = name


class Const(Wire):
    """A constant ``value * 2**-frac``."""

    def __init__(self, value, frac=0):
        super().__init__((), Fixed(value, value, frac))

    def ints(self):
        return self.fmt.lo


class _Aligned(Wire):
    """An op whose operands are first brought, exactly, to the finer grid of the two."""

    def __init__(self, args, aligned, fmt_of):
        frac = max(a.fmt.frac for a in aligned)
        self.ups = tuple(frac - a.fmt.frac if a in aligned else 0 for a in args)
        spans = [(a.fmt.lo << frac - a.fmt.frac, a.fmt.hi << frac - a.fmt.frac) for a in aligned]
        lo, hi = fmt_of(*spans)
        self.reach = min(lo, *(s[0] for s in spans)), max(hi, *(s[1] for s in spans))
        super().__init__(args, Fixed(lo, hi, frac))

    @property
    def work(self):
        return self.reach

    def aligned(self, values):
        """The operands, shifted left to the common grid (integers and hardware alike)."""
        return [v << up if up else v for v, up in zip(values, self.ups, strict=True)]


class _Carry(_Aligned):
    """An op that is one adder, or several behind one another if the budget is short."""

    divisible = True

    def steps(self, target, budget_ns):
        width = self.fmt.width
        pieces = 1
        if target.add_ns(width) > budget_ns:
            pieces = ceil(width / target.piece_bits(budget_ns))
        return (Step(target.add_ns(ceil(width / pieces))),) * pieces

    def cost_on(self, target):
        return Cost(adder_bits=self.fmt.width)


class Add(_Carry):
    """``a + b``."""

    def __init__(self, a, b):
        super().__init__((a, b), (a, b), lambda p, q: (p[0] + q[0], p[1] + q[1]))

    def ints(self, a, b):
        a, b = self.aligned((a, b))
        return a + b

    def rtl(self, m, a, b, cut=UNCUT):
        a, b = self.aligned((a, b))
        return a + b if cut.pieces == 1 else bits.add_in_pieces(a, b, 0, self.fmt, cut)


class Sub(_Carry):
    """``a - b``."""

    def __init__(self, a, b):
        super().__init__((a, b), (a, b), lambda p, q: (p[0] - q[1], p[1] - q[0]))

    def ints(self, a, b):
        a, b = self.aligned((a, b))
        return a - b

    def rtl(self, m, a, b, cut=UNCUT):
        a, b = self.aligned((a, b))
        if cut.pieces == 1:
            return a - b
        b = ~bits.extend(b, self.fmt.width)
        return bits.add_in_pieces(a, b, 1, self.fmt, cut)


class Max(_Aligned):
    """The larger of ``a`` and ``b``."""

    def __init__(self, a, b):
        super().__init__((a, b), (a, b), lambda p, q: (max(p[0], q[0]), max(p[1], q[1])))

    def steps(self, target, budget_ns):
        return (Step(target.add_ns(self.fmt.width) + target.lut_ns),)

    def cost_on(self, target):
        return Cost(luts=self.fmt.width, adder_bits=self.fmt.width)

    def ints(self, a, b):
        return np.maximum(*self.aligned((a, b)))

    def rtl(self, m, a, b):
        a, b = self.aligned((a, b))
        return Mux(a < b, b, a)


class Less(_Aligned):
    """One bit: ``a < b``."""

    def __init__(self, a, b):
        super().__init__((a, b), (a, b), lambda p, q: (int(p[1] < q[0]), int(p[0] < q[1])))
        self.fmt = Fixed(self.fmt.lo, self.fmt.hi, 0)

    def steps(self, target, budget_ns):
        return (Step(target.add_ns(max(a.fmt.width for a in self.args))),)

    def cost_on(self, target):
        return Cost(adder_bits=max(a.fmt.width for a in self.args))

    def ints(self, a, b):
        a, b = self.aligned((a, b))
        return a < b

    def rtl(self, m, a, b):
        a, b = self.aligned((a, b))
        return a < b


class Select(_Aligned):
    """``a`` where the one-bit ``condition`` holds, else ``b``."""

    def __init__(self, condition, a, b):
        if (condition.fmt.width, condition.fmt.signed, condition.fmt.frac) != (1, False, 0):
            raise ValueError(f"the condition of select must be one bit, got {condition.fmt}")
        super().__init__((condition, a, b), (a, b), lambda p, q: (min(p[0], q[0]), max(p[1], q[1])))

    def steps(self, target, budget_ns):
        return (Step(target.lut_ns),)

    def cost_on(self, target):
        # With a constant, half of it disappears in the logic before or behind.
        fixed = any(isinstance(a, Const) for a in self.args[1:])
        return Cost(luts=self.fmt.width // (2 if fixed else 1))

    def ints(self, condition, a, b):
        condition, a, b = self.aligned((condition, a, b))
        return np.where(condition != 0, a, b)

    def rtl(self, m, condition, a, b):
        condition, a, b = self.aligned((condition, a, b))
        return Mux(condition, a, b)


class Abs(Wire):
    """``|a|``."""

    def __init__(self, a):
        lo = max(a.fmt.lo, -a.fmt.hi, 0)
        super().__init__((a,), Fixed(lo, max(-a.fmt.lo, a.fmt.hi), a.fmt.frac))

    @property
    def work(self):
        return min(self.fmt.lo, self.args[0].fmt.lo), self.fmt.hi

    def steps(self, target, budget_ns):
        return (Step(target.add_ns(self.fmt.width) + target.lut_ns),)

    def cost_on(self, target):
        return Cost(luts=self.fmt.width, adder_bits=self.fmt.width)

    def ints(self, a):
        return abs(a)

    def rtl(self, m, a):
        return Mux(a < 0, -a, a)


class Mul(Wire):
    """``a * b``, exact. Registered behind the multiplier, unless ``b`` is a constant."""

    divisible = True

    def __init__(self, a, b):
        if isinstance(a, Const):
            a, b = b, a
        ends = [p * q for p in (a.fmt.lo, a.fmt.hi) for q in (b.fmt.lo, b.fmt.hi)]
        square = a is b
        lo = 0 if square and a.fmt.lo <= 0 <= a.fmt.hi else min(ends[::3] if square else ends)
        super().__init__((a, b), Fixed(lo, max(ends), a.fmt.frac + b.fmt.frac))
        #: The constant's signed powers of two, if it has few enough to shift and add.
        self.digits = bits.signed_digits(b.fmt.lo) if isinstance(b, Const) else None

    @property
    def work(self):
        every = [self.fmt, *(a.fmt for a in self.args)]
        return min(f.lo for f in every), max(f.hi for f in every)

    def steps(self, target, budget_ns):
        if self.digits is None:
            return Tiling.of(*self.args, target).steps(target, budget_ns)
        levels = ceil(log2(max(len(self.digits), 1)))
        return (Step(target.add_ns(self.fmt.width)),) * levels or (Step(0.0),)

    def held_bits(self, steps, target):
        if self.digits is not None:
            return super().held_bits(steps, target)
        return Tiling.of(*self.args, target).held_bits(len(steps))

    def cost_on(self, target):
        if self.digits is not None:
            return Cost(adder_bits=max(len(self.digits) - 1, 0) * self.fmt.width)
        return Tiling.of(*self.args, target).cost

    def products(self, target):
        return (
            0 if self.digits is not None else len(Tiling.of(*self.args, target, alone=False).pairs)
        )

    def shared_steps(self, target):
        """The steps behind the products of a shared block."""
        return Tiling.of(*self.args, target, alone=False).shared_steps(target)

    def ints(self, a, b):
        return a * b

    def rtl(self, m, a, b, cut=UNCUT):
        if self.digits is None:
            return Tiling.of(*self.args, cut.target, cut.alone).rtl(a, b, cut)[0]
        terms = [a << n if plus else -(a << n) for n, plus in self.digits]
        return bits.sum_in_levels(terms, cut)[0]


class MulHidden(Wire):
    """``a * (b + 2**hidden)``: a multiplier for b, and an adder behind its register.

    The sum is one or two bits wider than b, and would need a second multiplier.

    Parameters
    ----------
    a, b : Wire
    hidden : int
        Exponent of the hidden one, in units of the lsb of b.
    """

    divisible = True

    def __init__(self, a, b, hidden):
        self.hidden = hidden
        full = b.fmt.lo + (1 << hidden), b.fmt.hi + (1 << hidden)
        ends = [p * q for p in (a.fmt.lo, a.fmt.hi) for q in full]
        super().__init__((a, b), Fixed(min(ends), max(ends), a.fmt.frac + b.fmt.frac))

    @property
    def work(self):
        every = [self.fmt, *(a.fmt for a in self.args)]
        top = self.args[1].fmt.hi + (1 << self.hidden)
        return min(f.lo for f in every), max(top, *(f.hi for f in every))

    def steps(self, target, budget_ns):
        adder = Step(target.add_ns(self.fmt.width - self.hidden))
        return (*Tiling.of(*self.args, target).steps(target, budget_ns), adder)

    def held_bits(self, steps, target):
        # The first factor goes along to the adder.
        tiling, also = Tiling.of(*self.args, target), self.args[0].fmt.width
        product = self.fmt.width if tiling.levels else 0
        return tuple(n + also for n in (*tiling.held_bits(len(steps) - 1), product))

    def cost_on(self, target):
        adder = Cost(adder_bits=self.fmt.width - self.hidden)
        return Tiling.of(*self.args, target).cost + adder

    def ints(self, a, b):
        return a * (b + (1 << self.hidden))

    def rtl(self, m, a, b, cut=UNCUT):
        product, held = Tiling.of(*self.args, cut.target).rtl(a, b, cut, held=[a], after=1)
        product, held = cut(product, *held)
        return product + (held << self.hidden)


class Scale(Wire):
    """``a * 2**n`` for a constant n: only the binary point moves, nothing is built."""

    moves = True

    def __init__(self, a, n):
        super().__init__((a,), Fixed(a.fmt.lo, a.fmt.hi, a.fmt.frac - n))

    def ints(self, a):
        return a

    def rtl(self, m, a):
        return a
