"""Rows to test with: corners, random rows with outliers, real activations, data files."""

import zipfile
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np


def corner_rows(design):
    """Rows where arithmetic breaks first.

    All zero, one lsb, all lowest, all highest, alternating, a single spike of either sign,
    a spike on a floor of ones, powers of two of every size (both exponent parities), a ramp.

    Returns
    -------
    numpy.ndarray of int64, (rows, dim)
    """
    lo, hi, dim = design.x.lo, design.x.hi, design.dim
    place = np.arange(dim)
    one_hot = place == dim // 3
    rows = [
        np.zeros(dim),
        one_hot,
        -1 * (place == dim - 1),
        np.full(dim, lo),
        np.full(dim, hi),
        np.where(place % 2, hi, lo),
        np.where(one_hot, hi, 0),
        np.where(one_hot, lo, 0),
        np.where(one_hot, hi, 1),
        np.where(one_hot, lo, place % 3 - 1),
        lo + place * (hi - lo) // max(dim - 1, 1),
        np.ones(dim),
        np.full(dim, 3),
        np.where(place % 2, 1, -1),
    ]
    rows += [np.where(place == n % dim, 1 << n, 0) for n in range(0, design.x.width - 1, 2)]
    rows += [np.full(dim, 1 << n) for n in range(1, design.x.width - 1, 3)]
    return np.clip(np.array(rows, dtype=np.int64), lo, hi)


def random_rows(design, rows, seed=0):
    """Seeded rows of every scale: Gaussian, heavy tailed, and with massive outliers.

    Returns
    -------
    numpy.ndarray of int64, (rows, dim)
    """
    rng = np.random.default_rng(seed)
    scale = np.exp2(rng.uniform(0, max(design.x.width - 3, 0), (rows, 1)))
    x = rng.normal(size=(rows, design.dim))
    heavy = rng.random((rows, 1)) < 0.3
    x = np.where(heavy, rng.standard_t(2, size=x.shape), x) * scale
    spiked = rng.random(rows) < 0.3
    channel = rng.integers(design.dim, size=rows)
    x[np.flatnonzero(spiked), channel[spiked]] = design.x.hi * rng.uniform(0.5, 1, spiked.sum())
    return np.clip(np.rint(x), design.x.lo, design.x.hi).astype(np.int64)


def endless_rows(design, rows, seed=0):
    """The corner rows, and then as many random ones as are asked for, in blocks.

    Of designs with ``dim_max`` they are cut, a few at a time, to lengths of all sorts, the longest
    and the shortest first.

    Yields
    ------
    numpy.ndarray of int64, (rows, dim)
    """
    for n in range(1 + rows):
        block = random_rows(design, 256, [seed, n] if n > 1 else seed) if n else corner_rows(design)
        block = block[:rows]
        yield from [block] if design.dim_max is None else cut_rows(design, block, [seed, n])
        rows -= len(block)
        if rows <= 0:
            return


def cut_rows(design, block, seed=0):
    """Rows of the full length, cut to the lengths that a design with ``dim_max`` takes.

    Yields
    ------
    numpy.ndarray of int64, (rows, dim)
    """
    rng, at = np.random.default_rng(seed), 0
    for n in range(len(block)):
        dim = design.dims[-1 if n == 0 else 0] if n < 2 else int(rng.choice(design.dims))
        count = int(rng.integers(1, 4))
        yield block[at : at + count, :dim]
        at += count
        if at >= len(block):
            return


def bench_rows(design, rows, seed=0):
    """Rows of a test bench: corner rows, and a quarter of random ones.

    Returns
    -------
    numpy.ndarray of int64, (rows, dim)
    """
    corners = corner_rows(design)[: max(1, rows - rows // 4)]
    return np.concatenate([corners, random_rows(design, max(rows - len(corners), 0), seed)])


@dataclass(frozen=True)
class Layer:
    """Rows of one layer with the layer's own parameters.

    Members
    -------
    name : str
    x : numpy.ndarray, (rows, dim)
    gamma, beta : numpy.ndarray or None, (dim,)
    eps : float or None
        What the model adds to the mean square; a design has its own.
    """

    name: str
    x: np.ndarray
    gamma: np.ndarray | None = None
    beta: np.ndarray | None = None
    eps: float | None = None


def load_layers(path):
    """The layers of a data file.

    Parameters
    ----------
    path : str or pathlib.Path
        ``.npy`` with x (..., dim), or ``.npz`` with ``x`` and optional ``gamma``, ``beta``,
        ``eps``, ``names``. If gamma (or beta) has a leading axis, it is the list of layers, which x
        then has as well.

    Returns
    -------
    list of Layer

    Raises
    ------
    ValueError
        If the file is missing, is no such file, or its shapes do not agree.
    """
    path = Path(path)
    try:
        with open(path, "rb") as file:
            data = np.load(file, allow_pickle=False)
            arrays = dict(data) if isinstance(data, np.lib.npyio.NpzFile) else {"x": _mapped(path)}
    except FileNotFoundError:
        raise ValueError(f"data file {path} must exist, got none") from None
    except (OSError, ValueError, EOFError, KeyError, MemoryError, zipfile.BadZipFile):
        raise ValueError(
            f"data file {path} must be a .npy or .npz of numbers, got another"
        ) from None
    if "x" not in arrays:
        raise ValueError(f"data file {path} must have an array x, got none")
    x = arrays["x"]
    for key in ("x", "gamma", "beta", "eps"):
        if key in arrays and arrays[key].dtype.kind not in "iuf":
            raise ValueError(f"{key} of {path} must hold numbers, got {arrays[key].dtype}")
    if x.ndim < 1 or x.size == 0:
        raise ValueError(f"x of {path} must have rows, got shape {x.shape}")
    stacked = any(arrays[key].ndim == 2 for key in ("gamma", "beta") if key in arrays)
    if not stacked:
        return [
            Layer(
                path.stem, _wide(x).reshape(-1, x.shape[-1]),
                _wide(arrays.get("gamma")), _wide(arrays.get("beta")), _eps_of(arrays, 0),
            )
        ]  # fmt: skip
    if x.ndim < 2:
        raise ValueError(f"x of {path} must have layers and dim, got shape {x.shape}")
    count = x.shape[0]
    for key in ("gamma", "beta"):
        if key in arrays and arrays[key].shape != (count, x.shape[-1]):
            raise ValueError(
                f"{key} of {path} must have shape ({count}, {x.shape[-1]}) as x has layers and "
                f"dim, got {arrays[key].shape}"
            )
    names = arrays.get("names", np.array([f"layer {n}" for n in range(count)]))
    if names.shape != (count,):
        raise ValueError(f"names of {path} must be one a layer, got shape {names.shape}")
    return [
        Layer(
            str(names[n]),
            _wide(x[n]).reshape(-1, x.shape[-1]),
            *(_wide(arrays[key][n]) if key in arrays else None for key in ("gamma", "beta")),
            _eps_of(arrays, n),
        )
        for n in range(count)
    ]


def _mapped(path):
    """An array in a file, of which only what is looked at is read."""
    return np.load(path, mmap_mode="r", allow_pickle=False)


def _eps_of(arrays, layer):
    """The eps of a layer, from one number for all or one a layer."""
    eps = np.ravel(arrays.get("eps", []))
    return float(eps[min(layer, eps.size - 1)]) if eps.size else None


def _wide(values):
    """float16 and float32 as float64, integers as int64; these themselves without a copy."""
    if values is None:
        return None
    return values.astype(np.float64 if values.dtype.kind == "f" else np.int64, copy=False)


def real_layers(name):
    """The layers of the packaged activations: ``smollm2`` or ``minilm``."""
    with resources.as_file(resources.files("hwnorm") / "data" / f"{name}_prenorm.npz") as path:
        return load_layers(path)


def shipped_layers(design):
    """Real activations of the design's norm and dim, if some are packaged."""
    known = {("rmsnorm", 576): "smollm2", ("layernorm", 384): "minilm"}
    name = known.get((design.kind, design.dim))
    return real_layers(name) if name else []


def fitting_layers(design):
    """The same, if the design's formats hold them all."""

    def fits(layer):
        values = {"x": layer.x, "gamma": layer.gamma, "beta": layer.beta}
        pairs = ((getattr(design, name), value) for name, value in values.items())
        return all(
            fmt.reals(fmt.lo) <= value.min() and value.max() <= fmt.reals(fmt.hi)
            for fmt, value in pairs
            if fmt is not None and value is not None
        )

    layers = shipped_layers(design)
    return layers if all(fits(layer) for layer in layers) else []


def real_rows(design, rows):
    """Real activations for a design of any dim and input format.

    The packaged activations of the norm's kind, layer after layer, are cut anew into rows of
    the design's dim and scaled by a power of two so that the largest one just fits.

    Returns
    -------
    numpy.ndarray of int64, (rows, dim)
    """
    layers = real_layers("minilm" if design.kind == "layernorm" else "smollm2")
    # From layers all over the model: the massive activations live in the middle.
    values = np.concatenate([layer.x.reshape(-1) for layer in layers[len(layers) // 3 :]])
    values = np.resize(values, rows * design.dim).reshape(rows, design.dim)
    room = np.floor(np.log2(design.x.hi / np.max(np.abs(values))))
    return np.rint(np.ldexp(values, int(room))).astype(np.int64)
