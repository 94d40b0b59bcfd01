"""The editor of flames: triangles over the picture, controls beside it, keys. The interface asks for it by the
picture's name. All that it does to a flame are the functions of renderer/flames/edit.py, breed.py and fit.py.

With key frames it edits one of them, and holds the clock at its time.
"""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from renderer.errors import UserError
from renderer.flames import edit, evolve, framing, palettes
from renderer.flames.chaos_game import ChaosGame
from renderer.flames.genome import Flame, Xform
from renderer.flames.temporal import relative_view
from renderer.flames.xml.write import to_xml
from renderer.formats.images import atomic_write
from renderer.gpu import KernelError
from renderer.pictures.flame import Settings, keyframes_for_file, to_keyframe
from renderer.scene.scene import Scene
from renderer.window.controls import theme
from renderer.window.controls.shortcuts import Action
from renderer.window.controls.toolkit import imgui
from renderer.window.flame_editor import sections, triangles
from renderer.window.flame_editor.variants import Variants
from renderer.window.state.app_state import AppState
from renderer.window.state.save_files import unused_path

GROUP = "Flame"
NUDGE, TURN, GROWTH = 0.02, 5.0, 1.05  # of the view's height, degrees, a factor: what one key press does to a triangle
MAX_TRIES = 40  # chance flames until one is worth seeing
KEY_SECONDS = 2.0  # from one key frame to the next


class Editor:
    """What the user edits: the map that is selected, whether triangles are shown, and of which affine."""

    def __init__(self, app: AppState, fonts, scale: float):
        self.app, self.fonts, self.scale = app, fonts, scale
        self.triangles, self.post = True, False
        self.selected, self.key = 0, 0
        self.grip: triangles.Drag | None = None
        self.under: triangles.Drag | None = None
        self.rng = np.random.default_rng(int.from_bytes(os.urandom(8), "little"))
        self.variants = Variants(app, scale)
        self.sections = sections.Sections(self)
        self._tries = 0  # chance flames that are still to be looked at
        self._game = None

    # What is edited

    @property
    def settings(self) -> Settings:
        return self.app.panel.scene.settings

    @property
    def flame(self) -> Flame:
        """The flame at hand: the settings themselves, or that of the chosen key frame."""
        settings = self.settings
        self.key = min(self.key, max(len(settings.keyframes) - 1, 0))
        return settings.keyframes[self.key].flame if settings.keyframes else settings

    @property
    def number(self) -> int:
        """The selected map, one that is there."""
        flame = self.flame
        if self.selected == edit.FINAL_XFORM and flame.final_xform is None or self.selected >= len(flame.xforms):
            self.selected = len(flame.xforms) - 1
        return self.selected

    @property
    def map(self) -> Xform:
        return edit.xform_at(self.flame, self.number)

    def put(self, flame: Flame, moved: bool = True) -> None:
        """Shows another flame in place of the one at hand."""
        settings = self.settings
        if settings.keyframes:
            keys = list(settings.keyframes)
            keys[self.key] = replace(keys[self.key], flame=flame)
            flame = replace(settings, keyframes=tuple(keys))
        self.show(flame, moved)

    def show(self, settings: Settings, moved: bool = True) -> None:
        self.app.change_scene(replace(self.app.panel.scene, settings=settings), moved=moved)

    def change(self, work, *arguments, **named) -> None:
        """Puts work(flame, ...) in place of the flame; a mistake is told."""
        try:
            self.put(work(self.flame, *arguments, **named))
        except (UserError, ValueError) as error:
            self.app.show_message(str(error))

    def change_map(self, **changes) -> None:
        self.change(edit.with_xform, self.number, **changes)

    def view(self):
        """How the flame at hand is looked at: a key frame moves with the settings' view."""
        settings = self.settings
        if not settings.keyframes:
            return settings.view
        return relative_view(settings.keyframes[self.key].view, settings.keyframes[0].view, settings.view)

    # Over the picture

    def frame(self, rectangle) -> triangles.WindowTransform:
        settings = self.settings
        return triangles.WindowTransform.of(self.view(), settings.y_axis, settings.pixel_aspect, rectangle)

    def mouse(self, rectangle) -> bool:
        """Handles of triangles under the pointer; whether the pointer is busy with one. After the panel's button."""
        if not self.triangles or self.flame.is_3d:
            return False
        frame, place = self.frame(rectangle), tuple(imgui.get_mouse_pos())
        if self.grip is not None:
            if imgui.is_mouse_down(0) or imgui.is_mouse_released(0):
                if tuple(imgui.get_mouse_drag_delta(0, 0.0)) != (0.0, 0.0):
                    self.put(triangles.dragged(self.flame, self.grip, frame.point(place)))
            if not imgui.is_mouse_down(0):
                self.grip = None
            return True
        hovered = imgui.is_item_hovered()
        reach = triangles.REACH * self.scale
        self.under = triangles.hit_test(self.flame, frame, place, self.number, self.post, reach) if hovered else None
        if self.under is None or imgui.get_io().key_shift:
            return False
        if imgui.is_item_activated() and imgui.is_mouse_down(0):
            self.grip, self.selected = self.under, self.under.number
            self.pin_time()
            return True
        return self.under.handle != triangles.INSIDE and imgui.is_mouse_double_clicked(0)

    def draw(self, rectangle) -> None:
        """The triangles, over the picture."""
        if self.triangles and not self.flame.is_3d:
            sections.draw_triangles(self, self.frame(rectangle))

    # Beside the picture

    def controls(self) -> None:
        """The part of the controls that edits the flame."""
        if imgui.collapsing_header("Flame", imgui.TreeNodeFlags_.default_open):
            imgui.push_id("flame")
            self.sections.draw()
            imgui.pop_id()

    def overlay(self) -> None:
        """The grid of variants, over the window, and what goes on by itself: the search for a chance flame."""
        try:
            self._look_for_chance()
            chosen = self.variants.draw(self)
        except (UserError, KernelError) as error:
            self._tries, self.variants.opened, chosen = 0, False, None
            self.app.show_message(str(error))
        if chosen is not None:
            self.put(chosen, moved=False)

    @property
    def pending(self) -> bool:
        """Whether the window should go on although no panel draws."""
        return self._tries > 0 or self.variants.pending

    def pin_time(self) -> None:
        """The clock stands at the key frame that is edited."""
        settings, panel = self.settings, self.app.panel
        if settings.keyframes:
            panel.scene_time, panel.paused = settings.keyframes[self.key].time, True

    # What buttons and keys do

    def select(self, step: int) -> None:
        numbers = triangles.numbers_of(self.flame)
        self.selected = numbers[(numbers.index(self.number) + step) % len(numbers)]
        self.app.show_message("final map" if self.selected == edit.FINAL_XFORM else f"map {self.selected + 1}")

    def add(self) -> None:
        self.change(edit.add_xform)
        self.selected = len(self.flame.xforms) - 1

    def duplicate(self) -> None:
        self.change(edit.add_xform, self.map)
        self.selected = len(self.flame.xforms) - 1

    def delete(self) -> None:
        self.change(edit.delete_xform, self.number)

    def toggle_final(self) -> None:
        if self.flame.final_xform is None:
            self.change(edit.add_final_xform)
            self.selected = edit.FINAL_XFORM
        else:
            self.change(edit.delete_xform, edit.FINAL_XFORM)

    def nudge(self, right: float, up: float) -> None:
        """Moves the selected triangle by parts of the view's height, as it is seen."""
        (rx, ry), (dx, dy) = self.view().pixel_vectors(1)
        sign = 1.0 if self.settings.y_axis == "up" else -1.0
        o, *_ = edit.triangle(self.map, self.post)
        place = (o[0] + NUDGE * (right * rx - up * dx), o[1] + sign * NUDGE * (right * ry - up * dy))
        self.change(edit.move_corner, self.number, 0, place, self.post)

    def turn(self, degrees: float, growth: float = 1.0) -> None:
        self.change(edit.rotate_scale, self.number, degrees, growth, self.post)

    def scale_weight(self, factor: float) -> None:
        weight = min(max(self.map.weight, 0.01) * factor, 1e6)
        self.change_map(weight=weight)
        self.app.show_message(f"weight {weight:.3g}")

    def step_palette(self, step: int) -> None:
        names, flame = palettes.builtin_names(), self.flame
        here = names.index(flame.palette) if not flame.colors and flame.palette in names else -step
        name = names[(here + step) % len(names)]
        self.change(edit.with_palette, name)
        self.app.show_message(f"palette {name}")

    def fit(self) -> None:
        """Looks at the whole flame."""
        settings, flame = self.settings, self.flame
        width, height = self._size()
        try:
            view = framing.fit_view(self.device, flame, width / height, settings.y_axis, self.game)
        except (UserError, KernelError) as error:
            self.app.show_message(str(error))
            return
        home = settings.keyframes[self.key].view if settings.keyframes else view
        self.app.set_view(relative_view(settings.view, home, view) if settings.keyframes else view)

    def _size(self) -> tuple[int, int]:
        """Of the active panel's picture in the window."""
        return self.app.image_rects[self.app.visible().index(self.app.active)][2:]

    def random(self) -> None:
        self._tries = MAX_TRIES
        self.app.show_message("looking for a flame that is worth seeing")

    def symmetry(self, kind: int) -> None:
        self.change(evolve.add_symmetry, kind)

    def mutate(self) -> None:
        """The flame with one change by chance."""
        self.change(evolve.mutate, self.rng)

    def add_key(self, source: Scene | None = None) -> None:
        """The flame at hand, or that of another scene, as the next key frame."""
        settings, size = self.settings, self._size()
        keys = settings.keyframes or (to_keyframe(settings, size),)
        settings = replace(settings, keyframes=keys)
        if source is not None and (source.settings.is_3d or source.settings.y_axis != settings.y_axis):
            self.app.show_message(
                "only flames of the plane with y in the same direction can be key frames of one animation"
            )
            return
        new = to_keyframe(source.settings, size) if source else keys[self.key]
        self.show(edit.add_keyframe(settings, replace(new, time=keys[-1].time + KEY_SECONDS)))
        self.choose_key(len(keys))

    def choose_key(self, number: int) -> None:
        self.key = number
        self.pin_time()

    def delete_keyframe(self) -> None:
        settings = self.settings
        if not settings.keyframes:
            self.app.show_message("there is no key frame to take away")
            return
        kept = edit.delete_keyframe(settings, self.key)
        if not kept.keyframes:
            last = settings.keyframes[1 - self.key].flame
            kept = replace(kept, **{name: getattr(last, name) for name in Flame.__dataclass_fields__})
        self.show(kept)
        self.choose_key(max(self.key - 1, 0))

    def play(self) -> None:
        """Goes on from key frame to key frame, or stops."""
        panel, keys = self.app.panel, self.settings.keyframes
        if not keys:
            self.app.show_message("an animation needs two key frames: K makes one of this flame")
            return
        panel.paused = not panel.paused
        if not panel.paused and panel.scene_time >= keys[-1].time:
            panel.scene_time = keys[0].time

    def save(self) -> None:
        """Writes the flame, or its key frames, as a .flame file into the current folder."""
        panel = self.app.panel
        path = unused_path(Path.cwd(), panel.original.path.stem, ".flame")
        size = panel.display_texture.size if panel.display_texture is not None else (1280, 720)
        try:
            text = to_xml(keyframes_for_file(self.settings, size, panel.scene.title))
            with atomic_write(path) as temporary:
                temporary.write_text(text, encoding="utf-8")
            self.app.show_message(f"wrote {path.name}")
        except UserError as error:
            self.app.show_message(str(error))

    # Chance

    @property
    def device(self):
        return self.app.gpu.device

    @property
    def game(self) -> ChaosGame:
        """One that plays short games of any flame without waiting for its kernel."""
        if self._game is None:
            self._game = ChaosGame(self.device)
            self._game.kernels.never_block()
        return self._game

    def _look_for_chance(self) -> None:
        """One chance flame a frame, until one is worth seeing."""
        if self._tries == 0:
            return
        flame, view, acceptable = framing.propose_flame(self.device, self.rng, self.game)
        self._tries -= 1
        if acceptable or self._tries == 0:
            self._tries = 0
            named = {name: getattr(flame, name) for name in Flame.__dataclass_fields__}
            named |= {name: getattr(self.settings, name) for name in ("quality", "estimator_radius")}
            self.selected = self.key = 0
            self.show(replace(self.settings, view=view, y_axis="up", keyframes=(), **named), moved=False)

    # Keys

    def actions(self) -> list[Action]:
        """The keys of this editor; each works on the active panel."""

        def action(keys: str, name: str, run, repeats: bool = False) -> Action:
            return Action(keys, name, GROUP, lambda _app: run(), repeats)

        return [
            action("G", "triangles of the xforms", self.toggle_triangles),
            action("O", "triangles of the post-affines", self.toggle_post),
            action("M", "next map", lambda: self.select(1)),
            action("Shift+M", "map before", lambda: self.select(-1)),
            action("A", "add a map", self.add),
            action("Shift+A", "double the map", self.duplicate),
            action("Delete", "take the map away", self.delete),
            action("F", "final map", self.toggle_final),
            action("Alt+Left", "move the triangle", lambda: self.nudge(-1, 0), True),
            action("Alt+Right", "move the triangle", lambda: self.nudge(1, 0), True),
            action("Alt+Up", "move the triangle", lambda: self.nudge(0, 1), True),
            action("Alt+Down", "move the triangle", lambda: self.nudge(0, -1), True),
            action("Alt+Shift+Left", "turn and grow it", lambda: self.turn(TURN), True),
            action("Alt+Shift+Right", "turn and grow it", lambda: self.turn(-TURN), True),
            action("Alt+Shift+Up", "turn and grow it", lambda: self.turn(0.0, GROWTH), True),
            action("Alt+Shift+Down", "turn and grow it", lambda: self.turn(0.0, 1 / GROWTH), True),
            action("]", "heavier", lambda: self.scale_weight(1.25), True),
            action("[", "lighter", lambda: self.scale_weight(0.8), True),
            action("C", "next palette", lambda: self.step_palette(1), True),
            action("Shift+C", "palette before", lambda: self.step_palette(-1), True),
            action("B", "a random flame", self.random),
            action("V", "variants to choose from", self.variants.toggle),
            action("Shift+V", "one change by chance", self.mutate),
            action("U", "look at the whole flame", self.fit),
            action("K", "key frame of this flame", self.add_key),
            action("Shift+K", "take the key frame away", self.delete_keyframe),
            action("J", "next key frame", lambda: self.step_key(1)),
            action("Shift+J", "key frame before", lambda: self.step_key(-1)),
            action("Y", "play the key frames", self.play),
            action("Ctrl+E", "save as .flame", self.save),
        ]

    def toggle_triangles(self) -> None:
        self.triangles = not self.triangles

    def toggle_post(self) -> None:
        self.post, self.triangles = not self.post, True
        self.app.show_message("triangles of the post-affines" if self.post else "triangles of the affines")

    def step_key(self, step: int) -> None:
        if self.settings.keyframes:
            self.choose_key((self.key + step) % len(self.settings.keyframes))
            self.app.show_message(f"key frame {self.key + 1} of {len(self.settings.keyframes)}")

    def color_of(self, number: int) -> tuple[float, float, float, float]:
        """A map's color in the palette, bright enough for a line."""
        if number == edit.FINAL_XFORM:
            return theme.TEXT
        flame = self.flame
        at = int(min(max(edit.xform_at(flame, number).color, 0.0), 1.0) * 255)
        color = flame.colors[at] if flame.colors else palettes.builtin(flame.palette)[at]
        r, g, b = (float(value) / 255 * 0.55 + 0.45 for value in color)
        return r, g, b, 1.0
