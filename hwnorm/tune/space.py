"""The designs to choose among: a base design, and for some of its fields a list of values."""

import itertools
import json
import math
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from hwnorm.design import load
from hwnorm.fixed import Fixed
from hwnorm.functions import RSQRT
from hwnorm.measure import golden
from hwnorm.norms import LogTables, Norm, Rsqrt
from hwnorm.norms.config import check_segments
from hwnorm.tune.limits import LAYERS, parse_limits, parse_objectives
from hwnorm.tune.rows import format_with_margin

#: What a space may vary, in the order in which points are sorted: what is dear to change first.
KEYS = (
    "x", "gamma", "beta", "y", "rounding", "method", "guard_bits", "log_method", "log_frac",
    "segments", "lanes", "period_ns",
)  # fmt: skip

_FORMATS = ("x", "gamma", "beta", "y")
_SETTINGS = ("design", "space", "limits", "objectives", "layers", "holdout", "budget", "seed")

#: Spaces of more points than this are searched, not swept.
BUDGET = 20000


@dataclass(frozen=True)
class Space:
    """A base design, the values of each varied field, and what is asked of the points.

    Members
    -------
    base : hwnorm.Norm
    values : dict of str to tuple
        Key of `KEYS` to its values. Formats are spelled as in design files; ``auto`` and
        ``s16/auto`` are chosen from the data by `resolved`.
    limits : tuple of Limit
    error, cost : str or None
        The objectives; None: by what varies, and ``rom_bits``.
    layers : str
        ``worst``, ``mean`` or ``pooled``.
    holdout : float
    budget, seed : int
        Most points to evaluate, and the seed of the search where there are more.
    """

    base: Norm
    values: dict
    limits: tuple = ()
    error: str | None = None
    cost: str | None = None
    layers: str = "worst"
    holdout: float = 0.25
    budget: int = BUDGET
    seed: int = 0

    def __post_init__(self):
        if self.layers not in LAYERS:
            raise ValueError(f"layers must be one of {', '.join(LAYERS)}, got {self.layers!r}")
        for name in ("budget", "seed"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < (name == "budget"):
                raise ValueError(f"{name} must be a positive integer, got {value!r}")
        if isinstance(self.holdout, bool) or not isinstance(self.holdout, int | float):
            raise ValueError(f"holdout must be a number in 0..0.5, got {self.holdout!r}")
        if self.base.rsqrt.method == "exact" and "method" not in self.values:
            raise ValueError("the base design's method exact has no hardware; vary method")

    @classmethod
    def around(cls, design, **settings):
        """The default space around a design: all methods, 2 to 4096 entries, 0 to 4 guard bits."""
        methods = tuple(design.methods)
        values = {
            "method": methods,
            "segments": tuple(2**k for k in range(1, 13)),
            "guard_bits": tuple(range(5)),
        }
        if "log" in methods:
            values["log_method"] = ("direct", "mitchell", "linear")
        return cls(design, values, **settings)

    @classmethod
    def of(cls, data, folder="."):
        """A space from the contents of a space file; see ``docs/tune.md``.

        Raises
        ------
        ValueError
            If a key or value breaks a rule.
        """
        data = dict(data)
        for key in data:
            if key not in _SETTINGS:
                raise ValueError(f"unknown key {key}; a space file has {', '.join(_SETTINGS)}")
        base = data.pop("design", None)
        if isinstance(base, str):
            path = Path(folder) / base
            base = load(path if path.suffix and not Path(base).is_absolute() else base)
        if not isinstance(base, Norm):
            raise ValueError(f"design must be a file or a preset, got {base!r}")
        section = data.pop("space", None)
        if section is not None and not isinstance(section, dict):
            raise ValueError(f"space must be a section [space], got {section!r}")
        objectives = data.pop("objectives", [])
        if not isinstance(objectives, list | tuple):
            raise ValueError(f"objectives must be a list, got {objectives!r}")
        limits = data.pop("limits", [])
        if not isinstance(limits, list | tuple):
            raise ValueError(f"limits must be a list like ['max_ulp <= 1'], got {limits!r}")
        error, cost = parse_objectives(objectives)
        settings = data | {"limits": parse_limits(limits), "error": error, "cost": cost}
        if section is None:
            return cls.around(base, **settings)
        return cls(base, _values(section, base), **settings)

    @classmethod
    def load(cls, path):
        """A space from a space file, or the default space around a design file or preset."""
        if str(path).endswith(".toml"):
            try:
                text = Path(path).read_text(encoding="utf-8-sig")
                data = tomllib.loads(text)
            except (OSError, UnicodeDecodeError) as error:
                reason = getattr(error, "strerror", None) or "not a text file"
                raise ValueError(f"space {path} must be readable, got: {reason}") from None
            except tomllib.TOMLDecodeError as error:
                raise ValueError(f"{path}: must be TOML, got: {error}") from None
            if "norm" not in data:
                try:
                    return cls.of(data, Path(path).parent)
                except ValueError as error:
                    raise ValueError(f"{path}: {error}") from None
        return cls.around(load(path))

    def resolved(self, rows):
        """The same with every ``auto`` format chosen from data, and both objectives set."""
        values = {
            name: tuple(
                dict.fromkeys(
                    self._chosen(name, value, rows) if name in _FORMATS else value
                    for value in choices
                )
            )
            for name, choices in self.values.items()
        }
        varied = any(len(values.get(name, ())) > 1 for name in _FORMATS)
        # Ulp of different formats, or errors of differently quantised inputs, do not compare.
        error = self.error or ("end_sqnr_db" if varied else "max_ulp")
        return replace(self, values=values, error=error, cost=self.cost or "rom_bits")

    def _chosen(self, name, spelling, rows):
        width, _, frac = spelling.partition("/")
        if "auto" not in (width, frac):
            return spelling
        own = getattr(self.base, name)
        bits = own.width if width == "auto" and own else int(width.lstrip("s") or 0)
        largest = largest_output(self.base, rows) if name == "y" else rows.largest(name)
        return format_with_margin(largest, bits).spelling

    @property
    def size(self):
        """The number of combinations, some of which may be the same design."""
        return math.prod(len(choices) for choices in self.values.values())

    @property
    def ends(self):
        """Whether figures against golden of the unquantised inputs are asked for."""
        asked = [self.error, self.cost, *(limit.metric for limit in self.limits)]
        return any(name and name.startswith("end_") for name in asked)

    def points(self):
        """All distinct points, in the order of `KEYS`.

        Returns
        -------
        list of dict
            Key of `KEYS` to value, each complete; see `design`.
        """
        found = {}
        for combination in itertools.product(*self.values.values()):
            point = self.complete(dict(zip(self.values, combination, strict=True)))
            found.setdefault(point_key(point), point)
        return sorted(found.values(), key=_order)

    def complete(self, chosen):
        """A point with the base's values where nothing is chosen, and None where nothing counts."""
        base = self.base
        point = {name: fmt and fmt.spelling for name in _FORMATS for fmt in [getattr(base, name)]}
        point |= {
            "rounding": base.rounding,
            "method": base.rsqrt.method,
            "guard_bits": base.rsqrt.guard_bits,
            "log_method": base.log.method,
            "log_frac": base.log.frac,
            "segments": None,
            "lanes": base.lanes,
            "period_ns": base.period_ns,
        }
        point |= {key: None if value == "none" else value for key, value in chosen.items()}
        logarithmic = point["method"] == "log"
        if not logarithmic:
            point["log_method"] = point["log_frac"] = None
        if "segments" not in chosen:
            point["segments"] = base.log.segments if logarithmic else base.rsqrt.segments
        if point["segments"] is None and not logarithmic:
            # Spelled out, so that points with and without it are found to be the same.
            bits = Fixed.parse(point["y"]).width + point["guard_bits"]
            rsqrt = Rsqrt(point["method"], None, point["guard_bits"])
            point["segments"] = rsqrt.segments_for(2.0 ** -(bits + 1))
        return {key: point[key] for key in KEYS}

    def design(self, point):
        """The design of a point.

        Raises
        ------
        ValueError
            If it breaks a rule.
        """
        logarithmic = point["method"] == "log"
        segments = point["segments"]
        log = self.base.log
        if logarithmic:
            log = LogTables(point["log_method"], segments, point["log_frac"])
        rsqrt = Rsqrt(point["method"], None if logarithmic else segments, point["guard_bits"])
        plain = {key: point[key] for key in (*_FORMATS, "rounding", "lanes", "period_ns")}
        return replace(self.base, **plain, rsqrt=rsqrt, log=log)


def point_key(point):
    """A text that is the same for the same point only."""
    return json.dumps([point[key] for key in KEYS], separators=(",", ":"))


def _order(point):
    return [(value is None, str(type(value)), value or 0) for value in point.values()]


def promise(point):
    """How far a point's table is from the smallest that the error budget asks for, in octaves.

    The closed-form limit of the table against the share of the budget that tables have. It
    sorts what to evaluate first, and decides nothing.
    """
    if point["method"] not in RSQRT.limits:
        return 4.0
    budget = -(Fixed.parse(point["y"]).width + point["guard_bits"] + 1)
    return abs(math.log2(RSQRT.limits[point["method"]](point["segments"])) - budget)


def largest_output(design, rows):
    """The largest magnitude of golden over the rows that choose, in real units."""
    largest = 0.0
    for layer in rows.layers():
        given = {name: getattr(layer, name) for name in design.parameter_names}
        given = {
            name: value for name, value in given.items() if value is not None and name in
            design.parameters
        }  # fmt: skip
        largest = max(largest, float(np.max(np.abs(golden(design, layer.x, **given)))))
    return largest


def varied(space, choices):
    """A space with other values of some keys: pairs of a key and what a space file has for it."""
    section = dict(choices)
    return replace(space, values=space.values | _values(section, space.base))


def parse_choice(text):
    """Read ``segments=2..64`` or ``y=s8/3,s16/11``: a key, and what a space file has for it.

    Raises
    ------
    ValueError
        If the text is no such thing.
    """
    key, equals, words = text.partition("=")
    if not equals or not words:
        raise ValueError(f"vary is written like segments=2..64 or y=s8/3,s16/11, got {text!r}")
    low, dots, high = words.partition("..")
    if dots:
        return key, {"from": _number(low), "to": _number(high)}
    return key, [_number(word) for word in words.split(",")]


def _number(text):
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _values(section, base):
    """The checked values of each key of a [space] section."""
    section = dict(section)
    if "scale_bits" in section:
        raise ValueError("scale_bits is the width of y plus guard_bits; vary guard_bits")
    values = {}
    for key, given in section.items():
        if key not in KEYS:
            raise ValueError(f"unknown key space.{key}; a space may vary {', '.join(KEYS)}")
        choices = _choices(key, given)
        if not choices:
            raise ValueError(f"space.{key} must have at least one value, got none")
        for value in choices:
            _check(key, value, base)
        values[key] = tuple(dict.fromkeys(choices))
    return values


def _choices(key, given):
    if not isinstance(given, dict):
        return list(given) if isinstance(given, list | tuple) else [given]
    if set(given) - {"from", "to", "step"} or not {"from", "to"} <= set(given):
        raise ValueError(f"space.{key} as a range has from, to and step, got {given!r}")
    low, high, step = given["from"], given["to"], given.get("step", 1)
    for value in (low, high, step):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"space.{key} as a range must be of numbers, got {value!r}")
    if step <= 0 or low > high:
        raise ValueError(f"space.{key} must have from <= to and a positive step, got {given!r}")
    if key in ("segments", "lanes"):
        return [2**k for k in range(64) if low <= 2**k <= high]
    return [low + n * step for n in range(int((high - low) / step) + 1)]


def _check(key, value, base):
    """Raise unless a value alone keeps the rules that a design file has."""
    where = f"space.{key}"
    if key in _FORMATS:
        if value == "none":
            return
        if key not in ("x", "y", *base.parameter_names):
            raise ValueError(f"{where}: {base.kind} has no {key}")
        width = value.partition("/")[0] if isinstance(value, str) else ""
        if value == "auto" and getattr(base, key) is not None:
            return
        if isinstance(value, str) and value.endswith("/auto"):
            if width[:1] != "s" or not width[1:].isdigit() or not 2 <= int(width[1:]) <= 32:
                raise ValueError(f"{where}: s16/auto needs a width of 2 to 32, got {value!r}")
            return
        try:
            Fixed.parse(value)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None
    elif key == "method" and value not in base.methods:
        raise ValueError(f"{where} must be of {', '.join(base.methods)}, got {value!r}")
    elif key == "segments":
        check_segments(where, value)
    elif key == "guard_bits":
        Rsqrt("linear", None, value)
    elif key in ("log_method", "log_frac"):
        LogTables(**{key.removeprefix("log_"): value})
    elif key in ("lanes", "period_ns", "rounding"):
        replace(base, **{key: value})
