"""Instantiation templates: whole modules in Verilog, VHDL and LiteX that hold one instance."""

import re
from string import Template

from hwnorm.hdl.axi import lane_bits
from hwnorm.hdl.axilite import ADDRESS_BITS, CHANNELS

#: Words that VHDL reserves and a Verilog name may be.
_VHDL = frozenset(
    """
    abs access after alias all architecture array assert attribute block body buffer bus component
    configuration constant context default disconnect downto elsif entity exit file for generic
    group guarded impure in inertial inout is label library linkage literal loop map mod new next
    null of on open others out package port postponed procedure process protected pure range record
    register reject rem report return rol ror select severity shared signal sla sll sra srl subtype
    then to transport type unaffected units until use variable when
    """.split()
)

_VERILOG = Template("""\
// How $top is instantiated: copy the instance, connect your own signals.
`timescale 1ns/1ps

module ${top}_example (
$ports
);
  $top norm (
$connections
  );
endmodule
""")

_VHDL_TEXT = Template("""\
-- How $top is instantiated: copy component and instance, connect your own signals.
library ieee;
use ieee.std_logic_1164.all;

entity example is
  port (
$ports
  );
end entity;

architecture instance of example is
  component $name
    port (
$component
    );
  end component;
begin
  norm : $name
    port map (
$connections
    );
end architecture;
""")

_LITEX = Template('''\
"""A LiteX module of $top.

Its streams are $streams.
Element 0 of a row is in the lowest bits of its first beat.
"""

from pathlib import Path

from litex.gen import LiteXModule
from litex.soc.interconnect.axi import $imports
from migen import ClockSignal, Instance, ResetSignal, Signal


class Norm(LiteXModule):
    """$headline."""

    def __init__(self, platform):
        self.clear = Signal()
        self.framing_error = Signal()
        self.saturated = Signal()
$members
        self.specials += Instance(
            "$top",
            i_$clock=ClockSignal("sys"),
            i_$reset=$level,
$connections
            i_clear=self.clear,
            o_framing_error=self.framing_error,
            o_saturated=self.saturated,
        )
        rtl = Path(__file__).resolve().parent.parent / "rtl"
        platform.add_source(str(rtl / "$top.v"))
''')


def template_files(design, top, shell):
    """The templates of a design.

    Parameters
    ----------
    design : hwnorm.Norm
    top : str
    shell : hwnorm.hdl.AxiStreamTop

    Returns
    -------
    dict of str to str
        Relative path to text.
    """
    return {
        f"templates/{top}_example.v": _verilog(top, shell.port_table),
        f"templates/{top}_example.vhd": _vhdl(top, shell.port_table),
        f"templates/{top}_litex.py": _litex(design, top, shell),
    }


def _verilog(top, ports):
    def declared(port):
        width = f"[{port.width - 1}:0] " if port.width > 1 else ""
        return f"  {'input ' if port.is_input else 'output'} wire {width}{port.name}"

    return _VERILOG.substitute(
        top=top,
        ports=",\n".join(declared(port) for port in ports),
        connections=",\n".join(f"    .{port.name}({port.name})" for port in ports),
    )


def _vhdl(top, ports):
    def declared(port):
        kind = f"std_logic_vector({port.width - 1} downto 0)" if port.width > 1 else "std_logic"
        return f"{port.name} : {'in ' if port.is_input else 'out'} {kind}"

    lines = [declared(port) for port in ports]
    return _VHDL_TEXT.substitute(
        top=top,
        name=_vhdl_name(top),
        ports=";\n".join(f"    {line}" for line in lines),
        component=";\n".join(f"      {line}" for line in lines),
        connections=",\n".join(f"      {port.name} => {port.name}" for port in ports),
    )


def _vhdl_name(name):
    """A Verilog name in VHDL, as an extended identifier where it must be one."""
    plain = re.fullmatch(r"[A-Za-z](_?[A-Za-z0-9])*", name) and name.lower() not in _VHDL
    return name if plain and name.lower() not in ("example", "norm") else f"\\{name}\\"


def _litex(design, top, shell):
    members, connections, names = [], [], []
    for prefix, (name, fmt) in shell.streams.items():
        ours = {"i": "sink", "o": "source"}.get(name, name.removeprefix("i_"))
        names.append(ours)
        width = lane_bits(fmt) * design.lanes
        members.append(f"        self.{ours} = AXIStreamInterface(data_width={width})")
        to_us, from_us = ("i", "o") if name != "o" else ("o", "i")
        if not design.ready and to_us == "i":
            members.append(f"        self.comb += self.{ours}.ready.eq(1)  # always takes")
        for field in ("data", "valid", "last", *(["ready"] if design.ready else [])):
            way = from_us if field == "ready" else to_us
            connections.append(f"            {way}_{prefix}_t{field}=self.{ours}.{field},")
    if shell.ce is not None:
        members.append("        self.ce = Signal(reset=1)")
        connections.append("            i_ce=self.ce,")
    if shell.control:
        names.append("control")
        members.append("        self.control = AXILiteInterface(data_width=32, address_width=32)")
        for field, _, driven in CHANNELS:
            channel, name = re.fullmatch("(aw|ar|w|b|r)(.+)", field).groups()
            way = "o" if driven else "i"
            low = f"[:{ADDRESS_BITS}]" if name == "addr" else ""
            connections.append(
                f"            {way}_s_axil_{field}=self.control.{channel}.{name}{low},"
            )
    return _LITEX.substitute(
        imports=f"{'AXILiteInterface, ' * bool(shell.control)}AXIStreamInterface",
        top=top,
        headline=design.headline,
        streams=", ".join(names),
        members="\n".join(members),
        clock=shell.style.clock,
        reset=shell.style.reset,
        level=f'{"~" * shell.style.reset_low}ResetSignal("sys")',
        connections="\n".join(connections),
    )
