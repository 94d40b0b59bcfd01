"""The grid of variants: mutants of the flame at hand, drawn small and one a frame; a click takes one and breeds on."""

from dataclasses import replace

from renderer.flames import evolve
from renderer.gpu.gl_interop import GlInterop
from renderer.images.tone_mapping import GlToneMapper
from renderer.pictures.flame import Picture
from renderer.window.controls import theme
from renderer.window.controls.toolkit import imgui

SIDE = 3  # thumbnails in a row and in a column; the flame at hand stands in the middle
KINDS = ("any change", *evolve.MUTATIONS)
QUALITY = 12.0  # samples a pixel of a thumbnail


class Variants:
    """Opened by toggle(); draw() shows it and tells what was chosen."""

    def __init__(self, app, scale: float):
        self.app, self.scale = app, scale
        self.opened, self.kind, self.strength = False, 0, 0.4
        self.flames: list = []
        self.textures: list = []
        self._parent = None  # the flame, kind and strength that the mutants are of
        self._round = 0
        self._picture = None

    def toggle(self) -> None:
        self.opened = not self.opened
        self._parent = None

    @property
    def pending(self) -> bool:
        return self.opened and len(self.textures) < SIDE * SIDE

    def draw(self, editor):
        """The window over the panels; the flame that was chosen in this frame, or None."""
        if not self.opened:
            return None
        size = imgui.get_io().display_size
        width, height = self._thumbnail(size)
        imgui.set_next_window_pos(
            imgui.ImVec2(size.x * 0.42, size.y / 2), imgui.Cond_.appearing, imgui.ImVec2(0.5, 0.5)
        )
        flags = imgui.WindowFlags_.always_auto_resize | imgui.WindowFlags_.no_saved_settings
        _, self.opened = imgui.begin("Variants", True, flags | imgui.WindowFlags_.no_collapse)
        self._options()
        self._breed(editor)
        if self.pending:
            self._draw_next(editor, (width, height))
        chosen = None
        for number in range(SIDE * SIDE):
            if number % SIDE:
                imgui.same_line(0, 6 * self.scale)
            if self._cell(number, (width, height)):
                chosen = self.flames[number]
        imgui.text_disabled("a click or Enter takes one; the middle one makes others")
        if imgui.is_key_pressed(imgui.Key.escape):
            self.opened = False
        imgui.end()
        if chosen is not None and chosen is self.flames[SIDE * SIDE // 2]:
            self._parent, chosen = None, None
        return chosen

    def _thumbnail(self, size) -> tuple[int, int]:
        width = int(min(200 * self.scale, size.x * 0.6 / SIDE))
        return max(width, 16), max(int(width * 0.66), 12)

    def _options(self) -> None:
        imgui.set_next_item_width(130 * self.scale)
        self.kind = imgui.combo("##kind", self.kind, list(KINDS))[1]
        imgui.same_line()
        imgui.set_next_item_width(150 * self.scale)
        self.strength = imgui.slider_float("##strength", self.strength, 0.02, 2.0, "strength %.2f")[1]
        imgui.same_line()
        if imgui.button("Others"):
            self._parent = None

    def _breed(self, editor) -> None:
        """New mutants where the flame at hand, or what is wished, is another."""
        of = (editor.flame, self.kind, round(self.strength, 2))
        if of == self._parent:
            return
        self._parent, self.textures = of, []
        kind = None if self.kind == 0 else KINDS[self.kind]
        self.flames = [evolve.mutate(editor.flame, editor.rng, kind, self.strength) for _ in range(SIDE * SIDE)]
        self.flames[SIDE * SIDE // 2] = editor.flame

    def _draw_next(self, editor, size) -> None:
        """One more thumbnail, from the device to a texture of its own."""
        gpu, number = self.app.gpu, len(self.textures)
        if self._picture is None:
            self._picture, self._bridge, self._tone = Picture(gpu), GlInterop(gpu.gl), GlToneMapper(gpu.gl)
            self._picture.never_block()
        flame = self.flames[number]
        names = type(flame).__dataclass_fields__.keys() & editor.settings.__dataclass_fields__.keys() - {
            "keyframes",
            "view",
        }
        named = {name: getattr(flame, name) for name in names}
        named |= {"quality": QUALITY, "temporal_samples": 1, "supersample": 1}
        settings = replace(editor.settings, **named, keyframes=(), view=editor.view())
        shown = gpu.gl.texture(size, 4, "f1")
        frame = self._picture.draw(settings, size, 0.0)
        self._tone(self._bridge.texture(frame), self.app.panel.scene.tone, shown)
        self.textures.append(shown)
        if not self.pending:
            self._bridge.release()  # before the window's GL can go

    def _cell(self, number: int, size) -> bool:
        """One thumbnail; whether it was taken."""
        low = imgui.get_cursor_screen_pos()
        taken = imgui.invisible_button(f"variant {number}", imgui.ImVec2(*size))
        draw, high = imgui.get_window_draw_list(), imgui.ImVec2(low.x + size[0], low.y + size[1])
        if number >= len(self.textures):
            draw.add_rect_filled(low, high, theme.color_u32((0.055, 0.063, 0.078, 1)))
            return False
        draw.add_image(imgui.ImTextureRef(self.textures[number].texture.glo), low, high)
        middle = number == SIDE * SIDE // 2
        if middle or imgui.is_item_hovered() or imgui.is_item_focused():
            draw.add_rect(low, high, theme.color_u32(theme.ACCENT if middle else theme.TEXT), 0, 1.5 * self.scale)
        return taken
