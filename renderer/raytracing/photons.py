"""Where photons leave the lights of a scene, for the paths of shaders/raytracing/photons.cu.

A light gets photons in proportion to its power, so that all carry about the same. The shapes of photometric files and
the textures of emitters are left out: photons only say where light comes from.
"""

from typing import NamedTuple

import numpy as np

from renderer.bvh.primitives import areas
from renderer.raytracing.environment import EnvironmentCdf
from renderer.raytracing.lights import LightSampler, NonAreaLight


class Bounds(NamedTuple):
    """A sphere around what photons of infinitely distant lights should meet."""

    center: np.ndarray  # (3,)
    radius: float


def emit_photons(
    lights: LightSampler, radiance: np.ndarray | None, materials: np.ndarray, bounds: Bounds, count: int, seed: int
) -> np.ndarray:
    """The starts (count, 3, 4) float32 of photons: origin and time in the shutter interval, direction, power.

    `radiance` is the environment map, `materials` are (m,) MATERIAL. None (0, 3, 4) if nothing emits.
    """
    powers = np.concatenate([lights.area.power, [light.power for light in lights.others]])
    total = float(powers.sum())
    if not total > 0:
        return np.zeros((0, 3, 4), "f4")
    random = np.random.default_rng(seed).random((count, 5))
    cdf = np.cumsum(powers) / total
    light_of = np.minimum(np.searchsorted(cdf, (np.arange(count) + random[:, 0]) / count, "right"), len(powers) - 1)
    starts = np.zeros((count, 3, 4))
    starts[:, 0, 3] = (np.arange(count) * 0.6180339887498949) % 1  # times, in no relation to the lights' order
    area = light_of < len(lights.area.power)
    _emit_from_areas(starts, area, lights.area.primitives[light_of[area]], materials, random[area])
    for index, light in enumerate(lights.others):
        chosen = light_of == len(lights.area.power) + index
        _emit_from(starts, chosen, light, lights, radiance, bounds, random[chosen])
    starts[:, 2] *= (total / powers[light_of] / count)[:, None]
    return starts.astype("f4")


def _emit_from_areas(
    starts: np.ndarray, chosen: np.ndarray, primitives: np.ndarray, materials: np.ndarray, random: np.ndarray
) -> None:
    """Photons of emissive primitives: uniform over the area, by the cosine about the normal."""
    corner, a, b = (primitives[name][:, :3].astype("f8") for name in ("v0", "edge1", "edge2"))
    radius = np.maximum(primitives["edge2"][:, 3:].astype("f8"), 0)
    root = np.sqrt(random[:, 1:2])
    point = corner + a * (root * (1 - random[:, 2:3])) + b * (root * random[:, 2:3])
    normal = np.cross(a, b)
    length = np.linalg.norm(normal, axis=1, keepdims=True)
    around = _sphere(random[:, 1], random[:, 2])
    normal = np.where(radius > 0, around, normal / np.where(length > 0, length, 1))
    point = np.where(radius > 0, corner + radius * around, point)
    direction = normal + 0.9999 * _sphere(random[:, 3], random[:, 4])  # points of a sphere on the normal's end: cosine
    scale = np.abs(point).max(1, keepdims=True) + radius
    emission = materials["emission"][primitives["edge1"].view("i4")[:, 3], :3]
    starts[chosen, 0, :3] = point + 1e-5 * scale * normal
    starts[chosen, 1, :3] = direction / np.linalg.norm(direction, axis=1, keepdims=True)
    starts[chosen, 2, :3] = emission * (np.pi * areas(primitives)[:, None])


def _emit_from(
    starts: np.ndarray,
    chosen: np.ndarray,
    light: NonAreaLight,
    lights: LightSampler,
    radiance: np.ndarray | None,
    bounds: Bounds,
    random: np.ndarray,
) -> None:
    """Photons of a point light or of one at infinity, which aims at a disc before the bounds."""
    if light.is_point:
        direction = _sphere(random[:, 1], random[:, 2])
        falloff = np.clip(light.falloff[3] + direction @ np.array(light.falloff[:3]), 0, 1) ** 2
        starts[chosen, 0, :3], starts[chosen, 1, :3] = light.place, direction
        starts[chosen, 2, :3] = 4 * np.pi * falloff[:, None] * light.emitted
        return
    if light.kind >= 0:
        cosine = 1 - light.kind * random[:, 1]
        to_light = _about(np.tile(light.place, (len(random), 1)), cosine, random[:, 2])
        emitted = light.emitted * (np.pi * light.kind * (2 - light.kind) if light.kind > 0 else 1.0)
    else:
        assert lights.environment is not None and radiance is not None
        rotation = float(lights.fields["environment_rotation"])
        to_light, emitted = _sample_map(lights.environment, radiance, rotation, random[:, 1:3])
    disc = _about(to_light, np.zeros(len(random)), random[:, 3]) * np.sqrt(random[:, 4:5])
    starts[chosen, 0, :3] = bounds.center + bounds.radius * (disc + to_light)
    starts[chosen, 1, :3] = -to_light
    starts[chosen, 2, :3] = emitted * (np.pi * bounds.radius**2)


def _sample_map(
    cdf: EnvironmentCdf, radiance: np.ndarray, rotation: float, random: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Unit directions (n, 3) towards an environment map, rotated by turns, and its radiance over their pdf (n, 3)."""
    height, width = len(cdf.marginal) - 1, cdf.conditional.shape[1] - 1
    rows = np.diff(cdf.marginal.astype("f8")) / cdf.marginal[-1]
    columns = np.diff(cdf.conditional.astype("f8"), axis=1) / cdf.conditional[:, -1:]
    cells = (rows[:, None] * columns).ravel()
    cell = np.minimum(np.searchsorted(np.cumsum(cells), random[:, 0], "right"), len(cells) - 1)
    row, column = np.divmod(cell, width)
    theta = np.pi * (row + 0.5) / height
    phi = 2 * np.pi * ((column + random[:, 1]) / width - 0.5 - rotation)
    direction = np.stack([np.sin(theta) * np.sin(phi), np.cos(theta), -np.sin(theta) * np.cos(phi)], -1)
    pdf = cells[cell] * width * height / (2 * np.pi**2 * np.sin(theta))
    y, x = row * len(radiance) // height, column * radiance.shape[1] // width
    return direction, radiance[y, x] / np.where(pdf > 0, pdf, 1)[:, None]


def _sphere(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Uniform unit vectors (n, 3)."""
    z = 1 - 2 * u
    radius, phi = np.sqrt(np.maximum(1 - z * z, 0)), 2 * np.pi * v
    return np.stack([radius * np.cos(phi), radius * np.sin(phi), z], -1)


def _about(axis: np.ndarray, cosine: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Unit vectors (n, 3) at an angle to unit axes (n, 3), turned about them by v."""
    helper = np.where(np.abs(axis[:, :1]) < 0.9, [[1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0]])
    first = np.cross(axis, helper)
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    sine, phi = np.sqrt(np.maximum(1 - cosine**2, 0)), 2 * np.pi * v
    return (
        axis * cosine[:, None]
        + first * (sine * np.cos(phi))[:, None]
        + np.cross(axis, first) * (sine * np.sin(phi))[:, None]
    )
