"""Textures of a scene file's materials: the tables [[textures]], and the material keys that name a texture.

Such a key, without "_texture", is called a map: `color_texture` is the map `color`. A map multiplies the number or
color of that name, as in glTF 2.0. Unless the texture sets color_space, color maps are sRGB, and all
other maps and .exr files, of floats, linear, as in Mitsuba. Pixels that color_space converts become floats.
texture_slots() converts maps to glTF's texture slots, which textures.py packs for the device.

A quad shows one picture, upright seen from the front. On a sphere u runs eastwards about y, as on a globe. Meshes have
the texture coordinates of their file. Triangles without texture coordinates are projected along the axis nearest to
their normal, one picture for the longest side of the shape.
"""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from renderer.errors import InputError
from renderer.formats import gltf
from renderer.formats.images import IMAGE_SUFFIXES, decode_srgb, read_exr, read_pixels, srgb_to_linear
from renderer.formats.texture_maps import BLOCK_ROWS, CHANNELS, normals_from_heights, replicated
from renderer.plain import format_names, quoted
from renderer.raytracing.material_files import MATERIAL_FILES
from renderer.records import dataclass, fields
from renderer.scene.schema import required_file, setting
from renderer.system.files import file_stamp

NAME_HELP = "name of a texture"
COLORS = ("color", "emission", "sheen_color", "specular_color", "diffuse_transmission_color")  # maps that are sRGB
PACKED = ("metallic_roughness", "normal", "clearcoat_normal", "anisotropy")  # maps whose channels differ in meaning
SLOTS = {"color": "base_color", "emission": "emissive", "bump": "normal"}  # glTF slots by map, where the names differ


def _texture_name(help: str = "") -> str:
    """Returns a setting that names a texture; `help` is appended to the help text."""
    return setting("", help=NAME_HELP + help, refers_to="textures")


@dataclass(frozen=True)
class TextureFile:
    """A picture file, which materials refer to by its name."""

    name: str
    file: str = required_file(
        (*IMAGE_SUFFIXES, ".exr"), "8 bits a channel: .png, .jpg, .webp, .tif, .bmp; floats from 0 to 1, linear: .exr"
    )
    wrap: Literal["repeat", "clamp", "mirror"] = setting("repeat", help="beyond the picture's edges")
    filter: Literal["linear", "nearest"] = setting("linear", help="between texels")
    color_space: Literal["auto", "srgb", "linear"] = setting(
        "auto", help="auto: srgb for colors of 8 bits, linear for the rest"
    )
    channel: Literal["auto", "red", "green", "blue", "alpha"] = setting(
        "auto", help="of maps of one number; auto: red, and of alpha maps alpha where the picture has it"
    )
    repeat: tuple[float, float] = setting((1.0, 1.0), -1e6, 1e6, "pictures in one length of u and of v")
    offset: tuple[float, float] = setting((0.0, 0.0), -1e6, 1e6, "added to u and v, in pictures")


@dataclass(frozen=True, kw_only=True)
class MapKeys:
    """The keys of a material that name textures, and the keys that control their use."""

    color_texture: str = _texture_name()
    emission_texture: str = _texture_name()
    roughness_texture: str = _texture_name()
    metallic_texture: str = _texture_name()
    metallic_roughness_texture: str = _texture_name("; metallic in blue, roughness in green, as in glTF")
    clearcoat_texture: str = _texture_name()
    clearcoat_roughness_texture: str = _texture_name()
    clearcoat_normal_texture: str = _texture_name("; the coat has the surface's own normals without it")
    sheen_color_texture: str = _texture_name()
    sheen_roughness_texture: str = _texture_name()
    specular_texture: str = _texture_name()
    specular_color_texture: str = _texture_name()
    transmission_texture: str = _texture_name()
    iridescence_texture: str = _texture_name()
    iridescence_thickness_texture: str = _texture_name()
    anisotropy_texture: str = _texture_name("; direction in red and green, strength in blue, as in glTF")
    diffuse_transmission_texture: str = _texture_name()
    diffuse_transmission_color_texture: str = _texture_name()
    normal_texture: str = _texture_name("; green points up, as in glTF")
    normal_scale: float = setting(1.0, -100.0, 100.0, "of the normal map's slopes")
    bump_texture: str = _texture_name("; white is high; normals are derived from it")
    bump_scale: float = setting(0.01, -10.0, 10.0, "height of white above black, in widths of the picture")
    alpha: float = setting(1.0, 0.0, 1.0, "opacity, where alpha_mode is not opaque")
    alpha_texture: str = _texture_name()
    alpha_mode: Literal["opaque", "mask", "blend"] = setting(
        "opaque", help="mask: there or not, by alpha_cutoff; blend: alpha is the coverage; the color map's alpha counts"
    )
    alpha_cutoff: float = setting(0.5, 0.0, 1.0, "from which alpha is there")

    @property
    def maps(self) -> dict[str, str]:
        """The names of the material's textures, by map: color, bump, ..."""
        return {key.removesuffix("_texture"): getattr(self, key) for key in TEXTURE_KEYS if getattr(self, key)}

    @property
    def has_maps(self) -> bool:
        """True if the kernels need texture slots for this material."""
        return bool(self.maps) or self.alpha_mode != "opaque"

    @property
    def map_values(self) -> tuple[object, ...]:
        """The values of all KEYS, which tell whether an edit changed the maps."""
        return tuple(getattr(self, key) for key in KEYS)


KEYS = tuple(f.name for f in fields(MapKeys))
TEXTURE_KEYS = tuple(key for key in KEYS if key.endswith("_texture"))


def check_maps(materials: Sequence[Any], textures: Sequence[TextureFile]) -> None:
    """Raises ValueError for a map without a texture or an effect; `materials` are of class settings.Material."""
    names = [texture.name for texture in textures]
    if len(set(names)) < len(names):
        raise ValueError(f"two textures have one name; the names are {format_names(names)}")
    for material in materials:
        where = f"the material {quoted(material.name)}"
        for map_name, name in material.maps.items():
            if name not in names:
                known = format_names(names) if names else "none: there are no [[textures]]"
                raise ValueError(f"{where}: {map_name}_texture is {quoted(name)}; allowed are {known}")
            kinds = [name for name, file in MATERIAL_FILES.items() if map_name in file.maps]
            if material.kind not in kinds:
                others = [name for name in MATERIAL_FILES if name not in kinds]
                allowed = ", ".join(kinds) if len(kinds) < len(others) else f"all kinds but {', '.join(others)}"
                raise ValueError(
                    f"{where}: {map_name}_texture has no effect on kind {material.kind}; allowed are {allowed}"
                )
            for field in map_name.split("_") if map_name == "metallic_roughness" else [map_name]:
                if not np.any(getattr(material, field, 1.0)):
                    raise ValueError(f"{where}: {map_name}_texture multiplies {field}, which is 0; set {field} too")
        if material.bump_texture and material.normal_texture:
            raise ValueError(f"{where} has bump_texture and normal_texture; allowed is one of them")
        if material.alpha_mode == "opaque" and (material.alpha_texture or material.alpha < 1):
            raise ValueError(f"{where} has an alpha and alpha_mode opaque; allowed are mask and blend")


def texture_slots(
    materials: Sequence[Any], textures: Sequence[TextureFile]
) -> tuple[list[gltf.Material], list[gltf.Texture]]:
    """Converts settings.Materials to gltf.Materials with texture slots, and returns the textures of the slots too."""
    by_name = {texture.name: texture for texture in textures}
    out, converted = [], list[gltf.Texture]()
    rows: dict[tuple[object, ...], int] = {}
    for material in materials:
        slots = {}
        for map_name, name in material.maps.items():
            texture = by_name[name]
            # Maps share a texture's pixels if they agree in all that _pixels() asks of a map.
            converted_alone = map_name if map_name in ("bump", *PACKED) else ""
            key = name, converted_alone, map_name in COLORS, map_name == "alpha", material.bump_scale
            if key not in rows:
                rows[key] = len(converted)
                pixels = _pixels(texture, file_stamp(texture.file), map_name, material.bump_scale)
                converted.append(gltf.Texture(pixels, (texture.wrap,) * 2, texture.filter == "linear"))
            (u, v), (right, down) = texture.repeat, texture.offset
            scale = material.normal_scale if map_name == "normal" else 1.0
            transform = (float(u), 0.0, float(right), 0.0, float(v), float(down))
            slots[SLOTS.get(map_name, map_name)] = gltf.TextureSlot(rows[key], 0, transform, scale)
        color = (*material.color, material.alpha)
        mode = material.alpha_mode.upper()
        out.append(gltf.Material(material.name, color, alpha=mode, cutoff=material.alpha_cutoff, textures=slots))
    return out, converted


@lru_cache(maxsize=64)
def _pixels(texture: TextureFile, stamp: tuple[int, int] | None, map_name: str, bump_scale: float) -> np.ndarray:
    """Returns a texture's pixels (height, width, 4), converted for the map `map_name`; the array is read-only.

    `stamp` makes the cache forget a file that changed. The pixels are uint8, colors in sRGB and numbers as they are, or
    linear float32 from 0 to 1.
    """
    is_color, space = map_name in COLORS, texture.color_space
    if texture.file.lower().endswith(".exr"):
        pixels = read_exr(Path(texture.file))
        if not (pixels.min() >= 0 and pixels.max() <= 1):  # NaN fails the comparisons too
            found = f"numbers from {pixels.min():.6g} to {pixels.max():.6g}"
            raise InputError(f"{texture.file}: holds {found}; a texture's are from 0 to 1")
        if space == "srgb":
            for rows in np.array_split(pixels, -(-len(pixels) // BLOCK_ROWS)):
                rows[..., :3] = decode_srgb(rows[..., :3])
    else:
        pixels = read_pixels(texture.file)
        # Of uint8, the kernels take a color map as sRGB and other maps as they are; floats they take as they are.
        if is_color and space == "linear":
            pixels = pixels / np.float32(255)
        elif not is_color and space == "srgb":
            pixels = srgb_to_linear(pixels, alpha=True)
    if not is_color and map_name not in PACKED:
        has_alpha = map_name == "alpha" and bool((pixels[..., 3] < (255 if pixels.dtype == np.uint8 else 1)).any())
        values = pixels[..., CHANNELS.get(texture.channel, 3 if has_alpha else 0)]
        pixels = normals_from_heights(values, bump_scale) if map_name == "bump" else replicated(values)
    pixels = np.ascontiguousarray(pixels)
    pixels.flags.writeable = False
    return pixels


def projected_texcoords(corners: np.ndarray) -> np.ndarray:
    """Returns texture coordinates (m, 3, 2) of triangles (m, 3, 3), each projected along the axis nearest its normal.

    Seen from outside, pictures on the sides are upright; on the top and the bottom their upper edge points to -z.
    """
    if not len(corners):
        return np.zeros((0, 3, 2))
    low, high = corners.min((0, 1)).astype("f8"), corners.max((0, 1)).astype("f8")
    p = (corners - low) / max(float((high - low).max()), 1e-30)
    normal = np.cross(p[:, 1] - p[:, 0], p[:, 2] - p[:, 0])
    axis = np.abs(normal).argmax(1)
    front = (np.take_along_axis(normal, axis[:, None], 1) >= 0)[:, :, None]  # towards + of the axis
    x, y, z = (p[..., k, None] for k in range(3))
    sides = [np.concatenate([np.where(front, 1 - z, z), 1 - y], 2),
             np.concatenate([x, np.where(front, z, 1 - z)], 2),
             np.concatenate([np.where(front, x, 1 - x), 1 - y], 2)]  # fmt: skip
    return np.where((axis == 0)[:, None, None], sides[0], np.where((axis == 1)[:, None, None], sides[1], sides[2]))
