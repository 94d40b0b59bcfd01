"""From a flame's sums to its picture on the device: log-density, density estimation, spatial filter, tone curve."""

from dataclasses import dataclass

import numpy as np

from renderer.flames.chaos_game import BucketRect, ChaosGame
from renderer.flames.filters import density_filter, density_filter_radius, gutter, spatial_filter
from renderer.flames.genome import Flame
from renderer.formats.images import srgb_to_linear
from renderer.gpu import Device

TILE = 8  # as in shaders/flames/postprocess.cu


@dataclass(frozen=True)
class BucketGrid:
    """The buckets of a picture of `size` pixels, and the window of them that its tile needs."""

    columns: int
    rows: int
    gutter: int  # buckets left of the first pixel
    window: BucketRect
    first_column: int  # of the window, where the filter of the tile's first pixel begins
    first_row: int

    @staticmethod
    def for_tile(flame: Flame, size: tuple[int, int], tile: tuple[int, int, int, int]) -> "BucketGrid":
        taps = len(spatial_filter(flame))
        margin, offset = gutter(flame, taps)
        over = flame.supersample
        columns, rows = size[0] * over + 2 * margin, size[1] * over + 2 * margin
        left, top, width, height = tile
        beside = density_filter_radius(flame) + over  # buckets whose light may reach the filters, and their neighbours
        start = [max(0, at * over + offset - beside) for at in (left, top)]
        ends = [(left + width - 1) * over + offset + taps + beside, (top + height - 1) * over + offset + taps + beside]
        end = [min(end, most) for end, most in zip(ends, (columns, rows), strict=True)]
        window = BucketRect(start[0], start[1], end[0] - start[0], end[1] - start[1])
        return BucketGrid(
            columns, rows, margin, window, left * over + offset - start[0], top * over + offset - start[1]
        )


@dataclass(frozen=True)
class ExposureSettings:
    """How sums become a picture, beside the flame. `weight`: what one sample adds in the mean, by its time; `hit`: what
    it adds to the count of hits; `passes_before`: passes whose exposures are kept and shown too.
    """

    pixels_per_unit: float
    weight: float = 1.0
    hit: float = 1.0
    transparent: bool = False
    early_clip: bool = False
    passes_before: int = 0


class Postprocess:
    """Develops the sums of a ChaosGame over a window into linear pixels of which sRGB rounding makes flam3's 8-bit
    values.
    """

    def __init__(self, device: Device):
        self.device = device
        names = ("expose", "finish", "estimate", "bound", "spread", "join", "clip")
        kernels = {
            name: device.kernel("flames/postprocess.cu", name, group_size=64, STRICT=1, SUMS=1) for name in names
        }
        self._expose, self._finish, self._estimate, self._bound, self._spread, self._join, self._clip = kernels.values()
        self._linear_of = device.buffer(256).write(srgb_to_linear(np.arange(256)))
        self._buffers: dict = {}
        self._tables: tuple = (None,)

    def __call__(self, chaos: ChaosGame, flame: Flame, grid: BucketGrid, size, look: ExposureSettings):
        """The (height, width, 4) picture of a tile of `size`."""
        width, height = size
        exposed = self.exposed(chaos, flame, look.pixels_per_unit, look.weight)
        picture = self._buffer("picture", (height, width, 4))
        taps, spreading = self._prepared(flame)
        if spreading:
            exposed = self._estimated(chaos, exposed, flame, grid, spreading, look)
        self._latest, cells = exposed, grid.window.buckets
        if look.passes_before:
            whole = self._buffer("whole", (cells, 4))
            share = 1.0 / (look.passes_before + 1)
            self._join(cells, exposed, self._buffers["kept"], whole, cells, share)
            exposed = whole
        curve = (
            1.0 / flame.gamma, flame.gamma_threshold, flame.vibrancy, flame.highlight_power,
            *(float(c) for c in flame.background), int(look.transparent),
        )  # fmt: skip
        if look.early_clip:
            clipped = self._buffer("clipped", (cells, 4))
            self._clip(cells, exposed, clipped, cells, *curve)
            exposed = clipped
        self._finish(
            width * height, exposed, picture, taps, self._linear_of, grid.window.columns, width, height,
            grid.first_column,
            grid.first_row, flame.supersample, taps.shape[0], int(look.early_clip), *curve,
        )  # fmt: skip
        return picture

    def keep(self, passes_before: int) -> None:
        """Adds what was exposed last to what is kept of the passes before it."""
        latest = self._latest
        kept = self._buffer("kept", latest.shape)
        if passes_before == 0:
            kept.copy_from(latest)
        else:
            self._join(latest.shape[0], latest, kept, kept, latest.shape[0], 1.0)

    def exposed(self, chaos: ChaosGame, flame: Flame, pixels_per_unit: float, weight=1.0):
        """(cells, 4) float32 of log-density: red, green, blue, alpha, each in 1/255."""
        cells = chaos.window.buckets
        exposed = self._buffer("exposed", (cells, 4))
        area = (flame.supersample * pixels_per_unit) ** 2 / (255.0 * weight)
        brightness = flame.brightness * 255 * 268 / 256
        count = np.uint64(max(chaos.samples, 1))
        self._expose(cells, chaos.sums, exposed, cells, chaos.bad_total, count, float(area), float(brightness))
        return exposed

    def _estimated(self, chaos: ChaosGame, exposed, flame: Flame, grid: BucketGrid, spreading, look: ExposureSettings):
        kernels, reaches, most = spreading
        window, cells, side = grid.window, grid.window.buckets, kernels.shape[1]
        tiles = [-(-n // TILE) for n in (window.columns, window.rows)]
        widths, estimated = self._buffer("widths", (cells,), "i4"), self._buffer("estimated", (cells, 4))
        tile_reaches = self._buffer("tile_reaches", (tiles[0] * tiles[1],), "i4")
        self._estimate(
            cells, chaos.hit_sums, widths, window.columns, window.rows, window.left, window.top, grid.columns,
            grid.rows, flame.supersample, kernels.shape[0] - 1, most, flame.estimator_curve, 255.0 * look.hit,
        )  # fmt: skip
        self._bound(tiles[0] * tiles[1], widths, reaches, tile_reaches, window.columns, window.rows, *tiles)
        self._spread(
            cells, exposed, estimated, widths, reaches, tile_reaches, kernels, window.columns, window.rows, *tiles, side
        )
        return estimated

    def _prepared(self, flame: Flame):
        """The filter and the estimator's tables on the device, made again when their numbers change."""
        key = (
            flame.filter_radius, flame.filter_shape, flame.supersample, flame.estimator_radius, flame.estimator_minimum,
            flame.estimator_curve,
        )  # fmt: skip
        if self._tables[0] != key:
            taps, made = spatial_filter(flame), density_filter(flame)
            spreading = None
            if made:
                kernels = self.device.buffer(made.kernels.shape).write(made.kernels)
                spreading = kernels, self.device.buffer(made.reaches.shape, "i4").write(made.reaches), made.most
            self._tables = key, self.device.buffer(taps.shape).write(taps), spreading
        return self._tables[1:]

    def _buffer(self, name: str, shape, dtype="f4"):
        kept = self._buffers.get(name)
        if kept is None or kept.shape != shape:
            self._buffers.pop(name, None)
            self._buffers[name] = kept = None
            self._buffers[name] = kept = self.device.buffer(shape, dtype)
        return kept
