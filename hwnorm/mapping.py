"""What synthesis makes LUTs of, by kind: the amounts that estimates are made from."""

from collections import Counter
from math import ceil

from hwnorm.ops import (
    Add,
    Clamp,
    LeadingZeros,
    Lookup,
    Mul,
    MulHidden,
    Normalise,
    Round,
    ShiftRight,
    Sub,
)

#: Kinds of amounts. LUTs by the ops' own count: of products by adders (``rows``), of small tables,
#: of leading zeros, of the shifters that normalise and that align, of limits, of what turns at
#: shared hardware need, of all else (``logic``). Such LUTs once more where their op stands behind
#: others in its cycle (``table_behind``, ``limit_behind``): they are then mapped for speed. Bits of
#: adders; of those behind another adder in one cycle, which become carry-save adders, of sums
#: (``merged``) and of products (``merged_rows``). Bits of the accumulators. Of memories that are
#: made of LUTs or registers, the bits that are multiplexed. Bits of the shell's counters. Memories.
KINDS = (
    "logic", "rows", "table", "zeros", "normalise", "shift", "limit", "turns",
    "table_behind", "limit_behind", "adder", "merged", "merged_rows",
    "accumulator", "muxed", "counter", "memory",
)  # fmt: skip

_KIND_OF = {
    Mul: "rows",
    MulHidden: "rows",
    Lookup: "table",
    LeadingZeros: "zeros",
    Normalise: "normalise",
    ShiftRight: "shift",
    Clamp: "limit",
}
_SUMS = (Add, Sub, Round)


def flow_amounts(flow, schedule):
    """Amounts by kind of one instance of a flow.

    Parameters
    ----------
    flow : Flow
    schedule : Schedule
        Of that flow.

    Returns
    -------
    Counter
    """
    found, sharing = Counter(), schedule.sharing
    costs, ends_in_sum = flow.costs_on(schedule.target), {}
    for wire in flow.wires:
        if wire not in schedule.begins:
            continue
        begins = schedule.begins[wire]
        ahead = [
            arg
            for arg in wire.args
            if begins[0] and schedule.available.get(arg) == schedule.place[wire]
        ]
        sums = [arg for arg in ahead if ends_in_sum.get(arg)]
        cost = costs[wire]
        built = any(step.ns or step.registered for step in schedule.steps(wire))
        # What only moves bits passes on what its operand ends in.
        ends_in_sum[wire] = cost.adder_bits > 0 if built else bool(sums)
        if sharing is not None and sharing.takes(wire):
            continue
        kind = _KIND_OF.get(type(wire), "logic")
        found[kind] += cost.luts
        found["adder"] += cost.adder_bits
        if begins[0] and kind in ("table", "limit"):
            found[f"{kind}_behind"] += cost.luts
        if isinstance(wire, _SUMS):
            found["merged"] += len(sums) * wire.fmt.width
        if kind == "rows":
            found["merged_rows"] += sum(map(bool, begins[1:])) * wire.fmt.width
    if sharing is not None:
        cost = sharing.cost
        found["turns"] += cost.luts
        found["adder"] += cost.adder_bits
    return found


def shell_amounts(totals, memories, counter_bits, target):
    """Amounts by kind of what is around the flows.

    Parameters
    ----------
    totals : iterable of Fixed
        The accumulators.
    memories : list of (int, int, int)
        Words, bits and block RAMs of each.
    counter_bits : int
    target : Target

    Returns
    -------
    Counter
    """
    deep = 16 if target.lut_ram else 1
    muxed = sum((ceil(words / deep) - 1) * bits for words, bits, blocks in memories if not blocks)
    return Counter(
        accumulator=sum(fmt.width for fmt in totals),
        muxed=muxed,
        counter=counter_bits,
        memory=len(memories),
    )
