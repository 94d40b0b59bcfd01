"""Edges of an image or of any other picture, live: the Laplacian filter of the thesis (chapter 4), four ways.

Plain, tiles in local memory, rows in registers, and a GLSL pass; a processor of one lane takes strips of rows instead.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from renderer.errors import InputError, UserError
from renderer.formats.images import read_image
from renderer.gpu import Device, DeviceContext
from renderer.gpu.gl import Texture
from renderer.gpu.gl_interop import GlInterop
from renderer.pictures import load, open_picture
from renderer.pictures.picture import Picture as BasePicture
from renderer.scene.scene import ToneMapping
from renderer.scene.schema import PictureSettings, setting

BORDERS = {"clamp": 0, "mirror": 1, "wrap": 2, "zero": 3}
WAYS = ("best", "plain", "tiles", "rows", "strips")
IMAGES = (".png", ".exr", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp")
ROWS, TILE = 4, (64, 16)  # rows of a sliding thread; elements across and rows of a tile


def laplacian(device: Device, image, out, neighbours: int = 8, border: str = "clamp", way: str = "best") -> None:
    """Fills out with the Laplacian of image, both (height, width) or (height, width, channels), float32 or uint8.

    Results of uint8 are cut to 0..255. "best" is "strips" on a processor of one lane, else "rows". Images of a few
    pixels, and uint8 of more than four channels, are no work for "rows", which leaves them to "plain".
    """
    filtering(device, image, out, neighbours, border, way)()


def filtering(device: Device, image, out, neighbours: int = 8, border: str = "clamp", way: str = "best"):
    """The launch that laplacian makes, to be called as often as wanted."""
    _check(image, out, neighbours, border, way)
    height, width, channels = (*image.shape, 1)[:3]
    if 0 in (height, width, channels):
        return lambda: None
    size, length = image.dtype.itemsize, width * channels
    if way == "best":
        way = "strips" if device.properties.scalar_threads else "rows"
    constants = {"ELEMENT": "float" if size == 4 else "uchar", "BYTES": int(size == 1), "CHANNELS": channels}
    constants |= {"NEIGHBOURS": neighbours, "BORDER": BORDERS[border]}
    words = length * size % 16 == 0 and channels <= 4  # whether a row is whole 16-byte words
    drift = None if words else _Drift.of(length, height, channels, size)
    extra, group = [], 256
    if way == "rows" and words:
        constants |= {"ROWS": ROWS, "DRIFTS": 0}
        threads = length * size // 16 * -(-height // ROWS)
    elif way == "rows" and drift:
        way = "drifting_rows"
        constants |= {"ROWS": ROWS, "DRIFTS": 1, "DRIFT": drift.drift, "BESIDE": drift.beside}
        edges = -(-drift.edges // group) * group
        threads = edges + drift.threads
        extra = [np.uint32(drift.head), np.uint64(drift.tail), np.uint32(edges)]
    elif way == "tiles":
        constants |= {"TILE_COLUMNS": TILE[0], "TILE_ROWS": TILE[1]}
        threads = -(-length // TILE[0]) * -(-height // TILE[1]) * group
    elif way == "strips":
        group = 1
        each = max(1, -(-height // (8 * device.properties.compute_units)))
        threads, extra = -(-height // each), [np.uint32(each), np.int32(channels)]
    else:
        way, threads = "plain", length * height
    kernel = device.kernel("numerics/laplacian.cu", way, group_size=group, **constants)
    return kernel.bind_launch(threads, image, out, np.uint32(width), np.uint32(height), *extra)


@dataclass(frozen=True)
class _Drift:
    """The plan of an image whose rows are no whole words of 16 bytes: see drifting_rows in numerics/laplacian.cu."""

    drift: int  # elements that a row is longer than some number of words
    beside: int  # words read on both sides of a word, so that all neighbours are among them
    head: int  # elements at the image's beginning and, from `tail` on, at its end that go one by one
    tail: int
    edges: int  # elements that go one by one
    threads: int  # for the others

    @classmethod
    def of(cls, length: int, height: int, channels: int, size: int) -> "_Drift | None":
        """The plan for `height` rows of `length` elements; None where the image is too small, or no such kernel is."""
        run = 16 // size
        drift = length % run - (run if length % run > run // 2 else 0)
        beside = -(-(abs(drift) + channels) // run)
        pitch = (length - drift) // run
        head = (pitch + beside) * run
        last = length * height // run - pitch - beside
        if size == 1 and channels > 4 or length < 2 * (run + channels) or head >= last * run:
            return None
        edges = head + length * height - last * run + 2 * channels * max(0, height - 2)
        threads = pitch * -(-(last - pitch - beside) // (pitch * ROWS))
        return cls(drift, beside, head, last * run, edges, threads)


def _check(image, out, neighbours: int, border: str, way: str) -> None:
    if image.shape != out.shape or image.dtype != out.dtype or len(image.shape) not in (2, 3):
        told = f"{image.dtype} {image.shape} into {out.dtype} {out.shape}"
        raise UserError(f"laplacian of {told}: both must be (height, width) or (height, width, channels), of one dtype")
    if image.dtype not in (np.float32, np.uint8):
        raise UserError(f"laplacian of {image.dtype}: allowed are float32 and uint8")
    for name, value, allowed in (("neighbours", neighbours, (4, 8)), ("border", border, BORDERS), ("way", way, WAYS)):
        if value not in allowed:
            raise UserError(f"{name} is {value!r}; allowed are {', '.join(map(str, allowed))}")


@dataclass(frozen=True)
class Settings(PictureSettings):
    of: str = setting("", help="the image file or the scene whose edges are shown", file=True)
    way: Literal["best", "plain", "tiles", "rows", "pass"] = setting("best", help="kernels, or a GLSL pass")
    neighbours: Literal[4, 8] = setting(8, help="that each pixel is compared with")
    border: Literal["clamp", "mirror", "wrap", "zero"] = setting("clamp", help="what lies outside")
    gain: float = setting(1.0, 0.0, 1000.0, "brightness of the edges", logarithmic=False)
    is_signed: bool = setting(False, help="dark and bright sides of edges around middle grey")


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
        return self.postprocess(settings, size, self._source(settings.of, size, time))

    def restart(self) -> None:
        """The next draw is of the first sample."""
        if self._opened[1]:
            self._opened[2].restart()

    def source_picture(self, settings: Settings, size: tuple[int, int]):
        """The picture whose edges are shown; None for an image, and where no GL has a part in it."""
        scene, picture = self._open(settings.of)
        return (picture, scene.settings, size) if scene and (settings.way == "pass" or self._by_gl) else None

    def postprocess(self, settings: Settings, size: tuple[int, int], source):
        """The edges of a frame, or of pixels (height, width, 4)."""
        width, height = size
        self._by_gl = isinstance(source, Texture)
        self._report = {"of": Path(settings.of).name, "way": settings.way}
        if settings.way == "pass":
            return self._drawn(settings, source, size)
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
        laplacian(device, image, edges, settings.neighbours, settings.border, settings.way)
        constants = {"ELEMENT": "float", "BYTES": 0, "CHANNELS": 4, "NEIGHBOURS": 8, "BORDER": 0, "FRAME": 1}
        show = device.kernel("numerics/laplacian.cu", "show", **constants)
        show(width * height, edges, np.uint32(width * height), float(settings.gain), int(settings.is_signed))
        return edges

    def _drawn(self, settings: Settings, source, size: tuple[int, int]) -> Texture:
        """The same by a pass over a texture."""
        gl = self._gpu.gl
        if self._target is None or self._target.size != size:
            self._target = gl.texture(size)
        if isinstance(source, np.ndarray):
            source = gl.texture(size).write(source)
        self._bridge = self._bridge or GlInterop(gl)
        image = self._bridge.texture(source)
        draw = gl.render_pass(
            "numerics/laplacian.frag", NEIGHBOURS=settings.neighbours, BORDER=BORDERS[settings.border]
        )
        draw(self._target, image=image, gain=settings.gain, is_signed=int(settings.is_signed))
        return self._target

    def sample_count(self, settings: Settings, size: tuple[int, int]) -> int:
        scene, picture = self._open(settings.of)
        return picture.sample_count(scene.settings, size) if scene else 1

    def depends_on_time(self, settings: Settings) -> bool:
        scene, picture = self._open(settings.of)
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
            raise InputError("laplacian: the setting `of` is empty; it must name an image file or a scene")
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
