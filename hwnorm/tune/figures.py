"""The figures of accuracy of a design on some rows."""

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Accuracy:
    """Figures of some rows; the meanings are those of `hwnorm.measure.Accuracy`.

    ``end_...`` compare with golden of the inputs before they were quantised.
    """

    max_ulp: float
    rms_ulp: float
    misrounded: float | None
    sqnr_db: float
    end_max_ulp: float
    end_rms_ulp: float
    end_sqnr_db: float


#: Names of the figures, and whether more is better.
FIGURES = {field.name: field.name.endswith("sqnr_db") for field in fields(Accuracy)}


@dataclass(frozen=True)
class Evaluation:
    """The accuracy of one design.

    Members
    -------
    early : bool
        Only the probes were run: ``pooled.max_ulp`` is a lower bound, the rest is missing.
    saturated, held_saturated : int
        Limited outputs, in the rows that choose and in those held out; early, of the probes.
    pooled : dict
        Figures of all rows that choose, as ``hwnorm eval`` gives them.
    worst, mean, held : dict
        Figure by figure the worst layer, the mean over layers, and the worst layer of the
        held-out rows (empty if there are none).
    worst_layer : str
        Where ``max_ulp`` is.
    layers : dict of str to dict
        The figures of each layer's rows that choose.
    """

    early: bool
    saturated: int
    held_saturated: int
    pooled: dict
    worst: dict
    mean: dict
    held: dict
    worst_layer: str
    layers: dict
