"""Evaluating points: what one process, or one worker of a cluster, does."""

from dataclasses import dataclass, fields
from threading import Lock

import numpy as np

from hwnorm.tune.cost import estimate
from hwnorm.tune.evaluate import Bench
from hwnorm.tune.figures import Evaluation
from hwnorm.tune.limits import COSTS, most_ulp
from hwnorm.tune.rows import Rows
from hwnorm.tune.space import Space

#: What became of a point: evaluated; limited outputs; a limit failed before all was evaluated;
#: no such design can be built, or it does not hold the data.
STATES = ("done", "saturated", "skipped", "invalid")

#: What is kept of an evaluation: the figures of each layer are many, and computed again quickly.
_KEPT = [field.name for field in fields(Evaluation) if field.name != "layers"]


@dataclass(frozen=True)
class Outcome:
    """What became of a point.

    Members
    -------
    point : dict
    state : str
        One of `STATES`.
    reason : str
        The limit that failed, or the rule that was broken.
    cost : dict
    accuracy : dict
        The members of `hwnorm.tune.figures.Evaluation`, without the layers' figures.
    """

    point: dict
    state: str
    reason: str
    cost: dict
    accuracy: dict

    def value(self, metric, layers="worst"):
        """A figure, or None if it is not known."""
        if metric in COSTS:
            return self.cost.get(metric)
        return self.accuracy.get(layers, {}).get(metric)


class Evaluator:
    """Evaluates points of a space on rows.

    Parameters
    ----------
    space : hwnorm.tune.space.Space
        Resolved.
    rows : hwnorm.tune.rows.Rows
    """

    def __init__(self, space: Space, rows: Rows):
        self.space, self.rows = space, rows
        self.bench = Bench(rows, space.ends)
        self.cheap = [limit for limit in space.limits if limit.metric in COSTS]
        self.most_ulp = most_ulp(space.limits, space.layers)
        self._lock = Lock()

    def __reduce__(self):
        return Evaluator, (self.space, self.rows)

    def __call__(self, points):
        """The `Outcome` of each point."""
        # Threads of one worker share what is kept, and would drop it under each other's feet.
        with self._lock, np.errstate(divide="ignore", invalid="ignore"):
            return [self.outcome(point) for point in points]

    def outcome(self, point):
        """The `Outcome` of a point."""
        try:
            design = self.space.design(point)
            cost = estimate(design)
        except ValueError as error:
            return Outcome(point, "invalid", str(error), {}, {})
        for limit in self.cheap:
            if not limit.holds(cost.get(limit.metric)):
                return Outcome(point, "skipped", str(limit), cost, {})
        try:
            found = self.bench.evaluate(design, self.most_ulp)
        except ValueError as error:
            return Outcome(point, "invalid", str(error), cost, {})
        accuracy = {name: getattr(found, name) for name in _KEPT}
        if found.saturated:
            return Outcome(
                point, "saturated", f"{found.saturated} outputs saturate", cost, accuracy
            )
        if found.early:
            return Outcome(point, "skipped", f"max_ulp <= {self.most_ulp:g}", cost, accuracy)
        return Outcome(point, "done", "", cost, accuracy)

    def layers_of(self, point):
        """The figures of each layer, complete: name to dict of `FIGURES`."""
        return self.bench.evaluate(self.space.design(point), complete=True).layers
