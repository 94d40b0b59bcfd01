"""One picture to linear values and to its file: draw n samples, whole or tile by tile, tone map, write."""

import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from renderer.animation import settings_at
from renderer.gpu.gl import Texture
from renderer.image import write_exr, write_png_bands
from renderer.pictures import Tile, recipe_of
from renderer.scene import Scene
from renderer.tone import Meter, pixels

WHOLE_PIXELS = 1 << 24  # a larger picture is drawn in tiles: 2^24 pixels take 256 MiB of float32 RGBA
TILE = 2048
BAND_PIXELS = 1 << 22


@dataclass(frozen=True)
class Job:
    """What one picture needs: the scene at a moment, size, samples, tile size (0: whole) and a deadline."""

    scene: Scene
    size: tuple[int, int]
    samples: int
    moment: float = 0.0
    tile: int = 0
    deadline: float = float("inf")  # on time.monotonic's clock
    layers: bool = False  # whether the picture's layers are wanted too

    def tiles(self) -> list[Tile | None]:
        """The parts that are drawn one after another; [None] for the whole picture at once."""
        width, height = self.size
        step = self.tile or (TILE if width * height > WHOLE_PIXELS else 0)
        if not step:
            return [None]
        return [
            (x, y, min(step, width - x), min(step, height - y))
            for y in range(0, height, step)
            for x in range(0, width, step)
        ]


@dataclass
class Rendered:
    """A finished picture: (height, width, 4) float32 linear values, in memory or in a file that vanishes with it."""

    linear: np.ndarray
    meter: Meter
    samples: int
    device: str
    like: object  # a frame of the kind that was drawn, which tells where tone mapping runs
    layers: dict[str, np.ndarray] = field(default_factory=dict)  # what an .exr file holds beside the picture


def draw(picture, job: Job, tile: Tile | None, progress) -> tuple[object, int]:
    """The frame after the job's samples and how many it took until the deadline.

    Waits for the device now and then, so that the progress is true and Ctrl-C is heard.
    """
    settings = settings_at(job.scene, job.moment)
    waited = time.monotonic()
    drawn = 0
    while drawn < job.samples:
        where = (settings, job.size, job.moment)
        frame = picture.draw(*where) if tile is None else picture.draw(*where, tile)
        drawn += 1
        progress.advance()
        now = time.monotonic()
        if now - waited > 0.1 or now > job.deadline:
            finish(frame)
            waited = time.monotonic()
            if waited > job.deadline:
                break
    finish(frame)
    return frame, drawn


def render(picture, job: Job, progress) -> Rendered:
    """Draws the job, tile by tile where it is large, into linear values on the host."""
    width, height = job.size
    meter, fewest = Meter(), job.samples
    linear, layers = _room((height, width, 4)), {}
    for tile in job.tiles():
        frame, drawn = draw(picture, job, tile, progress)
        left, top, wide, high = tile or (0, 0, width, height)
        part = frame.read()
        assert part.shape == (high, wide, 4), (part.shape, tile)
        linear[top : top + high, left : left + wide] = part
        if job.layers and hasattr(picture, "layers"):
            for name, layer in picture.layers(settings_at(job.scene, job.moment), job.size, tile).items():
                whole = layers.setdefault(name, np.zeros((height, width, *layer.shape[2:]), layer.dtype))
                whole[top : top + high, left : left + wide] = layer
        meter.add(part)
        fewest = min(fewest, drawn)
    return Rendered(linear, meter, fewest, device_of(frame), frame, layers)


def _room(shape) -> np.ndarray:
    """float32 memory for a picture: a nameless file where it is larger than one that is drawn whole."""
    if shape[0] * shape[1] <= WHOLE_PIXELS:
        return np.empty(shape, "f4")
    with tempfile.TemporaryFile() as file:
        return np.memmap(file, "f4", "w+", shape=shape)


def displayed(rendered: Rendered, scene: Scene, dtype="u1"):
    """Bands of (rows, width, 4) displayed pixels, top to bottom."""
    rows = max(1, BAND_PIXELS // rendered.linear.shape[1])
    for top in range(0, len(rendered.linear), rows):
        band = np.ascontiguousarray(rendered.linear[top : top + rows])
        yield pixels(_frame_like(rendered.like, band), scene.tone, dtype, rendered.meter)


def _frame_like(frame, array: np.ndarray):
    if isinstance(frame, Texture):
        return frame.gl.texture((array.shape[1], array.shape[0])).write(array)
    return frame.device.buffer(array.shape).write(array)


def write(path: Path, rendered: Rendered, job: Job, bits: int = 8) -> None:
    """Writes the picture by the path's suffix: .png displayed and with its recipe, .exr linear."""
    height, width, _ = rendered.linear.shape
    recipe = recipe_of(
        job.scene,
        path.resolve().parent,
        size=[width, height],
        samples=rendered.samples,
        time=job.moment,
        device=rendered.device,
    )
    if path.suffix.lower() == ".exr":
        write_exr(path, {"RGBA": rendered.linear, **rendered.layers}, recipe)
        return
    dtype = np.dtype(f"u{bits // 8}")
    opaque = bool((rendered.linear[..., 3] >= 1).all())
    bands = displayed(rendered, job.scene, dtype)
    if opaque:
        bands = (band[..., :3] for band in bands)
    write_png_bands(path, (height, width, 3 if opaque else 4), dtype, bands, recipe)


def finish(frame) -> None:
    """Waits for the device or the GL that holds the frame."""
    (frame.gl if isinstance(frame, Texture) else frame.device).finish()


def device_of(frame) -> str:
    """The name of the device that drew the frame."""
    return frame.gl.renderer if isinstance(frame, Texture) else frame.device.name
