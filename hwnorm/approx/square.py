"""Squares without a multiplier, for parts that have none."""

from hwnorm.bits import tree
from hwnorm.ops import const, select


def square_by_adders(x):
    """``x * x`` as a tree of selected, shifted terms.

    Bit i of ``|x|`` adds ``2**i * (2**i + 2 * (|x| mod 2**i))``, so every bit costs one
    selection and one adder, of half the length that a multiplier would need.

    Parameters
    ----------
    x : Wire

    Returns
    -------
    Wire
        The exact square, with twice the fraction bits.
    """
    magnitude = abs(x)
    frac = magnitude.fmt.frac
    digits = magnitude << frac  # as an integer
    terms = []
    for i in range(digits.fmt.width):
        term = const(4**i, 0)
        if i:
            term = term + (digits[:i] << i + 1)
        terms.append(select(digits[i : i + 1], term, 0))
    # The sum of the terms is a square: no larger than that of the largest |x|.
    total = tree(lambda a, b: a + b, terms).within(0, digits.fmt.hi**2)
    return total >> 2 * frac
