"""Speed of the bit-accurate model, as ratios in one run.

    python benchmarks/model_speed.py [--rows 1024] [--json]

Compares, on the same int16 rows: the model; the float64 golden, computed in the same blocks of
rows, with numpy's own settings and with the small buffer that the model sets (which halves the
time of broadcasts, golden's too); and the same arithmetic written with ``fxpmath.Fxp`` arrays
(on few rows, since it is slow), which must also give the same bits.
"""

import json
import time

import click
import numpy as np
from fxpmath import Fxp

from hwnorm import RMSNorm
from hwnorm.golden import rms_norm
from hwnorm.model import BLOCK_ELEMENTS, evaluate, small_buffer, solve_rows

DIM = 4096


def best_of(function, seconds=3.0):
    """The shortest of as many runs as fit into some seconds, at least three."""
    times, end = [], time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def run_golden(x, gamma, out, step):
    """The float64 golden in blocks of `step` rows, from the same integers."""
    for start in range(0, len(x), step):
        block = x[start : start + step] * 2.0**-8
        out[start : start + step] = rms_norm(block, gamma, 1e-5)


def run_fxp(design, x, gamma):
    """The design's arithmetic on Fxp arrays; significand and shift come from its solve."""
    scalars = solve_rows(design.flows, x)
    hidden = design.units["rsqrt"].hidden
    sig_frac = design.flows.solve.outputs["inv"].fmt.frac
    rounded = {"rounding": "around", "overflow": "saturate"}
    like = Fxp(None, True, design.y.width, design.y.frac, **rounded)
    unit_frac = design.flows.apply.results["y"].frac
    stored = None
    if gamma is not None:
        stored = Fxp(gamma, True, design.gamma.width, design.gamma.frac, raw=True)
        unit_frac = next(w.fmt.frac for w in design.flows.apply.wires if w.name == "unit")
    rows = []
    for row, sig, exp in zip(x, scalars["inv"], scalars["inv_exp"], strict=True):
        xs = Fxp(row.astype(np.int64), True, 16, 8, raw=True)
        total = (xs * xs).sum()
        assert total.val > 0
        scale = Fxp(int(sig) + (1 << hidden), True, 21, sig_frac + int(exp), raw=True)
        product = xs * scale
        if stored is None:
            rows.append(Fxp(product, like=like).val)
            continue
        unit = Fxp(product, True, 30, unit_frac, rounding="nearest_posinf", overflow="saturate")
        rows.append(Fxp(unit * stored, like=like).val)
    return np.array(rows)


def compare(design, x, gamma_int):
    """One design: elements a second of the three, and the ratios."""
    gamma = None if gamma_int is None else design.gamma.reals(gamma_int)
    step = max(1, BLOCK_ELEMENTS // DIM)
    y, real = np.empty(x.shape, np.int64), np.empty(x.shape, np.float64)
    few = x[:8]
    same = run_fxp(design, few, gamma_int)
    if not (same == evaluate(design, few, gamma_int).y).all():
        raise SystemExit("the Fxp arithmetic and the model must give the same bits")
    model_s = best_of(lambda: evaluate(design, x, gamma_int, out=y))
    golden_s = best_of(lambda: run_golden(x, gamma, real, step))
    with small_buffer():
        tuned_s = best_of(lambda: run_golden(x, gamma, real, step))
    fxp_s = best_of(lambda: run_fxp(design, few, gamma_int)) * len(x) / len(few)
    return {
        "gamma": design.gamma.spelling if design.gamma else "none",
        "rows_per_block": step,
        "model_melements_per_s": x.size / model_s / 1e6,
        "golden_melements_per_s": x.size / golden_s / 1e6,
        "fxpmath_melements_per_s": x.size / fxp_s / 1e6,
        "model_over_golden": golden_s / model_s,
        "model_over_tuned_golden": tuned_s / model_s,
        "model_over_fxpmath": fxp_s / model_s,
    }


@click.command()
@click.option("--rows", default=1024, show_default=True)
@click.option("--json", "as_json", is_flag=True)
def main(rows, as_json):
    """Measure and print."""
    rng = np.random.default_rng(0)
    x = np.clip(np.rint(rng.normal(0, 4000, (rows, DIM))), -32768, 32767).astype(np.int16)
    gamma = rng.integers(-32768, 32768, DIM)
    results = [
        compare(RMSNorm(dim=DIM, lanes=16, x="s16/8", y="s16/8"), x, None),
        compare(RMSNorm(dim=DIM, lanes=16, x="s16/8", gamma="s16/14", y="s16/8"), x, gamma),
    ]
    if as_json:
        click.echo(json.dumps(results))
        return
    for r in results:
        click.echo(
            f"gamma {r['gamma']}: model {r['model_melements_per_s']:.0f} M elements/s, golden "
            f"{r['golden_melements_per_s']:.0f}, fxpmath {r['fxpmath_melements_per_s']:.3f}; "
            f"model/golden {r['model_over_golden']:.2f} "
            f"({r['model_over_tuned_golden']:.2f} with the model's numpy buffer for both), "
            f"model/fxpmath {r['model_over_fxpmath']:.0f}"
        )


if __name__ == "__main__":
    main()
