"""The flows of one norm, traced."""

from dataclasses import dataclass

from hwnorm.flow import Flow


@dataclass(frozen=True)
class Flows:
    """The traced flows of a norm.

    Members
    -------
    gather : Flow
        ``x`` to the terms of a row's totals.
    totals : dict of str to Fixed
        The exact totals over a row.
    maxima : frozenset of str
        The totals that are maxima; the others are sums.
    reduce : dict of str to Flow
        A beat's terms ``lane0``, ``lane1`` ... of a total to one.
    solve : Flow
        Totals to scalars.
    load : dict of str to Flow
        A parameter to what is stored of it.
    apply : Flow
        ``x``, stored parameters and scalars to ``y`` and ``saturated``.
    """

    gather: Flow
    totals: dict
    maxima: frozenset
    reduce: dict
    solve: Flow
    load: dict
    apply: Flow
