"""The exposure of models that bring their own light: an incident-light meter, as photographers hold it to the subject.

The meter is the irradiance by lamps and emissive triangles at points of the model's surface that face the camera,
without occlusion. It is computed once, on the host, when a file is opened: it does not depend on the picture's size,
tiles, device or frame.
"""

from typing import NamedTuple

import numpy as np

from renderer.raytracing.settings import PointLight, Sun

SURFACE_SAMPLES = 2048
EMITTER_SAMPLES = 128
LUMINANCE = np.array([0.2126, 0.7152, 0.0722])
METERED_PERCENTILE = 90  # of the lit samples: what faces the lights decides, not what faces away


class SurfaceSamples(NamedTuple):
    """Points of triangles."""

    position: np.ndarray  # (n, 3)
    normal: np.ndarray  # (n, 3) unit, of the front
    area: np.ndarray  # (n,) that each stands for
    emitted: np.ndarray  # (n,) luminance of the radiance


def sample_surface(corners: np.ndarray, emitted: np.ndarray, count: int = SURFACE_SAMPLES) -> SurfaceSamples:
    """`count` points of triangles with the `corners` (n, 3, 3), by area, at evenly spaced steps of the sum of areas."""
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
    """The samples whose front faces the point `eye` (3,); all, turned to it, if none does."""
    towards = ((eye - samples.position) * samples.normal).sum(1)
    if (towards > 0).any():
        return SurfaceSamples(*(column[towards > 0] for column in samples))
    return samples._replace(normal=np.where(towards[:, None] < 0, -samples.normal, samples.normal))


def lamp_irradiance(at: SurfaceSamples, suns: tuple[Sun, ...], points: tuple[PointLight, ...]) -> np.ndarray:
    """Luminance (n,) of the irradiance by suns and point lights, unoccluded."""
    total = np.zeros(len(at.position))
    for sun in suns:
        direction = np.array(sun.direction) / np.linalg.norm(sun.direction)
        total += float(np.array(sun.irradiance) @ LUMINANCE) * np.maximum(at.normal @ direction, 0)
    for point in points:
        to_light = np.array(point.position) - at.position
        distance = np.maximum(np.linalg.norm(to_light, axis=1), 1e-9)
        intensity = np.full(len(distance), float(np.array(point.intensity) @ LUMINANCE))
        if point.outer_degrees < 180:
            axis = np.array(point.direction) / np.linalg.norm(point.direction)
            inner, outer = np.cos(np.radians([point.inner_degrees, point.outer_degrees]))
            cosine = -(to_light @ axis) / distance
            intensity *= np.clip((cosine - outer) / max(inner - outer, 1e-9), 0, 1) ** 2
        total += intensity * np.maximum((to_light * at.normal).sum(1), 0) / distance**3
    return total


def emitter_irradiance(at: SurfaceSamples, emitters: SurfaceSamples) -> np.ndarray:
    """Luminance (n,) of the irradiance by emissive surfaces, unoccluded.

    An emitter never counts as nearer than the radius of the disc that has its sample's area.
    """
    total = np.zeros(len(at.position))
    for position, normal, area, emitted in zip(*emitters, strict=True):
        to_light = position - at.position
        distance2 = (to_light**2).sum(1) + area / np.pi
        emission = np.maximum(-(to_light @ normal), 0)
        total += emitted * area * emission * np.maximum((to_light * at.normal).sum(1), 0) / distance2**2
    return total


def metered(irradiance: np.ndarray) -> float:
    """The irradiance that the exposure is for: METERED_PERCENTILE of the samples that have any; 0 without any."""
    lit = irradiance[irradiance > 0]
    return float(np.percentile(lit, METERED_PERCENTILE)) if len(lit) else 0.0
