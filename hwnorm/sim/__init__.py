"""Run a design's hardware: one interface, several engines."""

from hwnorm.sim.base import ENGINES, SimResult, simulate
from hwnorm.sim.stalls import PATTERNS

__all__ = ["ENGINES", "PATTERNS", "SimResult", "simulate"]
