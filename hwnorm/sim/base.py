"""What all simulation engines have in common."""

from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

import numpy as np

from hwnorm.model import parameters_of
from hwnorm.norms import Norm
from hwnorm.sim import cxxrtl, icarus, pysim, verilator
from hwnorm.sim.beats import blocks_of, with_streams
from hwnorm.sim.dut import make_dut
from hwnorm.sim.job import Job
from hwnorm.sim.stalls import make_stalls


@dataclass(frozen=True)
class SimResult:
    """What came out of a simulated design.

    Members
    -------
    engine : str
    y : numpy.ndarray of int64, (rows, dim), or list of them, or None
        A list if rows differ in length, one for each run of rows of a length; None if they
        went to a `sink`.
    rows : int
    cycles : int
        From the first input beat to the last output beat, both included.
    latency_cycles : int
        From the first input beat to the first output beat.
    beats_per_cycle : float
        Output beats over the cycles from the first to the last of them.
    saturated, framing_error : bool
        The flags at the end.
    handshakes : numpy.ndarray of bool, (cycles, 4)
        For the first `trace_cycles` cycles: input valid, input ready, output valid, output ready.
    """

    engine: str
    y: np.ndarray | None
    rows: int
    cycles: int
    latency_cycles: int
    beats_per_cycle: float
    saturated: bool
    framing_error: bool
    handshakes: np.ndarray


#: Name to a module. ``missing()`` says how to install what the engine lacks here, or None;
#: ``WAVES`` are the suffixes of the waves it can write; ``run(job)`` simulates a `Job` and
#: returns its `Outcome`.
ENGINES = {"pysim": pysim, "verilator": verilator, "cxxrtl": cxxrtl, "icarus": icarus}

#: Those that take Verilog of a user's, the faster first.
VERILOG_ENGINES = ("verilator", "icarus")


def simulate(
    design,
    x,
    gamma=None,
    beta=None,
    *,
    engine=None,
    stall=0.0,
    pattern="random",
    seed=0,
    vcd=None,
    fst=None,
    verilog=None,
    top=None,
    component=None,
    sink=None,
    trace_cycles=0,
    cache=True,
    progress=None,
):
    """Simulate a design, or hardware of one's own with the same ports, on rows.

    Parameters
    ----------
    design : hwnorm.Norm
    x : array_like, (rows, dim), or iterator of such blocks
        Integers in units of the input's lsb; floats are quantised. Rows cross into the
        simulator block by block, so neither a ``numpy.memmap`` nor an iterator is ever in
        memory as a whole. With ``dim_max``, the blocks of an iterator may differ in dim.
    gamma, beta : array_like or None, (dim,)
        Loaded through their streams before the rows; None: the initial contents. Designs
        with ``store = "rom"`` take none. With ``store = "stream"`` they come with every row, and
        may have one for each: (rows, dim).
    engine : str or None
        One of ``ENGINES``. All see the same stalls, so they take the same cycles. None:
        ``pysim``, or the first usable of ``VERILOG_ENGINES`` with `verilog`.
    stall : float
        Share of the cycles in which a source has nothing new, in which the sink does not take
        anything (designs with ``ready = false`` have one that always does), and in which the
        clock is not enabled; from 0 up to, not including, 1.
    pattern : str
        ``random`` or ``bursty``: how the stalls are spread.
    seed : int
        Of the stalls.
    vcd, fst : str or pathlib.Path or None
        Where to write waves, in one of the formats; all engines write VCD, ``icarus`` and
        ``verilator`` FST as well.
    verilog : str, pathlib.Path, sequence of them, or None
        Files to simulate instead of the design's own RTL; see `hwnorm.verilog` for the ports.
    top : str or None
        The module of `verilog` to simulate; None: named as the first file.
    component : amaranth.lib.wiring.Component or None
        Amaranth hardware to simulate instead, with the ports of `hwnorm.component`.
    sink : callable or None
        Given y of whole rows as they come, numpy.ndarray of int64, (rows, dim); nothing is
        kept then.
    trace_cycles : int
        For so many cycles the handshakes are noted.
    cache : bool
        Whether compiled simulators are kept and used again.
    progress : callable or None
        Called with the number of rows that came out since the last call.

    Returns
    -------
    SimResult

    Raises
    ------
    ValueError
        If an argument does not fit the design, the engine is not installed, the hardware has
        other ports or does not compile.
    hwnorm.sim.SimulationError
        If the hardware breaks a rule of its streams, or the simulator breaks down.
    TimeoutError
        If the hardware stops giving rows (a `SimulationError` as well).
    """
    if not isinstance(design, Norm):
        raise ValueError(f"design must be a hwnorm norm (hwnorm.load takes names), got {design!r}")
    design.require_hardware()
    if design.control != "none":
        # The engine is what is simulated, not the registers around it.
        design = replace(design, control="none")
    dut = make_dut(design, verilog, top, component)
    engine = usable_engine(engine, verilog is not None)
    stalls = make_stalls(stall, seed, pattern, design.ready)
    blocks = blocks_of(design, x)
    given = {name: v for name, v in (("gamma", gamma), ("beta", beta)) if v is not None}
    if given and design.store == "rom":
        raise ValueError(f"{', '.join(given)} must not be given: the design stores in ROM")
    parameters = parameters_of(design, **given)
    loads = {name: parameters[name] for name in given if name in design.loaded}
    streams = {name: parameters[name] for name in design.streamed}
    # Last of all checks, since it makes the file.
    waves = _waves(engine, vcd, fst)
    kept, rows, elements = [], 0, 0

    def give(y):
        nonlocal rows, elements
        rows += len(y)
        elements += y.size
        (sink or kept.append)(y)
        if progress:
            progress(len(y))

    def limit(beats):
        # Either side may refuse, and the pipelines have to fill and drain.
        return int((beats + design.latency) * 4 / (1 - stall) ** 2) + 2000

    blocks = with_streams(design, blocks, streams)
    job = Job(dut, blocks, loads, stalls, limit, waves, cache, trace_cycles, give)
    out = ENGINES[engine].run(job)
    if waves and not waves.stat().st_size:
        raise ValueError(f"waves must fit where {waves} is, got nothing written")
    return SimResult(
        engine,
        None if sink else _joined(kept),
        rows,
        out.last_out - out.first_in + 1,
        out.first_out - out.first_in,
        elements / design.lanes / (out.last_out - out.first_out + 1),
        out.saturated,
        out.framing_error,
        out.handshakes,
    )


def _joined(blocks):
    """Blocks as one array; of rows of several lengths, a list of one for each run of a length."""
    runs = [list(run) for _, run in groupby(blocks, key=lambda block: block.shape[1])]
    joined = [np.concatenate(run) for run in runs]
    return joined[0] if len(joined) == 1 else joined


def usable_engine(engine, own_verilog=False):
    """The engine to take.

    Raises
    ------
    ValueError
        If it is none, or not installed; the message has the install line.
    """
    if engine is None:
        names = VERILOG_ENGINES if own_verilog else ("pysim",)
        engine = next((name for name in names if not ENGINES[name].missing()), names[0])
    if engine not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(ENGINES)}, got {engine!r}")
    if lack := ENGINES[engine].missing():
        raise ValueError(f"engine {engine} is not usable here: {lack}")
    return engine


def _waves(engine, vcd, fst):
    """The path of the waves, whose suffix says the format."""
    if vcd and fst:
        raise ValueError("vcd and fst must not be given together, got both")
    path = vcd or fst
    if not path:
        return None
    path, kind = Path(path), ".vcd" if vcd else ".fst"
    if path.suffix != kind:
        raise ValueError(f"{kind[1:]} must be a file named *{kind}, got {path}")
    if kind not in ENGINES[engine].WAVES:
        able = [name for name, module in ENGINES.items() if kind in module.WAVES]
        raise ValueError(f"engine {engine} writes no {kind[1:]}; {', '.join(able)} do")
    try:
        with open(path, "a", encoding="utf-8"):
            pass
    except OSError as error:
        raise ValueError(f"{kind[1:]} {path} must be writable, got: {error.strerror}") from None
    return path
