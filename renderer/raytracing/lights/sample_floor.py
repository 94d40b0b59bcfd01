"""The least samples of a pixel before its noise is estimated, by the caustics that the scene's lamps can throw.

Only paths that hit a lamp by chance, through glass or off a mirror, find the light of a caustic. Before the first of
them does, a pixel and its block (films.cu) look quiet. pictures/raytrace.py calls sample_floor().
"""

import numpy as np

from renderer.bvh.primitives import areas
from renderer.formats.images import LUMINANCE
from renderer.raytracing.film import BLOCK, MIN_SAMPLES
from renderer.raytracing.lights.light_buffer import LightSampler
from renderer.raytracing.material_files import holds

FOUND = 64  # expected number of paths of a block of pixels that find a caustic: enough to judge its noise
MAX_FLOOR = 1024  # samples per pixel
SMOOTH = 0.2  # largest roughness of a surface that throws caustics


def sample_floor(bounds: dict[int, tuple[np.ndarray, np.ndarray]], rows: np.ndarray, lights: LightSampler) -> int:
    """Returns a power of two from MIN_SAMPLES on; above MAX_FLOOR it is more than a picture should wait for.

    `bounds` are the least and largest corners of the surfaces by material, `rows` the materials (n,) MATERIAL.
    """
    glass, smooth = holds(rows, "transmits"), holds(rows, "mirrors") & (rows["roughness"] <= SMOOTH)
    found = [_find_probability(*box, lights, not glass[k]) for k, box in bounds.items() if glass[k] or smooth[k]]
    # In one sample of a block, each pixel has one bounce that may find the caustic.
    floor = FOUND / (BLOCK * BLOCK * min([p for p in found if p > 0], default=1.0))
    return max(MIN_SAMPLES, 1 << int(np.ceil(np.log2(max(floor, 1.0)))))


def _find_probability(low: np.ndarray, high: np.ndarray, lights: LightSampler, is_mirror: bool) -> float:
    """Returns the probability that a diffuse bounce towards a box finds a lamp by its glass or mirror; 0 without lamps.

    The box spans the corners low and high (3,). A lamp of radiance L that fills p of the cosine-weighted hemisphere
    adds p L to the light and p L^2 to its variance, so lamps count by (sum p L)^2 / sum p L^2. Convex mirrors show a
    lamp smaller than it is, by their radius over its distance.
    """
    center, radius2 = (low + high) / 2, float(((high - low) ** 2).sum()) / 4
    lamp_bounds = lights.area.bounds
    distance2 = (((lamp_bounds.low + lamp_bounds.high) / 2 - center) ** 2).sum(1)
    area = areas(lights.area.primitives)
    distance2 = np.maximum(distance2, max(radius2, 1e-30))
    # A quarter of a surface's area is what it shows of itself on average over all directions.
    p = np.minimum(area / 4 / distance2 / np.pi, 1.0) * (radius2 / distance2 if is_mirror else 1.0)
    radiance = lights.area.power / np.maximum(area, 1e-30)
    suns = [light for light in lights.others if light.kind > 0]
    p = np.append(p, [light.kind * 2 for light in suns])  # `kind` is 1 - cos(angular radius): p is the radius squared
    radiance = np.append(radiance, [float(light.emitted @ LUMINANCE) for light in suns])
    squares = float((p * radiance**2).sum())
    return float((p * radiance).sum()) ** 2 / squares if squares > 0 else 0.0
