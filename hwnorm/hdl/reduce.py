"""The exact reduction of a row's terms, over lanes and then over beats."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hwnorm.bits import shape
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

    Members
    -------
    lane0, lane1 ... : In, the terms of a beat
    accept, first : In(1)
        Of the beat that reaches the accumulator now, `latency` cycles behind its terms:
        whether it counts, and whether it opens a row.
    total : Out
        One cycle behind the last beat.
    """

    def __init__(self, flow, total, maximum, period_ns, latency, target=GENERIC):
        self.tree = Pipeline(flow, period_ns, target=target)
        self.fmt = total
        self.maximum = maximum
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
        for n in range(self.extra):
            later = Signal.like(term, name=f"term_c{n + 1}", reset_less=True)
            m.d.sync += later.eq(term)
            term = later
        accumulate = (Max if self.maximum else Add)(
            Input("total", self.fmt), Input("term", self.tree.flow.results["total"])
        )
        with m.If(self.accept):
            m.d.sync += self.total.eq(Mux(self.first, term, accumulate.rtl(m, self.total, term)))
        return m
