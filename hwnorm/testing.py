"""Checks that every norm has to pass: for the tests of norms that users write.

Built-in norms are held to the same. A check is a function of a design that raises if the
design breaks its rule, most often an ``AssertionError``.
"""

from dataclasses import replace
from functools import partial
from math import isfinite

import numpy as np

import hwnorm
from hwnorm.bitexact import assert_bit_exact
from hwnorm.design import dumps, parse
from hwnorm.measure import golden, measure
from hwnorm.model import evaluate, exact_block
from hwnorm.norms import NORMS, Norm
from hwnorm.report import check_text
from hwnorm.rows import corner_rows, endless_rows, random_rows, real_rows
from hwnorm.sim import ENGINES

#: Clock budgets in ns: a register behind nearly every op, a usual one, hardly any register.
BUDGETS = (2.0, 8.0, 100.0)

#: Input beats of a simulation in Amaranth's simulator, which does some thousand cycles a second.
PYSIM_BEATS = 600

#: Input beats of a simulation in an engine that compiles.
COMPILED_BEATS = 6000

#: What float64 itself may be wrong by, relatively.
FLOAT_ERROR = 1e-9


def parametrize_with_checks(designs, *, engines=("icarus",)):
    """Parametrise a pytest function with every check of every design.

    Parameters
    ----------
    designs : sequence of hwnorm.norms.Norm
    engines : sequence of str
        Simulation engines that run the exported Verilog; see ``hwnorm engines``.

    Returns
    -------
    decorator
        For a function with the arguments ``design`` and ``check``, whose body is
        ``check(design)``.

    Raises
    ------
    ValueError
        If a design or an engine is none.
    """
    import pytest

    cases = [
        pytest.param(design, check, id=f"{design.kind}-{n}-{name}")
        for n, design in enumerate(designs)
        for name, check in checks_of(design, engines=engines).items()
    ]
    return pytest.mark.parametrize(("design", "check"), cases)


def check_norm(design, *, engines=("icarus",)):
    """Run every check of a design; the first that fails raises.

    Parameters
    ----------
    design : hwnorm.norms.Norm
    engines : sequence of str
        As in `parametrize_with_checks`.

    Raises
    ------
    AssertionError
        If a check does not hold; other errors are the norm's own.
    """
    for check in checks_of(design, engines=engines).values():
        check(design)


def checks_of(design, *, engines=("icarus",)):
    """The checks that apply to a design.

    Returns
    -------
    dict of str to callable
        Name to a function of the design. Designs without hardware have none of the RTL.
    """
    if not isinstance(design, Norm):
        raise ValueError(f"designs must be hwnorm norms, got {design!r}")
    for engine in engines:
        if engine not in ENGINES:
            raise ValueError(f"engine must be one of {', '.join(ENGINES)}, got {engine!r}")
    checks = {
        "text": check_text_forms,
        "golden": check_golden,
        "corners": check_corners,
        "bound": check_bound,
    }
    if design.rsqrt.method == "exact":
        return checks
    checks["intervals"] = check_intervals
    checks |= {f"rtl at {ns:g} ns": partial(check_rtl, period_ns=ns) for ns in BUDGETS}
    checks |= {f"rtl with lanes={n}": partial(check_rtl, lanes=n) for n in _lanes(design)}
    checks |= {
        "stalls": partial(check_rtl, stall=0.4),
        "bursts of stalls": partial(check_rtl, stall=0.5, pattern="bursty"),
        "rate": check_rate,
    }
    if design.dim_max is not None:
        checks["lengths"] = check_lengths
    return checks | {f"verilog in {name}": partial(check_verilog, engine=name) for name in engines}


def check_text_forms(design):
    """The bound is a positive number, and repr, TOML and ``hwnorm check`` tell the design."""
    bound = design.bound_ulp
    _require(isfinite(bound) and bound > 0, f"bound_ulp must be positive and finite, got {bound}")
    plain = replace(design, gamma_init=None, beta_init=None)
    names = vars(hwnorm) | {type(design).__name__: type(design)}
    _require(eval(repr(plain), names) == plain, f"repr must give an equal design, got {plain!r}")
    if type(design) is NORMS.get(design.kind):
        text = dumps(design)
        _require(parse(text) == design, f"TOML must give an equal design, got {text!r}")
    else:
        _require(design.kind not in NORMS, f"kind must be a new name, got {design.kind!r}")
    check_text(design)


def check_golden(design):
    """Golden takes rows one by one or together, is finite, and agrees with the exact form."""
    x, given = _rows(design, 16), _parameters(design)
    together = golden(design, x, **given)
    _require(together.shape == x.shape, f"golden must keep {x.shape}, got {together.shape}")
    _require(np.isfinite(together).all(), "golden must be finite, got infinity or NaN")
    alone = np.stack([golden(design, row, **given) for row in x])
    _require(
        np.allclose(alone, together, rtol=FLOAT_ERROR, atol=0),
        "golden of a row must not depend on other rows, got another when it is alone",
    )
    if design.has_exact:
        ideal = np.ldexp(together, design.y.frac)
        nearest, _ = exact_block(replace(design, overflow="saturate"), x, given)
        error = np.abs(nearest - np.clip(ideal, design.y.lo, design.y.hi))
        room = 0.5 + FLOAT_ERROR * np.maximum(1, np.abs(ideal))
        _require((error <= room).all(), f"exact must round golden, got {error.max():.4f} ulp")


def check_intervals(design):
    """No wire leaves its interval, with any parameters on any rows."""
    x = _rows(design, 256)
    for given in _all_parameters(design):
        evaluate(design, x, **given, check=True)


def check_corners(design):
    """The bound holds on every corner row, with any parameters."""
    _check_error(design, corner_rows(design))


def check_bound(design):
    """The bound holds on real activations and random rows, with any parameters."""
    _check_error(design, np.concatenate([real_rows(design, 64), _extreme(design, 32)]))
    _check_error(design, random_rows(design, 256))


def check_rtl(design, *, stall=0.0, pattern="random", **changes):
    """The RTL in Amaranth's simulator gives the model's bits.

    Parameters
    ----------
    design : hwnorm.norms.Norm
    stall, pattern
        As in ``hwnorm.simulate``.
    **changes
        Fields of the design to be changed first, such as ``lanes``.
    """
    _check_same(replace(design, **changes), stall=stall, pattern=pattern)


def check_rate(design):
    """Without stalls a beat comes every cycle, and the first one after the stated latency."""
    result = _check_same(design)
    latency, rate = result.latency_cycles, result.beats_per_cycle
    _require(latency == design.latency, f"latency must be {design.latency} cycles, got {latency}")
    _require(rate == 1, f"a beat must come every cycle, got {rate:.3f} beats a cycle")


def check_lengths(design):
    """Rows of all lengths, one behind the other, keep the bound and are the model's bits."""
    given = {} if design.store == "rom" else _parameters(design)
    blocks = list(endless_rows(design, 64))
    for x in blocks:
        report = measure(design, x, **_parameters(design))
        _require(
            report.all.holds,
            f"max error of rows of {x.shape[1]} must keep the bound {design.bound_ulp:.4f} ulp, "
            f"got {report.all.max_ulp:.4f}",
        )
    for stall in (0.0, 0.4):
        assert_bit_exact(design, iter(blocks), **given, stall=stall, seed=3)


def check_verilog(design, engine="icarus"):
    """The exported Verilog in another simulator gives the model's bits, with and without stalls."""
    for stall in (0.0, 0.4):
        _check_same(design, stall=stall, engine=engine)


def _require(holds, sentence):
    if not holds:
        raise AssertionError(sentence)


def _check_error(design, x):
    for given in _all_parameters(design):
        report = measure(design, x, **given)
        row, element = report.worst
        _require(
            report.all.holds,
            f"max error must keep the bound {design.bound_ulp:.4f} ulp, got "
            f"{report.all.max_ulp:.4f} in row {row}, element {element}",
        )


def _check_same(design, engine="pysim", **options):
    beats = PYSIM_BEATS if engine == "pysim" else COMPILED_BEATS
    x = np.random.default_rng(1).permutation(_rows(design, 64))[: max(3, beats // design.beats)]
    # A row of zeros comes first: what it leaves behind must not touch the next.
    x[0] = 0
    given = {} if design.store == "rom" else _parameters(design)
    if design.streamed:
        given = {
            name: np.stack([np.roll(v, n) for n in range(len(x))]) for name, v in given.items()
        }
    return assert_bit_exact(design, x, **given, engine=engine, seed=2, **options)


def _rows(design, rows):
    """Corner, extreme and random rows."""
    return np.concatenate(
        [corner_rows(design), _extreme(design, rows // 4), random_rows(design, rows)]
    )


def _extreme(design, rows):
    """Seeded rows of the largest and the smallest numbers of either sign."""
    choices = np.array([design.x.lo, design.x.hi, -1, 0, 1])
    return np.random.default_rng(5).choice(choices, (rows, design.dim))


def _parameters(design, seed=0):
    """Seeded parameters over their whole formats."""
    rng = np.random.default_rng(seed)
    return {
        name: rng.integers(fmt.lo, fmt.hi + 1, design.dim)
        for name, fmt in design.parameters.items()
    }


def _all_parameters(design):
    """The initial parameters, seeded ones, and both ends of their formats."""
    if not design.parameters:
        return [{}]
    ends = [
        {name: np.full(design.dim, getattr(fmt, end)) for name, fmt in design.parameters.items()}
        for end in ("lo", "hi")
    ]
    return [{}, _parameters(design), *ends]


def _lanes(design):
    """The fewest, a middle and the most lanes besides the design's own, of short rows."""
    found = [
        n
        for n in range(1, 17)
        if design.dim % n == 0 and n != design.lanes and design.dim // n <= PYSIM_BEATS // 2
    ]
    return sorted({found[0], found[len(found) // 2], found[-1]}) if found else []
