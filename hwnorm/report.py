"""What the command line says of a design, as data and as text."""

from dataclasses import asdict

from hwnorm.estimate import estimate
from hwnorm.targets import TARGETS


def check_data(design):
    """The facts of ``hwnorm check``, ready for JSON.

    Returns
    -------
    dict
        Among others ``latency_cycles``, ``bound_ulp``, ``rom_bits``, ``widths`` (wire to
        width) and ``warnings`` (sentences).
    """
    exact = design.rsqrt.method == "exact"
    data = {
        "norm": design.kind,
        "dim": design.dim,
        "lanes": design.lanes,
        "method": design.rsqrt.method,
        "bound_ulp": design.bound_ulp,
        "warnings": warnings(design),
    }
    if exact:
        return data
    flows = design.flows
    used = flows.gather, flows.solve, flows.apply
    cost = (flows.gather.cost + flows.apply.cost) * design.lanes
    cost = cost + flows.solve.cost_of(design.schedule(flows.solve))
    return data | {
        "bound_terms_ulp": design.error_terms,
        "estimate": asdict(estimate(design)),
        "latency_cycles": design.latency,
        "latency_beyond_row_cycles": design.latency - design.beats,
        "cycles_per_row": design.beats,
        "eps_used": design.eps_used,
        "rom_bits": sum(unit.table.rom_bits for unit in design.units.values()),
        "multipliers_estimate": cost.multipliers,
        "datapath_luts_estimate": cost.luts + cost.adder_bits,
        "tables": {
            name: {
                "method": unit.table.method,
                "segments": unit.table.segments,
                "rom_bits": unit.table.rom_bits,
                "max_error": unit.table.max_error,
                "proof": unit.table.proof,
                "limit": unit.table.limit,
                "ratio_to_limit": unit.table.ratio,
                "unreachable_entries": unit.unreachable,
            }
            for name, unit in design.units.items()
        },
        "widths": {
            f"{flow.name}.{flow.names[wire]}": wire.fmt.width
            for flow in used
            for wire in flow.wires
        },
    }


def warnings(design):
    """What the engineer should know before building, one sentence each."""
    found = []
    reach = design.peak * design.gain
    if design.beta is not None:
        reach += max(-design.beta.lo, design.beta.hi) * design.beta.lsb
    top = design.y.hi * design.y.lsb
    if reach > top + design.y.lsb:
        found.append(
            f"y can saturate: rows may reach {reach:.4g}, format.y {design.y.spelling} ends at "
            f"{top:.4g}; saturated outputs are counted"
        )
    if design.overflow == "wrap" and reach > top:
        found.append("y can wrap around: overflow is wrap and format.y does not hold all rows")
    if design.eps_lsb < 0.5:
        found.append(
            f"eps is {design.eps_lsb:.3g} lsb of the total and would round to 0: the total carries "
            f"more low bits for it"
        )
    if design.rsqrt.method == "exact":
        return [*found, "exact is a model only: there is no hardware for it"]
    for flow in (design.flows.gather, design.flows.solve, design.flows.apply):
        if flow.wide_wires:
            found.append(
                f"{flow.name} has wires beyond 62 bits ({', '.join(flow.wide_wires)}): exact, but "
                f"the model computes them in Python integers, which is slower"
            )
    for name, unit in design.units.items():
        if unit.unreachable:
            found.append(
                f"table {name} has {unit.unreachable} of {unit.table.segments} entries that no "
                f"argument reaches"
            )
    if design.bound_ulp >= 1 and design.rounding != "floor":
        found.append(
            f"the bound {design.bound_ulp:.3g} ulp is not below 1: results are not faithful; "
            f"{advice(design)}"
        )
    return found


def advice(design):
    """The field that helps most against a bound of one ulp or more."""
    terms = design.error_terms
    worst = max((name for name in terms if name != "rounding of y"), key=terms.get)
    if design.rsqrt.method == "log":
        return "more log.segments or log.frac"
    return {
        "scale": "more rsqrt.segments or rsqrt.guard_bits",
        "eps": "more rsqrt.guard_bits",
        "rounding before gamma": "more rsqrt.guard_bits",
    }[worst]


def check_text(design, wires=False):
    """``hwnorm check`` in words."""
    data = check_data(design)
    lines = [design.headline]
    if design.rsqrt.method != "exact":
        terms = " + ".join(f"{v:.4f} ({k})" for k, v in data["bound_terms_ulp"].items())
        lines += [
            f"error bound   {data['bound_ulp']:.4f} ulp of y = {terms}",
            f"latency       {data['latency_cycles']} cycles = {design.beats} beats of a row + "
            f"{data['latency_beyond_row_cycles']}, at {design.period_ns:g} ns",
            f"rate          1 beat a clock, {design.beats} cycles a row",
            f"eps           {design.eps:g}, used {data['eps_used']:.6g}",
            f"multipliers   {data['multipliers_estimate']} of 18x18 (estimate)",
            f"tables        {data['rom_bits']} bits of ROM",
            estimate_text(data["estimate"]),
        ]
        for name, table in data["tables"].items():
            lines.append(
                f"  {name:<12}{table['method']}, {table['segments']} segments, error "
                f"{table['max_error']:.3g} ({table['proof']}); limit {table['limit']:.3g}, "
                f"ideal coefficients {table['ratio_to_limit']:.3f} of it"
            )
        if wires:
            for flow in (design.flows.gather, design.flows.solve, design.flows.apply):
                schedule = design.schedule(flow)
                lines += ["", flow.describe(design.period_ns, TARGETS[design.target], schedule)]
    return "\n".join([*lines, *(f"note: {sentence}" for sentence in data["warnings"])])


def estimate_text(found):
    """The estimate in a line."""
    sure = {"nextpnr": "calibrated", "scaled": "scaled, not calibrated", "none": "no family"}
    return (
        f"estimate      {found['fmax_mhz']:g} MHz, {found['lut']} LUT, {found['ff']} FF, "
        f"{found['dsp']} DSP, {found['bram']} BRAM on {found['target']} "
        f"({sure[found['calibrated']]}); limited by {found['limited_by']}"
    )


def eval_data(total, layers):
    """The figures of ``hwnorm eval``, ready for JSON."""
    return total.to_dict() | {
        "layers": [{"name": name, **report.to_dict()} for name, report in layers]
    }


def eval_text(design, total, layers, source):
    """``hwnorm eval`` in words."""
    every = total.all
    wrong = "unknown" if every.misrounded is None else f"{every.misrounded:.3%} of elements"
    lines = [
        design.headline,
        f"on {every.rows} rows of {source}, against float64:",
        f"  error           max {every.max_ulp:.4f} ulp, bound {every.bound_ulp:.4f}; "
        f"rms {every.rms_ulp:.4f}, mean {every.mean_ulp:.4f}, 99.9 % {every.p999_ulp:.4f}",
        f"  bias            {every.bias_ulp:+.5f} ulp",
        f"  misrounded      {wrong}",
        f"  SQNR            {every.sqnr_db:.2f} dB; ideal for {design.y.spelling} "
        f"{every.ideal_sqnr_db:.2f} dB",
        f"  saturated       {every.saturated} of {every.elements} elements",
    ]
    for name, part in (
        ("rows without outliers", total.ordinary),
        ("outlier rows", total.outlier),
        ("  their other elements", total.non_outlier),
    ):
        if part and total.outlier:
            lines.append(
                f"  {name:<24}{part.rows} rows: max {part.max_ulp:.4f} ulp, "
                f"SQNR {part.sqnr_db:.2f} dB (ideal {part.ideal_sqnr_db:.2f})"
            )
    if total.x_quantisation_ulp:
        lines.append(f"  apart: quantising x moves y by up to {total.x_quantisation_ulp:.2f} ulp")
    if total.gamma_quantisation_ulp:
        lines.append(
            f"  apart: quantising gamma moves y by up to {total.gamma_quantisation_ulp:.2f} ulp"
        )
    if len(layers) > 1:
        name, worst = max(layers, key=lambda item: item[1].all.max_ulp)
        lines.append(f"  worst layer     {name}: max {worst.all.max_ulp:.4f} ulp")
    return "\n".join(lines)
