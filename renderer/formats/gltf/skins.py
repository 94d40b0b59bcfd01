"""Morph targets and skins of a glTF file: vertices displaced by weights, then moved by joints."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from renderer.formats.gltf.container import Container
from renderer.plain import format_value

BLOCK = 1 << 16  # vertices whose matrices are in memory at a time
MAX_TARGETS = 1 << 12  # of a primitive
MAX_TARGET_VERTICES = 1 << 27  # of all morph targets
TARGET_KINDS = {"POSITION": ("VEC3",), "NORMAL": ("VEC3",), "TANGENT": ("VEC3",)}


@dataclass(frozen=True)
class Skin:
    """Joints, node numbers, and the matrices (j, 4, 4) float64 from the mesh to each joint at rest, or None."""

    name: str
    joints: tuple[int, ...]
    inverse_bind: np.ndarray | None


@dataclass(frozen=True)
class Deformation:
    """What moves the vertices of a primitive: `targets` are displacements (n, w) by attribute, one table a target.

    `joints` and `weights` are blocks (n, 4), the influences of a skin's joints on each vertex.
    """

    name: str
    targets: tuple[dict[str, np.ndarray], ...] = ()
    joints: tuple[np.ndarray, ...] = ()
    weights: tuple[np.ndarray, ...] = ()


def skin_of(file: Container, index: int) -> Skin:
    """A skin, by its index."""
    entry, name = file.item("skins", index, "a node"), f"skins[{index}]"
    joints = file.list_of("joints", entry, name)
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


def deformation_of(file: Container, primitive: dict, count: int, name: str) -> Deformation | None:
    """The morph targets and joints of a primitive of `count` vertices; None if it has neither."""
    attributes, rows = file.part(primitive, "attributes", name), file.list_of("targets", primitive, name)
    if len(rows) > MAX_TARGETS:
        file.fail(name, f"has {len(rows)} morph targets; {MAX_TARGETS} are allowed")
    targets = []
    for number, row in enumerate(rows):
        target = f"{name}.targets[{number}]"
        if not isinstance(row, dict):
            file.fail(target, f"is {format_value(row)}; it must be an object")
        targets.append({key: _displacement(file, row[key], key, count, target) for key in row if _is_morphed(key)})
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


def _is_morphed(key: str) -> bool:
    return key in TARGET_KINDS or key.startswith(("TEXCOORD_", "COLOR_"))


def _displacement(file: Container, index: Any, key: str, count: int, target: str) -> np.ndarray:
    """Displacements (count, w) float32 of an attribute."""
    kinds = TARGET_KINDS.get(key) or (("VEC2",) if key.startswith("TEXCOORD_") else ("VEC3", "VEC4"))
    values = file.real(index, kinds, target)
    if len(values) != count:
        file.fail(target, f"has {len(values)} items of {key} for {count} vertices")
    file.take("target vertices", count, MAX_TARGET_VERTICES, target)
    if not (np.abs(values) < 1e18).all():
        file.fail(target, f"has a {key} beyond 1e18")
    return values


def morphed(deformation: Deformation, key: str, base: np.ndarray | None, weights: np.ndarray) -> np.ndarray | None:
    """The attribute `base` (n, w) plus the weighted displacements of the targets that have it; float64 if any does."""
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
    """Vertices (n, 3), normals (n, 3) and tangents (n, 4), or None, moved by joint matrices (j, 3, 4); float64.

    Linear blend skinning; a vertex without weights stays where it is.
    """
    vertices, normals, tangents = arrays
    assert vertices is not None
    out = [None if array is None else np.array(array, "f8") for array in arrays]
    moved, turned, along = out
    assert moved is not None
    flat = matrices.reshape(len(matrices), 12)
    for begin in range(0, len(vertices), BLOCK):
        part = slice(begin, begin + BLOCK)
        joints = np.concatenate([block[part] for block in deformation.joints], 1).astype("i4")
        weights = np.maximum(np.concatenate([block[part] for block in deformation.weights], 1), 0).astype("f8")
        total = weights.sum(1, keepdims=True)
        weights = np.divide(weights, total, out=np.zeros(weights.shape), where=total > 0)
        blended = np.einsum("nk,nkm->nm", weights, flat[joints]).reshape(-1, 3, 4)
        blended[total[:, 0] <= 0] = np.eye(3, 4)
        turn = blended[..., :3]
        moved[part] = np.einsum("nij,nj->ni", turn, vertices[part]) + blended[..., 3]
        if normals is not None and turned is not None:
            a, b, c = turn.transpose(1, 0, 2)
            cofactors = np.stack([np.cross(b, c), np.cross(c, a), np.cross(a, b)], 1)
            turned[part] = np.einsum("nij,nj->ni", cofactors, normals[part])
        if tangents is not None and along is not None:
            along[part, :3] = np.einsum("nij,nj->ni", turn, tangents[part, :3])
    return out


def check_joints(file: Container, deformation: Deformation | None, skin: Skin, name: str) -> None:
    """InputError if a primitive of a skinned node has no joints, or names one that the skin does not have."""
    if deformation is None or not deformation.joints:
        file.fail(name, f"has the skin {skin.name} and no JOINTS_0")
    for held in deformation.joints:
        if held.dtype.kind == "f" or (len(held) and (held.max() >= len(skin.joints) or held.min() < 0)):
            file.fail(name, f"names a joint that {skin.name} does not have; it has {len(skin.joints)}, from 0")
