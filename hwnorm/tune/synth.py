"""Cells of the front as a synthesiser counts them, beside what was estimated."""

from hwnorm.synth import synthesise

#: Estimated figures, and where a synthesis has them.
CELLS = ("lut", "dsp", "bram", "ff")


def measured_cells(tuning, target):
    """Synthesise every design of the front.

    Parameters
    ----------
    tuning : hwnorm.tune.Tuning
    target : str

    Returns
    -------
    dict
        ``target``, and ``points``: for each point of the front ``estimated`` and ``measured``,
        each with the figures of `CELLS` that are known.

    Raises
    ------
    ValueError
        If synthesis is not available, or does not know the target.
    """
    found = []
    for one in tuning.front:
        cells = synthesise(tuning.design_of(one), target).cells
        found.append(
            {
                "estimated": {name: one.cost.get(name) for name in CELLS},
                "measured": {name: cells.get(name) for name in CELLS},
            }
        )
    return {"target": target, "points": found}


def cells_text(cells):
    """The synthesised front in words."""
    lines = [f"synthesised   for {cells['target']}, estimated in brackets"]
    for place, one in enumerate(cells["points"]):
        figures = [
            f"{name} {one['measured'][name]} ({_word(one['estimated'][name])})"
            for name in CELLS
            if one["measured"][name] is not None
        ]
        lines.append(f"  {place + 1:>3}  {', '.join(figures)}")
    return "\n".join(lines)


def _word(value):
    return "-" if value is None else f"{value:.0f}"
