"""glTF models in scenes: their triangles with normals and coordinates, their materials, and the pictures on them."""

from dataclasses import dataclass, replace

import numpy as np

from renderer.bvh.primitives import PRIMITIVE, collapse_duplicates, triangles
from renderer.formats import gltf
from renderer.formats.images import srgb_to_linear
from renderer.raytracing.instances import Point, turn_of
from renderer.scene.schema import setting

# What the corners of a primitive carry: see raytracing/texture.h. The last two rows are there where a part asks for
# them.
ROWS, MORE_ROWS = 4, 6
LOOK = np.dtype([("color", "i4"), ("surface", "i4"), ("normal", "i4"), ("emission", "i4"),
                 ("normal_scale", "f4"), ("alpha", "f4"), ("cutoff", "f4"), ("mode", "i4")])  # fmt: skip
MODES = {"OPAQUE": 0, "MASK": 1, "BLEND": 2}
WRAPS = {"repeat": 0, "clamp": 1, "mirror": 2}
SMOOTH = 16
PLAIN = gltf.Material("plain", metallic=0.0, color=(0.75, 0.75, 0.75, 1.0))
INSTANCED = 20_000  # triangles of all copies of a mesh from which they are instances of one


@dataclass(frozen=True)
class ModelShape:
    """A glTF file with its own materials and pictures, scaled, then turned, then moved."""

    file: str = setting("", file=True)
    scale: float = setting(1.0, 1e-9, 1e9, logarithmic=True)
    rotation_degrees: Point = setting((0.0, 0.0, 0.0), help="about x, then y, then z")
    position: Point = (0.0, 0.0, 0.0)
    name: str = setting("", help="a named shape stands only where instances place it")

    def matrix(self) -> np.ndarray:
        """From the file's world to the scene's, (4, 4)."""
        out = np.eye(4)
        out[:3, :3] = turn_of(self.rotation_degrees) * self.scale
        out[:3, 3] = self.position
        return out


def materials_of(model: gltf.Model) -> list[gltf.Material]:
    """The model's materials, and behind them the one of triangles that have none."""
    return [*model.materials, PLAIN]


def bare_attributes(count: int) -> np.ndarray:
    """(count, MORE_ROWS, 4) of primitives without normals, coordinates and tangents, and all white."""
    attributes = np.zeros((count, MORE_ROWS, 4), "f4")
    attributes.view("u4").reshape(count, 4 * MORE_ROWS)[:, 16:22] = 0xFFFFFFFF
    return attributes


def corners_of(part: gltf.Part, matrix: np.ndarray, material: int) -> tuple[np.ndarray, np.ndarray]:
    """Primitives (m,) and attributes (m, MORE_ROWS, 4) of a part moved by a matrix (4, 4); `material` is the row of the
    model's first one."""
    row = material + part.material if part.material >= 0 else None
    vertices, faces = part.vertices.astype("f8") @ matrix[:3, :3].T + matrix[:3, 3], part.faces
    mirrors = np.linalg.det(matrix[:3, :3]) < 0
    if mirrors:  # so that the front stays outside
        faces = faces[:, [0, 2, 1]]
    attributes = bare_attributes(len(faces))
    if part.normals is not None:
        turned = part.normals.astype("f8") @ np.linalg.inv(matrix[:3, :3])
        size = np.linalg.norm(turned, axis=1, keepdims=True)
        attributes[:, :3, :3] = np.divide(turned, size, out=np.zeros_like(turned), where=size > 1e-30)[faces]
    if part.coordinates is not None:
        wanted = np.clip(part.coordinates, -1e6, 1e6)[faces]
        attributes[:, :3, 3], attributes[:, 3, :3] = wanted[..., 0], wanted[..., 1]
    words = attributes.view("u4").reshape(-1, 4 * MORE_ROWS)
    if part.colors is not None:
        pairs = np.rint(np.clip(part.colors, 0, 1) * 65535).astype("u4") << np.array([0, 16, 0, 16], "u4")
        words[:, 16:22] = (pairs[:, ::2] | pairs[:, 1::2])[faces].reshape(-1, 6)
    if part.tangents is not None:
        words[:, [15, 22, 23]] = _packed_tangents(part.tangents, matrix[:3, :3])[faces]
    assert row is not None, "a part without a material has been given the plain one"
    return collapse_duplicates(triangles(vertices, faces, row)), attributes


def _packed_tangents(tangents: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """(n,) uint32 of tangents (n, 4) moved by a matrix (3, 3): 15 bits each of two coordinates on an octahedron, bit 30
    where the handedness is negative, bit 31 always; 0 for no direction."""
    turned = tangents[:, :3].astype("f8") @ matrix.T
    size = np.abs(turned).sum(1, keepdims=True)
    x, y, z = np.divide(turned, size, out=np.zeros_like(turned), where=size > 1e-30).T
    folded = [(1 - np.abs(b)) * np.where(a < 0, -1, 1) for a, b in ((x, y), (y, x))]
    flat = [np.where(z < 0, fold, a) for fold, a in zip(folded, (x, y), strict=True)]
    across, down = (np.rint((a * 0.5 + 0.5) * 32767).astype("u4") for a in flat)
    left = (tangents[:, 3] < 0) != (np.linalg.det(matrix) < 0)
    words = across | down << np.uint32(15) | left.astype("u4") << np.uint32(30) | np.uint32(1 << 31)
    return np.where(size[:, 0] > 1e-30, words, np.uint32(0))


def rows_of(models: list[gltf.Model]) -> int:
    """Rows of attributes that models with these parts need."""
    parts = [part for model in models for parts in model.meshes for part in parts]
    bare = all(part.tangents is None and part.colors is None for part in parts)
    return ROWS if bare else MORE_ROWS


def with_plain(model: gltf.Model, part: gltf.Part) -> gltf.Part:
    """The part with a row for its material."""
    if part.material >= 0:
        return part
    return replace(part, material=len(model.materials))


def joined(model: gltf.Model, mesh_number: int, matrix: np.ndarray, material: int) -> tuple[np.ndarray, np.ndarray]:
    """Primitives and attributes of all parts of a mesh."""
    parts = [corners_of(with_plain(model, part), matrix, material) for part in model.meshes[mesh_number]]
    if not parts:
        return np.zeros(0, PRIMITIVE), bare_attributes(0)
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


def repeated(model: gltf.Model) -> set[int]:
    """The meshes that many nodes draw, and that do not shine: copies of them are instances."""
    uses = np.bincount([number for number, _ in model.placed], minlength=len(model.meshes))
    return {
        number
        for number, parts in enumerate(model.meshes)
        if uses[number] > 1
        and uses[number] * sum(len(part.faces) for part in parts) >= INSTANCED
        and not any(any(model.materials[part.material].emission) for part in parts if part.material >= 0)
    }


def bounds_of(model: gltf.Model) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and highest corner (3,) of all that a model draws."""
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    for number, matrix in model.placed:
        for part in model.meshes[number]:
            used = part.vertices[np.unique(part.faces)].astype("f8") @ matrix[:3, :3].T + matrix[:3, 3]
            low, high = np.minimum(low, used.min(0)), np.maximum(high, used.max(0))
    return low, high


class Pictures:
    """The looks of all materials of a scene and the pictures of all its models, as raytracing/texture.h reads them.

    `plain` is the number of the scene's own materials, which stand before the models' and have no pictures.
    """

    def __init__(self, plain: int, models: list[gltf.Model]):
        looks, pictures, texels = [_look(PLAIN, 0)] * plain, [], [srgb_to_linear(np.arange(256, dtype="u1")).view("u4")]
        start = 256
        for model in models:
            looks += [_look(material, len(pictures)) for material in materials_of(model)]
            placed: dict[int, int] = {}
            for picture in model.pictures:
                if id(picture.pixels) not in placed:
                    placed[id(picture.pixels)] = start
                    texels.append(np.ascontiguousarray(picture.pixels).view("<u4").ravel())
                    start += texels[-1].size
                height, width = picture.pixels.shape[:2]
                bits = WRAPS[picture.wrap[0]] | WRAPS[picture.wrap[1]] << 2 | (SMOOTH if picture.smooth else 0)
                pictures.append((placed[id(picture.pixels)], width, height, bits))
        self.looks = np.array(looks or [_look(PLAIN, 0)], LOOK)
        self.pictures = np.array(pictures or [(0, 1, 1, 0)], "i4")
        self.texels = np.concatenate(texels)

    @property
    def cut_out(self) -> bool:
        return bool((self.looks["mode"] > 0).any())


def _look(material: gltf.Material, first: int) -> tuple:
    rows = (material.color_picture, material.surface_picture, material.normal_picture, material.emission_picture)
    rows = (first + row if row >= 0 else -1 for row in rows)
    return (*rows, material.normal_scale, material.color[3], material.cutoff, MODES[material.alpha])
