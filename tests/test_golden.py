"""The references against decimal arithmetic and exact fractions."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from oracles import nearest_root, nearest_row

from hwnorm.golden import exact, layer_norm, reference, rms_norm

# -- float64 ----------------------------------------------------------------------------------


def decimal_norm(kind, row, gamma, beta, eps):
    """The definition of the norms with 60 digits."""
    with localcontext() as context:
        context.prec = 60
        x = [Decimal(float(v)) for v in row]
        mean = sum(x) / len(x) if kind == "layernorm" else Decimal(0)
        centred = [v - mean for v in x]
        root = (sum(c * c for c in centred) / len(x) + Decimal(eps)).sqrt()
        return [
            float(c / root * Decimal(float(g)) + Decimal(float(b)))
            for c, g, b in zip(centred, gamma, beta, strict=True)
        ]


@pytest.mark.parametrize("eps", [1e-5, 1e-12, 0.7])
@pytest.mark.parametrize("dim", [2, 3, 576, 768])
@pytest.mark.parametrize("kind", ["rmsnorm", "layernorm"])
def test_float64_against_decimal(kind, dim, eps):
    rng = np.random.default_rng(dim)
    ones, zeros = np.ones(dim), np.zeros(dim)
    for scale in (1e-4, 1.0, 300.0):
        x = rng.normal(0.1, scale, (2, dim))
        gamma, beta = rng.normal(1, 1, dim), rng.normal(0, 1, dim)
        if kind == "rmsnorm":
            cases = [(rms_norm(x, None, eps), ones, zeros), (rms_norm(x, gamma, eps), gamma, zeros)]
        else:
            cases = [
                (layer_norm(x, None, None, eps), ones, zeros),
                (layer_norm(x, gamma, None, eps), gamma, zeros),
                (layer_norm(x, None, beta, eps), ones, beta),
                (layer_norm(x, gamma, beta, eps), gamma, beta),
            ]
        for y, gain, shift in cases:
            for row, got in zip(x, y, strict=True):
                want = decimal_norm(kind, row, gain, shift, eps)
                np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def test_layer_norm_keeps_its_digits_next_to_a_large_mean():
    """A row of 32-bit integers that differ by a few: its mean is no float64 number."""
    rng = np.random.default_rng(0)
    for dim in (7, 64, 576):
        row = 2.0**31 - 10 + rng.integers(-2, 3, dim)
        want = decimal_norm("layernorm", row, np.ones(dim), np.zeros(dim), 1e-5)
        np.testing.assert_allclose(layer_norm(row), want, rtol=1e-9, atol=1e-9)


def test_leading_axes_and_names():
    rng = np.random.default_rng(1)
    x, gamma, beta = rng.normal(0, 1, (2, 3, 8)), rng.normal(0, 1, 8), rng.normal(0, 1, 8)
    before = x.copy()
    assert reference("rmsnorm", x, gamma, eps=0.1).shape == (2, 3, 8)
    np.testing.assert_array_equal(
        reference("rmsnorm", x, gamma, eps=0.1)[1, 2], rms_norm(x[1, 2], gamma, 0.1)
    )
    np.testing.assert_array_equal(
        reference("layernorm", x, gamma, beta, eps=0.1)[1, 2], layer_norm(x[1, 2], gamma, beta, 0.1)
    )
    np.testing.assert_array_equal(x, before)


def test_the_variance_is_biased():
    np.testing.assert_allclose(layer_norm([1.0, 3.0], eps=1e-30), [-1, 1])


# -- correctly rounded ------------------------------------------------------------------------


def check_exact(kind, rows, *, x_frac, y_frac, eps, gamma=None, beta=None, offset=0.0):
    """`exact` against fractions. gamma and beta: integers and their fraction bits."""
    rows = np.asarray(rows, dtype=np.int64)
    options, real = {}, {"gamma": None, "beta": None}
    if gamma:
        options |= {"gamma": np.array(gamma[0]), "gamma_frac": gamma[1], "gamma_offset": offset}
        real["gamma"] = [v / Fraction(2) ** gamma[1] + Fraction(offset) for v in gamma[0]]
    if beta:
        options |= {"beta": np.array(beta[0]), "beta_frac": beta[1]}
        real["beta"] = [v / Fraction(2) ** beta[1] for v in beta[0]]
    y = exact(kind, rows, x_frac=x_frac, y_frac=y_frac, eps=eps, **options)
    assert y.dtype == np.int64
    assert y.shape == rows.shape
    for row, got in zip(rows.tolist(), y.tolist(), strict=True):
        want = nearest_row(kind, row, x_frac=x_frac, y_frac=y_frac, eps=eps, **real)
        assert got == want, row
    return y


def test_the_oracle_breaks_ties_to_even():
    for n in range(-5, 6):
        tie = Fraction(2 * n + 1, 2)
        assert nearest_root(1 if tie > 0 else -1, tie * tie) == round(tie) == 2 * round(tie / 2)
    assert nearest_root(1, Fraction(2), Fraction(-1)) == 0
    assert nearest_root(-1, Fraction(10**40 + 1, 4 * 10**40), Fraction(1)) == 0


@pytest.mark.parametrize("kind", ["rmsnorm", "layernorm"])
def test_exact_on_random_rows(kind):
    rng = np.random.default_rng(2)
    for dim, x_frac, y_frac, eps in (
        (2, 8, 10, 1e-5),
        (3, 0, 3, 1e-6),
        (5, -2, 0, 1e-12),
        (16, 12, -1, 0.5),
        (37, 4, 20, 1e-5),
    ):
        rows = [rng.integers(-(2**n), 2**n + 1, dim) for n in (1, 3, 8, 15) for _ in range(6)]
        check_exact(kind, rows, x_frac=x_frac, y_frac=y_frac, eps=eps)


@pytest.mark.parametrize("kind", ["rmsnorm", "layernorm"])
def test_exact_with_parameters(kind):
    rng = np.random.default_rng(3)
    rows = [rng.integers(-(2**n), 2**n + 1, 9) for n in (2, 7, 12) for _ in range(4)]
    for offset in (0.0, 1.0, -0.75):
        gamma = (rng.integers(-64, 65, 9).tolist(), 5)
        check_exact(kind, rows, x_frac=6, y_frac=6, eps=1e-5, gamma=gamma, offset=offset)
        if kind == "layernorm":
            beta = (rng.integers(-99, 100, 9).tolist(), 7)
            check_exact(
                kind, rows, x_frac=6, y_frac=6, eps=1e-5, gamma=gamma, beta=beta, offset=offset
            )
            check_exact(kind, rows, x_frac=6, y_frac=2, eps=1e-5, beta=beta)


@pytest.mark.parametrize("y_frac", [-1, 0, 1, 4])
def test_exact_rms_ties(y_frac):
    """Constant rows of c with eps = (4**k - 1) c**2 give exactly +-2**-k."""
    ties = 0
    for k in range(1, 6):
        for c in (1, 3, 10):
            rows = [[c] * 4, [-c] * 4, [c, -c, c, -c]]
            for gamma in ([1, 3, -1, -5], [2, 7, 0, 11]):
                eps = float((4**k - 1) * c * c)
                y = check_exact("rmsnorm", rows, x_frac=0, y_frac=y_frac, eps=eps, gamma=(gamma, 0))
                exact_y = np.sign(rows) * np.array(gamma) * 2.0 ** (y_frac - k)
                ties += np.count_nonzero(exact_y % 1 == 0.5)
                np.testing.assert_array_equal(y, np.rint(exact_y))
    assert ties >= 9


def layer_ties(count):
    """Rows of five with an element whose norm is exactly +-1/2, where float64 is off the tie.

    N**2 / (V + 25 eps) = 1/4 asks for eps = (4 N**2 - V) / 25, an integer now and then.
    """
    rng = np.random.default_rng(4)
    found = []
    while len(found) < count:
        x = [int(v) for v in rng.integers(-20, 21, 5)]
        spread = 5 * sum(v * v for v in x) - sum(x) ** 2
        eps, rest = divmod(4 * (5 * x[0] - sum(x)) ** 2 - spread, 25)
        if rest or eps <= 0:
            continue
        y = layer_norm(np.array(x), eps=eps)[0]
        assert abs(y) == pytest.approx(0.5, abs=1e-12)
        if abs(y) != 0.5:
            found.append((x, float(eps)))
    return found


def test_exact_layer_norm_ties():
    for x, eps in layer_ties(20):
        y = check_exact("layernorm", [x], x_frac=0, y_frac=0, eps=eps)
        assert y[0, 0] == 0
        y = check_exact("layernorm", [x], x_frac=3, y_frac=0, eps=eps / 64, beta=([1] * 5, 0))
        assert y[0, 0] in (0, 2)


def test_exact_zero_rows():
    for kind in ("rmsnorm", "layernorm"):
        assert not exact(kind, np.zeros((3, 7), int), x_frac=8, y_frac=12, eps=1e-12).any()
    constant = np.full((2, 7), 12345)
    assert not exact("layernorm", constant, x_frac=8, y_frac=12, eps=1e-12).any()
    # Beta alone is left, and its ties go to even.
    beta = [-5, -4, -3, -1, 1, 3, 5]
    y = check_exact("layernorm", constant, x_frac=8, y_frac=3, eps=1e-5, beta=(beta, 4))
    assert y[0].tolist() == [-2, -2, -2, 0, 0, 2, 2]


@pytest.mark.parametrize("kind", ["rmsnorm", "layernorm"])
def test_exact_one_lsb_rows(kind):
    """The smallest rows, where eps decides: from far below their power to far above."""
    rows = []
    for at in (0, 3, 8):
        for value in (1, -1):
            rows.append([value if n == at else 0 for n in range(9)])
            rows.append([value * (1 + (n == at)) for n in range(9)])
    for eps in (1e-12, 1e-5, 0.3):
        for x_frac in (0, 8, 16):
            check_exact(kind, rows, x_frac=x_frac, y_frac=13, eps=eps)


def test_exact_rms_wide_rows():
    rng = np.random.default_rng(5)
    rows = rng.integers(-(2**31), 2**31, (6, 33))
    rows = [*rows, np.full(33, -(2**31)), np.full(33, 2**31 - 1)]
    check_exact("rmsnorm", rows, x_frac=8, y_frac=26, eps=1e-12)


def test_exact_layer_norm_next_to_a_large_mean():
    """The mean of 32-bit elements is no float64 number; the rounding must be right all the same."""
    rng = np.random.default_rng(6)
    rows = 2**31 - 10 + rng.integers(-2, 3, (40, 63))
    check_exact("layernorm", rows, x_frac=8, y_frac=20, eps=1e-5)


def test_exact_never_limits():
    y = exact(
        "rmsnorm", np.array([[1000, 0]]), x_frac=0, y_frac=30, eps=1e-5, gamma=np.array([1000, 1])
    )
    assert y[0, 0] == pytest.approx(1000 * 2**30.5, rel=1e-9)
