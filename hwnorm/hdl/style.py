"""How a design is spelled as Verilog: a vendor's attributes, where tables are, port names."""

from dataclasses import dataclass

#: Memories below this are left to the tool: a block of RAM would be mostly empty.
BLOCK_BITS = 2048


@dataclass(frozen=True)
class Profile:
    """The attributes of one vendor's tools, each a name and a value; None: no such attribute.

    Parameters
    ----------
    what : str
        The tools it is for.
    block_ram, block_rom : tuple of str or None
        Of memories that are to be in block RAM. Only on those with a registered read.
    distributed : tuple of str or None
        Of the two small FIFOs, which are read without a register.
    multiplier : tuple of str or None
        Of the products.
    interfaces : bool
        Whether ports carry ``X_INTERFACE_INFO``.
    """

    what: str
    block_ram: tuple | None = None
    block_rom: tuple | None = None
    distributed: tuple | None = None
    multiplier: tuple | None = None
    interfaces: bool = False


PROFILES = {
    "generic": Profile("any tool"),
    "vivado": Profile(
        "AMD Vivado",
        block_ram=("ram_style", "block"),
        block_rom=("rom_style", "block"),
        distributed=("ram_style", "distributed"),
        multiplier=("use_dsp", "yes"),
        interfaces=True,
    ),
    # M10K is the block of Cyclone V; a family that has none ignores it with a warning.
    "quartus": Profile(
        "Intel Quartus",
        block_ram=("ramstyle", "M10K"),
        block_rom=("romstyle", "M10K"),
        distributed=("ramstyle", "MLAB"),
        multiplier=("multstyle", "dsp"),
    ),
    "lattice": Profile(
        "Lattice Diamond and Radiant, with Synplify or LSE",
        block_ram=("syn_ramstyle", "block_ram"),
        # The FIFOs are left to the tool: iCE40 has no distributed RAM, and Yosys stops at it.
        block_rom=("syn_romstyle", "EBR"),
        multiplier=("syn_multstyle", "block_mult"),
    ),
    "gowin": Profile(
        "Gowin EDA",
        # Its values block_rom and distributed_ram are errors in Yosys; without them a registered
        # ROM is block RAM and the FIFOs are distributed in both.
        block_ram=("syn_ramstyle", "block_ram"),
        multiplier=("syn_dspstyle", "dsp"),
    ),
}

TABLES = ("embedded", "readmemh")
CLOCKS = ("aclk", "clk")
#: A name that ends in n is active low.
RESETS = ("aresetn", "areset", "rst_n", "rst", "reset_n", "reset")


@dataclass(frozen=True)
class Style:
    """What `hwnorm.verilog` can be asked for, without any effect on what the design does.

    Parameters
    ----------
    profile : str
        One of ``PROFILES``.
    tables : str
        ``embedded``: contents of memories are in the Verilog; ``readmemh``: in files.
    clock, reset : str
        Names of ports, of ``CLOCKS`` and ``RESETS``. The reset is synchronous.

    Raises
    ------
    ValueError
        If a field is none of its choices.
    """

    profile: str = "generic"
    tables: str = "embedded"
    clock: str = "aclk"
    reset: str = "aresetn"

    def __post_init__(self):
        for name, choices in (
            ("profile", PROFILES),
            ("tables", TABLES),
            ("clock", CLOCKS),
            ("reset", RESETS),
        ):
            if getattr(self, name) not in choices:
                raise ValueError(
                    f"{name} must be one of {', '.join(choices)}, got {getattr(self, name)!r}"
                )

    @property
    def reset_low(self):
        """Whether the reset is active low."""
        return self.reset.endswith("n")

    @property
    def attributes(self):
        """The `Profile`."""
        return PROFILES[self.profile]
