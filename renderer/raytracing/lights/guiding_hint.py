"""The hint of an export that guiding photons would help, because most light of the scene hits glass first.

Shadow rays of next-event estimation end at glass, and BSDF sampling rarely hits a small light behind glass. The hint
follows from RAYS photons, traced on the host by brute force. pictures/raytrace.py calls guiding_hint() after a still.
"""

import numpy as np

from renderer.bvh.primitives import float64_columns, material_of, radius_of
from renderer.raytracing.geometry import Geometry
from renderer.raytracing.lights.light_buffer import LightSampler
from renderer.raytracing.lights.photons import emit_photons
from renderer.raytracing.material_files import holds
from renderer.raytracing.settings import Settings

PHOTONS, MORE_PHOTONS = 25000, 100000  # photons that the hint proposes for less than MANY_SAMPLES, and for more
MANY_SAMPLES = 1000
RAYS = 64  # test photons, traced on the host
MIN_FRACTION = 0.75  # least fraction of the lights' power that hits glass first
MAX_PRIMITIVES = 1 << 15  # largest scene that is tested: 40 ms
CHUNK = 1 << 12  # primitives that are intersected at once


def guiding_hint(settings: Settings, geometry: Geometry, rows: np.ndarray, lights: LightSampler, samples: int) -> str:
    """Returns the hint, one line, if most of the lights' power hits glass first, else "".

    `rows` are the materials (m,) MATERIAL, `samples` the number of samples of the still. Instances and distance fields
    are ignored.
    """
    if settings.guiding_photons or settings.integrator != "path" or geometry.primitive_count > MAX_PRIMITIVES:
        return ""
    glass = holds(rows, "transmits")
    if any(light.is_point for light in lights.others):
        glass &= rows["roughness"] > 0  # no path can hit a point light through smooth glass
    local = float(lights.area.power.sum()) + sum(light.power for light in lights.others if light.is_point)
    infinite = sum(light.power for light in lights.others if not light.is_point)
    has_glass = any(glass[material] for material in geometry.primitives.bounds)  # materials of static primitives
    if not has_glass or local < MIN_FRACTION * (local + infinite):  # sun and sky give too much
        return ""
    # The rows of a photon: origin, direction, RGB power
    starts = emit_photons(settings, geometry, rows, lights, RAYS).astype("f8")
    material = first_materials(starts[:, 0, :3], starts[:, 1, :3], geometry.primitives.rows)
    power = starts[:, 2].sum(1)
    fraction = power[(material >= 0) & glass[material]].sum() / max(float(power.sum()), 1e-300)
    if fraction < MIN_FRACTION:
        return ""
    photons = PHOTONS if samples < MANY_SAMPLES else MORE_PHOTONS
    return (
        f"{100 * fraction:.0f} % of the lights' power meets glass first, behind which few paths find it: "
        f"--set guiding_photons={photons} leads them there"
    )


def first_materials(origins: np.ndarray, directions: np.ndarray, primitives: np.ndarray) -> np.ndarray:
    """Returns the material index (n,) of the first of primitives (m,) that each ray (n, 3) hits; -1 without a hit."""
    nearest, material = np.full(len(origins), np.inf), np.full(len(origins), -1)
    for begin in range(0, len(primitives), CHUNK):
        chunk = primitives[begin : begin + CHUNK]
        # A primitive with a radius is a sphere: its first distance counts, else the second, as a triangle.
        distance = np.where(radius_of(chunk) > 0, *_distances(origins, directions, chunk))
        closest = distance.argmin(1)
        least = distance[np.arange(len(origins)), closest]
        material = np.where(least < nearest, material_of(chunk)[closest], material)
        nearest = np.minimum(least, nearest)
    return material


def _distances(origins: np.ndarray, directions: np.ndarray, primitives: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns distances (n, m) to primitives, all as spheres, then all as triangles; infinite without a hit."""
    corner, a, b, radius = float64_columns(primitives)
    with np.errstate(all="ignore"):
        middle = directions @ corner.T - (origins * directions).sum(1)[:, None]
        offset2 = (origins**2).sum(1)[:, None] - 2 * origins @ corner.T + (corner**2).sum(1)
        half = np.sqrt(middle**2 - offset2 + radius[:, 0] ** 2)
        sphere = np.where(middle > half, middle - half, middle + half)
        normal = np.cross(a, b)
        size2 = (normal**2).sum(1)
        flat = ((corner * normal).sum(1) - origins @ normal.T) / (directions @ normal.T)
        u, v = (
            (origins @ axis.T + flat * (directions @ axis.T) - (corner * axis).sum(1)) / size2
            for axis in (np.cross(b, normal), np.cross(normal, a))
        )
        inside = (u >= 0) & (v >= 0) & (u + v <= 1)
    return np.where(sphere > 0, sphere, np.inf), np.where(inside & (flat > 0), flat, np.inf)
