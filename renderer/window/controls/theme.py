"""The look of the window: one dark theme and three fonts, scaled to the display's pixel density; drawing helpers.

The back ends call apply() once; all modules that draw use the colors, fonts and helpers.
"""

from bisect import bisect_right
from functools import lru_cache
from pathlib import Path
from typing import Any

from renderer.paths import ASSETS
from renderer.system.files import read_toml
from renderer.window.controls.toolkit import FONTS, imgui, imgui_ctx

FONT_SIZE = 15.0  # pixels at scale 1
SMALL, LARGE = 0.87, 1.1  # sizes of notes and of titles, in FONT_SIZE
UNIT = 4  # distances and paddings are multiples of it, at scale 1
TURNS = ("Pause", "Resume"), ("All panels", "Maximize"), ("All", "One")  # labels that one button takes in turn
BACKGROUND = (0.012, 0.014, 0.018)
STYLE: dict[str, Any] = read_toml(ASSETS / "tables" / "style.toml")
_TABLE: dict[str, tuple[float, float, float, float]] = read_toml(ASSETS / "tables" / "theme.toml")
COLORS = {name: (float(r), float(g), float(b), float(a)) for name, (r, g, b, a) in _TABLE.items()}  # sRGB
ACCENT, DIM, TEXT = COLORS["check_mark"], COLORS["text_disabled"], COLORS["text"]
WARNING = (1.0, 0.56, 0.46, 1.0)
PLATE = (0.0, 0.0, 0.0, 0.82)  # below text over a picture
FOLD = imgui.TreeNodeFlags_.frame_padding | imgui.TreeNodeFlags_.span_avail_width  # as high as the rows of controls
# Cyrillic and Greek, then Chinese, Japanese and Korean of common systems
FALLBACKS = (FONTS / "Roboto" / "Roboto-Regular.ttf", *map(Path, STYLE["fonts"]["system"]))
CARD_WIDTH, CARD_MARGIN = 380, 12  # at scale 1
_resting: list[float] = []  # where the pointer was when a key was pressed


Rect = tuple[int, int, int, int]  # left, top, width, height in window units
Color = tuple[float, ...]  # red, green, blue, alpha; sRGB, 0 to 1
AXIS_COLORS: list[Color] = [(0.95, 0.35, 0.35, 0.8), (0.45, 0.85, 0.4, 0.8), (0.4, 0.6, 1.0, 0.8)]  # x, y and z


class Fonts:
    """The fonts of the window: `text`, `bold`, and `numbers`, whose digits all have one width."""

    def __init__(self):
        fonts = imgui.get_io().fonts
        self.text = _load_font(fonts, FONTS / "Roboto" / "Roboto-Regular.ttf")
        self.bold = _load_font(fonts, FONTS / "Roboto" / "Roboto-Bold.ttf")
        self.numbers = _load_font(fonts, FONTS / "Inconsolata-Medium.ttf")


def _load_font(fonts, path: Path):
    """A font of imgui-bundle's assets, or Dear ImGui's own if the wheel lacks it; letters it lacks are FALLBACKS'."""
    font = fonts.add_font_from_file_ttf(str(path), FONT_SIZE) if path.is_file() else fonts.add_font_default()
    merged = imgui.ImFontConfig()
    merged.merge_mode = True
    for fallback in filter(Path.is_file, FALLBACKS):
        fonts.add_font_from_file_ttf(str(fallback), FONT_SIZE, merged)
    return font


def apply(scale: float) -> Fonts:
    """Sets the theme for a display of `scale` (1 at 96 dots per inch); returns the fonts."""
    style = imgui.get_style()
    imgui.style_colors_dark()
    for name, color in COLORS.items():
        style.set_color_(getattr(imgui.Col_, name), color)
    for name, value in STYLE["sizes"].items():
        setattr(style, name, imgui.ImVec2(*value) if isinstance(value, list) else value)
    style.font_size_base = FONT_SIZE
    style.scale_all_sizes(scale)
    style.font_scale_dpi = scale
    return Fonts()


def color_u32(color: Color, alpha: float = 1.0) -> int:
    """The color as draw lists take it, its alpha multiplied by `alpha`."""
    return imgui.get_color_u32((color[0], color[1], color[2], color[3] * alpha))


def corners(rect: tuple[float, float, float, float]) -> tuple[imgui.ImVec2, imgui.ImVec2]:
    """The top left and the bottom right corner of a rectangle, as draw lists take them."""
    x, y, width, height = rect
    return imgui.ImVec2(x, y), imgui.ImVec2(x + width, y + height)


@lru_cache(64)
def fitted(rect: Rect, size: tuple[int, int]) -> Rect:
    """The largest rectangle of the ratio of `size` in the middle of another."""
    x, y, width, height = rect
    scale = min(width / size[0], height / size[1])
    w, h = (max(round(side * scale), 1) for side in size)
    return x + (width - w) // 2, y + (height - h) // 2, w, h


def begin_dialog(title: str, low: tuple[float, float], high: tuple[float, float], flags: int = 0) -> bool:
    """Begins a window in the middle of the display, `low` to `high` (width, height) large.

    Returns false in the frame in which its close button is clicked.
    """
    size = imgui.get_io().display_size
    imgui.set_next_window_pos((size.x / 2, size.y / 2), imgui.Cond_.always, (0.5, 0.5))
    imgui.set_next_window_size_constraints(low, high)
    flags |= imgui.WindowFlags_.no_saved_settings | imgui.WindowFlags_.no_collapse
    border = imgui_ctx.push_style_var(imgui.StyleVar_.window_border_size, 1.0)
    with border, imgui_ctx.push_style_color(imgui.Col_.window_bg, COLORS["popup_bg"]):
        return bool(imgui.begin(title, True, flags)[1])


def text_in(font, text: str, color: Color = TEXT, size: float = 1.0) -> None:
    """Writes a text in a font, `size` times as large as other text; lines break at the window's edge."""
    with imgui_ctx.push_font(font, FONT_SIZE * size), imgui_ctx.push_style_color(imgui.Col_.text, color):
        imgui.text_wrapped(text)


def begin_card(name: str, title: str, fonts: Fonts, corner: tuple[float, float], pivot: float, scale: float) -> None:
    """Begins a small window over the panels, which takes no keys.

    Its right edge lies at `corner`, and so does its upper (`pivot` 0) or lower (1) edge.
    """
    imgui.set_next_window_pos(corner, imgui.Cond_.always, (1.0, pivot))
    width = min(CARD_WIDTH * scale, max(corner[0] - CARD_MARGIN * scale, 60.0))
    imgui.set_next_window_size_constraints((width, 0), (width, max(corner[1], imgui.get_io().display_size.y / 2)))
    flags = imgui.WindowFlags_.always_auto_resize | imgui.WindowFlags_.no_saved_settings | imgui.WindowFlags_.no_move
    flags |= imgui.WindowFlags_.no_title_bar | imgui.WindowFlags_.no_focus_on_appearing | imgui.WindowFlags_.no_nav
    border = imgui_ctx.push_style_var(imgui.StyleVar_.window_border_size, 1.0)
    with border, imgui_ctx.push_style_color(imgui.Col_.window_bg, COLORS["popup_bg"]):
        imgui.begin(name, None, flags)
    text_in(fonts.bold, title, ACCENT)


def button_width(label: str) -> float:
    """The width of a button, which does not change with its label: of the longest label of its TURNS; else 0."""
    turns = next((turns for turns in TURNS if label in turns), ())
    return max((imgui.calc_text_size(turn).x + 2 * imgui.get_style().frame_padding.x for turn in turns), default=0.0)


def button(label: str, tooltip: str = "", is_enabled: bool = True, width: float = 0.0) -> bool:
    """Draws a button with a tooltip, `width` or button_width() units wide; returns true if it was clicked."""
    imgui.begin_disabled(not is_enabled)
    clicked = imgui.button(label, (width or button_width(label), 0.0))
    imgui.end_disabled()
    hint(tooltip)
    return clicked


def hint(text: str) -> None:
    """The tooltip of the last item: beside the controls, whose next rows it would cover, or at the pointer.

    In the toolbar it leaves the title bars below free.
    """
    pointer = imgui.get_io().mouse_pos
    if not text or _resting == [pointer.x, pointer.y] or not imgui.is_item_hovered(imgui.HoveredFlags_.for_tooltip):
        return
    left, middle = imgui.get_window_pos().x, imgui.get_io().display_size.x / 2
    if left > middle:
        place = left - 2 * imgui.get_style().item_spacing.x, imgui.get_item_rect_min().y
        imgui.set_next_window_pos(place, imgui.Cond_.always, (1.0, 0.0))
    elif imgui.get_item_rect_min().y < (row := imgui.get_frame_height_with_spacing()):
        imgui.set_next_window_pos((imgui.get_item_rect_min().x, 2.5 * row))
    if imgui.begin_tooltip():
        imgui.push_text_wrap_pos(FONT_SIZE * imgui.get_style().font_scale_dpi * 30)
        imgui.text_unformatted(text)
        imgui.pop_text_wrap_pos()
        imgui.end_tooltip()


def hide_hints() -> None:
    """Shows no hint until the pointer moves: a key has changed what is under it."""
    pointer = imgui.get_io().mouse_pos
    _resting[:] = pointer.x, pointer.y


def cut(text: str, width: float) -> str:
    """The text in the current font, or its begin and an ellipsis if it is wider than `width` units."""
    if imgui.calc_text_size(text).x <= width:
        return text
    keep = bisect_right(range(len(text)), width, key=lambda k: imgui.calc_text_size(f"{text[: k + 1].rstrip()}…").x)
    return f"{text[:keep].rstrip()}…" if keep else ""


def caption(draw, font, size: float, x: float, y: float, text: str, wrap: float = 0.0, pad: float = 0.0) -> None:
    """Draws text on a dark plate `pad` wider, which is read over any picture; `wrap`: width of its lines, 0 for one."""
    with imgui_ctx.push_font(font, FONT_SIZE):
        extent = imgui.calc_text_size(text, False, wrap or -1.0)
    pad = pad or size / 4
    plate = (x - pad, y - pad), (x + extent.x + pad, y + extent.y + pad)
    draw.add_rect_filled(*plate, color_u32(PLATE), pad)
    draw.add_text(font, size, (x, y), color_u32(TEXT), text, wrap)


def shadow_text(draw, font, size: float, x: float, y: float, color: Color, text: str) -> None:
    """Draws text over a picture, with a black shadow for contrast."""
    draw.add_text(font, size, (x + 1, y + 1), color_u32((0, 0, 0, 1)), text)
    draw.add_text(font, size, (x, y), color_u32(color), text)
