"""The pixel under the pointer: its neighbourhood magnified, its linear values and what is displayed."""

import numpy as np

from renderer.window.controls import theme
from renderer.window.controls.toolkit import imgui

AROUND = 4  # pixels to each side


def region(texture, x: int, y: int, around: int = AROUND) -> np.ndarray:
    """The texels within `around` of (x, y), (height, width, components); cut at the edges."""
    left, top = max(x - around, 0), max(y - around, 0)
    right, bottom = min(x + around + 1, texture.size[0]), min(y + around + 1, texture.size[1])
    return texture.read_region(left, top, right - left, bottom - top)


def figures(linear: np.ndarray, displayed: np.ndarray) -> list[str]:
    """What the inspector prints of one pixel: linear and displayed values, and what is no number."""
    names = ("R", "G", "B", "A")
    lines = [f"{name} {value:12.6g}  {shown:3d}" for name, value, shown in zip(names, linear, displayed, strict=True)]
    if np.isnan(linear).any():
        lines.append("not a number")
    if np.isinf(linear).any():
        lines.append("infinite")
    return lines


def draw(panel, rectangle, fonts, scale: float) -> None:
    """A tooltip for the pixel of `panel` under the pointer; nothing where it is elsewhere."""
    left, top, width, height = rectangle
    pointer = imgui.get_io().mouse_pos
    across, down = (pointer.x - left) / width, (pointer.y - top) / height
    if panel.frame is None or panel.shown is None or not (0 <= across < 1 and 0 <= down < 1):
        return
    x, y = int(across * panel.shown.size[0]), int(down * panel.shown.size[1])
    shown = region(panel.shown, x, y)
    linear, displayed = panel.frame.read_region(x, y, 1, 1)[0, 0], panel.shown.read_region(x, y, 1, 1)[0, 0]
    imgui.push_style_var(imgui.StyleVar_.window_padding, imgui.ImVec2(10 * scale, 8 * scale))
    imgui.begin_tooltip()
    _loupe(shown, min(x, AROUND), min(y, AROUND), 11 * scale)
    imgui.push_font(fonts.numbers, theme.FONT_SIZE)
    imgui.text_disabled(f"x {x}  y {y}      linear  sRGB")
    for line in figures(linear, displayed):
        imgui.text(line)
    imgui.pop_font()
    imgui.end_tooltip()
    imgui.pop_style_var()


def _loupe(texels: np.ndarray, x: int, y: int, side: float) -> None:
    """The texels as squares, the one in the middle outlined."""
    height, width = texels.shape[:2]
    corner, draw_list = imgui.get_cursor_screen_pos(), imgui.get_window_draw_list()
    for row in range(height):
        for column in range(width):
            low = imgui.ImVec2(corner.x + column * side, corner.y + row * side)
            high = imgui.ImVec2(low.x + side, low.y + side)
            red, green, blue = (float(value) / 255 for value in texels[row, column, :3])
            draw_list.add_rect_filled(low, high, theme.packed((red, green, blue, 1.0)))
    low = imgui.ImVec2(corner.x + x * side, corner.y + y * side)
    draw_list.add_rect(low, imgui.ImVec2(low.x + side, low.y + side), theme.packed((1, 1, 1, 1)))
    imgui.dummy(imgui.ImVec2(width * side, height * side))
