"""Registers move into ECP5's blocks where they can, and nowhere else."""

import copy

from hwnorm.netlist import pack_registers


def register(d, q, **settings):
    return {
        "type": "TRELLIS_FF",
        "parameters": {"CEMUX": "1 ", "CLKMUX": "CLK"} | settings,
        "port_directions": {"CLK": "input", "DI": "input", "LSR": "input", "Q": "output"},
        "connections": {"CLK": [2], "DI": [d], "LSR": ["0"], "Q": [q]},
    }


def netlist():
    """A product of two registered bits, registered; and a memory's bit likewise."""
    factors = {f"{side}{n}": ["0"] for side in "AB" for n in range(18)}
    multiplier = {
        "type": "MULT18X18D",
        "parameters": {},
        "port_directions": dict.fromkeys(factors, "input") | {"P0": "output", "P1": "output"},
        "connections": factors | {"A0": [20], "B0": [21], "P0": [30], "P1": [31]},
    }
    memory = {
        "type": "DP16KD",
        "parameters": {"REGMODE_B": "NOREG"},
        "port_directions": {"DOB0": "output", "CLKB": "input"},
        "connections": {"DOB0": [40], "CLKB": [2]},
    }
    ports = {"clk": [2], "a": [10], "b": [11], "y": [50], "z": [51]}
    return {
        "modules": {
            "top": {
                "attributes": {"top": "00000000000000000000000000000001"},
                "ports": {name: {"bits": bits} for name, bits in ports.items()},
                "cells": {
                    "mul": multiplier, "ram": memory, "fa": register(10, 20),
                    "fb": register(11, 21), "fy": register(30, 50), "fz": register(40, 51),
                },
            }
        }
    }  # fmt: skip


def cells(data):
    return data["modules"]["top"]["cells"]


def test_all_registers_are_taken_in():
    data = netlist()
    assert pack_registers(data) == {"inputs": 2, "outputs": 1, "memories": 1, "removed": 4}
    assert set(cells(data)) == {"mul", "ram"}
    mul, ram = cells(data)["mul"], cells(data)["ram"]
    assert (mul["connections"]["A0"], mul["connections"]["B0"]) == ([10], [11])
    assert mul["connections"]["P0"] == [50]
    assert mul["connections"]["CLK0"] == [2]
    for which in ("INPUTA", "INPUTB", "OUTPUT"):
        assert mul["parameters"][f"REG_{which}_CLK"] == "CLK0"
    assert ram["connections"]["DOB0"] == [51]
    assert ram["parameters"]["REGMODE_B"] == "OUTREG"


def test_a_product_that_is_read_elsewhere_stays():
    data = netlist()
    data["modules"]["top"]["ports"]["more"] = {"bits": [30]}
    before = copy.deepcopy(cells(data)["mul"])
    assert pack_registers(data)["outputs"] == 0
    assert cells(data)["mul"] == before


def test_a_register_with_other_readers_stays_as_well():
    data = netlist()
    data["modules"]["top"]["ports"]["more"] = {"bits": [20]}
    assert pack_registers(data) == {"inputs": 2, "outputs": 1, "memories": 1, "removed": 3}
    assert "fa" in cells(data)


def test_registers_with_enable_or_reset_stay():
    for change in ({"parameters": {"CEMUX": "CE"}}, {"connections": {"LSR": [60]}}):
        data = netlist()
        for name in ("fy", "fz"):
            for key, value in change.items():
                cells(data)[name][key] |= value
        assert pack_registers(data)["removed"] == 0


def test_a_factor_that_is_partly_registered_stays_outside():
    data = netlist()
    cells(data)["mul"]["connections"]["A1"] = [12]
    assert pack_registers(data)["inputs"] == 1
    assert cells(data)["mul"]["connections"]["A0"] == [20]
