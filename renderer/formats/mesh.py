"""Loads untrusted mesh files as triangles or as a Model: .glb by renderer.formats.gltf, others by meshes/.

A file's size is bounded before it is read. A mesh without triangles, with a non-finite coordinate or with an index out
of range raises an InputError that names the vertex or face. An .obj opens other files (material libraries, textures)
only in its folder and below; a .glb as renderer.formats.gltf describes.
"""

from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np

from renderer.errors import InputError
from renderer.formats import gltf
from renderer.formats.images import read_pixels
from renderer.formats.linked import cached_by_file, remember_links
from renderer.formats.meshes.contents import FACES, MeshError, MeshFile, plain_primitive
from renderer.plain import format_value
from renderer.system.files import file_stamp, read_file
from renderer.system.trust import about

MAX_FILE_BYTES = 1 << 30
MAX_FACES = 1 << 27  # triangles of a file
SUFFIXES = (".obj", ".ply", ".stl", ".off", ".glb")
GLTF_SUFFIXES = (".glb", ".gltf", ".vrm", ".usd", ".usda", ".usdc", ".usdz")  # .vrm: avatars, in the container of .glb
PLAIN_MATERIAL = gltf.Material("mesh", metallic=0.0)  # for vertex colors without a material


def load_mesh(path: Path | str) -> tuple[np.ndarray, np.ndarray]:
    """Loads vertices (n, 3) float32 and faces (m, 3) int32; the arrays are shared by callers, so read-only."""
    part = load_part(path)
    return part.vertices, part.faces


def load_part(path: Path | str) -> gltf.MeshPrimitive:
    """Loads all triangles of a mesh file as one MeshPrimitive without a material; its arrays are read-only."""
    return read_mesh(path).part


def load_model(path: Path | str, variant: str = "") -> gltf.Model:
    """Loads a file as a Model, whose arrays are read-only: a mesh file has one mesh with one primitive a material.

    `variant` selects glTF material variants. Raises InputError for a variant that the file does not have.
    """
    path = Path(path)
    # Without a suffix it is taken for glTF, whose reader distinguishes .glb and .gltf by the first bytes.
    if path.suffix.lower() in GLTF_SUFFIXES or not path.suffix:
        return gltf.load(path, variant)
    if variant:
        raise InputError(f"{path}: has no variant {format_value(variant)}; only glTF files have any")
    file = read_mesh(path)
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


@cached_by_file(4)
def read_mesh(path: Path) -> MeshFile:
    """Returns the contents of a mesh file, cached until the file, or a file it refers to, changes."""
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path}: not a mesh file; allowed are {', '.join(SUFFIXES)}")
    with np.errstate(all="ignore"):  # non-finite numbers warn while they are parsed; check_mesh() refuses them
        file = _checked(path)
    remember_links(path, file.linked)
    return file


def _checked(path: Path) -> MeshFile:
    """Reads a mesh file and checks its vertices and faces; normals that are not finite become 0."""
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
    """Transforms the triangles of all nodes of a .glb to world space and concatenates them."""
    model = load_model(path)
    vertices, faces, count = [], [], 0
    for mesh, matrix in model.mesh_nodes:
        for part in model.meshes[mesh]:
            vertices.append(part.vertices @ matrix[:3, :3].T + matrix[:3, 3])
            faces.append(part.faces + count)
            count += len(part.vertices)
    return plain_primitive(np.concatenate(vertices), np.concatenate(faces))


def _parse(path: Path) -> MeshFile:
    """Parses a file by its suffix; indices and coordinates are not checked yet."""
    data, kind = read_file(path, MAX_FILE_BYTES), path.suffix.lower()[1:]
    reader = import_module(f"renderer.formats.meshes.{kind}")  # imported here: most pictures read no mesh
    try:
        with about(path, FACES):
            if kind == "ply":
                return _read_ply(data, path)
            file: MeshFile = reader.read_obj(data, path) if kind == "obj" else getattr(reader, f"read_{kind}")(data)
            return file
    except MemoryError as error:
        raise InputError(f"{path}: needs more memory than there is") from error
    except MeshError as error:
        raise InputError(f"{path}: not a .{kind} mesh that can be read: {error}") from error


def _read_ply(data: bytes, path: Path) -> MeshFile:
    """Reads a .ply file and the texture that its first TextureFile comment names."""
    from renderer.formats.meshes.mtl import PICTURES, find_beside
    from renderer.formats.meshes.ply import read_ply, texture_names

    found = ((name, find_beside(path.parent, name, PICTURES)) for name in texture_names(data)[:1])
    files = {name: file for name, file in found if file}
    textures = {name: gltf.Texture(read_pixels(file)) for name, file in files.items()}
    return replace(read_ply(data, textures), linked={file: file_stamp(file) for file in files.values()})


def check_mesh(vertices: np.ndarray, faces: np.ndarray, where: str) -> None:
    """Raises InputError if there is no triangle, a coordinate is not finite or an index of a face is out of range."""
    if len(faces) == 0:
        raise InputError(f"{where}: has no triangle")
    if len(faces) > MAX_FACES:
        raise InputError(f"{where}: {len(faces)} triangles are more than the {MAX_FACES} allowed")
    if faces.min() < 0 or faces.max() >= len(vertices):
        face = np.flatnonzero(((faces < 0) | (faces >= len(vertices))).any(1))[0]
        named = f"names the vertices {faces[face].tolist()}"
        raise InputError(f"{where}: face {face} {named}; there are {len(vertices)}, from 0")
    if not (vertices.min() > -1e18 and vertices.max() < 1e18):  # NaN fails the comparisons too
        vertex = np.flatnonzero(~(np.abs(vertices) < 1e18).all(1))[0]
        wanted = "coordinates must be numbers below 1e18"
        raise InputError(f"{where}: vertex {vertex} is {vertices[vertex].tolist()}; {wanted}")
