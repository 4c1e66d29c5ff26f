"""README and docs stay true: commands run and print what is shown, code runs, links lead on."""

import re
import shlex
from pathlib import Path

import pytest

from hwnorm.cli import commands, main
from hwnorm.fixed import OVERFLOWS, ROUNDINGS
from hwnorm.functions import FUNCTIONS
from hwnorm.ops import OPS

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
ALL = pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))


def blocks(page, kind):
    """The fenced blocks of a kind."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.S | re.M)


def steps(block):
    """Commands of a console block, with the output shown under each."""
    shown = re.split(r"^\$ ", block, flags=re.M)[1:]
    return [(step.split("\n", 1)[0], step.split("\n", 1)[1]) for step in shown]


def matches(shown, printed):
    """Whether output is as shown; a line of dots stands for any lines, times are free."""
    shown, printed = (re.sub(r"\b\d+\.\d+ s\b", "T s", text.rstrip()) for text in (shown, printed))
    pattern = "\n".join(
        r"(?:.*\n)*?.*" if line.strip() == "..." else re.escape(line.rstrip()) + " *"
        for line in shown.split("\n")
    )
    return re.fullmatch(pattern, printed) is not None


@ALL
def test_console_blocks(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for block in blocks(page, "console"):
        for command, shown in steps(block):
            words = shlex.split(command, comments=True)
            if words[0] != "hwnorm":
                assert not shown.strip(), f"only hwnorm's output can be checked: {command}"
                continue
            code = main(words[1:])
            captured = capsys.readouterr()
            assert code == 0, (command, captured.err)
            if shown.strip():
                assert matches(shown, captured.out), f"{command} prints\n{captured.out}"


@ALL
def test_python_blocks(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), {"__name__": "docs"})


@ALL
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        assert target.startswith("https://") or (page.parent / target).exists(), target


@ALL
def test_no_paths_of_a_machine(page):
    assert not re.search(r"(?:^|[\s(`])/(?:root|home|work|tmp)/", page.read_text(encoding="utf-8"))


def test_every_command_is_described():
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    for name, command in commands.commands.items():
        assert f"hwnorm {name}" in text
        for parameter in command.params:
            if parameter.param_type_name == "option":
                assert parameter.opts[-1] in text, (name, parameter.opts)


def test_every_op_is_described():
    text = (ROOT / "docs" / "ops.md").read_text(encoding="utf-8")
    for name in (*(op.__name__ for op in OPS), *ROUNDINGS, *OVERFLOWS):
        assert name in text, name


def test_every_function_and_design_key_is_described():
    budget = (ROOT / "docs" / "error-budget.md").read_text(encoding="utf-8")
    for name in FUNCTIONS:
        assert name in budget, name
    keys = (ROOT / "docs" / "design-file.md").read_text(encoding="utf-8")
    from hwnorm import design

    for table in (design._TOP, design._FORMAT, design._RSQRT, design._LOG):
        for key in table:
            assert f"`{key}`" in keys, key
