"""The environment presets `studio`, `overcast` and `sunset`, for models, and for scenes that set `environment.preset`.

A preset is a smooth function of direction: a surround without a horizon line, and lights that are large enough for
next-event estimation and for reflections in metal. preset_map() evaluates the function in float64 at PRESET_SIZE, and
environment.py uses the map as it uses a file. The main light is at the upper left of a camera that looks along -z;
default_picture.py rotates the map with the camera. The centers of all lights are above 20 degrees of elevation, so that
a picture from the front shows a plain background.
"""

from functools import lru_cache
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

PresetName = Literal["none", "studio", "overcast", "sunset"]
PRESETS = get_args(PresetName)[1:]
PRESET_SIZE = 512, 256  # width, height
RGB = tuple[float, float, float]
Floats = NDArray[np.float64]


class SoftBox(NamedTuple):
    """A rectangular light at infinity.

    Azimuth and elevation are in degrees, azimuth 0 behind the camera and 90 to its right. The half sizes are tangents
    of angles; `rim` is the width of the soft edge as a fraction of the half sizes.
    """

    azimuth: float
    elevation: float
    half_width: float
    half_height: float
    radiance: RGB
    rim: float = 0.35


STUDIO_BOXES = (
    SoftBox(-48, 42, 0.55, 0.55, (4.2, 4.12, 4.0)),  # key, to the left
    SoftBox(70, 30, 0.32, 0.75, (0.8, 0.82, 0.85)),  # fill: a strip to the right
    SoftBox(150, 48, 0.75, 0.28, (1.3, 1.32, 1.36)),  # rim, behind
    SoftBox(0, 90, 0.75, 0.5, (0.3, 0.3, 0.3)),  # overhead
)
SUNSET_BOXES = (SoftBox(-62, 24, 0.16, 0.16, (124.0, 69.0, 27.0), 0.8),)


@lru_cache(maxsize=3)
def preset_map(name: str) -> np.ndarray:
    """Returns a preset's radiance (height, width, 3) float32: top row = zenith, -z in the middle, +x to its right."""
    direction = directions(*PRESET_SIZE)
    radiance = {"studio": _studio, "overcast": _overcast, "sunset": _sunset}[name](direction)
    return np.ascontiguousarray(radiance, "f4")


def directions(width: int, height: int) -> Floats:
    """Returns the unit directions (height, width, 3) of the pixels' centers in equirectangular projection."""
    theta = (np.arange(height) + 0.5) / height * np.pi
    phi = ((np.arange(width) + 0.5) / width - 0.5) * 2 * np.pi
    out = np.empty((height, width, 3))
    out[..., 0] = np.sin(theta)[:, None] * np.sin(phi)
    out[..., 1] = np.cos(theta)[:, None]
    out[..., 2] = -np.sin(theta)[:, None] * np.cos(phi)
    return out


def _studio(direction: Floats) -> Floats:
    """A cyclorama, darker towards the ceiling and behind the camera, and four soft boxes.

    With equal brightness behind the camera, a polished box would reflect the color of its background and vanish.
    """
    surround = _by_height(direction, ((-1.0, 0.44), (-0.3, 0.52), (0.1, 0.46), (0.55, 0.12), (1.0, 0.07)))
    surround = surround * (1 - 0.62 * _smoothstep((direction[..., 2] + 0.1) / 0.9))
    return np.asarray(surround[..., None] * np.array([0.985, 1.0, 1.02]) + _boxes(direction, STUDIO_BOXES))


def _overcast(direction: Floats) -> Floats:
    """The CIE overcast sky, three times as bright at the zenith as at the horizon, over a light ground."""
    y = direction[..., 1]
    sky = 1.35 * (1 + 2 * np.maximum(y, 0)) / 3
    weight = _smoothstep((y + 0.35) / 0.5)[..., None]  # the ground fades into the sky
    ground = _by_height(direction, ((-1.0, 0.36), (0.0, 0.42)))[..., None] * np.array([1.0, 0.99, 0.97])
    return np.asarray(ground * (1 - weight) + sky[..., None] * np.array([0.95, 1.0, 1.07]) * weight)


def _sunset(direction: Floats) -> Floats:
    """A low sun in haze to the left, a sky from apricot to dusk, and a warm ground."""
    y = direction[..., 1]
    azimuth = np.radians(SUNSET_BOXES[0].azimuth)
    towards = np.maximum(direction @ np.array([np.sin(azimuth), 0.0, np.cos(azimuth)]), -1.0)
    glow = ((1 + towards) / 2)[..., None] ** 2
    horizon = np.array([0.62, 0.40, 0.33]) * (1 - glow) + np.array([1.55, 0.80, 0.38]) * glow
    high = np.array([0.20, 0.25, 0.42])
    sky = horizon + (high - horizon) * _smoothstep(np.maximum(y, 0) / 0.75)[..., None]
    ground = np.array([0.40, 0.315, 0.285])
    weight = _smoothstep((y + 0.45) / 0.6)[..., None]
    return np.asarray(ground * (1 - weight) + sky * weight + _boxes(direction, SUNSET_BOXES))


def _by_height(direction: Floats, stops: tuple[tuple[float, float], ...]) -> Floats:
    """Interpolates values (height, 1) between stops (y of the direction, value), with slope 0 at the stops."""
    y = direction[:, :1, 1]  # constant in a row
    out = np.full(y.shape, stops[0][1])
    for (low, before), (high, after) in zip(stops, stops[1:], strict=False):
        out += (after - before) * _smoothstep((y - low) / (high - low))
    return out


def _boxes(direction: Floats, boxes: tuple[SoftBox, ...]) -> Floats:
    """Returns the radiance (height, width, 3) of soft boxes for directions (height, width, 3)."""
    out = np.zeros(direction.shape)
    for box in boxes:
        azimuth, elevation = np.radians([box.azimuth, box.elevation])
        level = np.array([np.sin(azimuth), 0.0, np.cos(azimuth)])
        axis = np.cos(elevation) * level + np.array([0.0, np.sin(elevation), 0.0])
        right = np.array([np.cos(azimuth), 0.0, -np.sin(azimuth)])
        depth = direction @ axis
        lit = depth > np.cos(np.arctan(np.hypot(box.half_width, box.half_height))) - 1e-6  # the box lies in this cone
        across = np.abs((direction @ right)[lit]) / depth[lit] / box.half_width
        along = np.abs((direction @ np.cross(axis, right))[lit]) / depth[lit] / box.half_height
        inside = _smoothstep((1 - across) / box.rim) * _smoothstep((1 - along) / box.rim)
        out[lit] += inside[:, None] * np.array(box.radiance)
    return out


def _smoothstep(x: Floats) -> Floats:
    x = np.clip(x, 0.0, 1.0)
    return x * x * (3 - 2 * x)
