"""What the flame editor draws: the triangles over the picture, and the sections of controls beside it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from renderer.flames import edit, evolve, palettes
from renderer.flames.genome import IDENTITY_2D, Flame
from renderer.flames.variations import parameter_owners, variation_table
from renderer.window.controls import theme
from renderer.window.controls.toolkit import imgui, imgui_ctx
from renderer.window.flame_editor.editor import Editor
from renderer.window.flame_editor.triangles import CORNERS, EDGES, WindowTransform, handles, xform_indices
from renderer.window.state import open_files

GRADIENT_HEIGHT, GRADIENT_SEGMENTS = 18, 64  # height at scale 1
CACHED_GRADIENTS = 64
SYMMETRIES = (2, 3, 4, 5, 6, -1, -2, -3)


def draw_triangles(editor: Editor, transform: WindowTransform) -> None:
    """Draws the triangle of each xform; the selected one with all its handles."""
    draw, scale, flame = imgui.get_window_draw_list(), editor.scale, editor.flame
    o, x, y = [transform.to_window(corner) for corner in ((0, 0), (1, 0), (0, 1))]
    draw.add_triangle(o, x, y, theme.color_u32((1, 1, 1, 0.18)), scale)
    for index in sorted(xform_indices(flame), key=lambda index: index == editor.index):
        selected = index == editor.index
        corners = edit.triangle(edit.xform_at(flame, index), editor.post)
        points = handles([transform.to_window(corner) for corner in corners])
        color, (o, x, y) = editor.xform_color(index), [points[name] for name in CORNERS]
        draw.add_triangle(o, x, y, theme.color_u32((0, 0, 0, 0.6)), (4.0 if selected else 2.6) * scale)
        if selected:
            draw.add_triangle_filled(o, x, y, theme.color_u32(color, 0.13))
        outline = theme.color_u32(color, 1.0 if selected else 0.85)
        draw.add_triangle(o, x, y, outline, (2.0 if selected else 1.2) * scale)
        active = editor.drag or editor.hovered
        for name in (*CORNERS, *EDGES) if selected else CORNERS:
            lit = active is not None and active.index == index and active.handle == name
            _draw_handle(editor, points[name], name, color, selected, lit)
        if selected:
            label = _xform_label(index) + (" post" if editor.post else "")
            px, py = points["O"][0] - 6 * scale, points["O"][1] + 8 * scale
            theme.shadow_text(draw, editor.fonts.bold, theme.FONT_SIZE * scale, px, py, color, label)


def _xform_label(index: int) -> str:
    return "final" if index == edit.FINAL_XFORM else str(index + 1)


def _draw_handle(
    editor: Editor, point: tuple[float, float], name: str, color: theme.Color, selected: bool, lit: bool
) -> None:
    draw, scale = imgui.get_window_draw_list(), editor.scale
    radius = (6.0 if lit else 4.5 if selected and name in CORNERS else 3.0) * scale
    draw.add_circle_filled(point, radius + 1.2 * scale, theme.color_u32((0, 0, 0, 0.8)))
    draw.add_circle_filled(point, radius, theme.color_u32(theme.TEXT if lit else color))
    if name == "O" and selected:
        draw.add_circle_filled(point, radius * 0.45, theme.color_u32((0, 0, 0, 1)))
    if selected and name in ("X", "Y"):
        x, y = point[0] + 7 * scale, point[1] - 16 * scale
        theme.shadow_text(draw, imgui.get_font(), imgui.get_font_size(), x, y, color, name)


class Sections:
    """The controls of the current flame; every change goes through the editor."""

    def __init__(self, editor: Editor):
        self.editor, self.filter = editor, ""
        self._held_slider: tuple[str, int, np.ndarray] | None = None  # name, value, and the palette before it
        self._gradients: dict[str, list[int]] = {}

    def draw(self) -> None:
        """Draws all sections in the current Dear ImGui window."""
        editor, flame = self.editor, self.editor.flame
        if flame.is_3d:
            imgui.text_wrapped("3D xforms have no triangles; their numbers are under Settings.")
        else:
            editor.triangles = imgui.checkbox("triangles", editor.triangles)[1]
            imgui.set_item_tooltip("G")
            imgui.same_line()
            editor.post = imgui.checkbox("of post-affines", editor.post)[1]
            imgui.set_item_tooltip("O")
        self._action_buttons({"Random": "B", "Variants": "V", "Mutate": "Shift+V", "Fit": "U"})
        self._symmetry()
        self._keyframes()
        self._xforms(flame)
        self._xform()
        sections: dict[str, Callable[[], None]] = {
            "variations": self._variations,
            "affine": lambda: self._affine("affine", editor.xform.affine),
            "post-affine": lambda: self._affine("post", editor.xform.post),
            "xaos": lambda: self._xaos(flame),
            "palette": lambda: self._palette(flame),
        }
        for name, section in sections.items():
            if imgui.tree_node_ex(name, imgui.TreeNodeFlags_.default_open if name == "variations" else 0):
                section()
                imgui.tree_pop()
        self._action_buttons({"Save as .flame": "Ctrl+E"})

    def _action_buttons(self, keys: dict[str, str]) -> None:
        """A row of buttons that run the editor's actions: label -> keys, which the tooltip shows."""
        run = {action.keys: partial(action.run, self.editor.app) for action in self.editor.actions()}
        self._buttons({label: run[chord] for label, chord in keys.items()}, tooltips=keys)

    def _buttons(self, buttons: Mapping[str, Callable[[], None]], tooltips: dict[str, str] | None = None) -> None:
        """A row of buttons: label -> what it runs."""
        for number, (label, run) in enumerate(buttons.items()):
            if number:
                imgui.same_line(0, 4 * self.editor.scale)
            if imgui.button(label):
                run()
            if tooltips:
                imgui.set_item_tooltip(tooltips[label])

    def _symmetry(self) -> None:
        imgui.align_text_to_frame_padding()
        imgui.text_disabled("symmetry")
        for kind in SYMMETRIES:
            imgui.same_line(0, 3 * self.editor.scale)
            if imgui.small_button(f"{kind}##symmetry"):
                self.editor.change(evolve.add_symmetry, kind)
            imgui.set_item_tooltip(f"{abs(kind)} rotations" + (" and a mirror" if kind < 0 else ""))

    def _keyframes(self) -> None:
        """The key frames: their times, the edited one, and other flames that can be added."""
        editor, keys = self.editor, self.editor.settings.keyframes
        if not imgui.tree_node(f"key frames ({len(keys)})###keys"):
            return
        playing = keys and not editor.app.panel.paused
        self._action_buttons({"Add": "K", "Delete": "Shift+K", "Pause" if playing else "Play": "Y"})
        for index, key in enumerate(keys):
            if imgui.radio_button(f"{index + 1}##key", index == editor.key):
                editor.select_keyframe(index)
            imgui.same_line()
            imgui.set_next_item_width(-1)
            changed, time = imgui.input_double(f"##time{index}", key.time, 0.0, 0.0, "at %.4g s")
            low = keys[index - 1].time if index else -1e9
            high = keys[index + 1].time if index + 1 < len(keys) else 1e9
            if changed and low < time < high:
                moved = (*keys[:index], replace(key, time=time), *keys[index + 1 :])
                editor.show(replace(editor.settings, keyframes=moved))
                editor.select_keyframe(index)
        panel = editor.app.panel
        others = [p.scene for p in editor.app.panels if p is not panel] + open_files.presets(editor.app)
        others = [scene for scene in others if scene.picture == panel.scene.picture]
        imgui.set_next_item_width(-1)
        if others and imgui.begin_combo("##other", "add another flame"):
            for number, scene in enumerate(others):
                if imgui.selectable(f"{scene.title}##{number}", False)[0]:
                    editor.add_keyframe(scene)
            imgui.end_combo()
        imgui.tree_pop()

    def _xforms(self, flame: Flame) -> None:
        """A button for each xform, in its color, and buttons that add and delete xforms."""
        editor, scale = self.editor, self.editor.scale
        right = imgui.get_cursor_screen_pos().x + imgui.get_content_region_avail().x
        for index in xform_indices(flame):
            label = _xform_label(index)
            width = imgui.calc_text_size(label).x + 4 * imgui.get_style().frame_padding.x
            if index and imgui.get_item_rect_max().x + width < right:
                imgui.same_line(0, 4 * scale)
            background = theme.COLORS["button_active" if index == editor.index else "button"]
            text_color = imgui_ctx.push_style_color(imgui.Col_.text, editor.xform_color(index))
            with text_color, imgui_ctx.push_style_color(imgui.Col_.button, background):
                if imgui.button(f"{label}##map{index}"):
                    editor.selected = index
        final = "No final" if flame.final_xform else "Final"
        self._action_buttons({"Add##xform": "A", "Duplicate": "Shift+A", "Delete##xform": "Delete", final: "F"})

    def _xform(self) -> None:
        """The numbers of the selected xform."""
        xform = self.editor.xform
        if self.editor.index != edit.FINAL_XFORM:
            self._slider("weight", xform.weight, 0.001, 10.0, logarithmic=True)
        for name in ("color", "color_speed", "opacity"):
            self._slider(name, getattr(xform, name), 0.0, 1.0)

    def _slider(self, name: str, value: float, low: float, high: float, logarithmic: bool = False) -> None:
        flags = imgui.SliderFlags_.logarithmic if logarithmic else 0
        self._label(name)
        changed, new = imgui.slider_float(f"##{name}", value, low, high, "%.4g", flags)
        if changed and np.isfinite(new):
            lowest = 0.0 if name == "weight" else -1e9  # Ctrl+click accepts numbers beyond the slider's range
            self.editor.change_xform(**{name: float(min(max(new, lowest), 1e9))})

    def _label(self, name: str) -> None:
        """A label, with the next control in the column beside it."""
        imgui.align_text_to_frame_padding()
        imgui.text_disabled(name.replace("_", " "))
        imgui.same_line(imgui.get_cursor_start_pos().x + 110 * self.editor.scale)
        imgui.set_next_item_width(-1)

    def _affine(self, name: str, values: tuple[float, ...]) -> None:
        """The rows of an affine, and buttons that rotate, scale, mirror and reset it."""
        editor, out = self.editor, list(values)
        per_row = 4 if len(values) == 12 else 3
        width = (imgui.get_content_region_avail().x - 16 * editor.scale) / per_row
        for k, value in enumerate(values):
            if k % per_row:
                imgui.same_line(0, 4 * editor.scale)
            imgui.set_next_item_width(width)
            new = _drag(f"##{name}{k}", value, 0.005)
            if new is not None and abs(new) < 1e9:
                out[k] = new
        if tuple(out) != tuple(values):
            editor.change_xform(**{name: tuple(out)})
        if len(values) != 6:
            return

        a, b, c, d, e, f = out
        changes = {"Mirror": (-a, b, c, -d, e, f), "Reset": IDENTITY_2D}
        turns = {"-15°": (-15.0, 1.0), "+15°": (15.0, 1.0), "x 1.1": (0.0, 1.1), "x 0.9": (0.0, 1 / 1.1)}
        self._buttons(
            {
                label: partial(editor.change, edit.rotate_scale, editor.index, degrees, factor, name == "post")
                for label, (degrees, factor) in turns.items()
            }
            | {label: partial(editor.change_xform, **{name: affine}) for label, affine in changes.items()}
        )

    def _variations(self) -> None:
        """Each variation of the xform with its weight and parameters, and a search for more."""
        editor, xform = self.editor, self.editor.xform
        reset = imgui.get_frame_height()
        for name, weight in xform.variations.items():
            with imgui_ctx.push_id(name):
                self._label(name)
                imgui.set_next_item_width(-reset - 6 * editor.scale)
                new = _drag("##amount", weight, 0.005)
                if new is not None:  # a weight of 0 would remove the control under the pointer
                    editor.change(edit.with_variation, editor.index, name, new or 1e-6)
                imgui.same_line(0, 6 * editor.scale)
                if imgui.button("x", (reset, 0)):
                    editor.change(edit.with_variation, editor.index, name, 0.0)
                imgui.set_item_tooltip("remove variation")
                for parameter in variation_table()[name].parameters:
                    self._label("  " + parameter.removeprefix(f"{name}_"))
                    new = _drag(f"##{parameter}", xform.parameter_value(parameter), 0.01)
                    if new is not None and parameter_owners()[parameter] == name:
                        editor.change(edit.with_parameter, editor.index, parameter, new)
        self._search()

    def _search(self) -> None:
        """A list of variations, filtered by the typed text; Enter adds the first."""
        editor = self.editor
        imgui.set_next_item_width(-1)
        flags = imgui.InputTextFlags_.enter_returns_true
        entered, self.filter = imgui.input_text_with_hint("##search", "add a variation", self.filter, flags)
        words = self.filter.lower().split()
        unused = [name for name in variation_table() if name not in editor.xform.variations]
        found = [name for name in unused if all(word in name for word in words)]
        chosen = found[0] if entered and words and found else None
        if imgui.begin_list_box("##found", (-1, 110 * editor.scale)):
            for name in found:
                if imgui.selectable(name, False)[0]:
                    chosen = name
            imgui.end_list_box()
        if chosen:
            editor.change(edit.with_variation, editor.index, chosen, 0.5)
            self.filter = ""

    def _xaos(self, flame: Flame) -> None:
        """The xaos matrix: factors on the probability that an xform (column) follows another (row)."""
        editor, count = self.editor, len(flame.xforms)
        flags = imgui.TableFlags_.scroll_x | imgui.TableFlags_.sizing_fixed_fit
        height = (count + 1.6) * imgui.get_frame_height_with_spacing()
        if not imgui.begin_table("##xaos", count + 1, flags, (0, min(height, 220 * editor.scale))):
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
                imgui.set_next_item_width(52 * editor.scale)
                value = xform.xaos[after] if after < len(xform.xaos) else 1.0
                new = _drag(f"##{before} {after}", value, 0.01, 0.0, 1e6, "%.3g")
                if new is not None and new >= 0:
                    editor.change(edit.with_xaos, before, after, new)
        imgui.end_table()

    def _palette(self, flame: Flame) -> None:
        """The flame's gradient, sliders that rotate it and its hue, and all built-in palettes."""
        self._gradient("the flame's colors", flame.palette_colors, f"own {hash(flame.colors)} {flame.palette}")
        self._palette_slider("rotate", -128, 128)
        self._palette_slider("hue", -180, 180)
        imgui.spacing()
        for name in palettes.builtin_names():
            if self._gradient(name, palettes.builtin(name), name, not flame.colors and flame.palette == name):
                self.editor.change(edit.with_palette, name)
        imgui.dummy((0, 2 * self.editor.scale))

    def _palette_slider(self, name: str, low: int, high: int) -> None:
        """A slider that returns to 0; while held, it rotates the palette as it was when pressed."""
        held = self._held_slider if self._held_slider and self._held_slider[0] == name else None
        self._label(name)
        changed, value = imgui.slider_int(f"##{name}", held[1] if held else 0, low, high)
        base = held[2] if held else self.editor.flame.palette_colors
        if changed:
            entries, hue = (value, 0.0) if name == "rotate" else (0, value / 360)
            self.editor.change(edit.with_palette_colors, edit.rotate_palette(base, entries, hue))
        if imgui.is_item_active():
            self._held_slider = name, value, base
        elif held:
            self._held_slider = None

    def _gradient(self, name: str, colors: np.ndarray, key: str, selected: bool = False) -> bool:
        """A palette from left to right; whether it was clicked."""
        scale = self.editor.scale
        size = imgui.ImVec2(imgui.get_content_region_avail().x, GRADIENT_HEIGHT * scale)
        low = imgui.get_cursor_screen_pos()
        clicked = imgui.invisible_button(f"gradient {name}", size)
        imgui.set_item_tooltip(name)
        draw, packed = imgui.get_window_draw_list(), self._packed_colors(colors, key)
        step = size.x / GRADIENT_SEGMENTS
        for k in range(GRADIENT_SEGMENTS):
            left, right = (low.x + k * step, low.y), (low.x + (k + 1) * step, low.y + size.y)
            draw.add_rect_filled_multi_color(left, right, packed[k], packed[k + 1], packed[k + 1], packed[k])
        if selected or imgui.is_item_hovered() or imgui.is_item_focused():
            draw.add_rect(low, low + size, theme.color_u32(theme.ACCENT if selected else theme.TEXT), 0, 1.5 * scale)
        return clicked

    def _packed_colors(self, colors: np.ndarray, key: str) -> list[int]:
        """The colors at the ends of the gradient's segments as draw lists take them, cached by `key`."""
        if key not in self._gradients:
            if len(self._gradients) > CACHED_GRADIENTS:
                self._gradients.clear()
            entries = np.linspace(0, 255, GRADIENT_SEGMENTS + 1).astype(int)
            self._gradients[key] = [theme.color_u32((*(float(c) / 255 for c in colors[k]), 1.0)) for k in entries]
        return self._gradients[key]


def _drag(
    label: str, value: float, speed: float, low: float = 0.0, high: float = 0.0, text: str = "%.4f"
) -> float | None:
    """A number that is dragged or typed: the new value, or None if it was not changed to a finite one."""
    changed, new = imgui.drag_float(label, value, speed, low, high, text)
    return float(new) if changed and np.isfinite(new) else None
