"""What can be asked of a design: figures of accuracy and cost, limits on them, objectives."""

import operator
import re
from dataclasses import dataclass

from hwnorm.tune.figures import FIGURES

#: Which layers a figure of accuracy is of.
LAYERS = ("worst", "mean", "pooled")

#: Figures of cost, known before any row is run, and whether more is better.
COSTS = {
    "rom_bits": False,
    "lut": False,
    "dsp": False,
    "bram": False,
    "ff": False,
    "fmax_mhz": True,
    "latency_cycles": False,
    "bound_ulp": False,
}

#: All figures, and whether more is better.
METRICS = {**FIGURES, **COSTS}

_SHORT = {
    "fmax": "fmax_mhz", "latency": "latency_cycles", "sqnr": "sqnr_db", "luts": "lut",
    "dsps": "dsp", "rom": "rom_bits", "bound": "bound_ulp",
}  # fmt: skip

_RELATIONS = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
    "=": operator.eq,
}

_LIMIT = re.compile(r"\s*([A-Za-z_]\w*)\s*(<=|>=|==|<|>|=)\s*([-+0-9.eE]+)\s*(%?)\s*")


def metric_name(text):
    """The full name of a figure.

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    name = _SHORT.get(text, text)
    if name not in METRICS:
        raise ValueError(f"a figure must be one of {', '.join(METRICS)}, got {text!r}")
    return name


@dataclass(frozen=True)
class Limit:
    """A constraint, such as ``max_ulp <= 1``.

    Members
    -------
    metric : str
    relation : str
    value : float
    """

    metric: str
    relation: str
    value: float

    @classmethod
    def parse(cls, text):
        """Read ``max_ulp <= 1``, ``sqnr_db >= 58``, ``dsp = 0`` or ``misrounded < 1%``.

        Raises
        ------
        ValueError
            If the text is no such thing.
        """
        found = _LIMIT.fullmatch(text) if isinstance(text, str) else None
        try:
            value = float(found[3])
        except (TypeError, ValueError):
            raise ValueError(f"a limit is written like max_ulp <= 1, got {text!r}") from None
        relation = "=" if found[2] == "==" else found[2]
        return cls(metric_name(found[1]), relation, value / 100 if found[4] else value)

    def __str__(self):
        return f"{self.metric} {self.relation} {self.value:g}"

    def holds(self, value):
        """Whether a figure keeps the limit; an unknown one does not."""
        return value is not None and _RELATIONS[self.relation](value, self.value)

    def excess(self, value):
        """How far a figure is beyond the limit, as a share of it; 0 if it keeps it."""
        if self.holds(value):
            return 0.0
        return float("inf") if value is None else abs(value - self.value) / (abs(self.value) or 1)


def parse_limits(texts):
    """Several limits, which must not contradict each other.

    Raises
    ------
    ValueError
        If one is no limit, or no value can keep two of them.
    """
    limits = [text if isinstance(text, Limit) else Limit.parse(text) for text in texts]
    for one in limits:
        for two in limits:
            if one.metric == two.metric and one.relation[0] in "<=" and two.relation[0] in ">=":
                met = two.value < one.value or (
                    two.value == one.value and "=" in one.relation and "=" in two.relation
                )
                if not met:
                    raise ValueError(f"limits must not contradict, got {one} and {two}")
    return tuple(dict.fromkeys(limits))


def most_ulp(limits, layers):
    """The largest ``max_ulp`` that limits allow, or None."""
    if layers == "mean":
        return None
    values = [m.value for m in limits if m.metric == "max_ulp" and m.relation[0] in "<="]
    return min(values, default=None)


def parse_objectives(names):
    """Exactly one figure of accuracy and one of cost, in this order.

    Returns
    -------
    (str, str)

    Raises
    ------
    ValueError
        If they are others, or two of a kind.
    """
    names = [metric_name(name) for name in names]
    errors = [name for name in names if name in FIGURES or name == "bound_ulp"]
    costs = [name for name in names if name not in errors]
    for kind, found in (("accuracy", errors), ("cost", costs)):
        if len(found) > 1:
            raise ValueError(f"objectives must name one figure of {kind}, got {', '.join(found)}")
    return (errors or [None])[0], (costs or [None])[0]
