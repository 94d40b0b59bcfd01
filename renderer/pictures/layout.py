"""Several scenes side by side in one picture, each tone mapped as its own scene says; the window takes them apart."""

from dataclasses import dataclass
from pathlib import Path

from renderer.errors import InputError
from renderer.gpu import DeviceContext
from renderer.gpu.gl import Texture
from renderer.gpu.gl_interop import GlInterop
from renderer.images.tone_mapping import GlToneMapper
from renderer.pictures import load, open_picture, require_untiled
from renderer.pictures.picture import Picture as BasePicture
from renderer.scene.panel_grid import grid
from renderer.scene.scene import Scene, ToneMapping
from renderer.scene.schema import PictureSettings, setting

LARGEST_COUNT = 16


@dataclass(frozen=True)
class Settings(PictureSettings):
    panels: tuple[str, ...] = setting((), help="scene files, shown from left to right and downwards", file=True)
    columns: int = setting(0, 0, LARGEST_COUNT, "panels in a row; 0 takes the squarest grid")
    gap: int = setting(6, 0, 200, "pixels between the panels")

    def __post_init__(self):
        if not 1 <= len(self.panels) <= LARGEST_COUNT:
            raise ValueError(f"panels has {len(self.panels)} files; it must have 1 to {LARGEST_COUNT}")


def panels(scene: Scene) -> list[Scene]:
    """The scenes of the layout; InputError when one of them is a layout itself."""
    scenes = [load(Path(path)) for path in scene.settings.panels]
    for inner in scenes:
        if inner.picture == scene.picture:
            raise InputError(f"{scene.path}: panels: {inner.path} is a layout too; a layout holds no other")
    return scenes


class Picture(BasePicture):
    settings_type = Settings
    panels = staticmethod(panels)
    tone = ToneMapping("manual")  # the panels are tone mapped one by one

    def __init__(self, gpu: DeviceContext):
        self._gpu = gpu
        self._tone = GlToneMapper(gpu.gl)
        self._place = gpu.gl.render_pass("images/blit.frag")
        self._opened: tuple = ((), [])
        self._drawn = None
        self._count = 0

    def draw(self, settings: Settings, size: tuple[int, int], time: float, tile=None) -> Texture:
        require_untiled("layout", size, tile)
        members = self._members(settings)
        if (settings, size, time) != self._drawn:
            self._drawn, self._count = (settings, size, time), 0
            self._target = self._gpu.gl.texture(size)
            self._rectangles = grid(len(members), size, settings.columns, settings.gap)
            self._shown = [self._gpu.gl.texture((w, h), 4, "f1") for _, _, w, h in self._rectangles]
        for member, rectangle, shown in zip(members, self._rectangles, self._shown, strict=True):
            self._draw_member(member, rectangle, shown, time)
        self._count += 1
        return self._target

    def restart(self) -> None:
        """The next draw is the first sample of every panel."""
        self._drawn = None
        for _, picture, _ in self._opened[1]:
            picture.restart()

    def sample_count(self, settings: Settings, size: tuple[int, int]) -> int:
        rectangles = grid(len(settings.panels), size, settings.columns, settings.gap)
        members = zip(self._members(settings), rectangles, strict=True)
        return max(picture.sample_count(scene.settings, r[2:]) for (scene, picture, _), r in members)

    def report(self) -> dict:
        return {scene.title: picture.report() for scene, picture, _ in self._opened[1]}

    def _members(self, settings: Settings) -> list[tuple]:
        """Scene, Picture and GlInterop of each panel."""
        if self._opened[0] != settings.panels:
            scene = Scene(Path("layout"), "", __name__.rpartition(".")[2], settings)
            members = [(s, open_picture(s, self._gpu), GlInterop(self._gpu.gl)) for s in panels(scene)]
            self._opened = (settings.panels, members)
        return self._opened[1]

    def _draw_member(self, member, rectangle, shown: Texture, time: float) -> None:
        """One more sample of a panel, unless it is finished."""
        scene, picture, bridge = member
        if self._count < picture.sample_count(scene.settings, rectangle[2:]):
            frame = picture.draw(scene.settings, rectangle[2:], time)
            self._tone(bridge.texture(frame), scene.tone, shown)
        first = int(member is self._opened[1][0])
        self._place(self._target, image=shown, corner=rectangle[:2], background=first)
