"""Lays out a lesson as one HTML page: each step's text, pictures, question, and the paper's and the reader's figures.

command.py passes the lesson and the results of its steps to lesson_page().
"""

import os
from collections.abc import Sequence
from html import escape
from pathlib import Path

from renderer.formats.images import IMAGE_SUFFIXES, linear_to_srgb, read_image
from renderer.lessons.drawing import DrawnPicture
from renderer.lessons.lesson import Lesson, Question, Step
from renderer.lessons.measurements import Finding
from renderer.lessons.programs import ProgramResult
from renderer.pages import page
from renderer.pages.figures import draw_plots
from renderer.pages.markdown import targets, to_html
from renderer.pages.plot import PaperFigure, table_rows
from renderer.records import dataclass
from renderer.system.files import resolve
from renderer.system.trust import named_file

MAX_IMAGE_PIXELS = 1 << 22  # pixels of a picture file in the lesson's folder
MAX_MARKS = 200  # marks that are drawn over the picture of an algorithm's step


@dataclass
class StepResult:
    """The results of a step on this machine; None and () for results that the step does not ask for."""

    pictures: Sequence[DrawnPicture] = ()
    finding: Finding | None = None
    program: ProgramResult | None = None
    problem: str = ""  # why a result is missing


def lesson_page(lesson: Lesson, results: Sequence[StepResult], output: Path, machine: str) -> str:
    """Returns the HTML page, with links relative to the file `output`; `machine` describes the reader's computer."""
    images = _images(lesson)
    titles = [(f"step-{number}", step.title) for number, step in enumerate(lesson.steps, 1)]
    parts = [
        f"<h1>{escape(lesson.title)}</h1>",
        f'<p class="soft">{escape(lesson.paper)}</p>',
        _words(lesson.intro, lesson, output, images),
        page.contents(titles),
        f'<p class="soft">Figures headed “Here” were measured on {escape(machine)}.</p>',
    ]
    for number, (step, result) in enumerate(zip(lesson.steps, results, strict=True), 1):
        heading = f'<span class="number">{number}</span> {escape(step.title)}'
        parts.append(f'<section><h2 id="step-{number}">{heading}</h2>')
        parts += [step_words(lesson, step, result, output, images), "</section>"]
    return page.html_page(lesson.title, "\n".join(parts))


def step_words(
    lesson: Lesson, step: Step, result: StepResult, output: Path, images: dict[str, str] | None = None
) -> str:
    """Returns the HTML of a step below its heading; `images` maps the names of the lesson's images to addresses."""
    return "\n".join([_words(step.text, lesson, output, images or {}), *step_parts(step, result)])


def _images(lesson: Lesson) -> dict[str, str]:
    """Reads the images that the lesson's texts name; returns their data: addresses by name."""
    texts = [lesson.intro, *(step.text for step in lesson.steps)]
    names = dict.fromkeys(name for text in texts for name in targets(text, "image"))
    out = {}
    for name in names:
        path = named_file(name, lesson.path, IMAGE_SUFFIXES, f"{lesson.path}: the image")
        pixels = linear_to_srgb(read_image(path, MAX_IMAGE_PIXELS)[..., :3])
        out[name] = page.picture(pixels, name).partition('src="')[2].partition('"')[0]  # the address of its <img>
    return out


def _words(text: str, lesson: Lesson, output: Path, images: dict[str, str]) -> str:
    def link(target: str) -> str:
        """The address of a link; empty for a file of the lesson that does not exist."""
        if target.startswith(("http://", "https://", "mailto:", "#")):
            return target
        path = lesson.path / target.partition("#")[0]
        return os.path.relpath(resolve(path), resolve(output).parent) if os.path.exists(path) else ""

    return to_html(text, link, lambda name: images.get(name, ""))


def step_parts(step: Step, result: StepResult) -> list[str]:
    """Returns the HTML elements below a step's text: pictures, program, figures, problem and question."""
    parts = []
    if result.pictures:
        figures = [
            page.picture(each.pixels, f"{step.title}: {each.caption}", each.caption, _marks(each))
            for each in result.pictures
        ]
        joined = "".join(figures)
        across = "two" if len(figures) in (2, 4) else "three"
        parts.append(f'<div class="strip {across}">{joined}</div>' if len(figures) > 1 else joined)
        meanings = " ".join(dict.fromkeys(each.meaning for each in result.pictures if each.meaning))
        parts += [f'<p class="soft">{escape(meanings)}</p>'] if meanings else []
    if result.program is not None:
        parts.append(_program(result.program))
    if step.measure is not None or step.paper is not None:
        parts.append(_figures(step.paper, result.finding, step.title))
    if result.problem:
        parts.append(f'<p class="card">{escape(result.problem)}</p>')
    if step.question is not None:
        parts.append(_question(step.question))
    return parts


def _marks(drawn: DrawnPicture) -> str:
    """Returns the marks of a picture as an <svg> to lie over it: dots with texts beside them."""
    if not drawn.marks:
        return ""
    height, width = drawn.pixels.shape[:2]
    parts = []
    for mark in drawn.marks[:MAX_MARKS]:
        x, y, color = mark.x * width, mark.y * height, "#" + "".join(f"{round(255 * c):02x}" for c in mark.color[:3])
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{mark.radius:.1f}" fill="{color}"/>')
        if mark.text:
            if mark.x < 0.75:
                where = f'x="{x + mark.radius + 4:.1f}" y="{y + 4:.1f}" fill="{color}"'
            else:  # near the right edge the text stands above the dot and ends at the edge
                where = f'x="{width - 4}" y="{y - mark.radius - 4:.1f}" text-anchor="end" fill="{color}"'
            parts.append(f"<text {where}>{escape(mark.text)}</text>")
    return f'<svg class="marks" viewBox="0 0 {width} {height}">{"".join(parts)}</svg>'


def _program(program: ProgramResult) -> str:
    parts = [f"<pre><code>{escape(program.source.strip())}</code></pre>"]
    parts.append(f'<p class="soft">Its result on {escape(program.device)}:</p><pre>{escape(program.result)}</pre>')
    if program.explanation:
        words = "<summary>The graph, the passes and the kernels</summary>"
        parts.append(f'<details class="data">{words}<pre>{escape(program.explanation)}</pre></details>')
    return "".join(parts)


def _figures(paper: PaperFigure | None, finding: Finding | None, title: str) -> str:
    """Returns the paper's figure above the reader's, on separate axes, and a table of the numbers of each."""
    plots = [*([paper.plot()] if paper else []), *([finding] if finding else [])]
    if not plots:
        return ""
    words = []
    if finding is not None:
        words.append(f"{'Above: the paper. Below' if paper else 'Here'}: {finding.device}.")
        timed = f"Timed for {page.format_seconds(finding.seconds)}, the shortest run of each point."
        words += [timed if finding.seconds else "", *_sentences(finding)]
    caption = escape(" ".join(filter(None, words)))
    tables = "".join(page.data_behind(table_rows(plot), f"The numbers: {plot.title}") for plot in plots)
    return f"<figure>{draw_plots(plots, title)}<figcaption>{caption}</figcaption></figure>{tables}"


def _sentences(finding: Finding) -> list[str]:
    return [f"{note[0].upper()}{note[1:]}." for note in finding.notes]


def _question(question: Question) -> str:
    answers = "".join(f"<li>{escape(answer)}</li>" for answer in question.answers)
    right = f"{chr(65 + question.right)}. {question.because}"
    return (
        f'<div class="card"><h3>{escape(question.ask)}</h3><ol class="answers">{answers}</ol>'
        f'<details class="answer"><summary>The answer</summary><p>{escape(right)}</p></details></div>'
    )
