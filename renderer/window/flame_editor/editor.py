"""The flame editor: triangles over the picture, controls beside it, keys. Edits are functions of renderer/flames.

A flame is a set of xforms: affine maps, each followed by variations and a post-affine, as in flam3. The triangle of an
affine has the corners O (its translation), X and Y (its columns). If the settings have key frames, the editor edits one
of them, and pauses the panel at its time. view.py draws the triangles and controls of this editor.
"""

import os
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import numpy as np

from renderer.flames import edit, evolve, framing, palettes
from renderer.flames.animation import turning
from renderer.flames.chaos_game import ChaosGame
from renderer.flames.genome import Flame, Xform
from renderer.flames.gradient_files import SUFFIXES, read_gradients, write_gradient
from renderer.flames.settings import Settings, to_keyframe
from renderer.flames.temporal import relative_view
from renderer.scene.cameras import View2D
from renderer.scene.scene import Scene
from renderer.scene.schema import check_numbers
from renderer.window.controls import imgui, theme
from renderer.window.controls.shortcuts import Action, read_actions
from renderer.window.flame_editor import triangles
from renderer.window.panels.panel import Panel, PanelEditor
from renderer.window.state import AppState, open_files, panel_actions, save_files

NUDGE = 0.02  # fraction of the view's height that a key press moves
MAX_TRIES = 40  # random flames until one is acceptable
KEYFRAME_SECONDS = 2.0  # from one key frame to the next
PLANE_KEYS = {"B", "U", "K", "Shift+K", "J", "Shift+J", "Y", "Ctrl+E"}  # of actions that need a view of the plane
FLAME_FIELDS = [f.name for f in fields(Flame)]


class Editor(PanelEditor):
    """The editor of one panel: the selected xform, and whether triangles of affines or post-affines are displayed."""

    def __init__(self, app: AppState, panel: Panel, fonts: theme.Fonts, scale: float):
        self.app, self.panel, self.fonts, self.scale = app, panel, fonts, scale
        self.triangles, self.post = True, False  # triangles are displayed; they are post-affines', not affines'
        self.selected = 0  # index of the selected xform; `index` is this number within the present flame
        self.key = 0  # index of the edited key frame
        self.drag: triangles.Drag | None = None  # the drag of the pressed handle
        self.hovered: triangles.Drag | None = None  # the drag that a press would begin
        self.rng = np.random.default_rng(int.from_bytes(os.urandom(8), "little"))
        self.gradients: list[tuple[str, np.ndarray]] = []  # the file that was opened last: name and colors
        self.tries = 0  # random flames left to try, one a frame
        self._actions = read_actions("flame_keys.toml", [], self)
        self._game: ChaosGame | None = None  # see _short_game()

    # What is edited

    @property
    def settings(self) -> Settings:
        """The settings of the panel."""
        return self.panel.scene.settings

    @property
    def flame(self) -> Flame:
        """The current flame: the settings themselves, or the flame of the current key frame."""
        settings = self.settings
        self.key = min(self.key, max(len(settings.keyframes) - 1, 0))
        return settings.keyframes[self.key].flame if settings.keyframes else settings

    @property
    def index(self) -> int:
        """The index of the selected xform."""
        flame = self.flame
        if self.selected == edit.FINAL_XFORM and flame.final_xform is None or self.selected >= len(flame.xforms):
            self.selected = len(flame.xforms) - 1
        return self.selected

    @property
    def xform(self) -> Xform:
        """The selected xform."""
        return edit.xform_at(self.flame, self.index)

    def put(self, flame: Flame, moved: bool = True) -> None:
        """Replaces the current flame, which without key frames is the settings themselves."""
        settings = self.settings
        if settings.keyframes:
            keys = list(settings.keyframes)
            keys[self.key] = replace(keys[self.key], flame=flame)
            flame = replace(settings, keyframes=tuple(keys))
        assert isinstance(flame, Settings)
        self.show(flame, moved)

    def show(self, settings: Settings, moved: bool = True) -> None:
        """Replaces the settings of the panel; raises InputError for a number that a file could not hold."""
        check_numbers(settings, "flame")
        self.panel.show(replace(self.panel.scene, settings=settings), moved=moved)

    def change(self, edit_flame: Callable[..., Flame], *arguments: object, **options: object) -> None:
        """Replaces the flame by edit_flame(flame, ...); shows its error as a message."""
        with self.app.errors_as_messages("editing a flame", ValueError):
            self.put(edit_flame(self.flame, *arguments, **options))

    def change_xform(self, **changes: object) -> None:
        """Changes fields of the selected xform."""
        self.change(edit.with_xform, self.index, **changes)

    def resize(self, size: tuple[int, int]) -> None:
        """Sets the size of exports, of the key frames too, which keep what they show."""
        keys = (replace(k, size=size, scale=k.scale * size[1] / k.size[1]) for k in self.settings.keyframes)
        self.panel.show(replace(self.panel.scene, size=size, settings=replace(self.settings, keyframes=tuple(keys))))

    def view(self) -> View2D:
        """The view of the current flame; the view of a key frame moves with the settings' view."""
        settings = self.settings
        if not settings.keyframes:
            return settings.view
        return relative_view(settings.keyframes[self.key].view, settings.keyframes[0].view, settings.view)

    @property
    def in_plane(self) -> bool:
        """True if the view is a rectangle of the plane, as random flames, key frames and .flame files have it."""
        return isinstance(self.settings.view, View2D)

    # Over the picture

    def transform(self, rect: theme.Rect) -> triangles.WindowTransform:
        """The transform from the plane to the panel's picture in `rect`."""
        settings = self.settings
        return triangles.WindowTransform.of(self.view(), self.flame, settings.y_axis, settings.pixel_aspect, rect)

    def mouse(self, rect: theme.Rect) -> bool:
        """Handles the mouse on triangles, after the panel's button; returns true if the input is used up."""
        if not self.triangles:
            return False
        transform, pointer = self.transform(rect), imgui.get_mouse_pos()
        position = (pointer.x, pointer.y)
        if self.drag is not None:
            if imgui.is_mouse_down(0) or imgui.is_mouse_released(0):
                delta = imgui.get_mouse_drag_delta(0, 0.0)
                if delta.x or delta.y:
                    end = self.drag.end(transform, position, imgui.get_io().key_ctrl)
                    self.put(triangles.apply_drag(self.flame, self.drag, end))
            if not imgui.is_mouse_down(0):
                self.drag = None
            return True
        self.hovered = None
        if imgui.is_item_hovered():
            radius = triangles.HIT_RADIUS * self.scale
            self.hovered = triangles.hit_test(self.flame, transform, position, self.index, self.post, radius)
            if self.hovered is None and imgui.is_mouse_released(0) and not any(imgui.get_mouse_drag_delta(0)):
                found = triangles.around(self.flame, transform, position, self.post)  # as in Apophysis
                self.selected = found[0] if found else self.selected
        if self.hovered is None or imgui.get_io().key_shift:
            return False
        if imgui.is_item_activated() and imgui.is_mouse_down(0):
            self.drag, self.selected = self.hovered, self.hovered.index
            self.pin_time()
            return True
        return self.hovered.handle != triangles.INSIDE and imgui.is_mouse_double_clicked(0)

    def pin_time(self) -> None:
        """Pauses the panel at the time of the current key frame."""
        settings, panel = self.settings, self.panel
        if settings.keyframes:
            panel.scene_time, panel.paused = settings.keyframes[self.key].time, True

    # Actions on xforms

    def select(self, step: int) -> None:
        """Selects the next (1) or the previous (-1) xform."""
        indices = triangles.xform_indices(self.flame)
        self.selected = indices[(indices.index(self.index) + step) % len(indices)]
        final = self.selected == edit.FINAL_XFORM
        self.app.show_message("final xform" if final else f"xform {self.selected + 1}")

    def add(self, source: Xform | None = None) -> None:
        """Adds an xform, a copy of `source` if given, and selects it."""
        self.change(edit.add_xform, source)
        self.selected = len(self.flame.xforms) - 1

    def toggle_final(self) -> None:
        """Adds or deletes the final xform."""
        if self.flame.final_xform is None:
            self.change(edit.add_final_xform)
            self.selected = edit.FINAL_XFORM
        else:
            self.change(edit.delete_xform, edit.FINAL_XFORM)

    def nudge(self, right: float, up: float) -> None:
        """Moves the selected triangle by NUDGE to the right and up as it is displayed."""
        transform, corners = self.transform((0, 0, 1, 1)), edit.triangle(self.xform, self.post)
        x, y = transform.to_window(corners[0])  # then as a drag of corner O by NUDGE
        drag = triangles.Drag(self.index, "O", self.post, corners, corners[0])
        end = drag.end(transform, (x + NUDGE * right, y - NUDGE * up), False)
        self.change(triangles.apply_drag, drag, end)

    def rotate_scale(self, degrees: float, factor: float = 1.0) -> None:
        """Rotates and scales the selected triangle about O."""
        self.change(edit.rotate_scale, self.index, degrees, factor, self.post)

    def duplicate(self) -> None:
        """Adds a copy of the selected xform."""
        self.add(self.xform)

    def delete(self) -> None:
        """Deletes the selected xform."""
        self.change(edit.delete_xform, self.index)

    def scale_weight(self, factor: float) -> None:
        """Multiplies the weight of the selected xform."""
        weight = min(max(self.xform.weight, 0.01) * factor, 1e6)
        self.change_xform(weight=weight)
        self.app.show_message(f"weight {weight:.3g}")

    def toggle_post(self) -> None:
        """Edits post-affines, or affines again."""
        self.post, self.triangles = not self.post, True
        self.app.show_message("triangles of the post-affines" if self.post else "triangles of the affines")

    def toggle_triangles(self) -> None:
        """Shows or hides the triangles."""
        self.triangles = not self.triangles

    # Actions on the flame

    def mutate(self) -> None:
        """Changes the flame at random."""
        self.change(evolve.mutate, self.rng)

    def step_palette(self, step: int) -> None:
        """Switches to the next (1) or the previous (-1) built-in palette."""
        names, flame = palettes.builtin_names(), self.flame
        # From colors that are no built-in palette, a step in either direction leads to the first palette.
        here = names.index(flame.palette) if not flame.colors and flame.palette in names else -step
        name = names[(here + step) % len(names)]
        self.change(edit.with_palette, name)
        self.app.show_message(f"palette {name}")

    def fit(self) -> None:
        """Fits the view to the whole flame, as soon as kernels are compiled."""
        self.app.work.start(self._fit)

    def _fit(self) -> None:
        settings, flame = self.settings, self.flame
        width, height = self.app.panels.image_size(self.panel)
        with self.app.errors_as_messages("fitting the view"):
            view = framing.fit_view(self._short_game(), flame, width / height, settings.y_axis)
            if settings.keyframes:
                view = relative_view(settings.view, settings.keyframes[self.key].view, view)
            if self.panel is self.app.panel and settings == self.settings:  # else something has changed meanwhile
                panel_actions.set_view(self.app, view)

    def random(self) -> None:
        """Starts the search for a random flame; one is tried each frame."""
        self.tries = MAX_TRIES
        self.app.show_message("searching for a random flame")

    def _short_game(self) -> ChaosGame:
        """A chaos game for short runs of any flame, without waiting for its kernels to compile."""
        if self._game is None:
            self._game = ChaosGame(self.app.gpu.device)
            self._game.kernels.never_block()  # they compile in background threads
        return self._game

    def try_random(self) -> None:
        """Tries one random flame; shows it if it is acceptable, or the last one."""
        flame, view, acceptable = framing.propose_flame(self._short_game(), self.rng)
        self.tries = max(self.tries - 1, 0)
        if acceptable or self.tries == 0:
            self.tries = 0
            values = {name: getattr(flame, name) for name in FLAME_FIELDS}
            values |= {name: getattr(self.settings, name) for name in ("quality", "estimator_radius")}
            self.selected = self.key = 0
            view = replace(view, center=(view.center[0], -view.center[1]))  # y points down, as in .flame files
            self.show(replace(self.settings, view=view, y_axis="down", keyframes=(), **values), moved=False)

    def save(self) -> None:
        """Asks for the .flame file to which the flame, or its key frames, are written."""
        save_files.ask_name(self.app, self.panel, (".flame",))

    def open_library(self) -> None:
        """Shows the thumbnails of all files of flames in the folder of this flame's file."""
        open_files.open_path(self.app, open_files.scene_folder(self.app))

    def open_gradients(self) -> None:
        """Asks for a file of gradients; shows its first, and lists all below the palette."""
        self.app.ask_file("Open gradients", open_files.scene_folder(self.app), SUFFIXES, self._open_gradients)

    def _open_gradients(self, path: Path) -> None:
        with self.app.errors_as_messages("opening gradients"):
            self.gradients = read_gradients(path)
            self.change(edit.with_palette_colors, self.gradients[0][1])

    def save_gradient(self) -> None:
        """Asks for the file to which the flame's palette is written, in the format of its suffix."""
        start = open_files.scene_folder(self.app) / "palette.ugr"
        self.app.ask_file("Save the gradient", start, SUFFIXES, self._save_gradient, saves=True)

    def _save_gradient(self, path: Path) -> None:
        with self.app.errors_as_messages("saving a gradient"):
            write_gradient(path, path.stem, self.flame.palette_colors)

    # Actions on key frames

    def add_keyframe(self, source: Scene | None = None) -> None:
        """Appends the current flame, or the flame of another scene, as a key frame."""
        settings, size = self.settings, self.app.panels.image_size(self.panel)
        keys = settings.keyframes or (to_keyframe(settings, size),)
        if source is not None and (source.settings.is_3d or source.settings.y_axis != settings.y_axis):
            self.app.show_message("the key frames of an animation must all be 2D flames with the same y axis")
            return
        new = to_keyframe(source.settings, size) if source else keys[self.key]
        new = replace(new, time=keys[-1].time + KEYFRAME_SECONDS)
        self.show(edit.add_keyframe(replace(settings, keyframes=keys), new))
        self.select_keyframe(len(keys))

    def select_keyframe(self, index: int) -> None:
        """Edits a key frame, by index, and goes to its time."""
        self.key = index
        self.pin_time()

    def step_keyframe(self, step: int) -> None:
        """Selects the next (1) or the previous (-1) key frame."""
        if self.settings.keyframes:
            self.select_keyframe((self.key + step) % len(self.settings.keyframes))
            self.app.show_message(f"key frame {self.key + 1} of {len(self.settings.keyframes)}")

    def delete_keyframe(self) -> None:
        """Deletes the current key frame; of two, the other one becomes the flame."""
        settings = self.settings
        if not settings.keyframes:
            self.app.show_message("there is no key frame to delete")
            return
        kept = edit.delete_keyframe(settings, self.key)
        if not kept.keyframes:
            other = settings.keyframes[1 - self.key].flame
            kept = replace(kept, **{name: getattr(other, name) for name in FLAME_FIELDS})
        self.show(kept)
        self.select_keyframe(max(self.key - 1, 0))

    def play(self) -> None:
        """Plays or pauses the key frames."""
        panel, keys = self.panel, self.settings.keyframes
        if not keys:
            self.app.show_message("an animation needs two key frames: K adds one of this flame")
            return
        panel.paused = not panel.paused
        if not panel.paused and panel.scene_time >= keys[-1].time:
            panel.scene_time = keys[0].time

    def loop(self) -> None:
        """Key frames of one turn of the xforms, which play without an end."""
        with self.app.errors_as_messages("making a loop"):
            settings, size = self.settings, self.app.panels.image_size(self.panel)
            key = settings.keyframes[self.key] if settings.keyframes else to_keyframe(settings, size)
            self.show(replace(settings, keyframes=tuple(turning(key, 4 * KEYFRAME_SECONDS))))
            self.select_keyframe(0)

    # Keys

    def hidden_settings(self) -> list[str]:
        """The settings that the section `palette` shows, if the flame has its own colors."""
        return ["palette", "colors", "alphas"] if self.settings.colors else []

    def actions(self) -> list[Action]:
        """The key bindings of this editor."""
        return [each for each in self._actions if self.in_plane or each.keys not in PLANE_KEYS]
