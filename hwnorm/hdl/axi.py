"""The engine behind AXI4-Stream ports, as vendor tools expect them by name."""

from amaranth.hdl import Cat, ClockDomain, Elaboratable, Module, Signal

from hwnorm.bits import extend
from hwnorm.hdl.engine import RowEngine


def lane_bits(fmt):
    """Bits of a lane on the bus: the format's width in whole bytes."""
    return (fmt.width + 7) // 8 * 8


class AxiStreamTop(Elaboratable):
    """The top level that is exported as Verilog.

    Parameters
    ----------
    design : hwnorm.Norm

    Members
    -------
    ports : list of Signal
        ``aclk``, ``aresetn`` (synchronous, active low), ``s_axis_*``, ``m_axis_*``,
        ``s_axis_gamma_*`` and ``s_axis_beta_*`` where there are such, ``clear``,
        ``framing_error``, ``saturated``. Lanes are padded to whole bytes: the padding of
        inputs is ignored, outputs are sign extended.
    """

    def __init__(self, design):
        self.design = design
        self.engine = RowEngine(design)
        self.aclk, self.aresetn = Signal(name="aclk"), Signal(name="aresetn")
        self.clear = Signal(name="clear")
        self.framing_error = Signal(name="framing_error")
        self.saturated = Signal(name="saturated")
        self.streams = {"s_axis": ("i", design.x), "m_axis": ("o", design.y)}
        if design.store == "ram":
            for name, fmt in design.parameters.items():
                self.streams[f"s_axis_{name}"] = (f"i_{name}", fmt)
        self.buses = {
            prefix: {
                field: Signal(bits, name=f"{prefix}_{field}")
                for field, bits in (
                    ("tdata", lane_bits(fmt) * design.lanes),
                    ("tvalid", 1),
                    ("tready", 1),
                    ("tlast", 1),
                )
            }
            for prefix, (_, fmt) in self.streams.items()
        }

    @property
    def ports(self):
        buses = [signal for bus in self.buses.values() for signal in bus.values()]
        flags = [self.clear, self.framing_error, self.saturated]
        return [self.aclk, self.aresetn, *buses, *flags]

    def elaborate(self, platform):
        m = Module()
        m.domains.sync = domain = ClockDomain("sync")
        domain.clk = self.aclk
        m.submodules.engine = self.engine
        m.d.comb += [
            domain.rst.eq(~self.aresetn),
            self.engine.clear.eq(self.clear),
            self.framing_error.eq(self.engine.framing_error),
            self.saturated.eq(self.engine.saturated),
        ]
        for prefix, (name, fmt) in self.streams.items():
            port, bus = getattr(self.engine, name), self.buses[prefix]
            step = lane_bits(fmt)
            if name == "o":
                lanes = [extend(port.payload.data[n], step) for n in range(self.design.lanes)]
                m.d.comb += [
                    bus["tdata"].eq(Cat(*lanes)),
                    bus["tlast"].eq(port.payload.last),
                    bus["tvalid"].eq(port.valid),
                    port.ready.eq(bus["tready"]),
                ]
                continue
            m.d.comb += [
                port.payload.last.eq(bus["tlast"]),
                port.valid.eq(bus["tvalid"]),
                # A beat in the cycle of a reset would be lost: it is not taken.
                bus["tready"].eq(port.ready & self.aresetn),
            ]
            for n in range(self.design.lanes):
                m.d.comb += port.payload.data[n].eq(bus["tdata"][n * step :][: fmt.width])
        return m
