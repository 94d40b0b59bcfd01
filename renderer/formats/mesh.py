"""Untrusted mesh files as arrays, read by trimesh, whose only user this is.

A file may hold anything: sizes are bounded before they are allocated, no other file is followed, and what cannot
be drawn (no triangle, a corner that is no number, a face whose corner is not there) is an InputError
that names its place.
"""

import io
import json
import os
import struct
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from renderer.errors import InputError

LARGEST_FILE = 1 << 30  # bytes
LARGEST_FACES = 1 << 27
LARGEST_NODES = 10_000  # of a .glb scene
SUFFIXES = (".obj", ".ply", ".stl", ".glb")


def load_mesh(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (n, 3) float32 and faces (m, 3) int32 of a mesh file; the arrays are shared, so they are read-only."""
    return _loaded(path)[:2]


def load_normals(path: Path) -> np.ndarray | None:
    """The normals (n, 3) float32 that a mesh file gives its vertices, (0, 0, 0) for none; None where it gives none."""
    return _loaded(path)[2]


def _loaded(path: Path) -> Any:
    path = Path(path)
    try:
        state = os.stat(path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    return _load(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=4)
def _load(path: Path, changed: int, size: int) -> Any:
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path}: no mesh file; allowed are {', '.join(SUFFIXES)}")
    if size > LARGEST_FILE:
        raise InputError(f"{path}: larger than the {LARGEST_FILE >> 20} MiB that a mesh file may have")
    data = path.read_bytes()
    if path.suffix.lower() == ".glb":
        data = _bare_glb(data, path)
    vertices, faces, normals = _parse(data, path)
    check_mesh(vertices, faces, str(path))
    vertices, faces = np.ascontiguousarray(vertices, "f4"), np.ascontiguousarray(faces, "i4")
    vertices.flags.writeable = faces.flags.writeable = False
    if normals is not None:
        right = np.isfinite(normals).all(1) & (np.abs(normals) < 1e18).all(1)
        normals = np.where(right[:, None], normals, 0).astype("f4")
        normals.flags.writeable = False
    return vertices, faces, normals


def _parse(data: bytes, path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Vertices, faces and the vertices' normals, if there are any, as trimesh reads them, unchecked."""
    import trimesh  # slow to import, and most scenes hold no mesh

    kind = path.suffix.lower()[1:]
    options = {"skip_materials": True, "split_objects": False} if kind == "obj" else {}
    given = kind == "obj" and b"\nvn " in data or kind == "ply"
    ordered = kind != "obj" or not given  # a corner of an .obj that has two normals becomes two vertices
    try:
        scene = trimesh.load(io.BytesIO(data), file_type=kind, process=False, maintain_order=ordered, **options)
        mesh = scene.to_mesh() if hasattr(scene, "to_mesh") else scene
        vertices = np.asarray(mesh.vertices, "f8").reshape(-1, 3)
        faces = np.asarray(getattr(mesh, "faces", ()), "i8").reshape(-1, 3)
        normals = mesh._cache.cache.get("vertex_normals") if given else None  # the property would make some up
        return vertices, faces, None if np.shape(normals) != vertices.shape else np.asarray(normals, "f8")
    except MemoryError as error:
        raise InputError(f"{path}: asks for more memory than there is") from error
    except Exception as error:  # the parsers raise whatever a hostile file leads them to
        raise InputError(f"{path}: not a .{kind} mesh that can be read: {type(error).__name__}: {error}") from error


def check_mesh(vertices: np.ndarray, faces: np.ndarray, where: str) -> None:
    """InputError when there is nothing to draw, a corner is no number, or a face names a corner that is not there."""
    if len(faces) == 0:
        raise InputError(f"{where}: holds no triangle")
    if len(faces) > LARGEST_FACES:
        raise InputError(f"{where}: {len(faces)} triangles are more than the {LARGEST_FACES} allowed")
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


def _bare_glb(data: bytes, path: Path) -> bytes:
    """The .glb with only its geometry: pictures, extensions and links to other files dropped, sizes checked."""
    wrong = f"{path}: not a .glb mesh that can be read"
    if len(data) < 20 or data[:4] != b"glTF":
        raise InputError(f"{wrong}: no glTF header")
    length, kind = struct.unpack("<II", data[12:20])
    if kind != 0x4E4F534A or 20 + length > len(data):
        raise InputError(f"{wrong}: its first chunk is not whole JSON")
    try:
        tree = json.loads(data[20 : 20 + length])
        kept = {
            key: tree[key]
            for key in ("asset", "scene", "scenes", "nodes", "meshes", "accessors", "bufferViews")
            if key in tree
        }
        kept["buffers"] = [{"byteLength": int(buffer["byteLength"])} for buffer in tree.get("buffers", [])]
        _check_glb(kept, len(data))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise InputError(f"{wrong}: {type(error).__name__}: {error}") from error
    text = json.dumps(kept).encode()
    text += b" " * (-len(text) % 4)
    rest = data[20 + length :]
    return struct.pack("<4sIIII", b"glTF", 2, 20 + len(text) + len(rest), len(text), kind) + text + rest


def _check_glb(tree: dict, size: int) -> None:
    """ValueError unless every array lies in the file and the nodes are a tree, so that nothing outgrows the file."""
    width = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT2": 4, "MAT3": 9, "MAT4": 16}
    item = {5120: 1, 5121: 1, 5122: 2, 5123: 2, 5125: 4, 5126: 4}
    views = tree.get("bufferViews", [])
    for number, accessor in enumerate(tree.get("accessors", [])):
        accessor.pop("sparse", None)
        need = int(accessor["count"]) * width[accessor["type"]] * item[accessor["componentType"]]
        if need < 0 or need > int(views[accessor["bufferView"]]["byteLength"]) or need > size:
            raise ValueError(f"accessor {number} does not lie in its buffer")
    for mesh in tree.get("meshes", []):
        for part in mesh["primitives"]:
            part.pop("material", None)
            part.pop("extensions", None)
            part.pop("targets", None)
            part["attributes"] = {"POSITION": part["attributes"]["POSITION"]}
    nodes = tree.get("nodes", [])
    children = [child for node in nodes for child in node.get("children", [])]
    roots = [root for scene in tree.get("scenes", []) for root in scene.get("nodes", [])]
    if len(nodes) > LARGEST_NODES or len(children) != len(set(children)) or set(roots) & set(children):
        raise ValueError(f"its nodes are no tree of at most {LARGEST_NODES}")
    for node in nodes:
        node.pop("skin", None)
        node.pop("extensions", None)
    drawn = sum(len(tree["meshes"][node["mesh"]]["primitives"]) for node in nodes if "mesh" in node)
    corners = max((int(a["count"]) for a in tree.get("accessors", [])), default=0)
    if drawn * corners > 3 * LARGEST_FACES:
        raise ValueError(f"its nodes draw more than {LARGEST_FACES} triangles")
