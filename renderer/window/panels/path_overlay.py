"""The paths of a clicked pixel, drawn as lines over the picture."""

import numpy as np

from renderer.raytracing.kernels import launch_params
from renderer.raytracing.path_trace import Ray, project
from renderer.window.controls import theme
from renderer.window.controls.theme import Rect
from renderer.window.controls.toolkit import imgui
from renderer.window.panels.panel import Panel

PROJECTIONS = ("perspective", "orthographic")  # whose rays are straight lines of the picture
COLORS = {"light": (1.0, 0.9, 0.3, 0.9), "blocked": (0.95, 0.25, 0.2, 0.7), "escaped": (0.5, 0.75, 1.0, 0.6)}
DEPTH_COLORS = ((1.0, 1.0, 1.0, 0.95), (0.45, 0.95, 0.6, 0.9), (0.35, 0.8, 0.95, 0.85), (0.75, 0.55, 1.0, 0.8))


def draw(panel: Panel, rect: Rect, scale: float) -> None:
    """Draws the rays of the panel's inspection, as its camera sees them now, over the picture in `rect`."""
    rays, settings = panel.inspection.rays, panel.settings()
    if not rays or getattr(settings, "projection", "") not in PROJECTIONS:
        return
    params = launch_params(settings, (rect[2], rect[3]), (0, 0, rect[2], rect[3]))
    ends = np.array([(ray.start, ray.end) for ray in rays]).reshape(-1, 3)
    points, before = project(params, ends, settings.projection == "orthographic")
    points, before = points.reshape(-1, 2, 2), before.reshape(-1, 2)
    draw_list = imgui.get_window_draw_list()
    for ray, line, seen in zip(rays, points, before, strict=True):
        if not seen.all() or np.abs(line).max() > 50:
            continue
        (x1, y1), (x2, y2) = ((panel.zoom.panel_point(*point)) for point in line.tolist())
        a, b = ((rect[0] + x * rect[2], rect[1] + y * rect[3]) for x, y in ((x1, y1), (x2, y2)))
        draw_list.add_line(a, b, theme.color_u32(color_of(ray)), 1.5 * scale)
        if ray.kind == "path":
            draw_list.add_circle_filled(b, 3 * scale, theme.color_u32(color_of(ray)))


def color_of(ray: Ray) -> theme.Color:
    """The color of a ray: by its depth, or of what became of it."""
    return COLORS.get(ray.kind) or DEPTH_COLORS[min(ray.depth, len(DEPTH_COLORS) - 1)]
