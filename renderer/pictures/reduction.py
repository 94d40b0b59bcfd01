"""The passes of a reduction made visible: a picture, and beside it every target down to the one texel (paper 5)."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from renderer.errors import InputError
from renderer.formats.images import read_image
from renderer.gpu import DeviceContext
from renderer.gpu.gl import Texture
from renderer.gpu.gl_interop import GlInterop
from renderer.numerics.texture_reduction import Reduction
from renderer.pictures import load, open_picture, require_untiled
from renderer.pictures.picture import Picture as BasePicture
from renderer.scene.scene import ToneMapping
from renderer.scene.schema import PictureSettings, setting

IMAGES = (".png", ".jpg", ".jpeg", ".exr")
SOURCE = dict(low=None, high=None, help="a scene or an image file", key=None, file=True, logarithmic=False)


@dataclass(frozen=True)
class Settings(PictureSettings):
    source: str = field(metadata=SOURCE)
    operation: Literal["mean", "min", "max"] = setting("mean", help="what each texel holds of its 8 x 8 square")


class Picture(BasePicture):
    settings_type = Settings
    tone = ToneMapping("manual")

    def __init__(self, gpu: DeviceContext):
        self._gpu = gpu
        self._reduction = Reduction(gpu.gl)
        self._pyramid = gpu.gl.render_pass("images/blit_level.frag")
        self._bridge = GlInterop(gpu.gl)
        self._opened = ("", None, None)  # path, scene and picture, or path, None and the image
        self._target: Texture | None = None
        self._last: Texture | None = None
        self._weighted = False

    def draw(self, settings: Settings, size: tuple[int, int], time: float, tile=None) -> Texture:
        require_untiled("reduction", size, tile)
        return self.postprocess(settings, size, self._source(settings.source, inner(size), time))

    def restart(self) -> None:
        """The next draw is of the first sample."""
        if self._opened[1]:
            self._opened[2].restart()

    def source_picture(self, settings: Settings, size: tuple[int, int]):
        """The picture whose passes are shown; None for an image."""
        scene, picture = self._open(settings.source)
        return (picture, scene.settings, inner(size)) if scene else None

    def postprocess(self, settings: Settings, size: tuple[int, int], image: Texture) -> Texture:
        """An image and the targets of its passes."""
        gap, (wide, _) = gap_of(size), inner(size)
        levels = self._reduction.levels("sum" if settings.operation == "mean" else settings.operation, image)
        if self._target is None or self._target.size != size:
            self._target = self._gpu.gl.texture(size)
        weighted = int(settings.operation == "mean")
        self._place(image, (gap, gap, wide, max(1, size[1] - 2 * gap)), 0, 1)
        for level, rectangle in zip(levels, column(levels, size, wide + 2 * gap, gap), strict=True):
            self._place(level, rectangle, weighted, 0)
        self._last, self._weighted = levels[-1], bool(weighted)
        return self._target

    def sample_count(self, settings: Settings, size: tuple[int, int]) -> int:
        scene, picture = self._open(settings.source)
        return picture.sample_count(scene.settings, size) if scene else 1

    def depends_on_time(self, settings: Settings) -> bool:
        scene, picture = self._open(settings.source)
        return bool(scene) and picture.depends_on_time(scene.settings)

    def report(self) -> dict:
        """The last texel as red, green, blue."""
        if self._last is None:
            return {}
        texel = self._last.read()[0, 0]
        return {"last texel": [round(float(x), 4) for x in texel[:3] / (texel[3] if self._weighted else 1)]}

    def _place(self, image: Texture, rectangle, weighted: int, background: int) -> None:
        inputs = dict(image=image, rectangle=_fitted(image, rectangle), weighted=weighted, background=background)
        self._pyramid(self._target, **inputs)

    def _source(self, path: str, size: tuple[int, int], time: float) -> Texture:
        scene, picture = self._open(path)
        return self._bridge.texture(picture.draw(scene.settings, size, time)) if scene else picture

    def _open(self, path: str):
        """Scene and Picture of the source, or None and the texture of an image."""
        if self._opened[0] != path:
            if Path(path).suffix.lower() in IMAGES:
                pixels = read_image(Path(path))
                image = self._gpu.gl.texture(pixels.shape[1::-1]).write(pixels)
                self._opened = (path, None, image)
            else:
                scene = load(Path(path))
                if scene.picture in ("reduction", "layout"):
                    raise InputError(f"{path}: is a {scene.picture}; a reduction shows a picture of another kind")
                self._opened = (path, scene, open_picture(scene, self._gpu))
        return self._opened[1:]


def gap_of(size: tuple[int, int]) -> int:
    """Pixels between the images."""
    return max(2, size[1] // 45)


def inner(size: tuple[int, int]) -> tuple[int, int]:
    """Width and height of the picture, beside which the targets stand."""
    gap = gap_of(size)
    return max(1, (size[0] - 3 * gap) * 2 // 3), max(1, size[1] - 2 * gap)


def column(levels: list[Texture], size: tuple[int, int], left: int, gap: int) -> list[tuple[int, int, int, int]]:
    """Rectangles for the levels, one below the other right of `left`."""
    width = max(1, size[0] - left - gap)
    height = max(1, (size[1] - gap) // len(levels) - gap)
    return [(left, gap + k * (height + gap), width, height) for k in range(len(levels))]


def _fitted(image: Texture, rectangle: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    """The largest rectangle of the image's shape in the middle of `rectangle`."""
    x, y, width, height = rectangle
    scale = min(width / image.size[0], height / image.size[1])
    w, h = (max(1, int(n * scale)) for n in image.size)
    return (x + (width - w) // 2, y + (height - h) // 2, w, h)
