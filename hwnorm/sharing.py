"""How a flow whose inputs come only now and then shares its hardware over cycles.

A pipeline could take new inputs every clock. A flow that is asked once a row need not: its
products take turns at one multiplier block, tables with one index lie in one memory, and a word is
normalised by a shift register. `Sharing` says for `Flow.schedule` when that is;
``hwnorm.hdl.sequencer`` builds it.
"""

from math import ceil, log2

from hwnorm.ops import Cost, Input, Lookup, Normalise, Step

#: Strides of the shift register that normalises, the smallest hardware first; none: as a pipeline.
STRIDES = ((1,), (2, 1), (4, 1), (8, 1), (8, 2, 1), ())


class UnshareableError(ValueError):
    """Inputs come too fast for the one block; says how much time there is."""


class Sharing:
    """The turns of one flow.

    Parameters
    ----------
    wires : list of Wire
        Of the flow, operands first.
    target : Target
    budget_ns : float
        What a cycle holds.
    interval : int
        Cycles from inputs to the next ones, at least.
    strides : tuple of int
        Of the shift register; empty: a barrel shifter.

    Members
    -------
    products : dict of Wire to int
        How often a wire uses the multiplier block.
    tables : dict of Wire to list of Lookup
        The look-ups that have a memory in common, for each of them.
    normalised : dict of Wire to Normalise
        A wire that a shift register makes, to the one that has it: itself, or its zeros.
    split : bool
        Whether the block has registers at its inputs, behind the multiplexers.
    slots : dict of Wire to int
        The cycle in which a wire's first product is asked for; filled by `place`.
    """

    def __init__(self, wires, target, budget_ns, interval, strides):
        self.target, self.budget_ns = target, budget_ns
        self.interval, self.strides = interval, strides
        self.products, live = {}, set()
        for wire in wires:
            # What is made of constants alone is known, and needs no block.
            if isinstance(wire, Input) or any(arg in live for arg in wire.args):
                live.add(wire)
                if uses := wire.products(target):
                    self.products[wire] = uses
        by_index = {}
        for wire in wires:
            if isinstance(wire, Lookup):
                by_index.setdefault(wire.args[0], []).append(wire)
        self.tables = {wire: group for group in by_index.values() for wire in group}
        self.normalised = {}
        for wire in wires if strides else ():
            zeros = wire.args[1] if isinstance(wire, Normalise) else None
            # One register is for one word.
            if zeros is None or zeros in self.normalised or not self._has_time(wire):
                continue
            self.normalised |= {wire: wire, zeros: wire}
        uses = sum(self.products.values())
        self.mux_ns = target.lut_ns * ceil(log2(uses)) if uses else 0.0
        whole = self.mux_ns + target.multiplier_ns
        self.split = whole > budget_ns and target.inside_ns is not None
        self.slots = {}

    def _has_time(self, wire):
        turns = wire.turns(self.strides)
        # The top bits decide what each bit of the register takes next.
        return (
            turns is not None
            and turns < self.interval
            and 2 * self.target.mux_ns + self.target.lut_ns <= self.budget_ns
        )

    @property
    def block_cycles(self):
        """From a product's factors to the product: its registers."""
        return 2 if self.split else 1

    def steps(self, wire):
        """A wire's steps, those that `place` has placed left out."""
        if wire in self.products:
            return wire.shared_steps(self.target)
        if wire in self.normalised:
            return (Step(0.0),)
        if wire in self.tables:
            return wire.steps_in(self.target, self.budget_ns, *_shape(self.tables[wire]))
        return wire.steps(self.target, self.budget_ns)

    def place(self, schedule, wire, cycle, ns):
        """Give a wire its turns.

        Parameters
        ----------
        schedule : hwnorm.flow.Schedule
            Of the wires before it.
        cycle, ns : int, float
            When its operands are there.

        Returns
        -------
        (int, int, float, float)
            The last cycle in which its operands are taken; when its `steps` begin; and the
            longest path on the way there.
        """
        if wire in self.normalised:
            one = self.normalised[wire]
            if wire is one:
                zeros = wire.args[1]
                return schedule.place[zeros], schedule.available[zeros], 0.0, 0.0
            if ns and ns + self.target.lut_ns > self.budget_ns:
                cycle, ns = cycle + 1, 0.0
            schedule.spans[wire] = schedule.spans[one] = self.interval - one.turns(self.strides)
            return cycle, cycle + 1 + one.turns(self.strides), 0.0, ns + self.target.lut_ns
        if wire in self.products:
            return self._place_products(schedule, wire, cycle, ns)
        return None

    def _place_products(self, schedule, wire, cycle, ns):
        way = self.mux_ns + (0.0 if self.split else self.target.multiplier_ns)
        count = self.products[wire]
        if ns and ns + way > self.budget_ns:
            cycle, ns = cycle + 1, 0.0
        taken = {
            slot + n for other, slot in self.slots.items() for n in range(self.products[other])
        }
        for start in range(cycle, cycle + len(taken) + self.interval + 1):
            turns = set(range(start, start + count))
            every = taken | turns
            if (
                not taken & turns
                # Rows come apart by `interval` or more, so that others' turns are over.
                and max(every) - min(every) < self.interval
                and all(
                    schedule.copies(arg, start) == schedule.copies(arg, start + count - 1)
                    for arg in wire.args
                )
            ):
                break
        else:
            raise UnshareableError(
                f"a shared multiplier must have time for {sum(self.products.values())} products, "
                f"got inputs every {self.interval} cycles"
            )
        self.slots[wire] = start
        path = way + (ns if start == cycle else 0.0)
        if self.split:
            path = max(path, self.target.inside_ns)
        return start + count - 1, start + count - 1 + self.block_cycles, 0.0, path

    def takes(self, wire):
        """Whether a wire's hardware is shared."""
        return wire in self.products or wire in self.normalised or wire in self.tables

    @property
    def cost(self):
        """Resources of what is shared, and of the steps behind it: a `Cost`."""
        total = Cost()
        for wire, uses in self.products.items():
            steps = len(wire.shared_steps(self.target)) - 1
            total = total + Cost(adder_bits=steps * wire.fmt.width, luts=36 * uses)
        more = 2 + 1.5 * (len(self.strides) - 1)
        for wire, one in self.normalised.items():
            width = wire.fmt.width
            own = Cost(luts=round(width * more)) if wire is one else Cost(4, adder_bits=width)
            total = total + own
        for wire, group in self.tables.items():
            total = total + (self._memory(group) if wire is group[0] else Cost())
        if self.products:
            uses = sum(self.products.values())
            # A block that nobody else uses has no multiplexers.
            total = total + Cost(multipliers=1, luts=-36 * uses if uses == 1 else 0)
        return total

    def _memory(self, group):
        words, width = _shape(group)
        if self.target.rom_in_block(words, width):
            return Cost(rom_bits=words * width, blocks=self.target.blocks(words, width))
        return sum((wire.cost_on(self.target) for wire in group), Cost())


def _shape(group):
    """Words and bits of the memory that holds the columns of several look-ups."""
    depth = max(len(wire.column.values) for wire in group)
    return depth, sum(wire.fmt.width for wire in group)
