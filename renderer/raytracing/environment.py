"""Light from far away as a picture of all directions: image files, and a sky made of numbers.

A picture is (height, width, 3) float32 radiance, a latitude a row, the zenith first, the direction -z in the middle and
+x to its right. The daylight is that of A. Preetham, P. Shirley and B. Smits (A Practical Analytic Model for Daylight,
1999).
"""

import os
import re
from functools import lru_cache
from pathlib import Path

import numpy as np

from renderer.errors import InputError
from renderer.formats.images import read_exr
from renderer.raytracing.settings import Environment, Settings, Sky

LARGEST_PIXELS = 1 << 25
LARGEST_FILE = 1 << 30  # bytes
CELLS = 1024, 512  # across and down at most, in which directions are picked
SKY_SIZE = 512, 256
SUN_LUMINANCE = 1.88e6  # kcd/m^2 above the atmosphere
SUN_RADIUS = np.radians(0.2665)
WAVELENGTHS = np.array([0.61, 0.55, 0.465])  # micrometres that stand for red, green, blue
XYZ_TO_RGB = np.array(
    [[3.2404542, -1.5371385, -0.4985314], [-0.9692660, 1.8760108, 0.0415560], [0.0556434, -0.2040259, 1.0572252]]
)


def environment_map(settings: Settings) -> np.ndarray | None:
    """The radiance from all directions, or None where the settings name neither a file nor a sky."""
    if settings.environment.file:
        state = os.stat(settings.environment.file)
        picture = _read(settings.environment.file, state.st_mtime_ns, state.st_size)
        return picture * np.float32(settings.environment.strength)
    return sky_map(settings.sky) if settings.sky.strength else None


def is_lit(environment: Environment, sky: Sky) -> bool:
    """Whether there is light from all directions."""
    return bool(environment.file and environment.strength or sky.strength)


@lru_cache(maxsize=2)
def _read(file: str, changed: int, size: int) -> np.ndarray:
    path = Path(file)
    if size > LARGEST_FILE:
        raise InputError(f"{path}: larger than the {LARGEST_FILE >> 20} MiB that an environment may have")
    suffix = path.suffix.lower()
    if suffix not in (".exr", ".hdr"):
        raise InputError(f"{path}: no environment; allowed are .exr and .hdr")
    picture = read_exr(path, LARGEST_PIXELS)[..., :3] if suffix == ".exr" else read_hdr(path)
    wrong = ~np.isfinite(picture) | (picture < 0)
    if wrong.any():
        row, column, channel = np.argwhere(wrong)[0]
        value = picture[row, column, channel]
        raise InputError(f"{path}: pixel ({column}, {row}) is {value}; radiance must be finite and not negative")
    if not picture.any():
        raise InputError(f"{path}: all pixels are black, so it gives no light")
    if picture.max() > 1e9:
        raise InputError(f"{path}: a pixel is {picture.max():.3g}; radiance must be at most 1e9")
    return picture


def read_hdr(path: Path) -> np.ndarray:
    """(height, width, 3) float32 of a Radiance picture (RGBE), plain or run-length encoded by scan lines."""
    data = Path(path).read_bytes()
    if not data.startswith((b"#?RADIANCE", b"#?RGBE")):
        raise InputError(f"{path}: not a Radiance picture: it does not begin with #?RADIANCE")
    match = re.compile(rb"\n\n([+-][XY]) (\d{1,6}) ([+-][XY]) (\d{1,6})\n").search(data[: 1 << 16])
    if match is None:
        raise InputError(f"{path}: not a Radiance picture: it tells no size")
    if b"FORMAT=32-bit_rle_xyze" in data[: match.start()]:
        raise InputError(f"{path}: its colours are XYZ; only 32-bit_rle_rgbe can be read")
    if (match[1], match[3]) != (b"-Y", b"+X"):
        raise InputError(f"{path}: its scan lines run {match[1].decode()} {match[3].decode()}; only -Y +X can be read")
    height, width = int(match[2]), int(match[4])
    if not 1 <= width * height <= LARGEST_PIXELS:
        raise InputError(f"{path}: {width} x {height} pixels; allowed are 1 to {LARGEST_PIXELS}")
    lines = np.frombuffer(data, "u1", offset=match.end())
    packed = 8 <= width < 32768 and len(lines) >= 4 and lines[:2].tolist() == [2, 2] and lines[2] < 128
    least = height * (4 + 8 * -(-width // 127)) if packed else 4 * width * height
    if len(lines) < least:
        raise InputError(f"{path}: ends early: {width} x {height} pixels need at least {least} bytes, not {len(lines)}")
    bytes_of = _unpacked(lines, width, height, path) if packed else lines[:least].reshape(height, width, 4)
    scale = np.ldexp(np.float32(1), bytes_of[..., 3].astype("i4") - 136)
    return np.where(bytes_of[..., 3:] > 0, (bytes_of[..., :3] + np.float32(0.5)) * scale[..., None], np.float32(0))


def _unpacked(lines: np.ndarray, width: int, height: int, path: Path) -> np.ndarray:
    """(height, width, 4) bytes of run-length encoded scan lines."""
    out = np.empty((height, 4, width), "u1")
    data, place = lines.tobytes(), 0
    for row in range(height):
        if (
            len(data) < place + 4
            or data[place : place + 2] != b"\2\2"
            or data[place + 2] << 8 | data[place + 3] != width
        ):
            raise InputError(f"{path}: scan line {row} does not begin as one of {width} pixels")
        place += 4
        for channel in range(4):
            line, filled = out[row, channel], 0
            while filled < width:
                count = data[place] if place < len(data) else 0
                run = count > 128
                count -= 128 if run else 0
                taken = 1 if run else count
                if count == 0 or filled + count > width or place + 1 + taken > len(data):
                    raise InputError(f"{path}: scan line {row} is damaged or ends early")
                line[filled : filled + count] = np.frombuffer(data, "u1", taken, place + 1)
                filled += count
                place += 1 + taken
    return out.transpose(0, 2, 1)


def sun_direction(sky: Sky) -> np.ndarray:
    """The unit direction (3,) towards the sun; azimuth 0 is -z, 90 degrees +x."""
    up, around = np.radians([sky.elevation_degrees, sky.azimuth_degrees])
    return np.array([np.cos(up) * np.sin(around), np.sin(up), -np.cos(up) * np.cos(around)])


def sun_radiance(sky: Sky) -> np.ndarray:
    """The radiance (3,) of the sun's disc seen through the atmosphere, in the sky's units."""
    zenith = 90 - sky.elevation_degrees
    mass = 1 / (np.cos(np.radians(zenith)) + 0.15 * (93.885 - zenith) ** -1.253)
    haze = 0.04608 * sky.turbidity - 0.04586
    depth = 0.008735 * WAVELENGTHS**-4.08 + haze * WAVELENGTHS**-1.3 + 0.35 * np.array([0.12, 0.085, 0.01])
    return sky.strength * sky.sun_scale * SUN_LUMINANCE * np.exp(-depth * mass)


@lru_cache(maxsize=4)
def sky_map(sky: Sky) -> np.ndarray:
    """(SKY_SIZE) the daylight of a clear sky without the sun's disc, over a ground that reflects it evenly."""
    width, height = SKY_SIZE
    theta = (np.arange(height) + 0.5) / height * np.pi
    phi = ((np.arange(width) + 0.5) / width - 0.5) * 2 * np.pi
    theta, phi = np.meshgrid(theta, phi, indexing="ij")
    direction = np.stack([np.sin(theta) * np.sin(phi), np.cos(theta), -np.sin(theta) * np.cos(phi)], -1)
    apart = np.arccos(np.clip(direction @ sun_direction(sky), -1, 1))
    above = np.minimum(theta, np.radians(89.4))  # the formula grows without bound at the horizon
    rgb = np.maximum(_daylight(above, apart, sky) @ XYZ_TO_RGB.T, 0)
    solid = np.sin(theta)[..., None] * (np.pi / height) * (2 * np.pi / width)
    upper = (theta < np.pi / 2)[..., None]
    falls = (rgb * np.cos(theta)[..., None] * solid * upper).sum((0, 1))
    falls = sky.strength * falls + sun_radiance(sky) * np.pi * np.sin(SUN_RADIUS) ** 2 * sun_direction(sky)[1]
    return np.where(upper, sky.strength * rgb, np.array(sky.ground_albedo) * falls / np.pi).astype("f4")


def _daylight(theta: np.ndarray, apart: np.ndarray, sky: Sky) -> np.ndarray:
    """CIE XYZ (..., 3) in kcd/m^2 at angles from the zenith and from the sun."""
    t, zenith = sky.turbidity, np.radians(90 - sky.elevation_degrees)
    shapes = {
        "Y": np.array([0.1787, -0.3554, -0.0227, 0.1206, -0.0670]) * t + [-1.4630, 0.4275, 5.3251, -2.5771, 0.3703],
        "x": np.array([-0.0193, -0.0665, -0.0004, -0.0641, -0.0033]) * t + [-0.2592, 0.0008, 0.2125, -0.8989, 0.0452],
        "y": np.array([-0.0167, -0.0950, -0.0079, -0.0441, -0.0109]) * t + [-0.2608, 0.0092, 0.2102, -1.6537, 0.0529],
    }
    powers = zenith ** np.arange(3, -1, -1)
    haze = np.array([t * t, t, 1.0])
    at_zenith = {
        "Y": (4.0453 * t - 4.9710) * np.tan((4 / 9 - t / 120) * (np.pi - 2 * zenith)) - 0.2155 * t + 2.4192,
        "x": haze @ np.array([[0.00166, -0.00375, 0.00209, 0], [-0.02903, 0.06377, -0.03202, 0.00394],
                              [0.11693, -0.21196, 0.06052, 0.25886]]) @ powers,
        "y": haze @ np.array([[0.00275, -0.00610, 0.00317, 0], [-0.04214, 0.08970, -0.04153, 0.00516],
                              [0.15346, -0.26756, 0.06670, 0.26688]]) @ powers,
    }  # fmt: skip

    def perez(shape, theta, apart):
        a, b, c, d, e = shape
        return (1 + a * np.exp(b / np.cos(theta))) * (1 + c * np.exp(d * apart) + e * np.cos(apart) ** 2)

    found = {n: at_zenith[n] * perez(s, theta, apart) / perez(s, 0.0, zenith) for n, s in shapes.items()}
    luminance, x, y = np.maximum(found["Y"], 0), found["x"], np.maximum(found["y"], 1e-3)
    return np.stack([luminance * x / y, luminance, luminance * (1 - x - y) / y], -1)


def environment_cdf(picture: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """How directions are picked by light: summed shares (down + 1,) of rows of cells and (down, across + 1) of each
    row's cells, uint32 of 2^32, and the luminance of all directions together.

    A cell's light is its brightest neighbourhood's, since the picture is smoothed between its pixels.
    """
    height, width = picture.shape[:2]
    light = picture.astype("f8") @ np.array([0.2126, 0.7152, 0.0722])
    solid = np.sin((np.arange(height) + 0.5) / height * np.pi)[:, None] * (np.pi / height) * (2 * np.pi / width)
    total = float((light * solid).sum())
    across = np.maximum(np.maximum(light, np.roll(light, 1, 1)), np.roll(light, -1, 1))
    spread = across.copy()
    spread[1:] = np.maximum(spread[1:], across[:-1])
    spread[:-1] = np.maximum(spread[:-1], across[1:])
    spread *= solid
    columns, rows = min(CELLS[0], width), min(CELLS[1], height)
    edges = [np.arange(n + 1) * size // n for n, size in ((rows, height), (columns, width))]
    cells = np.add.reduceat(np.add.reduceat(spread, edges[0][:-1], 0), edges[1][:-1], 1)
    return cdf_u32(cells.sum(1)), cdf_u32(cells), total


def cdf_u32(weights: np.ndarray) -> np.ndarray:
    """(..., n + 1) uint32: the sums of weights (..., n) up to each, of 2^32 - 1 for all; even where all are 0."""
    sums = np.concatenate([np.zeros((*weights.shape[:-1], 1)), np.cumsum(weights, -1, dtype="f8")], -1)
    even = np.arange(weights.shape[-1] + 1) / weights.shape[-1]
    last = sums[..., -1:]
    shares = np.where(last > 0, sums / np.where(last > 0, last, 1), even)
    return np.rint(shares * (2.0**32 - 1)).astype("u4")
