"""The materials of a scene as records of the kernels, and the compile-time constants that follow from them."""

from collections.abc import Sequence

import numpy as np

from renderer.errors import InputError
from renderer.formats import gltf
from renderer.raytracing.gltf_shapes import materials_of
from renderer.raytracing.settings import MATERIALS, Settings

MATERIAL = np.dtype([
    ("color", "f4", (4,)), ("emission", "f4", (4,)), ("color2", "f4", (4,)), ("specular_color", "f4", (4,)),
    ("sheen_color", "f4", (4,)), ("attenuation", "f4", (4,)), ("diffuse_transmission_color", "f4", (4,)),
    ("kind", "i4"), ("ior", "f4"), ("checker_size", "f4"), ("roughness", "f4"), ("metallic", "f4"), ("specular", "f4"),
    ("transmission", "f4"), ("thickness", "f4"), ("clearcoat", "f4"), ("clearcoat_roughness", "f4"),
    ("sheen_roughness", "f4"), ("iridescence", "f4"), ("iridescence_ior", "f4"),
    ("iridescence_thickness_minimum", "f4"), ("iridescence_thickness", "f4"), ("anisotropy", "f4"),
    ("anisotropy_rotation", "f4"), ("dispersion", "f4"), ("diffuse_transmission", "f4"), ("spare", "i4"),
])  # fmt: skip
COLORS = ("color", "emission", "specular_color", "sheen_color", "diffuse_transmission_color")
NUMBERS = (
    "roughness", "metallic", "specular", "transmission", "thickness", "clearcoat", "clearcoat_roughness",
    "sheen_roughness", "iridescence", "iridescence_ior", "anisotropy", "dispersion", "diffuse_transmission",
)  # fmt: skip
MAX_MEDIA = (1 << 15) - 2  # materials that shaders/raytracing/media.h can number
MIRROR_IOR = 1e3  # stands for the infinite index of KHR_materials_ior
LOBES = ("specular", "specular_color", "ior", "clearcoat", "sheen_color", "transmission", "iridescence", "anisotropy",
         "diffuse_transmission")  # fmt: skip
PLAIN = gltf.Material()
VECTOR_KINDS = {"diffuse": 1, "metallic": 2, "shadow_catcher": 3}


def material_rows(settings: Settings, models: Sequence[gltf.Model] = ()) -> np.ndarray:
    """The materials (n,) MATERIAL of the scene, and behind them those of the models.

    emission.w is 1 for emitters; color.w says which materials that emit nothing CPUs shade in vectors
    (shaders/raytracing/shade_simd8.h).
    """
    others = [
        (material, shape.scale)
        for shape, model in zip(settings.models, models, strict=False)
        for material in materials_of(model)
    ]
    rows = np.zeros(max(len(settings.materials) + len(others), 1), MATERIAL)
    for row, material in zip(rows, settings.materials, strict=False):
        _fill(row, material)
        row["kind"] = MATERIALS.index(material.kind)
        row["color"][3] = 0 if any(material.emission) else VECTOR_KINDS.get(material.kind, 0)
        row["ior"], row["color2"][:3], row["checker_size"] = material.ior, material.color2, material.checker_size
        row["iridescence_thickness"] = material.iridescence_thickness
        row["anisotropy_rotation"] = np.radians(material.anisotropy_rotation_degrees)
        row["attenuation"][:3] = attenuation(material.attenuation_color, material.attenuation_distance)
    for row, (other, scale) in zip(rows[len(settings.materials) :], others, strict=False):
        _fill_from_model(row, other, scale)
    return rows


def _fill(row: np.void, material: object) -> None:
    """Copies the fields that both kinds of materials have."""
    for name in COLORS:
        row[name][:3] = getattr(material, name)[:3]
    for name in NUMBERS:
        row[name] = getattr(material, name)
    row["emission"][3] = row["emission"][:3].any()


def _fill_from_model(row: np.void, other: gltf.Material, scale: float) -> None:
    """Fills the row of a model's material; `scale` is that of the model in the scene."""
    _fill(row, other)
    is_plain = all(getattr(other, name) == getattr(PLAIN, name) for name in LOBES)
    row["kind"] = MATERIALS.index("unlit" if other.unlit else "metallic" if is_plain else "principled")
    if other.unlit:
        row["emission"] = 0
    row["color"][3] = 0 if row["emission"].any() else VECTOR_KINDS.get(MATERIALS[row["kind"]], 0)
    row["ior"], row["checker_size"] = max(other.ior, 1.0) if other.ior else MIRROR_IOR, 1.0
    row["iridescence_thickness_minimum"] = other.iridescence_thickness_minimum
    row["iridescence_thickness"] = other.iridescence_thickness_maximum
    row["anisotropy_rotation"] = other.anisotropy_rotation
    row["attenuation"][:3] = attenuation(other.attenuation_color, other.attenuation_distance * scale)


def attenuation(color: tuple[float, ...], distance: float) -> np.ndarray:
    """The absorption coefficients (3,) of a medium that leaves `color` of white light after `distance`.

    A distance of 0 or infinity is a clear medium.
    """
    if not 0 < distance < np.inf:
        return np.zeros(3)
    return -np.log(np.maximum(color, 1e-6)) / distance + 0.0


def material_constants(rows: np.ndarray) -> dict[str, int]:
    """Compile-time constants of materials (n,) MATERIAL: what of shaders/raytracing/materials they need.

    Textures only lower the strength of a lobe, so that one of strength 0 is never needed.
    """

    def has_kind(name: str) -> np.ndarray:
        return rows["kind"] == MATERIALS.index(name)

    surface = rows[has_kind("principled")]
    passes = (surface["transmission"] > 0) | (surface["diffuse_transmission"] > 0)
    solid = passes & (surface["thickness"] > 0)
    absorbs = solid & (surface["attenuation"][:, :3] > 0).any(1)
    if absorbs.any() and len(rows) > MAX_MEDIA:
        raise InputError(f"the scene has {len(rows)} materials; {MAX_MEDIA} are allowed where one absorbs light inside")
    used = {
        "CONDUCTOR": has_kind("conductor").any(), "GLASS": has_kind("glass").any(),
        "METALLIC": has_kind("metallic").any(), "PRINCIPLED": len(surface) > 0, "UNLIT": has_kind("unlit").any(),
        "CLEARCOAT": (surface["clearcoat"] > 0).any(), "SHEEN": (surface["sheen_color"] > 0).any(),
        "IRIDESCENCE": (surface["iridescence"] > 0).any(), "ANISOTROPY": (surface["anisotropy"] > 0).any(),
        "TRANSMISSION": (surface["transmission"] > 0).any(),
        "DIFFUSE_TRANSMISSION": (surface["diffuse_transmission"] > 0).any(),
        "DISPERSION": (solid & (surface["dispersion"] > 0) & (surface["transmission"] > 0)).any(),
        "MEDIA": absorbs.any(), "REFRACTION": has_kind("glass").any() or solid.any(),
        "SHADOW_RAYS_CROSS": (has_kind("glass") & (rows["roughness"] > 0)).any() or passes.any(),
    }  # fmt: skip
    return {name: int(value) for name, value in used.items()}
