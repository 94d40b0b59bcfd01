"""Poses a glTF Model, at rest or at a time of an animation: node transforms, morph targets and skins.

in_pose() takes the Model and animated values by node; it returns a Model with the matrices of all nodes in the world,
and with meshes whose vertices are deformed. The order is glTF's: morph targets, then joint matrices.
"""

import math
from dataclasses import replace

import numpy as np

from renderer.errors import InputError
from renderer.formats.gltf.model import MeshPrimitive, Model, Node, Rig
from renderer.formats.gltf.skins import morphed, skinned

HIDDEN_DETERMINANT = 1e-30  # a node below this is hidden: authors hide nodes by a scale of 0
HIDDEN_SCALE = 1e-9
MAX_POSITION = 1e18  # largest coordinate: its square is a finite float32
# The field of MeshPrimitive for each attribute of glTF but texture coordinates.
FIELDS = {"POSITION": "vertices", "NORMAL": "normals", "TANGENT": "tangents", "COLOR_0": "colors"}
Vector = tuple[float, ...] | np.ndarray
Component = float | np.ndarray
Values = dict[int, dict[str, np.ndarray]]  # animated values at one time, by Node.number and Channel.path


def model_at(model: Model, animation: int, seconds: float) -> Model:
    """Poses the Model at `seconds` of an animation, which repeats; a pure function.

    Undeformed meshes are shared with `model`; arrays are read-only. Raises InputError if a key frame moves a vertex out
    of the allowed range of coordinates.
    """
    clip = model.animations[animation]
    return in_pose(model, clip.values_at(clip.clip_time(seconds)))


def in_pose(model: Model, values: Values) -> Model:
    """Poses the Model: animated `values` replace the values of the nodes at rest."""
    rig = model.rig
    assert rig is not None, "a Model that was read from a file has a rig"
    worlds = world_matrices(rig, values)
    rows = {node.number: row for row, node in enumerate(rig.nodes)}
    # Meshes that no node draws undeformed are left out, but keep their index; deformed ones follow, one for each node.
    meshes = [mesh if shared else [] for mesh, shared in zip(rig.meshes, rig.is_shared, strict=True)]
    mesh_nodes, node_rows, cameras, lights, skins = [], [], [], [], []
    for row, (node, world) in enumerate(zip(rig.nodes, worlds, strict=True)):
        if node.skin:
            skins.append(row)
        elif node.mesh >= 0:
            matrices = [world] if node.instances is None else world @ node.instances
            drawn = [matrix for m in matrices if (matrix := _visible(m, bool(values))) is not None]
            node_rows += [row] * len(drawn)
            mesh_nodes += [(len(meshes) if node.deforms else node.mesh, matrix) for matrix in drawn]
            if node.deforms and drawn:
                meshes.append(_deformed(rig, node, values, None))  # the index that mesh_nodes has just got
        if node.camera:
            if abs(np.linalg.det(world[:3, :3])) < HIDDEN_DETERMINANT:
                raise InputError(f"{rig.path}: nodes[{node.number}] has a camera and a singular matrix")
            cameras.append(replace(node.camera, matrix=world))
        if node.light:
            lights.append(replace(node.light, matrix=world))
    for row in skins:  # joint matrices place skinned vertices in world space: the node itself has the identity
        skin = rig.nodes[row].skin
        assert skin is not None
        joints = np.stack([worlds[rows[number]] for number in skin.joints])
        joints = joints if skin.inverse_bind is None else joints @ skin.inverse_bind
        node_rows.append(row)
        mesh_nodes.append((len(meshes), np.eye(4)))
        meshes.append(_deformed(rig, rig.nodes[row], values, joints[:, :3]))
    return replace(model, meshes=meshes, mesh_nodes=mesh_nodes, node_rows=node_rows, cameras=cameras, lights=lights)


def _visible(world: np.ndarray, animated: bool) -> np.ndarray | None:
    """Returns the world matrix of a node that draws a mesh; None if the node is hidden at rest.

    A hidden node of an animation becomes invisibly small instead, so that every time has the same nodes.
    """
    if abs(np.linalg.det(world[:3, :3])) > HIDDEN_DETERMINANT:
        return world
    if not animated:
        return None
    out = np.diag([HIDDEN_SCALE, HIDDEN_SCALE, HIDDEN_SCALE, 1.0])
    out[:3, 3] = world[:3, 3]
    return out


def world_matrices(rig: Rig, values: Values) -> list[np.ndarray]:
    """Computes each node's matrix (4, 4) to the world."""
    worlds: list[np.ndarray] = []
    for node in rig.nodes:
        local = node.matrix
        if moved := values.get(node.number):
            translation, rotation = moved.get("translation", node.translation), moved.get("rotation", node.rotation)
            local = local_matrix(translation, rotation, moved.get("scale", node.scale))
        world = worlds[node.parent] @ local if node.parent >= 0 else local
        if not (np.abs(world) < MAX_POSITION).all():
            raise InputError(f"{rig.path}: nodes[{node.number}] has a position beyond 1e18")
        worlds.append(world)
    return worlds


def local_matrix(translation: Vector, rotation: Vector, scale: Vector) -> np.ndarray:
    """Composes the matrix (4, 4) of a translation, a rotation (a quaternion of any nonzero length) and a scale."""
    x, y, z, w = (float(value) for value in rotation)
    size = math.sqrt(x * x + y * y + z * z + w * w)
    out = np.eye(4)
    out[:3, :3] = rotation_rows(x / size, y / size, z / size, w / size) * np.asarray(scale)
    out[:3, 3] = translation
    return out


def rotation_rows(x: Component, y: Component, z: Component, w: Component) -> np.ndarray:
    """The rows (3, 3) of the rotation of a unit quaternion; (3, 3, k) for components that are arrays (k,)."""
    return np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ])  # fmt: skip


def _deformed(rig: Rig, node: Node, values: Values, joints: np.ndarray | None) -> list[MeshPrimitive]:
    """Deforms the primitives of a node's mesh: morph targets first, then joint matrices (j, 3, 4), if any."""
    weights = values.get(node.number, {}).get("weights", np.array(node.weights))
    out = []
    for primitive in rig.meshes[node.mesh]:
        deformation = primitive.deformation
        assert deformation is not None
        bases = {attribute: getattr(primitive, field) for attribute, field in FIELDS.items()}
        bases |= {f"TEXCOORD_{number}": uv for number, uv in enumerate(primitive.texcoords)}
        moved = {key: morphed(deformation, key, base, weights) for key, base in bases.items()}
        if joints is not None:
            keys = ("POSITION", "NORMAL", "TANGENT")
            moved |= dict(zip(keys, skinned(deformation, joints, [moved[key] for key in keys]), strict=True))
        if not all(array is None or (np.abs(array) < MAX_POSITION).all() for array in moved.values()):
            raise InputError(f"{rig.path}: {deformation.name} is moved by nodes[{node.number}] beyond 1e18")
        arrays = {key: None if array is None else array.astype("f4", copy=False) for key, array in moved.items()}
        texcoords = tuple(arrays[f"TEXCOORD_{number}"] for number in range(len(primitive.texcoords)))
        vertices, colors = arrays["POSITION"], arrays["COLOR_0"]
        assert vertices is not None
        out.append(replace(
            primitive, vertices=vertices, normals=arrays["NORMAL"], tangents=arrays["TANGENT"], texcoords=texcoords,
            colors=None if colors is None else np.clip(colors, 0, 1), deformation=None,
        ))  # fmt: skip
    return out


def motion_masks(model: Model, animation: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns two masks (n,) over the rig's nodes: the animation moves the node; the animation deforms its mesh."""
    rig = model.rig
    assert rig is not None
    channels = model.animations[animation].channels
    moved = {channel.node for channel in channels if channel.path != "weights"}
    weighted = {channel.node for channel in channels if channel.path == "weights"}
    moves = np.zeros(len(rig.nodes), bool)
    for row, node in enumerate(rig.nodes):
        moves[row] = node.number in moved or (node.parent >= 0 and moves[node.parent])
    by_number = {node.number: move for node, move in zip(rig.nodes, moves, strict=True)}
    deforms = [
        node.number in weighted or (node.skin is not None and any(by_number[joint] for joint in node.skin.joints))
        for node in rig.nodes
    ]
    return moves, np.array(deforms, bool)
