"""FPGA families: how long things take and how blocks are shaped, in the scheduler's terms."""

from dataclasses import dataclass, replace
from math import ceil, log2

#: What a design's LUTs are made of, by kind (see ``hwnorm.mapping``), fitted to ECP5.
LUTS_OF = (
    ("rows", 0.918),
    ("table", 0.834),
    ("zeros", 2.235),
    ("normalise", 0.147),
    ("shift", 1.292),
    ("limit", 0.559),
    ("turns", 0.85),
    ("table_behind", 0.36),
    ("limit_behind", 0.518),
    ("adder", 0.047),
    ("merged", 0.35),
    ("merged_rows", 1.633),
    ("accumulator", 0.297),
    ("muxed", 0.672),
    ("counter", 5.089),
    ("memory", 10.605),
)


@dataclass(frozen=True)
class Target:
    """One family. All delays include the routing to the thing itself.

    Members
    -------
    name : str
    calibrated : str
        Where the numbers are from: ``nextpnr`` (fitted, see docs/timing.md), ``scaled``
        (rough figures, or those of another family), or ``none``.
    clock_ns : float
        Of every cycle: clock to output, and set-up.
    lut_ns, mux_ns : float
        A level of logic; a stage of a barrel shifter or a counter of leading zeros.
    adder_ns, carry_ns : float
        An adder of no bits, and a bit more of it.
    multiplier_ns : float
        From a register outside to the output register of a multiplier block.
    inside_ns : float or None
        The same from the block's own input register; None: it has none that is of use.
    memory_ns : float
        To the address register of a block RAM, or through a small ROM made of LUTs.
    read_ns, held_ns : float
        From that register to a register in the fabric, beyond `clock_ns`; and to the RAM's own
        output register.
    tile : (int, int)
        Operand widths of a multiplier block, signed.
    rom_logic_bits, ram_logic_bits : int
        Bits a block RAM that a synthesiser rather makes of LUTs or of LUT RAM.
    block_shapes : tuple of (int, int)
        Words and bits of the shapes that a block RAM can have.
    lut_ram : bool
        Whether small memories can be made of LUTs, 16 words of 4 bits; else of registers.
    luts_of : tuple of (str, float)
        What the LUTs of a design are made of: a factor of each kind in ``hwnorm.mapping``.
    slack : (float, float, float)
        The period that is reached: a constant in ns, and what the longest path, and the square
        root of the LUTs in thousands, are multiplied by; see ``hwnorm.estimate``.
    """

    name: str
    calibrated: str = "none"
    clock_ns: float = 0.0
    lut_ns: float = 1.0
    mux_ns: float = 0.8
    adder_ns: float = 1.0
    carry_ns: float = 0.045
    multiplier_ns: float = 4.5
    inside_ns: float | None = None
    memory_ns: float = 3.5
    read_ns: float = 0.0
    held_ns: float = 0.0
    tile: tuple = (18, 18)
    rom_logic_bits: int = 2048
    ram_logic_bits: int = 1536
    block_shapes: tuple = ((512, 36), (1024, 18), (2048, 9), (4096, 4), (8192, 2), (16384, 1))
    lut_ram: bool = True
    luts_of: tuple = LUTS_OF
    slack: tuple = (0.0, 1.0, 0.0)

    def __str__(self):
        return self.name

    def add_ns(self, width):
        """An adder or comparator of `width` bits."""
        return self.adder_ns + self.carry_ns * width

    def piece_bits(self, budget_ns):
        """The longest piece of an adder that fits the budget; at least `PIECE_BITS`."""
        return max(int((budget_ns - self.adder_ns) / self.carry_ns + 1e-9), PIECE_BITS)

    def blocks(self, words, bits):
        """Block RAMs of a memory, in the shape that takes fewest."""
        return min(ceil(words / deep) * ceil(bits / wide) for deep, wide in self.block_shapes)

    def block_rows(self, words, bits):
        """Block RAMs above one another, of which one is selected, in that shape."""
        deep, _ = min(self.block_shapes, key=lambda s: ceil(words / s[0]) * ceil(bits / s[1]))
        return ceil(words / deep)

    def rom_in_block(self, words, bits):
        """Whether a table goes to block RAM."""
        return words * bits > self.rom_logic_bits * self.blocks(words, bits)

    def ram_in_block(self, words, bits):
        """Whether a memory that is written goes to block RAM; LUT RAM comes in 16 by 4."""
        deep = ceil(words / 16)
        # Behind more than one of them stands a multiplexer.
        whole = deep * 16 * (ceil(bits / 4) * 4 + 4)
        return whole > self.ram_logic_bits * self.blocks(words, bits) + 64

    def rom_levels(self, words):
        """Levels of logic of a small table made of LUTs."""
        return 2 + max(0, ceil((log2(max(words, 2)) - 6) / 2))


#: An adder is not split into pieces shorter than that.
PIECE_BITS = 8

#: Of no family: rough delays of a part with four-input LUTs. Its periods place registers, and no
#: period is refused.
GENERIC = Target("generic")

_ECP5 = Target(
    "ecp5",
    calibrated="nextpnr",
    clock_ns=0.6,
    lut_ns=1.2,
    mux_ns=1.2,
    adder_ns=2.1,
    carry_ns=0.036,
    multiplier_ns=5.6,
    inside_ns=3.9,
    memory_ns=1.6,
    read_ns=5.6,
    held_ns=3.9,
    slack=(1.871, 0.551, 1.535),
)

#: Of a UP5K: logic and adders by tools/probes.py. nextpnr-ice40 does not time a MAC16 inside; that
#: figure is a rough one.
_ICE40 = Target(
    "ice40",
    calibrated="nextpnr",
    clock_ns=2.2,
    lut_ns=3.1,
    mux_ns=3.1,
    adder_ns=2.4,
    carry_ns=0.347,
    multiplier_ns=12.0,
    memory_ns=3.0,
    read_ns=3.5,
    held_ns=3.5,
    tile=(16, 16),
    rom_logic_bits=1024,
    ram_logic_bits=0,
    lut_ram=False,
    block_shapes=((256, 16), (512, 8), (1024, 4), (2048, 2)),
    luts_of=(
        ("rows", 1.408),
        ("table", 1.652),
        ("zeros", 0.952),
        ("limit", 2.2),
        ("turns", 0.763),
        ("adder", 0.608),
        ("merged_rows", 0.5),
        ("accumulator", 4.411),
        ("muxed", 1.605),
        ("counter", 12.1),
    ),
    slack=(3.685, 0.461, 6.676),
)

#: nextpnr's ECP5, a sixth slower; LUTs are fitted. nextpnr has no delays of Gowin's blocks.
_GOWIN = replace(
    _ECP5, name="gowin", calibrated="scaled", clock_ns=0.7, lut_ns=1.4, mux_ns=1.4, adder_ns=2.4,
    carry_ns=0.05, multiplier_ns=6.0, inside_ns=4.5, read_ns=6.0, held_ns=4.5,
    luts_of=(
        ("logic", 0.16),
        ("rows", 0.87),
        ("table", 0.593),
        ("zeros", 1.457),
        ("normalise", 0.397),
        ("shift", 1.248),
        ("limit", 0.504),
        ("turns", 0.522),
        ("table_behind", 0.497),
        ("limit_behind", 1.851),
        ("merged", 0.421),
        ("merged_rows", 0.724),
        ("accumulator", 1.095),
        ("muxed", 0.883),
        ("memory", 40.238),
    ),)  # fmt: skip

#: Rough figures of a 7-series part of speed grade 1, and routing like it; LUTs are fitted.
_XC7 = Target(
    "xc7",
    calibrated="scaled",
    clock_ns=0.6,
    lut_ns=0.8,
    mux_ns=0.8,
    adder_ns=1.4,
    carry_ns=0.03,
    multiplier_ns=4.0,
    inside_ns=2.8,
    memory_ns=1.2,
    read_ns=2.8,
    held_ns=2.4,
    tile=(25, 18),
    rom_logic_bits=4096,
    ram_logic_bits=4096,
    block_shapes=((512, 36), (1024, 18), (2048, 9), (4096, 4), (8192, 2), (16384, 1)),
    luts_of=(
        ("rows", 0.967),
        ("zeros", 1.396),
        ("normalise", 0.577),
        ("shift", 0.689),
        ("limit", 0.892),
        ("turns", 0.472),
        ("table_behind", 0.023),
        ("limit_behind", 0.05),
        ("adder", 0.341),
        ("merged_rows", 0.25),
        ("accumulator", 2.785),
        ("muxed", 0.016),
        ("counter", 2.507),
        ("memory", 2.446),
    ),
)

TARGETS = {t.name: t for t in (GENERIC, _ECP5, _ICE40, _GOWIN, _XC7)}
