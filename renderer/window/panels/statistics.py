"""The statistics of a panel in the controls: device, transfer, what the picture reports, plots of frame times."""

from collections.abc import Iterable

import numpy as np

from renderer.window.controls import theme
from renderer.window.controls.toolkit import imgui, imgui_ctx, implot
from renderer.window.panels.frame_rate import HISTORY_LENGTH
from renderer.window.panels.panel import Panel


def draw(panel: Panel, fonts: theme.Fonts, scale: float) -> None:
    """Draws the values and plots of a panel in the current Dear ImGui window."""
    for name, value in {"device": panel.device, "transfer": panel.transfer, **panel.report}.items():
        if is_empty(value):
            continue
        label = str(name).replace("_", " ")
        imgui.text_disabled(label)
        if is_series(value):
            _bars(label, value, fonts, scale)
        else:
            imgui.same_line(imgui.get_content_region_avail().x * 0.40 + imgui.get_cursor_start_pos().x)
            imgui.text_wrapped(format_value(value))
    if len(panel.frame_rate.intervals) > 2:
        _frame_times(panel.frame_rate.intervals, panel.sample_history, scale)


def _bars(label: str, values, fonts: theme.Fonts, scale: float) -> None:
    """A series, such as the active rays by depth, as bars from 0 to its maximum."""
    series = np.asarray(values, "f4")
    size = (imgui.get_content_region_avail().x, 46 * scale)
    highest = float(series.max(initial=0.0)) or 1.0
    imgui.plot_histogram(f"##{label}", series, scale_min=0.0, scale_max=highest, graph_size=size)
    with imgui_ctx.push_font(fonts.numbers, theme.FONT_SIZE * 0.87), imgui_ctx.push_text_wrap_pos(0.0):
        imgui.text_disabled(format_value(values))


def _frame_times(intervals: Iterable[float], draws: Iterable[float], scale: float) -> None:
    """Plots the time from frame to frame and the time of a draw, in milliseconds."""
    series, drawing = (1000 * np.asarray(seconds, "f4") for seconds in (intervals, draws))
    flags = implot.Flags_.no_mouse_text | implot.Flags_.no_inputs | implot.Flags_.no_title
    if implot.begin_plot("##times", (-1, 120 * scale), flags):
        axis = implot.AxisFlags_
        implot.setup_axes("", "ms", axis.no_tick_labels | axis.no_tick_marks | axis.no_grid_lines, axis.no_menus)
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
