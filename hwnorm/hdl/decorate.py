"""What a `Style` adds to plain Verilog: attributes, and memory contents in files."""

import re
from dataclasses import dataclass

from hwnorm.hdl.style import BLOCK_BITS

_MODULE = re.compile(r"^module (\w+)\(.*?^endmodule$", re.M | re.S)
_MEMORY = re.compile(
    r"^  reg (?:\[(?P<high>\d+):0\] )?(?P<name>\w+) \[(?P<last>\d+):0\];\n"
    r"(?P<contents>  initial begin\n(?:    (?P=name)\[\d+\] = [^\n]+\n)+  end\n)?",
    re.M,
)
_ENTRY = re.compile(r"^    \w+\[(\d+)\] = \d+'h([0-9a-f]+);$", re.M)
_PRODUCT = re.compile(r"^  assign (\w+) = .+ \* .+;$", re.M)


@dataclass(frozen=True)
class Contents:
    """Initial contents of a memory of the Verilog: unsigned words, the first at address 0."""

    width: int
    values: tuple


def decorate(text, top, style, ports=()):
    """Put a style's attributes and files into exported Verilog.

    Parameters
    ----------
    text : str
        As `hwnorm.hdl.verilog` makes it, one statement a line.
    top : str
        Name of the top module.
    style : hwnorm.hdl.style.Style
    ports : sequence of hwnorm.hdl.axi.Port
        Of the top module.

    Returns
    -------
    str, dict of str to Contents
        The text; and for ``readmemh`` what the files hold that it reads, by their names
        without the ``.mem``.
    """
    files = {}
    profile = style.attributes

    def module(found):
        body = found[0]
        name = found[1].removeprefix(f"{top}_engine_")
        products = {product[1] for product in _PRODUCT.finditer(body)}
        body = _MEMORY.sub(lambda memory: _memory(memory, body, f"{top}_{name}"), body)
        if profile.multiplier and products:
            wires = rf"^(?=  wire (?:\[\d+:0\] )?(?:{'|'.join(sorted(products))});$)"
            body = re.sub(wires, _attribute(profile.multiplier), body, flags=re.M)
        if profile.interfaces and found[1] == top:
            for port, lines in _interfaces(ports, style).items():
                body = re.sub(
                    rf"^(?=  (?:input|output) (?:\[\d+:0\] )?{port};$)", lines, body, flags=re.M
                )
        return body

    def _memory(found, body, prefix):
        width, depth = int(found["high"] or 0) + 1, int(found["last"]) + 1
        written = re.search(rf"^ +{found['name']}\[[^\]]+\] <= ", body, re.M)
        registered = re.search(rf"<= {found['name']}\[", body)
        kind = profile.block_ram if written else profile.block_rom
        if not registered:
            kind = profile.distributed
        elif width * depth < BLOCK_BITS:
            kind = None
        plain = found[0]
        if found["contents"] and style.tables == "readmemh":
            values = [0] * depth
            for entry in _ENTRY.finditer(found["contents"]):
                values[int(entry[1])] = int(entry[2], 16)
            file = f"{prefix}_{found['name']}".lower()
            files[file] = Contents(width, tuple(values))
            # With its range, since tools differ on the direction of a memory.
            read = f'  initial $readmemh("{file}.mem", {found["name"]}, 0, {depth - 1});\n'
            plain = plain.replace(found["contents"], read)
        return (_attribute(kind) if kind else "") + plain

    return _MODULE.sub(module, text), files


def _attribute(pair):
    return f'  (* {pair[0]} = "{pair[1]}" *)\n'


def _interfaces(ports, style):
    """Attributes that make Vivado see interfaces: port name to lines."""
    buses = sorted({bus for port in ports if (bus := _bus(port.name))})
    level = "LOW" if style.reset_low else "HIGH"
    found = {
        style.clock: (
            f"xilinx.com:signal:clock:1.0 {style.clock} CLK",
            f"ASSOCIATED_BUSIF {':'.join(buses)}, ASSOCIATED_RESET {style.reset}",
        ),
        style.reset: (
            f"xilinx.com:signal:reset:1.0 {style.reset} RST",
            f"POLARITY ACTIVE_{level}",
        ),
    }
    for port in ports:
        if port.name == "ce":
            found["ce"] = ("xilinx.com:signal:clockenable:1.0 ce CE", "POLARITY ACTIVE_HIGH")
        if bus := _bus(port.name):
            kind = "aximm" if bus.startswith("s_axil") else "axis"
            field = port.name.removeprefix(f"{bus}_").upper()
            found[port.name] = (f"xilinx.com:interface:{kind}:1.0 {bus} {field}",)
    names = ("X_INTERFACE_INFO", "X_INTERFACE_PARAMETER")
    return {
        port: "".join(_attribute(pair) for pair in zip(names, values, strict=False))
        for port, values in found.items()
    }


def _bus(name):
    """The bus that a port belongs to, or an empty string."""
    return name.rpartition("_")[0] if re.match(r"[sm]_axi", name) else ""
