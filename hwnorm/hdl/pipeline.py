"""A flow as registers and logic: every wire at its cycle, aligned by construction."""

from typing import ClassVar

from amaranth.hdl import Const as Literal
from amaranth.hdl import Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hwnorm.bits import shape
from hwnorm.flow import constant_value
from hwnorm.ops import Cut, Input
from hwnorm.targets import GENERIC


class Registers(Cut):
    """Cuts an op's hardware where the schedule says so.

    Parameters
    ----------
    m : amaranth Module
    counts : tuple of int
        Registers at each call.
    name : str
        Of the wire; the registers are called after it.
    target : Target
    """

    def __init__(self, m, counts, name, target):
        self.m, self.name, self.target = m, name, target
        self.pieces = len(counts) + 1
        self.counts, self.calls = counts, 0

    def __call__(self, *values):
        registers = self.counts[self.calls] if self.calls < len(self.counts) else 0
        self.calls += 1
        for n in range(registers):
            later = [
                Signal(
                    Value.cast(v).shape(),
                    name=f"{self.name}_s{self.calls}_{n}_{i}",
                    reset_less=True,
                )
                for i, v in enumerate(values)
            ]
            self.m.d.sync += [new.eq(old) for new, old in zip(later, values, strict=True)]
            values = later
        return values


class Pipeline(wiring.Component):
    """A flow, pipelined to a clock budget: new inputs every clock, no stall, no reset.

    Parameters
    ----------
    flow : hwnorm.flow.Flow
    period_ns : float
    lanes : int
        How many times inputs that are not `shared` come, side by side.
    shared : collection of str
        Inputs that all lanes have in common; what depends on them alone is built once.
    target : Target

    Members
    -------
    One member an input and an output, of the wire's width. A wire that differs by lane has
    one member a lane, ``name_0``, ``name_1`` ...; use `input` and `output` to reach them.

    latency : int
        Cycles from inputs to outputs.
    """

    #: Members beyond those of the flow.
    marks: ClassVar[dict] = {}

    def __init__(self, flow, period_ns, lanes=1, shared=(), target=GENERIC, **turns):
        self.flow = flow
        self.lanes = lanes
        self.schedule = flow.schedule(period_ns, target, **turns)
        self.latency = self.schedule.latency
        self._keys = {wire: key for key, wire in flow.inputs.items()}
        self._once = set()
        for wire in flow.wires:
            own = isinstance(wire, Input) and self._keys[wire] not in shared
            if not own and all(arg in self._once for arg in wire.args):
                self._once.add(wire)
        members = dict(self.marks)
        for ports, way in ((flow.inputs, In), (flow.outputs, Out)):
            for name, wire in ports.items():
                side = "" if way is In else "out_" if name in flow.inputs else ""
                for lane in range(1 if self._is_once(wire) else lanes):
                    member = self._port(side + name, wire, lane)
                    if member in members:
                        raise ValueError(f"{flow.name} has two wires for the port {member}")
                    members[member] = way(shape(wire.fmt))
        super().__init__(members)

    def _is_once(self, wire):
        return self.lanes == 1 or wire in self._once

    def _port(self, name, wire, lane):
        return name if self._is_once(wire) else f"{name}_{lane}"

    def input(self, name, lane=0):
        """The member of an input; of a shared one, any lane gives the same."""
        return getattr(self, self._port(name, self.flow.inputs[name], lane))

    def output(self, name, lane=0):
        """The member of an output."""
        prefix = "out_" if name in self.flow.inputs else ""
        return getattr(self, self._port(prefix + name, self.flow.outputs[name], lane))

    def elaborate(self, platform):
        m = Module()
        delayed = {}
        for wire in self.flow.wires:
            for lane in range(1 if self._is_once(wire) else self.lanes):
                self._place(m, delayed, wire, lane)
        for name, wire in self.flow.outputs.items():
            for lane in range(1 if self._is_once(wire) else self.lanes):
                m.d.comb += self.output(name, lane).eq(
                    self._at(m, delayed, wire, lane, self.latency)
                )
        return m

    def _place(self, m, delayed, wire, lane):
        """Build one wire; remember its value at the cycle where it is there."""
        name = self._port(self.flow.names[wire], wire, lane)
        if isinstance(wire, Input):
            delayed[wire, lane, 0] = self.input(self._keys[wire], lane)
            return
        if wire not in self.schedule.place:
            # A constant, or made of constants alone: its value is known now.
            delayed[wire, lane, 0] = Literal(constant_value(wire), shape(wire.fmt))
            return
        cycle = self.schedule.place[wire]
        args = [self._at(m, delayed, arg, lane, cycle) for arg in wire.args]
        value = self._value(m, wire, name, args)
        signal = Signal(shape(wire.fmt), name=name, reset_less=True)
        # A memory has its register inside; a multiplier gets it here.
        domain = "sync" if self.schedule.registered(wire) else "comb"
        m.d[domain] += signal.eq(value)
        delayed[wire, lane, 0] = signal

    def _value(self, m, wire, name, args):
        """The hardware of one op."""
        if not wire.divisible:
            return wire.rtl(m, *args)
        cut = Registers(m, self.schedule.cuts[wire], name, self.schedule.target)
        return wire.rtl(m, *args, cut=cut)

    def _at(self, m, delayed, wire, lane, cycle):
        """The value of a wire in a later cycle, through registers that are shared."""
        if self._is_once(wire):
            lane = 0
        copies = self.schedule.copies(wire, cycle)
        for copy in range(1, copies + 1):
            if (wire, lane, copy) in delayed:
                continue
            name = self._port(self.flow.names[wire], wire, lane)
            at = self.schedule.kept_from(wire, copy)
            register = Signal(shape(wire.fmt), name=f"{name}_c{at + 1}", reset_less=True)
            self._keep(m, register, delayed[wire, lane, copy - 1], at)
            delayed[wire, lane, copy] = register
        return delayed[wire, lane, copies]

    def _keep(self, m, register, value, cycle):
        """Let a register take a value at the end of a cycle."""
        m.d.sync += register.eq(value)
