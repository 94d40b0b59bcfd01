"""Overlays over a panel's picture: marks and legend of its view, rays of a clicked pixel, pixels at the pointer.

PanelView calls draw() each frame; mouse.py calls draw_pixel_inspector() while the pointer is over the picture.
"""

import numpy as np

from renderer.gpu.gl import Texture
from renderer.images.algorithm_view import Legend, Mark
from renderer.images.inspection import COLOR_TABLE, LEVELS
from renderer.raytracing.kernels import launch_params
from renderer.raytracing.path_trace import Ray, project
from renderer.window.controls import imgui, imgui_ctx, theme
from renderer.window.panels.panel import Panel

LEGEND_SIZE = (180.0, 10.0)  # width and height of the legend's bar, in units at scale 1
LEGEND_COLORS = 64  # rectangles of one color each
LEGEND_INTERVALS = 4  # between the legend's numbers
MIN_SIZE = (300.0, 140.0)  # units at scale 1: smaller pictures show no legend
PROJECTIONS = ("perspective", "orthographic")  # projections that keep rays straight in the picture
RAY_COLORS = {"light": (1.0, 0.9, 0.3, 0.9), "blocked": (0.95, 0.25, 0.2, 0.7), "escaped": (0.5, 0.75, 1.0, 0.6)}
DEPTH_COLORS = ((1.0, 1.0, 1.0, 0.95), (0.45, 0.95, 0.6, 0.9), (0.35, 0.8, 0.95, 0.85), (0.75, 0.55, 1.0, 0.8))
WHITE = (1.0, 1.0, 1.0, 1.0)
INSPECTOR_RADIUS = 4  # magnified pixels to each side of the pointer


def draw(panel: Panel, rect: theme.Rect, bottom: float, fonts: theme.Fonts, scale: float) -> None:
    """Draws the clicked pixel's rays, the view's marks and, above `bottom`, its legend over the picture in `rect`."""
    _draw_rays(panel, rect, scale)
    shown = panel.inspection.shown
    if shown is None:
        return
    for mark in shown.marks:
        _mark(panel, mark, rect, fonts, scale)
    has_room = rect[2] >= MIN_SIZE[0] * scale and rect[3] >= MIN_SIZE[1] * scale
    if shown.legend is not None and has_room:
        _legend(shown.legend, rect[0] + rect[2], bottom, fonts, scale)


def _mark(panel: Panel, mark: Mark, rect: theme.Rect, fonts: theme.Fonts, scale: float) -> None:
    """Draws a point of an algorithm, with its text, where it lies in the magnified picture."""
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


def _legend(legend: Legend, right: float, bottom: float, fonts: theme.Fonts, scale: float) -> None:
    """The scale of colors in the lower right corner, with numbers below it: pictures of algorithms begin at the top."""
    draw_list, size = imgui.get_window_draw_list(), theme.FONT_SIZE * scale * theme.SMALL
    width, height, pad = LEGEND_SIZE[0] * scale, LEGEND_SIZE[1] * scale, 10 * scale
    texts = [_short_number(legend.value(tick / LEGEND_INTERVALS)) for tick in range(LEGEND_INTERVALS + 1)]
    below = height + size * (2.5 if legend.unit else 1.4)
    left, top = right - width - 4 * pad, bottom - below - pad
    low, high = (left - 3 * pad, top - pad / 2), (left + width + 3 * pad, top + below)
    draw_list.add_rect_filled(low, high, theme.color_u32(theme.PLATE), 4 * scale)
    for bar in range(LEGEND_COLORS):
        # an entry is a packed color of Dear ImGui, a byte for each channel
        color = int(COLOR_TABLE[bar * (LEVELS - 1) // (LEGEND_COLORS - 1)])
        x, step = left + width * bar / LEGEND_COLORS, width / LEGEND_COLORS
        draw_list.add_rect_filled((x, top), (x + step + 0.5, top + height), color)
    for tick, text in enumerate(texts):
        x = left + width * tick / LEGEND_INTERVALS
        length = imgui.calc_text_size(text).x * theme.SMALL
        draw_list.add_text(fonts.text, size, (x - length / 2, top + height + 1), theme.color_u32(theme.TEXT), text)
    if legend.unit:
        at = (left, top + height + size * 1.1)
        draw_list.add_text(fonts.text, size, at, theme.color_u32(theme.DIM), legend.unit.strip())


def _short_number(value: float) -> str:
    """A number of a legend in few letters."""
    if value and not 1e-3 <= abs(value) < 1e5:
        return f"{value:.1e}"
    return f"{value:.0f}" if float(value).is_integer() or abs(value) >= 100 else f"{value:.3g}"


def _draw_rays(panel: Panel, rect: theme.Rect, scale: float) -> None:
    """Draws the rays of the clicked pixel as the panel's camera sees them now."""
    rays, settings = panel.inspection.rays, panel.settings()
    if not rays or getattr(settings, "projection", "") not in PROJECTIONS:
        return
    # the camera of a picture as large as `rect`
    params = launch_params(settings, (rect[2], rect[3]), (0, 0, rect[2], rect[3]))
    ends = np.array([(ray.start, ray.end) for ray in rays]).reshape(-1, 3)
    # points: fractions of the width and height; in_front: whether they lie in front of the camera
    points, in_front = project(params, ends, settings.projection == "orthographic")
    points, in_front = points.reshape(-1, 2, 2), in_front.reshape(-1, 2)
    draw_list = imgui.get_window_draw_list()
    for ray, line, seen in zip(rays, points, in_front, strict=True):
        if not seen.all() or np.abs(line).max() > 50:  # in widths and heights of the picture
            continue
        (x1, y1), (x2, y2) = ((panel.zoom.panel_point(*point)) for point in line.tolist())
        a, b = ((rect[0] + x * rect[2], rect[1] + y * rect[3]) for x, y in ((x1, y1), (x2, y2)))
        draw_list.add_line(a, b, theme.color_u32(ray_color(ray)), 1.5 * scale)
        if ray.kind == "path":
            draw_list.add_circle_filled(b, 3 * scale, theme.color_u32(ray_color(ray)))


def ray_color(ray: Ray) -> theme.Color:
    """The color of a ray: by its kind if it ended, otherwise by its depth."""
    return RAY_COLORS.get(ray.kind) or DEPTH_COLORS[min(ray.depth, len(DEPTH_COLORS) - 1)]


def region(texture: Texture, x: int, y: int, radius: int = INSPECTOR_RADIUS) -> np.ndarray:
    """The texels within `radius` of (x, y), (height, width, components), clipped at the edges."""
    left, top = max(x - radius, 0), max(y - radius, 0)
    right, bottom = min(x + radius + 1, texture.size[0]), min(y + radius + 1, texture.size[1])
    return texture.read_region(left, top, right - left, bottom - top)


def pixel_lines(linear: np.ndarray, displayed: np.ndarray) -> list[str]:
    """The lines of text for one pixel: linear and displayed RGBA, and a warning for NaN and infinity."""
    names = ("R", "G", "B", "A")
    lines = [f"{name} {value:12.6g} {shown:6d}" for name, value, shown in zip(names, linear, displayed, strict=True)]
    if np.isnan(linear).any():
        lines.append("not a number")
    if np.isinf(linear).any():
        lines.append("infinite")
    return lines


def reference_lines(panel: Panel, u: float, v: float) -> list[str]:
    """The lines of text for the reference's pixel at these fractions of width and height, while it is compared."""
    comparison, shown = panel.comparison, []
    textures = {"sRGB": comparison.reference(), "linear": comparison.source().linear}
    for name, texture in textures.items():
        if texture is not None and comparison.mode != "off":
            pixel = texture.read_region(int(u * texture.size[0]), int(v * texture.size[1]), 1, 1)[0, 0]
            shown.append(f"{comparison.label}: {name} {' '.join(f'{value:.6g}' for value in pixel)}")
    if not shown or panel.scene.tone.exposure == "manual":
        return shown
    shared = "one exposure: the displayed picture's" if comparison.shared else "the exposures differ"
    return [*shown, shared]


def draw_pixel_inspector(panel: Panel, rect: theme.Rect, fonts: theme.Fonts, scale: float) -> None:
    """Draws a tooltip: the pixels around the pointer, magnified, and the values of the pixel under the pointer."""
    left, top, width, height = rect
    frame = panel.display.frame
    pointer, displayed = imgui.get_io().mouse_pos, panel.display.texture
    u, v = panel.zoom.picture_point((pointer.x - left) / width, (pointer.y - top) / height)
    if frame is None or displayed is None or not (0 <= u < 1 and 0 <= v < 1) or imgui.get_io().want_text_input:
        return
    x, y = int(u * displayed.size[0]), int(v * displayed.size[1])
    padding = imgui_ctx.push_style_var(imgui.StyleVar_.window_padding, (10 * scale, 8 * scale))
    with padding, imgui_ctx.begin_tooltip():
        _magnifier(region(displayed, x, y), min(x, INSPECTOR_RADIUS), min(y, INSPECTOR_RADIUS), 11 * scale)
        with imgui_ctx.push_font(fonts.numbers, theme.FONT_SIZE):
            imgui.text_disabled(f"x {x}  y {y}")
            imgui.text_disabled(f"  {'linear':>12} {'sRGB':>6}")
            for line in pixel_lines(frame.read_region(x, y, 1, 1)[0, 0], displayed.read_region(x, y, 1, 1)[0, 0]):
                imgui.text(line)
            for line in reference_lines(panel, u, v):
                imgui.text(line)
            if (values := panel.inspection.values) is not None:
                value = values[int(v * values.shape[0]), int(u * values.shape[1])]
                imgui.text(f"{panel.inspection.name} {np.array2string(value, precision=5)}")


def _magnifier(texels: np.ndarray, x: int, y: int, side: float) -> None:
    """The texels as squares of `side` units; the one at (x, y) is outlined."""
    corner, draw_list = imgui.get_cursor_screen_pos(), imgui.get_window_draw_list()
    for (row, column), color in zip(np.ndindex(texels.shape[:2]), texels.reshape(-1, 4) / 255, strict=True):
        square = theme.corners((corner.x + column * side, corner.y + row * side, side, side))
        draw_list.add_rect_filled(*square, theme.color_u32((*color[:3].tolist(), 1.0)))
    draw_list.add_rect(*theme.corners((corner.x + x * side, corner.y + y * side, side, side)), theme.color_u32(WHITE))
    imgui.dummy((texels.shape[1] * side, texels.shape[0] * side))
