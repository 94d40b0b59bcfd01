"""What the mouse does over a panel: it moves the view, picks what is to be in focus, and works the panel's editor."""

from renderer.window.app.state import Studio
from renderer.window.controls import theme
from renderer.window.controls.toolkit import imgui
from renderer.window.panels import pixel_inspector, view_actions

FLYING = {
    imgui.Key.w: (0, 0, 1), imgui.Key.s: (0, 0, -1), imgui.Key.a: (-1, 0, 0), imgui.Key.d: (1, 0, 0),
    imgui.Key.q: (0, -1, 0), imgui.Key.e: (0, 1, 0),
}  # fmt: skip


def work(studio: Studio, index: int, rectangle, editor_of, fonts: theme.Fonts, scale: float) -> None:
    """Left drags orbit, Shift or the middle button pans, the wheel zooms, the right button with WASDQE flies.

    `editor_of()` is the editor of the active panel, or None.
    """
    x, y, width, height = rectangle
    io = imgui.get_io()
    imgui.set_cursor_screen_pos(imgui.ImVec2(x, y))
    buttons = imgui.ButtonFlags_
    flags = buttons.mouse_button_left | buttons.mouse_button_right | buttons.mouse_button_middle
    imgui.invisible_button(f"panel {index}", imgui.ImVec2(width, height), flags)
    if imgui.is_item_activated():
        studio.active = index
    if imgui.is_item_hovered():
        studio.panels[index].comparison.wipe = min(max((io.mouse_pos.x - x) / width, 0.0), 1.0)
        if studio.inspector:
            pixel_inspector.draw(studio.panels[index], rectangle, fonts, scale)
    editor = editor_of() if index == studio.active else None
    if editor and editor.mouse(rectangle):
        return
    if imgui.is_item_hovered() and imgui.is_mouse_double_clicked(0):
        studio.active = index
        studio.toggle("solo")
    if imgui.is_item_deactivated() and _stayed() and (io.key_ctrl or studio.picking):
        view_actions.focus(studio, (io.mouse_pos.x - x) / width, (io.mouse_pos.y - y) / height)
        return
    view = studio.panels[index].settings().view
    moved = view if view is None else _moved(view, rectangle)
    if moved != view:
        studio.active = index
        studio.set_view(moved)


def _moved(view, rectangle):
    """The view after what the mouse did in this frame to the button that was drawn last.

    A view with click(x, y), in panel heights from the centre, is told where the left button went down and up.
    """
    x, y, width, height = rectangle
    io, moved = imgui.get_io(), view
    dx, dy = io.mouse_delta.x / height, io.mouse_delta.y / height
    held = imgui.is_item_active() or imgui.is_item_deactivated()  # a slow frame may see the last move and the release
    if held and (dx or dy):
        left, middle = (imgui.is_mouse_down(b) or imgui.is_mouse_released(b) for b in (0, 2))
        moved = moved.pan(dx, dy) if middle or io.key_shift else moved.drag(dx, dy) if left else moved
    if imgui.is_item_active() and imgui.is_mouse_down(1):
        moved = _flown(moved, dx, dy, io.delta_time)
    px, py = (io.mouse_pos.x - x - width / 2) / height, (io.mouse_pos.y - y - height / 2) / height
    if view.can_click and imgui.is_item_deactivated() and _stayed():
        moved = moved.click(px, py)
    if imgui.is_item_hovered() and io.mouse_wheel:
        moved = moved.scroll(io.mouse_wheel, px, py)
    return moved


def _stayed() -> bool:
    """Whether the left button, let go in this frame, is where it was pressed: a click, not a drag."""
    way = imgui.get_mouse_drag_delta(0)
    return imgui.is_mouse_released(0) and way.x == way.y == 0


def _flown(view, dx: float, dy: float, seconds: float):
    """The view after this frame's flight: W A S D Q E move, the mouse turns; a view that cannot fly is dragged."""
    if not view.can_fly:
        return view.drag(dx, dy) if dx or dy else view
    step = [sum(axis[k] for key, axis in FLYING.items() if imgui.is_key_down(key)) for k in range(3)]
    if any(step):
        view = view.fly(*(1.2 * seconds * part for part in step))
    return view.look_around(dx, dy) if dx or dy else view
