"""A lesson that is read in the window: its step, the panels that show it, answers, and the child that measures.

A step is carried out by a child process of `rayfold lesson --json`, so that the window goes on; panels rest meanwhile,
or they would take the time that is measured.
"""

import json
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from renderer.errors import UserError
from renderer.lessons.lesson import LESSONS, Lesson, Step, read_lesson
from renderer.lessons.measurements import Finding
from renderer.lessons.programs import ProgramResult
from renderer.process import module_child
from renderer.window.panels.panel import Panel
from renderer.window.state.session import Session

CHILD_SECONDS = 240.0  # that a step may take with its compilers, before it is ended
MAX_LINE = 300  # characters of an error that are shown


@dataclass
class StepState:
    """What the reader has done with a step."""

    answer: int | None = None
    finding: Finding | None = None
    program: ProgramResult | None = None
    problem: str = ""


@dataclass
class LessonReader:
    """The state of a lesson; `number` is the step that is shown, from 0."""

    lesson: Lesson
    number: int = 0
    device: str = "auto"
    seconds: float = 10.0
    states: dict[int, StepState] = field(default_factory=dict)
    panels: dict[str, Panel] = field(default_factory=dict)  # by the lesson's names
    turned: bool = True  # another step is shown: its text begins at the top
    _child: subprocess.Popen | None = None
    _child_step: int = 0
    _folder: tempfile.TemporaryDirectory | None = None
    _until: float = 0.0

    @property
    def step(self) -> Step:
        """The step that is shown."""
        return self.lesson.steps[self.number]

    @property
    def state(self) -> StepState:
        """What the reader has done with it."""
        return self.states.setdefault(self.number, StepState())

    @property
    def is_measuring(self) -> bool:
        """Whether a child carries out a step."""
        return self._child is not None

    def session(self) -> Session:
        """The panels of the step, as a window begins with them."""
        return Session(tuple(self.lesson.scene(self.number, name) for name in self.lesson.shown(self.number)))

    def adopt(self, panels: list[Panel]) -> None:
        """Takes the window's panels for the step's."""
        self.panels = dict(zip(self.lesson.shown(self.number), panels, strict=True))

    def turn(self, app: Any, number: int) -> None:
        """Shows another step: its panels, with their settings and views."""
        self.number = min(max(number, 0), len(self.lesson.steps) - 1)
        self.turned = True
        names = self.lesson.shown(self.number)
        if set(names) != self.panels.keys() or any(panel not in app.panels for panel in self.panels.values()):
            app.replace_panels(self.session())
            self.adopt(app.panels)
        for name in names:
            panel, scene = self.panels[name], self.lesson.scene(self.number, name)
            panel.show(scene)
            panel.inspection.show(scene.inspect)  # the user may look at another view
        app.active = app.panels.index(self.panels[names[0]])

    def start(self, now: float) -> None:
        """Starts to measure and evaluate what the step asks for; raises UserError where no child can be started."""
        if self.is_measuring or (self.step.measure is None and self.step.program is None):
            return
        self._folder = tempfile.TemporaryDirectory(prefix="rayfold-lesson-")
        command, environment = module_child("renderer")
        command += ["lesson", str(self.lesson.path), "--json", "--step", str(self.number + 1)]
        command += ["--device", self.device, "--seconds", f"{self.seconds:g}"]
        streams = [open(Path(self._folder.name) / name, "wb") for name in ("out", "err")]
        try:
            self._child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=streams[0], stderr=streams[1], env=environment
            )
        except OSError as error:
            self._folder.cleanup()
            raise UserError(f"the measurement cannot be started: {error.strerror}") from error
        finally:
            for stream in streams:
                stream.close()
        self._child_step, self._until = self.number, now + CHILD_SECONDS

    def poll(self, now: float) -> None:
        """Takes over what the child found, or ends one that takes too long."""
        if self._child is None:
            return
        if now > self._until:
            self.cancel(f"the measurement was ended after {CHILD_SECONDS:.0f} s")
        elif self._child.poll() is not None:
            self._take(self._child.returncode)

    def _take(self, code: int) -> None:
        assert self._folder is not None
        out, err = ((Path(self._folder.name) / name).read_text("utf-8", "replace") for name in ("out", "err"))
        state = self.states.setdefault(self._child_step, StepState())
        self._forget_child()
        if code not in (0, 3):
            last = err.strip().rpartition("\n")[2].removeprefix("rayfold: ")
            state.problem = last[:MAX_LINE] or f"the measurement ended with code {code}"
            return
        found = json.loads(out)
        state.problem = found["problem"]
        state.finding = Finding(**_tuples(found["finding"])) if found["finding"] else None
        state.program = ProgramResult(**found["program"]) if found["program"] else None

    def cancel(self, problem: str = "") -> None:
        """Ends the child."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            self.states.setdefault(self._child_step, StepState()).problem = problem
            self._forget_child()

    def _forget_child(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()
        self._child = self._folder = None


def _tuples(finding: dict[str, Any]) -> dict[str, Any]:
    """A finding of JSON, whose lists are tuples again."""
    series = {name: tuple(values) for name, values in finding["series"].items()}
    return finding | {"x": tuple(finding["x"]), "series": series, "notes": tuple(finding["notes"])}


def open_lesson(app: Any, reader: LessonReader) -> None:
    """Reads a lesson beside the window's panels, which become those of its step."""
    close_lesson(app)
    if [panel.scene for panel in app.panels] != list(reader.session().scenes):
        app.replace_panels(reader.session())
    app.lesson, app.tour = reader, None
    reader.adopt(app.panels)


def open_bundled(app: Any, name: str) -> None:
    """Reads the bundled lesson of this name."""
    with app.errors_as_messages(f"opening the lesson {name}"):
        open_lesson(app, LessonReader(read_lesson(LESSONS / name), device=app.device))


def close_lesson(app: Any) -> None:
    """Closes the lesson; its panels stay."""
    if app.lesson is not None:
        app.lesson.cancel()
        app.lesson = None


def with_lesson(action: Callable[[Any], None]) -> Callable[[Any], None]:
    """An action that needs a lesson; without one it says how to open one."""

    def run(app: Any) -> None:
        if app.lesson is None:
            app.show_message("no lesson is open; `rayfold lesson` lists them")
        else:
            action(app)

    return run


next_step = with_lesson(lambda app: app.lesson.turn(app, app.lesson.number + 1))
previous_step = with_lesson(lambda app: app.lesson.turn(app, app.lesson.number - 1))
measure_step = with_lesson(lambda app: app.lesson.start(app.now()))
