"""The section "Statistics" of the controls: device, transfer, the picture's report, and plots of frame times.

MainWindow draws it for the active panel; panels/measurements.py holds the figures.
"""

from collections.abc import Iterable

import numpy as np

from renderer.window.controls import theme
from renderer.window.controls.toolkit import imgui, imgui_ctx, implot
from renderer.window.panels.measurements import HISTORY_LENGTH, Row
from renderer.window.panels.panel import Panel

PLOT_FLAGS = implot.Flags_.no_mouse_text | implot.Flags_.no_inputs | implot.Flags_.no_title
AXIS_FLAGS = (
    implot.AxisFlags_.no_tick_labels | implot.AxisFlags_.no_tick_marks | implot.AxisFlags_.no_grid_lines
)  # fmt: skip


def draw(panel: Panel, fonts: theme.Fonts, scale: float) -> None:
    """Draws the values and plots of a panel in the current Dear ImGui window."""
    measured = panel.measured
    facts = {"device": measured.device, "transfer": measured.transfer}
    named = [Row(name, name, text, None) for name, text in facts.items() if text]
    column = imgui.get_content_region_avail().x * 0.40 + imgui.get_cursor_start_pos().x
    for row in [*named, *measured.rows]:
        imgui.text_disabled(row.label)
        if row.series is not None:
            _bars(row, row.series, fonts, scale)
        else:
            imgui.same_line(column)
            imgui.text_wrapped(row.text)
    if len(measured.frame_rate.intervals) > 2:
        _frame_times(measured.frame_rate.intervals, measured.sample_history, scale)


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
