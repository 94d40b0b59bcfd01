"""The palette of the flame editor: its stops, sliders and buttons, and the palettes that a click chooses.

renderer/flames/gradient.py computes the edits.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from renderer.flames import edit, gradient, palettes
from renderer.window.controls import imgui, theme
from renderer.window.controls.settings import label, slider
from renderer.window.flame_editor.editor import Editor

GRADIENT_HEIGHT, GRADIENT_SEGMENTS = 18, 64  # height at scale 1
HANDLE = 6  # half the width of a stop's handle, at scale 1
SLIDERS = {"rotate": 128, "hue": 180, "saturation": 100, "contrast": 100}  # name -> largest value of either sign


class GradientEditor:
    """Draws the section `palette` of an editor and changes the editor's flame."""

    def __init__(self, editor: Editor):
        self.editor, self.scale = editor, editor.scale
        self.selected = 0  # index of the stop whose color is edited
        self._stops: list[gradient.Stop] = []
        self._palette = b""  # the palette that has these stops
        self._pressed: tuple[np.ndarray, list[gradient.Stop]] | None = None  # palette and stops before a drag
        # The name of the slider pressed last, and the palette and its stops before that press
        self._slid: tuple[str, np.ndarray, list[gradient.Stop]] = "", np.zeros((256, 3)), []
        self._held = 0  # the value of this slider while it is held or typed into

    def draw(self) -> None:
        """Draws the section."""
        editor, flame = self.editor, self.editor.flame
        self._edit_stops(flame.palette_colors)
        for name, limit in SLIDERS.items():
            self._slider(name, limit)
        buttons: dict[str, Callable[[], None]] = {
            "Reverse": lambda: self._put(flame.palette_colors[::-1]),
            "Smooth": lambda: self._put(gradient.smooth(flame.palette_colors)),
            "Random": lambda: self._put(gradient.random_palette(editor.rng)),
            "Open...": editor.open_gradients,
            "Save...": editor.save_gradient,
        }
        for text, run in buttons.items():
            if imgui.button(f"{text}##gradient"):
                run()
            if text not in ("Random", "Save..."):
                imgui.same_line(0, 4 * self.scale)
        self._choices({f"{name}##{number}": colors for number, (name, colors) in enumerate(editor.gradients)})
        for name in palettes.builtin_names():
            if self._gradient(name, palettes.builtin(name), not flame.colors and flame.palette == name):
                editor.change(edit.with_palette, name)
        known = palettes.flam3_palettes()
        if known and imgui.tree_node_ex(f"flam3's palettes ({len(known)})###flam3", theme.FOLD):
            self._choices({f"flam3 {number}": colors for number, colors in known.items()})
            imgui.tree_pop()
        imgui.dummy((0, 2 * self.scale))

    def _choices(self, palettes_by_name: dict[str, np.ndarray]) -> None:
        for name, colors in palettes_by_name.items():
            if self._gradient(name, colors):
                self._put(colors)

    def _put(self, colors: np.ndarray) -> None:
        self.editor.change(edit.with_palette_colors, colors)

    def _edit_stops(self, colors: np.ndarray) -> None:
        """The palette, and the handles of its stops: a click adds one, a drag moves it, a right click deletes it."""
        if colors.tobytes() != self._palette:  # another flame, an undo, or an edit of all entries
            self._stops, self._palette, self._pressed = gradient.fit_stops(colors), colors.tobytes(), None
        scale = self.scale
        low, width = imgui.get_cursor_screen_pos(), imgui.get_content_region_avail().x
        entry = round(min(max((imgui.get_mouse_pos().x - low.x) / width, 0.0), 1.0) * 255)
        if self._gradient("the flame's colors; a click adds a stop", colors) and entry not in dict(self._stops):
            self._stops = sorted([*self._stops, (entry, tuple(colors[entry].tolist()))])
            self.selected = [at for at, _ in self._stops].index(entry)
        stops = self._stops
        self.selected = min(self.selected, len(stops) - 1)
        below, draw, deleted = imgui.get_cursor_screen_pos(), imgui.get_window_draw_list(), None
        for index, (at, color) in enumerate(stops):
            x, radius = low.x + at / 255 * width, HANDLE * scale
            imgui.set_cursor_screen_pos((x - radius, below.y))
            imgui.invisible_button(f"stop {index}", (2 * radius, 2 * radius))
            theme.hint(f"entry {at}: drag it; a right click deletes it")
            deleted = index if imgui.is_item_clicked(1) and len(stops) > 2 else deleted
            if imgui.is_item_activated():
                self.selected, self._pressed = index, (colors, stops)
            if imgui.is_item_active() and self._pressed and imgui.get_mouse_drag_delta(0, 0.0).x:
                least = stops[index - 1][0] + 1 if index else 0
                most = stops[index + 1][0] - 1 if index + 1 < len(stops) else 255
                self._change_stop(index, (min(max(entry, least), most), color), *self._pressed)
            lit = index == self.selected or imgui.is_item_hovered()
            corners = (x, below.y), (x + radius, below.y + 2 * radius), (x - radius, below.y + 2 * radius)
            draw.add_triangle_filled(*corners, theme.color_u32((*(value / 255 for value in color), 1.0)))
            draw.add_triangle(*corners, theme.color_u32(theme.ACCENT if lit else theme.DIM), (2 if lit else 1) * scale)
        imgui.set_cursor_screen_pos((low.x, below.y + 2 * HANDLE * scale + imgui.get_style().item_spacing.y))
        self._edit_color(colors)
        if deleted is not None:
            self._replace(gradient.delete_stop(colors, stops, deleted), [*stops[:deleted], *stops[deleted + 1 :]])

    def _edit_color(self, colors: np.ndarray) -> None:
        """The color of the selected stop: numbers, and a swatch that opens a picker."""
        at, color = self._stops[self.selected]
        label(f"stop at {at}")
        changed, picked = imgui.color_edit3("##stop", [value / 255 for value in color])
        if changed and np.isfinite(picked).all():
            red, green, blue = np.round(np.clip(picked, 0, 1) * 255).tolist()
            self._change_stop(self.selected, (at, (red, green, blue)), colors, self._stops)

    def _change_stop(
        self, index: int, stop: gradient.Stop, colors: np.ndarray, before: Sequence[gradient.Stop]
    ) -> None:
        """Replaces a stop; the palette follows from `colors`, which had the stops `before`."""
        after = [*self._stops[:index], stop, *self._stops[index + 1 :]]
        self._replace(gradient.move_stops(colors, before, after), after)

    def _replace(self, colors: np.ndarray, stops: list[gradient.Stop]) -> None:
        self._put(colors)
        self._stops, self._palette = stops, np.ascontiguousarray(colors, "f8").tobytes()

    def _slider(self, name: str, limit: int) -> None:
        """A slider that returns to 0; while held, it adjusts the palette as it was when pressed."""
        label(name)
        held = self._held if self._slid[0] == name else 0
        changed, value = slider(imgui.slider_int, held, -limit, limit, "%d", 0, name=f"##{name}")
        # The second click of a double click keeps the palette from before the first one.
        if imgui.is_item_activated() and not (imgui.is_mouse_double_clicked(0) and self._slid[0] == name):
            self._slid = name, self.editor.flame.palette_colors, self._stops
        if changed:
            # None in place of stops: the palette is rotated, or not linear between them.
            colors, stops = gradient.adjust_stops(*self._slid[1:], name, value)
            self._replace(colors, stops) if stops else self._put(colors)
        if self._slid[0] == name:
            self._held = value if imgui.is_item_active() else 0

    def _gradient(self, name: str, colors: np.ndarray, selected: bool = False) -> bool:
        """Draws a palette from left to right; returns true if it was clicked."""
        scale = self.scale
        size = imgui.ImVec2(imgui.get_content_region_avail().x, GRADIENT_HEIGHT * scale)
        low = imgui.get_cursor_screen_pos()
        clicked = imgui.invisible_button(f"gradient {name}", size)
        if not imgui.is_item_visible():
            return clicked
        theme.hint(name)
        draw, packed = imgui.get_window_draw_list(), _packed_colors(colors.tobytes())
        step = size.x / GRADIENT_SEGMENTS
        for k in range(GRADIENT_SEGMENTS):
            left, right = (low.x + k * step, low.y), (low.x + (k + 1) * step, low.y + size.y)
            draw.add_rect_filled_multi_color(left, right, packed[k], packed[k + 1], packed[k + 1], packed[k])
        if selected or imgui.is_item_hovered() or imgui.is_item_focused():
            draw.add_rect(low, low + size, theme.color_u32(theme.ACCENT if selected else theme.TEXT), 0, 1.5 * scale)
        return clicked


@lru_cache(maxsize=64)
def _packed_colors(palette: bytes) -> list[int]:
    """The colors at the ends of a gradient's segments as draw lists take them; `palette` is (256, 3) float64."""
    entries = np.linspace(0, 255, GRADIENT_SEGMENTS + 1).astype(int)
    colors = np.frombuffer(palette).reshape(256, 3)[entries] / 255
    return [theme.color_u32((*rgb, 1.0)) for rgb in colors.tolist()]
