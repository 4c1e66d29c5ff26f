"""Imports go only downward, and the judges stay independent."""

import ast
from pathlib import Path

import hwnorm

ROOT = Path(hwnorm.__file__).parent

#: From the bottom up. A module may import those before it, and its own package.
LAYERS = (
    "fixed",
    "targets",
    "bits",
    "ops",
    "scaled",
    "sharing",
    "schedule",
    "flow",
    "mapping",
    "functions",
    "remez",
    "tables",
    "approx",
    "golden",
    "norms",
    "files",
    "design",
    "rows",
    "model",
    "measure",
    "hdl",
    "sim",
    "bitexact",
    "estimate",
    "report",
    "synth",
    "export",
    "testing",
    "plots",
    "tune",
    "demo",
    "cli",
    "pytest_plugin",
)


def imports(path):
    """The hwnorm modules that a file imports, by their first part."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = (
                [f"hwnorm.{alias.name}" for alias in node.names]
                if node.module == "hwnorm"
                else [node.module]
            )
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "hwnorm" and len(parts) > 1 and not parts[1].startswith("__"):
                yield parts[1]


def modules():
    """Every file of the package with its layer; the package's own files are above all."""
    for path in sorted(ROOT.rglob("*.py")):
        part = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if not part.startswith("__"):
            yield path, part


def test_every_module_has_a_layer():
    assert {part for _, part in modules()} == set(LAYERS)


def test_imports_go_downward():
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path, part in modules()
        for name in imports(path)
        if LAYERS.index(name) > LAYERS.index(part)
    ]
    assert wrong == []


def test_golden_knows_nothing_of_the_core():
    assert list(imports(ROOT / "golden.py")) == []


def test_files_stay_small():
    long = [
        path.name
        for folder in (ROOT, *(ROOT.parent / name for name in ("examples", "tests", "tools")))
        for path in folder.rglob("*.py")
        if len(path.read_text(encoding="utf-8").splitlines()) > 400
    ]
    assert long == []
