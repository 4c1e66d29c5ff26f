"""What all simulation engines have in common."""

from dataclasses import dataclass

import numpy as np

from hwnorm.model import parameters_of, rows_of
from hwnorm.sim import pysim


@dataclass(frozen=True)
class SimResult:
    """What came out of a simulated design.

    Members
    -------
    engine : str
    y : numpy.ndarray of int64, (rows, dim)
    cycles : int
        From the first input beat to the last output beat, both included.
    latency_cycles : int
        From the first input beat to the first output beat.
    beats_per_cycle : float
        Output beats over the cycles from the first to the last of them.
    saturated, framing_error : bool
        The flags at the end.
    """

    engine: str
    y: np.ndarray
    cycles: int
    latency_cycles: int
    beats_per_cycle: float
    saturated: bool
    framing_error: bool


#: Name to a module with ``run(design, x, loads, stall, seed, vcd, progress)``.
ENGINES = {"pysim": pysim}


def simulate(
    design, x, gamma=None, beta=None, *, engine="pysim", stall=0.0, seed=0, vcd=None, progress=None
):
    """Simulate a design on rows.

    Parameters
    ----------
    design : hwnorm.Norm
    x : array_like, (rows, dim)
        Integers in units of the input's lsb; floats are quantised.
    gamma, beta : array_like or None, (dim,)
        Loaded through their streams before the rows; None: the initial contents. Designs
        with ``store = "rom"`` take none.
    engine : str
        One of ``ENGINES``.
    stall : float
        Probability, in each cycle, that the source has nothing, and that the sink does not
        take anything; from 0 up to, not including, 1.
    seed : int
        Of the stalls.
    vcd : str or pathlib.Path or None
        Where to write waves.
    progress : callable or None
        Called with the number of rows that came out since the last call.

    Returns
    -------
    SimResult

    Raises
    ------
    ValueError
        If an argument does not fit the design.
    TimeoutError
        If the design stops giving rows.
    """
    design.require_hardware()
    if engine not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(ENGINES)}, got {engine!r}")
    if not 0 <= stall < 1:
        raise ValueError(f"stall must be at least 0 and below 1, got {stall}")
    rows = rows_of(design, x)
    if not len(rows):
        raise ValueError("x must have at least one row, got none")
    given = {name: v for name, v in (("gamma", gamma), ("beta", beta)) if v is not None}
    if given and design.store == "rom":
        raise ValueError(f"{', '.join(given)} must not be given: the design stores in ROM")
    loads = {name: parameters_of(design, **given)[name] for name in given}
    return SimResult(engine, *ENGINES[engine].run(design, rows, loads, stall, seed, vcd, progress))
