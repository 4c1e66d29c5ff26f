"""The pytest plugin: fixtures that simulate designs, and options that choose how.

pytest loads it in every run, so it imports what it needs only when a test or an option asks.
"""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

_FAILED = pytest.StashKey[bool]()

#: Of a test that is not parametrised.
_NONE = SimpleNamespace(params={})


def pytest_addoption(parser):
    """Add the options."""
    group = parser.getgroup("hwnorm", "hwnorm: norms in RTL against their models")
    group.addoption(
        "--hwnorm-engine",
        metavar="NAME[,NAME]",
        help="Simulation engines; tests that simulate run once with each (default: pysim, and "
        "for Verilog of one's own verilator or icarus).",
    )
    group.addoption("--hwnorm-vcd", metavar="DIR", help="Keep the waves of failing tests.")
    group.addoption(
        "--hwnorm-seed", metavar="N", default="0", help="What hwnorm_seed gives (default: 0)."
    )


def _engines(config):
    names = config.getoption("--hwnorm-engine")
    return ["pysim"] if names is None else list(dict.fromkeys(names.split(",")))


def pytest_configure(config):
    """Refuse options that cannot be followed."""
    names = _engines(config)
    if names != ["pysim"]:
        from hwnorm.sim import ENGINES

        for name in names:
            if name not in ENGINES:
                raise pytest.UsageError(
                    f"--hwnorm-engine must be one of {', '.join(ENGINES)}, got {name!r}"
                )
            lack = ENGINES[name].missing()
            if lack:
                raise pytest.UsageError(f"--hwnorm-engine {name} is not usable here: {lack}")
    seed = config.getoption("--hwnorm-seed")
    if not re.fullmatch("[0-9]+", seed):
        raise pytest.UsageError(f"--hwnorm-seed must be an integer of at least 0, got {seed!r}")


def pytest_generate_tests(metafunc):
    """Run what uses `hwnorm_engine` once with each engine."""
    marks = metafunc.definition.iter_markers("parametrize")
    # A test that is parametrised over engines of its own keeps them.
    own = any("hwnorm_engine" in _argument_names(mark) for mark in marks)
    chosen = metafunc.config.getoption("--hwnorm-engine") is not None
    if "hwnorm_engine" in metafunc.fixturenames and chosen and not own:
        metafunc.parametrize("hwnorm_engine", _engines(metafunc.config), indirect=True)


def _argument_names(mark):
    """What a mark ``parametrize`` gives values to."""
    names = mark.args[0] if mark.args else mark.kwargs["argnames"]
    return [name.strip() for name in names.split(",")] if isinstance(names, str) else names


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Remember which tests fail."""
    report = yield
    if report.failed:
        item.stash[_FAILED] = True
    return report


@pytest.fixture
def hwnorm_engine(request):
    """The name of a simulation engine: each of --hwnorm-engine in turn."""
    # A fixture that is asked for while a test runs has no parameter: the first engine.
    return getattr(request, "param", _engines(request.config)[0])


@pytest.fixture(scope="session")
def hwnorm_seed(request):
    """The integer of --hwnorm-seed, for rows and stalls."""
    return int(request.config.getoption("--hwnorm-seed"))


@pytest.fixture
def _hwnorm_settings(request, hwnorm_engine, hwnorm_seed):
    """A function that completes the arguments of a simulation."""
    folder = request.config.getoption("--hwnorm-vcd")
    written = []

    # Nobody has chosen: then the simulation may, which Verilog of one's own needs.
    chosen = request.config.getoption("--hwnorm-engine") is not None
    free = not chosen and "hwnorm_engine" not in getattr(request.node, "callspec", _NONE).params

    def complete(given):
        chosen = {} if free and given.get("verilog") else {"engine": hwnorm_engine}
        settings = chosen | {"seed": hwnorm_seed} | given
        if folder and "vcd" not in given and "fst" not in given:
            place = request.config.invocation_params.dir / folder
            place.mkdir(parents=True, exist_ok=True)
            test = re.sub(r"[^\w.]+", "-", request.node.nodeid).strip("-")
            written.append(place / f"{test}-{len(written) + 1}.vcd")
            settings["vcd"] = written[-1]
        return settings

    yield complete
    if not request.node.stash.get(_FAILED, False):
        for path in written:
            path.unlink(missing_ok=True)


@pytest.fixture
def hwnorm_simulate(_hwnorm_settings):
    """A function: hwnorm.simulate of a design, design file or preset, with the options' engine.

    Called with the design, x, gamma and beta; what else `hwnorm.simulate` takes may be given by
    name and goes before the options.
    """

    def run(design, x, gamma=None, beta=None, **settings):
        from hwnorm.design import load
        from hwnorm.sim import simulate

        if isinstance(design, str | Path):
            design = load(design)
        return simulate(design, x, gamma, beta, **_hwnorm_settings(settings))

    return run


@pytest.fixture
def hwnorm_bit_exact(_hwnorm_settings, tmp_path):
    """A function: hwnorm.bitexact.assert_bit_exact with the options' engine, seed and waves.

    Reproducers go to the test's ``tmp_path``.
    """
    calls = []

    def check(design, x, gamma=None, beta=None, **settings):
        from hwnorm.bitexact import assert_bit_exact

        __tracebackhide__ = True
        calls.append(design)
        settings = {"folder": tmp_path / f"hwnorm-{len(calls)}"} | settings
        return assert_bit_exact(design, x, gamma, beta, **_hwnorm_settings(settings))

    return check
