"""Cryptomatte: layers of .exr files that say which objects and materials cover a pixel, and how much of it.

By the specification of J. Friedman and A. Jones, version 1.2 (github.com/Psyop/Cryptomatte), which compositors read.
The id of a name is its hash, as the bits of a float32. Layer `CryptoObject00` has the two ids of greatest coverage in R
and B, their coverages in G and A; `CryptoObject01` and `02` have the next ranks; `CryptoMaterial00` to `02` are
the same of materials. The header names all ids. Coverage is the fraction of the samples whose camera ray hits the
object first, at the picture's positions, lens points and times (shaders/raytracing/film/mattes.cu).

An object is a shape, by its name or by where the scene has it, such as `spheres[2]` or `instances[0]`; scattered copies
of a shape are one object. Each node of a model is an object of the node's name, after `models[K]/` if there are several
models. Objects of one name have one matte.
"""

import json
from collections.abc import Callable

import numpy as np

from renderer.errors import UserError
from renderer.gpu.device import Kernel
from renderer.plain import format_names, quoted, suggestion
from renderer.raytracing.geometry import Geometry
from renderer.raytracing.models.gltf_shapes import node_names
from renderer.raytracing.models.motion import poses_of
from renderer.raytracing.settings import SHAPE_GROUPS, Settings

LAYERS = ("CryptoObject", "CryptoMaterial")
RANKS, SLOTS = 6, 12  # the ranks are the best of the first 12 names that a pixel's samples hit; the same in mattes.cu
MASK = 0xFFFFFFFF
Layers = dict[str, np.ndarray]


def name_word(name: str) -> int:
    """Returns the bits of a name's id: MurmurHash3_32 (A. Appleby) of its UTF-8 with seed 0.

    Where these are the bits of no normal float32, the exponent's lowest bit is inverted.
    """
    data, word = name.encode(errors="replace"), 0
    for index, block in enumerate(np.frombuffer(data + bytes(-len(data) % 4), "<u4").tolist()):
        word ^= _rotated(block * 0xCC9E2D51, 15) * 0x1B873593 & MASK
        if 4 * index + 4 <= len(data):  # not after the last 1 to 3 bytes
            word = _rotated(word, 13) * 5 + 0xE6546B64 & MASK
    word ^= len(data)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        word = (word ^ word >> shift) * factor & MASK
    return word ^ (1 << 23 if word >> 23 & 255 in (0, 255) else 0)


def _rotated(word: int, bits: int) -> int:
    return word << bits & MASK | (word & MASK) >> 32 - bits


def metadata(settings: Settings) -> dict[str, str]:
    """Returns the texts in the header of an .exr file that describe the layers and name all ids; {} without mattes."""
    out = dict[str, str]()
    for layer, names in names_by_layer(settings).items() if settings.cryptomatte else ():
        manifest = json.dumps({name: f"{name_word(name):08x}" for name in names})
        values = {"name": layer, "hash": "MurmurHash3_32", "conversion": "uint32_to_float32", "manifest": manifest}
        out |= {f"cryptomatte/{name_word(layer) >> 4:07x}/{key}": value for key, value in values.items()}
    return out


def names_by_layer(settings: Settings) -> dict[str, list[str]]:
    """The names of the scene's objects and of its materials, by the layer of each."""
    items = settings.items(*SHAPE_GROUPS, "distance_fields", "instances")
    objects = [getattr(item, "name", "") or where for where, item in items]
    for number, pose in enumerate(poses_of(settings.models, settings.shutter)):
        objects += node_names(pose.opening, number, len(settings.models))
    return dict(zip(LAYERS, (objects, [*settings.material_names]), strict=True))


def coverage(settings: Settings, name: str, drawn: Callable[[], Layers]) -> np.ndarray:
    """The coverage (height, width) float32 of the object, else of the material, of this name, in the layers drawn.

    UserError for other names, before the layers are drawn.
    """
    known = names_by_layer(settings)
    layer = next((layer for layer in LAYERS if name in known[layer]), None)
    if layer is None:
        names = dict.fromkeys(name for layer in LAYERS for name in known[layer])
        allowed = f"{suggestion(str(name), names)}; allowed are {format_names(names)}"
        raise UserError(f"mask {quoted(name)}: the scene has no such object{allowed}")
    layers = drawn()
    ranks = np.stack([layers[f"{layer}{rank:02}"] for rank in range(RANKS // 2)], axis=2)
    is_named = np.ascontiguousarray(ranks[..., ::2]).view("u4") == name_word(name)
    covered: np.ndarray = (ranks[..., 1::2] * is_named).sum(axis=(2, 3), dtype="f4")
    return covered


def matte_bytes(settings: Settings, size: tuple[int, int]) -> int:
    """Returns the bytes of the tables of a picture or tile of `size` (width, height); 0 without mattes."""
    return 16 * SLOTS * size[0] * size[1] if settings.cryptomatte else 0


def draw_mattes(geometry: Geometry, settings: Settings, params: np.ndarray, samples: int, draw: Kernel) -> Layers:
    """Returns the layers (height, width, 4) float32 of a tile for its first samples, by draw_mattes of mattes.cu.

    `params` are the tile's launch_params(); their sample index changes.
    """
    device, shapes = geometry.device, geometry.shapes
    assert shapes is not None
    # In the order of the kernel's `names`; "" for instances whose primitives have the name.
    names = [where for where, _ in settings.items("distance_fields", "instances")]
    names += [""] * sum(group.columns * group.rows for group in settings.scattered)
    names += [name for *_, name in shapes.instanced]  # of the node of each instanced mesh of a model
    first_material, first_primitive = len(names), len(names) + len(settings.material_names)
    names += [*settings.material_names, *(name for name, _ in shapes.objects)]
    # shapes.objects: (name, number of primitives) of each shape, in the order of the primitives' ids
    counts = [1] * first_primitive + [count for _, count in shapes.objects]
    words = np.repeat(np.array([name_word(name) if name else 0 for name in names], "u4"), counts)
    tables = device.buffer((int(params["tile_height"]), int(params["tile_width"]), len(LAYERS), SLOTS), "u8").fill(0)
    arguments = first_material, first_primitive, device.buffer(len(words), "u4").write(words), tables
    for sample in range(samples):
        params["sample_index"] = sample
        draw(int(params["ray_count"]), params[()], *arguments, *geometry.kernel_args)
    slots = tables.read()
    slots.sort()  # a slot is a uint64: the number of samples is its upper half, the name's word its lower
    # The last six slots, from the most samples down, two to a layer: name and coverage, name and coverage.
    ranks = np.ascontiguousarray(slots[..., : -RANKS - 1 : -1]).view("f4").reshape(*slots.shape[:3], RANKS // 2, 4)
    ranks[..., 1::2] = ranks[..., 1::2].view("u4") / np.float32(samples)
    return {f"{layer}{k:02}": ranks[:, :, i, k] for i, layer in enumerate(LAYERS) for k in range(RANKS // 2)}
