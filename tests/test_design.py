"""Design files: what they may say, what they are told when they may not."""

import re

import numpy as np
import pytest

from hwnorm import Fixed, LayerNorm, RMSNorm, Rsqrt, load
from hwnorm.design import CATALOGUE, dumps, parse, template
from hwnorm.norms import NORMS

GOOD = 'norm = "rmsnorm"\ndim = 64\nlanes = 4\n'


def test_example_of_the_contract():
    design = parse(
        """
        norm = "rmsnorm"
        dim = 576
        lanes = 8
        eps = 1e-5
        [format]
        x = "s24/8"
        gamma = "s16/12"
        y = "s16/10"
        [rsqrt]
        method = "linear"
        segments = 512
        guard_bits = 2
        """
    )
    assert design == RMSNorm(
        dim=576, lanes=8, eps=1e-5, x="s24/8", gamma="s16/12", y="s16/10",
        rsqrt=Rsqrt("linear", 512, 2),
    )  # fmt: skip
    assert design.gamma == Fixed.of(True, 16, 12)


@pytest.mark.parametrize("name", CATALOGUE)
def test_presets_survive_a_round_trip(name):
    design = CATALOGUE[name]
    assert parse(dumps(design)) == design
    assert load(name) is design


def test_round_trip_keeps_every_field():
    design = LayerNorm(
        dim=6, lanes=2, eps=2e-6, x="s9/3", gamma="s8/6", beta="s7/3", y="s10/5",
        gamma_offset=1.0, store="rom", gamma_init=(1, -2, 3, 4, 5, 6), beta_init=(0,) * 6,
        rounding="nearest_up", overflow="wrap", rsqrt=Rsqrt("quadratic", 8, 3), period_ns=5.5,
    )  # fmt: skip
    assert parse(dumps(design)) == design


@pytest.mark.parametrize("word", ["none", "fxp-s16/12"])
def test_gamma_spellings(word):
    design = parse(GOOD + f'[format]\ngamma = "{word}"\n')
    assert design.gamma == (None if word == "none" else Fixed.of(True, 16, 12))


@pytest.mark.parametrize("kind", NORMS)
def test_templates_are_designs(kind):
    design = parse(template(kind))
    assert design.kind == kind
    assert design.bound_ulp < 1


def test_contents_from_a_file_and_a_list(tmp_path):
    np.save(tmp_path / "g.npy", np.linspace(-1, 1, 64))
    text = GOOD + 'gamma_init = "g.npy"\n[format]\ngamma = "s16/14"\n'
    (tmp_path / "d.toml").write_text(text)
    values = load(tmp_path / "d.toml").gamma_init
    assert values == tuple(np.rint(np.linspace(-1, 1, 64) * 2**14).astype(int))
    listed = parse(GOOD + f"gamma_init = {list(values)}\n" + '[format]\ngamma = "s16/14"\n')
    assert listed.gamma_init == values


#: Text of a design file, and the whole sentence it is answered with.
BAD = {
    'norm = "rmsnrm"\ndim = 64': (
        "norm must be one of rmsnorm, layernorm, got 'rmsnrm'; did you mean rmsnorm?"
    ),
    "dim = 64": "norm must be one of rmsnorm, layernorm, got None",
    'norm = "rmsnorm"': "dim must be given, got none",
    GOOD + "epz = 1": "unknown key epz; did you mean eps?",
    GOOD + "[format]\ngama = 's8/4'": "unknown key format.gama; did you mean gamma?",
    GOOD + "[rsqrt]\nsegmets = 4": "unknown key rsqrt.segmets; did you mean segments?",
    GOOD + "[rsqt]\nsegments = 4": "unknown key rsqt; did you mean rsqrt?",
    GOOD + "format = 3": "format must be a section [format], got 3",
    'norm = "rmsnorm"\ndim = 6.5': "dim must be an integer, got 6.5",
    'norm = "rmsnorm"\ndim = true': "dim must be an integer, got True",
    'norm = "rmsnorm"\ndim = 64\neps = "small"': "eps must be a number, got 'small'",
    'norm = "rmsnorm"\ndim = 576\nlanes = 7': ("lanes must divide dim, got lanes=7 and dim=576"),
    'norm = "rmsnorm"\ndim = 1': "dim must lie in 2..16384, got 1",
    GOOD + "eps = 0.0": "eps must be positive, or an all-zero row divides by zero, got 0.0",
    GOOD + "eps = -1e-5": "eps must be positive, or an all-zero row divides by zero, got -1e-05",
    GOOD + "eps = nan": "eps must be a finite number, got nan",
    GOOD + "[format]\nx = '16.8'": ("format.x: a format is spelled like s16/8 or u8/0, got '16.8'"),
    GOOD + "[format]\nx = 'u8/4'": "format.x must be signed, got u8/4",
    GOOD + "[format]\ny = 's64/4'": "format.y must have 2 to 32 bits, got s64/4",
    GOOD + "[format]\nbeta = 's8/4'": "format.beta is not a parameter of rmsnorm",
    GOOD + "[format]\nrounding = 'up'": (
        "rounding of rmsnorm must be one of nearest_even, nearest_up, floor, got 'up'"
    ),
    GOOD + "[rsqrt]\nsegments = 100": (
        "rsqrt.segments must be a power of two in 2..65536, got 100"
    ),
    GOOD + "[rsqrt]\nmethod = 'cubic'": (
        "rsqrt.method must be one of direct, linear, quadratic, log, exact, got 'cubic'"
    ),
    GOOD + "[rsqrt]\nguard_bits = 40": "rsqrt.guard_bits must be an integer in 0..12, got 40",
    'norm = "layernorm"\ndim = 8\n[rsqrt]\nmethod = "log"': (
        "rsqrt.method of layernorm must be one of direct, linear, quadratic, exact, got 'log'"
    ),
    GOOD + "gamma_offset = 1.0": "gamma_offset needs format.gamma, got 1.0",
    GOOD + "gamma_offset = 0.3\n[format]\ngamma = 's8/4'": (
        "gamma_offset must be a multiple of the lsb of s8/4, got 0.3"
    ),
    GOOD + "gamma_init = [1, 2]\n[format]\ngamma = 's8/4'": (
        "gamma_init must have dim=64 elements, got 2"
    ),
    GOOD + "gamma_init = [1, 2]": "gamma_init needs format.gamma, got none",
    GOOD + "gamma_init = 'nowhere.npy'\n[format]\ngamma = 's8/4'": (
        "gamma_init must be a .npy file of numbers, got nowhere.npy"
    ),
    GOOD + "store = 'disk'": "store of rmsnorm must be one of ram, rom, stream, got 'disk'",
    GOOD + "period_ns = 0": "period_ns must be at least 0.1, got 0",
    GOOD + "[rsqrt]\nsegments = 131072": (
        "rsqrt.segments must be a power of two in 2..65536, got 131072"
    ),
    'norm = "rmsnorm"\ndim = 64\n[format]\nx = "s4/2"\ny = "s8/4"\n[rsqrt]\nsegments = 8192': (
        "segments must be at most 4096, since the argument of rsqrt has 12 bits, got 8192"
    ),
}


@pytest.mark.parametrize("text", BAD)
def test_bad_designs_get_one_sentence(text):
    with pytest.raises(ValueError, match=f"^{re.escape(BAD[text])}$"):
        parse(text)


def test_bad_files_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"^design file .*none\.toml must be readable, got: No "):
        load(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match=r"must be readable, got: not a text file$"):
        load(tmp_path / "bad.toml")
    (tmp_path / "half.toml").write_text("norm = ")
    with pytest.raises(ValueError, match=r"^.*half\.toml: must be TOML, got: "):
        load(tmp_path / "half.toml")
    with pytest.raises(ValueError, match=r"^design must be a file or a preset, got 'smolm2'; did"):
        load("smolm2")
