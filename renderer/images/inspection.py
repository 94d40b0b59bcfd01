"""Numbers of a picture as pictures: histograms, false color, layers, and how far two pictures differ.

Plain functions of arrays: the window shows what they return.
"""

import numpy as np

from renderer.formats.images import linear_to_srgb
from renderer.images.flip import flip_map
from renderer.images.metrics import psnr

STOPS = (-12.0, 8.0)  # of the histogram, log2 of the value
BINS = 120
MAX_FLIP_PIXELS = 1 << 22
VIRIDIS = np.array([
    [68, 1, 84], [72, 40, 120], [62, 74, 137], [49, 104, 142], [38, 130, 142], [31, 158, 137], [53, 183, 121],
    [110, 206, 88], [181, 222, 43], [253, 231, 37],
], "f4")  # fmt: skip


def histogram(linear: np.ndarray) -> tuple[np.ndarray, dict[str, int]]:
    """Counts (3, BINS) of red, green and blue over log2 of the value, from STOPS[0] to STOPS[1].

    What has no place there is counted by name: "dark" (below the first bin, zero and negative), "bright" (at or above
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
        places = ((stops[channel][inside[channel]] - low) * (BINS / (high - low))).astype("i8")
        counts[channel] = np.bincount(np.minimum(places, BINS - 1), minlength=BINS)
    return counts, {"dark": int(dark.sum()), "bright": int(bright.sum()), "NaN": int(is_nan.sum())}


def false_color(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """(height, width, 3) uint8 colors of numbers, from dark blue at `low` to yellow at `high`; NaN is magenta."""
    position = (np.asarray(values, "f8") - low) / (high - low if high > low else 1.0)
    position = np.clip(np.nan_to_num(position, nan=0.0, posinf=1.0, neginf=0.0), 0, 1) * (len(VIRIDIS) - 1)
    left = np.minimum(position.astype(int), len(VIRIDIS) - 2)
    part = (position - left)[..., None]
    colors = VIRIDIS[left] * (1 - part) + VIRIDIS[left + 1] * part
    return np.where(np.isnan(values)[..., None], (255, 0, 255), colors + 0.5).astype("u1")


def stencil_picture(live: np.ndarray, occupancy: np.ndarray) -> np.ndarray:
    """A stencil of active rays as (height, width, 3) uint8 pixels.

    `live` (height, width) says which rays are active, `occupancy` (rows, columns) the fraction of them in each word, a
    block of 4 rows and 8 columns. A word has the color of its occupancy, from dark blue to yellow; ended rays in it are
    a third as bright, words without a ray are black.
    """
    height, width = live.shape
    by_pixel = np.kron(occupancy, np.ones((4, 8)))[:height, :width]
    bright = np.where(live, 1.0, np.where(by_pixel > 0, 1 / 3, 0.0))
    return (false_color(by_pixel, 0.0, 1.0) * bright[..., None] + 0.5).astype("u1")


def layer_picture(name: str, values: np.ndarray) -> tuple[np.ndarray, str]:
    """A layer as (height, width, 3) uint8 pixels, and what its colors mean.

    Normals are shown by halves, ids by a color each, other colors as they are; numbers in false color between their
    least and greatest finite value.
    """
    values = np.asarray(values)
    if name == "id":
        return id_colors(values), f"{len(np.unique(values[values > 0]))} primitives seen"
    if name == "normal":
        return (np.clip(0.5 + 0.5 * values, 0, 1) * 255 + 0.5).astype("u1"), "x, y, z from -1 (0) to 1 (255)"
    if name == "variance":
        return _numbers(np.log10(np.maximum(values.mean(-1), 1e-12)), "log10 ")
    if name == "density" and values.ndim == 2:
        return _numbers(np.log10(1 + np.maximum(values, 0)), "log10 of 1 + ")
    if values.ndim == 3:
        return linear_to_srgb(np.clip(np.nan_to_num(values[..., :3]), 0, 1)), "0 to 1"
    return _numbers(values.astype("f8"), "")


def _numbers(values: np.ndarray, name: str) -> tuple[np.ndarray, str]:
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    return false_color(values, low, high), f"{name}{low:.4g} (blue) to {high:.4g} (yellow)"


def id_colors(ids: np.ndarray) -> np.ndarray:
    """A color for each number; 0 is black. Numbers are hashed (T. Wang's mix), so neighbors differ."""
    x = np.asarray(ids).astype("u4")
    with np.errstate(over="ignore"):
        for multiplier in (0x7FEB352D, 0x846CA68B):
            x = (x ^ (x >> np.uint32(16))) * np.uint32(multiplier)
    x ^= x >> np.uint32(15)
    colors = np.stack([64 + ((x >> np.uint32(shift)) & np.uint32(255)) * 0.74 for shift in (0, 8, 16)], -1)
    return np.where(np.asarray(ids)[..., None] > 0, colors, 0).astype("u1")


def differences(a: np.ndarray, b: np.ndarray) -> dict[str, float]:
    """MSE (of values 0 to 1), PSNR in dB and mean FLIP of two displayed pictures of one size, uint8 sRGB.

    FLIP is left out of pictures above MAX_FLIP_PIXELS, where it takes long. ValueError for two sizes.
    """
    if a.shape[:2] != b.shape[:2]:
        sizes = [f"{picture.shape[1]} x {picture.shape[0]}" for picture in (a, b)]
        raise ValueError(f"the pictures have {sizes[0]} and {sizes[1]} pixels; only pictures of one size are measured")
    a, b = a[..., :3], b[..., :3]
    mse = float(np.mean(((a.astype("f8") - b) / 255) ** 2))
    out = {"MSE": mse, "PSNR": psnr(a, b)}
    if a.shape[0] * a.shape[1] <= MAX_FLIP_PIXELS:
        out["FLIP"] = float(flip_map(b, a).mean())
    return out
