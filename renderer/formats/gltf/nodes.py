"""Builds the Model of a glTF file's default scene: nodes, meshes, cameras and lights.

build_model() takes the opened file (container.py) and returns NumPy arrays and records (model.py), posed at rest. The
file may come from a stranger: indices, counts and sizes are checked, and an InputError names the item that is wrong.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from renderer.errors import InputError
from renderer.formats.gltf.animation import read_animations
from renderer.formats.gltf.container import Container
from renderer.formats.gltf.draco import decompress
from renderer.formats.gltf.materials import read_materials
from renderer.formats.gltf.model import Camera, Light, Material, MeshPrimitive, Model, Node, Rig
from renderer.formats.gltf.points_and_lines import TRIANGLES_PER_LINE, points_or_lines, with_radii, without_light
from renderer.formats.gltf.rig import in_pose, local_matrix, rotation_rows
from renderer.formats.gltf.skins import Skin, check_joints, read_deformation, read_skin
from renderer.formats.gltf.textures import read_textures
from renderer.plain import Json, format_ignored, format_value

MAX_TRIANGLES = 1 << 25  # drawn by all nodes, and stored in all meshes
MAX_VERTICES = 1 << 27  # vertices of all primitives, counting shared accessors each time
MAX_NODES = 1 << 17  # nodes of a file; reading one takes 20 us
MAX_INSTANCES = 1 << 17  # instances of all nodes
INSTANCING, VARIANTS = "EXT_mesh_gpu_instancing", "KHR_materials_variants"
MAX_JOINTS = 1 << 20  # joints of all nodes with skins


def build_model(file: Container, variant: str = "") -> Model:
    """Builds the Model of the file's default scene at rest; `variant` names a material variant, "" for none.

    In order: textures and materials, without textures whose files are missing; nodes; animations; which nodes deform
    their meshes; the meshes that nodes use; then the Rig (nodes and undeformed meshes), whose rest pose is the Model.
    """
    variants = _variants(file)
    if variant and variant not in variants:
        known = f"there are {', '.join(variants)}" if variants else "it has none"
        raise InputError(f"{file.path}: has no variant {format_value(variant)}; {known}")
    chosen = variants.index(variant) if variant else -1
    missing = set[int]()
    textures = read_textures(file, missing)
    read = [_without(material, missing) for material in read_materials(file, textures)]
    nodes = _nodes(file)
    targets = {node.number: len(node.weights) for node in nodes}
    animations = read_animations(file, targets)
    weighted = {c.node for animation in animations for c in animation.channels if c.path == "weights"}
    nodes = [replace(n, deforms=bool(n.skin or n.number in weighted or any(n.weights))) for n in nodes]
    used = {node.mesh for node in nodes if node.mesh >= 0}
    decompress(file, used)
    shared = {node.mesh for node in nodes if not node.deforms}
    count = len(file.list_at("meshes"))
    meshes = [_mesh(file, i, read, chosen) if i in used else [] for i in range(count)]
    meshes, read = without_light(meshes, read, file.ignored)
    _check_deformations(file, nodes, meshes)
    # EXT_mesh_gpu_instancing does not define instances of skinned meshes.
    file.ignored[f"{INSTANCING} of skinned nodes"] += sum(n.skin is not None and n.instances is not None for n in nodes)
    ignored = dict(+file.ignored)  # + leaves out what was counted 0 times
    rig = Rig(file.path, tuple(nodes), meshes, [i in shared for i in range(count)])
    generator = str(file.object_at(file.tree, "asset", "the file").get("generator", ""))
    model = Model(
        [], [], read, textures, ignored=ignored, animations=animations, rig=rig, variants=variants,
        generator=generator,
    )  # fmt: skip
    model = in_pose(model, {})
    _check_triangles(file, model)
    return with_radii(model)


def _check_triangles(file: Container, model: Model) -> None:
    """Raises InputError for a scene that draws nothing, or more than MAX_TRIANGLES triangles."""
    drawn = sum(_triangle_count(part) for mesh, _ in model.mesh_nodes for part in model.meshes[mesh])
    if drawn == 0:
        others = f"; ignored: {', '.join(format_ignored(model.ignored))}" if model.ignored else ""
        file.fail("its scene", f"has no triangle, line or point{others}")
    if drawn > MAX_TRIANGLES:
        file.fail("its scene", f"draws {drawn} triangles; {MAX_TRIANGLES} are allowed")


def _without(material: Material, missing: set[int]) -> Material:
    """Removes the texture slots whose image file is missing, as other viewers do."""
    kept = {word: slot for word, slot in material.textures.items() if slot.texture not in missing}
    return material if len(kept) == len(material.textures) else replace(material, textures=kept)


def _triangle_count(part: MeshPrimitive) -> int:
    """Counts the triangles of a primitive; its points and lines count as the triangles of their tubes and spheres."""
    return len(part.faces) * (TRIANGLES_PER_LINE if part.faces.shape[1] == 2 else 1)


def _check_deformations(file: Container, nodes: list[Node], meshes: list[list[MeshPrimitive]]) -> None:
    """Raises InputError if a node cannot deform its mesh, or all deformed meshes have too many vertices."""
    for node in nodes:
        for part in meshes[node.mesh] if node.deforms else []:
            # counted again, as each such node has deformed vertices of its mesh
            file.take("vertices", len(part.vertices), MAX_VERTICES, f"nodes[{node.number}]")
            if node.skin:
                check_joints(file, part.deformation, node.skin, f"nodes[{node.number}].mesh")


def _rest_weights(file: Container, mesh: int) -> tuple[float, ...]:
    """Reads the default morph weights of a mesh; their number must match the targets of every primitive."""
    name, entry = f"meshes[{mesh}]", file.item("meshes", mesh, "a node")
    counts = {len(file.list_at("targets", table, part)) for part, table in file.objects("primitives", entry, name)}
    if len(counts) > 1:
        file.fail(name, f"has primitives of {' and '.join(map(str, sorted(counts)))} morph targets; all need as many")
    return file.numbers(entry, "weights", (0.0,) * sum(counts), name)


def _nodes(file: Container) -> list[Node]:
    """Reads the nodes of the default scene, parents first."""
    scenes, nodes = file.list_at("scenes"), file.list_at("nodes", most=MAX_NODES)
    if scenes:
        roots = file.list_at("nodes", file.item("scenes", file.tree.get("scene", 0), "the file"), "its scene")
    else:
        below = {c for n in nodes if isinstance(n, dict) for c in file.list_at("children", n) if isinstance(c, int)}
        roots = [index for index in range(len(nodes)) if index not in below]
    out: list[Node] = []
    seen: set[int] = set()
    meshes, skins = cache(partial(_rest_weights, file)), cache(partial(read_skin, file))
    # Nodes to visit, depth first: index, index of the parent in `out` (-1 for a root), its name, and visibility.
    left = [(index, -1, "its scene", True) for index in reversed(roots)]
    while left := left or _roots_of_joints(file, out, seen):  # after the scene, the trees of joints outside of it
        index, parent, parent_name, visible = left.pop()
        entry, name = file.item("nodes", index, parent_name), f"nodes[{index}]"
        if index in seen:
            file.fail(name, "has two parents or is its own ancestor; nodes must be a tree")
        seen.add(index)
        visible = visible and file.extension(entry, "KHR_node_visibility", name).get("visible") is not False
        children = reversed(file.list_at("children", entry, name))
        left += [(child, len(out), name, visible) for child in children]
        # A node that is not visible stays in the tree: its children and skins depend on its matrix.
        node = _node(file, entry, index, parent, meshes, skins)
        out.append(node if visible else replace(node, mesh=-1, skin=None, weights=(), light=None))
    for skin in (node.skin for node in out if node.skin):
        file.take("joints", len(skin.joints), MAX_JOINTS, skin.name)
    return out


def _roots_of_joints(file: Container, nodes: list[Node], seen: set[int]) -> list[tuple[int, int, str, bool]]:
    """Returns the root above a joint outside of the scene as a node to visit, or [] if no joint is left.

    Such joints move the skins of `nodes`, so their trees are read, but nothing in these trees is shown. _nodes() calls
    this again after it has visited the tree.
    """
    outside = {joint for node in nodes if node.skin for joint in node.skin.joints} - seen
    if not outside:
        return []
    parents = {
        child: index
        for index, node in enumerate(file.list_at("nodes"))
        if isinstance(node, dict)
        for child in file.list_at("children", node, f"nodes[{index}]")
        if isinstance(child, int)
    }
    root, passed = min(outside), set[int]()
    while parents.get(root, -1) >= 0 and root not in passed:
        passed.add(root)
        root = parents[root]
    return [(root, -1, "its scene", False)]


def _node(
    file: Container,
    entry: Json,
    index: int,
    parent: int,
    rest_weights: Callable[[int], tuple[float, ...]],
    skins: Callable[[int], Skin],
) -> Node:
    """Reads a node; rest_weights(mesh) and skins(index) look up a mesh's default weights and a skin."""
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
    punctual = file.extension(entry, "KHR_lights_punctual", name)
    light = _light(file, punctual["light"], name) if "light" in punctual else None
    is_instanced = INSTANCING in file.object_at(entry, "extensions", name)
    instances = _instances(file, file.extension(entry, INSTANCING, name), name) if is_instanced else None
    return Node(
        index, parent, matrix, translation, rotation, scale, mesh, skin, weights, camera=camera, light=light,
        instances=instances, name=str(entry.get("name") or name),
    )  # fmt: skip


def _instances(file: Container, table: Json, name: str) -> np.ndarray:
    """Composes the instance matrices (k, 4, 4) of EXT_mesh_gpu_instancing from its accessors."""
    attributes = file.object_at(table, "attributes", name)
    kinds = {"TRANSLATION": ("VEC3",), "ROTATION": ("VEC4",), "SCALE": ("VEC3",)}
    arrays = {key: file.real(attributes[key], kind, name) for key, kind in kinds.items() if key in attributes}
    counts = {len(values) for values in arrays.values()}
    if len(counts) != 1:
        numbers = " and ".join(map(str, sorted(counts))) or "no"
        file.fail(name, f"has {numbers} instances; every attribute needs as many")
    (count,) = counts
    file.take("instances", count, MAX_INSTANCES, name)
    out = np.tile(np.eye(4), (count, 1, 1))
    quaternions = arrays.get("ROTATION", np.tile([0.0, 0.0, 0.0, 1.0], (count, 1))).astype("f8")
    size = np.linalg.norm(quaternions, axis=1, keepdims=True)
    unit = np.where(size > 1e-12, quaternions / np.maximum(size, 1e-12), [0.0, 0.0, 0.0, 1.0])
    scales = arrays.get("SCALE", np.ones((count, 3)))[:, None, :]
    out[:, :3, :3] = np.moveaxis(rotation_rows(*unit.T), 2, 0) * scales
    out[:, :3, 3] = arrays.get("TRANSLATION", np.zeros((count, 3)))
    if not (np.abs(out) < 1e18).all():
        file.fail(name, "has instances beyond 1e18")
    return out


def _camera(file: Container, index: object, node: str) -> Camera:
    """Reads cameras[index] for a node."""
    entry, name = file.item("cameras", index, node), f"cameras[{index}]"
    kind = file.word(entry, "type", ("perspective", "orthographic"), name)
    lens, title = file.object_at(entry, kind, name), str(entry.get("name", name))
    if kind == "orthographic":
        halves = [file.number(lens, key, None, -1e15, 1e15, name) for key in ("xmag", "ymag")]
        half_width, half_height = (abs(half) for half in halves)
        if min(half_width, half_height) < 1e-15 or not 1e-3 <= half_width / half_height <= 1e3:
            file.fail(name, f"has xmag {halves[0]:g} and ymag {halves[1]:g}; none may be 0, or 1000 times the other")
        return Camera(title, np.eye(4), None, half_width / half_height, 2 * half_height)
    fov = file.number(lens, "yfov", None, 1e-3, 3.13, name)
    aspect = file.number(lens, "aspectRatio", None, 1e-3, 1e3, name) if "aspectRatio" in lens else None
    return Camera(title, np.eye(4), math.degrees(fov), aspect)


def _light(file: Container, index: object, node: str) -> Light:
    """Reads a light of KHR_lights_punctual; the node's matrix is set later."""
    extension = file.extension(file.tree, "KHR_lights_punctual", "the file")
    entry, name = file.item("lights", index, node, extension), f"lights[{index}]"
    kind = file.word(entry, "type", ("directional", "point", "spot"), name)
    strength = file.number(entry, "intensity", 1.0, 0.0, 1e12, name)
    red, green, blue = file.numbers(entry, "color", (1.0, 1.0, 1.0), name, 0.0, 1e6)
    power = strength * red, strength * green, strength * blue
    cone = file.object_at(entry, "spot", name)
    inner = file.number(cone, "innerConeAngle", 0.0, 0.0, math.pi / 2, name)
    outer = file.number(cone, "outerConeAngle", math.pi / 4, 0.0, math.pi / 2 + 1e-6, name)
    if kind == "spot" and not inner < outer:
        file.fail(name, f"has an innerConeAngle of {inner}; it must be below its outerConeAngle, {outer}")
    return Light(str(entry.get("name", name)), kind, np.eye(4), power, inner, outer)


def _variants(file: Container) -> tuple[str, ...]:
    """Reads the names of the file's material variants."""
    extension = file.extension(file.tree, VARIANTS, "the file")
    variants = enumerate(file.objects("variants", extension, VARIANTS))
    return tuple(str(variant.get("name", index)) for index, (_, variant) in variants)


def _material(file: Container, primitive: Json, variant: int, name: str) -> int:
    """Returns the material index of a primitive under a variant (-1: none); -1 if the primitive has no material."""
    extension = file.extension(primitive, VARIANTS, name)
    material: Any = primitive.get("material", -1)
    for _, mapping in file.objects("mappings", extension, name):  # the materials of lists of variants
        if variant in file.list_at("variants", mapping, name):
            material = mapping.get("material")
    if material != -1:
        file.item("materials", material, name)
    return int(material)


def _mesh(file: Container, index: int, materials: list[Material], variant: int) -> list[MeshPrimitive]:
    """Reads the primitives of meshes[index] that have vertices and faces."""
    parts = []
    for name, primitive in file.objects("primitives", file.item("meshes", index, "a node"), f"meshes[{index}]"):
        mode = file.count(primitive, "mode", 4, name, 6)
        if "POSITION" in file.object_at(primitive, "attributes", name):
            parts.append(_primitive(file, primitive, mode, name, materials, variant))
    return [part for part in parts if len(part.faces)]


def _primitive(
    file: Container, primitive: Json, mode: int, name: str, materials: list[Material], variant: int
) -> MeshPrimitive:
    """Reads the arrays of a primitive, and checks each against the number of vertices."""
    attributes = primitive["attributes"]
    vertices = file.real(attributes["POSITION"], ("VEC3",), name)
    file.take("vertices", len(vertices), MAX_VERTICES, name)
    if not (np.abs(vertices) < 1e18).all():
        file.fail(name, "has vertices beyond 1e18")
    if "indices" in primitive:
        corners = file.accessor(primitive["indices"], ("SCALAR",), name)[:, 0]
        if corners.dtype.kind == "f":
            file.fail(name, "has indices that are not integers")
        file.take("vertices", len(corners), MAX_VERTICES, name)  # an index counts as a vertex
        corners = corners.astype("i8")
        if len(corners) and (corners.max() >= len(vertices) or corners.min() < 0):
            file.fail(name, f"names vertex {corners.max()}; there are {len(vertices)}, from 0")
    else:
        corners = np.arange(len(vertices))
    material = _material(file, primitive, variant, name)
    slots = materials[material].textures.values() if material != -1 else ()
    sets = {0} | {slot.texcoord_set for slot in slots}

    def vertex_array(key: str, *kinds: str) -> np.ndarray | None:
        """The values of an attribute, a row for each vertex; None if the primitive does not have it."""
        return file.per_vertex(attributes[key], key, kinds, len(vertices), name) if key in attributes else None

    normals, tangents = vertex_array("NORMAL", "VEC3"), vertex_array("TANGENT", "VEC4")
    texcoords = tuple(vertex_array(f"TEXCOORD_{n}", "VEC2") if n in sets else None for n in range(max(sets) + 1))
    faces = _faces(corners, mode) if mode >= 4 else points_or_lines(corners, mode)
    colors = vertex_array("COLOR_0", "VEC4", "VEC3")
    if colors is not None and colors.shape[1] == 3:
        colors = np.concatenate([colors, np.ones((len(colors), 1), "f4")], 1)
    deformation = read_deformation(file, primitive, len(vertices), name)
    part = MeshPrimitive(vertices, faces, normals, texcoords, material, tangents, colors, deformation)
    file.take("triangles", _triangle_count(part), MAX_TRIANGLES, name)
    return part


def _faces(corners: np.ndarray, mode: int) -> np.ndarray:
    """Splits corners by the primitive mode, triangles (4), a strip (5) or a fan (6), into faces (m, 3) int32."""
    if mode == 4:
        return corners[: len(corners) // 3 * 3].reshape(-1, 3).astype("i4")
    if len(corners) < 3:
        return np.zeros((0, 3), "i4")
    k = np.arange(len(corners) - 2)
    # Every second triangle of a strip swaps two corners, so that all wind the same way.
    rows = [np.zeros_like(k), k + 1, k + 2] if mode == 6 else [k, k + 1 + k % 2, k + 2 - k % 2]
    return corners[np.stack(rows, 1)].astype("i4")
