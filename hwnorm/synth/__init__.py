"""Cells and clock rates of designs, by Yosys and nextpnr."""

from hwnorm.synth.result import SynthResult
from hwnorm.synth.run import synthesise, synthesise_verilog
from hwnorm.synth.targets import TARGETS

__all__ = ["TARGETS", "SynthResult", "synthesise", "synthesise_verilog"]
