"""Runs: the front, the store, what survives an interrupt, the workers, the optimiser."""

import contextlib
import dataclasses
import os
import signal
import sqlite3
import subprocess
import sys
import time

import numpy as np
import pytest
from test_fixed import raises
from test_tune import RMS, layers_of, measured
from test_tune_space import space_of

import hwnorm
from hwnorm import pareto
from hwnorm.design import dumps
from hwnorm.tune import search, tuning
from hwnorm.tune.front import front_of, recommended
from hwnorm.tune.report import tuning_data
from hwnorm.tune.rows import Rows
from hwnorm.tune.space import Space, point_key
from hwnorm.tune.store import NAME, Store
from hwnorm.tune.tuning import run, tune
from hwnorm.tune.work import Outcome

TABLES = {"method": ["direct", "linear", "quadratic"], "segments": {"from": 2, "to": 64},
          "guard_bits": [1, 3]}  # fmt: skip


@pytest.fixture(scope="module")
def rows():
    return Rows.of(layers_of(), 0.25)


@pytest.fixture(scope="module")
def swept(rows):
    return run(space_of(**TABLES), rows)


# -- the front ----------------------------------------------------------------------------


def dominates(one, other):
    return one[0] <= other[0] and one[1] <= other[1] and one != other


@pytest.mark.parametrize("seed", range(5))
def test_pareto_against_all_pairs(seed):
    rng = np.random.default_rng(seed)
    pairs = [tuple(pair) for pair in rng.integers(0, 12, (60, 2)).tolist()]
    kept = pareto(*zip(*pairs, strict=True))
    expected = [not any(dominates(other, one) for other in pairs) for one in pairs]
    assert kept.tolist() == expected


def test_pareto_takes_infinity_and_nothing():
    assert pareto([], []).tolist() == []
    assert pareto([1, 2], [np.inf, np.inf]).tolist() == [True, False]
    assert pareto([1, 2, 3], [-np.inf, -1, 0]).tolist() == [True, False, False]


@pytest.mark.parametrize("errors", [[1.0], [[1.0, 2.0]]])
def test_pareto_of_other_shapes(errors):
    with pytest.raises(ValueError, match=r"^costs and errors must be two equally long lists, got"):
        pareto([1, 2], errors)
    with raises("costs and errors must be numbers, got NaN"):
        pareto([1.0], [np.nan])


def test_front_by_brute_force(swept, rows):
    pairs = []
    for one in swept.outcomes:
        each, _ = measured(swept.design_of(one), rows.layers())
        error = max(figures.max_ulp for figures in each)
        assert one.value("max_ulp") == error
        assert one.value("sqnr_db") == min(figures.sqnr_db for figures in each)
        pairs.append((one.value("rom_bits"), error))
    best = {one for one in pairs if not any(dominates(other, one) for other in pairs)}
    assert {(one.value("rom_bits"), one.value("max_ulp")) for one in swept.front} == best
    assert len(swept.front) == len(best) > 4
    costs = [one.value("rom_bits") for one in swept.front]
    assert costs == sorted(costs)


def test_front_with_limits_and_other_objectives(swept, rows):
    space = space_of(
        {"limits": ["max_ulp <= 1", "rom_bits < 4000"], "objectives": ["sqnr_db", "dsp"]}, **TABLES
    )
    result = run(space, rows)
    good = [
        one for one in swept.outcomes
        if one.value("max_ulp") <= 1 and one.value("rom_bits") < 4000
    ]  # fmt: skip
    assert {point_key(o.point) for o in result.outcomes if o.state == "done"} == {
        point_key(one.point) for one in good
    }
    assert result.states["skipped"] == len(swept.outcomes) - len(good) > 0
    expected = front_of(good, result.space)
    assert [one.point for one in result.front] == [one.point for one in expected]
    assert result.choice == (0, "it is the cheapest that keeps max_ulp <= 1 and rom_bits < 4000")


def test_limits_of_cost_need_no_evaluation(rows, monkeypatch):
    space = space_of({"limits": ["rom_bits <= 300", "bound <= 2"]}, **TABLES)
    seen = []
    bench = search.Evaluator.outcome
    monkeypatch.setattr(
        search.Evaluator, "outcome", lambda self, p: seen.append(bench(self, p)) or seen[-1]
    )
    with pytest.raises(ValueError, match="each limit can be kept alone, not all together"):
        run(space, rows)
    assert {one.state for one in seen} == {"skipped"}
    assert {one.reason for one in seen} == {"rom_bits <= 300", "bound_ulp <= 2"}
    assert not any(one.accuracy for one in seen)


def test_saturating_formats_are_never_recommended(rows):
    space = space_of({"objectives": ["sqnr_db", "rom_bits"]}, y=["s8/6", "s12/7"], segments=[64])
    result = run(space, rows)
    states = {one.point["y"]: one.state for one in result.outcomes}
    assert states == {"s8/6": "saturated", "s12/7": "done"}
    assert [one.point["y"] for one in result.front] == ["s12/7"]


def test_only_whole_evaluations_are_on_the_front(rows):
    # Of a point that saturates the largest error is known in part, and may look good.
    result = run(space_of({"objectives": ["max_ulp"]}, y=["s8/6", "s12/7"], segments=[64]), rows)
    lost = next(one for one in result.outcomes if one.state == "saturated")
    assert lost.value("max_ulp") is not None
    assert [one.point["y"] for one in result.front] == ["s12/7"]


def test_formats_that_do_not_hold_the_rows(rows):
    with pytest.raises(ValueError, match=r"^space must have a point that can be used, got 2 "
                                         r"invalid; the first: x must fit s8/6, got"):  # fmt: skip
        run(space_of(x=["s8/6"], guard_bits=[1, 2]), rows)


def test_the_knee():
    def point(cost, error):
        return Outcome({}, "done", "", {"rom_bits": cost}, {"worst": {"max_ulp": error}})

    space = dataclasses.replace(Space.around(RMS), error="max_ulp", cost="rom_bits")
    line = [point(2**n, 2.0**-n) for n in range(5)]
    assert recommended([*line[:2], point(5, 2**-3.5), *line[3:]], space)[0] == 2
    assert recommended(line[:1], space) == (0, "it is the only point on the front")
    assert recommended(line[:2], space)[0] == 1


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        (
            ["max_ulp <= 0.4"],
            "limits must be satisfiable: no point keeps max_ulp <= 0.4; nearest: ",
        ),
        (["lut <= 3"], "limits must be satisfiable: no point keeps lut <= 3; nearest: direct, "),
        (["sqnr >= 200"], "limits must be satisfiable: no point keeps sqnr_db >= 200; nearest: "),
    ],
)
def test_limits_that_nothing_keeps(rows, limits, sentence):
    with pytest.raises(ValueError, match=f"^{sentence}"):
        run(space_of({"limits": limits}, **TABLES), rows)


# -- Python -------------------------------------------------------------------------------


def test_from_python():
    layers = layers_of(1, 16)
    found = tune(
        {"design": RMS, "space": TABLES}, layers[0].x, layers[0].gamma,
        limits=["max_ulp <= 1"], objectives=["lut"], layers="pooled", holdout=0.0,
    )  # fmt: skip
    assert (found.space.error, found.space.cost) == ("max_ulp", "lut")
    points = found.points
    assert len(points) == len(found.outcomes) == 36
    assert points["on_front"].sum() == len(found.front)
    best = points[points["on_front"]][0]
    report = hwnorm.measure(found.design, layers[0].x, layers[0].gamma).all
    assert best["max_ulp"] == report.max_ulp <= 1
    frame = found.frame()
    assert list(frame.columns) == list(points.dtype.names)
    assert frame.on_front.sum() == len(found.front)


def test_from_python_with_layers_and_bad_shapes():
    x = np.random.default_rng(0).normal(size=(2, 10, 64))
    design = dataclasses.replace(RMS, gamma=None)
    space = {"design": design, "space": {"segments": [16, 64]}}
    assert len(tune(space, x).rows.names) == 2
    assert tune(space, design.x.ints(x)).states == {"done": 2}
    with raises("x must be (rows, dim) or (layers, rows, dim), got shape (64,)"):
        tune(space, x[0, 0])
    with raises("gamma must have shape (2, 64) as x has layers and dim, got (1, 64)"):
        tune({"design": RMS}, x, np.ones((1, 64)))
    with raises("data must have dim=64, got 60"):
        tune(space, x[..., :60])
    with raises("jobs must be a positive integer, got 0"):
        tune(space, x, jobs=0)


def test_one_row_only():
    design = dataclasses.replace(RMS, gamma=None)
    found = tune({"design": design, "space": TABLES}, np.ones((1, 64)) * np.arange(64))
    assert found.rows.chosen == 1
    assert tuning_data(found)["verification"] is None


# -- the store ----------------------------------------------------------------------------


def test_the_same_space_twice_costs_nothing(rows, swept, tmp_path):
    first = run(space_of(**TABLES), rows, tmp_path)
    again = run(space_of(**TABLES), rows, tmp_path, resume=True)
    more = run(space_of(**(TABLES | {"guard_bits": [1, 2, 3]})), rows, tmp_path)
    assert (first.evaluated, again.evaluated) == (len(first.outcomes), 0)
    assert more.evaluated == len(first.outcomes) / 2
    assert tuning_data(first) == tuning_data(again) == tuning_data(swept)


def test_limits_change_what_is_asked_of_stored_points(rows, tmp_path):
    few = space_of({"limits": ["max_ulp <= 1"]}, **TABLES)
    first = run(few, rows, tmp_path)
    assert run(few, rows, tmp_path).evaluated == 0
    every = run(space_of(**TABLES), rows, tmp_path)
    assert every.evaluated == first.states["skipped"]
    assert every.states == {"done": len(every.outcomes)}
    ends = run(space_of({"objectives": ["end_rms_ulp"]}, **TABLES), rows, tmp_path)
    assert ends.evaluated == len(every.outcomes)
    assert run(space_of(**TABLES), rows, tmp_path).evaluated == 0


def test_stores_of_others(rows, tmp_path, monkeypatch):
    space = space_of(segments=[4])
    run(space, rows, tmp_path)
    with monkeypatch.context() as patch:
        # Its estimates may be others.
        patch.setattr(tuning, "code_digest", lambda folder: "another")
        with pytest.raises(ValueError, match="must be of the same hwnorm, got points of another"):
            run(space, rows, tmp_path)
    with pytest.raises(ValueError, match="must be of the same data, got points of another"):
        run(space, Rows.of(layers_of(2)), tmp_path)
    other = dataclasses.replace(space, base=dataclasses.replace(RMS, eps=1e-6))
    with pytest.raises(ValueError, match="must be of the same design, got points of another"):
        run(other, rows, tmp_path)
    with raises(f"--resume needs a store of an earlier run in {tmp_path / 'new'}, got none"):
        run(space, rows, tmp_path / "new", resume=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"^output .*file must be writable, got: File exists$"):
        run(space, rows, tmp_path / "file")


def test_damaged_stores(rows, tmp_path):
    space = space_of(**TABLES)
    run(space, rows, tmp_path)
    whole = (tmp_path / NAME).read_bytes()
    damaged = [
        b"no database at all" * 100,
        whole[: len(whole) // 2],
        b"SQLite format 3\0" + whole[16:60],
    ]
    for content in damaged:  # fmt: skip
        (tmp_path / NAME).write_bytes(content)
        with pytest.raises(
            ValueError, match=r"^store .* must (be one|hold whole) .*move it away to"
        ):
            run(space, rows, tmp_path)
    (tmp_path / NAME).write_bytes(b"")
    assert run(space, rows, tmp_path).evaluated == 36
    with sqlite3.connect(tmp_path / NAME) as base:
        base.execute("update points set cost = '{half' where rowid = 3")
    base.close()
    with pytest.raises(
        ValueError, match=r"^store .* must hold whole points, got: .*; move it away"
    ):
        run(space, rows, tmp_path)


def test_one_run_a_folder(rows, tmp_path):
    store = Store(tmp_path, {})
    with raises(f"only one run may write to {tmp_path}, got a second one"):
        run(space_of(segments=[4]), rows, tmp_path)
    store.close()
    with pytest.raises(ValueError, match="must be of the same data"):
        run(space_of(segments=[4]), rows, tmp_path)


def test_what_is_finished_survives_an_interrupt(rows, tmp_path):
    def stop(progress):
        if progress.done > 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(space_of(**TABLES), rows, tmp_path, report=stop)
    result = run(space_of(**TABLES), rows, tmp_path, resume=True)
    assert 10 < len(result.outcomes) - result.evaluated < 20


@pytest.mark.parametrize("strike", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_killed_run_goes_on(tmp_path, strike, swept):
    layers = layers_of(rows=400)
    np.savez(tmp_path / "rows.npz", x=np.stack([one.x[:400] for one in layers]),
             gamma=np.stack([one.gamma for one in layers]))  # fmt: skip
    (tmp_path / "mine.toml").write_text(dumps(RMS))
    (tmp_path / "space.toml").write_text(
        'design = "mine.toml"\n[space]\nmethod = ["direct", "linear", "quadratic"]\n'
        "segments = { from = 2, to = 64 }\nguard_bits = { from = 0, to = 5 }\n"
    )
    command = ["tune", "space.toml", "--data", "rows.npz", "-o", "run", "--jobs", "1"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-m", "hwnorm", *command], cwd=tmp_path, env=environment,
        stderr=subprocess.PIPE, text=True,
        # A shell's background job, which may be what tests are run by, ignores interrupts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    store, count = tmp_path / "run" / NAME, 0
    while count < 15 and process.poll() is None:
        time.sleep(0.02)
        if store.exists():
            base = sqlite3.connect(store)
            with contextlib.suppress(sqlite3.DatabaseError):
                count = base.execute("select count(*) from points").fetchone()[0]
            base.close()
    process.send_signal(strike)
    words = process.communicate(timeout=60)[1]
    if strike != signal.SIGKILL:
        assert process.returncode == 130
        assert "points of this run are stored in run; go on with --resume" in words
    result = run(Space.load(tmp_path / "space.toml"),
                 Rows.load(tmp_path / "rows.npz", 0.25), tmp_path / "run", resume=True)  # fmt: skip
    assert 0 < result.evaluated <= 108 - count
    assert len(result.outcomes) == 108


# -- workers and the optimiser ------------------------------------------------------------


def test_processes_find_the_same(rows, swept):
    assert tuning_data(run(space_of(**TABLES), rows, jobs=2)) == tuning_data(swept)


def test_a_worker_that_dies_is_said(rows, tmp_path, monkeypatch):
    from hwnorm.tune import pool

    monkeypatch.setattr(pool, "_evaluate", _die)
    with pytest.raises(TimeoutError, match=r"^a worker process died, .* go on with --resume$"):
        run(space_of(**TABLES), rows, tmp_path, jobs=2)


def _die(chunk):
    os._exit(1)


def test_the_optimiser_finds_most_and_goes_the_same_way(rows, tmp_path):
    space = space_of({"limits": ["rom_bits <= 20000"]}, method=["direct", "linear", "quadratic"],
                     segments={"from": 2, "to": 1024}, guard_bits={"from": 0, "to": 4},
                     lanes=[1, 2, 4, 8])  # fmt: skip
    small = dataclasses.replace(space, budget=150)
    result = run(small, rows, tmp_path)
    assert result.method == "nsga2"
    assert len(result.outcomes) == result.evaluated == 150
    again = run(small, rows, tmp_path)
    assert again.evaluated == 0
    assert tuning_data(again) == tuning_data(result)
    full = run(space, rows)
    assert full.method == "sweep"
    every = {(one.value("rom_bits"), one.value("max_ulp")) for one in full.front}
    found = {(one.value("rom_bits"), one.value("max_ulp")) for one in result.front}
    assert len(every & found) >= len(every) / 3
