"""The command line: what it prints, what it returns, what it says of bad input."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import hwnorm.cli.design
from hwnorm.cli import commands, main
from hwnorm.design import CATALOGUE


@pytest.fixture
def run(capsys):
    """Run a command; returns exit code, stdout, stderr."""

    def call(*arguments):
        code = main([str(a) for a in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def data_of(run, *arguments):
    """The one JSON object that a command prints, nothing else being there."""
    code, out, err = run(*arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def test_every_command_has_help_and_json():
    for name, command in commands.commands.items():
        assert command.help, name
        assert "--json" in [option for p in command.params for option in p.opts], name
        for parameter in command.params:
            described = getattr(parameter, "help", None)
            plain = ("--seed", "--rows", "--method", "--segments", "--arg-bits", "--frac")
            shared = ("--output", "--function")
            if parameter.param_type_name == "option" and not described:
                assert parameter.opts[-1] in (*plain, *shared), (name, parameter.opts)


def test_check(run):
    code, out, err = run("check", "smollm2", "--wires")
    assert (code, err) == (0, "")
    assert "error bound   0.9229 ulp" in out
    assert "latency       119 cycles = 72 beats" in out
    assert re.search(r"^lead_zeros +LeadingZeros +total", out, re.M)
    data = data_of(run, "check", "smollm2")
    assert data["latency_cycles"] == 119
    assert data["rom_bits"] == 512 * (21 + 12)
    assert data["bound_ulp"] == pytest.approx(sum(data["bound_terms_ulp"].values()))
    assert data["widths"]["gather.x"] == 24
    assert any("beyond 62 bits" in sentence for sentence in data["warnings"])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('eps = 1e-9\n[format]\nx = "s8/4"', "eps is 1.64e-05 lsb of the total"),
        ('[format]\ny = "s8/6"', "y can saturate: rows may reach 8"),
        ("[rsqrt]\nsegments = 4", "the bound .* ulp is not below 1: .* more rsqrt.segments"),
        ('[rsqrt]\nmethod = "exact"', "exact is a model only"),
        (
            '[format]\nx = "s3/1"\n[rsqrt]\nsegments = 8192\nguard_bits = 6',
            r"table rsqrt has \d+ of 8192 entries that no argument reaches",
        ),
    ],
)
def test_check_tells_what_is_not_silent(run, tmp_path, text, sentence):
    (tmp_path / "d.toml").write_text('norm = "rmsnorm"\ndim = 64\n' + text)
    data = data_of(run, "check", tmp_path / "d.toml")
    assert re.search(sentence, " | ".join(data["warnings"]))


def test_new_makes_a_design_that_checks(run, tmp_path):
    path = tmp_path / "sub" / "a.toml"
    assert run("new", "layernorm", "-o", path)[0] == 0
    assert data_of(run, "check", path)["norm"] == "layernorm"
    code, _, err = run("new", "layernorm", "-o", path)
    assert code == 2
    assert re.fullmatch(r"hwnorm: output .* must not exist yet, got an existing file\n", err)
    assert run("new", "rmsnorm")[1].startswith("# A hwnorm design.")


def test_show_prints_a_design(run, tmp_path):
    (tmp_path / "d.toml").write_text(run("show", "tiny-64")[1])
    assert hwnorm.load(tmp_path / "d.toml") == CATALOGUE["tiny-64"]


def test_eval_of_real_activations(run):
    data = data_of(run, "eval", "smollm2")
    assert len(data["layers"]) == 61
    assert data["rows"] == 976
    assert data["max_ulp"] <= data["bound_ulp"]
    assert data["max_ulp"] == max(layer["max_ulp"] for layer in data["layers"])
    assert data["saturated"] == 0
    assert set(data) >= {
        "max_ulp", "mean_ulp", "rms_ulp", "p999_ulp", "bias_ulp", "misrounded", "sqnr_db",
        "ideal_sqnr_db", "saturated", "bound_ulp", "layers",
    }  # fmt: skip
    code, out, _ = run("eval", "smollm2", "--rows", "20")
    assert code == 0
    assert "on 20 rows of real activations" in out


def test_eval_of_a_file_and_without_data(run, tmp_path):
    np.save(tmp_path / "x.npy", np.linspace(-3, 3, 640).reshape(10, 64))
    data = data_of(run, "eval", "tiny-64", "--data", tmp_path / "x.npy")
    assert (data["rows"], len(data["layers"])) == (10, 1)
    assert data["x_quantisation_ulp"] > 0
    assert data_of(run, "eval", "tiny-64")["rows"] > 256


def test_eval_tells_of_another_eps(run, tmp_path):
    np.savez(tmp_path / "d.npz", x=np.ones((2, 64)), eps=1e-6)
    text = run("eval", "tiny-64", "--data", tmp_path / "d.npz")[1]
    assert text.endswith("note: the model behind the data has eps 1e-06, the design 1e-05\n")
    assert "note:" not in run("eval", "smollm2", "--rows", "1")[1]


def test_eval_fails_where_the_bound_does_not_hold(run, monkeypatch):
    monkeypatch.setattr("hwnorm.norms.scaling.ScalingNorm.eps_ulp", -0.4)
    code, out, err = run("eval", "tiny-64", "--json")
    assert code == 1
    assert json.loads(out)["bound_ulp"] < 0.5
    assert re.fullmatch(r"hwnorm: max error must keep the bound 0\.2\d+ ulp, got 0\.\d+\n", err)


def test_sim(run, tmp_path):
    data = data_of(run, "sim", "tiny-64", "--rows", "5", "--vcd", tmp_path / "w.vcd")
    assert data["bit_exact"] is True
    design = CATALOGUE["tiny-64"]
    assert data["cycles"] == 5 * design.beats + design.latency
    assert data["latency_cycles"] == design.latency
    assert data["beats_per_cycle"] == 1
    assert "lead_zeros" in (tmp_path / "w.vcd").read_text()
    stalled = data_of(run, "sim", "tiny-64", "--rows", "5", "--stall", "0.5")
    assert stalled["cycles"] > data["cycles"]


def test_engines(run):
    data = data_of(run, "engines")["engines"]
    assert set(data) == {"pysim", "verilator", "cxxrtl", "icarus"}
    # In CI an engine that is missing is a failure.
    assert all(engine["missing"] is None for engine in data.values())


@pytest.mark.parametrize("engine", ["verilator", "cxxrtl", "icarus"])
def test_sim_on_other_engines(run, engine):
    data = data_of(run, "sim", "tiny-64", "--engine", engine, "--stall", "0.3")
    assert (data["engine"], data["bit_exact"]) == (engine, True)


def test_sim_takes_rows_of_many_layers(run):
    data = data_of(run, "sim", "smollm2", "--rows", "18")
    assert data["rows"] == 18
    assert data["bit_exact"] is True


def test_rom_designs_keep_their_parameters(run, tmp_path):
    np.savez(tmp_path / "d.npz", x=np.ones((3, 8)), gamma=np.full(8, 0.5))
    text = 'norm = "rmsnorm"\ndim = 8\nstore = "rom"\n[format]\ngamma = "s8/6"\n'
    (tmp_path / "d.toml").write_text(text)
    assert data_of(run, "sim", tmp_path / "d.toml", "--data", tmp_path / "d.npz")["bit_exact"]


def test_json_knows_no_infinity(run, tmp_path):
    np.save(tmp_path / "zero.npy", np.zeros((2, 64)))
    assert data_of(run, "eval", "tiny-64", "--data", tmp_path / "zero.npy")["sqnr_db"] is None


def test_sim_fails_where_rtl_and_model_differ(run, monkeypatch):
    monkeypatch.setattr("hwnorm.ops.ShiftRight.rtl", lambda self, m, a, s, **_: (a >> s) + 1)
    code, out, err = run("sim", "tiny-64", "--rows", "3", "--json")
    assert code == 1
    assert json.loads(out)["bit_exact"] is False
    assert re.match(
        r"hwnorm: RTL and model must agree: \d+ of \d+ elements differ, the first in row", err
    )
    assert err.count("\n") == 1


def test_lut(run, tmp_path):
    data = data_of(run, "lut", "edge-int8-768", "-o", tmp_path / "t")
    assert data["tables"]["rsqrt"]["segments"] == 32
    assert len(data["files"]) == 13
    assert (
        (tmp_path / "t" / "rsqrt_c0.coe").read_text().startswith("memory_initialization_radix=16")
    )
    arguments = ("--function", "exp2", "--method", "mitchell", "--segments", "16")
    data = data_of(run, "lut", *arguments, "--format", "mem", "-o", tmp_path / "e")
    assert data["files"] == ["exp2_c0.mem"]
    assert len((tmp_path / "e" / "exp2_c0.mem").read_text().split()) == 16


def test_verilog(run, tmp_path):
    data = data_of(run, "verilog", "tiny-64", "-o", tmp_path / "v", "--name", "my-top")
    assert "rtl/my_top.v" in data["files"]
    manifest = json.loads((tmp_path / "v" / "manifest.json").read_text())
    assert manifest["latency_cycles"] == CATALOGUE["tiny-64"].latency
    again = data_of(run, "verilog", "tiny-64", "-o", tmp_path / "w", "--name", "my-top")
    for file in again["files"]:
        assert (tmp_path / "v" / file).read_bytes() == (tmp_path / "w" / file).read_bytes()


def test_demo(run, tmp_path):
    data = data_of(run, "demo", "-o", tmp_path / "demo")
    assert data["passed"] is True
    assert data["icarus"] == "PASS: 6 rows of 576 elements"
    assert data["seconds"] < 60


def bad_data(tmp_path):
    """Data files of all kinds of badness, for a design of dim 64 and x in s16/8."""
    x = np.zeros((4, 64))
    for name, value in (("nan", np.nan), ("inf", np.inf), ("large", 200.0)):
        array = x.copy()
        array[1, 2:4] = value
        np.save(tmp_path / f"{name}.npy", array)
    np.save(tmp_path / "narrow.npy", np.zeros((4, 60)))
    np.save(tmp_path / "words.npy", np.array(["a"]))
    (tmp_path / "exact.toml").write_text('norm="rmsnorm"\ndim=8\n[rsqrt]\nmethod="exact"\n')
    (tmp_path / "corrupt.npz").write_bytes(b"PK\x03\x04 no zip")


#: Arguments, and the whole line on stderr.
BAD = {
    "eval tiny-64 --data {tmp}/nan.npy": "nan: x must be finite, got 2 NaN or infinite elements",
    "eval tiny-64 --data {tmp}/inf.npy": "inf: x must be finite, got 2 NaN or infinite elements",
    "eval tiny-64 --data {tmp}/large.npy": (
        "large: x must fit s16/8, got 2 of 256 elements outside it; s17/8 holds them all"
    ),
    "eval tiny-64 --data {tmp}/narrow.npy": "data of narrow.npy must have dim=64, got 60",
    "sim tiny-64 --data {tmp}/large.npy": (
        "x must fit s16/8, got 2 of 256 elements outside it; s17/8 holds them all"
    ),
    "verilog tiny-64 -o {tmp}/out --data {tmp}/nan.npy": (
        "x must be finite, got 2 NaN or infinite elements"
    ),
    "eval tiny-64 --data {tmp}/words.npy": ("x of {tmp}/words.npy must hold numbers, got <U1"),
    "eval tiny-64 --data {tmp}/corrupt.npz": (
        "data file {tmp}/corrupt.npz must be a .npy or .npz of numbers, got another"
    ),
    "eval tiny-64 --data {tmp}/gone.npz": "data file {tmp}/gone.npz must exist, got none",
    "check {tmp}/gone.toml": (
        "design file {tmp}/gone.toml must be readable, got: No such file or directory"
    ),
    "check tiny64": ("design must be a file or a preset, got 'tiny64'; did you mean tiny-64?"),
    "new rmsnom": ("norm must be one of rmsnorm, layernorm, got 'rmsnom'; did you mean rmsnorm?"),
    "sim tiny-64 --engine warp": (
        "engine must be one of pysim, verilator, cxxrtl, icarus, got 'warp'"
    ),
    "sim tiny-64 --stall 1": "stall must be at least 0 and below 1, got 1.0",
    "lut tiny-64 --arg-bits 9 -o {tmp}/out": (
        "--arg-bits goes with --function, a design has its own"
    ),
    "lut -o {tmp}/out": "lut takes a design or --function, got both or none",
    "lut --function cosh -o {tmp}/out": "function must be one of rsqrt, log2, exp2, got cosh",
    "lut --function log2 --method quadratic -o {tmp}/out": (
        "method of log2 must be one of direct, mitchell, linear, got quadratic"
    ),
    "lut --function log2 --segments 48 -o {tmp}/out": (
        "segments must be a power of two in 1..65536, got 48"
    ),
    "lut --function exp2 --segments 64 --arg-bits 4 -o {tmp}/out": (
        "segments must be at most 16, since the argument of exp2 has 4 bits, got 64"
    ),
    "verilog tiny-64 -o {tmp}/nan.npy": "output {tmp}/nan.npy must be a folder, got a file",
    "eval tiny-64 --plot {tmp}/a.gif": ("a plot is written as .png, .svg or .pdf, got {tmp}/a.gif"),
    "lut {tmp}/exact.toml -o {tmp}/out": ("rsqrt.method exact is a model only, it has no hardware"),
    "evl tiny-64": "No such command 'evl'. Did you mean 'eval'?",
    "eval": "Missing argument 'DESIGN'.",
    "check tiny-64 --wire": "No such option '--wire'. Did you mean '--wires'?",
}


@pytest.mark.parametrize("line", BAD)
def test_bad_input_gets_one_line_and_writes_nothing(run, tmp_path, line):
    bad_data(tmp_path)
    before = sorted(tmp_path.iterdir())
    code, out, err = run(*line.format(tmp=tmp_path).split())
    assert code == 2
    assert err == f"hwnorm: {BAD[line].format(tmp=tmp_path)}\n"
    assert out == "" or "--plot" in line
    assert sorted(tmp_path.iterdir()) == before


def test_exact_has_no_hardware(run, tmp_path):
    (tmp_path / "e.toml").write_text('norm = "rmsnorm"\ndim = 64\n[rsqrt]\nmethod = "exact"\n')
    for command in (["sim"], ["verilog", "-o", tmp_path / "v"]):
        code, _, err = run(command[0], tmp_path / "e.toml", *command[1:])
        assert (code, err) == (
            2,
            "hwnorm: rsqrt.method exact is a model only, it has no hardware\n",
        )
    assert not (tmp_path / "v").exists()
    assert data_of(run, "eval", tmp_path / "e.toml")["misrounded"] == 0


def test_an_interrupt_is_no_traceback(run, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(hwnorm.cli.design, "load", interrupted)
    # The empty line ends the terminal's own "^C".
    assert run("check", "tiny-64") == (130, "", "\nhwnorm: interrupted\n")


def test_without_arguments_it_helps(run):
    code, _, err = run()
    assert code == 2
    assert "Usage: hwnorm" in err
    assert all(preset in err for preset in CATALOGUE)


def test_a_terminated_simulation_leaves_nothing(tmp_path):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "hwnorm", "sim", "tiny-64", "--rows", "100000"]
    process = subprocess.Popen(
        [*command, "--engine", "icarus"], env=environment, stderr=subprocess.PIPE, text=True
    )

    def children():
        return Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()

    begun = time.monotonic()
    # The simulation itself, not the compiler: that is a process that lasts.
    seen = {}
    while time.monotonic() < begun + 120 and process.poll() is None:
        for child in children():
            seen[child] = seen.get(child, 0) + 1
        if any(count > 40 for count in seen.values()):
            break
        time.sleep(0.05)
    process.terminate()
    assert process.communicate(timeout=60)[1] == "\nhwnorm: interrupted\n"
    assert process.returncode == 130
    assert not any(Path(f"/proc/{child}").exists() for child in seen)
    assert list(tmp_path.iterdir()) == []
