"""Normalisation layers without dividers or square roots: one description, model and RTL."""

from hwnorm.bitexact import assert_bit_exact
from hwnorm.design import load
from hwnorm.fixed import Fixed
from hwnorm.hdl import RowEngine, verilog
from hwnorm.measure import golden, measure
from hwnorm.model import model
from hwnorm.norms import LayerNorm, LogTables, RMSNorm, Rsqrt
from hwnorm.sim import simulate
from hwnorm.tune import pareto, tune

__version__ = "0.1.0"


def component(design):
    """A design as an ``amaranth.lib.wiring.Component``: see `hwnorm.hdl.RowEngine`."""
    return RowEngine(design)


__all__ = [
    "Fixed",
    "LayerNorm",
    "LogTables",
    "RMSNorm",
    "Rsqrt",
    "__version__",
    "assert_bit_exact",
    "component",
    "golden",
    "load",
    "measure",
    "model",
    "pareto",
    "simulate",
    "tune",
    "verilog",
]
