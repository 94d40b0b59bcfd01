"""The balls whose caustics are sampled (shaders/raytracing/lights/caustics.h): smooth glass and mirrors.

LightSampler writes ball_rows() into its buffer.
"""

from typing import Any

import numpy as np

MAX_CAUSTIC_BALLS = 64  # a path samples one of them at each surface


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


def ball_rows(settings: Any) -> np.ndarray:
    """Returns the balls as rows (2 n, 4): center, radius, then color, index of refraction, 0 for a mirror."""
    rows = [
        ((*sphere.center, sphere.radius), (*material.color, material.ior if material.kind == "glass" else 0.0))
        for sphere, material in caustic_balls(settings)
    ]
    return np.array(rows, "f4").reshape(-1, 4)
