"""The FuseSoC generator: a core of a user's asks for a norm, and gets a core that has it."""

from pathlib import Path

import tomli_w

from hwnorm.design import load, parse
from hwnorm.export.bundle import bundle
from hwnorm.files import write_tree
from hwnorm.hdl.style import Style
from hwnorm.rows import bench_rows

STYLE_KEYS = ("profile", "tables", "clock", "reset")
#: Of the test bench, which goes along.
ROWS = 4


def generate(path, folder):
    """Do what a request of FuseSoC asks for.

    Parameters
    ----------
    path : str or pathlib.Path
        The request (GAPI 1.0): a YAML file with ``vlnv``, ``files_root`` and ``parameters``.
    folder : str or pathlib.Path
        Where to write the bundle, whose core bears the name that the request gives.

    Returns
    -------
    hwnorm.Norm, list of str
        The design, and the files that were written.

    Raises
    ------
    ValueError
        If the request cannot be read, or a parameter breaks a rule.
    """
    request = _read(path)
    given = dict(request["parameters"] or {})
    unknown = sorted(set(given) - {"design", "name", *STYLE_KEYS})
    if unknown:
        raise ValueError(
            f"parameters must be among design, name, {', '.join(STYLE_KEYS)}, got {unknown[0]}"
        )
    for key in ("name", *STYLE_KEYS):
        if not isinstance(given.get(key, ""), str):
            raise ValueError(f"parameter {key} must be text, got {given[key]!r}")
    root, asked = Path(request["files_root"]), given.get("design")
    if isinstance(asked, dict):
        design = parse(tomli_w.dumps(asked), root)
        name = f"{design.kind}_{design.dim}"
    elif isinstance(asked, str):
        design = load(root / asked if (root / asked).exists() else asked)
        name = Path(asked).stem
    else:
        raise ValueError(f"parameter design must be a file, a preset or its keys, got {asked!r}")
    style = Style(**{key: given[key] for key in STYLE_KEYS if key in given})
    rows = bench_rows(design, ROWS)
    files = bundle(design, given.get("name", name), rows, style=style, vlnv=request["vlnv"])
    write_tree(folder, files)
    return design, sorted(files)


def _read(path):
    try:
        import yaml
    except ImportError:
        raise ValueError("fusesoc needs PyYAML, got none: pip install hwnorm[fusesoc]") from None
    try:
        request = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = getattr(error, "strerror", None) or "no YAML"
        raise ValueError(f"request {path} must be readable, got: {reason}") from None
    if not isinstance(request, dict) or not {"vlnv", "files_root", "parameters"} <= set(request):
        raise ValueError(
            f"request {path} must have vlnv, files_root and parameters, as FuseSoC writes them"
        )
    return request
