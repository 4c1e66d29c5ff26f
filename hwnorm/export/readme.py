"""The README of a bundle: ports, rate, latency, cost, and how to run every file."""

from hwnorm.hdl.axilite import registers
from hwnorm.report import check_data


def readme(design, top, style, shell, files, measured=None):
    """The README of a bundle.

    Parameters
    ----------
    design : hwnorm.Norm
    top : str
    style : hwnorm.hdl.Style
    shell : hwnorm.hdl.AxiStreamTop
    files : collection of str
        Relative paths of the bundle.
    measured : list of tuple or None
        Rows for the table of resources, see `resource_table`.

    Returns
    -------
    str
        Markdown.
    """
    facts = check_data(design)
    ports = "\n".join(
        f"| `{port.name}` | {'in' if port.is_input else 'out'} | {port.width} | {port.what} |"
        for port in shell.port_table
    )
    beyond = design.latency - design.beats
    return f"""\
# {top}

{design.headline}.

Written by hwnorm; what it was made from is in `design.toml`, what a script wants to know in
`manifest.json`. The error of every output is at most {design.bound_ulp:.4f} ulp (proven).

## Rate and latency

| | |
|---|---|
| rate | 1 beat a clock, {design.beats} cycles a row, row after row |
| latency | {design.latency} cycles = {design.beats} beats of a row + {beyond} |
| clock | {1000 / design.period_ns:.1f} MHz: pipelines are laid out for {design.period_ns:g} ns |
| parameters | {_parameters(design)} |
| profile | `{style.profile}`, tables {style.tables} |

## Resources

{resource_table(facts, design, measured)}
## Ports

| port | | bits | |
|---|---|---|---|
{ports}
{_register_table(design)}
Element 0 of a row is in the lowest bits of its first beat. Padding of inputs is ignored, outputs
are sign extended. {_handshake(design)}

## Files

| file | what it is, and how it is run |
|---|---|
{_file_table(top, files)}
"""


def resource_table(facts, design, measured=None):
    """Resources and clock rates as a Markdown table.

    Parameters
    ----------
    facts : dict
        Of `hwnorm.report.check_data`.
    design : hwnorm.Norm
    measured : list of tuple or None
        What tools found: target, LUTs, flip-flops, multipliers, RAM blocks and MHz of each, None
        where unknown. They stand below the estimate.
    """
    rows = [
        (
            "estimate, any 4-input LUT part",
            f"{facts['datapath_luts_estimate']} (datapath)",
            None,
            f"{facts['multipliers_estimate']} of 18x18",
            f"{facts['rom_bits']} bits of tables",
            f"{1000 / design.period_ns:.1f} aimed at",
        ),
        *(measured or []),
    ]
    lines = [
        "| target | LUTs | flip-flops | multipliers | memory | MHz |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        lines.append("| " + " | ".join("" if cell is None else str(cell) for cell in row) + " |")
    return "\n".join(lines) + "\n"


def _register_table(design):
    """The register map, if there is one."""
    if design.control == "none":
        return ""
    rows = "".join(
        f"| `0x{r.offset:02x}` | `{r.name}` | {r.access} | {r.what} |\n" for r in registers(design)
    )
    return f"""
## Registers

AXI4-Lite, 32 bits, one access at a time; what is not in this table answers SLVERR.

| offset | register | | |
|---|---|---|---|
{rows}"""


def _parameters(design):
    if not design.parameters:
        return "none"
    names = " and ".join(design.parameters)
    how = {"rom": "constants", "ram": "loaded at run time", "stream": "streamed in step with x"}
    return f"{names}, {how[design.store]}"


def _handshake(design):
    """The rules of the streams."""
    enable = (
        " A beat is transferred only while `ce` is high; all around it must hold its state too."
        * design.clock_enable
    )
    if design.ready:
        return f"A source holds a beat until it is taken and does not wait for `tready`.{enable}"
    return (
        "There is no `tready`: a beat is taken\n"
        f"in the cycle in which it is valid, on either side.{enable}"
    )


def _file_table(top, files):
    """What each file is: a row a file, or one for files of a kind."""
    known = [
        (f"rtl/{top}.v", "the design, Verilog-2001"),
        ("rtl/*.mem", "memory contents that the Verilog reads; also as .coe and .mif"),
        (f"tb/{top}_tb.v", f"`cd tb && iverilog -g2005 -o tb.vvp {top}_tb.v ../rtl/{top}.v "
         "&& vvp -N tb.vvp`"),
        (f"tb/run_{top}.py", f"cocotb: `cd tb && python run_{top}.py [icarus, verilator]`"),
        ("tb/*.mem", "stimuli, parameters and expected rows, a beat a line"),
        (f"{top}.core", f"FuseSoC: `fusesoc --cores-root . run --target=sim {top}`, or `lint`"),
        (f"constraints/{top}_ooc.xdc", "out-of-context clock for Vivado"),
        (f"constraints/{top}.sdc", "clock for Quartus, Radiant, Gowin EDA and others"),
        (f"vivado/{top}_package.tcl", f"`vivado -mode batch -source vivado/{top}_package.tcl`"),
        (f"quartus/{top}.qip", f"`set_global_assignment -name QIP_FILE quartus/{top}.qip`"),
        (f"software/{top}_regs.h", "offsets of the registers, for C"),
        (f"templates/{top}_example.v", "an instance in Verilog"),
        (f"templates/{top}_example.vhd", "an instance in VHDL"),
        (f"templates/{top}_litex.py", "a module for LiteX"),
        ("design.toml", "the description all of this was made from"),
        ("manifest.json", "the facts for scripts, with a checksum of every file"),
    ]  # fmt: skip

    def there(path):
        folder, star, ending = path.partition("*")
        if star:
            return any(f.startswith(folder) and f.endswith(ending) for f in files)
        return path in files or path == "manifest.json"

    return "\n".join(f"| `{path}` | {what} |" for path, what in known if there(path))
