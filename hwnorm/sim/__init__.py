"""Run a design's hardware: one interface, several engines."""

from hwnorm.sim.base import ENGINES, SimResult, simulate

__all__ = ["ENGINES", "SimResult", "simulate"]
