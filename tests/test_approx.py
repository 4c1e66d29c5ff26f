"""The approximations keep the error they declare: on all short arguments, sampled beyond."""

from math import sqrt

import numpy as np
import pytest

from hwnorm.approx import Exp2, Log2, ReciprocalRoot, square_by_adders
from hwnorm.fixed import Fixed
from hwnorm.flow import trace
from hwnorm.ops import MULTIPLIER_BITS, Mul

ONE = Fixed(1, 1, 0)


def hard_arguments(width, seed):
    """Arguments of up to `width` bits: powers of two and four +-1, both ends, random sizes."""
    rng = np.random.default_rng(seed)
    top = (1 << width) - 1
    near = [(1 << n) + d for n in range(width) for d in (-1, 0, 1)]
    # A run of ones, and a leading one with one far below it, sit at the ends of segments.
    runs = [top >> n for n in range(width)] + [(1 << width - 1) + (1 << n) for n in range(width)]
    drawn = [int.from_bytes(rng.bytes(9)) >> int(n) for n in rng.integers(72 - width, 72, 6000)]
    return sorted({v for v in (*near, *runs, *drawn, 1, 2, 3, top, top - 1) if 0 < v <= top})


# -- reciprocal square root -------------------------------------------------------------------


def root_of(root, values):
    """What the wires give, times one: exact fractions of a common denominator as floats."""
    flow = trace(lambda v, x: {"r": x * root(v)}, v=root.arg, x=ONE)
    made = flow.run(check=True, v=np.asarray(values), x=np.ones(len(values), dtype=np.int64))
    exponent = np.broadcast_to(np.asarray(made["r_exp"]).astype(np.int64), len(values))
    product = np.asarray(made["r"]).astype(np.float64)
    return np.ldexp(product, -flow.outputs["r"].fmt.frac - exponent)


def relative_root_error(root, values):
    """Against float64, which is a million times finer than any of these tables."""
    exact = root.scale / np.sqrt(np.ldexp(np.array([float(v) for v in values]), -root.arg.frac))
    return np.abs(root_of(root, values) / exact - 1)


ROOTS = [
    # method, segments, significant bits, mantissa bits, scale
    ("direct", 64, 10, 11, 1.0),
    ("direct", 4096, 14, 15, sqrt(576)),
    ("direct", 2, 8, 9, 3.3),
    ("linear", 8, 10, 11, sqrt(3)),
    ("linear", 512, 18, 19, sqrt(768)),
    ("linear", 64, 18, 19, 1.0),
    ("linear", 128, 18, 30, sqrt(4096)),
    ("quadratic", 4, 14, 15, 0.037),
    ("quadratic", 64, 20, 21, sqrt(1152)),
    ("linear", 2, 6, 7, 12345.6),
]


@pytest.mark.parametrize("lo", [1, 5, 255])
@pytest.mark.parametrize(("method", "segments", "sig", "mantissa", "scale"), ROOTS)
def test_every_16_bit_root(method, segments, sig, mantissa, scale, lo):
    for frac in (0, 9, -4):
        root = ReciprocalRoot(
            Fixed(lo, (1 << 16) - 1, frac), method, segments, sig, mantissa, scale
        )
        values = np.arange(lo, 1 << 16)
        worst = relative_root_error(root, values).max()
        # If no mantissa bit is cut, every argument is one of the table's codes.
        assert worst <= root.max_error
        assert worst >= 0.2 * root.max_error


@pytest.mark.parametrize("width", [34, 41, 48, 63, 66])
@pytest.mark.parametrize(("method", "segments", "sig", "mantissa", "scale"), ROOTS)
def test_wide_roots(method, segments, sig, mantissa, scale, width):
    root = ReciprocalRoot(Fixed(1, (1 << width) - 1, 20), method, segments, sig, mantissa, scale)
    values = hard_arguments(width, seed=width)
    parities = {v.bit_length() % 2 for v in values}
    assert parities == {0, 1}
    assert relative_root_error(root, values).max() <= root.max_error


def test_intervals_that_are_no_whole_word():
    """Bounds inside an octave, and in one octave only, where exponents become constants."""
    for lo, hi in ((3, 1000), (700, 900), (600, 1023), (512, 513), (1025, 4000), (77, 78)):
        for segments in (2, 16):
            root = ReciprocalRoot(Fixed(lo, hi, 4), "linear", segments, 12, 13, 5.0)
            values = np.arange(lo, hi + 1)
            assert relative_root_error(root, values).max() <= root.max_error, (lo, hi)


@pytest.mark.parametrize("width", range(30, 42))
def test_the_hidden_one_fits_a_multiplier(width):
    """At 18 significant bits the stored significand and its sign fit one multiplier."""
    kept = []
    for scale in (1.0, sqrt(576), sqrt(768), sqrt(3584), sqrt(11008)):
        root = ReciprocalRoot(Fixed(9, (1 << width) - 1, 16), "linear", 512, 18, 19, scale)
        flow = trace(lambda v, root=root: {"r": root(v)}, v=root.arg)
        sig = flow.outputs["r"].fmt
        assert sig.width + (not sig.signed) <= MULTIPLIER_BITS
        values = hard_arguments(width, seed=width)[20:]
        assert relative_root_error(root, [v for v in values if v >= 9]).max() <= root.max_error
        kept.append(root.hidden is not None)
    assert any(kept)


@pytest.mark.parametrize("sig", [10, 16, 19, 24])
def test_nothing_is_hidden_where_it_does_not_pay(sig):
    for width in (40, 41):
        root = ReciprocalRoot(Fixed(1, (1 << width) - 1, 0), "linear", 16, sig, 20, 1.0)
        assert root.hidden is None


def test_roots_of_nothing_are_refused():
    with pytest.raises(ValueError, match=r"^the argument of rsqrt must be positive, got u8/0$"):
        ReciprocalRoot(Fixed(0, 255, 0), "linear", 16, 10, 11)


# -- logarithm --------------------------------------------------------------------------------


def log_of(log, values):
    flow = trace(lambda v: {"y": log(v)}, v=log.arg)
    made = flow.run(check=True, v=np.asarray(values))["y"]
    return np.ldexp(np.asarray(made).astype(np.float64), -flow.outputs["y"].fmt.frac)


LOGS = [("direct", 16), ("direct", 256), ("mitchell", 4), ("mitchell", 64), ("linear", 32)]


@pytest.mark.parametrize("frac", [6, 10, 13, 18])
@pytest.mark.parametrize(("method", "segments"), LOGS)
def test_every_16_bit_logarithm(method, segments, frac):
    for point in (0, 7, -3):
        log = Log2(Fixed(0, (1 << 16) - 1, point), method, segments, frac)
        values = np.arange(1, 1 << 16)
        error = np.abs(log_of(log, values) - np.log2(np.ldexp(values.astype(float), -point)))
        assert 0.3 * log.max_error <= error.max() <= log.max_error


@pytest.mark.parametrize("width", [34, 47, 66])
@pytest.mark.parametrize(("method", "segments"), LOGS)
def test_wide_logarithms(method, segments, width):
    log = Log2(Fixed(0, (1 << width) - 1, 21), method, segments, 16)
    values = hard_arguments(width, seed=width)
    exact = np.log2([float(v) for v in values]) - 21
    assert np.abs(log_of(log, values) - exact).max() <= log.max_error


# -- power of two -----------------------------------------------------------------------------


def power_error(exp, values):
    """Error of ``2**a`` in lsb, and what the declared bound allows of it."""
    flow = trace(lambda a: {"y": exp(a)}, a=exp.arg)
    made = flow.run(check=True, a=values)["y"]
    result = np.ldexp(made.astype(float), exp.frac - flow.outputs["y"].fmt.frac)
    exact = np.exp2(np.ldexp(values.astype(float), -exp.arg.frac)) * 2.0**exp.frac
    return result - exact, exp.max_error * exact


@pytest.mark.parametrize("rounding", ["nearest_even", "nearest_up", "floor"])
@pytest.mark.parametrize(
    ("method", "segments", "sig"), [("direct", 128, 14), ("mitchell", 32, 16), ("linear", 16, 18)]
)
@pytest.mark.parametrize(("lo", "hi", "frac"), [(-40000, 25535, 11), (-300, 65235, 13), (1, 9, 3)])
def test_every_16_bit_power(method, segments, sig, rounding, lo, hi, frac):
    # A table has no more segments than there are codes.
    segments = min(segments, 1 << frac)
    for point in (10, 0, -2):
        exp = Exp2(Fixed(lo, hi, frac), method, segments, sig, point, rounding)
        error, allowed = power_error(exp, np.arange(lo, hi + 1))
        down, up = (1.0, 0.0) if rounding == "floor" else (0.5, 0.5)
        assert (error <= allowed + up).all()
        assert (error >= -allowed - down).all()


def test_powers_far_below_the_lsb_are_nothing():
    exp = Exp2(Fixed(-(1 << 15), 100, 8), "mitchell", 16, 12, 4, "nearest_even")
    flow = trace(lambda a: {"y": exp(a)}, a=exp.arg)
    low = np.arange(-(1 << 15), -6 << 8)
    assert not flow.run(a=low)["y"].any()
    # The shifter stops where nothing is left, so it needs no stages for the rest.
    shift = next(w for w in flow.wires if w.name == "exp2_shift")
    assert shift.fmt.hi <= 8


# -- squares ----------------------------------------------------------------------------------


@pytest.mark.parametrize("spelling", ["s16/0", "s16/9", "s16/-3", "u16/4", "s2/0", "u1/0", "s3/8"])
def test_every_16_bit_square(spelling):
    fmt = Fixed.parse(spelling)
    flow = trace(lambda x: {"y": square_by_adders(x)}, x=fmt)
    values = np.arange(fmt.lo, fmt.hi + 1)
    assert (flow.run(check=True, x=values)["y"] == values * values).all()
    assert flow.outputs["y"].fmt == Fixed(0, max(fmt.lo**2, fmt.hi**2), 2 * fmt.frac)
    assert not any(isinstance(wire, Mul) for wire in flow.wires)
    assert flow.cost.multipliers == 0


@pytest.mark.parametrize("spelling", ["s32/8", "u32/0", "s24/30"])
def test_wide_squares(spelling):
    fmt = Fixed.parse(spelling)
    flow = trace(lambda x: {"y": square_by_adders(x)}, x=fmt)
    rng = np.random.default_rng(3)
    drawn = [int(v) for v in rng.integers(fmt.lo, fmt.hi + 1, 2000)]
    values = [fmt.lo, fmt.lo + 1, -1, 0, 1, fmt.hi - 1, fmt.hi, *drawn]
    values = [v for v in values if fmt.lo <= v <= fmt.hi]
    made = flow.run(check=True, x=np.array(values))["y"]
    assert [int(v) for v in made] == [v * v for v in values]


def test_an_interval_that_is_no_word_is_squared_exactly():
    flow = trace(lambda x: {"y": square_by_adders(x)}, x=Fixed(-37, 21, 2))
    values = np.arange(-37, 22)
    assert (flow.run(check=True, x=values)["y"] == values**2).all()
    assert flow.outputs["y"].fmt == Fixed(0, 37 * 37, 4)


def test_the_arguments_are_hard():
    """Both exponent parities, powers of four and their neighbours, and both ends are tried."""
    values = set(hard_arguments(34, seed=1))
    assert {4**n + d for n in range(17) for d in (-1, 0, 1)} - {0} <= values
    assert {1, 2**34 - 1} <= values
    assert len(values) > 4000
