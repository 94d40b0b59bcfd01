"""The nodes of a glTF file: the placement of meshes, cameras and lights, and the triangles of the meshes."""

import math
from typing import Any

import numpy as np

from renderer.formats.gltf import materials
from renderer.formats.gltf.container import Container
from renderer.formats.gltf.model import Camera, Light, Material, MeshPrimitive, Model
from renderer.formats.gltf.skins import Pose, pose_of, posed
from renderer.plain import format_value

MAX_TRIANGLES = 1 << 25  # that all nodes draw, and that all meshes hold
MAX_VERTICES = 1 << 27  # that all parts of meshes name, many of them the same
MAX_NODES = 1 << 17  # 20 us each


def model_of(file: Container) -> Model:
    """The Model of the file's default scene."""
    read = [materials.material(file, i) for i in range(len(file.list_of("materials")))]
    textures = materials.textures(file)
    for index, material in enumerate(read):
        for slot in material.textures.values():
            if slot.texture >= len(textures):
                file.fail(f"materials[{index}]", f"names textures[{slot.texture}]; there are {len(textures)}, from 0")
    mesh_nodes, cameras, lights, skinned, worlds = _nodes(file)
    used = {mesh for mesh, _ in mesh_nodes}
    meshes = [_mesh(file, i, read) if i in used else [] for i in range(len(file.list_of("meshes")))]
    for mesh, skin, name in skinned:  # each of them has a mesh of its own, which stands in the world
        mesh_nodes.append((len(meshes), np.eye(4)))
        meshes.append(_mesh(file, mesh, read, pose_of(file, skin, worlds, name)))
    drawn = sum(len(part.faces) for mesh, _ in mesh_nodes for part in meshes[mesh])
    if drawn == 0:
        file.fail("its scene", "has no triangle")
    if drawn > MAX_TRIANGLES:
        file.fail("its scene", f"draws {drawn} triangles; {MAX_TRIANGLES} are allowed")
    return Model(meshes, mesh_nodes, read, textures, cameras, lights)


def _nodes(file: Container) -> Any:
    """Meshes (mesh, matrix), cameras, lights, skinned meshes (mesh, skin, node's name), and all matrices by node."""
    scenes, nodes = file.list_of("scenes"), file.list_of("nodes")
    if len(nodes) > MAX_NODES:
        file.fail("the file", f"has {len(nodes)} nodes; {MAX_NODES} are allowed")
    if scenes:
        roots = file.list_of("nodes", file.item("scenes", file.tree.get("scene", 0), "the file"), "its scene")
    else:
        below = {c for n in nodes if isinstance(n, dict) for c in file.list_of("children", n) if isinstance(c, int)}
        roots = [index for index in range(len(nodes)) if index not in below]
    mesh_nodes, cameras, lights, skinned = [], [], [], []
    worlds: dict[int, np.ndarray] = {}
    left = [(index, np.eye(4), "its scene") for index in reversed(roots)]
    while left:
        index, outer, parent = left.pop()
        node, name = file.item("nodes", index, parent), f"nodes[{index}]"
        if index in worlds:
            file.fail(name, "has two parents or is its own ancestor; nodes must be a tree")
        worlds[index] = matrix = outer @ _matrix(file, node, name)
        if not (np.abs(matrix) < 1e18).all():
            file.fail(name, "has a position beyond 1e18")
        if "mesh" in node:
            file.item("meshes", node["mesh"], name)
            if "skin" in node:
                skinned.append((node["mesh"], node["skin"], name))
            elif abs(np.linalg.det(matrix[:3, :3])) > 1e-30:  # authors hide nodes by a scale of 0
                mesh_nodes.append((node["mesh"], matrix))
        if "camera" in node:
            cameras += _camera(file, node["camera"], matrix, name)
        extension = file.part(file.part(node, "extensions", name), "KHR_lights_punctual", name)
        if "light" in extension:
            lights.append(_light(file, extension["light"], matrix, name))
        left += [(child, matrix, name) for child in reversed(file.list_of("children", node, name))]
    return mesh_nodes, cameras, lights, skinned, worlds


def _matrix(file: Container, node: dict, name: str) -> np.ndarray:
    if "matrix" in node:
        return np.reshape(file.numbers(node, "matrix", tuple(np.eye(4).ravel()), name), (4, 4)).T
    x, y, z, w = file.numbers(node, "rotation", (0.0, 0.0, 0.0, 1.0), name, -1e6, 1e6)
    size = math.sqrt(x * x + y * y + z * z + w * w)
    if size < 1e-12:
        file.fail(name, "has a rotation of length zero")
    x, y, z, w = x / size, y / size, z / size, w / size
    turn = np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ])  # fmt: skip
    out = np.eye(4)
    out[:3, :3] = turn * file.numbers(node, "scale", (1.0, 1.0, 1.0), name)
    out[:3, 3] = file.numbers(node, "translation", (0.0, 0.0, 0.0), name)
    return out


def _camera(file: Container, index: Any, matrix: np.ndarray, node: str) -> list[Camera]:
    """The camera in a list; an empty one for an orthographic camera, which has no angle of view."""
    entry, name = file.item("cameras", index, node), f"cameras[{index}]"
    if entry.get("type") != "perspective":
        return []
    lens = file.part(entry, "perspective", name)
    fov = file.number(lens, "yfov", None, 1e-3, 3.13, name)
    aspect = file.number(lens, "aspectRatio", None, 1e-3, 1e3, name) if "aspectRatio" in lens else None
    if abs(np.linalg.det(matrix[:3, :3])) < 1e-30:
        file.fail(node, "has a camera and a singular matrix")
    return [Camera(str(entry.get("name", name)), matrix, math.degrees(fov), aspect)]


def _light(file: Container, index: Any, matrix: np.ndarray, node: str) -> Light:
    extension = file.part(file.part(file.tree, "extensions", "the file"), "KHR_lights_punctual", "the file")
    entry, name = file.item("lights", index, node, extension), f"lights[{index}]"
    kind = entry.get("type")
    if kind not in ("directional", "point", "spot"):
        file.fail(name, f"has the type {format_value(kind)}; allowed are directional, point, spot")
    strength = file.number(entry, "intensity", 1.0, 0.0, 1e12, name)
    red, green, blue = file.numbers(entry, "color", (1.0, 1.0, 1.0), name, 0.0, 1e6)
    power = strength * red, strength * green, strength * blue
    cone = file.part(entry, "spot", name)
    inner = file.number(cone, "innerConeAngle", 0.0, 0.0, math.pi / 2, name)
    outer = file.number(cone, "outerConeAngle", math.pi / 4, 0.0, math.pi / 2 + 1e-6, name)
    if kind == "spot" and not inner < outer:
        file.fail(name, f"has an innerConeAngle of {inner}; it must be below its outerConeAngle, {outer}")
    return Light(str(entry.get("name", name)), kind, matrix, power, inner, outer)


def _mesh(file: Container, index: int, materials: list[Material], pose: Pose | None = None) -> list[MeshPrimitive]:
    parts = []
    for number, primitive in enumerate(file.list_of("primitives", file.item("meshes", index, "a node"))):
        name = f"meshes[{index}].primitives[{number}]"
        if not isinstance(primitive, dict):
            file.fail(name, f"is {format_value(primitive)}; it must be an object")
        if "KHR_draco_mesh_compression" in file.part(primitive, "extensions", name):
            file.fail(name, "is compressed by KHR_draco_mesh_compression, which cannot be read")
        mode = file.count(primitive, "mode", 4, name, 6)
        if mode >= 4 and "POSITION" in file.part(primitive, "attributes", name):  # not points and lines
            parts.append(_triangles(file, primitive, mode, name, materials, pose))
    return [part for part in parts if len(part.faces)]


def _triangles(
    file: Container, primitive: dict, mode: int, name: str, materials: list[Material], pose: Pose | None
) -> MeshPrimitive:
    attributes = primitive["attributes"]
    vertices = file.real(attributes["POSITION"], ("VEC3",), name)
    file.take("vertices", len(vertices), MAX_VERTICES, name)
    if not (np.abs(vertices) < 1e18).all():
        file.fail(name, "has vertices beyond 1e18")
    if "indices" in primitive:
        corners = file.accessor(primitive["indices"], ("SCALAR",), name)[:, 0]
        if corners.dtype.kind == "f":
            file.fail(name, "has indices that are not integers")
        file.take("vertices", len(corners), MAX_VERTICES, name)
        corners = corners.astype("i8")
        if len(corners) and (corners.max() >= len(vertices) or corners.min() < 0):
            file.fail(name, f"names vertex {corners.max()}; there are {len(vertices)}, from 0")
    else:
        corners = np.arange(len(vertices))
    material = primitive.get("material", -1)
    if material != -1:
        file.item("materials", material, name)
    slots = materials[material].textures.values() if material != -1 else ()
    sets = {0} | {slot.texcoord_set for slot in slots}
    normals = _vertex_array(file, attributes, "NORMAL", ("VEC3",), len(vertices), name)
    texcoords = tuple(
        _vertex_array(file, attributes, f"TEXCOORD_{number}", ("VEC2",), len(vertices), name)
        if number in sets
        else None
        for number in range(max(sets) + 1)
    )
    faces = _faces(corners, mode)
    file.take("triangles", len(faces), MAX_TRIANGLES, name)
    tangents = _vertex_array(file, attributes, "TANGENT", ("VEC4",), len(vertices), name)
    if pose:
        vertices, normals, tangents = posed(file, pose, attributes, vertices, [normals, tangents], name)
    colors = _vertex_array(file, attributes, "COLOR_0", ("VEC4", "VEC3"), len(vertices), name)
    if colors is not None and colors.shape[1] == 3:
        colors = np.concatenate([colors, np.ones((len(colors), 1), "f4")], 1)
    return MeshPrimitive(vertices, faces, normals, texcoords, material, tangents, colors)


def _vertex_array(
    file: Container, attributes: dict, key: str, kinds: tuple[str, ...], count: int, name: str
) -> np.ndarray | None:
    if key not in attributes:
        return None
    values = file.real(attributes[key], kinds, name)
    if len(values) != count:
        file.fail(name, f"has {len(values)} items of {key} for {count} vertices")
    return values


def _faces(corners: np.ndarray, mode: int) -> np.ndarray:
    """Faces (m, 3) int32 of corners that are triangles (mode 4), a strip (5) or a fan (6)."""
    if mode == 4:
        return corners[: len(corners) // 3 * 3].reshape(-1, 3).astype("i4")
    if len(corners) < 3:
        return np.zeros((0, 3), "i4")
    k = np.arange(len(corners) - 2)
    rows = [np.zeros_like(k), k + 1, k + 2] if mode == 6 else [k, k + 1 + k % 2, k + 2 - k % 2]
    return corners[np.stack(rows, 1)].astype("i4")
