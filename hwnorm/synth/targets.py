"""FPGA families: their Yosys command, what their cells are, and their devices."""

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from hwnorm.synth.packing import pack_registers

#: Kinds of cells that are counted, in the order in which they are shown.
KINDS = ("lut", "ff", "carry", "dsp", "bram", "lutram")


@dataclass(frozen=True)
class Device:
    """One part.

    Parameters
    ----------
    lut, ff, dsp, bram : int
        What it has, in cells of its family.
    options : tuple of str
        How nextpnr is told.
    synth : str
        Further options of the Yosys command.
    aim_mhz : float
        What nextpnr aims at, unless a period is given. It is more than designs reach, so that
        the placer does not rest early.
    pins : dict of str to str
        Pins of the loopback's ``clk``, ``si`` and ``so``, where nextpnr does not choose them.
    """

    lut: int
    ff: int
    dsp: int
    bram: int
    options: tuple = ()
    synth: str = ""
    aim_mhz: float = 200.0
    pins: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Target:
    """One family.

    Parameters
    ----------
    command : str
        Yosys' synthesis command, for a design without pads.
    pads : (str, str)
        What is replaced in `command`, and by what, for one with pads.
    cells : dict of str to str
        Of each kind in `KINDS`, a regular expression that matches whole names of cells.
    uses : dict of str to dict of str to float
        Of a device's ``lut`` and ``bram``, how many a cell takes: regular expressions again.
    devices : dict of str to Device
        The first one is the default.
    pnr : str or None
        nextpnr's name for the family; None: there is no place and route.
    packer : str or None
        The tool that makes a bitstream.
    guard : tuple of str
        Yosys commands that come before ``coarse`` on devices with multipliers.
    finish : callable or None
        What is done to Yosys' JSON of a flat design, in place.
    untimed : dict of str to str
        What nextpnr has no delays of, by the kind of cell that shows whether a design has it.
    """

    command: str
    cells: dict
    uses: dict
    devices: dict
    pads: tuple = ("", "")
    pnr: str | None = None
    packer: str | None = None
    guard: tuple = ()
    finish: Callable | None = None
    untimed: dict = field(default_factory=dict)

    def script(self, device, top, pads=False):
        """The Yosys commands that synthesise a module for a device."""
        command = self.command.replace(*self.pads) if pads else self.command
        command = " ".join(f"{command} {device.synth} -top {top}".split())
        if not self.guard or not device.dsp:
            return (command,)
        return (f"{command} -run begin:coarse", *self.guard, f"{command} -run coarse:")

    def counted(self, raw):
        """Cells by kind, from cells by name."""
        return {
            kind: sum(n for name, n in raw.items() if re.fullmatch(self.cells[kind], name))
            for kind in KINDS
        }

    def needs(self, raw):
        """What the cells take of a device: ``lut``, ``ff``, ``dsp``, ``bram``, rounded up.

        It is the least: pieces that a placer adds (routing through LUTs, the ends of carry
        chains) are not in it.
        """
        taken = {}
        for what in ("lut", "ff", "dsp", "bram"):
            weights = self.uses.get(what, {self.cells[what]: 1})
            total = sum(
                n * weight
                for name, n in raw.items()
                for pattern, weight in weights.items()
                if re.fullmatch(pattern, name)
            )
            taken[what] = -int(-total // 1)
        return taken

    def kind_of(self, cell):
        """The kind of a cell, or None if it is not counted."""
        return next((k for k in KINDS if re.fullmatch(self.cells[k], cell)), None)


def _ecp5():
    sizes = {"85k": (83640, 156, 208), "45k": (43848, 72, 108), "25k": (24288, 28, 56)}
    return {
        f"{size}{'' if speed == 6 else f'-{speed}'}": Device(
            luts, luts, dsp, bram,
            options=(f"--{size}", "--speed", str(speed), "--package", "CABGA381"),
        )
        for speed in (6, 7, 8)
        for size, (luts, dsp, bram) in sizes.items()
    }  # fmt: skip


def _ice40(cells, dsp, bram, device, package, aim_mhz):
    family = device[:1] if device.startswith("u") else device[:2]
    options = (f"--{device}", "--package", package)
    # Without -dsp, multipliers are built of LUTs: parts other than the UltraPlus have none.
    synth = f"-device {family}{' -dsp' if dsp else ''}"
    return Device(cells, cells, dsp, bram, options, synth, aim_mhz)


def _gowin(luts, ffs, dsp, bram, part, family, pins):
    options = ("--device", part, "--vopt", f"family={family}")
    synth = f"-family {family[:4].lower()}"
    pins = dict(zip(("clk", "si", "so"), pins, strict=True))
    return Device(luts, ffs, dsp, bram, options, synth, 150.0, pins)


#: Yosys 0.70 packs a product's register into two MAC16 where it adds the registers of two
#: products: as the output of one and as the C input of the other, which is then left open. The
#: netlist computes x. Where a product's register feeds another register, the pass ends the process
#: or loses the product with all that hangs on it. Registers that are kept are not packed; the
#: multipliers stay multipliers.
_ICE40_GUARD = (
    "opt_clean",
    "select -set products t:$mul %co1:+[Y] %co1:+[D] %co1:+[Q]",
    "select -set left @products %co1:+[A] t:$add %i",
    "select -set right @products %co1:+[B] t:$add %i",
    "select -set sums @left @right %i",
    "select -set again @products %co1:+[D] t:$*dff* %i",
    "select -set held @sums %ci1:+[A,B] @again %ci1:+[D] %u @products %i",
    "setattr -set keep 1 @held",
)


#: Families by name.
TARGETS = {
    "ecp5": Target(
        command="synth_ecp5",
        cells={
            "lut": "LUT4",
            "ff": "TRELLIS_FF",
            "carry": "CCU2C",
            "dsp": "MULT18X18D|MULT9X9D|ALU54B",
            "bram": "DP16KD|PDPW16KD",
            "lutram": "TRELLIS_DPR16X4",
        },
        # A carry cell is two LUTs; a 16x4 RAM is four, and its write port blocks two more.
        uses={"lut": {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 6}},
        devices=_ecp5(),
        pnr="ecp5",
        finish=pack_registers,
        packer="ecppack",
    ),
    "ice40": Target(
        command="synth_ice40",
        cells={
            "lut": "SB_LUT4",
            "ff": r"SB_DFF\w*",
            "carry": "SB_CARRY",
            "dsp": "SB_MAC16",
            "bram": r"SB_RAM40_4K\w*",
            "lutram": r"(?!)",
        },
        # A logic cell is a LUT, a carry and a flip-flop together.
        uses={},
        devices={
            "up5k": _ice40(5280, 8, 30, "up5k", "sg48", 60.0),
            "hx8k": _ice40(7680, 0, 32, "hx8k", "ct256", 150.0),
            "hx1k": _ice40(1280, 0, 16, "hx1k", "tq144", 150.0),
            "lp8k": _ice40(7680, 0, 32, "lp8k", "cm225", 100.0),
            "lp1k": _ice40(1280, 0, 16, "lp1k", "qn84", 100.0),
        },
        pnr="ice40",
        packer="icepack",
        guard=_ICE40_GUARD,
        untimed={"dsp": "the inside of multipliers"},
    ),
    "xc7": Target(
        command="synth_xilinx -flatten -family xc7 -noiopad -noclkbuf",
        cells={
            "lut": "LUT[1-6]",
            "ff": r"FD[RSCP]E(_1)?",
            "carry": "CARRY4",
            "dsp": "DSP48E1",
            "bram": "RAMB18E1|RAMB36E1",
            "lutram": r"RAM\d+(M|X1[SD])\w*|SRL\w+",
        },
        uses={
            "lut": {"LUT[1-6]": 1, r"RAM\d+M\w*": 4, r"RAM\d+X1D\w*": 2, r"RAM\d+X1S\w*|SRL\w+": 1},
            "bram": {"RAMB36E1": 1, "RAMB18E1": 0.5},
        },
        devices={
            "xc7a35t": Device(20800, 41600, 90, 50),
            "xc7a100t": Device(63400, 126800, 240, 135),
            "xc7z020": Device(53200, 106400, 220, 140),
            "xc7k325t": Device(203800, 407600, 840, 445),
        },
    ),
    "gowin": Target(
        command="synth_gowin -noiopads",
        cells={
            "lut": "LUT[1-4]",
            "ff": r"DFF\w*",
            "carry": "ALU",
            "dsp": r"MULT\w+|PADD\w+|ALU54D",
            "bram": r"SPX?9?|SDPX?9?B?|DPX?9?B?|pROM\w*",
            "lutram": r"RAM16S\w+",
        },
        # An ALU is a LUT with its carry; a 16x4 RAM is four LUTs.
        uses={"lut": {"LUT[1-4]": 1, "ALU": 1, r"RAM16S\w+": 4}},
        devices={
            "gw2a-18": _gowin(
                20736, 15552, 48, 46, "GW2A-LV18PG256C8/I7", "GW2A-18", ("H11", "L14", "N14")
            ),
            "gw2ar-18c": _gowin(
                20736, 15552, 48, 46, "GW2AR-LV18QN88C8/I7", "GW2A-18C", ("4", "15", "16")
            ),
            "gw1nr-9c": _gowin(
                8640, 6480, 20, 26, "GW1NR-LV9QN88PC6/I5", "GW1N-9C", ("52", "10", "11")
            ),
        },
        pads=("-noiopads", ""),
        pnr="himbaechel-gowin",
        untimed={
            "lut": "multiplexers behind LUTs",
            "dsp": "multipliers",
            "bram": "reads of block RAM",
        },
    ),
}


def find_target(name):
    """A family by its name.

    Raises
    ------
    ValueError
        If there is no such family.
    """
    if name not in TARGETS:
        raise ValueError(f"target must be one of {', '.join(TARGETS)}, got {_told(name, TARGETS)}")
    return TARGETS[name]


def find_device(target, name=None):
    """A device's name and itself; without a name, the family's default.

    Raises
    ------
    ValueError
        If the family has no such device.
    """
    devices = find_target(target).devices
    name = name or next(iter(devices))
    if name not in devices:
        raise ValueError(
            f"device of {target} must be one of {', '.join(devices)}, got {_told(name, devices)}"
        )
    return name, devices[name]


def _told(word, known):
    close = difflib.get_close_matches(str(word), list(known), n=1, cutoff=0.5)
    return f"{word!r}" + (f"; did you mean {close[0]}?" if close else "")
