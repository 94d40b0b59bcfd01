"""Edges of an image or of any other picture, live: the Laplacian filter of the thesis (chapter 4).

By the kernels of numerics/laplacian.py or by an OpenGL fragment pass.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from renderer.errors import InputError, UserError
from renderer.formats.images import read_image
from renderer.gpu import DeviceContext
from renderer.gpu.gl import Texture
from renderer.gpu.gl_interop import GlInterop
from renderer.numerics.laplacian import BORDERS, laplacian
from renderer.pictures import load, open_picture
from renderer.pictures.picture import Picture as BasePicture
from renderer.scene.scene import ToneMapping
from renderer.scene.schema import PictureSettings, setting

IMAGES = (".png", ".exr", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp")


@dataclass(frozen=True)
class Settings(PictureSettings):
    source: str = setting("", help="the image file or the scene whose edges are shown", file=True)
    method: Literal["auto", "naive", "shared_tiles", "register_rows", "gl"] = setting(
        "auto", help="the kernel, or gl: an OpenGL fragment pass"
    )
    neighbors: Literal[4, 8] = setting(8, help="pixels that each pixel is compared with")
    border: Literal["clamp", "reflect", "wrap", "zero"] = setting("clamp", help="pixels outside the image")
    gain: float = setting(1.0, 0.0, 1000.0, "brightness of the edges", logarithmic=False)
    show_sign: bool = setting(False, help="dark and bright sides of edges around middle gray")


class Picture(BasePicture):
    settings_type = Settings
    tone = ToneMapping("manual")

    def __init__(self, gpu: DeviceContext):
        self._gpu = gpu
        self._opened: tuple = (None, None, None)  # path, and the Scene and Picture or the pixels of it
        self._bridge = None
        self._buffers: tuple = ()
        self._target: Texture | None = None
        self._report: dict = {}
        self._by_gl = False  # whether the other picture's frames are textures

    def draw(self, settings: Settings, size: tuple[int, int], time: float, tile=None):
        if tile:
            raise UserError("a laplacian is not drawn in tiles: an edge needs the pixels beside it; leave --tile out")
        return self.postprocess(settings, size, self._source(settings.source, size, time))

    def restart(self) -> None:
        """The next draw is of the first sample."""
        if self._opened[1]:
            self._opened[2].restart()

    def source_picture(self, settings: Settings, size: tuple[int, int]):
        """The picture whose edges are shown; None for an image, and where OpenGL takes no part."""
        scene, picture = self._open(settings.source)
        return (picture, scene.settings, size) if scene and (settings.method == "gl" or self._by_gl) else None

    def postprocess(self, settings: Settings, size: tuple[int, int], source):
        """The edges of a frame, or of pixels (height, width, 4)."""
        width, height = size
        self._by_gl = isinstance(source, Texture)
        self._report = {"source": Path(settings.source).name, "method": settings.method}
        if settings.method == "gl":
            return self._draw_pass(settings, source, size)
        device = self._gpu.device
        if not self._buffers or self._buffers[0].shape != (height, width, 4):
            self._buffers = tuple(device.buffer((height, width, 4)) for _ in range(2))
        image, edges = self._buffers
        if isinstance(source, np.ndarray):
            image.write(source)
        elif isinstance(source, Texture):
            image.write(source.read().astype("f4", copy=False))
        else:
            image = source
        laplacian(device, image, edges, settings.neighbors, settings.border, settings.method)
        constants = {"ELEMENT": "float", "BYTES": 0, "CHANNELS": 4, "NEIGHBORS": 8, "BORDER": 0, "FRAME": 1}
        show = device.kernel("numerics/laplacian.cu", "show", **constants)
        show(width * height, edges, np.uint32(width * height), float(settings.gain), int(settings.show_sign))
        return edges

    def _draw_pass(self, settings: Settings, source, size: tuple[int, int]) -> Texture:
        """The same by a fragment pass over a texture."""
        gl = self._gpu.gl
        if self._target is None or self._target.size != size:
            self._target = gl.texture(size)
        if isinstance(source, np.ndarray):
            source = gl.texture(size).write(source)
        self._bridge = self._bridge or GlInterop(gl)
        image = self._bridge.texture(source)
        draw = gl.render_pass("numerics/laplacian.frag", NEIGHBORS=settings.neighbors, BORDER=BORDERS[settings.border])
        draw(self._target, image=image, gain=settings.gain, show_sign=int(settings.show_sign))
        return self._target

    def sample_count(self, settings: Settings, size: tuple[int, int]) -> int:
        scene, picture = self._open(settings.source)
        return picture.sample_count(scene.settings, size) if scene else 1

    def depends_on_time(self, settings: Settings) -> bool:
        scene, picture = self._open(settings.source)
        return bool(scene) and picture.depends_on_time(scene.settings)

    def report(self) -> dict:
        return self._report

    def _source(self, path: str, size: tuple[int, int], time: float):
        """The frame of the other picture, or the pixels of the image fitted to size: (height, width, 4) float32."""
        scene, picture = self._open(path)
        if scene:
            return picture.draw(scene.settings, size, time)
        return fitted(picture, size)

    def _open(self, path: str):
        """Scene and Picture of the source, or None and the pixels of an image."""
        if not path:
            raise InputError("laplacian: the setting `source` is empty; it must name an image file or a scene")
        if self._opened[0] != path:
            if Path(path).suffix.lower() in IMAGES:
                self._opened = (path, None, read_image(Path(path)))
            else:
                scene = load(Path(path))
                if scene.picture in ("laplacian", "layout"):
                    raise InputError(f"{path}: is a {scene.picture}; edges are shown of a picture of another kind")
                self._opened = (path, scene, open_picture(scene, self._gpu))
        return self._opened[1:]


def fitted(pixels: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """The (height, width, 4) pixels nearest to a picture of `size`, in proportion, with black beside them."""
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
