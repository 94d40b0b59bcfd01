"""Reads stereolithography files (.stl), binary and text (3D Systems, StereoLithography Interface Specification, 1989).

Binary files are recognized by their size: the headers of some begin with `solid`, as text files do.
"""

import numpy as np

from renderer.formats.meshes.contents import MeshError, MeshFile, number_rows, plain_primitive, text_lines

HEADER_BYTES = 84  # a comment of 80 bytes and the number of triangles
TRIANGLE = np.dtype([("normal", "<f4", (3,)), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])


def read_stl(data: bytes) -> MeshFile:
    """Parses an STL file; every triangle has three separate vertices. Raises MeshError."""
    count = int.from_bytes(data[HEADER_BYTES - 4 : HEADER_BYTES], "little")
    if len(data) >= HEADER_BYTES and len(data) == HEADER_BYTES + count * TRIANGLE.itemsize:
        corners = np.frombuffer(data, TRIANGLE, offset=HEADER_BYTES)["corners"]
        vertices = corners.reshape(-1, 3).astype("f4", copy=False)
    else:
        vertices = _text_vertices(data)
    return MeshFile(plain_primitive(vertices, np.arange(len(vertices), dtype="i4").reshape(-1, 3)))


def _text_vertices(data: bytes) -> np.ndarray:
    """Parses the `vertex X Y Z` lines of a text: (3 n, 3) float64."""
    lines = text_lines(data.lower())
    if not any(line.startswith(b"solid") for line in lines):
        raise MeshError("it is neither binary, of 84 bytes and 50 a triangle, nor a text that begins with solid")
    if not any(line.startswith(b"endsolid") for line in reversed(lines)):
        raise MeshError("its text has no endsolid")
    vertices = number_rows([line[6:] for line in lines if line.startswith(b"vertex")], 3, 3, "the vertex")
    if len(vertices) % 3:
        raise MeshError(f"its text has {len(vertices)} vertices, which are no triangles")
    return vertices
