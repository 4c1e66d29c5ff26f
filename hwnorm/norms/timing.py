"""The shortest clock period that a design can have on a family, and what sets it."""

from math import ceil

from hwnorm.targets import PIECE_BITS, TARGETS


def accumulator_ns(target, bits):
    """An adder of so many bits that adds to its own last result, or takes a term instead."""
    return target.add_ns(bits) + target.lut_ns


def accumulator_pieces(design, name):
    """In how many pieces a total's accumulator adds, so that the period is kept."""
    target, total = TARGETS[design.target], design.flows.totals[name]
    budget = design.period_ns - target.clock_ns
    if name in design.flows.maxima or accumulator_ns(target, total.width) <= budget:
        return 1
    return ceil(total.width / target.piece_bits(budget - target.lut_ns))


def accumulator_lag(design):
    """Cycles that the totals of a row take beyond the one of an accumulator."""
    return max(accumulator_pieces(design, name) for name in design.flows.totals) - 1


def least_period(design):
    """The shortest period in ns, and the wire and op that limit it.

    Returns
    -------
    (float, str)
    """
    target, flows = TARGETS[design.target], design.flows
    found = []
    for flow in (flows.gather, *flows.reduce.values(), flows.solve, *flows.load.values()):
        found.append(_of_flow(flow, target))
    found.append(_of_flow(flows.apply, target))
    for name, total in flows.totals.items():
        width = total.width if name in flows.maxima else min(total.width, PIECE_BITS)
        found.append((accumulator_ns(target, width), f"{name} is limited by", width, "sum"))
    ns, name, width, op = max(found, key=lambda item: item[0])
    article = "an" if str(width).startswith("8") or width in (11, 18) else "a"
    return ceil((ns + target.clock_ns) * 10 - 1e-6) / 10, f"{name} {article} {width}-bit {op}"


def _of_flow(flow, target):
    ns, wire = flow.finest_step(target)
    if wire is None:
        return 0.0, "", 0, ""
    return ns, f"{flow.names[wire]} is limited by", wire.fmt.width, type(wire).__name__.lower()


def check_period(design):
    """Raise ValueError unless the design's family can keep its period.

    A generic part is of no family and refuses none.
    """
    if design.target == "generic":
        return
    least, why = least_period(design)
    if design.period_ns < least:
        raise ValueError(
            f"period_ns must be at least {least:g} for {design.target}, "
            f"got {design.period_ns:g}: {why}"
        )
