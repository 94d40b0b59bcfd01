"""The picture `reduction`: a picture and beside it every level of its reduction to one texel.

It shows the passes of renderer/numerics/texture_reduction.py for the lessons (chapter 5 of the thesis).
"""

from functools import partial
from typing import Literal

from renderer.gpu import DeviceContext
from renderer.gpu.gl import Texture
from renderer.gpu.gl_interop import GlInterop
from renderer.images.algorithm_view import AlgorithmView
from renderer.images.reduction_passes import reduction_view
from renderer.numerics.texture_reduction import Reduction
from renderer.pictures.picture import CENTER, MAX_TEXTURE_SIDE, AnyPicture, Frame, Point, Size, Tile
from renderer.pictures.source import SOURCE_SUFFIXES, SourcePicture, SourceSettings
from renderer.records import dataclass
from renderer.scene.scene import ToneMapping
from renderer.scene.schema import PictureSettings, required_file, setting

Rectangle = tuple[int, int, int, int]  # left, top, width, height in pixels
BACKGROUND = (0.006, 0.007, 0.010)


@dataclass(frozen=True)
class Settings(SourceSettings):
    """The source, and the operation of the reduction."""

    source: str = required_file(SOURCE_SUFFIXES, "a scene or an image file")
    operation: Literal["mean", "min", "max"] = setting("mean", help="what each texel keeps of its 8 x 8 block")


class Picture(SourcePicture[Settings]):
    """Draws the source and the levels of its reduction."""

    settings_type = Settings
    passes = ("numerics/reduce.frag", "images/blit.frag")
    tone = ToneMapping("manual")
    kind = "reduction"
    algorithm_names = ("passes",)
    image_suffixes = (".png", ".jpg", ".jpeg", ".exr")
    max_side = MAX_TEXTURE_SIDE

    def __init__(self, gpu: DeviceContext) -> None:
        super().__init__(gpu)
        self._reduction = Reduction(gpu.gl)
        self._blit = gpu.gl.render_pass("images/blit.frag", SRGB=0)
        self._interop = GlInterop(gpu.gl)
        self._target: Texture
        self._last_level: Texture | None = None
        self._frame: Texture | None = None  # the frame that was reduced last
        self._is_sum = False  # the levels are sums, to be divided by alpha

    def draw(self, settings: Settings, size: Size, time: float, tile: Tile | None = None) -> Texture:
        """Draw the source's next sample and the levels of its reduction beside it."""
        source = self.open_source(settings.source)
        if source:
            drawn = source.picture.draw(source.scene.settings, image_size(size), time)
            frame = self._interop.texture(drawn)
        else:
            image = partial(self.gpu.gl.image, settings.source, self._pixels)
            frame = self.cached("image", settings.source, image)
        return self.postprocess(settings, size, frame)

    def source_picture(self, settings: Settings, size: Size) -> tuple[AnyPicture, PictureSettings, Size] | None:
        """The picture whose reduction is shown; None for an image."""
        source = self.open_source(settings.source)
        return (source.picture, source.scene.settings, image_size(size)) if source else None

    def postprocess(self, settings: Settings, size: Size, frame: Frame) -> Texture:
        """Draw an image and the levels of its reduction beside it."""
        assert isinstance(frame, Texture), "the window and draw() pass textures"
        self._frame = frame
        gap, (width, _) = gap_size(size), image_size(size)
        self._is_sum = settings.operation == "mean"
        levels = self._reduction.levels("sum" if self._is_sum else settings.operation, frame)
        self._target = self.cached("target", size, lambda: self.gpu.gl.texture(size))
        self._blit_into(frame, (gap, gap, width, max(1, size[1] - 2 * gap)), False, 1.0)
        for level, rectangle in zip(levels, level_rectangles(len(levels), size, width + 2 * gap, gap), strict=True):
            self._blit_into(level, rectangle, self._is_sum, 0.0)
        self._last_level = levels[-1]
        return self._target

    def algorithm(self, name: str, settings: Settings, size: Size, at: Point = CENTER) -> AlgorithmView:
        """The passes of the reduction of the frame that was drawn last, one at a time."""
        if self._frame is None:
            self.draw(settings, size, 0.0)
        assert self._frame is not None
        operation = "sum" if settings.operation == "mean" else settings.operation
        return reduction_view(self._reduction, operation, self._frame, size)

    def report(self) -> dict[str, object]:
        """Red, green and blue of the last level's texel."""
        if self._last_level is None:
            return {}
        texel = self._last_level.read()[0, 0]
        weight = texel[3] if self._is_sum and texel[3] else 1  # alpha is 0 if no pixel of the frame was counted
        return {"last texel": [round(float(x), 4) for x in texel[:3] / weight]}

    def _blit_into(self, image: Texture, rectangle: Rectangle, weighted: bool, background: float) -> None:
        """Draw `image` fitted into the rectangle; `weighted` divides by alpha, which counts the pixels of sums."""
        fitted, color = fit(image.size, rectangle), (*BACKGROUND, background)
        self._blit(self._target, image=image, rectangle=fitted, weighted=int(weighted), background=color)


def gap_size(size: Size) -> int:
    """Pixels between the images."""
    return max(2, size[1] // 45)


def image_size(size: Size) -> Size:
    """Size of the source's picture, left of the levels."""
    gap = gap_size(size)
    return max(1, (size[0] - 3 * gap) * 2 // 3), max(1, size[1] - 2 * gap)


def level_rectangles(count: int, size: Size, left: int, gap: int) -> list[Rectangle]:
    """Rectangles of `count` levels, one below the other, from `left` to the right edge."""
    width = max(1, size[0] - left - gap)
    height = max(1, (size[1] - gap) // count - gap)
    return [(left, gap + k * (height + gap), width, height) for k in range(count)]


def fit(image: Size, rectangle: Rectangle) -> Rectangle:
    """The largest rectangle of the image's aspect ratio, centered in `rectangle`."""
    x, y, width, height = rectangle
    scale = min(width / image[0], height / image[1])
    w, h = (max(1, int(n * scale)) for n in image)
    return (x + (width - w) // 2, y + (height - h) // 2, w, h)
