"""The minimax fits: optimal by certificate, not by comparison with themselves."""

from itertools import combinations

import numpy as np
import pytest

from hwnorm.remez import fit_constant, fit_polynomial


def weighted_error(t, target, weight, coefficients):
    value = sum(coefficients[:, n, None] * t**n for n in range(coefficients.shape[1]))
    return (value - target) * weight


def certified(error, degree):
    """De la Vallee-Poussin: no polynomial of the degree has a smaller error than this, a row.

    Wherever an error curve takes degree + 2 values of alternating sign, the smallest of them
    bounds every polynomial's maximum error from below.
    """
    floors = []
    for curve in error:
        peaks, signs = [], []
        for value in curve:
            if value and signs and np.sign(value) == signs[-1]:
                peaks[-1] = max(peaks[-1], abs(value))
            elif value:
                peaks.append(abs(value))
                signs.append(np.sign(value))
        runs = [peaks[i : i + degree + 2] for i in range(len(peaks) - degree - 1)]
        floors.append(max((min(run) for run in runs), default=0.0))
    return np.array(floors)


def smooth_rows():
    """Targets with the curvature of the tabulated functions, and both kinds of weight."""
    t = np.linspace(-0.5, 0.5, 257)
    starts = np.array([1.0, 1.3, 2.0, 3.7, 9.0])[:, None] + 0.5
    targets = np.concatenate(
        [f(starts + t) for f in (lambda u: u**-0.5, np.log1p, np.exp2, lambda u: -np.exp(2 * u))]
    )
    return t, targets


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("degree", [0, 1, 2])
def test_polynomials_are_minimax(degree, relative):
    t, targets = smooth_rows()
    weight = 1 / np.abs(targets) if relative else np.ones_like(targets)
    error = weighted_error(t, targets, weight, fit_polynomial(t, targets, weight, degree))
    worst = np.abs(error).max(axis=1)
    floor = certified(error, degree)
    assert (worst <= floor * (1 + 1e-6)).all()
    assert (worst > 0).all()


@pytest.mark.parametrize("degree", [1, 2])
def test_polynomials_equal_brute_force(degree):
    """The minimax error on a grid is the largest levelled error of any degree + 2 points."""
    t = np.linspace(-1, 1, 17)
    target, weight = np.exp(t)[None], (1 / (2 + t))[None]
    coefficients = fit_polynomial(t, target, weight, degree)
    worst = np.abs(weighted_error(t, target, weight, coefficients)).max()
    spots = np.array(list(combinations(range(len(t)), degree + 2)))
    at = t[spots]
    signs = (-1.0) ** np.arange(degree + 2)
    system = np.stack([*(at**n for n in range(degree + 1)), signs / weight[0, spots]], axis=-1)
    levelled = np.linalg.solve(system, target[0, spots][..., None])[:, -1, 0]
    assert worst == pytest.approx(np.abs(levelled).max(), rel=1e-9)


def test_chebyshev_closed_forms():
    """The best line to t**2 is 1/2, the best parabola to t**3 is 3/4 t (Chebyshev, 1854)."""
    t = np.linspace(-1, 1, 257)
    flat = np.ones((1, 257))
    np.testing.assert_allclose(fit_polynomial(t, t[None] ** 2, flat, 1), [[0.5, 0]], atol=1e-12)
    np.testing.assert_allclose(fit_polynomial(t, t[None] ** 3, flat, 2), [[0, 0.75, 0]], atol=1e-12)


def test_rows_are_fitted_independently():
    t, targets = smooth_rows()
    weight = 1 / np.abs(targets)
    together = fit_polynomial(t, targets, weight, 2)
    for n in range(len(targets)):
        alone = fit_polynomial(t, targets[n : n + 1], weight[n : n + 1], 2)
        np.testing.assert_array_equal(alone[0], together[n])


def test_a_constant_for_relative_error_is_the_harmonic_mean():
    values = np.linspace(0.5, 3, 100)[None]
    assert fit_constant(values, 1 / values)[0] == pytest.approx(2 * 0.5 * 3 / 3.5, rel=1e-14)


def test_constants_balance_any_weights():
    """The best constant errs as far up as down; nothing else is known of these rows."""
    rng = np.random.default_rng(5)
    target = rng.normal(0, 1, (200, 40)) + rng.normal(0, 30, (200, 1))
    weight = rng.uniform(0.2, 5, (200, 40))
    error = (target - fit_constant(target, weight)[:, None]) * weight
    np.testing.assert_allclose(error.max(axis=1), -error.min(axis=1), rtol=1e-9)
