"""What a design will take of a part and how fast it will be, before any vendor tool."""

from dataclasses import dataclass
from math import ceil, sqrt

from hwnorm.mapping import flow_amounts, shell_amounts
from hwnorm.norms.timing import accumulator_lag, accumulator_ns, accumulator_pieces
from hwnorm.ops import Cost
from hwnorm.targets import TARGETS

#: Levels of logic from the state of the shell to itself: ring, credit, queue.
SHELL_LEVELS = 4
#: And more where rows may have any length: their ends come out of a FIFO made of LUTs, are compared
#: with the beat, and go on to credit and queue.
ENDS_LEVELS = 5


@dataclass(frozen=True)
class Estimate:
    """Of one design on its target.

    Members
    -------
    target : str
    calibrated : str
        How far it is to be trusted: ``nextpnr``, ``scaled`` or ``none``; see docs/timing.md.
    fmax_mhz : float
    limited_by : str
        What the longest path goes through.
    lut, ff, dsp, bram : int
    """

    target: str
    calibrated: str
    fmax_mhz: float
    limited_by: str
    lut: int
    ff: int
    dsp: int
    bram: int


def estimate(design):
    """The `Estimate` of a design.

    Raises
    ------
    ValueError
        If the design has a model only.
    """
    design.require_hardware()
    target = TARGETS[design.target]
    cost = design_cost(design)
    amounts = lut_amounts(design, target)
    lut = sum(factor * amounts[kind] for kind, factor in target.luts_of)
    ns, where = longest_path(design, target)
    fixed, path, crowd = target.slack
    period = fixed + path * (ns + target.clock_ns) + crowd * sqrt(lut / 1000)
    ring_ns = target.clock_ns + ring_path_ns(design, target)
    if ring_ns > period:
        period, where = ring_ns, "row buffer of several blocks"
    memories = sum(m.blocks for m in memories_of(design, target))
    return Estimate(
        target=target.name,
        calibrated=target.calibrated,
        fmax_mhz=round(1000 / period, 1),
        limited_by=where,
        lut=round(lut),
        ff=flip_flops(design, target),
        dsp=cost.multipliers,
        bram=cost.blocks + memories,
    )


def instances(design):
    """The flows that are built, with how many times each.

    Returns
    -------
    list of (Flow, int)
    """
    flows = design.flows
    loads = flows.load.values() if design.store == "ram" else ()
    return [
        (flows.gather, design.lanes),
        *((flow, 1) for flow in flows.reduce.values()),
        (flows.solve, 1),
        (flows.apply, design.lanes),
        *((flow, design.lanes) for flow in loads),
    ]


def design_cost(design):
    """The sum of the ops' costs over all instances."""
    cost = Cost()
    for flow, count in instances(design):
        cost = cost + flow.cost_of(design.schedule(flow)) * count
    return cost


@dataclass(frozen=True)
class Store:
    """A memory of the shell.

    Members
    -------
    words, bits : int
    blocks : int
        Block RAMs; 0: it is made of LUTs, or of registers.
    registered : bool
        Whether its output has a register.
    constant : bool
        Whether it is never written.
    """

    words: int
    bits: int
    blocks: int
    registered: bool
    constant: bool


def memories_of(design, target):
    """The shell's memories: the ring, the parameters, the queue and the output FIFO."""
    found = []
    inside = design.latency - design.schedule(design.flows.apply).latency - 2
    kept = (design.x, *design.streamed.values())
    found.append(_store(target, inside, design.lanes * sum(f.width for f in kept), True))
    for flow in () if design.streamed else design.flows.load.values():
        bits = design.lanes * sum(wire.fmt.width for wire in flow.outputs.values())
        if bits:
            found.append(_store(target, design.beats, bits, True, design.store == "rom"))
    if not design.ready:
        return found
    scalars = sum(wire.fmt.width for wire in design.flows.solve.outputs.values())
    found.append(_store(target, inside // design.beats + 1, scalars, False))
    depth = design.schedule(design.flows.apply).latency + 4
    return [*found, _store(target, depth, design.lanes * design.y.width + 1, False)]


def _store(target, words, bits, registered, constant=False):
    """A memory, which can only be a block RAM if its read is registered."""
    block = target.rom_in_block if constant else target.ram_in_block
    blocks = target.blocks(words, bits) if registered and block(words, bits) else 0
    return Store(words, bits, blocks, registered, constant)


def lut_amounts(design, target):
    """What the LUTs are estimated from, by kind; `Target.luts_of` has factors of the kinds.

    Returns
    -------
    Counter
        See `hwnorm.mapping`.
    """
    memories = [(m.words, m.bits, m.blocks) for m in memories_of(design, target)]
    counter_bits = design.beats.bit_length() + design.latency.bit_length()
    found = shell_amounts(design.flows.totals.values(), memories, counter_bits, target)
    for flow, count in instances(design):
        for kind, amount in flow_amounts(flow, design.schedule(flow)).items():
            found[kind] += count * amount
    return found


def longest_path(design, target):
    """The longest path between registers without the clock's share, and where it is.

    Returns
    -------
    (float, str)
    """
    found = []
    for flow, _ in instances(design):
        schedule = design.schedule(flow)
        if schedule.slowest is not None:
            found.append((schedule.slowest_ns, f"{flow.name}.{flow.names[schedule.slowest]}"))
    for name, total in design.flows.totals.items():
        bits = ceil(total.width / accumulator_pieces(design, name))
        found.append((accumulator_ns(target, bits), f"accumulator of {name}"))
    levels = SHELL_LEVELS + (ENDS_LEVELS if design.dim_max else 0)
    found.append((levels * target.lut_ns, "row buffer"))
    return max(found, key=lambda item: item[0])


def ring_path_ns(design, target):
    """The path out of a row buffer of block RAMs above one another; 0: it is none such.

    Logic stands between the blocks and the register that would go into them, and what a block
    takes is the same in any design.
    """
    ring = memories_of(design, target)[0]
    if not ring.blocks or target.block_rows(ring.words, ring.bits) == 1:
        return 0.0
    return target.read_ns + 3 * target.lut_ns


def flip_flops(design, target):
    """Registers of the pipelines, the marks that go along, and the accumulators."""
    bits = 0
    for flow, count in instances(design):
        schedule = design.schedule(flow)
        last = {}
        for wire in flow.wires:
            for arg in wire.args:
                last[arg] = max(last.get(arg, 0), schedule.place.get(wire, 0))
        for wire in flow.outputs.values():
            last[wire] = schedule.latency
        for wire, end in last.items():
            if wire in schedule.available:
                bits += count * wire.fmt.width * schedule.copies(wire, end)
        if schedule.sharing:
            bits += sum(wire.fmt.width for wire in schedule.sharing.normalised)
        for wire, cuts in schedule.cuts.items():
            # A register that belongs to a block is inside it, where the family has such.
            inside = target.inside_ns is not None
            steps = schedule.steps(wire)
            held = wire.held_bits(steps, target) if any(cuts) else ()
            for cut, held_bits, step in zip(cuts, held, steps, strict=False):
                own = wire.fmt.width if step.registered and not inside else 0
                bits += count * cut * (held_bits + own)
            bits += count * wire.fmt.width * (schedule.registered(wire) and not inside)
    for memory in memories_of(design, target):
        if not memory.blocks:
            # Its output register is in the fabric, and without LUT RAM so are its words.
            words = 0 if target.lut_ram or memory.constant else memory.words
            bits += (memory.registered + words) * memory.bits
    lag = accumulator_lag(design)
    bits += sum(fmt.width for fmt in design.flows.totals.values()) * (1 + lag)
    inside = design.latency - design.beats
    counters = 3 * design.beats.bit_length() + 3 * design.latency.bit_length()
    return bits + 3 * inside + counters
