"""The ops that may lose something: rounding, limiting and table look-up."""

from dataclasses import dataclass
from math import ceil, log2

import numpy as np
from amaranth.hdl import Mux, unsigned
from amaranth.lib.memory import Memory

from hwnorm import bits
from hwnorm.fixed import ROUNDINGS, Fixed
from hwnorm.ops.base import UNCUT, Cost, Step, Wire


def _check_rounding(rounding):
    if rounding not in ROUNDINGS:
        raise ValueError(f"rounding must be one of {', '.join(ROUNDINGS)}, got {rounding!r}")


class Round(Wire):
    """Drop low bits, rounding; or append zeros if `frac` is finer than ``a``'s."""

    divisible = True

    def __init__(self, a, frac, rounding):
        _check_rounding(rounding)
        self.drop = a.fmt.frac - frac
        self.rounding = rounding
        ends = [self._of(a.fmt.lo), self._of(a.fmt.hi)]
        super().__init__((a,), Fixed(*(int(e) for e in ends), frac))

    @property
    def work(self):
        a, half = self.args[0].fmt, 1 << max(self.drop, 0)
        return min(a.lo - half, self.fmt.lo), max(a.hi + half, self.fmt.hi)

    @property
    def exact(self):
        """Whether there is nothing to add."""
        return self.drop <= 0 or self.rounding == "floor"

    def steps(self, target, budget_ns):
        return (Step(0.0),) if self.exact else rounding_steps(self, target, self.drop)

    def cost_on(self, target):
        if self.exact:
            return Cost()
        ties = ceil(self.drop / 3) if self.rounding == "nearest_even" else 0
        return Cost(luts=ties, adder_bits=self.fmt.width)

    def ints(self, a):
        return self._of(a)

    def _of(self, a):
        n = self.drop
        if n <= 0:
            return a << -n
        if self.rounding == "floor":
            return a >> n
        return _round_half(a, 1 << n - 1, n, self.rounding)

    def rtl(self, m, a, cut=UNCUT):
        n = self.drop
        if n <= 0:
            return a << -n
        return bits.round_off(a, 0, n, self.rounding, cut)


class ShiftRight(Wire):
    """``a * 2**-s`` rounded to `frac` fraction bits, s an unsigned wire."""

    divisible = True

    def __init__(self, a, s, frac, rounding):
        _check_rounding(rounding)
        if s.fmt.signed or s.fmt.frac:
            raise ValueError(f"a shift amount is an unsigned integer, got {s.fmt}")
        self.rounding = rounding
        # Total shift = s + base, with base >= 1 so that there is always a half to round.
        self.pad = max(0, 1 - (a.fmt.frac - frac))
        self.base = a.fmt.frac - frac + self.pad
        lo = self._of(a.fmt.lo << self.pad, (s.fmt.lo if a.fmt.lo < 0 else s.fmt.hi) + self.base)
        hi = self._of(a.fmt.hi << self.pad, (s.fmt.hi if a.fmt.hi < 0 else s.fmt.lo) + self.base)
        super().__init__((a, s), Fixed(int(lo), int(hi), frac))

    @property
    def work(self):
        a, half = self.args[0].fmt, 1 << self.args[1].fmt.hi + self.base
        return (a.lo << self.pad) - half, (a.hi << self.pad) + half

    def steps(self, target, budget_ns):
        # To round to even, what a stage shifts out is looked at for a tie.
        even = self.rounding == "nearest_even"
        stages = tuple(
            Step(max(target.mux_ns, gate_ns(target, (1 << i) + 2) if even else 0.0))
            for i in reversed(range(self.args[1].fmt.width))
        )
        if self.rounding == "floor":
            return stages
        return (*stages, *rounding_steps(self, target, self.base))

    def cost_on(self, target):
        return self._cost_of(self.fmt.width)

    def cost_among(self, readers, target):
        proven = [
            wire.fmt.width if isinstance(wire, Within) else self.fmt.width for wire in readers
        ]
        return self._cost_of(max(proven, default=self.fmt.width))

    def _cost_of(self, width):
        stages = self.args[1].fmt.width
        even = self.rounding == "nearest_even"
        # A stage is as wide as what can still reach the result.
        moved = sum(min(width + (1 << i), self.args[0].fmt.width) for i in range(stages))
        ties = (1 << stages) // 3 + 2 * stages if even else 0
        return Cost(luts=moved + ties, adder_bits=0 if self.rounding == "floor" else width)

    def ints(self, a, s):
        return self._of(a << self.pad if self.pad else a, s + self.base)

    def _of(self, a, total):
        if self.rounding == "floor":
            return a >> total
        return _round_half(a, 1 << total - 1, total, self.rounding)

    def rtl(self, m, a, s, cut=UNCUT):
        shifted, lost = bits.shift_right(m, a << self.pad, s, cut)
        if self.rounding != "floor":
            shifted, lost = cut(shifted, lost)
        return bits.round_off(shifted, lost, self.base, self.rounding, cut)


def gate_ns(target, inputs):
    """One bit of so many."""
    return target.lut_ns * max(ceil(log2(inputs) / 2), 1)


def rounding_steps(op, target, drop):
    """To look for a tie, and to add the half."""
    adder = Step(target.add_ns(op.fmt.width))
    if op.rounding == "nearest_up":
        return (adder,)
    return Step(gate_ns(target, drop + 2)), adder


def _round_half(a, half, total, rounding):
    """``a * 2**-total`` to the nearest integer; `half` is ``2**(total - 1)``."""
    kept = a + half
    if not isinstance(kept, np.ndarray):
        up = kept >> total
        tie = kept & (half + half - 1) == 0 and rounding == "nearest_even"
        return up - (tie & up)
    # A tie leaves no bit below the raised sum; then an odd result steps back. Ties are rare:
    # looking for them is cheaper than correcting every element.
    ties = None
    if rounding == "nearest_even":
        below = kept & (half + half - 1)
        if below.size and not below.min():
            ties = below == 0
    kept >>= total
    if ties is not None:
        kept[ties] -= kept[ties] & 1
    return kept


def _leaves(a, lo, hi):
    """Whether any element lies outside [lo, hi]; few do, so this is asked first."""
    return np.size(a) and (np.max(a) > hi or np.min(a) < lo)


class Clamp(Wire):
    """``a`` limited to [lo, hi]: saturation."""

    def __init__(self, a, lo, hi):
        if lo > hi:
            raise ValueError(f"lo must not exceed hi, got lo={lo} and hi={hi}")
        fmt = a.fmt
        super().__init__((a,), Fixed(min(max(lo, fmt.lo), hi), max(min(hi, fmt.hi), lo), fmt.frac))
        self.lo, self.hi = lo, hi

    @property
    def work(self):
        a = self.args[0].fmt
        return min(a.lo, self.lo), max(a.hi, self.hi)

    def steps(self, target, budget_ns):
        return (Step(2.5 * target.lut_ns),)

    def cost_on(self, target):
        return Cost(luts=self.fmt.width + max(self.args[0].fmt.width - self.fmt.width, 0))

    def ints(self, a):
        return np.clip(a, self.lo, self.hi) if _leaves(a, self.lo, self.hi) else a

    def rtl(self, m, a):
        under, over = bits.outside(a, self.lo, self.hi)
        return Mux(over, self.hi, Mux(under, self.lo, a))


class Outside(Wire):
    """One bit: ``a`` lies outside [lo, hi], so that a clamp would change it."""

    def __init__(self, a, lo, hi):
        super().__init__((a,), Fixed(0, 1, 0))
        self.lo, self.hi = lo, hi

    @property
    def work(self):
        a = self.args[0].fmt
        return min(a.lo, self.lo, 0), max(a.hi, self.hi, 1)

    def steps(self, target, budget_ns):
        return (Step(2 * target.lut_ns),)

    def cost_on(self, target):
        return Cost(luts=1)

    def ints(self, a):
        return (a < self.lo) | (a > self.hi) if _leaves(a, self.lo, self.hi) else 0

    def rtl(self, m, a):
        under, over = bits.outside(a, self.lo, self.hi)
        return under | over


class Wrap(Wire):
    """The low bits of ``a``, read as a word of `fmt`."""

    def __init__(self, a, fmt):
        if fmt != fmt.word:
            raise ValueError(f"a value wraps into a whole word, got {fmt}")
        super().__init__((a,), fmt)

    @property
    def work(self):
        a = self.args[0].fmt
        return min(a.lo + self.fmt.lo, a.lo - self.fmt.lo), max(
            a.hi - self.fmt.lo, self.fmt.hi - self.fmt.lo
        )

    def ints(self, a):
        return ((a - self.fmt.lo) & (self.fmt.hi - self.fmt.lo)) + self.fmt.lo

    def rtl(self, m, a):
        low = bits.extend(a, self.fmt.width)[: self.fmt.width]
        return low.as_signed() if self.fmt.signed else low


class Within(Wire):
    """``a``, of which a theorem says that it lies in [lo, hi]; checked runs verify it."""

    moves = True

    def __init__(self, a, lo, hi):
        super().__init__((a,), Fixed(lo, hi, a.fmt.frac))

    @property
    def work(self):
        return self.args[0].fmt.lo, self.args[0].fmt.hi

    def ints(self, a):
        return a

    def rtl(self, m, a):
        return a


@dataclass(frozen=True)
class Column:
    """The contents of a look-up table: integers in units of ``2**-frac``."""

    name: str
    values: tuple
    frac: int

    @property
    def fmt(self):
        """The interval of the entries."""
        return Fixed(min(self.values), max(self.values), self.frac)

    def __getitem__(self, index):
        return Lookup(self, index).named(self.name)


class Lookup(Wire):
    """The entry of a table that an unsigned wire points at. Registered, as block RAM is."""

    divisible = True

    def __init__(self, column, index):
        if index.fmt.signed or index.fmt.frac:
            raise ValueError(f"a table index is an unsigned integer, got {index.fmt}")
        if index.fmt.hi >= len(column.values):
            raise ValueError(
                f"the index of table {column.name} must stay below {len(column.values)}, "
                f"got {index.fmt}"
            )
        super().__init__((index,), column.fmt)
        self.column = column

    @property
    def work(self):
        return min(self.fmt.lo, 0), max(self.fmt.hi, self.args[0].fmt.hi)

    def steps(self, target, budget_ns):
        return self.steps_in(target, budget_ns, len(self.column.values), self.fmt.width)

    @staticmethod
    def steps_in(target, budget_ns, words, bits_):
        """The steps of a look-up in a memory of some shape, where other columns may lie too."""
        if not target.read_ns:
            return (Step(target.memory_ns, registered=True, own=True),)
        if not target.rom_in_block(words, bits_):
            levels = target.rom_levels(words)
            return (Step(target.lut_ns * levels, registered=True, own=True),)
        # A block RAM's output register is used unless there is time for two levels behind it.
        held = target.read_ns + 2 * target.lut_ns > budget_ns
        return (
            Step(target.memory_ns, registered=True, own=True),
            Step(target.held_ns if held else target.read_ns, registered=held),
        )

    def cost_on(self, target):
        words, width = len(self.column.values), self.fmt.width
        if target.rom_in_block(words, width):
            return Cost(rom_bits=words * width, blocks=target.blocks(words, width))
        return Cost(rom_bits=words * width, luts=ceil(words / 16) * width)

    def ints(self, index):
        index = np.asarray(index)
        return np.array(self.column.values, dtype=index.dtype)[index.astype(np.int64)]

    def rtl(self, m, index, cut=UNCUT):
        entry = cut.read(m, self, index)
        return cut(entry)[0] if cut.pieces == 2 else entry


def read_columns(m, columns, index, enable=1):
    """The entries that one index points at, of columns side by side in one memory.

    They come a cycle behind the index, and stay while `enable` is low.
    """
    depth, at = max(len(column.values) for column in columns), 0
    words, places = [0] * depth, []
    for column in columns:
        width = column.fmt.width
        for n, value in enumerate(column.values):
            words[n] |= (value & (1 << width) - 1) << at
        places.append(slice(at, at + width))
        at += width
    memory = Memory(shape=unsigned(at), depth=depth, init=words)
    m.submodules += memory
    port = memory.read_port()
    m.d.comb += [port.addr.eq(index), port.en.eq(enable)]
    entries = [port.data[place] for place in places]
    return [
        entry.as_signed() if column.fmt.signed else entry
        for column, entry in zip(columns, entries, strict=True)
    ]
