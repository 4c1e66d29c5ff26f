"""Accuracy on the inputs on which public fixed-point RMSNorm RTL was measured.

    python benchmarks/peers.py [--json]

The peers' figures are of their RTL, simulated with Verilator 5.006: MASE ``rms_norm_2d``
(DeepWok/mase, commit ae4660b1) and APEX ``asu_rmsnorm`` (SigmanticAI/Qwen7BInferenceChip, commit
5998060b), on Gaussian rows, gamma = 1, against float64 without eps. Here: 200 seeded rows of the
same distribution and formats. The sweep runs from a standard deviation of one lsb of the input
to full scale, where the rows are clipped to the format.
"""

import json

import click
import numpy as np

from hwnorm import RMSNorm, measure

ROWS = 200

#: Name, dim, x, gamma, y, standard deviation in full scales, the peer's SQNR in dB, our target.
CASES = (
    ("MASE Q8.4, dim 32", 32, "s8/4", "s8/4", "s8/4", 1 / 8, 28.9, 35.0),
    ("MASE Q12.8, dim 64", 64, "s12/8", "s12/8", "s12/8", 1 / 8, 53.0, 58.5),
    ("MASE Q12.8, dim 1024", 1024, "s12/8", "s12/8", "s12/8", 1 / 8, -9.8, 58.5),
    ("MASE Q16.8, dim 64", 64, "s16/8", "s16/8", "s16/8", 1 / 8, -10.6, 58.5),
    ("APEX int8 in, Q7.8 out, dim 3584", 3584, "s8/0", "s16/13", "s16/8", 1 / 8, 26.7, 55.0),
)


def gaussian(design, sigma_lsb, seed=0):
    """Seeded Gaussian rows, rounded and clipped to the input format."""
    rng = np.random.default_rng(seed)
    x = np.rint(rng.normal(0, sigma_lsb, (ROWS, design.dim)))
    return np.clip(x, design.x.lo, design.x.hi).astype(np.int64)


def run_case(case):
    """The figures of one case, with gamma = 1 stored and without gamma."""
    name, dim, x, gamma, y, sigma, peer_db, target_db = case
    result = {"case": name, "peer_db": peer_db, "target_db": target_db}
    for label, fmt in (("gamma", gamma), ("no_gamma", None)):
        # An eps that does not show in any row, as the peers have none.
        design = RMSNorm(dim=dim, eps=1e-9, x=x, gamma=fmt, y=y)
        full = -design.x.lo
        report = measure(design, gaussian(design, sigma * full)).all
        worst = 0.0
        sigma_lsb = 1.0
        while sigma_lsb <= full:
            swept = measure(design, gaussian(design, sigma_lsb, seed=1)).all
            worst = max(worst, swept.ideal_sqnr_db - swept.sqnr_db)
            sigma_lsb *= 2
        result[label] = {
            "sqnr_db": round(report.sqnr_db, 2),
            "ideal_db": round(report.ideal_sqnr_db, 2),
            "worst_loss_in_sweep_db": round(worst, 3),
            "sum_bits": design.flows.totals["sumsq"].width,
            "max_ulp": round(report.max_ulp, 3),
        }
    return result


@click.command()
@click.option("--json", "as_json", is_flag=True)
def main(as_json):
    """Measure and print."""
    results = [run_case(case) for case in CASES]
    if as_json:
        click.echo(json.dumps(results))
        return
    for r in results:
        for label in ("gamma", "no_gamma"):
            v = r[label]
            click.echo(
                f"{r['case']:<34} {label:<9} {v['sqnr_db']:6.2f} dB (peer {r['peer_db']:6.1f}, "
                f"target {r['target_db']}, ideal {v['ideal_db']:.2f}); worst loss over the "
                f"sweep {v['worst_loss_in_sweep_db']:.3f} dB; {v['sum_bits']}-bit sum"
            )


if __name__ == "__main__":
    main()
