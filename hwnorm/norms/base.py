"""What every norm is: fields, their rules, and the flows traced from them.

A norm subclass writes mathematics only: ``gather`` (per element: what is accumulated),
``solve`` (once a row: from exact totals to the scale) and ``apply`` (per element again),
with ``load`` for what is stored of a parameter. It also states its error bound, term by term.
"""

from dataclasses import dataclass, field
from functools import cached_property
from operator import add
from typing import ClassVar

import numpy as np

from hwnorm.bits import tree
from hwnorm.fixed import Fixed
from hwnorm.flow import trace
from hwnorm.norms.config import LogTables, Rsqrt
from hwnorm.norms.flows import Flows
from hwnorm.norms.rules import check_fields
from hwnorm.norms.timing import accumulator_lag, check_period
from hwnorm.norms.turns import find_turns
from hwnorm.ops import Clamp, Outside, const, maximum, wire
from hwnorm.targets import TARGETS

#: Cycles that the engine's shell adds to its pipelines: the accumulator, the queue of row
#: scalars, the two of the row buffer's read, the output FIFO, less the one that a row's last
#: beat has in common with its count.
SHELL_CYCLES = 4


@dataclass(frozen=True, kw_only=True)
class Norm:
    """A normalisation layer in fixed point: the design that every command works on.

    Parameters
    ----------
    dim : int or None
        Elements of a row, 2 to 16384.
    dim_max : int or None
        In place of `dim`, of norms that can: rows are of any length up to this, in whole beats,
        and end with their ``last``. It counts as `dim` wherever a size is asked for.
    lanes : int
        Elements a clock; divides `dim`.
    eps : float
        Added to the mean square (the variance), in real units; positive.
    x, y : Fixed or str
        Input and output format.
    gamma, beta : Fixed or str or None
        Formats of the scale and the shift; None (or ``"none"``): there is none.
    gamma_offset : float
        Added to gamma when it is loaded: 1.0 for models that store ``gamma - 1``.
    store : str
        ``ram``: parameters are loaded through a stream; ``rom``: they are constants;
        ``stream``: every row comes with its own, in step with x.
    gamma_init, beta_init : tuple of int or None
        Initial (or constant) contents, `dim` integers of the format. None: gamma + offset
        = 1 and beta = 0.
    rounding, overflow : str
        Of the output; see ``hwnorm.fixed``.
    rsqrt : Rsqrt
    log : LogTables
    period_ns : float
        Clock period that the pipelines are made for.
    target : str
        The FPGA family whose delays count; see ``hwnorm.targets``.
    solver : str or None
        ``solve`` of a design file: ``pipelined``, or ``shared``: one multiplier and one table
        port take turns. None: shared where a row leaves the time and it is smaller.
    control : str
        Of the Verilog: ``none``, or ``axilite``: registers for flags and parameters.
    ready : bool
        Whether streams have ``ready``. Without, the sink always takes, and nothing ever stalls.
    clock_enable : bool
        Of the Verilog: whether there is a port ``ce`` that stops all state while it is low.

    Raises
    ------
    ValueError
        If a field breaks a rule; the message names it, the rule and the value.
    """

    kind: ClassVar[str]
    #: How each total of a row is reduced, where it is not a sum: name to "max".
    reductions: ClassVar[dict] = {}
    #: Formats that the norm has besides x and y.
    parameter_names: ClassVar[tuple] = ()
    #: Whether `hwnorm.golden.exact` knows the correctly rounded form of this kind of norm.
    has_exact: ClassVar[bool] = False
    #: Whether rows may be shorter than `dim`.
    has_lengths: ClassVar[bool] = False
    #: Methods of the reciprocal square root that the norm has hardware for.
    methods: ClassVar[tuple] = ("direct", "linear", "quadratic")

    dim: int | None = None
    lanes: int = 1
    eps: float = 1e-5
    x: Fixed = Fixed.of(True, 16, 8)
    gamma: Fixed | None = None
    beta: Fixed | None = None
    y: Fixed = Fixed.of(True, 16, 10)
    gamma_offset: float = 0.0
    store: str = "ram"
    gamma_init: tuple | None = field(default=None, repr=False)
    beta_init: tuple | None = field(default=None, repr=False)
    rounding: str = "nearest_even"
    overflow: str = "saturate"
    rsqrt: Rsqrt = Rsqrt()
    log: LogTables = LogTables()
    period_ns: float = 8.0
    target: str = "generic"
    solver: str | None = None
    control: str = "none"
    ready: bool = True
    clock_enable: bool = False
    dim_max: int | None = None

    def __post_init__(self):
        for name in ("x", "y", "gamma", "beta"):
            value = getattr(self, name)
            if value == "none":
                value = None
            elif value is not None:
                try:
                    value = Fixed.parse(value)
                except ValueError as error:
                    raise ValueError(f"format.{name}: {error}") from None
            object.__setattr__(self, name, value)
        if self.dim_max is not None:
            if self.dim not in (None, self.dim_max):
                raise ValueError(f"dim must not be given with dim_max, got {self.dim}")
            object.__setattr__(self, "dim", self.dim_max)
        for name in ("dim", "dim_max", "lanes", "eps", "gamma_offset", "period_ns"):
            if isinstance(getattr(self, name), np.number):
                object.__setattr__(self, name, getattr(self, name).item())
        for name in ("gamma_init", "beta_init"):
            value = getattr(self, name)
            if isinstance(value, list | np.ndarray):
                object.__setattr__(self, name, tuple(np.asarray(value).tolist()))
            elif value is not None and not isinstance(value, tuple):
                raise ValueError(f"{name} must be a tuple of integers, got {value!r}")
        for name, kind in (("rsqrt", Rsqrt), ("log", LogTables)):
            if not isinstance(getattr(self, name), kind):
                raise ValueError(
                    f"{name} must be {kind.__name__}(...), got {getattr(self, name)!r}"
                )
        check_fields(self)
        # Tables and ranges have rules of their own: tracing now reports them now.
        if self.rsqrt.method != "exact":
            _ = self.flows
            check_period(self)
            _ = self.turns

    @classmethod
    def all_methods(cls):
        """What ``rsqrt.method`` can be, the model's ``exact`` included."""
        return (*cls.methods, "exact") if cls.has_exact else cls.methods

    # -- sizes --------------------------------------------------------------------------

    @property
    def beats(self):
        """Beats of a row on the streams, of the longest one."""
        return self.dim // self.lanes

    @property
    def least_beats(self):
        """Beats of the shortest row."""
        return self.beats if self.dim_max is None else 1

    @property
    def dims(self):
        """The lengths that rows may have, in elements: a range."""
        return range(self.least_beats * self.lanes, self.dim + 1, self.lanes)

    @property
    def headline(self):
        """The design in one line."""
        formats = ", ".join(
            f"{name} {fmt.spelling}"
            for name in ("x", "gamma", "beta", "y")
            if (fmt := getattr(self, name)) is not None
        )
        lanes = f"{self.lanes} lane{'s' * (self.lanes > 1)}"
        dim = f"dim {self.dim}" if self.dim_max is None else f"dim up to {self.dim}"
        return f"{self.kind}, {dim}, {lanes}, {formats}, rsqrt {self.rsqrt.method}"

    @property
    def parameters(self):
        """Name to format of the parameters that this design has."""
        return {
            name: getattr(self, name)
            for name in self.parameter_names
            if getattr(self, name) is not None
        }

    @property
    def loaded(self):
        """Those of the parameters that are loaded through a stream before the rows."""
        return self.parameters if self.store == "ram" else {}

    @property
    def streamed(self):
        """Those of the parameters that come with every row, in step with x."""
        return self.parameters if self.store == "stream" else {}

    def initial(self, name):
        """The initial contents of a parameter: `dim` integers of its format."""
        values = getattr(self, f"{name}_init")
        if values is not None:
            return values
        fmt = getattr(self, name)
        neutral = 2.0**fmt.frac * (1 - self.gamma_offset) if name == "gamma" else 0
        return (min(max(round(neutral), fmt.lo), fmt.hi),) * self.dim

    # -- the norm's own mathematics -----------------------------------------------------

    def gather(self, x):
        """The terms of a row's totals: a dict of wires."""
        raise TypeError(f"{self.kind} gathers nothing")

    def solve(self, **totals):
        """From a row's totals to its scalars: a dict of wires or `Scaled`."""
        raise TypeError(f"{self.kind} solves nothing")

    def load(self, name, value):
        """What is stored of one parameter, or applied of a streamed one: a dict of wires."""
        if name == "gamma" and self.gamma_offset:
            value = value + const(self.gamma_offset, value.fmt.frac)
        return {name: value}

    def apply(self, x, **inputs):
        """The output of one element, a wire in the format y."""
        raise TypeError(f"{self.kind} applies nothing")

    def golden(self, x, gamma=None, beta=None):
        """The norm in float64 over the last axis: what the design is judged by.

        Parameters
        ----------
        x : numpy.ndarray of float64, (..., dim)
        gamma, beta : numpy.ndarray of float64 or None, (dim,)
            Real units; gamma with its offset.
        """
        raise TypeError(f"{self.kind} has no golden")

    @property
    def units(self):
        """The approximations in use, by name: each has a ``table`` and a ``max_error``."""
        return {}

    @property
    def error_terms(self):
        """The proven error, term by term, in ulp of y: a dict that `bound_ulp` sums."""
        raise TypeError(f"{self.kind} states no bound")

    # -- flows --------------------------------------------------------------------------

    @cached_property
    def row_flows(self):
        """The traced gather, the totals over a row, and the traced solve."""
        gather = trace(self.gather, "gather", x=self.x)
        totals = {
            name: fmt if self.reductions.get(name) == "max" else self._total_of(fmt)
            for name, fmt in gather.results.items()
        }
        return gather, totals, trace(self.solve, "solve", **totals)

    def _total_of(self, fmt):
        ends = [end * dim for end in (fmt.lo, fmt.hi) for dim in (self.dims[0], self.dim)]
        return Fixed(min(ends), max(ends), fmt.frac)

    @cached_property
    def flows(self):
        """The traced `Flows`."""
        gather, totals, solve = self.row_flows
        load = {
            name: trace(
                # What comes with its row is stored as it comes, and loaded where it is applied.
                lambda _name=name, **value: (
                    value if self.streamed else self.load(_name, value[_name])
                ),
                f"load_{name}",
                **{name: fmt},
            )
            for name, fmt in self.parameters.items()
        }
        stored = {key: fmt for flow in load.values() for key, fmt in flow.results.items()}
        apply = trace(self._apply, "apply", x=self.x, **stored, **solve.results)
        maxima = frozenset(name for name, how in self.reductions.items() if how == "max")
        reduce = {
            name: trace(
                lambda _max=name in maxima, **lanes: {
                    "total": tree(maximum if _max else add, lanes.values())
                },
                f"reduce_{name}",
                **{f"lane{i}": fmt for i in range(self.lanes)},
            )
            for name, fmt in gather.results.items()
        }
        return Flows(gather, totals, maxima, reduce, solve, load, apply)

    def _apply(self, x, **inputs):
        for name in self.streamed:
            inputs |= self.load(name, inputs.pop(name))
        y = self.apply(x, **inputs)
        lost = wire(0)
        if isinstance(y, Clamp):
            lost = Outside(y.args[0], y.lo, y.hi)
        return {"y": y.named("y"), "saturated": lost.named("saturated")}

    def schedule(self, flow):
        """A flow's `Schedule` at the design's period and target."""
        if flow not in self._schedules:
            turns = self.turns if flow is self.flows.solve else {}
            found = flow.schedule(self.period_ns, TARGETS[self.target], **turns)
            self._schedules[flow] = found
        return self._schedules[flow]

    @cached_property
    def _schedules(self):
        return {}

    @cached_property
    def turns(self):
        """How ``solve`` is shared over cycles, as `Flow.schedule` takes it; empty: it is not."""
        return {} if self.rsqrt.method == "exact" else find_turns(self)

    @property
    def latency(self):
        """Cycles from a row's first input beat to its first output beat, without stalls."""
        self.require_hardware()
        flows = self.flows
        reduce = max(self.schedule(flow).latency for flow in flows.reduce.values())
        pipelines = (flows.gather, flows.solve, flows.apply)
        inside = sum(self.schedule(flow).latency for flow in pipelines)
        return self.beats + inside + reduce + accumulator_lag(self) + SHELL_CYCLES

    def require_hardware(self):
        """Raise ValueError if the design has a model only."""
        if self.rsqrt.method == "exact":
            raise ValueError("rsqrt.method exact is a model only, it has no hardware")

    @property
    def bound_ulp(self):
        """Proven bound of ``|y - golden|`` in ulp of y, for the stored gamma and beta."""
        if self.rsqrt.method == "exact":
            return 0.5
        return sum(self.error_terms.values())
