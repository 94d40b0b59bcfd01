"""The mouse over a panel: it moves the view, picks the focus, and works the panel's editor."""

from collections.abc import Callable
from operator import methodcaller
from typing import Any

from renderer.window.controls import theme
from renderer.window.controls.theme import Rect
from renderer.window.controls.toolkit import imgui
from renderer.window.panels import pixel_inspector
from renderer.window.panels.panel import Panel
from renderer.window.state import open_files, view_actions
from renderer.window.state.app_state import AppState

FLY_KEYS = {  # the step along the camera's right, up and forward axes
    imgui.Key.w: (0, 0, 1), imgui.Key.s: (0, 0, -1), imgui.Key.a: (-1, 0, 0), imgui.Key.d: (1, 0, 0),
    imgui.Key.q: (0, -1, 0), imgui.Key.e: (0, 1, 0),
}  # fmt: skip
ALL_BUTTONS = (
    imgui.ButtonFlags_.mouse_button_left
    | imgui.ButtonFlags_.mouse_button_right
    | imgui.ButtonFlags_.mouse_button_middle
)
CLICK_RADIUS = 4.0  # units at scale 1 that the pointer may move between press and release of a click
MAX_INPUT = 50.0  # steps of the wheel, or panel heights, in a frame; more could leave the range of numbers
FLY_SPEED = 1.2  # view distances per second


def handle_mouse(
    app: AppState, index: int, rect: Rect, edit: Callable[[Panel, Callable], Any], fonts: theme.Fonts, scale: float
) -> None:
    """Left drag orbits, Shift or the middle button pans, the wheel zooms, the right button with W A S D Q E flies.

    `edit(panel, use)` is use(editor of the panel), or None without an editor; a press may change the active panel.
    """
    x, y, width, height = rect
    io = imgui.get_io()
    if index == app.active and edit(app.panel, methodcaller("wants_mouse")):
        return
    imgui.set_cursor_screen_pos((x, y))
    imgui.invisible_button(f"panel {index}", (width, height), ALL_BUTTONS)
    if imgui.is_item_activated():
        app.active = index
    is_used = imgui.is_item_hovered() or imgui.is_item_active() or imgui.is_item_deactivated()
    if not is_used and index != app.active:
        return
    moved_by, is_click = _drag(CLICK_RADIUS * scale)
    panel = app.panels[index]
    at = (io.mouse_pos.x - x) / width, (io.mouse_pos.y - y) / height
    u, v = panel.zoom.picture_point(*at)
    if imgui.is_item_hovered():
        panel.comparison.wipe = min(max(at[0], 0.0), 1.0)
        if app.inspector:
            pixel_inspector.draw(app.panels[index], rect, fonts, scale)
    if index == app.active and edit(app.panel, methodcaller("mouse", rect)):
        return
    if not is_used:
        return
    if imgui.is_item_hovered() and imgui.is_mouse_double_clicked(0):
        app.active = index
        app.toggle("solo")
    if is_click and (io.key_ctrl or app.picking):
        view_actions.focus(app, u, v)
        return
    if is_click and io.key_alt:
        app.active = index
        view_actions.show_paths(app, u, v)
        return
    if is_click and open_files.open_scene_at(app, index, u, v):
        return
    if _zoom_pixels(panel, at, (moved_by[0] / width, moved_by[1] / height)):
        return
    view = app.panels[index].settings().view
    moved = view if view is None else _moved_view(view, rect, moved_by, is_click)
    if moved != view:
        app.active = index
        app.set_view(moved)


def _drag(radius: float) -> tuple[tuple[float, float], bool]:
    """By how much this frame drags the last button, in units, and whether it ends a click.

    The pointer's way to where the button is pressed is no drag. A press that stays within `radius` is a click; one that
    leaves it is a drag from where it began.
    """
    storage, item = imgui.get_state_storage(), imgui.get_item_id()
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


def _zoom_pixels(panel: Panel, at: tuple[float, float], drag: tuple[float, float]) -> bool:
    """Ctrl with the wheel magnifies pixels, Ctrl with a drag moves over them; whether this frame did."""
    io = imgui.get_io()
    if not io.key_ctrl:
        return False
    if imgui.is_item_hovered() and io.mouse_wheel:
        panel.zoom = panel.zoom.zoomed(_bounded(io.mouse_wheel), *at)
        return True
    panel.zoom = panel.zoom.panned(*(_bounded(way) for way in drag)) if panel.zoom.is_on else panel.zoom
    return panel.zoom.is_on


def _moved_view(view, rect: Rect, moved_by: tuple[float, float], is_click: bool):
    """The view after this frame's mouse input to the last button. Drags and clicks are in panel heights."""
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


def _fly(view, dx: float, dy: float, seconds: float):
    """The view after this frame's flight: keys move it, the mouse turns it; a view that cannot fly is dragged."""
    if not view.can_fly:
        return view.drag(dx, dy) if dx or dy else view
    step = [sum(axis[k] for key, axis in FLY_KEYS.items() if imgui.is_key_down(key)) for k in range(3)]
    if any(step):
        view = view.fly(*(FLY_SPEED * seconds * n for n in step))
    return view.look_around(dx, dy) if dx or dy else view
