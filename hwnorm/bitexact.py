"""Assert that a design's RTL gives what its model says, with a report and a reproducer if not."""

import shlex
import tempfile
from pathlib import Path

import numpy as np

from hwnorm.design import dumps, load
from hwnorm.files import write_text
from hwnorm.measure import golden
from hwnorm.model import evaluate, parameters_of, rows_of, solve_rows, stored_of
from hwnorm.norms import NORMS
from hwnorm.sim import simulate


def assert_bit_exact(
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
    folder=None,
):
    """Simulate a design on rows and compare every bit with the model.

    Parameters
    ----------
    design : hwnorm.Norm, str or pathlib.Path
        A design, a design file or the name of a preset.
    x : array_like, (rows, dim)
        Integers in units of the input's lsb; floats are quantised.
    gamma, beta : array_like or None, (dim,)
        Likewise in their formats. None: the design's initial contents.
    engine, stall, pattern, seed, vcd
        As of `hwnorm.simulate`.
    folder : str, pathlib.Path or None
        Where to write the reproducer of a mismatch; None: a new temporary folder.

    Returns
    -------
    hwnorm.sim.SimResult

    Raises
    ------
    AssertionError
        If an output, or a flag, differs. The text shows the first element that does, on its
        way through the model, and names the reproducer.
    ValueError
        If an argument does not fit the design, or the engine is not installed.
    TimeoutError
        If the design stops giving rows.
    """
    __tracebackhide__ = True
    if isinstance(design, str | Path):
        design = load(design)
    x = rows_of(design, x)
    given = {name: v for name, v in (("gamma", gamma), ("beta", beta)) if v is not None}
    parameters = parameters_of(design, **given)
    given = {name: parameters[name] for name in given}
    settings = {"engine": engine, "stall": float(stall), "pattern": pattern, "seed": int(seed)}
    result = simulate(design, x, **given, **settings, vcd=vcd)
    expected = evaluate(design, x, **parameters)
    wrong, lines = np.argwhere(result.y != expected.y), []
    if len(wrong):
        row, element = (int(n) for n in wrong[0])
        lines.append(f"{len(wrong)} of {result.y.size} elements differ")
        lines += _element(design, row, element, expected.y[row, element], result.y[row, element])
        lines += _judge(design, x[row : row + 1], element, parameters)
    lines += _flags(result, expected.saturated > 0)
    if not lines:
        return result
    command = shlex.join(
        ["hwnorm", "sim", "design.toml", "--data", "data.npz", "--rows", str(len(x))]
        + [word for name, value in settings.items() for word in (f"--{name}", str(value))]
    )
    lines += _reproducer(design, x, given, command, folder)
    if vcd:
        lines.append(f"waves: {vcd}")
    raise AssertionError(f"RTL ({engine}) and model must agree: " + "\n".join(lines))


def _flags(result, saturated):
    """What is wrong with the flags at the end; rows that are framed well raise no error."""
    flags = (
        ("saturated", saturated, result.saturated),
        ("framing_error", False, result.framing_error),
    )
    return [f"the flag {name} must be {a}, got {b}" for name, a, b in flags if a != b]


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
    stored = {name: v[element] for name, v in stored_of(design, parameters).items()}
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


def _reproducer(design, x, given, command, folder):
    """Write what replays a mismatch; returns the lines that say where it is."""
    try:
        if type(design) is not NORMS.get(design.kind):
            raise ValueError(f"design files cannot name the norm {design.kind}")
        place = Path(folder or tempfile.mkdtemp(prefix="hwnorm-mismatch-"))
        write_text(place / "design.toml", dumps(design))
        write_text(place / "replay.sh", f'#!/bin/sh\ncd "$(dirname "$0")" && {command}\n')
        for name, values in {"x": x, **given}.items():
            np.save(place / f"{name}.npy", values)
        np.savez(place / "data.npz", x=x, **given)
    except (OSError, ValueError) as error:
        # The mismatch is what must be told.
        return [f"reproducer not written: {error}"]
    return [f"reproducer: {place}", f"  {command}"]
