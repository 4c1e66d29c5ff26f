"""The Pareto front, the point that is recommended, and why."""

import numpy as np

from hwnorm.tune.limits import COSTS, METRICS

#: Of points that are equal in both objectives, the one that is less in these is taken.
TIES = ("rom_bits", "lut", "dsp", "bram", "latency_cycles", "bound_ulp")


def pareto(costs, errors):
    """Which points no other point dominates.

    A point is dominated if another one is no worse in both and better in one.

    Parameters
    ----------
    costs, errors : array_like of float, (points,)
        Less is better in both.

    Returns
    -------
    numpy.ndarray of bool, (points,)

    Raises
    ------
    ValueError
        If the two differ in shape or hold NaN.
    """
    costs, errors = np.asarray(costs, dtype=float), np.asarray(errors, dtype=float)
    if costs.ndim != 1 or costs.shape != errors.shape:
        raise ValueError(
            f"costs and errors must be two equally long lists, got {costs.shape} and {errors.shape}"
        )
    if np.isnan(costs).any() or np.isnan(errors).any():
        raise ValueError("costs and errors must be numbers, got NaN")
    kept = np.zeros(len(costs), dtype=bool)
    best = np.inf
    for place in np.lexsort((errors, costs)):
        # In order of cost, and of error within a cost: only smaller errors are news.
        if errors[place] < best:
            best = errors[place]
            kept[(costs == costs[place]) & (errors == best)] = True
    if len(costs) and not kept.any():
        kept[(costs == costs.min()) & (errors == errors.min())] = True
    return kept


def oriented(metric, values):
    """Figures with a sign such that less is better."""
    return -np.asarray(values, dtype=float) if METRICS[metric] else np.asarray(values, dtype=float)


def front_of(outcomes, space):
    """The outcomes on the front, the cheapest first; of equal ones, one.

    Only points that are evaluated, saturate nowhere on the rows that choose, and keep all
    limits, count.
    """
    good = [one for one in outcomes if admissible(one, space)]
    if not good:
        return []
    costs = oriented(space.cost, [one.value(space.cost) for one in good])
    errors = oriented(space.error, [one.value(space.error, space.layers) for one in good])
    kept = np.flatnonzero(pareto(costs, errors))
    best = {}
    for place in kept:
        pair = costs[place], errors[place]
        if pair not in best or _tie(good[place]) < _tie(good[best[pair]]):
            best[pair] = place
    return [good[best[pair]] for pair in sorted(best)]


def admissible(outcome, space):
    """Whether a point may be on the front."""
    return (
        outcome.state == "done"
        and outcome.value(space.error, space.layers) is not None
        and outcome.value(space.cost) is not None
        and all(limit.holds(outcome.value(limit.metric, space.layers)) for limit in space.limits)
    )


def _tie(outcome):
    return [outcome.value(name) or 0 for name in TIES], list(map(str, outcome.point.values()))


def recommended(front, space):
    """The place on the front of the point to take, and why, in words.

    With a limit on accuracy, the cheapest that keeps the limits; otherwise the knee: the point
    that is farthest from the line between the two ends, cost and error on logarithmic scales.

    Returns
    -------
    (int, str)
    """
    limited = [limit for limit in space.limits if limit.metric not in COSTS]
    if limited:
        words = " and ".join(map(str, space.limits))
        return 0, f"it is the cheapest that keeps {words}"
    if len(front) == 1:
        return 0, "it is the only point on the front"
    if len(front) == 2:
        return 1, "of the two points on the front it is the more accurate one"
    x = _scaled(space.cost, [one.value(space.cost) for one in front])
    y = _scaled(space.error, [one.value(space.error, space.layers) for one in front])
    # Both run over [0, 1]; the line between the ends is x + y = 1.
    place = int(np.argmax(1 - x - y))
    return place, (
        "it is the knee of the front: cheaper points lose more accuracy for what they save, and "
        "better ones cost more for what they gain, than the points around it"
    )


def _scaled(metric, values):
    """Figures on a scale of their own from 0 (best) to 1."""
    values = np.asarray(values, dtype=float)
    if not metric.endswith("_db"):
        values = np.log2(np.maximum(values, 1e-9))
    values = oriented(metric, values)
    span = values.max() - values.min()
    return (values - values.min()) / (span or 1)


def nothing_fits(outcomes, space):
    """Why no point is admissible: one sentence with the limit that binds and the nearest point."""
    states = [one.state for one in outcomes]
    counts = {state: states.count(state) for state in dict.fromkeys(states)}
    words = ", ".join(f"{count} {state}" for state, count in counts.items()) or "none"
    judged = [one for one in outcomes if one.state in ("done", "skipped")]
    if not judged:
        first = next((one.reason for one in outcomes), "the space is empty")
        return f"space must have a point that can be used, got {words}; the first: {first}"

    def known(one):
        return [
            (limit, limit.excess(value)) for limit in space.limits
            if (value := one.value(limit.metric, space.layers)) is not None
        ]  # fmt: skip

    def excess(one):
        return sum(amount for _, amount in known(one))

    alone = {
        limit: min((dict(known(one)).get(limit, np.inf) for one in judged), default=np.inf)
        for limit in space.limits
    }
    binding = max(alone, key=alone.get) if alone and max(alone.values()) > 0 else None
    # A point that was skipped early is known in part only: one with more known figures first.
    nearest = min(judged, key=lambda one: (excess(one), -len(known(one))))
    if binding is None:
        broken = [limit for limit, amount in known(nearest) if amount > 0]
        binding = broken[0] if broken else space.limits[0]
        why = (
            f"each limit can be kept alone, not all together; at the nearest point {binding} fails"
        )
    else:
        why = f"no point keeps {binding}"
    figures = ", ".join(
        f"{limit.metric} {'at least ' if one_sided(nearest, limit) else ''}"
        f"{nearest.value(limit.metric, space.layers):.4g}"
        for limit, _ in known(nearest)
    )
    words = describe(nearest.point, space)
    return f"limits must be satisfiable: {why}; nearest: {words} with {figures}"


def one_sided(outcome, limit):
    """Whether a figure of a point is a lower bound only, since it was given up early."""
    return outcome.state == "skipped" and limit.metric not in COSTS


def describe(point, space):
    """A point in a few words: its table, and what else the space varies."""
    log = point["method"] == "log"
    words = [f"log {point['log_method']}" if log else point["method"]]
    words.append(f"{point['segments'] or 'default'} segments")
    words.append(f"{point['guard_bits']} guard bit{'s' * (point['guard_bits'] != 1)}")
    varied = [key for key, values in space.values.items() if len(values) > 1]
    words += [f"{key} {point[key]}" for key in ("x", "gamma", "beta", "y") if key in varied]
    if log and "log_frac" in varied:
        words.append(f"{point['log_frac'] or 'default'} log bits")
    words += [
        f"{point[key]:g} {word}" for key, word in (("lanes", "lanes"), ("period_ns", "ns"))
        if key in varied
    ]  # fmt: skip
    words += [point["rounding"]] if "rounding" in varied else []
    return ", ".join(words)
