"""Materials of a glTF file, and their textures."""

from pathlib import Path
from typing import Any

import numpy as np

from renderer.formats.gltf.container import Container
from renderer.formats.gltf.model import Material, Texture, TextureSlot
from renderer.formats.images import read_pixels
from renderer.plain import format_value

MAX_TOTAL_PIXELS = 1 << 27  # pixels of all
MAX_TEXTURES = 1 << 12
WRAPS = {33071: "clamp", 33648: "mirror", 10497: "repeat"}


def material(file: Container, index: int) -> Material:
    """The material of an index."""
    entry, name = file.item("materials", index, "the file"), f"materials[{index}]"
    surface, extra = file.part(entry, "pbrMetallicRoughness", name), file.part(entry, "extensions", name)
    strength = file.number(
        file.part(extra, "KHR_materials_emissive_strength", name), "emissiveStrength", 1.0, 0.0, 1e9, name
    )
    emission = file.numbers(entry, "emissiveFactor", (0.0, 0.0, 0.0), name, 0.0, 1e6)
    refraction = file.number(file.part(extra, "KHR_materials_ior", name), "ior", 1.5, 0.0, 10.0, name)
    if 0 < refraction < 1:
        file.fail(name, f"has an ior of {refraction}; it must be 0, for no refraction, or 1 to 10")
    transmission = file.part(extra, "KHR_materials_transmission", name)
    alpha = entry.get("alphaMode", "OPAQUE")
    if alpha not in ("OPAQUE", "MASK", "BLEND"):
        file.fail(name, f"has the alphaMode {format_value(alpha)}; allowed are OPAQUE, MASK, BLEND")
    return Material(
        name=str(entry.get("name", f"material {index}")),
        color=file.numbers(surface, "baseColorFactor", (1.0, 1.0, 1.0, 1.0), name, 0.0, 1.0),
        metallic=float(file.number(surface, "metallicFactor", 1.0, 0.0, 1.0, name)),
        roughness=float(file.number(surface, "roughnessFactor", 1.0, 0.0, 1.0, name)),
        emission=tuple(strength * e for e in emission),
        alpha=alpha,
        cutoff=float(file.number(entry, "alphaCutoff", 0.5, 0.0, 1e6, name)),
        double_sided=entry.get("doubleSided") is True,
        ior=float(refraction),
        transmission=float(file.number(transmission, "transmissionFactor", 0.0, 0.0, 1.0, name)),
        textures=_slots(file, entry, surface, name),
    )


def _slots(file: Container, entry: dict, surface: dict, name: str) -> dict[str, TextureSlot]:
    """The textures of a material by the name of their slot."""
    found = {
        "base_color": texture_slot(file, surface, "baseColorTexture", name),
        "metallic_roughness": texture_slot(file, surface, "metallicRoughnessTexture", name),
        "normal": texture_slot(file, entry, "normalTexture", name),
        "emissive": texture_slot(file, entry, "emissiveTexture", name),
    }
    slots = {word: slot for word, slot in found.items() if slot}
    sets = sorted({slot.texcoord_set for slot in slots.values()})
    if len(sets) > 1:
        file.fail(name, f"takes its pictures by the coordinates {sets}; one set a material can be read")
    return slots


def texture_slot(file: Container, table: dict, key: str, name: str) -> TextureSlot | None:
    """The texture at a key of a material's table; None if there is none."""
    if key not in table:
        return None
    entry = file.part(table, key, name)
    if "KHR_texture_transform" in file.part(entry, "extensions", name):
        file.fail(name, f"moves its {key} by KHR_texture_transform, which cannot be read")
    row: Any = entry.get("index")
    file.item("textures", row, f"{name}.{key}")
    scale = float(file.number(entry, "scale", 1.0, -100.0, 100.0, name))
    return TextureSlot(row, file.count(entry, "texCoord", 0, name, 7), scale=scale)


def textures(file: Container) -> list[Texture]:
    """One Texture for each entry of `textures`; those of one image share its pixels."""
    images: dict[int, np.ndarray] = {}
    out, total, count = [], 0, len(file.list_of("textures"))
    if count > MAX_TEXTURES:
        file.fail("the file", f"has {count} textures; {MAX_TEXTURES} are allowed")
    for index in range(count):
        entry, name = file.item("textures", index, "the file"), f"textures[{index}]"
        webp = file.part(file.part(entry, "extensions", name), "EXT_texture_webp", name)
        source: Any = webp.get("source", entry.get("source"))
        image = file.item("images", source, name)
        if source not in images:
            images[source] = pixels(file, image, f"images[{source}]")
            total += images[source].shape[0] * images[source].shape[1]
            if total > MAX_TOTAL_PIXELS:
                file.fail("its images", f"have more than the {MAX_TOTAL_PIXELS} pixels allowed")
        sampler = file.item("samplers", entry["sampler"], name) if "sampler" in entry else {}
        wrap = tuple(file.one_of(sampler, key, WRAPS, f"{name}'s sampler", 10497) for key in ("wrapS", "wrapT"))
        out.append(Texture(images[source], wrap, sampler.get("magFilter", 9729) != 9728))
    return out


def pixels(file: Container, image: dict, name: str) -> np.ndarray:
    """The pixels (height, width, 4) uint8 of an image, read-only."""
    if "bufferView" in image:
        data = bytes(file.view(image["bufferView"], name)[0])
    else:
        data = file.content(image.get("uri"), name)
    if not data.startswith((b"\x89PNG", b"\xff\xd8\xff", b"RIFF")):
        file.fail(name, "is neither PNG nor JPEG nor WebP")
    pixels = read_pixels(Path(f"{file.path}: {name}"), data=data)
    pixels.flags.writeable = False
    return pixels
