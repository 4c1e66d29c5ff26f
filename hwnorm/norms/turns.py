"""Whether a row leaves the time for a ``solve`` that shares its hardware, and how it does."""

from itertools import count

from hwnorm.sharing import STRIDES, UnshareableError
from hwnorm.targets import TARGETS

SOLVERS = ("pipelined", "shared")

#: LUTs that a multiplier block or a block of RAM is worth here, and that a LUT RAM of 16 by 4 is.
BLOCK_LUTS, RAM_LUTS = 150, 6


def find_turns(design):
    """How ``solve`` is shared: what `Flow.schedule` takes beyond period and target.

    Returns
    -------
    dict of str
        ``interval`` and ``strides``; empty for a pipeline.

    Raises
    ------
    ValueError
        If the design asks for sharing and a row does not leave the time.
    """
    if design.solver == "pipelined":
        return {}
    target, flow = TARGETS[design.target], design.flows.solve
    plain = flow.schedule(design.period_ns, target)
    found = [] if design.solver else [(_luts(design, plain), {})]
    for strides in STRIDES if design.least_beats > 1 else ():
        turns = {"interval": design.least_beats, "strides": strides}
        try:
            schedule = flow.schedule(design.period_ns, target, **turns)
        except UnshareableError:
            continue
        if strides and not schedule.sharing.normalised:
            continue  # no time for them
        # By itself, no design gives a lot of its latency for a few LUTs; and without a family's
        # delays, cycles are uneven, and what solve saves is lost where Yosys maps for speed.
        patient = design.solver or (
            schedule.latency - plain.latency <= design.beats // 4
            and not (strides and target.calibrated == "none")
        )
        if patient:
            found.append((_luts(design, schedule), turns))
    if not found:
        raise ValueError(
            f"solve must be pipelined where a row has less than {_least_beats(design, flow)} "
            f"beats, got shared and {design.least_beats}"
        )
    return min(found, key=lambda item: item[0])[1]


def _least_beats(design, flow):
    """The shortest row that leaves the time."""
    for beats in count(2):
        try:
            flow.schedule(design.period_ns, TARGETS[design.target], beats)
        except UnshareableError:
            continue
        return beats


def _luts(design, schedule):
    """What ``solve`` and the row buffer that waits for it are worth, in LUTs."""
    target, cost = schedule.target, design.flows.solve.cost_of(schedule)
    words, bits = design.beats + schedule.latency, design.lanes * design.x.width
    if target.ram_in_block(words, bits):
        buffer = BLOCK_LUTS * target.blocks(words, bits)
    else:
        buffer = RAM_LUTS * -(-words // 16) * -(-bits // 4)
    return cost.luts + cost.adder_bits + BLOCK_LUTS * (cost.multipliers + cost.blocks) + buffer
