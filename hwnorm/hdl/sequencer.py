"""A flow that is asked once a row: one multiplier and one table port, used in turns."""

from functools import reduce
from operator import or_
from typing import ClassVar

from amaranth.hdl import Mux, Signal, Value, signed
from amaranth.lib.wiring import In, Out

from hwnorm.bits import extend
from hwnorm.hdl.pipeline import Pipeline, Registers
from hwnorm.ops import read_columns
from hwnorm.targets import GENERIC


class Sequencer(Pipeline):
    """A flow whose inputs come now and then, on hardware that is shared over cycles.

    A mark goes along with the inputs, a cycle a register, and is the only control: it says whose
    turn the multiplier is, when a register is to keep its value, and when the table is read.
    What an op does is the op's, as in a `Pipeline`.

    Parameters
    ----------
    flow : hwnorm.flow.Flow
    period_ns : float
    target : Target
    interval : int
        Cycles from `mark_in` to the next one, at least; nothing else is checked.
    strides : tuple of int
        See `hwnorm.sharing.Sharing`.

    Members
    -------
    Those of `Pipeline`, and

    mark_in : In(1)
        The inputs are there.
    mark_out : Out(1)
        The outputs are there, `latency` cycles later.
    """

    marks: ClassVar[dict] = {"mark_in": In(1), "mark_out": Out(1)}

    def __init__(self, flow, period_ns, interval, target=GENERIC, strides=()):
        super().__init__(flow, period_ns, target=target, interval=interval, strides=strides)

    def elaborate(self, platform):
        self._line, self._turns, self._entries, self._words = [self.mark_in], [], {}, {}
        m = super().elaborate(platform)
        m.d.comb += self.mark_out.eq(self.mark(m, self.latency))
        if self._turns:
            self._multiplier(m)
        return m

    def mark(self, m, cycle):
        """The mark in one of its cycles."""
        while len(self._line) <= cycle:
            later = Signal(name=f"mark_c{len(self._line)}")
            m.d.sync += later.eq(self._line[-1])
            self._line.append(later)
        return self._line[cycle]

    def _keep(self, m, register, value, cycle):
        with m.If(self.mark(m, cycle)):
            m.d.sync += register.eq(value)

    def _value(self, m, wire, name, args):
        sharing = self.schedule.sharing
        if wire in sharing.normalised:
            return self._normalise(m, sharing.normalised[wire], args[0])[wire]
        if not wire.divisible:
            return wire.rtl(m, *args)
        return wire.rtl(m, *args, cut=Turns(self, m, wire, name))

    def _normalise(self, m, wire, word):
        """The shift register of a word, with the word and its zeros."""
        if wire not in self._words:
            load = self.mark(m, self.schedule.place[wire])
            made = wire.rtl_in_turns(
                m, word, load, self.schedule.sharing.strides, self.flow.names[wire]
            )
            self._words[wire] = dict(zip((wire, wire.args[1]), made, strict=True))
        return self._words[wire]

    def entry(self, m, wire, index):
        """The entry of a table, from the memory that holds all tables of that index."""
        if wire not in self._entries:
            group = self.schedule.sharing.tables[wire]
            read = self.mark(m, self.schedule.place[wire])
            entries = read_columns(m, [other.column for other in group], index, read)
            self._entries |= dict(zip(group, entries, strict=True))
        return self._entries[wire]

    def product(self, m, cycle, pair):
        """Have a turn at the multiplier; returns the product, `block_cycles` later."""
        a, b = (Value.cast(factor) for factor in pair)
        product = Signal((a * b).shape(), name=f"product_c{cycle}")
        self._turns.append((cycle, a, b, product))
        return product

    def _multiplier(self, m):
        """The block, behind multiplexers and with its registers."""
        factors = []
        for n in (1, 2):
            values = [turn[n] for turn in self._turns]
            width = max(len(v) + (not v.shape().signed) for v in values)
            factor = Signal(signed(width), name=f"factor_{'ab'[n - 1]}")
            m.d.comb += factor.eq(
                self._choose(m, [(turn[0], extend(turn[n], width)) for turn in self._turns])
            )
            if self.schedule.sharing.split:
                kept = Signal(signed(width), name=f"{factor.name}_kept", reset_less=True)
                m.d.sync += kept.eq(factor)
                factor = kept
            factors.append(factor)
        product = Signal(signed(sum(map(len, factors))), name="product", reset_less=True)
        m.d.sync += product.eq(factors[0] * factors[1])
        for *_, part in self._turns:
            m.d.comb += part.eq(product)

    def _choose(self, m, turns):
        """What belongs to the mark's cycle; anything in other cycles."""
        if len(turns) == 1:
            return turns[0][1]
        if len(turns) == 2:
            return Mux(self.mark(m, turns[0][0]), turns[0][1], turns[1][1])
        return reduce(or_, (Mux(self.mark(m, cycle), value, 0) for cycle, value in turns))


class Turns(Registers):
    """Cuts as `Registers`, and leads products and tables to what is shared."""

    alone = False

    def __init__(self, sequencer, m, wire, name):
        schedule = sequencer.schedule
        super().__init__(m, schedule.cuts[wire], name, schedule.target)
        self.sequencer, self.wire = sequencer, wire
        self.alone = wire not in schedule.sharing.products

    def multiply(self, pairs):
        sharing = self.sequencer.schedule.sharing
        if self.alone:
            return super().multiply(pairs)
        cycle, products = sharing.slots[self.wire], []
        for n, pair in enumerate(pairs):
            product = self.sequencer.product(self.m, cycle + n, pair)
            if n < len(pairs) - 1:
                # The later ones follow; this one waits for them.
                kept = Signal(product.shape(), name=f"{self.name}_p{n}", reset_less=True)
                self.sequencer._keep(self.m, kept, product, cycle + n + sharing.block_cycles)
                product = kept
            products.append(product)
        return products

    def read(self, m, lookup, index):
        return self.sequencer.entry(m, lookup, index)
