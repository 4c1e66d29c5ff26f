"""Which entries of a table an interval of arguments can reach."""

import numpy as np

#: Up to so many arguments, each is looked at; more of them fill every octave they reach.
FEW_ARGUMENTS = 1 << 16


def unreachable_entries(arg, index_bits, parity_of=None, step=1):
    """How many entries no argument reaches.

    Parameters
    ----------
    arg : hwnorm.Fixed
        Interval of the integer whose leading one and mantissa address the table.
    index_bits : int
        Bits of the index; with parity, its top bit is the parity of the octave.
    parity_of : int or None
        If given, the word width from which leading zeros are counted.
    step : int
        Arguments differ by multiples of it.

    Returns
    -------
    int
    """
    mantissa_bits = index_bits - (parity_of is not None)
    seen = np.zeros(1 << index_bits, dtype=bool)

    def index_of(argument):
        octave = argument.bit_length() - 1
        mantissa = (argument << mantissa_bits >> octave) & (1 << mantissa_bits) - 1
        parity = (parity_of - 1 - octave) & 1 if parity_of is not None else 0
        return parity << mantissa_bits | mantissa

    lowest = max(arg.lo, 1)
    if (arg.hi - lowest) // step <= FEW_ARGUMENTS:
        for argument in range(lowest, arg.hi + 1, step):
            seen[index_of(argument)] = True
        return int(np.count_nonzero(~seen))
    for octave in range(lowest.bit_length() - 1, arg.hi.bit_length()):
        low, high = max(lowest, 1 << octave), min(arg.hi, (1 << octave + 1) - 1)
        if (high - low) // step >> mantissa_bits:
            seen[index_of(low) : index_of(high) + 1] = True
    return int(np.count_nonzero(~seen))
