"""Palettes of flames: arrays (256, 3) of red, green, blue, 0 to 255; their rotation and interpolation in HSV.

The built-in palettes are gradients in assets/palettes.json; flam3's numbered palettes are read where it is installed.
"""

import json
import os
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from renderer.errors import InputError
from renderer.formats.xml import parse_xml
from renderer.paths import ASSETS
from renderer.plain import format_value, parse_whole
from renderer.system.files import read_file

MAX_FILE_BYTES = 16 << 20
FLAM3_PALETTE_PATHS = ("/usr/share/flam3/flam3-palettes.xml", "/usr/local/share/flam3/flam3-palettes.xml")


@lru_cache(maxsize=1)
def gradient_stops() -> dict[str, list[tuple[float, str]]]:
    """Name -> [[position 0 to 1, "rrggbb"], ...]."""
    stops: dict[str, list[tuple[float, str]]] = json.loads((ASSETS / "palettes.json").read_text(encoding="utf-8"))
    return stops


def builtin_names() -> list[str]:
    """The names of the built-in palettes, in the file's order."""
    return list(gradient_stops())


@lru_cache(maxsize=64)
def builtin(name: str) -> np.ndarray:
    """(256, 3) float64: a built-in palette, linear between its gradient's stops."""
    stops = gradient_stops()[name]
    positions = np.array([position for position, _ in stops])
    colors = np.array([list(bytes.fromhex(color)) for _, color in stops], "f8")
    entries = np.arange(256) / 255
    return np.round(interpolated(entries, positions, colors))


def interpolated(at: np.ndarray, positions: np.ndarray, rows: np.ndarray, period: float | None = None) -> np.ndarray:
    """Rows (len(at), channels), linear between the rows of sorted positions, and around a circle with a `period`."""
    return np.stack([np.interp(at, positions, channel, period=period) for channel in rows.T], 1)


def resampled(rows: np.ndarray) -> np.ndarray:
    """256 rows, linear between the given ones, from the first to the last."""
    return interpolated(np.linspace(0, len(rows) - 1, 256), np.arange(len(rows)), rows)


def rgb_to_hsv(rgb: np.ndarray) -> np.ndarray:
    """(n, 3) hue 0 to 6, saturation 0 to 1, value 0 to 1, from red, green, blue (n, 3), 0 to 1."""
    high, low = rgb.max(1), rgb.min(1)
    span = high - low
    safe = np.where(span > 0, span, 1.0)  # no division by 0
    red, green, blue = rgb.T
    hue = np.where(
        red == high, (green - blue) / safe, np.where(green == high, 2 + (blue - red) / safe, 4 + (red - green) / safe)
    )
    saturation = np.where(high > 0, span / np.where(high > 0, high, 1.0), 0.0)
    return np.stack([np.where(span > 0, hue % 6, 0.0), saturation, high], 1)


def hsv_to_rgb(hsv: np.ndarray) -> np.ndarray:
    """(n, 3) red, green, blue, 0 to 1, from hue 0 to 6, saturation, value (n, 3)."""
    hue, saturation, value = hsv.T
    out = [value * (1 - saturation * np.clip(np.minimum(k, 4 - k), 0, 1)) for k in ((n + hue) % 6 for n in (5, 3, 1))]
    return np.stack(out, 1)


def rotate_hue(colors: np.ndarray, hue: float) -> np.ndarray:
    """Colors (n, 3), 0 to 255, with their hues rotated by `hue` revolutions."""
    hsv = rgb_to_hsv(colors / 255)
    hsv[:, 0] = (hsv[:, 0] + 6 * hue) % 6
    return hsv_to_rgb(hsv) * 255


def interpolate_hsv(palettes: Sequence[np.ndarray], weights: Sequence[float], circular: bool = True) -> np.ndarray:
    """Weighted mean (256, 3) of palettes (256, 3), 0 to 255, in hue, saturation and value.

    Weights beyond 0 and 1 may lead beyond 0 and 255. With `circular`, the hues of two palettes take the shorter way
    around.
    """
    hsv = np.array([rgb_to_hsv(palette / 255) for palette in palettes])
    if circular and len(palettes) == 2:
        difference = hsv[1, :, 0] - hsv[0, :, 0]
        hsv[0, :, 0] += np.where(difference > 3, 6, 0)
        hsv[1, :, 0] += np.where(difference < -3, 6, 0)
    mean = np.tensordot(weights, hsv, 1)
    mean[:, 0] %= 6
    return hsv_to_rgb(mean) * 255


@lru_cache(maxsize=1)
def flam3_palettes() -> dict[int, np.ndarray]:
    """Number -> flam3's palette (256, 3); {} if flam3 is not installed. Its license forbids copying them into here."""
    for path in (os.environ.get("flam3_palettes"), *FLAM3_PALETTE_PATHS):
        if path and os.path.exists(path):
            return _read_palettes(path)
    return {}


def _read_palettes(path: str) -> dict[int, np.ndarray]:
    """The palettes of 256 entries of flam3's file, by number; InputError if a number or digits are none."""
    palettes = {}
    for element in parse_xml(read_file(path, MAX_FILE_BYTES), path).iter("palette"):
        number = parse_whole(element.get("number", ""), 0, 1 << 30)
        if number is None:
            shown = format_value(element.get("number"))
            raise InputError(f"{path}: a palette has the number {shown}; it must be a whole number")
        try:
            data = bytes.fromhex("".join(element.get("data", "").split()))
        except ValueError as error:
            raise InputError(f"{path}: palette {number}: its data are not hexadecimal digits") from error
        if len(data) == 1024:  # 256 entries of the bytes 0, red, green, blue
            palettes[number] = np.frombuffer(data, "u1").reshape(256, 4)[:, 1:].astype("f8")
    return palettes


def flam3_palette(number: int, hue: float = 0.0) -> np.ndarray | None:
    """(256, 3) float64: flam3's palette `number` with its hues rotated by `hue` revolutions; None if there is none."""
    colors = flam3_palettes().get(number)
    return colors if colors is None or hue == 0 else rotate_hue(colors, hue)
