"""Mutants of what spreads an op over cycles, and of what shares hardware over them."""

from functools import partial

import test_pipeline
import test_sequencer

from hwnorm import bits, ops
from hwnorm.fixed import Fixed
from hwnorm.flow import trace
from hwnorm.hdl.pipeline import Registers
from hwnorm.hdl.sequencer import Sequencer, Turns
from hwnorm.ops.multiplier import Tiling
from hwnorm.schedule import Schedule
from hwnorm.sharing import Sharing
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


def check_shared():
    """A row's solve on shared hardware, at a fast and a slow clock."""
    design = test_sequencer.DESIGNS["wide"]
    for interval, strides in ((24, ()), (48, (4, 1))):
        for target, period_ns in (("generic", 8.0), ("ecp5", 6.0)):
            test_sequencer.check_sequencer(
                design.flows.solve, period_ns, interval, TARGETS[target], strides,
                inputs=test_sequencer.totals_of(design),
            )  # fmt: skip
    test_sequencer.test_registers_are_kept_instead_of_passed_on()
    test_sequencer.test_products_that_could_begin_together_do_not()
    test_sequencer.test_shift_register((1,))


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
    (bits, "normalise_in_turns", "zeros + stride", "zeros + 1", check_shared),
    (bits, "normalise_in_turns", "~word[width - stride :].any()", "~word[width - 1]",
     check_shared),
    (bits, "normalise_in_turns", "zeros.eq(0)", "zeros.eq(zeros)", check_shared),
    (bits, "turns", "max(count(n) for", "min(count(n) for", check_shared),
    (Schedule, "copies", "1 + late // self.interval", "1", check_shared),
    (Schedule, "kept_from", "(copy - 1) * self.interval", "(copy - 1)", check_shared),
    (Sequencer, "_keep", "self.mark(m, cycle)", "1", check_shared),
    (Sequencer, "_keep", "self.mark(m, cycle)", "self.mark(m, cycle + 1)", check_shared),
    (Sequencer, "_normalise", "self.schedule.place[wire]", "1 + self.schedule.place[wire]",
     check_shared),
    (Sequencer, "entry", "self.schedule.place[wire]", "1 + self.schedule.place[wire]",
     check_shared),
    (Sequencer, "_choose", "self.mark(m, cycle), value", "self.mark(m, cycle + 1), value",
     check_shared),
    (Sequencer, "_multiplier", "(not v.shape().signed)", "0", check_shared),
    (Sequencer, "elaborate", "self.mark(m, self.latency)", "self.mark(m, self.latency - 1)",
     check_shared),
    (Turns, "multiply", "cycle + n, pair", "cycle, pair", check_shared),
    (Turns, "multiply", "+ sharing.block_cycles", "", check_shared),
    (Sharing, "_place_products", "not taken & turns", "True", check_shared),
    (Sharing, "_place_products", "schedule.copies(arg, start) == schedule.copies",
     "True or schedule.copies", check_shared),
)  # fmt: skip
