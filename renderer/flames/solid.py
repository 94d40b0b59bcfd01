"""Settings of solid flames, as JWildfire draws them: the nearest point of each bucket, with occlusion and lights.

xml/solid.py reads them from files; solid_pass.py packs them for shaders/flames/solid.cu.
"""

import math
from typing import Literal, get_args

import numpy as np

from renderer.records import dataclass, field
from renderer.scene.schema import setting

MAX_MATERIALS = 16
MAX_LIGHTS = 16
DiffuseCurve = Literal["cosa", "cosa_square", "cosa_halve", "cosa_halve_square"]
DIFFUSE_CURVES = get_args(DiffuseCurve)  # in the order of diffuse_of() in shaders/flames/solid.cu
# The structs Light and Material of shaders/flames/solid.cu, which describes their fields.
LIGHT = np.dtype([(name, "f4") for name in ("x", "y", "z", "intensity", "red", "green", "blue", "gloss")])
MATERIAL = np.dtype(
    [(name, "f4") for name in ("diffuse", "ambient", "phong", "phong_size", "red", "green", "blue", "curve")]
)


@dataclass(frozen=True)
class Light:
    """A directional light; angles in degrees."""

    altitude: float = 60.0
    azimuth: float = -30.0
    intensity: float = setting(0.7, 0.0, 100.0)
    color: tuple[float, float, float] = (1.0, 1.0, 1.0)

    def direction(self, model: str) -> np.ndarray:
        """(3,) float64: the unit vector to the light; its dot product with a normal is the cosine of incidence.

        `model`: Solid.light_model. Normals point along -z on a surface that faces the viewer. JWildfire 8 transposed
        the rotation.
        """
        a, b = math.radians(-self.altitude), math.radians(-self.azimuth)
        if model == "jwildfire 8":
            return np.array([math.cos(a) * math.sin(b), -math.sin(a), -math.cos(a) * math.cos(b)])
        return np.array([math.sin(b), -math.sin(a) * math.cos(b), math.cos(a) * math.cos(b)])


@dataclass(frozen=True)
class Material:
    """Reflection of a surface: diffuse, ambient and Phong's highlight."""

    diffuse: float = 0.5
    ambient: float = 1.0
    phong: float = 1.0
    phong_size: float = 24.0
    phong_color: tuple[float, float, float] = (0.0, 0.0, 0.0)
    diffuse_curve: DiffuseCurve = "cosa"


DEFAULT_LIGHTS = (Light(55.0, -22.0, 0.8), Light(64.0, 55.0, 0.6))
DEFAULT_MATERIALS = (Material(0.7, 0.5, 0.6, 24.0, (1.0, 1.0, 1.0)),)


@dataclass(frozen=True)
class Solid:
    """The settings of solid rendering. Radii (of ambient occlusion) are in 1/500 of the picture's diagonal."""

    occlusion: bool = True
    occlusion_intensity: float = setting(0.6, 0.0, 4.0)
    search_radius: float = setting(4.0, 0.25, 120.0)
    blur_radius: float = setting(1.5, 0.25, 10.0)
    radius_samples: int = setting(6, 1, 128)
    azimuth_samples: int = setting(7, 1, 128)
    falloff: float = setting(0.5, 0.0, 10.0)
    occlusion_of_diffuse: float = 0.1
    light_model: Literal["jwildfire 8", "jwildfire 7"] = "jwildfire 8"  # 7: also of earlier versions
    materials: tuple[Material, ...] = field(default_factory=lambda: DEFAULT_MATERIALS)
    lights: tuple[Light, ...] = field(default_factory=lambda: DEFAULT_LIGHTS)

    def __post_init__(self) -> None:
        for name, entries, limit in (("materials", self.materials, MAX_MATERIALS), ("lights", self.lights, MAX_LIGHTS)):
            if len(entries) > limit:
                raise ValueError(f"solid has {len(entries)} {name}; it must have at most {limit}")
        if not self.materials:
            raise ValueError("solid has no materials; it must have at least one")

    def radii(self, size: tuple[int, int]) -> tuple[float, float]:
        """Search and blur radius in buckets, for a picture of `size` (columns, rows) buckets."""
        unit = math.hypot(*size) / 500
        return self.search_radius * unit, self.blur_radius * unit

    def reach(self, size: tuple[int, int]) -> int:
        """The distance in buckets up to which a bucket's color depends on others, for a picture of `size` buckets."""
        if not self.occlusion:
            return 2  # normals read the buckets beside it
        search, blur = self.radii(size)
        # The search, with its jitter; the Gaussian of support 1.5; rounding, and the normals.
        return math.ceil(1.2 * search) + math.ceil(1.5 * blur) + 4


def light_records(solid: Solid) -> np.ndarray:
    """(n,) records of LIGHT, a dark one if there are no lights. `gloss`: factor 1 or -1 on the highlight's cosine."""
    model, side = solid.light_model, 1.0 if solid.light_model == "jwildfire 8" else -1.0
    rows = [(*light.direction(model), light.intensity, *light.color, side) for light in solid.lights]
    return np.array(rows or [(0.0,) * 8], LIGHT)


def material_records(materials: tuple[Material, ...]) -> np.ndarray:
    """(n,) records of MATERIAL."""
    rows = [
        (m.diffuse, m.ambient, m.phong, m.phong_size, *m.phong_color, DIFFUSE_CURVES.index(m.diffuse_curve))
        for m in materials
    ]
    return np.array(rows, MATERIAL)
