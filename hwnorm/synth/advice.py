"""What to change in a design that does not fit, by the design's own estimates."""

import contextlib
from dataclasses import replace

from hwnorm.report import check_data

#: The estimate of `check` that goes with what a device lacks. Flip-flops follow the data path.
_ESTIMATE = {
    "lut": "datapath_luts_estimate",
    "ff": "datapath_luts_estimate",
    "dsp": "multipliers_estimate",
    "bram": "rom_bits",
}


def advice(design, what, share=0.0):
    """The one change of a design that lowers its estimate most.

    Parameters
    ----------
    design : hwnorm.Norm
    what : str
        What the device lacks: ``lut``, ``ff``, ``dsp`` or ``bram``.
    share : float
        What the device has of what the design needs.

    Returns
    -------
    str or None
        None if no change lowers it. If fewer lanes, which change no result, are not what helps
        most, they are named as well: the most lanes whose estimate keeps to the share.
    """
    key = _ESTIMATE[what]
    now = check_data(design)[key]
    found = {}
    for words, variant in _variants(design):
        # Some are no designs: a table that is too large, widths that are too great.
        with contextlib.suppress(ValueError):
            found[words] = check_data(variant())[key]
    lanes = {}
    for n in range(design.lanes - 1, 0, -1):
        if design.dim % n == 0:
            words = f"lanes = {n}"
            lanes = {words: check_data(replace(design, lanes=n))[key]}
            if lanes[words] <= now * share:
                break
    found |= lanes
    best = min(found, key=found.get, default=None)
    if best is None or found[best] >= now:
        return None
    text = f"{best} helps most (estimate {found[best]} for {now})"
    for words, then in lanes.items():
        if words != best and then < now:
            text += f", {words} leaves results as they are (estimate {then})"
    return text


def _variants(design):
    """Designs with other results by one field, in words and as a function that makes one."""
    for method in ("quadratic", "linear", "log"):
        if method != design.rsqrt.method:
            rsqrt = replace(design.rsqrt, method=method, segments=None)
            yield f'rsqrt.method = "{method}"', lambda rsqrt=rsqrt: replace(design, rsqrt=rsqrt)
    segments = design.rsqrt.segments
    if segments and segments > 2:
        rsqrt = replace(design.rsqrt, segments=segments // 2)
        yield f"rsqrt.segments = {segments // 2}", lambda: replace(design, rsqrt=rsqrt)
    if design.gamma is not None and design.beta is None:
        yield 'gamma = "none"', lambda: replace(design, gamma=None, gamma_init=None)
