"""Reads Geomview's Object File Format (.off): text files, with texture coordinates (ST), colors (C) and normals (N).

Format: www.geomview.org.
"""

import re

import numpy as np

from renderer.formats.meshes.contents import (
    MeshError,
    MeshFile,
    check_polygons,
    fans,
    number_rows,
    plain_primitive,
    text_lines,
    whole_numbers,
)
from renderer.plain import format_value, parse_whole

# Before OFF: texture coordinates, colors, normals, vertices of four numbers, and vertices of n dimensions.
HEADER = re.compile(rb"(ST)?(C)?(N)?(4)?(n)?OFF\b", re.ASCII)


def read_off(data: bytes) -> MeshFile:
    """Parses an OFF file; raises MeshError."""
    lines = [line.split(b"#")[0].strip() for line in text_lines(data)]
    lines = [line for line in lines if line]
    head = HEADER.match(lines[0]) if lines else None
    if not head:
        raise MeshError("its first line is not OFF, COFF, NOFF or CNOFF")
    if head[4] or head[5] or b"BINARY" in lines[0]:
        raise MeshError(f"{format_value(lines[0].decode('latin-1'))} is not read; only text files in three dimensions")
    rest = lines[0][head.end() :].strip()
    lines = ([rest] if rest else []) + lines[1:]
    sizes = [parse_whole(word.decode("latin-1"), 0, 1 << 30) for word in lines[0].split()[:2]] if lines else []
    if len(sizes) < 2 or sizes[0] is None or sizes[1] is None:
        raise MeshError("its second line must be the numbers of vertices, faces and edges")
    vertex_count, face_count = sizes[0], sizes[1]
    if vertex_count + face_count > len(lines) - 1:
        raise MeshError(f"says {vertex_count} vertices and {face_count} faces; it has {len(lines) - 1} lines of them")
    vertices = number_rows(lines[1 : 1 + vertex_count], 3, 14, "the vertex")
    used, normals, colors, texcoords = 3, None, None, None  # `used`: numbers of a vertex line that are taken so far
    if head[3]:
        normals, used = vertices[:, 3:6], 6
    if head[2] and vertices.shape[1] >= used + 3:
        texture = 2 if head[1] else 0  # numbers after the color, which has three or four
        last = min(used + 4, vertices.shape[1] - texture)
        colors, used = vertices[:, used:last], last
        colors = colors / 255 if (colors > 1).any() else colors  # integers from 0 to 255
    if head[1] and vertices.shape[1] >= used + 2:
        texcoords = vertices[:, used : used + 2] * (1, -1) + (0, 1)  # OFF has v upwards
    faces, ignored = _faces(lines[1 + vertex_count : 1 + vertex_count + face_count], vertex_count)
    part = plain_primitive(vertices[:, :3], faces, _if_wide(normals), texcoords, _if_wide(colors))
    return MeshFile(part, ignored=ignored)


def _if_wide(values: np.ndarray | None) -> np.ndarray | None:
    """The values (n, k), or None if the file's lines are too short for three of them."""
    return values if values is not None and values.shape[1] >= 3 else None


def _faces(lines: list[bytes], vertex_count: int) -> tuple[np.ndarray, dict[str, int]]:
    """Parses face lines: a count, that many vertex indices, and an optional color, which is counted as ignored."""
    sizes = np.array([_size(line) for line in lines], "i8")
    words = [line.split(None, size + 1) for line, size in zip(lines, sizes.tolist(), strict=True)]
    corners = whole_numbers([b" ".join(row[1 : size + 1]) for row, size in zip(words, sizes.tolist(), strict=True)])
    if len(corners) != sizes.sum():
        raise MeshError("a face names fewer vertices than it says")
    wrong = np.flatnonzero((corners < 0) | (corners >= vertex_count))
    if len(wrong):
        raise MeshError(f"a face names the vertices {corners[wrong[0]]}; there are {vertex_count}, from 0")
    check_polygons(sizes, vertex_count)
    colored = sum(len(row) > size + 1 for row, size in zip(words, sizes.tolist(), strict=True))
    return corners[fans(sizes)[0]], {"color faces": colored} if colored else {}


def _size(line: bytes) -> int:
    size = parse_whole(line.split(None, 1)[0].decode("latin-1"), 0, 1 << 20)
    if size is None:
        raise MeshError(f"the face {format_value(line.decode('latin-1'))} does not begin with its number of vertices")
    return size
