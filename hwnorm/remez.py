"""Weighted minimax fits, all segments of a table at once.

Remez' exchange on a fine grid: the best polynomial of degree n is the one whose weighted
error takes its maximum n + 2 times with alternating sign (Chebyshev).
"""

import numpy as np


def fit_polynomial(t, target, weight, degree):
    """Minimax polynomials, one a row.

    Parameters
    ----------
    t : numpy.ndarray, (points,)
        Abscissae, ascending, the same in every row.
    target, weight : numpy.ndarray, (rows, points)
        The function, and the positive weight of its error.
    degree : int
        0 to 2. The target's derivative of order degree + 1 must not change sign in a row.

    Returns
    -------
    numpy.ndarray, (rows, degree + 1)
        Coefficients of t**0, t**1, ...
    """
    if degree == 0:
        return fit_constant(target, weight)[:, None]
    points, rows = len(t), np.arange(len(target))
    # Chebyshev extrema to start with; the ends of a row stay among the extrema.
    spots = np.rint((1 - np.cos(np.pi * np.arange(degree + 2) / (degree + 1))) / 2 * (points - 1))
    refs = np.tile(spots.astype(int), (len(target), 1))
    signs = (-1.0) ** np.arange(degree + 2)
    for _ in range(8):
        at = t[refs]
        system = np.stack(
            [*(at**n for n in range(degree + 1)), signs / weight[rows[:, None], refs]], axis=-1
        )
        solved = np.linalg.solve(system, target[rows[:, None], refs][..., None])[..., 0]
        error = (sum(solved[:, n, None] * t**n for n in range(degree + 1)) - target) * weight
        before = refs.copy()
        # The error at reference j has the sign of -solved[-1] * signs[j].
        for j in range(1, degree + 1):
            low, high = 1 + (j - 1) * (points - 2) // degree, 1 + j * (points - 2) // degree
            facing = error[:, low:high] * (-np.sign(solved[:, -1]) * signs[j])[:, None]
            refs[:, j] = low + np.argmax(facing, axis=1)
        if np.array_equal(refs, before):
            # Another round would find the same.
            break
    return solved[:, :-1]


def fit_constant(target, weight):
    """The constants that minimise the largest weighted error, one a row.

    Parameters
    ----------
    target, weight : numpy.ndarray, (rows, points)

    Returns
    -------
    numpy.ndarray, (rows,)
    """
    best, rows = (target.max(axis=1) + target.min(axis=1)) / 2, np.arange(len(target))
    for _ in range(20):
        error = (target - best[:, None]) * weight
        high, low = error.argmax(axis=1), error.argmin(axis=1)
        # Their sum > 0: the constant is too small. The slopes are the weights there.
        step = (error[rows, high] + error[rows, low]) / (weight[rows, high] + weight[rows, low])
        before, best = best, best + step
        if np.array_equal(best, before):
            # Another round would find the same.
            break
    return best
