"""Turns the color sums of a ChaosGame into a picture: log-density, density estimation, spatial filter, tone curve.

The kernels of shaders/flames/postprocess.cu follow flam3 (rect.c, palettes.c). renderer/pictures/flame.py calls
Postprocess for each tile of a picture.
"""

import math

import numpy as np

from renderer.flames.chaos_game import BucketRect, ChaosGame
from renderer.flames.filters import density_filter, density_filter_radius, gutter, spatial_filter
from renderer.flames.genome import CurvePoints, Flame
from renderer.flames.settings import Settings
from renderer.flames.solid_pass import NamedBuffers, SolidPass
from renderer.flames.temporal import Pass
from renderer.formats.images import srgb_to_linear
from renderer.gpu import Device
from renderer.gpu.device import Buffer, Kernel
from renderer.records import dataclass

TRANSPARENT, OVER_BACKGROUND = 1, 2  # values of ToneCurve.transparent: alpha instead of, or beside, the background
LIT = 2  # value of resolve()'s argument `toning` for solid flames (shaders/flames/postprocess.cu)
TILE = 8  # buckets along each side of a tile, as in shaders/flames/postprocess.cu
# Columns and rows of a block of buckets, and floats of padding of a filter's row, as in shaders/flames/density.cu.
BLOCK, PADDING = (64, 16), 16
TONE_CURVE = np.dtype(
    [(name, "f4") for name in ("gamma", "threshold", "vibrancy", "highlight_power", "red", "green", "blue")]
    + [("transparent", "i4"), ("has_curves", "i4")]
    + [(name, "f4") for name in ("red_scale", "green_scale", "blue_scale", "alpha_scale", "more_saturation")]
)
CURVE_ENTRIES = 1025  # entries of the table of a tone curve over 0 to 1
ENTRIES = (
    "log_density", "resolve", "choose_density_kernel", "max_tile_radius", "filter_density", "add_pass",
    "tone_map_buckets",
)  # fmt: skip
DeviceDensityFilter = tuple[Buffer, Buffer, float]  # kernels, radii, max_hits of filters.DensityFilter
JWILDFIRE_BRIGHTNESS = 2 / math.log(10)  # JWildfire's brightness times a natural logarithm (its LogScaleCalculator)
MAX_AREA = 1e36  # buckets in a unit of the plane: float32 holds no more; such a picture shows less than a point
FLAM3_BRIGHTNESS = 268 / 256  # flam3's factor on brightness (k1 in its rect.c)
JWILDFIRE_COLORS = 200 * 255 / 256  # JWildfire plots palette values times 200 / 256


@dataclass(frozen=True)
class BucketGrid:
    """The buckets of a picture, and the rectangle of them that one of its tiles needs."""

    columns: int
    rows: int
    gutter: int  # buckets beyond the picture on each side
    rect: BucketRect
    first_column: int  # column of `rect` where the spatial filter of the tile's first pixel begins
    first_row: int

    @staticmethod
    def for_tile(flame: Flame, size: tuple[int, int], tile: tuple[int, int, int, int]) -> "BucketGrid":
        """The grid of a picture of `size` pixels and a tile (left, top, width, height) of it."""
        filter_width = len(spatial_filter(flame))
        margin, offset = gutter(flame, filter_width)
        n = flame.supersample
        columns, rows = size[0] * n + 2 * margin, size[1] * n + 2 * margin
        left, top, width, height = tile
        reach = density_filter_radius(flame) + n  # distance within which buckets change what the filter reads
        reach += flame.solid.reach((columns, rows)) if flame.solid else 0
        starts = [max(0, pixel * n + offset - reach) for pixel in (left, top)]
        ends = [(last - 1) * n + offset + filter_width + reach for last in (left + width, top + height)]
        ends = [min(end, limit) for end, limit in zip(ends, (columns, rows), strict=True)]
        rect = BucketRect(starts[0], starts[1], ends[0] - starts[0], ends[1] - starts[1])
        return BucketGrid(columns, rows, margin, rect, left * n + offset - starts[0], top * n + offset - starts[1])


def is_extended(flame: Flame) -> bool:
    """True if the flame uses what other programs add to flam3's exposure and tone curve (macro EXTENDED)."""
    plain = (flame.exposure, flame.white_level, flame.saturation, flame.fg_opacity) == ("flam3", 255, 1, 1)
    return not plain or bool(flame.curves or flame.solid) or color_balance(flame) != (1, 1, 1)


def color_balance(flame: Flame) -> tuple[float, float, float]:
    """JWildfire's factors on red, green and blue."""
    return flame.balancing_red, flame.balancing_green, flame.balancing_blue


def tone_curve(flame: Flame, transparent: bool) -> np.ndarray:
    """The flame's struct ToneCurve, which shaders/flames/postprocess.cu describes, of dtype TONE_CURVE."""
    numbers = (1.0 / flame.gamma, flame.gamma_threshold, flame.vibrancy, flame.highlight_power, *flame.background)
    # JWildfire's GammaCorrectionFilter: a foreground of less opacity lets more of the background through.
    alpha_scale = 1 - math.atan(3 * (flame.fg_opacity - 1)) / 1.25
    white = JWILDFIRE_COLORS if flame.exposure == "jwildfire" else 255.0
    scales = (white / flame.white_level * factor for factor in color_balance(flame))
    kept_alpha = TRANSPARENT if transparent else OVER_BACKGROUND * flame.bg_transparency
    values = (*numbers, kept_alpha, bool(flame.curves), *scales, alpha_scale, flame.saturation - 1)
    return np.array(values, TONE_CURVE)[()]  # a record, not an array of one


def curve_tables(curves: tuple[CurvePoints, ...]) -> np.ndarray:
    """(4, CURVE_ENTRIES) float32: a cubic spline over 0 to 1 through the points of each curve; () is a straight line.

    As in Fractorium, second derivatives are 3 (slope after - slope before) / (x after - x before) at inner points and 0
    at both ends; a natural spline has others. A curve is constant before its first point and after its last.
    """
    positions = np.linspace(0, 1, CURVE_ENTRIES)
    return np.stack([_spline(points, positions) if points else positions for points in curves]).astype("f4")


def _spline(points: CurvePoints, positions: np.ndarray) -> np.ndarray:
    """(n,): curve_tables()'s spline at positions (n,), clamped to 0 to 1; `moment`: its second derivatives."""
    x, y = np.array(points, "f8").T
    width = np.diff(x)
    slope = np.diff(y) / width
    moment = np.zeros(len(x))
    moment[1:-1] = 3 * np.diff(slope) / (width[1:] + width[:-1])
    u = np.clip(positions, x[0], x[-1])
    k = np.clip(np.searchsorted(x, u) - 1, 0, len(width) - 1)
    d, w = u - x[k], width[k]
    linear = slope[k] - w * (moment[k + 1] + 2 * moment[k]) / 6
    value = (moment[k + 1] - moment[k]) / (6 * w) * d**3 + moment[k] / 2 * d**2 + linear * d + y[k]
    return np.asarray(np.clip(value, 0, 1))


class Postprocess:
    """Turns the sums of a ChaosGame into linear pixels whose sRGB encoding rounds to flam3's 8-bit values."""

    def __init__(self, device: Device):
        self.device = device
        self._variants: dict[bool, dict[str, Kernel]] = {}  # value of EXTENDED -> kernels by name
        self._kernels = self._compiled(False)
        self._uploaded_curves: tuple[CurvePoints, ...] = ()  # in the buffer `curves`
        self._srgb_to_linear = device.buffer(256).write(srgb_to_linear(np.arange(256)))
        self._buffers = NamedBuffers(device)
        self._filters_key: tuple[float | str, ...] = ()  # the settings of `_filters`
        self._filters: tuple[Buffer, DeviceDensityFilter | None]  # spatial filter, density filters
        self._solid = SolidPass(device)
        self._latest: Buffer  # the log-density of the last call, without earlier passes

    def _compiled(self, extended: bool) -> dict[str, Kernel]:
        if extended not in self._variants:
            constants = dict(STRICT=1, EXTENDED=int(extended), CURVE_ENTRIES=CURVE_ENTRIES, ToneCurve=TONE_CURVE)
            self._variants[extended] = {
                entry: self.device.kernel("flames/postprocess.cu", entry, 64, **constants) for entry in ENTRIES
            }
        return self._variants[extended]

    def __call__(
        self,
        game: ChaosGame,
        pass_: Pass,
        grid: BucketGrid,
        size: tuple[int, int],
        settings: Settings,
        pixels_per_unit: float,
        pass_index: int = 0,
    ) -> Buffer:
        """(height, width, 4) float32: linear red, green, blue, alpha of a tile of `size`; valid until the next call.

        In this order: log-density of each bucket, density estimation, mean over the passes, tone curve of each bucket
        (early_clip) or lighting (solid flames), spatial filter from buckets to pixels, and in flames without early_clip
        or solid the tone curve of each pixel.

        `game` holds the sums of `pass_` over `grid.rect`. `pass_index`: the number of earlier passes; the log-density
        of all passes is averaged.
        """
        (width, height), flame = size, pass_.flame
        self._kernels = self._compiled(is_extended(flame))
        curves = self._upload_curves(flame)
        buckets = self._log_density(game, pass_, grid, pixels_per_unit)
        picture = self._buffers.get("picture", (height, width, 4))
        spatial, density = self._device_filters(flame)
        if density:
            buckets = self._filter_density(game, buckets, pass_, grid, density)
        self._latest, count = buckets, grid.rect.buckets
        if pass_index:
            mean, factor = self._buffers.get("mean", (count, 4)), 1.0 / (pass_index + 1)
            self._kernels["add_pass"](count, buckets, self._buffers.get("passes", (count, 4)), mean, count, factor)
            buckets = mean
        curve = tone_curve(flame, settings.transparent)
        if flame.solid:
            buckets_per_unit = flame.supersample * pixels_per_unit
            buckets = self._solid(game, flame, grid.rect, (grid.columns, grid.rows), buckets_per_unit)
        elif settings.early_clip:
            toned = self._buffers.get("toned", (count, 4))
            self._kernels["tone_map_buckets"](count, buckets, toned, count, curve, curves)
            buckets = toned
        self._kernels["resolve"](
            width * height, buckets, picture, spatial, self._srgb_to_linear, grid.rect.columns, width, height,
            grid.first_column, grid.first_row, flame.supersample, spatial.shape[0],
            LIT if flame.solid else int(settings.early_clip), curve, curves,
        )  # fmt: skip
        return picture

    def end_pass(self, pass_index: int) -> None:
        """Add the last call's log-density to the sum of the earlier passes, for the average of later calls."""
        latest = self._latest
        passes = self._buffers.get("passes", latest.shape)
        if pass_index == 0:
            passes.copy_from(latest)
        else:
            self._kernels["add_pass"](latest.shape[0], latest, passes, passes, latest.shape[0], 1.0)

    def _log_density(self, game: ChaosGame, pass_: Pass, grid: BucketGrid, pixels_per_unit: float) -> Buffer:
        """(buckets, 4) float32 log-density: red, green, blue, alpha, each in 1/255.

        The alpha sum a of a bucket becomes brightness log(1 + a area / samples), and its colors keep their ratios to
        it, as in flam3. `area`: buckets in a unit square of the plane, so that a zoom keeps the brightness, over the
        alpha sum of a sample, 255 times its mean weight. `glow`: JWildfire's low_density_brightness.
        """
        count = game.rect.buckets
        scaled = self._buffers.get("log_density", (count, 4))
        area = (pass_.flame.supersample * pixels_per_unit) ** 2 / (255.0 * pass_.weight)
        brightness, glow = pass_.flame.brightness * 255 * FLAM3_BRIGHTNESS, 0.0
        if pass_.flame.exposure == "jwildfire":
            contrast = pass_.flame.contrast
            brightness, area = pass_.flame.brightness * contrast * 255 * JWILDFIRE_BRIGHTNESS, area / contrast
            pixels = (grid.columns - 2 * grid.gutter) * (grid.rows - 2 * grid.gutter) / pass_.flame.supersample**2
            glow = pass_.flame.low_density_brightness * pixels / contrast
        samples = np.uint64(max(game.samples, 1))
        self._kernels["log_density"](
            count, game.sums, scaled, count, game.bad_value_total, samples, min(float(area), MAX_AREA),
            float(brightness), float(glow),
        )  # fmt: skip
        return scaled

    def _filter_density(
        self, game: ChaosGame, buckets: Buffer, pass_: Pass, grid: BucketGrid, density: DeviceDensityFilter
    ) -> Buffer:
        """(buckets, 4) float32: each bucket of `buckets` spread by the density filter for its hit count."""
        (kernels, radii, max_hits), flame = density, pass_.flame
        rect, count, side = grid.rect, grid.rect.buckets, kernels.shape[1]
        tiles = [-(-n // TILE) for n in (rect.columns, rect.rows)]
        kernel_index = self._buffers.get("kernel_index", (count,), "i4")
        filtered = self._buffers.get("filtered", (count, 4))
        tile_radii = self._buffers.get("tile_radii", (tiles[0] * tiles[1],), "i4")
        self._kernels["choose_density_kernel"](
            count, game.hit_sums, kernel_index, rect.columns, rect.rows, rect.left, rect.top, grid.columns, grid.rows,
            flame.supersample, kernels.shape[0] - 1, max_hits, flame.estimator_curve, 255.0 * pass_.hits_per_sample,
        )  # fmt: skip
        self._kernels["max_tile_radius"](
            tiles[0] * tiles[1], kernel_index, radii, tile_radii, rect.columns, rect.rows, *tiles
        )
        common = (buckets, filtered, kernel_index, radii, tile_radii, kernels, rect.columns, rect.rows, tiles[0])
        if (lanes := self.device.simd_width) > 1:
            blocks = [-(-n // size) for n, size in zip((rect.columns, rect.rows), BLOCK, strict=True)]
            kernel = self.device.kernel("flames/density.cu", "filter_density_by_blocks", 8, STRICT=1, LANES=lanes)
            kernel(blocks[0] * blocks[1], *common, side, blocks[0])
        else:
            self._kernels["filter_density"](count, *common, tiles[1], side)
        return filtered

    def _device_filters(self, flame: Flame) -> tuple[Buffer, DeviceDensityFilter | None]:
        """The spatial filter, and the filters of density estimation or None; uploaded when their settings change."""
        key = (
            flame.filter_radius, flame.filter_shape, flame.supersample, flame.estimator_radius, flame.estimator_minimum,
            flame.estimator_curve,
        )  # fmt: skip
        if self._filters_key != key:
            spatial, density = spatial_filter(flame), density_filter(flame)
            on_device = None
            if density:
                kernels = density.kernels
                if self.device.simd_width > 1:  # whole padded rows: a vector may begin anywhere in a row
                    rows = np.concatenate([kernels[..., :0:-1], kernels], 2)
                    kernels = np.pad(rows, ((0, 0), (0, 0), (PADDING, PADDING)))
                on_device = self._upload(kernels), self._upload(density.radii), density.max_hits
            self._filters_key, self._filters = key, (self._upload(spatial), on_device)
        return self._filters

    def _upload_curves(self, flame: Flame) -> Buffer:
        """(4, CURVE_ENTRIES) tables of the flame's tone curves; the old content, which is not read, if it has none."""
        buffer = self._buffers.get("curves", (4, CURVE_ENTRIES))
        if flame.curves and self._uploaded_curves != flame.curves:
            buffer.write(curve_tables(flame.curves))
            self._uploaded_curves = flame.curves
        return buffer

    def _upload(self, array: np.ndarray) -> Buffer:
        return self.device.buffer(array.shape, array.dtype).write(array)
