"""What every norm is: fields, their rules, and the flows traced from them.

A norm subclass writes mathematics only: ``gather`` (per element: what is accumulated),
``solve`` (once a row: from exact totals to the scale) and ``apply`` (per element again),
with ``load`` for what is stored of a parameter. It also states its error bound, term by term.
"""

from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, log2, sqrt
from operator import add
from typing import ClassVar

from hwnorm.approx import ReciprocalRoot
from hwnorm.bits import tree
from hwnorm.fixed import OVERFLOWS, ROUNDINGS, Fixed
from hwnorm.flow import Flow, trace
from hwnorm.functions import RSQRT
from hwnorm.ops import MULTIPLIER_BITS, Clamp, Outside, const, maximum, wire

#: Cycles that the engine's shell adds to its pipelines: the accumulator, the queue of row
#: scalars, the two of the row buffer's read, the output FIFO, less the one that a row's last
#: beat has in common with its count.
SHELL_CYCLES = 4

METHODS = ("direct", "linear", "quadratic", "log", "exact")


@dataclass(frozen=True)
class Rsqrt:
    """How the reciprocal square root is taken: the ``[rsqrt]`` section of a design file.

    Parameters
    ----------
    method : str
        ``direct``, ``linear``, ``quadratic``: a table of that degree. ``log``: subtraction in
        the log domain. ``exact``: correctly rounded; a model only, no hardware.
    segments : int or None
        Table entries, a power of two. None: the smallest that the error budget allows, at
        most 4096.
    guard_bits : int
        Extra bits of the scale; 2 is the smallest that guarantees faithful results.
    """

    method: str = "linear"
    segments: int | None = None
    guard_bits: int = 2

    def __post_init__(self):
        if self.method not in METHODS:
            raise ValueError(
                f"rsqrt.method must be one of {', '.join(METHODS)}, got {self.method!r}"
            )
        _check_segments("rsqrt.segments", self.segments)
        if not 0 <= self.guard_bits <= 12:
            raise ValueError(f"rsqrt.guard_bits must lie in 0..12, got {self.guard_bits}")

    def segments_for(self, target):
        """`segments`, or the smallest table whose limit stays under a relative error."""
        if self.segments is not None:
            return self.segments
        segments = 2
        while RSQRT.limits[self.method](segments) > target and segments < 4096:
            segments *= 2
        return segments


@dataclass(frozen=True)
class LogTables:
    """The tables of the log domain: the ``[log]`` section of a design file.

    Parameters
    ----------
    method : str
        ``direct``, ``mitchell`` or ``linear`` (which needs a small multiplier an element).
    segments : int
        Entries of the log2 table and of the exp2 table, a power of two.
    frac : int or None
        Fraction bits of the logarithms. None: the output's width plus the guard bits.
    """

    method: str = "mitchell"
    segments: int = 64
    frac: int | None = None

    def __post_init__(self):
        if self.method not in ("direct", "mitchell", "linear"):
            raise ValueError(
                f"log.method must be one of direct, mitchell, linear, got {self.method!r}"
            )
        _check_segments("log.segments", self.segments)
        if self.frac is not None and not 2 <= self.frac <= 30:
            raise ValueError(f"log.frac must lie in 2..30, got {self.frac}")


def _check_segments(name, segments):
    if segments is not None and (segments < 2 or segments & (segments - 1)):
        raise ValueError(f"{name} must be a power of two and at least 2, got {segments}")


@dataclass(frozen=True)
class Flows:
    """The traced flows of a norm.

    Members
    -------
    gather : Flow
        ``x`` to the terms of a row's totals.
    totals : dict of str to Fixed
        The exact totals over a row.
    maxima : frozenset of str
        The totals that are maxima; the others are sums.
    reduce : dict of str to Flow
        A beat's terms ``lane0``, ``lane1`` ... of a total to one.
    solve : Flow
        Totals to scalars.
    load : dict of str to Flow
        A parameter to what is stored of it.
    apply : Flow
        ``x``, stored parameters and scalars to ``y`` and ``saturated``.
    """

    gather: Flow
    totals: dict
    maxima: frozenset
    reduce: dict
    solve: Flow
    load: dict
    apply: Flow


@dataclass(frozen=True, kw_only=True)
class Norm:
    """A normalisation layer in fixed point: the design that every command works on.

    Parameters
    ----------
    dim : int
        Elements of a row, 2 to 16384.
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
        ``ram``: parameters are loaded through a stream; ``rom``: they are constants.
    gamma_init, beta_init : tuple of int or None
        Initial (or constant) contents, `dim` integers of the format. None: gamma + offset
        = 1 and beta = 0.
    rounding, overflow : str
        Of the output; see ``hwnorm.fixed``.
    rsqrt : Rsqrt
    log : LogTables
    period_ns : float
        Clock budget of the pipelines.

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
    #: Methods of the reciprocal square root that the norm has hardware for.
    methods: ClassVar[tuple] = ("direct", "linear", "quadratic")

    dim: int
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
        self._check_sizes()
        self._check_choices()
        self._check_contents()
        # Tables and ranges have rules of their own: tracing now reports them now.
        if self.rsqrt.method != "exact":
            _ = self.flows

    def _check_sizes(self):
        for name in ("dim", "lanes"):
            if not isinstance(getattr(self, name), int):
                raise ValueError(f"{name} must be an integer, got {getattr(self, name)!r}")
        if not 2 <= self.dim <= 16384:
            raise ValueError(f"dim must lie in 2..16384, got {self.dim}")
        if self.lanes < 1 or self.dim % self.lanes:
            raise ValueError(
                f"lanes must divide dim, got lanes={self.lanes} and dim={self.dim}"
            )
        for name in ("x", "y"):
            if getattr(self, name) is None or not getattr(self, name).signed:
                raise ValueError(f"format.{name} must be signed, got {getattr(self, name)}")
        for name in ("x", "y", "gamma", "beta"):
            value = getattr(self, name)
            if value is not None and not 2 <= value.width <= 32:
                raise ValueError(f"format.{name} must have 2 to 32 bits, got {value.spelling}")
        if not self.eps > 0:
            raise ValueError(
                f"eps must be positive, or an all-zero row divides by zero, got {self.eps}"
            )
        if not 0 < self.period_ns < float("inf"):
            raise ValueError(f"period_ns must be positive, got {self.period_ns}")

    def _check_choices(self):
        for name in ("gamma", "beta"):
            if getattr(self, name) is not None and name not in self.parameter_names:
                raise ValueError(f"format.{name} is not a parameter of {self.kind}")
        for name, value, choices in (
            ("store", self.store, ("ram", "rom")),
            ("rounding", self.rounding, ROUNDINGS),
            ("overflow", self.overflow, OVERFLOWS),
            ("rsqrt.method", self.rsqrt.method, (*self.methods, "exact")),
        ):
            if value not in choices:
                raise ValueError(
                    f"{name} of {self.kind} must be one of {', '.join(choices)}, got {value!r}"
                )

    def _check_contents(self):
        if self.gamma is None and self.gamma_offset:
            raise ValueError(f"gamma_offset needs format.gamma, got {self.gamma_offset}")
        if self.gamma is not None:
            steps = self.gamma_offset * 2.0**self.gamma.frac
            if steps != int(steps):
                raise ValueError(
                    f"gamma_offset must be a multiple of the lsb of {self.gamma.spelling}, "
                    f"got {self.gamma_offset}"
                )
        for name in ("gamma", "beta"):
            values, fmt = getattr(self, f"{name}_init"), getattr(self, name)
            if values is None:
                continue
            if fmt is None:
                raise ValueError(f"{name}_init needs format.{name}, got none")
            if len(values) != self.dim:
                raise ValueError(
                    f"{name}_init must have dim={self.dim} elements, got {len(values)}"
                )
            if min(values) < fmt.lo or max(values) > fmt.hi:
                raise ValueError(
                    f"{name}_init must fit {fmt.spelling}, got {min(values)}..{max(values)}"
                )

    # -- sizes --------------------------------------------------------------------------

    @property
    def beats(self):
        """Beats of a row on the streams."""
        return self.dim // self.lanes

    @property
    def parameters(self):
        """Name to format of the parameters that this design has."""
        return {
            name: getattr(self, name)
            for name in self.parameter_names
            if getattr(self, name) is not None
        }

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
        """What is stored of one parameter: a dict of wires."""
        if name == "gamma" and self.gamma_offset:
            value = value + const(self.gamma_offset, value.fmt.frac)
        return {name: value}

    def apply(self, x, **inputs):
        """The output of one element, a wire in the format y."""
        raise TypeError(f"{self.kind} applies nothing")

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
            name: fmt
            if self.reductions.get(name) == "max"
            else Fixed(fmt.lo * self.dim, fmt.hi * self.dim, fmt.frac)
            for name, fmt in gather.results.items()
        }
        return gather, totals, trace(self.solve, "solve", **totals)

    @property
    def total(self):
        """The interval of solve's wire ``total``, whose root is taken."""
        return next(wire.fmt for wire in self.row_flows[2].wires if wire.name == "total")

    @cached_property
    def flows(self):
        """The traced `Flows`."""
        gather, totals, solve = self.row_flows
        load = {
            name: trace(
                lambda _name=name, **value: self.load(_name, value[_name]),
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
        y = self.apply(x, **inputs)
        lost = wire(0)
        if isinstance(y, Clamp):
            lost = Outside(y.args[0], y.lo, y.hi)
        return {"y": y.named("y"), "saturated": lost.named("saturated")}

    @property
    def latency(self):
        """Cycles from a row's first input beat to its first output beat, without stalls."""
        flows = self.flows
        reduce = max(flow.schedule(self.period_ns).latency for flow in flows.reduce.values())
        pipelines = (flows.gather, flows.solve, flows.apply)
        inside = sum(flow.schedule(self.period_ns).latency for flow in pipelines)
        return self.beats + inside + reduce + SHELL_CYCLES

    @property
    def bound_ulp(self):
        """Proven bound of ``|y - golden|`` in ulp of y, for the stored gamma and beta."""
        if self.rsqrt.method == "exact":
            return 0.5
        return sum(self.error_terms.values())

    # -- shared by norms that scale a row -----------------------------------------------

    @property
    def gain(self):
        """The largest ``|gamma + offset|`` that can be stored; 1 without gamma."""
        if self.gamma is None:
            return 1.0
        ends = (v * self.gamma.lsb + self.gamma_offset for v in (self.gamma.lo, self.gamma.hi))
        return max(abs(v) for v in ends)

    @property
    def _full_ulp(self):
        """The largest scaled element in ulp, of those whose y does not saturate."""
        shift = 0.0 if self.beta is None else max(-self.beta.lo, self.beta.hi) * self.beta.lsb
        reach = 2.0 ** (self.y.width - 1) + shift * 2.0**self.y.frac
        return min(reach, self.peak * self.gain * 2.0**self.y.frac)

    @property
    def peak(self):
        """The largest ``|y|`` before gamma and beta (Cauchy-Schwarz)."""
        return sqrt(self.dim)

    def root(self, total, scale):
        """``scale / sqrt(total)`` as wide as the error budget of y asks.

        Parameters
        ----------
        total : Wire or Fixed
            Its interval is what counts.
        scale : float
        """
        sig_bits = self.y.width + self.rsqrt.guard_bits
        return ReciprocalRoot(
            arg=total if isinstance(total, Fixed) else total.fmt,
            method=self.rsqrt.method,
            segments=self.rsqrt.segments_for(2.0 ** -(sig_bits + 1)),
            sig_bits=sig_bits,
            mantissa_bits=sig_bits + 1,
            scale=scale,
        )

    @property
    def eps_weight(self):
        """What eps is multiplied by, and the smallest total it is added to, in its lsb."""
        raise TypeError(f"{self.kind} has no eps")

    @property
    def _eps_exact(self):
        """Eps in units of the lsb of a total of squares."""
        return self.eps_weight[0] * self.eps * 2.0 ** (2 * self.x.frac)

    @property
    def eps_constant(self):
        """Eps as it is added to the total, a constant wire that is never zero.

        It has at least the fraction bits of a square of x, and as many more as the error
        budget asks.
        """
        exact, extra = self._eps_exact, 0
        if exact < 0.5:
            extra = ceil(log2(50 / exact))
        budget = 2.0 ** -(self.rsqrt.guard_bits + 4)
        while self._eps_ulp(round(exact * 2**extra) / 2**extra) > budget:
            extra += 1
        return const(self.eps_weight[0] * self.eps, 2 * self.x.frac + extra)

    @property
    def eps_used(self):
        """The eps that is added, in real units."""
        fmt = self.eps_constant.fmt
        return fmt.lo * fmt.lsb / self.eps_weight[0]

    @property
    def eps_ulp(self):
        """What the rounding of eps does to y, at its worst, in ulp."""
        fmt = self.eps_constant.fmt
        return self._eps_ulp(fmt.lo * 2.0 ** (2 * self.x.frac - fmt.frac))

    def _eps_ulp(self, used):
        # |y| <= peak * gain * sqrt(S / (S + eps)) for a total S. The change of y with eps is
        # largest at S = eps/2, or at the smallest S there is.
        exact = self._eps_exact
        worst = max(exact / 2, self.eps_weight[1])
        rest = worst + min(exact, used)
        scale = self.peak * self.gain * 2.0**self.y.frac
        return scale * sqrt(worst) * 0.5 * abs(exact - used) / rest**1.5

    def unit_frac(self, after):
        """Fraction bits of the normalised element, before gamma.

        Parameters
        ----------
        after : bool
            Whether gamma or beta follow; without, the element is the output.
        """
        if not after:
            return self.y.frac
        frac = self.y.frac + self.rsqrt.guard_bits + max(0, ceil(log2(self.gain)))
        width = Fixed(0, self._unit_peak(frac), 0).width + 1
        # One bit too many for a hardware multiplier costs a second one, and buys little.
        return frac - (width == MULTIPLIER_BITS + 1)

    def _unit_peak(self, frac):
        return ceil(self.peak * (1 + 2.0**-4) * 2.0**frac) + 1

    def normalised(self, element, inv, after):
        """``element * inv`` rounded, and narrowed by the theorem that bounds it."""
        frac = self.unit_frac(after)
        scaled = element * inv
        unit = scaled.round(frac, "nearest_up" if after else self.rounding)
        top = ceil(self.peak * (1 + self.scale_error) * 2.0**frac) + 1
        return unit.within(-top, top).named("unit")

    @property
    def scale_error(self):
        """Proven relative error of the row's scale."""
        raise TypeError(f"{self.kind} has no scale")

    def scale_terms(self, after):
        """The error terms of norms that multiply by a scale."""
        lsb_ulp = 2.0 ** (self.y.frac - self.unit_frac(after))
        terms = {
            "rounding of y": 1.0 if self.rounding == "floor" else 0.5,
            "scale": self._full_ulp * self.scale_error,
            "eps": self.eps_ulp,
        }
        if after:
            terms["rounding before gamma"] = 0.5 * lsb_ulp * self.gain
        return terms
