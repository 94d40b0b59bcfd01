"""The pixel inspector: the pixels around the pointer, magnified; linear and displayed values of the one under it."""

import numpy as np

from renderer.gpu.gl import Texture
from renderer.window.controls import theme
from renderer.window.controls.theme import Rect
from renderer.window.controls.toolkit import imgui, imgui_ctx
from renderer.window.panels.panel import Panel

RADIUS = 4  # pixels to each side of the pointer


def region(texture: Texture, x: int, y: int, radius: int = RADIUS) -> np.ndarray:
    """The texels within `radius` of (x, y), (height, width, components), clipped at the edges."""
    left, top = max(x - radius, 0), max(y - radius, 0)
    right, bottom = min(x + radius + 1, texture.size[0]), min(y + radius + 1, texture.size[1])
    return texture.read_region(left, top, right - left, bottom - top)


def pixel_lines(linear: np.ndarray, displayed: np.ndarray) -> list[str]:
    """The lines of text for one pixel: linear and displayed RGBA, and a warning for NaN and infinity."""
    names = ("R", "G", "B", "A")
    lines = [f"{name} {value:12.6g}  {shown:3d}" for name, value, shown in zip(names, linear, displayed, strict=True)]
    if np.isnan(linear).any():
        lines.append("not a number")
    if np.isinf(linear).any():
        lines.append("infinite")
    return lines


def draw(panel: Panel, rect: Rect, fonts: theme.Fonts, scale: float) -> None:
    """Draws a tooltip for the pixel of `panel` under the pointer, if there is one."""
    left, top, width, height = rect
    pointer, displayed = imgui.get_io().mouse_pos, panel.display_texture
    u, v = panel.zoom.picture_point((pointer.x - left) / width, (pointer.y - top) / height)
    if panel.frame is None or displayed is None or not (0 <= u < 1 and 0 <= v < 1):
        return
    x, y = int(u * displayed.size[0]), int(v * displayed.size[1])
    padding = imgui_ctx.push_style_var(imgui.StyleVar_.window_padding, (10 * scale, 8 * scale))
    with padding, imgui_ctx.begin_tooltip():
        _magnifier(region(displayed, x, y), min(x, RADIUS), min(y, RADIUS), 11 * scale)
        with imgui_ctx.push_font(fonts.numbers, theme.FONT_SIZE):
            imgui.text_disabled(f"x {x}  y {y}      linear  sRGB")
            for line in pixel_lines(panel.frame.read_region(x, y, 1, 1)[0, 0], displayed.read_region(x, y, 1, 1)[0, 0]):
                imgui.text(line)
            if (values := panel.inspection.values) is not None:
                value = values[int(v * values.shape[0]), int(u * values.shape[1])]
                imgui.text(f"{panel.inspection.name} {np.array2string(value, precision=5)}")


def _magnifier(texels: np.ndarray, x: int, y: int, side: float) -> None:
    """The texels as squares of `side` units; the one at (x, y) is outlined."""
    height, width = texels.shape[:2]
    corner, draw_list = imgui.get_cursor_screen_pos(), imgui.get_window_draw_list()

    def square(column: int, row: int) -> tuple[imgui.ImVec2, imgui.ImVec2]:
        return theme.corners((corner.x + column * side, corner.y + row * side, side, side))

    for row in range(height):
        for column in range(width):
            red, green, blue = (float(value) / 255 for value in texels[row, column, :3])
            draw_list.add_rect_filled(*square(column, row), theme.color_u32((red, green, blue, 1.0)))
    draw_list.add_rect(*square(x, y), theme.color_u32((1, 1, 1, 1)))
    imgui.dummy((width * side, height * side))
