"""Writing a bundle where something is already: an earlier bundle, or files of others."""

import json
import re

import pytest

from hwnorm import RMSNorm
from hwnorm.cli import main
from hwnorm.export.bundle import checksum, first_foreign, own_files, write_bundle
from hwnorm.files import write_tree
from hwnorm.hdl import Style
from hwnorm.rows import bench_rows

PLAIN = RMSNorm(dim=8, x="s6/2", y="s6/3")


def test_an_earlier_bundle_is_replaced(tmp_path):
    rows = bench_rows(PLAIN, 2)
    write_bundle(PLAIN, tmp_path / "b", "old", rows, style=Style(tables="readmemh"))
    (tmp_path / "b/tb/build").mkdir()
    (tmp_path / "b/tb/build/log").write_text("left by a simulator")
    files = write_bundle(PLAIN, tmp_path / "b", "later", rows)
    own = own_files(tmp_path / "b")
    assert own == files
    assert first_foreign(tmp_path / "b", own) is None
    assert "rtl/later.v" in files
    assert (tmp_path / "b/tb/build/log").exists()


@pytest.mark.parametrize("change", ["foreign", "edited", "no manifest", "broken manifest"])
def test_foreign_files_are_refused(change, tmp_path):
    rows = bench_rows(PLAIN, 2)
    folder = tmp_path / "b"
    if change != "no manifest":
        write_bundle(PLAIN, folder, "old", rows)
    path, text = {
        "foreign": ("notes.txt", "mine"),
        "edited": ("tb/old_tb.v", "my own bench"),
        "no manifest": ("src/a/b.v", "mine"),
        "broken manifest": ("manifest.json", "[1]"),
    }[change]
    write_tree(folder, {path: text})
    before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    named = "README.md" if change == "broken manifest" else re.escape(path)
    with pytest.raises(
        ValueError,
        match=rf"^output .*b must hold nothing but an earlier bundle, unless --force is given, "
        rf"got {named}$",
    ):
        write_bundle(PLAIN, folder, "old", rows)
    assert {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == before
    files = write_bundle(PLAIN, folder, "old", rows, force=True)
    if path not in files:
        assert (folder / path).read_text() == text
    assert own_files(folder) == files


def test_nothing_outside_is_removed(tmp_path):
    write_bundle(PLAIN, tmp_path / "b", "d", bench_rows(PLAIN, 2))
    (tmp_path / "mine").write_text("mine")
    facts = json.loads((tmp_path / "b/manifest.json").read_text())
    facts["files"]["../mine"] = checksum("mine")
    (tmp_path / "b/manifest.json").write_text(json.dumps(facts))
    write_bundle(PLAIN, tmp_path / "b", "d", bench_rows(PLAIN, 2))
    assert (tmp_path / "mine").exists()


def test_the_command_refuses_and_can_be_forced(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_tree("out", {"notes.txt": "mine"})
    command = ["verilog", "tiny-64", "-o", "out", "--rows", "2"]
    assert main(command) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        "hwnorm: output out must hold nothing but an earlier bundle, unless --force is given, "
        "got notes.txt\n"
    )
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["notes.txt"]
    assert main([*command, "--force"]) == 0
    # The notes are still foreign.
    assert main(command) == 2
    assert (tmp_path / "out/notes.txt").read_text() == "mine"
