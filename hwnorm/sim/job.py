"""What is asked of an engine, what it answers, and what can go wrong on the way."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hwnorm.sim.dut import Dut
from hwnorm.sim.stalls import Stalls

#: Seconds without a sign of life after which a simulator is ended. Engines give one every
#: second or every thousand cycles, so this is a loop inside of a cycle.
HANG_SECONDS = 60


class SimulationError(RuntimeError):
    """The simulated hardware breaks a rule of its streams, or its simulator broke down."""


class HangError(SimulationError, TimeoutError):
    """The simulated hardware stops giving rows."""


@dataclass(frozen=True)
class Job:
    """A simulation.

    Members
    -------
    dut : Dut
    blocks : iterator of list of numpy.ndarray of int, (rows, dim)
        Blocks of x, each with the streamed parameters of its rows.
    loads : dict of str to numpy.ndarray of int, (dim,)
        Parameters to be loaded through their streams before the rows.
    stalls : Stalls
    limit : callable
        From the beats fed so far to the cycles in which all of them must be out.
    waves : pathlib.Path or None
        ``.vcd`` or ``.fst``.
    cache : bool
        Keep and use what is compiled.
    trace_cycles : int
        For so many cycles the handshakes are noted.
    give : callable
        Takes y of whole rows as they come: numpy.ndarray of int64, (rows, dim).
    """

    dut: Dut
    blocks: Iterator
    loads: dict
    stalls: Stalls
    limit: Callable
    waves: Path | None
    cache: bool
    trace_cycles: int
    give: Callable


@dataclass(frozen=True)
class Outcome:
    """The figures of a simulation.

    Members
    -------
    first_in, first_out, last_out : int
        Cycles of the first beat taken, the first and the last beat given.
    saturated, framing_error : bool
        The flags at the end.
    handshakes : numpy.ndarray of bool, (cycles, 4)
        Cycle by cycle: input valid, input ready, output valid, output ready.
    """

    first_in: int
    first_out: int
    last_out: int
    saturated: bool
    framing_error: bool
    handshakes: np.ndarray


def warm_cycles(design):
    """Cycles that a design is run before the reset that precedes its rows.

    A row comes out by then, another one waits and a third is on its way in: a register that the
    reset forgets is seen. Amaranth's simulator does without, since the reset is Amaranth's.
    """
    return design.latency + 2 * design.beats + design.beats // 2 + 5


def hangs(limit, beats_in, beats_out):
    """The error for hardware that stops."""
    return HangError(
        f"the design must give all beats in {limit} cycles, got {beats_out} out and {beats_in} in"
    )


def withdrawn(cycle):
    """The error for a beat that is taken back."""
    return SimulationError(f"valid must stay until a beat is taken, got none in cycle {cycle}")


def changed(cycle):
    """The error for a beat that changes while it waits."""
    return SimulationError(f"a stalled beat must not change, got another in cycle {cycle}")


def wrong_last(design, beat):
    """The error for a `last` at the wrong place."""
    where = f"every {design.beats}th beat" if design.dim_max is None else "the same beats as of x"
    return SimulationError(f"last must mark {where}, got it wrong at beat {beat}")


def too_many(cycle):
    """The error for a beat out of nothing."""
    return SimulationError(
        f"the design must give a beat for every beat in, got one too many in cycle {cycle}"
    )


def unknown(what, cycle):
    """The error for an X or Z."""
    return SimulationError(f"outputs must be known after reset, got {what} in cycle {cycle}")


def broke_down(reason, beats_out, text):
    """The error for a simulator that does not get to its end."""
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return SimulationError(
        f"the simulator must run to its end, got {reason} after {beats_out} beats out"
        + "".join(f"\n  {line}" for line in lines[-5:])
    )
