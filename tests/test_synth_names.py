"""From netlists and reports back to the design: parts, wires of the flows, the critical path."""

import pytest

from hwnorm.design import CATALOGUE
from hwnorm.synth import runs, tools
from hwnorm.synth.names import PARTS, FlowNames, part_of
from hwnorm.synth.netlist import cells_by_part
from hwnorm.synth.place import TooLargeError, _refusal, read_report

TINY = CATALOGUE["tiny-64"]


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("", "control"), ("engine", "control"), ("engine.gather", "gather"),
        ("engine.reduce_sumsq.tree", "gather"), ("engine.solver", "solve"),
        ("engine.apply", "apply"), ("engine.ring", "buffer"), ("engine.store_gamma", "buffer"),
        ("engine.store_gamma.loader", "buffer"), ("engine.fifo", "buffer"),
    ],
)  # fmt: skip
def test_parts(path, part):
    assert part_of(path) == part
    assert part in PARTS


def module(cells=(), nets=()):
    """A netlist: cells of (name, type, source, inputs, outputs), nets of name to bits."""
    return {
        "cells": {
            name: {
                "type": kind,
                "attributes": source if isinstance(source, dict) else {"src": source},
                "port_directions": {"I": "input", "O": "output"},
                "connections": {"I": list(reads), "O": list(drives)},
            }
            for name, kind, source, reads, drives in cells
        },
        "netnames": {name: {"bits": bits} for name, bits in dict(nets).items()},
    }


def test_cells_of_parts():
    scope = {"module_src": "top.v:100.1-199.10"}
    netlist = module(
        [
            ("engine", "$scopeinfo", {"module_src": "top.v:10.1-99.10"}, [], []),
            ("engine.solver", "$scopeinfo", scope, [], []),
            ("engine.ring", "$scopeinfo", {"module_src": "top.v:200.1-299.10"}, [], []),
            # By its line; by its name; by its reader; by its reader's reader; by its driver.
            ("engine.x_FF", "FF", "lib.v:1.1-2.2|top.v:150.3-150.9", [2], [3]),
            ("engine.ring.used_LUT", "LUT", "lib.v:3.1-3.2", [3], [4]),
            ("engine.y_LUT", "LUT", "lib.v:3.1-3.2", [5], [2]),
            ("aresetn_LUT", "LUT", "", [6], [5]),
            ("clear_LUT", "LUT", "", [4], [7]),
            ("alone", "LUT", "", [8], [9]),
            # Two against one.
            ("engine.z_LUT", "LUT", "", [8], [10]),
            ("engine.ring.a_LUT", "LUT", "", [10], []),
            ("engine.ring.b_LUT", "LUT", "", [10], []),
            ("engine.solver.c_LUT", "LUT", "", [10], []),
        ]
    )
    parts = cells_by_part(netlist, part_of)
    assert parts == {"solve": {"FF": 1, "LUT": 3}, "buffer": {"LUT": 5}, "control": {"LUT": 1}}


def test_nets_as_wires_of_the_flows():
    nets = {
        "dut.engine.solver.n658": [10, 11],
        "dut.engine.solver.mul15": [11, 12],
        "dut.engine.ring.used_TRELLIS_FF_Q_3_DI": [13],
        "dut.engine.fifo.port_627_0": [14],
        "dut.engine.limited": [14],
    }
    names = FlowNames(TINY, module([("cell", "FF", "", [9], [12])], nets), "dut")
    assert names.of_net("dut.engine.solver.rsqrt_c1[5]") == ("solve.rsqrt_c1", "Lookup")
    assert names.of_net("dut.engine.solver.rsqrt_c1_c4[5]") == ("solve.rsqrt_c1", "Lookup")
    assert names.of_net("dut.engine.apply.unit_2_c3") == ("apply.unit", "ShiftRight")
    # The second bit of this one is the first of mul15, the first is inside an op.
    assert names.of_net("dut.engine.solver.n658[1]") == ("solve.mul15", "Mul")
    assert names.of_net("dut.engine.solver.n658[0]") is None
    # Wiring only: the op behind it, and its name if the wire has none of its own.
    assert names.of_net("dut.engine.solver.slice20") == ("solve.lead_zeros", "LeadingZeros")
    # What Yosys names after a wire, and nextpnr after that.
    assert names.of_net("dut.engine.solver.inv_exp_c2_TRELLIS_FF_Q_DI") == ("solve.inv_exp", "Sub")
    assert names.of_net("$nextpnr_ICESTORM_LC_5$O") is None
    assert names.of_net("dut.engine.ring.used_TRELLIS_FF_Q_3_DI") == ("ring.used", None)
    assert names.of_net("dut.engine.fifo.port_627_0") == ("limited", None)
    assert names.of_net("dut.engine.reduce_sumsq.tree.add4[3]") == ("reduce_sumsq.add4", "Add")
    assert names.of_cell("cell_LC") == ("solve.mul15", "Mul")
    assert names.of_cell("dut.engine.apply.unit_0_c3_SB_DFF_Q_D_SB_LUT4_O_LC")[0] == "apply.unit"
    assert names.of_cell("unknown") is None


def test_report():
    def step(kind, delay, **more):
        return {"type": kind, "delay": delay, "to": {"cell": "none"}, **more}

    inside, outside = "posedge $glbnet$clk", "<async>"
    path = [
        step("clk-to-q", 2.0),
        step("routing", 2.0, net="dut.engine.solver.total"),
        step("logic", 0.25),
        step("routing", 0.5, net="dut.engine.solver.n77"),
        step("logic", 0.25),
        step("routing", 0.5, net="dut.engine.solver.mantissa[7]"),
        step("setup", 0.125),
    ]
    report = {
        "fmax": {
            "$PACKER_GND_NET": {"achieved": 3.0, "constraint": 12},
            "$glbnet$clk": {"achieved": 205.5, "constraint": 200},
        },
        "critical_paths": [
            {"from": outside, "to": inside, "path": path[:1]},
            {"from": inside, "to": inside, "path": path},
        ],
        "utilization": {"LUT": {"used": 3, "available": 9}, "PLL": {"used": 0, "available": 2}},
    }
    found = read_report(report, FlowNames(TINY, module(), "dut"))
    assert found == {
        "fmax_mhz": 205.5,
        "path": ["solve.total", "solve.mantissa"],
        "limit": "solve.mantissa",
        "limit_op": "Normalise",
        "utilisation": {"LUT": {"used": 3, "available": 9}},
    }
    with pytest.raises(ValueError, match="nextpnr must report a clock"):
        read_report(report | {"fmax": {}}, FlowNames(None, module(), "dut"))


def test_refusals_of_nextpnr():
    tool = tools.Tool("nextpnr-x 1.0", ("x",))
    said = "Info: \t ICESTORM_LC:  6000/  5280  113%\nInfo: \t ICESTORM_DSP: 9/ 8 112%\nERROR: no"
    error = _refusal(tool, said)
    assert isinstance(error, TooLargeError)
    assert (error.what, error.need, error.available) == ("ICESTORM_LC", 6000, 5280)
    error = _refusal(tool, "Info: LC: 5/ 10 50%\nERROR: cell 'dut.engine.x' is strange\n1 error")
    assert str(error) == (
        "nextpnr-x 1.0 must place and route the design, got: cell 'engine.x' is strange"
    )


def test_interrupted_runs_keep_what_is_done(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    asked = []

    def build(tool, folder, *rest):
        (folder / "netlist.json").write_text("{}", encoding="utf-8")
        return module()

    def place(tool, folder, device, target, options, seed, names, packer):
        assert (folder / "netlist.json").exists()
        asked.append(seed)
        if seed == 3 and asked.count(3) == 1:
            raise KeyboardInterrupt
        return {"fmax_mhz": 100.0 + seed, "bits": None}

    monkeypatch.setattr(runs, "build_netlist", build)
    monkeypatch.setattr(runs, "place", place)
    tool = tools.Tool("t 1", ("t",))

    def go():
        some = runs.Runs("v", ("s",), None, "ecp5", None, (), tool, tool, None, True)
        return some.of([1, 2, 3], 2, lambda n: None)

    with pytest.raises(KeyboardInterrupt):
        go()
    assert [run["fmax_mhz"] for run in go()] == [101.0, 102.0, 103.0]
    assert sorted(asked) == [1, 2, 3, 3]
    assert [run["seed"] for run in go()] == [1, 2, 3]
    assert len(asked) == 4
