"""Draws one picture as linear values, at once or tile by tile, tone maps it and writes its .png or .exr file.

A RenderJob goes through render(), which returns a RenderResult, to write(). `rayfold export`, farm workers, lessons and
the Python API call both.
"""

import math
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from renderer.errors import IncompleteError, UserError
from renderer.formats.images import write_exr, write_png_rows
from renderer.gpu.gl import Texture
from renderer.images.denoise import denoise, denoise_flame
from renderer.images.tone_mapping import SRGB_8, Encoding, ExposureMeter, tonemap
from renderer.pictures import make_recipe, picture_class
from renderer.pictures.picture import MAX_TEXTURE_SIDE, AnyPicture, Frame, Tile
from renderer.records import dataclass, field
from renderer.scene.animation import settings_at
from renderer.scene.scene import Scene
from renderer.system.files import resolve
from renderer.system.process import stop_signals
from renderer.system.profile import stage
from renderer.system.progress import Progress
from renderer.system.trust import DRAWING, GRACE_SECONDS, about, check_memory, doing

MAX_UNTILED_PIXELS = 1 << 24  # a larger picture is drawn in tiles: 2^24 pixels take 256 MiB of float32 RGBA
TILE = 2048
MAX_TILES = 1 << 18  # the list of so many takes 50 MiB
PART = 256  # side in pixels of the blocks of a one-sample picture, which may take minutes: progress is shown by block
ROW_BLOCK_PIXELS = 1 << 22
DEVICE_INDEX = re.compile(r" \([a-z]+(:\d+)+\)")  # left out of recipes: equal devices draw equal bits
SYNC_SECONDS = 0.15  # seconds of work between waits for the device: the delay of Ctrl-C and deadlines
ETA_AFTER, MIN_ETA_SECONDS = 1.0, 60.0  # seconds before an estimate; only a longer one is printed


class InterruptHandler(ExitStack):
    """A context in which the first Ctrl-C sets `requested`, so that drawn samples are kept; the second ends at once.

    Before the first sample, while kernels are compiled, the first Ctrl-C ends at once too.
    """

    requested = False
    has_drawn = False  # set by draw() after the first sample

    def __enter__(self) -> Self:
        self.enter_context(stop_signals(self._ask))
        return self

    def request(self) -> None:
        """Asks draw() to end."""
        self.requested = True

    def _ask(self, *_: object) -> None:
        if self.requested or not self.has_drawn:
            raise KeyboardInterrupt
        self.request()
        print("rayfold: stopping; what is drawn is kept (Ctrl-C again ends at once)", file=sys.stderr)


@dataclass
class NoiseTarget:
    """A stopping criterion: drawing ends when the estimated noise is at most `limit`, a fraction of white."""

    limit: float
    estimate: float | None = None
    reached: bool = False

    def is_reached(self, picture: AnyPicture) -> bool:
        """True if the noise of the picture drawn so far is at most the limit."""
        estimate = picture.noise()
        self.estimate = self.estimate if estimate is None else estimate
        self.reached = estimate is not None and estimate <= self.limit
        return self.reached


@dataclass(frozen=True)
class RenderJob:
    """The arguments of one picture; `size` is (width, height), `tile` the side of tiles (0: only large pictures)."""

    scene: Scene
    size: tuple[int, int]
    samples: int
    time: float = 0.0  # scene time in seconds
    tile: int = 0
    deadline: float = float("inf")  # on time.monotonic's clock
    layers: bool = False  # draw the layers of an .exr file too
    gives_up: bool = False  # ends as soon as the estimate exceeds the deadline: a part is of no use
    stop: InterruptHandler | None = None  # ends drawing after Ctrl-C
    denoise: bool = False
    transfer: str = "srgb"  # transfer function of the file: srgb or pq
    noise: NoiseTarget | None = None  # may end drawing before all samples
    is_command: bool = True  # False for the Python API, where Ctrl-C keeps nothing: print_eta() does not offer it

    def settings(self) -> Any:
        """The scene's settings at `time`; with what layers need if they are drawn."""
        settings = settings_at(self.scene, self.time)
        settings = settings.for_denoising() if self.denoise else settings
        return settings.with_layers(self.layers)

    @cached_property
    def tiles(self) -> list[Tile | None]:
        """The rectangles (x, y, width, height) to draw in turn; [None] for the picture at once.

        UnavailableError for a picture that is not drawn in tiles.
        """
        width, height = self.size
        picture = picture_class(self.scene.picture)
        is_large = width * height > MAX_UNTILED_PIXELS or max(self.size) > picture.longest_side(self.scene.settings)
        step = self.tile or (TILE if is_large else 0)
        if not step:
            return [None]
        if max(self.size) > step:
            picture.check_tiles(self.scene, self.size)
        return [*tiles_of(self.size, step)]


def tiles_of(size: tuple[int, int], step: int) -> list[Tile]:
    """The tiles of `step` x `step` pixels, and of what remains, of a picture of `size`, row by row.

    Raises UserError for more than MAX_TILES.
    """
    width, height = size
    if (count := -(-width // step) * -(-height // step)) > MAX_TILES:
        raise UserError(f"--tile {step}: {count} tiles of {width} x {height} pixels; at most {MAX_TILES} are allowed")
    return [
        (x, y, min(step, width - x), min(step, height - y))
        for y in range(0, height, step)
        for x in range(0, width, step)
    ]


@dataclass
class RenderResult:
    """A finished picture: (height, width, 4) float32 linear values, in memory or in a file that vanishes with it."""

    linear: "np.ndarray | FileBackedImage"
    meter: ExposureMeter
    opaque: bool
    samples: int
    device: str
    prototype: Frame  # a frame of the kind that was drawn; tone mapping runs on its device
    layers: dict[str, np.ndarray] = field(default_factory=dict)  # what an .exr file holds beside the picture


def draw(
    picture: AnyPicture, job: RenderJob, tile: Tile | None, progress: Progress, first_part: Tile | None = None
) -> tuple[Frame, int]:
    """Draws the job's samples until the deadline, Ctrl-C or the noise target; returns the frame and the samples drawn.

    Waits for the device every SYNC_SECONDS, so that progress and Ctrl-C are not late. `tile`: None draws the picture at
    once; then the frame shows the rectangle `first_part`, if given, and the picture's developed() makes the others.
    """
    settings, rounds = job.settings(), 1 if tile is None else len(job.tiles)
    picture.deadline = job.deadline
    picture.progress = progress
    picture.restart()  # else a frame of the same settings as the last one would continue its samples
    waited = time.monotonic()  # time of the last wait for the device
    drawn = 0
    # Time and fraction done after the first wait: the estimate leaves out the first draw, which may compile.
    first: tuple[float, float] | None = None
    is_estimated = False
    queued, max_queued = 0, 1  # samples launched since the last wait; most before the next, SYNC_SECONDS of work
    with doing(DRAWING):  # system/trust.py: past --time-limit the process is ended only while it draws
        while drawn < job.samples:
            arguments = (settings, job.size, job.time)
            picture.shows_each = False  # no frame between samples is shown, so none is developed
            try:
                frame = picture.draw(*arguments) if tile is None else picture.draw(*arguments, tile)
            finally:
                picture.shows_each = True
            drawn, queued = drawn + 1, queued + 1
            # progress.report: a script's function, which is called after each sample
            if queued >= max_queued or progress.report or time.monotonic() > job.deadline:
                frame.device.finish()
                progress.advance(queued)
                if job.stop is not None:
                    job.stop.has_drawn = tile is None  # a picture in tiles keeps nothing
                took, waited = time.monotonic() - waited, time.monotonic()
                queued, max_queued = 0, max(1, min(2 * max_queued, int(queued * SYNC_SECONDS / max(took, 1e-9))))
                if waited > job.deadline or first and waited + took > job.deadline + GRACE_SECONDS / 2:
                    break  # a next sample as long as this wait would outlast the grace: the process and all are lost
                if first is None:
                    first = waited, picture.fraction_done(drawn, job.samples)
                elif not is_estimated and waited - first[0] > ETA_AFTER and not (job.stop and job.stop.requested):
                    seconds, before, done = waited - first[0], first[1], picture.fraction_done(drawn, job.samples)
                    print_eta(job, seconds, before, done, rounds)
                    # True if the rest, at the rate so far, would end after the deadline. Both sides of the comparison
                    # are multiplied by done - before, which may be 0.
                    if job.gives_up and seconds * ((1 - before) * rounds - done + before) > (
                        (done - before) * (job.deadline - waited)
                    ):
                        break
                    is_estimated = True
            if job.stop is not None and job.stop.requested:
                break
            if job.noise is not None and job.noise.is_reached(picture):
                break
        frame.device.finish()
        if queued:
            progress.advance(queued)
    frame = picture.developed(first_part) if first_part else picture.current_frame(frame)
    frame.device.finish()
    return frame, drawn


def print_eta(job: RenderJob, seconds: float, before: float, now: float, rounds: int = 1) -> None:
    """Print to stderr the estimated duration of the job if it exceeds MIN_ETA_SECONDS, and how a command ends early.

    `before` and `now` are the fractions drawn `seconds` ago and now of the first of `rounds` tiles; prints nothing if
    they are equal.
    """
    if now <= before:
        return
    total = seconds / (now - before) * rounds
    if min(total, job.deadline - time.monotonic()) > MIN_ETA_SECONDS:
        kept = "keeps what is drawn until then" if rounds == 1 else "ends it"
        advice = f"; Ctrl-C {kept}, --time-limit too" if job.is_command else ""
        print(f"rayfold: this will take about {format_duration(total)}{advice}", file=sys.stderr)


def format_duration(seconds: float) -> str:
    """Formats a duration in its largest fitting unit: 90 minutes, 3 hours, 12 days, 40 years."""
    for unit, length in (("years", 31557600.0), ("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{seconds:.0f} seconds"


def render(picture: AnyPicture, job: RenderJob, progress: Progress) -> RenderResult:
    """Draws the job, tile by tile where it is large, into linear values on the host."""
    image, fewest = TiledImage(job.size), job.samples  # `fewest`: the samples of the tile that has the fewest
    picture.exported = None  # frees the last picture; hints() reads this one
    picture.prepare_export(job.scene.tone)
    # Some pictures keep the samples of all pixels and draw them at once; only developing them goes by tiles.
    tiles = job.tiles
    if at_once := picture.keeps_samples(job.settings(), job.size):
        tiles = [*tiles_of(job.size, job.tile or TILE // 2)]  # small: the samples of all pixels take memory as well
    elif tiles == [None] and job.samples == 1 and picture.can_split:
        tiles = [*tiles_of(job.size, PART)]
        progress.parts = len(tiles)
    for count, tile in enumerate(tiles):
        with stage("rendering"), about(job.scene.path):
            if at_once and count:
                frame = picture.developed(tile or (0, 0, *job.size))
                progress.advance(job.samples if len(job.tiles) > 1 else 0)  # it counts the samples of each of job.tiles
            else:
                frame, drawn = draw(picture, job, None if at_once else tile, progress, tile if at_once else None)
        if job.stop is not None and job.stop.requested and len(tiles) > 1 and not at_once:
            raise KeyboardInterrupt  # the other tiles have no samples yet
        rest = [] if at_once else tiles[count + 1 :]
        # Too late for the rest: a picture in tiles fails, the blocks of a one-sample picture stay transparent.
        is_late = len(rest) > 0 and time.monotonic() > job.deadline + GRACE_SECONDS / 2
        if is_late and job.tiles != [None]:
            done = f"{count + 1} of its {len(tiles)} tiles are drawn"
            raise IncompleteError(f"{job.scene.path}: {done} at --time-limit; nothing is written of a part")
        layers = picture.layers(job.settings(), job.size, tile) if job.layers or job.denoise else {}
        with stage("developing"):
            image.merge_tile(tile or (0, 0, *job.size), frame.read(), layers)
        fewest = min(fewest, drawn)
        if is_late:
            done = f"{count + 1} of its {len(tiles)} parts are drawn at --time-limit; the others are transparent"
            print(f"rayfold: {job.scene.path}: {done}", file=sys.stderr)
            fewest = 0
            break
    rendered = image.result(fewest, frame.device.name, frame)
    picture.exported = rendered.linear
    if job.denoise:
        with stage("developing"):
            _denoise(rendered)
        rendered.layers = rendered.layers if job.layers else {}
    return rendered


def _denoise(rendered: "RenderResult") -> None:
    """Filters the picture in place: flames by their density, others by albedo and normal as far as they are there."""
    layers = rendered.layers
    if "density" in layers:
        clean = denoise_flame(rendered.linear[:], layers["density"])
    else:
        clean = denoise(rendered.linear[:], **{name: layers[name] for name in ("albedo", "normal") if name in layers})
    rendered.linear, rendered.meter = clean, ExposureMeter().add(clean)


class TiledImage:
    """A picture of `size` (width, height) and its layers, filled tile by tile."""

    def __init__(self, size: tuple[int, int]):
        self._shape = size[1], size[0]
        shape, small = (*self._shape, 4), size[0] * size[1] <= MAX_UNTILED_PIXELS
        # 16 bytes a pixel; a large picture takes a file
        check_memory(16 * size[0] * size[1] if small else 0, f"a picture of {size[0]} x {size[1]}")
        self._linear = np.zeros(shape, "f4") if small else FileBackedImage(shape)
        self._layers: dict[str, np.ndarray] = {}
        self._meter, self._opaque = ExposureMeter(), True

    def merge_tile(self, tile: Tile, values: np.ndarray, layers: dict[str, np.ndarray]) -> None:
        """Copy linear values and layers of the tile (x, y, width, height) into the image; count them in the meter."""
        left, top, wide, high = tile
        assert values.shape == (high, wide, 4), (values.shape, tile)
        rectangle = slice(top, top + high), slice(left, left + wide)
        self._linear[rectangle] = values
        self._meter.add(values)
        self._opaque = self._opaque and bool((values[..., 3] >= 1).all())
        for name, layer in layers.items():
            if name not in self._layers:
                check_memory(layer[0, 0].nbytes * math.prod(self._shape), f"the layer {name} of the picture")
                self._layers[name] = np.zeros((*self._shape, *layer.shape[2:]), layer.dtype)
            self._layers[name][rectangle] = layer

    def result(self, samples: int, device: str, prototype: Frame) -> RenderResult:
        """Returns the picture; call it after all tiles were merged, or with 0 samples if some are missing."""
        is_opaque = self._opaque and samples > 0
        return RenderResult(self._linear, self._meter, is_opaque, samples, device, prototype, self._layers)


class FileBackedImage:
    """A picture too large for memory: (height, width, 4) float32 in a temporary file, written in parts."""

    def __init__(self, shape: tuple[int, int, int]):
        self.shape = shape
        self._file = tempfile.TemporaryFile()

    def __len__(self) -> int:
        return self.shape[0]

    def __setitem__(self, where: tuple[slice, slice], part: np.ndarray) -> None:
        """Write image[top:bottom, left:right] row by row: a mapping of the file would count as memory."""
        rows, columns = where
        for row, values in zip(range(rows.start, rows.stop), part, strict=True):
            self._file.seek((row * self.shape[1] + columns.start) * 16)
            self._file.write(values.tobytes())
        self._file.flush()

    def __getitem__(self, rows: slice) -> np.ndarray:
        """Rows image[top:bottom]."""
        top, bottom, _ = rows.indices(self.shape[0])
        self._file.seek(top * self.shape[1] * 16)
        values = np.fromfile(self._file, "f4", (bottom - top) * self.shape[1] * 4)
        return values.reshape(bottom - top, *self.shape[1:])


def tonemapped_blocks(rendered: RenderResult, scene: Scene, encoding: Encoding = SRGB_8) -> Iterator[np.ndarray]:
    """Yields tone-mapped pixels (rows, width, 4) in blocks of rows, top to bottom."""
    rows = min(max(1, ROW_BLOCK_PIXELS // rendered.linear.shape[1]), MAX_TEXTURE_SIDE)
    for top in range(0, len(rendered.linear), rows):
        band = np.ascontiguousarray(rendered.linear[top : top + rows])
        parts = np.array_split(band, -(-band.shape[1] // MAX_TEXTURE_SIDE), axis=1)
        with stage("developing"):
            frames = (_upload_like(rendered.prototype, np.ascontiguousarray(part)) for part in parts)
            shown = [tonemap(frame, scene.tone, encoding, rendered.meter) for frame in frames]
        yield shown[0] if len(shown) == 1 else np.hstack(shown)
        rendered.prototype.device.finish()  # frees the memory of the band


def _upload_like(frame: Frame, array: np.ndarray) -> Frame:
    """Uploads linear values (height, width, 4) as a texture or buffer, whichever `frame` is, on its device."""
    if isinstance(frame, Texture):
        return frame.gl.texture((array.shape[1], array.shape[0])).write(array)
    return frame.device.buffer(array.shape).write(array)


def write(path: Path, rendered: RenderResult, job: RenderJob, bit_depth: int = 8) -> None:
    """Writes the picture by the path's suffix: .png tone mapped and with its recipe, .exr linear."""
    height, width, _ = rendered.linear.shape
    recipe = make_recipe(
        job.scene,
        resolve(path).parent,
        size=[width, height],
        samples=rendered.samples or None,  # None if parts of the picture are left out
        time=job.time,
        device=", ".join(dict.fromkeys(DEVICE_INDEX.sub("", rendered.device).split(", "))),
    )
    recipe |= {"denoise": True} if job.denoise else {}
    if path.suffix.lower() == ".exr":
        with stage("writing"):
            texts = picture_class(job.scene.picture).layer_texts(job.settings())
            write_exr(path, {"RGBA": rendered.linear[:], **rendered.layers}, recipe, **texts)
        return
    encoding = Encoding((1 << bit_depth) - 1, job.transfer)
    recipe |= {"transfer": job.transfer} if job.transfer != "srgb" else {}
    bands = tonemapped_blocks(rendered, job.scene, encoding)
    if rendered.opaque:
        bands = (band[..., :3] for band in bands)
    shape = (height, width, 3 if rendered.opaque else 4)
    with stage("writing"):
        write_png_rows(path, shape, encoding.dtype, bands, recipe, job.transfer)
