"""Tuning: what each table entry and each bit buys, on the user's own activations."""

from hwnorm.tune.front import pareto
from hwnorm.tune.tuning import Tuning, tune

__all__ = ["Tuning", "pareto", "tune"]
