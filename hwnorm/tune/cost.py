"""What a design costs, before anything is synthesised."""

from hwnorm import estimate as estimates


def estimate(design):
    """The figures of cost of a design.

    Parameters
    ----------
    design : hwnorm.Norm

    Returns
    -------
    dict of str to float
        ``rom_bits``, ``lut``, ``dsp``, ``bram``, ``ff``, ``fmax_mhz``, ``latency_cycles`` and
        ``bound_ulp``.
    """
    found = estimates.estimate(design)
    return {
        "rom_bits": sum(unit.table.rom_bits for unit in design.units.values()),
        "lut": found.lut,
        "dsp": found.dsp,
        "bram": found.bram,
        "ff": found.ff,
        "fmax_mhz": found.fmax_mhz,
        "latency_cycles": design.latency,
        "bound_ulp": design.bound_ulp,
    }
