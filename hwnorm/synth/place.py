"""nextpnr: from a netlist to a clock rate, the path that limits it, and a bitstream."""

import base64
import json
import re

from hwnorm.synth.harness import INSTANCE


class TooLargeError(ValueError):
    """The placer found no room: what of, how many are needed, how many there are."""

    def __init__(self, what, need, available):
        super().__init__(f"the device must hold the design, got {need} of {available} {what}")
        self.what, self.need, self.available = what, need, available


def options_of(device, period_ns):
    """What nextpnr is told of a device and a clock, without files and seed."""
    aim_mhz = 1000 / period_ns if period_ns else device.aim_mhz
    return (*device.options, "--freq", f"{aim_mhz:.3f}", "--timing-allow-fail")


def place(tool, folder, device, target, options, seed, names, packer=None):
    """Place and route ``netlist.json`` of a folder.

    Parameters
    ----------
    tool : Tool
    folder : pathlib.Path
    device : Device
    target : str
    options : tuple of str
        See `options_of`.
    seed : int
    names : FlowNames
    packer : Tool or None
        What packs a bitstream.

    Returns
    -------
    dict
        ``fmax_mhz``, ``path``, ``limit``, ``limit_op``, ``utilisation``, ``bits`` (base64, or
        None); all that JSON can hold.

    Raises
    ------
    ValueError
        If nextpnr refuses; `TooLargeError` if there is no room.
    """
    extra = []
    if target == "ecp5":
        extra = ["--lpf-allow-unconstrained", "--textcfg", "bits.txt"]
    elif target == "ice40":
        extra = ["--pcf-allow-unconstrained", "--asc", "bits.txt"]
    elif device.pins:
        lines = [f'IO_LOC "{port}" {pin};\n' for port, pin in device.pins.items()]
        (folder / "pins.cst").write_text("".join(lines), encoding="utf-8")
        extra = ["--vopt", "cst=pins.cst", "--write", "placed.json"]
    status, said = tool.run(
        folder, "--json", "netlist.json", "--report", "report.json", "--seed", str(seed), *options,
        *extra,
    )  # fmt: skip
    if status:
        raise _refusal(tool, said)
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    bits = None
    if packer:
        status, said = packer.run(folder, "bits.txt", "bits.bin")
        if status:
            raise ValueError(f"{packer.name} must pack the design, got: {said.strip()[-200:]}")
        bits = base64.b64encode((folder / "bits.bin").read_bytes()).decode()
    return read_report(report, names) | {"bits": bits}


def read_report(report, names):
    """What counts of nextpnr's report; see `place`."""
    clock, fmax = _clock(report["fmax"])
    edge = f"posedge {clock}"
    path = next((p["path"] for p in report["critical_paths"] if p["from"] == p["to"] == edge), [])
    wires, times = [], {}
    waiting = 0.0
    for step in path:
        if step["type"] == "clk-to-q":
            waiting = step["delay"]
        elif step["type"] == "routing":
            # The time until a net is there is the time of what makes it.
            if start := names.of_net(step["net"]):
                times[start] = times.get(start, 0.0) + waiting
                waiting = 0.0
                if start not in wires[-1:]:
                    wires.append(start)
            waiting += step["delay"]
        else:
            waiting += step["delay"]
    if path:
        end = names.of_cell(path[-1]["to"]["cell"]) or (wires or [("unnamed", None)])[-1]
        times[end] = times.get(end, 0.0) + waiting
        if end not in wires[-1:]:
            wires.append(end)
    limit, op = max(times, key=times.get) if times else (None, None)
    return {
        "fmax_mhz": fmax,
        "path": [name for name, _ in wires],
        "limit": limit,
        "limit_op": op,
        "utilisation": {
            name: counts for name, counts in report["utilization"].items() if counts["used"]
        },
    }


def _clock(rates):
    """The net of the design's clock among those that nextpnr reports, and its rate.

    It also times ground and its like where a register hangs on them.
    """
    real = {
        name: rate["achieved"]
        for name, rate in rates.items()
        if re.search(r"clk|clock", name, re.I)
    }
    if not real:
        raise ValueError(f"nextpnr must report a clock, got {', '.join(rates) or 'none'}")
    # A loopback has one clock; under several names, all of them must be kept.
    name = min(real, key=real.get)
    return name, real[name]


def _refusal(tool, said):
    """The error of a run that failed, as an exception."""
    over = [
        (int(used), int(available), name)
        for name, used, available in re.findall(r"^Info:\s+(\w+):\s+(\d+)/\s*(\d+)", said, re.M)
        if int(used) > int(available)
    ]
    if over:
        used, available, name = max(over, key=lambda row: row[0] / max(row[1], 1))
        return TooLargeError(name, used, available)
    errors = re.findall(r"^ERROR: (.*)$", said, re.M) or said.strip().splitlines()[-1:] or ["?"]
    where = errors[-1].replace(f"{INSTANCE}.", "")
    return ValueError(f"{tool.name} must place and route the design, got: {where}")
