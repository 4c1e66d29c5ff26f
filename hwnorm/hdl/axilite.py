"""The register block of ``control = "axilite"``: an AXI4-Lite slave, one access at a time."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal

#: Bits of an address on the bus.
ADDRESS_BITS = 6
OKAY, SLVERR = 0, 2
#: What the register ID reads: "HWNM".
ID = 0x48574E4D


@dataclass(frozen=True)
class Register:
    """A register: its name, byte offset, whether it is read and written, and what it is."""

    name: str
    offset: int
    read: bool
    write: bool
    what: str

    @property
    def access(self):
        """``RO``, ``WO`` or ``RW``."""
        return {(1, 0): "RO", (0, 1): "WO", (1, 1): "RW"}[self.read, self.write]


#: Those that every design has.
COMMON = (
    Register("ID", 0x00, True, False, f"0x{ID:08x}, HWNM in ASCII"),
    Register(
        "VERSION",
        0x04,
        True,
        False,
        "of hwnorm: major, minor and patch, a byte each",
    ),
    Register("DIM", 0x08, True, False, "elements of a row"),
    Register("LANES", 0x0C, True, False, "elements of a beat"),
    Register("FLAGS", 0x10, True, True, "bit 0 framing error, bit 1 saturated; write 1 to clear"),
    Register("LATENCY", 0x14, True, False, "cycles from first beat in to first beat out"),
)
#: Offset of the first parameter's two registers; the next parameter's follow.
WINDOWS = 0x20


def registers(design):
    """The register map of a design, a list of `Register` in the order of their offsets."""
    found = list(COMMON)
    if design.store == "ram":
        for n, name in enumerate(design.parameters):
            at, upper = WINDOWS + 8 * n, name.upper()
            index = f"the element of {name} that {upper}_DATA stores next; any write starts anew"
            data = f"an element of {name}, in the low bits; {upper}_INDEX goes on by one"
            found += [
                Register(f"{upper}_INDEX", at, True, True, index),
                Register(f"{upper}_DATA", at + 4, False, True, data),
            ]
    return found


def version_word():
    """What the register VERSION reads."""
    import hwnorm

    major, minor, patch = (int(part) for part in hwnorm.__version__.split(".")[:3])
    return major << 16 | minor << 8 | patch


#: Signals of the bus by channel: name, bits, and whether the slave drives them.
CHANNELS = (
    ("awaddr", ADDRESS_BITS, False), ("awvalid", 1, False), ("awready", 1, True),
    ("wdata", 32, False), ("wstrb", 4, False), ("wvalid", 1, False), ("wready", 1, True),
    ("bresp", 2, True), ("bvalid", 1, True), ("bready", 1, False),
    ("araddr", ADDRESS_BITS, False), ("arvalid", 1, False), ("arready", 1, True),
    ("rdata", 32, True), ("rresp", 2, True), ("rvalid", 1, True), ("rready", 1, False),
)  # fmt: skip


class AxiLiteControl(Elaboratable):
    """Registers of a norm on AXI4-Lite: facts, flags, and windows to load parameters through.

    A write is taken when address and data are both there; one write and one read can be under
    way. What is no register, a write without all four strobes, or to a register that is not
    written, is answered SLVERR and does nothing.

    Parameters
    ----------
    design : hwnorm.Norm

    Members
    -------
    bus : dict of str to Signal
        ``awaddr`` and so on, see ``CHANNELS``.
    running : Signal
        Low during reset: nothing is taken.
    framing_error, saturated : Signal
        The engine's sticky flags, in.
    clear : Signal
        Clears both flags, in.
    engine_clear : Signal
        To the engine, whose flags are kept here from then on.
    flags : Signal(2)
        Out: framing error, saturated.
    loads : dict of str to dict of str to Signal
        For each parameter its stream to the engine: ``data`` (list of lanes), ``valid``,
        ``ready``, ``last``.
    """

    def __init__(self, design):
        self.design = design
        self.registers = registers(design)
        self.bus = {name: Signal(bits, name=f"s_axil_{name}") for name, bits, _ in CHANNELS}
        self.running = Signal()
        self.framing_error, self.saturated = Signal(), Signal()
        self.clear, self.engine_clear, self.flags = Signal(), Signal(), Signal(2)
        self.loads = {}
        if design.store == "ram":
            for name, fmt in design.parameters.items():
                lanes = [
                    Signal(fmt.width, name=f"{name}_word_{lane}") for lane in range(design.lanes)
                ]
                self.loads[name] = {"data": lanes} | {
                    field: Signal(name=f"{name}_{field}") for field in ("valid", "ready", "last")
                }

    def elaborate(self, platform):
        m = Module()
        bus = self.bus
        values = {
            "ID": Const(ID, 32),
            "VERSION": Const(version_word(), 32),
            "DIM": Const(self.design.dim, 32),
            "LANES": Const(self.design.lanes, 32),
            "LATENCY": Const(self.design.latency, 32),
            "FLAGS": self.flags,
        }
        written = {
            register.name: Signal(name=f"write_{register.name.lower()}")
            for register in self.registers
            if register.write
        }
        self._flag(m, written["FLAGS"])
        busy = [self._load(m, name, written, values) for name in self.loads]
        self._write(m, written, Cat(*busy).any() if busy else Const(0))
        # Reading.
        value, known = Signal(32), Signal()
        for register in self.registers:
            if register.read:
                with m.If(bus["araddr"][2:] == register.offset >> 2):
                    m.d.comb += [value.eq(values[register.name]), known.eq(1)]
        m.d.comb += bus["arready"].eq(~bus["rvalid"] & self.running)
        with m.If(bus["rvalid"] & bus["rready"]):
            m.d.sync += bus["rvalid"].eq(0)
        with m.If(bus["arvalid"] & bus["arready"]):
            m.d.sync += [
                bus["rvalid"].eq(1),
                bus["rdata"].eq(value),
                bus["rresp"].eq(Mux(known, OKAY, SLVERR)),
            ]
        return m

    def _flag(self, m, write):
        """Keep the flags here, so that each can be cleared alone; the engine's are cleared."""
        kept = Signal(2)
        cleared = Mux(write, self.bus["wdata"][:2], 0) | self.clear.replicate(2)
        m.d.comb += [
            self.flags.eq(kept | Cat(self.framing_error, self.saturated)),
            self.engine_clear.eq(self.framing_error | self.saturated),
        ]
        m.d.sync += kept.eq(self.flags & ~cleared)

    def _load(self, m, name, written, values):
        """Gather the elements of a parameter to beats; returns whether a beat waits."""
        stream, lanes = self.loads[name], self.design.lanes
        write, restart = written[f"{name.upper()}_DATA"], written[f"{name.upper()}_INDEX"]
        index = Signal(range(self.design.dim), name=f"{name}_index")
        lane = Signal(range(max(lanes, 2)), name=f"{name}_lane")
        end = index == self.design.dim - 1
        values[f"{name.upper()}_INDEX"] = index
        waits = Signal(name=f"{name}_waits")
        m.d.comb += waits.eq(stream["valid"] & ~stream["ready"])
        with m.If(~waits):
            m.d.sync += stream["valid"].eq(0)
        with m.If(write):
            for n, word in enumerate(stream["data"]):
                with m.If(lane == n):
                    m.d.sync += word.eq(self.bus["wdata"])
            m.d.sync += [
                index.eq(Mux(end, 0, index + 1)),
                lane.eq(Mux(lane == lanes - 1, 0, lane + 1)),
                stream["valid"].eq(lane == lanes - 1),
                stream["last"].eq(end),
            ]
        # The engine has counted the beats of the row that is given up: it must see its end.
        with m.If(restart & (index != 0)):
            m.d.sync += [index.eq(0), lane.eq(0), stream["valid"].eq(1), stream["last"].eq(1)]
        return waits

    def _write(self, m, written, busy):
        bus = self.bus
        take, known = Signal(name="write_taken"), Signal(name="write_known")
        m.d.comb += [
            take.eq(bus["awvalid"] & bus["wvalid"] & ~bus["bvalid"] & ~busy & self.running),
            bus["awready"].eq(take),
            bus["wready"].eq(take),
        ]
        whole = bus["wstrb"].all()
        for register in self.registers:
            if register.write:
                with m.If(bus["awaddr"][2:] == register.offset >> 2):
                    m.d.comb += [known.eq(whole), written[register.name].eq(take & whole)]
        with m.If(bus["bvalid"] & bus["bready"]):
            m.d.sync += bus["bvalid"].eq(0)
        with m.If(take):
            m.d.sync += [bus["bvalid"].eq(1), bus["bresp"].eq(Mux(known, OKAY, SLVERR))]
