"""For `properties.py`: small instances of the hardware, and monitors that watch them.

A monitor is a module with free inputs and one output, which is high where the property is
broken (or, of a cover, where it is reached).
"""

from dataclasses import dataclass, field

from amaranth.hdl import Cat, ClockDomain, Fragment, Module, Mux, Signal

from hwnorm.hdl.engine import RowEngine
from hwnorm.hdl.store import READ_CYCLES, Ring
from hwnorm.norms import RMSNorm, Rsqrt


@dataclass
class Bench:
    """A device under test, its free inputs, and a module for the monitor.

    There is no reset: everything starts from its initial value, once.
    """

    dut: object
    m: Module = field(default_factory=Module)
    inputs: list = field(default_factory=list)

    def __post_init__(self):
        self.clock = ClockDomain("sync", reset_less=True)
        self.m.domains += self.clock
        self.fragment = Fragment.get(self.dut, None)
        self.m.submodules.dut = self.fragment

    def free(self, port):
        """Let the solver choose a port of the device."""
        signal = Signal(len(port), name=f"free{len(self.inputs)}")
        self.inputs.append(signal)
        self.m.d.comb += port.eq(signal)
        return signal

    def choice(self):
        """A bit that the solver chooses in every cycle."""
        signal = Signal(name=f"free{len(self.inputs)}")
        self.inputs.append(signal)
        return signal

    def past(self, value, cycles=1):
        """A value some cycles ago; zero before the start."""
        for _ in range(cycles):
            later = Signal(len(value), name="past")
            self.m.d.sync += later.eq(value)
            value = later
        return value

    def always(self, condition):
        """High as long as the condition has held, this cycle included: an assumption."""
        broken = Signal(name="assumption_broken")
        with self.m.If(~condition):
            self.m.d.sync += broken.eq(1)
        return condition & ~broken

    def sticky(self, event):
        """High behind an event."""
        seen = Signal(name="seen")
        with self.m.If(event):
            self.m.d.sync += seen.eq(1)
        return seen

    def counter(self, up, down, most, step=1):
        """Counts `step` up and one down; wraps somewhere above `most`."""
        count = Signal(range(most + 1), name="count")
        self.m.d.sync += count.eq(count + Mux(up, step, 0) - down)
        return count

    def part(self, name):
        """A component inside the device."""
        return next(sub for sub, label, _ in self.fragment.subfragments if label == name).origins[0]

    def inside(self, name):
        """A signal that the device itself drives, by its name."""
        for statements in self.fragment.statements.values():
            for statement in statements:
                for signal in statement._lhs_signals():
                    if signal.name == name:
                        return signal
        raise ValueError(f"{name} must be a signal that the device drives, got none")


# -- the engine ----------------------------------------------------------------------------


def engine(beats=2, **fields):
    """The engine with any stream of beats, right or wrong, any stalls and any clears.

    `fields` are of the norm.

    Its formats are as narrow as there are: the shell is the same at every width.
    """
    root = Rsqrt(method="direct", segments=2)
    fields = {"eps": 0.5, "x": "s2/0", "y": "s2/0", "period_ns": 20.0} | fields
    norm = RMSNorm(dim=2 * beats, lanes=2, rsqrt=root, **fields)
    bench = Bench(RowEngine(norm))
    bench.beats = beats
    dut = bench.dut
    for port in (dut.i.payload.as_value(), dut.i.valid, dut.clear):
        bench.free(port)
    if norm.ready:
        bench.free(dut.o.ready)
    for name in norm.streamed:
        port = getattr(dut, f"i_{name}")
        bench.free(port.payload.as_value())
        bench.free(port.valid)
    bench.took = dut.i.valid & dut.i.ready
    bench.gave = dut.o.valid & dut.o.ready
    bench.commit = bench.part("ring").commit
    # Beats of whole rows that are inside: of a row, all at once with its last one.
    bench.most = most = 2 * (dut.ring_beats + dut.output_beats)
    bench.owed = bench.counter(bench.commit, bench.gave, most, beats)
    bench.whole = bench.counter(bench.commit, bench.part("ring").read, most, beats)
    if norm.ready:
        bench.way = bench.counter(bench.inside("o_issue"), bench.part("fifo").w_en, most)
    return bench


def output_holds(bench):
    """`valid` and the payload stay until `ready`."""
    o = bench.dut.o
    waits = bench.past(o.valid & ~o.ready)
    payload = o.payload.as_value()
    return waits & (~o.valid | (payload != bench.past(payload)))


def input_never_stalls(bench):
    """With the sink never stalling, the input never stalls."""
    dut = bench.dut
    return bench.always(dut.o.ready) & ~dut.i.ready


def beats_conserved(bench):
    """Each beat of a whole row is in the ring, on its way or in the FIFO, and comes out once."""
    fifo = bench.part("fifo")
    places = bench.whole + bench.way + fifo.level
    # The counters wrap; they are wide enough for twice what the engine can hold.
    return (bench.owed - places)[: len(bench.owed)] != 0


def rows_conserved(bench):
    """The beats in the ring are those of the rows that are being solved or are queued."""
    queue = bench.part("queue")
    solving = bench.counter(bench.commit, queue.w_en, bench.most)
    beats = (solving + queue.level) * bench.beats
    return (bench.whole + bench.inside("o_beat") - beats)[: len(bench.whole)] != 0


def totals_are_apart(bench):
    """The totals of two rows are `beats` cycles apart or more, as shared hardware needs it."""
    mark = bench.inside("summed_c1")
    return mark & Cat(*(bench.past(mark, n) for n in range(1, bench.beats))).any()


def rows_are_solved(bench):
    """A whole row is queued a fixed time behind its last beat, and nothing else is."""
    dut = bench.dut
    cycles = dut.sum_cycles + 1 + dut.solve.latency
    return bench.part("queue").w_en != bench.past(bench.commit, cycles)


def beats_are_applied(bench):
    """A beat is in the FIFO a fixed time behind its reading, and nothing else is."""
    cycles = READ_CYCLES + bench.dut.apply.latency
    return bench.part("fifo").w_en != bench.past(bench.inside("o_issue"), cycles)


def rows_drain(bench):
    """With a ready sink and no new row, all rows are out after a drain time."""
    dut = bench.dut
    drain = dut.latency + dut.ring_beats + dut.output_beats
    quiet = Signal(range(drain + 1))
    with bench.m.If(bench.commit | ~dut.o.ready):
        bench.m.d.sync += quiet.eq(0)
    with bench.m.Elif(quiet != drain):
        bench.m.d.sync += quiet.eq(quiet + 1)
    return (quiet == drain) & (bench.owed != 0)


def last_ends_a_row(bench):
    """`last` is on every final beat, and on no other."""
    count = Signal(range(max(bench.beats, 2)))
    end = count == bench.beats - 1
    with bench.m.If(bench.gave):
        bench.m.d.sync += count.eq(Mux(end, 0, count + 1))
    return bench.dut.o.valid & (bench.dut.o.payload.last != end)


def credits_in_range(bench):
    """Credits stay in 0..`output_beats`, and none is used that is not there."""
    credit = bench.inside("o_credit")
    none_left = bench.inside("o_issue") & (credit == 0)
    return (credit > bench.dut.output_beats) | none_left


def credits_conserved(bench):
    """Credits, beats on the way and beats in the FIFO are together `output_beats`."""
    level = bench.part("fifo").level
    return bench.inside("o_credit") + bench.way + level != bench.dut.output_beats


def output_fifo_has_room(bench):
    """A result is never written to a full output FIFO."""
    return bench.part("fifo").w_en & (bench.part("fifo").level == bench.dut.output_beats)


def queue_has_room(bench):
    """A solved row is never written to a full queue."""
    return bench.part("queue").w_en & ~bench.part("queue").w_rdy


def ring_has_room(bench):
    """The engine writes the ring only while it is ready."""
    return bench.part("ring").write & ~bench.part("ring").ready


def ring_reads_committed(bench):
    """The engine reads the ring only where a whole row is."""
    read = bench.part("ring").read
    whole = bench.counter(bench.commit, read, 2 * bench.dut.ring_beats, bench.beats)
    return read & (whole == 0)


def framing_error_is_sticky(bench):
    """`framing_error` is high behind a broken `last`, until a clear; and at no other time."""
    count, skip = Signal(range(max(bench.beats, 2))), Signal()
    dut = bench.dut
    end, last = count == bench.beats - 1, dut.i.payload.last
    wrong = bench.took & ~skip & (end != last)
    with bench.m.If(bench.took):
        with bench.m.If(skip):
            bench.m.d.sync += skip.eq(~last)
        with bench.m.Elif(last | end):
            bench.m.d.sync += [count.eq(0), skip.eq(end & ~last)]
        with bench.m.Else():
            bench.m.d.sync += count.eq(count + 1)
    flag = Signal()
    with bench.m.If(wrong):
        bench.m.d.sync += flag.eq(1)
    with bench.m.Elif(dut.clear):
        bench.m.d.sync += flag.eq(0)
    return dut.framing_error != flag


def four_rows_come_out(bench):
    """Four rows come out; the depth leaves no time for a bubble."""
    return bench.counter(bench.gave, 0, 4 * bench.beats) == 4 * bench.beats


def input_stalls(bench):
    """The ring fills up behind a sink that does not take anything."""
    return ~bench.dut.i.ready & (bench.inside("o_credit") == 0)


def comes_after_a_dropped_row(bench):
    """A row comes out after another one was dropped."""
    return bench.sticky(bench.inside("i_misframed")) & bench.gave


# -- the ring ------------------------------------------------------------------------------


def ring(depth=5, beats=2):
    """A ring that is used as its contract says: any writes, rows, drops and reads."""
    bench = Bench(Ring(1, depth, beats))
    dut, m = bench.dut, bench.m
    bench.free(dut.w_data)
    write, read, drop = bench.choice(), bench.choice(), bench.choice()
    pending, whole = Signal(range(beats + 1)), Signal(range(2 * depth + 1))
    end = pending == beats - 1
    m.d.comb += [
        dut.write.eq(write & dut.ready),
        dut.drop.eq(dut.write & drop),
        dut.commit.eq(dut.write & end & ~drop),
        dut.read.eq(read & (whole != 0)),
    ]
    with m.If(dut.write):
        m.d.sync += pending.eq(Mux(end | drop, 0, pending + 1))
    m.d.sync += whole.eq(whole + Mux(dut.commit, beats, 0) - dut.read)
    bench.pending, bench.whole = pending, whole
    return bench


def used_is_exact(bench):
    """`used` is the beats of whole rows and of the open one, and at most `depth`."""
    used = bench.inside("used")
    return (used != bench.whole + bench.pending) | (used > bench.dut.depth)


def ring_keeps_data(bench):
    """Any beat of a row that is committed is read once, in its turn, with its data."""
    dut, m = bench.dut, bench.m
    # The solver picks one beat to watch; `ahead` counts those that are read before it.
    held, kept, value = Signal(), Signal(), Signal()
    ahead = Signal(range(2 * dut.depth))
    pick = bench.choice() & dut.write & ~dut.drop & ~held
    with m.If(pick):
        m.d.sync += [held.eq(1), value.eq(dut.w_data), kept.eq(dut.commit)]
        m.d.sync += ahead.eq(bench.whole + bench.pending - dut.read)
    with m.Elif(held):
        m.d.sync += ahead.eq(ahead - dut.read)
        with m.If(dut.commit):
            m.d.sync += kept.eq(1)
        with m.If(dut.drop & ~kept):
            m.d.sync += held.eq(0)
    turn = held & kept & dut.read & (ahead == 0)
    with m.If(turn):
        m.d.sync += held.eq(0)
    return bench.past(turn, READ_CYCLES) & (dut.r_data != bench.past(value, READ_CYCLES))
