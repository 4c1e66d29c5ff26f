"""When each wire of a flow is computed, for a clock period on a family."""

from dataclasses import dataclass, field

from hwnorm.ops import Wire
from hwnorm.sharing import Sharing
from hwnorm.targets import Target


@dataclass(frozen=True)
class Schedule:
    """When each wire is computed.

    Members
    -------
    period_ns : float
    target : Target
    place : dict of Wire to int
        The cycle in which the op's first step works, its operands being taken in that cycle.
    available : dict of Wire to int
        The cycle in which its result can first be used. Constants are in neither.
    cuts : dict of Wire to tuple of int
        How many registers stand behind each of its steps, but the last.
    begins : dict of Wire to tuple of float
        When in its cycle each step begins, in ns; 0: right behind a register.
    spans : dict of Wire to int
        For how many cycles from `available` on it stays, where that is more than one.
    sharing : Sharing or None
        How hardware is shared; None: new inputs may come every clock.
    latency : int
        Cycles from the inputs to the outputs, which come out of registers.
    slowest_ns : float
        The longest path between registers, without the target's `clock_ns`.
    slowest : Wire or None
        Where it ends.
    """

    period_ns: float
    target: Target
    place: dict = field(default_factory=dict)
    available: dict = field(default_factory=dict)
    cuts: dict = field(default_factory=dict)
    begins: dict = field(default_factory=dict)
    spans: dict = field(default_factory=dict)
    sharing: Sharing | None = None
    latency: int = 0
    slowest_ns: float = 0.0
    slowest: Wire | None = None
    _steps: dict = field(default_factory=dict, repr=False)

    @property
    def interval(self):
        """Cycles from inputs to the next ones, at least."""
        return 1 if self.sharing is None else self.sharing.interval

    def steps(self, wire):
        """The steps of a wire's hardware; of a shared one, those behind what it shares."""
        if wire not in self._steps:
            budget_ns = self.period_ns - self.target.clock_ns
            self._steps[wire] = (
                wire.steps(self.target, budget_ns)
                if self.sharing is None
                else self.sharing.steps(wire)
            )
        return self._steps[wire]

    def registered(self, wire):
        """Whether its last step ends in a register that the pipeline has to make."""
        last = self.steps(wire)[-1]
        return last.registered and not last.own

    def copies(self, wire, cycle):
        """How many registers keep a wire from its making to a cycle; each for an interval."""
        if wire not in self.available:
            return 0
        late = cycle - self.available[wire] - self.spans.get(wire, 1)
        return 0 if late < 0 else 1 + late // self.interval

    def kept_from(self, wire, copy):
        """The last cycle in which a copy's source is there; the copy is there behind it."""
        first = self.available[wire] + self.spans.get(wire, 1) - 1
        return first + (copy - 1) * self.interval
