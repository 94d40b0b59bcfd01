"""The nodes of a glTF file: the placement of meshes, cameras and lights, and the triangles of the meshes."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from renderer.formats.gltf import materials
from renderer.formats.gltf.animation import animations_of
from renderer.formats.gltf.container import Container
from renderer.formats.gltf.model import Camera, Light, Material, MeshPrimitive, Model, Node, Rig
from renderer.formats.gltf.rig import in_pose, local_matrix
from renderer.formats.gltf.skins import Skin, check_joints, deformation_of, skin_of
from renderer.plain import format_value

MAX_TRIANGLES = 1 << 25  # that all nodes draw, and that all meshes hold
MAX_VERTICES = 1 << 27  # that all parts of meshes name, many of them the same
MAX_NODES = 1 << 17  # 20 us each
MAX_JOINTS = 1 << 20  # that all nodes with skins have


def model_of(file: Container) -> Model:
    """The Model of the file's default scene."""
    read = [materials.material(file, i) for i in range(len(file.list_of("materials")))]
    textures = materials.textures(file)
    for index, material in enumerate(read):
        for slot in material.textures.values():
            if slot.texture >= len(textures):
                file.fail(f"materials[{index}]", f"names textures[{slot.texture}]; there are {len(textures)}, from 0")
    ignored: Counter[str] = Counter()
    nodes = _nodes(file)
    targets = {node.number: len(node.weights) for node in nodes}
    animations = animations_of(file, targets.get, lambda name: ignored.update([name]))
    weighted = {c.node for animation in animations for c in animation.channels if c.path == "weights"}
    nodes = [replace(n, deforms=bool(n.skin or n.number in weighted or any(n.weights))) for n in nodes]
    used = {node.mesh for node in nodes}
    shared = {node.mesh for node in nodes if not node.deforms}
    count = len(file.list_of("meshes"))
    meshes = [_mesh(file, i, read) if i in used else [] for i in range(count)]
    _check_deformations(file, nodes, meshes)
    rig = Rig(file.path, tuple(nodes), meshes, [i in shared for i in range(count)])
    model = Model([], [], read, textures, ignored=dict(ignored), animations=animations, rig=rig)
    model = in_pose(model, {})
    drawn = sum(len(part.faces) for mesh, _ in model.mesh_nodes for part in model.meshes[mesh])
    if drawn == 0:
        file.fail("its scene", "has no triangle")
    if drawn > MAX_TRIANGLES:
        file.fail("its scene", f"draws {drawn} triangles; {MAX_TRIANGLES} are allowed")
    return model


def _check_deformations(file: Container, nodes: list[Node], meshes: list[list[MeshPrimitive]]) -> None:
    """InputError where a node cannot deform its mesh, or where all of them together hold too many vertices."""
    for node in nodes:
        for part in meshes[node.mesh] if node.deforms else []:
            file.take("vertices", len(part.vertices), MAX_VERTICES, f"nodes[{node.number}]")
            if node.skin:
                check_joints(file, part.deformation, node.skin, f"nodes[{node.number}].mesh")


def _rest_weights(file: Container, mesh: int) -> tuple[float, ...]:
    """The default weights of the morph targets of a mesh, as many as each of its primitives has."""
    name, counts = f"meshes[{mesh}]", set()
    entry = file.item("meshes", mesh, "a node")
    for number, primitive in enumerate(file.list_of("primitives", entry, name)):
        table = primitive if isinstance(primitive, dict) else {}
        counts.add(len(file.list_of("targets", table, f"{name}.primitives[{number}]")))
    if len(counts) > 1:
        file.fail(name, f"has primitives of {' and '.join(map(str, sorted(counts)))} morph targets; all need as many")
    return file.numbers(entry, "weights", (0.0,) * sum(counts), name)


def _nodes(file: Container) -> list[Node]:
    """The nodes of the scene, parents first."""
    scenes, nodes = file.list_of("scenes"), file.list_of("nodes")
    if len(nodes) > MAX_NODES:
        file.fail("the file", f"has {len(nodes)} nodes; {MAX_NODES} are allowed")
    if scenes:
        roots = file.list_of("nodes", file.item("scenes", file.tree.get("scene", 0), "the file"), "its scene")
    else:
        below = {c for n in nodes if isinstance(n, dict) for c in file.list_of("children", n) if isinstance(c, int)}
        roots = [index for index in range(len(nodes)) if index not in below]
    out: list[Node] = []
    seen: set[int] = set()
    meshes, skins = cache(partial(_rest_weights, file)), cache(partial(skin_of, file))
    left = [(index, -1, "its scene") for index in reversed(roots)]
    while left:
        index, parent, parent_name = left.pop()
        entry, name = file.item("nodes", index, parent_name), f"nodes[{index}]"
        if index in seen:
            file.fail(name, "has two parents or is its own ancestor; nodes must be a tree")
        seen.add(index)
        left += [(child, len(out), name) for child in reversed(file.list_of("children", entry, name))]
        out.append(_node(file, entry, index, parent, meshes, skins))
    for skin in (node.skin for node in out if node.skin):
        file.take("joints", len(skin.joints), MAX_JOINTS, skin.name)
        for joint in skin.joints:
            if joint not in seen:
                file.fail(skin.name, f"names nodes[{joint}], which is not in the scene")
    return out


def _node(
    file: Container,
    entry: dict,
    index: int,
    parent: int,
    rest_weights: Callable[[int], tuple[float, ...]],
    skins: Callable[[int], Skin],
) -> Node:
    """A node; the callables give the default weights of a mesh and the skin of an index."""
    name = f"nodes[{index}]"
    translation = file.numbers(entry, "translation", (0.0, 0.0, 0.0), name)
    rotation = file.numbers(entry, "rotation", (0.0, 0.0, 0.0, 1.0), name, -1e6, 1e6)
    scale = file.numbers(entry, "scale", (1.0, 1.0, 1.0), name)
    if "matrix" in entry:
        matrix = np.reshape(file.numbers(entry, "matrix", tuple(np.eye(4).ravel()), name), (4, 4)).T
    else:
        if sum(x * x for x in rotation) < 1e-24:
            file.fail(name, "has a rotation of length zero")
        matrix = local_matrix(translation, rotation, scale)
    mesh, skin, weights = -1, None, tuple[float, ...]()
    if "mesh" in entry:
        file.item("meshes", entry["mesh"], name)
        mesh = entry["mesh"]
        weights = file.numbers(entry, "weights", rest_weights(mesh), name)
    if "mesh" in entry and "skin" in entry:
        file.item("skins", entry["skin"], name)
        skin = skins(entry["skin"])
    camera = _camera(file, entry["camera"], name) if "camera" in entry else None
    extension = file.part(file.part(entry, "extensions", name), "KHR_lights_punctual", name)
    light = _light(file, extension["light"], name) if "light" in extension else None
    return Node(index, parent, matrix, translation, rotation, scale, mesh, skin, weights, False, camera, light)


def _camera(file: Container, index: Any, node: str) -> Camera:
    """The camera of a node."""
    entry, name = file.item("cameras", index, node), f"cameras[{index}]"
    kind = entry.get("type")
    if kind not in ("perspective", "orthographic"):
        file.fail(name, f"has the type {format_value(kind)}; allowed are perspective, orthographic")
    lens, title = file.part(entry, kind, name), str(entry.get("name", name))
    if kind == "orthographic":
        halves = [file.number(lens, key, None, -1e15, 1e15, name) for key in ("xmag", "ymag")]
        half_width, half_height = (abs(half) for half in halves)
        if min(half_width, half_height) < 1e-15 or not 1e-3 <= half_width / half_height <= 1e3:
            file.fail(name, f"has xmag {halves[0]:g} and ymag {halves[1]:g}; none may be 0, or 1000 times the other")
        return Camera(title, np.eye(4), None, half_width / half_height, 2 * half_height)
    fov = file.number(lens, "yfov", None, 1e-3, 3.13, name)
    aspect = file.number(lens, "aspectRatio", None, 1e-3, 1e3, name) if "aspectRatio" in lens else None
    return Camera(title, np.eye(4), math.degrees(fov), aspect)


def _light(file: Container, index: Any, node: str) -> Light:
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
    return Light(str(entry.get("name", name)), kind, np.eye(4), power, inner, outer)


def _mesh(file: Container, index: int, materials: list[Material]) -> list[MeshPrimitive]:
    parts = []
    for number, primitive in enumerate(file.list_of("primitives", file.item("meshes", index, "a node"))):
        name = f"meshes[{index}].primitives[{number}]"
        if not isinstance(primitive, dict):
            file.fail(name, f"is {format_value(primitive)}; it must be an object")
        if "KHR_draco_mesh_compression" in file.part(primitive, "extensions", name):
            file.fail(name, "is compressed by KHR_draco_mesh_compression, which cannot be read")
        mode = file.count(primitive, "mode", 4, name, 6)
        if mode >= 4 and "POSITION" in file.part(primitive, "attributes", name):  # not points and lines
            parts.append(_triangles(file, primitive, mode, name, materials))
    return [part for part in parts if len(part.faces)]


def _triangles(file: Container, primitive: dict, mode: int, name: str, materials: list[Material]) -> MeshPrimitive:
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
    colors = _vertex_array(file, attributes, "COLOR_0", ("VEC4", "VEC3"), len(vertices), name)
    if colors is not None and colors.shape[1] == 3:
        colors = np.concatenate([colors, np.ones((len(colors), 1), "f4")], 1)
    deformation = deformation_of(file, primitive, len(vertices), name)
    return MeshPrimitive(vertices, faces, normals, texcoords, material, tangents, colors, deformation)


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
