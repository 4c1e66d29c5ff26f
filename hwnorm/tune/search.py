"""Which points are evaluated: all of a space, or what a multi-objective optimiser asks for."""

import time
from dataclasses import dataclass

from hwnorm.fixed import Fixed
from hwnorm.functions import RSQRT
from hwnorm.tune.limits import METRICS
from hwnorm.tune.pool import missing
from hwnorm.tune.space import point_key, promise
from hwnorm.tune.work import Evaluator

#: Most points that a worker takes at a time: enough to share tables, few enough to store often.
CHUNK_POINTS = 48

#: Chunks of a sweep at least, so that several workers end at the same time.
CHUNKS = 24

#: Trials of one generation of the optimiser.
POPULATION = 64

#: Combinations that are the same point, at most, in a space that is still counted by listing.
MOST_SAME = 8

#: The optimiser gives up when so many generations in a row bring no new point.
IDLE_GENERATIONS = 20


@dataclass
class Progress:
    """How far a search is.

    Members
    -------
    total : int
        Points to evaluate in this run.
    done : int
    started : float
    best : str
        The best point so far, in words.
    """

    total: int
    done: int = 0
    started: float = 0.0
    best: str = ""

    @property
    def rate(self):
        """Points a second."""
        passed = time.perf_counter() - self.started
        return self.done / passed if passed > 0 else 0.0


class Search:
    """Evaluates the points of a space that are not stored yet.

    Parameters
    ----------
    space : hwnorm.tune.space.Space
        Resolved.
    rows : hwnorm.tune.rows.Rows
    store : hwnorm.tune.store.Store
    compute : callable
        See `hwnorm.tune.pool`.
    report : callable or None
        Called with a `Progress` after every chunk.

    Members
    -------
    found : dict of str to Outcome
        Everything of this space that is known, stored or new.
    evaluated : int
        Points that this run evaluated.
    method : str
        ``sweep`` or ``nsga2``.
    """

    def __init__(self, space, rows, store, compute, report=None):
        self.space, self.rows, self.store = space, rows, store
        self.compute, self.report = compute, report or (lambda progress: None)
        self.found, self.evaluated = {}, 0
        # Many combinations may be the same point, but not any number of them.
        listed = space.points() if space.size <= MOST_SAME * space.budget else None
        self._points = listed if listed is not None and len(listed) <= space.budget else None
        self.method = "nsga2" if self._points is None else "sweep"
        self._stored = {key: one for key, one in store.read().items() if self._usable(one)}
        self._progress = None

    def _usable(self, outcome):
        """Whether a stored outcome says what is asked for now."""
        if outcome.state == "skipped":
            return outcome.reason in {str(limit) for limit in self.space.limits}
        if outcome.state == "done" and self.space.ends:
            return outcome.accuracy["pooled"]["end_max_ulp"] is not None
        return True

    def run(self):
        """Evaluate; what is finished is stored, whatever happens."""
        if self.method == "sweep":
            self._evaluate(self._points)
        else:
            self._optimise()

    def _evaluate(self, points):
        """The outcomes of points, from the store where it has them."""
        pending = []
        for point in points:
            key = point_key(point)
            if key in self.found:
                continue
            if key in self._stored:
                self.found[key] = self._stored[key]
            else:
                pending.append(point)
        if not pending:
            return
        if self._progress is None:
            total = len(pending) if self.method == "sweep" else self.space.budget - len(self.found)
            self._progress = Progress(total, started=time.perf_counter())
            self.report(self._progress)
        for outcomes in self.compute(Evaluator(self.space, self.rows), chunked(pending)):
            self.store.write(outcomes)
            for one in outcomes:
                self.found[point_key(one.point)] = one
            self.evaluated += len(outcomes)
            self._progress.done += len(outcomes)
            self._progress.best = self._best(outcomes) or self._progress.best
            self.report(self._progress)

    def _best(self, outcomes):
        """In words, the best accuracy so far, if these outcomes improve it."""
        name, layers = self.space.error, self.space.layers
        values = [
            value for one in outcomes if one.state == "done"
            and (value := one.value(name, layers)) is not None
        ]  # fmt: skip
        if not values:
            return ""
        pick = max if METRICS[name] else min
        self._record = pick([*values, *([self._record] if hasattr(self, "_record") else [])])
        return f"best {name} {self._record:.4g}"

    # -- beyond what can be swept -------------------------------------------------------

    def _optimise(self):
        """NSGA-II. It is seeded and told in order, so that with a store it goes the same way."""
        try:
            import optuna
        except ImportError:
            raise missing(
                f"a space of more than {self.space.budget} points, the budget, needs",
                "optuna",
                "tune",
            ) from None
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        space = self.space
        names = space.error, space.cost
        study = optuna.create_study(
            directions=["maximize" if METRICS[name] else "minimize" for name in names],
            sampler=optuna.samplers.NSGAIISampler(population_size=POPULATION, seed=space.seed),
        )
        choices = {
            name: optuna.distributions.IntDistribution(0, len(values) - 1)
            for name, values in space.values.items()
        }
        for seed in self._seeds():
            study.enqueue_trial(seed)
        idle = 0
        while len(self.found) < space.budget and idle < IDLE_GENERATIONS:
            trials = [study.ask(choices) for _ in range(POPULATION)]
            points = [
                space.complete({name: space.values[name][trial.params[name]] for name in choices})
                for trial in trials
            ]
            before = len(self.found)
            room = space.budget - before
            fresh = {point_key(p): p for p in points if point_key(p) not in self.found}
            self._evaluate(list(fresh.values())[:room])
            idle = 0 if len(self.found) > before else idle + 1
            for trial, point in zip(trials, points, strict=True):
                self._tell(optuna, study, trial, self.found.get(point_key(point)))

    def _tell(self, optuna, study, trial, outcome):
        values = outcome and [
            outcome.value(name, self.space.layers) for name in (self.space.error, self.space.cost)
        ]
        if not outcome or outcome.state != "done" or None in values:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
            return
        for limit in self.space.limits:
            amount = limit.excess(outcome.value(limit.metric, self.space.layers))
            trial.set_constraint(str(limit), amount)
        study.tell(trial, values)

    def _seeds(self):
        """First trials: where the closed-form limits of tables say that the budget is met."""
        values = self.space.values
        if "segments" not in values:
            return []
        seeds = []
        others = [name for name in values if name not in ("method", "segments", "guard_bits")]
        for method in values.get("method", [self.space.base.rsqrt.method]):
            if method not in RSQRT.limits:
                continue
            for guard in values.get("guard_bits", [self.space.base.rsqrt.guard_bits]):
                for turn in range(max([len(values[name]) for name in others], default=1)):
                    chosen = {name: values[name][turn % len(values[name])] for name in others}
                    chosen |= {"method": method, "guard_bits": guard}
                    point = {
                        size: promise(self.space.complete({**chosen, "segments": size}))
                        for size in values["segments"]
                    }
                    chosen["segments"] = min(point, key=point.get)
                    seeds.append(
                        {
                            name: values[name].index(value)
                            for name, value in chosen.items() if name in values
                        }
                    )  # fmt: skip
        return seeds[: 2 * POPULATION]


def chunked(points):
    """Points in chunks that share formats, those of the same tables behind each other.

    The kinds of tables that have the most promising points come first.
    """
    most = max(1, min(CHUNK_POINTS, -(-len(points) // CHUNKS)))
    groups, last = [], None
    for point in points:
        shared = [point[key] for key in ("x", "gamma", "beta", "y", "rounding", "method")]
        if shared != last or len(groups[-1]) >= most:
            groups.append([])
        groups[-1].append(point)
        last = shared
    best = {}
    for group in groups:
        kind = _tables(group)
        best[kind] = min([best.get(kind, float("inf")), *map(promise, group)])
    return sorted(groups, key=lambda group: (best[_tables(group)], _tables(group)))


def _tables(group):
    """What decides on the contents of tables: method and significant bits."""
    first = group[0]
    bits = Fixed.parse(first["y"]).width + first["guard_bits"]
    return first["method"], first["log_method"] or "", bits
