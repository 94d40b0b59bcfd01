"""The tracks of the timeline: a row for each setting with key frames, which are selected, dragged, copied and eased.

Edits of key frames are functions of renderer/scene/animation.py.
"""

from renderer.scene import animation as keyframes
from renderer.scene.animation import EASE, INTERPOLATIONS, Curve, Key, KeyName, Track, eased, settings_at
from renderer.scene.scene import Scene
from renderer.window.controls import imgui, imgui_ctx, theme
from renderer.window.state.app_state import AppState
from renderer.window.timeline.actions import FRAMES_PER_SECOND

ROW_HEIGHT = 22.0  # at scale 1
MAX_ROWS = 7  # rows that are shown without scrolling
KEYFRAME_SIZE = 5.0  # half the width of a diamond, at scale 1
CURVE_SIZE = 150.0  # side of the curve's square, at scale 1
PRESETS: dict[str, Curve] = {  # by name in the menu: (x1, y1, x2, y2), the inner points of a cubic Bezier curve
    "ease": EASE, "ease in": (0.42, 0.0, 1.0, 1.0), "ease out": (0.0, 0.0, 0.58, 1.0), "sharp": (0.8, 0.0, 0.2, 1.0),
}  # fmt: skip


def draw_diamond(draw: imgui.ImDrawList, x: float, y: float, size: float, is_active: bool) -> None:
    """Draws the diamond of a key frame, which is 2 `size` wide, about (x, y)."""
    corners = (x, y - size), (x + size, y), (x, y + size), (x - size, y)
    draw.add_quad_filled(*corners, theme.color_u32(theme.ACCENT if is_active else theme.TEXT))


class Tracks:
    """The rows of tracks, with the selected, dragged and copied key frames."""

    def __init__(self, app: AppState):
        self.app = app
        self.chosen: frozenset[KeyName] = frozenset()  # the selected key frames: (path of the setting, time)
        self.copied: tuple[tuple[str, Key], ...] = ()  # path and key of each copied key frame
        # Scene, keys and x of the pointer where the drag began
        self._held: tuple[Scene, frozenset[KeyName], float] | None = None
        self._corner = -1  # index of the dragged point of the curve

    def height(self, scale: float) -> float:
        """The height of the rows of the active panel's tracks."""
        animation = self.app.panel.scene.animation
        count = len(animation.tracks) if animation else 0
        return min(max(count, 1), MAX_ROWS) * ROW_HEIGHT * scale + 12 * scale

    def draw(self, left: float, width: float, scale: float) -> None:
        """Draws the rows in the current Dear ImGui window; their lines lie below the timeline's, from `left`."""
        scene = self.app.panel.scene
        self.chosen &= frozenset(keyframes.key_names(scene.animation))
        if imgui.is_window_hovered(imgui.HoveredFlags_.root_and_child_windows):
            self._keys()
        with imgui_ctx.begin_child("tracks", (0, 0)):
            if scene.animation is None or not scene.animation.tracks:
                imgui.text_disabled("no key frames: Ctrl+K inserts one; so does a right click on the name of a setting")
                return
            for number, track in enumerate(scene.animation.tracks):
                with imgui_ctx.push_id(number):
                    self._row(track, scene.animation.duration, left, width, scale)

    def _keys(self) -> None:
        """The keys that work while the pointer is over the rows."""
        io = imgui.get_io()
        if io.want_text_input:
            return
        if io.key_ctrl and imgui.is_key_pressed(imgui.Key.c, False):
            self.copy()
        elif io.key_ctrl and imgui.is_key_pressed(imgui.Key.v, False):
            self.paste()
        elif imgui.is_key_pressed(imgui.Key.backspace, False):
            self.delete()

    # Edits

    def _edit(self, doing: str, scene: Scene) -> None:
        """Shows the edited scene as a step of undo, unless its settings at the scene time are refused."""
        with self.app.errors_as_messages(doing, ValueError):
            settings_at(scene, self.app.panel.scene_time)  # raises ValueError for values that the settings refuse
            with self.app.undo_step():
                self.app.panel.show(scene)

    def copy(self) -> None:
        """Copies the chosen key frames."""
        self.copied = keyframes.copy_keys(self.app.panel.scene, self.chosen)
        self.app.show_message(f"{len(self.copied)} key frames copied" if self.copied else "no key frame is selected")

    def paste(self) -> None:
        """Inserts the copied key frames at the scene time."""
        with self.app.errors_as_messages("pasting key frames"):
            scene, names = keyframes.paste_keys(self.app.panel.scene, self.app.panel.scene_time, self.copied)
            if names:
                self._edit("pasting key frames", scene)
                self.chosen = names

    def delete(self) -> None:
        """Deletes the chosen key frames."""
        if self.chosen:
            self._edit("deleting key frames", keyframes.delete_keys(self.app.panel.scene, self.chosen))
            self.chosen = frozenset()

    def ease(self, interpolation: str, curve: Curve = EASE) -> None:
        """Sets the interpolation that begins at each chosen key frame."""
        self._edit("easing", keyframes.ease_keys(self.app.panel.scene, self.chosen, interpolation, curve))

    # Rows

    def _row(self, track: Track, duration: float, left: float, width: float, scale: float) -> None:
        """The row of a track: its path, its key frames as diamonds, their curves and the present time."""
        draw, start = imgui.get_window_draw_list(), imgui.get_cursor_screen_pos()
        height, duration = ROW_HEIGHT * scale, max(duration, 1e-2)
        draw.push_clip_rect((start.x, start.y), (left - 6 * scale, start.y + height), True)
        draw.add_text((start.x, start.y + 2 * scale), theme.color_u32(theme.DIM), track.path)
        draw.pop_clip_rect()
        imgui.set_cursor_screen_pos((left - KEYFRAME_SIZE * scale, start.y))
        flags = imgui.ButtonFlags_.mouse_button_left | imgui.ButtonFlags_.mouse_button_right
        imgui.invisible_button("row", (width + 2 * KEYFRAME_SIZE * scale, height), flags)
        if not imgui.is_item_visible():
            return
        positions = [left + min(key.time / duration, 1.0) * width for key in track.keys]
        self._mouse(track, positions, duration / width, scale)
        middle = start.y + height / 2
        color = theme.color_u32(theme.COLORS["frame_bg_active"])
        draw.add_rect_filled((left, middle - scale), (left + width, middle + scale), color)
        self._draw_curves(track, positions, start.y, height)
        now = left + min(self.app.panel.scene_time / duration, 1.0) * width
        draw.add_line((now, start.y), (now, start.y + height), theme.color_u32(theme.ACCENT, 0.6), 1.5 * scale)
        size = KEYFRAME_SIZE * scale
        for key, x in zip(track.keys, positions, strict=True):
            draw_diamond(draw, x, middle, size, is_active=(track.path, key.time) in self.chosen)
        self._menu(scale)

    def _draw_curves(self, track: Track, positions: list[float], top: float, height: float) -> None:
        """Draws the interpolation between key frames where a curve eases the value or the value is held."""
        draw = imgui.get_window_draw_list()
        color = theme.color_u32(theme.ACCENT, 0.55)
        # A line falls or rises between 0.85 and 0.15 of the row's height
        for key, x, end in zip(track.keys, positions, positions[1:], strict=False):
            if key.interpolation == "curve" and end - x > 8:
                heights = [eased(key.curve, k / 12) for k in range(13)]
                line = [(x + (end - x) * k / 12, top + height * (0.85 - 0.7 * h)) for k, h in enumerate(heights)]
                for a, b in zip(line, line[1:], strict=False):
                    draw.add_line(a, b, color, 1.0)
            elif key.interpolation == "hold":
                draw.add_line((x, top + height * 0.85), (end, top + height * 0.85), color, 1.0)

    def _mouse(self, track: Track, positions: list[float], seconds_per_unit: float, scale: float) -> None:
        """Selects, drags and opens the menu of the key frame under the pointer.

        `positions` are the x of the track's key frames. A drag moves all chosen key frames by whole frames, with Alt by
        any time. The scene at the press is moved anew in each frame, so that key frames which a drag passes over stay.
        """
        io = imgui.get_io()
        reach = 1.6 * KEYFRAME_SIZE * scale
        near = [key for key, x in zip(track.keys, positions, strict=True) if abs(io.mouse_pos.x - x) <= reach]
        if imgui.is_item_activated() and imgui.is_mouse_down(0) or imgui.is_item_clicked(1):
            name = (track.path, near[0].time) if near else None
            several = io.key_ctrl or io.key_shift
            if name is None:
                self.chosen = self.chosen if several else frozenset()
            elif several:
                self.chosen ^= {name}
            elif name not in self.chosen:
                self.chosen = frozenset({name})
            if name is not None and imgui.is_mouse_down(0):
                self._held = self.app.panel.scene, self.chosen, io.mouse_pos.x
            if imgui.is_item_clicked(1) and name is not None:
                imgui.open_popup("easing")
        if imgui.is_item_active() and self._held is not None:
            scene, chosen, start = self._held
            seconds = (io.mouse_pos.x - start) * seconds_per_unit
            if not io.key_alt and chosen:
                first = min(time for _, time in chosen)
                seconds = round((first + seconds) * FRAMES_PER_SECOND) / FRAMES_PER_SECOND - first
            # A click that trembles moves nothing; once moved, the keys also follow back to the start
            if abs(io.mouse_pos.x - start) > 2 * scale or self.app.panel.scene is not scene:
                moved, self.chosen = keyframes.move_keys(scene, chosen, seconds)
                self.app.panel.show(moved, moved=True)
        elif not imgui.is_mouse_down(0):
            self._held = None

    def _menu(self, scale: float) -> None:
        """The menu of the chosen key frames: copy, delete, interpolation, curve."""
        if not imgui.begin_popup("easing"):
            return
        imgui.text_disabled(f"{len(self.chosen)} key frames")
        if imgui.menu_item_simple("Copy", "Ctrl+C"):
            self.copy()
        if imgui.menu_item_simple("Paste at the scene time", "Ctrl+V", False, bool(self.copied)):
            self.paste()
        if imgui.menu_item_simple("Delete", "Backspace"):
            self.delete()
        imgui.separator()
        key = self._first_key()
        for name in INTERPOLATIONS[:-1]:  # the last, "curve", has the menu below
            if imgui.menu_item_simple(name.capitalize(), "", key is not None and key.interpolation == name):
                self.ease(name)
        if imgui.begin_menu("Curve"):
            for name, curve in PRESETS.items():
                if imgui.menu_item_simple(name.capitalize()):
                    self.ease("curve", curve)
            imgui.separator()
            self._curve_editor(key.curve if key is not None else EASE, scale)
            imgui.end_menu()
        imgui.end_popup()

    def _first_key(self) -> Key | None:
        animation = self.app.panel.scene.animation
        tracks = animation.tracks if animation else ()
        return next((key for t in tracks for key in t.keys if (t.path, key.time) in self.chosen), None)

    def _curve_editor(self, curve: Curve, scale: float) -> None:
        """The curve in a square; its two inner points are dragged."""
        side, corner, draw = CURVE_SIZE * scale, imgui.get_cursor_screen_pos(), imgui.get_window_draw_list()
        imgui.invisible_button("curve", (side, side))
        low, high = (corner.x, corner.y), (corner.x + side, corner.y + side)
        points = [(corner.x + curve[k] * side, corner.y + (1 - curve[k + 1]) * side) for k in (0, 2)]
        mouse = imgui.get_mouse_pos()
        if imgui.is_item_activated():
            distances = [(mouse.x - x) ** 2 + (mouse.y - y) ** 2 for x, y in points]
            self._corner = distances.index(min(distances))
        if imgui.is_item_active() and self._corner >= 0:
            x = round(min(max((mouse.x - corner.x) / side, 0.0), 1.0), 3)
            y = round(min(max(1 - (mouse.y - corner.y) / side, 0.0), 1.0), 3)
            new: Curve = (x, y, *curve[2:]) if self._corner == 0 else (*curve[:2], x, y)  # type: ignore[assignment]
            if new != curve:
                self.app.panel.show(keyframes.ease_keys(self.app.panel.scene, self.chosen, "curve", new), moved=True)
                curve = new
        draw.add_rect_filled(low, high, theme.color_u32(theme.COLORS["frame_bg"]), 3 * scale)
        for start, end in (((low[0], high[1]), points[0]), ((high[0], low[1]), points[1])):
            draw.add_line(start, end, theme.color_u32(theme.DIM), scale)
            draw.add_circle_filled(end, 5 * scale, theme.color_u32(theme.ACCENT))
        line = [(corner.x + side * k / 32, corner.y + side * (1 - eased(curve, k / 32))) for k in range(33)]
        for a, b in zip(line, line[1:], strict=False):
            draw.add_line(a, b, theme.color_u32(theme.TEXT), 1.5 * scale)
