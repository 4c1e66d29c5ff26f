"""Which entries of a table an interval of arguments can reach."""

import numpy as np


def unreachable_entries(arg, index_bits, parity_of=None):
    """How many entries no argument reaches.

    Parameters
    ----------
    arg : hwnorm.Fixed
        Interval of the integer whose leading one and mantissa address the table.
    index_bits : int
        Bits of the index; with parity, its top bit is the parity of the octave.
    parity_of : int or None
        If given, the word width from which leading zeros are counted.

    Returns
    -------
    int
    """
    mantissa_bits = index_bits - (parity_of is not None)
    seen = np.zeros(1 << index_bits, dtype=bool)
    for octave in range(max(arg.lo, 1).bit_length() - 1, arg.hi.bit_length()):
        low, high = max(arg.lo, 1 << octave), min(arg.hi, (1 << octave + 1) - 1)
        if octave >= mantissa_bits:
            drop = octave - mantissa_bits
            index = np.arange(low >> drop, (high >> drop) + 1)
        else:
            index = np.arange(low, high + 1) << mantissa_bits - octave
        index = index & (1 << mantissa_bits) - 1
        if parity_of is not None:
            index = index + ((parity_of - 1 - octave & 1) << mantissa_bits)
        seen[index] = True
    return int(np.count_nonzero(~seen))
