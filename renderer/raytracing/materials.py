"""The materials of a scene, from the scene file and its glTF models, as records MATERIAL for kernels.

pictures/raytrace.py uploads material_rows(); shaders/raytracing/surface.h declares the record as Material.
"""

from collections.abc import Sequence

import numpy as np

from renderer.formats import gltf
from renderer.raytracing.material_files import MATERIAL_FILES, MATERIALS, SIMD8_KINDS
from renderer.raytracing.models.gltf_shapes import materials_of
from renderer.raytracing.settings import Settings

MATERIAL = np.dtype([
    ("color", "f4", (4,)), ("emission", "f4", (4,)), ("color2", "f4", (4,)), ("specular_color", "f4", (4,)),
    ("sheen_color", "f4", (4,)), ("attenuation", "f4", (4,)), ("diffuse_transmission_color", "f4", (4,)),
    ("kind", "i4"), ("ior", "f4"), ("checker_size", "f4"), ("roughness", "f4"), ("metallic", "f4"), ("specular", "f4"),
    ("transmission", "f4"), ("thickness", "f4"), ("clearcoat", "f4"), ("clearcoat_roughness", "f4"),
    ("sheen_roughness", "f4"), ("iridescence", "f4"), ("iridescence_ior", "f4"),
    ("iridescence_thickness_minimum", "f4"), ("iridescence_thickness", "f4"), ("anisotropy", "f4"),
    ("anisotropy_rotation", "f4"), ("dispersion", "f4"), ("diffuse_transmission", "f4"), ("light_group", "i4"),
])  # fmt: skip
COPIED = set(MATERIAL.names or ()) - {"kind"}  # where a material has a field of the same name
MIRROR_IOR = 1e3  # stands for the infinite index of refraction, 0 in KHR_materials_ior
# A glTF material with the defaults of these fields is drawn as `metallic`, any other as `principled`.
LOBES = ("specular", "specular_color", "ior", "clearcoat", "sheen_color", "transmission", "iridescence", "anisotropy",
         "diffuse_transmission")  # fmt: skip
PLAIN = gltf.Material()


def material_rows(settings: Settings, models: Sequence[gltf.Model] = ()) -> np.ndarray:
    """Returns the materials (n,) MATERIAL of the scene file, followed by the materials of the models.

    emission.w is 1 for emitters, light_group the number of the light group. color2 is a checker's second color; of a
    principled material it is the albedo of single scattering inside, and in w the phase function's g. color.w is the
    number of the eight-lane shading (packets/shade_simd8.h) by which CPUs shade the material, 0 for none.
    """
    pairs = zip(settings.models, models, strict=False)
    model_materials = [(material, shape) for shape, model in pairs for material in materials_of(model)]
    # A scene without materials has one row all the same: buffers are not empty. So zip() may leave rows.
    rows = np.zeros(max(len(settings.materials) + len(model_materials), 1), MATERIAL)
    for row, material in zip(rows, settings.materials, strict=False):
        _fill(row, material)
        _set_kind(row, material.kind)
        row["anisotropy_rotation"] = np.radians(material.anisotropy_rotation_degrees)
        _set_scattering(row, material.multiscatter_color, material.scatter_anisotropy)
        row["attenuation"][:3] = attenuation(material.attenuation_color, material.attenuation_distance)
    for row, (gltf_material, shape) in zip(rows[len(settings.materials) :], model_materials, strict=False):
        _fill_from_model(row, gltf_material, shape.scale)
        row["emission"][:3] *= shape.emission_scale
    if settings.light_groups:
        rows["light_group"] = [settings.light_group(name) for name in settings.material_names]
    return rows


def _set_kind(row: np.void, kind: str) -> None:
    """Sets the kind and, in color.w, the number of its eight-lane shading on CPUs; 0 for emitters."""
    simd8 = MATERIAL_FILES[kind].simd8
    row["kind"] = MATERIALS.index(kind)
    row["color"][3] = SIMD8_KINDS.index(simd8) + 1 if simd8 and not row["emission"].any() else 0


def _fill(row: np.void, material: object) -> None:
    """Copies the fields of a settings.Material or gltf.Material that have the names of the record's."""
    for name, value in vars(material).items():
        if name in COPIED:
            row[name] = (*value[:3], 0) if isinstance(value, tuple) else value
    row["emission"][3] = row["emission"][:3].any()


def _fill_from_model(row: np.void, other: gltf.Material, scale: float) -> None:
    """Fills the row of a model's material; `scale` is the model's scale in the scene."""
    _fill(row, other)
    is_plain = all(getattr(other, name) == getattr(PLAIN, name) for name in LOBES)
    if other.unlit:
        row["emission"] = 0
    _set_kind(row, "unlit" if other.unlit else "metallic" if is_plain else "principled")
    row["ior"], row["checker_size"] = max(other.ior, 1.0) if other.ior else MIRROR_IOR, 1.0
    row["iridescence_thickness"] = other.iridescence_thickness_maximum
    _set_scattering(row, other.multiscatter_color, other.scatter_anisotropy)
    row["attenuation"][:3] = attenuation(other.attenuation_color, other.attenuation_distance * scale)


def _set_scattering(row: np.void, color: tuple[float, ...], g: float) -> None:
    """Sets what scatters light inside a principled material: color2."""
    if row["kind"] == MATERIALS.index("principled"):
        row["color2"] = (*single_scattering_albedo(color, g), g) if any(color) else 0


def single_scattering_albedo(color: tuple[float, ...], g: float) -> np.ndarray:
    """Returns the albedo (3,) of single scattering with which a half-space of the medium has the albedo `color`.

    `g` is the mean cosine of the scattering angle. Inverts H. van de Hulst's formula of 1980, as C. Kulla and A. Conty
    2017 and KHR_materials_volume_scatter do.
    """
    a = np.asarray(color[:3], "f8")
    s = 4.09712 + 4.20863 * a - np.sqrt(9.59217 + 41.6808 * a + 17.7126 * a * a)
    s2 = np.clip(s, 0, 1) ** 2
    return np.asarray((1 - s2) / (1 - g * s2))


def attenuation(color: tuple[float, ...], distance: float) -> np.ndarray:
    """Returns the absorption coefficients (3,) of a medium that transmits `color` of white light over `distance`.

    A distance of 0 or infinity is a clear medium.
    """
    if not 0 < distance < np.inf:
        return np.zeros(3)
    return -np.log(np.maximum(color, 1e-6)) / distance + 0.0  # 0 in place of -0
