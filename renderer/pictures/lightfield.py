"""Light fields: new views, refocused pictures, and what they tell about depth (paper 5, chapter 4;
lightfields/lightfield.cu).

The views stay 8-bit on the device; a field that is larger than its memory passes through it in bands of rows.
"""

import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from renderer.errors import InputError, UnavailableError
from renderer.formats.images import linear_of_srgb
from renderer.gpu import Device, DeviceContext
from renderer.lightfields.aperture import SHAPES, TAP, Eye, place_of, taps, weights
from renderer.lightfields.disparity import depth_range, disparity_at, measured_axes
from renderer.lightfields.light_field import LightField, read_field, residual, view_size
from renderer.scene.cameras import grid
from renderer.scene.scene import Scene, Tone, setting

GUARD = 64  # bytes before and after the views that a kernel may read, and ignore
STAGED = 64 << 20  # bytes that travel to the device at a time
SHARE = 0.7  # of the device's memory that a field may take
GROUP = 64
TILE_ROWS = 4  # rows of a thread of refocus_tiles
TILE_GROUPS = (
    128,
    512,
)  # its threads: large groups share rows in their cache, small ones fill a device with a small view
FLATTENING = {"mean": ("refocus",), "median": ("median",), "max": ("extreme", 1.0), "min": ("extreme", -1.0),
              "variance": ("variance",)}  # fmt: skip
RUN, RUN_ROWS = 128, 8  # refocus_runs: columns and rows of one thread


@dataclass(frozen=True)
class Settings:
    field: str = setting("", file=True, help="folder or .zip of views, .npy, .npz, or one picture of all views")
    view: Eye = Eye()
    show: Literal["refocused", "focal stack", "all in focus", "depth"] = setting("refocused", key="v")
    flatten: Literal["mean", "median", "max", "min"] = setting(
        "mean",
        help="how views become one picture; the median sees through what hides a place from few of them",
        key="f",
    )
    shape: Literal[SHAPES] = setting("disc", help="of the aperture; all takes every view alike", key="a")
    disparity: float = setting(
        0.0, -64.0, 64.0, "pixels that the plane in focus moves between neighbouring cameras, from the plane clicked on"
    )
    far: float = setting(0.0, -64.0, 64.0, "least disparity of stack, all in focus and depth; far = near: measured")
    near: float = setting(0.0, -64.0, 64.0, "greatest disparity of these")
    steps: int = setting(24, 2, 256, "planes between far and near")
    window: int = setting(2, 0, 16, "pixels to each side over which sharpness and agreement are judged")
    pattern: str = setting("", help="of the views' names: {row} and {col}, {v} and {u}, or {index}")
    layout: Literal["auto", "mosaic", "sheet"] = setting("auto", help="how one picture holds all views")
    grid: tuple[int, int] = setting((0, 0), 0, 256, "rows and columns of cameras, where names do not tell")
    memory_mib: int = setting(0, 0, 1 << 30, "device memory for the field; 0: what the device has")

    def __post_init__(self):
        if self.far > self.near:
            raise ValueError(f"far is {self.far} and near {self.near}; far must not exceed near")


def open_file(path: Path) -> Scene:
    """The scene of a light field: seen from its middle through a full aperture, focused on what is in the centre, in
    the size of its views.
    """
    path = Path(path).resolve()
    settings = Settings(str(path), Eye().click(0.0, 0.0))
    return Scene(path, path.stem, "lightfield", settings, Picture.tone, view_size(path))


class Picture:
    tone = Tone("manual")

    def __init__(self, gpu: DeviceContext):
        self._gpu = gpu
        self._source = self._focused = self._drawn = None

    def draw(self, settings: Settings, size: tuple[int, int], time: float, tile=None):
        """A whole picture in every draw; one of the `steps` planes a draw for stack, all in focus and depth."""
        self._open(settings)
        if (settings, size, tile) != self._drawn:
            self._drawn, self._step = (settings, size, tile), 0
            self._plan(settings, size, tile)
        if settings.show == "refocused" or self._step < settings.steps:
            self._advance(settings)
            self._step += 1
        return self._frame

    def restart(self) -> None:
        """The next draw is the first plane."""
        self._drawn = None

    def draws(self, settings: Settings, size: tuple[int, int]) -> int:
        return 1 if settings.show == "refocused" else settings.steps

    def report(self) -> dict:
        """What is shown and how; the warnings of the field."""
        field, settings = self._field, self._drawn[0]
        far, near = self._range(settings)
        return {
            "field": field.convention,
            "views": f"{len(field.pixels)} of {field.rows} x {field.columns}, {field.size[0]} x {field.size[1]}",
            "views used": int((self._shares > 1e-6).sum()),
            "disparity in focus": round(self._disparity, 3),
            "disparities": [round(far, 3), round(near, 3)],
            "camera misfit": round(residual(field), 4),
            "held": self._held.told,
            "warnings": list(field.warnings),
        }

    def _open(self, settings: Settings) -> None:
        """The field of these settings on the device, unless it is there."""
        source = (settings.field, settings.pattern, settings.layout, settings.grid, settings.memory_mib)
        if source == self._source:
            return
        if not settings.field:
            raise InputError("settings: field is empty; it must be a folder, .zip, .npy, .npz or picture of views")
        field = measured_axes(read_field(settings.field, settings.pattern, settings.layout, settings.grid))
        for warning in field.warnings:
            print(f"rayfold: {Path(settings.field).name}: {warning}", file=sys.stderr)
        self._field, self._measured, self._focused, self._drawn, self._aperture = field, None, None, None, None
        self._records = None
        self._held = Held(self._gpu.device, field, settings.memory_mib << 20)
        self._kernels = Kernels(self._gpu.device, field)
        width, height = field.size
        device = self._gpu.device
        self._picture, self._best = device.buffer((height, width, 4)), device.buffer((height, width, 4))
        self._score, self._previous = device.buffer((height, width)), device.buffer((height, width))
        curve = linear_of_srgb(np.arange(256, dtype="u1"))
        self._linear = device.buffer(256).write(curve)
        self._taps = device.buffer(len(field.pixels), TAP)
        self._source = source

    def _range(self, settings: Settings) -> tuple[float, float]:
        """Least and greatest disparity: the settings', or what the pictures tell."""
        if settings.far < settings.near:
            return settings.far, settings.near
        if self._measured is None:
            self._measured = depth_range(self._field)
        return self._measured

    def _plan(self, settings: Settings, size, tile) -> None:
        """Which views take part, what is in focus, and where pictures go in the frame."""
        field, eye = self._field, settings.view
        if self._aperture != (eye.u, eye.v, eye.aperture, settings.shape):
            self._aperture = (eye.u, eye.v, eye.aperture, settings.shape)
            self._shares, self._place = weights(field, eye, settings.shape), place_of(field, eye.u, eye.v)
        self._disparity = settings.disparity + self._clicked(settings, size)
        count = settings.steps if settings.show == "focal stack" else 1
        left, top, width, height = tile or (0, 0, *size)
        whole = size == field.size and tile is None and count == 1
        if whole and settings.show != "depth":
            self._frame = self._best if settings.show == "all in focus" else self._picture
            self._rectangles = None
        else:
            self._frame = self._gpu.device.buffer((height, width, 4))
            self._kernels["blacken"](width * height, self._frame, width * height)
            self._rectangles = [(x - left, y - top, w, h) for x, y, w, h in grid(count, size, 0, 2 if count > 1 else 0)]

    def _clicked(self, settings: Settings, size) -> float:
        """The disparity of the place that was clicked on, 0 where none was; measured once a click."""
        place = settings.view.focus_at
        if place is None:
            return 0.0
        if self._focused is None or self._focused[0] != (place, size, settings.far, settings.near):
            x, y, u, v = place
            far, near = self._range(settings)
            step, from_x, from_y = self._fitted(0, 0, *size)
            px = (x * size[1] + size[0] / 2) * step + from_x - 0.5
            py = (y * size[1] + size[1] / 2) * step + from_y - 0.5
            candidates = np.linspace(far, near, max(64, math.ceil(8 * (near - far))))
            found = disparity_at(self._field, px, py, place_of(self._field, u, v), candidates)
            self._focused = ((place, size, settings.far, settings.near), found)
        return self._focused[1]

    def _advance(self, settings: Settings) -> None:
        """The next draw: the picture, or one plane of the stack, the depths or the picture that is sharp everywhere."""
        far, near = (0.0, 0.0) if settings.show == "refocused" else self._range(settings)
        disparity = far + (near - far) * self._step / max(settings.steps - 1, 1)
        width, height = self._field.size
        pixels, begins = width * height, int(self._step == 0)
        if settings.show == "refocused":
            self._flatten(settings.flatten, self._disparity, self._picture)
            self._show(self._picture, 0)
        elif settings.show == "focal stack":
            self._flatten(settings.flatten, disparity, self._picture)
            self._show(self._picture, self._step)
        elif settings.show == "all in focus":
            self._flatten(settings.flatten, disparity, self._picture)
            keep = self._kernels["keep_sharpest"]
            keep(pixels, self._picture, self._best, self._score, settings.window, begins)
            self._show(self._best, 0)
        else:
            self._flatten("variance", disparity, self._score)
            keep = self._kernels["keep_steadiest"]
            keep(pixels, self._score, self._best, self._previous, settings.window, disparity, begins)
            step = (near - far) / max(settings.steps - 1, 1)
            self._kernels["paint_depth"](pixels, self._best, self._picture, far, near, step)
            self._show(self._picture, 0)

    def _flatten(self, how: str, disparity: float, target) -> None:
        """One picture of all views that take part, shifted so that the plane of `disparity` lies still."""
        if self._records is None or self._records[0] != (self._aperture, disparity):
            self._records = (self._aperture, disparity), taps(self._field, self._shares, self._place, disparity)
        records = self._records[1]
        launch = self._kernels[how]

        def work(views, first, stored, begin, end):
            launch(views, self._taps, len(records), self._linear, target, first, stored, begin, end)

        self._held.each_band(records, self._taps, work)

    def _fitted(self, x: int, y: int, width: int, height: int):
        """Picture pixels for one of the frame, and the picture's place at the rectangle's corner: all of it is seen."""
        w, h = self._field.size
        step = max(w / width, h / height)
        return step, (w - width * step) / 2, (h - height * step) / 2

    def _show(self, picture, index: int) -> None:
        """Draws a view-sized picture into rectangle `index` of the frame, unless it is the frame."""
        if self._rectangles is None:
            return
        x, y, width, height = self._rectangles[index]
        step, from_x, from_y = self._fitted(0, 0, width, height)
        frame_height, frame_width = self._frame.shape[:2]
        left, top = max(x, 0), max(y, 0)
        wide, high = min(x + width, frame_width) - left, min(y + height, frame_height) - top
        if wide > 0 and high > 0:
            place = (left - x, top - y, wide, high)
            self._kernels["place_picture"](
                wide * high, picture, self._frame, frame_width, left, top, *place, from_x, from_y, step,
                max(1, math.ceil(step - 1e-6)),
            )  # fmt: skip


class Kernels:
    """The kernels for views of one size, each compiled when it is first asked for.

    Those that flatten views are called with (views, taps, count, curve, target, first, stored, begin, end).
    """

    def __init__(self, device: Device, field: LightField):
        self._device = device
        self._width, height = field.size
        channels = field.pixels.shape[3]
        self._sizes = dict(
            WIDTH=self._width, HEIGHT=height, CHANNELS=channels, PITCH=pitch(field), GUARD=GUARD, TAP=TAP
        )
        self._compiled: dict = {}

    def __getitem__(self, name: str):
        if name not in self._compiled:
            self._compiled[name] = self._flattening(name) if name in FLATTENING else self._plain(name)
        return self._compiled[name]

    def _plain(self, entry: str):
        return self._device.kernel("lightfields/lightfield.cu", entry, group_size=GROUP, **self._sizes)

    def _flattening(self, name: str):
        width = self._width
        if name == "mean" and self._sizes["CHANNELS"] == 3:
            return _fast_mean(self._device, width, self._sizes)
        entry, *extra = FLATTENING[name]
        kernel = self._plain(entry)
        return lambda *arguments: kernel((arguments[-1] - arguments[-2]) * width, *arguments, *extra)


def _fast_mean(device: Device, width: int, sizes: dict):
    """refocus for 3 channels, in the shape that suits the processor."""
    if device.properties.scalar_threads:
        runs = device.kernel(
            "lightfields/lightfield.cu", "refocus_runs", group_size=1, RUN=RUN, RUN_ROWS=RUN_ROWS, **sizes
        )
        across = -(-width // RUN)
        return lambda *a: runs(across * -(-(a[-1] - a[-2]) // RUN_ROWS), *a)
    group = tile_group(width, sizes["HEIGHT"], device.properties.compute_units)
    shape = dict(ROWS=TILE_ROWS, RESIDENT_GROUPS=max(TILE_GROUPS) // group)
    tiles = device.kernel("lightfields/lightfield.cu", "refocus_tiles", group_size=group, **sizes, **shape)
    return lambda *a: tiles(tile_count(width, a[-1] - a[-2], group) * group, *a)


def tile_count(width: int, rows: int, group: int) -> int:
    """Groups of refocus_tiles that cover so many columns and rows: a warp takes 128 columns of TILE_ROWS rows."""
    return -(-width // 128) * -(-rows // (group // 32 * TILE_ROWS))


def tile_group(width: int, height: int, units: int) -> int:
    """Threads of a group: the most whose tiles still keep nearly all units of the device busy."""
    enough = [group for group in TILE_GROUPS if tile_count(width, height, group) >= 0.9 * units]
    return max(enough, default=min(TILE_GROUPS))


def pitch(field: LightField) -> int:
    """Bytes from one row of a view to the next on the device."""
    return -(-field.pixels.shape[2] * field.pixels.shape[3] // 16) * 16


class Held:
    """The views of a field on a device: all of them, or, where they do not fit, bands of rows through two stages."""

    def __init__(self, device: Device, field: LightField, room: int):
        count, height = field.pixels.shape[:2]
        self._device, self._field, self._pitch = device, field, pitch(field)
        self._bytes = 2 * GUARD + count * height * self._pitch
        properties = device.properties
        self._room = room or min(int(SHARE * properties.memory_bytes), properties.max_buffer_bytes)
        self.resident = self._bytes <= self._room
        self._stages: list = []
        self._records = None
        self.told = f"{self._bytes / 2**20:.0f} MiB on the device" if self.resident else "streamed in bands of rows"
        if self.resident:
            self._upload()

    def each_band(self, records: np.ndarray, target, work) -> None:
        """Writes the TAP records to `target` and calls work(views, first row, rows stored, begin, end) for all rows."""
        height = self._field.pixels.shape[1]
        if self.resident:
            self._write(records, records, target)
            work(self._views, 0, height, 0, height)
            return
        chosen = records["view"].copy()
        numbered = records.copy()
        numbered["view"] = np.arange(len(records))
        self._write(records, numbered, target)
        above, below = (-int(records["row"].min()), int(records["row"].max()) + 1) if len(records) else (0, 0)
        rows = self._band_rows(len(chosen), above + below)
        for number, begin in enumerate(range(0, height, rows)):
            end = min(begin + rows, height)
            first = min(max(begin - above, 0), height - 1)
            last = max(min(end + below, height), first + 1)
            stage = self._stages[number % 2]
            need = self._fill(stage.map(), chosen, first, last)
            stage.upload_then(need, lambda views, f=first, n=last - first, b=begin, e=end: work(views, f, n, b, e))

    def _write(self, records: np.ndarray, numbered: np.ndarray, target) -> None:
        """The numbered records at the head of the buffer, unless those made of the same records stand there."""
        if records is not self._records:
            whole = np.zeros(target.shape, TAP)
            whole[: len(records)] = numbered
            target.write(whole)
            self._records = records

    def _band_rows(self, views: int, margin: int) -> int:
        """Rows of a band whose stored rows of all views fit a stage; makes the stages."""
        row = max(views, 1) * self._pitch
        least = 2 * GUARD + (margin + 1) * row
        wanted = max(min(STAGED, self._room // 2), least)
        if wanted > self._device.properties.max_buffer_bytes:
            raise UnavailableError(
                f"{self._device.name}: one row of the refocused picture needs {least >> 20} MiB of the views; "
                "a smaller aperture or disparity needs less"
            )
        if not self._stages or self._capacity < wanted:
            self._stages, self._capacity = [], wanted
            self._stages = [self._device.staging_buffer(wanted), self._device.staging_buffer(wanted)]
        return max(1, (self._capacity - 2 * GUARD) // row - margin)

    def _fill(self, staged: np.ndarray, chosen, first: int, last: int) -> int:
        """Lays rows first to last of the chosen views out as the kernels want them; returns the bytes used."""
        pixels = self._field.pixels
        line = pixels.shape[2] * pixels.shape[3]
        need = 2 * GUARD + len(chosen) * (last - first) * self._pitch
        rows = staged[GUARD : need - GUARD].reshape(len(chosen), last - first, self._pitch)
        for index, view in enumerate(chosen):
            rows[index, :, :line] = pixels[view, first:last].reshape(last - first, line)
        return need

    def _upload(self) -> None:
        """Copies all views to the device, a bounded part of them at a time."""
        count, height = self._field.pixels.shape[:2]
        size = height * self._pitch
        views = self._device.buffer(self._bytes, "u1")
        at_once = max(1, STAGED // size)
        stages = [self._device.staging_buffer(min(at_once, count) * size + 2 * GUARD) for _ in range(2)]
        sizes = dict(WIDTH=1, HEIGHT=1, CHANNELS=3, PITCH=16, GUARD=GUARD, TAP=TAP)
        keep = self._device.kernel("lightfields/lightfield.cu", "keep_views", group_size=GROUP, **sizes)
        for number, start in enumerate(range(0, count, at_once)):
            stage, chosen = stages[number % 2], range(start, min(start + at_once, count))
            need = self._fill(stage.map(), chosen, 0, height)
            words = (need - 2 * GUARD) // 16
            stage.upload_then(need, lambda b, s=start, w=words: keep(w, b, views, np.uint64(GUARD + s * size), w))
        self._device.finish()
        self._views = views
