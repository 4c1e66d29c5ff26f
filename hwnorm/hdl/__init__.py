"""The Amaranth shell: it knows streams, rows and stalls, but no arithmetic."""

from hwnorm.hdl.engine import RowEngine

__all__ = ["RowEngine"]
