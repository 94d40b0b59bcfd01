"""The supported extensions of glTF 2.0, and unread(), which counts a file's statements that have no effect."""

from collections import Counter
from collections.abc import Collection
from typing import Any

from renderer.plain import Json

GLOSSINESS = "KHR_materials_pbrSpecularGlossiness"
UNIT = (0.0, 1.0)
# Keys of materials by extension, with the range of a number or of a color's channels: materials.py reads such a key as
# a field of Material, whose default is the specification's. None: a texture, or a key with a rule that needs code.
MATERIALS: dict[str, dict[str, tuple[float, float] | None]] = {
    "KHR_materials_clearcoat": {
        "clearcoatFactor": UNIT, "clearcoatTexture": None, "clearcoatRoughnessFactor": UNIT,
        "clearcoatRoughnessTexture": None, "clearcoatNormalTexture": None,
    },
    "KHR_materials_sheen": {
        "sheenColorFactor": UNIT, "sheenColorTexture": None, "sheenRoughnessFactor": UNIT,
        "sheenRoughnessTexture": None,
    },
    "KHR_materials_specular": {
        "specularFactor": UNIT, "specularTexture": None, "specularColorFactor": (0.0, 1e6),
        "specularColorTexture": None,
    },
    "KHR_materials_transmission": {"transmissionFactor": UNIT, "transmissionTexture": None},
    "KHR_materials_volume": {
        "thicknessFactor": (0.0, 1e18), "thicknessTexture": None, "attenuationDistance": None,
        "attenuationColor": UNIT,
    },
    "KHR_materials_iridescence": {
        "iridescenceFactor": UNIT, "iridescenceTexture": None, "iridescenceIor": (1.0, 10.0),
        "iridescenceThicknessMinimum": (0.0, 1e6), "iridescenceThicknessMaximum": (0.0, 1e6),
        "iridescenceThicknessTexture": None,
    },
    "KHR_materials_anisotropy": {
        "anisotropyStrength": UNIT, "anisotropyRotation": (-1e6, 1e6), "anisotropyTexture": None,
    },
    "KHR_materials_diffuse_transmission": {
        "diffuseTransmissionFactor": UNIT, "diffuseTransmissionTexture": None,
        "diffuseTransmissionColorFactor": UNIT, "diffuseTransmissionColorTexture": None,
    },
    "KHR_materials_dispersion": {"dispersion": (0.0, 1e3)},
    "KHR_materials_emissive_strength": {"emissiveStrength": None},
    "KHR_materials_ior": {"ior": None},
    "KHR_materials_unlit": {},
    GLOSSINESS: dict.fromkeys(
        ("diffuseFactor", "diffuseTexture", "specularFactor", "glossinessFactor", "specularGlossinessTexture")
    ),
}  # fmt: skip
MATERIAL_KEYS = frozenset({
    "name", "pbrMetallicRoughness", "normalTexture", "occlusionTexture", "emissiveTexture", "emissiveFactor",
    "alphaMode", "alphaCutoff", "doubleSided",
})  # fmt: skip
SURFACE_KEYS = frozenset({
    "baseColorFactor", "baseColorTexture", "metallicFactor", "roughnessFactor", "metallicRoughnessTexture",
})  # fmt: skip
MESHOPT = ("KHR_meshopt_compression", "EXT_meshopt_compression")
READ: dict[str, frozenset[str]] = {  # extensions by the list of the file whose entries may have them
    "files": frozenset({"KHR_lights_punctual", "KHR_materials_variants"}),
    "nodes": frozenset({"KHR_lights_punctual", "EXT_mesh_gpu_instancing", "KHR_node_visibility"}),
    "primitives": frozenset({"KHR_draco_mesh_compression", "KHR_materials_variants"}),
    "materials": frozenset(MATERIALS),
    "texture infos": frozenset({"KHR_texture_transform"}),
    "textures": frozenset({"EXT_texture_webp", "KHR_texture_basisu"}),
    "buffers": frozenset(MESHOPT),
    "bufferViews": frozenset(MESHOPT),
}
# Extensions without effect on a picture: metadata, behavior, sound, physics, and coarser versions of meshes.
INVISIBLE = frozenset({
    "EXT_feature_metadata", "EXT_instance_features", "EXT_mesh_features", "EXT_structural_metadata",
    "GODOT_single_root", "KHR_audio_emitter", "KHR_collision_shapes", "KHR_implicit_shapes", "KHR_interactivity",
    "KHR_node_hoverability", "KHR_node_selectability", "KHR_physics_rigid_bodies", "KHR_xmp", "KHR_xmp_json_ld",
    "MSFT_audio_emitter", "MSFT_lod",
})  # fmt: skip
SUPPORTED = frozenset({"KHR_mesh_quantization"}).union(*READ.values(), INVISIBLE)
SKIPPED = ("extras", "extensions", "extensionsUsed", "extensionsRequired", "asset", "animations")


def unread(tree: Json) -> Counter[str]:
    """Counts the statements of the file's JSON that the reader ignores, as renderer.plain.format_ignored takes them.

    These are unsupported extensions, unknown keys of materials and of their extensions, primitives without positions,
    and scenes other than the default one. `extras` are not counted, nor are animations, which animation.py counts.
    """
    count: Counter[str] = Counter()
    _count_extensions(count, tree, "files")
    left: list[tuple[Any, str]] = [(value, key) for key, value in tree.items() if key not in SKIPPED]
    lights = _table(_table(tree, "extensions"), "KHR_lights_punctual").get("lights")
    left.append((lights, "lights"))
    while left:
        value, unit = left.pop()
        if isinstance(value, list):
            left += [(item, unit) for item in value if isinstance(item, (dict, list))]
        elif isinstance(value, dict):
            _count_extensions(count, value, unit)
            if unit == "materials":
                left += _inside_material(count, value)
            elif unit == "meshes":
                left.append((value.get("primitives"), "primitives"))
            elif unit == "primitives" and "POSITION" not in _table(value, "attributes"):
                count["without POSITION primitives"] += 1
    scenes = tree.get("scenes")
    if isinstance(scenes, list) and len(scenes) > 1:
        count["scenes"] += len(scenes) - 1
    return count


def _table(table: Json, key: str) -> Json:
    value = table.get(key)
    return value if isinstance(value, dict) else {}


def _count_extensions(count: Counter[str], entry: Json, unit: str) -> None:
    known = READ.get(unit, frozenset())
    counted = "textures" if unit == "texture infos" else unit
    count.update(f"{name} {counted}" for name in _table(entry, "extensions") if name not in known | INVISIBLE)


def _inside_material(count: Counter[str], material: Json) -> list[tuple[Any, str]]:
    """Returns the texture infos of a material with their names; counts the material's unknown keys."""
    extensions = _table(material, "extensions")
    surface = _table(material, "pbrMetallicRoughness")
    tables: list[tuple[str, Json, Collection[str]]] = [
        ("", material, MATERIAL_KEYS), ("pbrMetallicRoughness.", surface, SURFACE_KEYS)
    ]  # fmt: skip
    tables += [(f"{name}.", _table(extensions, name), MATERIALS[name]) for name in extensions if name in MATERIALS]
    infos: list[tuple[Any, str]] = []
    for prefix, table, known in tables:
        count.update(f"{prefix}{key} materials" for key in table if key not in known and key not in SKIPPED)
        infos += [(value, "texture infos") for key, value in table.items() if key in known and key.endswith("Texture")]
    return infos
