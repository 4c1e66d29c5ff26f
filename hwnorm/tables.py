"""Tables: a function sampled into segments, evaluated on wires, with a proven error.

A table takes an unsigned code of ``log2(span) + arg_bits`` bits. Its top bits choose the
segment, the bits under them the place in it, counted from the segment's middle. Coefficients
are minimax fits, rounded, and the constant term is centred again after that.
"""

import json
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import floor, log2
from pathlib import Path

import numpy as np

from hwnorm.fixed import Fixed, is_integer
from hwnorm.flow import trace
from hwnorm.functions import DEGREES, FUNCTIONS
from hwnorm.ops import Column, take_bits
from hwnorm.remez import fit_constant, fit_polynomial

#: More entries than this are no table that anybody builds.
MOST_SEGMENTS = 65536

#: Codes up to this width are all tried to prove a table's error.
EXHAUSTIVE_BITS = 21

#: Tables whose coefficients and proofs are kept.
KEPT_TABLES = 512

#: Codes tried, and segments fitted, at once: few enough to stay in the cache.
PROOF_CODES = 1 << 15
FIT_SEGMENTS = 64


@dataclass(frozen=True)
class Table:
    """A piecewise polynomial approximation in fixed point.

    Parameters
    ----------
    function : str
        ``rsqrt``, ``log2`` or ``exp2`` (see ``hwnorm.functions``).
    method : str
        ``direct``, ``linear``, ``quadratic``; ``mitchell`` (u plus a correction) for
        ``log2`` and ``exp2``.
    segments : int
        A power of two.
    arg_bits : int
        Fraction bits of the argument u.
    frac : int
        Fraction bits of the result.
    truncated : bool
        Whether the argument was cut to `arg_bits`; a code then stands for the middle of the
        interval that it was cut from.
    scale : float
        The function is multiplied by this.
    offset : int
        Subtracted from the result, in its lsb.

    Raises
    ------
    ValueError
        If `segments` is not a power of two, or its index is wider than the argument.
    """

    function: str
    method: str
    segments: int
    arg_bits: int
    frac: int
    truncated: bool = False
    scale: float = 1.0
    offset: int = 0

    def __post_init__(self):
        if self.function not in FUNCTIONS:
            raise ValueError(f"function must be one of {', '.join(FUNCTIONS)}, got {self.function}")
        methods = tuple(self.shape.limits)
        if self.method not in methods:
            raise ValueError(
                f"method of {self.function} must be one of {', '.join(methods)}, got {self.method}"
            )
        for name in ("segments", "arg_bits", "frac"):
            if not is_integer(getattr(self, name)):
                raise ValueError(f"{name} must be an integer, got {getattr(self, name)!r}")
        lowest = self.shape.span
        if not lowest <= self.segments <= MOST_SEGMENTS or self.segments & (self.segments - 1):
            raise ValueError(
                f"segments must be a power of two in {lowest}..{MOST_SEGMENTS}, got {self.segments}"
            )
        if self.segments > 1 << self.code_bits:
            raise ValueError(
                f"segments must be at most {1 << self.code_bits}, since the argument of "
                f"{self.function} has {self.code_bits} bits, got {self.segments}"
            )

    @property
    def shape(self):
        """The function as a `hwnorm.functions.Function`."""
        return FUNCTIONS[self.function]

    @property
    def code_bits(self):
        """Bits of the argument code."""
        return self.arg_bits + self.shape.span.bit_length() - 1

    @property
    def index_bits(self):
        """Bits that choose the segment."""
        return self.segments.bit_length() - 1

    @property
    def offset_bits(self):
        """Bits under the index: the place inside a segment."""
        return self.code_bits - self.index_bits

    # -- contents -----------------------------------------------------------------------

    @property
    def _middle(self):
        """How far the true argument of a code stands above the code, on average."""
        return 2.0 ** -(self.arg_bits + 1) if self.truncated else 0.0

    def _target(self, u):
        """What the table must give for a code, less what the datapath adds by itself."""
        value = self.scale * self.shape.of(u + self._middle)
        return value - u if self.method == "mitchell" else value

    @property
    def _degree(self):
        """Degree of the polynomials; a segment of a single code needs but a constant."""
        return DEGREES[self.method] if self.offset_bits else 0

    @cached_property
    def _octaves(self):
        """The power of two in the scale, which moves the binary point and nothing else."""
        return floor(log2(self.scale)) if self.shape.relative else 0

    @cached_property
    def _plain(self):
        """The same table without it: the one whose integers are computed, once for all such."""
        n = self._octaves
        return replace(self, scale=self.scale * 2.0**-n, frac=self.frac + n)

    @cached_property
    def _fit(self):
        error, columns = _fitted(self._plain)
        return error, tuple(Column(c.name, c.values, c.frac - self._octaves) for c in columns)

    @property
    def columns(self):
        """The coefficients, constant term first, as `hwnorm.ops.Column`."""
        return self._fit[1]

    @property
    def approximation_error(self):
        """Largest error of the ideal coefficients, relative or absolute as the function says."""
        return self._fit[0]

    @property
    def limit(self):
        """The minimax error of a table of this method and size.

        Exact for ``direct`` and ``linear`` tables of rsqrt; for the others the leading term
        for many segments, which few segments stay below.
        """
        return self.shape.limits[self.method](self.segments)

    @property
    def ratio(self):
        """`approximation_error` over `limit`."""
        return self.approximation_error / self.limit

    @property
    def rom_bits(self):
        """Bits of all columns."""
        return sum(len(c.values) * c.fmt.width for c in self.columns)

    # -- evaluation ---------------------------------------------------------------------

    def __call__(self, code):
        """Evaluate the table; the result keeps the interval that was proven.

        Parameters
        ----------
        code : Wire
            Unsigned, `code_bits` bits: u in units of ``2**-arg_bits``.

        Returns
        -------
        Wire
            With `frac` fraction bits.
        """
        low, high = self._proof[2]
        result = self._evaluate(code)
        return result.within(low, high) if self._degree else result

    def _evaluate(self, code):
        index = take_bits(code, self.offset_bits, self.code_bits)
        terms = [column[index] for column in self.columns]
        if self.method == "mitchell":
            return (terms[0] + (code >> self.arg_bits)).round(self.frac, "nearest_up")
        if len(terms) == 1:
            return terms[0].round(self.frac, "nearest_up")
        place = (
            take_bits(code, 0, self.offset_bits) - (1 << self.offset_bits - 1)
        ) >> self.arg_bits
        total = terms.pop()
        while terms:
            term = terms.pop()
            product = total * place
            # Inner steps of Horner's rule keep two bits below the coefficient they join.
            if terms:
                product = product.round(term.fmt.frac + 2, "nearest_up")
            total = term + product
        return total.round(self.frac, "nearest_up")

    @property
    def _piece_ends(self):
        """First and last code of every piece; the functions are monotonic in between."""
        starts = np.arange(float(self.shape.span))
        return np.concatenate([starts, starts + 1 - 2.0**-self.arg_bits])

    @property
    def _range(self):
        """Smallest and largest result: the function's range, widened by the derived bound."""
        ends = [float(self._target(u)) for u in self._piece_ends]
        slack = self._analytic * (max(map(abs, ends)) if self.shape.relative else 1)
        high = int(np.ceil(np.ldexp(max(ends) + slack, self.frac))) + 1 - self.offset
        low = int(np.floor(np.ldexp(min(ends) - slack, self.frac))) - 1 - self.offset
        return low, high

    # -- error --------------------------------------------------------------------------

    @property
    def _analytic(self):
        """Approximation error plus every rounding on the way, each at its worst."""
        lsb = 2.0**-self.frac
        if self._degree == 0:
            rounding = 0.5 * lsb if self.method == "direct" else lsb
        else:
            # c0, c1 and c2 with two extra bits, one Horner rounding, half an lsb at the end.
            rounding = (1 / 8 + 1 / 16 + 1 / 32 + 1 / 32 + 1 / 2) * lsb
        smallest = 1.0
        if self.shape.relative:
            smallest = self.scale * float(np.min(self.shape.of(self._piece_ends + self._middle)))
        return self.approximation_error + rounding / smallest

    @cached_property
    def _proof(self):
        return _prove(self._plain)

    @property
    def max_error(self):
        """The proven maximum error over every code, of what the hardware computes.

        Found by trying every code if there are at most ``2**EXHAUSTIVE_BITS``; otherwise the
        sum of the derived terms of ``docs/error-budget.md``.
        """
        return self._proof[0]

    @property
    def proof(self):
        """``exhaustive`` or ``derived``."""
        return self._proof[1]

    # -- files --------------------------------------------------------------------------

    def to_dict(self):
        """The table and its provenance, ready for JSON."""
        return {
            "function": self.function,
            "meaning": self.shape.meaning,
            "interval": [0, self.shape.span],
            "method": self.method,
            "segments": self.segments,
            "arg_bits": self.arg_bits,
            "argument_truncated": self.truncated,
            "frac": self.frac,
            "scale": self.scale,
            "offset_lsb": self.offset,
            "error": "relative" if self.shape.relative else "absolute",
            "max_error": float(f"{self.max_error:.6e}"),
            "proof": self.proof,
            "approximation_error": float(f"{self.approximation_error:.6e}"),
            "limit": float(f"{self.limit:.6e}"),
            "ratio_to_limit": round(self.ratio, 4),
            "rom_bits": self.rom_bits,
            "columns": [
                {"name": c.name, "format": c.fmt.spelling, "values": list(c.values)}
                for c in self.columns
            ],
        }


@lru_cache(maxsize=KEPT_TABLES)
def _fitted(table):
    """Ideal coefficients' error, and the rounded columns."""
    shrink = table.index_bits - (table.shape.span.bit_length() - 1)
    fracs = [table.frac + (2 if table._degree else 0)]
    fracs += [table.frac + 2 - shrink * n for n in range(1, table._degree + 1)]
    # Segments know nothing of each other; as many at once as stay in the cache.
    parts = [
        _fit_segments(table, np.arange(n, min(n + FIT_SEGMENTS, table.segments)), fracs)
        for n in range(0, table.segments, FIT_SEGMENTS)
    ]
    rounded = np.concatenate([part[0] for part in parts])
    columns = []
    for n, frac in enumerate(fracs):
        ints = np.rint(np.ldexp(rounded[:, n], frac)).astype(np.int64)
        if n == 0:
            ints -= table.offset << frac - table.frac
        columns.append(Column(f"{table.function}_c{n}", tuple(int(k) for k in ints), frac))
    # Between two points a smooth function leaves its chord by at most an eighth of its second
    # difference; a quarter leaves room for the change of that.
    return max(part[1] for part in parts) + max(part[2] for part in parts) / 4, tuple(columns)


def _fit_segments(table, numbers, fracs):
    """Some segments' rounded coefficients, and their ideal ones' error and its bend."""
    width = table.shape.span / table.segments
    # From the first to the last code of a segment, as a place counted from its middle.
    t = np.linspace(-width / 2, width / 2 - 2.0**-table.arg_bits, 257)
    u = (numbers * width)[:, None] + width / 2 + t
    target = table._target(u)
    weight = (
        1 / (table.scale * table.shape.of(u + table._middle))
        if table.shape.relative
        else np.ones_like(u)
    )
    degree = len(fracs) - 1
    ideal = fit_polynomial(t, target, weight, degree)
    error = (sum(ideal[:, n, None] * t**n for n in range(degree + 1)) - target) * weight
    rounded = np.empty_like(ideal)
    for n in range(1, degree + 1):
        rounded[:, n] = np.ldexp(np.rint(np.ldexp(ideal[:, n], fracs[n])), -fracs[n])
    rest = target - sum(rounded[:, n, None] * t**n for n in range(1, degree + 1))
    rounded[:, 0] = np.ldexp(np.rint(np.ldexp(fit_constant(rest, weight), fracs[0])), -fracs[0])
    # The largest weighted error on the grid, and what tells of it between the points.
    return rounded, float(np.max(np.abs(error))), float(np.max(np.abs(np.diff(error, 2, axis=1))))


@lru_cache(maxsize=KEPT_TABLES)
def _prove(table):
    if table.code_bits > EXHAUSTIVE_BITS:
        return table._analytic, "derived", table._range
    flow = trace(lambda code: {"y": table._evaluate(code)}, code=Fixed.of(False, table.code_bits))
    worst, low, high = 0.0, [], []
    for start in range(0, 1 << table.code_bits, PROOF_CODES):
        codes = np.arange(start, min(start + PROOF_CODES, 1 << table.code_bits))
        ints = flow.run(code=codes, check=True)["y"]
        result = np.ldexp((ints + table.offset).astype(np.float64), -table.frac)
        exact = table.scale * table.shape.of(np.ldexp(codes * 1.0, -table.arg_bits) + table._middle)
        error = np.abs(result - exact)
        worst = max(worst, float(np.max(error / exact if table.shape.relative else error)))
        low.append(int(ints.min()))
        high.append(int(ints.max()))
    # float64 knows the exact function to far better than the slack added here.
    return worst + 1e-12, "exhaustive", (min(low), max(high))


def load(path):
    """Read a ``luts/*.json`` and rebuild the table from its description.

    Raises
    ------
    ValueError
        If the file is no table, or its entries are not those of its description.
    """
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
        table = Table(
            data["function"],
            data["method"],
            data["segments"],
            data["arg_bits"],
            data["frac"],
            data["argument_truncated"],
            data["scale"],
            data["offset_lsb"],
        )
        stored = [tuple(c["values"]) for c in data["columns"]]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} must be a table written by hwnorm lut, got {error!r}") from error
    if stored != [c.values for c in table.columns]:
        raise ValueError(f"{path} must hold the entries of its description, got others")
    return table
