"""Reads Wavefront .obj files (Advanced Visualizer manual, appendix B1) with their material libraries (mtl.py).

Vertex colors after the coordinates are read, as ZBrush, MeshLab and Blender write them. Polygons become triangle fans.
Groups and objects are merged into one mesh. Lines, points, curves and smoothing groups are counted as ignored.
"""

from collections import Counter
from pathlib import Path

import numpy as np

from renderer.formats.gltf.model import MeshPrimitive
from renderer.formats.meshes import contents
from renderer.formats.meshes.mtl import Library, read_libraries
from renderer.plain import format_value

VertexArrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]  # vertices, texcoords, normals, colors
DRAWN = (b"v", b"vt", b"vn", b"f", b"fo", b"usemtl", b"mtllib")
SILENT = b"g o s maplib usemap shadow_obj trace_obj lod bevel c_interp d_interp".split()  # without effect on triangles


def read_obj(data: bytes, path: Path) -> contents.MeshFile:
    """Parses an .obj file; its libraries are looked for in the folder of `path` and below. Raises MeshError."""
    lines = contents.text_lines(data)
    rows: dict[bytes, list[int]] = {}  # line numbers by keyword
    for number, line in enumerate(lines):
        if line and line[0] != ord("#"):
            rows.setdefault(line.split(None, 1)[0], []).append(number)
    bodies = {word: [lines[n][len(word) :] for n in rows.get(word, ())] for word in DRAWN}
    face_lines = sorted(rows.get(b"f", []) + rows.get(b"fo", []))
    points = contents.number_rows(bodies[b"v"], 3, 7, "the vertex")
    vertices, colors = points[:, :3], _colors(points)
    texcoords = contents.number_rows(bodies[b"vt"], 1, 2, "the texture vertex")
    normals = contents.number_rows(bodies[b"vn"], 3, 3, "the normal")
    # lstrip() takes a set of letters: it removes "f" and "fo".
    corners, counts = _corners([lines[n].lstrip(b"fo") for n in face_lines], len(vertices))
    for column, (word, values) in enumerate(((b"v", vertices), (b"vt", texcoords), (b"vn", normals))):
        before = np.searchsorted(rows.get(word, []), face_lines)
        wrong_corner = _resolve(corners[:, column], np.repeat(before, counts), len(values), column == 0)
        if wrong_corner is not None:
            ends = np.cumsum(counts)
            face = int(np.searchsorted(ends, wrong_corner, "right"))
            line = lines[face_lines[face]]
            # The difference is negative: counted back from the face's last corner.
            index = _name(line.split()[wrong_corner - ends[face]].split(b"/")[column])
            is_joined = len(data.splitlines()) != len(lines)  # a backslash continues a line
            where = f"the face {format_value(_name(line))}" if is_joined else f"line {face_lines[face] + 1}"
            raise contents.MeshError(f"{where} names {word.decode()} {index[:30]}; there are {len(values)}, from 1")
    triangles, owner = contents.fans(counts)
    library = read_libraries([_name(body) for body in bodies[b"mtllib"]], path)
    face_materials = _face_materials(rows.get(b"usemtl", []), lines, face_lines, library)[owner]
    arrays = vertices, _flipped(texcoords), normals, colors
    part = _merged(arrays, corners, triangles)
    library.ignored.update(_ignored(rows, lines, bool(len(normals))))
    used = face_materials if (face_materials >= 0).any() else None
    return contents.MeshFile(part, used, library.materials, library.textures, dict(library.ignored), library.linked)


def _name(body: bytes) -> str:
    return body.strip().decode("utf-8", "replace")


def _colors(points: np.ndarray) -> np.ndarray | None:
    """Extracts colors (n, 3) from vertex lines of six numbers; white for shorter lines, None if no line has colors."""
    if points.shape[1] < 6:
        return None
    has = np.isfinite(points[:, 5])
    colors = np.where(has[:, None], points[:, 3:6], 1.0)
    return colors / 255 if has.any() and colors[has].max() > 1 else colors


def _flipped(texcoords: np.ndarray) -> np.ndarray:
    """Converts texture vertices (n, 1 or 2) with v upwards to texture coordinates (n, 2) with v downwards."""
    v = texcoords[:, 1] if texcoords.shape[1] > 1 else np.zeros(len(texcoords))
    return np.stack([texcoords[:, 0], 1 - np.nan_to_num(v)], 1) if len(texcoords) else np.zeros((0, 2))


def _corners(lines: list[bytes], vertex_count: int) -> tuple[np.ndarray, np.ndarray]:
    """Parses face lines: corners (k, 3) as v, vt, vn, 0 for an absent index, and the corner count of each face.

    Each word is a corner. Its slashes are counted, 0 is written for absent indices (`1//3` -> `1/0/3`), then all
    numbers of a chunk of lines are read at once: a word has slashes + 1 of them.
    """
    chunks = [lines[n : n + contents.CHUNK_LINES] for n in range(0, len(lines), contents.CHUNK_LINES)]
    counts = [np.zeros(0, "i8"), *(contents.token_counts(b"\n".join(chunk), len(chunk)) for chunk in chunks)]
    contents.check_polygons(np.concatenate(counts), vertex_count)  # before the indices take memory
    corners = [np.zeros((0, 3), "i8")]
    for chunk in chunks:
        blob = b"\n".join(chunk)
        codes = np.frombuffer(blob, "u1")
        space = codes <= ord(" ")
        starts = np.flatnonzero(~space & np.append(True, space[:-1]))  # of the words
        slashes = np.add.reduceat(codes == ord("/"), starts) if len(starts) else np.zeros(0, "i8")
        blob = blob.replace(b"\t", b" ") + b"\n"
        blob = blob.replace(b"//", b"/0/").replace(b"/ ", b"/0 ").replace(b"/\n", b"/0\n")
        values = contents.numbers_in(blob.replace(b"/", b" "), "i8")
        if len(values) != (slashes + 1).sum() or slashes.max(initial=0) > 2:
            raise contents.MeshError(f"the face {format_value(_wrong_face(chunk))} is no list of v/vt/vn indices")
        corners.append(contents.padded_rows(values, slashes + 1, 3, 0))
    return np.concatenate(corners), np.concatenate(counts)


def _wrong_face(lines: list[bytes]) -> str:
    for line in lines:
        for word in line.split():
            parts = word.split(b"/")
            if len(parts) > 3 or not parts[0] or any(part and not part.lstrip(b"-").isdigit() for part in parts):
                return line.decode("utf-8", "replace")
    return lines[0].decode("utf-8", "replace")


def _resolve(indices: np.ndarray, before: np.ndarray, count: int, required: bool) -> int | None:
    """Converts indices in place: from 1-based, or negative (relative to the face), to 0-based; -1 for an absent index.

    `before` counts, for each corner, the items defined above its face. Returns the first corner whose index is out of
    range; None if there is none.
    """
    back = indices < 0
    indices[back] += before[back] + 1  # -1 is the last item above the face
    wrong = (indices > count) | (back & (indices < 1))
    if required:
        wrong |= indices == 0
    if wrong.any():
        return int(np.argmax(wrong))
    indices -= 1
    return None


def _merged(arrays: VertexArrays, corners: np.ndarray, triangles: np.ndarray) -> MeshPrimitive:
    """Builds a MeshPrimitive of corners (k, 3); a vertex with several normals or texture coordinates is duplicated."""
    vertices, texcoords, normals, colors = arrays
    has_texcoords, has_normals = bool((corners[:, 1] >= 0).any()), bool((corners[:, 2] >= 0).any())
    if not has_texcoords and not has_normals:
        return contents.plain_primitive(vertices, corners[:, 0][triangles], colors=colors)
    first, index = contents.merge_corners([corners[:, 0], corners[:, 1], corners[:, 2]])
    v, t, n = corners[first].T
    return contents.plain_primitive(
        vertices[v],
        index[triangles],
        np.where(n[:, None] >= 0, normals[n], 0) if has_normals else None,
        np.where(t[:, None] >= 0, texcoords[t], 0) if has_texcoords else None,
        colors[v] if colors is not None else None,
    )


def _face_materials(uses: list[int], lines: list[bytes], face_lines: list[int], library: Library) -> np.ndarray:
    """Finds the index of each face's material in the library, -1 for none."""
    names = [_name(lines[n][len(b"usemtl") :]) for n in uses]
    known = {material.name: row for row, material in reversed(list(enumerate(library.materials)))}
    rows = np.array([-1] + [known.get(name, -1) for name in names], "i4")
    library.ignored.update(f"usemtl {name} statements" for name in names if name not in known)
    return rows[np.searchsorted(uses, face_lines)]  # by the number of usemtl lines above the face


def _ignored(rows: dict[bytes, list[int]], lines: list[bytes], has_normals: bool) -> Counter[str]:
    """Counts the statements without effect on the picture."""
    out: Counter[str] = Counter()
    for word, numbers in rows.items():
        if word not in DRAWN and word not in SILENT:
            out[f"{word.decode('utf-8', 'replace')} statements"] += len(numbers)
    if not has_normals:  # smoothing groups matter only where the file has no normals
        groups = {lines[n].split()[1] for n in rows.get(b"s", ()) if len(lines[n].split()) > 1}
        out["s smoothing groups"] += len(groups - {b"off", b"0"})
    return +out
