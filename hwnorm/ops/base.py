"""What every op is: a wire in a flow, written with Python's operators."""

from dataclasses import dataclass
from operator import add

from hwnorm import ops
from hwnorm.fixed import OVERFLOWS
from hwnorm.targets import GENERIC

#: Operand widths of one hardware multiplier, signed (ECP5 MULT18X18D and its like).
MULTIPLIER_BITS = 18


@dataclass(frozen=True)
class Cost:
    """An estimate of resources.

    Members
    -------
    luts : int
        Four-input LUTs of logic, adders not counted.
    multipliers : int
        Multiplier blocks.
    rom_bits : int
    adder_bits : int
        Bits of adders and comparators: a LUT or half a carry cell each, by family.
    blocks : int
        Block RAMs of tables.
    """

    luts: int = 0
    multipliers: int = 0
    rom_bits: int = 0
    adder_bits: int = 0
    blocks: int = 0

    def __iter__(self):
        # Designs are priced by the thousand; dataclasses.astuple would copy every number.
        return iter((self.luts, self.multipliers, self.rom_bits, self.adder_bits, self.blocks))

    def __add__(self, other):
        return Cost(*map(add, self, other))

    def __mul__(self, count):
        return Cost(*(a * count for a in self))


@dataclass(frozen=True)
class Step:
    """A part of an op's hardware that lies within one cycle.

    Members
    -------
    ns : float
    registered : bool
        A register always stands behind it (a multiplier's or a memory's).
    own : bool
        That register is part of what ``rtl`` builds by itself.
    """

    ns: float
    registered: bool = False
    own: bool = False


class Cut:
    """The places where an op's hardware can be cut by registers; this one cuts nowhere.

    An op of n steps calls it n - 1 times, with all values that pass from one step to the
    next, and goes on with what it gets.

    Members
    -------
    target : Target
    pieces : int
        How many steps the op has.
    alone : bool
        Whether the op has multiplier blocks of its own.
    """

    target = GENERIC
    pieces = 1
    alone = True

    def __call__(self, *values):
        return values

    def multiply(self, pairs):
        """The products of multiplier blocks, one for each pair of factors."""
        return [a * b for a, b in pairs]

    def read(self, m, lookup, index):
        """The entry of a table, out of a memory of its own, a cycle behind its index."""
        return ops.read_columns(m, [lookup.column], index)[0]


UNCUT = Cut()


def readers_of(wires):
    """The wires that use each wire, as a dict of Wire to list of Wire."""
    readers = {wire: [] for wire in wires}
    for wire in wires:
        for arg in wire.args:
            readers[arg].append(wire)
    return readers


class Wire:
    """A value in a flow: the result of one op on other wires.

    Wires are written with Python's operators: ``a + b``, ``a - b``, ``a * b``, ``-a``,
    ``abs(a)``, ``a < b``, ``a << 3`` (a constant power of two, free), ``a[lo:hi]`` (bits).

    Members
    -------
    fmt : Fixed
        The exact interval of the values it can take.
    args : tuple of Wire
    name : str or None
        Kept into messages, the VCD and the Verilog.
    """

    #: Whether ``rtl`` takes a `Cut`, so that its hardware can spread over cycles.
    divisible = False
    #: Whether the integer meaning hands its operand on as it is, whatever its dtype.
    moves = False

    def __init__(self, args, fmt):
        self.args = args
        self.fmt = fmt
        self.name = None

    # -- what each op defines -----------------------------------------------------------

    @property
    def work(self):
        """Smallest and largest integer that ``ints`` meets on the way."""
        return self.fmt.lo, self.fmt.hi

    def steps(self, target, budget_ns):
        """The op's hardware from operands to result, as steps that a register may separate.

        Parameters
        ----------
        target : Target
        budget_ns : float
            What a cycle holds. Where a step would exceed it, the op offers more, if it can.

        Returns
        -------
        tuple of Step
        """
        return (Step(0.0),)

    def held_bits(self, steps, target):
        """Bits that pass from each of its `steps`, but the last, to the next one, those that
        a multiplier block's register holds left out."""
        widest = max(self.fmt.width, *(arg.fmt.width for arg in self.args), 0)
        return (widest,) * (len(steps) - 1)

    def cost_on(self, target):
        """Resources of one instance: a `Cost`."""
        return Cost()

    def cost_among(self, readers, target):
        """Likewise, where only `readers` use it, perhaps not all its bits; none: all are used."""
        return self.cost_on(target)

    def products(self, target):
        """How many products its hardware asks of a multiplier block that it shares."""
        return 0

    @property
    def cost(self):
        """Resources of one instance on a part of no family."""
        return self.cost_on(GENERIC)

    def ints(self, *args):
        """The meaning on integers: arrays of one dtype that holds ``work``."""
        raise TypeError(f"{type(self).__name__} has no integer meaning of its own")

    def rtl(self, m, *args):
        """The hardware: Amaranth values in, an Amaranth value out.

        Of `divisible` ops it also takes ``cut``, a `Cut`.
        """
        raise TypeError(f"{type(self).__name__} has no hardware of its own")

    # -- how norms are written ----------------------------------------------------------

    def named(self, name):
        """Give the wire a name; returns the wire."""
        self.name = name
        return self

    def __bool__(self):
        raise TypeError("a wire has no truth value: use select(condition, a, b)")

    def __add__(self, other):
        return ops.Add(self, ops.wire(other))

    __radd__ = __add__

    def __sub__(self, other):
        return ops.Sub(self, ops.wire(other))

    def __rsub__(self, other):
        return ops.Sub(ops.wire(other), self)

    def __neg__(self):
        return ops.Sub(ops.const(0, self.fmt.frac), self)

    def __mul__(self, other):
        # A number with an exponent of its own (`Scaled`) knows how to multiply a wire.
        return NotImplemented if hasattr(other, "exp") else ops.Mul(self, ops.wire(other))

    def __rmul__(self, other):
        return ops.Mul(self, ops.wire(other))

    def __lshift__(self, n):
        return ops.Scale(self, n)

    def __rshift__(self, n):
        return ops.Scale(self, -n)

    def __lt__(self, other):
        return ops.Less(self, ops.wire(other))

    def __gt__(self, other):
        return ops.Less(ops.wire(other), self)

    def __abs__(self):
        return ops.Abs(self) if self.fmt.signed else self

    def __getitem__(self, span):
        if not isinstance(span, slice) or span.step is not None:
            raise TypeError(f"bits of a wire are taken as wire[lo:hi], got {span!r}")
        return ops.Slice(self, span.start or 0, self.fmt.width if span.stop is None else span.stop)

    def round(self, frac, rounding="nearest_even"):
        """Round to `frac` fraction bits (exact if there are fewer already)."""
        return self if frac == self.fmt.frac else ops.Round(self, frac, rounding)

    def within(self, lo, hi):
        """State a proven bound, in units of the wire's lsb; narrows it, costs nothing."""
        return ops.Within(self, max(lo, self.fmt.lo), min(hi, self.fmt.hi))

    def fit(self, fmt, rounding="nearest_even", overflow="saturate"):
        """Round, then saturate to a format, or wrap into its word."""
        if overflow not in OVERFLOWS:
            raise ValueError(f"overflow must be one of {', '.join(OVERFLOWS)}, got {overflow!r}")
        fine = self.round(fmt.frac, rounding)
        if fmt.holds(fine.fmt):
            return fine
        return (
            ops.Clamp(fine, fmt.lo, fmt.hi) if overflow == "saturate" else ops.Wrap(fine, fmt.word)
        )
