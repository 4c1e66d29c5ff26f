"""What a design hands over: Verilog with a test bench, and tables as files."""

from hwnorm.export.bundle import write_bundle
from hwnorm.export.tables import TABLE_FORMATS, design_tables, table_files
from hwnorm.export.verilog import verilog

__all__ = ["TABLE_FORMATS", "design_tables", "table_files", "verilog", "write_bundle"]
