"""Whether lamps shine through glass, where light samples hardly reach and photons do: what an export says then."""

import numpy as np

from renderer.raytracing.environment import environment_map, is_lit
from renderer.raytracing.geometry import Geometry
from renderer.raytracing.lights import LightSampler
from renderer.raytracing.photons import Bounds, emit_photons
from renderer.raytracing.settings import MATERIALS, Settings

PHOTONS, MORE_PHOTONS = 25000, 100000  # that the hint names, for few samples and for many
MANY_SAMPLES = 1000
RAYS = 64
MIN_SHARE = 0.75  # of the lights' power that meets glass first
MAX_PRIMITIVES = 1 << 15  # 40 ms; of larger scenes nothing is said
CHUNK = 1 << 12


def guiding_hint(settings: Settings, geometry: Geometry, rows: np.ndarray, lights: LightSampler, samples: int) -> str:
    """What to try, in one line, if the lights mostly shine on glass; else nothing. `rows` are (m,) MATERIAL.

    Instances and distance fields do not count.
    """
    if settings.guiding_photons or settings.integrator != "path" or geometry.primitive_count > MAX_PRIMITIVES:
        return ""
    glass = (rows["kind"] == MATERIALS.index("glass")) & (np.abs(rows["ior"] - 1) > 1e-3) | (rows["transmission"] > 0)
    if any(light.is_point for light in lights.others):
        glass &= rows["roughness"] > 0  # no path finds a point behind smooth glass
    near = float(lights.area.power.sum()) + sum(light.power for light in lights.others if light.is_point)
    far = sum(light.power for light in lights.others if not light.is_point)
    if not any(glass[material] for material in geometry.primitives.bounds) or near < MIN_SHARE * (near + far):
        return ""
    radiance = environment_map(settings) if is_lit(settings.environment, settings.sky) else None
    bounds = Bounds(*geometry.bounding_sphere(settings, rows))
    starts = emit_photons(lights, radiance, rows, bounds, RAYS, settings.seed).astype("f8")
    material = first_materials(starts[:, 0, :3], starts[:, 1, :3], geometry.primitives.rows)
    power = starts[:, 2].sum(1)
    share = power[(material >= 0) & glass[material]].sum() / max(float(power.sum()), 1e-300)
    if share < MIN_SHARE:
        return ""
    photons = PHOTONS if samples < MANY_SAMPLES else MORE_PHOTONS
    return (
        f"{100 * share:.0f} % of the lights' power meets glass first, behind which few paths find it: "
        f"--set guiding_photons={photons} leads them there"
    )


def first_materials(origins: np.ndarray, directions: np.ndarray, primitives: np.ndarray) -> np.ndarray:
    """The materials (n,) of the closest of primitives (m,) PRIMITIVE along rays (n, 3), by brute force; -1 for none."""
    nearest, material = np.full(len(origins), np.inf), np.full(len(origins), -1)
    for begin in range(0, len(primitives), CHUNK):
        chunk = primitives[begin : begin + CHUNK]
        distance = np.where(chunk["edge2"][:, 3] > 0, *_distances(origins, directions, chunk))
        closest = distance.argmin(1)
        found = distance[np.arange(len(origins)), closest]
        of_chunk = chunk["edge1"].view("i4")[:, 3][closest]
        material = np.where(found < nearest, of_chunk, material)
        nearest = np.minimum(found, nearest)
    return material


def _distances(origins: np.ndarray, directions: np.ndarray, primitives: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distances (n, m) along rays to primitives, were they spheres and were they triangles; infinite for none."""
    corner, a, b = (primitives[name][:, :3].astype("f8") for name in ("v0", "edge1", "edge2"))
    with np.errstate(all="ignore"):
        middle = directions @ corner.T - (origins * directions).sum(1)[:, None]
        offset2 = (origins**2).sum(1)[:, None] - 2 * origins @ corner.T + (corner**2).sum(1)
        half = np.sqrt(middle**2 - offset2 + primitives["edge2"][:, 3].astype("f8") ** 2)
        sphere = np.where(middle > half, middle - half, middle + half)
        normal = np.cross(a, b)
        size2 = (normal**2).sum(1)
        flat = ((corner * normal).sum(1) - origins @ normal.T) / (directions @ normal.T)
        along = []
        for axis in (np.cross(b, normal), np.cross(normal, a)):
            at = origins @ axis.T + flat * (directions @ axis.T) - (corner * axis).sum(1)
            along.append(at / size2)
        inside = (along[0] >= 0) & (along[1] >= 0) & (along[0] + along[1] <= 1)
    return np.where(sphere > 0, sphere, np.inf), np.where(inside & (flat > 0), flat, np.inf)
