"""Largest error and misrounded share with 16-bit input and output, beside the proven bound.

    python benchmarks/bounds.py

RMSNorm of dim 576 without gamma, guard_bits 2, y s16/10. On the 61 layers of SmolLM2-135M the
input is s16 with as many fraction bits as hold the layer; on synthetic rows it is s16/8.
"""

import numpy as np

from hwnorm import RMSNorm, measure
from hwnorm.rows import real_layers


def design_for(frac, dim=576):
    """The design for an input of s16 with `frac` fraction bits."""
    return RMSNorm(dim=dim, lanes=8, x=f"s16/{frac}", y="s16/10")


def synthetic(dim, rows=400, seed=0):
    """Seeded rows by kind, in lsb of s16."""
    rng = np.random.default_rng(seed)
    scale = np.exp2(rng.uniform(0, 12, (rows, 1)))
    spiked = rng.normal(0, 20, (rows, dim))
    spiked[np.arange(rows), rng.integers(dim, size=rows)] = rng.choice([-1, 1], rows) * 20000
    few = np.zeros((rows, dim))
    few[np.arange(rows), rng.integers(dim, size=rows)] = rng.choice([-1, 1], rows)
    kinds = {
        "Gaussian": rng.normal(size=(rows, dim)) * scale,
        "heavy tail": rng.standard_t(2, (rows, dim)) * scale,
        "one-hot outlier": spiked,
        "one lsb": few,
        "plus and minus one lsb": rng.integers(-1, 2, (rows, dim)),
    }
    return {k: np.clip(np.rint(v), -32768, 32767).astype(np.int64) for k, v in kinds.items()}


def line(name, reports):
    """A printed line of some reports of equal designs."""
    top = max(r.all.max_ulp for r in reports)
    wrong = np.average(
        [r.all.misrounded for r in reports], weights=[r.all.elements for r in reports]
    )
    worst = max(r.all.misrounded for r in reports)
    bound = max(r.all.bound_ulp for r in reports)
    return (
        f"{name:<24} max {top:.4f} ulp, bound {bound:.4f}; misrounded {wrong:.3%}, "
        f"worst part {worst:.3%}"
    )


def main():
    """Measure and print."""
    reports = []
    for layer in real_layers("smollm2"):
        peak = np.max(np.abs(layer.x))
        frac = 15 - int(np.ceil(np.log2(peak * 1.0001)))
        reports.append(measure(design_for(frac), layer.x))
    print(line("SmolLM2, 61 layers", reports))
    for dim in (576, 1024):
        for kind, x in synthetic(dim).items():
            print(line(f"{kind}, dim {dim}", [measure(design_for(8, dim), x)]))


if __name__ == "__main__":
    main()
