"""The designs that the delays and costs of the families are calibrated on."""

import random
from dataclasses import replace

from hwnorm import LayerNorm, RMSNorm, Rsqrt
from hwnorm.norms import LogTables

Q8 = {"x": "s8/4", "y": "s8/4"}
Q16 = {"x": "s16/8", "y": "s16/10"}
Q12 = {"x": "s12/6", "y": "s12/8"}


def _ecp5():
    """Name to design: norms, lengths, lanes, formats, methods and periods."""
    rms = {
        "r32x4-8": RMSNorm(dim=32, lanes=4, gamma="s8/4", **Q8),
        "r768x4-8": RMSNorm(dim=768, lanes=4, gamma="s8/4", **Q8),
        "r768x1-8": RMSNorm(dim=768, lanes=1, gamma="s8/4", **Q8),
        "r256x2-8": RMSNorm(dim=256, lanes=2, **Q8),
        "r64x4-16": RMSNorm(dim=64, lanes=4, x="s16/8", y="s16/12"),
        "r768x4-16": RMSNorm(dim=768, lanes=4, gamma="s16/14", **Q16),
        "r768x1-16": RMSNorm(dim=768, lanes=1, gamma="s16/14", **Q16),
        "r4096x2-16": RMSNorm(dim=4096, lanes=2, gamma="s16/14", **Q16),
        "r128x8-16": RMSNorm(dim=128, lanes=8, gamma="s16/13", **Q16),
        "r512x2-12": RMSNorm(dim=512, lanes=2, gamma="s12/9", **Q12),
        "r1024x4-12": RMSNorm(dim=1024, lanes=4, rsqrt=Rsqrt("quadratic"), **Q12),
        "r256x1-16q": RMSNorm(dim=256, lanes=1, gamma="s16/14", rsqrt=Rsqrt("quadratic"), **Q16),
        "r96x3-10d": RMSNorm(
            dim=96, lanes=3, x="s10/6", y="s10/6", gamma="s10/8", rsqrt=Rsqrt("direct")
        ),
        "r576x2-24": RMSNorm(dim=576, lanes=2, x="s24/8", gamma="s16/13", y="s16/9"),
        "r64x1-20": RMSNorm(dim=64, lanes=1, x="s20/10", gamma="s18/14", y="s18/12"),
        "r256x1-8log": RMSNorm(
            dim=256, lanes=1, gamma="s8/6", rsqrt=Rsqrt("log"), log=LogTables("mitchell"), **Q8
        ),
        "r64x2-12log": RMSNorm(dim=64, lanes=2, rsqrt=Rsqrt("log"), log=LogTables("direct"), **Q12),
    }
    layer = {
        "l768x4-8": LayerNorm(dim=768, lanes=4, gamma="s8/6", beta="s8/4", **Q8),
        "l384x2-16": LayerNorm(dim=384, lanes=2, gamma="s16/13", beta="s16/12", **Q16),
        "l128x1-12": LayerNorm(dim=128, lanes=1, gamma="s12/9", **Q12),
    }
    periods = {
        "r32x4-8": (5.5, 6.0, 8.0, 12.0), "r768x4-8": (5.5, 6.0, 8.0), "r768x1-8": (6.0, 10.0),
        "r64x4-16": (6.0, 9.0), "r768x4-16": (5.5, 6.5, 10.0), "r768x1-16": (6.0, 8.0),
        "r4096x2-16": (7.0,), "l768x4-8": (6.0, 9.0), "l384x2-16": (6.0, 8.0),
        "r576x2-24": (5.5, 7.0), "r256x1-8log": (6.0, 10.0),
    }  # fmt: skip
    return {
        f"{name}@{period:g}": _timed(design, period, "ecp5")
        for name, design in (rms | layer).items()
        for period in periods.get(name, (6.0, 8.0))
    }


def _large():
    """Designs of which the clock is limited by how many LUTs there are."""
    gamma = {"gamma": "s16/13"}
    norms = {
        "r1024x16-8@6": RMSNorm(dim=1024, lanes=16, gamma="s8/4", **Q8),
        "r1024x16-8@8": RMSNorm(dim=1024, lanes=16, gamma="s8/4", **Q8),
        "r512x8-16@6.5": RMSNorm(dim=512, lanes=8, **gamma, **Q16),
        "l256x8-12@8": LayerNorm(dim=256, lanes=8, gamma="s12/9", **Q12),
        "r384x8-24@6": RMSNorm(dim=384, lanes=8, x="s24/8", y="s16/9", **gamma),
        "r256x16-16@7": RMSNorm(dim=256, lanes=16, **gamma, **Q16),
    }
    return {
        name: _timed(design, float(name.partition("@")[2]), "ecp5")
        for name, design in norms.items()
    }


def _ice40():
    """Designs without multipliers, and small ones that multiply."""
    norms = {
        "r256x1-8log": RMSNorm(
            dim=256, lanes=1, gamma="s8/6", rsqrt=Rsqrt("log"), log=LogTables("mitchell"), **Q8
        ),
        "r64x1-8log": RMSNorm(dim=64, lanes=1, rsqrt=Rsqrt("log"), **Q8),
        "r512x2-8log": RMSNorm(dim=512, lanes=2, gamma="s8/6", rsqrt=Rsqrt("log"), **Q8),
        "r128x1-10log": RMSNorm(
            dim=128, lanes=1, x="s10/6", y="s10/6", rsqrt=Rsqrt("log"), log=LogTables("direct")
        ),
        "r96x3-6log": RMSNorm(dim=96, lanes=3, x="s6/3", y="s8/5", rsqrt=Rsqrt("log")),
        "r768x1-12log": RMSNorm(
            dim=768, lanes=1, gamma="s8/6", rsqrt=Rsqrt("log"), log=LogTables("mitchell"), **Q12
        ),
        "r64x1-8": RMSNorm(dim=64, lanes=1, gamma="s8/6", **Q8),
        "r256x2-8": RMSNorm(dim=256, lanes=2, **Q8),
        "r32x1-12q": RMSNorm(dim=32, lanes=1, rsqrt=Rsqrt("quadratic"), **Q12),
        "l128x1-8": LayerNorm(dim=128, lanes=1, gamma="s8/6", **Q8),
    }
    return {
        f"{name}@{period:g}": _timed(design, period, "ice40")
        for name, design in norms.items()
        for period in (20.0, 25.0, 40.0)
    }


def _gowin():
    every = list(_ecp5().items())
    return {name: replace(design, target="gowin") for name, design in every[::2]}


def _timed(design, period_ns, target):
    # What was measured: which form is smaller is decided by these very estimates.
    return replace(design, period_ns=period_ns, target=target, solver="pipelined")


def _drawn(family):
    """Designs drawn at random from all that can be written, for what LUTs are made of."""
    rng = random.Random(1)
    periods = {"ice40": (20, 25, 30, 40)}.get(family, (5.5, 6, 7, 8, 9, 12))
    most_lanes = {"ice40": 3}.get(family, 8)
    found = {}
    while len(found) < DRAWN[family]:
        dim = rng.choice((32, 64, 96, 128, 256, 384, 576, 768, 1024, 1536, 4096))
        lanes = rng.choice([n for n in (1, 2, 3, 4, 6, 8) if dim % n == 0 and n <= most_lanes])
        x, y = rng.choice((6, 8, 8, 10, 12, 16, 16, 20, 24)), rng.choice((8, 10, 12, 16, 16))
        method = rng.choice(("direct", "linear", "linear", "linear", "quadratic", "log"))
        norm, more = RMSNorm, {}
        if method == "log":
            more = {"log": LogTables(rng.choice(("mitchell", "direct")))}
        elif rng.random() < 0.25:
            norm = LayerNorm
        try:
            design = norm(
                dim=dim, lanes=lanes, x=f"s{x}/{x // 2}", y=f"s{y}/{y * 5 // 8}",
                gamma=rng.choice((None, "s8/6", "s12/9", "s16/13")), rsqrt=Rsqrt(method),
                period_ns=float(rng.choice(periods)), target=family,
                solver=rng.choice(("pipelined", "pipelined", "shared")), **more,
            )  # fmt: skip
            assert design.latency
        except ValueError:
            continue  # a row too short to share, a period too short for the family
        found[f"drawn{len(found) + 1}"] = design
    return found


#: How many are drawn.
DRAWN = {"ecp5": 150, "ice40": 70, "gowin": 70, "xc7": 100}


def placed(family):
    """Name to design, of those that are placed and routed: none where there is no open placer."""
    made = {"ecp5": lambda: _ecp5() | _large(), "ice40": _ice40, "gowin": _gowin}.get(family)
    return made() if made else {}


def synthesised(family):
    """Name to design, of all."""
    return placed(family) | _drawn(family)
