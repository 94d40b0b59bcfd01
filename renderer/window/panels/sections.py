"""Sections of the controls about one panel: "Look closely" and "Statistics".

The first has the view and its steps, pixel zoom, histogram and comparison, whose state is in the panel's Inspection,
PixelZoom and Comparison; the second the device, the picture's report and plots of frame times (measurements.py).
MainWindow draws both for the active panel.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from renderer.formats.images import PICTURE_SUFFIXES
from renderer.images.algorithm_view import VIEW_HELP
from renderer.images.inspection import BINS, STOPS
from renderer.paths import ASSETS
from renderer.system.files import read_toml
from renderer.window.controls import imgui, imgui_ctx, implot, theme
from renderer.window.controls.choices import choose_index
from renderer.window.controls.settings import edit_settings, label
from renderer.window.panels.comparison import MODES, DifferenceLook
from renderer.window.panels.inspection import Inspection
from renderer.window.panels.measurements import HISTORY_LENGTH, Row, readable
from renderer.window.panels.panel import Panel
from renderer.window.panels.pixel_zoom import PixelZoom

REPORT_HELP: dict[str, str] = read_toml(ASSETS / "tables" / "report.toml")  # by the label of a row
CHANNEL_COLORS = {"red": (1, 0.35, 0.3, 1), "green": (0.4, 0.9, 0.4, 1), "blue": (0.4, 0.6, 1, 1)}
PLOT_FLAGS = implot.Flags_.no_mouse_text | implot.Flags_.no_inputs | implot.Flags_.no_title
AXIS_FLAGS = (
    implot.AxisFlags_.no_tick_labels | implot.AxisFlags_.no_tick_marks | implot.AxisFlags_.no_grid_lines
)  # fmt: skip


def draw_inspection(panel: Panel, scale: float, ask_file: Callable[..., None]) -> None:
    """Draws the controls of a panel in the current Dear ImGui window, folded until a view is chosen by its key.

    ask_file(title, start, suffixes, choose) opens a file dialog.
    """
    if panel.inspection.opens_controls:
        imgui.set_next_item_open(True)
        imgui.set_scroll_here_y(0.0)
        panel.inspection.opens_controls = False
    if not imgui.collapsing_header("Look closely"):
        return
    _view(panel)
    if panel.zoom.is_on and imgui.button("show the whole picture"):
        panel.zoom = PixelZoom()
    label("histogram")
    panel.inspection.shows_histogram = imgui.checkbox("##histogram", panel.inspection.shows_histogram)[1]
    if panel.inspection.shows_histogram and panel.inspection.counts is not None:
        _histogram(*panel.inspection.counts, scale)
    _comparison(panel, ask_file)


def _view(panel: Panel) -> None:
    """The choice of a view (a layer or an algorithm), and the steps of an algorithm."""
    inspection, names = panel.inspection, panel.inspection.names(panel.picture)
    label("view")
    current = names.index(inspection.name) if inspection.name in names else -1
    chosen = choose_index("##view", inspection.name, names, current, [VIEW_HELP[name] for name in names])
    if chosen is not None:
        inspection.select(names[chosen])
    if inspection.meaning and inspection.name != names[0]:
        imgui.text_wrapped(inspection.meaning)
        _steps(inspection)


def _steps(inspection: Inspection) -> None:
    """The scrubber over the steps of an algorithm, and their numbers."""
    view = inspection.algorithm
    if view is None:
        return
    label(view.unit)
    always_clamp = imgui.SliderFlags_.always_clamp
    inspection.step = imgui.slider_int("##step", inspection.step, 0, view.count - 1, "%d", always_clamp)[1]
    columns = [name for name in dict.fromkeys(key for row in view.rows for key in row) if name != view.unit]
    flags = imgui.TableFlags_.sizing_fixed_fit | imgui.TableFlags_.row_bg | imgui.TableFlags_.scroll_x
    height = imgui.get_text_line_height_with_spacing() * (len(view.rows) + 1.8)
    if imgui.begin_table("steps", 1 + len(columns), flags, (0, height)):
        for name in (view.unit, *columns):
            imgui.table_setup_column(name)
        imgui.table_headers_row()
        for step, row in enumerate(view.rows):
            imgui.table_next_row()
            for name in (view.unit, *columns):
                imgui.table_next_column()
                text = readable(row.get(name, step if name == view.unit else ""))
                (imgui.text if step == inspection.step else imgui.text_disabled)(text)
        imgui.end_table()


def _histogram(counts: np.ndarray, outside: dict[str, int], scale: float) -> None:
    """Plots the counts of red, green and blue over stops; a line of text counts the pixels outside of the plot."""
    stops = np.linspace(*STOPS, BINS, endpoint=False)
    if implot.begin_plot("##histogram plot", (-1, 110 * scale), PLOT_FLAGS | implot.Flags_.no_legend):
        axis = implot.AxisFlags_
        implot.setup_axes("log2 of the value", "", axis.no_menus, axis.no_decorations)
        implot.setup_axes_limits(*STOPS, 0, max(1.0, float(counts.max()) * 1.05), imgui.Cond_.always)
        for (name, color), values in zip(CHANNEL_COLORS.items(), counts, strict=True):
            implot.plot_line(name, stops, values.astype("f8"), implot.Spec(line_color=imgui.ImVec4(*color)))
        implot.end_plot()
    left_out = ", ".join(f"{count:,} {name}" for name, count in outside.items() if count)
    if left_out:
        imgui.text_wrapped(f"outside: {left_out}")


def _comparison(panel: Panel, ask_file: Callable[..., None]) -> None:
    """The comparison with a reference: mode, gain, reference file, and measured differences."""
    comparison = panel.comparison
    label("reference")
    if theme.button(f"{comparison.label or 'choose a picture'}###reference", "S keeps the shown picture instead"):
        ask_file("Compare with", Path.cwd(), PICTURE_SUFFIXES, comparison.set_reference_file)
    label("compare")
    changed, index = imgui.combo("##compare", MODES.index(comparison.mode), list(MODES))
    theme.hint("wipe: the reference right of the pointer; flip: the pictures in turn; key W")
    shown = panel.display.texture
    if changed:
        comparison.switch(MODES[index], shown)
    if comparison.mode == "difference":
        comparison.look = edit_settings(comparison.look, DifferenceLook())
    is_compared = comparison.mode != "off" and panel.budget.divisor == 1
    size = comparison.other_size(shown) if is_compared and shown is not None else None
    if size is not None:
        imgui.text_colored(theme.WARNING, f"the reference has {size[0]} x {size[1]} pixels, this picture has not")
        if imgui.button(f"Draw at {size[0]} x {size[1]}"):
            panel.fixed_size = size
    if panel.fixed_size is not None and imgui.button("Draw at the panel's size"):
        panel.fixed_size = None
    if theme.button("MSE, PSNR, FLIP", "of the displayed sRGB values, from the reference's; key Ctrl+M"):
        panel.measure()
    if comparison.largest_at is not None:
        imgui.same_line()
        if theme.button("Go to the largest", "magnifies the pixel that differs most"):
            panel.zoom = PixelZoom().zoomed(12, 0.5, 0.5).centered(*comparison.largest_at)
    if comparison.numbers:
        imgui.text_wrapped(comparison.numbers)


def draw_statistics(panel: Panel, fonts: theme.Fonts, scale: float) -> None:
    """Draws the values and plots of a panel in the current Dear ImGui window."""
    measured = panel.measured
    facts = {"device": measured.device, "transfer": measured.transfer}
    times = {"a sample": measured.sample_seconds, "compiling": panel.work.seconds}
    facts |= {name: f"{seconds:,.3g} s" for name, seconds in times.items() if seconds}
    if measured.target_samples and not panel.is_playing:
        facts["samples"] = f"{measured.samples:,} of {measured.target_samples:,}"
    named = [Row(name, name, text, None) for name, text in facts.items() if text]
    column = imgui.get_content_region_avail().x * 0.40 + imgui.get_cursor_start_pos().x
    for row in [*named, *measured.rows]:
        imgui.text_disabled(row.label)
        if row.label in REPORT_HELP:
            theme.hint(REPORT_HELP[row.label])
        if row.series is not None:
            _bars(row, row.series, fonts, scale)
        else:
            imgui.same_line(column)
            imgui.text_wrapped(row.text)
    if "stencil" in panel.inspection.names(panel.picture) and theme.button("Time by part", VIEW_HELP["stencil"]):
        panel.inspection.look_closely("stencil")
    if len(measured.frame_rate.intervals) > 2:
        _frame_times(measured.frame_rate.intervals, measured.sample_history, scale)


def _bars(row: Row, series: np.ndarray, fonts: theme.Fonts, scale: float) -> None:
    """A series, such as the active rays by depth, as bars from 0 to its maximum."""
    size = (imgui.get_content_region_avail().x, 46 * scale)
    highest = float(series.max(initial=0.0)) or 1.0
    with imgui_ctx.push_style_var(imgui.StyleVar_.disabled_alpha, 1.0):
        imgui.begin_disabled()  # its own tooltip says neither what a bar is nor the whole number
        imgui.plot_histogram(f"##{row.label}", series, scale_min=0.0, scale_max=highest, graph_size=size)
        imgui.end_disabled()
    if imgui.is_item_hovered(imgui.HoveredFlags_.allow_when_disabled):
        across = (imgui.get_mouse_pos().x - imgui.get_item_rect_min().x) / size[0] * len(series)
        bar = min(max(int(across), 0), len(series) - 1)
        imgui.set_tooltip(f"{row.label} {bar}: {series[bar]:,.7g}")
    left, pad, texts = imgui.get_cursor_pos_x(), imgui.get_style().frame_padding.x, row.text.split()
    width = (size[0] - 2 * pad) / len(series)
    with imgui_ctx.push_font(fonts.numbers, theme.FONT_SIZE * theme.SMALL), imgui_ctx.push_text_wrap_pos(0.0):
        widths = [imgui.calc_text_size(text).x for text in texts]
        if len(texts) != len(series) or max(widths, default=0.0) + pad > width:
            imgui.text_disabled(row.text)
            return
        for bar, text in enumerate(texts):  # each below the middle of its bar
            if bar:
                imgui.same_line()
            imgui.set_cursor_pos_x(left + pad + (bar + 0.5) * width - widths[bar] / 2)
            imgui.text_disabled(text)


def _frame_times(intervals: Iterable[float], draws: Iterable[float], scale: float) -> None:
    """Plots the time from frame to frame and the time of a draw, in milliseconds."""
    if not imgui.is_rect_visible((1, 120 * scale)):
        imgui.dummy((1, 120 * scale))
        return
    series, drawing = (1000 * np.asarray(seconds, "f4") for seconds in (intervals, draws))
    if implot.begin_plot("##times", (-1, 120 * scale), PLOT_FLAGS):
        implot.setup_axes("", "ms", AXIS_FLAGS, implot.AxisFlags_.no_menus)
        # Nine of ten frames end below the top; frames during which a kernel compiled may be cut off
        top = max(1.0, float(np.sort(series)[int(0.9 * (len(series) - 1))]) * 1.5)
        implot.setup_axes_limits(len(series) - HISTORY_LENGTH, len(series), 0, top, imgui.Cond_.always)
        implot.plot_line("frame", series)
        implot.plot_line("draw", drawing[-len(series) :])
        implot.end_plot()
