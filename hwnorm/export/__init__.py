"""What a design hands over: a bundle with Verilog and test bench, and tables as files."""

from hwnorm.export.bundle import write_bundle
from hwnorm.export.generate import generate
from hwnorm.export.tables import TABLE_FORMATS, design_tables, table_files

__all__ = [
    "TABLE_FORMATS",
    "design_tables",
    "generate",
    "table_files",
    "write_bundle",
]
