"""The amounts that estimates of LUTs are made from, and the registers between steps."""

from dataclasses import replace

import pytest

from hwnorm import RMSNorm
from hwnorm.design import CATALOGUE
from hwnorm.estimate import flip_flops, lut_amounts
from hwnorm.fixed import Fixed
from hwnorm.flow import trace
from hwnorm.mapping import KINDS, flow_amounts, shell_amounts
from hwnorm.ops import Column, leading_zeros
from hwnorm.ops.words import Normalise
from hwnorm.targets import GENERIC, TARGETS

WORD = Fixed(0, 2**32 - 1)
ECP5 = TARGETS["ecp5"]


def amounts(function, period_ns, **formats):
    flow = trace(function, **formats)
    return flow_amounts(flow, flow.schedule(period_ns, ECP5))


def test_bits_that_nobody_takes_are_not_built():
    def top(a):
        return {"y": Normalise(a, leading_zeros(a))[24:32]}

    def whole(a):
        return {"y": Normalise(a, leading_zeros(a))}

    few, all_bits = (amounts(f, 100.0, a=WORD)["normalise"] for f in (top, whole))
    # Six stages; of the last but n, 2**n - 1 bits more than the eight that are used.
    assert few == 8 + 9 + 11 + 15 + 23 + 32
    assert all_bits == 6 * 32


def test_what_is_proven_narrow_is_built_narrow():
    from hwnorm.ops import ShiftRight

    def shifted(a, s, within):
        right = ShiftRight(a, s, 0, "floor")
        return {"y": right.within(0, 255) if within else right}

    shift = Fixed(0, 7)
    narrow, wide = (
        amounts(lambda a, s, w=w: shifted(a, s, w), 100.0, a=WORD, s=shift)["shift"]
        for w in (True, False)
    )
    assert narrow == 9 + 10 + 12
    assert wide == 3 * 32


def test_adders_merge_within_a_cycle():
    def total(a, b, c):
        return {"y": a + b + c}

    word = Fixed(0, 2**20 - 1)
    slow, fast = (amounts(total, ns, a=word, b=word, c=word) for ns in (20.0, 4.0))
    assert (slow["merged"], fast["merged"]) == (22, 0)
    assert slow["adder"] == fast["adder"] == 43


def test_tables_and_limits_behind_others():
    column = Column("t", tuple(range(0, 64, 2)), 0)

    def looked_up(a, b):
        return {"y": column[(a + b)[0:5]], "z": (a + b).fit(Fixed(0, 7))}

    word = Fixed(0, 15)
    slow, fast = (amounts(looked_up, ns, a=word, b=word) for ns in (20.0, 2.9))
    assert slow["table_behind"] == slow["table"] > 0
    assert slow["limit_behind"] == slow["limit"] > 0
    assert fast["table_behind"] == fast["limit_behind"] == 0
    assert fast["table"] == slow["table"]


def test_what_takes_turns_is_apart():
    design = CATALOGUE["vit-layernorm-768"]
    flow = design.flows.solve
    plain, turned = (
        flow_amounts(flow, flow.schedule(6.0, ECP5, **turns))
        for turns in ({}, {"interval": 100, "strides": (1,)})
    )
    assert (plain["turns"], turned["zeros"], turned["normalise"]) == (0, 0, 0)
    assert turned["turns"] > 100
    assert plain["zeros"] > 0


@pytest.mark.parametrize(("target", "muxed"), [(ECP5, 2 * 10), (TARGETS["ice40"], 39 * 10)])
def test_memories_without_blocks_are_multiplexed(target, muxed):
    found = shell_amounts([Fixed(0, 255)], [(40, 10, 0), (4096, 10, 3)], 9, target)
    assert found == {"accumulator": 8, "muxed": muxed, "counter": 9, "memory": 2}


def test_every_amount_has_a_kind_and_every_factor_is_of_one():
    designs = [*CATALOGUE.values(), RMSNorm(dim=64, lanes=4, gamma="s8/6", store="rom")]
    for design in designs:
        assert set(lut_amounts(design, TARGETS[design.target])) <= set(KINDS)
    for target in TARGETS.values():
        kinds = [kind for kind, factor in target.luts_of]
        assert set(kinds) <= set(KINDS)
        assert len(set(kinds)) == len(kinds)
        assert all(factor > 0 for _, factor in target.luts_of)


def test_registers_between_the_parts_of_a_product():
    word = Fixed.parse("s24/0")
    flow = trace(lambda a: {"y": a * a}, a=word)
    (product,) = [wire for wire in flow.wires if wire.fmt.width > 40]
    steps = product.steps(ECP5, 4.0)
    # Seven bits and the other factor beside the block, four pairs of rows of 26 bits behind it,
    # and five terms that become three, then two.
    assert product.held_bits(steps, ECP5) == (7 + 26, 4 * 26, 3 * 33, 2 * 33)
    assert len(steps) == 5


def test_words_of_small_memories_are_registers_without_lut_ram():
    design = RMSNorm(dim=32, lanes=1, x="s8/4", y="s8/4", period_ns=25.0)
    with_ram = flip_flops(replace(design, target="ecp5"), ECP5)
    without = flip_flops(replace(design, target="ice40"), TARGETS["ice40"])
    assert without > with_ram + 8 * 10
    assert GENERIC.lut_ram
