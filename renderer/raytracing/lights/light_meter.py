"""An incident-light meter, for the exposure of models that have lights (models/default_picture.py).

It samples points of the model's surface that face the camera, and computes there the irradiance, without occlusion, by
lamps (suns and point lights) and by emissive triangles. metered() is the value to expose for. This happens once, on the
host, when a file is opened, so that the exposure does not depend on the picture's size, tiles, device or frame.
"""

from typing import NamedTuple

import numpy as np

from renderer.formats.images import LUMINANCE
from renderer.raytracing.settings import PointLight, Sun

SURFACE_SAMPLES = 2048
EMITTER_SAMPLES = 128
# Percentile of the lit samples that is metered, so that the surfaces that face the lights decide.
METERED_PERCENTILE = 90


class SurfaceSamples(NamedTuple):
    """Sample points on triangles."""

    position: np.ndarray  # (n, 3)
    normal: np.ndarray  # (n, 3) unit, of the front
    area: np.ndarray  # (n,) total area over n
    emitted: np.ndarray  # (n,) luminance of the radiance


def sample_surface(corners: np.ndarray, emitted: np.ndarray, count: int = SURFACE_SAMPLES) -> SurfaceSamples:
    """Chooses `count` triangle centers in proportion to area, by even steps; `corners` (n, 3, 3), `emitted` (n,)."""
    first = corners[:, 0]
    normal = np.cross(corners[:, 1] - first, corners[:, 2] - first)
    double_area = np.linalg.norm(normal, axis=1)
    total = np.cumsum(double_area)
    if not len(total) or not total[-1] > 0:
        return SurfaceSamples(np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0), np.zeros(0))
    chosen = np.minimum(np.searchsorted(total, (np.arange(count) + 0.5) / count * total[-1]), len(total) - 1)
    normal = normal[chosen] / np.maximum(double_area[chosen], 1e-300)[:, None]
    area = np.full(count, total[-1] / 2 / count)
    return SurfaceSamples(corners[chosen].mean(1), normal, area, emitted[chosen])


def facing(samples: SurfaceSamples, eye: np.ndarray) -> SurfaceSamples:
    """Returns the samples whose front faces `eye` (3,); if none does, all samples with normals flipped to face it."""
    towards = ((eye - samples.position) * samples.normal).sum(1)
    if (towards > 0).any():
        return SurfaceSamples(*(column[towards > 0] for column in samples))
    return samples._replace(normal=np.where(towards[:, None] < 0, -samples.normal, samples.normal))


def lamp_irradiance(surface: SurfaceSamples, suns: tuple[Sun, ...], points: tuple[PointLight, ...]) -> np.ndarray:
    """Returns the luminance (n,) of the unoccluded irradiance by suns and point lights at the samples."""
    total = np.zeros(len(surface.position))
    for sun in suns:
        direction = np.array(sun.direction) / np.linalg.norm(sun.direction)
        total += float(np.array(sun.irradiance) @ LUMINANCE) * np.maximum(surface.normal @ direction, 0)
    for point in points:
        to_light = np.array(point.position) - surface.position
        distance = np.maximum(np.linalg.norm(to_light, axis=1), 1e-9)
        # PointLight.falloff: x, y, z of an axis vector and an offset, for the direction to the light
        falloff = np.clip(point.falloff[3] - to_light @ np.array(point.falloff[:3]) / distance, 0, 1) ** 2
        intensity = float(np.array(point.intensity) @ LUMINANCE) * falloff
        total += intensity * np.maximum((to_light * surface.normal).sum(1), 0) / distance**3
    return total


def emitter_irradiance(surface: SurfaceSamples, emitters: SurfaceSamples) -> np.ndarray:
    """Returns the luminance (n,) of the unoccluded irradiance by emissive surfaces at the samples.

    An emitter's sample counts as a disc: its squared radius, area / pi, is added to the squared distance, so that the
    irradiance stays finite.
    """
    total = np.zeros(len(surface.position))
    for position, normal, area, emitted in zip(*emitters, strict=True):
        to_light = position - surface.position
        distance2 = (to_light**2).sum(1) + area / np.pi
        emission = np.maximum(-(to_light @ normal), 0)
        total += emitted * area * emission * np.maximum((to_light * surface.normal).sum(1), 0) / distance2**2
    return total


def metered(irradiance: np.ndarray) -> float:
    """Returns the METERED_PERCENTILE of the irradiances above 0, for which the exposure is set; 0 if none is."""
    lit = irradiance[irradiance > 0]
    return float(np.percentile(lit, METERED_PERCENTILE)) if len(lit) else 0.0
