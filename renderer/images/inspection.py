"""Inspection of pictures for the window and lessons: histograms, false color, layers, differences of two pictures.

All functions take and return NumPy arrays on the host.
"""

import numpy as np

from renderer.formats.images import LUMINANCE, linear_to_srgb
from renderer.images.algorithm_view import CHANNELS, Legend, StepPicture
from renderer.images.flip import flip_map
from renderer.images.metrics import psnr

STOPS = (-12.0, 8.0)  # first and last value of the histogram, as log2
BINS = 120  # bins of the histogram: six a stop
MAX_STOPS = 16.0  # the longest logarithmic scale of a picture in false color, in stops
LEVELS = 4096  # entries of the table of false colors
MAX_FLIP_PIXELS = 1 << 22  # pixels of the largest picture whose FLIP is computed
VIRIDIS = np.array([
    [68, 1, 84], [72, 40, 120], [62, 74, 137], [49, 104, 142], [38, 130, 142], [31, 158, 137], [53, 183, 121],
    [110, 206, 88], [181, 222, 43], [253, 231, 37],
], "f4")  # fmt: skip


def histogram(linear: np.ndarray) -> tuple[np.ndarray, dict[str, int]]:
    """Counts red, green and blue (3, BINS) over log2 of the value, from STOPS[0] to STOPS[1].

    Values outside the bins are counted by name: "dark" (below the first bin, zero and negative), "bright" (at or above
    the last bin's end, infinity too) and "NaN".
    """
    values = np.asarray(linear, "f4")[..., :3].reshape(-1, 3).T
    low, high = STOPS
    is_nan = np.isnan(values)
    safe = np.where(is_nan | (values <= 0), 0.0, values)
    with np.errstate(divide="ignore"):
        stops = np.log2(safe, dtype="f4")
    dark, bright = ~is_nan & (stops < low), ~is_nan & (stops >= high)
    inside = ~(dark | bright | is_nan)
    counts = np.zeros((3, BINS), "i8")
    for channel in range(3):
        bins = ((stops[channel][inside[channel]] - low) * (BINS / (high - low))).astype("i8")
        counts[channel] = np.bincount(np.minimum(bins, BINS - 1), minlength=BINS)
    return counts, {"dark": int(dark.sum()), "bright": int(bright.sum()), "NaN": int(is_nan.sum())}


def _color_table(levels: int) -> np.ndarray:
    """Returns (levels + 1,) uint32 pixels, red in the lowest byte: VIRIDIS at equal steps, then magenta for NaN."""
    position = np.linspace(0, len(VIRIDIS) - 1, levels)
    left = np.minimum(position.astype(int), len(VIRIDIS) - 2)
    t = (position - left)[:, None]
    colors = VIRIDIS[left] * (1 - t) + VIRIDIS[left + 1] * t
    table = np.full((levels + 1, 4), 255, "u1")
    table[:-1, :3], table[-1, :3] = colors + 0.5, (255, 0, 255)
    return table.view("<u4").ravel()


COLOR_TABLE = _color_table(LEVELS)
STENCIL_TABLE = _color_table(33)[:33]  # colors of 0 to 32 rays of a word


def false_color(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Returns numbers as (height, width, 4) uint8 colors, dark blue at `low` to yellow at `high`; NaN is magenta."""
    values = np.asarray(values)
    span = float(high) - float(low) if high > low else 1.0
    with np.errstate(invalid="ignore", over="ignore"):
        position = (values - np.float64(low)) * ((LEVELS - 1) / span)
    is_nan = np.isnan(position)
    level = np.clip(np.where(is_nan, 0.0, position), 0, LEVELS - 1) + 0.5
    return _pixels(COLOR_TABLE[np.where(is_nan, LEVELS, level.astype("i4"))])


def _pixels(words: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(words, "<u4").view("u1").reshape(*words.shape, 4)


def stencil_picture(live: np.ndarray, occupancy: np.ndarray) -> np.ndarray:
    """Draws a stencil of active rays as (height, width, 4) uint8 pixels.

    `live` (height, width) is 1 for active rays and 0 for ended ones. `occupancy` (rows, columns) is the fraction of
    active rays in each word of 4 x 8 pixels. The color of a word shows its occupancy, dark blue to yellow. Its ended
    rays are a third as bright; words without an active ray are black.
    """
    height, width = live.shape
    colors = STENCIL_TABLE.view("u1").reshape(-1, 4)
    table = np.zeros((33, 2, 4), "u1")  # by the word's number of active rays, then by `live`
    table[:, 1], table[:, 0] = colors, (colors / 3 + 0.5).astype("u1")
    table[0] = 0
    table[..., 3] = 255
    word = (2 * np.round(32 * occupancy)).astype("u1")  # index of the word's color for live = 0; live = 1 follows
    by_pixel = np.repeat(np.repeat(word, 4, 0), 8, 1)[:height, :width]
    return _pixels(table.view("<u4").ravel()[by_pixel + live])


def channel_picture(name: str, linear: np.ndarray) -> StepPicture:
    """Shows one of CHANNELS, luminance or a color, of linear pixels (height, width, 3 or 4) in false color.

    The color depends on the logarithm of the value.

    The scale spans the middle 99.8 % of the positive values, and at most MAX_STOPS. Values of 0 and below have the
    lowest color.
    """
    pixels = np.asarray(linear, "f4")[..., :3]
    values = pixels @ LUMINANCE.astype("f4") if name == "luminance" else pixels[..., CHANNELS[1:].index(name)]
    positive = values[np.isfinite(values) & (values > 0)]
    low, high = (float(v) for v in np.quantile(positive, (0.001, 0.999))) if positive.size else (0.5, 1.0)
    low = max(low, high * 2.0**-MAX_STOPS)
    high = max(high, low * 1.001)
    with np.errstate(divide="ignore", invalid="ignore"):
        stops = np.log2(np.where(values <= 0, 0.0, values))
    meaning = f"{name} of the linear picture, from {low:.4g} to {high:.4g}"
    return StepPicture(false_color(stops, np.log2(low), np.log2(high)), values, meaning, Legend(low, high, is_log=True))


def layer_picture(name: str, values: np.ndarray) -> StepPicture:
    """Shows a layer (height, width) or (height, width, 3) as a picture.

    Normals are mapped from -1..1 to 0..255; each id has a color; other colors, which are linear, are clipped to 0..1
    and converted to sRGB. Numbers are in false color between the least and the greatest finite value.
    """
    values = np.asarray(values)
    if name == "id":
        return StepPicture(id_colors(values), values, f"{len(np.unique(values[values > 0]))} primitives seen")
    if name == "normal":
        pixels = (np.clip(0.5 + 0.5 * values, 0, 1) * 255 + 0.5).astype("u1")
        return StepPicture(pixels, values, "x, y, z from -1 (0) to 1 (255)")
    if name == "variance":
        return _numbers(values, np.maximum(values.mean(-1), 1e-12), True, "")
    if name == "density" and values.ndim == 2:
        return _numbers(values, 1 + np.maximum(values, 0), True, "1 + hits, from ")
    if values.ndim == 3:
        return StepPicture(linear_to_srgb(np.clip(np.nan_to_num(values[..., :3]), 0, 1)), values, "0 to 1")
    return _numbers(values, values.astype("f8"), False, "")


def _numbers(values: np.ndarray, shown: np.ndarray, is_log: bool, prefix: str) -> StepPicture:
    """Shows a layer in the false colors of the numbers `shown` (height, width); `values` are what the pointer reads.

    `prefix` begins the meaning, the range of the colors.
    """
    finite = shown[np.isfinite(shown)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (1.0, 2.0)
    scale = np.log10 if is_log else np.asarray
    pixels = false_color(scale(shown), float(scale(low)), float(scale(high)))
    meaning = f"{prefix}{low:.4g} (blue) to {high:.4g} (yellow)"
    return StepPicture(pixels, values, meaning, Legend(low, max(high, low * 1.001 if is_log else low), is_log=is_log))


def id_colors(ids: np.ndarray) -> np.ndarray:
    """Returns a color for each number; 0 is black.

    Numbers are hashed, so that neighbors differ, with the multipliers of C. Wellons' lowbias32 (2018).
    """
    x = np.asarray(ids).astype("u4")
    with np.errstate(over="ignore"):
        for multiplier in (0x7FEB352D, 0x846CA68B):
            x = (x ^ (x >> np.uint32(16))) * np.uint32(multiplier)
    x ^= x >> np.uint32(15)
    colors = np.stack([64 + ((x >> np.uint32(shift)) & np.uint32(255)) * 0.74 for shift in (0, 8, 16)], -1)
    return np.where(np.asarray(ids)[..., None] > 0, colors, 0).astype("u1")


def differences(a: np.ndarray, b: np.ndarray) -> dict[str, float]:
    """Returns the MSE (of values 0 to 1), PSNR in dB and mean FLIP of two displayed pictures of one size, uint8 sRGB.

    Also the largest difference, and where it is: x and y, fractions of width and height. Omits FLIP, which is slow,
    above MAX_FLIP_PIXELS. ValueError for pictures of different sizes.
    """
    if a.shape[:2] != b.shape[:2]:
        sizes = [f"{picture.shape[1]} x {picture.shape[0]}" for picture in (a, b)]
        raise ValueError(f"the pictures have {sizes[0]} and {sizes[1]} pixels; only pictures of one size are measured")
    a, b = a[..., :3], b[..., :3]
    apart = np.abs(a.astype("f4") - b) / 255
    row, column = np.unravel_index(int(apart.max(-1).argmax()), apart.shape[:2])
    out = {"MSE": float(np.mean(apart.astype("f8") ** 2)), "PSNR": psnr(a, b), "largest": float(apart.max())}
    out |= {"x": (float(column) + 0.5) / a.shape[1], "y": (float(row) + 0.5) / a.shape[0]}
    if a.shape[0] * a.shape[1] <= MAX_FLIP_PIXELS:
        out["FLIP"] = float(flip_map(b, a).mean())
    return out
