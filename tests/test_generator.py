"""The FuseSoC generator, called by FuseSoC for a core of a user's."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from hwnorm.cli import main
from hwnorm.cli.export import LIBRARY
from hwnorm.files import write_tree

DESIGN = 'norm = "rmsnorm"\ndim = 8\n[format]\nx = "s6/2"\ny = "s6/3"\n'
TOP = """
module top(input wire clk, input wire [7:0] x, output wire [7:0] y);
  my_norm norm(.clk(clk), .rst(1'b0), .s_axis_tdata(x), .s_axis_tvalid(1'b1), .s_axis_tlast(1'b0),
    .m_axis_tready(1'b1), .m_axis_tdata(y), .clear(1'b0));
  initial begin
    #1 if (norm.framing_error === 1'b0) $display("there is a norm");
    $finish;
  end
endmodule
"""
CORE = {
    "name": "me:soc:top:1.0",
    "filesets": {
        "rtl": {
            "files": [{"top.v": {"file_type": "verilogSource"}}],
            "depend": ["hwnorm:tools:generator"],
        }
    },
    "generate": {"norm": {"generator": "hwnorm", "parameters": {}}},
    "targets": {
        "default": {
            "filesets": ["rtl"],
            "generate": ["norm"],
            "toplevel": "top",
            "flow": "sim",
            "flow_options": {"tool": "icarus"},
        }
    },
}


def fusesoc(folder, parameters):
    """Run a user's core; returns exit code and output."""
    CORE["generate"]["norm"]["parameters"] = parameters
    write_tree(
        folder,
        {"my.toml": DESIGN, "top.v": TOP, "top.core": f"CAPI=2:\n{yaml.safe_dump(CORE)}"},
    )
    own = {f"XDG_{kind}_HOME": str(folder / kind) for kind in ("CONFIG", "CACHE", "DATA")}
    own["PYTHONPATH"] = os.pathsep.join(sys.path)
    own["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = [sys.executable, "-m", "fusesoc.main", "--cores-root", ".", "--cores-root", LIBRARY,
               "run", "--target=default", "me:soc:top"]  # fmt: skip
    done = subprocess.run(
        command, cwd=folder, env=os.environ | own, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    "design",
    [
        "my.toml",
        {"norm": "rmsnorm", "dim": 8, "format": {"x": "s6/2", "y": "s6/3"}},
    ],
)
def test_a_core_asks_for_a_norm(design, tmp_path):
    asked = {"design": design, "name": "my_norm", "clock": "clk", "reset": "rst"}
    code, text = fusesoc(tmp_path, asked | {"tables": "readmemh"})
    assert code == 0, text
    assert "there is a norm" in text
    assert "WARNING" not in text


def test_fusesoc_shows_what_is_wrong(tmp_path):
    code, text = fusesoc(tmp_path, {"design": "my.toml", "lanes": 3})
    assert code != 0
    assert "hwnorm: parameters must be among design, name, profile, tables, clock, reset" in text
    assert "Traceback" not in text


def request(tmp_path, monkeypatch, **parameters):
    """Call the generator as FuseSoC does; returns exit code."""
    monkeypatch.chdir(tmp_path)
    asked = {"gapi": "1.0", "vlnv": "a:b:c:1", "files_root": str(tmp_path),
             "parameters": parameters}  # fmt: skip
    Path("request.yml").write_text(yaml.safe_dump(asked))
    Path("my.toml").write_text(DESIGN)
    return main(["fusesoc", "request.yml"])


def test_names(tmp_path, monkeypatch):
    assert request(tmp_path, monkeypatch, design="my.toml") == 0
    assert (tmp_path / "rtl/my.v").exists()
    assert re.search(r"^name: a:b:c:1$", (tmp_path / "my.core").read_text(), re.M)
    assert request(tmp_path, monkeypatch, design={"norm": "rmsnorm", "dim": 4}) == 0
    assert (tmp_path / "rtl/rmsnorm_4.v").exists()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "parameter design must be a file, a preset or its keys, got None"),
        ({"design": "no.toml"}, "design file no.toml must be readable, got: No such file"),
        ({"design": {"norm": "rmsnorm"}}, "dim must be given, got none"),
        ({"design": {"norm": "rmsnorm", "dim": 7, "lanes": 2}}, "lanes must divide dim"),
        ({"design": "my.toml", "clock": ["clk"]}, "parameter clock must be text, got ['clk']"),
        ({"design": "my.toml", "profile": "amd"}, "profile must be one of generic, vivado"),
    ],
)
def test_bad_requests(parameters, message, tmp_path, monkeypatch, capsys):
    assert request(tmp_path, monkeypatch, **parameters) == 2
    assert capsys.readouterr().err.startswith(f"hwnorm: {message}")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["my.toml", "request.yml"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "request request.yml must be readable, got: No such file or directory"),
        ("{", "request request.yml must be readable, got: no YAML"),
        ("a: 1", "request request.yml must have vlnv, files_root and parameters"),
    ],
)
def test_unreadable_requests(text, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    if text:
        Path("request.yml").write_text(text)
    assert main(["fusesoc", "request.yml"]) == 2
    assert capsys.readouterr().err.startswith(f"hwnorm: {message}")


def test_the_library_is_in_the_package(capsys):
    assert main(["fusesoc"]) == 0
    folder = Path(capsys.readouterr().out.strip())
    assert {path.name for path in folder.iterdir()} >= {"hwnorm.core", "generate.py"}
    assert folder.is_relative_to(Path(importlib.util.find_spec("hwnorm").origin).parent)
