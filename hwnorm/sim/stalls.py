"""When the source has something and when the sink takes something: the same for all engines."""

from dataclasses import dataclass

import numpy as np

#: Cycles after which a pattern repeats; odd, so that it walks over rows of any length.
PERIOD_CYCLES = 65537

#: How far apart in the pattern two sources are that stall by themselves.
SHIFT_CYCLES = 9973

PATTERNS = ("random", "bursty")


@dataclass(frozen=True)
class Stalls:
    """Seeded permissions, cycle by cycle.

    Members
    -------
    source, sink : numpy.ndarray of bool, (PERIOD_CYCLES,)
        In cycle t the source may offer its next beat (a beat once offered stays), and the sink
        takes one, where entry ``t % PERIOD_CYCLES`` holds.
    """

    source: np.ndarray
    sink: np.ndarray

    def shifted(self, which):
        """The source's permissions for another thing that stalls by itself: later ones.

        Parameters
        ----------
        which : int
            From 1: a streamed parameter; 0 is x, -1 the clock enable.
        """
        return np.roll(self.source, -shift_of(which))


def shift_of(which):
    """By how many cycles the permissions of what stalls by itself are shifted."""
    return which * SHIFT_CYCLES % PERIOD_CYCLES


def make_stalls(stall, seed, pattern="random", sink=True):
    """Permissions in which a share `stall` of the cycles is refused.

    Parameters
    ----------
    stall : float
        From 0 (never) up to, not including, 1.
    seed : int
    pattern : str
        ``random``: every cycle by itself. ``bursty``: in runs of about 16 cycles.
    sink : bool
        Whether the sink refuses anything.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    if not 0 <= stall < 1:
        raise ValueError(f"stall must be at least 0 and below 1, got {stall}")
    if pattern not in PATTERNS:
        raise ValueError(f"pattern must be one of {', '.join(PATTERNS)}, got {pattern!r}")
    shares = (stall, stall if sink else 0.0)
    return Stalls(*(_permissions(s, [seed, side], pattern) for side, s in enumerate(shares)))


def _permissions(stall, seed, pattern):
    rng = np.random.default_rng(seed)
    if pattern == "random":
        return rng.random(PERIOD_CYCLES) >= stall
    runs = rng.geometric(1 / 16, PERIOD_CYCLES)
    return np.repeat(rng.random(PERIOD_CYCLES) >= stall, runs)[:PERIOD_CYCLES]
