"""The streaming engine: rows are gathered while rows before them are applied."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from hwnorm.bits import extend
from hwnorm.hdl.pipeline import Pipeline
from hwnorm.hdl.reduce import Reducer
from hwnorm.hdl.sequencer import Sequencer
from hwnorm.hdl.store import READ_CYCLES, ParameterStore, Ring, pack_words, row_signature
from hwnorm.model import parameters_of, stored_of
from hwnorm.norms.timing import accumulator_lag, accumulator_pieces
from hwnorm.targets import TARGETS


def engine_signature(design):
    """The ports of a design's engine, as an Amaranth signature."""

    def row(fmt):
        return row_signature(fmt, design.lanes, design.ready)

    loads = {f"i_{name}": In(row(fmt)) for name, fmt in (design.loaded | design.streamed).items()}
    return wiring.Signature(
        {"i": In(row(design.x)), "o": Out(row(design.y))}
        | loads
        | {"clear": In(1), "framing_error": Out(1), "saturated": Out(1)}
    )


class RowEngine(wiring.Component):
    """A norm on streams: one beat a clock, row after row, whatever stalls there are.

    The contract is written down in ``docs/engine.md``.

    Parameters
    ----------
    design : hwnorm.Norm

    Members
    -------
    i : In(stream)
        Rows of x: ``payload.data[lane]`` and ``payload.last`` on a row's last beat.
    o : Out(stream)
        Rows of y likewise.
    i_gamma, i_beta : In(stream)
        Parameters of designs that store them in RAM, a row each; of those that stream them,
        the row that goes with each row of x.
    clear : In(1)
        Clears the two flags.
    framing_error : Out(1)
        Sticky: a `last` came early or late. Such a row is dropped whole. With ``dim_max`` it is
        never early.
    saturated : Out(1)
        Sticky: an output was limited.

    latency : int
        Cycles from a row's first input beat to its first output beat, without stalls.

    Raises
    ------
    ValueError
        If the design has a model only.
    """

    def __new__(cls, design):
        # Asked before there is an object, which Amaranth would report as unused.
        design.require_hardware()
        return super().__new__(cls)

    def __init__(self, design):
        self.design = design
        flows, lanes = design.flows, design.lanes
        clock = {"period_ns": design.period_ns, "target": TARGETS[design.target]}
        self.gather = Pipeline(flows.gather, lanes=lanes, **clock)
        self.solve = (
            Sequencer(flows.solve, **clock, **design.turns)
            if design.turns
            else Pipeline(flows.solve, **clock)
        )
        self.apply = Pipeline(flows.apply, lanes=lanes, shared=flows.solve.outputs, **clock)
        tree_cycles = max(design.schedule(flow).latency for flow in flows.reduce.values())
        self.reducers = {
            name: Reducer(
                flows.reduce[name],
                total,
                name in flows.maxima,
                latency=tree_cycles,
                pieces=accumulator_pieces(design, name),
                lag=accumulator_lag(design),
                **clock,
            )
            for name, total in flows.totals.items()
        }
        self.sum_cycles = self.gather.latency + tree_cycles
        self.latency = design.latency
        stored = {
            name: stored_of(design, {name: value})
            for name, value in parameters_of(design).items()
            if name not in design.streamed
        }
        self.stores = {
            name: ParameterStore(
                design,
                name,
                pack_words(
                    design,
                    {
                        key: (values, flows.load[name].outputs[key].fmt.width)
                        for key, values in fields.items()
                    },
                ),
            )
            for name, fields in stored.items()
            if fields
        }
        super().__init__(engine_signature(design))

    @property
    def ring_beats(self):
        """Beats of the row buffer: a row, and what arrives until its first beat is read.

        A beat fewer would cost a bubble a row (a test tries).
        """
        return self.latency - self.apply.latency - READ_CYCLES

    @property
    def output_beats(self):
        """Beats of the output FIFO: all that can be in flight while the rate is full."""
        return self.apply.latency + READ_CYCLES + 2

    def elaborate(self, platform):
        m = Module()
        words = [port.payload.data.as_value() for port in self._inputs]
        m.submodules.ring = ring = Ring(
            sum(map(len, words)), self.ring_beats, self.design.beats, self.design.ready
        )
        m.d.comb += ring.w_data.eq(Cat(*words))
        ends = None
        if self.design.dim_max is not None:
            # The last beat of each row that is to be given: many, if they are short.
            m.submodules.ends = ends = SyncFIFO(
                width=max(self.design.beats - 1, 1).bit_length(), depth=self.ring_beats + 1
            )
        beat, misframed = self._take(m, ring, ends)
        scalars, queued, pop = self._sum_and_solve(m, beat)
        self._give(m, ring, ends, scalars, queued, pop)
        self._flag(m, misframed)
        return m

    @property
    def _inputs(self):
        """The streams whose beats are kept until they are applied: x, and what comes with it."""
        return [self.i, *(getattr(self, f"i_{name}") for name in self.design.streamed)]

    def _take(self, m, ring, ends):
        """Accept beats, check `last`; the beat's marks go along with it to the sums."""
        beats = self.design.beats
        count, skip = Signal(range(max(beats, 2)), name="i_beat"), Signal(name="i_skip")
        # The final beat is known a cycle ahead, since much hangs on it.
        end = Signal(init=beats == 1, name="i_end")
        fire, last = self.i.valid & self.i.ready, self.i.payload.last
        take = Signal(name="i_take")
        misframed = Signal(name="i_misframed")
        room = self._join(m, ring.ready, skip, misframed)
        if ends is None:
            wrong, final = reduce(or_, [end != p.payload.last for p in self._inputs]), end
        else:
            # x says where a row ends; only that it must end there at the latest is known.
            others = [last != port.payload.last for port in self._inputs[1:]]
            wrong, final = reduce(or_, others, end & ~last), last
        if self.design.ready:
            # Beats of a row that has lost its frame are thrown away, so they always fit.
            m.d.comb += self.i.ready.eq(room | skip)
        m.d.comb += [
            take.eq(fire & ~skip),
            misframed.eq(take & wrong),
            ring.write.eq(take),
            ring.commit.eq(take & final & ~wrong),
            ring.drop.eq(misframed),
        ]
        with m.If(take):
            m.d.sync += count.eq(Mux(final | wrong, 0, count + 1))
            if beats > 1:
                m.d.sync += end.eq(~(final | wrong) & (count == beats - 2))
        with m.If(fire):
            m.d.sync += skip.eq((skip | wrong) & ~last)
        marks = Signal(3, name="i_marks")
        m.d.comb += marks.eq(Cat(take, count == 0, take & final & ~wrong))
        if ends is not None:
            m.d.comb += [ends.w_data.eq(count), ends.w_en.eq(ring.commit)]
        return marks, misframed

    def _join(self, m, room, skip, misframed):
        """Take beats of streamed parameters together with those of x.

        Each stream finds back into its frame by itself: behind a row that is dropped, it throws
        away what it has up to its `last`, while the others wait for it.

        Returns
        -------
        Value
            Whether a beat of x can be taken.
        """
        _, *ports = self._inputs
        skips = [Signal(name=f"{name}_skip") for name in self.design.streamed]
        there = [port.valid & ~s for port, s in zip(ports, skips, strict=True)]
        for n, (port, own) in enumerate(zip(ports, skips, strict=True)):
            others = [self.i.valid & ~skip, *there[:n], *there[n + 1 :]]
            m.d.comb += port.ready.eq((room & Cat(*others).all()) | own)
            with m.If(port.valid & port.ready):
                m.d.sync += own.eq((own | misframed) & ~port.payload.last)
        return room & Cat(*there).all() if ports else room

    def _sum_and_solve(self, m, marks):
        """From beats to the queue of solved rows."""
        m.submodules.gather = self.gather
        m.submodules.solver = self.solve
        for lane in range(self.design.lanes):
            m.d.comb += self.gather.input("x", lane).eq(self.i.payload.data[lane])
        accept, first, done = self._delay(m, marks, self.sum_cycles, "marks")
        summed = self._delay(m, done, 1 + accumulator_lag(self.design), "summed")
        if isinstance(self.solve, Sequencer):
            # Totals come a row apart, or more, so that no row is asked for in another's turns.
            m.d.comb += self.solve.mark_in.eq(summed)
            solved = self.solve.mark_out
        else:
            solved = self._delay(m, summed, self.solve.latency, "solved")
        for name, reducer in self.reducers.items():
            m.submodules[f"reduce_{name}"] = reducer
            m.d.comb += [
                reducer.accept.eq(accept),
                reducer.first.eq(first),
                self.solve.input(name).eq(reducer.total),
            ]
            for lane in range(self.design.lanes):
                m.d.comb += getattr(reducer, f"lane{lane}").eq(self.gather.output(name, lane))
        outputs = [self.solve.output(name) for name in self.solve.flow.outputs]
        if not self.design.ready:
            return self._hold(m, Cat(*outputs), solved)
        rows = self.ring_beats // self.design.least_beats + 1
        m.submodules.queue = queue = SyncFIFO(width=sum(map(len, outputs)), depth=rows)
        m.d.comb += [queue.w_data.eq(Cat(*outputs)), queue.w_en.eq(solved)]
        return queue.r_data, queue.r_rdy, queue.r_en

    def _hold(self, m, scalars, solved):
        """A solved row in place of the queue: it is applied before another can be there."""
        held = Signal(len(scalars), name="held", reset_less=True)
        busy, pop = Signal(name="held_row"), Signal(name="held_pop")
        m.d.sync += busy.eq((busy & ~pop) | solved)
        with m.If(solved):
            m.d.sync += held.eq(scalars)
        return held, busy, pop

    def _give(self, m, ring, ends, scalars, queued, pop):
        """Read solved rows, apply, and put them out while there is room for all in flight."""
        lanes, beats = self.design.lanes, self.design.beats
        m.submodules.apply = self.apply
        broke = Signal(name="o_broke")  # credit == 0, known a cycle ahead
        count, issue, end = (
            Signal(range(max(beats, 2)), name="o_beat"),
            Signal(name="o_issue"),
            Signal(name="o_end"),
        )
        m.d.comb += [
            issue.eq(queued & ~broke),
            end.eq(count == (beats - 1 if ends is None else ends.r_data)),
            ring.read.eq(issue),
            pop.eq(issue & end),
        ]
        if ends is not None:
            m.d.comb += ends.r_en.eq(pop)
        if self.design.ready:
            self._account(m, issue, broke)
        with m.If(issue):
            m.d.sync += count.eq(Mux(end, 0, count + 1))
        held = self._delay(m, scalars, READ_CYCLES, "scalars", reset_less=True)
        at = 0
        for name in self.solve.flow.outputs:
            port = self.apply.input(name)
            m.d.comb += port.eq(held[at : at + len(port)])
            at += len(port)
        at = 0
        for name in ("x", *self.design.streamed):
            for lane in range(lanes):
                port = self.apply.input(name, lane)
                m.d.comb += port.eq(ring.r_data[at : at + len(port)])
                at += len(port)
        for name, store in self.stores.items():
            m.submodules[f"store_{name}"] = store
            m.d.comb += store.beat.eq(count)
            for key in store.fields:
                for lane in range(lanes):
                    m.d.comb += self.apply.input(key, lane).eq(store.output(key, lane))
        mark = Signal(2, name="o_mark")
        m.d.comb += mark.eq(Cat(issue, end))
        valid, last = self._delay(m, mark, READ_CYCLES + self.apply.latency, "o_mark")
        # A design whose rows cannot fill the format has a narrower y.
        outputs = [
            extend(self.apply.output("y", lane), self.design.y.width) for lane in range(lanes)
        ]
        self._put(m, valid, Cat(*outputs, last))
        limits = [self.apply.output("saturated", lane) for lane in range(lanes)]
        limited = Signal(name="limited")
        m.d.comb += limited.eq(valid & Cat(*limits).any())
        self._keep(m, self.saturated, limited)

    def _account(self, m, issue, broke):
        """Count the places in the output FIFO that no beat on its way there needs."""
        credit = Signal(range(self.output_beats + 1), init=self.output_beats, name="o_credit")
        left = self.o.valid & self.o.ready
        # Both changes are ready before it is known which.
        m.d.sync += [
            credit.eq(
                Mux(left == issue, credit, Mux(issue, credit - 1, credit + 1)[: len(credit)])
            ),
            broke.eq(~left & (broke | (issue & (credit == 1)))),
        ]

    def _put(self, m, valid, word):
        """Beats to the output, through a FIFO if the sink may stall, else through a register."""
        if not self.design.ready:
            m.d.comb += self.o.valid.eq(self._delay(m, valid, 1, "o_valid"))
            m.d.comb += self.o.payload.eq(self._delay(m, word, 1, "o_word", reset_less=True))
            return
        m.submodules.fifo = fifo = SyncFIFO(width=len(word), depth=self.output_beats)
        m.d.comb += [
            fifo.w_data.eq(word),
            fifo.w_en.eq(valid),
            self.o.payload.eq(fifo.r_data),
            self.o.valid.eq(fifo.r_rdy),
            fifo.r_en.eq(self.o.ready),
        ]

    def _flag(self, m, misframed):
        errors = [misframed]
        for name, store in self.stores.items():
            errors.append(store.framing_error)
            if store.writable:
                wiring.connect(m, wiring.flipped(getattr(self, f"i_{name}")), store.i)
        self._keep(m, self.framing_error, Cat(*errors).any())

    def _keep(self, m, flag, event):
        """A sticky flag; an event in the cycle of a clear is not lost."""
        m.d.sync += flag.eq((flag & ~self.clear) | event)

    @staticmethod
    def _delay(m, value, cycles, name, reset_less=False):
        for n in range(cycles):
            later = Signal(len(value), name=f"{name}_c{n + 1}", reset_less=reset_less)
            m.d.sync += later.eq(value)
            value = later
        return value
