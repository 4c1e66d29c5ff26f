"""A LiteX module of ice40_log_256.

Its streams are sink, source, gamma.
Element 0 of a row is in the lowest bits of its first beat.
"""

from pathlib import Path

from litex.gen import LiteXModule
from litex.soc.interconnect.axi import AXIStreamInterface
from migen import ClockSignal, Instance, ResetSignal, Signal


class Norm(LiteXModule):
    """rmsnorm, dim 256, 1 lane, x s8/4, gamma s8/6, y s8/4, rsqrt log."""

    def __init__(self, platform):
        self.clear = Signal()
        self.framing_error = Signal()
        self.saturated = Signal()
        self.sink = AXIStreamInterface(data_width=8)
        self.source = AXIStreamInterface(data_width=8)
        self.gamma = AXIStreamInterface(data_width=8)
        self.specials += Instance(
            "ice40_log_256",
            i_aclk=ClockSignal("sys"),
            i_aresetn=~ResetSignal("sys"),
            i_s_axis_tdata=self.sink.data,
            i_s_axis_tvalid=self.sink.valid,
            i_s_axis_tlast=self.sink.last,
            o_s_axis_tready=self.sink.ready,
            o_m_axis_tdata=self.source.data,
            o_m_axis_tvalid=self.source.valid,
            o_m_axis_tlast=self.source.last,
            i_m_axis_tready=self.source.ready,
            i_s_axis_gamma_tdata=self.gamma.data,
            i_s_axis_gamma_tvalid=self.gamma.valid,
            i_s_axis_gamma_tlast=self.gamma.last,
            o_s_axis_gamma_tready=self.gamma.ready,
            i_clear=self.clear,
            o_framing_error=self.framing_error,
            o_saturated=self.saturated,
        )
        rtl = Path(__file__).resolve().parent.parent / "rtl"
        platform.add_source(str(rtl / "ice40_log_256.v"))
