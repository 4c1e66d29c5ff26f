"""Bit-level building blocks of the ops' hardware: log-depth shifters, counters, trees.

Everything here is combinational and built from Amaranth values. Shifters keep each stage in
a signal of its own, since nested expressions of many levels break Amaranth's simulator.
"""

from amaranth.hdl import Cat, Const, Mux, Signal, Value, signed, unsigned


def shape(fmt):
    """The Amaranth shape of a format."""
    return signed(fmt.width) if fmt.signed else unsigned(fmt.width)


def extend(value, width):
    """A value on at least `width` bits, sign extended if it is signed."""
    value = Value.cast(value)
    if len(value) >= width:
        return value
    if value.shape().signed:
        return Cat(value, value[-1].replicate(width - len(value))).as_signed()
    return Cat(value, Const(0, width - len(value)))


def tree(combine, values):
    """Combine values pairwise, in a tree of logarithmic depth."""
    values = list(values)
    while len(values) > 1:
        pairs = [combine(a, b) for a, b in zip(values[::2], values[1::2], strict=False)]
        values = pairs + values[len(pairs) * 2 :]
    return values[0]


def signed_digits(value, most=4):
    """The signed powers of two that sum to a constant, fewest first found.

    Returns
    -------
    list of (int, bool) or None
        Exponents with True for plus, or None if there are more than `most`.
    """
    digits, n, rest = [], 0, abs(value)
    while rest:
        if rest & 1:
            # 3 mod 4 is cheaper as +4 - 1 (the non-adjacent form).
            digit = 2 - (rest & 3)
            digits.append((n, (digit > 0) == (value > 0)))
            rest -= digit
        rest >>= 1
        n += 1
    return (digits or [(0, True)]) if len(digits) <= most and value else None


def outside(value, lo, hi):
    """Two bits: whether a value lies under `lo`, and whether it lies over `hi`."""
    width = hi.bit_length() + 1
    if value.shape().signed and (lo, hi) == (-(1 << width - 1), (1 << width - 1) - 1):
        # A whole signed word: every bit above it must repeat the sign.
        top = extend(value, width)[width - 1 :]
        return top[-1] & ~top.all(), ~top[-1] & top.any()
    # An unsigned value is never under zero; comparing would only worry linters.
    return value < lo if value.shape().signed or lo > 0 else Const(0, 1), value > hi


def shift_left(m, value, amount, width):
    """``value << amount`` on `width` bits, as a barrel shifter."""
    for i in reversed(range(len(amount))):
        stage = Signal(width)
        m.d.comb += stage.eq(Mux(amount[i], value << (1 << i) if 1 << i < width else 0, value))
        value = stage
    return value


def shift_right(m, value, amount):
    """``value >> amount``, arithmetic, and whether a one was shifted out."""
    lost = Const(0, 1)
    for i in reversed(range(len(amount))):
        step = 1 << i
        stage, gone = Signal(value.shape()), Signal()
        m.d.comb += [
            stage.eq(Mux(amount[i], value >> step, value)),
            gone.eq(lost | (amount[i] & value[:step].any())),
        ]
        value, lost = stage, gone
    return value, lost


def round_off(value, lost, drop, rounding):
    """Drop `drop` low bits, rounding.

    Parameters
    ----------
    value : amaranth Value
    lost : amaranth Value or int, one bit
        Whether bits below the value are not all zero.
    drop : int
        At least 1.
    rounding : str
        One of ``hwnorm.fixed.ROUNDINGS``.
    """
    value = extend(value, drop + 1)
    kept = value.shift_right(drop)
    half = value[drop - 1]
    if rounding == "floor":
        return kept
    if rounding == "nearest_up":
        return kept + half
    return kept + (half & (value[: drop - 1].any() | lost | value[drop]))


def count_leading_zeros(m, value, width):
    """The zeros above the highest one of a `width`-bit value; `width` if there is none."""
    size = 1 << width.bit_length()
    # A one below the word ends the count for zero, and padding makes the tree complete.
    word = Cat(Const((1 << size - width) - 1, size - width), value[:width])

    def count(low, high):
        """Of the bits [low, high): whether all are zero, and the zeros on top."""
        if high - low == 1:
            return ~word[low], None
        middle = (low + high) // 2
        none_low, zeros_low = count(low, middle)
        none_high, zeros_high = count(middle, high)
        if zeros_low is None:
            return none_low & none_high, none_high
        zeros = Signal(range(high - low))
        m.d.comb += zeros.eq(Cat(Mux(none_high, zeros_low, zeros_high), none_high))
        return none_low & none_high, zeros

    return count(0, size)[1]
