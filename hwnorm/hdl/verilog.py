"""A design as one self-contained Verilog file."""

import os
import re
from contextlib import contextmanager
from dataclasses import dataclass

from amaranth.back import verilog as back

from hwnorm.hdl.axi import AxiStreamTop
from hwnorm.hdl.decorate import decorate
from hwnorm.hdl.style import Style

#: Lint rules that generated code breaks by its nature, and why that is harmless.
WAIVERS = {
    "DECLFILENAME": "one file holds all modules of the design",
    "UNUSEDSIGNAL": "wires are kept under their names for waves, whether or not all bits are used",
    "WIDTH": "a register takes the low bits of a sum whose carry is known to be zero",
}


#: Words that Verilog-2005 reserves.
_VERILOG = frozenset(
    """
    always and assign automatic begin buf bufif0 bufif1 case casex casez cell cmos config deassign
    default defparam design disable edge else end endcase endconfig endfunction endgenerate
    endmodule endprimitive endspecify endtable endtask event for force forever fork function
    generate genvar highz0 highz1 if ifnone incdir include initial inout input instance integer
    join large liblist library localparam macromodule medium module nand negedge nmos nor
    noshowcancelled not notif0 notif1 or output parameter pmos posedge primitive pull0 pull1
    pulldown pullup pulsestyle_ondetect pulsestyle_onevent rcmos real realtime reg release repeat
    rnmos rpmos rtran rtranif0 rtranif1 scalared showcancelled signed small specify specparam
    strong0 strong1 supply0 supply1 table task time tran tranif0 tranif1 tri tri0 tri1 triand
    trior trireg unsigned use uwire vectored wait wand weak0 weak1 while wire wor xnor xor
    """.split()
)

#: Words that SystemVerilog reserves and Verilog-2005 does not: no identifier may be one.
_SYSTEMVERILOG = frozenset(
    """
    accept_on alias always_comb always_ff always_latch assert assume before bind bins binsof
    bit break byte chandle checker class clocking const constraint context continue cover
    covergroup coverpoint cross dist do endchecker endclass endclocking endgroup
    endinterface endpackage endprogram endproperty endsequence enum eventually expect export
    extends extern final first_match foreach forkjoin global iff ignore_bins illegal_bins
    implements implies import inside int interconnect interface intersect join_any join_none
    let local logic longint matches modport nettype new nexttime null package packed
    priority program property protected pure rand randc randcase randsequence ref reject_on
    restrict return s_always s_eventually s_nexttime s_until s_until_with sequence shortint
    shortreal soft solve static string strong struct super sync_accept_on sync_reject_on
    tagged this throughout timeprecision timeunit type typedef union unique unique0 until
    until_with untyped var virtual void wait_order weak wildcard with within
    """.split()
)


@contextmanager
def builtin_yosys():
    """The converter that is pinned with the package, whatever the system has."""
    before = os.environ.get("AMARANTH_USE_YOSYS")
    os.environ["AMARANTH_USE_YOSYS"] = "builtin"
    try:
        yield
    finally:
        if before is None:
            del os.environ["AMARANTH_USE_YOSYS"]
        else:
            os.environ["AMARANTH_USE_YOSYS"] = before


def top_name(name):
    """A preset's or file's name as a Verilog identifier that no tool reserves."""
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)
    plain = plain if re.match(r"[A-Za-z_]", plain) else f"n{plain}"
    return f"{plain}_top" if plain in _VERILOG | _SYSTEMVERILOG else plain


def verilog(design, name=None, style=None, component=None):
    """The design as Verilog-2001, with AXI4-Stream ports and its tables inside.

    Parameters
    ----------
    design : hwnorm.Norm
    name : str or None
        Of the top module; None: made of norm and dim.
    style : hwnorm.hdl.style.Style or None
        Attributes, tables, names of clock and reset; None: plain, for any tool.
    component : amaranth.lib.wiring.Component or None
        Hardware to be exported instead of the design's own; it has the ports of
        `hwnorm.component`.

    Returns
    -------
    str
        The same text for the same arguments.

    Raises
    ------
    ValueError
        If the design has a model only.
    """
    return export(design, name, style, component).text


@dataclass(frozen=True)
class Exported:
    """A design as Verilog, and what else a bundle needs of it.

    Parameters
    ----------
    text : str
    contents : dict of str to hwnorm.hdl.decorate.Contents
        What the text reads from files, by their names without the ``.mem``; none unless the
        style's ``tables`` is ``readmemh``.
    shell : hwnorm.hdl.AxiStreamTop
        The top level, with its ports.
    """

    text: str
    contents: dict
    shell: AxiStreamTop


def export(design, name=None, style=None, component=None):
    """As `verilog`, with memory contents and ports: an `Exported`."""
    design.require_hardware()
    style = style or Style()
    top = top_name(name or f"{design.kind}_{design.dim}")
    shell = AxiStreamTop(design, style, component)
    with builtin_yosys():
        text = back.convert(
            shell, name=top, ports=shell.ports, emit_src=False, strip_internal_attrs=True
        )
    text = re.sub(r"\A/\*.*?\*/\n+", "", text, flags=re.S)
    # Attributes for Yosys itself: they repeat what the statements below them say.
    text = re.sub(r"^ *\(\*[^*]*\*\)\n", "", text, flags=re.M)
    text = _plain_names(text)
    text = _plain_declarations(text, top)
    text, contents = decorate(text, top, style, shell.port_table)
    text = _header(design, top) + text + "".join(f"// verilator lint_on {r}\n" for r in WAIVERS)
    return Exported(text, contents, shell)


def _plain_names(text):
    """Escaped identifiers as ordinary ones, which every tool takes and prints alike."""
    word = re.compile(r"(?<![\\\w$'])[A-Za-z_]\w*")
    text = word.sub(lambda w: f"{w[0]}_" if w[0] in _SYSTEMVERILOG else w[0], text)
    taken = set(word.findall(text))
    renamed = {}
    for found in re.finditer(r"\\(\S+) ", text):
        escaped = found[1]
        if escaped in renamed:
            continue
        # Yosys wakes an always block with a dummy that is named after its own source.
        plain = re.sub(r"^\$auto\$verilog_backend\S*\$(\d+)$", r"wake_\1", escaped)
        plain = re.sub(r"\W+", "_", plain).strip("_")
        plain = plain if re.match(r"[A-Za-z]", plain) else f"n{plain}"
        name, n = plain, 2
        while name in taken:
            name, n = f"{plain}_{n}", n + 1
        taken.add(name)
        renamed[escaped] = name
    return re.sub(r"\\(\S+) ", lambda found: renamed[found[1]], text)


def _plain_declarations(text, top):
    """Initial values in initial blocks; none for memories that are written before they are read."""
    text = re.sub(
        r"^(  reg (?:\[[^\]]+\] )?(\w+)) = ([^;]+);$", r"\1;\n  initial \2 = \3;", text, flags=re.M
    )
    memory = r"(^  reg (?:\[[^\]]+\] )?(\w+) \[\d+:0\];\n)"
    contents = r"  initial begin\n(?:    \2\[\d+\] = [^\n]+\n)+  end\n"
    for buffer in ("ring", "fifo", "queue"):
        module = rf"^module {top}_engine_{buffer}\(.*?^endmodule$"
        text = re.sub(
            module,
            lambda found: re.sub(memory + contents, r"\1", found[0], flags=re.M),
            text,
            flags=re.M | re.S,
        )
    return text


def _header(design, top):
    lines = [
        f"{top}: {design.headline}",
        f"latency {design.latency} cycles, error bound {design.bound_ulp:.4f} ulp",
        "Generated by hwnorm. Ports are AXI4-Stream; element 0 is in the lowest lane.",
        "",
        "Lint rules that are waived:",
        *(f"  {rule}: {why}" for rule, why in WAIVERS.items()),
    ]
    comment = "".join(f"// {line}".rstrip() + "\n" for line in lines)
    return comment + "".join(
        [*(f"// verilator lint_off {rule}\n" for rule in WAIVERS), "\n`timescale 1ns/1ps\n\n"]
    )
