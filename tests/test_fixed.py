"""Formats: intervals and spellings, and `fit` against fxpmath, which shares no code with it."""

import re
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from fxpmath import Fxp

from hwnorm import fixed
from hwnorm.fixed import Fixed, format_for, is_fxp, quantise, to_fxp
from hwnorm.flow import trace

#: What fxpmath calls our roundings.
FXP_ROUNDING = {"nearest_even": "around", "nearest_up": "nearest_posinf", "floor": "floor"}

SPELLINGS = [f"{s}{w}/{f}" for s, w, f in product("su", (2, 3, 8, 16, 48), (-3, 0, 1, 7, 20))]


def raises(message, kind=ValueError):
    """Expect an error with exactly this message."""
    return pytest.raises(kind, match=f"^{re.escape(message)}$")


def twos_complement_width(lo, hi):
    """The smallest word that holds an interval, found by trying."""
    width = 1
    while not (-(2 ** (width - 1)) <= lo and hi < 2 ** (width - 1) if lo < 0 else hi < 2**width):
        width += 1
    return width


def test_width_is_the_smallest_that_holds_the_interval():
    for lo in range(-70, 71):
        for hi in range(lo, 71):
            fmt = Fixed(lo, hi)
            assert fmt.width == twos_complement_width(lo, hi), fmt
            assert fmt.signed == (lo < 0)


@pytest.mark.parametrize("width", [2, 5, 31, 32, 64, 200])
def test_whole_words(width):
    assert Fixed.of(True, width, 3) == Fixed(-(2 ** (width - 1)), 2 ** (width - 1) - 1, 3)
    assert Fixed.of(False, width, 3) == Fixed(0, 2**width - 1, 3)
    for signed in (True, False):
        fmt = Fixed.of(signed, width, -2)
        assert fmt.word == fmt
        assert (fmt.width, fmt.signed, fmt.lsb) == (width, signed, 4.0)


def test_one_bit_is_unsigned_only():
    assert Fixed.of(False, 1) == Fixed(0, 1)
    # [-1..0] fits one bit, but no format is spelled s1/0.
    assert (Fixed(-1, 0).width, Fixed(-1, 0).spelling) == (1, "s2/0")


@pytest.mark.parametrize("text", SPELLINGS)
def test_spelling_round_trip(text):
    fmt = Fixed.parse(text)
    assert (str(fmt), fmt.spelling, fmt.dtype) == (text, text, f"fxp-{text}")
    assert Fixed.parse(fmt.dtype) == fmt
    assert Fixed.parse(fmt) is fmt


@pytest.mark.parametrize("text", SPELLINGS)
def test_fxpmath_reads_and_writes_the_same_spelling(text):
    fmt = Fixed.parse(text)
    theirs = Fxp(None, dtype=fmt.dtype)
    assert (theirs.signed, theirs.n_word, theirs.n_frac) == (fmt.signed, fmt.width, fmt.frac)
    assert Fixed.parse(theirs.dtype) == fmt
    assert (int(theirs.lower * 2.0**fmt.frac), int(theirs.upper * 2.0**fmt.frac)) == (
        fmt.lo,
        fmt.hi,
    )


def test_partial_intervals_are_printed_with_their_ends():
    assert str(Fixed(0, 200, 4)) == "u8/4 [0..200]"
    assert str(Fixed(-3, 200, -1)) == "s9/-1 [-3..200]"
    assert Fixed(-3, 200, -1).word == Fixed(-256, 255, -1)


@pytest.mark.parametrize(
    "text", ["", "s16", "16/8", "s16/", "s16/8 ", "i16/8", "S16/8", "s-4/0", "s16.8", None, 16]
)
def test_bad_spellings(text):
    with raises(f"a format is spelled like s16/8 or u8/0, got {text!r}"):
        Fixed.parse(text)


def test_bad_formats():
    with raises("lo must not exceed hi, got lo=3 and hi=2"):
        Fixed(3, 2)
    with raises("width must be at least 2 bits for a signed format, got 1"):
        Fixed.parse("s1/0")
    with raises("width must be at least 1 bits for an unsigned format, got 0"):
        Fixed.parse("u0/4")


def test_holds_means_every_number_is_there():
    spans = ((-4, 3), (0, 7), (2, 2), (-9, 9))
    formats = [Fixed(*span, frac) for span, frac in product(spans, (-1, 0, 2))]

    def numbers(fmt):
        return {k * Fraction(2) ** -fmt.frac for k in range(fmt.lo, fmt.hi + 1)}

    for a, b in product(formats, formats):
        # Numbers of a finer grid do not count, even where all of them are on the coarser one.
        expected = numbers(b) <= numbers(a) and b.frac <= a.frac
        assert a.holds(b) == expected, (a, b)


# -- quantising -----------------------------------------------------------------------------


def test_floats_are_rounded_to_the_nearest_even():
    fmt = Fixed.parse("s8/2")
    reals = np.arange(-60, 61) / 16
    got = quantise(fmt, reals)
    assert got.dtype == np.int64
    assert got.tolist() == [round(Fraction(v) * 4) for v in reals.tolist()]
    assert (fmt.reals(got) == np.array(got) / 4).all()


def test_integers_are_taken_as_they_are():
    fmt = Fixed.parse("s8/2")
    for dtype in (np.int8, np.int16, np.int64):
        assert quantise(fmt, np.array([-128, 127], dtype)).tolist() == [-128, 127]
    assert quantise(fmt, [1, 2]).tolist() == [1, 2]
    assert quantise(fmt, np.array([], np.int64)).tolist() == []


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, np.nan, np.inf], "w must be finite, got 2 NaN or infinite elements"),
        (
            [-32.125, 31.75, 31.875, 33.0],
            "w must fit s8/2, got 2 of 4 elements outside it; s9/2 holds them all",
        ),
        (
            [-129, 0, 1000],
            "w must fit s8/2, got 2 of 3 elements outside it; s11/2 holds them all",
        ),
        ([True, False], "w must be integers or floats, got dtype bool"),
        (["1"], "w must be integers or floats, got dtype <U1"),
        (
            Fxp([0.125], True, 8, 3),
            "w must have at most 2 fraction bits (s8/2), got fxp-s8/3",
        ),
        (
            Fxp([63, -64], True, 8, 1),
            "w must fit s8/2, got 2 of 2 elements outside it; s9/2 holds them all",
        ),
        (
            Fxp(2.0**62, True, 64, 0),
            "w must fit s8/2, got 1 of 1 elements outside it; s66/2 holds them all",
        ),
    ],
)
def test_what_does_not_fit_is_said(values, message):
    with raises(message):
        quantise(Fixed.parse("s8/2"), values, "w")


def test_fxp_is_taken_by_value_and_given_back():
    coarse = Fxp([-3.5, 2.0], True, 8, 1)
    ints = quantise(Fixed.parse("s10/4"), coarse)
    assert ints.tolist() == [-56, 32]
    back = to_fxp(Fixed.parse("s10/4"), ints)
    assert (back.dtype, back.get_val().tolist()) == ("fxp-s10/4", [-3.5, 2.0])
    assert is_fxp(back)
    assert not is_fxp(ints)


def test_fxp_is_known_without_importing_fxpmath(monkeypatch):
    monkeypatch.delitem(fixed.sys.modules, "fxpmath")
    assert not is_fxp(np.zeros(2))


def test_format_for_is_the_narrowest_signed_word():
    for frac, low, high in product((0, 2, -1), range(-17, 18), range(-17, 18)):
        reals = np.array([low, high]) * 2.0**-frac
        fmt = format_for(reals, frac)
        assert fmt.frac == frac
        width = max(2, twos_complement_width(min(low, high, -1), max(low, high)))
        assert fmt == Fixed.of(True, width, frac), (low, high)
    assert format_for([], 3) == Fixed.parse("s2/3")


# -- fit ------------------------------------------------------------------------------------


def fit(fmt, ints, target, rounding, overflow):
    flow = trace(lambda x: {"y": x.fit(target, rounding, overflow)}, x=fmt)
    result = flow.run(check=True, x=ints)["y"]
    # A format that holds everything already is not widened; the values are then on its grid.
    assert flow.outputs["y"].fmt.frac == target.frac
    assert target.holds(flow.outputs["y"].fmt)
    return np.asarray(result)


def fxp_fit(fmt, ints, target, rounding, overflow):
    return Fxp(
        fmt.reals(ints),
        target.signed,
        target.width,
        target.frac,
        rounding=FXP_ROUNDING[rounding],
        overflow=overflow,
    ).val


@pytest.mark.parametrize("overflow", fixed.OVERFLOWS)
@pytest.mark.parametrize("rounding", fixed.ROUNDINGS)
def test_fit_against_fxpmath_exhaustively(rounding, overflow):
    sources = [Fixed.parse("s9/4"), Fixed.parse("u8/3"), Fixed(-37, 101, 2), Fixed(5, 90, 0)]
    targets = product("su", (2, 4, 7, 12), (-2, 0, 2, 3, 6))
    for source, target in product(sources, [Fixed.parse(f"{s}{w}/{f}") for s, w, f in targets]):
        ints = np.arange(source.lo, source.hi + 1)
        got = fit(source, ints, target, rounding, overflow)
        want = fxp_fit(source, ints, target, rounding, overflow)
        assert got.tolist() == want.tolist(), (source, target)


@pytest.mark.parametrize("overflow", fixed.OVERFLOWS)
@pytest.mark.parametrize("rounding", fixed.ROUNDINGS)
@pytest.mark.parametrize("target", ["s16/8", "s40/20", "u33/4", "s52/30", "s24/-5"])
def test_fit_against_fxpmath_in_wide_words(target, rounding, overflow):
    # float64, through which fxpmath reads the numbers, holds 53 bits.
    source, target = Fixed.of(True, 50, 24), Fixed.parse(target)
    rng = np.random.default_rng(1)
    ints = rng.integers(source.lo, source.hi, 4000, endpoint=True) >> rng.integers(0, 48, 4000)
    ties = (ints[:1000] >> 10 << 10) + 512
    ints = np.concatenate([ints, ties, [source.lo, source.hi, 0, -1]])
    got = fit(source, ints, target, rounding, overflow)
    want = fxp_fit(source, ints, target, rounding, overflow)
    assert got.tolist() == want.tolist()


def test_fit_names_what_it_does_not_know():
    with raises("overflow must be one of saturate, wrap, got 'clip'"):
        fit(Fixed(0, 3), np.zeros(1, int), Fixed(0, 1), "floor", "clip")
    with raises("rounding must be one of nearest_even, nearest_up, floor, got 'nearest'"):
        fit(Fixed(0, 3, 2), np.zeros(1, int), Fixed(0, 1), "nearest", "wrap")
