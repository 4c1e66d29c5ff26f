"""Compiled simulators: kept whole or not at all, and what does not compile is told."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hwnorm import RMSNorm, model, simulate
from hwnorm.sim.cache import built, cache_folder, call

DESIGN = RMSNorm(dim=8, lanes=8, x="s12/4", gamma="s6/4", y="s9/5", store="rom")
X = np.arange(16).reshape(2, 8)
COMPILED = ("cxxrtl", "verilator", "icarus")


@pytest.fixture
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temp"))
    (tmp_path / "temp").mkdir()
    return tmp_path / "hwnorm"


def copy_source(folder):
    (folder / "out").write_text((folder / "in").read_text())
    return folder / "out"


def build_once(key, cache=True):
    """Returns what was built, whether it was new, and whether it lies in the cache."""
    new = []

    def build(folder):
        new.append(folder)
        return copy_source(folder)

    with built("thing", key, {"in": f"text of {key}"}, build, cache) as path:
        return path.read_text(), bool(new), "temp" not in path.parts[-3:]


@pytest.mark.parametrize("engine", COMPILED)
def test_engines_use_the_cache(engine, cache, monkeypatch):
    first = simulate(DESIGN, X, engine=engine)
    assert (first.y == model(DESIGN, X)).all()
    kept = {path.name.rsplit("-", 1)[0] for path in cache.iterdir()}
    assert kept == {engine, "verilator-runtime"} if engine == "verilator" else {engine}

    def refuse(*_):
        raise AssertionError("compiled again")

    for module in ("program", "verilator", "icarus"):
        monkeypatch.setattr(f"hwnorm.sim.{module}.call", refuse)
    assert (simulate(DESIGN, X, engine=engine).y == first.y).all()
    assert list((cache.parent / "temp").iterdir()) == []


def test_without_cache_nothing_is_kept(cache):
    assert (simulate(DESIGN, X, engine="icarus", cache=False).y == model(DESIGN, X)).all()
    assert not cache.exists()
    assert list((cache.parent / "temp").iterdir()) == []


def test_key_and_sources_decide(cache):
    assert build_once("a") == ("text of a", True, True)
    assert build_once("a") == ("text of a", False, True)
    assert build_once("b") == ("text of b", True, True)
    assert build_once("a", cache=False) == ("text of a", True, False)


def test_a_relative_cache_folder_is_ignored(monkeypatch, tmp_path):
    """The compilers and the simulators run in other folders than we do."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for base in ("some/where", ""):
        monkeypatch.setenv("XDG_CACHE_HOME", base)
        assert cache_folder() == tmp_path / ".cache" / "hwnorm"


def test_a_user_without_a_home_has_no_cache(monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert build_once("a")[:2] == ("text of a", True)
    assert not cache_folder().exists()


def test_an_interrupted_build_leaves_nothing(cache):
    def build(folder):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), built("thing", "a", {"in": ""}, build, True):
        pass
    assert list((cache.parent / "temp").iterdir()) == []


def test_a_cache_that_is_in_the_way_only_costs_time(cache):
    cache.write_text("a file, not a folder")
    for _ in range(2):
        assert build_once("a") == ("text of a", True, False)


@pytest.mark.parametrize("step", ["copyfile", "replace"])
def test_a_full_cache_only_costs_time(cache, monkeypatch, step):
    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(f"hwnorm.sim.cache.{'shutil' if step == 'copyfile' else 'os'}.{step}", full)
        assert build_once("a") == ("text of a", True, False)
    # Nothing half-made stays behind.
    assert list(cache.iterdir()) == []
    assert build_once("a") == ("text of a", True, True)


def test_a_half_made_entry_is_never_used(cache):
    build_once("a")
    (entry,) = cache.iterdir()
    os.rename(entry, cache / ".new-x")
    (cache / ".new-x").write_text("half")
    assert build_once("a") == ("text of a", True, True)


def test_two_processes_make_the_same(cache):
    code = (
        "import numpy as np, hwnorm\n"
        "design = hwnorm.RMSNorm(dim=8, lanes=8, x='s12/4', gamma='s6/4', y='s9/5', store='rom')\n"
        "r = hwnorm.simulate(design, np.arange(16).reshape(2, 8), engine='cxxrtl')\n"
        "print(r.y.tolist())\n"
    )
    both = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    texts = [process.communicate()[0].strip() for process in both]
    assert texts == [str(model(DESIGN, X).tolist())] * 2
    assert len(list(cache.iterdir())) == 1


def test_a_compiler_error_has_its_last_lines_and_keeps_the_folder(cache, monkeypatch):
    monkeypatch.setattr("hwnorm.sim.cxxrtl._DUT", "not C++ at all\n")
    with pytest.raises(ValueError, match=r"^g\+\+ must compile the design in ") as caught:
        simulate(DESIGN, X, engine="cxxrtl")
    first, *lines = str(caught.value).splitlines()
    folder = Path(first.removeprefix("g++ must compile the design in ").split(",")[0])
    assert first.endswith("got exit code 1")
    assert 1 <= len(lines) <= 5
    assert "not C++ at all" in (folder / "dut.h").read_text()
    assert not cache.exists()


def test_call_quotes_the_last_lines(tmp_path):
    with pytest.raises(ValueError, match=r"got exit code 3\n  4\n  5\n  6\n  7\n  8$"):
        call(tmp_path, ["sh", "-c", "for n in 1 2 3 4 5 6 7 8; do echo $n >&2; done; exit 3"])
