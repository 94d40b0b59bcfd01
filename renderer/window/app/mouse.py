"""Mouse input over a panel: moves the view, picks the focus, and drives the panel's editor.

MainWindow calls handle_mouse() for each displayed panel in each frame.
"""

from collections.abc import Callable
from operator import methodcaller
from typing import Any

from renderer.scene.cameras import View
from renderer.window.controls import imgui, theme
from renderer.window.panels import picture_overlays
from renderer.window.panels.panel import Panel
from renderer.window.state import AppState, open_files, panel_actions

FLY_KEYS = {  # the step along the camera's right, up and forward axes
    imgui.Key.w: (0, 0, 1), imgui.Key.s: (0, 0, -1), imgui.Key.a: (-1, 0, 0), imgui.Key.d: (1, 0, 0),
    imgui.Key.q: (0, -1, 0), imgui.Key.e: (0, 1, 0),
}  # fmt: skip
Buttons = imgui.ButtonFlags_
ALL_BUTTONS = Buttons.mouse_button_left | Buttons.mouse_button_right | Buttons.mouse_button_middle
UseEditor = Callable[[Panel, Callable], Any]  # MainWindow.edit()
CLICK_RADIUS = 4.0  # units at scale 1 that the pointer may move between press and release of a click
MAX_INPUT = 50.0  # wheel steps or panel heights in a frame; larger input could overflow the view's numbers
FLY_SPEED = 1.2  # view distances per second


def handle_mouse(
    app: AppState, index: int, rect: theme.Rect, edit: UseEditor, fonts: theme.Fonts, scale: float
) -> None:
    """Handles the mouse over panel `index`, whose picture lies in `rect`; a press makes it the active panel.

    Left drag orbits, Shift or the middle button pans, the wheel zooms, the right button with W A S D Q E flies.
    `edit(panel, use)` is MainWindow.edit(): use(editor of the panel), or None without an editor.
    """
    x, y, width, height = rect
    io = imgui.get_io()
    # PanelEditor.wants_mouse() comes before the panel's button, mouse() after it; both are true if they use the input.
    if index == app.panels.active and edit(app.panel, methodcaller("wants_mouse")):
        return
    imgui.set_cursor_screen_pos((x, y))
    imgui.invisible_button(f"panel {index}", (width, height), ALL_BUTTONS)
    if imgui.is_item_activated():
        app.panels.active = index
    is_used = imgui.is_item_hovered() or imgui.is_item_active() or imgui.is_item_deactivated()
    if not is_used and index != app.panels.active:
        return
    moved_by, is_click = _drag_of_item(CLICK_RADIUS * scale)
    panel = app.panels[index]
    pointer = (io.mouse_pos.x - x) / width, (io.mouse_pos.y - y) / height  # in fractions of the panel's picture area
    u, v = panel.zoom.picture_point(*pointer)
    if imgui.is_item_hovered():
        # The reference picture of a comparison covers the panel to the right of the pointer.
        panel.comparison.wipe = min(max(pointer[0], 0.0), 1.0)
        if panel.julia_twin is not None:  # another panel, which shows the Julia set of the point under the pointer
            panel_actions.move_julia_twin(app, panel, u, v, width / height)
        if app.overlays.inspector:
            picture_overlays.draw_pixel_inspector(panel, rect, fonts, scale)
    if index == app.panels.active and edit(app.panel, methodcaller("mouse", rect)):
        return
    if not is_used:
        return
    if imgui.is_item_hovered() and imgui.is_mouse_double_clicked(0):
        app.panels.active = index
        app.panels.maximized.toggle()
    if is_click and (io.key_ctrl or app.input.picking):
        panel_actions.focus(app, u, v)
        return
    if is_click and io.key_alt:
        app.panels.active = index
        panel_actions.show_paths(app, u, v)
        return
    if is_click and open_files.open_scene_at(app, index, u, v):
        return
    if _zoom_pixels(panel, pointer, (moved_by[0] / width, moved_by[1] / height)):
        return
    view = app.panels[index].settings().view
    if view is not None and (moved := _moved_view(view, rect, moved_by, is_click)) != view:
        app.panels.active = index
        panel_actions.set_view(app, moved)


def _drag_of_item(radius: float) -> tuple[tuple[float, float], bool]:
    """Returns this frame's drag of the last Dear ImGui item in window units, and true if the frame ends a click.

    A press whose pointer stays within `radius` units is a click. Once the pointer leaves the radius, the press is a
    drag, which includes the motion since the press. Motion before the press does not count.
    """
    storage, item = imgui.get_state_storage(), imgui.get_item_id()  # for the item: true once the press is a drag
    if imgui.is_item_activated():
        storage.set_bool(item, False)
        return (0.0, 0.0), False
    if not (imgui.is_item_active() or imgui.is_item_deactivated()):
        return (0.0, 0.0), False
    io = imgui.get_io()
    delta = io.mouse_delta
    if not storage.get_bool(item):
        buttons = [b for b in range(3) if imgui.is_mouse_down(b) or imgui.is_mouse_released(b)]
        delta = imgui.get_mouse_drag_delta(buttons[0] if buttons else 0, 0.0)
        if delta.x**2 + delta.y**2 <= radius**2:
            return (0.0, 0.0), imgui.is_item_deactivated() and imgui.is_mouse_released(0)
        storage.set_bool(item, True)
    return (delta.x, delta.y), False


def _zoom_pixels(panel: Panel, pointer: tuple[float, float], drag: tuple[float, float]) -> bool:
    """Ctrl with the wheel magnifies pixels, Ctrl with a drag pans them; returns true if Ctrl used the input."""
    io = imgui.get_io()
    if not io.key_ctrl:
        return False
    if imgui.is_item_hovered() and io.mouse_wheel:
        panel.zoom = panel.zoom.zoomed(_bounded(io.mouse_wheel), *pointer)
        return True
    panel.zoom = panel.zoom.panned(*(_bounded(fraction) for fraction in drag)) if panel.zoom.is_on else panel.zoom
    return panel.zoom.is_on


def _moved_view(view: View, rect: theme.Rect, moved_by: tuple[float, float], is_click: bool) -> View:
    """The view after this frame's mouse input to the last Dear ImGui item; drags and clicks are in panel heights."""
    x, y, width, height = rect
    io = imgui.get_io()
    dx, dy = (_bounded(moved / height) for moved in moved_by)
    if dx or dy:  # a slow frame may get the last move and the release
        left, middle = (imgui.is_mouse_down(b) or imgui.is_mouse_released(b) for b in (0, 2))
        view = view.pan(dx, dy) if middle or io.key_shift else view.drag(dx, dy) if left else view
    if imgui.is_item_active() and imgui.is_mouse_down(1):
        view = _fly(view, dx, dy, io.delta_time)
    px, py = _bounded((io.mouse_pos.x - x - width / 2) / height), _bounded((io.mouse_pos.y - y - height / 2) / height)
    if view.can_click and is_click:
        view = view.click(px, py)
    if imgui.is_item_hovered() and io.mouse_wheel:
        view = view.scroll(_bounded(io.mouse_wheel), px, py)
    return view


def _bounded(value: float) -> float:
    return min(max(value, -MAX_INPUT), MAX_INPUT)


def _fly(view: View, dx: float, dy: float, seconds: float) -> View:
    """The view after this frame's flight: keys move it, the mouse turns it; a view that cannot fly is dragged."""
    if not view.can_fly:
        return view.drag(dx, dy) if dx or dy else view
    step = [sum(axis[k] for key, axis in FLY_KEYS.items() if imgui.is_key_down(key)) for k in range(3)]
    if any(step):
        view = view.fly(*(FLY_SPEED * seconds * n for n in step))
    return view.look_around(dx, dy) if dx or dy else view
