"""The norms keep the bound that they state, and state the rules that they ask."""

import re
from dataclasses import replace
from fractions import Fraction
from math import sqrt

import numpy as np
import pytest
from oracles import all_rows, check_bound, drawn, misrounded, nearest_row, refused

from hwnorm.model import evaluate
from hwnorm.norms import LayerNorm, LogTables, RMSNorm, Rsqrt

# -- bounds -----------------------------------------------------------------------------------

DIMS = (2, 3, 576, 768, 1152, 3584, 4096)


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("method", ["direct", "linear", "quadratic", "log"])
def test_rms_norm_keeps_its_bound(method, dim):
    for gamma, offset, y in (("none", 0, "s16/10"), ("s16/12", 0, "s16/9"), ("s12/8", 1.0, "s8/3")):
        design = RMSNorm(
            dim=dim, gamma=gamma, gamma_offset=offset, x="s16/8", y=y, rsqrt=Rsqrt(method)
        )
        gain = None if gamma == "none" else drawn(design.gamma, dim, seed=dim)
        check_bound(design, all_rows(design, seed=dim), gain)


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("method", ["direct", "linear", "quadratic"])
def test_layer_norm_keeps_its_bound(method, dim):
    for gamma, offset, beta in (
        ("none", 0, "none"),
        ("s16/12", 0, "s16/12"),
        ("s12/8", -1.0, "none"),
        ("none", 0, "s20/11"),
    ):
        design = LayerNorm(
            dim=dim, gamma=gamma, gamma_offset=offset, beta=beta, rsqrt=Rsqrt(method), y="s16/9"
        )
        gain = None if gamma == "none" else drawn(design.gamma, dim, seed=1)
        shift = None if beta == "none" else drawn(design.beta, dim, seed=2)
        check_bound(design, all_rows(design, seed=dim), gain, shift)


@pytest.mark.parametrize("rounding", ["nearest_even", "nearest_up", "floor"])
@pytest.mark.parametrize("guard_bits", [0, 1, 2, 4, 8])
def test_every_guard_and_rounding_keeps_its_bound(guard_bits, rounding):
    for kind in (RMSNorm, LayerNorm):
        for gamma in ("none", "s10/7"):
            design = kind(
                dim=48, gamma=gamma, rounding=rounding, rsqrt=Rsqrt("linear", guard_bits=guard_bits)
            )
            gain = None if gamma == "none" else drawn(design.gamma, 48, seed=3)
            _, error = check_bound(design, all_rows(design, seed=guard_bits), gain)
            # The bound is no empty promise either: rounding alone reaches half of it.
            assert error.max() >= 0.5 * min(design.bound_ulp, 1.0)


@pytest.mark.parametrize("tables", [("direct", 128), ("mitchell", 4), ("linear", 16)])
def test_every_log_table_keeps_its_bound(tables):
    for frac in (8, None):
        for gamma in ("none", "s10/7", "u8/6"):
            design = RMSNorm(
                dim=96, gamma=gamma, y="s12/6", rsqrt=Rsqrt("log"), log=LogTables(*tables, frac)
            )
            gain = None if gamma == "none" else drawn(design.gamma, 96, seed=4)
            check_bound(design, all_rows(design, seed=5), gain)


@pytest.mark.parametrize("segments", [2, 8, 64, 1024])
@pytest.mark.parametrize("method", ["direct", "linear", "quadratic"])
def test_tables_of_any_size_keep_the_bound(method, segments):
    """Far too small a table gives a large bound, which holds as well."""
    for dim in (5, 128):
        design = RMSNorm(dim=dim, rsqrt=Rsqrt(method, segments), y="s14/8")
        check_bound(design, all_rows(design, seed=segments))


def test_sixteen_bits_and_two_guard_bits_are_faithful():
    """The error budget of the design: at most 0.781 ulp, nearly all results correctly rounded."""
    wrong = total = 0
    for kind in (RMSNorm, LayerNorm):
        for dim in DIMS:
            for method in ("linear", "quadratic"):
                for y in ("s16/10", "s16/12"):
                    design = kind(dim=dim, y=y, rsqrt=Rsqrt(method, guard_bits=2))
                    assert design.bound_ulp <= 0.781
                    x = all_rows(design, seed=dim)
                    y_int, _ = check_bound(design, x)
                    wrong += misrounded(design, x, y_int)
                    total += x.size
    assert total > 1_000_000
    assert wrong <= 0.005 * total


# -- corners ----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["direct", "linear", "quadratic", "log"])
def test_a_row_of_zeros_gives_zeros(method):
    design = RMSNorm(dim=12, gamma="s8/4", rsqrt=Rsqrt(method))
    zeros = np.zeros((3, 12), dtype=np.int64)
    assert not evaluate(design, zeros, np.full(12, -128), check=True).y.any()


def test_a_constant_row_of_layer_norm_gives_beta():
    """Nothing is left of x, so y is beta, correctly rounded."""
    for rounding, expected in (
        ("nearest_even", [-2, -2, -1, 0, 0, 1, 2, 2]),
        ("nearest_up", [-2, -1, -1, 0, 1, 1, 2, 2]),
        ("floor", [-2, -2, -1, -1, 0, 1, 1, 2]),
    ):
        design = LayerNorm(
            dim=8, gamma="s8/4", beta="s8/4", y="s8/3", rounding=rounding, rsqrt=Rsqrt()
        )
        rows = np.outer([0, 1, -1, 12345, design.x.lo, design.x.hi], np.ones(8, dtype=np.int64))
        beta = np.array([-4, -3, -2, -1, 1, 2, 3, 4])
        y = evaluate(design, rows, drawn(design.gamma, 8, 0), beta, check=True).y
        assert (y == expected).all()


@pytest.mark.parametrize("eps", [1e-12, 1e-9, 1e-6, 0.01, 1.0, 1000.0])
@pytest.mark.parametrize("kind", [RMSNorm, LayerNorm])
def test_any_eps_keeps_the_bound(kind, eps):
    for x in ("s16/8", "s16/0", "s8/4"):
        design = kind(dim=64, x=x, eps=eps)
        check_bound(design, all_rows(design, seed=7))


@pytest.mark.parametrize("kind", [RMSNorm, LayerNorm])
def test_an_eps_above_every_mean_square(kind):
    """The totals then stay in one octave, and the shift becomes a constant."""
    for dim in (4, 20):
        for eps in (0.01, 0.3, 4.0):
            for rsqrt in (Rsqrt(), Rsqrt("direct", 2)):
                design = kind(dim=dim, x="s6/8", eps=eps, rsqrt=rsqrt)
                check_bound(design, all_rows(design, seed=8))


def test_eps_is_never_lost():
    """Where eps is far below the lsb of the sum, one-lsb rows still see it to 1 %."""
    for eps in (1e-5, 1e-9, 1e-12):
        design = RMSNorm(dim=64, x="s16/4", y="s16/10", eps=eps)
        used = design.total.lo * 2.0**-design.total.frac / 64
        assert abs(used / eps - 1) <= 0.01


@pytest.mark.parametrize("y_frac", [-2, -1, 0])
@pytest.mark.parametrize("method", ["linear", "log"])
def test_outputs_of_whole_numbers(method, y_frac):
    """An lsb of y of 1, 2 and 4."""
    for gamma in ("none", "s14/6"):
        design = RMSNorm(dim=25, x="s29/4", y=f"s12/{y_frac}", gamma=gamma, rsqrt=Rsqrt(method))
        gain = None if gamma == "none" else drawn(design.gamma, 25, seed=9)
        check_bound(design, all_rows(design, seed=9), gain)


@pytest.mark.parametrize("kind", [RMSNorm, LayerNorm])
def test_totals_beyond_62_bits_are_exact(kind):
    """32-bit inputs: numpy's integers are too short, and nothing may be lost."""
    design = kind(dim=24, x="s32/16", y="s24/18", eps=1e-12, gamma="s16/12")
    assert design.total.width > 62
    x = all_rows(design, seed=10)
    gain = drawn(design.gamma, 24, seed=10)
    y, _ = check_bound(design, x, gain)
    options = {"x_frac": 16, "y_frac": 18, "eps": 1e-12}
    options["gamma"] = [Fraction(int(v), 4096) for v in gain]
    for row, made in zip(x.tolist(), y.tolist(), strict=True):
        nearest = np.clip(nearest_row(design.kind, row, **options), design.y.lo, design.y.hi)
        # Faithful: one of the two neighbours, so at most one from the nearest.
        assert np.abs(nearest - made).max() <= 1


@pytest.mark.parametrize("method", ["direct", "linear", "quadratic", "log"])
def test_latency_of_typical_designs(method):
    """A row's beats and a small constant; measured in the tests of the engine."""
    for dim, lanes in ((576, 8), (64, 16), (1152, 4), (4096, 16)):
        fields = {"dim": dim, "lanes": lanes, "gamma": "s16/12", "rsqrt": Rsqrt(method)}
        designs = [RMSNorm(**fields), RMSNorm(dim=dim, lanes=lanes, rsqrt=Rsqrt(method))]
        if method != "log":
            designs.append(LayerNorm(**fields, beta="s16/12"))
        for design in designs:
            assert replace(design, solver="pipelined").latency <= dim // lanes + 24
            # Products that take turns at one multiplier take a few cycles more.
            assert design.latency <= dim // lanes + 28


# -- rules ------------------------------------------------------------------------------------

RULES = [
    ({"rsqrt": "linear"}, "rsqrt must be Rsqrt(...), got 'linear'"),
    ({"x": "s8/65"}, "format.x must have -64 to 64 fraction bits, got s8/65"),
    ({"y": "s8/-65"}, "format.y must have -64 to 64 fraction bits, got s8/-65"),
    ({"eps": 2.0**64}, "eps must lie between 2**-100 and 2**64, got 1.8446744073709552e+19"),
    ({"dim": 1}, "dim must lie in 2..16384, got 1"),
    ({"dim": 16385}, "dim must lie in 2..16384, got 16385"),
    ({"dim": 8.0}, "dim must be an integer, got 8.0"),
    ({"lanes": 3}, "lanes must divide dim, got lanes=3 and dim=8"),
    ({"lanes": 0}, "lanes must divide dim, got lanes=0 and dim=8"),
    ({"lanes": "2"}, "lanes must be an integer, got '2'"),
    ({"eps": 0}, "eps must be positive, or an all-zero row divides by zero, got 0"),
    ({"eps": -1e-5}, "eps must be positive, or an all-zero row divides by zero, got -1e-05"),
    (
        {"eps": float("nan")},
        "eps must be a finite number, got nan",
    ),
    ({"x": "u8/4"}, "format.x must be signed, got u8/4"),
    ({"y": "u8/4"}, "format.y must be signed, got u8/4"),
    ({"x": "none"}, "format.x must be signed, got None"),
    ({"x": "s33/4"}, "format.x must have 2 to 32 bits, got s33/4"),
    ({"gamma": "u1/0"}, "format.gamma must have 2 to 32 bits, got u1/0"),
    ({"x": "s16"}, "format.x: a format is spelled like s16/8 or u8/0, got 's16'"),
    (
        {"gamma": "s1/0"},
        "format.gamma: width must be at least 2 bits for a signed format, got 1",
    ),
    ({"beta": 16}, "format.beta: a format is spelled like s16/8 or u8/0, got 16"),
    ({"period_ns": 0}, "period_ns must be at least 0.1, got 0"),
    ({"period_ns": float("inf")}, "period_ns must be a finite number, got inf"),
    ({"beta": "s8/4"}, "format.beta is not a parameter of rmsnorm"),
    ({"store": "flash"}, "store of rmsnorm must be one of ram, rom, stream, got 'flash'"),
    (
        {"rounding": "up"},
        "rounding of rmsnorm must be one of nearest_even, nearest_up, floor, got 'up'",
    ),
    ({"overflow": "clip"}, "overflow of rmsnorm must be one of saturate, wrap, got 'clip'"),
    ({"gamma_offset": 1.0}, "gamma_offset needs format.gamma, got 1.0"),
    (
        {"gamma": "s8/1", "gamma_offset": 0.25},
        "gamma_offset must be a multiple of the lsb of s8/1, got 0.25",
    ),
    ({"gamma_init": (1,) * 8}, "gamma_init needs format.gamma, got none"),
    (
        {"gamma": "s8/4", "gamma_init": (1,) * 7},
        "gamma_init must have dim=8 elements, got 7",
    ),
    (
        {"gamma": "s8/4", "gamma_init": (1,) * 7 + (128,)},
        "gamma_init must fit s8/4, got 1..128",
    ),
]


@pytest.mark.parametrize(("fields", "message"), RULES)
def test_rules_are_stated(fields, message):
    with refused(message):
        RMSNorm(**{"dim": 8, **fields})


def test_rules_of_the_layer_norm_are_stated():
    with refused(
        "rsqrt.method of layernorm must be one of direct, linear, quadratic, exact, got 'log'"
    ):
        LayerNorm(dim=8, rsqrt=Rsqrt("log"))
    with refused("beta_init must fit s8/4, got -129..0"):
        LayerNorm(dim=2, beta="s8/4", beta_init=(0, -129))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: Rsqrt("newton"),
            "rsqrt.method must be one of direct, linear, quadratic, log, exact, got 'newton'",
        ),
        (
            lambda: Rsqrt(segments=48),
            "rsqrt.segments must be a power of two in 2..65536, got 48",
        ),
        (lambda: Rsqrt(segments=1), "rsqrt.segments must be a power of two in 2..65536, got 1"),
        (lambda: Rsqrt(guard_bits=13), "rsqrt.guard_bits must be an integer in 0..12, got 13"),
        (lambda: Rsqrt(guard_bits=-1), "rsqrt.guard_bits must be an integer in 0..12, got -1"),
        (
            lambda: LogTables("quadratic"),
            "log.method must be one of direct, mitchell, linear, got 'quadratic'",
        ),
        (
            lambda: LogTables(segments=5),
            "log.segments must be a power of two in 2..65536, got 5",
        ),
        (lambda: LogTables(frac=31), "log.frac must be an integer in 2..30, got 31"),
        (lambda: LogTables(frac=1), "log.frac must be an integer in 2..30, got 1"),
    ],
)
def test_rules_of_the_sections_are_stated(build, message):
    with refused(message):
        build()


@pytest.mark.parametrize(
    ("field", "value", "build"),
    [
        ("eps", "inf", lambda: RMSNorm(dim=8, eps=float("inf"))),
        ("eps", "'a'", lambda: RMSNorm(dim=8, eps="a")),
        ("period_ns", "'8'", lambda: RMSNorm(dim=8, period_ns="8")),
        ("gamma_offset", "nan", lambda: RMSNorm(dim=8, gamma="s8/4", gamma_offset=float("nan"))),
        ("gamma_init", "1.5", lambda: RMSNorm(dim=8, gamma="s8/4", gamma_init=(1.5,) * 8)),
        ("rsqrt.segments", "64.0", lambda: Rsqrt(segments=64.0)),
        ("rsqrt.guard_bits", "2.5", lambda: Rsqrt(guard_bits=2.5)),
        ("log.frac", "5.5", lambda: LogTables(frac=5.5)),
    ],
)
def test_values_of_another_kind_are_refused(field, value, build):
    """One sentence that names the field and the value, as for every other rule."""
    with pytest.raises(ValueError, match=rf"^{field} must .*{re.escape(value)}"):
        build()


def test_contents_and_bounds_of_the_defaults():
    design = LayerNorm(dim=4, gamma="s16/12", beta="s16/12", gamma_offset=1.0)
    assert design.initial("gamma") == (0,) * 4
    assert design.initial("beta") == (0,) * 4
    assert RMSNorm(dim=4, gamma="s16/12").initial("gamma") == (4096,) * 4
    # The neutral gamma does not fit: the nearest that does.
    assert RMSNorm(dim=4, gamma="s8/8").initial("gamma") == (127,) * 4
    assert RMSNorm(dim=2, gamma="s8/4", gamma_init=(3, -3)).initial("gamma") == (3, -3)
    assert RMSNorm(dim=4, rsqrt=Rsqrt("exact")).bound_ulp == 0.5
    for design in (RMSNorm(dim=576), LayerNorm(dim=768, gamma="s16/12")):
        assert design.bound_ulp == pytest.approx(sum(design.error_terms.values()))
        assert abs(design.peak - sqrt(design.dim)) < 0.1
