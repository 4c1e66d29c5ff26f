"""What formats rows need: ranges, massive activations, and what each narrower input loses."""

from dataclasses import dataclass

import numpy as np

from hwnorm.golden import reference
from hwnorm.measure import OUTLIER_CREST, decibels
from hwnorm.plots import new_figure, save_figure
from hwnorm.tune.rows import format_with_margin

#: An element is a massive activation if it exceeds this many times its row's rms.
MASSIVE_CREST = OUTLIER_CREST

#: Input widths that are tried.
WIDTHS = tuple(range(6, 33))


@dataclass(frozen=True)
class Formats:
    """What some layers need.

    Members
    -------
    layers : list of dict
        ``name``, ``rows``, ``max``, ``rms``, ``crest`` (largest magnitude over its row's rms),
        ``bits`` (octaves between the layer's largest and rms magnitude, and the data's largest),
        ``gamma_max``, ``beta_max``, ``y_max``.
    massive : list of dict
        ``layer``, ``row``, ``channel``, ``value``, ``times_median``, the largest first.
    widths : list of dict
        For each input width ``static`` (its format), ``static_db`` and ``block_db``: SQNR of the
        worst layer's normalised output when x is quantised to that format for all rows, and to
        that many bits with an exponent of its own for every row.
    static_bits, block_bits : int or None
        The fewest bits whose SQNR reaches the target.
    target_db : float
    suggested : dict of str to str
        Formats for x, gamma, beta and y (16 bits) with a bit of margin.
    """

    layers: list
    massive: list
    widths: list
    static_bits: int | None
    block_bits: int | None
    target_db: float
    suggested: dict

    def to_dict(self):
        """Plain data."""
        return dict(self.__dict__)


def needed_formats(layers, kind="rmsnorm", eps=1e-5, target_db=50.0, progress=None):
    """What formats the rows of some layers need.

    Parameters
    ----------
    layers : list of hwnorm.rows.Layer
        Of floats.
    kind : str
        ``rmsnorm`` or ``layernorm``: by whose output losses are judged.
    eps : float
        Of layers that do not state theirs.
    target_db : float
        SQNR that the quantisation of x alone must leave.
    progress : callable or None
        Called with 1 after each width.

    Returns
    -------
    Formats

    Raises
    ------
    ValueError
        If rows are integers, whose unit is not known, not finite, or all zero.
    """
    for layer in layers:
        if layer.x.dtype.kind != "f":
            raise ValueError(f"{layer.name}: x must be floats, got integers of unknown unit")
        bad = int(np.count_nonzero(~np.isfinite(layer.x)))
        if bad:
            raise ValueError(f"{layer.name}: x must be finite, got {bad} NaN or infinite elements")
    largest = max(float(np.max(np.abs(layer.x))) for layer in layers)
    if not largest:
        raise ValueError("data must have a row that is not all zero, got zeros only")
    facts, massive, outputs = [], [], []
    for layer in layers:
        size = np.abs(layer.x)
        rms = np.sqrt(np.mean(np.square(size), axis=1))
        crest = np.max(size, axis=1) / np.where(rms > 0, rms, 1)
        outputs.append(_norm(kind, layer, layer.x, eps))
        whole = float(np.sqrt(np.mean(np.square(size))))
        facts.append(
            {
                "name": layer.name, "rows": len(layer.x), "max": float(size.max()), "rms": whole,
                "crest": float(crest.max()),
                "bits": float(np.log2(largest / whole)) if whole else None,
                "gamma_max": _largest(layer.gamma), "beta_max": _largest(layer.beta),
                "y_max": float(np.max(np.abs(outputs[-1]))),
            }
        )  # fmt: skip
        massive += _massive(layer, size, rms)
    widths = []
    for width in WIDTHS:
        fmt = format_with_margin(largest, width)
        widths.append({"width": width, "static": fmt.spelling, "static_db": np.inf,
                       "block_db": np.inf})  # fmt: skip
        for layer, ideal in zip(layers, outputs, strict=True):
            static = np.clip(np.rint(layer.x * 2.0**fmt.frac), fmt.lo, fmt.hi) * fmt.lsb
            for key, x in (("static_db", static), ("block_db", _block_floating(layer.x, width))):
                noise = float(np.sum(np.square(_norm(kind, layer, x, eps) - ideal)))
                value = decibels(float(np.sum(np.square(ideal))), noise)
                widths[-1][key] = min(widths[-1][key], value)
        if progress:
            progress(1)

    def first(key):
        good = [entry["width"] for entry in widths if entry[key] >= target_db]
        return min(good, default=None)

    static = first("static_db")
    suggested = {"x": format_with_margin(largest, static or WIDTHS[-1]).spelling}
    for name, key in (("gamma", "gamma_max"), ("beta", "beta_max"), ("y", "y_max")):
        values = [one[key] for one in facts if one[key] is not None]
        if values:
            suggested[name] = format_with_margin(max(values), 16).spelling
    massive.sort(key=lambda one: -abs(one["value"]))
    return Formats(facts, massive, widths, static, first("block_db"), target_db, suggested)


def _norm(kind, layer, x, eps):
    return reference(kind, x, layer.gamma, layer.beta, layer.eps or eps)


def _largest(values):
    return None if values is None else float(np.max(np.abs(values)))


def _massive(layer, size, rms):
    median = np.median(size, axis=1, keepdims=True)
    found = size > MASSIVE_CREST * rms[:, None]
    return [
        {
            "layer": layer.name, "row": int(row), "channel": int(channel),
            "value": float(layer.x[row, channel]),
            "times_median": float(size[row, channel] / median[row, 0]) if median[row, 0] else None,
        }
        for row, channel in np.argwhere(found)
    ]  # fmt: skip


def _block_floating(x, width):
    """Rows with an exponent of their own: the finest grid of `width` bits that holds each row."""
    top = np.max(np.abs(x), axis=1, keepdims=True)
    octave = np.frexp(np.where(top > 0, top, 1))[1]
    scale = np.ldexp(1.0, width - 1 - octave)
    limit = 2 ** (width - 1) - 1
    return np.clip(np.rint(x * scale), -limit - 1, limit) / scale


def formats_text(found, source):
    """What was found, in words."""
    layers = found.layers
    peak = max(layers, key=lambda one: one["max"])
    crest = max(layers, key=lambda one: one["crest"])
    quiet = min(layers, key=lambda one: one["rms"])
    lines = [
        f"{source}: {len(layers)} layer{'s' * (len(layers) > 1)}, "
        f"{sum(one['rows'] for one in layers)} rows",
        f"largest       {peak['max']:.6g} in {peak['name']}",
        f"quietest      rms {quiet['rms']:.4g} in {quiet['name']}, {quiet['bits']:.1f} bits below "
        f"the largest",
        f"crest factor  {crest['crest']:.1f} in {crest['name']} (largest magnitude over its row's "
        f"rms)",
    ]
    if found.massive:
        channels = sorted({one["channel"] for one in found.massive})
        names = {one["layer"] for one in found.massive}
        first = found.massive[0]
        shown = ", ".join(map(str, channels[:8])) + (", ..." if len(channels) > 8 else "")
        lines.append(
            f"massive       {_counted(found.massive, 'activation')} in {_counted(names, 'layer')}, "
            f"channel{'s' * (len(channels) > 1)} {shown}; "
            f"the largest {first['value']:.6g} in {first['layer']}, row {first['row']}, "
            f"channel {first['channel']}"
        )
    else:
        lines.append("massive       none")
    need = [
        f"{word} {bits} bits" if bits else f"{word} more than {WIDTHS[-1]} bits"
        for word, bits in (("static", found.static_bits), ("block floating", found.block_bits))
    ]
    lines += [
        f"x needs       {', '.join(need)}, for {found.target_db:g} dB in the worst layer",
        f"formats       {', '.join(f'{key} {fmt}' for key, fmt in found.suggested.items())}, with "
        f"a bit of margin",
        "",
        "bits  static x   SQNR static  SQNR block floating",
    ]
    for one in found.widths:
        if one["width"] % 2 == 0:
            lines.append(
                f"{one['width']:>4}  {one['static']:<9}  {one['static_db']:8.1f} dB  "
                f"{one['block_db']:16.1f} dB"
            )
    lines += ["", "layer                                max      rms    crest    |gamma|      |y|"]
    for one in layers:
        gamma = "       -" if one["gamma_max"] is None else f"{one['gamma_max']:8.3f}"
        lines.append(
            f"{one['name']:<30}{one['max']:10.4g}{one['rms']:9.3g}{one['crest']:9.1f}   {gamma}"
            f"{one['y_max']:9.3g}"
        )
    return "\n".join(lines)


def _counted(things, word):
    return f"{len(things)} {word}{'s' * (len(things) != 1)}"


def draw_formats(found, path):
    """Draw the layers' ranges, and what narrower inputs lose."""
    from matplotlib.figure import Figure

    new_figure()
    figure = Figure(figsize=(9.5, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    place = np.arange(len(found.layers))
    left.vlines(
        place, [max(one["rms"], 1e-12) for one in found.layers],
        [max(one["max"], 1e-12) for one in found.layers], color="#2f6f9f",
        label="rms to largest",
    )  # fmt: skip
    names = [one["name"] for one in found.layers]
    spots = [(names.index(one["layer"]), abs(one["value"])) for one in found.massive]
    if spots:
        left.plot(*zip(*spots, strict=True), "o", color="#b04a3f", markersize=3,
                  label="massive activations")  # fmt: skip
    left.set_yscale("log", base=2)
    step = max(1, len(names) // 16)
    left.set_xticks(place[::step], names[::step], rotation=60, ha="right", fontsize=6)
    left.set_ylabel("|x|")
    left.legend(fontsize=8, frameon=False)
    bits = [one["width"] for one in found.widths]
    right.plot(bits, [one["static_db"] for one in found.widths], "s-", color="#b04a3f",
               markersize=4, label="one format for all rows")  # fmt: skip
    right.plot(bits, [one["block_db"] for one in found.widths], "^-", color="#4d8a3c",
               markersize=4, label="an exponent a row")  # fmt: skip
    right.axhline(found.target_db, color="#333333", linestyle="--", linewidth=0.8)
    right.set_xlabel("bits of x")
    right.set_ylabel("SQNR of y, worst layer (dB)")
    right.grid(alpha=0.3)
    right.legend(fontsize=8, frameon=False)
    save_figure(figure, path)
