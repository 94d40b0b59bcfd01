"""Texture slots, transforms, texels and vertex attributes in the layout of shaders/raytracing/textures/texture.h.

A slot is glTF's: a texture that a material uses for one property, with a set of texture coordinates and a transform.
geometry.py uploads the arrays of TextureArrays; shapes.py and models/gltf_shapes.py write the vertex attributes.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from renderer.formats import gltf
from renderer.formats.images import srgb_to_linear

BASE_FLOAT4S, FULL_FLOAT4S = 4, 6  # float4s of a primitive's attributes: normals and uv; also tangents and colors
MAX_SETS = 4  # most sets of texture coordinates of one material
BASE_SLOTS = ("base_color", "metallic_roughness", "normal", "emissive")
EXTRA_SLOTS = (  # MaterialTextures has fields for the slots that materials of the scene use
    "roughness", "metallic", "alpha", "clearcoat_normal", "clearcoat", "clearcoat_roughness", "sheen_color",
    "sheen_roughness", "specular", "specular_color", "transmission", "iridescence", "iridescence_thickness",
    "anisotropy", "diffuse_transmission", "diffuse_transmission_color",
)  # fmt: skip
SURFACE_SLOTS = ("base_color", "metallic_roughness", "roughness", "metallic")  # read by surface_textures.h
DRAWN_SLOTS = (*BASE_SLOTS, *EXTRA_SLOTS)  # read by kernels
ALPHA_MODES = {"OPAQUE": 0, "MASK": 1, "BLEND": 2}
WRAPS = {"repeat": 0, "clamp": 1, "mirror": 2}
# `bits` of a texture's row: two for each wrap, then LINEAR_FILTER, two from SET_SHIFT on for the set of texture
# coordinates, HAS_TRANSFORM, FLOAT_TEXELS. The same in texture.h.
LINEAR_FILTER, SET_SHIFT, HAS_TRANSFORM, FLOAT_TEXELS = 16, 5, 128, 256
SRGB_WORDS = 256  # words of the table of the sRGB curve, which precedes the texels
TRANSFORM_WORDS = 6
COLOR_WORDS, SETS_FROM = slice(16, 22), 24  # words of a primitive's attributes, see texture.h
MaterialTextures = tuple[Sequence[gltf.Material], list[gltf.Texture]]  # slots index these textures


def drawn_slots(material: gltf.Material) -> dict[str, gltf.TextureSlot]:
    """Returns a material's texture slots that kernels read: DRAWN_SLOTS in the first MAX_SETS coordinate sets."""
    sets = texcoord_sets(material)
    return {name: s for name, s in material.textures.items() if name in DRAWN_SLOTS and s.texcoord_set in sets}


def texcoord_sets(material: gltf.Material) -> tuple[int, ...]:
    """Returns the sets of texture coordinates that a material uses, in the order of its primitives' attributes.

    The normal map's set is first, because the file's tangents belong to it.
    """
    names = sorted(material.textures, key=lambda name: (name not in ("normal", "clearcoat_normal"), name != "normal"))
    sets = dict.fromkeys(material.textures[name].texcoord_set for name in names if name in DRAWN_SLOTS)
    return tuple(sets)[:MAX_SETS] or (0,)


def attribute_float4s(has_tangents_or_colors: bool, set_count: int) -> int:
    """Returns the float4s of a primitive's attributes with `set_count` sets of texture coordinates."""
    if set_count > 1:
        return FULL_FLOAT4S + -(-6 * (set_count - 1) // 4)
    return FULL_FLOAT4S if has_tangents_or_colors else BASE_FLOAT4S


def default_attributes(count: int, float4s: int = FULL_FLOAT4S) -> np.ndarray:
    """Returns attributes (count, float4s, 4) of primitives without normals, uv and tangents, with white vertices."""
    attributes = np.zeros((count, float4s, 4), "f4")
    if float4s > BASE_FLOAT4S:
        attributes.view("u4").reshape(count, 4 * float4s)[:, COLOR_WORDS] = 0xFFFFFFFF
    return attributes


def joined_attributes(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Concatenates attributes (m, float4s, 4), padded to the largest number of float4s."""
    out = default_attributes(sum(map(len, arrays)), max(array.shape[1] for array in arrays))
    end = 0
    for array in arrays:
        end += len(array)
        out[end - len(array) : end, : array.shape[1]] = array
    return out


def write_texcoords(attributes: np.ndarray, number: int, uv: np.ndarray) -> None:
    """Writes the corners' texture coordinates (m, 3, 2) into set `number`, counted as in texcoord_sets()."""
    uv = np.clip(uv, -1e6, 1e6)
    if number == 0:  # u is in w of the corners' normals, v in the row behind them
        attributes[:, :3, 3], attributes[:, 3, :3] = uv[..., 0], uv[..., 1]
    else:
        first = SETS_FROM + 6 * (number - 1)
        attributes.reshape(len(attributes), -1)[:, first : first + 6] = uv.reshape(-1, 6)


def write_colors(attributes: np.ndarray, colors: np.ndarray, faces: np.ndarray) -> None:
    """Writes the vertex colors (n, 4), from 0 to 1, of the corners of faces (m, 3)."""
    # A color takes two words of 16-bit channels: red and green, blue and alpha.
    pairs = np.rint(np.clip(colors, 0, 1) * 65535).astype("u4") << np.array([0, 16, 0, 16], "u4")
    words = attributes.view("u4").reshape(len(attributes), -1)
    words[:, COLOR_WORDS] = (pairs[:, ::2] | pairs[:, 1::2])[faces].reshape(-1, 6)


class _Row(NamedTuple):
    """A row of TextureArrays.textures, and its transform; `offset`: words from the first image."""

    offset: int
    width: int
    height: int
    bits: int
    transform: object


class TextureArrays:
    """The texture slots of all materials of a scene, and their textures, as arrays for the device.

    The textures' pixels move to `texels`: their arrays are views of it from then on.

    `groups` are materials with their textures: first of the scene file, then of each model. `material_textures` (m,) is
    a record for each material, `textures` (n, 4) int32 offset, width, height and bits of each used texture, `texels`
    uint32 words. `constants` are the kernels' compile-time constants.
    """

    def __init__(self, groups: Sequence[MaterialTextures]):
        materials = [material for group, _ in groups for material in group]
        used = {name for material in materials for name in drawn_slots(material)}
        extras = [name for name in EXTRA_SLOTS if name in used]
        self._dtype = _record_dtype(extras)
        self._rows: dict[_Row, int] = {}  # indices in `textures`
        self._size = 0  # words of the images
        offsets: dict[int, int] = {}  # by the image's identity: textures may share an image
        # Also fills _rows and offsets, and counts _size.
        records = [self._record(m, textures, extras, offsets) for group, textures in groups for m in group]
        self.material_textures = np.array(records, self._dtype)
        transforms = np.array([row.transform for row in self._rows], "f4").reshape(-1, TRANSFORM_WORDS)
        self.has_transforms = any(row.bits & HAS_TRANSFORM for row in self._rows)
        begin = SRGB_WORDS + self.has_transforms * transforms.size
        rows = [(row.offset + begin, row.width, row.height, row.bits) for row in self._rows]
        self.textures = np.array(rows or [(0, 1, 1, 0)], "i4")
        self.texels = np.empty(begin + self._size, "u4")
        self.texels[:SRGB_WORDS] = srgb_to_linear(np.arange(256, dtype="u1")).view("u4")
        if self.has_transforms:
            self.texels[SRGB_WORDS:begin] = transforms.view("u4").ravel()
        _move_images([textures for _, textures in groups], offsets, self.texels[begin:])
        set_counts = [len(texcoord_sets(material)) for material in materials]
        self.constants: dict[str, object] = {
            **{f"HAS_SLOT_{name}": int(name in extras) for name in EXTRA_SLOTS},
            "SURFACE_TEXTURES": int(not used.isdisjoint(SURFACE_SLOTS)),
            "NORMAL_MAPS": int("normal" in used),
            "TEXTURE_TRANSFORMS": int(self.has_transforms),
            "FLOAT_TEXTURES": int(any(row.bits & FLOAT_TEXELS for row in self._rows)),
            "UV_SETS": max(set_counts, default=1),
            "ALPHA_TEST": int((self.material_textures["alpha_mode"] > 0).any()),
            "MaterialTextures": self._dtype,
        }

    def _record(
        self, material: gltf.Material, textures: Sequence[gltf.Texture], extras: list[str], offsets: dict[int, int]
    ) -> tuple[object, ...]:
        """Returns the record of a material and adds its textures to the arrays."""
        slots, sets = drawn_slots(material), texcoord_sets(material)
        rows = {n: self._row(textures[s.texture], s, sets.index(s.texcoord_set), offsets) for n, s in slots.items()}
        scales = [slots[name].scale if name in slots else 1.0 for name in ("normal", "clearcoat_normal")]
        alpha = (material.color[3], material.cutoff, ALPHA_MODES[material.alpha])
        out = (*(rows.get(name, -1) for name in BASE_SLOTS), scales[0], *alpha)
        out += tuple(rows.get(name, -1) for name in extras)
        return (*out, scales[1]) if "clearcoat_normal" in extras else out

    def _row(self, texture: gltf.Texture, slot: gltf.TextureSlot, set_index: int, offsets: dict[int, int]) -> int:
        """Returns the row in `textures` of a slot's texture; adds the texels of an image once."""
        if id(texture.pixels) not in offsets:
            offsets[id(texture.pixels)] = self._size
            self._size += texture.pixels.nbytes // 4
        height, width = texture.pixels.shape[:2]
        bits = WRAPS[texture.wrap[0]] | WRAPS[texture.wrap[1]] << 2 | set_index << SET_SHIFT
        bits |= LINEAR_FILTER if texture.linear_filter else 0
        bits |= FLOAT_TEXELS if texture.pixels.dtype == np.float32 else 0
        bits |= HAS_TRANSFORM if slot.transform != gltf.TextureSlot(0).transform else 0
        row = _Row(offsets[id(texture.pixels)], width, height, bits, slot.transform)
        return self._rows.setdefault(row, len(self._rows))


def _move_images(groups: Sequence[list[gltf.Texture]], offsets: dict[int, int], texels: np.ndarray) -> None:
    """Copies the images at `offsets`, by identity, to `texels`, where their textures have their pixels from now on.

    So each image is freed before the next one is copied: a gigabyte of textures is never twice in memory.
    """
    users: dict[int, list[tuple[list[gltf.Texture], int]]] = {}
    for textures in groups:
        for index, texture in enumerate(textures):
            users.setdefault(id(texture.pixels), []).append((textures, index))
    for identity, offset in offsets.items():
        textures, index = users[identity][0]
        pixels = textures[index].pixels
        moved = texels[offset : offset + pixels.nbytes // 4].view(pixels.dtype).reshape(pixels.shape)
        moved[...] = pixels
        moved.flags.writeable = False
        for textures, index in users[identity]:
            textures[index] = replace(textures[index], pixels=moved)
        del pixels


def _record_dtype(extras: list[str]) -> np.dtype:
    """Returns the dtype of the record MaterialTextures if the materials use the slots `extras` of EXTRA_SLOTS."""
    fields = [(name, "i4") for name in BASE_SLOTS]
    fields += [("normal_scale", "f4"), ("alpha_factor", "f4"), ("alpha_cutoff", "f4"), ("alpha_mode", "i4")]
    fields += [(name, "i4") for name in extras]
    return np.dtype(fields + ([("clearcoat_normal_scale", "f4")] if "clearcoat_normal" in extras else []))
