"""The rows that designs are tuned on: layers, a held-out share, what they can and cannot show."""

import hashlib
import itertools
from dataclasses import dataclass
from functools import cached_property
from math import ceil, log2

import numpy as np

from hwnorm.fixed import Fixed
from hwnorm.measure import OUTLIER_CREST
from hwnorm.rows import Layer, load_layers

#: Fewer rows of a layer than this say little about the next one.
FEW_ROWS = 8


@dataclass(frozen=True)
class Rows:
    """Activations to tune on, the rows that choose first and the held-out ones behind.

    Members
    -------
    names : tuple of str
        Of the layers.
    x : numpy.ndarray, (rows, dim)
        Floats are real values, integers units of the input's lsb.
    layer : numpy.ndarray of int, (rows,)
        To which layer a row belongs.
    chosen : int
        Rows that choose; those behind them are held out. Both parts go layer by layer.
    gamma, beta : numpy.ndarray or None, (layers, dim)
    eps : tuple of float
        What the models behind the rows add, as far as it is known.
    """

    names: tuple
    x: np.ndarray
    layer: np.ndarray
    chosen: int
    gamma: np.ndarray | None = None
    beta: np.ndarray | None = None
    eps: tuple = ()

    @classmethod
    def of(cls, layers, holdout=0.0):
        """Join layers, and hold a share of the rows of each out.

        Parameters
        ----------
        layers : list of hwnorm.rows.Layer
        holdout : float
            Share of the rows, from 0 to 0.5; spread evenly over each layer. A layer of one row
            keeps it.

        Raises
        ------
        ValueError
            If rows hold NaN, differ in length or are all zero, or `holdout` is out of range.
        """
        if not 0 <= holdout <= 0.5:
            raise ValueError(f"holdout must lie in 0..0.5, got {holdout}")
        if not layers or not any(len(layer.x) for layer in layers):
            raise ValueError("data must have at least one row, got none")
        dims = {layer.x.shape[-1] for layer in layers}
        if len(dims) > 1:
            raise ValueError(f"layers must have one dim, got {', '.join(map(str, sorted(dims)))}")
        for layer in layers:
            for name in ("x", "gamma", "beta"):
                value = getattr(layer, name)
                bad = 0 if value is None else int(np.count_nonzero(~np.isfinite(value)))
                if bad:
                    raise ValueError(
                        f"{layer.name}: {name} must be finite, got {bad} NaN or infinite elements"
                    )
        if not any(np.any(layer.x) for layer in layers):
            raise ValueError("data must have a row that is not all zero, got zeros only")
        parts = {False: [], True: []}
        for number, layer in enumerate(layers):
            count = len(layer.x)
            held = np.zeros(count, dtype=bool)
            # Evenly spread: a text's first rows and its last ones are both needed on either side.
            some = int(count * holdout)
            held[(np.arange(some) * count + count // 2) // max(some, 1)] = True
            for side in (False, True):
                index = np.flatnonzero(held == side)
                if len(index):
                    parts[side].append((layer.x[index], np.full(len(index), number)))
        joined = parts[False] + parts[True]
        return cls(
            names=_distinct(layer.name for layer in layers),
            x=np.ascontiguousarray(np.concatenate([x for x, _ in joined])),
            layer=np.concatenate([number for _, number in joined]),
            chosen=sum(len(x) for x, _ in parts[False]),
            gamma=_stacked(layers, "gamma"),
            beta=_stacked(layers, "beta"),
            eps=tuple(sorted({layer.eps for layer in layers if layer.eps})),
        )

    @classmethod
    def load(cls, path, holdout=0.0):
        """The same from a data file; see `hwnorm.rows.load_layers`."""
        return cls.of(load_layers(path), holdout)

    @property
    def dim(self):
        """Elements of a row."""
        return self.x.shape[-1]

    @cached_property
    def spans(self):
        """Of each layer and side that has rows: first and last row, layer, whether it chooses.

        Returns
        -------
        list of (int, int, int, bool)
        """
        side = np.arange(len(self.layer)) < self.chosen
        change = np.flatnonzero((np.diff(self.layer) != 0) | (np.diff(side.astype(int)) != 0)) + 1
        ends = [0, *change.tolist(), len(self.layer)]
        return [(a, b, int(self.layer[a]), bool(side[a])) for a, b in itertools.pairwise(ends)]

    @cached_property
    def fingerprint(self):
        """A checksum of all that results depend on."""
        digest = hashlib.sha256()
        for value in (self.x, self.layer, self.gamma, self.beta, np.array(self.chosen)):
            if value is None:
                digest.update(b"none")
                continue
            value = np.ascontiguousarray(value)
            digest.update(f"{value.dtype.str}{value.shape}".encode())
            digest.update(value.tobytes())
        digest.update("\n".join(self.names).encode())
        return digest.hexdigest()[:16]

    def largest(self, name):
        """The largest magnitude of ``x`` (of the rows that choose), ``gamma`` or ``beta``.

        Raises
        ------
        ValueError
            If the data have no such array, or hold integers, whose unit is not known.
        """
        value = getattr(self, name)
        if value is None:
            raise ValueError(f"format {name} cannot be chosen: the data have no {name}")
        if value.dtype.kind != "f":
            raise ValueError(
                f"format {name} cannot be chosen: the data hold integers, whose unit is not known"
            )
        return float(np.max(np.abs(value[: self.chosen] if name == "x" else value)))

    def layers(self, chosen=True):
        """The rows of one side as `hwnorm.rows.Layer`, layers without such rows left out."""
        return [
            Layer(
                self.names[number], self.x[a:b],
                None if self.gamma is None else self.gamma[number],
                None if self.beta is None else self.beta[number],
            )
            for a, b, number, side in self.spans if side == chosen
        ]  # fmt: skip

    def warnings(self, eps):
        """What these rows cannot show, one sentence each."""
        found = []
        counts = [b - a for a, b, _, chosen in self.spans if chosen]
        if min(counts) < FEW_ROWS:
            few = sum(count < FEW_ROWS for count in counts)
            found.append(
                f"few rows: {few} of {len(counts)} layers have fewer than {FEW_ROWS} rows to "
                f"choose on; other inputs may behave otherwise"
            )
        if self.chosen == len(self.x):
            found.append("nothing is held out: the front is verified on no rows of its own")
        size = np.abs(self.x.astype(np.float64))
        square = np.mean(np.square(size), axis=1)
        zero = int(np.count_nonzero(square == 0))
        if zero:
            found.append(f"{zero} of {len(size)} rows are all zero and show nothing")
        if not np.any(size > OUTLIER_CREST * np.sqrt(square)[:, None]):
            found.append(
                f"no outliers seen: no element exceeds {OUTLIER_CREST:g} times its row's rms, as "
                f"massive activations of language models do"
            )
        for other in self.eps:
            if abs(other / eps - 1) > 0.01:
                found.append(
                    f"the model behind the rows has eps {other:.3g}, the design {eps:g}: rows near "
                    f"zero are judged by the design's"
                )
        if self.x.dtype.kind == "f":
            active = np.count_nonzero((square > 0) & (eps > 0.01 * square))
            if not active:
                found.append(
                    f"eps never active: it is below 1 % of the mean square in every row (eps "
                    f"{eps:g}); rows near zero are not judged"
                )
        return found


def _distinct(names):
    """Names with a number behind those that occurred before."""
    seen, result = {}, []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return tuple(result)


def _stacked(layers, name):
    values = [getattr(layer, name) for layer in layers]
    if all(value is None for value in values):
        return None
    if any(value is None for value in values):
        raise ValueError(f"{name} must be given for all layers or for none")
    return np.stack(values)


def format_with_margin(largest, width, margin_bits=1):
    """The finest signed format of a width that holds a magnitude with some bits of margin.

    Parameters
    ----------
    largest : float
        Largest magnitude seen, in real units.
    width : int
    margin_bits : int
        At least so many octaves stay free above it.

    Returns
    -------
    hwnorm.Fixed
    """
    whole = ceil(log2(largest)) if largest > 0 else -width
    # A power of two itself needs the next octave.
    whole += largest > 0 and 2.0**whole <= largest
    return Fixed.of(True, width, width - 1 - whole - margin_bits)
