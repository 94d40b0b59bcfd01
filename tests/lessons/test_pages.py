"""Pages and their Markdown: no HTML of a stranger, nothing from outside, figures that fit; lessons as pages."""

import base64
import io
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image

from renderer import cli
from renderer.formats.images import write_png
from renderer.images.algorithm_view import Mark
from renderer.lessons.drawing import DrawnPicture
from renderer.lessons.lesson import LESSONS, read_lesson
from renderer.lessons.measurements import Finding
from renderer.lessons.page import StepResult, lesson_page
from renderer.lessons.programs import ProgramResult
from renderer.pages.figures import draw_plots
from renderer.pages.markdown import Block, blocks, sections, to_html
from renderer.pages.page import picture
from renderer.pages.plot import Plot, format_number, short_number, table_rows
from tests.lessons.test_lesson_files import ASKED

VOID = {"meta", "img", "br", "hr", "path", "use", "rect", "image", "col"}


class Balance(HTMLParser):
    """Checks that elements are closed in order, and collects their names, attributes and text."""

    def __init__(self, text: str):
        super().__init__()
        self.open, self.names, self.attributes, self.words = [], set(), [], []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.names.add(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open and self.open[-1] == tag, (self.open[-5:], tag)
            self.open.pop()

    def handle_data(self, data):
        self.words.append(data)


HOSTILE = """<script>alert(1)</script> <img src=x onerror=alert(1)>

[a](javascript:alert(1)) [b](data:text/html,x) <https://example.org/"onclick="x>
[c](https://example.org "t\\" onclick=x")

| <b> | x |
| --- | --- |
| <script> | & |

`</code><script>` &lt;script&gt;
"""


def test_markdown_of_a_stranger_makes_no_html_of_his_own():
    page = Balance(to_html(HOSTILE, lambda target: target, lambda image: ""))
    assert not page.names & {"script", "img", "b", "iframe"}
    names = {(tag, name) for tag, name, _ in page.attributes}
    assert names <= {("a", "href"), ("a", "title"), ("div", "class"), ("table", "class")}, names
    links = [value for _, name, value in page.attributes if name == "href"]
    assert links and all(link.startswith("https://") for link in links)
    assert "<script>alert(1)</script>" in "".join(page.words)


def test_words_are_cut_into_sections_and_blocks():
    text = "# T\n\nintro\n\n## One *two*\n\n- a\n- b\n\n```\n## no heading\n```\n"
    text += "\n## Three\n\n| x | y |\n|-|-|\n| 1 | `2` |"
    title, intro, found = sections(text)
    assert (title, intro) == ("T", "intro") and [name for name, _ in found] == ["One two", "Three"]
    assert blocks(found[0][1]) == [
        Block("item", "\N{BULLET} a", 1), Block("item", "\N{BULLET} b", 1), Block("code", "## no heading"),
    ]  # fmt: skip
    assert blocks(found[1][1]) == [Block("table", rows=(("x", "y"), ("1", "2")))]
    assert blocks("") == [] and sections("") == ("", "", [])


def test_numbers_are_short_and_right():
    texts = [format_number(v) for v in (0.0, 1234.5, 12.345, 1e9, 1e-5, None)]
    assert texts == ["0", "1,234", "12.35", "1e+09", "1e-05", "\N{EN DASH}"]
    assert [short_number(v) for v in (16, 65536, 1048576, 123456)] == ["16", "64 Ki", "1 Mi", "1.23e+05"]


def test_a_figure_holds_its_numbers_follows_the_page_and_clips_no_words():
    long = "a name of a series that is rather long"
    plot = Plot((1, 2, 4), {long: (1.0, None, 3.0), "b": (2.0, 2.0, 2.0)}, "depth", "frames/s", title="Title <&>")
    bars = Plot(("one", "two"), {"x": (10.0, 1000.0)}, "", "MFLOP/s", "bars", log_y=True, title="Bars")
    svg = draw_plots([plot, bars], 'both "figures"')
    page = Balance(svg)
    assert "Title <&>" in page.words and long in page.words and "1,000" in "".join(page.words)
    assert not re.search(r"#[0-9a-f]{6}", svg), "a color that does not follow the page"
    assert "://" not in svg and len(svg) < 40_000
    box = [float(v) for v in re.search(r'viewBox="([^"]*)"', svg)[1].split()]
    for x, text in re.findall(r'<text[^>]* x="([\d.]+)"[^>]*>([^<]*)<', svg):
        if "text-anchor: middle" not in text:
            assert float(x) < box[2], text
    assert table_rows(plot)[1:] == [["1", "1.000", "2.000"], ["2", "\N{EN DASH}", "2.000"], ["4", "3.000", "2.000"]]


def test_figures_without_numbers_are_drawn_too():
    nothing = Plot((1, 2), {"a": (None, None)}, "x", "y", log_x=True, log_y=True, title="Nothing")
    assert "Nothing" in draw_plots(
        [nothing, Plot(("u",), {"a": (None,)}, "", "y", "bars", log_y=True, title="B")], "none"
    )


def made_up(lesson, rng) -> list[StepResult]:
    """What the steps could have found, without a device."""
    results = []
    for number, step in enumerate(lesson.steps):
        pixels = rng.integers(0, 255, (6, 8, 3), "u1")
        result = StepResult([DrawnPicture(pixels, name, f"{name} <i>", "meaning") for name in lesson.shown(number)])
        if step.measure:
            result.finding = Finding(
                (1, 2), {"a": (1.0, 2.0)}, "x", "y", device="a <device>", seconds=1.5, notes=("one note",)
            )
        if step.program:
            result.program = ProgramResult("main() => a < b;", "[1]", "graph <x>", "device")
        results.append(result)
    return results


def check_page(text: str, lesson) -> Balance:
    """A page that is whole, closed, and asks nobody for anything."""
    page = Balance(text)
    assert not page.names & {"script", "link", "iframe", "object"}
    for tag, name, value in page.attributes:
        if name == "src" or tag in ("image", "use") and name.endswith("href"):
            assert value.startswith(("data:image/", "#")), value[:60]
    assert "default-src 'none'" in text and "prefers-color-scheme: dark" in text and "@media print" in text
    assert 'name="viewport"' in text
    words = "".join(page.words)
    for step in lesson.steps:
        assert step.title in words
        assert step.question is None or step.question.because in words
        assert step.paper is None or step.paper.source in words
    ids = [value for _, name, value in page.attributes if name == "id" and value.startswith("step")]
    links = {value for tag, name, value in page.attributes if (tag, name) == ("a", "href")}
    assert len(ids) == len(lesson.steps) and {f"#{each}" for each in ids} <= links
    return page


def test_marks_lie_over_their_picture_and_are_text(folder, tmp_path, rng):
    lesson = read_lesson(folder)
    results = made_up(lesson, rng)
    marks = (Mark(0.25, 0.5, (1.0, 0.5, 0.0, 1.0), 4.0, "<b>x : 0..8"),)
    results[0].pictures = [DrawnPicture(np.zeros((6, 8, 3), "u1"), "set", "graph", "", marks)]
    text = lesson_page(lesson, results, tmp_path / "x.html", "here")
    assert "<b>x : 0..8" in check_page(text, lesson).words
    assert '<circle cx="2.0" cy="3.0" r="4.0" fill="#ff8000"/>' in text


@pytest.mark.parametrize("name", ["small", "stencil", "cdollar"])
def test_a_lesson_is_one_whole_page(name, folder, tmp_path, rng):
    lesson = read_lesson(folder if name == "small" else LESSONS / name)
    text = lesson_page(lesson, made_up(lesson, rng), tmp_path / "out" / "x.html", "a <machine>")
    page = check_page(text, lesson)
    assert "a <machine>" in "".join(page.words) and "<i>" not in text.replace("<i>", "", 0)[:0] + ""


def test_a_page_holds_the_pictures_of_its_folder(folder, tmp_path, rng):
    write_png(folder / "drawing.png", rng.integers(0, 255, (5, 7, 3), "u1"))
    words = folder / "lesson.md"
    words.write_text(words.read_text().replace("Two words", "![a drawing](drawing.png)"))
    lesson = read_lesson(folder)
    text = lesson_page(lesson, made_up(lesson, rng), tmp_path / "x.html", "here")
    assert re.search(r'<img src="data:image/png;base64,[^"]+" alt="a drawing"', text)
    check_page(text, lesson)


def run(capsys, *words: str) -> dict:
    assert cli.main(["lesson", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.usefixtures("shared_gl")
def test_the_command_writes_a_page_of_what_it_drew_and_measured(folder, tmp_path, capsys):
    facts = run(capsys, str(folder), "--html", str(tmp_path / "out"), "--width", "32", "--seconds", "0.05")
    text = (tmp_path / "out" / "small.html").read_text()
    assert facts["steps"] == 2 and facts["problems"] == [] and facts["bytes"] == len(text.encode())
    page = check_page(text, read_lesson(folder))
    assert text.count("<img") == 2 and "Table 1" in page.words and "Here" in page.words
    step = run(capsys, str(folder), "--step", "2", "--seconds", "0.05")
    assert step["finding"]["x"] == [10, 20] and min(step["finding"]["series"]["set"]) > 0


@pytest.mark.usefixtures("shared_gl")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "light-fields" else pytest.mark.slow) for name in sorted(ASKED)]
)
def test_a_lesson_runs_headless(name, tmp_path, capsys):
    facts = run(capsys, name, "--html", str(tmp_path), "--width", "48", "--samples", "1", "--seconds", "0.02")
    lesson = read_lesson(LESSONS / name)
    text = (tmp_path / f"{name}.html").read_text()
    page = check_page(text, lesson)
    assert facts["problems"] == [] and facts["steps"] == len(lesson.steps)
    measured = sum(step.measure is not None for step in lesson.steps)
    assert page.words.count("Here") >= measured and text.count("<img") >= 1


def test_the_list_and_wrong_options(capsys):
    assert {row["name"] for row in run(capsys)["lessons"]} == ASKED
    for words, sentence in (
        (["--html", "x"], "need the name of a lesson"),
        (["sums", "--step", "99"], "has 8 steps"),
        (["sums", "--seconds", "11"], "at most 10"),
        (["sums", "--width", "5000", "--html", "x"], "16 to 2048"),
        (["sums", "--html", "x", "--step", "1"], "not together"),
        (["nothing"], "allowed are band-lu"),
    ):
        assert cli.main(["lesson", *words, "--json"]) == 2
        assert sentence in capsys.readouterr().err


def test_pixels_of_pages_are_those_that_were_drawn(rng):
    pixels = rng.integers(0, 255, (9, 11, 3), "u1")
    element = picture(pixels, 'alt <">', "caption")
    data = re.search(r'base64,([^"]+)"', element)[1]
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(base64.b64decode(data)))), pixels)
    Balance(element)
