"""A lesson in the window: the current step, the panels that show it, the answers, and the child that measures.

A child process of `rayfold lesson --json` measures a step, so that the window stays responsive. Panels draw nothing
meanwhile: their draws would slow down what is measured. lesson_actions.py opens lessons and turns to other steps.
"""

import json
from collections.abc import Sequence
from tempfile import TemporaryDirectory

from renderer.lessons.lesson import Lesson, Step
from renderer.lessons.measurements import Finding
from renderer.lessons.programs import ProgramResult
from renderer.plain import Json
from renderer.records import dataclass, field
from renderer.window.panels.panel import Panel
from renderer.window.state.command_child import CommandChild
from renderer.window.state.session import Session

CHILD_SECONDS = 240.0  # a measurement that takes longer, with its compilers, is ended


@dataclass
class StepState:
    """The reader's answer to a step, and its measurement."""

    answer: int | None = None
    finding: Finding | None = None
    program: ProgramResult | None = None
    problem: str = ""


@dataclass
class LessonReader:
    """The state of a lesson; `number` is the current step, from 0."""

    lesson: Lesson
    number: int = 0
    device: str = "auto"
    seconds: float = 10.0  # of each measurement, at most
    states: dict[int, StepState] = field(default_factory=dict)
    panels: dict[str, Panel] = field(default_factory=dict)  # by the lesson's names
    scrolls_to_top: bool = True  # set for another step; the column scrolls its text in the next frame
    _child: CommandChild | None = None  # the process that measures, while it runs
    _child_state: StepState = field(default_factory=StepState)  # the state of the step that the child measures
    _deadline: float = 0.0  # when the child process is ended, in seconds of the window's clock

    @property
    def step(self) -> Step:
        """The current step."""
        return self.lesson.steps[self.number]

    @property
    def state(self) -> StepState:
        """The answer and the measurement of the current step."""
        return self.states.setdefault(self.number, StepState())

    @property
    def is_measuring(self) -> bool:
        """True while a child process measures a step."""
        return self._child is not None

    def session(self) -> Session:
        """A session with the panels of the step."""
        return Session.of(self.lesson.scene(self.number, name) for name in self.lesson.shown(self.number))

    def adopt(self, panels: Sequence[Panel]) -> None:
        """Takes over the window's panels as the panels of the step."""
        self.panels = dict(zip(self.lesson.shown(self.number), panels, strict=True))

    def start(self, now: float) -> None:
        """Starts the measurement and the program of the step; raises UserError if no child can be started."""
        if self.is_measuring or (self.step.measure is None and self.step.program is None):
            return
        arguments = ["lesson", str(self.lesson.path), "--json", "--step", str(self.number + 1)]
        arguments += ["--device", self.device, "--seconds", f"{self.seconds:g}"]
        self._child = CommandChild(TemporaryDirectory(prefix="rayfold-lesson-"), arguments, "the measurement")
        self._child_state, self._deadline = self.state, now + CHILD_SECONDS

    def poll(self, now: float) -> None:
        """Takes over the result of a child that has ended; ends a child that takes longer than CHILD_SECONDS."""
        if self._child is None:
            return
        if now > self._deadline:
            self.cancel(f"the measurement was ended after {CHILD_SECONDS:.0f} s")
        elif (code := self._child.poll()) is not None:
            output, failure, state = self._child.output(), self._child.failure(), self._child_state
            self._child.close()
            self._child = None
            if code in (0, 3):  # 3: measured, but the answer has a `problem`
                answer = json.loads(output)
                state.problem = answer["problem"]
                state.finding = Finding(**_tuples(answer["finding"])) if answer["finding"] else None
                state.program = ProgramResult(**answer["program"]) if answer["program"] else None
            else:
                state.problem = failure

    def cancel(self, problem: str = "") -> None:
        """Ends the child."""
        if self._child is not None:
            self._child_state.problem = problem
            self._child.close()
            self._child = None


def _tuples(finding: Json) -> Json:
    """A finding as JSON has it, with tuples in place of lists."""
    series = {name: tuple(values) for name, values in finding["series"].items()}
    return finding | {"x": tuple(finding["x"]), "series": series, "notes": tuple(finding["notes"])}
