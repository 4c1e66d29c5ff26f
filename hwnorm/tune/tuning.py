"""Tuning from Python: a space and activations in, points and their front out."""

import hashlib
import time
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from hwnorm.design import dumps
from hwnorm.files import code_digest
from hwnorm.norms import Norm
from hwnorm.rows import Layer
from hwnorm.tune.figures import FIGURES
from hwnorm.tune.front import admissible, front_of, nothing_fits, recommended
from hwnorm.tune.limits import COSTS, parse_limits, parse_objectives
from hwnorm.tune.pool import cluster, missing, processes, serial
from hwnorm.tune.rows import Rows
from hwnorm.tune.search import Search
from hwnorm.tune.space import KEYS, Space
from hwnorm.tune.store import Store


@dataclass(frozen=True)
class Tuning:
    """What tuning found.

    Members
    -------
    space : hwnorm.tune.space.Space
    rows : hwnorm.tune.rows.Rows
    outcomes : list of hwnorm.tune.work.Outcome
        Of all points, in the order of their keys.
    evaluated : int
        How many of them this run evaluated; the others were stored.
    method : str
        ``sweep`` or ``nsga2``.
    seconds : float
    """

    space: Space
    rows: Rows
    outcomes: list
    evaluated: int
    method: str
    seconds: float

    @cached_property
    def front(self):
        """The outcomes on the front, the cheapest first."""
        return front_of(self.outcomes, self.space)

    @cached_property
    def choice(self):
        """Place on the front of the recommended point, and why."""
        return recommended(self.front, self.space)

    @property
    def recommended(self):
        """The recommended `Outcome`."""
        return self.front[self.choice[0]]

    @property
    def design(self):
        """The recommended design."""
        return self.design_of(self.recommended)

    def design_of(self, outcome):
        """The design of an outcome."""
        return self.space.design(outcome.point)

    @cached_property
    def states(self):
        """State to number of points."""
        counts = {}
        for one in self.outcomes:
            counts[one.state] = counts.get(one.state, 0) + 1
        return counts

    @cached_property
    def points(self):
        """All points as a structured array: settings, figures of cost and accuracy, `on_front`.

        Figures that are not known are NaN; figures of accuracy are those of the space's
        ``layers``, and ``held_...`` those of the worst layer of the held-out rows.
        """
        front = {id(one) for one in self.front}
        texts = [key for key in KEYS if key not in ("guard_bits", "segments", "lanes", "period_ns")]
        kinds = [(key, "U16") for key in texts]
        kinds += [("guard_bits", "i4"), ("segments", "i4"), ("lanes", "i4"), ("period_ns", "f8")]
        kinds += [("state", "U9"), ("on_front", "?"), ("admissible", "?")]
        kinds += [(name, "f8") for name in (*COSTS, *FIGURES)]
        kinds += [(f"held_{name}", "f8") for name in FIGURES]
        result = np.zeros(len(self.outcomes), dtype=kinds)
        for row, one in zip(result, self.outcomes, strict=True):
            for key in texts:
                row[key] = "" if one.point[key] is None else str(one.point[key])
            for key in ("guard_bits", "segments", "lanes", "period_ns"):
                row[key] = one.point[key] or 0
            row["state"], row["on_front"] = one.state, id(one) in front
            row["admissible"] = admissible(one, self.space)
            for name in (*COSTS, *FIGURES):
                value = one.value(name, self.space.layers)
                row[name] = np.nan if value is None else value
            for name in FIGURES:
                value = one.value(name, "held")
                row[f"held_{name}"] = np.nan if value is None else value
        return result

    def frame(self):
        """`points` as a ``pandas.DataFrame``."""
        try:
            import pandas
        except ImportError:
            raise missing("a DataFrame needs", "pandas", "tune") from None
        return pandas.DataFrame.from_records(self.points)


def tune(
    space,
    x,
    gamma=None,
    beta=None,
    *,
    limits=(),
    objectives=(),
    layers=None,
    holdout=None,
    folder=None,
    resume=False,
    jobs=1,
    scheduler=None,
    progress=None,
):
    """Find the Pareto front of accuracy against cost on some rows.

    Parameters
    ----------
    space : hwnorm.Norm, dict, str or hwnorm.tune.space.Space
        A design (with the default space around it); the contents of a space file, in which
        ``design`` may be a `hwnorm.Norm`; or the path of a space or design file.
    x : array_like, (rows, dim) or (layers, rows, dim)
        Floats are real values, integers units of the input's lsb.
    gamma, beta : array_like or None, (dim,) or (layers, dim)
    limits, objectives : sequence of str
        Such as ``"max_ulp <= 1"``; a figure of accuracy and one of cost. In addition to, and
        instead of, those of the space.
    layers : str or None
        ``worst``, ``mean`` or ``pooled``; None: as the space has it.
    holdout : float or None
        Share of rows that only verify; None: as the space has it.
    folder : str, pathlib.Path or None
        Where to store evaluated points. None: nowhere.
    resume : bool
        There must be stored points already.
    jobs : int
        Processes; more than one need the extra ``hwnorm[tune]``.
    scheduler : str or None
        Address of a Dask scheduler, instead of `jobs`; needs ``hwnorm[cluster]``.
    progress : callable or None
        Called with a `hwnorm.tune.search.Progress` now and then.

    Returns
    -------
    Tuning

    Raises
    ------
    ValueError
        If the space, the limits or the rows break a rule, or nothing keeps the limits.
    TimeoutError
        If workers or the scheduler are lost on the way.
    """
    space = space_of(space)
    space = adjusted(space, limits, objectives, layers, holdout)
    rows = Rows.of(_layers(x, gamma, beta), space.holdout)
    return run(space, rows, folder, resume=resume, jobs=jobs, scheduler=scheduler, report=progress)


def space_of(space):
    """A space from what `tune` takes."""
    if isinstance(space, Norm):
        return Space.around(space)
    if isinstance(space, dict):
        return Space.of(space)
    return space if isinstance(space, Space) else Space.load(space)


def adjusted(space, limits=(), objectives=(), layers=None, holdout=None, budget=None):
    """A space with other requirements."""
    error, cost = parse_objectives(objectives)
    return replace(
        space,
        limits=parse_limits([*space.limits, *limits]),
        error=error or space.error,
        cost=cost or space.cost,
        layers=layers or space.layers,
        holdout=space.holdout if holdout is None else holdout,
        budget=budget or space.budget,
    )


def run(space, rows, folder=None, *, resume=False, jobs=1, scheduler=None, report=None):
    """As `tune`, on rows that are split already."""
    if rows.dim != space.base.dim:
        raise ValueError(f"data must have dim={space.base.dim}, got {rows.dim}")
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise ValueError(f"jobs must be a positive integer, got {jobs!r}")
    space = space.resolved(rows)
    compute = cluster(scheduler) if scheduler else serial if jobs == 1 else processes(jobs)
    # Figures of another hwnorm's estimates do not compare.
    code = code_digest(Path(__file__).parents[1])[:16] if folder else ""
    known = {"design": _identity(space), "data": rows.fingerprint, "hwnorm": code}
    store = Store(folder, known, resume)
    started = time.perf_counter()
    try:
        search = Search(space, rows, store, compute, report)
        search.run()
    finally:
        store.close()
    found = [search.found[key] for key in sorted(search.found)]
    result = Tuning(
        space, rows, found, search.evaluated, search.method, time.perf_counter() - started
    )
    if not result.front:
        raise ValueError(nothing_fits(found, space))
    return result


def _identity(space):
    """A checksum of the fields of the base design that no point overrides."""
    base = replace(
        space.base, x="s16/8", y="s16/10", lanes=1, period_ns=8.0, rounding="nearest_even"
    )
    text = "\n".join(
        line for line in dumps(base).splitlines() if line.partition(" ")[0] not in ("gamma", "beta")
    )
    return hashlib.sha256(text.partition("[rsqrt]")[0].encode()).hexdigest()[:16]


def _layers(x, gamma, beta):
    x = np.asarray(x)
    if x.dtype.kind not in "iuf":
        raise ValueError(f"x must be integers or floats, got dtype {x.dtype}")
    if x.ndim not in (2, 3):
        raise ValueError(f"x must be (rows, dim) or (layers, rows, dim), got shape {x.shape}")
    stacked = x.ndim == 3
    x = x if stacked else x[None]
    given = {}
    for name, value in (("gamma", gamma), ("beta", beta)):
        if value is None:
            given[name] = [None] * len(x)
            continue
        value = np.asarray(value)
        value = value if value.ndim == 2 else np.tile(value, (len(x), 1))
        if value.shape != (len(x), x.shape[-1]):
            raise ValueError(
                f"{name} must have shape ({len(x)}, {x.shape[-1]}) as x has layers and dim, "
                f"got {value.shape}"
            )
        given[name] = list(value)
    wide = x.astype(np.float64 if x.dtype.kind == "f" else np.int64)
    return [
        Layer(f"layer {n}", wide[n], given["gamma"][n], given["beta"][n]) for n in range(len(x))
    ]
