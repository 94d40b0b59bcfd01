"""The column of a lesson, left of the panels: the words of the step, its question, and its figures."""

from typing import Any

import numpy as np

from renderer.lessons.lesson import Question
from renderer.lessons.programs import ProgramResult
from renderer.pages.markdown import Block, blocks
from renderer.pages.plot import Plot, format_number
from renderer.window.controls import theme
from renderer.window.controls.toolkit import imgui, imgui_ctx, implot
from renderer.window.state.app_state import AppState
from renderer.window.state.lesson_reader import LessonReader, StepState, close_lesson

WIDTH, PLOT_HEIGHT = 430, 190  # at scale 1
RIGHT = (0.49, 0.81, 0.50, 1.0)
MAX_PART = 0.45  # of the width that the controls leave


def width(app: AppState, scale: float, window_width: float) -> float:
    """The width of the column beside panels in `window_width`, of which it takes a part; 0 without a lesson."""
    return 0.0 if app.lesson is None else min(WIDTH * scale, MAX_PART * window_width)


class Column:
    """Draws the lesson of an AppState in the current Dear ImGui window."""

    def __init__(self, app: AppState, fonts: theme.Fonts, scale: float):
        self.app, self.fonts, self.scale = app, fonts, scale
        self._blocks: tuple[Any, list[Block]] = (None, [])  # of the step that is shown

    def draw(self) -> None:
        """Draws the step with its title above and the buttons below, which stay while the words scroll."""
        reader = self.app.lesson
        if reader is None:
            return
        right = imgui.get_cursor_pos_x() + imgui.get_content_region_avail().x
        imgui.push_text_wrap_pos(right - 60 * self.scale)
        with imgui_ctx.push_font(self.fonts.bold, theme.FONT_SIZE * 1.15):
            imgui.text(reader.lesson.title)
        imgui.pop_text_wrap_pos()
        imgui.same_line(right - 52 * self.scale)
        if imgui.small_button("Close"):
            close_lesson(self.app)
        imgui.text_disabled(f"step {reader.number + 1} of {len(reader.lesson.steps)}")
        foot = imgui.get_frame_height_with_spacing() + 6 * self.scale
        imgui.begin_child("words", imgui.ImVec2(0, -foot))
        if reader.turned:
            imgui.set_scroll_y(0.0)
            reader.turned = False
        self._step(reader)
        imgui.end_child()
        self._buttons(reader)

    def _buttons(self, reader: LessonReader) -> None:
        imgui.separator()
        imgui.begin_disabled(reader.number == 0)
        if imgui.button("Back"):
            reader.turn(self.app, reader.number - 1)
        imgui.end_disabled()
        imgui.set_item_tooltip("Ctrl+PageUp")
        imgui.same_line()
        imgui.begin_disabled(reader.number == len(reader.lesson.steps) - 1)
        if imgui.button("Next"):
            reader.turn(self.app, reader.number + 1)
        imgui.end_disabled()
        imgui.set_item_tooltip("Ctrl+PageDown")
        imgui.same_line()
        imgui.set_next_item_width(-1)
        if imgui.begin_combo("##steps", f"{reader.number + 1}  {reader.step.title}"):
            for number, step in enumerate(reader.lesson.steps):
                if imgui.selectable(f"{number + 1}  {step.title}", number == reader.number)[0]:
                    reader.turn(self.app, number)
            imgui.end_combo()

    def _step(self, reader: LessonReader) -> None:
        state, step = reader.state, reader.step
        for block in self._words(reader):
            self._block(block)
        self._carry_out(reader, state)
        if state.program is not None:
            self._program(state.program)
        plots = [*([step.paper.plot()] if step.paper else []), *([state.finding.plot()] if state.finding else [])]
        for number, plot in enumerate(plots):
            self._plot(plot, number)
        if state.finding is not None:
            found = state.finding
            notes = [f"On {found.device}, timed for {found.seconds:.1f} s.", *found.notes]
            imgui.text_wrapped(" ".join(notes) if found.seconds else "; ".join([f"On {found.device}.", *found.notes]))
        if step.question is not None:
            self._question(step.question, state)

    def _words(self, reader: LessonReader) -> list[Block]:
        key = reader.lesson.path, reader.number
        if self._blocks[0] != key:
            intro = blocks(reader.lesson.intro) if reader.number == 0 else []
            heading = Block("heading", reader.step.title, 2)
            self._blocks = key, [*intro, heading, *blocks(reader.step.text)]
        return self._blocks[1]

    def _block(self, block: Block) -> None:
        if block.kind == "heading":
            imgui.spacing()
            with imgui_ctx.push_font(self.fonts.bold, theme.FONT_SIZE * 1.1):
                imgui.text_wrapped(block.text)
        elif block.kind == "code":
            self._code(block.text)
        elif block.kind == "table":
            self._table(block.rows)
        elif block.kind == "rule":
            imgui.separator()
        else:
            indent = 14 * self.scale * block.level
            imgui.indent(indent) if indent else None
            imgui.text_wrapped(block.text)
            imgui.unindent(indent) if indent else None
        imgui.spacing()

    def _code(self, text: str) -> None:
        with imgui_ctx.push_font(self.fonts.numbers, theme.FONT_SIZE):
            imgui.push_style_color(imgui.Col_.text, imgui.ImVec4(*theme.DIM))
            for line in text.split("\n"):
                imgui.text_unformatted(line)
            imgui.pop_style_color()

    def _table(self, rows: tuple[tuple[str, ...], ...]) -> None:
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

    def _carry_out(self, reader: LessonReader, state: StepState) -> None:
        """The button that measures or evaluates, and what it says."""
        step, app = reader.step, self.app
        if step.measure is None and step.program is None:
            return
        if reader.is_measuring:
            doing = "measuring" if step.measure is not None else "running the program"
            imgui.text_colored(theme.ACCENT, f"{doing} in a process of its own; the panels rest")
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
        self._code(found.source.strip())
        imgui.text_disabled(f"its result on {found.device}:")
        self._code(found.result)
        if found.explanation and imgui.collapsing_header("The graph, the passes and the kernels"):
            self._code(found.explanation)
        imgui.spacing()

    def _plot(self, plot: Plot, number: int) -> None:
        imgui.text_disabled(plot.title)
        if not plot.is_numeric:
            self._table((("", *plot.series), *_cells(plot)))
            return
        flags = implot.Flags_.no_mouse_text | implot.Flags_.no_inputs | implot.Flags_.no_title
        if not implot.begin_plot(f"##plot {number}", imgui.ImVec2(-1, PLOT_HEIGHT * self.scale), flags):
            return
        implot.setup_axes(plot.x_name, plot.unit)
        low, high = _limits(plot)
        margin = 0.0 if plot.log_x else 0.04 * (max(plot.x) - min(plot.x))
        always = imgui.Cond_.always
        implot.setup_axes_limits(min(plot.x) - margin, max(plot.x) + margin + 1e-9, low, high, always)
        implot.setup_legend(implot.Location_.north_east)
        if plot.log_x:
            implot.setup_axis_scale(implot.ImAxis_.x1, implot.Scale_.log10)
        if plot.log_y:
            implot.setup_axis_scale(implot.ImAxis_.y1, implot.Scale_.log10)
        for name, values in plot.series.items():
            points = [
                (x, y) for x, y in zip(plot.x, values, strict=True) if y is not None and (y > 0 or not plot.log_y)
            ]
            if points:
                _draw_line(name, points)
        implot.end_plot()

    def _question(self, question: Question, state: StepState) -> None:
        imgui.spacing()
        imgui.separator()
        with imgui_ctx.push_font(self.fonts.bold, theme.FONT_SIZE):
            imgui.text_wrapped(question.ask)
        for number, answer in enumerate(question.answers):
            if imgui.radio_button(f"##answer {number}", state.answer == number):
                state.answer = number
            imgui.same_line()
            imgui.text_wrapped(answer)
        if state.answer is not None:
            is_right = state.answer == question.right
            imgui.text_colored(RIGHT if is_right else theme.WARNING, "Right." if is_right else "Not quite.")
            imgui.text_wrapped(question.because)


def _cells(plot: Plot) -> list[tuple[str, ...]]:
    rows = zip(plot.labels(), *plot.series.values(), strict=True)
    return [(label, *map(format_number, values)) for label, *values in rows]


def _limits(plot: Plot) -> tuple[float, float]:
    """The least and the greatest value of the vertical axis: from 0, or with room where it is logarithmic."""
    values = [y for row in plot.series.values() for y in row if y is not None and (y > 0 or not plot.log_y)]
    if not values:
        return (0.1, 1.0) if plot.log_y else (0.0, 1.0)
    return (min(values) / 2, max(values) * 3) if plot.log_y else (0.0, max(values) * 1.25 or 1.0)


def _draw_line(name: str, points: list[tuple[float, float]]) -> None:
    x, y = np.array(points, "f8").T
    spec = implot.Spec(marker=implot.Marker_.circle, marker_size=3.0, line_weight=2.0)
    implot.plot_line(name, np.ascontiguousarray(x), np.ascontiguousarray(y), spec)
