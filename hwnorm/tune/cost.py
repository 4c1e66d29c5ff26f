"""What a design costs, before anything is synthesised."""

from math import ceil

from hwnorm.report import scale_cost

#: Bits of one block RAM (ECP5 DP16KD, Xilinx RAMB18).
BLOCK_BITS = 18432

#: Tables of fewer bits than this are built of LUTs.
SMALL_TABLE_BITS = 1024

#: Tables that every lane has a copy of; the others exist once.
_A_LANE = ("log2_x", "exp2")


def estimate(design):
    """The figures of cost of a design.

    Parameters
    ----------
    design : hwnorm.Norm

    Returns
    -------
    dict of str to float
        ``rom_bits``, ``lut``, ``dsp``, ``bram``, ``fmax_mhz``, ``latency_cycles`` and
        ``bound_ulp``: of gather, solve and apply, without buffers and control.
    """
    flows = design.flows
    cost = scale_cost(flows.gather.cost, design.lanes) + flows.solve.cost
    cost = cost + scale_cost(flows.apply.cost, design.lanes)
    blocks = 0
    for name, unit in design.units.items():
        copies = design.lanes if name in _A_LANE else 1
        sizes = [len(column.values) * column.fmt.width for column in unit.table.columns]
        blocks += copies * sum(ceil(n / BLOCK_BITS) for n in sizes if n >= SMALL_TABLE_BITS)
    return {
        "rom_bits": sum(unit.table.rom_bits for unit in design.units.values()),
        "lut": cost.luts,
        "dsp": cost.multipliers,
        "bram": blocks,
        "fmax_mhz": 1000 / design.period_ns,
        "latency_cycles": design.latency,
        "bound_ulp": design.bound_ulp,
    }
