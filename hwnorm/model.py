"""The bit-accurate model: a design on arrays of integers, row block by row block."""

from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from hwnorm.fixed import is_fxp, quantise, to_fxp
from hwnorm.flow import narrowest
from hwnorm.golden import exact

#: Elements computed at once: few enough to stay in the cache, enough to drown numpy's overhead.
BLOCK_ELEMENTS = 1 << 16

#: numpy's buffer, in elements. With its default of 8192, rows of up to half of that are copied
#: there whenever a column of row scalars is broadcast over them, at twice the time.
BUFFER_ELEMENTS = 512

# The C library gives large temporaries back to the system one by one, and every new one then
# costs page faults. Freeing one block of this size teaches glibc to keep them.
np.empty(1 << 24, dtype=np.uint8)


@dataclass(frozen=True)
class ModelResult:
    """What a design makes of some rows.

    Members
    -------
    y : numpy.ndarray of int64, (rows, dim)
        In units of the lsb of the output format.
    saturated : int
        Outputs that were limited.
    """

    y: np.ndarray
    saturated: int


def model(design, x, gamma=None, beta=None):
    """Run a design's arithmetic, bit for bit as the hardware does.

    Parameters
    ----------
    design : hwnorm.Norm
    x : array_like, (..., dim)
        Integers in units of the input's lsb; floats and ``fxpmath.Fxp`` are quantised.
    gamma, beta : array_like or None, (dim,)
        Likewise in their formats. None: the design's initial contents. Of designs with
        ``store = "stream"`` also (rows, dim): every row has its own.

    Returns
    -------
    numpy.ndarray of int64 or fxpmath.Fxp, the shape of x
        In units of the output's lsb; an ``Fxp`` if x is one.

    Raises
    ------
    ValueError
        If shapes or values do not fit the design.
    """
    x_int = rows_of(design, x)
    y = evaluate(design, x_int, gamma, beta).y.reshape(np.shape(x.val if is_fxp(x) else x))
    return to_fxp(design.y, y) if is_fxp(x) else y


def rows_of(design, x):
    """The input as integers, (rows, dim)."""
    x_int = quantise(design.x, x, "x")
    if not x_int.ndim or x_int.shape[-1] not in design.dims:
        lengths = f"dim={design.dim}" if design.dim_max is None else f"up to {design.dim}"
        beats = " in whole beats" if design.dim_max is not None else ""
        raise ValueError(f"x must have rows of {lengths} elements{beats}, got shape {x_int.shape}")
    return x_int.reshape(-1, x_int.shape[-1])


def parameters_of(design, **given):
    """The parameters of a design as integers; what is not given is its initial.

    Returns
    -------
    dict of str to numpy.ndarray of int64, (dim,)
        Of designs with ``store = "stream"`` also (rows, dim).

    Raises
    ------
    ValueError
        If one does not fit the design.
    """
    for name, value in given.items():
        if value is not None and name not in design.parameters:
            raise ValueError(f"{name} must not be given: the design has no format.{name}")
    values = {}
    for name, fmt in design.parameters.items():
        value = given.get(name)
        values[name] = (
            np.array(design.initial(name), dtype=np.int64)
            if value is None
            else np.asarray(quantise(fmt, value, name)).astype(np.int64)
        )
        shape = values[name].shape
        if shape[-1:] != (design.dim,) or len(shape) > 1 + (design.store == "stream"):
            raise ValueError(f"{name} must have dim={design.dim} elements, got shape {shape}")
    folded = getattr(design, "folded", None) is not None
    if folded and tuple(values["gamma"].tolist()) != design.initial("gamma"):
        raise ValueError(
            f"gamma must be the constant {design.gain:g} that the design has in its scale, "
            f"got others"
        )
    return values


def parameters_at(parameters, start, stop):
    """The parameters of some of the rows, where they differ by row.

    Raises
    ------
    ValueError
        If there are fewer rows of a parameter.
    """
    some = {}
    for name, value in parameters.items():
        some[name] = value if value.ndim == 1 else value[start:stop]
        if value.ndim == 2 and len(value) < stop:
            raise ValueError(f"{name} must have a row for each of x, got {len(value)}")
    return some


def first_of(parameters, dim):
    """What rows of `dim` elements use of parameters: the first ones."""
    return {name: value[..., :dim] for name, value in parameters.items()}


def stored_of(design, parameters):
    """What the hardware stores of the parameters: name to integers, (dim,)."""
    stored = {}
    for name, value in parameters.items():
        stored |= design.flows.load[name].run(**{name: value})
    return stored


def evaluate(design, x, gamma=None, beta=None, *, check=False, out=None, limited=None):
    """As `model`, on integer rows, with the count of saturated outputs.

    Parameters
    ----------
    x : numpy.ndarray of int, (rows, dim)
    check : bool
        Verify on the way that every wire keeps its interval.
    out : numpy.ndarray of int or None, (rows, dim)
        Where to put the result.
    limited : numpy.ndarray of bool or None, (rows, dim)
        Where to mark the saturated outputs.

    Returns
    -------
    ModelResult
    """
    parameters = parameters_of(design, gamma=gamma, beta=beta)
    parameters = first_of(parameters, x.shape[1])
    for name, value in parameters.items():
        if value.ndim == 2 and len(value) != len(x):
            raise ValueError(f"{name} must have a row for each of x={len(x)}, got {len(value)}")
    y = np.empty(x.shape, dtype=np.int64) if out is None else out
    saturated = 0
    for start, stop, block, lost in _results(design, x, parameters, check):
        y[start:stop] = block
        saturated += int(np.count_nonzero(lost))
        if limited is not None:
            limited[start:stop] = lost
    return ModelResult(y, saturated)


def _results(design, x, parameters, check):
    """Block by block: first and last row, y, and which of it was limited."""
    if not len(x):
        return
    if design.rsqrt.method == "exact":
        for start, stop in _blocks(x.shape):
            some = parameters_at(parameters, start, stop)
            yield start, stop, *exact_block(design, x[start:stop], some)
        return
    stored = stored_of(design, parameters)
    with small_buffer():
        scalars = solve_rows(design.flows, x, check)
        for start, stop in _blocks(x.shape):
            columns = {name: value[start:stop, None] for name, value in scalars.items()}
            some = parameters_at(stored, start, stop)
            result = design.flows.apply.run(x=x[start:stop], **some, **columns, check=check)
            yield start, stop, result["y"], result["saturated"]


@contextmanager
def small_buffer():
    """Within it, numpy broadcasts columns without copying rows to its buffer."""
    before = np.setbufsize(BUFFER_ELEMENTS)
    try:
        yield
    finally:
        np.setbufsize(before)


def _blocks(shape):
    rows, dim = shape
    step = max(1, BLOCK_ELEMENTS // dim)
    return [(start, min(start + step, rows)) for start in range(0, rows, step)]


def solve_rows(flows, x, check=False, probe=None):
    """The scalars of rows: name to integers, (rows,)."""
    totals = totals_of(flows, x, check)
    return {
        name: np.broadcast_to(value, len(x))
        for name, value in flows.solve.run(**totals, check=check, probe=probe).items()
    }


def totals_of(flows, x, check=False):
    """The exact totals of rows: name to integers, (rows,)."""
    parts = {name: [] for name in flows.totals}
    for start, stop in _blocks(x.shape):
        rows = x[start:stop]
        for name, term in flows.gather.run(x=rows, check=check).items():
            fmt = flows.totals[name]
            # What depends on no element is a number alone.
            term = np.broadcast_to(term, rows.shape)
            if name in flows.maxima:
                parts[name].append(term.max(axis=1))
            else:
                parts[name].append(np.add.reduce(term, axis=1, dtype=narrowest(fmt.lo, fmt.hi)))
    return {name: np.concatenate(found) for name, found in parts.items()}


def exact_block(design, x, parameters):
    """Correctly rounded rows, and which of their elements were limited."""
    parameters = first_of(parameters, x.shape[1])
    ideal = exact(
        design.kind,
        x,
        x_frac=design.x.frac,
        y_frac=design.y.frac,
        eps=design.eps,
        gamma=parameters.get("gamma"),
        gamma_frac=design.gamma.frac if design.gamma else 0,
        gamma_offset=design.gamma_offset,
        beta=parameters.get("beta"),
        beta_frac=design.beta.frac if design.beta else 0,
    )
    if design.overflow == "wrap":
        span = design.y.hi - design.y.lo + 1
        wrapped = (ideal - design.y.lo) % span + design.y.lo
        return wrapped.astype(np.int64), np.zeros(ideal.shape, dtype=bool)
    limited = np.clip(ideal, design.y.lo, design.y.hi).astype(np.int64)
    return limited, (limited != ideal).astype(bool)
