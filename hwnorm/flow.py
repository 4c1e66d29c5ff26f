"""Flows: a pure function of fixed-point scalars, traced once into a small graph of ops.

A flow is interpreted on numpy integers (`Flow.run`), scheduled to a clock budget
(`Flow.schedule`), priced (`Flow.cost`) and printed (`Flow.describe`). It never asks which op
a wire is; ``hwnorm.hdl.pipeline`` lowers it to Amaranth in the same way.
"""

from dataclasses import replace
from functools import cached_property

import numpy as np

from hwnorm.fixed import Fixed
from hwnorm.ops import Const, Cost, Input, readers_of
from hwnorm.scaled import Scaled
from hwnorm.schedule import Schedule
from hwnorm.sharing import Sharing
from hwnorm.targets import GENERIC


def trace(function, name="flow", **formats):
    """Trace a function of wires into a flow.

    Parameters
    ----------
    function : callable
        Takes one wire (or `Scaled`) a format, by keyword; returns a dict of named wires.
    name : str
    **formats : Fixed or ScaledFormat
        The inputs, in order.

    Returns
    -------
    Flow

    Examples
    --------
    >>> double = trace(lambda x: {"y": x + x}, x=Fixed.parse("s4/0"))
    >>> double.run(x=np.array([-8, 7]))["y"].tolist()
    [-16, 14]
    """
    given = {
        key: Input(key, fmt) if isinstance(fmt, Fixed) else fmt.input(key)
        for key, fmt in formats.items()
    }
    results = function(**given)
    inputs = {}
    for key, value in given.items():
        inputs |= value.wires(key) if isinstance(value, Scaled) else {key: value}
    outputs = {}
    for key, value in results.items():
        outputs |= value.wires(key) if isinstance(value, Scaled) else {key: value}
    return Flow(name, inputs, outputs, {key: value.fmt for key, value in results.items()})


class Flow:
    """A traced function.

    Members
    -------
    name : str
    inputs, outputs : dict of str to Wire
    results : dict of str to Fixed or ScaledFormat
        The formats of what the function returned, for tracing the next flow.
    wires : list of Wire
        All wires, each behind its operands, in an order that depends on the text only.
    """

    def __init__(self, name, inputs, outputs, results):
        self.name = name
        self.inputs = inputs
        self.outputs = outputs
        self.results = results
        self.wires = []
        seen = set()
        for root in [*inputs.values(), *outputs.values()]:
            self._collect(root, seen)

    def _collect(self, root, seen):
        stack = [(root, False)]
        while stack:
            wire, ready = stack.pop()
            if ready:
                self.wires.append(wire)
            elif wire not in seen:
                seen.add(wire)
                if isinstance(wire, Input) and wire not in self.inputs.values():
                    raise ValueError(f"input {wire.name} is not one of this flow's inputs")
                stack.append((wire, True))
                stack += [(arg, False) for arg in reversed(wire.args)]

    @cached_property
    def names(self):
        """A distinct name for every wire: its own, or its op and number."""
        names, taken = {}, set()
        for wire in self.wires:
            plain = wire.name or f"{type(wire).__name__.lower()}{len(names)}"
            name, n = plain, 2
            while name in taken:
                name, n = f"{plain}_{n}", n + 1
            taken.add(name)
            names[wire] = name
        return names

    # -- the integer interpreter --------------------------------------------------------

    @cached_property
    def _plan(self):
        """Wire by wire: its dtype, its operands, and which values are dead behind it."""
        last = {}
        for wire in self.wires:
            for arg in wire.args:
                last[arg] = wire
        kept = set(self.outputs.values())
        return [
            (
                wire,
                narrowest(*wire.work),
                [arg for arg in dict.fromkeys(wire.args) if last[arg] is wire and arg not in kept],
            )
            for wire in self.wires
            if not isinstance(wire, Input)
        ]

    @property
    def wide_wires(self):
        """Names of the wires beyond 62 bits, which the model computes in Python integers."""
        return [self.names[wire] for wire, dtype, _ in self._plan if dtype is object]

    def run(self, *, check=False, probe=None, **inputs):
        """Interpret the flow on integers.

        Parameters
        ----------
        check : bool
            Verify that every wire keeps its interval.
        probe : dict or None
            If given, it receives every wire's value under its name.
        **inputs : numpy.ndarray of int
            One array an input, in units of its lsb; shapes broadcast.

        Returns
        -------
        dict of str to numpy.ndarray

        Raises
        ------
        OverflowError
            In a checked run, if a wire leaves its interval; names the wire.
        ValueError
            If inputs are missing, or there are others.
        """
        if inputs.keys() != self.inputs.keys():
            raise ValueError(
                f"{self.name} takes {', '.join(self.inputs)}, got {', '.join(inputs) or 'none'}"
            )
        values = {self.inputs[key]: value for key, value in inputs.items()}
        if check:
            for wire, value in values.items():
                self._check(wire, value)
        for wire, dtype, dead in self._plan:
            if not wire.moves:
                for arg in wire.args:
                    # Kept as cast: the next op on it most often wants the same.
                    values[arg] = _cast(values[arg], dtype)
            value = values[wire] = wire.ints(*(values[arg] for arg in wire.args))
            if check:
                self._check(wire, value)
            if probe is None:
                for arg in dead:
                    del values[arg]
        if probe is not None:
            probe |= {self.names[wire]: value for wire, value in values.items()}
        return {key: values[wire] for key, wire in self.outputs.items()}

    def _check(self, wire, value):
        low, high = np.min(value), np.max(value)
        if low < wire.fmt.lo or high > wire.fmt.hi:
            raise OverflowError(
                f"wire {self.names[wire]} of {self.name} must stay in {wire.fmt}, got {low}..{high}"
            )

    # -- time and cost ------------------------------------------------------------------

    def schedule(self, period_ns, target=GENERIC, interval=1, strides=()):
        """Place every wire at its earliest (cycle, delay) for a clock period.

        Parameters
        ----------
        period_ns : float
            Of the clock. A step of an op slower than that gets a cycle of its own.
        target : Target
        interval : int
            Cycles from inputs to the next ones, at least. Beyond 1, hardware is shared.
        strides : tuple of int
            With an interval: of the shift register that normalises; see `Sharing`.

        Returns
        -------
        Schedule

        Raises
        ------
        UnshareableError
            If the interval is too short for what is shared.
        """
        budget = period_ns - target.clock_ns
        sharing = Sharing(self.wires, target, budget, interval, strides) if interval > 1 else None
        ready, slowest = {}, (0.0, None)
        schedule = Schedule(period_ns, target, sharing=sharing)
        place, cuts = schedule.place, schedule.cuts
        for wire in self.wires:
            starts = [ready[arg] for arg in wire.args if arg in ready]
            if isinstance(wire, Const) or (not starts and not isinstance(wire, Input)):
                continue
            cycle, ns = max(starts, default=(0, 0.0))
            first = cycle
            if turn := sharing and sharing.place(schedule, wire, cycle, ns):
                first, cycle, ns, path = turn
                slowest = max(slowest, (path, wire), key=lambda item: item[0])
            steps = schedule.steps(wire)
            ends, begins = [], []
            for step in steps:
                if ns and ns + step.ns > budget:
                    cycle, ns = cycle + 1, 0.0
                ends.append(cycle)
                begins.append(ns)
                ns += step.ns
                if ns > slowest[0]:
                    slowest = ns, wire
                if step.registered:
                    cycle, ns = cycle + 1, 0.0
            place[wire] = first if turn else ends[0]
            if sharing and wire in sharing.tables and not ns:
                # The memory is not read again before the next inputs.
                schedule.spans[wire] = interval
            ready[wire] = cycle, ns
            schedule.available[wire] = cycle
            schedule.begins[wire] = tuple(begins)
            # A step's own register is not to be made again.
            gaps = zip(ends, ends[1:], steps, strict=False)
            cuts[wire] = tuple(late - early - step.own for early, late, step in gaps)
        latency = max(
            (ready[w][0] + (ready[w][1] > 0) for w in self.outputs.values() if w in ready),
            default=0,
        )
        return replace(schedule, latency=latency, slowest_ns=slowest[0], slowest=slowest[1])

    def finest_step(self, target):
        """The slowest step that nothing can split, and its wire.

        Returns
        -------
        (float, Wire or None)
        """
        steps = [
            (step.ns, wire)
            for wire in self.wires
            if not isinstance(wire, Const)
            for step in wire.steps(target, 0.0)
        ]
        return max(steps, key=lambda item: item[0], default=(0.0, None))

    @property
    def cost(self):
        """The sum over all ops, for one instance, on a part of no family."""
        return self.cost_on(GENERIC)

    def cost_on(self, target):
        """The sum over all ops, for one instance."""
        return sum(self.costs_on(target).values(), Cost())

    def costs_on(self, target):
        """The `Cost` of each wire's op."""
        if target not in self._costs:
            self._costs[target] = {
                wire: wire.cost_among(self.readers[wire], target) for wire in self.wires
            }
        return self._costs[target]

    def cost_of(self, schedule):
        """Likewise, with what the schedule shares."""
        sharing = schedule.sharing
        if sharing is None:
            return self.cost_on(schedule.target)
        costs = self.costs_on(schedule.target).items()
        return sum((cost for wire, cost in costs if not sharing.takes(wire)), sharing.cost)

    @cached_property
    def readers(self):
        """The wires that use each wire; none for outputs, of which all bits are used."""
        return readers_of(self.wires) | {wire: [] for wire in self.outputs.values()}

    @cached_property
    def _costs(self):
        return {}

    def describe(self, period_ns, target=GENERIC, schedule=None):
        """A table of the wires: name, op, operands, format, cycle.

        Parameters
        ----------
        period_ns : float
        target : Target
        schedule : Schedule or None
            In place of the pipeline's.

        Returns
        -------
        str
        """
        schedule = schedule or self.schedule(period_ns, target)
        rows = [("wire", "op", "of", "format", "cycle")]
        for wire in self.wires:
            cycle = schedule.available.get(wire)
            rows.append(
                (
                    self.names[wire],
                    type(wire).__name__,
                    ", ".join(self.names[arg] for arg in wire.args),
                    str(wire.fmt),
                    "" if cycle is None else str(cycle),
                )
            )
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = ["  ".join(t.ljust(w) for t, w in zip(row, widths, strict=True)) for row in rows]
        title = f"{self.name}: latency {schedule.latency} cycles at {period_ns:g} ns"
        return "\n".join([title, *(line.rstrip() for line in lines)])


def narrowest(lo, hi):
    """The numpy dtype that computes an interval exactly; Python integers beyond 62 bits."""
    reach = max(hi, -1 - lo).bit_length()
    return np.int32 if reach < 32 else np.int64 if reach <= 62 else object


def constant_value(wire):
    """The integer that a wire without inputs behind it stands for."""
    dtype = narrowest(*wire.work)
    return int(wire.ints(*(_cast(constant_value(arg), dtype) for arg in wire.args)))


def _cast(value, dtype):
    if isinstance(value, int) and dtype is not object:
        return value
    return np.asarray(value).astype(dtype, copy=False)
