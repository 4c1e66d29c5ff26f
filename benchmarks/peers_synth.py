"""Cells and clock on ECP5-85F, speed 6, beside public RMSNorm RTL that went through the same tools.

    python benchmarks/peers_synth.py [--json] [--seeds 5]

The peers' figures are of their RTL by Yosys 0.70 and nextpnr 0.11.1 (YoWASP) at default effort:
MASE ``rms_norm_2d`` (DeepWok/mase, commit ae4660b1) with data of 8 bits, 4 of them fraction, and
APEX ``asu_rmsnorm`` for rows of up to 128 (SigmanticAI/Qwen7BInferenceChip, commit 5998060b), one
lane, 8 bits in and 16 out, which takes two clocks an element. hwnorm's cells are those of the norm
by itself; its clock is that of the norm in a loopback, so that paths from its inputs count.
"""

import json

import click

from hwnorm import RMSNorm
from hwnorm.synth import synthesise

#: Cut into steps for this family and clock.
FAST = {"target": "ecp5", "period_ns": 6.0}
#: Data of 8 bits with 4 of fraction.
Q8 = {"x": "s8/4", "y": "s8/4", **FAST}

#: Name; design; the peer's LUT4, flip-flops, MULT18 and MHz, as far as they are known.
CASES = {
    "dim 32, 4 lanes": (RMSNorm(dim=32, lanes=4, **Q8), "MASE", (2191, 2684, 37, 51.6)),
    "dim 768, 4 lanes": (RMSNorm(dim=768, lanes=4, **Q8), "MASE", (2619, 3037, 39, None)),
    "dim 768, 1 lane": (RMSNorm(dim=768, lanes=1, **Q8), "MASE", (1808, 1845, 24, None)),
    "dim 32, 4 lanes, gamma": (
        RMSNorm(dim=32, lanes=4, gamma="s8/6", **Q8), "MASE", (2191, 2684, 37, 51.6)
    ),
    "dim 768, 4 lanes, gamma": (
        RMSNorm(dim=768, lanes=4, gamma="s8/6", **Q8), "MASE", (2619, 3037, 39, None)
    ),
    "dim 128, 1 lane, gamma": (
        RMSNorm(dim=128, lanes=1, x="s8/0", gamma="s16/13", y="s16/8", **FAST), "APEX",
        (860, 367, 6, 38.1),
    ),
}  # fmt: skip


@click.command()
@click.option("--json", "as_json", is_flag=True)
@click.option("--seeds", default=5, show_default=True)
def main(as_json, seeds):
    """Synthesise, place and route, and print."""
    results = {}
    for name, (design, peer, figures) in CASES.items():
        result = synthesise(design, "ecp5", "85k", pnr=True, seeds=seeds)
        cells = result.cells
        results[name] = {
            "peer": peer,
            "peer_figures": figures,
            "lut": cells["lut"],
            "ff": cells["ff"],
            "dsp": cells["dsp"],
            "bram": cells["bram"],
            "fmax_median_mhz": round(result.fmax_median_mhz, 1),
            "fmax_best_mhz": round(result.fmax_best_mhz, 1),
            "limit": result.limiting,
        }
        if not as_json:
            luts, ffs, dsps, mhz = figures
            click.echo(
                f"{name}: {cells['lut']} LUT4, {cells['ff']} FF, {cells['dsp']} MULT18, "
                f"{cells['bram']} DP16KD, median {result.fmax_median_mhz:.1f} MHz, best "
                f"{result.fmax_best_mhz:.1f} MHz ({seeds} seeds), limited by {result.limiting}; "
                f"{peer}: {luts} LUT4, {ffs} FF, {dsps} MULT18" + (f", {mhz} MHz" if mhz else "")
            )
    if as_json:
        click.echo(json.dumps(results))


if __name__ == "__main__":
    main()
