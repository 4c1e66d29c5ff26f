"""The closed set of operations on fixed-point wires.

One class an op, and everything about the op in that class: the interval of its result
(``fmt``), its meaning on numpy integers (``ints``), its hardware (``rtl``), how long that takes
on a part (``steps``) and what it costs (``cost_on``). There is no second place where an op's
meaning lives. ``docs/ops.md`` defines each op in words.

Widths grow and nothing is lost, except in rounding (`Round`, `ShiftRight`), in limiting
(`Clamp`, `Wrap`) and in table look-up (`Lookup`).
"""

from hwnorm.ops.arithmetic import (
    Abs,
    Add,
    Const,
    Input,
    Less,
    Max,
    Mul,
    MulHidden,
    Scale,
    Select,
    Sub,
    const,
    maximum,
    select,
    wire,
)
from hwnorm.ops.base import MULTIPLIER_BITS, Cost, Cut, Step, Wire, readers_of
from hwnorm.ops.limits import (
    Clamp,
    Column,
    Lookup,
    Outside,
    Round,
    ShiftRight,
    Within,
    Wrap,
    read_columns,
)
from hwnorm.ops.words import Cat, LeadingZeros, Normalise, Slice, leading_zeros, take_bits

#: The closed set. A new op needs a decision page (docs/decisions).
OPS = (
    Input, Const, Add, Sub, Max, Less, Select, Abs, Mul, MulHidden, Scale,
    Round, ShiftRight, Clamp, Outside, Wrap, Within, Lookup,
    Slice, Cat, LeadingZeros, Normalise,
)  # fmt: skip

__all__ = [
    "OPS",
    "MULTIPLIER_BITS",
    "Column",
    "Cost",
    "Cut",
    "Step",
    "Wire",
    "const",
    "leading_zeros",
    "maximum",
    "read_columns",
    "readers_of",
    "select",
    "take_bits",
    "wire",
    *(op.__name__ for op in OPS),
]
