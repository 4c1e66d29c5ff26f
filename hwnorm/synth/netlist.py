"""Yosys: from Verilog to a netlist, and what can be read from it."""

import json
import re
from collections import Counter

from hwnorm.synth.tools import yosys_arguments

#: The file that the Verilog is in, as sources name it.
SOURCE = "top.v"


def build_netlist(tool, folder, text, top, script, finish=None):
    """Synthesise Verilog in a folder, where ``netlist.json`` is left.

    Parameters
    ----------
    tool : Tool
    folder : pathlib.Path
    text, top : str
        Verilog, and its top module.
    script : tuple of str
        See `Target.script`.
    finish : callable or None
        See `Target.finish`.

    Returns
    -------
    dict
        The module of the netlist: ``ports``, ``cells`` and ``netnames`` as Yosys writes them.

    Raises
    ------
    ValueError
        If Yosys refuses; with its last error.
    """
    (folder / SOURCE).write_text(text, encoding="utf-8")
    commands = (
        f"read_verilog {SOURCE}",
        f"hierarchy -top {top}",
        # Some flows stop at escaped names, which other people's Verilog has.
        "rename -unescape",
        *script,
        "write_json whole.json",
        # They say what was flattened; older placers take them for cells.
        "delete t:$scopeinfo",
        "write_json netlist.json",
    )
    status, said = tool.run(folder, *yosys_arguments(tool, commands))
    if status:
        errors = re.findall(r"^ERROR: (.*)$", said, re.M) or said.strip().splitlines() or ["?"]
        raise ValueError(f"{tool.name} must accept the Verilog of {top}, got: {errors[-1]}")
    for file in ("netlist.json", "whole.json"):
        netlist = json.loads((folder / file).read_text(encoding="utf-8"))
        if finish:
            finish(netlist)
            (folder / file).write_text(json.dumps(netlist), encoding="utf-8")
    return netlist["modules"][top]


def ports_of(module):
    """Port to direction and width."""
    return {name: (port["direction"], len(port["bits"])) for name, port in module["ports"].items()}


def raw_cells(module):
    """Cells by the name of their type, without those that are only notes of Yosys."""
    counts = Counter(cell["type"] for cell in module["cells"].values())
    return {name: counts[name] for name in sorted(counts) if not name.startswith("$")}


def cells_by_part(module, part_of):
    """Cells by part and the name of their type; the parts' sums are those of `raw_cells`.

    A cell belongs to the module whose line it came from, which it says in its ``src``. LUTs do
    not say it: they belong where Yosys' name for them puts them, which it makes of the next
    wire, and where that is in no submodule, to the part that most of their readers are in, and
    if none reads them, to that of what they read.

    Parameters
    ----------
    part_of : callable
        From the path of a module instance (``engine.ring``; empty for the top) to a part.

    Returns
    -------
    dict of str to dict of str to int
    """
    scopes, lines = _scopes(module)
    cells = {k: c for k, c in module["cells"].items() if not c["type"].startswith("$")}
    parts = {}
    for name, cell in cells.items():
        path = _source_scope(lines, cell)
        if path is None:
            path = _longest_scope(name, scopes)
            # In the outermost instance, the wires between parts have their names.
            path = path if path and "." in path else None
        if path is not None:
            parts[name] = part_of(path)
    _vote(cells, parts)
    for name in cells:
        parts.setdefault(name, part_of(""))
    counts = {}
    for name, part in parts.items():
        counts.setdefault(part, Counter())[cells[name]["type"]] += 1
    return {part: dict(sorted(kinds.items())) for part, kinds in counts.items()}


def _vote(cells, parts):
    """Give cells without a part that of most of their readers, or else of their drivers."""
    for reads, drives in (("input", "output"), ("output", "input")):
        others = {}
        for name, cell in cells.items():
            for bit in _bits(cell, reads):
                others.setdefault(bit, []).append(name)
        changed = True
        while changed:
            decided = {}
            for name in cells.keys() - parts.keys():
                votes = Counter(
                    parts[other]
                    for bit in _bits(cells[name], drives)
                    for other in others.get(bit, ())
                    if other in parts
                )
                if votes:
                    # Of equal votes, always the same one.
                    decided[name] = max(votes, key=lambda part: (votes[part], part))
            parts |= decided
            changed = bool(decided)


def _bits(cell, direction):
    """The nets at a cell's inputs or outputs."""
    return [
        bit
        for port, bits in cell["connections"].items()
        if cell["port_directions"].get(port) == direction
        for bit in bits
        if isinstance(bit, int)
    ]


def _scopes(module):
    """Paths of the flattened instances, and the lines of each one's module."""
    scopes, lines = set(), []
    for name, cell in module["cells"].items():
        if cell["type"] == "$scopeinfo":
            scopes.add(name)
            source = cell["attributes"].get("module_src", "")
            if found := re.fullmatch(rf"{re.escape(SOURCE)}:(\d+)\.\d+-(\d+)\.\d+", source):
                lines.append((int(found[1]), int(found[2]), name))
    return scopes, sorted(lines)


def _source_scope(lines, cell):
    """The instance whose module a cell's line is in (of the top: empty), or None."""
    for place in cell["attributes"].get("src", "").split("|"):
        if found := re.match(rf"{re.escape(SOURCE)}:(\d+)\.", place):
            line = int(found[1])
            return next((path for first, last, path in lines if first <= line <= last), "")
    return None


def _longest_scope(name, scopes):
    """The innermost instance that a flattened name is in, or None."""
    words = name.split(".")
    for n in range(len(words) - 1, 0, -1):
        if ".".join(words[:n]) in scopes:
            return ".".join(words[:n])
    return None
