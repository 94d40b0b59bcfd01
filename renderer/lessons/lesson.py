"""Reads a lesson's folder into frozen dataclasses: lesson.toml holds the panels and steps, lesson.md their texts.

The files may come from a stranger: sizes and counts are bounded, and every mistake raises an InputError that names the
file and the key. `rayfold lesson` and the window call find_lesson() and read_lesson().
"""

import os
import re
from pathlib import Path
from typing import Any

from renderer.errors import InputError, UserError
from renderer.lessons.measurements import MEASUREMENTS, Measurement
from renderer.lessons.programs import Program
from renderer.pages.markdown import MAX_CHARACTERS, sections, targets
from renderer.pages.plot import PaperFigure, check_label
from renderer.paths import ASSETS, SCENES
from renderer.pictures import SCENE_SUFFIXES, expand_layout, load, picture_class
from renderer.plain import Json, format_value
from renderer.records import dataclass, field, replace
from renderer.scene.animation import without_tracks
from renderer.scene.scene import COLOR, Inspect, Scene
from renderer.scene.schema import EMPTY, from_table, replace_in_file, setting
from renderer.system.files import read_text, read_toml, resolve
from renderer.system.trust import named_file

LESSONS = ASSETS / "lessons"
MAX_STEPS, MAX_PANELS, MAX_ANSWERS = 24, 8, 6
MAX_WORDS = 2000  # characters of a question or an answer
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp")


@dataclass(frozen=True)
class Panel:
    """A picture of the lesson: a bundled scene's name or a file beside lesson.toml, and settings that override it."""

    scene: str
    set: Json = setting(EMPTY)
    samples: int | None = setting(None, 1, 1 << 16, "of the page's picture")

    def __post_init__(self) -> None:
        check_label("scene", self.scene, 200)


@dataclass(frozen=True)
class Question:
    """A multiple-choice question; `right` is the index of the right answer from 0, `because` the reason."""

    ask: str
    answers: tuple[str, ...]
    right: int
    because: str

    def __post_init__(self) -> None:
        if not 2 <= len(self.answers) <= MAX_ANSWERS:
            raise ValueError(f"answers must be 2 to {MAX_ANSWERS} texts")
        if not 0 <= self.right < len(self.answers):
            raise ValueError(f"right is {self.right}; it must be 0 to {len(self.answers) - 1}")
        for name, text in (("ask", self.ask), ("because", self.because), *(("answers", text) for text in self.answers)):
            check_label(name, text, MAX_WORDS)


@dataclass(frozen=True)
class Step:
    """One step: the panels, question, program and measurement. `text` is the step's section of lesson.md."""

    title: str
    show: tuple[str, ...] = ()  # names of panels; (): the panels of the step before
    set: dict[str, Json] = setting(EMPTY)  # panel -> setting -> value, kept by later steps
    view: dict[str, str] = setting(EMPTY)  # panel -> a layer or an algorithm's view
    view_steps: dict[str, tuple[int, ...]] = setting(EMPTY)  # panel -> bounces or passes; the window shows the first
    question: Question | None = None
    program: Program | None = None
    measure: Measurement | None = None
    paper: PaperFigure | None = None
    text: str = ""


@dataclass(frozen=True)
class LessonTable:
    """The tables of a lesson.toml; _step() converts `steps`, whose measurements are of several kinds."""

    title: str
    paper: str
    summary: str
    steps: tuple[Any, ...]
    panels: dict[str, Panel] = setting(EMPTY)

    def __post_init__(self) -> None:
        for key in ("title", "paper", "summary"):
            check_label(key, getattr(self, key), 300)
        if not (1 <= len(self.steps) <= MAX_STEPS and all(isinstance(row, dict) for row in self.steps)):
            raise ValueError(f"steps must be 1 to {MAX_STEPS} tables [[steps]]")
        if len(self.panels) > MAX_PANELS:
            raise ValueError(f"panels must be at most {MAX_PANELS} tables [panels.NAME]")
        for name in self.panels:
            check_label("panels: each name", name, 40)


@dataclass(frozen=True)
class Lesson:
    """A lesson that was read and checked."""

    path: Path  # the lesson's folder
    title: str
    paper: str
    summary: str
    intro: str
    steps: tuple[Step, ...]
    panels: dict[str, Scene] = field(default_factory=dict)  # scenes of the panels before the first step's settings
    samples: dict[str, int] = field(default_factory=dict)  # samples of the page's pictures, by panel

    @property
    def name(self) -> str:
        """Returns the name of the folder."""
        return resolve(self.path).name

    def scene(self, number: int, name: str) -> Scene:
        """Returns the scene of a panel at step `number`, with the settings of that step and of all earlier ones."""
        scene = self.panels[name]
        for index, step in enumerate(self.steps[: number + 1]):
            context = f"{self.path / 'lesson.toml'}: steps[{index}]: set: {name}"
            scene = _with_settings(scene, step.set.get(name, {}), context, self.path)
        step = self.steps[number]
        view = Inspect(step.view.get(name, COLOR), step.view_steps.get(name, (0,))[0], scene.inspect.pixel)
        return replace(scene, inspect=view)

    def scenes(self, number: int) -> dict[str, Scene]:
        """Returns the scenes of all panels at step `number`, by name."""
        return {name: self.scene(number, name) for name in self.panels}

    def shown(self, number: int) -> tuple[str, ...]:
        """Returns the panels that step `number` shows: its `show`, or the last one before it if that is empty."""
        return next((step.show for step in self.steps[number::-1] if step.show), ())


def _with_settings(scene: Scene, values: Json, context: str, folder: Path) -> Scene:
    """Returns the scene with changed settings, which lose their key frames; `folder` is the lesson's."""
    for key, value in values.items():
        scene = without_tracks(scene, key)
        scene = replace(scene, settings=replace_in_file(scene.settings, key, value, f"{context}: {key}", folder))
    return scene


def _panel_scene(folder: Path, name: str, panel: Panel) -> Scene:
    """Loads the scene of a panel: a file beside lesson.toml, else the bundled scene of that name."""
    path, context = folder / panel.scene, f"{folder / 'lesson.toml'}: panels.{name}"
    if not (path.suffix and os.path.exists(path)):
        files = [known for suffix in ("cb", "flame", "toml") for known in SCENES.glob(f"*.{suffix}")]
        bundled = {name: known for known in files for name in (known.stem, known.name)}
        if panel.scene not in bundled:
            allowed = f"a file of {folder} or one of the bundled scenes, such as cornell"
            raise InputError(f"{context}: scene is {format_value(panel.scene)}; allowed is {allowed}")
        path = bundled[panel.scene]
    else:
        path = named_file(panel.scene, folder, SCENE_SUFFIXES, f"{context}: scene")
    scene = load(path)
    if expand_layout(scene) != [scene]:
        raise InputError(f"{context}: scene is {format_value(panel.scene)}, a layout; a panel shows one picture")
    return replace(_with_settings(scene, panel.set, f"{context}: set", folder), title=f"{name}: {scene.title}")


def bundled_lessons() -> list[str]:
    """Returns the names of the lessons that come with the program."""
    return sorted(path.parent.name for path in LESSONS.glob("*/lesson.toml"))


def find_lesson(name: str) -> Path:
    """Returns the folder of a lesson, given as a path or as a bundled lesson's name; UserError for others."""
    path = Path(name)
    if path.name == "lesson.toml":
        path = path.parent
    if os.path.exists(path / "lesson.toml"):
        return path
    if re.fullmatch(r"[\w-]{1,60}", name) and os.path.exists(LESSONS / name / "lesson.toml"):
        return LESSONS / name
    known = ", ".join(bundled_lessons())
    raise UserError(f"lesson {name}: there is none of that name, and no folder with a lesson.toml; allowed are {known}")


def read_lesson(folder: Path) -> Lesson:
    """Reads and checks the lesson of a folder; InputError, with file and key, for every mistake."""
    toml, words = folder / "lesson.toml", folder / "lesson.md"
    for path in (toml, words):  # named_file() may refuse links that lead out of the folder
        named_file(path.name, folder, (path.suffix,), f"{folder}: a file")
    table: LessonTable = from_table(LessonTable, read_toml(toml), str(toml), folder)
    intro, texts = _read_words(words, table.title)
    rows = table.steps
    if len(rows) != len(texts):
        raise InputError(f"{toml}: steps: there are {len(rows)}, but {words.name} has {len(texts)} headings (## ...)")
    steps = tuple(
        _step(row, heading, text, toml, i) for i, (row, (heading, text)) in enumerate(zip(rows, texts, strict=True))
    )
    scenes = {name: _panel_scene(folder, name, panel) for name, panel in table.panels.items()}
    samples = {name: panel.samples for name, panel in table.panels.items() if panel.samples}
    lesson = Lesson(folder, table.title, table.paper, table.summary, intro, steps, scenes, samples)
    _check_panels(lesson, toml)
    return lesson


def _read_words(path: Path, title: str) -> tuple[str, list[tuple[str, str]]]:
    """Reads lesson.md; returns the introduction, and each step's heading and text."""
    text = read_text(path, 4 * MAX_CHARACTERS)
    if len(text) > MAX_CHARACTERS:
        raise InputError(f"{path}: {len(text)} characters; a lesson has at most {MAX_CHARACTERS}")
    try:
        headline, intro, steps = sections(text)
        images = targets(text, "image")
    except RecursionError:
        raise InputError(f"{path}: nested too deeply") from None
    if headline != title:
        raise InputError(
            f"{path}: the heading (# ...) is {format_value(headline)}; lesson.toml has the title {title!r}"
        )
    for image in images:
        if not re.fullmatch(r"[\w-]{1,100}\.\w{3,4}", image) or Path(image).suffix.lower() not in IMAGE_SUFFIXES:
            allowed = f"a file beside it: {', '.join(IMAGE_SUFFIXES)}"
            raise InputError(f"{path}: the image is {format_value(image)}; allowed is {allowed}")
        named_file(image, path.parent, IMAGE_SUFFIXES, f"{path}: the image")
    return intro, steps


def _step(row: Json, heading: str, text: str, path: Path, index: int) -> Step:
    """The step of a row of lesson.toml, whose heading and text stand in lesson.md."""
    context = f"{path}: steps[{index}]"
    if row.get("title") != heading:
        raise InputError(f"{context}: title is {format_value(row.get('title'))}; lesson.md has {format_value(heading)}")
    if "text" in row:
        raise InputError(f"{context}: unknown key 'text'; the words stand in lesson.md")
    measure = _measurement(row["measure"], f"{context}: measure", path.parent) if "measure" in row else None
    others = {key: value for key, value in row.items() if key != "measure"}
    step: Step = from_table(Step, others, context, path.parent)
    return replace(step, measure=measure, text=text)


def _measurement(table: object, context: str, folder: Path) -> Measurement:
    if not isinstance(table, dict) or table.get("kind") not in MEASUREMENTS:
        found = table.get("kind") if isinstance(table, dict) else table
        raise InputError(f"{context}: kind is {format_value(found)}; allowed are {', '.join(MEASUREMENTS)}")
    rest = {key: value for key, value in table.items() if key != "kind"}
    measurement: Measurement = from_table(MEASUREMENTS[table["kind"]], rest, context, folder)
    return measurement


def _check_panels(lesson: Lesson, path: Path) -> None:
    """Raises InputError if a step names a panel that the lesson lacks, or settings or a view that do not fit it."""
    if not lesson.steps[0].show:
        raise InputError(f"{path}: steps[0]: show is []; the first step must show a panel")
    for index, step in enumerate(lesson.steps):
        context = f"{path}: steps[{index}]"
        for key in ("show", "set", "view", "view_steps"):
            for name in getattr(step, key):
                if name not in lesson.panels:
                    allowed = ", ".join(lesson.panels) or "none: there is no [panels.NAME]"
                    raise InputError(f"{context}: {key}: no panel {format_value(name)}; allowed are {allowed}")
        if len(step.show) > MAX_PANELS:
            raise InputError(f"{context}: show: at most {MAX_PANELS} panels")
        for name, numbers in step.view_steps.items():
            if not (1 <= len(numbers) <= 12 and all(0 <= number < 1000 for number in numbers)):
                raise InputError(f"{context}: view_steps: {name}: must be 1 to 12 numbers from 0 to 999")
        scenes = lesson.scenes(index)
        for name, view in step.view.items():
            views = picture_class(scenes[name].picture).view_names()
            if view not in views:
                found = f"{context}: view: {name} is {format_value(view)}"
                raise InputError(f"{found}; allowed are {', '.join(views)}")
        if step.measure is not None:
            step.measure.check(f"{context}: measure", scenes)
