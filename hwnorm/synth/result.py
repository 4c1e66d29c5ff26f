"""What a synthesis has found."""

from dataclasses import asdict, dataclass, field


@dataclass(frozen=True)
class SynthResult:
    """Cells of a design, and the clock that it reaches.

    Parameters
    ----------
    target, device : str
    tool : str
        The programs and their versions.
    cells : dict of str to int
        By kind: ``lut``, ``ff``, ``carry``, ``dsp``, ``bram``, ``lutram``.
    parts : dict of str to dict of str to int
        The same of each part; the parts add up to `cells`. Empty for foreign Verilog.
    raw_cells : dict of str to int
        By the family's own names.
    needs, has : dict of str to int
        What the design takes of the device at least, and what there is: ``lut``, ``ff``,
        ``dsp``, ``bram``.
    seeds : tuple of dict
        Of each run of nextpnr: ``seed``, ``fmax_mhz``. Empty without place and route, as are
        the following.
    fmax_mhz, fmax_median_mhz, fmax_best_mhz : float or None
        Of the seeds: the first is the median as well.
    critical_path : tuple of str
        The wires of the flows that the slowest path goes through, in the run that is (or, of
        an even number, is just below) the median.
    limit, limit_op : str or None
        The wire on that path that takes the longest, and the op that makes it.
    untimed : tuple of str
        What of the design nextpnr has no delays of: with any, the clock is an upper bound.
    utilisation : dict of str to dict of str to int
        Of that run, with the loopback's own cells: ``used`` and ``available`` by nextpnr's
        names.
    period_ns : float or None
        What was asked for.
    bitstream : bytes or None
        The packed loopback of the best run, if it was asked for.
    """

    target: str
    device: str
    tool: str
    cells: dict
    parts: dict
    raw_cells: dict
    needs: dict
    has: dict
    seeds: tuple = ()
    fmax_mhz: float | None = None
    fmax_median_mhz: float | None = None
    fmax_best_mhz: float | None = None
    critical_path: tuple = ()
    limit: str | None = None
    limit_op: str | None = None
    untimed: tuple = ()
    utilisation: dict = field(default_factory=dict)
    period_ns: float | None = None
    bitstream: bytes | None = None

    @property
    def fits(self):
        """Whether the device has what the design takes at least."""
        return not self.lacking

    @property
    def lacking(self):
        """What the device has too little of."""
        return [what for what, need in self.needs.items() if need > self.has[what]]

    @property
    def meets(self):
        """Whether the best seed reaches the period that was asked for."""
        if self.period_ns is None or self.fmax_best_mhz is None:
            return True
        return self.fmax_best_mhz * self.period_ns >= 1000

    def to_dict(self):
        """All of it for JSON, with the bitstream's size instead of its bytes."""
        data = asdict(self) | {"fits": self.fits}
        data["bitstream_bytes"] = None if self.bitstream is None else len(self.bitstream)
        del data["bitstream"]
        return data

    def to_text(self):
        """All of it in words."""
        kinds = list(self.cells)
        lines = [
            f"{self.target} {self.device}, by {self.tool}",
            f"{'':10}" + "".join(f"{kind.upper():>8}" for kind in kinds),
        ]
        for name, counts in [*self.parts.items(), ("total", self.cells)]:
            lines.append(f"{name:10}" + "".join(f"{counts[kind]:>8}" for kind in kinds))
        shares = [
            f"{need} of {self.has[what]} {what.upper()} ({need / self.has[what]:.0%})"
            for what, need in self.needs.items()
            if self.has[what]
        ]
        lines.append(f"{'takes':10}{', '.join(shares)}" + ("" if self.fits else ": does not fit"))
        if self.seeds:
            many = f" of {len(self.seeds)} seeds" if len(self.seeds) > 1 else ""
            best = f", best {self.fmax_best_mhz:.1f} MHz" if many else ""
            lines.append(f"{'fmax':10}{self.fmax_median_mhz:.1f} MHz, median{many}{best}")
            if self.untimed:
                lines.append(f"{'':10}at most: nextpnr does not time {', '.join(self.untimed)}")
            lines.append(f"{'path':10}{' > '.join(self.critical_path)}")
            lines.append(f"{'limit':10}{self.limiting}")
        if self.bitstream is not None:
            lines.append(f"{'bitstream':10}{len(self.bitstream)} bytes")
        return "\n".join(lines)

    @property
    def limiting(self):
        """The wire that limits the clock, with its op."""
        return f"{self.limit} ({self.limit_op})" if self.limit_op else f"{self.limit}"
