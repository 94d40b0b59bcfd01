"""The shapes of a scene file as arrays of primitives, with the vertex attributes of meshes and models."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from renderer.bvh.primitives import collapse_duplicates, spheres, triangles, with_primitive_ids
from renderer.formats import gltf
from renderer.formats.mesh import load_mesh, load_normals
from renderer.raytracing import procedural
from renderer.raytracing.gltf_shapes import instanced_meshes, materials_of, mesh_arrays
from renderer.raytracing.settings import Attractor, MeshShape, Procedural, Settings
from renderer.raytracing.textures import BASE_FLOAT4S, default_attributes, joined_attributes

QUAD_FACES = np.array([[0, 1, 2], [0, 2, 3]])
Arrays = tuple[np.ndarray, np.ndarray | None]  # primitives, and their attributes if they have any


@dataclass(frozen=True)
class ShapeArrays:
    """The primitives of a scene, with ids that count through all shapes.

    `primitives` (m,) are by the name of their shape, "" for static geometry. `attributes` (n, float4s, 4) are by
    primitive id; None if no shape has any. `instanced` (name, matrix) are the instances of repeated meshes of models.
    """

    primitives: dict[str, np.ndarray]
    attributes: np.ndarray | None
    instanced: list[tuple[str, np.ndarray]]


def shape_arrays(settings: Settings, models: list[gltf.Model]) -> ShapeArrays:
    """The primitives of all shapes; `models` are the files of settings.models."""
    index = material_indices(settings)
    by_name: dict[str, list[Arrays]] = {"": [(triangles(np.zeros((0, 3)), np.zeros((0, 3), int)), None)]}
    for group, make in MAKERS.items():
        for shape in getattr(settings, group):
            by_name.setdefault(shape.name, []).append(make(shape, index[shape.material]))
    instanced = _add_models(settings, models, by_name)
    flat = [arrays for group in by_name.values() for arrays in group]
    sizes = [sum(len(primitives) for primitives, _ in group) for group in by_name.values()]
    all_primitives = with_primitive_ids(np.concatenate([primitives for primitives, _ in flat]))
    primitives = dict(zip(by_name, np.split(all_primitives, np.cumsum(sizes)[:-1]), strict=True))
    attributes = None
    if any(a is not None for _, a in flat):
        attributes = joined_attributes([default_attributes(len(p), BASE_FLOAT4S) if a is None else a for p, a in flat])
    return ShapeArrays(primitives, attributes, instanced)


def _add_models(
    settings: Settings, models: list[gltf.Model], by_name: dict[str, list[Arrays]]
) -> list[tuple[str, np.ndarray]]:
    """Adds the meshes of models; returns the instances of those that many nodes repeat."""
    instanced, material = [], len(settings.materials)
    for index, (shape, model) in enumerate(zip(settings.models, models, strict=True)):
        repeated = instanced_meshes(model) if not shape.name else set()
        for number, matrix in model.mesh_nodes:
            if number in repeated:
                name = f"\0{index}.{number}"  # no name that a scene file can hold
                if name not in by_name:
                    by_name[name] = [mesh_arrays(model, number, np.eye(4), material)]
                instanced.append((name, (shape.matrix() @ matrix)[:3]))
            else:
                arrays = mesh_arrays(model, number, shape.matrix() @ matrix, material)
                by_name.setdefault(shape.name, []).append(arrays)
        material += len(materials_of(model))
    return instanced


def material_indices(settings: Settings) -> dict[str, int]:
    """The index of each of the scene's own materials, by name."""
    return {material.name: index for index, material in enumerate(settings.materials)}


def _mesh(shape: MeshShape, material: int) -> Arrays:
    """The triangles of a mesh file, with attributes if the file has vertex normals."""
    vertices, faces = load_mesh(Path(shape.file))
    c, s = np.cos(np.radians(shape.rotation_degrees)), np.sin(np.radians(shape.rotation_degrees))
    rotation = np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
    world = vertices @ (shape.scale * rotation).T + shape.position
    primitives, normals = collapse_duplicates(triangles(world, faces, material)), load_normals(Path(shape.file))
    if normals is None:
        return primitives, None
    size = np.linalg.norm(normals.astype("f8"), axis=1, keepdims=True)
    unit = np.divide(normals, size, out=np.zeros(normals.shape), where=size > 1e-30)
    attributes = default_attributes(len(faces), BASE_FLOAT4S)
    attributes[:, :3, :3] = (unit @ rotation.T)[faces]
    return primitives, attributes


def _attractor(shape: Attractor, material: int) -> Arrays:
    balls = procedural.attractor(np.reshape(shape.maps, (-1, 3, 4)), shape.level, shape.radius)
    return _transformed(balls, shape, material), None


def _transformed(primitives: np.ndarray, shape: Procedural | Attractor, material: int) -> np.ndarray:
    """The primitives with the shape's axes, scale, position and material."""
    for field in ("v0", "edge1", "edge2"):
        if isinstance(shape, Procedural) and shape.z_up:
            x, y, z = primitives[field][:, :3].T.copy()
            primitives[field][:, :3] = np.stack([y, z, x], 1)
        primitives[field][:, :3] *= np.float32(shape.scale)
    primitives["v0"][:, :3] += np.array(shape.position, "f4")
    primitives["edge2"][:, 3] *= np.float32(shape.scale)
    primitives["edge1"].view("i4")[:, 3] = material
    return primitives


MAKERS: dict[str, Callable[[Any, int], Arrays]] = {  # by the settings' name of the group
    "spheres": lambda s, material: (spheres(np.array([s.center]), np.array([s.radius]), material), None),
    "quads": lambda s, material: (triangles(np.array(s.corners), QUAD_FACES, material), None),
    "meshes": _mesh,
    "procedural": lambda s, material: (_transformed(procedural.generate(s.kind, s.level), s, material), None),
    "attractors": _attractor,
}
