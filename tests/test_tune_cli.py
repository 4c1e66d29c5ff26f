"""The commands tune, compare and formats: what they write, print and refuse."""

import dataclasses
import json
import sys

import numpy as np
import pytest
from test_tune import RMS, layers_of
from test_tune_space import space_of

from hwnorm.cli import main
from hwnorm.design import dumps, load
from hwnorm.tune.rows import Rows
from hwnorm.tune.tuning import run


@pytest.fixture(scope="module")
def rows():
    return Rows.of(layers_of(), 0.25)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a design, rows, and a finished run."""
    folder = tmp_path_factory.mktemp("tuned")
    layers = layers_of()
    np.savez(folder / "rows.npz", x=np.stack([one.x[:12] for one in layers]),
             gamma=np.stack([one.gamma for one in layers]))  # fmt: skip
    (folder / "mine.toml").write_text(dumps(RMS))
    (folder / "space.toml").write_text(
        'design = "mine.toml"\n[space]\nmethod = ["direct", "linear", "quadratic", "log"]\n'
        "segments = { from = 2, to = 64 }\nguard_bits = [1, 2]\n"
    )
    assert main(["tune", str(folder / "space.toml"), "--data", str(folder / "rows.npz"), "-o",
                 str(folder / "run"), "--jobs", "1", "--limit", "max_ulp <= 20"]) == 0  # fmt: skip
    return folder


def test_tune_writes_designs_that_every_command_takes(folder, capsys):
    front = json.loads((folder / "run" / "front.json").read_text())
    assert len(front["front"]) > 3
    assert front["recommended"]["file"] == "designs/point-01.toml"
    for one in front["front"]:
        path = folder / "run" / one["file"]
        design = load(path)
        assert main(["eval", str(path), "--data", str(folder / "rows.npz"), "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["bound_ulp"] == one["cost"]["bound_ulp"] == design.bound_ulp
        worst = max(one["accuracy"][side]["max_ulp"] for side in ("worst", "held"))
        assert found["max_ulp"] == worst <= 20
    lines = (folder / "run" / "front.csv").read_text().splitlines()
    assert len(lines) == 1 + len(front["front"])
    assert lines[0].startswith("file,x,gamma,beta,y,rounding,method,guard_bits")


def test_tune_is_deterministic_and_cleans_up(folder, capsys):
    before = {p: p.read_bytes() for p in (folder / "run").rglob("*.*") if p.suffix != ".sqlite"}
    (folder / "run" / "designs" / "point-99.toml").write_text("old")
    command = ["tune", str(folder / "space.toml"), "--data", str(folder / "rows.npz"), "-o",
               str(folder / "run"), "--limit", "max_ulp <= 20", "--json"]  # fmt: skip
    assert main([*command, "--jobs", "2", "--resume"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["evaluated"] == 0
    after = {p: p.read_bytes() for p in (folder / "run").rglob("*.*") if p.suffix != ".sqlite"}
    assert after == before


def test_tune_in_words(folder, capsys):
    command = ["tune", str(folder / "space.toml"), "--data", str(folder / "rows.npz"), "-o",
               str(folder / "words"), "--jobs", "1"]  # fmt: skip
    assert main(command) == 0
    words = capsys.readouterr().out
    assert "it is the knee of the front" in words
    assert "the next cheaper one, " in words
    assert "the next better one, " in words
    assert "held out      9 rows: largest error of the front is at most" in words
    assert "note: " in words


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["tune", "{f}/mine.toml", "-o", "{f}/x"],
            "--data must be given: no activations are packaged for rmsnorm of dim 64",
        ),
        (
            ["tune", "{f}/mine.toml", "--data", "{f}/rows.npz", "-o", "{f}/x", "--holdout", "2"],
            "holdout must lie in 0..0.5, got 2.0",
        ),
        (
            ["tune", "{f}/mine.toml", "--data", "{f}/rows.npz", "-o", "{f}/x", "--limit", "good"],
            "a limit is written like max_ulp <= 1, got 'good'",
        ),
        (
            [
                "tune",
                "{f}/mine.toml",
                "--data",
                "{f}/rows.npz",
                "-o",
                "{f}/x",
                "--objective",
                "luck",
            ],
            "a figure must be one of",
        ),
        (
            ["tune", "{f}/mine.toml", "--data", "{f}/none.npz", "-o", "{f}/x"],
            "must exist, got none",
        ),
        (["tune", "nothing", "-o", "{f}/x"], "design must be a file or a preset, got 'nothing'"),
        (
            ["compare", "{f}/mine.toml", "{f}/mine.toml", "{f}/mine.toml"],
            "designs must differ, got",
        ),
        (
            ["compare", "smollm2", "tiny-64"],
            "designs must be of one norm and dim, got rmsnorm of dim 64, rmsnorm of dim 576",
        ),
        (["formats", "--data", "{f}/none.npz"], "must exist, got none"),
        (["formats", "--eps", "0"], "eps must be positive, got 0.0"),
    ],
)
def test_bad_commands(folder, capsys, arguments, sentence):
    code = main([part.format(f=folder) for part in arguments])
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert sentence in err
    assert not (folder / "x" / "front.json").exists()


def test_extras_that_are_missing(folder, capsys, monkeypatch, rows):
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    assert main(["tune", str(folder / "mine.toml"), "-o", str(folder / "x")]) == 2
    assert "the report needs plotly, got none; install it with: pip install hwnorm[tune]" in (
        capsys.readouterr().err
    )
    for module, settings, words in (
        ("loky", {"jobs": 2}, "more than one job needs loky"),
        ("distributed", {"scheduler": "tcp://127.0.0.1:1"}, "--scheduler needs dask.distributed"),
    ):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(ValueError, match=f"^{words}, got none; install it with: pip install"):
            run(space_of(segments=[4]), rows, **settings)
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(
        ValueError, match=r"^a space of more than 1 points, .* needs optuna, got none"
    ):
        run(dataclasses.replace(space_of(segments=[4, 8]), budget=1), rows)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ValueError, match=r"^a DataFrame needs pandas, got none"):
        run(space_of(segments=[4, 8]), rows).frame()


def test_designs_that_never_fit_are_counted(rows):
    space = space_of(y=["s4/1", "s16/11"], segments=[4, 4096], method=["linear"], guard_bits=[0])
    result = run(space, rows)
    assert result.states == {"saturated": 1, "invalid": 1, "done": 2}
