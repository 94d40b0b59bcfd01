"""The editor of a ray traced scene in one panel, as the main window uses it."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from renderer.window.controls import theme
from renderer.window.controls.shortcuts import Action
from renderer.window.controls.theme import Rect
from renderer.window.controls.toolkit import imgui
from renderer.window.document import commands, items, picking, pose
from renderer.window.document.document import Document
from renderer.window.document.items import Item
from renderer.window.panels.panel import Panel
from renderer.window.panels.panel_editor import PanelEditor
from renderer.window.scene_editor import gizmo, model_menus, outliner
from renderer.window.state import documents
from renderer.window.state.app_state import AppState
from renderer.window.state.setting_actions import control_context

GROUP = "Scene"  # of the help
EDGES = [(a, b) for a in range(8) for b in range(a + 1, 8) if (a ^ b) in (1, 2, 4)]  # of a box, by corner bits
CLICK_DISTANCE = 4.0  # units between press and release of a click, at scale 1


class SceneEditor(PanelEditor):
    """The items of one panel's scene: list, properties, gizmo."""

    def __init__(self, app: AppState, panel: Panel, fonts: theme.Fonts, scale: float):
        self.app, self.panel, self.fonts, self.scale = app, panel, fonts, scale
        self.operation = "move"
        self.renaming: Item | None = None  # whose name is typed in the list
        self.name = ""
        self.scrolled_to: Item | None = None  # that the list shows
        self._was_hot = self._hot_when_drawn = False
        self._posed: tuple[Any, Any, pose.Pose | None] | None = None  # a value, the view's target, the value's pose
        self._own_actions = self._make_actions()

    @property
    def document(self) -> Document:
        """The panel's document."""
        return self.panel.document

    @property
    def selected(self) -> Item | None:
        """The selected item."""
        return self.document.selected

    @property
    def settings(self) -> Any:
        """The settings at the scene time."""
        return self.panel.settings()

    # Over the picture

    def wants_mouse(self) -> bool:
        """Whether the gizmo takes the mouse, so that the panel does not."""
        return self._was_hot and self._pose() is not None and gizmo.is_hot(self._hot_when_drawn)

    def mouse(self, rect: Rect) -> bool:
        """Selects what a click of the left button is on; the panel's other uses of the mouse go on."""
        io = imgui.get_io()
        delta = imgui.get_mouse_drag_delta(0, 0.0)
        is_click = imgui.is_mouse_released(0) and abs(delta.x) + abs(delta.y) <= CLICK_DISTANCE * self.scale
        if not (imgui.is_item_deactivated() and is_click) or io.key_ctrl or io.key_shift or self.app.picking:
            return False
        x, y, width, height = rect
        self.select_at((io.mouse_pos.x - x) / width, (io.mouse_pos.y - y) / height, width / height)
        return False

    def select_at(self, u: float, v: float, aspect: float) -> None:
        """Selects what is seen at fractions (u, v) of the picture's width and height; nothing where nothing is."""
        if not gizmo.can_draw(self.settings):
            return
        with self.app.errors_as_messages("selecting", ValueError):
            self.panel.selection = picking.pick(self.settings, u, v, aspect)

    def _pose(self) -> pose.Pose | None:
        item = self.selected
        if item is None or not gizmo.can_draw(self.settings):
            return None
        settings = self.settings
        value, target = items.value_of(settings, item), settings.view.target
        if self._posed is None or self._posed[0] is not value or self._posed[1] != target:
            held = pose.pose_of(value, np.array(target)) if pose.can_move(value) else None
            self._posed = value, target, held
        return self._posed[2]

    def draw(self, rect: Rect) -> None:
        """Draws point lights, the box of the selected item and its gizmo over the picture."""
        settings, item = self.settings, self.selected
        self._was_hot = False
        if not gizmo.can_draw(settings) or rect[2] < 8 or rect[3] < 8:
            return
        self._draw_lights(settings, rect)
        place = self._pose()
        if item is None or place is None:
            return
        self._draw_box(settings, item, rect)
        value = items.value_of(settings, item)
        has_place = bool({"position", "center", "corners"} & set(vars(value)))
        allowed = {"move": has_place, "rotate": pose.can_rotate(value), "scale": pose.can_scale(value)}
        operation = self.operation if allowed[self.operation] else next((o for o, on in allowed.items() if on), "")
        if not operation:
            return
        self._was_hot = True
        moved = gizmo.draw(settings, place, operation, imgui.get_io().key_ctrl, rect, self.scale)
        self._hot_when_drawn = gizmo.is_hot(False)
        if moved is not None:
            with self.app.errors_as_messages("moving an item", ValueError):
                self.put_value(item, pose.with_pose(value, moved))

    def put_value(self, item: Item, value: Any) -> None:
        """Replaces the value of an item at the scene time: what has key frames gets one."""
        values = list(getattr(self.settings, item.group))
        values[item.index] = value
        self.app.edit_settings(replace(self.settings, **{item.group: tuple(values)}))

    def _draw_lights(self, settings: Any, rect: Rect) -> None:
        if not settings.point_lights:
            return
        draw, low_high = imgui.get_window_draw_list(), theme.corners(rect)
        draw.push_clip_rect(*low_high, True)
        for x, y in gizmo.project(settings, np.array([light.position for light in settings.point_lights]), rect):
            if np.isfinite(x) and np.isfinite(y) and abs(x) < 1e5 and abs(y) < 1e5:
                draw.add_circle_filled((x, y), 4 * self.scale, theme.color_u32((1.0, 0.85, 0.45, 0.9)))
                draw.add_circle((x, y), 8 * self.scale, theme.color_u32((1.0, 0.85, 0.45, 0.7)), 0, 1.5 * self.scale)
        draw.pop_clip_rect()

    def _draw_box(self, settings: Any, item: Item, rect: Rect) -> None:
        """The box of the selected item, and its name."""
        draw = imgui.get_window_draw_list()
        draw.push_clip_rect(*theme.corners(rect), True)
        box = picking.bounds(settings, item)
        if box is not None:
            low, high, matrix = box
            corners = np.array([[(low, high)[bits >> k & 1][k] for k in range(3)] for bits in range(8)])
            points = gizmo.project(settings, corners @ matrix[:, :3].T + matrix[:, 3], rect)
            seen = np.isfinite(points).all(1) & (np.abs(points) < 1e5).all(1)
            ends, color = [tuple(point) for point in points.tolist()], theme.color_u32(theme.ACCENT, 0.75)
            for a, b in EDGES:
                if seen[a] and seen[b]:
                    draw.add_line(ends[a], ends[b], color, 1.2 * self.scale)
        size, pad = theme.FONT_SIZE * self.scale, 8 * self.scale
        x, y, _, _ = rect
        theme.shadow_text(draw, self.fonts.text, size, x + pad, y + pad, theme.ACCENT, self.document.label(item))
        draw.pop_clip_rect()

    def overlay(self) -> bool:
        """Draws nothing over the window."""
        return False

    # Beside the picture

    def controls(self) -> None:
        """Draws the menus of models, the list of items, and the properties of the selected one."""
        model_menus.draw(self.app, self.panel)
        outliner.draw(self)

    def hidden_settings(self) -> list[str]:
        """The settings that the list shows."""
        return list(items.groups(self.panel.scene.settings))

    def edit_item(self, item: Item) -> None:
        """Draws the controls of an item's settings."""
        hidden = [f"{item.group}[{item.index}].name"]  # which renaming sets
        outliner.properties(self, item, control_context(self.app, self.panel, hidden))

    # Keys

    def actions(self) -> list[Action]:
        """The editor's actions, for keys, help and palette."""
        return self._own_actions

    def _make_actions(self) -> list[Action]:
        out = [
            Action("Shift+A", "add to the scene", GROUP, lambda app: setattr(app, "adding", True)),
            Action("Delete", "delete the selected item", GROUP, documents.delete_selected),
            Action("Ctrl+Shift+D", "duplicate the selected item", GROUP, documents.duplicate_selected),
            Action("F2", "rename the selected item", GROUP, lambda app: self.start_renaming()),
            Action("Shift+Escape", "select nothing", GROUP, lambda app: documents.select(app, None)),
        ]
        keys = {"move": "Alt+G", "rotate": "Alt+R", "scale": "Alt+S"}
        return out + [Action(k, f"{o} by gizmo", GROUP, partial(self._set_operation, o)) for o, k in keys.items()]

    def _set_operation(self, operation: str, app: AppState) -> None:
        self.operation = operation
        app.show_message(f"the gizmo of the selected item: {operation}")

    def start_renaming(self, item: Item | None = None) -> None:
        """Types the name of an item, the selected one."""
        self.renaming = item or self.selected
        if self.renaming is None:
            self.app.show_message("nothing is selected")
            return
        self.panel.selection, self.app.sidebar = self.renaming, True
        self.name = self.document.label(self.renaming)

    def rename(self, item: Item, name: str) -> None:
        """Renames an item and its uses."""
        documents.run_command(self.app, lambda document: commands.rename(document, item, name), self.panel)
