"""Actions on the active panel: settings, camera, view, focus, pause, denoising, tone mapping, comparison, resolution.

Keys (app/key_bindings.py), mouse (app/mouse.py) and controls call them; results are shown as messages.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import count
from operator import methodcaller
from typing import get_args, get_type_hints

from renderer.images.denoise import check_installed as check_denoiser
from renderer.paths import ASSETS
from renderer.scene.animation import apply_edit
from renderer.scene.cameras import View
from renderer.scene.scene import ToneMapping
from renderer.scene.schema import PictureSettings, check_numbers
from renderer.system.files import read_toml
from renderer.window.controls.shortcuts import next_item
from renderer.window.controls.shortcuts import step_setting as stepped
from renderer.window.panels.comparison import Reference
from renderer.window.panels.panel import Panel
from renderer.window.panels.pixel_zoom import PixelZoom
from renderer.window.state.app_state import AppState
from renderer.window.state.layout import rows_layout


def select_panel(app: AppState, index: int) -> None:
    """Makes a panel the active one, if it exists."""
    if index < len(app.panels):
        app.panels.active = index


def edit_settings(app: AppState, settings: PictureSettings) -> None:
    """Sets the settings; settings with key frames get a key frame at the current time."""
    panel = app.panel
    with app.errors_as_messages("editing settings", ValueError):
        check_numbers(settings, panel.scene.picture)
        scene = apply_edit(panel.scene, panel.scene_time, settings)
        if scene.animation != panel.scene.animation:
            panel.paused = True  # the time of the key frame stays in view
        panel.show(scene, moved=True)


def set_view(app: AppState, view: View) -> None:
    """Sets the view; a view that the settings refuse shows a message."""
    with app.errors_as_messages("moving the view", ValueError):
        edit_settings(app, app.panel.settings().with_view(view.rounded()))


def step_setting(app: AppState, name: str, direction: int) -> None:
    """Steps a setting forwards (1) or backwards (-1)."""
    with app.errors_as_messages("stepping a setting", ValueError):
        settings = stepped(app.panel.settings(), name, direction)
        edit_settings(app, settings)
        app.show_message(f"{name.replace('_', ' ')}: {getattr(settings, name)}")


def duplicate_panel(app: AppState) -> None:
    """Opens a panel of the same scene at the same time, paused as the active one is; saving it asks for a name."""
    source, file = app.panel, app.panel.original.path
    if file.suffix == ".toml":
        used = {panel.original.path for panel in app.panels}
        names = (file.with_stem(f"{file.stem.partition(' (')[0]} ({n})") for n in count(2))
        file = next(name for name in names if name not in used and not name.exists())
    app.add_panels([replace(source.scene, path=file)], [source.base])
    if app.panel is not source:
        app.panel.file.saved, app.panel.file.original = source.file.saved, replace(source.original, path=file)
        app.panel.file.is_behind = source.file.is_behind
        app.panel.paused, app.panel.scene_time = source.paused, source.scene_time
        app.panel.in_step_with = None if source.paused else source


def toggle_julia_twin(app: AppState) -> None:
    """Opens a panel of the Julia set whose c is under the pointer over the active panel, or lets go of it."""
    panel, settings = app.panel, app.panel.settings()
    if panel.julia_twin is not None:
        panel.julia_twin = None
        app.show_message("the Julia set keeps its c")
    elif getattr(settings, "kind", "") != "mandelbrot":
        app.show_message("Julia sets are of points of a Mandelbrot set: open one, such as mandelbrot")
    else:
        view = replace(settings.view, center=(0, 0), height=3, rotation_degrees=0.0)
        julia = replace(settings, kind="julia", c=settings.view.center, c_path_radius=0.0, view=view)
        path = panel.original.path.with_name("julia_twin.toml")
        app.add_panels([replace(panel.scene, path=path, title="Julia set", settings=julia, animation=None)])
        panel.julia_twin, app.panels.active = app.panel, app.panels.index(panel)
        app.show_message("the pointer over the Mandelbrot set moves c; Alt+J lets go")


def move_julia_twin(app: AppState, panel: Panel, u: float, v: float, aspect: float) -> None:
    """Sets c of the panel's Julia set to the point at these fractions of its picture; `aspect`: width over height."""
    twin, view = panel.julia_twin, panel.settings().view
    if twin is None or twin not in app.panels or getattr(twin.scene.settings, "kind", "") != "julia":
        panel.julia_twin = None
        return
    c = view.moved(*view.turned((u - 0.5) * aspect, 0.5 - v)).center
    twin.show(replace(twin.scene, settings=replace(twin.scene.settings, c=c)), moved=True)


def reset_scene(app: AppState) -> None:
    """Resets all settings to the scene file's."""
    app.panel.show(app.panel.original)
    app.show_message("all settings reset")


def toggle_pause(app: AppState) -> None:
    """Pauses or resumes."""
    app.panel.toggle_pause()
    app.show_message("paused" if app.panel.paused else "resumed")


def toggle_denoise(app: AppState) -> None:
    """Turns denoising on or off."""
    panel = app.panel
    if not panel.can_denoise:
        app.show_message(f"a {panel.scene.picture} picture has no albedo and normal, which denoising needs")
        return
    with app.errors_as_messages("denoising"):
        check_denoiser()
        panel.draw_loop.toggle_denoise()
        app.show_message("denoising finished pictures" if panel.denoiser.enabled else "denoising off")


def adjust_exposure(app: AppState, stops: float) -> None:
    """Changes the exposure by a number of stops, to -30 to 30 EV."""
    tone = app.panel.scene.tone
    ev = round(min(max(tone.ev + stops, -30.0), 30.0), 2)
    _set_tone(app, replace(tone, ev=ev), f"exposure {ev:+.1f} EV")


def cycle_tone(app: AppState, name: str) -> None:
    """Sets a tone mapping setting to its next choice."""
    tone = app.panel.scene.tone
    choice = next_item(get_args(get_type_hints(ToneMapping)[name]), getattr(tone, name))
    _set_tone(app, replace(tone, **{name: choice}), f"{name} {choice}")


def _set_tone(app: AppState, tone: ToneMapping, message: str) -> None:
    app.panel.show(replace(app.panel.scene, tone=tone))
    app.show_message(message)


def set_reference(app: AppState) -> None:
    """Keeps the displayed picture as the reference of comparisons."""
    if app.panel.display.frame is not None:
        panel = app.panel
        label = f"kept picture, {panel.draw_loop.displayed_samples} samples"
        panel.comparison.keep(panel.display, panel.scene.tone, label)
        app.show_message("kept as reference; W compares")


def compare_with_next(app: AppState) -> None:
    """Makes another panel the reference: first one of the same kind and size, each further time the one after it."""
    panel, order = app.panel, [*app.panels[app.panels.active + 1 :], *app.panels[: app.panels.active]]
    order.sort(key=lambda other: (other.scene.picture != panel.scene.picture, _shown_size(other) != _shown_size(panel)))
    titles = [app.panels.title(other) for other in order]
    if order:
        label = panel.comparison.label
        index = (titles.index(label) + 1) % len(titles) if label in titles else 0
        panel.comparison.set_source(partial(_displayed, order[index]), titles[index])
        another = "; Shift+S takes another panel" if len(order) > 1 else ""
        app.show_message(f"reference: {titles[index]}; W changes the comparison{another}")


def _displayed(panel: Panel) -> Reference:
    """The picture that a panel displays now."""
    display = panel.display
    return Reference(display.texture, display.frame, display.version, panel.scene.tone)


def _shown_size(panel: Panel) -> tuple[int, int] | None:
    texture = panel.display.texture
    return None if texture is None else texture.size


def compare(app: AppState) -> None:
    """Switches to the next mode of comparison; without a reference another panel becomes it."""
    comparison, taken = app.panel.comparison, ""
    if comparison.reference() is None:
        compare_with_next(app)
        taken = f" with {comparison.label}" + "; Shift+S takes another panel" * (len(app.panels) > 2)
    if comparison.reference() is None:
        app.show_message("nothing to compare with: S keeps the displayed picture")
    else:
        app.show_message(f"compare: {comparison.cycle(app.panel.display.texture)}{taken}")


def measure(app: AppState) -> None:
    """Measures the picture against the reference; a message and "Look closely" show the result."""
    app.panel.inspection.opens_controls = True
    app.panel.comparison.report = app.show_message
    app.panel.measure()


def focus(app: AppState, u: float, v: float) -> None:
    """Focuses on the surface at these fractions of the panel's width and height."""
    app.input.picking.is_on = False
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
            edit_settings(app, replace(settings, focus_distance=distance))
            app.show_message(f"focus distance {distance:.4g}{sharp}")


def pick_focus(app: AppState) -> None:
    """Lets the next click pick the focus; if called again, focuses on the center."""
    if app.input.picking:
        focus(app, 0.5, 0.5)
    else:
        app.input.picking.is_on = True
        app.show_message("click on what to focus on, or press Ctrl+F again for the center")


def move_view(app: AppState, move: Callable[[View], View]) -> None:
    """Replaces the view by move(view); does nothing if the picture has no view."""
    view = app.panel.settings().view
    if view is not None:
        set_view(app, move(view))


def apply_view(app: AppState, method: str, *values: float) -> None:
    """Moves the view by one of its methods: drag, pan or scroll."""
    move_view(app, methodcaller(method, *values))


def reset_view(app: AppState) -> None:
    """Resets the view to the scene file's view."""
    original = app.panel.original.settings.view
    if original is not None and type(original) is type(app.panel.settings().view):
        set_view(app, original)


def cycle_view(app: AppState, direction: int) -> None:
    """Shows the next (1) or the previous (-1) view of the active panel's picture."""
    app.show_message(f"view: {app.panel.inspection.cycle(app.panel.picture, direction)}")


def reset_zoom(app: AppState) -> None:
    """Shows the complete picture, without magnification."""
    app.panel.zoom = PixelZoom()


def move_step(app: AppState, direction: int) -> None:
    """Shows the next (1) or the previous (-1) step of the active panel's algorithm."""
    app.show_message(app.panel.inspection.move_step(direction))


SCHEDULES = read_toml(ASSETS / "tables" / "schedules.toml")  # settings of the ray tracer, by title of the panel


def compare_schedules(app: AppState) -> None:
    """Opens a panel for each schedule of ended rays, which draws again and again to show its milliseconds."""
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
    added = list(range(before, len(app.panels)))
    half = -(-len(added) // 2)
    rows = list(range(before)), added[:half], added[half:]  # the added panels have one size
    app.panels.layout = rows_layout([row for row in rows if row])
    for panel in app.panels[before:]:
        panel.free_run = True


PATH_SAMPLES = 8  # samples of a pixel whose rays are drawn


def show_paths(app: AppState, u: float, v: float) -> None:
    """Draws the rays of the pixel at these fractions of the active panel's picture over it; none for the sky.

    A panel that shows a view of one pixel shows it of this pixel instead.
    """
    panel = app.panel
    if panel.picture is None or panel.display.frame is None:
        return
    panel.inspection.look_at(panel.picture, u, v)
    if panel.inspection.name in panel.picture.pixel_views:
        return
    app.work.start(partial(_show_paths, app, panel, u, v))


def _show_paths(app: AppState, panel: Panel, u: float, v: float) -> None:
    """Traces the paths of the pixel at (u, v), fractions of the picture, for drawing over the picture."""
    with app.errors_as_messages("tracing the paths of a pixel"):
        panel.draw_loop.wait_idle()
        if panel.picture is None or panel.display.frame is None:
            return
        size = panel.display.frame.size
        x, y = (min(max(int(fraction * n), 0), n - 1) for fraction, n in zip((u, v), size, strict=True))
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
