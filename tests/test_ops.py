"""Every op, exhaustively at small widths, against plain statements of what it means.

A `Case` says it on `Fraction` (the numbers that the wires stand for) or, for ops on bits, on
Python integers; it never looks at how the op is written. The hardware is then compared with
the integers, all cases of an op in one simulation.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import floor

import numpy as np
import pytest
from test_fixed import raises
from test_pipeline import stream

from hwnorm import ops
from hwnorm.fixed import ROUNDINGS, Fixed
from hwnorm.flow import trace
from hwnorm.hdl.pipeline import Pipeline

#: Signed, unsigned, negative, odd and single-valued intervals on different grids.
ANY = (
    Fixed(0, 7, 0),
    Fixed(-8, 7, 1),
    Fixed(-5, 2, -1),
    Fixed(3, 11, 2),
    Fixed(-9, -2, 0),
    Fixed(0, 1, 3),
    Fixed(-8, -8, 1),
)
WORDS = (Fixed(0, 15), Fixed(0, 1), Fixed(3, 12), Fixed(5, 5), Fixed(0, 10), Fixed(0, 0))
BIT = Fixed(0, 1)


@dataclass(frozen=True)
class Case:
    """One way to use an op.

    Members
    -------
    build : callable
        Wires to the wire of the op.
    formats : tuple of Fixed
    meaning : callable
        Operands to the result, as `Fraction`; with `raw`, as the integers themselves.
    raw : bool
    tight : bool
        Whether the result's interval is exactly what can occur. It is not where an op's
        interval is stated (words, columns, theorems) instead of found.
    """

    build: object
    formats: tuple
    meaning: object
    raw: bool = False
    tight: bool = True

    def __str__(self):
        return ", ".join(map(str, self.formats))

    @cached_property
    def table(self):
        """All operand tuples, and what the plain statement says for each, as a number."""
        spans = [range(fmt.lo, fmt.hi + 1) for fmt in self.formats]
        units = [1 if self.raw else Fraction(2) ** -fmt.frac for fmt in self.formats]
        operands = list(product(*spans))
        return operands, [
            Fraction(self.meaning(*(k * unit for k, unit in zip(row, units, strict=True))))
            for row in operands
        ]


def rounded(value, frac, rounding):
    """The multiple of ``2**-frac`` that a number rounds to."""
    scaled = value * Fraction(2) ** frac
    if rounding == "nearest_even":
        whole = round(scaled)  # Python rounds ties of a Fraction to even
    else:
        whole = floor(scaled + (Fraction(1, 2) if rounding == "nearest_up" else 0))
    return whole / Fraction(2) ** frac


def wrapped(value, fmt):
    """The number of a word that differs by a multiple of the word's size."""
    size = (fmt.hi - fmt.lo + 1) * Fraction(2) ** -fmt.frac
    while value * Fraction(2) ** fmt.frac > fmt.hi:
        value -= size
    while value * Fraction(2) ** fmt.frac < fmt.lo:
        value += size
    return value


def digits(k, width):
    """A word written down, the highest bit first."""
    text = ""
    for n in reversed(range(width)):
        text += "1" if k >= 1 << n else "0"
        k -= (1 << n) * (text[-1] == "1")
    return text


def unary(op, meaning, formats=ANY, **rest):
    return [Case(op, (a,), meaning, **rest) for a in formats]


def binary(op, meaning, **rest):
    return [Case(op, pair, meaning, **rest) for pair in product(ANY, ANY)]


def _selects():
    def pick(c, a, b):
        return a if c else b

    cases = [Case(ops.Select, (BIT, *pair), pick) for pair in product(ANY, ANY)]
    cases += [Case(ops.Select, (Fixed(k, k), *ANY[:2]), pick, tight=False) for k in (0, 1)]
    # The condition may be one of the operands; the interval does not know of that.
    same = Case(lambda c, b: ops.Select(c, c, b), (BIT, ANY[3]), lambda c, b: c or b, tight=False)
    return [*cases, same]


def _products():
    cases = binary(ops.Mul, lambda a, b: a * b)
    cases += unary(lambda a: ops.Mul(a, a), lambda a: a * a, (*ANY, Fixed(-3, 9, 2)))
    # From no digit over several signed ones to more than are added up.
    for k in (-7, -1, 0, 1, 3, 5, 11, 85, 341, -2730):
        cases += unary(lambda a, k=k: ops.Mul(a, ops.Const(k, 2)), lambda a, k=k: a * k / 4)
        cases += unary(lambda a, k=k: ops.Mul(ops.Const(k, 2), a), lambda a, k=k: a * k / 4)
    return cases


def _hidden():
    return [
        Case(
            lambda a, b, n=n: ops.MulHidden(a, b, n),
            (a, b),
            lambda v, w, one=Fraction(2) ** (n - b.frac): v * (w + one),
        )
        for a, b, n in product(ANY, ANY, (0, 2, 4))
    ]


def _roundings():
    return [
        Case(
            lambda a, f=a.frac - drop, r=rounding: ops.Round(a, f, r),
            (a,),
            lambda v, f=a.frac - drop, r=rounding: rounded(v, f, r),
        )
        for a, drop, rounding in product(ANY, range(-2, 6), ROUNDINGS)
    ]


def _shifts():
    return [
        Case(
            lambda a, s, f=a.frac - drop, r=rounding: ops.ShiftRight(a, s, f, r),
            (a, s),
            lambda v, n, f=a.frac - drop, r=rounding: rounded(v / 2 ** int(n), f, r),
        )
        for a, s, drop, rounding in product(
            ANY, (Fixed(0, 3), Fixed(2, 6), Fixed(1, 1)), (-3, 0, 1, 2), ROUNDINGS
        )
    ]


def _limits(op, meaning, **rest):
    spans = [(-4, 3), (0, 7), (2, 5), (-99, 99), (-7, -3), (5, 5), (-2, -1), (20, 30), (-8, 7)]
    return [
        Case(
            lambda a, span=span: op(a, *span),
            (a,),
            lambda v, span=span, lsb=Fraction(2) ** -a.frac: meaning(v / lsb, *span, lsb),
            **rest,
        )
        for a, span in product(ANY, spans)
    ]


def _wraps():
    return [
        Case(lambda a, w=word: ops.Wrap(a, w), (a,), lambda v, w=word: wrapped(v, w), tight=False)
        for a in ANY
        for word in (Fixed.of(s, w, a.frac) for s, w in product((True, False), (2, 3, 5)))
    ]


def _withins():
    wide = unary(lambda a: ops.Within(a, a.fmt.lo - 3, a.fmt.hi + 2), lambda v: v, tight=False)
    # A product of neighbours is never negative, whatever the intervals say.
    below = unary(lambda a: ops.Within(a * (a + 1), 0, 72), lambda k: k * (k + 1), raw=True,
                  tight=False, formats=(Fixed(-8, 7), Fixed(-9, -2), Fixed(0, 5)))  # fmt: skip
    return wide + below


def _lookups():
    columns = ((7, -3, 0, 5, 4), (1, 1, 2, 3, 5, 8, 13), (-6, -9, -7), (0, 15), (4,))
    return [
        Case(
            lambda i, c=column: ops.Lookup(ops.Column("t", c, 2), i),
            (index,),
            lambda v, c=column: Fraction(c[int(v)], 4),
            tight=False,
        )
        for column in columns
        for index in (Fixed(0, len(column) - 1), Fixed(len(column) // 2, len(column) - 1))
    ]


def _slices():
    return [
        Case(
            lambda a, lo=lo, hi=hi: ops.Slice(a, lo, hi),
            (a,),
            lambda k, lo=lo, hi=hi, w=a.width: int(digits(k, w)[w - hi : w - lo], 2),
            raw=True,
            tight=hi == a.width,
        )
        for a in (*WORDS, Fixed(0, 13, 2))
        for lo in range(a.width)
        for hi in range(lo + 1, a.width + 1)
    ]


def _joins():
    return [
        Case(ops.Cat, pair, lambda h, k, w=pair[1].width: int(bin(h) + digits(k, w), 2), raw=True)
        for pair in product(WORDS, WORDS)
    ]


def _zeros():
    return [
        Case(
            lambda a, w=a.width + more: ops.LeadingZeros(a, w),
            (a,),
            lambda k, w=a.width + more: (digits(k, w) + "1").index("1"),
            raw=True,
        )
        for a, more in product((*WORDS, Fixed(0, 40), Fixed(2, 16)), (0, 1, 3, 4))
    ]


def _normals():
    return [
        Case(
            lambda a, w=a.width + more: ops.Normalise(a, ops.LeadingZeros(a, w)),
            (a,),
            lambda k, w=a.width + more: int(digits(k, w).lstrip("0").ljust(w, "0"), 2),
            raw=True,
            tight=False,
        )
        for a, more in product((*WORDS, Fixed(0, 40), Fixed(2, 16)), (0, 1, 3, 4))
    ]


CASES = {
    ops.Input: unary(lambda a: a, lambda v: v),
    ops.Const: [
        Case(lambda k=k, f=f: ops.Const(k, f), (), lambda k=k, f=f: k / Fraction(2) ** f)
        for k, f in product((-9, -8, -1, 0, 1, 7, 200), (-1, 0, 3))
    ],
    ops.Add: binary(ops.Add, lambda a, b: a + b),
    ops.Sub: binary(ops.Sub, lambda a, b: a - b),
    ops.Max: binary(ops.Max, max),
    ops.Less: binary(ops.Less, lambda a, b: 1 if a < b else 0),
    ops.Select: _selects(),
    ops.Abs: unary(ops.Abs, lambda a: -a if a < 0 else a),
    ops.Mul: _products(),
    ops.MulHidden: _hidden(),
    ops.Scale: [
        Case(lambda a, n=n: ops.Scale(a, n), (a,), lambda v, n=n: v * Fraction(2) ** n)
        for a, n in product(ANY, (-4, 0, 3))
    ],
    ops.Round: _roundings(),
    ops.ShiftRight: _shifts(),
    ops.Clamp: _limits(ops.Clamp, lambda k, lo, hi, lsb: sorted((lo, k, hi))[1] * lsb),
    ops.Outside: _limits(
        ops.Outside, lambda k, lo, hi, lsb: 0 if lo <= k <= hi else 1, tight=False
    ),
    ops.Wrap: _wraps(),
    ops.Within: _withins(),
    ops.Lookup: _lookups(),
    ops.Slice: _slices(),
    ops.Cat: _joins(),
    ops.LeadingZeros: _zeros(),
    ops.Normalise: _normals(),
}


def check_integers(op):
    """The integer meaning is the plain statement, and the interval is no wider than needed."""
    for case in CASES[op]:
        operands, numbers = case.table
        inputs = {f"a{n}": fmt for n, fmt in enumerate(case.formats)}
        flow = trace(lambda case=case, **a: {"y": case.build(*a.values())}, **inputs)
        columns = np.array(operands, dtype=np.int64).T
        result = flow.run(check=True, **dict(zip(inputs, columns, strict=True)))["y"]
        fmt = flow.outputs["y"].fmt
        scaled = [v * Fraction(2) ** fmt.frac for v in numbers]
        assert np.broadcast_to(result, len(scaled)).tolist() == scaled, f"{op.__name__}({case})"
        if case.tight:
            assert (fmt.lo, fmt.hi) == (min(scaled), max(scaled)), f"{op.__name__}({case})"


def combined(op):
    """All cases of an op in one flow, and inputs that hold every operand tuple of each."""
    places = {}
    for case in CASES[op]:
        for n, fmt in enumerate(case.formats):
            places.setdefault((n, fmt), f"{'abc'[n]}{len(places)}")

    def function(**wires):
        return {
            f"y{n}": case.build(*(wires[places[p]] for p in enumerate(case.formats)))
            for n, case in enumerate(CASES[op])
        }

    flow = trace(function, **{name: fmt for (_, fmt), name in places.items()})
    spans = [
        max([fmt.hi - fmt.lo + 1 for (at, fmt) in places if at == n], default=1) for n in range(3)
    ]
    grid = np.indices(spans).reshape(3, -1)
    inputs = {
        name: (fmt.lo + grid[n] % (fmt.hi - fmt.lo + 1))[None] for (n, fmt), name in places.items()
    }
    return flow, inputs


def check_hardware(op, period_ns=3):
    """The hardware gives what the integers say, for every operand tuple of every case."""
    flow, inputs = combined(op)
    if not inputs:
        # A flow of constants has no input to count vectors by.
        flow = trace(lambda x: {"x": x, **flow.outputs}, x=BIT)
        inputs = {"x": np.array([[0, 1, 1, 0]])}
    expected = flow.run(**inputs)
    for name, got in stream(Pipeline(flow, period_ns), inputs).items():
        want = np.broadcast_to(np.asarray(expected[name]), got.shape)
        assert got.tolist() == want.tolist(), f"{op.__name__}: {flow.outputs[name].fmt} {name}"


def test_every_op_has_cases():
    assert set(CASES) == set(ops.OPS)


@pytest.mark.parametrize("op", ops.OPS, ids=lambda op: op.__name__)
def test_integers_are_the_plain_statement(op):
    check_integers(op)


@pytest.mark.parametrize("op", ops.OPS, ids=lambda op: op.__name__)
def test_hardware_is_the_integers(op):
    check_hardware(op)


_S, _U = ops.Input("s", Fixed.parse("s4/1")), ops.Input("u", Fixed.parse("u3/0"))
_COLUMN = ops.Column("roots", (1, 2, 3), 0)


@pytest.mark.parametrize(
    ("build", "kind", "message"),
    [
        (lambda: _S + 0.5, TypeError,
         "a wire combines with wires and integers, got 0.5; see const()"),
        (lambda: bool(_S < _U), TypeError,
         "a wire has no truth value: use select(condition, a, b)"),
        (lambda: _U[1], TypeError, "bits of a wire are taken as wire[lo:hi], got 1"),
        (lambda: _U[::2], TypeError,
         "bits of a wire are taken as wire[lo:hi], got slice(None, None, 2)"),
        (lambda: _U[2:2], ValueError, "bits must lie in 0..3 and not be empty, got 2:2"),
        (lambda: _U[1:4], ValueError, "bits must lie in 0..3 and not be empty, got 1:4"),
        (lambda: _S[0:1], ValueError, "bits are taken of unsigned wires, got s4/1"),
        (lambda: ops.Cat(_U, _S), ValueError,
         "bits are joined of unsigned wires, got u3/0 and s4/1"),
        (lambda: ops.select(_U, 1, 2), ValueError,
         "the condition of select must be one bit, got u3/0"),
        (lambda: _COLUMN[_U], ValueError, "the index of table roots must stay below 3, got u3/0"),
        (lambda: _COLUMN[_S], ValueError, "a table index is an unsigned integer, got s4/1"),
        (lambda: ops.leading_zeros(_S), ValueError,
         "leading zeros are counted of unsigned wires, got s4/1"),
        (lambda: ops.leading_zeros(_U, 2), ValueError, "width must be at least 3, got 2"),
        (lambda: ops.Normalise(_U, ops.leading_zeros(_U + 1)), ValueError,
         "normalise needs the leading zeros of the same wire"),
        (lambda: ops.ShiftRight(_U, _S, 0, "floor"), ValueError,
         "a shift amount is an unsigned integer, got s4/1"),
        (lambda: _S.round(0, "up"), ValueError,
         "rounding must be one of nearest_even, nearest_up, floor, got 'up'"),
        (lambda: _S.ints(), TypeError, "Input has no integer meaning of its own"),
        (lambda: _S.rtl(None), TypeError, "Input has no hardware of its own"),
    ],
)  # fmt: skip
def test_what_ops_refuse(build, kind, message):
    with raises(message, kind):
        build()
