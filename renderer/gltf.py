"""glTF 2.0 files of strangers (.gltf, .glb) as plain arrays: meshes, nodes, materials, pictures, cameras and lights.

What is read is that part of the Khronos specification which a still picture shows. Every number that leads to another
place is checked before it is followed, sizes are bounded before they are allocated, and no file is opened that does
not lie in the folder of the first. A wrong one is a BadInput that names the file and the item.
"""

import base64
import binascii
import json
import math
import os
import struct
import urllib.parse
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np

from renderer import BadInput
from renderer.image import read_bytes
from renderer.scene import told

LARGEST_FILE = 1 << 30  # bytes
LARGEST_TREE = 64 << 20  # bytes of JSON
LARGEST_PICTURE = 1 << 26  # pixels
LARGEST_PICTURES = 1 << 27  # pixels of all
LARGEST_COUNT = 1 << 26  # items of an array
LARGEST_TRIANGLES = 1 << 25  # that all nodes draw, and that all meshes hold
LARGEST_VERTICES = 1 << 27  # that all parts of meshes name, many of them the same
LARGEST_ZEROS = 1 << 24  # items of arrays that stand for no bytes
LARGEST_IMAGES = 1 << 12
LARGEST_NODES = 1 << 18
COMPONENTS = {5120: "<i1", 5121: "<u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
WIDTHS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4}
WRAPS = {33071: "clamp", 33648: "mirror", 10497: "repeat"}
UNDERSTOOD = {
    "KHR_lights_punctual", "KHR_materials_ior", "KHR_materials_transmission", "KHR_materials_emissive_strength",
    "KHR_mesh_quantization", "EXT_texture_webp",
}  # fmt: skip


@dataclass(frozen=True)
class Picture:
    """A texture: (height, width, 4) uint8, how it goes on beyond its edges, and whether texels are blended."""

    pixels: np.ndarray
    wrap: tuple[str, str] = ("repeat", "repeat")
    smooth: bool = True


@dataclass(frozen=True)
class Material:
    """The metallic-roughness model; pictures by their row, -1 for none."""

    name: str = ""
    color: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)
    metallic: float = 1.0
    roughness: float = 1.0
    emission: tuple[float, float, float] = (0.0, 0.0, 0.0)
    color_picture: int = -1
    surface_picture: int = -1  # roughness in green, metallic in blue
    normal_picture: int = -1
    emission_picture: int = -1
    normal_scale: float = 1.0
    alpha: str = "OPAQUE"
    cutoff: float = 0.5
    refraction: float = 1.5
    transmission: float = 0.0
    coordinates: int = 0  # which set of texture coordinates its pictures take


@dataclass(frozen=True)
class Part:
    """Triangles of one material: vertices (n, 3) float32, faces (m, 3) int32, normals (n, 3) and coordinates (n, 2) or
    None."""

    vertices: np.ndarray
    faces: np.ndarray
    normals: np.ndarray | None
    coordinates: np.ndarray | None
    material: int  # row of the materials, -1 for the plain one


@dataclass(frozen=True)
class Camera:
    name: str
    matrix: np.ndarray  # (4, 4) to the world; it looks along -z
    fov_degrees: float  # vertical
    aspect: float | None


@dataclass(frozen=True)
class Light:
    """`kind` is directional, point or spot; `power` is lux or candela, red, green, blue; angles from the axis, -z."""

    name: str
    kind: str
    matrix: np.ndarray
    power: tuple[float, float, float]
    inner: float = 0.0
    outer: float = math.pi / 4


@dataclass(frozen=True)
class Model:
    """What a file draws: `placed` are (mesh, matrix (4, 4)) of the nodes that have one; a mesh is a list of Parts."""

    meshes: list[list[Part]]
    placed: list[tuple[int, np.ndarray]]
    materials: list[Material]
    pictures: list[Picture]
    cameras: list[Camera] = field(default_factory=list)
    lights: list[Light] = field(default_factory=list)


def load(path) -> Model:
    """The Model of a file, read once while it stays as it is; its arrays are shared, so they are read-only."""
    path = Path(path)
    try:
        state = os.stat(path)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from error
    return _load(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=4)
def _load(path: Path, changed: int, size: int) -> Model:
    try:
        return _Reader(path, size).model()
    except MemoryError as error:
        raise BadInput(f"{path}: asks for more memory than there is") from error


def _is_number(value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


class _Reader:
    """One file while it is read."""

    def __init__(self, path: Path, size: int):
        self.path = path
        if size > LARGEST_FILE:
            self.fail("the file", f"is larger than the {LARGEST_FILE >> 20} MiB allowed")
        try:
            data = path.read_bytes()
        except OSError as error:
            raise BadInput(f"{path}: {error.strerror or error}") from error
        self.binary = None
        text = self._chunks(data) if data[:4] == b"glTF" else data
        if len(text) > LARGEST_TREE:
            self.fail("its JSON", f"is larger than the {LARGEST_TREE >> 20} MiB allowed")
        try:
            self.tree = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise BadInput(f"{path}: not a glTF file: {error}") from error
        if not isinstance(self.tree, dict):
            self.fail("its JSON", f"is {told(self.tree)}; it must be an object")
        version = self.part(self.tree, "asset", "the file").get("version")
        if not isinstance(version, str) or not version.startswith("2."):
            self.fail("asset", f"says version {told(version)}; 2.0 can be read")
        for name in self.list_of("extensionsRequired"):
            if name not in UNDERSTOOD:
                self.fail("extensionsRequired", f"names {told(name)}; understood are {', '.join(sorted(UNDERSTOOD))}")
        self.buffers: dict[int, memoryview] = {}
        self.read: dict[int, np.ndarray] = {}
        self.floats: dict[int, np.ndarray] = {}
        self.taken = {"zeros": 0, "vertices": 0, "triangles": 0}

    def fail(self, item: str, what: str):
        raise BadInput(f"{self.path}: {item} {what}")

    def take(self, what: str, count: int, most: int, item: str) -> None:
        """Counts what a file asks for in all, so that many small numbers make no large one."""
        self.taken[what] += count
        if self.taken[what] > most:
            self.fail(item, f"brings the {what} that the file asks for above the {most} allowed")

    # ---- JSON -------------------------------------------------------------------------------------------------------
    def part(self, table: dict, key: str, item: str) -> dict:
        value = table.get(key, {})
        if not isinstance(value, dict):
            self.fail(item, f"has a {key} that is {told(value)}; it must be an object")
        return value

    def list_of(self, key: str, table: dict | None = None, item: str = "the file") -> list:
        value = (self.tree if table is None else table).get(key, [])
        if not isinstance(value, list):
            self.fail(item, f"has {key} that are {told(value)}; they must be a list")
        return value

    def item(self, group: str, index, item: str) -> dict:
        """An entry of one of the file's lists, by its number."""
        values = self.list_of(group)
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < len(values):
            self.fail(item, f"names {group}[{told(index)}]; there are {len(values)}, from 0")
        if not isinstance(values[index], dict):
            self.fail(f"{group}[{index}]", f"is {told(values[index])}; it must be an object")
        return values[index]

    def number(self, table: dict, key: str, default, low, high, item: str):
        value = table.get(key, default)
        if not _is_number(value) or not low <= value <= high:
            self.fail(item, f"has a {key} of {told(value)}; it must be {low:g} to {high:g}")
        return value

    def count(self, table: dict, key: str, default: int | None, item: str, most: int = LARGEST_FILE) -> int:
        value = table.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
            self.fail(item, f"has a {key} of {told(value)}; it must be a whole number from 0 to {most}")
        return value

    def numbers(self, table: dict, key: str, default: tuple, item: str, low=-1e18, high=1e18) -> tuple[float, ...]:
        value = table.get(key, default)
        if not isinstance(value, (list, tuple)) or len(value) != len(default):
            self.fail(item, f"has a {key} that is {told(value)}; it must be {len(default)} numbers")
        if not all(_is_number(v) and low <= v <= high for v in value):
            self.fail(item, f"has a {key} of {told(value)}; each must be {low:g} to {high:g}")
        return tuple(float(v) for v in value)

    # ---- bytes ------------------------------------------------------------------------------------------------------
    def _chunks(self, data: bytes) -> bytes:
        """The JSON of a .glb; its binary chunk is kept."""
        if len(data) < 20:
            self.fail("the file", "ends within its header")
        version, length = struct.unpack("<II", data[4:12])
        if version != 2 or length > len(data):
            self.fail("its header", f"says version {version} and {length} bytes; there are {len(data)}")
        text, at = None, 12
        while at + 8 <= length:
            size, kind = struct.unpack("<II", data[at : at + 8])
            if at + 8 + size > length:
                self.fail(f"its chunk at byte {at}", f"says {size} bytes; {length - at - 8} are left")
            chunk = memoryview(data)[at + 8 : at + 8 + size]
            if kind == 0x4E4F534A and text is None:
                text = bytes(chunk)
            elif kind == 0x004E4942 and self.binary is None:
                self.binary = chunk
            at += 8 + size + (-size % 4)
        if text is None:
            self.fail("the file", "has no chunk of JSON")
        return text

    def content(self, uri, item: str) -> bytes:
        """The bytes behind a data: URI or a file in this file's folder."""
        if not isinstance(uri, str):
            self.fail(item, f"has a uri that is {told(uri)}; it must be a text")
        if uri[:5].lower() == "data:":
            head, comma, body = uri.partition(",")
            try:
                assert comma and head.lower().endswith(";base64")
                return base64.b64decode(urllib.parse.unquote(body), validate=True)
            except (AssertionError, binascii.Error, ValueError) as error:
                raise BadInput(f"{self.path}: {item} has a data: URI that is not base64") from error
        name = urllib.parse.unquote(uri)
        if urllib.parse.urlparse(uri).scheme or "\0" in name or "\\" in name:
            self.fail(item, f"has the uri {told(uri)}; a file in the same folder or data: is allowed")
        folder = self.path.parent.resolve()
        try:
            target = (folder / name).resolve()
            if not target.is_relative_to(folder) or not target.is_file():
                self.fail(item, f"has the uri {told(uri)}; there is no such file in the folder of this one")
            if target.stat().st_size > LARGEST_FILE:
                self.fail(item, f"has the uri {told(uri)}, which is larger than the {LARGEST_FILE >> 20} MiB allowed")
            return target.read_bytes()
        except (OSError, ValueError) as error:
            raise BadInput(f"{self.path}: {item} has the uri {told(uri)}, which cannot be read: {error}") from error

    def buffer(self, index, item: str) -> memoryview:
        entry = self.item("buffers", index, item)
        if index not in self.buffers:
            name = f"buffers[{index}]"
            length = self.count(entry, "byteLength", None, name)
            if "uri" in entry:
                data = memoryview(self.content(entry["uri"], name))
            elif self.binary is not None and index == 0:
                data = self.binary
            else:
                self.fail(name, "has no uri, and the file has no binary chunk for it")
            if len(data) < length:
                self.fail(name, f"says {length} bytes; there are {len(data)}")
            self.buffers[index] = data[:length]
        return self.buffers[index]

    def view(self, index, item: str) -> tuple[memoryview, int]:
        """The bytes of a buffer view and its stride, 0 where items follow one another."""
        entry, name = self.item("bufferViews", index, item), f"bufferViews[{index}]"
        data = self.buffer(entry.get("buffer"), name)
        start, length = self.count(entry, "byteOffset", 0, name), self.count(entry, "byteLength", None, name)
        if start + length > len(data):
            self.fail(name, f"goes from byte {start} to {start + length}; its buffer has {len(data)}")
        return data[start : start + length], self.count(entry, "byteStride", 0, name, 252)

    def array(self, table: dict, count: int, kind: str, width: int, item: str) -> np.ndarray:
        """(count, width) as it stands in the buffer view that a table names."""
        data, stride = self.view(table.get("bufferView"), item)
        dtype, offset = np.dtype(kind), self.count(table, "byteOffset", 0, item)
        stride = stride or dtype.itemsize * width
        if stride < dtype.itemsize * width:
            self.fail(item, f"has items of {dtype.itemsize * width} bytes in a view with a byteStride of {stride}")
        if count and offset + (count - 1) * stride + dtype.itemsize * width > len(data):
            self.fail(item, f"has {count} items from byte {offset}; its view has {len(data)} bytes")
        return (
            np.ndarray((count, width), dtype, data, offset, (stride, dtype.itemsize))
            if count
            else np.zeros((0, width), dtype)
        )

    def accessor(self, index, kinds: tuple[str, ...], item: str) -> np.ndarray:
        """(count, width) of an accessor of one of the types: whole numbers as they are, but float32 where they are
        normalised; checked to be finite."""
        entry, name = self.item("accessors", index, item), f"accessors[{index}]"
        if entry.get("type") not in kinds:
            self.fail(item, f"needs {' or '.join(kinds)}; {name} is {told(entry.get('type'))}")
        if index in self.read:
            return self.read[index]
        width, kind = WIDTHS[entry["type"]], COMPONENTS.get(entry.get("componentType"))
        if kind is None:
            self.fail(name, f"has the componentType {told(entry.get('componentType'))}; allowed are {list(COMPONENTS)}")
        count = self.count(entry, "count", None, name, LARGEST_COUNT)
        if "bufferView" in entry:
            values = self.array(entry, count, kind, width, name)
        else:
            self.take("zeros", count, LARGEST_ZEROS, name)
            values = np.zeros((count, width), kind)
        if "sparse" in entry:
            values = self._with_sparse(values, self.part(entry, "sparse", name), kind, f"{name}.sparse")
        if entry.get("normalized") is True and kind != "<f4":
            values = np.maximum(values / np.float32(np.iinfo(kind).max), np.float32(-1)).astype("f4")
        if kind == "<f4" and not np.isfinite(values).all():
            wrong = np.flatnonzero(~np.isfinite(values).all(1))[0]
            self.fail(name, f"holds {values[wrong].tolist()} as item {wrong}; numbers must be finite")
        self.read[index] = values
        return values

    def real(self, index, kind: str, item: str) -> np.ndarray:
        """An accessor's items as float32, shared by all that name it."""
        values = self.accessor(index, (kind,), item)
        if index not in self.floats:
            self.floats[index] = values.astype("f4", copy=False)
        return self.floats[index]

    def _with_sparse(self, values: np.ndarray, sparse: dict, kind: str, name: str) -> np.ndarray:
        count = self.count(sparse, "count", None, name, len(values))
        places, replaced = self.part(sparse, "indices", name), self.part(sparse, "values", name)
        index_kind = COMPONENTS.get(places.get("componentType"))
        if index_kind not in ("<u1", "<u2", "<u4"):
            self.fail(name, f"has indices of componentType {told(places.get('componentType'))}")
        rows = self.array(places, count, index_kind, 1, f"{name}.indices")[:, 0]
        if count and rows.max() >= len(values):
            self.fail(name, f"replaces item {rows.max()}; there are {len(values)}, from 0")
        values = values.copy()
        values[rows] = self.array(replaced, count, kind, values.shape[1], f"{name}.values")
        return values

    # ---- what is drawn ---------------------------------------------------------------------------------------------
    def model(self) -> Model:
        materials = [self.material(i) for i in range(len(self.list_of("materials")))]
        pictures = self.pictures()
        for index, material in enumerate(materials):
            for row in (material.color_picture, material.surface_picture, material.normal_picture,
                        material.emission_picture):  # fmt: skip
                if row >= len(pictures):
                    self.fail(f"materials[{index}]", f"names textures[{row}]; there are {len(pictures)}, from 0")
        placed, cameras, lights = self.nodes()
        used = {mesh for mesh, _ in placed}
        meshes = [self.mesh(i, materials) if i in used else [] for i in range(len(self.list_of("meshes")))]
        drawn = sum(len(part.faces) for mesh, _ in placed for part in meshes[mesh])
        if drawn == 0:
            self.fail("its scene", "holds no triangle")
        if drawn > LARGEST_TRIANGLES:
            self.fail("its scene", f"draws {drawn} triangles; {LARGEST_TRIANGLES} are allowed")
        return Model(meshes, placed, materials, pictures, cameras, lights)

    def nodes(self):
        """(mesh, matrix) of all nodes of the scene, cameras and lights."""
        scenes, nodes = self.list_of("scenes"), self.list_of("nodes")
        if len(nodes) > LARGEST_NODES:
            self.fail("the file", f"has {len(nodes)} nodes; {LARGEST_NODES} are allowed")
        if scenes:
            roots = self.list_of("nodes", self.item("scenes", self.tree.get("scene", 0), "the file"), "its scene")
        else:
            below = {c for n in nodes if isinstance(n, dict) for c in self.list_of("children", n) if isinstance(c, int)}
            roots = [index for index in range(len(nodes)) if index not in below]
        placed, cameras, lights, seen = [], [], [], set()
        left = [(index, np.eye(4), "its scene") for index in reversed(roots)]
        while left:
            index, outer, parent = left.pop()
            node, name = self.item("nodes", index, parent), f"nodes[{index}]"
            if index in seen:
                self.fail(name, "hangs from two nodes or from itself; nodes must be a tree")
            seen.add(index)
            matrix = outer @ self.matrix(node, name)
            if not (np.abs(matrix) < 1e18).all():
                self.fail(name, "lies farther away than 1e18")
            if "mesh" in node:
                self.item("meshes", node["mesh"], name)
                if abs(np.linalg.det(matrix[:3, :3])) > 1e-30:  # flat ones have no volume: authors hide nodes so
                    placed.append((node["mesh"], matrix))
            if "camera" in node:
                cameras += self.camera(node["camera"], matrix, name)
            extension = self.part(self.part(node, "extensions", name), "KHR_lights_punctual", name)
            if "light" in extension:
                lights.append(self.light(extension["light"], matrix, name))
            left += [(child, matrix, name) for child in reversed(self.list_of("children", node, name))]
        return placed, cameras, lights

    def matrix(self, node: dict, name: str) -> np.ndarray:
        if "matrix" in node:
            return np.reshape(self.numbers(node, "matrix", tuple(np.eye(4).ravel()), name), (4, 4)).T
        x, y, z, w = self.numbers(node, "rotation", (0.0, 0.0, 0.0, 1.0), name, -1e6, 1e6)
        size = math.sqrt(x * x + y * y + z * z + w * w)
        if size < 1e-12:
            self.fail(name, "has a rotation of length zero")
        x, y, z, w = x / size, y / size, z / size, w / size
        turn = np.array([
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ])  # fmt: skip
        out = np.eye(4)
        out[:3, :3] = turn * self.numbers(node, "scale", (1.0, 1.0, 1.0), name)
        out[:3, 3] = self.numbers(node, "translation", (0.0, 0.0, 0.0), name)
        return out

    def camera(self, index, matrix: np.ndarray, node: str) -> list[Camera]:
        """The camera in a list; an empty one for an orthographic camera, which has no angle of view."""
        entry, name = self.item("cameras", index, node), f"cameras[{index}]"
        if entry.get("type") != "perspective":
            return []
        lens = self.part(entry, "perspective", name)
        fov = self.number(lens, "yfov", None, 1e-3, 3.13, name)
        aspect = self.number(lens, "aspectRatio", None, 1e-3, 1e3, name) if "aspectRatio" in lens else None
        if abs(np.linalg.det(matrix[:3, :3])) < 1e-30:
            self.fail(node, "holds a camera in a flat space")
        return [Camera(str(entry.get("name", name)), matrix, math.degrees(fov), aspect)]

    def light(self, index, matrix: np.ndarray, node: str) -> Light:
        extension = self.part(self.part(self.tree, "extensions", "the file"), "KHR_lights_punctual", "the file")
        lights = self.list_of("lights", extension)
        if not isinstance(index, int) or not 0 <= index < len(lights) or not isinstance(lights[index], dict):
            self.fail(node, f"names light {told(index)}; there are {len(lights)}, from 0")
        entry, name = lights[index], f"lights[{index}]"
        kind = entry.get("type")
        if kind not in ("directional", "point", "spot"):
            self.fail(name, f"has the type {told(kind)}; allowed are directional, point, spot")
        strength = self.number(entry, "intensity", 1.0, 0.0, 1e12, name)
        power = tuple(strength * c for c in self.numbers(entry, "color", (1.0, 1.0, 1.0), name, 0.0, 1e6))
        cone = self.part(entry, "spot", name)
        inner = self.number(cone, "innerConeAngle", 0.0, 0.0, math.pi / 2, name)
        outer = self.number(cone, "outerConeAngle", math.pi / 4, 0.0, math.pi / 2 + 1e-6, name)
        if kind == "spot" and not inner < outer:
            self.fail(name, f"has an innerConeAngle of {inner}; it must be below its outerConeAngle, {outer}")
        return Light(str(entry.get("name", name)), kind, matrix, power, inner, outer)

    def mesh(self, index: int, materials: list[Material]) -> list[Part]:
        parts = []
        for number, primitive in enumerate(self.list_of("primitives", self.item("meshes", index, "a node"))):
            name = f"meshes[{index}].primitives[{number}]"
            if not isinstance(primitive, dict):
                self.fail(name, f"is {told(primitive)}; it must be an object")
            if "KHR_draco_mesh_compression" in self.part(primitive, "extensions", name):
                self.fail(name, "is compressed by KHR_draco_mesh_compression, which cannot be read")
            mode = self.count(primitive, "mode", 4, name, 6)
            if mode >= 4 and "POSITION" in self.part(primitive, "attributes", name):  # not points and lines
                parts.append(self.triangles(primitive, mode, name, materials))
        return [part for part in parts if len(part.faces)]

    def triangles(self, primitive: dict, mode: int, name: str, materials: list[Material]) -> Part:
        attributes = primitive["attributes"]
        vertices = self.real(attributes["POSITION"], "VEC3", name)
        self.take("vertices", len(vertices), LARGEST_VERTICES, name)
        if not (np.abs(vertices) < 1e18).all():
            self.fail(name, "has vertices farther away than 1e18")
        if "indices" in primitive:
            corners = self.accessor(primitive["indices"], ("SCALAR",), name)[:, 0]
            if corners.dtype.kind == "f":
                self.fail(name, "has indices that are no whole numbers")
            self.take("vertices", len(corners), LARGEST_VERTICES, name)
            corners = corners.astype("i8")
            if len(corners) and (corners.max() >= len(vertices) or corners.min() < 0):
                self.fail(name, f"names vertex {corners.max()}; there are {len(vertices)}, from 0")
        else:
            corners = np.arange(len(vertices))
        material = primitive.get("material", -1)
        if material != -1:
            self.item("materials", material, name)
        chosen = materials[material].coordinates if material != -1 else 0
        normals = self.vertex_array(attributes, "NORMAL", "VEC3", len(vertices), name)
        coordinates = self.vertex_array(attributes, f"TEXCOORD_{chosen}", "VEC2", len(vertices), name)
        faces = _faces(corners, mode)
        self.take("triangles", len(faces), LARGEST_TRIANGLES, name)
        return Part(vertices, faces, normals, coordinates, material)

    def vertex_array(self, attributes: dict, key: str, kind: str, count: int, name: str) -> np.ndarray | None:
        if key not in attributes:
            return None
        values = self.real(attributes[key], kind, name)
        if len(values) != count:
            self.fail(name, f"has {len(values)} items of {key} for {count} vertices")
        return values

    # ---- how it looks -----------------------------------------------------------------------------------------------
    def material(self, index: int) -> Material:
        entry, name = self.item("materials", index, "the file"), f"materials[{index}]"
        surface, extra = self.part(entry, "pbrMetallicRoughness", name), self.part(entry, "extensions", name)
        strength = self.number(
            self.part(extra, "KHR_materials_emissive_strength", name), "emissiveStrength", 1.0, 0.0, 1e9, name
        )
        emission = self.numbers(entry, "emissiveFactor", (0.0, 0.0, 0.0), name, 0.0, 1e6)
        refraction = self.number(self.part(extra, "KHR_materials_ior", name), "ior", 1.5, 0.0, 10.0, name)
        if 0 < refraction < 1:
            self.fail(name, f"has an ior of {refraction}; it must be 0, for no refraction, or 1 to 10")
        transmission = self.part(extra, "KHR_materials_transmission", name)
        alpha = entry.get("alphaMode", "OPAQUE")
        if alpha not in ("OPAQUE", "MASK", "BLEND"):
            self.fail(name, f"has the alphaMode {told(alpha)}; allowed are OPAQUE, MASK, BLEND")
        sets: set[int] = set()
        normal = self.part(entry, "normalTexture", name)
        out = Material(
            name=str(entry.get("name", f"material {index}")),
            color=self.numbers(surface, "baseColorFactor", (1.0, 1.0, 1.0, 1.0), name, 0.0, 1.0),
            metallic=float(self.number(surface, "metallicFactor", 1.0, 0.0, 1.0, name)),
            roughness=float(self.number(surface, "roughnessFactor", 1.0, 0.0, 1.0, name)),
            emission=tuple(strength * e for e in emission),
            color_picture=self.texture(surface, "baseColorTexture", name, sets),
            surface_picture=self.texture(surface, "metallicRoughnessTexture", name, sets),
            normal_picture=self.texture(entry, "normalTexture", name, sets),
            emission_picture=self.texture(entry, "emissiveTexture", name, sets),
            normal_scale=float(self.number(normal, "scale", 1.0, -100.0, 100.0, name)),
            alpha=alpha,
            cutoff=float(self.number(entry, "alphaCutoff", 0.5, 0.0, 1e6, name)),
            refraction=float(refraction) or 1e3,
            transmission=float(self.number(transmission, "transmissionFactor", 0.0, 0.0, 1.0, name)),
            coordinates=min(sets, default=0),
        )
        if len(sets) > 1:
            self.fail(name, f"takes its pictures by the coordinates {sorted(sets)}; one set a material can be read")
        return out

    def texture(self, table: dict, key: str, name: str, sets: set[int]) -> int:
        """The row of a texture, -1 for none; notes its set of coordinates."""
        if key not in table:
            return -1
        entry = self.part(table, key, name)
        if "KHR_texture_transform" in self.part(entry, "extensions", name):
            self.fail(name, f"moves its {key} by KHR_texture_transform, which cannot be read")
        sets.add(self.count(entry, "texCoord", 0, name, 7))
        row = entry.get("index")
        self.item("textures", row, f"{name}.{key}")
        return row

    def pictures(self) -> list[Picture]:
        """A Picture a texture; textures of one image share its pixels."""
        images: dict[int, np.ndarray] = {}
        out, total, count = [], 0, len(self.list_of("textures"))
        if count > LARGEST_IMAGES:
            self.fail("the file", f"has {count} textures; {LARGEST_IMAGES} are allowed")
        for index in range(count):
            entry, name = self.item("textures", index, "the file"), f"textures[{index}]"
            webp = self.part(self.part(entry, "extensions", name), "EXT_texture_webp", name)
            source = webp.get("source", entry.get("source"))
            image = self.item("images", source, name)
            if source not in images:
                images[source] = self.pixels(image, f"images[{source}]")
                total += images[source].shape[0] * images[source].shape[1]
                if total > LARGEST_PICTURES:
                    self.fail("its images", f"have more than the {LARGEST_PICTURES} pixels allowed")
            sampler = self.item("samplers", entry["sampler"], name) if "sampler" in entry else {}
            wrap = tuple(WRAPS.get(sampler.get(key, 10497)) for key in ("wrapS", "wrapT"))
            if None in wrap:
                self.fail(name, f"has a sampler with another wrap than {list(WRAPS)}")
            out.append(Picture(images[source], wrap, sampler.get("magFilter", 9729) != 9728))
        return out

    def pixels(self, image: dict, name: str) -> np.ndarray:
        if "bufferView" in image:
            data = bytes(self.view(image["bufferView"], name)[0])
        else:
            data = self.content(image.get("uri"), name)
        if not data.startswith((b"\x89PNG", b"\xff\xd8\xff", b"RIFF")):
            self.fail(name, "is neither PNG nor JPEG nor WebP")
        pixels = read_bytes(Path(f"{self.path}: {name}"), LARGEST_PICTURE, data)
        pixels.flags.writeable = False
        return pixels


def _faces(corners: np.ndarray, mode: int) -> np.ndarray:
    """Faces (m, 3) int32 of corners that are triangles (mode 4), a strip (5) or a fan (6)."""
    if mode == 4:
        return corners[: len(corners) // 3 * 3].reshape(-1, 3).astype("i4")
    if len(corners) < 3:
        return np.zeros((0, 3), "i4")
    k = np.arange(len(corners) - 2)
    rows = [np.zeros_like(k), k + 1, k + 2] if mode == 6 else [k, k + 1 + k % 2, k + 2 - k % 2]
    return corners[np.stack(rows, 1)].astype("i4")
