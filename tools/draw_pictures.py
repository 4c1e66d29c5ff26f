"""Draw the pictures of the README and the docs.

python tools/draw_pictures.py
"""

import dataclasses
from pathlib import Path

from hwnorm import LogTables, RMSNorm, Rsqrt, simulate
from hwnorm.design import CATALOGUE
from hwnorm.measure import Errors
from hwnorm.plots import draw_error_against_segments, draw_error_histogram, draw_timeline
from hwnorm.rows import random_rows, real_layers

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures"

#: 24 bits hold the massive activations, 16 bits with 10 of fraction every |y| <= sqrt(576).
BASE = RMSNorm(dim=576, lanes=8, x="s24/8", y="s16/10")
SEGMENTS = [2**k for k in range(1, 13)]


def errors(design):
    """The errors on all layers of SmolLM2-135M."""
    return Errors.joined([Errors.of(design, layer.x) for layer in real_layers("smollm2")])


def variant(method, segments):
    """The design with another method and table size."""
    return dataclasses.replace(
        BASE, rsqrt=Rsqrt(method, segments), log=LogTables("mitchell", segments)
    )


def main():
    """Draw all."""
    draw_error_histogram(
        errors(BASE),
        FOLDER / "error-histogram.png",
        "RMSNorm 576, x s24/8, y s16/10, linear 512: all 61 layers of SmolLM2-135M",
    )
    series = {}
    for method in ("direct", "linear", "quadratic", "log"):
        series[method] = []
        for segments in SEGMENTS:
            design = variant(method, segments)
            seen = errors(design).report().all.max_ulp
            series[method].append((segments, seen, design.bound_ulp))
    draw_error_against_segments(
        series,
        FOLDER / "error-against-segments.png",
        "Largest error on all 61 layers of SmolLM2-135M, 16-bit output",
    )
    tiny = CATALOGUE["tiny-64"]
    result = simulate(
        tiny, random_rows(tiny, 8), stall=0.3, pattern="bursty", seed=4, trace_cycles=260
    )
    draw_timeline(result.handshakes, tiny.beats, FOLDER / "timeline.svg", tiny.headline)


if __name__ == "__main__":
    main()
