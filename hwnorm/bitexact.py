"""Compare a design's RTL with its model, bit for bit, with a report and a reproducer."""

import shlex
import tempfile
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from hwnorm.design import dumps, load
from hwnorm.files import write_bytes, write_text
from hwnorm.measure import golden
from hwnorm.model import evaluate, parameters_at, parameters_of, solve_rows, stored_of
from hwnorm.norms import NORMS
from hwnorm.sim import SimResult, SimulationError, simulate
from hwnorm.sim.base import usable_engine
from hwnorm.sim.beats import blocks_of
from hwnorm.sim.dut import make_dut

#: Elements of the rows that are kept for a reproducer; of more, the last ones, and all that are
#: still on their way.
REPLAY_ELEMENTS = 1 << 24


@dataclass(frozen=True)
class Comparison:
    """A simulation beside the model.

    Members
    -------
    result : hwnorm.sim.SimResult or None
        Without y if x is an iterator; None if the simulation did not get to its end.
    broken : str
        Why it did not; empty if it did.
    elements, mismatches : int
        Outputs compared, and how many of them differ.
    first : tuple of int or None
        Row, element, expected and got value of the first that differs.
    flags : list of str
        What is wrong with the flags at the end.
    rows : numpy.ndarray of int, (rows, dim)
        What went in until the first mismatch was seen, or its last part.
    skipped : int
        Rows before those.
    """

    result: SimResult | None
    broken: str
    elements: int
    mismatches: int
    first: tuple | None
    flags: list
    rows: np.ndarray
    skipped: int

    @property
    def bit_exact(self):
        """Whether every output and flag is the model's."""
        return not (self.broken or self.mismatches or self.flags)

    @property
    def summary(self):
        """What differs, in a line; empty if nothing."""
        if self.broken:
            return self.broken
        if self.first:
            row, element, expected, got = self.first
            return (
                f"{self.mismatches} of {self.elements} elements differ, the first in row {row}, "
                f"element {element}: expected {expected}, got {got}"
            )
        return "; ".join(self.flags)


def compare(design, x, gamma=None, beta=None, **settings):
    """Simulate a design on rows and compare every bit with the model.

    Parameters
    ----------
    design : hwnorm.Norm
    x, gamma, beta, **settings
        As of `hwnorm.simulate`, without `sink`.

    Returns
    -------
    Comparison

    Raises
    ------
    ValueError
        As of `hwnorm.simulate`.
    """
    given = {name: v for name, v in (("gamma", gamma), ("beta", beta)) if v is not None}
    judge = _Judge(design, x, parameters_of(design, **given))
    result, broken = None, ""
    try:
        result = simulate(design, judge.feed(), **given, **settings, sink=judge.take)
        result = replace(result, y=np.concatenate(judge.got) if judge.got else None)
    except SimulationError as error:
        broken = str(error)
    flags = []
    if result:
        wanted = {"saturated": judge.saturated > 0, "framing_error": False}
        # Rows that are framed well raise no error.
        flags = [
            f"the flag {name} must be {value}, got {got}"
            for name, value in wanted.items()
            if (got := getattr(result, name)) != value
        ]
    rows = judge.replayable()
    return Comparison(
        result, broken, judge.elements, judge.mismatches, judge.first, flags, rows, judge.skipped
    )


class _Judge:
    """Runs the model on what goes in, and compares it with what comes out."""

    def __init__(self, design, x, parameters):
        self._design, self._x, self._parameters = design, x, parameters
        self._expected = deque()
        self._endless = isinstance(x, Iterator)
        self.got, self.kept, self.kept_elements, self.skipped = [], deque(), 0, 0
        self.rows = self.elements = self.mismatches = self.saturated = 0
        self.first = None

    def feed(self):
        fed = 0
        for block in blocks_of(self._design, self._x):
            some = parameters_at(self._parameters, fed, fed + len(block))
            fed += len(block)
            model = evaluate(self._design, block, **some)
            self.saturated += model.saturated
            self._expected.append(model.y)
            if not self.first:
                self._keep(block)
            yield block

    def _keep(self, block):
        self.kept.append(block)
        self.kept_elements += block.size
        # Rows that have not come out yet may be the ones that are wrong.
        while self.kept_elements > REPLAY_ELEMENTS and self._is_judged(self.kept[0]):
            part = self.kept.popleft()
            self.kept_elements -= part.size
            self.skipped += len(part)

    def replayable(self):
        """The rows that are kept; where they differ in length, the run of the first mismatch."""
        parts = list(self.kept)
        if not parts:
            return np.empty((0, self._design.dim), np.int64)
        at = len(parts) - 1
        if self.first:
            ends = np.cumsum([len(part) for part in parts]) + self.skipped
            at = int(np.searchsorted(ends, self.first[0], side="right"))
        runs = np.cumsum([0] + [a.shape[1] != b.shape[1] for a, b in pairwise(parts)])
        every = list(zip(parts, runs, strict=True))
        self.skipped += sum(len(part) for part, run in every if run < runs[at])
        return np.concatenate([part for part, run in every if run == runs[at]])

    def _is_judged(self, oldest):
        return self.skipped + len(oldest) <= self.rows

    def take(self, y):
        if not self._endless:
            self.got.append(y)
        while len(y):
            expected = self._expected.popleft()
            count = min(len(y), len(expected))
            self._compare(expected[:count], y[:count])
            if count < len(expected):
                self._expected.appendleft(expected[count:])
            y = y[count:]

    def _compare(self, expected, got):
        differ = expected != got
        wrong = int(np.count_nonzero(differ))
        if wrong and not self.first:
            row, element = (int(n) for n in np.argwhere(differ)[0])
            values = int(expected[row, element]), int(got[row, element])
            self.first = (self.rows + row, element, *values)
        self.mismatches += wrong
        self.elements += got.size
        self.rows += len(got)


def assert_bit_exact(design, x, gamma=None, beta=None, *, folder=None, **settings):
    """Simulate a design, or hardware of one's own, and assert that every bit is the model's.

    Parameters
    ----------
    design : hwnorm.Norm, str or pathlib.Path
        A design, a design file or the name of a preset.
    x : array_like, (rows, dim), or iterator of such blocks
        Integers in units of the input's lsb; floats are quantised.
    gamma, beta : array_like or None, (dim,)
        Likewise in their formats. None: the design's initial contents.
    folder : str, pathlib.Path or None
        Where to write the reproducer of a failure; None: a new temporary folder.
    **settings
        ``engine``, ``stall``, ``pattern``, ``seed``, ``vcd``, ``fst``, ``verilog``, ``top``,
        ``component``, ``trace_cycles``, ``cache``, ``progress``: as of `hwnorm.simulate`.

    Returns
    -------
    hwnorm.sim.SimResult
        Without y if x is an iterator.

    Raises
    ------
    AssertionError
        If an output or a flag differs, the streams break a rule, no rows come any more, or the
        simulator breaks down. The text shows the first element that differs, on its way through
        the model, and names the reproducer.
    ValueError
        If an argument does not fit the design, the engine is not installed, the hardware has
        other ports or does not compile.
    """
    __tracebackhide__ = True
    if isinstance(design, str | Path):
        design = load(design)
    given = {name: v for name, v in (("gamma", gamma), ("beta", beta)) if v is not None}
    parameters = parameters_of(design, **given)
    given = {name: parameters[name] for name in given}
    settings["engine"] = usable_engine(settings.get("engine"), settings.get("verilog") is not None)
    found = compare(design, x, **given, **settings)
    if found.bit_exact:
        return found.result
    lines = [found.broken] if found.broken else []
    if found.first:
        lines.append(f"{found.mismatches} of {found.elements} elements differ")
        lines += _element(design, *found.first)
        row, element = found.first[:2]
        at = row - found.skipped
        some = parameters_at(parameters, row, row + 1)
        lines += _judge(design, found.rows[at : at + 1], element, some)
    lines += found.flags
    lines += _reproducer(design, found, given, settings, folder)
    if waves := settings.get("vcd") or settings.get("fst"):
        lines.append(f"waves: {waves}")
    raise AssertionError(f"RTL ({settings['engine']}) and model must agree: " + "\n".join(lines))


def _element(design, row, element, expected, got):
    beat, lane = divmod(element, design.lanes)
    return [
        f"first in row {row}, element {element} (beat {beat}, lane {lane})",
        *(
            f"  {name:<8} {value:>11} = {design.y.reals(value):.9g}"
            for name, value in (("expected", expected), ("got", got))
        ),
    ]


def _judge(design, x, element, parameters):
    """What float64 says of an element of a row, and the model's named wires on the way to it."""
    ideal = golden(design, x, **parameters)[0, element]
    # In units of the lsb as well, so that it stands under the integers.
    lines = [f"  {'golden':<8} {np.ldexp(ideal, design.y.frac):>11.2f} = {ideal:.9g}"]
    solved, applied = {}, {}
    scalars = solve_rows(design.flows, x, probe=solved)
    stored = {name: np.ravel(v)[element] for name, v in stored_of(design, parameters).items()}
    scalars = {name: value[0] for name, value in scalars.items()}
    design.flows.apply.run(x=x[0, element], **stored, **scalars, probe=applied)
    for flow, values in ((design.flows.solve, solved), (design.flows.apply, applied)):
        lines.append(f"wires of {flow.name} in the model:")
        named = [
            (name, str(np.ravel(values[name])[0]), str(wire.fmt))
            for wire, name in flow.names.items()
            if wire.name
        ]
        long, wide = (max((len(row[n]) for row in named), default=0) for n in (0, 1))
        lines += [f"  {name:<{long}}  {value:>{wide}}  {fmt}" for name, value, fmt in named]
    return lines


def _reproducer(design, found, given, settings, folder):
    """Write what replays a failure; returns the lines that say where it is."""
    try:
        if type(design) is not NORMS.get(design.kind):
            raise ValueError(f"design files cannot name the norm {design.kind}")
        place = Path(folder or tempfile.mkdtemp(prefix="hwnorm-mismatch-"))
        given = parameters_at(given, found.skipped, found.skipped + len(found.rows))
        command = _replay_command(design, place, len(found.rows), settings)
        write_text(place / "design.toml", dumps(design))
        write_text(place / "replay.sh", f'#!/bin/sh\ncd "$(dirname "$0")" && {command}\n')
        for name, values in {"x": found.rows, **given}.items():
            np.save(place / f"{name}.npy", values)
        np.savez(place / "data.npz", x=found.rows, **given)
    except (OSError, ValueError) as error:
        # The failure is what must be told.
        return [f"reproducer not written: {error}"]
    part = f" (without the first {found.skipped} rows)" if found.skipped else ""
    return [f"reproducer: {place}{part}", f"  {command}"]


def _replay_command(design, place, rows, settings):
    """The command, once the user's hardware is in the folder as Verilog."""
    words = ["hwnorm", "sim", "design.toml", "--data", "data.npz", "--rows", str(rows)]
    dut = make_dut(design, *(settings.get(n) for n in ("verilog", "top", "component")))
    engine = settings["engine"]
    if dut.files or dut.component is not None:
        for name, data in dut.companions.items():
            write_bytes(place / name, data)
        for name, text in dut.texts.items():
            write_text(place / name, text)
            words += ["--verilog", name]
        words += ["--top", dut.top]
        if not dut.files:
            engine = usable_engine(None, own_verilog=True)
    words += ["--engine", engine]
    for name, default in (("stall", 0.0), ("pattern", "random"), ("seed", 0)):
        words += [f"--{name}", str(settings.get(name, default))]
    return shlex.join(words)
