"""Design files (TOML) and the catalogue of presets."""

import difflib
import importlib.util
import sys
import tomllib
from dataclasses import MISSING, fields
from pathlib import Path

import numpy as np
import tomli_w

from hwnorm.fixed import Fixed, quantise
from hwnorm.norms import NORMS, LayerNorm, LogTables, Norm, RMSNorm, Rsqrt

#: Keys of a design file by section: field of the norm, and the Python types it may have.
_NUMBER = (int, float)
_TOP = {
    "dim": int,
    "dim_max": int,
    "lanes": int,
    "eps": _NUMBER,
    "gamma_offset": _NUMBER,
    "store": str,
    "gamma_init": (str, list),
    "beta_init": (str, list),
    "period_ns": _NUMBER,
    "target": str,
    "solve": str,
    "control": str,
    "ready": bool,
    "clock_enable": bool,
}
#: Keys that the norm's field has another name for, since `solve` is what the norm does.
_RENAMED = {"solve": "solver"}
_FORMAT = dict.fromkeys(("x", "y", "gamma", "beta", "rounding", "overflow"), str)
_RSQRT = {"method": str, "segments": int, "guard_bits": int}
_LOG = {"method": str, "segments": int, "frac": int}


def load(path):
    """Read a design file, or take a preset by its name.

    Parameters
    ----------
    path : str or pathlib.Path
        A TOML file; a preset; or ``my_norm.py:NAME``, a design in a Python file (which is
        run), or a norm class whose fields all have defaults.

    Returns
    -------
    hwnorm.Norm

    Raises
    ------
    ValueError
        With one line that names the file, the field, the rule and the value.
    """
    file, colon, name = str(path).rpartition(":")
    if colon and file.endswith(".py"):
        return _from_python(Path(file), name)
    path = Path(path)
    if not path.suffix and not path.exists():
        if str(path) in CATALOGUE:
            return CATALOGUE[str(path)]
        raise ValueError(
            f"design must be a file or a preset, got {str(path)!r}{_near(str(path), CATALOGUE)}"
        )
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text file"
        raise ValueError(f"design file {path} must be readable, got: {reason}") from None
    try:
        return parse(text, path.parent)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _from_python(path, name):
    """A design that a Python file defines, or a norm class's design with default fields."""
    if not path.is_file():
        raise ValueError(f"norm file {path} must exist, got none")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(path.stem)
    # Dataclasses look their module up while they are made.
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
        value = getattr(module, name, None)
        design = value() if isinstance(value, type) and issubclass(value, Norm) else value
    except Exception as error:
        raise ValueError(f"{path}:{name}: {type(error).__name__}: {error}") from error
    finally:
        if before is None:
            del sys.modules[path.stem]
        else:
            sys.modules[path.stem] = before
    if not isinstance(design, Norm):
        raise ValueError(f"{path}:{name} must be a norm or a design, got {value!r}")
    return design


def parse(text, folder="."):
    """A design from TOML text; files it names are found from `folder`.

    Raises
    ------
    ValueError
        If the text is no TOML, or a key or value breaks a rule.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"must be TOML, got: {error}") from None
    kind = data.pop("norm", None)
    if not isinstance(kind, str) or kind not in NORMS:
        raise ValueError(
            f"norm must be one of {', '.join(NORMS)}, got {kind!r}{_near(str(kind), NORMS)}"
        )
    given = {}
    for section, keys in (("format", _FORMAT), ("rsqrt", _RSQRT), ("log", _LOG)):
        content = data.pop(section, {})
        if not isinstance(content, dict):
            raise ValueError(f"{section} must be a section [{section}], got {content!r}")
        _check_keys(content, keys, f"{section}.")
        given[section] = content
    _check_keys(data, {"norm": str, **_TOP}, "", ("format", "rsqrt", "log"))
    if "dim" not in data and "dim_max" not in data:
        raise ValueError("dim must be given, got none")
    try:
        settings = {_RENAMED.get(key, key): value for key, value in data.items()}
        settings |= given["format"]
        for name in ("gamma", "beta"):
            fmt = settings.get(name, "none")
            if f"{name}_init" in settings:
                values = settings[f"{name}_init"]
                settings[f"{name}_init"] = _contents(f"{name}_init", values, fmt, Path(folder))
        return NORMS[kind](**settings, rsqrt=Rsqrt(**given["rsqrt"]), log=LogTables(**given["log"]))
    except TypeError as error:
        raise ValueError(str(error)) from None


def _check_keys(content, keys, prefix, sections=()):
    for key, value in content.items():
        if key not in keys:
            raise ValueError(f"unknown key {prefix}{key}{_near(key, [*keys, *sections])}")
        types = keys[key] if isinstance(keys[key], tuple) else (keys[key],)
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            words = " or ".join(
                {
                    "int": "an integer",
                    "float": "a number",
                    "str": "text",
                    "list": "a list",
                    "bool": "true or false",
                }[t.__name__]
                for t in types
                if not (t is int and float in types)
            )
            raise ValueError(f"{prefix}{key} must be {words}, got {value!r}")


def _near(word, known):
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"; did you mean {close[0]}?" if close else ""


def _contents(key, values, fmt, folder):
    """Initial contents: a list, or a .npy file of integers or floats."""
    if fmt == "none":
        raise ValueError(f"{key} needs format.{key[:-5]}, got none")
    if isinstance(values, str):
        try:
            values = np.load(folder / values, allow_pickle=False)
        except (OSError, ValueError):
            raise ValueError(f"{key} must be a .npy file of numbers, got {values}") from None
    else:
        kinds = {type(value) for value in values}
        if kinds not in ({int}, {float}):
            raise ValueError(f"{key} must hold integers alone, or numbers with a point alone")
        values = np.array(values)
    if values.dtype.kind not in "iuf" or values.ndim != 1:
        raise ValueError(f"{key} must be a list of numbers, got {values.dtype} {values.shape}")
    try:
        word = Fixed.parse(fmt)
    except ValueError as error:
        raise ValueError(f"format.{key[:-5]}: {error}") from None
    return tuple(int(v) for v in quantise(word, values, key))


def dumps(design):
    """A design as TOML text that `parse` reads back to an equal design."""
    data = {"norm": design.kind}
    sections = {
        "format": {
            name: getattr(design, name).spelling
            if isinstance(getattr(design, name), Fixed)
            else getattr(design, name)
            for name in _FORMAT
            if getattr(design, name) is not None
        },
        "rsqrt": {k: v for k in _RSQRT if (v := getattr(design.rsqrt, k)) is not None},
    }
    if design.rsqrt.method == "log":
        sections["log"] = {k: v for k in _LOG if (v := getattr(design.log, k)) is not None}
    for item in fields(design):
        value = getattr(design, item.name)
        default = item.default if item.default is not MISSING else None
        if item.name == "dim" and design.dim_max is not None:
            continue
        key = next((key for key, name in _RENAMED.items() if name == item.name), item.name)
        if key in _TOP and (value != default or key in ("lanes", "eps")):
            data[key] = list(value) if isinstance(value, tuple) else value
    return tomli_w.dumps(data | sections)


TEMPLATE = """\
# A hwnorm design. Check it with: hwnorm check FILE
norm = "{kind}"
dim = {dim}                 # elements of a row, 2 to 16384
# dim_max = {dim}           # in place of dim: rows of any length up to this end with last
lanes = {lanes}                 # elements a clock; must divide dim
eps = 1e-5                # added to the {mean}
# gamma_offset = 1.0      # for models that store gamma - 1
# store = "ram"           # ram: parameters are loaded through a stream; rom: constants;
#                         # stream: every row comes with its own
# gamma_init = "g.npy"    # initial contents; without, gamma is 1
# target = "generic"      # or ecp5, ice40, gowin, xc7: whose delays count
# period_ns = 8.0         # clock period: shorter means more pipeline registers
# solve = "shared"        # or pipelined; without, what is smaller
# control = "none"        # axilite: registers for flags and parameters
# ready = true            # false: streams without tready, for sinks that always take
# clock_enable = false    # true: a port ce that stops everything while it is low

[format]                  # s16/8: signed, 16 bits, of which 8 fraction
x = "s16/8"
gamma = "s16/14"          # or "none"
{beta}y = "s16/10"
# rounding = "nearest_even"   # or nearest_up, floor
# overflow = "saturate"       # or wrap

[rsqrt]
method = "linear"         # {methods}
# segments = 512          # table entries; without, the smallest that the error budget allows
guard_bits = 2            # 2 keeps errors below one ulp, unless beta is wide
"""


def template(kind):
    """A commented design file with good defaults.

    Raises
    ------
    ValueError
        If there is no such norm.
    """
    if kind not in NORMS:
        raise ValueError(
            f"norm must be one of {', '.join(NORMS)}, got {kind!r}{_near(kind, NORMS)}"
        )
    return TEMPLATE.format(
        kind=kind,
        dim=768,
        lanes=4,
        mean="mean square" if kind == "rmsnorm" else "variance",
        beta='beta = "s16/12"           # or "none"\n' if kind == "layernorm" else "",
        methods=" | ".join(NORMS[kind].all_methods()),
    )


#: Presets by name. Each has its Verilog in ``rtl/`` and its tables in ``luts/``.
CATALOGUE = {
    # SmolLM2-135M: |x| reaches 23,024 in channel 507 and must never saturate; |gamma| 3.35.
    "smollm2": RMSNorm(
        dim=576, lanes=8, eps=1e-5, x="s24/8", gamma="s16/13", y="s16/9",
        target="ecp5", period_ns=5.5,
    ),
    # Llama-like hidden size; 16 bits in with the full range, gamma near one.
    "llama-4096": RMSNorm(dim=4096, lanes=16, eps=1e-5, x="s16/8", gamma="s16/14", y="s16/9"),
    # Query and key norms of current models: short rows, one after the other.
    "qk-128": RMSNorm(dim=128, lanes=16, eps=1e-6, x="s16/10", gamma="s16/13", y="s16/11"),
    # ViT-Base and BERT-base.
    "vit-layernorm-768": LayerNorm(
        dim=768, lanes=4, eps=1e-6, x="s16/8", gamma="s16/13", beta="s16/12", y="s16/10",
        target="ecp5", period_ns=6.0,
    ),
    # int8 activations in and out, 1.0 at 16 steps.
    "edge-int8-768": RMSNorm(
        dim=768, lanes=4, eps=1e-5, x="s8/4", gamma="s8/6", y="s8/4", target="ecp5", period_ns=5.5
    ),
    # No multiplier anywhere: for parts without DSP blocks.
    "ice40-log-256": RMSNorm(
        dim=256, lanes=1, eps=1e-5, x="s8/4", gamma="s8/6", y="s8/4",
        rsqrt=Rsqrt(method="log"), log=LogTables(method="mitchell"),
        target="ice40", period_ns=25.0,
    ),
    # The smallest useful one, and the first to simulate.
    "tiny-64": RMSNorm(dim=64, lanes=4, eps=1e-5, x="s16/8", y="s16/12"),
}  # fmt: skip
