"""Environment maps and their distributions for importance sampling.

environment_map() reads a map from an .exr or .hdr file, takes it from environment_presets.py, or computes it by the sky
model of A. Preetham, P. Shirley and B. Smits (1999). environment_cdf() makes the CDFs with which light_buffer.py and
photons.py sample it. A map is (height, width, 3) float32 radiance in equirectangular projection: the top row is the
zenith, -z is in the middle, +x to its right.
"""

import re
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from renderer.errors import InputError
from renderer.formats.images import LUMINANCE, read_exr
from renderer.formats.linked import cached_by_file
from renderer.raytracing.lights.environment_presets import directions, preset_map
from renderer.raytracing.settings import Settings, Sky
from renderer.system.files import read_file

MAX_PIXELS = 1 << 25  # pixels of a map file
MAX_FILE = 256 << 20  # bytes of an .hdr
MAX_CDF_SIZE = 1024, 512  # columns, rows
MAX_PRESET_CDF_SIZE = 256, 128  # fits into a CPU's caches; costs smooth presets 0.1 to 4 % more variance
SKY_SIZE = 512, 256  # width, height
SUN_LUMINANCE = 1.88e6  # kcd/m^2 above the atmosphere
SUN_RADIUS = np.radians(0.2665)  # half of the sun's angular diameter
WAVELENGTHS = np.array([0.61, 0.55, 0.465])  # micrometers, of red, green and blue
XYZ_TO_RGB = np.array(
    [[3.2404542, -1.5371385, -0.4985314], [-0.9692660, 1.8760108, 0.0415560], [0.0556434, -0.2040259, 1.0572252]]
)


def has_environment(settings: Settings) -> bool:
    """True if the settings have an environment map or a sky that emits light."""
    environment = settings.environment
    return bool((environment.file or environment.preset != "none") and environment.strength or settings.sky.strength)


def environment_map(settings: Settings) -> np.ndarray | None:
    """Returns the map (height, width, 3) of the preset, file or sky, None without light. Raises InputError."""
    if not has_environment(settings):
        return None
    environment = settings.environment
    if environment.preset != "none":
        return preset_map(environment.preset) * np.float32(environment.strength)
    if environment.file:
        return _read(environment.file) * np.float32(environment.strength)
    return sky_map(settings.sky)


@cached_by_file(2)
def _read(path: Path) -> np.ndarray:
    suffix = path.suffix.lower()
    if suffix not in (".exr", ".hdr"):
        raise InputError(f"{path}: no environment; allowed are .exr and .hdr")
    radiance = read_exr(path, MAX_PIXELS)[..., :3] if suffix == ".exr" else read_hdr(path)
    wrong = ~np.isfinite(radiance) | (radiance < 0)
    if wrong.any():
        row, column, channel = np.argwhere(wrong)[0]
        value = radiance[row, column, channel]
        raise InputError(f"{path}: pixel ({column}, {row}) is {value}; radiance must be finite and not negative")
    if not radiance.any():
        raise InputError(f"{path}: all pixels are black, so it gives no light")
    if radiance.max() > 1e9:
        raise InputError(f"{path}: a pixel is {radiance.max():.3g}; radiance must be at most 1e9")
    return radiance


def read_hdr(path: Path) -> np.ndarray:
    """Reads a Radiance RGBE file, flat or run-length encoded, as (height, width, 3) float32. Raises InputError."""
    data = read_file(path, MAX_FILE)
    if not data.startswith((b"#?RADIANCE", b"#?RGBE")):
        raise InputError(f"{path}: not a Radiance picture: it does not begin with #?RADIANCE")
    match = re.compile(rb"\n\n([+-][XY]) (\d{1,6}) ([+-][XY]) (\d{1,6})\n").search(data[: 1 << 16])
    if match is None:
        raise InputError(f"{path}: not a Radiance picture: it has no size")
    if b"FORMAT=32-bit_rle_xyze" in data[: match.start()]:
        raise InputError(f"{path}: its colors are XYZ; only 32-bit_rle_rgbe can be read")
    if (match[1], match[3]) != (b"-Y", b"+X"):
        raise InputError(f"{path}: its scan lines run {match[1].decode()} {match[3].decode()}; only -Y +X can be read")
    height, width = int(match[2]), int(match[4])
    if not 1 <= width * height <= MAX_PIXELS:
        raise InputError(f"{path}: {width} x {height} pixels; allowed are 1 to {MAX_PIXELS}")
    lines = np.frombuffer(data, "u1", offset=match.end())
    encoded = 8 <= width < 32768 and len(lines) >= 4 and lines[:2].tolist() == [2, 2] and lines[2] < 128
    # the shortest code of a channel: runs of at most 127 pixels, two bytes each
    least = height * (4 + 8 * -(-width // 127)) if encoded else 4 * width * height
    if len(lines) < least:
        raise InputError(f"{path}: ends early: {width} x {height} pixels need at least {least} bytes, not {len(lines)}")
    rgbe = _decode_rle(lines, width, height, path) if encoded else lines[:least].reshape(height, width, 4)
    scale = np.ldexp(np.float32(1), rgbe[..., 3].astype("i4") - 136)  # excess 128, and 8 bits of mantissa
    return np.where(rgbe[..., 3:] > 0, (rgbe[..., :3] + np.float32(0.5)) * scale[..., None], np.float32(0))


def _decode_rle(lines: np.ndarray, width: int, height: int, path: Path) -> np.ndarray:
    """Decodes run-length encoded scan lines to bytes (height, width, 4); raises InputError."""
    out = np.empty((height, 4, width), "u1")
    data, offset = lines.tobytes(), 0
    for row in range(height):
        head = data[offset : offset + 4]
        if len(head) < 4 or head[:2] != b"\2\2" or head[2] << 8 | head[3] != width:
            raise InputError(f"{path}: scan line {row} does not begin as one of {width} pixels")
        offset += 4
        for channel in range(4):
            line, filled = out[row, channel], 0
            while filled < width:
                count = data[offset] if offset < len(data) else 0
                is_run = count > 128
                count -= 128 if is_run else 0
                size = 1 if is_run else count
                if count == 0 or filled + count > width or offset + 1 + size > len(data):
                    raise InputError(f"{path}: scan line {row} is damaged or ends early")
                line[filled : filled + count] = np.frombuffer(data, "u1", size, offset + 1)
                filled += count
                offset += 1 + size
    return out.transpose(0, 2, 1)


def sun_direction(sky: Sky) -> np.ndarray:
    """Returns the unit direction (3,) towards the sun; azimuth 0 is -z, 90 degrees is +x."""
    up, around = np.radians([sky.elevation_degrees, sky.azimuth_degrees])
    return np.array([np.cos(up) * np.sin(around), np.sin(up), -np.cos(up) * np.cos(around)])


def sun_radiance(sky: Sky) -> np.ndarray:
    """Returns the radiance (3,) of the sun's disc after extinction by the atmosphere, in the units of Sky.strength."""
    zenith = 90 - sky.elevation_degrees
    mass = 1 / (np.cos(np.radians(zenith)) + 0.15 * (93.885 - zenith) ** -1.253)
    haze = 0.04608 * sky.turbidity - 0.04586
    depth = 0.008735 * WAVELENGTHS**-4.08 + haze * WAVELENGTHS**-1.3 + 0.35 * np.array([0.12, 0.085, 0.01])
    return np.asarray(sky.strength * sky.sun_scale * SUN_LUMINANCE * np.exp(-depth * mass))


@lru_cache(maxsize=4)
def sky_map(sky: Sky) -> np.ndarray:
    """Computes the map, of SKY_SIZE, of a clear sky without the sun's disc above a Lambertian ground."""
    width, height = SKY_SIZE
    theta = (np.arange(height)[:, None] + 0.5) / height * np.pi
    sun_angle = np.arccos(np.clip(directions(width, height) @ sun_direction(sky), -1, 1))
    above = np.minimum(theta, np.radians(89.4))  # the formula grows without bound at the horizon
    rgb = np.maximum(_daylight(above, sun_angle, sky) @ XYZ_TO_RGB.T, 0)
    solid = np.sin(theta)[..., None] * (np.pi / height) * (2 * np.pi / width)
    upper = (theta < np.pi / 2)[..., None]
    irradiance = (rgb * np.cos(theta)[..., None] * solid * upper).sum((0, 1))
    irradiance = sky.strength * irradiance + sun_radiance(sky) * np.pi * np.sin(SUN_RADIUS) ** 2 * sun_direction(sky)[1]
    return np.asarray(np.where(upper, sky.strength * rgb, np.array(sky.ground_albedo) * irradiance / np.pi), "f4")


def _daylight(theta: np.ndarray, sun_angle: np.ndarray, sky: Sky) -> np.ndarray:
    """Returns the sky's CIE XYZ (..., 3) in kcd/m^2 at angles `theta` to the zenith and `sun_angle` to the sun.

    The coefficients stand in appendix A.2 of the paper of Preetham et al.: luminance Y and chromaticities x and y
    at the zenith, and R. Perez's function, relative to the zenith, of the turbidity t.
    """
    t, zenith = sky.turbidity, np.radians(90 - sky.elevation_degrees)
    perez_coefficients = {
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

    def perez(coefficients: np.ndarray, theta: np.ndarray | float, gamma: np.ndarray | float) -> np.ndarray:
        a, b, c, d, e = coefficients
        return np.asarray((1 + a * np.exp(b / np.cos(theta))) * (1 + c * np.exp(d * gamma) + e * np.cos(gamma) ** 2))

    xyy = {
        name: at_zenith[name] * perez(coefficients, theta, sun_angle) / perez(coefficients, 0.0, zenith)
        for name, coefficients in perez_coefficients.items()
    }
    luminance, x, y = np.maximum(xyy["Y"], 0), xyy["x"], np.maximum(xyy["y"], 1e-3)
    return np.stack([luminance * x / y, luminance, luminance * (1 - x - y) / y], -1)


def level_irradiance(radiance: np.ndarray) -> np.ndarray:
    """Integrates the irradiance (3,) that a map (height, width, 3) gives to a level surface that faces up."""
    height, width = radiance.shape[:2]
    edges = np.arange(height // 2 + 1) * np.pi / height
    projected = np.diff(np.sin(edges) ** 2) / 2 * (2 * np.pi / width)  # projected solid angle of a row's pixels
    return np.tensordot(projected, radiance[: height // 2].sum(1, dtype="f8"), 1)


class EnvironmentCdf(NamedTuple):
    """The distribution by which an environment map is importance sampled; CDFs are uint32, 2^32 - 1 stands for 1."""

    marginal: np.ndarray  # (height + 1,) over rows
    conditional: np.ndarray  # (height, width + 1) over the cells of each row
    level: np.ndarray  # (height + 1,) over rows, weighted by the cosine for a level surface that faces up
    luminance: float  # the map's luminance, integrated over the sphere

    @property
    def cell_probabilities(self) -> np.ndarray:
        """The probabilities (height, width) float64 of the cells."""
        rows = np.diff(self.marginal.astype("f8")) / self.marginal[-1]
        columns = np.diff(self.conditional.astype("f8"), axis=1) / self.conditional[:, -1:]
        return np.asarray(rows[:, None] * columns)


def environment_cdf(radiance: np.ndarray, max_size: tuple[int, int] = MAX_CDF_SIZE) -> EnvironmentCdf:
    """Returns the distribution of a map (height, width, 3) over cells, at most `max_size` (columns, rows).

    The weight of a pixel is the largest luminance of its 3 x 3 neighborhood times its solid angle, because bilinear
    filtering spreads light to neighbors.
    """
    height, width = radiance.shape[:2]
    luminance = radiance.astype("f8") @ LUMINANCE
    solid = np.sin((np.arange(height) + 0.5) / height * np.pi)[:, None] * (np.pi / height) * (2 * np.pi / width)
    total = float((luminance * solid).sum())
    padded = np.pad(luminance, ((1, 1), (0, 0)), "edge")
    brightest = np.maximum(np.maximum(padded[:-2], padded[2:]), luminance)
    brightest = np.maximum(np.maximum(np.roll(brightest, 1, 1), np.roll(brightest, -1, 1)), brightest)
    weights = brightest * solid
    columns, rows = min(max_size[0], width), min(max_size[1], height)
    edges = [np.arange(n + 1) * size // n for n, size in ((rows, height), (columns, width))]
    cells = np.add.reduceat(np.add.reduceat(weights, edges[0][:-1], 0), edges[1][:-1], 1)
    upper = np.minimum(edges[0][:-1] / height, 0.5) * np.pi  # angle of a row's upper edge, where the cosine is largest
    level = cells.sum(1) * np.where(upper < np.pi / 2, np.cos(upper), 0.0)
    return EnvironmentCdf(cdf_u32(cells.sum(1)), cdf_u32(cells), cdf_u32(level), total)


def cdf_u32(weights: np.ndarray) -> np.ndarray:
    """Returns the CDF (..., n + 1) uint32 of weights (..., n); 2^32 - 1 stands for 1; uniform if all weights are 0."""
    sums = np.concatenate([np.zeros((*weights.shape[:-1], 1)), np.cumsum(weights, -1, dtype="f8")], -1)
    uniform = np.arange(weights.shape[-1] + 1) / weights.shape[-1]
    total = sums[..., -1:]
    cdf = np.where(total > 0, sums / np.where(total > 0, total, 1), uniform)
    return np.rint(cdf * (2.0**32 - 1)).astype("u4")


def cdf_guide(cdf: np.ndarray) -> np.ndarray:
    """Returns the guide table (..., 2^k) uint16, n < 2^k <= 2 n, of a CDF (..., n + 1) of cdf_u32 (Chen and Asau 1974).

    Entry b is the largest i < n with cdf[i] below (b + 1) 2^(32 - k). The interval of a 32-bit number u lies between
    entries b - 1 and b for b = u >> (32 - k), so a search from there takes about one step.
    """
    count = cdf.shape[-1] - 1
    bits = count.bit_length()  # k
    buckets = cdf[..., :-1].reshape(-1, count) >> np.uint32(32 - bits)  # a row for each CDF
    first = np.arange(len(buckets))[:, None] << bits  # number of a row's first bucket, counted through all rows
    starts = np.bincount((buckets + first).ravel(), minlength=len(buckets) << bits).reshape(-1, 1 << bits)
    return (np.cumsum(starts, 1) - 1).astype("u2").reshape(*cdf.shape[:-1], 1 << bits)
