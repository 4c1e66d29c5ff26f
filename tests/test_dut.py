"""Hardware of a user's: her Verilog, her Amaranth; and what is said if it does not fit."""

import gc
import json
import re
import shlex

import numpy as np
import pytest
from amaranth.hdl import ClockDomain, ClockSignal, Module, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from small import GAMMA, SMALL, X

from hwnorm import LayerNorm, component, model, simulate
from hwnorm.bitexact import assert_bit_exact, compare
from hwnorm.cli import main
from hwnorm.design import dumps
from hwnorm.rows import endless_rows, random_rows
from hwnorm.sim import SimulationError

ENGINES = ("verilator", "icarus")


class Wrapped(wiring.Component):
    """A component of one's own: here, the design's with some ports changed."""

    def __init__(self, design, **changes):
        self.inner = component(design)
        members = dict(self.inner.signature.members) | changes
        super().__init__({name: member for name, member in members.items() if member is not None})

    def elaborate(self, platform):
        m = Module()
        m.submodules.inner = self.inner
        for name, member in self.inner.signature.members.items():
            if member.is_port:
                mine, its = getattr(self, name), getattr(self.inner, name)
                m.d.comb += its.eq(mine) if member.flow is In else mine.eq(its)
            else:
                ours = wiring.flipped(getattr(self, name))
                its = getattr(self.inner, name)
                wiring.connect(m, *((ours, its) if member.flow is In else (its, ours)))
        return m


# -- Verilog ----------------------------------------------------------------------------


@pytest.mark.parametrize("engine", [None, *ENGINES])
def test_verilog_of_ones_own(own, engine):
    result = simulate(SMALL, X, GAMMA, verilog=own(), engine=engine, stall=0.3)
    assert (result.y == model(SMALL, X, GAMMA)).all()
    assert result.engine == (engine or "verilator")
    assert_bit_exact(SMALL, X, GAMMA, verilog=own(name="other"), top="other", engine=engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_parts_and_files_beside_it(own, engine, tmp_path):
    """Several files; an include and a memory file are found where the Verilog is."""
    path = own(more='assign probe = 0;\n`include "rules.vh"\n', ports={"probe": ("output", 1)})
    (tmp_path / "rules.vh").write_text("// nothing\n")
    (tmp_path / "part.v").write_text(
        "module part(output [7:0] y); reg [7:0] m [0:1]; assign y = m[1];\n"
        '  initial $readmemh("m.mem", m);\nendmodule\n'
    )
    (tmp_path / "m.mem").write_text("0\n1\n")
    files = [str(path), tmp_path / "part.v"]
    result = simulate(SMALL, X, GAMMA, verilog=files, engine=engine)
    assert (result.y == model(SMALL, X, GAMMA)).all()
    # What is included may change without the files themselves changing.
    (tmp_path / "rules.vh").write_text("wire [7:0] m; part part(.y(m));\n")
    path.write_text(path.read_text().replace("m_axis_tdata = m_axis_tdata_", "m_axis_tdata = m"))
    text = str(compare(SMALL, X, GAMMA, verilog=files, engine=engine).summary)
    assert "row 0, element 0: expected -50, got 1" in text
    (tmp_path / "rules.vh").write_text("nonsense\n")
    with pytest.raises(ValueError, match="must compile the design in"):
        simulate(SMALL, X, GAMMA, verilog=files, engine=engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_modules_in_files_that_are_not_named_are_missing(own, engine, tmp_path):
    """Else a simulator is kept whose sources are not all in its hash."""
    (tmp_path / "part.v").write_text("module part(output y); assign y = 0;\nendmodule\n")
    with pytest.raises(ValueError, match="must compile the design in"):
        simulate(SMALL, X, GAMMA, verilog=own(more="wire y; part part(.y(y));"), engine=engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("ports", "message"),
    [
        (
            {"saturated": None, "s_axis_gamma_tlast": None},
            "have the ports of the design, got none named s_axis_gamma_tlast, saturated",
        ),
        (
            {"m_axis_tdata": ("output", 16)},
            "have m_axis_tdata as output of 32 bits, got output of 16 bits",
        ),
        ({"enable": ("input", 3)}, "have no further inputs, got enable"),
    ],
    ids=["missing", "width", "more"],
)
def test_other_ports_are_told(own, engine, ports, message):
    with pytest.raises(ValueError, match=f"^module my_top must {re.escape(message)}$"):
        simulate(SMALL, X, GAMMA, verilog=own(ports=ports), engine=engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_verilog_that_does_not_compile(own, engine):
    name = {"verilator": "verilator_bin", "icarus": "iverilog"}[engine]
    with pytest.raises(ValueError, match=rf"^{name} must compile the design in .*, got exit code"):
        simulate(SMALL, X, verilog=own(more="endmodul"), engine=engine)
    with pytest.raises(ValueError, match=rf"^{name} must compile (?s:.*)no_such"):
        simulate(SMALL, X, verilog=own(), top="no_such", engine=engine)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"verilog": "no.v"}, "verilog no.v must be a readable file, got: No such file or dir"),
        ({"verilog": []}, "verilog must name at least one file, got none"),
        ({"top": "t"}, "top goes with verilog, got top='t' alone"),
        ({"verilog": __file__, "engine": "pysim"}, "engine pysim takes no Verilog; verilator and"),
        ({"verilog": __file__, "engine": "cxxrtl"}, "engine cxxrtl takes no Verilog; verilator"),
        ({"verilog": __file__, "component": 1}, "verilog and component must not be given together"),
        ({"component": 1}, "component must be an Amaranth wiring.Component, got int"),
    ],
)
def test_what_cannot_be_simulated(settings, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        simulate(SMALL, X, **settings)


# -- what breaks while it runs --------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        (
            {"m_axis_tvalid": "m_axis_tvalid_ && age[0]"},
            "valid must stay until a beat is taken, got none in cycle",
        ),
        (
            {"m_axis_tdata": "m_axis_tdata_ ^ age"},
            "a stalled beat must not change, got another in cycle",
        ),
        ({"m_axis_tlast": "1'b1"}, "last must mark every 4th beat, got it wrong at beat 0"),
        (
            {"m_axis_tvalid": "1'b1", "m_axis_tdata": "0", "m_axis_tlast": "0"},
            "the design must give a beat for every beat in, got one too many in cycle",
        ),
        (
            {"m_axis_tvalid": "1'b0"},
            r"the design must give all beats in \d+ cycles, got 0 out and 16 in",
        ),
        (
            {"s_axis_tready": "1'b0"},
            r"the design must give all beats in \d+ cycles, got 0 out and 0 in",
        ),
    ],
    ids=["withdrawn", "changed", "last", "many", "mute", "deaf"],
)
def test_stream_rules(own, engine, outputs, message):
    with pytest.raises(SimulationError, match=f"^{message}"):
        simulate(SMALL, X, GAMMA, verilog=own(**outputs), engine=engine, stall=0.5)


@pytest.mark.parametrize(
    ("port", "value", "what"),
    [
        ("m_axis_tdata", "m_axis_tdata_ | 32'hx", "a beat"),
        ("m_axis_tvalid", "age[9] ? 1'bx : m_axis_tvalid_", "a valid or ready"),
        ("s_axis_tready", "age[5] ? 1'bz : s_axis_tready_", "a valid or ready"),
        ("saturated", "1'bz", "saturated = z"),
    ],
)
def test_icarus_sees_unknown_values(own, port, value, what):
    x = random_rows(SMALL, 300)
    with pytest.raises(SimulationError, match=f"^outputs must be known after reset, got {what}"):
        simulate(SMALL, x, GAMMA, verilog=own(**{port: value}), engine="icarus")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_simulator_that_ends_early(own, engine):
    path = own(more='always @(age) if (age == 20) begin $display("enough"); $fatal; end')
    with pytest.raises(
        SimulationError, match=r"^the simulator must run to its end, got .* after \d+ beats out\n.*"
    ) as caught:
        simulate(SMALL, X, verilog=path, engine=engine)
    assert "enough" in str(caught.value)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_finish_of_its_own(own, engine):
    path = own(more="always @(age) if (age == 60) $finish;")
    with pytest.raises(SimulationError, match=r"must run to its end, got \$finish after \d+ beats"):
        simulate(SMALL, random_rows(SMALL, 50), verilog=path, engine=engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_simulator_that_hangs_inside_a_cycle(own, engine, monkeypatch):
    for module in ("program", "icarus"):
        monkeypatch.setattr(f"hwnorm.sim.{module}.HANG_SECONDS", 3)
    loop = "reg [3:0] n; always @(posedge aclk) if (age == 20) begin n = 0;\n"
    loop += "while (n != 9) n = $urandom_range(5, 1); end"
    with pytest.raises(TimeoutError, match=r"^the simulator must finish a cycle in 3 s, got none"):
        simulate(SMALL, X, verilog=own(more=loop, saturated="n == 9"), engine=engine)


# -- Amaranth ----------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["pysim", "cxxrtl", "icarus"])
def test_a_component_of_ones_own(engine):
    design = LayerNorm(dim=8, lanes=2, x="s8/4", gamma="s8/6", beta="s8/4", y="s10/6")
    beta = np.arange(8)
    result = simulate(
        design, X, GAMMA, beta, component=Wrapped(design), engine=engine, stall=0.3, seed=4
    )
    assert (result.y == model(design, X, GAMMA, beta)).all()


class BothEdges(Wrapped):
    """Tells by `saturated` whether it has seen as many falling edges as rising ones."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.domains.falling = ClockDomain(clk_edge="neg", local=True)
        m.d.comb += [ClockSignal("falling").eq(ClockSignal()), ResetSignal("falling").eq(0)]
        rises, falls, same = Signal(8), Signal(8), Signal()
        m.d.falling += falls.eq(rises)
        m.d.sync += [rises.eq(rises + 1), same.eq(falls == rises)]
        m.d.comb += self.saturated.eq(same)
        return m


@pytest.mark.parametrize("engine", ["pysim", "cxxrtl", "verilator"])
def test_a_component_that_uses_the_falling_edge(engine):
    assert simulate(SMALL, X, GAMMA, component=BothEdges(SMALL), engine=engine).saturated


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"clear": None, "i_gamma": None},
            "component must have the ports of the design, got none named i_gamma, clear",
        ),
        ({"saturated": Out(2)}, "component must have saturated as Out(1), got Out(2)"),
        ({"clear": Out(1)}, "component must have clear as In(1), got Out(1)"),
        ({"enable": In(1)}, "component must have no further inputs, got enable"),
    ],
)
@pytest.mark.filterwarnings("ignore::amaranth.hdl.UnusedElaboratable")
def test_a_component_with_other_ports(changes, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        simulate(SMALL, X, component=Wrapped(SMALL, **changes))
    # Amaranth warns of hardware that is described and never used: now, not in another test.
    gc.collect()


# -- reproducers -------------------------------------------------------------------------


def replay(text, folder, monkeypatch, capsys):
    """Run the command that a report ends with; returns the exit code and what it said."""
    monkeypatch.chdir(folder)
    code = main(shlex.split(text.splitlines()[-1])[1:])
    return code, capsys.readouterr().err


@pytest.mark.parametrize(
    ("port", "value", "said"),
    [
        (
            "m_axis_tdata",
            "m_axis_tdata_ ^ 4",
            "16 of 32 elements differ, the first in row 0, element 0",
        ),
        ("m_axis_tvalid", "1'b0", "got 0 out and 16 in"),
    ],
)
def test_reproducer_of_verilog(own, tmp_path, monkeypatch, capsys, port, value, said):
    path = own(**{port: value})
    with pytest.raises(AssertionError) as caught:
        assert_bit_exact(SMALL, X, GAMMA, verilog=path, engine="icarus", folder=tmp_path / "r")
    text = str(caught.value)
    assert text.startswith("RTL (icarus) and model must agree: ")
    assert "--verilog 0_my_top.v --top my_top --engine icarus" in text
    path.unlink()
    code, again = replay(text, tmp_path / "r", monkeypatch, capsys)
    assert code == 1
    assert again.startswith("hwnorm: RTL and model must agree: ")
    assert said in again


@pytest.mark.parametrize("engine", ENGINES)
def test_reproducer_has_what_the_verilog_reads(own, tmp_path, monkeypatch, capsys, engine):
    more = 'reg [7:0] flip [0:0];\n`include "parts/rules.vh"\n'
    path = own(more=more, m_axis_tdata="m_axis_tdata_ ^ flip[0]")
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "rules.vh").write_text('initial $readmemh("flip.mem", flip);\n')
    (tmp_path / "flip.mem").write_text("4\n")
    (tmp_path / "unused.mem").write_text("4\n")
    with pytest.raises(AssertionError) as caught:
        assert_bit_exact(SMALL, X, GAMMA, verilog=path, engine=engine, folder=tmp_path / "r")
    for part in ("my_top.v", "flip.mem", "parts/rules.vh"):
        (tmp_path / part).unlink()
    code, again = replay(str(caught.value), tmp_path / "r", monkeypatch, capsys)
    assert code == 1
    assert "16 of 32 elements differ, the first in row 0, element 0" in again
    assert not (tmp_path / "r" / "unused.mem").exists()


def test_sim_command_tells_what_broke(own, tmp_path, capsys):
    (tmp_path / "d.toml").write_text(dumps(SMALL))
    path = own(m_axis_tvalid="1'b0")
    code = main(["sim", str(tmp_path / "d.toml"), "--verilog", str(path), "--json"])
    out, err = capsys.readouterr()
    assert code == 1
    assert err.startswith("hwnorm: RTL and model must agree: the design must give all beats in ")
    facts = json.loads(out)
    assert facts["engine"] == "verilator"
    assert (facts["bit_exact"], facts["rows"], facts["cycles"]) == (False, 0, None)


def test_reproducer_of_a_component(tmp_path, monkeypatch, capsys):
    with monkeypatch.context() as patch:
        patch.setattr("hwnorm.ops.ShiftRight.rtl", lambda self, m, a, s, **_: (a >> s) + 1)
        with pytest.raises(AssertionError) as caught:
            assert_bit_exact(SMALL, X, GAMMA, component=Wrapped(SMALL), folder=tmp_path)
    code, said = replay(str(caught.value), tmp_path, monkeypatch, capsys)
    assert code == 1
    assert "elements differ" in said


def test_rows_that_are_on_their_way_are_kept(own, monkeypatch, tmp_path):
    """Icarus is given all rows before the first of them comes out."""
    monkeypatch.setattr("hwnorm.bitexact.REPLAY_ELEMENTS", 8 * 20)
    monkeypatch.setattr("hwnorm.sim.beats.BLOCK_BEATS", 4 * 8)
    path, x = own(m_axis_tdata="m_axis_tdata_ ^ 4"), random_rows(SMALL, 100)
    with pytest.raises(AssertionError, match="first in row 0, element 0") as caught:
        assert_bit_exact(SMALL, x, verilog=path, engine="icarus", folder=tmp_path / "r")
    assert "wires of solve in the model:" in str(caught.value)
    assert (np.load(tmp_path / "r" / "x.npy") == x).all()


def test_rows_in_blocks_of_an_iterator(own, monkeypatch):
    """The model is compared block by block, and a reproducer has the last rows only."""
    monkeypatch.setattr("hwnorm.bitexact.REPLAY_ELEMENTS", 8 * 1000)
    monkeypatch.setattr("hwnorm.sim.beats.BLOCK_BEATS", 4 * 64)
    good = compare(SMALL, endless_rows(SMALL, 3000), verilog=own(), engine="verilator")
    assert good.bit_exact
    assert good.elements == 8 * 3000
    assert good.result.rows == 3000
    assert good.result.y is None
    assert good.result.cycles == 3000 * SMALL.beats + SMALL.latency
    late = own(m_axis_tdata="m_axis_tdata_ ^ (age == 9000)")
    found = compare(SMALL, endless_rows(SMALL, 3000), verilog=late, engine="verilator")
    assert found.mismatches == 1
    row = found.first[0]
    assert 2000 < row < 3000
    assert found.skipped > 1000
    rows = np.concatenate(list(endless_rows(SMALL, 3000)))
    assert (found.rows[row - found.skipped] == rows[row]).all()
