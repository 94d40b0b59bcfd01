"""Emission of photons by the lights of a scene; shaders/raytracing/lights/photons.cu traces their paths.

guiding.py and guiding_hint.py call emit_photons(). A light's number of photons is proportional to its power, so that
all photons carry about the same power. Photometric files and the textures of emitters are ignored, because photons only
guide paths: an error costs variance, not bias.
"""

import numpy as np

from renderer.bvh.primitives import areas, float64_columns, material_of
from renderer.raytracing.geometry import Geometry
from renderer.raytracing.lights.environment import EnvironmentCdf, environment_map
from renderer.raytracing.lights.light_buffer import LightSampler, NonAreaLight
from renderer.raytracing.settings import Settings


def emit_photons(
    settings: Settings, geometry: Geometry, materials: np.ndarray, lights: LightSampler, count: int
) -> np.ndarray:
    """Samples the starts (count, 3, 4) float32 of photons; (0, 3, 4) if no light emits.

    The rows of a photon are its origin and, in w, its time as a fraction of the shutter interval; its unit direction;
    and its RGB power. `materials` are (m,) MATERIAL.
    """
    powers = np.concatenate([lights.area.power, [light.power for light in lights.others]])
    total = float(powers.sum())
    if not total > 0:
        return np.zeros((0, 3, 4), "f4")
    radiance, (center, radius) = environment_map(settings), geometry.bounding_sphere(settings, materials)
    random = np.random.default_rng(settings.seed).random((count, 5))
    cdf = np.cumsum(powers) / total
    light_of = np.minimum(np.searchsorted(cdf, (np.arange(count) + random[:, 0]) / count, "right"), len(powers) - 1)
    starts = np.zeros((count, 3, 4))
    starts[:, 0, 3] = (np.arange(count) * 0.6180339887498949) % 1  # golden ratio: times independent of the lights
    is_area = light_of < len(lights.area.power)
    starts[is_area, :, :3] = _emit_from_areas(lights.area.primitives[light_of[is_area]], materials, random[is_area])
    for index, light in enumerate(lights.others):
        chosen = light_of == len(lights.area.power) + index
        if light.is_point:
            starts[chosen, :, :3] = _emit_from_point(light, random[chosen])
            continue
        to_light, irradiance = _sample_infinite(light, lights, radiance, random[chosen])
        # A vector at a right angle to `to_light`, times the square root of a random number: uniform over the unit disc.
        # The disc, scaled to the bounding sphere, covers the scene as the light sees it.
        disc = _around(to_light, np.zeros(len(to_light)), random[chosen, 3]) * np.sqrt(random[chosen, 4:5])
        starts[chosen, 0, :3] = center + radius * (disc + to_light)
        starts[chosen, 1, :3] = -to_light
        starts[chosen, 2, :3] = irradiance * (np.pi * radius**2)
    # So far a photon has all of its light's power; the light gets count * powers / total of the photons.
    starts[:, 2] *= (total / powers[light_of] / count)[:, None]
    return starts.astype("f4")


def _emit_from_areas(primitives: np.ndarray, materials: np.ndarray, random: np.ndarray) -> np.ndarray:
    """Samples origins, directions, powers (n, 3, 3) from emissive primitives (n,): uniform area, cosine hemisphere."""
    corner, a, b, radius = float64_columns(primitives)
    root = np.sqrt(random[:, 1:2])
    point = corner + a * (root * (1 - random[:, 2:3])) + b * (root * random[:, 2:3])
    normal = np.cross(a, b)
    length = np.linalg.norm(normal, axis=1, keepdims=True)
    on_sphere = _sphere(random[:, 1], random[:, 2])
    normal = np.where(radius > 0, on_sphere, normal / np.where(length > 0, length, 1))
    point = np.where(radius > 0, corner + radius * on_sphere, point)
    # A uniform point of the unit sphere that touches the surface has a cosine-distributed direction; the factor below 1
    # keeps the sum from being 0.
    direction = normal + 0.9999 * _sphere(random[:, 3], random[:, 4])
    # The origins are lifted off the surface by 1e-5 of their coordinates, so that photons do not hit it.
    scale = np.abs(point).max(1, keepdims=True) + radius
    emission = materials["emission"][material_of(primitives), :3]
    unit = direction / np.linalg.norm(direction, axis=1, keepdims=True)
    return np.stack([point + 1e-5 * scale * normal, unit, emission * (np.pi * areas(primitives)[:, None])], 1)


def _emit_from_point(light: NonAreaLight, random: np.ndarray) -> np.ndarray:
    """Samples origins, directions and powers (n, 3, 3) of photons from a point light or spot."""
    direction = _sphere(random[:, 1], random[:, 2])
    # PointLight.falloff: x, y, z of an axis vector and an offset, for the direction away from the light
    falloff = np.clip(light.falloff[3] + direction @ np.array(light.falloff[:3]), 0, 1) ** 2
    position = np.broadcast_to(light.position, direction.shape)
    return np.stack([position, direction, 4 * np.pi * falloff[:, None] * light.emitted], 1)


def _sample_infinite(
    light: NonAreaLight, lights: LightSampler, radiance: np.ndarray | None, random: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Samples directions (n, 3) towards a sun or the environment; also returns the irradiance that each stands for.

    The irradiance is on a plane that faces the direction: (3,) for a sun; (n, 3) for the environment map, the estimate
    radiance over pdf of one sample.
    """
    if light.kind >= 0:  # a sun: `kind` is 1 - cos(angular radius), `position` the direction towards it
        to_light = _around(np.tile(light.position, (len(random), 1)), 1 - light.kind * random[:, 1], random[:, 2])
        return to_light, light.sun_irradiance
    assert lights.environment is not None and radiance is not None
    return _sample_map(lights.environment, radiance, float(lights.fields["environment_rotation"]), random[:, 1:3])


def _sample_map(
    cdf: EnvironmentCdf, radiance: np.ndarray, rotation: float, random: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Samples directions (n, 3) towards an environment map, rotated in turns; also returns radiance over pdf (n, 3).

    Kernels do the same by sample_environment_map() and env_cell_pdf() of shaders/raytracing/lights/environment.h.
    """
    probabilities = cdf.cell_probabilities
    (height, width), cells = probabilities.shape, probabilities.ravel()
    cell = np.minimum(np.searchsorted(np.cumsum(cells), random[:, 0], "right"), len(cells) - 1)
    row, column = np.divmod(cell, width)
    theta = np.pi * (row + 0.5) / height
    phi = 2 * np.pi * ((column + random[:, 1]) / width - 0.5 - rotation)
    direction = np.stack([np.sin(theta) * np.sin(phi), np.cos(theta), -np.sin(theta) * np.cos(phi)], -1)
    pdf = cells[cell] * width * height / (2 * np.pi**2 * np.sin(theta))
    y, x = row * len(radiance) // height, column * radiance.shape[1] // width
    return direction, radiance[y, x] / np.where(pdf > 0, pdf, 1)[:, None]


def _sphere(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Maps random numbers u and v (n,) to unit vectors (n, 3), uniform over the sphere."""
    z = 1 - 2 * u
    radius, phi = np.sqrt(np.maximum(1 - z * z, 0)), 2 * np.pi * v
    return np.stack([radius * np.cos(phi), radius * np.sin(phi), z], -1)


def _around(axis: np.ndarray, cosine: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Returns unit vectors (n, 3) at an angle of `cosine` (n,) to unit axes (n, 3), rotated about them by v turns."""
    helper = np.where(np.abs(axis[:, :1]) < 0.9, [[1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0]])
    first = np.cross(axis, helper)
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    sine, phi = np.sqrt(np.maximum(1 - cosine**2, 0)), 2 * np.pi * v
    level = axis * cosine[:, None] + first * (sine * np.cos(phi))[:, None]
    return np.asarray(level + np.cross(axis, first) * (sine * np.sin(phi))[:, None])
