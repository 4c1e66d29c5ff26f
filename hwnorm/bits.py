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


def uncut(*values):
    """No register between two steps of an op: see ``hwnorm.ops.Cut``."""
    return values


def limbs(value, size):
    """A value in parts of `size` bits, the lowest first; the highest keeps the sign.

    The highest may have a bit more where the value is signed, and none is empty.
    """
    value, parts = Value.cast(value), []
    while len(value) > size + value.shape().signed:
        parts.append(value[:size])
        value = value[size:].as_signed() if value.shape().signed else value[size:]
    return [*parts, value]


def sum_in_levels(terms, cut, held=()):
    """The sum of values, pair by pair; `cut` is called between the levels.

    Returns
    -------
    sum, list
        `held` goes along, to arrive with the sum.
    """
    terms = list(terms)
    while len(terms) > 1:
        pairs = [a + b for a, b in zip(terms[::2], terms[1::2], strict=False)]
        terms = pairs + terms[len(pairs) * 2 :]
        if len(terms) > 1:
            moved = cut(*terms, *held)
            terms, held = list(moved[: len(terms)]), moved[len(terms) :]
    return terms[0], list(held)


def add_in_pieces(a, b, carry, fmt, cut):
    """``a + b + carry`` to a format, `cut` between pieces of equal length, the lowest first."""
    size = -(-fmt.width // cut.pieces)
    a, b, done = extend(a, fmt.width), extend(b, fmt.width), []
    for piece in range(cut.pieces):
        # The carry enters below the lowest bit, so that each piece is one adder.
        total = (Cat(Const(1, 1), a[:size]) + Cat(carry, b[:size]))[1:]
        done.append(total[: min(size, len(a))])
        carry, a, b = total[-1], a[size:], b[size:]
        if piece < cut.pieces - 1:
            a, b, carry, *done = cut(a, b, carry, *done)
    whole = Cat(*done)[: fmt.width]
    return whole.as_signed() if fmt.signed else whole


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


def shift_left(m, value, amount, width, cut=uncut):
    """``value << amount`` on `width` bits, as a barrel shifter; `cut` between its stages."""
    for i in reversed(range(len(amount))):
        stage = Signal(width)
        m.d.comb += stage.eq(Mux(amount[i], value << (1 << i) if 1 << i < width else 0, value))
        value = stage
        if i:
            value, amount = cut(value, amount[:i])
    return value


def normalise_in_turns(m, value, load, width, strides, name):
    """A word shifted left until its highest one is on top, and by how much.

    A cycle behind `load` it is the value itself; with each cycle after that it is shifted by the
    longest of the strides that leaves the highest one inside, until there is none.

    Parameters
    ----------
    value : amaranth Value
        Not zero in the cycle of `load`.
    load : amaranth Value, one bit
    strides : tuple of int
        The longest first; the last is 1.
    name : str
        Of the two registers, less an ending.

    Returns
    -------
    word, zeros
    """
    word = Signal(width, name=f"{name}_word", reset_less=True)
    zeros = Signal(range(width), name=f"{name}_zeros", reset_less=True)
    with m.If(load):
        m.d.sync += [word.eq(value), zeros.eq(0)]
    for stride in strides:
        with m.Elif(~word[width - stride :].any()):
            m.d.sync += [word.eq(word << stride), zeros.eq(zeros + stride)]
    return word, zeros


def turns(zeros, strides):
    """The most shifts that `normalise_in_turns` takes for up to so many leading zeros."""

    def count(rest):
        shifts = 0
        for stride in strides:
            shifts, rest = shifts + rest // stride, rest % stride
        return shifts

    return max(count(n) for n in range(zeros + 1))


def shift_right(m, value, amount, cut=uncut):
    """``value >> amount``, arithmetic, and whether a one was shifted out.

    `cut` is called between the stages.
    """
    lost = Const(0, 1)
    for i in reversed(range(len(amount))):
        step = 1 << i
        stage, gone = Signal(value.shape()), Signal()
        m.d.comb += [
            stage.eq(Mux(amount[i], value >> step, value)),
            gone.eq(lost | (amount[i] & value[:step].any())),
        ]
        value, lost = stage, gone
        if i:
            value, lost, amount = cut(value, lost, amount[:i])
    return value, lost


def round_off(value, lost, drop, rounding, cut=uncut):
    """Drop `drop` low bits, rounding; `cut` stands between the look at them and the adder.

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
    up = value[drop - 1]
    if rounding == "floor":
        return kept
    if rounding == "nearest_even":
        up = up & (value[: drop - 1].any() | lost | value[drop])
        kept, up = cut(kept, up)
    return kept + up


def count_leading_zeros(m, value, width, cut=uncut):
    """The zeros above the highest one of a `width`-bit value; `width` if there is none.

    A tree of as many levels as the count has bits, with `cut` between them.
    """
    levels = width.bit_length()
    size = 1 << levels
    # A one below the word ends the count for zero, and padding makes the tree complete.
    word = Cat(Const((1 << size - width) - 1, size - width), value[:width])
    # Of every group of bits, from the lowest: whether all are zero, and the zeros on top.
    none, zeros = ~word, []
    for level in range(levels):
        groups = size >> level + 1
        low, high = none[::2], none[1::2]
        counts = []
        for group in range(groups):
            count = Signal(level + 1)
            below = (zeros[2 * group], zeros[2 * group + 1]) if level else (None, None)
            m.d.comb += count.eq(
                Cat(Mux(high[group], *below), high[group]) if level else high[group]
            )
            counts.append(count)
        both = Signal(groups)
        m.d.comb += both.eq(low & high)
        none, zeros = both, counts
        if level < levels - 1:
            none, *zeros = cut(none, *zeros)
    return zeros[0]
