"""The balls whose caustics are sampled (shaders/raytracing/lights/caustics.h): smooth glass and mirrors.

LightSampler writes ball_rows() into its buffer.
"""

from typing import Any

import numpy as np

MAX_CAUSTIC_BALLS = 64  # a path samples one of them at each surface
LARGE = 0.2  # steradians of a lamp from a ball's center: paths find its caustics sooner than chains pay


def caustic_balls(settings: Any) -> list[tuple[Any, Any]]:
    """Returns the spheres and materials whose caustics are sampled; `settings` is raytracing.settings.Settings.

    These are spheres without a name, of smooth glass denser than its surroundings or of a mirror, without maps.
    """
    if not settings.caustics:
        return []
    materials = {material.name: material for material in settings.materials}
    pairs = [(sphere, materials[sphere.material]) for sphere in settings.spheres if not sphere.name]
    return [(sphere, material) for sphere, material in pairs if _throws_caustics(material)]


def _throws_caustics(material: Any) -> bool:
    if material.has_maps or any(material.emission) or material.alpha < 1 or material.attenuation_distance:
        return False
    return bool(material.kind == "mirror" or (material.kind == "glass" and not material.roughness and material.ior > 1))


def _sees_small_lamp(settings: Any, center: tuple[float, float, float]) -> bool:
    """True if a lamp fills less than LARGE seen from a point, or one that is neither a sphere nor a quad may exist."""
    lamps = {material.name for material in settings.materials if any(material.emission)}
    found = [(np.array(s.center), np.pi * s.radius**2) for s in settings.spheres if s.material in lamps]
    for a, b, c, d in (np.array(quad.corners) for quad in settings.quads if quad.material in lamps):
        found.append(((a + b + c + d) / 4, np.linalg.norm(np.cross(c - a, d - b)) / 2))
    names = ("point_lights", "suns", "meshes", "models", "solids", "procedural")
    is_small = (area < LARGE * ((middle - center) ** 2).sum() for middle, area in found)
    return any(is_small) or any(getattr(settings, name) for name in names)


def ball_rows(settings: Any) -> np.ndarray:
    """Returns the balls as rows (2 n, 4): center, radius, then color, index of refraction, 0 for a mirror.

    A ball that sees large lamps alone has none: paths find their caustics.
    """
    rows = [
        ((*sphere.center, sphere.radius), (*material.color, material.ior if material.kind == "glass" else 0.0))
        for sphere, material in caustic_balls(settings)
        if _sees_small_lamp(settings, sphere.center)
    ]
    return np.array(rows, "f4").reshape(-1, 4)
