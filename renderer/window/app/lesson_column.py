"""The column of a lesson, left of the panels: the text of the current step, its question, and its figures.

MainWindow draws it; the state is in state/lesson_reader.py, the actions of its buttons in state/lesson_actions.py.
"""

from collections.abc import Sequence

import numpy as np

from renderer.lessons.lesson import Question
from renderer.lessons.programs import ProgramResult
from renderer.pages.markdown import Block, blocks
from renderer.pages.plot import Plot, table_rows
from renderer.window.controls import imgui, imgui_ctx, implot, theme
from renderer.window.controls.choices import choose_index
from renderer.window.panels.sections import PLOT_FLAGS
from renderer.window.state.app_state import AppState
from renderer.window.state.lesson_actions import close_lesson, turn
from renderer.window.state.lesson_reader import LessonReader, StepState

WIDTH, PLOT_HEIGHT = 430, 190  # at scale 1
RIGHT = (0.49, 0.81, 0.50, 1.0)
MAX_FRACTION = 0.45  # greatest fraction of the window's width, without the controls, that the lesson takes


def width(app: AppState, scale: float, window_width: float) -> float:
    """The width of the column in units, at most MAX_FRACTION of `window_width`; 0 without a lesson."""
    return 0.0 if app.lesson is None else min(WIDTH * scale, MAX_FRACTION * window_width)


class LessonColumn:
    """Draws the lesson of an AppState in the current Dear ImGui window."""

    def __init__(self, app: AppState, fonts: theme.Fonts, scale: float):
        self.app, self.fonts, self.scale = app, fonts, scale
        self._blocks: tuple[object, list[Block]] = (None, [])  # the key of the shown step, and its text

    def draw(self) -> None:
        """Draws the step with its title above and the buttons below, which stay while the words scroll."""
        reader = self.app.lesson
        if reader is None:
            return
        right = imgui.get_cursor_pos_x() + imgui.get_content_region_avail().x
        imgui.push_text_wrap_pos(right - 60 * self.scale)
        theme.text_in(self.fonts.bold, reader.lesson.title, size=theme.LARGE)
        imgui.pop_text_wrap_pos()
        imgui.same_line(right - 52 * self.scale)
        if imgui.small_button("Close"):
            close_lesson(self.app)
        imgui.text_disabled(f"step {reader.number + 1} of {len(reader.lesson.steps)}")
        foot = imgui.get_frame_height_with_spacing() + 6 * self.scale
        imgui.begin_child("words", imgui.ImVec2(0, -foot))
        if reader.scrolls_to_top:
            imgui.set_scroll_y(0.0)
            reader.scrolls_to_top = False
        self._step(reader)
        imgui.end_child()
        self._buttons(reader)

    def _buttons(self, reader: LessonReader) -> None:
        """Back, Next, and a list of all steps."""
        imgui.separator()
        if theme.button("Back", "Ctrl+PageUp", reader.number > 0):
            turn(self.app, reader, reader.number - 1)
        imgui.same_line()
        if theme.button("Next", "Ctrl+PageDown", reader.number < len(reader.lesson.steps) - 1):
            turn(self.app, reader, reader.number + 1)
        imgui.same_line()
        imgui.set_next_item_width(-1)
        titles = [f"{number}  {step.title}" for number, step in enumerate(reader.lesson.steps, 1)]
        if (chosen := choose_index("##steps", titles[reader.number], titles, reader.number)) is not None:
            turn(self.app, reader, chosen)

    def _step(self, reader: LessonReader) -> None:
        """The step's text, its button, and its results: a program, figures, a question."""
        state, step = reader.state, reader.step
        for block in self._words(reader):
            self._block(block)
        self._run_button(reader, state)
        if state.program is not None:
            self._program(state.program)
        plots = [*([step.paper.plot()] if step.paper else []), *([state.finding] if state.finding else [])]
        for number, plot in enumerate(plots):
            self._plot(plot, number)
        if state.finding is not None:
            found = state.finding
            notes = [f"On {found.device}, timed for {found.seconds:.1f} s.", *found.notes]
            imgui.text_wrapped(" ".join(notes) if found.seconds else "; ".join([f"On {found.device}.", *found.notes]))
        if step.question is not None:
            self._question(step.question, state)

    def _words(self, reader: LessonReader) -> list[Block]:
        """The blocks of the step's text, parsed once."""
        key = reader.lesson.path, reader.number
        if self._blocks[0] != key:
            intro = blocks(reader.lesson.intro) if reader.number == 0 else []
            heading = Block("heading", reader.step.title, 2)
            self._blocks = key, [*intro, heading, *blocks(reader.step.text)]
        return self._blocks[1]

    def _block(self, block: Block) -> None:
        """A paragraph, heading, table, code or rule of the text."""
        if block.kind == "heading":
            imgui.spacing()
            theme.text_in(self.fonts.bold, block.text, size=theme.LARGE)
        elif block.kind == "code":
            self._code(block.text)
        elif block.kind == "table":
            self._table(block.rows)
        elif block.kind == "rule":
            imgui.separator()
        else:
            imgui.set_cursor_pos_x(imgui.get_cursor_pos_x() + 14 * self.scale * block.level)
            imgui.text_wrapped(block.text)
        imgui.spacing()

    def _code(self, text: str) -> None:
        with imgui_ctx.push_font(self.fonts.numbers, theme.FONT_SIZE):
            for line in text.split("\n"):
                imgui.text_colored(theme.DIM, line)

    def _table(self, rows: Sequence[Sequence[str]]) -> None:
        """A table whose first row is its heading."""
        flags = imgui.TableFlags_.sizing_fixed_fit | imgui.TableFlags_.row_bg | imgui.TableFlags_.scroll_x
        height = imgui.get_text_line_height_with_spacing() * (len(rows) + 1.4)
        columns = max(map(len, rows))
        if imgui.begin_table(f"table {rows[0]}", columns, flags, imgui.ImVec2(0, height)):
            for number, row in enumerate(rows):
                imgui.table_next_row()
                for cell in row:
                    imgui.table_next_column()
                    (imgui.text_disabled if number == 0 else imgui.text_unformatted)(cell)
            imgui.end_table()

    def _run_button(self, reader: LessonReader, state: StepState) -> None:
        """The button that measures the step or runs its program; below it the error of the last run."""
        step, app = reader.step, self.app
        if step.measure is None and step.program is None:
            return
        if reader.is_measuring:
            doing = "measuring" if step.measure is not None else "running the program"
            imgui.text_colored(theme.ACCENT, f"{doing} in a child process; the panels pause")
            if imgui.button("Cancel"):
                reader.cancel()
        else:
            words = f"Measure (about {reader.seconds:g} s)" if step.measure is not None else "Run the program"
            if imgui.button(words):
                with app.errors_as_messages("measuring"):
                    reader.start(app.now())
        if state.problem:
            with imgui_ctx.push_text_wrap_pos(0.0):
                imgui.text_colored(theme.WARNING, state.problem)
        imgui.spacing()

    def _program(self, found: ProgramResult) -> None:
        """A program with its result."""
        self._code(found.source.strip())
        imgui.text_disabled(f"its result on {found.device}:")
        self._code(found.result)
        if found.explanation and imgui.collapsing_header("The graph, the passes and the kernels"):
            self._code(found.explanation)
        imgui.spacing()

    def _plot(self, plot: Plot, number: int) -> None:
        """A figure of lines; a table if its values are no numbers."""
        imgui.text_disabled(plot.title)
        if not plot.is_numeric:
            self._table([["", *plot.series], *table_rows(plot)[1:]])
            return
        if not implot.begin_plot(f"##plot {number}", imgui.ImVec2(-1, PLOT_HEIGHT * self.scale), PLOT_FLAGS):
            return
        implot.setup_axes(plot.x_name, plot.unit)
        low, high = _limits(plot)
        margin = 0.0 if plot.log_x else 0.04 * (max(plot.x) - min(plot.x))
        always = imgui.Cond_.always
        right = max(plot.x) + margin + 1e-9  # of a single x, both limits would be equal
        implot.setup_axes_limits(min(plot.x) - margin, right, low, high, always)
        implot.setup_legend(implot.Location_.north_east)
        for axis, is_logarithmic in ((implot.ImAxis_.x1, plot.log_x), (implot.ImAxis_.y1, plot.log_y)):
            if is_logarithmic:
                implot.setup_axis_scale(axis, implot.Scale_.log10)
        spec = implot.Spec(marker=implot.Marker_.circle, marker_size=3.0, line_weight=2.0)
        for name, values in plot.series.items():
            known = [(x, y) for x, y in zip(plot.x, values, strict=True) if y is not None]
            points = np.array([(x, y) for x, y in known if y > 0 or not plot.log_y], "f8").reshape(-1, 2)
            if len(points):
                implot.plot_line(name, points[:, 0].copy(), points[:, 1].copy(), spec)
        implot.end_plot()

    def _question(self, question: Question, state: StepState) -> None:
        """A question with its answers; after a choice, whether it is right and why."""
        imgui.spacing()
        imgui.separator()
        theme.text_in(self.fonts.bold, question.ask)
        for number, answer in enumerate(question.answers):
            if imgui.radio_button(f"##answer {number}", state.answer == number):
                state.answer = number
            imgui.same_line()
            imgui.text_wrapped(answer)
        if state.answer is not None:
            is_right = state.answer == question.right
            imgui.text_colored(RIGHT if is_right else theme.WARNING, "Right." if is_right else "Not quite.")
            imgui.text_wrapped(question.because)


def _limits(plot: Plot) -> tuple[float, float]:
    """The limits of the vertical axis: from 0 to 1.25 of the maximum; with a wider margin if it is logarithmic."""
    values = [y for row in plot.series.values() for y in row if y is not None and (y > 0 or not plot.log_y)]
    if not values:
        return (0.1, 1.0) if plot.log_y else (0.0, 1.0)
    return (min(values) / 2, max(values) * 3) if plot.log_y else (0.0, max(values) * 1.25 or 1.0)
