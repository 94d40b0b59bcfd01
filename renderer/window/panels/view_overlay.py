"""What lies over a view of a panel: the legend of its colors, and the marks of its step."""

from renderer.images.algorithm_view import Legend, Mark
from renderer.images.inspection import COLOR_TABLE, LEVELS
from renderer.window.controls import theme
from renderer.window.controls.theme import Rect
from renderer.window.controls.toolkit import imgui
from renderer.window.panels.panel import Panel

BARS = 64  # of one color each, in the legend
TICKS = 4  # lengths between the numbers of the legend
SIZE = (180.0, 10.0)  # of the legend's bar, at scale 1
MIN_SIZE = (300.0, 140.0)  # of a picture that has room for it


def draw(panel: Panel, rect: Rect, fonts: theme.Fonts, scale: float) -> None:
    """Draws the legend and the marks of the panel's view over its picture in `rect`."""
    shown = panel.inspection.shown
    if shown is None:
        return
    for mark in shown.marks:
        _mark(panel, mark, rect, fonts, scale)
    has_room = rect[2] >= MIN_SIZE[0] * scale and rect[3] >= MIN_SIZE[1] * scale
    if shown.legend is not None and has_room:
        _legend(shown.legend, rect, fonts, scale)


def _mark(panel: Panel, mark: Mark, rect: Rect, fonts: theme.Fonts, scale: float) -> None:
    u, v = panel.zoom.panel_point(mark.x, mark.y)
    if not (0 <= u <= 1 and 0 <= v <= 1):
        return
    at = (rect[0] + u * rect[2], rect[1] + v * rect[3])
    draw_list, radius = imgui.get_window_draw_list(), mark.radius * scale
    draw_list.add_circle_filled(at, radius, theme.color_u32(mark.color))
    if mark.text:
        draw_list.add_circle(at, radius, theme.color_u32((0, 0, 0, 0.8)), 0, scale)
        size = theme.FONT_SIZE * scale
        theme.shadow_text(draw_list, fonts.text, size, at[0] + radius + 3, at[1] - size / 2, theme.TEXT, mark.text)


def _legend(legend: Legend, rect: Rect, fonts: theme.Fonts, scale: float) -> None:
    """The scale of colors in the upper right corner, with numbers below it."""
    draw_list, size = imgui.get_window_draw_list(), theme.FONT_SIZE * scale * 0.85
    width, height, pad = SIZE[0] * scale, SIZE[1] * scale, 10 * scale
    texts = [format_number(legend.value(tick / TICKS)) for tick in range(TICKS + 1)]
    left, top = rect[0] + rect[2] - width - 4 * pad, rect[1] + pad
    low = (left - 3 * pad, top - pad / 2)
    high = (left + width + 3 * pad, top + height + size * (2.5 if legend.unit else 1.4))
    draw_list.add_rect_filled(low, high, theme.color_u32((0.05, 0.06, 0.08, 0.78)), 4 * scale)
    for bar in range(BARS):
        color = int(COLOR_TABLE[bar * (LEVELS - 1) // (BARS - 1)])
        begin, end = (left + width * bar / BARS, top), (left + width * (bar + 1) / BARS + 0.5, top + height)
        draw_list.add_rect_filled(begin, end, color)
    for tick, text in enumerate(texts):
        x = left + width * tick / TICKS
        length = imgui.calc_text_size(text).x * 0.85
        draw_list.add_text(fonts.text, size, (x - length / 2, top + height + 1), theme.color_u32(theme.TEXT), text)
    if legend.unit:
        at = (left, top + height + size * 1.1)
        draw_list.add_text(fonts.text, size, at, theme.color_u32(theme.DIM), legend.unit.strip())


def format_number(value: float) -> str:
    """A number of a legend in few letters."""
    if value and not 1e-3 <= abs(value) < 1e5:
        return f"{value:.1e}"
    return f"{value:.0f}" if float(value).is_integer() or abs(value) >= 100 else f"{value:.3g}"
