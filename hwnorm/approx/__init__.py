"""Approximations: wires in, wires out, each with the error bound it declares."""

from hwnorm.approx.counted import CountedRoot
from hwnorm.approx.log import Exp2, Log2
from hwnorm.approx.rsqrt import ReciprocalRoot
from hwnorm.approx.square import square_by_adders

__all__ = ["CountedRoot", "Exp2", "Log2", "ReciprocalRoot", "square_by_adders"]
