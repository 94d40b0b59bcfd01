"""The supported extensions of glTF 2.0, and unread(), which counts a file's statements that have no effect."""

from collections import Counter
from collections.abc import Collection

from renderer.paths import ASSETS
from renderer.plain import Json
from renderer.system.files import read_toml

TABLES = read_toml(ASSETS / "gltf_extensions.toml")
GLOSSINESS = "KHR_materials_pbrSpecularGlossiness"
# Keys of materials by extension, each with its range, a tuple (low, high), or () for textures and keys that code reads.
MATERIALS: dict[str, dict[str, tuple[float, float] | tuple[()]]] = {
    name: {key: tuple(limits) for key, limits in keys.items()} for name, keys in TABLES["materials"].items()
}
MESHOPT: list[str] = TABLES["read"]["buffers"]
# Known extensions by the list of the file whose entries may have them: "nodes", "primitives", ...
READ: dict[str, Collection[str]] = TABLES["read"] | {"materials": MATERIALS}
INVISIBLE = frozenset(TABLES["invisible"])
SUPPORTED = frozenset(TABLES["accepted"]).union(*READ.values(), INVISIBLE)
SKIPPED = ("extras", "extensions", "extensionsUsed", "extensionsRequired", "asset", "animations")


def unread(tree: Json) -> Counter[str]:
    """Counts the statements of the file's JSON that the reader ignores, as renderer.plain.format_ignored takes them.

    These are unsupported extensions, unknown keys of materials and of their extensions, primitives without positions,
    and scenes other than the default one. `extras` are not counted, nor are animations, which animation.py counts.
    """
    count: Counter[str] = Counter()
    _count_extensions(count, tree, "files")
    left: list[tuple[object, str]] = [(value, key) for key, value in tree.items() if key not in SKIPPED]
    lights = _table(_table(tree, "extensions"), "KHR_lights_punctual").get("lights")
    left.append((lights, "lights"))
    while left:  # values to look into, each with the name of the list that holds it
        value, list_name = left.pop()
        if isinstance(value, list):
            left += [(item, list_name) for item in value if isinstance(item, (dict, list))]
        elif isinstance(value, dict):
            _count_extensions(count, value, list_name)
            if list_name == "materials":
                left += _inside_material(count, value)
            elif list_name == "meshes":
                left.append((value.get("primitives"), "primitives"))
            elif list_name == "primitives" and "POSITION" not in _table(value, "attributes"):
                count["without POSITION primitives"] += 1
    scenes = tree.get("scenes")
    if isinstance(scenes, list) and len(scenes) > 1:
        count["scenes"] += len(scenes) - 1
    return count


def _table(table: Json, key: str) -> Json:
    value = table.get(key)
    return value if isinstance(value, dict) else {}


def _count_extensions(count: Counter[str], entry: Json, list_name: str) -> None:
    known = INVISIBLE.union(READ.get(list_name, ()))
    counted = "textures" if list_name == "texture infos" else list_name
    count.update(f"{name} {counted}" for name in _table(entry, "extensions") if name not in known)


def _inside_material(count: Counter[str], material: Json) -> list[tuple[object, str]]:
    """Returns the texture infos of a material with their names; counts the material's unknown keys."""
    extensions = _table(material, "extensions")
    surface = _table(material, "pbrMetallicRoughness")
    tables: list[tuple[str, Json, Collection[str]]] = [
        ("", material, TABLES["keys"]["material"]), ("pbrMetallicRoughness.", surface, TABLES["keys"]["surface"])
    ]  # fmt: skip
    tables += [(f"{name}.", _table(extensions, name), MATERIALS[name]) for name in extensions if name in MATERIALS]
    infos: list[tuple[object, str]] = []
    for prefix, table, known in tables:
        count.update(f"{prefix}{key} materials" for key in table if key not in known and key not in SKIPPED)
        infos += [(value, "texture infos") for key, value in table.items() if key in known and key.endswith("Texture")]
    return infos
