"""Run a design's hardware: one interface, several engines."""

from hwnorm.sim.base import ENGINES, VERILOG_ENGINES, SimResult, simulate
from hwnorm.sim.job import SimulationError
from hwnorm.sim.stalls import PATTERNS

__all__ = ["ENGINES", "PATTERNS", "VERILOG_ENGINES", "SimResult", "SimulationError", "simulate"]
