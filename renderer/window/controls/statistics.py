"""What was measured of a panel: its device, what its picture reports, the plots of its frames and of its depths."""

import numpy as np

from renderer.window.controls import theme
from renderer.window.controls.toolkit import imgui, implot
from renderer.window.panels.frame_rate import RING


def draw(panel, fonts: theme.Fonts, scale: float) -> None:
    """The figures and plots of a panel, in the window that is begun."""
    for name, value in {"device": panel.device, "transfer": panel.transfer, **panel.report}.items():
        if not value and value != 0:
            continue
        words = str(name).replace("_", " ")
        if is_series(value):
            imgui.text_disabled(words)
            _bars(words, value, fonts, scale)
        else:
            imgui.text_disabled(words)
            imgui.same_line(imgui.get_content_region_avail().x * 0.40 + imgui.get_cursor_start_pos().x)
            imgui.text_wrapped(figure(value))
    if len(panel.counter.intervals) > 2:
        _times(panel.counter.intervals, panel.costs, scale)


def _bars(words: str, values, fonts: theme.Fonts, scale: float) -> None:
    """A series, such as the active rays by depth, as bars from 0 to its largest."""
    series = np.asarray(values, "f4")
    size = imgui.ImVec2(imgui.get_content_region_avail().x, 46 * scale)
    largest = float(series.max(initial=0.0)) or 1.0
    imgui.plot_histogram(f"##{words}", series, scale_min=0.0, scale_max=largest, graph_size=size)
    imgui.push_font(fonts.numbers, theme.FONT_SIZE * 0.87)
    imgui.push_text_wrap_pos(0.0)
    imgui.text_disabled(figure(values))
    imgui.pop_text_wrap_pos()
    imgui.pop_font()


def _times(intervals, costs, scale: float) -> None:
    """From one frame of the panel to the next, and the part of it that its draw took, in milliseconds."""
    series, drawing = (1000 * np.asarray(seconds, "f4") for seconds in (intervals, costs))
    flags = implot.Flags_.no_mouse_text | implot.Flags_.no_inputs | implot.Flags_.no_title
    if implot.begin_plot("##times", imgui.ImVec2(-1, 120 * scale), flags):
        decorations = (
            implot.AxisFlags_.no_tick_labels | implot.AxisFlags_.no_tick_marks | implot.AxisFlags_.no_grid_lines
        )
        implot.setup_axes("", "ms", decorations, implot.AxisFlags_.no_menus)
        top = max(1.0, float(np.sort(series)[int(0.99 * (len(series) - 1))]) * 1.2)
        implot.setup_axes_limits(len(series) - RING, len(series), 0, top, imgui.Cond_.always)
        implot.plot_line("frame", series)
        implot.plot_line("draw", drawing[-len(series) :])
        implot.end_plot()


def is_series(value) -> bool:
    return isinstance(value, (list, tuple)) and len(value) > 1 and all(isinstance(v, (int, float)) for v in value)


def figure(value) -> str:
    if isinstance(value, float):
        return f"{value:,.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, dict):
        return ", ".join(f"{k} {figure(v)}" for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return "  ".join(figure(v) for v in value)
    return str(value)
