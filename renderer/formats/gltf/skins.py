"""Reads and applies morph targets and skins of a glTF file: weighted displacements, then linear blend skinning.

A morph target displaces every vertex, by a weight that an animation changes. A skin moves a vertex by the weighted mean
of its joints' matrices. read_skin() and read_deformation() take the opened file; morphed() and skinned() take arrays
and return new ones.
"""

from typing import TYPE_CHECKING

import numpy as np

from renderer.plain import Json
from renderer.records import dataclass

if TYPE_CHECKING:
    from renderer.formats.gltf.container import Container

BLOCK = 1 << 16  # vertices skinned at a time, which bounds the memory of their matrices
MAX_TARGETS = 1 << 12  # morph targets of a primitive
MAX_TARGET_VERTICES = 1 << 27  # vertices of all morph targets of a file
TARGET_KINDS = {"POSITION": ("VEC3",), "NORMAL": ("VEC3",), "TANGENT": ("VEC3",)}


@dataclass(frozen=True)
class Skin:
    """The joints of a skin, as indices of nodes.

    `inverse_bind` (j, 4, 4) float64 maps mesh space to each joint's space at rest; None for identities.
    """

    name: str
    joints: tuple[int, ...]
    inverse_bind: np.ndarray | None


@dataclass(frozen=True)
class Deformation:
    """The morph targets and skin weights of a primitive of n vertices.

    `targets`: for each morph target, the displacements (n, w) by attribute. `joints` and `weights` are the arrays
    (n, 4) of JOINTS_0, JOINTS_1, ... and WEIGHTS_0, WEIGHTS_1, ...: each vertex's joint indices and their weights.
    """

    name: str
    targets: tuple[dict[str, np.ndarray], ...] = ()
    joints: tuple[np.ndarray, ...] = ()
    weights: tuple[np.ndarray, ...] = ()


def read_skin(file: "Container", index: int) -> Skin:
    """Reads skins[index]."""
    entry, name = file.item("skins", index, "a node"), f"skins[{index}]"
    joints = file.list_at("joints", entry, name)
    if not joints:
        file.fail(name, "has no joints")
    for joint in joints:
        file.item("nodes", joint, name)
    if "inverseBindMatrices" not in entry:
        return Skin(name, tuple(joints), None)
    back = file.real(entry["inverseBindMatrices"], ("MAT4",), name)
    if len(back) < len(joints):
        file.fail(name, f"has {len(back)} inverseBindMatrices for {len(joints)} joints")
    return Skin(name, tuple(joints), back[: len(joints)].reshape(-1, 4, 4).transpose(0, 2, 1).astype("f8"))


def read_deformation(file: "Container", primitive: Json, count: int, name: str) -> Deformation | None:
    """Reads the morph targets and joints of a primitive of `count` vertices; None if it has neither."""
    attributes, targets = file.object_at(primitive, "attributes", name), []
    for target, row in file.objects("targets", primitive, name, MAX_TARGETS):
        keys = [key for key in row if key in TARGET_KINDS or key.startswith(("TEXCOORD_", "COLOR_"))]
        targets.append({key: _displacement(file, row[key], key, count, target) for key in keys})
    joints: list[np.ndarray] = []
    weights: list[np.ndarray] = []
    while f"JOINTS_{len(joints)}" in attributes:
        number = len(joints)
        joints.append(file.accessor(attributes[f"JOINTS_{number}"], ("VEC4",), name))
        if f"WEIGHTS_{number}" not in attributes:
            file.fail(name, f"has JOINTS_{number} and no WEIGHTS_{number}")
        weights.append(file.real(attributes[f"WEIGHTS_{number}"], ("VEC4",), name))
    for array in (*joints, *weights):
        if len(array) != count:
            file.fail(name, f"has {len(array)} items of joints or weights for {count} vertices")
    return Deformation(name, tuple(targets), tuple(joints), tuple(weights)) if targets or joints else None


def _displacement(file: "Container", index: object, key: str, count: int, target: str) -> np.ndarray:
    """Reads the displacements (count, w) float32 of an attribute."""
    kinds = TARGET_KINDS.get(key) or (("VEC2",) if key.startswith("TEXCOORD_") else ("VEC3", "VEC4"))
    values = file.per_vertex(index, key, kinds, count, target)
    file.take("target vertices", count, MAX_TARGET_VERTICES, target)
    if not (np.abs(values) < 1e18).all():
        file.fail(target, f"has a {key} beyond 1e18")
    return values


def morphed(deformation: Deformation, key: str, base: np.ndarray | None, weights: np.ndarray) -> np.ndarray | None:
    """Adds the weighted displacements of all targets to attribute `base` (n, w); float64 if a target displaces it."""
    if base is None:
        return None
    out = base
    for target, weight in zip(deformation.targets, weights, strict=False):
        if key in target and weight:
            moved = target[key]
            if out is base:
                out = base.astype("f8")
            out[:, : moved.shape[1]] += weight * moved
    return out


def skinned(deformation: Deformation, matrices: np.ndarray, arrays: list[np.ndarray | None]) -> list[np.ndarray | None]:
    """Linear blend skinning: transforms vertices (n, 3), normals (n, 3) and tangents (n, 4), or None, to float64.

    `matrices` (j, 3, 4) are the joints'; the result is in the order of `arrays`. Normals are transformed by the
    cofactor matrix; normals and tangents are not renormalized. A vertex without weights keeps its position.
    """
    out = [None if array is None else np.array(array, "f8") for array in arrays]
    vertices, normals, _ = out
    assert vertices is not None
    flat = matrices.reshape(len(matrices), 12)
    for begin in range(0, len(vertices), BLOCK):
        rows = slice(begin, begin + BLOCK)
        weights = np.maximum(np.concatenate([block[rows] for block in deformation.weights], 1), 0).astype("f8")
        indices = np.concatenate([block[rows] for block in deformation.joints], 1)
        joints = np.where(weights > 0, indices, 0).astype("i4")  # indices without weight may be anything
        total = weights.sum(1, keepdims=True)
        weights = np.divide(weights, total, out=np.zeros(weights.shape), where=total > 0)
        blended = np.einsum("nk,nkm->nm", weights, flat[joints]).reshape(-1, 3, 4)
        blended[total[:, 0] <= 0] = np.eye(3, 4)
        linear = blended[..., :3]
        cofactors = linear
        if normals is not None:
            a, b, c = linear.transpose(1, 0, 2)  # the rows; their cross products are the rows of the cofactor matrix
            cofactors = np.stack([np.cross(b, c), np.cross(c, a), np.cross(a, b)], 1)
        for array, matrix in zip(out, (linear, cofactors, linear), strict=True):
            if array is not None:
                array[rows, :3] = np.einsum("nij,nj->ni", matrix, array[rows, :3])
        vertices[rows] += blended[..., 3]
    return out


def check_joints(file: "Container", deformation: Deformation | None, skin: Skin, name: str) -> None:
    """Raises InputError if a primitive of a skinned node has no joints, or joints that the skin does not have."""
    if deformation is None or not deformation.joints:
        file.fail(name, f"has the skin {skin.name} and no JOINTS_0")
    for number, (indices, weights) in enumerate(zip(deformation.joints, deformation.weights, strict=True)):
        used = indices[weights > 0]  # exporters fill the slots without weight with anything
        if indices.dtype.kind == "f" and not np.array_equal(used, np.rint(used)):
            file.fail(name, f"has JOINTS_{number} of floats or normalized integers; joints are plain integers")
        if len(used) and (used.max() >= len(skin.joints) or used.min() < 0):
            file.fail(name, f"names a joint that {skin.name} does not have; it has {len(skin.joints)}, from 0")
