"""The picture `layout`: several scenes side by side, each with its tone mapping; the window shows each in a panel."""

from pathlib import Path
from typing import NamedTuple

from renderer.errors import InputError
from renderer.gpu import DeviceContext
from renderer.gpu.gl import Texture
from renderer.gpu.gl_interop import GlInterop
from renderer.images.tone_mapping import GlToneMapper
from renderer.pictures import SCENE_SUFFIXES, load, open_picture
from renderer.pictures.picture import MAX_TEXTURE_SIDE, AccumulatingPicture, AnyPicture, Size, Tile
from renderer.records import dataclass
from renderer.scene.panel_grid import grid
from renderer.scene.scene import Scene, ToneMapping
from renderer.scene.schema import PictureSettings, required_file, setting

MAX_PANELS = 16
BACKGROUND = (0.004, 0.005, 0.007)


@dataclass(frozen=True)
class Settings(PictureSettings):
    """The scenes, and the grid that they are shown in."""

    panels: tuple[str, ...] = required_file(SCENE_SUFFIXES, "scene files, from left to right, then down")
    columns: int = setting(0, 0, MAX_PANELS, "panels per row; 0 makes the squarest grid")
    gap: int = setting(6, 0, 200, "pixels between the panels")

    def __post_init__(self) -> None:
        if not 1 <= len(self.panels) <= MAX_PANELS:
            raise ValueError(f"panels has {len(self.panels)} files; it must have 1 to {MAX_PANELS}")


class _Panel(NamedTuple):
    scene: Scene
    picture: AnyPicture
    interop: GlInterop


def panels(scene: Scene) -> list[Scene]:
    """The scenes of a layout; InputError if one of them is a layout too."""
    scenes = [load(Path(path)) for path in scene.settings.panels]
    for inner in scenes:
        if inner.picture == scene.picture:
            raise InputError(f"{scene.path}: panels: {inner.path} is a layout too; a layout cannot contain another")
    return scenes


class Picture(AccumulatingPicture[Settings]):
    """Draws one more sample of every unfinished panel per call."""

    drawn_whole, max_side = True, MAX_TEXTURE_SIDE
    settings_type = Settings
    panels = staticmethod(panels)
    tone = ToneMapping("manual")  # the panels have their own

    def __init__(self, gpu: DeviceContext) -> None:
        super().__init__(gpu)
        self._tone_mapper = GlToneMapper(gpu.gl)
        self._blit = gpu.gl.render_pass("images/blit.frag", SRGB=1)
        self._paths: tuple[str, ...] = ()
        self._panels: list[_Panel] = []
        self._target: Texture | None = None
        self._rectangles: list[tuple[int, int, int, int]] = []
        self._toned: list[Texture] = []

    def begin(self, settings: Settings, size: Size, time: float, tile: Tile) -> None:
        """Open the panels, and allocate their textures and the picture."""
        self._target = self.gpu.gl.texture(size)
        self._rectangles = grid(len(self._open(settings)), size, settings.columns, settings.gap)
        self._toned = [self.gpu.gl.texture((w, h), 4, "f1") for _, _, w, h in self._rectangles]

    def add_sample(self, settings: Settings, size: Size, time: float, tile: Tile) -> Texture:
        """Draw every panel and copy it, tone mapped, into the picture."""
        for index, panel in enumerate(self._panels):
            self._draw_panel(index, panel, time)
        assert self._target is not None
        return self._target

    def depends_on_time(self, settings: Settings) -> bool:
        """True: any panel may depend on time."""
        return True

    def restart(self) -> None:
        """Make the next draw the first sample of every panel."""
        super().restart()
        for panel in self._panels:
            panel.picture.restart()

    def sample_count(self, settings: Settings, size: Size) -> int:
        """The largest sample count of the panels."""
        rectangles = grid(len(settings.panels), size, settings.columns, settings.gap)
        panels_ = zip(self._open(settings), rectangles, strict=True)
        return max(panel.picture.sample_count(panel.scene.settings, (w, h)) for panel, (_, _, w, h) in panels_)

    def report(self) -> dict[str, object]:
        """The panels' reports by title."""
        return {panel.scene.title: panel.picture.report() for panel in self._panels}

    def _open(self, settings: Settings) -> list[_Panel]:
        if self._paths != settings.panels:
            scenes = panels(Scene(Path("layout"), "", "layout", settings))
            self._panels = [_Panel(s, open_picture(s, self.gpu), GlInterop(self.gpu.gl)) for s in scenes]
            self._paths = settings.panels
        return self._panels

    def _draw_panel(self, index: int, panel: _Panel, time: float) -> None:
        """One more sample of a panel, unless it is finished."""
        _, _, width, height = self._rectangles[index]
        settings, toned = panel.scene.settings, self._toned[index]
        if self.samples < panel.picture.sample_count(settings, (width, height)):
            frame = panel.picture.draw(settings, (width, height), time)
            self._tone_mapper(panel.interop.texture(frame), panel.scene.tone, toned)
        background = (*BACKGROUND, float(index == 0))  # alpha 1, of the first panel: it fills the picture around it
        self._blit(self._target, image=toned, rectangle=self._rectangles[index], weighted=0, background=background)
