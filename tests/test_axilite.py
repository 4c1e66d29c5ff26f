"""The register block: alone in Amaranth's simulator, and around a design in others."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from amaranth.sim import Simulator

import hwnorm
from hwnorm import LayerNorm, RMSNorm, model, simulate
from hwnorm.design import dumps, parse
from hwnorm.export.bundle import bundle
from hwnorm.files import write_tree
from hwnorm.hdl.axilite import ID, OKAY, SLVERR, AxiLiteControl, registers, version_word
from hwnorm.rows import bench_rows

DESIGN = LayerNorm(dim=6, lanes=3, x="s6/2", gamma="s7/5", beta="s5/2", y="s6/3", control="axilite")
AT = {register.name: register.offset for register in registers(DESIGN)}


class Host:
    """A master on the bus, and the engine's side of the block."""

    def __init__(self, ctx, block):
        self.ctx, self.block, self.bus = ctx, block, block.bus

    def set(self, **values):
        for name, value in values.items():
            self.ctx.set(self.bus[name], value)

    async def until(self, name):
        """Wait for a signal of the slave; it is high in the cycle that follows."""
        for _ in range(20):
            if self.ctx.get(self.bus[name]):
                return
            await self.ctx.tick()
        raise TimeoutError(f"{name} stays low")

    async def write(self, address, value, strobes=15, wait=0):
        """Write; the address comes `wait` cycles before the data, or behind it if negative."""
        self.set(awaddr=address, wdata=value & 0xFFFFFFFF, wstrb=strobes)
        self.set(awvalid=wait >= 0, wvalid=wait <= 0)
        for _ in range(abs(wait)):
            assert not self.ctx.get(self.bus["awready"])
            assert not self.ctx.get(self.bus["wready"])
            await self.ctx.tick()
        self.set(awvalid=1, wvalid=1)
        await self.until("awready")
        assert self.ctx.get(self.bus["wready"])
        await self.ctx.tick()
        self.set(awvalid=0, wvalid=0)
        return await self._answer("b", "bresp")

    async def read(self, address):
        """Read; returns the word and the response."""
        self.set(araddr=address, arvalid=1)
        await self.until("arready")
        await self.ctx.tick()
        self.set(arvalid=0)
        await self.until("rvalid")
        word = self.ctx.get(self.bus["rdata"])
        return word, await self._answer("r", "rresp")

    async def _answer(self, channel, response):
        await self.until(f"{channel}valid")
        code = self.ctx.get(self.bus[response])
        # It is held until it is taken.
        for _ in range(2):
            await self.ctx.tick()
            assert self.ctx.get(self.bus[f"{channel}valid"])
            assert self.ctx.get(self.bus[response]) == code
        self.set(**{f"{channel}ready": 1})
        await self.ctx.tick()
        self.set(**{f"{channel}ready": 0})
        assert not self.ctx.get(self.bus[f"{channel}valid"])
        return code


def run(check, design=DESIGN):
    """Run a coroutine function of a `Host` against the block."""
    block = AxiLiteControl(design)
    simulator = Simulator(block)
    simulator.add_clock(1e-8)

    async def bench(ctx):
        ctx.set(block.running, 1)
        for load in block.loads.values():
            ctx.set(load["ready"], 1)
        await check(Host(ctx, block))

    simulator.add_testbench(bench)
    simulator.run()


def test_facts():
    async def check(host):
        expected = {
            "ID": ID, "VERSION": version_word(), "DIM": 6, "LANES": 3, "LATENCY": DESIGN.latency,
            "FLAGS": 0, "GAMMA_INDEX": 0, "BETA_INDEX": 0,
        }  # fmt: skip
        for name, value in expected.items():
            assert await host.read(AT[name]) == (value, OKAY), name

    run(check)
    major, minor, patch = hwnorm.__version__.split(".")
    assert version_word().to_bytes(4) == bytes([0, int(major), int(minor), int(patch)])


def test_what_is_no_register_answers_with_an_error():
    readable = {r.offset for r in registers(DESIGN) if r.read}
    writable = {r.offset for r in registers(DESIGN) if r.write}
    assert len(registers(DESIGN)) == 10

    async def check(host):
        for offset in range(0, 64, 4):
            assert (await host.read(offset))[1] == (OKAY if offset in readable else SLVERR)
            good = OKAY if offset in writable else SLVERR
            assert await host.write(offset, 0) == good, offset
            assert await host.write(offset, 0, strobes=7) == SLVERR
        assert await host.read(AT["GAMMA_INDEX"]) == (1, OKAY)

    run(check)


@pytest.mark.parametrize("wait", [-3, 0, 3])
def test_address_and_data_come_in_any_order(wait):
    async def check(host):
        for n in range(4):
            assert await host.write(AT["GAMMA_DATA"], n, wait=wait) == OKAY
        assert await host.read(AT["GAMMA_INDEX"]) == (4, OKAY)

    run(check)


def test_flags_are_cleared_one_by_one():
    async def check(host):
        ctx, block = host.ctx, host.block
        ctx.set(block.framing_error, 1)
        ctx.set(block.saturated, 1)
        # Seen at once, as without registers; the engine is told to clear its own.
        assert ctx.get(block.flags) == 3
        assert ctx.get(block.engine_clear) == 1
        await ctx.tick()
        ctx.set(block.framing_error, 0)
        ctx.set(block.saturated, 0)
        assert ctx.get(block.engine_clear) == 0
        assert await host.read(AT["FLAGS"]) == (3, OKAY)
        assert await host.write(AT["FLAGS"], 0) == OKAY
        assert ctx.get(block.flags) == 3
        assert await host.write(AT["FLAGS"], 2, strobes=1) == SLVERR
        assert ctx.get(block.flags) == 3
        assert await host.write(AT["FLAGS"], 2) == OKAY
        assert ctx.get(block.flags) == 1
        assert await host.write(AT["FLAGS"], 0xFFFFFFFD) == OKAY
        assert ctx.get(block.flags) == 0
        # The pin clears both.
        ctx.set(block.saturated, 1)
        await ctx.tick()
        ctx.set(block.saturated, 0)
        ctx.set(block.clear, 1)
        assert ctx.get(block.flags) == 2
        await ctx.tick()
        assert ctx.get(block.flags) == 0
        # What the engine shows is cleared with it; what it shows a cycle later is new.
        ctx.set(block.saturated, 1)
        await ctx.tick()
        ctx.set(block.clear, 0)
        assert ctx.get(block.flags) == 2
        await ctx.tick()
        ctx.set(block.saturated, 0)
        assert ctx.get(block.flags) == 2
        ctx.set(block.clear, 1)
        ctx.set(block.framing_error, 1)
        await ctx.tick()
        ctx.set(block.framing_error, 0)
        assert ctx.get(block.flags) == 0

    run(check)


def test_one_access_at_a_time():
    async def check(host):
        ctx, bus = host.ctx, host.bus
        host.set(awaddr=AT["GAMMA_DATA"], wstrb=15, awvalid=1, wvalid=1)
        host.set(araddr=AT["DIM"], arvalid=1)
        await ctx.tick()
        host.set(araddr=AT["LANES"])
        for _ in range(3):
            # Both have been taken, and wait for their answers to be.
            assert ctx.get(bus["bvalid"])
            assert ctx.get(bus["rvalid"])
            for name in ("awready", "wready", "arready"):
                assert not ctx.get(bus[name]), name
            assert ctx.get(bus["rdata"]) == 6
            await ctx.tick()
        host.set(awvalid=0, wvalid=0, arvalid=0, bready=1, rready=1)
        await ctx.tick()
        host.set(bready=0, rready=0)
        assert await host.read(AT["GAMMA_INDEX"]) == (1, OKAY)

    run(check)


def test_elements_become_beats():
    gamma, beta = [1, -2, 63, -64, 5, 6], [15, -16, 0, 1, 2, -3]

    async def check(host):
        ctx, taken = host.ctx, {"gamma": [], "beta": []}

        def collect(name):
            load = host.block.loads[name]
            if ctx.get(load["valid"]) and ctx.get(load["ready"]):
                words = [ctx.get(word) for word in load["data"]]
                taken[name].append((words, ctx.get(load["last"])))

        tick = ctx.tick

        async def watched():
            for name in taken:
                collect(name)
            await tick()

        class Watched:
            get, set = ctx.get, ctx.set

            def tick(self):
                return watched()

        host.ctx = Watched()
        for a, b in zip(gamma, beta, strict=True):
            await host.write(AT["GAMMA_DATA"], a)
            await host.write(AT["BETA_DATA"], b)
        await watched()
        assert taken["gamma"] == [([1, 126, 63], 0), ([64, 5, 6], 1)]
        assert taken["beta"] == [([15, 16, 0], 0), ([1, 2, 29], 1)]
        # Given up in the middle: the engine sees an end, and the next row is whole.
        taken["gamma"].clear()
        for value in (1, 2, 3, 4):
            await host.write(AT["GAMMA_DATA"], value)
        await host.write(AT["GAMMA_INDEX"], 77)
        assert await host.read(AT["GAMMA_INDEX"]) == (0, OKAY)
        await host.write(AT["GAMMA_INDEX"], 0)  # nothing was begun: nothing is given up
        for value in gamma:
            await host.write(AT["GAMMA_DATA"], value)
        await watched()
        assert [last for _, last in taken["gamma"]] == [0, 1, 0, 1]
        assert taken["gamma"][2:] == [([1, 126, 63], 0), ([64, 5, 6], 1)]
        # A beat that is not taken holds the next write back, and is not lost.
        load = host.block.loads["gamma"]
        ctx.set(load["ready"], 0)
        for value in (7, 8, 9):
            await host.write(AT["GAMMA_DATA"], value)
        with pytest.raises(TimeoutError, match="awready stays low"):
            await host.write(AT["GAMMA_DATA"], 10)
        assert [ctx.get(word) for word in load["data"]] == [7, 8, 9]

    run(check)


def test_nothing_is_taken_during_reset():
    async def check(host):
        host.ctx.set(host.block.running, 0)
        host.set(awvalid=1, wvalid=1, arvalid=1)
        for _ in range(3):
            await host.ctx.tick()
            for name in ("awready", "wready", "arready", "bvalid", "rvalid"):
                assert not host.ctx.get(host.bus[name]), name

    run(check)


def files_of(design, seed=0):
    """A bundle with parameters of both signs."""
    rng = np.random.default_rng(seed)
    given = {
        name: rng.integers(fmt.lo, fmt.hi + 1, design.dim)
        for name, fmt in design.parameters.items()
        if design.store == "ram"
    }
    return bundle(design, "dut", bench_rows(design, 6), **given)


def bench(folder):
    """Run a bundle's test bench in Icarus; returns exit code and output."""
    build = ["iverilog", "-g2005", "-Wall", "-o", "tb.vvp", "dut_tb.v", "../rtl/dut.v"]
    built = subprocess.run(build, cwd=folder / "tb", capture_output=True, text=True, check=True)
    assert built.stdout + built.stderr == ""
    done = subprocess.run(
        ["vvp", "-N", "tb.vvp"], cwd=folder / "tb", capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    "design",
    [
        replace(DESIGN, dim=48),
        RMSNorm(dim=8, lanes=1, x="s6/2", gamma="s12/9", y="s6/3", control="axilite"),
        RMSNorm(dim=8, lanes=8, x="s6/2", gamma="s8/6", y="s6/3", store="rom", control="axilite"),
        RMSNorm(dim=8, lanes=2, x="s6/2", y="s6/3", control="axilite"),
    ],
    ids=["layernorm", "one lane", "rom", "no gamma"],
)
def test_designs_load_through_registers(design, tmp_path):
    write_tree(tmp_path, files_of(design))
    code, text = bench(tmp_path)
    assert code == 0, text
    assert "PASS" in text


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("tb/dut_tb.v", r"axil_check\(6'h08, 48\)", "axil_check(6'h08, 49)", "register 08: got"),
        ("tb/gamma.mem", r"^.", "7", "data differs"),
        ("tb/dut_tb.v", r"axil_check\(6'h10, 0\)", "axil_check(6'h10, 1)", "register 10: got"),
    ],
)
def test_the_bench_fails_when_it_should(file, old, new, said, tmp_path):
    files = files_of(replace(DESIGN, dim=48))
    damaged = re.sub(old, new, files[file], count=1, flags=re.M)
    assert damaged != files[file]
    write_tree(tmp_path, files | {file: damaged})
    code, text = bench(tmp_path)
    assert code == 1, text
    assert said in text, text


def test_cocotb_with_an_axi_lite_master(tmp_path):
    write_tree(tmp_path, files_of(replace(DESIGN, dim=48)))
    done = subprocess.run(
        [sys.executable, "run_dut.py"], cwd=tmp_path / "tb", capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "TESTS=2 PASS=2 FAIL=0" in done.stdout + done.stderr


def test_the_header_compiles(tmp_path):
    (tmp_path / "regs.h").write_text(files_of(DESIGN)["software/dut_regs.h"])
    lines = "".join(f'_Static_assert(DUT_{name} == {at}, "");\n' for name, at in AT.items())
    (tmp_path / "t.c").write_text(f'#include "regs.h"\n#include "regs.h"\n{lines}')
    subprocess.run(["gcc", "-Wall", "-Werror", "-c", "t.c"], cwd=tmp_path, check=True)


def test_the_page_has_the_map():
    page = (Path(__file__).parent.parent / "docs" / "registers.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `0x(\w\w)` \| `(\w+)` \| (\w\w) \| (.*?) ?\|$", page, re.M)
    wide = LayerNorm(dim=6, gamma="s7/5", beta="s5/2", control="axilite")
    assert [(f"{r.offset:02x}", r.name, r.access) for r in registers(wide)] == [
        row[:3] for row in rows
    ]
    stated = {name: what for _, name, _, what in rows if "BETA" not in name}
    assert stated == {r.name: r.what for r in registers(wide) if "BETA" not in r.name}


def test_the_design_file_has_the_key():
    assert parse(dumps(DESIGN)) == DESIGN
    assert 'control = "axilite"' in dumps(DESIGN)
    with pytest.raises(ValueError, match=r"^control of layernorm must be one of none, axilite, "):
        replace(DESIGN, control="apb")


@pytest.mark.parametrize("engine", ["pysim", "icarus"])
def test_simulation_is_of_the_engine(engine):
    x = bench_rows(DESIGN, 4)
    gamma = np.arange(6)
    result = simulate(DESIGN, x, gamma, engine=engine)
    assert (result.y == model(DESIGN, x, gamma)).all()
