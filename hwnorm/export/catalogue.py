"""What the repository ships for people who want no Python: ``rtl/`` and ``luts/``."""

from hwnorm.design import CATALOGUE
from hwnorm.export.bundle import bundle
from hwnorm.export.tables import design_tables, json_text
from hwnorm.rows import bench_rows
from hwnorm.tables import Table

#: Elements of a shipped test bench, so that the folder stays small.
BENCH_ELEMENTS = 12288

#: Tables that belong to no design: function, method, segments, argument and result bits.
GENERIC_TABLES = (
    ("rsqrt", "direct", 256, 16, 16),
    ("rsqrt", "linear", 64, 19, 18),
    ("rsqrt", "linear", 512, 19, 18),
    ("rsqrt", "quadratic", 64, 19, 18),
    ("log2", "mitchell", 64, 16, 14),
    ("exp2", "mitchell", 64, 16, 14),
)


def preset_files(name):
    """The bundle of a preset, as it is shipped: path under ``rtl/`` to text."""
    design = CATALOGUE[name]
    rows = max(2, min(16, BENCH_ELEMENTS // design.dim))
    files = bundle(design, name, bench_rows(design, rows))
    return {f"{name}/{path}": text for path, text in files.items()}


def lut_files():
    """The tables of the presets and the generic ones: path under ``luts/`` to text."""
    files = {}
    for preset, design in CATALOGUE.items():
        for name, table in design_tables(design).items():
            files[f"{preset}/{name}.json"] = json_text(table)
    for function, method, segments, arg_bits, frac in GENERIC_TABLES:
        table = Table(function, method, segments, arg_bits, frac)
        files[f"{function}_{method}_{segments}.json"] = json_text(table)
    return files
