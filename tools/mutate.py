"""Break the ops, the pipelines and the shell, one change after the other, and see who notices.

    python tools/mutate.py [WORD ...]

Each mutant changes a method or two in this process: the integer meaning of an op, its hardware,
its interval, the pipelines' registers, or a line of the shell. A small check, taken from the
tests, must then fail by an assertion (or a wire must leave its interval); unchanged, it must
hold. With words, only the mutants whose name holds all of them are tried. Exits 1 if one survives.
"""

import copy
import inspect
import sys
import textwrap
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import mutate_steps
import shell_check
import test_flow
import test_ops
import test_pipeline
from amaranth.hdl import Const, Value

from hwnorm import bits, flow, ops
from hwnorm.fixed import Fixed
from hwnorm.hdl import pipeline
from hwnorm.hdl.reduce import Reducer


@dataclass(frozen=True)
class Mutant:
    """One change and the check that must notice it.

    Members
    -------
    group : str
        ``integers``, ``hardware``, ``interval``, ``pipeline`` or ``shell``.
    target : str
        The op or the method.
    change : str
    patches : callable
        Gives (owner, attribute, replacement) for each patch.
    check : callable
        Fails by an AssertionError, or the OverflowError of a checked run.
    """

    group: str
    target: str
    change: str
    patches: Callable
    check: Callable

    def __str__(self):
        return f"{self.group} {self.target}: {self.change}"

    def caught(self):
        """What the check says of the mutant; None if it says nothing."""
        with patched(self.patches()):
            try:
                self.check()
            except (AssertionError, OverflowError) as error:
                return (str(error).splitlines() or [type(error).__name__])[0]
        return None


@contextmanager
def patched(patches):
    """Replace attributes for a while."""
    saved = [(owner, name, vars(owner).get(name)) for owner, name, _ in patches]
    try:
        for owner, name, replacement in patches:
            setattr(owner, name, replacement)
        yield
    finally:
        for owner, name, before in saved:
            if before is None:
                delattr(owner, name)  # it was inherited
            else:
                setattr(owner, name, before)


# -- ways to break a method -----------------------------------------------------------------


def plus_one(method):
    """The result is one more."""
    return lambda self, *args, **cut: method(self, *args, **cut) + 1


def flipped(method):
    """The lowest bit of the result is wrong."""
    return lambda self, m, *args, **cut: Value.cast(method(self, m, *args, **cut)) ^ 1


def swapped(i, j):
    """Two arguments change places."""

    def wrapper(method):
        def mutant(self, *args, **cut):
            args = list(args)
            args[i], args[j] = args[j], args[i]
            return method(self, *args, **cut)

        return mutant

    return wrapper


def altered(**changes):
    """The method sees other attributes: name to a function of the true value."""

    def wrapper(method):
        def mutant(self, *args, **cut):
            other = copy.copy(self)
            for name, change in changes.items():
                setattr(other, name, change(getattr(self, name)))
            return method(other, *args, **cut)

        return mutant

    return wrapper


def first(method):
    """The first operand is the result. (The module, which hardware gets first, is no operand.)"""
    return lambda self, *args, **cut: next(a for a in args if not hasattr(a, "submodules"))


def rounds(instead, of):
    """One rounding is taken for another."""
    return altered(rounding=lambda rounding: instead if rounding == of else rounding)


def reached(low, high):
    """An interval with other ends."""

    def wrapper(method):
        def mutant(self, *args):
            method(self, *args)
            lo, hi = self.fmt.lo + low, self.fmt.hi + high
            self.fmt = Fixed(min(lo, hi), hi, self.fmt.frac)

        return mutant

    return wrapper


def patch(owner, name, wrapper):
    """Wrap a method, or a function of a module."""
    return [(owner, name, wrapper(getattr(owner, name)))]


def rewrite(owner, name, old, new):
    """Replace a piece of a method's text, which must stand there once."""
    method = inspect.getattr_static(owner, name)
    plain = getattr(method, "__func__", getattr(method, "fget", method))
    text = textwrap.dedent(inspect.getsource(plain))
    if text.count(old) != 1:
        raise ValueError(
            f"{owner.__name__}.{name} must hold {old!r} once, got {text.count(old)}: "
            f"adapt the mutant to the new text"
        )
    # The outer function is the cell that super() looks for.
    source = "def make(__class__):\n" + textwrap.indent(text.replace(old, new), "    ")
    source += f"\n    return {name}\n"
    scope = {}
    home = sys.modules[getattr(owner, "__module__", owner.__name__)]
    exec(source, home.__dict__, scope)
    return [(owner, name, scope["make"](owner))]


# -- the mutants ----------------------------------------------------------------------------


def _op(group, op, change, wrapper, name=None):
    name = name or {"integers": "ints", "hardware": "rtl"}[group]
    check = test_ops.check_hardware if name == "rtl" else test_ops.check_integers

    def patches():
        # Ops that hand an operand on are not asked for their meaning.
        asked = [(op, "moves", False)] if name == "ints" and op.moves else []
        return [*patch(op, name, wrapper), *asked]

    return Mutant(group, op.__name__, change, patches, partial(check, op))


def _bits(op, name, change, wrapper):
    """A building block of the hardware, as one op uses it."""
    check = partial(test_ops.check_hardware, op)
    return Mutant("hardware", op.__name__, change, partial(patch, bits, name, wrapper), check)


def every_op():
    """What can be done to any op, so that a new one is never without mutants."""
    for op in ops.OPS:
        if "ints" in vars(op):
            yield _op("integers", op, "one more", plus_one)
        if "rtl" in vars(op):
            yield _op("hardware", op, "lowest bit flipped", flipped)
        yield _op("interval", op, "one too few above", reached(0, -1), "__init__")
        if any(case.tight for case in test_ops.CASES[op]):
            yield _op("interval", op, "one too many above", reached(0, 1), "__init__")
            yield _op("interval", op, "one too many below", reached(-1, 0), "__init__")


def both_meanings():
    """What can be done alike to an op's integers and to its hardware."""
    up, down = (lambda n: n + 1), (lambda n: n - 1)
    for group, m in (("integers", 0), ("hardware", 1)):  # the hardware's first argument is m
        yield _op(group, ops.Add, "second operand lost", first)
        yield _op(group, ops.Add, "grids not aligned", altered(ups=lambda ups: (0, 0)))
        yield _op(group, ops.Sub, "operands swapped", swapped(m, m + 1))
        yield _op(group, ops.Max, "second operand lost", first)
        yield _op(group, ops.Max, "grids not aligned", altered(ups=lambda ups: (0, 0)))
        yield _op(group, ops.Less, "operands swapped", swapped(m, m + 1))
        yield _op(
            group,
            ops.Less,
            "equal counts as less",
            lambda method, m=m: lambda self, *a: 1 - swapped(m, m + 1)(method)(self, *a),
        )
        yield _op(group, ops.Select, "operands swapped", swapped(m + 1, m + 2))
        yield _op(group, ops.Select, "grids not aligned", altered(ups=lambda ups: (0, 0, 0)))
        yield _op(group, ops.Abs, "sign kept", first)
        yield _op(group, ops.Mul, "second operand lost", first)
        yield _op(group, ops.MulHidden, "hidden one moved", altered(hidden=up))
        for op in (ops.Round, ops.ShiftRight):
            for of, instead in (
                ("nearest_even", "nearest_up"),
                ("nearest_up", "nearest_even"),
                ("nearest_even", "floor"),
                ("nearest_up", "floor"),
                ("floor", "nearest_up"),
            ):
                yield _op(group, op, f"{instead} for {of}", rounds(instead, of))
        yield _op(group, ops.Round, "one bit more dropped", altered(drop=up))
        yield _op(group, ops.ShiftRight, "one place more", altered(base=up))
        yield _op(group, ops.Clamp, "upper limit off by one", altered(hi=down))
        yield _op(group, ops.Clamp, "lower limit off by one", altered(lo=up))
        yield _op(group, ops.Clamp, "upper side not limited", altered(hi=lambda hi: 1 << 20))
        yield _op(group, ops.Clamp, "lower side not limited", altered(lo=lambda lo: -(1 << 20)))
        yield _op(group, ops.Outside, "upper limit off by one", altered(hi=up))
        yield _op(group, ops.Outside, "lower limit off by one", altered(lo=down))
        yield _op(
            group,
            ops.Lookup,
            "entries off by one",
            altered(column=lambda c: ops.Column(c.name, (*c.values[1:], c.values[0]), c.frac)),
        )
        yield _op(group, ops.Slice, "one bit higher", altered(lo=up, hi=up))
        yield _op(group, ops.Slice, "top bit lost", altered(hi=down))
        yield _op(group, ops.Cat, "operands swapped", swapped(m, m + 1))
        yield _op(group, ops.Cat, "one place too high", altered(shift=up))
        yield _op(group, ops.LeadingZeros, "word one bit wider", altered(word_bits=up))
        yield _op(group, ops.Normalise, "not shifted", first)
    yield _op("integers", ops.Wrap, "not wrapped", first)
    yield _op("integers", ops.Scale, "point moved the other way",
              lambda init: lambda self, a, n: init(self, a, -n), "__init__")  # fmt: skip
    yield _op(
        "hardware",
        ops.Mul,
        "last digit lost",
        altered(digits=lambda d: d and (d[:-1] or [(9, True)])),
    )
    yield _op(
        "hardware",
        ops.Mul,
        "signs of digits lost",
        altered(digits=lambda d: d and [(n, True) for n, _ in d]),
    )


def blocks():
    """The building blocks of the hardware."""

    def sticky(shift_right):
        return lambda *args: (shift_right(*args)[0], Const(0, 1))

    def unsigned(extend):
        return lambda value, width: extend(Value.cast(value).as_unsigned(), width)

    def below(bit):
        return lambda round_off: lambda value, lost, *rest: round_off(value, bit, *rest)

    yield _bits(ops.ShiftRight, "shift_right", "sticky bit missing", sticky)
    yield _bits(ops.ShiftRight, "round_off", "lost bits ignored", below(0))
    yield _bits(ops.Round, "round_off", "always sticky", below(1))
    yield _bits(ops.Round, "extend", "sign not extended", unsigned)
    yield _bits(ops.Wrap, "extend", "sign not extended", unsigned)
    yield _bits(ops.Clamp, "outside", "sides swapped", lambda f: lambda *a: f(*a)[::-1])
    yield _bits(ops.Outside, "outside", "one side only", lambda f: lambda *a: (f(*a)[0],) * 2)
    yield _bits(
        ops.Normalise,
        "shift_left",
        "one place short",
        lambda f: lambda m, v, *rest: f(m, v >> 1, *rest),
    )
    yield _bits(ops.LeadingZeros, "count_leading_zeros", "lowest bit ignored",
                lambda f: lambda m, v, *rest: f(m, Value.cast(v) & ~1, *rest))  # fmt: skip


def _text(group, owner, name, old, new, check):
    target = f"{owner.__name__}.{name}"
    return Mutant(group, target, f"{old} -> {new}", partial(rewrite, owner, name, old, new), check)


def pipelines():
    """Inputs, registers, lanes, time and dtypes."""
    integers, hardware = (
        partial(check, ops.Input) for check in (test_ops.check_integers, test_ops.check_hardware)
    )
    run = partial(_text, "pipeline", flow.Flow)
    place = partial(_text, "pipeline", pipeline.Pipeline)
    yield run("run", "value for key, value in", "value + 1 for key, value in", integers)
    yield run("schedule", "if step.registered:", "if False:", check_lanes)
    yield place("_place", "self.input(", "~self.input(", hardware)
    constants = partial(test_ops.check_hardware, ops.Const)
    yield place("_place", "constant_value(wire)", "constant_value(wire) ^ 1", constants)
    yield place("_place", "if self.schedule.registered(wire)", "if False", check_lanes)
    yield place("_at", "lane, copies]", "lane, max(copies - 1, 0)]", check_lanes)

    def late(at):
        return lambda self, m, delayed, wire, lane, cycle: at(
            self, m, delayed, wire, lane, cycle + isinstance(wire, ops.Mul)
        )

    def mixed(at):
        return lambda self, m, delayed, wire, lane, cycle: at(self, m, delayed, wire, 0, cycle)

    for change, wrapper in (("one register more", late), ("lanes mixed up", mixed)):
        patches = partial(patch, pipeline.Pipeline, "_at", wrapper)
        yield Mutant("pipeline", "Pipeline._at", change, patches, check_lanes)
    for dtype in ("np.int32", "np.int64"):
        yield Mutant(
            "pipeline",
            "narrowest",
            f"always {dtype}",
            partial(
                patch, flow, "narrowest", lambda f, d=dtype: lambda lo, hi: getattr(flow.np, d[3:])
            ),
            test_flow.test_beyond_62_bits_it_is_exact,
        )


def check_lanes():
    """Multipliers, tables, waiting operands and shared ones, in two lanes and three budgets."""

    def function(x, row):
        entry = ops.Column("t", (3, -1, 4, 1), 1)[abs(x)[0:2]]
        return {"y": (x * row + x) * entry, "z": row * row - x, "late": x - 1}

    for period_ns in test_pipeline.BUDGETS_NS:
        flow_ = flow.trace(function, x=Fixed(-20, 20, 2), row=Fixed(-20, 20, 2))
        test_pipeline.check_pipeline(flow_, period_ns, lanes=2, shared={"row"}, seed=1)


def shell():
    for owner, name, old, new in shell_check.MUTATIONS:
        check = shell_check.check_reducer if owner is Reducer else shell_check.check_engine
        yield _text("shell", owner, name, old, new, check)


def steps():
    for owner, name, old, new, check in mutate_steps.MUTATIONS:
        yield _text("pipeline", owner, name, old, new, check)


MUTANTS = (*every_op(), *both_meanings(), *blocks(), *pipelines(), *shell(), *steps())


def main(words):
    """Try mutants and print a table; returns the exit status."""
    chosen = [mutant for mutant in MUTANTS if all(word in str(mutant) for word in words)]
    if not chosen:
        raise SystemExit(f"no mutant has a name that holds {' and '.join(words)}")
    # Nothing is learnt from a check that fails by itself.
    for check in {str(mutant.check): mutant.check for mutant in chosen}.values():
        check()
    survivors = 0
    for mutant in chosen:
        start, reason = time.perf_counter(), mutant.caught()
        survivors += reason is None
        verdict = "SURVIVED" if reason is None else "killed"
        seconds = time.perf_counter() - start
        print(f"{verdict:8}  {seconds:5.2f} s  {mutant}\n{'':20}{(reason or '-')[:100]}")
    print(f"{len(chosen)} mutants, {len(chosen) - survivors} killed, {survivors} survived")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
