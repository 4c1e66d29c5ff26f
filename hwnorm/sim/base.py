"""What all simulation engines have in common."""

from dataclasses import dataclass, replace

import numpy as np

from hwnorm.model import parameters_of, rows_of
from hwnorm.sim import cxxrtl, icarus, pysim, verilator
from hwnorm.sim.stalls import make_stalls


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


#: Name to a module with two functions. ``missing()`` says how to install what the engine lacks
#: here, or None. ``run(design, x, loads, stalls, limit, vcd, progress)`` simulates and returns
#: y, the cycles of the first beat in and of the first and the last beat out, and the two flags.
ENGINES = {"pysim": pysim, "verilator": verilator, "cxxrtl": cxxrtl, "icarus": icarus}


def simulate(
    design,
    x,
    gamma=None,
    beta=None,
    *,
    engine="pysim",
    stall=0.0,
    pattern="random",
    seed=0,
    vcd=None,
    progress=None,
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
        One of ``ENGINES``. All see the same stalls, so they take the same cycles.
    stall : float
        Share of the cycles in which the source has nothing new, and in which the sink does
        not take anything; from 0 up to, not including, 1.
    pattern : str
        ``random`` or ``bursty``: how the stalls are spread.
    seed : int
        Of the stalls.
    vcd : str or pathlib.Path or None
        Where to write waves; of ``pysim`` and ``icarus``.
    progress : callable or None
        Called with the number of rows that came out since the last call.

    Returns
    -------
    SimResult

    Raises
    ------
    ValueError
        If an argument does not fit the design, or the engine is not installed.
    TimeoutError
        If the design stops giving rows.
    """
    design.require_hardware()
    if design.control != "none":
        # The engine is what is simulated, not the registers around it.
        design = replace(design, control="none")
    if engine not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(ENGINES)}, got {engine!r}")
    lack = ENGINES[engine].missing()
    if lack:
        raise ValueError(f"engine {engine} is not usable here: {lack}")
    if vcd:
        _check_writable(vcd)
    stalls = make_stalls(stall, seed, pattern)
    rows = rows_of(design, x)
    if not len(rows):
        raise ValueError("x must have at least one row, got none")
    given = {name: v for name, v in (("gamma", gamma), ("beta", beta)) if v is not None}
    if given and design.store == "rom":
        raise ValueError(f"{', '.join(given)} must not be given: the design stores in ROM")
    loads = {name: parameters_of(design, **given)[name] for name in given}
    beats = len(rows) * design.beats
    # Either side may refuse, and the pipelines have to fill and drain.
    limit = int((beats + design.latency) * 4 / (1 - stall) ** 2) + 2000
    y, (first_in, first_out, last_out), saturated, framing_error = ENGINES[engine].run(
        design, rows, loads, stalls, limit, vcd, progress
    )
    return SimResult(
        engine,
        y,
        last_out - first_in + 1,
        first_out - first_in,
        beats / (last_out - first_out + 1),
        saturated,
        framing_error,
    )


def _check_writable(path):
    try:
        with open(path, "a", encoding="utf-8"):
            pass
    except OSError as error:
        raise ValueError(f"vcd {path} must be writable, got: {error.strerror}") from None
