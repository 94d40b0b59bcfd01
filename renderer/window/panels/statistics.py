"""The statistics of a panel in the controls: device, transfer, what the picture reports, plots of frame times."""

from collections.abc import Iterable
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from renderer.window.controls import theme
from renderer.window.controls.toolkit import imgui, imgui_ctx, implot
from renderer.window.panels.frame_rate import HISTORY_LENGTH
from renderer.window.panels.panel import Panel

PLOT_FLAGS = implot.Flags_.no_mouse_text | implot.Flags_.no_inputs | implot.Flags_.no_title
AXIS_FLAGS = (
    implot.AxisFlags_.no_tick_labels | implot.AxisFlags_.no_tick_marks | implot.AxisFlags_.no_grid_lines
)  # fmt: skip


class Row(NamedTuple):
    """A reported value as it is shown."""

    name: str
    label: str
    text: str
    series: np.ndarray | None  # of a list of numbers, float32


_rows_of: WeakKeyDictionary[Panel, tuple[dict, list[Row]]] = WeakKeyDictionary()


def rows(panel: Panel) -> list[Row]:
    """What a panel's picture reports, without what says nothing; made once for each report, not for each frame."""
    known = _rows_of.get(panel)
    if known is None or known[0] is not panel.report:
        found = [(str(name), value) for name, value in panel.report.items() if not is_empty(value)]
        made = [
            Row(name, name.replace("_", " "), format_value(v), np.asarray(v, "f4") if is_series(v) else None)
            for name, v in found
        ]
        known = _rows_of[panel] = panel.report, made
    return known[1]


def draw(panel: Panel, fonts: theme.Fonts, scale: float) -> None:
    """Draws the values and plots of a panel in the current Dear ImGui window."""
    where = [Row(name, name, text, None) for name in ("device", "transfer") if (text := getattr(panel, name))]
    column = imgui.get_content_region_avail().x * 0.40 + imgui.get_cursor_start_pos().x
    for row in [*where, *rows(panel)]:
        imgui.text_disabled(row.label)
        if row.series is not None:
            _bars(row, row.series, fonts, scale)
        else:
            imgui.same_line(column)
            imgui.text_wrapped(row.text)
    if len(panel.frame_rate.intervals) > 2:
        _frame_times(panel.frame_rate.intervals, panel.sample_history, scale)


def _bars(row: Row, series: np.ndarray, fonts: theme.Fonts, scale: float) -> None:
    """A series, such as the active rays by depth, as bars from 0 to its maximum."""
    size = (imgui.get_content_region_avail().x, 46 * scale)
    highest = float(series.max(initial=0.0)) or 1.0
    imgui.plot_histogram(f"##{row.label}", series, scale_min=0.0, scale_max=highest, graph_size=size)
    with imgui_ctx.push_font(fonts.numbers, theme.FONT_SIZE * 0.87), imgui_ctx.push_text_wrap_pos(0.0):
        imgui.text_disabled(row.text)


def _frame_times(intervals: Iterable[float], draws: Iterable[float], scale: float) -> None:
    """Plots the time from frame to frame and the time of a draw, in milliseconds."""
    if not imgui.is_rect_visible((1, 120 * scale)):
        imgui.dummy((1, 120 * scale))
        return
    series, drawing = (1000 * np.asarray(seconds, "f4") for seconds in (intervals, draws))
    if implot.begin_plot("##times", (-1, 120 * scale), PLOT_FLAGS):
        implot.setup_axes("", "ms", AXIS_FLAGS, implot.AxisFlags_.no_menus)
        top = max(1.0, float(np.sort(series)[int(0.99 * (len(series) - 1))]) * 1.2)
        implot.setup_axes_limits(len(series) - HISTORY_LENGTH, len(series), 0, top, imgui.Cond_.always)
        implot.plot_line("frame", series)
        implot.plot_line("draw", drawing[-len(series) :])
        implot.end_plot()


def is_empty(value) -> bool:
    """Whether a reported value says nothing, such as a list of no warnings."""
    return value is None or value == "" or isinstance(value, (list, tuple, dict)) and not value


def is_series(value) -> bool:
    """Whether a reported value is a list of at least two numbers."""
    return isinstance(value, (list, tuple)) and len(value) > 1 and all(isinstance(v, (int, float)) for v in value)


def format_value(value) -> str:
    """A reported value as text: thousands separated, floats with four digits, tables and lists in one line."""
    if isinstance(value, float):
        return f"{value:,.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, dict):
        return ", ".join(f"{key} {format_value(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return "  ".join(format_value(item) for item in value)
    return str(value)
