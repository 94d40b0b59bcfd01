"""Skins of a glTF file: vertices moved by joints, in the pose of the nodes (linear blend skinning)."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from renderer.formats.gltf.container import Container

BLOCK = 1 << 16  # vertices whose matrices are in memory at a time


@dataclass(frozen=True)
class Pose:
    """The matrices (j, 3, 4) by which the joints of a skin move vertices."""

    name: str
    matrices: np.ndarray


def pose_of(file: Container, index: Any, worlds: dict[int, np.ndarray], node: str) -> Pose:
    """The pose of a skin; `worlds` are the matrices (4, 4) of the scene's nodes by their number."""
    entry, name = file.item("skins", index, node), f"skins[{index}]"
    joints = file.list_of("joints", entry, name)
    if not joints:
        file.fail(name, "has no joints")
    for joint in joints:
        file.item("nodes", joint, name)
        if joint not in worlds:
            file.fail(name, f"names nodes[{joint}], which is not in the scene")
    matrices = np.stack([worlds[joint] for joint in joints])
    if "inverseBindMatrices" in entry:
        back = file.real(entry["inverseBindMatrices"], ("MAT4",), name)
        if len(back) < len(joints):
            file.fail(name, f"has {len(back)} inverseBindMatrices for {len(joints)} joints")
        matrices = matrices @ back[: len(joints)].reshape(-1, 4, 4).transpose(0, 2, 1).astype("f8")
    return Pose(name, matrices[:, :3])


def posed(file: Container, pose: Pose, attributes: dict, vertices: np.ndarray, directions: list, name: str) -> list:
    """Vertices (n, 3) moved by their joints, then `directions`: normals (n, 3) and tangents (n, 4), or None."""
    joints, weights = _influences(file, pose, attributes, len(vertices), name)
    out = [None if array is None else np.array(array, "f8") for array in (vertices, *directions)]
    moved, normals, tangents = out
    assert moved is not None
    for begin in range(0, len(vertices), BLOCK):
        part = slice(begin, begin + BLOCK)
        total = weights[part].sum(1, keepdims=True)
        share = np.divide(weights[part], total, out=np.zeros(weights[part].shape), where=total > 0)
        matrices = np.einsum("nk,nkij->nij", share, pose.matrices[joints[part]])
        matrices[total[:, 0] <= 0] = np.eye(3, 4)
        turn = matrices[..., :3]
        moved[part] = np.einsum("nij,nj->ni", turn, vertices[part]) + matrices[..., 3]
        if normals is not None:
            a, b, c = turn.transpose(1, 0, 2)
            cofactors = np.stack([np.cross(b, c), np.cross(c, a), np.cross(a, b)], 1)
            normals[part] = np.einsum("nij,nj->ni", cofactors, directions[0][part])
        if tangents is not None:
            tangents[part, :3] = np.einsum("nij,nj->ni", turn, directions[1][part, :3])
    if not all(array is None or (np.abs(array) < 1e18).all() for array in out):
        file.fail(name, f"is moved by {pose.name} beyond 1e18")
    return [None if array is None else array.astype("f4") for array in out]


def _influences(file: Container, pose: Pose, attributes: dict, count: int, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The joints (n, 4 k) of each vertex, by index, and their weights."""
    joints: list[np.ndarray] = []
    weights: list[np.ndarray] = []
    while f"JOINTS_{len(joints)}" in attributes:
        number = len(joints)
        joints.append(file.accessor(attributes[f"JOINTS_{number}"], ("VEC4",), name))
        if f"WEIGHTS_{number}" not in attributes:
            file.fail(name, f"has JOINTS_{number} and no WEIGHTS_{number}")
        weights.append(file.real(attributes[f"WEIGHTS_{number}"], ("VEC4",), name))
    if not joints:
        file.fail(name, f"has the skin {pose.name} and no JOINTS_0")
    for array in (*joints, *weights):
        if len(array) != count:
            file.fail(name, f"has {len(array)} items of joints or weights for {count} vertices")
    held, weight = np.concatenate(joints, 1), np.maximum(np.concatenate(weights, 1), 0)
    if held.dtype.kind == "f" or (count and (held.max() >= len(pose.matrices) or held.min() < 0)):
        file.fail(name, f"names a joint that {pose.name} does not have; it has {len(pose.matrices)}, from 0")
    return held.astype("i4"), weight.astype("f8")
