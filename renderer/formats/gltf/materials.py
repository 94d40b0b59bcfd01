"""Reads the materials of a glTF file as Materials (model.py), with all ratified extensions.

The table MATERIALS of extensions.py lists the keys and ranges of extensions. The field of Material, or the slot of its
textures, that a key sets is the key in snake case without Factor, Strength or Texture.
"""

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np

from renderer.formats.gltf.container import Container
from renderer.formats.gltf.extensions import GLOSSINESS, MATERIALS
from renderer.formats.gltf.model import Material, Texture, TextureSlot
from renderer.formats.gltf.textures import MAX_TOTAL_PIXELS
from renderer.plain import Json

ALPHA_MODES = ("OPAQUE", "MASK", "BLEND")


def read_materials(file: Container, textures: list[Texture]) -> list[Material]:
    """Reads the materials of a file; appends converted specular-glossiness textures to `textures`."""
    materials = enumerate(file.objects("materials"))
    return [_material(file, entry, name, f"material {index}", textures) for index, (name, entry) in materials]


def _material(file: Container, entry: Json, name: str, title: str, textures: list[Texture]) -> Material:
    """Reads a material; `name` names it in errors, `title` is its default name."""
    surface, extensions = file.object_at(entry, "pbrMetallicRoughness", name), file.object_at(entry, "extensions", name)
    tables = {extension: file.object_at(extensions, extension, name) for extension in MATERIALS}
    strength = file.number(tables["KHR_materials_emissive_strength"], "emissiveStrength", 1.0, 0.0, 1e9, name)
    emission = file.numbers(entry, "emissiveFactor", (0.0, 0.0, 0.0), name, 0.0, 1e6)
    ior = file.number(tables["KHR_materials_ior"], "ior", 1.5, 0.0, 10.0, name)
    if 0 < ior < 1:
        file.fail(name, f"has an ior of {ior}; it must be 0, for an infinite one, or 1 to 10")
    volume = tables["KHR_materials_volume"]
    distance = math.inf
    if volume.get("attenuationDistance") is not None:
        distance = float(file.number(volume, "attenuationDistance", None, 1e-18, 1e308, name))
    slots = {
        "base_color": _slot(file, surface, "baseColorTexture", name),
        "metallic_roughness": _slot(file, surface, "metallicRoughnessTexture", name),
        "normal": _slot(file, entry, "normalTexture", name),
        "emissive": _slot(file, entry, "emissiveTexture", name),
        "occlusion": _slot(file, entry, "occlusionTexture", name, "strength"),
    }
    factors, extension_slots = _extension_fields(file, tables, name)
    material = Material(
        name=str(entry.get("name", title)),
        color=_color(file, surface, "baseColorFactor", (1.0, 1.0, 1.0, 1.0), name),
        metallic=float(file.number(surface, "metallicFactor", 1.0, 0.0, 1.0, name)),
        roughness=float(file.number(surface, "roughnessFactor", 1.0, 0.0, 1.0, name)),
        emission=tuple(strength * channel for channel in emission),
        alpha=file.word(entry, "alphaMode", ALPHA_MODES, name, "OPAQUE"),
        cutoff=float(file.number(entry, "alphaCutoff", 0.5, 0.0, 1e6, name)),
        double_sided=entry.get("doubleSided") is True,
        unlit="KHR_materials_unlit" in extensions,
        ior=float(ior),
        attenuation_distance=distance,
        textures={slot: texture for slot, texture in (slots | extension_slots).items() if texture},
        **factors,
    )
    if GLOSSINESS in extensions:
        return _from_glossiness(file, material, tables[GLOSSINESS], name, textures)
    return material


def _extension_fields(
    file: Container, tables: dict[str, Json], name: str
) -> tuple[dict[str, Any], dict[str, TextureSlot | None]]:
    """Reads the keys of all extensions in MATERIALS: fields of Material by name, and textures by slot."""
    factors: dict[str, Any] = {}
    slots: dict[str, TextureSlot | None] = {}
    for extension, keys in MATERIALS.items():
        for key, limits in keys.items():
            field, default = _field(key), getattr(Material, _field(key), None)
            if key.endswith("Texture") and extension != GLOSSINESS:  # which _from_glossiness() reads
                slots[field] = _slot(file, tables[extension], key, name)
            elif limits and isinstance(default, tuple):  # a color
                factors[field] = file.numbers(tables[extension], key, default, name, *limits)
            elif limits:
                factors[field] = float(file.number(tables[extension], key, default, *limits, name))
    return factors, slots


def _color(file: Container, table: Json, key: str, default: tuple[float, ...], name: str) -> tuple[float, ...]:
    """The color at a key; what some exporters write above 1 becomes 1, and is counted in file.ignored."""
    color = file.numbers(table, key, default, name, 0.0, 1e6)
    file.ignored[f"{key} above 1 materials"] += max(color) > 1
    return tuple(min(value, 1.0) for value in color)


def _field(key: str) -> str:
    """The field of Material, or the slot, of a key: clearcoat_roughness of clearcoatRoughnessFactor."""
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", re.sub("(Factor|Strength|Texture)$", "", key))


def _slot(file: Container, table: Json, key: str, name: str, scale_key: str = "scale") -> TextureSlot | None:
    """Reads the texture info at a key of a material's table; None if the key is missing.

    `scale_key` names the texture's factor: scale of a normal map, strength of an occlusion map.
    """
    if key not in table:
        return None
    entry = file.object_at(table, key, name)
    row: Any = entry.get("index")
    file.item("textures", row, f"{name}.{key}")
    scale = float(file.number(entry, scale_key, 1.0, -100.0, 100.0, name))
    moved = file.extension(entry, "KHR_texture_transform", name)
    texcoord_set = file.count(moved if "texCoord" in moved else entry, "texCoord", 0, name, 7)
    if not moved:
        return TextureSlot(row, texcoord_set, scale=scale)
    du, dv = file.numbers(moved, "offset", (0.0, 0.0), name, -1e6, 1e6)
    su, sv = file.numbers(moved, "scale", (1.0, 1.0), name, -1e6, 1e6)
    angle = file.number(moved, "rotation", 0.0, -1e6, 1e6, name)
    c, s = math.cos(angle), math.sin(angle)
    transform = (c * su, s * sv, du, -s * su, c * sv, dv)  # row-major: offset * rotation * scale
    return TextureSlot(row, texcoord_set, transform, scale)


def _from_glossiness(file: Container, material: Material, table: Json, name: str, textures: list[Texture]) -> Material:
    """Converts KHR_materials_pbrSpecularGlossiness to a Material of the same reflectance.

    A dielectric of infinite index (ior 0) has an F0 of 1, which `specular_color` scales to the specular color.
    A glossiness texture is converted to a new texture of roughness = 1 - glossiness.
    """
    slots = {word: slot for word, slot in material.textures.items() if word in ("normal", "emissive", "occlusion")}
    glossiness = float(file.number(table, "glossinessFactor", 1.0, 0.0, 1.0, name))
    diffuse = _slot(file, table, "diffuseTexture", name)
    specular = _slot(file, table, "specularGlossinessTexture", name)
    if diffuse:
        slots["base_color"] = diffuse
    if specular:
        source = textures[specular.texture]
        file.take("pixels", source.pixels.size // 4, MAX_TOTAL_PIXELS, name)
        pixels = np.zeros_like(source.pixels)
        # Roughness is the green channel of a map, glossiness the alpha.
        pixels[..., 1] = np.rint(255 - glossiness * source.pixels[..., 3].astype("f4"))
        pixels[..., 3] = 255
        pixels.flags.writeable = False
        slots["specular_color"] = specular
        slots["metallic_roughness"] = replace(specular, texture=len(textures))
        textures.append(replace(source, pixels=pixels))
    return replace(
        material,
        color=_color(file, table, "diffuseFactor", (1.0, 1.0, 1.0, 1.0), name),
        metallic=0.0,
        roughness=1.0 if specular else 1.0 - glossiness,
        ior=0.0,
        specular=1.0,
        specular_color=_color(file, table, "specularFactor", (1.0, 1.0, 1.0), name),
        textures=slots,
    )
