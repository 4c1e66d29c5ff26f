"""The report: opened in headless Chromium, light and dark, on a desk and on a phone."""

import html
import json
import re
import shutil
import subprocess
import zlib
from types import SimpleNamespace

import numpy as np
import pytest
from test_tune import layers_of
from test_tune_space import space_of

from hwnorm.design import parse
from hwnorm.tune import synth
from hwnorm.tune.html import page_data
from hwnorm.tune.output import write_tuning
from hwnorm.tune.rows import Rows
from hwnorm.tune.synth import cells_text, measured_cells
from hwnorm.tune.tuning import run
from hwnorm.tune.views import View, fronts_by_method, limit_lines, smallest_tables

#: Runs in the page after it is ready; what it returns is found in the printed document.
PROBE = """
<script>
addEventListener("load", () => {
  const found = { ready: document.body.dataset.ready, errors: window.failed || [] };
  const by = id => document.getElementById(id);
  const column = n => [...by("front").tBodies[0].rows].map(row => row.cells[n].textContent);
  found.theme = document.documentElement.dataset.theme;
  found.paper = getComputedStyle(document.body).backgroundColor;
  found.overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  found.width = document.documentElement.clientWidth;
  found.plots = [...document.querySelectorAll(".plot")].map(
    plot => [plot.id, plot.querySelectorAll("svg").length, plot.clientWidth]);
  found.recommended = by("toml").textContent;
  found.before = column(1);
  const head = by("front").tHead.rows[0].cells[1];
  head.click(); found.up = column(1);
  head.click(); found.down = column(1);
  found.sorted = head.getAttribute("aria-sort");
  by("front").tBodies[0].rows[0].click();
  found.copied = by("toml").textContent;
  const point = D.points.findIndex(p => p.method === "direct");
  by("rom").emit("plotly_click", { points: [{ customdata: point }] });
  found.clicked = by("toml").textContent;
  found.wanted = D.points[point].toml;
  found.said = by("said").className;
  by("theme").click();
  found.other = document.documentElement.dataset.theme;
  found.other_paper = getComputedStyle(document.body).backgroundColor;
  found.ink = by("rom").layout.font.color;
  parent.postMessage(JSON.stringify(found), "*");
});
</script>
"""

#: The page in a frame as wide as a phone or a desk: no window of Chromium is as narrow.
FRAME = """
<!doctype html><body><iframe src="probed.html" style="width: WIDTHpx; height: 900px; border: 0">
</iframe><script>
addEventListener("message", event => {
  const box = document.createElement("script");
  box.type = "application/json"; box.id = "found"; box.textContent = event.data;
  document.body.append(box);
});
</script>
"""

CATCH = (
    '<script>window.failed = []; addEventListener("error", e => failed.push(e.message));</script>'
)


@pytest.fixture(scope="module")
def tuned():
    space = space_of(method=["direct", "linear", "quadratic", "log"],
                     segments={"from": 2, "to": 32}, guard_bits=[1, 2])  # fmt: skip
    return run(space, Rows.of(layers_of(), 0.25))


@pytest.fixture(scope="module")
def folder(tuned, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    write_tuning(tuned, folder)
    text = (folder / "report.html").read_text(encoding="utf-8")
    text = text.replace("<head>", "<head>" + CATCH).replace("</body>", PROBE + "</body>")
    (folder / "probed.html").write_text(text, encoding="utf-8")
    return folder


def chromium(folder, *options):
    """Run Chromium without a network on the page; what it prints."""
    program = shutil.which("chromium")
    assert program, "the report is tested in Chromium: python3 tasks.py test installs it"
    done = subprocess.run(
        [
            program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            "--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=5000",
            f"--user-data-dir={folder / 'profile'}", *options,
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return done.stdout


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1200, 390])
def test_in_chromium(folder, tuned, dark, width):
    frame = folder / f"frame-{width}.html"
    frame.write_text(FRAME.replace("WIDTH", str(width)), encoding="utf-8")
    text = chromium(
        folder, "--dump-dom", "--window-size=1300,1000",
        f"--blink-settings=preferredColorScheme={0 if dark else 1}", frame.as_uri(),
    )  # fmt: skip
    found = json.loads(html.unescape(re.search(r'id="found">(.*?)</script>', text, re.S)[1]))
    assert (found["ready"], found["errors"]) == ("yes", [])
    # Nothing is wider than the window: on a phone, only tables scroll sideways.
    assert found["overflow"] <= 0
    assert found["width"] == width
    assert [name for name, _, _ in found["plots"]] == [
        "rom",
        "lut",
        "layers",
        "places",
        "histogram",
    ]
    for name, drawn, wide in found["plots"]:
        assert drawn > 0, name
        assert 0 < wide <= width
    papers = {"dark": "rgb(21, 24, 28)", "light": "rgb(253, 252, 250)"}
    first, second = ("dark", "light") if dark else ("light", "dark")
    assert (found["theme"], found["other"]) == (first, second)
    assert (found["paper"], found["other_paper"]) == (papers[first], papers[second])
    assert found["ink"] == {"dark": "#e6e3dd", "light": "#23262b"}[second]
    assert parse(found["recommended"]) == tuned.design
    bits = [one.value("rom_bits") for one in tuned.front]
    assert [int(text) for text in found["up"]] == bits == [int(text) for text in found["before"]]
    assert [int(text) for text in found["down"]] == bits[::-1]
    assert found["sorted"] == "descending"
    assert parse(found["copied"]) == tuned.design_of(tuned.front[-1])
    assert found["clicked"] == found["wanted"] != found["copied"]
    assert found["said"] == "on"


def pixels(path):
    """The rows of an 8-bit RGB or RGBA picture, by hand."""
    data, place, packed = path.read_bytes(), 8, b""
    while place < len(data):
        size, kind = int.from_bytes(data[place : place + 4], "big"), data[place + 4 : place + 8]
        body = data[place + 8 : place + 8 + size]
        if kind == b"IHDR":
            width, height = (int.from_bytes(body[n : n + 4], "big") for n in (0, 4))
            channels = {2: 3, 6: 4}[body[9]]
        packed += body if kind == b"IDAT" else b""
        place += 12 + size
    raw = np.frombuffer(zlib.decompress(packed), dtype=np.uint8)
    return raw.reshape(height, width * channels + 1)


def test_screenshot(folder):
    chromium(folder, f"--screenshot={folder / 'shot.png'}", "--window-size=1200,1600",
             (folder / "report.html").as_uri())  # fmt: skip
    rows = pixels(folder / "shot.png")
    assert len(rows) == 1600
    # No part of the page is empty.
    for part in np.array_split(rows, 8):
        assert len(np.unique(part, axis=0)) > 10


def test_no_network_is_asked_for(folder):
    text = (folder / "report.html").read_text(encoding="utf-8")
    own = text.split("<script>", 1)[0] + text.rsplit("<script id=", 1)[1]
    assert not re.search(r"https?:|//[a-z]|@import|url\(|src=|<link", own)
    assert not re.search(r"/(?:root|home|work|tmp)/", own)


def test_what_the_page_shows(tuned):
    data = page_data(tuned, View.of(tuned))
    assert len(data["points"]) == len(tuned.outcomes)
    assert [data["points"][n]["rom_bits"] for n in data["front"]] == [
        one.value("rom_bits") for one in tuned.front
    ]
    for shown in data["points"]:
        assert parse(shown["toml"]).rsqrt.method == shown["method"]
        assert "ROM bits" in shown["hover"]
    assert sum(data["histogram"]["mine"]) == tuned.rows.chosen * 64
    assert max(data["layers"]["max_ulp"]) == tuned.recommended.value("max_ulp")
    assert np.max(data["places"]["z"]) == pytest.approx(max(data["layers"]["max_ulp"]), abs=1e-4)
    assert sum(row["best"] for row in data["table"]["rows"]) == 1


def test_fronts_and_limits_of_methods(tuned):
    found = fronts_by_method(tuned, "rom_bits")
    assert set(found) == {"direct", "linear", "quadratic", "log"}
    for points in found.values():
        errors = [one.value("max_ulp") for one in points]
        assert errors == sorted(errors, reverse=True)
        costs = [one.value("rom_bits") for one in points]
        assert costs == sorted(set(costs))
    lines = limit_lines(tuned)
    assert set(lines) == {"direct", "linear", "quadratic", "log mitchell"}
    for line in lines.values():
        values = [value for _, value in line]
        assert values == sorted(values, reverse=True)
        assert values[-1] > 0.5


def test_limit_lines_are_of_one_format_only(tuned):
    # The largest error of a table cannot pass its limit line by more than the roundings.
    for one in tuned.outcomes:
        name = "log mitchell" if one.point["method"] == "log" else one.point["method"]
        ends = dict(limit_lines(tuned)[name])
        if one.value("rom_bits") in ends:
            assert one.value("max_ulp") < ends[one.value("rom_bits")] + 0.6


def test_smallest_tables(tuned):
    for line in smallest_tables(tuned):
        good = [
            one.point["segments"] for one in tuned.outcomes
            if one.point["method"] == line["method"] and one.value("max_ulp") < line["below_ulp"]
        ]  # fmt: skip
        assert line["segments"] == min(good, default=None)


def test_pictures_are_written_twice(folder):
    names = {path.stem for path in (folder / "plots").iterdir()}
    assert names == {
        "error-against-rom", "error-against-lut", "error-per-layer", "error-histogram",
        "error-places",
    }  # fmt: skip
    for path in (folder / "plots").iterdir():
        start = path.read_bytes()[:8]
        assert (
            start == b"\x89PNG\r\n\x1a\n" if path.suffix == ".png" else start.startswith(b"<?xml")
        )


def test_synthesised_cells_are_shown(tuned, monkeypatch):
    asked = []

    def synthesise(design, target):
        asked.append((design, target))
        return SimpleNamespace(cells={"lut": 100 + len(asked), "dsp": 5, "ff": 7})

    monkeypatch.setattr(synth, "synthesise", synthesise)
    cells = measured_cells(tuned, "ecp5")
    assert asked == [(tuned.design_of(one), "ecp5") for one in tuned.front]
    table = page_data(tuned, View.of(tuned), cells)["table"]
    place = table["heads"].index("lut, ecp5")
    assert [row["cells"][place] for row in table["rows"]][:2] == [101, 102]
    lines = cells_text(cells).splitlines()
    assert lines[0] == "synthesised   for ecp5, estimated in brackets"
    estimate = tuned.front[0].value("lut")
    assert lines[1].startswith(f"    1  lut 101 ({estimate}), dsp 5 (")
    guessed = tuned.front[0].cost.get("ff")
    assert lines[1].endswith(f"ff 7 ({'-' if guessed is None else guessed})")
