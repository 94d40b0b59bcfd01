"""Thumbnails of the flame editor, one drawn a frame: the grid of variants, and pictures of variations.

The grid shows mutants of the current flame; as in Electric Sheep and Apophysis, the selected mutant becomes the parent
of the next ones.
"""

from dataclasses import fields, replace
from functools import partial

from renderer.flames import evolve
from renderer.flames.camera import FlameView
from renderer.flames.genome import IDENTITY_2D, Flame, Xform
from renderer.flames.settings import Settings
from renderer.gpu.gl import Texture
from renderer.gpu.gl_interop import GlInterop
from renderer.images.tone_mapping import GlToneMapper
from renderer.pictures.flame import Picture
from renderer.scene.scene import ToneMapping
from renderer.window.controls import imgui, theme
from renderer.window.flame_editor.editor import Editor
from renderer.window.state.app_state import AppState

SIDE = 3  # thumbnails in a row and in a column
PARENT = SIDE * SIDE // 2  # the cell of the current flame, in the middle
KINDS = ("any change", *evolve.MUTATIONS)
QUALITY = 12.0  # samples per pixel of a thumbnail
GRID_SIDE, GRID_VIEW = 180, FlameView((0.0, 0.0), 3.0, 0.0)  # side and view of a variation's picture, at scale 1
GRID_LINES = [k / 4 for k in range(-4, 5)]


class Thumbnails:
    """Draws flames of many structures to textures, without waiting for their kernels."""

    def __init__(self, app: AppState, scale: float):
        self.app, self.scale = app, scale
        self._picture: Picture | None = None
        self._interop, self._tone_mapper = GlInterop(app.gpu.gl), GlToneMapper(app.gpu.gl)

    def draw_flame(self, settings: Settings, size: tuple[int, int], tone: ToneMapping) -> Texture:
        """A new texture of the flame; runs as the window's work."""
        if self._picture is None:
            self._picture = Picture(self.app.gpu)
            self._picture.never_block()
        texture: Texture = self.app.gpu.gl.texture(size, 4, "f1")
        self._tone_mapper(self._interop.texture(self._picture.draw(settings, size, 0.0)), tone, texture)
        return texture


class VariationPictures(Thumbnails):
    """Pictures of variations: each is the final xform of a flame that draws a square grid of lines."""

    def __init__(self, app: AppState, scale: float):
        super().__init__(app, scale)
        self._textures: dict[str, Texture] = {}

    def tooltip(self, name: str) -> None:
        """Shows the variation's picture beside the pointer, as soon as it is drawn."""
        size = (round(GRID_SIDE * self.scale),) * 2
        if name not in self._textures and not self.app.work.is_waiting:
            self.app.work.start(partial(self._draw, name, size))
        if name in self._textures and imgui.begin_tooltip():
            imgui.image(imgui.ImTextureRef(self._textures[name].texture.glo), size)
            imgui.end_tooltip()

    def _draw(self, name: str, size: tuple[int, int]) -> None:
        """Draws the thumbnail of a variation: a grid of thin lines, with a color for each direction, after it."""
        # A post-affine (xx, xy, x0, yx, yy, y0) makes the square thin, and moves it to a grid line.
        lines = [
            Xform(IDENTITY_2D, color=0.15 + 0.5 * down, variations={"square": 1.0},
                  post=(0.01, 0.0, at, 0.0, 2.0, 0.0) if down else (2.0, 0.0, 0.0, 0.0, 0.01, at))
            for down in (0, 1) for at in GRID_LINES
        ]  # fmt: skip
        final = Xform(IDENTITY_2D, color_speed=0.0, variations={name: 1.0})
        flame = Settings(xforms=tuple(lines), final_xform=final, palette="spectrum", quality=20.0, view=GRID_VIEW)
        self._textures[name] = self.draw_flame(flame, size, Picture.tone)
        self._interop.release()


class Variants(Thumbnails):
    """A Dear ImGui window of thumbnails, opened by toggle(); draw() returns a flame that was clicked."""

    def __init__(self, app: AppState, scale: float):
        super().__init__(app, scale)
        self.is_open, self.kind, self.strength = False, 0, 0.4
        self.flames: list[Flame] = []
        self.textures: list[Texture] = []
        self._parent: tuple[Flame, int, float] | None = None  # the flame, kind and strength of the mutants

    def toggle(self) -> None:
        """Opens the grid with new mutants, or closes it."""
        self.is_open = not self.is_open
        self._parent = None

    @property
    def pending(self) -> bool:
        """True while thumbnails are left to draw."""
        return self.is_open and len(self.textures) < SIDE * SIDE

    def draw(self, editor: Editor) -> Flame | None:
        """Draws the grid over the panels; returns the mutant selected in this frame."""
        if not self.is_open:
            return None
        size = imgui.get_io().display_size
        width = max(int(min(200 * self.scale, size.x * 0.6 / SIDE)), 16)
        thumbnail = width, max(int(width * 0.66), 12)
        center = (size.x * 0.42, size.y / 2)
        imgui.set_next_window_pos(center, imgui.Cond_.appearing, (0.5, 0.5))
        flags = imgui.WindowFlags_.always_auto_resize | imgui.WindowFlags_.no_saved_settings
        _, is_open = imgui.begin("Variants", True, flags | imgui.WindowFlags_.no_collapse)
        self.is_open = bool(is_open)
        self._options()
        self._mutate(editor)
        if self.pending and not self.app.work.is_waiting:
            self.app.work.start(partial(self._draw_next, editor, thumbnail))
        selected = None
        for cell in range(SIDE * SIDE):
            if cell % SIDE:
                imgui.same_line(0, theme.UNIT * self.scale)
            if self._cell(cell, thumbnail):
                selected = cell
        imgui.text_disabled("click or Enter selects a flame; the middle one makes new variants")
        if imgui.is_key_pressed(imgui.Key.escape):
            self.is_open = False
        imgui.end()
        if selected == PARENT:
            self._parent = None
        return None if selected is None or selected == PARENT else self.flames[selected]

    def _options(self) -> None:
        imgui.set_next_item_width(130 * self.scale)
        self.kind = imgui.combo("##kind", self.kind, list(KINDS))[1]
        imgui.same_line()
        imgui.set_next_item_width(150 * self.scale)
        self.strength = imgui.slider_float("##strength", self.strength, 0.02, 2.0, "strength %.2f")[1]
        imgui.same_line()
        if imgui.button("New variants"):
            self._parent = None

    def _mutate(self, editor: Editor) -> None:
        """Makes new mutants if the current flame or the options changed."""
        parent = (editor.flame, self.kind, round(self.strength, 2))
        if parent == self._parent:
            return
        self._parent, self.textures = parent, []
        kind = None if self.kind == 0 else KINDS[self.kind]
        self.flames = [evolve.mutate(editor.flame, editor.rng, kind, self.strength) for _ in range(SIDE * SIDE)]
        self.flames[PARENT] = editor.flame

    def _draw_next(self, editor: Editor, size: tuple[int, int]) -> None:
        """Draws the next thumbnail to a new texture."""
        flame, textures = self.flames[len(self.textures)], self.textures
        names = {f.name for f in fields(flame)} & {f.name for f in fields(editor.settings)} - {"keyframes", "view"}
        changes = {name: getattr(flame, name) for name in names}
        changes |= {"quality": QUALITY, "temporal_samples": 1, "supersample": 1, "keyframes": (), "view": editor.view()}
        texture = self.draw_flame(replace(editor.settings, **changes), size, editor.panel.scene.tone)
        textures.append(texture)  # not to self.textures: new mutants may have come while kernels were compiled
        if not self.pending:
            self._interop.release()  # the interop must not outlive the GL context

    def _cell(self, cell: int, size: tuple[int, int]) -> bool:
        """Draws one thumbnail; returns true if it was clicked."""
        low = imgui.get_cursor_screen_pos()
        clicked = imgui.invisible_button(f"variant {cell}", size)
        draw, high = imgui.get_window_draw_list(), (low.x + size[0], low.y + size[1])
        if cell >= len(self.textures):
            draw.add_rect_filled(low, high, theme.color_u32((0.055, 0.063, 0.078, 1)))
            return False
        draw.add_image(imgui.ImTextureRef(self.textures[cell].texture.glo), low, high)
        if cell == PARENT or imgui.is_item_hovered() or imgui.is_item_focused():
            color = theme.color_u32(theme.ACCENT if cell == PARENT else theme.TEXT)
            draw.add_rect(low, high, color, 0, 1.5 * self.scale)
        return clicked
