"""What the editor of flames draws: the triangles over the picture, and its sections beside it."""

import numpy as np

from renderer.flames import edit, palettes
from renderer.flames.genome import IDENTITY_2D
from renderer.flames.variations import parameter_owners, variation_table
from renderer.window.controls import theme
from renderer.window.controls.toolkit import imgui
from renderer.window.flame_editor.triangles import CORNERS, EDGES, handles, numbers_of
from renderer.window.state import open_files

GRADIENT_HEIGHT, SEGMENTS = 18, 64  # height of a palette's strip at scale 1, and its steps
SYMMETRIES = (2, 3, 4, 5, 6, -1, -2, -3)


def draw_triangles(editor, frame) -> None:
    """Every map's triangle; that of the selected one with its handles."""
    draw, scale, flame = imgui.get_window_draw_list(), editor.scale, editor.flame
    unit = [imgui.ImVec2(*frame.place(corner)) for corner in ((0, 0), (1, 0), (0, 1))]
    draw.add_triangle(*unit, theme.color_u32((1, 1, 1, 0.18)), scale)
    for number in sorted(numbers_of(flame), key=lambda number: number == editor.number):
        chosen = number == editor.number
        corners = edit.triangle(edit.xform_at(flame, number), editor.post)
        spots = handles([frame.place(corner) for corner in corners])
        color, points = editor.color_of(number), [imgui.ImVec2(*spots[name]) for name in CORNERS]
        draw.add_triangle(*points, theme.color_u32((0, 0, 0, 0.6)), (4.0 if chosen else 2.6) * scale)
        if chosen:
            draw.add_triangle_filled(*points, theme.color_u32(color, 0.13))
        draw.add_triangle(*points, theme.color_u32(color, 1.0 if chosen else 0.85), (2.0 if chosen else 1.2) * scale)
        held = editor.grip or editor.under
        for name in (*CORNERS, *EDGES) if chosen else CORNERS:
            lit = held is not None and held.number == number and held.handle == name
            _handle(draw, spots[name], name, color, chosen, lit, scale)
        if chosen:
            label = "final" if number == edit.FINAL_XFORM else str(number + 1)
            _label(draw, editor, spots["O"], label + (" post" if editor.post else ""), color)


def _handle(draw, spot, name: str, color, chosen: bool, lit: bool, scale: float) -> None:
    radius = (6.0 if lit else 4.5 if chosen and name in CORNERS else 3.0) * scale
    center = imgui.ImVec2(*spot)
    draw.add_circle_filled(center, radius + 1.2 * scale, theme.color_u32((0, 0, 0, 0.8)))
    filled = theme.TEXT if lit else color
    draw.add_circle_filled(center, radius, theme.color_u32(filled))
    if name == "O" and chosen:
        draw.add_circle_filled(center, radius * 0.45, theme.color_u32((0, 0, 0, 1)))
    if chosen and name in ("X", "Y"):
        place = imgui.ImVec2(spot[0] + 7 * scale, spot[1] - 16 * scale)
        draw.add_text(imgui.ImVec2(place.x + 1, place.y + 1), theme.color_u32((0, 0, 0, 1)), name)
        draw.add_text(place, theme.color_u32(color), name)


def _label(draw, editor, spot, label: str, color) -> None:
    place = imgui.ImVec2(spot[0] - 6 * editor.scale, spot[1] + 8 * editor.scale)
    size = theme.FONT_SIZE * editor.scale
    draw.add_text(editor.fonts.bold, size, imgui.ImVec2(place.x + 1, place.y + 1), theme.color_u32((0, 0, 0, 1)), label)
    draw.add_text(editor.fonts.bold, size, place, theme.color_u32(color), label)


class Sections:
    """The controls of the flame at hand; every change goes through the editor."""

    def __init__(self, editor):
        self.editor, self.filter = editor, ""
        self._base = None  # the palette before the slider that is held
        self._gradient_cache: dict[str, list[int]] = {}

    def draw(self) -> None:
        editor, flame = self.editor, self.editor.flame
        if flame.is_3d:
            imgui.text_wrapped("Maps of space have no triangles; their numbers are under Settings.")
        else:
            editor.triangles = imgui.checkbox("triangles", editor.triangles)[1]
            imgui.set_item_tooltip("G")
            imgui.same_line()
            editor.post = imgui.checkbox("of post-affines", editor.post)[1]
            imgui.set_item_tooltip("O")
        self._buttons(("Random", editor.random, "B"), ("Variants", editor.variants.toggle, "V"),
                      ("Mutate", editor.mutate, "Shift+V"), ("Fit", editor.fit, "U"))  # fmt: skip
        self._symmetry()
        self._keys()
        self._maps(flame)
        self._map()
        if imgui.tree_node_ex("variations", imgui.TreeNodeFlags_.default_open):
            self._variations()
            imgui.tree_pop()
        if imgui.tree_node("affine"):
            self._affine("affine", editor.map.affine)
            imgui.tree_pop()
        if imgui.tree_node("post-affine"):
            self._affine("post", editor.map.post)
            imgui.tree_pop()
        if imgui.tree_node("xaos"):
            self._xaos(flame)
            imgui.tree_pop()
        if imgui.tree_node("palette"):
            self._palette(flame)
            imgui.tree_pop()
        self._buttons(("Save as .flame", editor.save, "Ctrl+E"))

    def _buttons(self, *buttons) -> None:
        for number, (label, run, keys) in enumerate(buttons):
            if number:
                imgui.same_line(0, 4 * self.editor.scale)
            if imgui.button(label):
                run()
            if keys:
                imgui.set_item_tooltip(keys)

    def _symmetry(self) -> None:
        imgui.align_text_to_frame_padding()
        imgui.text_disabled("symmetry")
        for kind in SYMMETRIES:
            imgui.same_line(0, 3 * self.editor.scale)
            if imgui.small_button(f"{kind}##symmetry"):
                self.editor.symmetry(kind)
            imgui.set_item_tooltip(f"{abs(kind)} turns" + (" and a mirror" if kind < 0 else ""))

    def _keys(self) -> None:
        """The key frames: their times, which is edited, and flames that may become the next."""
        editor, keys = self.editor, self.editor.settings.keyframes
        if not imgui.tree_node(f"key frames ({len(keys)})###keys"):
            return
        self._buttons(("Add this", editor.add_key, "K"), ("Take away", editor.delete_keyframe, "Shift+K"),
                      ("Stop" if keys and not editor.app.panel.paused else "Play", editor.play, "Y"))  # fmt: skip
        for number, key in enumerate(keys):
            if imgui.radio_button(f"{number + 1}##key", number == editor.key):
                editor.choose_key(number)
            imgui.same_line()
            imgui.set_next_item_width(-1)
            changed, time = imgui.input_double(f"##time{number}", key.time, 0.0, 0.0, "at %.4g s")
            low = keys[number - 1].time if number else -1e9
            high = keys[number + 1].time if number + 1 < len(keys) else 1e9
            if changed and low < time < high:
                moved = (*keys[:number], edit.replace(key, time=time), *keys[number + 1 :])
                editor.show(edit.replace(editor.settings, keyframes=moved))
                editor.choose_key(number)
        others = [p.scene for p in editor.app.panels if p is not editor.app.panel] + open_files.presets(editor.app)
        others = [scene for scene in others if scene.picture == editor.app.panel.scene.picture]
        imgui.set_next_item_width(-1)
        if others and imgui.begin_combo("##other", "add another flame"):
            for number, scene in enumerate(others):
                if imgui.selectable(f"{scene.title}##{number}", False)[0]:
                    editor.add_key(scene)
            imgui.end_combo()
        imgui.tree_pop()

    def _maps(self, flame) -> None:
        """One button a map, in its color, and what makes and takes away xforms."""
        editor, scale = self.editor, self.editor.scale
        right = imgui.get_cursor_screen_pos().x + imgui.get_content_region_avail().x
        for number in numbers_of(flame):
            label = "final" if number == edit.FINAL_XFORM else str(number + 1)
            if number not in (0, edit.FINAL_XFORM) or number == edit.FINAL_XFORM:
                width = imgui.calc_text_size(label).x + 4 * imgui.get_style().frame_padding.x
                if imgui.get_item_rect_max().x + width < right:
                    imgui.same_line(0, 4 * scale)
            color = editor.color_of(number)
            chosen = number == editor.number
            imgui.push_style_color(imgui.Col_.text, imgui.ImVec4(*color))
            held = theme.COLORS["button_active" if chosen else "button"]
            imgui.push_style_color(imgui.Col_.button, imgui.ImVec4(*held))
            if imgui.button(f"{label}##map{number}"):
                editor.selected = number
            imgui.pop_style_color(2)
        self._buttons(("Add", editor.add, "A"), ("Double", editor.duplicate, "Shift+A"),
                      ("Delete", editor.delete, "Delete"),
                      ("No final" if flame.final_xform else "Final", editor.toggle_final, "F"))  # fmt: skip

    def _map(self) -> None:
        editor, m = self.editor, self.editor.map
        final = editor.number == edit.FINAL_XFORM
        if not final:
            self._slider("weight", m.weight, 0.001, 10.0, 1e9, True)
        self._slider("color", m.color, 0.0, 1.0)
        self._slider("color_speed", m.color_speed, 0.0, 1.0)
        self._slider("opacity", m.opacity, 0.0, 1.0)

    def _slider(self, name: str, value: float, low: float, high: float, most=None, logarithmic=False) -> None:
        flags = imgui.SliderFlags_.logarithmic if logarithmic else 0
        self._label_column(name)
        changed, new = imgui.slider_float(f"##{name}", value, low, high, "%.4g", flags)
        if changed and np.isfinite(new):
            self.editor.change_map(**{name: float(min(max(new, 0.0 if most else -1e9), most or 1e9))})

    def _label_column(self, name: str) -> None:
        imgui.align_text_to_frame_padding()
        imgui.text_disabled(name.replace("_", " "))
        imgui.same_line(imgui.get_cursor_start_pos().x + 110 * self.editor.scale)
        imgui.set_next_item_width(-1)

    def _affine(self, name: str, values) -> None:
        """Two rows of three numbers, by hand, and turns and mirrors of the triangle."""
        editor, out = self.editor, list(values)
        width = (imgui.get_content_region_avail().x - 16 * editor.scale) / 3
        per_row = 4 if len(values) == 12 else 3
        width = width * 3 / per_row
        for k, value in enumerate(values):
            if k % per_row:
                imgui.same_line(0, 4 * editor.scale)
            imgui.set_next_item_width(width)
            changed, new = imgui.drag_float(f"##{name}{k}", value, 0.005, 0.0, 0.0, "%.4f")
            if changed and np.isfinite(new) and abs(new) < 1e9:
                out[k] = float(new)
        if tuple(out) != tuple(values):
            editor.change_map(**{name: tuple(out)})
        if len(values) != 6:
            return
        post = name == "post"
        turned = edit.rotate_scale
        self._buttons(
            ("-15°", lambda: editor.change(turned, editor.number, -15.0, 1.0, post), ""),
            ("+15°", lambda: editor.change(turned, editor.number, 15.0, 1.0, post), ""),
            ("x 1.1", lambda: editor.change(turned, editor.number, 0.0, 1.1, post), ""),
            ("x 0.9", lambda: editor.change(turned, editor.number, 0.0, 1 / 1.1, post), ""),
            ("Mirror", lambda: self._mirror(name), ""),
            ("Reset", lambda: editor.change_map(**{name: IDENTITY_2D}), ""),
        )

    def _mirror(self, name: str) -> None:
        a, b, c, d, e, f = getattr(self.editor.map, name)
        self.editor.change_map(**{name: (-a, b, c, -d, e, f)})

    def _variations(self) -> None:
        """Each variation of the map with its amount and parameters, and a search for more."""
        editor, m = self.editor, self.editor.map
        reset = imgui.get_frame_height()
        for name, weight in m.variations.items():
            imgui.push_id(name)
            self._label_column(name)
            imgui.set_next_item_width(-reset - 6 * editor.scale)
            changed, new = imgui.drag_float("##amount", weight, 0.005, 0.0, 0.0, "%.4f")
            if changed and np.isfinite(new):  # 0 would take it away under the pointer
                editor.change(edit.with_variation, editor.number, name, float(new) or 1e-6)
            imgui.same_line(0, 6 * editor.scale)
            if imgui.button("x", imgui.ImVec2(reset, 0)):
                editor.change(edit.with_variation, editor.number, name, 0.0)
            imgui.set_item_tooltip("take it away")
            for parameter in variation_table()[name].parameters:
                self._label_column("  " + parameter.removeprefix(f"{name}_"))
                changed, new = imgui.drag_float(f"##{parameter}", m.parameter_value(parameter), 0.01, 0.0, 0.0, "%.4f")
                if changed and np.isfinite(new) and parameter_owners()[parameter] == name:
                    editor.change(edit.with_parameter, editor.number, parameter, float(new))
            imgui.pop_id()
        self._search()

    def _search(self) -> None:
        """A list of variations that narrows as one types; Enter adds the first."""
        editor = self.editor
        imgui.set_next_item_width(-1)
        flags = imgui.InputTextFlags_.enter_returns_true
        entered, self.filter = imgui.input_text_with_hint("##search", "add a variation", self.filter, flags)
        words = self.filter.lower().split()
        mine = editor.map.variations
        free = [name for name in variation_table() if name not in mine]
        found = [name for name in free if all(word in name for word in words)]
        chosen = found[0] if entered and words and found else None
        if imgui.begin_list_box("##found", imgui.ImVec2(-1, 110 * editor.scale)):
            for name in found:
                if imgui.selectable(name, False)[0]:
                    chosen = name
            imgui.end_list_box()
        if chosen:
            editor.change(edit.with_variation, editor.number, chosen, 0.5)
            self.filter = ""

    def _xaos(self, flame) -> None:
        """How much more often (above 1) or less a map comes after another: a row for the map before."""
        editor, count = self.editor, len(flame.xforms)
        flags = imgui.TableFlags_.scroll_x | imgui.TableFlags_.sizing_fixed_fit
        height = (count + 1.6) * imgui.get_frame_height_with_spacing()
        if not imgui.begin_table("##xaos", count + 1, flags, imgui.ImVec2(0, min(height, 220 * editor.scale))):
            return
        for k in range(-1, count):
            imgui.table_next_column()
            imgui.text_disabled("after" if k < 0 else str(k + 1))
        for before, m in enumerate(flame.xforms):
            imgui.table_next_row()
            imgui.table_next_column()
            imgui.align_text_to_frame_padding()
            imgui.text_disabled(str(before + 1))
            for after in range(count):
                imgui.table_next_column()
                imgui.set_next_item_width(52 * editor.scale)
                value = m.xaos[after] if after < len(m.xaos) else 1.0
                changed, new = imgui.drag_float(f"##{before} {after}", value, 0.01, 0.0, 1e6, "%.3g")
                if changed and np.isfinite(new) and new >= 0:
                    editor.change(edit.with_xaos, before, after, float(new))
        imgui.end_table()

    def _palette(self, flame) -> None:
        """The flame's colors, sliders that turn them, and every built-in palette as a strip."""
        editor, scale = self.editor, self.editor.scale
        self._gradient("the flame's colors", flame.palette_colors, f"own {hash(flame.colors)} {flame.palette}")
        self._palette_slider("rotate", -128, 128)
        self._palette_slider("hue", -180, 180)
        imgui.spacing()
        for name in palettes.builtin_names():
            if self._gradient(name, palettes.builtin(name), name, not flame.colors and flame.palette == name):
                editor.change(edit.with_palette, name)
        imgui.dummy(imgui.ImVec2(0, 2 * scale))

    def _palette_slider(self, name: str, low: int, high: int) -> None:
        """A slider from the middle that turns the palette as long as it is held."""
        held, base = self._base or (None, None)
        value = held[1] if held and held[0] == name else 0
        self._label_column(name)
        changed, value = imgui.slider_int(f"##{name}", value, low, high)
        if imgui.is_item_activated():
            base = self.editor.flame.palette_colors
        if changed and base is not None:
            entries, hue = (value, 0.0) if name == "rotate" else (0, value / 360)
            self.editor.change(edit.with_palette_colors, edit.rotate_palette(base, entries, hue))
        if imgui.is_item_active():
            self._base = (name, value), base
        elif held and held[0] == name:
            self._base = None

    def _gradient(self, name: str, colors, key: str, chosen: bool = False) -> bool:
        """A palette from left to right; whether it was pressed."""
        scale = self.editor.scale
        size = imgui.ImVec2(imgui.get_content_region_avail().x, GRADIENT_HEIGHT * scale)
        low = imgui.get_cursor_screen_pos()
        pressed = imgui.invisible_button(f"strip {name}", size)
        imgui.set_item_tooltip(name)
        draw, packed = imgui.get_window_draw_list(), self._packed_gradient(colors, key)
        step = size.x / SEGMENTS
        for k in range(SEGMENTS):
            left, right = imgui.ImVec2(low.x + k * step, low.y), imgui.ImVec2(low.x + (k + 1) * step, low.y + size.y)
            one, two = packed[k], packed[k + 1]
            draw.add_rect_filled_multi_color(left, right, one, two, two, one)
        if chosen or imgui.is_item_hovered() or imgui.is_item_focused():
            high = imgui.ImVec2(low.x + size.x, low.y + size.y)
            draw.add_rect(low, high, theme.color_u32(theme.ACCENT if chosen else theme.TEXT), 0, 1.5 * scale)
        return pressed

    def _packed_gradient(self, colors, key: str) -> list[int]:
        if key not in self._gradient_cache:
            if len(self._gradient_cache) > 64:
                self._gradient_cache.clear()
            at = np.linspace(0, 255, SEGMENTS + 1).astype(int)
            self._gradient_cache[key] = [theme.color_u32((*(float(c) / 255 for c in colors[k]), 1.0)) for k in at]
        return self._gradient_cache[key]
