"""Norms: three small flows over a row, one norm a file."""

from hwnorm.norms.base import Flows, Norm
from hwnorm.norms.config import LogTables, Rsqrt
from hwnorm.norms.layer import LayerNorm
from hwnorm.norms.rms import RMSNorm
from hwnorm.norms.scaling import ScalingNorm

#: Name in design files to class.
NORMS = {cls.kind: cls for cls in (RMSNorm, LayerNorm)}

__all__ = [
    "NORMS",
    "Flows",
    "LayerNorm",
    "LogTables",
    "Norm",
    "RMSNorm",
    "Rsqrt",
    "ScalingNorm",
]
