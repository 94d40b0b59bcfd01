"""Actions on the active panel's view: move it, and pick what is in focus."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from renderer.window.controls.step import next_item
from renderer.window.panels.panel import Panel
from renderer.window.panels.pixel_zoom import PixelZoom
from renderer.window.state.app_state import AppState
from renderer.window.state.layout import rows_layout


def focus(app: AppState, u: float, v: float) -> None:
    """Focuses on what is displayed at these fractions of the panel's width and height."""
    app.picking = False
    if not app.panel.can_pick:
        app.show_message(f"a {app.panel.scene.picture} picture has nothing to focus on")
        return
    app.work.start(partial(_focus, app, app.panel, u, v))


def _focus(app: AppState, panel: Panel, u: float, v: float) -> None:
    """Focuses, unless another panel is active when kernels have been compiled."""
    with app.errors_as_messages("focusing", ValueError):
        distance, settings = panel.pick(u, v), panel.settings()
        if panel is not app.panel:
            return
        if distance is None:
            app.show_message("nothing is there")
        elif settings.focus_distance is None:
            app.show_message(f"distance {distance:.4g}")
        else:
            sharp = "" if settings.lens_radius != 0 else "; all is sharp while lens radius is 0"
            app.edit_settings(replace(settings, focus_distance=distance))
            app.show_message(f"focus distance {distance:.4g}{sharp}")


def pick_focus(app: AppState) -> None:
    """Lets the next click pick the focus; if called again, focuses on the center."""
    if app.picking:
        focus(app, 0.5, 0.5)
    else:
        app.picking = True
        app.show_message("click on what to focus on, or press Ctrl+F again for the center")


def move_view(app: AppState, move: Callable[[Any], Any]) -> None:
    """Replaces the view by move(view); does nothing if the picture has no view."""
    view = app.panel.settings().view
    if view is not None:
        app.set_view(move(view))


def reset_view(app: AppState) -> None:
    """Resets the view to the scene file's."""
    original = app.panel.original.settings.view
    if original is not None and type(original) is type(app.panel.settings().view):
        app.set_view(original)


def cycle_view(app: AppState, direction: int) -> None:
    """Shows the next (1) or the previous (-1) view of the active panel's picture."""
    app.show_message(f"view: {app.panel.inspection.cycle(app.panel, direction)}")


def reset_zoom(app: AppState) -> None:
    """Shows the whole picture."""
    app.panel.zoom = PixelZoom()


def move_step(app: AppState, direction: int) -> None:
    """Shows the next (1) or the previous (-1) step of the active panel's algorithm."""
    app.show_message(app.panel.inspection.move_step(direction))


SCHEDULES = {  # what is compared, by title
    "stencil of bits": {"schedule": "wavefront", "stencil": "bits"},
    "a flag (int) a ray": {"schedule": "wavefront", "stencil": "flags"},
    "compaction": {"schedule": "wavefront", "stencil": "compact"},
    "no test of ended rays": {"schedule": "wavefront", "stencil": "off"},
    "megakernel": {"schedule": "megakernel", "stencil": "bits"},
    "regeneration": {"schedule": "regenerate", "stencil": "bits"},
}


def compare_schedules(app: AppState) -> None:
    """Opens a panel for each way of treating ended rays, each drawn again and again for its cost."""
    scene = app.panel.scene
    if scene.picture != "raytrace":
        app.show_message(f"a {scene.picture} picture has no schedules of rays to compare")
        return
    scenes = [
        replace(scene, title=f"{title}: {scene.title}", settings=replace(scene.settings, **values))
        for title, values in SCHEDULES.items()
    ]
    before = len(app.panels)
    app.add_panels(scenes)
    ways = list(range(before, len(app.panels)))
    half = -(-len(ways) // 2)
    app.layout = rows_layout([row for row in (list(range(before)), ways[:half], ways[half:]) if row])  # of one size
    for panel in app.panels[before:]:
        panel.free_run = True


PATH_SAMPLES = 8  # whose rays are shown


def show_paths(app: AppState, u: float, v: float) -> None:
    """Draws the rays of the pixel at these fractions of the active panel's picture over it; none for the sky.

    A view of one pixel takes it instead.
    """
    panel = app.panel
    if panel.picture is None or panel.frame is None:
        return
    panel.inspection.look_at(panel, u, v)
    if panel.inspection.name in panel.picture.pixel_views:
        return
    app.work.start(partial(_show_paths, app, panel, u, v))


def _show_paths(app: AppState, panel: Panel, u: float, v: float) -> None:
    with app.errors_as_messages("tracing the paths of a pixel"):
        panel.wait_idle()
        if panel.picture is None or panel.frame is None:
            return
        size = panel.frame.size
        x, y = (min(max(int(at * n), 0), n - 1) for at, n in zip((u, v), size, strict=True))
        rays = panel.picture.trace_paths(panel.settings(), size, x, y, PATH_SAMPLES)
        panel.inspection.rays = rays if any(ray.kind == "path" for ray in rays) else []
        paths = f"{PATH_SAMPLES} paths of pixel {x}, {y}: {len(rays)} rays"
        app.show_message(paths if panel.inspection.rays else "no ray of this pixel hits anything")


def toggle_free_run(app: AppState) -> None:
    """Renders continuously, to measure the frame rate, or stops when finished."""
    app.panel.free_run = not app.panel.free_run
    app.show_message("renders continuously" if app.panel.free_run else "stops when finished")


def cycle_resolution(app: AppState) -> None:
    """Switches between automatic, full, half and quarter resolution."""
    names, budget = {0: "automatic", 1: "full", 2: "half", 4: "quarter"}, app.panel.budget
    budget.fixed_divisor = next_item(list(names), budget.fixed_divisor)
    app.show_message(f"resolution {names[budget.fixed_divisor]}")
