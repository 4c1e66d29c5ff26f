"""The engine behind AXI4-Stream ports, as vendor tools expect them by name."""

from dataclasses import dataclass

from amaranth.hdl import Cat, ClockDomain, Elaboratable, EnableInserter, Module, Signal

from hwnorm.bits import extend
from hwnorm.hdl.axilite import CHANNELS, AxiLiteControl
from hwnorm.hdl.engine import RowEngine
from hwnorm.hdl.style import Style


@dataclass(frozen=True)
class Port:
    """A port of the top level, for templates and tables: what it is, in words."""

    name: str
    is_input: bool
    width: int
    what: str


def lane_bits(fmt):
    """Bits of a lane on the bus: the format's width in whole bytes."""
    return (fmt.width + 7) // 8 * 8


def streams_of(design):
    """The buses of a design: prefix to the engine's stream and the format of a lane."""
    streams = {"s_axis": ("i", design.x), "m_axis": ("o", design.y)}
    loads = design.loaded if design.control == "none" else {}
    for name, fmt in (loads | design.streamed).items():
        streams[f"s_axis_{name}"] = (f"i_{name}", fmt)
    return streams


def port_bits(design):
    """The ports of a design's Verilog, except registers.

    Returns
    -------
    dict of str to (str, int)
        Name to direction, ``input`` or ``output``, and bits.
    """
    ports = {"aclk": ("input", 1), "aresetn": ("input", 1)}
    if design.clock_enable:
        ports["ce"] = ("input", 1)
    for prefix, (_, fmt) in streams_of(design).items():
        forth, back = ("output", "input") if prefix == "m_axis" else ("input", "output")
        ports[f"{prefix}_tdata"] = (forth, lane_bits(fmt) * design.lanes)
        ports[f"{prefix}_tvalid"] = (forth, 1)
        if design.ready:
            ports[f"{prefix}_tready"] = (back, 1)
        ports[f"{prefix}_tlast"] = (forth, 1)
    flags = {"clear": "input", "framing_error": "output", "saturated": "output"}
    return ports | {name: (direction, 1) for name, direction in flags.items()}


class AxiStreamTop(Elaboratable):
    """The top level that is exported as Verilog.

    Parameters
    ----------
    design : hwnorm.Norm
    style : hwnorm.hdl.style.Style
        Names the clock and the reset.
    component : amaranth.lib.wiring.Component or None
        What is inside, with the ports of `RowEngine`; None: that of the design.

    Members
    -------
    ports : list of Signal
        ``aclk``, ``aresetn`` (synchronous, active low), ``ce`` if there is one, ``s_axis_*``,
        ``m_axis_*``, ``s_axis_gamma_*`` and ``s_axis_beta_*`` where there are such, ``clear``,
        ``framing_error``, ``saturated``. Lanes are padded to whole bytes: the padding of
        inputs is ignored, outputs are sign extended. With ``control = "axilite"``,
        ``s_axil_*`` takes the place of the streams of parameters.
    streams : dict of str to tuple
        Prefix of a stream's ports to the engine's stream and the format of an element.
    control : hwnorm.hdl.axilite.AxiLiteControl or None
    """

    def __init__(self, design, style=None, component=None):
        self.design = design
        self.style = style or Style()
        self.engine = RowEngine(design) if component is None else component
        self.clock, self.reset = Signal(name=self.style.clock), Signal(name=self.style.reset)
        self.ce = Signal(name="ce") if design.clock_enable else None
        self.clear = Signal(name="clear")
        self.framing_error = Signal(name="framing_error")
        self.saturated = Signal(name="saturated")
        self.streams = streams_of(design)
        self.control = AxiLiteControl(design) if design.control == "axilite" else None
        ports = port_bits(design)
        self.buses = {
            prefix: {
                field: Signal(ports[f"{prefix}_{field}"][1], name=f"{prefix}_{field}")
                for field in ("tdata", "tvalid", "tready", "tlast")
                if f"{prefix}_{field}" in ports
            }
            for prefix in self.streams
        }

    @property
    def ports(self):
        buses = [signal for bus in self.buses.values() for signal in bus.values()]
        registers = [] if self.control is None else self.control.bus.values()
        flags = [self.clear, self.framing_error, self.saturated]
        enable = [] if self.ce is None else [self.ce]
        return [self.clock, self.reset, *enable, *buses, *registers, *flags]

    @property
    def bus_names(self):
        """Prefixes of the ports that are a bus."""
        return [*self.buses, *(["s_axil"] if self.control else [])]

    @property
    def port_table(self):
        """The `Port` of every signal in `ports`, in that order."""
        level = "low" if self.style.reset_low else "high"
        table = [
            Port(self.style.clock, True, 1, "clock"),
            Port(self.style.reset, True, 1, f"synchronous reset, active {level}"),
        ]
        if self.ce is not None:
            table.append(Port("ce", True, 1, "clock enable: while it is low, all state stays"))
        for prefix, bus in self.buses.items():
            name, fmt = self.streams[prefix]
            what = {"i": "x", "o": "y"}.get(name, name.removeprefix("i_"))
            lane = (
                f"a beat of {what}: {self.design.lanes} x {fmt.spelling} in {lane_bits(fmt)} bits"
            )
            told = {
                "tdata": lane,
                "tvalid": "the source has a beat",
                "tready": "the sink takes it",
                "tlast": "last beat of a row",
            }
            for field, signal in bus.items():
                is_input = (name == "o") == (field == "tready")
                table.append(Port(signal.name, is_input, len(signal), told[field]))
        if self.control:
            for field, bits, driven in CHANNELS:
                table.append(Port(f"s_axil_{field}", not driven, bits, "AXI4-Lite, the registers"))
        return [
            *table,
            Port("clear", True, 1, "clears the two flags"),
            Port("framing_error", False, 1, "sticky: tlast came early or late"),
            Port("saturated", False, 1, "sticky: an output was limited"),
        ]

    def elaborate(self, platform):
        m = Module()
        m.domains.sync = domain = ClockDomain("sync")
        domain.clk = self.clock
        running = self.reset if self.style.reset_low else ~self.reset
        m.submodules.engine = (
            self.engine if self.ce is None else EnableInserter(self.ce)(self.engine)
        )
        m.d.comb += [
            domain.rst.eq(~running),
        ]
        if self.control is None:
            m.d.comb += [
                self.engine.clear.eq(self.clear),
                self.framing_error.eq(self.engine.framing_error),
                self.saturated.eq(self.engine.saturated),
            ]
        else:
            self._connect_control(m, running)
        for prefix, (name, fmt) in self.streams.items():
            port, bus = getattr(self.engine, name), self.buses[prefix]
            step = lane_bits(fmt)
            if name == "o":
                lanes = [extend(port.payload.data[n], step) for n in range(self.design.lanes)]
                m.d.comb += [
                    bus["tdata"].eq(Cat(*lanes)),
                    bus["tlast"].eq(port.payload.last),
                    bus["tvalid"].eq(port.valid),
                ]
                if self.design.ready:
                    m.d.comb += port.ready.eq(bus["tready"])
                continue
            m.d.comb += [
                port.payload.last.eq(bus["tlast"]),
                port.valid.eq(bus["tvalid"]),
            ]
            if self.design.ready:
                # A beat in the cycle of a reset would be lost: it is not taken.
                m.d.comb += bus["tready"].eq(port.ready & running)
            for n in range(self.design.lanes):
                m.d.comb += port.payload.data[n].eq(bus["tdata"][n * step :][: fmt.width])
        return m

    def _connect_control(self, m, running):
        m.submodules.control = control = self.control
        m.d.comb += [
            control.running.eq(running),
            control.clear.eq(self.clear),
            control.framing_error.eq(self.engine.framing_error),
            control.saturated.eq(self.engine.saturated),
            self.engine.clear.eq(control.engine_clear),
            Cat(self.framing_error, self.saturated).eq(control.flags),
        ]
        for name, load in control.loads.items():
            port = getattr(self.engine, f"i_{name}")
            m.d.comb += [
                port.valid.eq(load["valid"]),
                port.payload.last.eq(load["last"]),
                load["ready"].eq(port.ready),
            ]
            m.d.comb += [port.payload.data[n].eq(word) for n, word in enumerate(load["data"])]
