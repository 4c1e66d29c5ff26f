"""Products made of multiplier blocks, and of adders where a factor is a little too wide."""

from dataclasses import dataclass
from math import ceil, log2

from amaranth.hdl import Mux, Value

from hwnorm import bits
from hwnorm.ops.base import Cost, Step

#: The part of a factor that exceeds a block is multiplied by adders if it has at most so many bits.
ROW_BITS = 8


@dataclass(frozen=True)
class Tiling:
    """The parts of one product.

    Members
    -------
    widths : (int, int)
        Of the factors.
    sizes : (int, int)
        Bits of a block's unsigned limb, for each factor.
    pairs : tuple of (int, int)
        The limbs that a block multiplies. Of a square, two products of unlike limbs are one.
    square : bool
    rows : int
        Bits of the part of one factor that is multiplied by adders, a row a bit; 0: none.
    first : bool
        Whether that factor is the first.
    """

    widths: tuple
    sizes: tuple
    pairs: tuple
    square: bool
    rows: int = 0
    first: bool = True

    @classmethod
    def of(cls, a, b, target, alone=True):
        """The tiling of two wires, with as few blocks as possible.

        Adders for what a block leaves over pay where the block is theirs `alone`: a shared one
        multiplies once more for nothing.
        """
        square, widths = a is b, (a.fmt.width, b.fmt.width)
        options = [(min(target.tile),) * 2] if square else [target.tile, target.tile[::-1]]
        sizes = min(options, key=lambda s: limb_count(a.fmt, s[0]) * limb_count(b.fmt, s[1]))
        counts = limb_count(a.fmt, sizes[0]), limb_count(b.fmt, sizes[1])
        sizes = sizes[0] - 1, sizes[1] - 1
        for n in (0, 1):
            rows = widths[n] - sizes[n]
            slim = (counts[n], counts[1 - n]) == ((2, 2) if square else (2, 1))
            if alone and slim and rows <= ROW_BITS:
                return cls(widths, sizes, ((0, 0),), square, rows, n == 0)
        pairs = [(i, j) for i in range(counts[0]) for j in range(i if square else 0, counts[1])]
        return cls(widths, sizes, tuple(pairs), square)

    @property
    def levels(self):
        """Levels of the tree that adds the products and the rows."""
        return ceil(log2(len(self.pairs) + ceil(self.rows / 2)))

    @property
    def cost(self):
        """Blocks, and the adders around them."""
        factor = self.widths[self.first] + 2 if self.rows else sum(self.widths)
        adders = (len(self.pairs) + self.rows - 1) * factor
        ahead = self.widths[0] if self.rows and self.square else 0
        return Cost(luts=self.rows * factor, multipliers=len(self.pairs), adder_bits=adders + ahead)

    def held_bits(self, count):
        """See `Wire.held_bits`, of so many steps up to the product."""
        factor = self.widths[self.first] + 2 if self.rows else 0
        pairs = ceil(self.rows / 2)
        ahead = [self.rows + factor] if count - self.levels == 2 else []
        terms, width = (
            len(self.pairs) + pairs,
            self.rows + factor if self.rows else sum(self.widths),
        )
        sums = [ceil(terms / (1 << n)) * width for n in range(1, self.levels)]
        return (*ahead, *([pairs * factor] if self.levels else []), *sums)

    def _split(self, target, budget_ns):
        """Whether the blocks' input registers are used: where the way to them takes too long."""
        return target.multiplier_ns > budget_ns and target.inside_ns is not None

    def steps(self, target, budget_ns):
        """See `Wire.steps`: registers behind the blocks, then the sum of their products."""
        # What the rows of a square are made of is itself a sum.
        ahead = target.add_ns(self.widths[0] + 1) if self.rows and self.square else 0.0
        row = target.add_ns(max(self.widths) + 2) if self.rows else 0.0
        if self._split(target, budget_ns):
            block = (
                Step(max(target.lut_ns, ahead), registered=True),
                Step(max(target.inside_ns, row), registered=True),
            )
        else:
            block = (Step(max(target.multiplier_ns, ahead + row), registered=True),)
        return (*block, *(Step(target.add_ns(sum(self.widths))),) * self.levels)

    def shared_steps(self, target):
        """The steps behind the products, where they come out of a block that others use too."""
        return (Step(0.0), *(Step(target.add_ns(sum(self.widths))),) * self.levels)

    def rtl(self, a, b, cut, held=(), after=0):
        """The hardware, up to the sum of the products.

        Parameters
        ----------
        a, b : amaranth Value
        cut : Cut
        held : sequence of amaranth Value
            Values that are to arrive together with the product.
        after : int
            Steps that the op has behind the product.

        Returns
        -------
        product, list of held
        """
        split = cut.pieces - self.levels - after == 2
        if self.rows:
            terms, held = self._with_rows(a, b, cut, held, split)
        else:
            if split:
                a, *rest = cut(a, *(() if self.square else (b,)), *held)
                b, held = (a, rest) if self.square else (rest[0], rest[1:])
            one, other = bits.limbs(a, self.sizes[0]), bits.limbs(b, self.sizes[1])
            products = cut.multiply([(one[i], other[j]) for i, j in self.pairs])
            terms = [
                product << i * self.sizes[0] + j * self.sizes[1] + (self.square and i != j)
                for product, (i, j) in zip(products, self.pairs, strict=True)
            ]
        if self.levels:
            moved = cut(*terms, *held)
            terms, held = moved[: len(terms)], moved[len(terms) :]
        return bits.sum_in_levels(terms, cut, held)

    def _with_rows(self, a, b, cut, held, split):
        """A block for the low limb, and rows for the bits above it.

        With ``a = high * 2**n + low``, ``a * b = low * b + high * b * 2**n`` and
        ``a**2 = low**2 + high * (a + low) * 2**n``.
        """
        size = self.sizes[0 if self.first else 1]
        wide, factor = (a, b) if self.first else (b, a)
        low, high = wide[:size], Value.cast(wide)[size:]
        high = high.as_signed() if wide.shape().signed else high
        factor = wide + low if self.square else factor
        if split:
            low, high, factor, *held = cut(low, high, factor, *held)
        rows = []
        for i in range(len(high)):
            row = Mux(high[i], factor << i, 0)
            # The highest bit of a signed number counts negative.
            rows.append(-row if high.shape().signed and i == len(high) - 1 else row)
        pairs = [sum(rows[i : i + 2][1:], rows[i]) for i in range(0, len(rows), 2)]
        terms = [low * (low if self.square else factor), *(pair << size for pair in pairs)]
        return terms, held


def limb_count(fmt, size):
    """How many parts a factor is cut into for multiplier blocks of `size` signed bits.

    All but the highest are unsigned and have ``size - 1`` bits.
    """
    return max(ceil((fmt.width + (not fmt.signed) - 1) / (size - 1)), 1)
