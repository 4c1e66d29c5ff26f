"""What `prove.py` proves of the hardware, and how the hardware is broken for each."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import flow_monitors
import monitors
import variant_monitors
from flow_monitors import pipeline, reciprocal_root, rms_row, sequencer
from monitors import engine, ring

from hwnorm.hdl.engine import RowEngine
from hwnorm.hdl.pipeline import Pipeline
from hwnorm.hdl.sequencer import Sequencer, Turns
from hwnorm.hdl.store import Ring


@dataclass(frozen=True)
class Property:
    """A statement about a monitor.

    Members
    -------
    name : str
    monitor : callable
        Takes a `Bench`; returns the value that must never be high, or must be reached.
    bench : callable
        Makes the `Bench`.
    depth : int
        Cycles of bounded model checking, where that is asked for.
    engine : str
        ``pdr`` proves for all time, ``bmc`` up to `depth`; ``cover`` looks for a cycle.
    fast : bool
        Whether it is among those of ``prove.py --fast``.
    mutant : tuple
        Owner, method, text and replacement: a broken design that must fail.
    """

    name: str
    monitor: Callable
    bench: Callable
    mutant: tuple | None = None
    depth: int = 40
    engine: str = "pdr"
    fast: bool = True


_CREDIT = (RowEngine, "_account", "Mux(issue, credit - 1, credit + 1)")
_RETURN = (RowEngine, "_account", "self.o.valid & self.o.ready")

_ENGINE = (
    Property("o keeps valid and payload", monitors.output_holds, engine,
             (RowEngine, "_put", "o.valid.eq(fifo.r_rdy)", "o.valid.eq(fifo.r_rdy & ~valid)")),
    Property("i stalls only if o has stalled", monitors.input_never_stalls, engine,
             (RowEngine, "ring_beats", "- READ_CYCLES", "- READ_CYCLES - 1")),
    Property("beats: none lost or doubled", monitors.beats_conserved, engine,
             (*_CREDIT, "Mux(issue, credit, credit + 1)")),
    Property("beats: applied in a fixed time", monitors.beats_are_applied, engine,
             (RowEngine, "_put", "fifo.w_en.eq(valid)", "fifo.w_en.eq(valid & ~word[-1])")),
    Property("rows: none lost or doubled", monitors.rows_conserved, engine,
             (RowEngine, "_give", "pop.eq(issue & end)", "pop.eq(end)")),
    Property("rows: solved in a fixed time", monitors.rows_are_solved, engine,
             (RowEngine, "_take", "== 0, take & final & ~wrong", "== 0, take & final")),
    Property("rows: all out after a drain", monitors.rows_drain, engine,
             (*_RETURN, "issue & ~issue"), engine="bmc", depth=36),
    Property("rows: totals come a row apart", monitors.totals_are_apart, engine,
             (RowEngine, "_take", "== 0, take & final & ~wrong", "== 0, take & ~wrong")),
    Property("last ends each row", monitors.last_ends_a_row, engine,
             (RowEngine, "_give", "Cat(issue, end)", "Cat(issue, count == 0)")),
    Property("credits in range", monitors.credits_in_range, engine,
             (RowEngine, "_give", "queued & ~broke", "queued")),
    Property("credits conserved", monitors.credits_conserved, engine,
             (*_CREDIT, "Mux(issue, credit, credit + 1)")),
    Property("output FIFO never overflows", monitors.output_fifo_has_room, engine,
             (*_CREDIT, "Mux(issue, credit, credit + 1)")),
    Property("queue of rows never overflows", monitors.queue_has_room, engine,
             (RowEngine, "_sum_and_solve", ".least_beats + 1", ".least_beats - 2")),
    Property("ring is written only if ready", monitors.ring_has_room, engine,
             (RowEngine, "_take", "room | skip", "1")),
    Property("ring is read only if committed", monitors.ring_reads_committed, engine,
             (RowEngine, "_give", "queued & ~broke", "~broke")),
    Property("framing_error exact and sticky", monitors.framing_error_is_sticky, engine,
             (RowEngine, "_keep", "(flag & ~self.clear) | event", "event")),
    Property("reach: four rows at full rate", monitors.four_rows_come_out, engine,
             (*_RETURN, "issue & ~issue"), engine="cover", depth=20),
    Property("reach: full behind a stalled o", monitors.input_stalls, engine,
             (RowEngine, "_take", "room | skip", "1"), engine="cover"),
    Property("reach: a row behind a dropped one", monitors.comes_after_a_dropped_row, engine,
             (RowEngine, "_take", "take & wrong", "0"), engine="cover"),
)  # fmt: skip

_STREAMED = partial(engine, gamma="s2/0", store="stream")
_UNSTALLED = partial(engine, ready=False)

_VARIANTS = (
    Property("streams: taken in step", variant_monitors.streams_keep_step, _STREAMED,
             (RowEngine, "_join", "(own | misframed) & ~port.payload.last", "0")),
    Property("streams: never stuck", variant_monitors.streams_wait_for_each_other, _STREAMED,
             (RowEngine, "_join", "port.valid & ~s for", "port.valid & s for")),
    Property("streams: beats are conserved", monitors.beats_conserved, _STREAMED,
             (RowEngine, "_account", "Mux(issue, credit - 1, credit + 1)",
              "Mux(issue, credit, credit + 1)")),
    Property("no ready: ring never overflows", variant_monitors.ring_never_overflows, _UNSTALLED,
             (RowEngine, "ring_beats", "- READ_CYCLES", "- READ_CYCLES - 1")),
    Property("no ready: read only if committed", monitors.ring_reads_committed, _UNSTALLED,
             (RowEngine, "_hold", "(busy & ~pop) | solved", "busy | solved")),
    Property("no ready: a row goes before the next",
             variant_monitors.row_is_gone_before_the_next, _UNSTALLED,
             (RowEngine, "_hold", "(busy & ~pop) | solved", "busy | solved")),
)  # fmt: skip

_OTHERS = (
    Property("ring: used exact, at most depth", monitors.used_is_exact, ring,
             (Ring, "elaborate", "used == self.depth - 1", "used == self.depth")),
    Property("ring of 4: data of committed beats", monitors.ring_keeps_data, partial(ring, 4),
             (Ring, "elaborate", "base.eq(head_next)", "base.eq(head)")),
    Property("ring: data of committed beats", monitors.ring_keeps_data, ring,
             (Ring, "elaborate", "head.eq(base)", "head.eq(head_next)")),
    Property("root: RTL is the model", flow_monitors.equals_model,
             partial(pipeline, reciprocal_root, 0.1),
             (Pipeline, "_place", "constant_value(wire)", "constant_value(wire) ^ 1")),
    Property("root: RTL is its slow form", flow_monitors.equals_slow,
             partial(pipeline, reciprocal_root, 0.1),
             (Pipeline, "_at", "lane, copies]", "lane, max(copies - 1, 0)]")),
    Property("linear root: RTL is the model", flow_monitors.equals_model,
             partial(pipeline, partial(reciprocal_root, "linear"), 0.1),
             (Pipeline, "_place", "if self.schedule.registered(wire)", "if False")),
    Property("shared root: RTL is the model", flow_monitors.equals_model,
             partial(sequencer, partial(reciprocal_root, "quadratic"), 8.0, 9),
             (Turns, "multiply", "cycle + n, pair", "cycle + 1, pair")),
    Property("shared root: marks on time", flow_monitors.marks_are_on_time,
             partial(sequencer, partial(reciprocal_root, "quadratic"), 8.0, 9),
             (Sequencer, "elaborate", "self.latency", "self.latency - 1")),
    Property("shift register: RTL is the model", flow_monitors.equals_model,
             partial(sequencer, reciprocal_root, 8.0, 9, (1,)),
             (Sequencer, "_keep", "self.mark(m, cycle)", "self.mark(m, cycle + 1)")),
    Property("row: RTL is the model", flow_monitors.equals_model, partial(pipeline, rms_row, 0.1),
             (Pipeline, "_place", "constant_value(wire)", "constant_value(wire) ^ 1")),
    Property("row: RTL is its slow form", flow_monitors.equals_slow,
             partial(pipeline, rms_row, 0.1),
             (Pipeline, "_at", "lane, copies]", "lane, max(copies - 1, 0)]")),
)  # fmt: skip

#: Not always closed by pdr within minutes with rows of three beats.
_BOUNDED = ("rows: none lost or doubled", "ring is read only if committed")

#: Rows of other lengths: one beat, and a count that does not wrap by itself.
_LENGTHS = tuple(
    replace(
        prop,
        name=f"{prop.name} ({beats})",
        bench=partial(engine, beats),
        depth=24 if bounded else prop.depth + 5 * (beats - 2),
        engine="bmc" if bounded else prop.engine,
        fast=False,
    )
    for beats in (1, 3)
    for prop in _ENGINE
    for bounded in (beats == 3 and prop.name in _BOUNDED,)
    # Of rows of one beat there is nothing to say.
    if (beats, prop.monitor) != (1, monitors.totals_are_apart)
)

#: Every property, and a way to break the design that it must notice.
PROPERTIES = (*_ENGINE, *_VARIANTS, *_OTHERS, *_LENGTHS)
