"""Untrusted mesh files as one array of triangles: .obj, .ply and .stl by trimesh (its only user), .glb by gltf.

A file may hold anything: its size is bounded before it is read, and what cannot be drawn (no triangle, a coordinate
that is not finite, a face with an index out of range) is an InputError that names the place. Of an .obj, no other
file is opened; a .glb follows links as renderer.formats.gltf does.
"""

import io
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from renderer.errors import InputError
from renderer.files import read_file
from renderer.formats import gltf
from renderer.formats.gltf.container import stamp_of

MAX_FILE_BYTES = 1 << 30
MAX_FACES = 1 << 27
SUFFIXES = (".obj", ".ply", ".stl", ".glb")


def load_mesh(path: Path | str) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (n, 3) float32 and faces (m, 3) int32 of a mesh file; the arrays are shared, so they are read-only."""
    return _load(Path(path), stamp_of(path))[:2]


def load_normals(path: Path | str) -> np.ndarray | None:
    """The vertex normals (n, 3) float32 in a mesh file, (0, 0, 0) for a vertex without; None if the file has none."""
    return _load(Path(path), stamp_of(path))[2]


@lru_cache(maxsize=4)
def _load(path: Path, stamp: tuple[int, int] | None) -> Any:
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path}: not a mesh file; allowed are {', '.join(SUFFIXES)}")
    with np.errstate(all="ignore"):  # of numbers that are not finite, which check_mesh() refuses
        return _checked(path)


def _checked(path: Path) -> Any:
    vertices, faces, normals = (_merge_nodes if path.suffix.lower() == ".glb" else _parse)(path)
    check_mesh(vertices, faces, str(path))
    vertices, faces = np.ascontiguousarray(vertices, "f4"), np.ascontiguousarray(faces, "i4")
    vertices.flags.writeable = faces.flags.writeable = False
    if normals is not None:
        valid = np.isfinite(normals).all(1) & (np.abs(normals) < 1e18).all(1)
        normals = np.where(valid[:, None], normals, 0).astype("f4")
        normals.flags.writeable = False
    return vertices, faces, normals


def _merge_nodes(path: Path) -> tuple[np.ndarray, np.ndarray, None]:
    """The triangles of all nodes of a .glb in world space."""
    model = gltf.load(path)
    vertices, faces, count = [], [], 0
    for mesh, matrix in model.mesh_nodes:
        for part in model.meshes[mesh]:
            vertices.append(part.vertices @ matrix[:3, :3].T + matrix[:3, 3])
            faces.append(part.faces + count)
            count += len(part.vertices)
    return np.concatenate(vertices), np.concatenate(faces), None


def _parse(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Vertices, faces and the vertex normals, if there are any, as trimesh reads them, unchecked."""
    import trimesh  # slow to import, and most scenes have no mesh

    data, kind = read_file(path, MAX_FILE_BYTES), path.suffix.lower()[1:]
    options = {"skip_materials": True, "split_objects": False} if kind == "obj" else {}
    has_normals = kind == "obj" and b"\nvn " in data or kind == "ply"
    keep_order = kind != "obj" or not has_normals  # a corner of an .obj that has two normals becomes two vertices
    try:
        scene = trimesh.load(io.BytesIO(data), file_type=kind, process=False, maintain_order=keep_order, **options)
        mesh = scene.to_mesh() if hasattr(scene, "to_mesh") else scene
        vertices = np.asarray(mesh.vertices, "f8").reshape(-1, 3)
        faces = np.asarray(getattr(mesh, "faces", ()), "i8").reshape(-1, 3)
        normals = mesh._cache.cache.get("vertex_normals") if has_normals else None  # the property would compute some
        if normals is None or np.shape(normals) != vertices.shape:
            return vertices, faces, None
        return vertices, faces, np.asarray(normals, "f8")
    except MemoryError as error:
        raise InputError(f"{path}: needs more memory than there is") from error
    except Exception as error:  # the parsers raise anything on a malformed file
        raise InputError(f"{path}: not a .{kind} mesh that can be read: {type(error).__name__}: {error}") from error


def check_mesh(vertices: np.ndarray, faces: np.ndarray, where: str) -> None:
    """Raise InputError if there is no triangle, a coordinate is not finite or a face has an index out of range."""
    if len(faces) == 0:
        raise InputError(f"{where}: has no triangle")
    if len(faces) > MAX_FACES:
        raise InputError(f"{where}: {len(faces)} triangles are more than the {MAX_FACES} allowed")
    wrong = np.flatnonzero(((faces < 0) | (faces >= len(vertices))).any(1))
    if len(wrong):
        face = wrong[0]
        raise InputError(
            f"{where}: face {face} names the vertices {faces[face].tolist()}; there are {len(vertices)}, from 0"
        )
    wrong = np.flatnonzero(~(np.abs(vertices) < 1e18).all(1))  # NaN fails the comparison too
    if len(wrong):
        vertex = wrong[0]
        raise InputError(
            f"{where}: vertex {vertex} is {vertices[vertex].tolist()}; coordinates must be numbers below 1e18"
        )
