"""The exact reduction of a row's terms, over lanes and then over beats."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hwnorm.bits import extend, shape
from hwnorm.hdl.pipeline import Pipeline
from hwnorm.ops import Add, Input, Max
from hwnorm.targets import GENERIC


class Reducer(wiring.Component):
    """One total of every row.

    Parameters
    ----------
    flow : hwnorm.flow.Flow
        A beat's terms to one.
    total : hwnorm.Fixed
        Interval of the total.
    maximum : bool
        Whether the total is a maximum, not a sum.
    period_ns : float
    latency : int
        Cycles from terms to the accumulator's input; at least the flow's own.
    target : Target
    pieces, lag : int
        In how many pieces the accumulator adds, each a cycle behind the one below it; and the
        cycles that the total takes beyond the first, at least ``pieces - 1``.

    Members
    -------
    lane0, lane1 ... : In, the terms of a beat
    accept, first : In(1)
        Of the beat that reaches the accumulator now, `latency` cycles behind its terms:
        whether it counts, and whether it opens a row.
    total : Out
        ``1 + lag`` cycles behind the last beat.
    """

    def __init__(self, flow, total, maximum, period_ns, latency, target=GENERIC, pieces=1, lag=0):
        self.tree = Pipeline(flow, period_ns, target=target)
        self.fmt = total
        self.maximum = maximum
        self.pieces, self.lag = pieces, lag
        self.extra = latency - self.tree.latency
        super().__init__(
            {name: In(shape(wire.fmt)) for name, wire in flow.inputs.items()}
            | {"accept": In(1), "first": In(1), "total": Out(shape(total))}
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.tree = self.tree
        for name in self.tree.flow.inputs:
            m.d.comb += self.tree.input(name).eq(getattr(self, name))
        term = self.tree.output("total")
        term = _later(m, term, self.extra, "term")
        if self.pieces > 1:
            total, cycles = self._add_in_pieces(m, term), self.lag - self.pieces + 1
            m.d.comb += self.total.eq(_later(m, total, cycles, "total"))
            return m
        accumulate = (Max if self.maximum else Add)(
            Input("total", self.fmt), Input("term", self.tree.flow.results["total"])
        )
        total = Signal(shape(self.fmt), name="sum")
        with m.If(self.accept):
            m.d.sync += total.eq(Mux(self.first, term, accumulate.rtl(m, total, term)))
        m.d.comb += self.total.eq(_later(m, total, self.lag, "total"))
        return m

    def _add_in_pieces(self, m, term):
        """An adder whose pieces work on one beat in consecutive cycles, the lowest first."""
        width = self.fmt.width
        size, term = -(-width // self.pieces), extend(term, width)
        accept, first, carry, done = self.accept, self.first, Const(0, 1), Const(0, 0)
        for n, at in enumerate(range(0, width, size)):
            part = Signal(min(size, width - at), name=f"sum_{n}")
            total = Signal(len(part) + 1, name=f"sum_{n}_next")
            # The carry enters below the lowest bit, so that this is one adder.
            old = Cat(Const(1, 1), Mux(first, 0, part))
            m.d.comb += total.eq((old + Cat(carry, term[at : at + size]))[1:])
            over = Signal(name=f"carry_{n}", reset_less=True)
            m.d.sync += over.eq(total[-1])
            with m.If(accept):
                m.d.sync += part.eq(total)
            carry = over
            accept, first = (_later(m, mark, 1, f"mark_{n}") for mark in (accept, first))
            term = _later(m, term, 1, f"term_{n}")
            done = Cat(_later(m, done, 1, f"low_{n}"), part)
        return done


def _later(m, value, cycles, name):
    """A value through registers; no bits need none."""
    for n in range(cycles if len(Value.cast(value)) else 0):
        later = Signal(Value.cast(value).shape(), name=f"{name}_l{n + 1}", reset_less=True)
        m.d.sync += later.eq(value)
        value = later
    return value
