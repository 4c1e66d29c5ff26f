"""Every mutant of `tools/mutate.py` is caught, and every op and shell part has some."""

import re
import sys
from functools import partial
from pathlib import Path

import pytest
from test_fixed import raises

from hwnorm import ops
from hwnorm.hdl.engine import RowEngine
from hwnorm.hdl.reduce import Reducer
from hwnorm.hdl.store import ParameterStore, Ring

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

import mutate
import shell_check


@pytest.fixture(scope="module", autouse=True)
def _references_first():
    """What the mutants are judged by must be computed before anything is changed."""
    shell_check.scenario()


@pytest.mark.parametrize("mutant", mutate.MUTANTS, ids=str)
def test_mutant_is_caught(mutant):
    assert mutant.caught(), f"nobody noticed: {mutant}"


@pytest.mark.parametrize(
    "check", [shell_check.check_engine, shell_check.check_reducer, mutate.check_lanes]
)
def test_checks_pass_without_a_mutant(check):
    check()


@pytest.mark.parametrize("op", ops.OPS, ids=lambda op: op.__name__)
def test_every_op_has_mutants_of_both_meanings(op):
    targets = {(mutant.group, mutant.target) for mutant in mutate.MUTANTS}
    # For inputs the interpreter and the pipeline stand themselves, for constants the latter.
    own = {"ints": ("integers", op.__name__), "rtl": ("hardware", op.__name__)}
    shared = {"ints": ("pipeline", "Flow.run"), "rtl": ("pipeline", "Pipeline._place")}
    for meaning in own:
        assert (own if meaning in vars(op) else shared)[meaning] in targets


def test_every_part_of_the_shell_has_mutants():
    targets = {mutant.target.split(".")[0] for mutant in mutate.MUTANTS if mutant.group == "shell"}
    assert targets == {part.__name__ for part in (RowEngine, Reducer, Ring, ParameterStore)}


def test_mutants_have_distinct_names():
    names = [str(mutant) for mutant in mutate.MUTANTS]
    assert len(set(names)) == len(names)


def test_everything_is_put_back():
    before = {op: (op.__init__, op.ints, op.rtl, op.moves) for op in ops.OPS}
    for mutant in mutate.MUTANTS:
        if mutant.target == "Within":
            mutant.caught()
    assert before == {op: (op.__init__, op.ints, op.rtl, op.moves) for op in ops.OPS}
    assert "moves" not in vars(ops.Add)


def test_a_text_that_is_gone_is_said():
    message = "Flow.run must hold 'no such text' once, got 0: adapt the mutant to the new text"
    with raises(message):
        mutate.rewrite(mutate.flow.Flow, "run", "no such text", "")


def test_the_table_and_the_count_of_survivors(capsys, monkeypatch):
    harmless = mutate.Mutant(
        "integers",
        "Cat",
        "nothing changed",
        lambda: [],
        partial(mutate.test_ops.check_integers, ops.Cat),
    )
    monkeypatch.setattr(mutate, "MUTANTS", (*mutate.MUTANTS, harmless))
    assert mutate.main(["integers", "Cat"]) == 1
    lines = re.sub(r"\d+\.\d\d s", "T", capsys.readouterr().out).splitlines()
    assert lines[0] == "killed     T  integers Cat: one more"
    assert lines[-3:] == [
        "SURVIVED   T  integers Cat: nothing changed",
        "                    -",
        "4 mutants, 3 killed, 1 survived",
    ]
    assert mutate.main(["integers", "Cat", "swapped"]) == 0
    with raises("no mutant has a name that holds Cat and nonsense", SystemExit):
        mutate.main(["Cat", "nonsense"])
