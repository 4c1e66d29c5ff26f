"""From names in a netlist back to what the engineer wrote: the flows' wires, the shell's parts."""

import re
from math import inf

from hwnorm.targets import GENERIC

#: Parts of an engine, in the order in which they are shown.
PARTS = ("gather", "solve", "apply", "buffer", "control")


def part_of(path):
    """The part that a module instance of a `hwnorm` top level belongs to."""
    word = path.split(".")[1] if "." in path else ""
    if word == "gather" or word.startswith("reduce_"):
        return "gather"
    if word in ("ring", "fifo", "queue") or word.startswith("store_"):
        return "buffer"
    return {"solver": "solve", "apply": "apply"}.get(word, "control")


#: Names that the Verilog writer numbers.
_NUMBERED = re.compile(r"(?:^|\.)(?:n|port_|wake_)\d+(?:_\d+)?$")


class FlowNames:
    """Nets of a netlist as wires of the design's flows.

    Parameters
    ----------
    design : hwnorm.Norm or None
        Without, nets keep the names that they have.
    module : dict
        Of the netlist that nextpnr reads, as Yosys writes it.
    instance : str
        The design's instance in it.
    """

    def __init__(self, design, module, instance):
        self.flows = {}
        if design is not None:
            flows = design.flows
            self.flows = {
                "engine.gather": flows.gather,
                "engine.solver": flows.solve,
                "engine.apply": flows.apply,
            }
            self.flows |= {f"engine.reduce_{n}.tree": f for n, f in flows.reduce.items()}
            self.flows |= {f"engine.store_{n}.loader": f for n, f in flows.load.items()}
        self.prefix = f"{instance}."
        self._bits = {name: net["bits"] for name, net in module["netnames"].items()}
        self._aliases = {}
        for name, bits in self._bits.items():
            for bit in bits:
                if isinstance(bit, int):
                    self._aliases.setdefault(bit, []).append(name)
        self._cells = module["cells"]

    def of_net(self, net):
        """What a net is called, and the op that makes it.

        Returns
        -------
        (str, str or None) or None
            ``solve.mantissa`` and ``Normalise``; of nets of the shell, the path without the
            instance (``ring.used``) and None. Inside an op, where nets have no name of the
            flow, it is None altogether.
        """
        found = re.fullmatch(r"(.*?)(?:\[(\d+)\])?", net)
        name, at = found[1], int(found[2] or 0)
        bits = self._bits.get(name)
        names = [name]
        if bits and at < len(bits):
            names += [other for other in self._aliases.get(bits[at], ()) if other != name]
        for candidate in names:
            if wire := self._flow_wire(candidate, exact=True):
                return wire
        if wire := self._flow_wire(name, exact=False):
            return wire
        inside = name.removeprefix(self.prefix).rpartition(".")[0] in self.flows
        # Nets that nextpnr adds, of carry chains, belong to what comes behind them.
        if inside or "$nextpnr" in name:
            return None
        # Of several names of a net, one that somebody has thought of.
        shells = [self._shell_name(candidate) for candidate in names]
        return next((n for n in shells if not _NUMBERED.search(n)), shells[0]), None

    def of_cell(self, cell):
        """Likewise of the net that a cell drives; None if nothing is known of it."""
        # nextpnr's names for a LUT and a flip-flop, or one of them, in a logic cell of iCE40.
        name = re.sub(r"_(?:DFF)?LC$", "", cell)
        cell = self._cells.get(name, {"connections": {}})
        bits = [
            bit
            for port, bits in cell["connections"].items()
            if cell["port_directions"].get(port) == "output"
            for bit in bits
        ]
        for bit in bits:
            for net in self._aliases.get(bit, ()):
                if wire := self._flow_wire(net, exact=True):
                    return wire
        if wire := self._flow_wire(name, exact=False):
            return wire
        return next((self.of_net(net) for bit in bits for net in self._aliases.get(bit, ())), None)

    def _flow_wire(self, name, exact):
        """A name as a flow's wire; not exact: also one that Yosys made of a wire's name."""
        local = name.removeprefix(self.prefix)
        path, _, word = local.rpartition(".")
        flow = self.flows.get(path)
        if flow is None:
            return None
        wires = {key: wire for wire, key in flow.names.items()}
        pieces = word.split("_")
        # rsqrt_c1 may be a wire, or the wire rsqrt one cycle later: whole names first.
        for n in range(len(pieces), 0, -1):
            if exact and n < len(pieces) and not _only_suffixes(pieces[n:]):
                break
            if (key := "_".join(pieces[:n])) in wires:
                return _made(flow, wires[key], key)
        return None

    def _shell_name(self, name):
        local = name.removeprefix(self.prefix).removeprefix("engine.")
        # Yosys appends the cells and ports that lie between a net and the wire it is named after,
        # nextpnr what it has made of it.
        local = re.sub(r"(?<=.)\$.*", "", local)
        return re.sub(r"_(?:[A-Z][A-Z0-9]*)(?:_[A-Z0-9]\w*)*$", "", local)


def _made(flow, wire, key):
    """A wire of a flow, and the op whose hardware makes it.

    Ops that are only wiring pass on what their operand's op makes; a wire that the norm gives
    no name is then called like that operand.
    """
    while len(wire.args) == 1 and _is_wiring(wire):
        (wire,) = wire.args
        key = key if key not in _unnamed(flow) else flow.names[wire]
    return f"{flow.name}.{key}", type(wire).__name__


def _is_wiring(wire):
    """Whether an op has no hardware of its own."""
    return not any(step.ns or step.registered for step in wire.steps(GENERIC, inf))


def _unnamed(flow):
    """The names that the flow made up."""
    return {key for wire, key in flow.names.items() if wire.name is None}


def _only_suffixes(pieces):
    """Whether words behind a wire's name are a lane and a cycle: ``_0``, ``_c3``, ``_0_c3``."""
    return re.fullmatch(r"(?:\d+_?)?(?:c\d+)?", "_".join(pieces)) is not None
