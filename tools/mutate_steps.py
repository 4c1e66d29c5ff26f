"""Mutants of what spreads an op over cycles: adders in pieces, tiled products, cuts."""

from functools import partial

import test_pipeline

from hwnorm import bits, ops
from hwnorm.fixed import Fixed
from hwnorm.flow import trace
from hwnorm.hdl.pipeline import Registers
from hwnorm.ops.multiplier import Tiling
from hwnorm.targets import TARGETS

#: Short enough for input registers and for adders in pieces, on any of them.
SHORT_NS = {"ecp5": 3.0, "generic": 2.0}


def check(function, *widths):
    """A flow of signed inputs agrees with its model where everything is split."""
    formats = {f"x{n}": Fixed.of(True, width) for n, width in enumerate(widths)}
    flow = trace(function, **formats)
    for target, period_ns in SHORT_NS.items():
        test_pipeline.check_pipeline(flow, period_ns, target=TARGETS[target])


def _total(x0, x1):
    return {"sum": x0 + x1, "difference": x0 - x1}


def _products(x0, x1):
    return {"square": x0 * x0, "product": x0 * x1, "hidden": ops.MulHidden(x1, x0, 9)}


def _words(x0, x1):
    word = abs(x0)
    zeros = ops.leading_zeros(word)
    return {
        "top": ops.Normalise(word, zeros),
        "even": ops.ShiftRight(x0, abs(x1)[0:4], -3, "nearest_even"),
    }


SUMS = partial(check, _total, 40, 38)
ROWS = partial(check, _products, 24, 17)
TILES = partial(check, _products, 32, 30)
WORDS = partial(check, _words, 22, 6)

MUTATIONS = (
    (bits, "add_in_pieces", "carry, a, b = total[-1],", "carry, a, b = 0,", SUMS),
    (bits, "add_in_pieces", "a[size:], b[size:]", "a, b[size:]", SUMS),
    (bits, "sum_in_levels", "list(moved[: len(terms)])", "list(moved[1 : len(terms)])", TILES),
    (bits, "limbs", "value[size:].as_signed() if", "value[size:] if", TILES),
    (Tiling, "rtl", "+ (self.square and i != j)", "", TILES),
    (Tiling, "_with_rows", "wide + low if", "wide if", ROWS),
    (Tiling, "_with_rows", "-row if", "row if", ROWS),
    (Tiling, "_with_rows", "factor << i", "factor << 0", ROWS),
    (bits, "shift_left", "cut(value, amount[:i])", "cut(value)[0], amount[:i]", WORDS),
    (bits, "shift_right", "value, lost, amount = cut(value, lost, amount[:i])",
     "value, amount = cut(value, amount[:i])", WORDS),
    (bits, "round_off", "kept, up = cut(kept, up)", "(kept,) = cut(kept)", WORDS),
    (bits, "count_leading_zeros", "none, *zeros = cut(none, *zeros)",
     "zeros = list(cut(*zeros))", WORDS),
    (Registers, "__call__", "self.counts[self.calls] if", "0 if", SUMS),
)  # fmt: skip
