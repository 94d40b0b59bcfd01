"""The editor of a ray traced scene in one panel: the list of items, the selected item's properties, and its gizmo.

MainWindow calls the methods of PanelEditor; picking.py finds clicked items, gizmo.py draws the gizmo.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from renderer.raytracing.settings import Settings
from renderer.scene.cameras import to_point
from renderer.window.controls import imgui, imgui_ctx, theme
from renderer.window.controls.settings import edit_settings
from renderer.window.controls.shortcuts import Action, action_buttons, read_actions
from renderer.window.document import Item, items, picking, pose
from renderer.window.panels.panel import Panel, PanelEditor
from renderer.window.panels.panel_scene import SceneFile
from renderer.window.scene_editor import gizmo, material_ball, stand_in
from renderer.window.scene_editor.outliner import Outliner, draw_models, draw_presets, draw_properties
from renderer.window.state import AppState, edit_actions, panel_actions
from renderer.window.state.edit_actions import control_context

UPRIGHT = (0.0, 1.0, 0.0)  # the camera's up
OPERATIONS = {"move": "Alt+G", "rotate": "Alt+R", "scale": "Alt+S"}  # operation of the gizmo -> its key
# Pairs of the corners of picking.box_corners()
EDGES = [(a, b) for a in range(8) for b in range(a + 1, 8) if (a ^ b) in (1, 2, 4)]
CLICK_DISTANCE = 4.0  # units between press and release of a click, at scale 1


class SceneEditor(PanelEditor):
    """The items of one panel's scene: list, properties, gizmo."""

    def __init__(self, app: AppState, panel: Panel, fonts: theme.Fonts, scale: float):
        self.app, self.panel, self.fonts, self.scale = app, panel, fonts, scale
        self.operation = "move"
        self._grid: tuple[SceneFile, bool] | None = None  # the file of the panel, and whether the grid is shown
        self.outliner = Outliner(app, panel, fonts, scale)
        self._gizmo_is_drawn = self._hot_when_drawn = False  # hot: under the pointer, or dragged
        # The cached result of _pose(): an item's value and the view's target, where an item that has a direction but no
        # place stands, and the pose that follows from both.
        self._posed: tuple[Any, Any, pose.Pose | None] | None = None
        self._own_actions = read_actions("scene_keys.toml", [edit_actions], self)

    @property
    def selected(self) -> Item | None:
        """The selected item."""
        return self.panel.document.selected

    @property
    def settings(self) -> Settings:
        """The settings at the scene time."""
        return self.panel.settings()

    @property
    def shows_grid(self) -> bool:
        """True if the ground's grid is drawn: in a new scene, saved or not, until the user or another file hides it."""
        panel = self.panel
        if self._grid is None or self._grid[0] is not panel.file:
            self._grid = panel.file, panel.file.path is None and panel.original.path.suffix == ".toml"
        return self._grid[1]

    # Over the picture

    def wants_mouse(self) -> bool:
        """True if the mouse is over the gizmo or drags it; the panel then ignores the mouse."""
        return self._gizmo_is_drawn and self._pose() is not None and gizmo.is_hot(self._hot_when_drawn)

    def mouse(self, rect: theme.Rect) -> bool:
        """Selects the item under a left click. Returns False always: the panel may use the same click too."""
        io = imgui.get_io()
        delta = imgui.get_mouse_drag_delta(0, 0.0)
        is_click = imgui.is_mouse_released(0) and abs(delta.x) + abs(delta.y) <= CLICK_DISTANCE * self.scale
        if not (imgui.is_item_deactivated() and is_click) or io.key_ctrl or io.key_shift or self.app.input.picking:
            return False
        x, y, width, height = rect
        self.select_at((io.mouse_pos.x - x) / width, (io.mouse_pos.y - y) / height, width / height)
        return False

    def select_at(self, u: float, v: float, aspect: float) -> None:
        """Selects the item, with its group, at fractions (u, v) of the picture's width and height, or nothing."""
        if not gizmo.can_draw(self.settings):
            return
        with self.app.errors_as_messages("selecting", ValueError):
            self.panel.select(picking.pick(self.settings, u, v, aspect), imgui.get_io().key_alt)

    def _pose(self) -> pose.Pose | None:
        """The pose of the selected item; None if nothing is selected or the item can be neither moved nor rotated."""
        item = self.selected
        if item is None or not gizmo.can_draw(self.settings):
            return None
        settings = self.settings
        value, target = items.item_value(settings, item), settings.view.target
        if self._posed is None or self._posed[0] is not value or self._posed[1] != target:
            posed = pose.item_pose(value, np.array(target)) if {"move", "rotate"} & {*pose.operations(value)} else None
            self._posed = value, target, posed
        return self._posed[2]

    def draw(self, rect: theme.Rect) -> None:
        """Draws lights, box and gizmo of the selected item, and shapes that the picture does not show yet."""
        settings, item = self.settings, self.selected
        self._gizmo_is_drawn = False
        if not gizmo.can_draw(settings) or rect[2] < 8 or rect[3] < 8:
            return
        if self.shows_grid:
            gizmo.draw_grid(settings, rect, self.scale)
        self._draw_lights(settings, rect)
        current, panel = self._pose(), self.panel
        if panel.work.is_waiting:
            stand_in.draw(settings, panel.draw_loop.displayed_settings, rect)
        if item is None or current is None:
            return
        self._draw_boxes(settings, item, rect)
        value = items.item_value(settings, item)
        allowed = pose.operations(value)
        operation = self.operation if self.operation in allowed else allowed[0]
        self._gizmo_is_drawn = True
        moved = gizmo.draw(settings, current, operation, imgui.get_io().key_ctrl, rect, self.scale)
        self._hot_when_drawn = gizmo.is_hot(False)
        if moved is not None:
            self._move_chosen(moved @ np.linalg.inv(current), {item: pose.with_pose(value, moved)})

    def _move_chosen(self, motion: pose.Pose, values: dict[Item, object]) -> None:
        """Replaces the value of the selected item, and moves the others that are selected with it."""
        target = np.array(self.settings.view.target)
        for other in self.panel.chosen - values.keys():
            value = items.item_value(self.settings, other)
            if "move" in pose.operations(value):
                values[other] = pose.with_pose(value, motion @ pose.item_pose(value, target))
        self.put_values(values)

    def put_values(self, new: dict[Item, object]) -> None:
        """Replaces the values of items, or says why the scene refuses them; animated settings get a key frame here."""
        changes: dict[str, Any] = {group: list(getattr(self.settings, group)) for group in {i.group for i in new}}
        for item, value in new.items():
            changes[item.group][item.index] = value
        changes = {group: tuple(values) for group, values in changes.items()}
        with self.app.errors_as_messages("editing an item", ValueError):
            panel_actions.edit_settings(self.app, replace(self.settings, **changes))

    def _draw_lights(self, settings: Settings, rect: theme.Rect) -> None:
        """A mark for each point light; project() gives NaN for a light behind the camera."""
        if not settings.point_lights:
            return
        draw = imgui.get_window_draw_list()
        for x, y in gizmo.project(settings, np.array([light.position for light in settings.point_lights]), rect):
            if np.isfinite(x):
                draw.add_circle_filled((x, y), 4 * self.scale, theme.color_u32((1.0, 0.85, 0.45, 0.9)))
                draw.add_circle((x, y), 8 * self.scale, theme.color_u32((1.0, 0.85, 0.45, 0.7)), 0, 1.5 * self.scale)

    def _draw_boxes(self, settings: Settings, item: Item, rect: theme.Rect) -> None:
        """The boxes of the selected items, and the name of the last, which has the gizmo."""
        draw, chosen = imgui.get_window_draw_list(), self.panel.chosen
        for box in filter(None, (picking.bounds(settings, each) for each in chosen)):
            points = gizmo.project(settings, picking.box_corners(*box), rect)
            seen = np.isfinite(points).all(1)
            ends, color = [tuple(point) for point in points.tolist()], theme.color_u32(theme.ACCENT, 0.75)
            for a, b in EDGES:
                if seen[a] and seen[b]:
                    draw.add_line(ends[a], ends[b], color, 1.2 * self.scale)
        size, pad = theme.FONT_SIZE * self.scale, 8 * self.scale
        x, y, width, _ = rect
        more = f", and {len(chosen) - 1} more" if len(chosen) > 1 else ""
        name = theme.cut(f"{self.panel.document.label(item)}{more}", width - 2 * pad)
        theme.caption(draw, self.fonts.text, size, x + pad, y + pad, name)

    # Beside the picture

    def controls(self) -> None:
        """Draws the menus of models, the list of items with the selected one's properties, and its material."""
        draw_models(self.app, self.panel)
        if imgui.collapsing_header("Object", imgui.TreeNodeFlags_.default_open):
            self._object()
        if imgui.collapsing_header("Material", imgui.TreeNodeFlags_.default_open):
            if item := items.material_of(self.settings, self.selected):
                material_ball.draw(self.app, self.panel, item.index, self.scale)
                imgui.same_line()
                with imgui_ctx.begin_group():
                    draw_presets(self.app, self.panel, item)
                self._properties(item)
            else:
                imgui.text_disabled("none: select a shape or a material")

    def _object(self) -> None:
        """The list of items with its buttons, and the properties of the selected one, or of a table of the world."""
        actions = self._own_actions
        action_buttons(self.app.run, actions, {"Add...": "Shift+A"})
        imgui.begin_disabled(self.selected is None)
        imgui.same_line(0, theme.UNIT * self.scale)
        action_buttons(self.app.run, actions, {"Duplicate": "Ctrl+Shift+D", "Delete": "Delete", "Rename": "F2"})
        imgui.end_disabled()
        for number, operation in enumerate(OPERATIONS):
            if number:
                imgui.same_line(0, 4 * theme.UNIT * self.scale)
            if imgui.radio_button(operation, self.operation == operation):
                self.operation = operation
            theme.hint(f"gizmo in the picture: {OPERATIONS[operation]}; hold Ctrl for steps")
        self.outliner.draw_list()
        item, table = self.selected, self.outliner.table
        if item is not None and item.group != "materials":
            self._properties(item)
        elif item is None and table:
            value, original = getattr(self.settings, table), getattr(self.panel.original.settings, table)
            edited = edit_settings(value, original, control_context(self.app, self.panel), table)
            if edited != value:
                with self.app.errors_as_messages(f"editing the {table}", ValueError):
                    panel_actions.edit_settings(self.app, replace(self.settings, **{table: edited}))

    def _properties(self, item: Item) -> None:
        """The controls of an item, without its name, which is typed in the list."""
        hidden = [f"{item.group}[{item.index}].name"]
        with imgui_ctx.push_id(f"{item.group} {item.index}"):
            edited = draw_properties(self.panel, item, control_context(self.app, self.panel, hidden), self.fonts)
        if edited != items.item_value(self.settings, item):
            self.put_values({item: edited})

    def hidden_settings(self) -> list[str]:
        """The settings that the list shows."""
        return list(items.groups(self.panel.scene.settings))

    # Keys

    def actions(self) -> list[Action]:
        """The editor's actions, for keys, help and palette."""
        return self._own_actions

    def toggle_grid(self) -> None:
        """Shows or hides the ground's grid and the axes."""
        self._grid = self.panel.file, not self.shows_grid

    def set_operation(self, operation: str) -> None:
        """Sets what the gizmo does."""
        self.operation = operation
        self.app.show_message(f"the gizmo of the selected item: {operation}")

    def select_nothing(self) -> None:
        """Selects no item."""
        self.panel.selection = None

    def look_from(self, x: float, y: float, z: float) -> None:
        """Moves the camera to the side (x, y, z) of its target, as far from it as before."""
        view = self.settings.view
        offset = np.multiply((x, y, z), math.dist(view.position, view.target))
        panel_actions.set_view(self.app, replace(view, position=to_point(view.target + offset), up=UPRIGHT))

    def look_at_selected(self) -> None:
        """Makes the selected item the camera's target, and its box about as high as the picture."""
        settings, item = self.settings, self.selected
        box = picking.bounds(settings, item) if item is not None else None
        if box is None:
            self.app.show_message("select a shape to look at")
            return
        points, view = picking.box_corners(*box), settings.view
        center, offset = points.mean(0), np.subtract(view.position, view.target)
        distance = np.linalg.norm(np.ptp(points, 0)) / math.tan(math.radians(view.fov_degrees) / 2) / 2
        position = to_point(center + offset * max(distance, 1e-6) / np.linalg.norm(offset))
        panel_actions.set_view(self.app, replace(view, position=position, target=to_point(center)))

    def toggle_orthographic(self) -> None:
        """Switches between the perspective and the orthographic projection."""
        is_orthographic = self.settings.projection == "orthographic"
        step = replace(self.settings, projection="perspective" if is_orthographic else "orthographic")
        panel_actions.edit_settings(self.app, step)
