"""The picture `laplacian`: edges of an image or of another picture by the Laplacian filter of numerics/laplacian.py.

The filter runs as a kernel or as a GLSL pass.
"""

from pathlib import Path
from typing import Any, Literal

import numpy as np

from renderer.gpu import DeviceContext
from renderer.gpu.gl import Texture
from renderer.gpu.gl_interop import GlInterop
from renderer.numerics.laplacian import BORDERS, bind_laplacian
from renderer.pictures import load, picture_class
from renderer.pictures.picture import MAX_TEXTURE_SIDE, AnyPicture, Frame, Size, Tile
from renderer.pictures.source import SOURCE_SUFFIXES, SourcePicture, SourceSettings
from renderer.records import dataclass
from renderer.scene.scene import ToneMapping
from renderer.scene.schema import PictureSettings, required_file, setting


@dataclass(frozen=True)
class Settings(SourceSettings):
    """The source, and the filter."""

    source: str = required_file(SOURCE_SUFFIXES, "the image file or scene whose edges are shown")
    method: Literal["auto", "naive", "shared_tiles", "register_rows", "gl"] = setting(
        "auto", help="variant of the kernel, or gl: a GLSL pass"
    )
    neighbors: Literal[4, 8] = setting(8, help="5-point or 9-point stencil")
    border: Literal["clamp", "reflect", "wrap", "zero"] = setting(
        "clamp", help="values outside the image; reflect is NumPy's and OpenCV's REFLECT_101"
    )
    gain: float = setting(1.0, 0.0, 1000.0, "brightness of the edges", logarithmic=False)
    show_sign: bool = setting(False, help="signed values around middle gray instead of magnitudes")
    samples: int = setting(0, 0, 1 << 20, "samples of a source that is a scene; 0: the source's own")


class Picture(SourcePicture[Settings]):
    """Draws the edges of the source."""

    settings_type = Settings
    passes = ("numerics/laplacian.frag",)
    tone = ToneMapping("manual")
    kind = "laplacian"
    image_suffixes = (".png", ".exr", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp")

    def __init__(self, gpu: DeviceContext) -> None:
        super().__init__(gpu)
        self._report: dict[str, Any] = {}
        self._source_is_texture = False

    @classmethod
    def longest_side(cls, settings: Settings) -> int:
        """The longest side in pixels: MAX_TEXTURE_SIDE for the method gl, else `max_side`, and at most the source's."""
        is_image = Path(settings.source).suffix.lower() in cls.image_suffixes
        source = None if is_image else load(Path(settings.source))
        sides = [picture_class(source.picture).longest_side(source.settings)] if source else []
        return min([MAX_TEXTURE_SIDE if settings.method == "gl" else cls.max_side, *sides])

    def draw(self, settings: Settings, size: Size, time: float, tile: Tile | None = None) -> Frame:
        """Draw the source's next sample and return its edges."""
        source = self.open_source(settings.source)
        frame = source.picture.draw(source.scene.settings, size, time) if source else fitted(self._pixels, size)
        return self.postprocess(settings, size, frame)

    def sample_count(self, settings: Settings, size: Size) -> int:
        """The setting `samples` for a scene, if it is not 0; else the source's samples."""
        source_samples = super().sample_count(settings, size)
        return settings.samples if settings.samples and self.open_source(settings.source) else source_samples

    def source_picture(self, settings: Settings, size: Size) -> tuple[AnyPicture, PictureSettings, Size] | None:
        """Return the picture whose edges are shown if the source or the filter uses GL; None for an image."""
        source = self.open_source(settings.source)
        uses_gl = settings.method == "gl" or self._source_is_texture
        return (source.picture, source.scene.settings, size) if source and uses_gl else None

    def postprocess(self, settings: Settings, size: Size, frame: Frame | np.ndarray) -> Frame:
        """Return the edges of a frame, or of pixels (height, width, 4)."""
        width, height = size
        self._source_is_texture = isinstance(frame, Texture)
        self._report = {"source": Path(settings.source).name, "method": settings.method}
        if settings.method == "gl":
            return self._filter_by_gl(settings, frame, size)
        device = self.gpu.device
        image, edges = self.cached("buffers", size, lambda: [device.buffer((height, width, 4)) for _ in range(2)])
        if isinstance(frame, np.ndarray):
            image.write(frame)
        elif isinstance(frame, Texture):
            image.write(frame.read().astype("f4", copy=False))
        else:
            image = frame
        bind_laplacian(device, image, edges, settings.neighbors, settings.border, settings.method)()
        # `show` reads neither neighbors nor borders: one program serves all settings.
        constants: dict[str, Any] = dict(ELEMENT="float", BYTES=0, CHANNELS=4, NEIGHBORS=8, BORDER=0, FRAME=1)
        show = device.kernel("numerics/laplacian.cu", "show", STRICT=1, **constants)
        show(width * height, edges, np.uint32(width * height), float(settings.gain), int(settings.show_sign))
        return edges

    def _filter_by_gl(self, settings: Settings, frame: Frame | np.ndarray, size: Size) -> Texture:
        """Filters a frame by OpenGL."""
        gl = self.gpu.gl
        target: Texture = self.cached("target", size, lambda: gl.texture(size))
        if isinstance(frame, np.ndarray):
            frame = gl.texture(size).write(frame)
        constants = dict(NEIGHBORS=settings.neighbors, BORDER=BORDERS[settings.border])
        filter_pass = gl.render_pass("numerics/laplacian.frag", **constants)
        image = self.cached("interop", None, lambda: GlInterop(gl)).texture(frame)
        filter_pass(target, image=image, gain=settings.gain, show_sign=int(settings.show_sign))
        return target

    def report(self) -> dict[str, object]:
        """Name of the source, and the method."""
        return self._report


def fitted(pixels: np.ndarray, size: Size) -> np.ndarray:
    """Scale pixels by nearest neighbor into a picture of `size`, (height, width, 4), with black margins."""
    width, height = size
    scale = min(width / pixels.shape[1], height / pixels.shape[0])
    w, h = max(1, round(pixels.shape[1] * scale)), max(1, round(pixels.shape[0] * scale))
    rows = ((np.arange(h) + 0.5) * pixels.shape[0] / h).astype(int)
    columns = ((np.arange(w) + 0.5) * pixels.shape[1] / w).astype(int)
    out = np.zeros((height, width, 4), "f4")
    out[..., 3] = 1
    top, left = (height - h) // 2, (width - w) // 2
    out[top : top + h, left : left + w] = pixels[rows[:, None], columns]
    return out
