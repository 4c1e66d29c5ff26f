"""The engine behind AXI4-Stream ports, as vendor tools expect them by name."""

from amaranth.hdl import Cat, ClockDomain, Elaboratable, Module, Signal

from hwnorm.bits import extend
from hwnorm.hdl.engine import RowEngine


def lane_bits(fmt):
    """Bits of a lane on the bus: the format's width in whole bytes."""
    return (fmt.width + 7) // 8 * 8


def streams_of(design):
    """The buses of a design: prefix to the engine's stream and the format of a lane."""
    streams = {"s_axis": ("i", design.x), "m_axis": ("o", design.y)}
    if design.store == "ram":
        for name, fmt in design.parameters.items():
            streams[f"s_axis_{name}"] = (f"i_{name}", fmt)
    return streams


def port_bits(design):
    """The ports of a design's Verilog.

    Returns
    -------
    dict of str to (str, int)
        Name to direction, ``input`` or ``output``, and bits.
    """
    ports = {"aclk": ("input", 1), "aresetn": ("input", 1)}
    for prefix, (_, fmt) in streams_of(design).items():
        forth, back = ("output", "input") if prefix == "m_axis" else ("input", "output")
        ports[f"{prefix}_tdata"] = (forth, lane_bits(fmt) * design.lanes)
        ports[f"{prefix}_tvalid"] = (forth, 1)
        ports[f"{prefix}_tready"] = (back, 1)
        ports[f"{prefix}_tlast"] = (forth, 1)
    flags = {"clear": "input", "framing_error": "output", "saturated": "output"}
    return ports | {name: (direction, 1) for name, direction in flags.items()}


class AxiStreamTop(Elaboratable):
    """The top level that is exported as Verilog.

    Parameters
    ----------
    design : hwnorm.Norm
    component : amaranth.lib.wiring.Component or None
        What is inside, with the ports of `RowEngine`; None: that of the design.

    Members
    -------
    ports : list of Signal
        ``aclk``, ``aresetn`` (synchronous, active low), ``s_axis_*``, ``m_axis_*``,
        ``s_axis_gamma_*`` and ``s_axis_beta_*`` where there are such, ``clear``,
        ``framing_error``, ``saturated``. Lanes are padded to whole bytes: the padding of
        inputs is ignored, outputs are sign extended.
    """

    def __init__(self, design, component=None):
        self.design = design
        self.engine = RowEngine(design) if component is None else component
        self._ports = {
            name: Signal(bits, name=name) for name, (_, bits) in port_bits(design).items()
        }

    @property
    def ports(self):
        return list(self._ports.values())

    def elaborate(self, platform):
        m, ports = Module(), self._ports
        m.domains.sync = domain = ClockDomain("sync")
        domain.clk = ports["aclk"]
        m.submodules.engine = self.engine
        m.d.comb += [
            domain.rst.eq(~ports["aresetn"]),
            self.engine.clear.eq(ports["clear"]),
            ports["framing_error"].eq(self.engine.framing_error),
            ports["saturated"].eq(self.engine.saturated),
        ]
        for prefix, (name, fmt) in streams_of(self.design).items():
            port = getattr(self.engine, name)
            bus = {f: ports[f"{prefix}_{f}"] for f in ("tdata", "tvalid", "tready", "tlast")}
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
                bus["tready"].eq(port.ready & ports["aresetn"]),
            ]
            for n in range(self.design.lanes):
                m.d.comb += port.payload.data[n].eq(bus["tdata"][n * step :][: fmt.width])
        return m
