"""The Amaranth shell and its Verilog: it knows streams, rows and stalls, but no arithmetic."""

from hwnorm.hdl.axi import AxiStreamTop
from hwnorm.hdl.engine import RowEngine
from hwnorm.hdl.style import Style
from hwnorm.hdl.verilog import top_name, verilog

__all__ = ["AxiStreamTop", "RowEngine", "Style", "top_name", "verilog"]
