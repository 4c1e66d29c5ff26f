"""The designs that the delays and costs of the families are calibrated on."""

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


def _ice40():
    log = {
        "r256x1-8log": RMSNorm(
            dim=256, lanes=1, gamma="s8/6", rsqrt=Rsqrt("log"), log=LogTables("mitchell"), **Q8
        ),
        "r64x1-8log": RMSNorm(dim=64, lanes=1, rsqrt=Rsqrt("log"), **Q8),
        "r512x2-8log": RMSNorm(dim=512, lanes=2, gamma="s8/6", rsqrt=Rsqrt("log"), **Q8),
        "r128x1-10log": RMSNorm(
            dim=128, lanes=1, x="s10/6", y="s10/6", rsqrt=Rsqrt("log"), log=LogTables("direct")
        ),
        "r64x1-8": RMSNorm(dim=64, lanes=1, gamma="s8/6", **Q8),
    }
    return {
        f"{name}@{period:g}": _timed(design, period, "ice40")
        for name, design in log.items()
        for period in (25.0, 40.0)
    }


def _timed(design, period_ns, target):
    # What was measured: which form is smaller is decided by these very estimates.
    return replace(design, period_ns=period_ns, target=target, solver="pipelined")


DESIGNS = {"ecp5": _ecp5, "ice40": _ice40}
