"""The functions that tables approximate, and how well a table of a given size can do.

A function is tabulated over ``u`` in [0, span), cut into equal segments. The limits are the
minimax errors of an ideal table (no coefficient rounding), exact for direct and linear tables
of rsqrt, else the leading term for many segments; ``docs/error-budget.md`` derives them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import log, sqrt

import numpy as np

#: Degree of the polynomial in each segment. "mitchell" is the straight line u plus a constant.
DEGREES = {"direct": 0, "mitchell": 0, "linear": 1, "quadratic": 2}


@dataclass(frozen=True)
class Function:
    """A function to tabulate.

    Parameters
    ----------
    name : str
    of : callable
        float64 array of u to float64 array.
    span : int
        u runs over [0, span), a power of two; pieces between integers are smooth.
    relative : bool
        Whether its error is relative (else absolute).
    limits : dict of str to callable
        Method to the ideal maximum error as a function of the number of segments.
    meaning : str
        One line for reports.
    """

    name: str
    of: Callable
    span: int
    relative: bool
    limits: dict
    meaning: str


def _rsqrt(u):
    octave = np.floor(u)
    return (2.0 ** (1 - octave) * (1 + u - octave)) ** -0.5


def _rsqrt_direct(segments):
    h = 2 / segments
    return (sqrt(1 + h) - 1) / (sqrt(1 + h) + 1)


def _rsqrt_linear(segments):
    b = 1 + 2 / segments
    s = sqrt((b + sqrt(b) + 1) / 3)
    return (s - 1) ** 2 * (2 * s + 1) / ((s + 1) ** 2 * (2 * s - 1))


RSQRT = Function(
    name="rsqrt",
    of=_rsqrt,
    span=2,
    relative=True,
    limits={
        "direct": _rsqrt_direct,
        "linear": _rsqrt_linear,
        "quadratic": lambda segments: 5 / 64 * segments**-3.0,
    },
    meaning="M**-1/2 over M = 2(1+u) for u < 1 and M = u for u >= 1",
)

LOG2 = Function(
    name="log2",
    of=lambda u: np.log2(1 + u),
    span=1,
    relative=False,
    limits={
        "direct": lambda segments: 0.5 / log(2) / segments,
        "mitchell": lambda segments: 0.5 * (1 / log(2) - 1) / segments,
        "linear": lambda segments: 1 / (16 * log(2)) / segments**2,
    },
    meaning="log2(1 + u)",
)

EXP2 = Function(
    name="exp2",
    of=lambda u: np.exp2(u),
    span=1,
    relative=True,
    limits={
        "direct": lambda segments: 0.5 * log(2) / segments,
        "mitchell": lambda segments: 0.5 * (1 - log(2)) / segments,
        "linear": lambda segments: log(2) ** 2 / 16 / segments**2,
    },
    meaning="2**u",
)

FUNCTIONS = {f.name: f for f in (RSQRT, LOG2, EXP2)}
