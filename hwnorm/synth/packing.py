"""Registers into the blocks of an ECP5: what Lattice's own synthesis does and Yosys does not.

A MULT18X18D has registers at its inputs and its output, a DP16KD has one at its output. hwnorm's
pipelines put registers right there, but ``synth_ecp5`` leaves them in the fabric, where a block
without its own is slow. `pack_registers` works on Yosys' JSON, between synthesis and nextpnr.
"""

from collections import defaultdict

_FACTOR, _PRODUCT = 18, 36


class Packer:
    """One flat module of a Yosys JSON netlist, and who drives and reads its nets."""

    def __init__(self, module):
        self.cells = module["cells"]
        self.readers = defaultdict(set)
        for name, cell in self.cells.items():
            for port, bits in cell["connections"].items():
                if cell["port_directions"][port] == "input":
                    for bit in bits:
                        self.readers[bit].add((name, port))
        for name, port in module["ports"].items():
            for bit in port["bits"]:
                self.readers[bit].add((None, name))
        #: Net to the register that drives it, of those that a block can take in.
        self.registers = {
            cell["connections"]["Q"][0]: name
            for name, cell in self.cells.items()
            if _is_plain(cell)
        }

    def behind(self, cell, ports):
        """The registers behind a cell's ports: port to name; None if one has other readers."""
        found = {}
        for port in ports:
            net = cell["connections"].get(port, [None])[0]
            if not isinstance(net, int) or not self.readers[net]:
                continue
            (name, entry), *others = self.readers[net]
            if others or entry != "DI" or not _is_plain(self.cells.get(name)):
                return None
            found[port] = name
        return found

    def take_outputs(self, cell, registers):
        """Let a cell drive what registers behind it drove."""
        for port, name in registers.items():
            wires = self.cells.pop(name)["connections"]
            cell["connections"][port] = wires["Q"]
            del self.registers[wires["Q"][0]]

    def take_inputs(self, name, cell, side):
        """Let a multiplier's factor be registered inside; True if all its bits were outside."""
        nets = {f"{side}{n}": cell["connections"][f"{side}{n}"][0] for n in range(_FACTOR)}
        if not all(net in self.registers for net in nets.values() if isinstance(net, int)):
            return False
        for port, net in nets.items():
            if isinstance(net, int):
                self.readers[net].discard((name, port))
                source = self.cells[self.registers[net]]["connections"]["DI"]
                cell["connections"][port] = source
                self.readers[source[0]].add((name, port))
        return True

    def sweep(self):
        """Remove registers that nobody reads any more."""
        again = True
        while again:
            again = False
            for net, name in list(self.registers.items()):
                if not self.readers[net]:
                    source = self.cells.pop(name)["connections"]["DI"][0]
                    self.readers[source].discard((name, "DI"))
                    del self.registers[net]
                    again = True


def pack_registers(netlist):
    """Move registers into the multipliers and block RAMs of a netlist for ECP5, in place.

    Parameters
    ----------
    netlist : dict
        Yosys' JSON of a flat design behind ``synth_ecp5``.

    Returns
    -------
    dict of str to int
        Blocks with registers now: ``inputs`` (factors), ``outputs`` and ``memories``; and
        ``removed``, the registers that have left the fabric.
    """
    (module,) = (m for m in netlist["modules"].values() if int(m["attributes"].get("top", "0"), 2))
    packer = Packer(module)
    before = len(packer.registers)
    done = {"inputs": 0, "outputs": 0, "memories": 0}
    for name, cell in list(module["cells"].items()):
        if cell["type"] == "MULT18X18D":
            behind = packer.behind(cell, [f"P{n}" for n in range(_PRODUCT)])
            if not behind:
                continue
            clock = packer.cells[next(iter(behind.values()))]["connections"]["CLK"]
            packer.take_outputs(cell, behind)
            _register(cell, "OUTPUT", clock)
            done["outputs"] += 1
            for side in "AB":
                if packer.take_inputs(name, cell, side):
                    _register(cell, f"INPUT{side}", clock)
                    done["inputs"] += 1
        if cell["type"] == "DP16KD":
            for side in "AB":
                data = [port for port in cell["connections"] if port.startswith(f"DO{side}")]
                behind = packer.behind(cell, data)
                if behind:
                    packer.take_outputs(cell, behind)
                    cell["parameters"][f"REGMODE_{side}"] = "OUTREG"
                    done["memories"] += 1
    packer.sweep()
    return done | {"removed": before - len(packer.registers)}


def _is_plain(cell):
    """Whether a cell is a register without enable and reset, on the rising edge."""
    if cell is None or cell["type"] != "TRELLIS_FF":
        return False
    settings, wires = cell["parameters"], cell["connections"]
    return (
        settings.get("CEMUX", "1").strip() == "1"
        and settings.get("CLKMUX", "CLK") == "CLK"
        and wires.get("LSR", ["0"])[0] in ("0", "x")
    )


def _register(cell, which, clock):
    """Switch on one of a multiplier's registers, always enabled and never reset."""
    cell["parameters"] |= {
        f"REG_{which}_CLK": "CLK0", f"REG_{which}_CE": "CE0", f"REG_{which}_RST": "RST0"
    }  # fmt: skip
    for port, net in (("CLK0", clock), ("CE0", ["1"]), ("RST0", ["0"])):
        cell["connections"][port] = net
        cell["port_directions"][port] = "input"
