"""Tables: how near to the limit, what their proven error really is, and their files."""

import json
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from oracles import refused, table_value

from hwnorm.functions import DEGREES, FUNCTIONS
from hwnorm.tables import EXHAUSTIVE_BITS, Table, load

SIZES = tuple(2**k for k in range(1, 13))
PAIRS = [(name, method) for name, f in FUNCTIONS.items() for method in f.limits]
RELATIVE = {"rsqrt": True, "log2": False, "exp2": True}
SPAN = {"rsqrt": 2, "log2": 1, "exp2": 1}


def true_value(function, u):
    """The functions, written down again, in extended precision."""
    u = np.asarray(u, dtype=np.longdouble)
    if function == "rsqrt":
        return 1 / np.sqrt(np.where(u < 1, 2 * (1 + u), u))
    return np.log2(1 + u) if function == "log2" else np.exp2(u)


def wide(function, method, segments):
    """The table with the widest argument that is still proven by trying every code."""
    arg_bits = EXHAUSTIVE_BITS - (SPAN[function] == 2)
    return Table(function, method, segments, arg_bits, frac=18)


def true_errors(table, codes):
    """The error of what the hardware computes, from the columns alone."""
    middle = 0.5 if table.truncated else 0.0
    u = (codes.astype(np.longdouble) + middle) / 2**table.arg_bits
    exact = np.longdouble(table.scale) * true_value(table.function, u)
    result = table_value(table, codes).astype(np.longdouble) / 2.0**table.frac
    error = np.abs(result - exact)
    return error / exact if RELATIVE[table.function] else error


def derived_bound(table):
    """Approximation error and every rounding on the way at its worst, added up here."""
    half_width = SPAN[table.function] / table.segments / 2
    steps = sum(half_width**n * 2.0**-c.frac / 2 for n, c in enumerate(table.columns))
    if len(table.columns) == 3:
        # Horner's inner product keeps two bits below the slope.
        steps += half_width * 2.0 ** -(table.columns[1].frac + 2) / 2
    if table.columns[0].frac > table.frac or table.method == "mitchell":
        steps += 2.0**-table.frac / 2
    smallest = 1.0
    if RELATIVE[table.function]:
        # The functions are monotonic between integers, so the ends tell.
        ends = [u for n in range(SPAN[table.function]) for u in (n, n + 1 - 2.0**-40)]
        smallest = table.scale * float(np.min(true_value(table.function, ends)))
    return table.approximation_error + steps / smallest


# -- limits -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("function", "method"), PAIRS)
def test_every_size_reaches_its_limit(function, method):
    for segments in SIZES:
        assert wide(function, method, segments).ratio <= 1.10, segments


@pytest.mark.parametrize("method", ["direct", "linear"])
def test_the_closed_forms_of_rsqrt_are_tight(method):
    for segments in SIZES:
        assert 0.95 < wide("rsqrt", method, segments).ratio < 1.0001, segments


@pytest.mark.parametrize(("function", "method"), PAIRS)
def test_the_limits_of_large_tables_are_tight(function, method):
    """The others are the leading term in the width of a segment: loose for small tables."""
    assert 0.99 < wide(function, method, 1024).ratio < 1.0001


@cache
def brute_minimax(function, method, segments):
    """The smallest possible error on a grid of each segment, by trying all its subsets.

    The minimax error of degree n over a set is the largest levelled error of n + 2 of its
    points (Chebyshev): nothing here comes from the fits.
    """
    degree = DEGREES[method]
    width = SPAN[function] / segments
    t = np.linspace(-width / 2, width / 2, 65 if degree < 2 else 33)
    spots = np.array(list(combinations(range(len(t)), degree + 2)))
    powers = [t[spots] ** n / width**n for n in range(degree + 1)]
    signs = (-1.0) ** np.arange(degree + 2)
    worst = 0.0
    # The curvature, and with it the error, is largest at the start of a smooth piece.
    starts = [n / segments for n in range(0, SPAN[function] * segments, segments)] + [1 - width]
    for start in starts:
        # The very end of a piece belongs to it, not to the next.
        u = np.minimum(start + width / 2 + t, start + width - 1e-12)
        value = true_value(function, u).astype(float)
        target = value - u if method == "mitchell" else value
        weight = 1 / value if RELATIVE[function] else np.ones_like(value)
        system = np.stack([*powers, signs / weight[spots]], axis=-1)
        levelled = np.linalg.solve(system, target[spots][..., None])[:, -1, 0]
        worst = max(worst, float(np.abs(levelled).max()))
    return worst


@pytest.mark.parametrize("segments", [2, 8, 64])
@pytest.mark.parametrize(("function", "method"), PAIRS)
def test_limits_against_brute_force(function, method, segments):
    best = brute_minimax(function, method, segments)
    table = wide(function, method, segments)
    # A grid of 33 or 65 points misses a little of the extrema: up to 0.5 %.
    assert best <= table.approximation_error * 1.0001
    assert table.approximation_error <= best * 1.005
    assert best <= table.limit * 1.0001
    if function == "rsqrt" and method != "quadratic":
        assert table.limit <= best * 1.005


# -- proven errors ----------------------------------------------------------------------------


def variants(function):
    """Descriptions that the norms use, and awkward ones."""
    for method in FUNCTIONS[function].limits:
        for segments in (2, 16, 128):
            yield Table(function, method, segments, 12, 11)
            yield Table(function, method, segments, 13, 14, truncated=True)
        yield Table(function, method, 32, 4 if SPAN[function] == 2 else 5, 12)  # a code a segment
        yield Table(function, method, 512, 15, 18, truncated=True)
    if function == "rsqrt":
        yield Table("rsqrt", "linear", 64, 14, 9, truncated=True, scale=23.7, offset=12 << 9)
        yield Table("rsqrt", "quadratic", 8, 14, 20, scale=0.01)
        yield Table("rsqrt", "direct", 64, 14, 3, scale=900.0, offset=900 << 2)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_proven_error_is_the_true_maximum(function):
    for table in variants(function):
        worst = float(true_errors(table, np.arange(1 << table.code_bits)).max())
        assert table.proof == "exhaustive"
        assert worst <= table.max_error <= worst + 1e-11, table


@pytest.mark.parametrize(("function", "method"), PAIRS)
def test_the_widest_exhaustive_proof(function, method):
    table = wide(function, method, 256)
    worst = float(true_errors(table, np.arange(1 << EXHAUSTIVE_BITS)).max())
    assert table.proof == "exhaustive"
    assert worst <= table.max_error <= worst + 1e-11


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_derived_bound_covers_the_proven_error(function):
    for table in variants(function):
        assert table.max_error <= derived_bound(table) * (1 + 1e-4) + 1e-11, table


@pytest.mark.parametrize("segments", [2, 64, 1024])
@pytest.mark.parametrize(("function", "method"), PAIRS)
def test_a_derived_proof_holds(function, method, segments):
    """Arguments too wide to try all: the stated bound holds on a dense sample and the edges."""
    arg_bits = EXHAUSTIVE_BITS + 1
    table = Table(function, method, segments, arg_bits, 24, truncated=True)
    assert table.proof == "derived"
    codes = np.arange(0, 1 << table.code_bits, 61)
    edges = np.arange(segments) << table.offset_bits
    codes = np.concatenate([codes, edges, edges + (1 << table.offset_bits) - 1])
    assert float(true_errors(table, codes).max()) <= table.max_error
    # ... and it is no looser than the worst of every step asks, give or take a tenth.
    assert table.max_error <= derived_bound(table) * 1.1


def test_plain_integers_and_arrays_agree():
    """`oracles.table_value` serves both; here it judges itself on the widths the norms use."""
    for table in (*variants("rsqrt"), *variants("exp2")):
        codes = np.arange(0, 1 << table.code_bits, 37)
        assert table_value(table, codes).tolist() == [
            table_value(table, int(code)) for code in codes
        ]


def test_rom_bits_are_those_of_the_columns():
    table = Table("rsqrt", "quadratic", 64, 18, 17)
    assert [c.name for c in table.columns] == ["rsqrt_c0", "rsqrt_c1", "rsqrt_c2"]
    assert [len(c.values) for c in table.columns] == [64] * 3
    bits = [
        max(v.bit_length() if v >= 0 else (-1 - v).bit_length() for v in c.values)
        + (min(c.values) < 0)
        for c in table.columns
    ]
    assert table.rom_bits == 64 * sum(bits)


def test_contents_are_deterministic():
    for table in variants("rsqrt"):
        again = Table(**{name: getattr(table, name) for name in table.__dataclass_fields__})
        assert [c.values for c in again.columns] == [c.values for c in table.columns]


# -- rules and files --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("rsqrt", "linear", 3, 12, 12), "segments must be a power of two in 2..65536, got 3"),
        (("rsqrt", "linear", 1, 12, 12), "segments must be a power of two in 2..65536, got 1"),
        (("exp2", "linear", 0, 12, 12), "segments must be a power of two in 1..65536, got 0"),
        (("log2", "linear", -4, 12, 12), "segments must be a power of two in 1..65536, got -4"),
        (
            ("rsqrt", "direct", 4096, 9, 12),
            "segments must be at most 1024, since the argument of rsqrt has 10 bits, got 4096",
        ),
        (
            ("exp2", "direct", 1024, 9, 12),
            "segments must be at most 512, since the argument of exp2 has 9 bits, got 1024",
        ),
        (("sqrt", "linear", 4, 12, 12), "function must be one of rsqrt, log2, exp2, got sqrt"),
        (
            ("rsqrt", "mitchell", 4, 12, 12),
            "method of rsqrt must be one of direct, linear, quadratic, got mitchell",
        ),
        (
            ("log2", "quadratic", 4, 12, 12),
            "method of log2 must be one of direct, mitchell, linear, got quadratic",
        ),
    ],
)
def test_rules_are_stated(arguments, message):
    with refused(message):
        Table(*arguments)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_files_round_trip(function, tmp_path):
    for n, table in enumerate(variants(function)):
        path = tmp_path / f"{n}.json"
        data = table.to_dict()
        path.write_text(json.dumps(data), encoding="utf-8")
        again = load(path)
        assert again == table
        assert again.to_dict() == data == json.loads(path.read_text(encoding="utf-8"))


def test_a_file_states_what_it_holds():
    table = Table("rsqrt", "linear", 16, 12, 11, truncated=True, scale=2.0, offset=1 << 10)
    data = table.to_dict()
    columns = data.pop("columns")
    assert data == {
        "function": "rsqrt",
        "meaning": "M**-1/2 over M = 2(1+u) for u < 1 and M = u for u >= 1",
        "interval": [0, 2],
        "method": "linear",
        "segments": 16,
        "arg_bits": 12,
        "argument_truncated": True,
        "frac": 11,
        "scale": 2.0,
        "offset_lsb": 1024,
        "error": "relative",
        "max_error": pytest.approx(table.max_error, rel=1e-6),
        "proof": "exhaustive",
        "approximation_error": pytest.approx(table.approximation_error, rel=1e-6),
        "limit": pytest.approx(table.limit, rel=1e-6),
        "ratio_to_limit": pytest.approx(table.ratio, abs=1e-4),
        "rom_bits": table.rom_bits,
    }
    for column, stored in zip(table.columns, columns, strict=True):
        assert stored["name"] == column.name
        assert stored["values"] == list(column.values)
        assert stored["format"] == column.fmt.spelling


def damaged(change):
    data = Table("log2", "mitchell", 16, 12, 11).to_dict()
    change(data)
    return data


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda d: d["columns"][0]["values"].__setitem__(3, 7), "hold the entries"),
        (lambda d: d["columns"][0]["values"].pop(), "hold the entries"),
        (lambda d: d["columns"].clear(), "hold the entries"),
        (lambda d: d.update(frac=12), "hold the entries"),
        (lambda d: d.update(function="exp2"), "hold the entries"),
        (lambda d: d.pop("function"), "KeyError('function')"),
        (lambda d: d.pop("columns"), "KeyError('columns')"),
        (lambda d: d["columns"][0].pop("values"), "KeyError('values')"),
        (lambda d: d.update(columns=None), """TypeError("'NoneType' object is not iterable")"""),
    ],
)
def test_corrupt_files_are_refused(change, rule, tmp_path):
    path = tmp_path / "table.json"
    path.write_text(json.dumps(damaged(change)), encoding="utf-8")
    if rule == "hold the entries":
        message = f"{path} must hold the entries of its description, got others"
    else:
        message = f"{path} must be a table written by hwnorm lut, got {rule}"
    with refused(message):
        load(path)


def test_a_file_of_another_kind_is_refused(tmp_path):
    path = tmp_path / "table.json"
    path.write_text("0 1 2 3", encoding="utf-8")
    with refused(
        f"{path} must be a table written by hwnorm lut, "
        "got JSONDecodeError('Extra data: line 1 column 3 (char 2)')"
    ):
        load(path)
    path.write_text(json.dumps(damaged(lambda d: d.update(segments=12))), encoding="utf-8")
    with refused(
        f"{path} must be a table written by hwnorm lut, "
        "got ValueError('segments must be a power of two in 1..65536, got 12')"
    ):
        load(path)
