"""Untrusted mesh files as arrays of triangles: .obj, .ply and .off by formats/meshes, .stl here, .glb by gltf.

A file may hold anything: its size is bounded before it is read, and what cannot be drawn (no triangle, a coordinate
that is not finite, a face with an index out of range) is an InputError that names the place. Only files in the folder
of an .obj, and below, are opened for it; a .glb follows links as renderer.formats.gltf does.
"""

import io
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from renderer.errors import InputError
from renderer.files import read_file
from renderer.formats import gltf
from renderer.formats.gltf.container import stamp_of
from renderer.formats.images import read_pixels
from renderer.formats.linked import remember_links
from renderer.formats.meshes.contents import MeshError, MeshFile, part_of
from renderer.formats.meshes.mtl import find_beside
from renderer.formats.meshes.obj import read_obj
from renderer.formats.meshes.off import read_off
from renderer.formats.meshes.ply import read_ply, texture_names

MAX_FILE_BYTES = 1 << 30
MAX_FACES = 1 << 27
SUFFIXES = (".obj", ".ply", ".stl", ".off", ".glb")
STL_HEADER = 84  # bytes: a comment and the number of triangles
STL_TRIANGLE = np.dtype([("normal", "<f4", (3,)), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
PLAIN_MATERIAL = gltf.Material("mesh", metallic=0.0)  # of colored vertices without a material


def load_mesh(path: Path | str) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (n, 3) float32 and faces (m, 3) int32 of a mesh file; the arrays are shared, so they are read-only."""
    part = load_part(path)
    return part.vertices, part.faces


def load_normals(path: Path | str) -> np.ndarray | None:
    """The vertex normals (n, 3) float32 in a mesh file, (0, 0, 0) for a vertex without; None if the file has none."""
    return load_part(path).normals


def load_part(path: Path | str) -> gltf.MeshPrimitive:
    """All triangles of a mesh file as one MeshPrimitive without a material; its arrays are read-only."""
    return _read(Path(path)).part


def ignored_of(path: Path | str) -> dict[str, int]:
    """What a mesh file says and no picture shows, as renderer.plain.format_ignored takes it."""
    return _read(Path(path)).ignored


def has_materials(path: Path | str) -> bool:
    """Whether a mesh file has materials or vertex colors, so that load_model() shows more of it than load_part()."""
    file = _read(Path(path))
    return file.face_materials is not None or file.part.colors is not None


def load_model(path: Path | str) -> gltf.Model:
    """A mesh file as a Model: one mesh with a primitive for each material."""
    file = _read(Path(path))
    materials, rows = list(file.materials), file.face_materials
    if file.part.colors is not None and (rows is None or (rows < 0).any()):
        rows = np.full(len(file.part.faces), -1, "i4") if rows is None else rows
        rows = np.where(rows < 0, len(materials), rows)
        materials.append(PLAIN_MATERIAL)
    if rows is None:
        parts = [file.part]
    else:
        parts = [replace(file.part, faces=file.part.faces[rows == row], material=int(row)) for row in np.unique(rows)]
    return gltf.Model([parts], [(0, np.eye(4))], materials, file.textures, ignored=file.ignored)


def _read(path: Path) -> MeshFile:
    """The contents of a file, read again when it or a file that it names has changed."""
    file = _load(path, stamp_of(path))
    if any(stamp_of(other) != stamp for other, stamp in file.linked.items()):
        _load.cache_clear()
        file = _load(path, stamp_of(path))
    return file


@lru_cache(maxsize=4)
def _load(path: Path, stamp: tuple[int, int] | None) -> MeshFile:
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path}: not a mesh file; allowed are {', '.join(SUFFIXES)}")
    with np.errstate(all="ignore"):  # of numbers that are not finite, which check_mesh() refuses
        file = _checked(path)
    remember_links(path, file.linked)
    return file


def _checked(path: Path) -> MeshFile:
    file = MeshFile(_merge_nodes(path)) if path.suffix.lower() == ".glb" else _parse(path)
    part = file.part
    check_mesh(part.vertices, part.faces, str(path))
    vertices, faces = np.ascontiguousarray(part.vertices, "f4"), np.ascontiguousarray(part.faces, "i4")
    normals = part.normals
    if normals is not None:
        valid = np.isfinite(normals).all(1) & (np.abs(normals) < 1e18).all(1)
        normals = np.where(valid[:, None], normals, 0).astype("f4")
    for array in (vertices, faces, normals, *part.texcoords, part.colors):
        if array is not None:
            array.flags.writeable = False
    return replace(file, part=replace(part, vertices=vertices, faces=faces, normals=normals))


def _merge_nodes(path: Path) -> gltf.MeshPrimitive:
    """The triangles of all nodes of a .glb in world space."""
    model = gltf.load(path)
    vertices, faces, count = [], [], 0
    for mesh, matrix in model.mesh_nodes:
        for part in model.meshes[mesh]:
            vertices.append(part.vertices @ matrix[:3, :3].T + matrix[:3, 3])
            faces.append(part.faces + count)
            count += len(part.vertices)
    return part_of(np.concatenate(vertices), np.concatenate(faces))


def _parse(path: Path) -> MeshFile:
    """The contents of a file, unchecked."""
    data, kind = read_file(path, MAX_FILE_BYTES), path.suffix.lower()[1:]
    try:
        if kind == "obj":
            return read_obj(data, path)
        if kind == "ply":
            return _read_ply(data, path)
        return read_off(data) if kind == "off" else _read_stl(data)
    except MemoryError as error:
        raise InputError(f"{path}: needs more memory than there is") from error
    except MeshError as error:
        raise InputError(f"{path}: not a .{kind} mesh that can be read: {error}") from error


def _read_ply(data: bytes, path: Path) -> MeshFile:
    """A .ply file with the picture beside it that its comments name."""
    found = {name: find_beside(path.parent, name) for name in texture_names(data)[:1]}
    files = {name: file for name, file in found.items() if file}
    linked = {file: stamp_of(file) for file in files.values()}
    textures = {name: gltf.Texture(read_pixels(file)) for name, file in files.items()}
    return replace(read_ply(data, textures), linked=linked)


def _read_stl(data: bytes) -> MeshFile:
    """Binary files by their one record, which their size distinguishes from text; the others by trimesh."""
    count = int.from_bytes(data[STL_HEADER - 4 : STL_HEADER], "little")
    if len(data) >= STL_HEADER and len(data) == STL_HEADER + count * STL_TRIANGLE.itemsize:
        corners = np.frombuffer(data, STL_TRIANGLE, offset=STL_HEADER)["corners"]
        faces = np.arange(3 * count, dtype="i4").reshape(-1, 3)
        return MeshFile(part_of(corners.reshape(-1, 3).astype("f4", copy=False), faces))
    import trimesh  # slow to import, and most scenes have no such mesh

    try:
        mesh = trimesh.load(io.BytesIO(data), file_type="stl", process=False, maintain_order=True)
        mesh = mesh.to_mesh() if hasattr(mesh, "to_mesh") else mesh  # trimesh returns scenes or meshes
        vertices = np.asarray(mesh.vertices, "f8").reshape(-1, 3)
        return MeshFile(part_of(vertices, np.asarray(getattr(mesh, "faces", ()), "i8").reshape(-1, 3)))
    except MemoryError:
        raise
    except Exception as error:  # the parser raises anything on a malformed file
        raise MeshError(f"{type(error).__name__}: {error}") from error


def check_mesh(vertices: np.ndarray, faces: np.ndarray, where: str) -> None:
    """Raise InputError if there is no triangle, a coordinate is not finite or a face has an index out of range."""
    if len(faces) == 0:
        raise InputError(f"{where}: has no triangle")
    if len(faces) > MAX_FACES:
        raise InputError(f"{where}: {len(faces)} triangles are more than the {MAX_FACES} allowed")
    if faces.min() < 0 or faces.max() >= len(vertices):
        face = np.flatnonzero(((faces < 0) | (faces >= len(vertices))).any(1))[0]
        raise InputError(
            f"{where}: face {face} names the vertices {faces[face].tolist()}; there are {len(vertices)}, from 0"
        )
    if not (vertices.min() > -1e18 and vertices.max() < 1e18):  # NaN fails the comparisons too
        vertex = np.flatnonzero(~(np.abs(vertices) < 1e18).all(1))[0]
        raise InputError(
            f"{where}: vertex {vertex} is {vertices[vertex].tolist()}; coordinates must be numbers below 1e18"
        )
