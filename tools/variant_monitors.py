"""Monitors as those in `monitors.py`, of engines with other ports."""

from amaranth.hdl import Mux, Signal


def streams_keep_step(bench):
    """Beats are only taken together if as many rows have ended on either stream."""
    x, gamma = bench.dut.i, bench.dut.i_gamma
    ends = [s.valid & s.ready & s.payload.last for s in (x, gamma)]
    ahead = Signal(4)
    bench.m.d.sync += ahead.eq(ahead + ends[0] - ends[1])
    return bench.part("ring").write & (ahead != 0)


def streams_wait_for_each_other(bench):
    """With a ready sink and beats on both, both are taken, or one is thrown away by itself."""
    x, gamma = bench.dut.i, bench.dut.i_gamma
    good = x.ready & gamma.ready
    for port, skip in ((x, "i_skip"), (gamma, "gamma_skip")):
        good = good | (port.ready & bench.inside(skip))
    return bench.always(bench.dut.o.ready) & x.valid & gamma.valid & ~good


def ring_never_overflows(bench):
    """Without `ready`, no beat is written to a ring that is full."""
    ring = bench.part("ring")
    pending = Signal(range(bench.beats + 1))
    with bench.m.If(ring.write):
        bench.m.d.sync += pending.eq(Mux(ring.commit | ring.drop, 0, pending + 1))
    return ring.write & (bench.whole + pending >= bench.dut.ring_beats)


def row_is_gone_before_the_next(bench):
    """Without `ready`, a row is not solved while beats of the last one are still to be read."""
    dut = bench.dut
    solved = bench.past(bench.commit, dut.sum_cycles + 1 + dut.solve.latency)
    return solved & bench.inside("held_row") & ~bench.inside("held_pop")
