"""The drawing of the flame editor: the triangles over the picture, and the sections of controls beside it.

A triangle shows the affine of an xform: its corners O, X and Y are the images of (0, 0), (1, 0) and (0, 1). An xform in
space has three axes in its place, from O to X, Y and Z. Edits are in editor.py, the geometry in triangles.py.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import groupby

import numpy as np

from renderer.flames import edit, evolve, palettes
from renderer.flames.genome import IDENTITY_2D, IDENTITY_3D, Flame, Xform
from renderer.flames.kernel_arguments import in_space
from renderer.flames.variations.catalog import parameter_owners, variation_table
from renderer.flames.xml.read import CAMERA_LIMITS
from renderer.window.controls import imgui, imgui_ctx, theme
from renderer.window.controls.choices import choose_index
from renderer.window.controls.settings import label, shortest, slider
from renderer.window.controls.shortcuts import action_buttons
from renderer.window.flame_editor.editor import Editor
from renderer.window.flame_editor.gradients import GradientEditor
from renderer.window.flame_editor.triangles import CORNERS, handles, xform_indices
from renderer.window.flame_editor.variants import Variants, VariationPictures
from renderer.window.panels.panel import Panel
from renderer.window.state import AppState, open_files

SYMMETRIES = (2, 3, 4, 5, 6, -1, -2, -3)  # numbers of rotations; negative: with a mirror


class FlameEditor(Editor):
    """The complete flame editor: the edits and keys of Editor, and their drawing over and beside the picture."""

    def __init__(self, app: AppState, panel: Panel, fonts: theme.Fonts, scale: float):
        super().__init__(app, panel, fonts, scale)
        self._filter = ""  # typed text that filters the variations to add
        self.gradient = GradientEditor(self)
        self.variants, self.variation_pictures = Variants(app, scale), VariationPictures(app, scale)

    # Over the picture

    def overlay(self) -> bool:
        """Draws the grid of variants over the window, and advances the search for a random flame.

        Returns whether the window must draw another frame although no panel draws.
        """
        # tries: random flames that the search may still try, one a frame; is_waiting: a kernel is being compiled
        if self.tries and not self.app.work.is_waiting:
            self.app.work.start(self.try_random)
        chosen = self.variants.draw(self)
        if chosen is not None:
            self.put(chosen, moved=False)
        return (self.tries > 0 or self.variants.pending) and not self.app.work.is_waiting

    def draw(self, rect: theme.Rect) -> None:
        """Draws the triangle or the axes of each xform over the picture in `rect`; of the selected one all handles."""
        flame = self.flame
        if not self.triangles:
            return
        draw, scale, transform = imgui.get_window_draw_list(), self.scale, self.transform(rect)
        unit = edit.triangle(Xform(IDENTITY_3D if flame.is_3d else IDENTITY_2D))
        self._lines([transform.to_window(corner) for corner in unit], [(1, 1, 1, 0.18)], scale)
        for index in sorted(xform_indices(flame), key=lambda index: index == self.index):  # the selected one on top
            selected = index == self.index
            points = handles([transform.to_window(c) for c in edit.triangle(edit.xform_at(flame, index), self.post)])
            color, corners = self._xform_color(index), [points[name] for name in CORNERS if name in points]
            if not np.isfinite(corners).all():
                continue
            # a dark outline below the colored lines
            self._lines(corners, [(0, 0, 0, 0.6)], (4.0 if selected else 2.6) * scale)
            if selected:
                o, x, y = corners[:3]
                draw.add_triangle_filled(o, x, y, theme.color_u32(color, 0.13))
            is_tripod = selected and len(corners) == 4
            plain: theme.Color = (*color[:3], 1.0 if selected else 0.85)
            self._lines(corners, theme.AXIS_COLORS if is_tripod else [plain], (2.0 if selected else 1.2) * scale)
            active = self.drag or self.hovered
            for name in points if selected else CORNERS[: len(corners)]:
                lit = active is not None and active.index == index and active.handle == name
                of_axis = theme.AXIS_COLORS[CORNERS.index(name) - 1] if is_tripod and name != "O" else color
                self._handle(points[name], name, of_axis, selected, lit)
            if selected:
                text = _xform_label(index) + (" post" if self.post else "")
                px, py = points["O"][0] - 6 * scale, points["O"][1] + 8 * scale
                theme.shadow_text(draw, self.fonts.bold, theme.FONT_SIZE * scale, px, py, color, text)

    def _lines(self, corners: list[tuple[float, float]], colors: list[theme.Color], width: float) -> None:
        """Draws a triangle, or the axes of an xform in space; `colors`: one, or one for each axis."""
        pairs = ((0, 1), (0, 2), (0, 3)) if len(corners) == 4 else ((0, 1), (1, 2), (2, 0))
        if np.isfinite(corners).all():
            for k, (a, b) in enumerate(pairs):
                line = corners[a], corners[b], theme.color_u32(colors[k % len(colors)]), width
                imgui.get_window_draw_list().add_line(*line)

    def _handle(self, point: tuple[float, float], name: str, color: theme.Color, selected: bool, lit: bool) -> None:
        """Draws the handle at a triangle's corner; `lit`: the pointer is over it."""
        draw, scale = imgui.get_window_draw_list(), self.scale
        radius = (6.0 if lit else 4.5 if selected and name in CORNERS else 3.0) * scale
        draw.add_circle_filled(point, radius + 1.2 * scale, theme.color_u32((0, 0, 0, 0.8)))
        draw.add_circle_filled(point, radius, theme.color_u32(theme.TEXT if lit else color))
        if name == "O" and selected:
            draw.add_circle_filled(point, radius * 0.45, theme.color_u32((0, 0, 0, 1)))
        if selected and name in ("X", "Y", "Z"):
            x, y = point[0] + 7 * scale, point[1] - 16 * scale
            theme.shadow_text(draw, imgui.get_font(), imgui.get_font_size(), x, y, color, name)

    def _xform_color(self, index: int) -> theme.Color:
        """The color of an xform in the palette, brightened for a line; white for the final one."""
        if index == edit.FINAL_XFORM:
            return theme.TEXT
        flame = self.flame
        entry = int(min(max(edit.xform_at(flame, index).color, 0.0), 1.0) * 255)
        color = flame.colors[entry] if flame.colors else palettes.builtin(flame.palette)[entry]
        r, g, b = (float(value) / 255 * 0.4 + 0.6 for value in color)
        return r, g, b, 1.0

    # Beside the picture

    def controls(self) -> None:
        """Draws the flame's section of the controls."""
        if imgui.collapsing_header("Flame", imgui.TreeNodeFlags_.default_open):
            with imgui_ctx.push_id("flame"):
                self._sections()

    def _sections(self) -> None:
        """The controls of the flame: actions, xforms, and the selected xform's variations, affines and xaos."""
        flame = self.flame
        self.triangles = imgui.checkbox("axes" if flame.is_3d else "triangles", self.triangles)[1]
        theme.hint("G; a drag with Ctrl keeps a corner on its axis")
        imgui.same_line()
        self.post = imgui.checkbox("of post-affines", self.post)[1]
        theme.hint("O")
        self._action_buttons({"Random": "B", "Variants": "V", "Mutate": "Shift+V", "Fit": "U"})
        self._size()
        self._symmetry()
        self._keyframes()
        self._xforms(flame)
        self._xform()
        sections: dict[str, Callable[[], None]] = {
            "variations": self._variations,
            "affine": lambda: self._affine("affine", self.xform.affine),
            "post-affine": lambda: self._affine("post", self.xform.post),
            "xaos": lambda: self._xaos(flame),
            "palette": self.gradient.draw,
        }
        for name, section in sections.items():
            is_open = imgui.TreeNodeFlags_.default_open if name == "variations" else imgui.TreeNodeFlags_.none
            if imgui.tree_node_ex(name, theme.FOLD | is_open):
                section()
                imgui.tree_pop()
        self._action_buttons({"Save as .flame": "Ctrl+E", "Folder": "Ctrl+H"})

    def _action_buttons(self, keys: dict[str, str]) -> None:
        """Buttons of the actions with these keys, by their labels, without actions that this flame does not have."""
        actions = self.actions()
        offered = {action.keys for action in actions}
        labels = {label: key for label, key in keys.items() if key in offered}
        action_buttons(self.app.run, actions, labels)

    def _size(self) -> None:
        """Width and height of exports, which .flame files hold."""
        label("size")
        shown = self.panel.scene.size or self.app.panels.image_size(self.panel)
        changed, typed = imgui.input_int2("##size", list(shown))
        theme.hint("width and height of exports, in the saved file")
        if changed:
            width, height = np.clip(typed, *CAMERA_LIMITS["size"]).tolist()
            self.resize((width, height))

    def _symmetry(self) -> None:
        label("symmetry")
        turns = [f"{abs(kind)} rotations" if abs(kind) > 1 else "no rotation" for kind in SYMMETRIES]
        names = [f"{turn} and a mirror" if kind < 0 else turn for turn, kind in zip(turns, SYMMETRIES, strict=True)]
        if (chosen := choose_index("##symmetry", "add", names, -1)) is not None:
            self.change(evolve.add_symmetry, SYMMETRIES[chosen])

    def _keyframes(self) -> None:
        """The key frames: their times, the edited one, and other flames that can be added."""
        keys = self.settings.keyframes
        # in_plane: the view is a rectangle of the plane; a flame seen through a camera has no key frames
        if not self.in_plane or not imgui.tree_node_ex(f"key frames ({len(keys)})###keys", theme.FOLD):
            return
        playing = keys and not self.panel.paused
        self._action_buttons({"Add": "K", "Delete": "Shift+K", "Pause" if playing else "Play": "Y", "Loop": "Shift+Y"})
        for index, key in enumerate(keys):
            if imgui.radio_button(f"{index + 1}##key", index == self.key):
                self.select_keyframe(index)
            imgui.same_line()
            imgui.set_next_item_width(-1)
            changed, time = imgui.input_double(f"##time{index}", key.time, 0.0, 0.0, "at %.4g s")
            low = keys[index - 1].time if index else -1e9
            high = keys[index + 1].time if index + 1 < len(keys) else 1e9
            if changed and low < time < high:
                moved = (*keys[:index], replace(key, time=time), *keys[index + 1 :])
                self.show(replace(self.settings, keyframes=moved))
                self.select_keyframe(index)
        panel = self.panel
        others = [p.scene for p in self.app.panels if p is not panel] + open_files.presets(self.app)
        others = [scene for scene in others if scene.picture == panel.scene.picture]
        imgui.set_next_item_width(-1)
        titles = [scene.title for scene in others]
        if others and (chosen := choose_index("##other", "add another flame", titles, -1)) is not None:
            self.add_keyframe(others[chosen])
        imgui.tree_pop()

    def _xforms(self, flame: Flame) -> None:
        """A button for each xform, in its color, and buttons that add and delete xforms."""
        right = imgui.get_cursor_screen_pos().x + imgui.get_content_region_avail().x
        for index in xform_indices(flame):
            text = _xform_label(index)
            width = imgui.calc_text_size(text).x + 4 * imgui.get_style().frame_padding.x
            if index and imgui.get_item_rect_max().x + width < right:
                imgui.same_line(0, 4 * self.scale)
            is_selected = index == self.index
            background = theme.COLORS["button_active" if is_selected else "button"]
            color = theme.TEXT if is_selected else self._xform_color(index)  # some are dark on the selection
            text_color = imgui_ctx.push_style_color(imgui.Col_.text, color)
            with text_color, imgui_ctx.push_style_color(imgui.Col_.button, background):
                if imgui.button(f"{text}##map{index}"):
                    self.selected = index
        final = "No final" if flame.final_xform else "Final"
        self._action_buttons({"Add##xform": "A", "Duplicate": "Shift+A", "Delete##xform": "Delete", final: "F"})

    def _xform(self) -> None:
        """The numbers of the selected xform; a double click accepts numbers beyond a slider's range."""
        xform, logarithmic = self.xform, imgui.SliderFlags_.logarithmic
        # By field: ends of the slider, its flags, the least number that may be typed. The final xform has no weight.
        ranges = {} if self.index == edit.FINAL_XFORM else {"weight": (0.001, 10.0, logarithmic, 0.0)}
        ranges |= {name: (0.0, 1.0, imgui.SliderFlags_.none, -1e9) for name in ("color", "color_speed", "opacity")}
        for name, (low, high, flags, lowest) in ranges.items():
            label(name.replace("_", " "))
            value = getattr(xform, name)
            changed, new = slider(imgui.slider_float, value, low, high, "%.4g", flags, name=f"##{name}")
            if changed and np.isfinite(new):
                self.change_xform(**{name: min(max(shortest(new), lowest), 1e9)})

    def _affine(self, name: str, values: tuple[float, ...]) -> None:
        """The rows of an affine, and buttons that rotate, scale, mirror and reset it."""
        out = list(values)
        per_row = 4 if len(values) == 12 else 3
        width = (imgui.get_content_region_avail().x - 16 * self.scale) / per_row
        for k, value in enumerate(values):
            if k % per_row:
                imgui.same_line(0, 4 * self.scale)
            imgui.set_next_item_width(width)
            new = _drag_number(f"##{name}{k}", value, 0.005)
            if new is not None and abs(new) < 1e9:
                out[k] = new
        if tuple(out) != tuple(values):
            self.change_xform(**{name: tuple(out)})
        turns = {"-15°": (-15.0, 1.0), "+15°": (15.0, 1.0), "x 1.1": (0.0, 1.1), "x 0.9": (0.0, 1 / 1.1)}
        for text, (degrees, factor) in turns.items():
            if imgui.button(text):
                self.change(edit.rotate_scale, self.index, degrees, factor, name == "post")
            imgui.same_line(0, theme.UNIT * self.scale)
        # The first number of each row is negated, so the image of the axis X points the other way
        mirrored = tuple(v if k % per_row else -v for k, v in enumerate(out))
        if imgui.button("Mirror"):
            self.change_xform(**{name: mirrored})
        imgui.same_line(0, theme.UNIT * self.scale)
        if imgui.button("Reset"):
            self.change_xform(**{name: IDENTITY_2D if len(values) == 6 else IDENTITY_3D})
        if len(values) == 6 and (name == "affine" or self.flame.has_z) and theme.button("3D", "adds the axis Z"):
            self.change_xform(**{name: in_space(values)})

    def _variations(self) -> None:
        """Each variation of the xform with its weight and parameters, and a search for more."""
        xform, reset = self.xform, imgui.get_frame_height()
        for name, weight in xform.variations.items():
            with imgui_ctx.push_id(name):
                label(name.replace("_", " "))
                imgui.set_next_item_width(-reset - theme.UNIT * self.scale)
                new = _drag_number("##amount", weight, 0.005)
                if new is not None:  # a weight of 0 would remove the control under the pointer
                    self.change(edit.with_variation, self.index, name, new or 1e-6)
                imgui.same_line(0, theme.UNIT * self.scale)
                if theme.button("x", "remove variation", width=reset):
                    self.change(edit.with_variation, self.index, name, 0.0)
                for parameter in variation_table()[name].parameters:
                    label("  " + parameter.removeprefix(f"{name}_").replace("_", " "))
                    new = _drag_number(f"##{parameter}", xform.parameter_value(parameter), 0.01)
                    # If a user's variation has a parameter of the same name, the flame's number belongs to that one
                    if new is not None and parameter_owners()[parameter] == name:
                        self.change(edit.with_parameter, self.index, parameter, new)
        self._search()

    def _search(self) -> None:
        """A list of variations by group, filtered by the typed text; Enter adds the first, which is marked."""
        imgui.set_next_item_width(-1)
        flags = imgui.InputTextFlags_.enter_returns_true
        entered, self._filter = imgui.input_text_with_hint("##search", "add a variation", self._filter, flags)
        words = self._filter.lower().split()
        unused = [v for v in variation_table().values() if v.name not in self.xform.variations]
        shown = [v for v in unused if all(word in f"{v.group} {v.name}".lower() for word in words)]
        shown.sort(key=lambda v: (*_rank(v.name, self._filter), v.group))
        chosen = shown[0].name if entered and words and shown else None
        imgui.push_style_color(imgui.Col_.header, theme.COLORS["button_active"])
        if imgui.begin_list_box("##found", (-1, 110 * self.scale)):
            for group, members in groupby(shown, key=lambda v: v.group):
                imgui.separator_text(group)
                for v in members:
                    if imgui.selectable(v.name, bool(words) and v is shown[0])[0]:
                        chosen = v.name
                    if imgui.is_item_hovered(imgui.HoveredFlags_.delay_short):
                        self.variation_pictures.tooltip(v.name)
            imgui.end_list_box()
        imgui.pop_style_color()
        if chosen:
            self.change(edit.with_variation, self.index, chosen, 0.5)
            self._filter = ""

    def _xaos(self, flame: Flame) -> None:
        """The xaos matrix: factors on the probability that an xform (column) follows another (row)."""
        count = len(flame.xforms)
        flags = imgui.TableFlags_.scroll_x | imgui.TableFlags_.sizing_fixed_fit
        height = (count + 1.6) * imgui.get_frame_height_with_spacing()
        if not imgui.begin_table("##xaos", count + 1, flags, (0, min(height, 220 * self.scale))):
            return
        for column in range(-1, count):
            imgui.table_next_column()
            imgui.text_disabled("after" if column < 0 else str(column + 1))
        for before, xform in enumerate(flame.xforms):
            imgui.table_next_row()
            imgui.table_next_column()
            imgui.align_text_to_frame_padding()
            imgui.text_disabled(str(before + 1))
            for after in range(count):
                imgui.table_next_column()
                imgui.set_next_item_width(52 * self.scale)
                value = xform.xaos[after] if after < len(xform.xaos) else 1.0
                new = _drag_number(f"##{before} {after}", value, 0.01, 0.0, 1e6, "%.3g")
                if new is not None and new >= 0:
                    self.change(edit.with_xaos, before, after, new)
        imgui.end_table()


def _xform_label(index: int) -> str:
    return "final" if index == edit.FINAL_XFORM else str(index + 1)


def _rank(name: str, typed: str) -> tuple[bool, bool, bool]:
    """A sort key: the typed name first, then names that begin with it, then names that contain it, then others."""
    word, low = typed.strip().lower(), name.lower()
    return low != word, not low.startswith(word), word not in low


def _drag_number(
    label: str, value: float, speed: float, low: float = 0.0, high: float = 0.0, text: str = "%.4f"
) -> float | None:
    """A number that is dragged or typed: the new value, or None if it was not changed to a finite one.

    A drag stays within `low` to `high`; without limits if they are equal.
    """
    changed, new = imgui.drag_float(label, value, speed, low, high, text)
    return shortest(new) if changed and np.isfinite(new) else None
