"""Memories of the shell: the row buffer's ring and the parameters."""

from amaranth.hdl import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hwnorm.bits import shape
from hwnorm.hdl.pipeline import Pipeline
from hwnorm.targets import TARGETS

#: Cycles from a read address to its data: the memory's own register and one behind it.
READ_CYCLES = 2


def row_signature(fmt, lanes, ready=True):
    """The stream of a row: `lanes` elements a beat, the first one lowest, and `last`.

    Without `ready`, it is always taken.
    """
    return stream.Signature(
        data.StructLayout({"data": data.ArrayLayout(shape(fmt), lanes), "last": 1}),
        always_ready=not ready,
    )


def read_port(m, memory, address, name, enable=1):
    """Read a memory; the data comes `READ_CYCLES` later.

    If `enable` excludes the word that is just being written, which nobody has use for, a block
    RAM needs no logic around it to give the old one.
    """
    port = memory.read_port()
    held = Signal(len(port.data), name=name, reset_less=True)
    m.d.comb += [port.addr.eq(address), port.en.eq(enable)]
    m.d.sync += held.eq(port.data)
    return held


class Ring(wiring.Component):
    """A ring of beats that takes rows and gives them once, freeing each beat as it is read.

    Parameters
    ----------
    width, depth, beats : int
        Bits of a beat, beats of the ring, beats of a row.
    fills : bool
        Whether it can be full. If not, because rows are read as soon as they are complete, it
        does not count what it holds.

    Members
    -------
    ready : Out(1)
        There is a free beat.
    write, w_data : In
        Append a beat; only while `ready`.
    commit, drop : In(1)
        Together with `write`: the row is complete; the row is to be forgotten, this beat
        included.
    read : In(1)
        Take the next beat of a committed row. Its data is `r_data`, `READ_CYCLES` later.
    """

    def __init__(self, width, depth, beats, fills=True):
        self.depth, self.beats, self.fills = depth, beats, fills
        super().__init__(
            {
                "ready": Out(1),
                "write": In(1),
                "w_data": In(width),
                "commit": In(1),
                "drop": In(1),
                "read": In(1),
                "r_data": Out(width),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Memory(
            shape=unsigned(len(self.w_data)), depth=self.depth, init=[]
        )
        head, tail, base = (Signal(range(self.depth), name=n) for n in ("head", "tail", "base"))
        used = Signal(range(self.depth + 1))
        full = Signal()  # used == depth, known a cycle ahead since `ready` is on every path
        pending = Signal(range(self.beats + 1))  # beats of the row that is not committed

        def after(pointer):
            if self.depth & (self.depth - 1) == 0:
                return (pointer + 1)[: len(pointer)]
            following = Signal.like(pointer, name=f"{pointer.name}_next")
            m.d.comb += following.eq(pointer + 1)
            with m.If(pointer == self.depth - 1):
                m.d.comb += following.eq(0)
            return following

        port = memory.write_port()
        m.d.comb += [
            self.ready.eq(~full),
            port.addr.eq(head),
            port.data.eq(self.w_data),
            port.en.eq(self.write),
            # Where both ends meet and the ring is not full, it is empty: nobody reads.
            self.r_data.eq(read_port(m, memory, tail, "read_data", (head != tail) | full)),
        ]
        head_next = after(head)
        with m.If(self.write):
            m.d.sync += [head.eq(head_next), pending.eq(pending + 1)]
            with m.If(self.commit):
                m.d.sync += [base.eq(head_next), pending.eq(0)]
            with m.If(self.drop):
                m.d.sync += [head.eq(base), pending.eq(0)]
        with m.If(self.read):
            m.d.sync += tail.eq(after(tail))
        if not self.fills:
            return m
        # Whether a beat is written is known last: it only chooses.
        fewer, same, more = (Signal.like(used, name=f"used_{n}") for n in ("fewer", "same", "more"))
        m.d.comb += [
            fewer.eq(used - pending - self.read),
            same.eq(Mux(self.read, used - 1, used)),
            more.eq(Mux(self.read, used, used + 1)),
        ]
        m.d.sync += [
            used.eq(Mux(self.drop, fewer, Mux(self.write, more, same))),
            full.eq(~self.drop & ~self.read & (full | (self.write & (used == self.depth - 1)))),
        ]
        return m


class ParameterStore(wiring.Component):
    """What the hardware stores of gamma or beta, a beat's elements a word.

    Parameters
    ----------
    design : hwnorm.Norm
    name : str
        ``gamma`` or ``beta``.
    words : list of int
        Initial contents.

    Members
    -------
    i : In(stream), if the design stores in RAM
        The elements of a row; always ready. A beat takes effect as soon as it is stored.
    beat : In
        The beat to read. What is stored of its elements comes `READ_CYCLES` later, see `output`.
    framing_error : Out(1)
        A row of another length came on the stream; it is not stored from there on.
    """

    def __init__(self, design, name, words):
        self.name, self.words = name, words
        self.beats, self.lanes = design.beats, design.lanes
        flow = design.flows.load[name]
        self.fields = {key: wire.fmt for key, wire in flow.outputs.items()}
        members = {"beat": In(range(max(self.beats, 2))), "framing_error": Out(1)}
        for key, fmt in self.fields.items():
            members |= {f"{key}_{lane}": Out(shape(fmt)) for lane in range(self.lanes)}
        self.writable = design.store == "ram"
        if self.writable:
            self.loader = Pipeline(
                flow, design.period_ns, design.lanes, target=TARGETS[design.target]
            )
            members["i"] = In(row_signature(design.parameters[name], self.lanes, design.ready))
        super().__init__(members)

    def output(self, key, lane):
        """The member that holds one stored wire of one lane."""
        return getattr(self, f"{key}_{lane}")

    def elaborate(self, platform):
        m = Module()
        width = self.lanes * sum(fmt.width for fmt in self.fields.values())
        m.submodules.memory = memory = Memory(
            shape=unsigned(width), depth=max(self.beats, 2), init=self.words
        )
        write = memory.write_port() if self.writable else None
        enable = ~(write.en & (write.addr == self.beat)) if self.writable else 1
        word = read_port(m, memory, self.beat, f"{self.name}_data", enable)
        outputs = [self.output(key, lane) for lane in range(self.lanes) for key in self.fields]
        m.d.comb += Cat(*outputs).eq(word)
        if self.writable:
            self._load(m, write)
        return m

    def _load(self, m, port):
        m.submodules.loader = self.loader
        beat = Signal(range(max(self.beats, 2)))
        skip = Signal()
        end = beat == self.beats - 1
        if not self.i.signature.always_ready:
            m.d.comb += self.i.ready.eq(1)
        for lane in range(self.lanes):
            m.d.comb += self.loader.input(self.name, lane).eq(self.i.payload.data[lane])
        with m.If(self.i.valid):
            m.d.comb += self.framing_error.eq(~skip & (end != self.i.payload.last))
            m.d.sync += beat.eq(beat + 1)
            with m.If(end | self.i.payload.last):
                m.d.sync += beat.eq(0)
            with m.If(end & ~self.i.payload.last):
                m.d.sync += skip.eq(1)
            with m.If(self.i.payload.last):
                m.d.sync += skip.eq(0)
        write = Cat(self.i.valid & ~skip, beat)
        for n in range(self.loader.latency):
            later = Signal(len(write), name=f"write_c{n + 1}")
            m.d.sync += later.eq(write)
            write = later
        words = [self.loader.output(key, lane) for lane in range(self.lanes) for key in self.fields]
        m.d.comb += [port.en.eq(write[0]), port.addr.eq(write[1:]), port.data.eq(Cat(*words))]


def pack_words(design, stored):
    """The memory words of what is stored of one parameter.

    Parameters
    ----------
    stored : dict of str to numpy.ndarray of int, (dim,)
        In the order of the load flow's outputs.

    Returns
    -------
    list of int
        One a beat.
    """
    words = []
    for beat in range(design.beats):
        word, at = 0, 0
        for lane in range(design.lanes):
            for values, width in stored.values():
                element = int(values[beat * design.lanes + lane])
                word |= (element & (1 << width) - 1) << at
                at += width
        words.append(word)
    return words
