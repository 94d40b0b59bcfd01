"""The MeshFile that every mesh reader returns, and helpers of these readers.

The helpers parse numbers in text, triangulate polygons and strips, and merge corners that have several indices: an .obj
file numbers positions, texture coordinates and normals apart, while a GPU's vertex has one index.
"""

import codecs
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from renderer.formats.gltf.model import Material, MeshPrimitive, Texture
from renderer.plain import format_value, parse_float
from renderer.records import dataclass, field
from renderer.system.trust import check_memory

CHUNK_LINES = 1 << 16  # lines parsed together: their numbers take some MiB
MAX_FAN = 1 << 10  # corners of a polygon that is triangulated as a fan
MAX_CORNERS = 1 << 29  # corners of all polygons of a file
TRIANGLE_BYTES = 512  # memory that a triangle of a file takes at most while it is read and its BVH is built
FACES = "its faces"  # the beginning of an error of check_polygons() about memory; mesh.py puts the path before it


class MeshError(Exception):
    """A fault in a mesh file; the message does not name the file."""


@dataclass(frozen=True)
class MeshFile:
    """The contents of a mesh file: all its triangles as one MeshPrimitive, and the material of each triangle.

    `face_materials` (m,) int32 are indices of `materials`, -1 for none; None means that no triangle has a material.
    `ignored` counts the statements without effect, in the form renderer.plain.format_ignored takes. `linked` maps the
    other files that the file refers to to their stamps (renderer.system.files.file_stamp).
    """

    part: MeshPrimitive
    face_materials: np.ndarray | None = None
    materials: list[Material] = field(default_factory=list)
    textures: list[Texture] = field(default_factory=list)
    ignored: dict[str, int] = field(default_factory=dict)
    linked: dict[Path, tuple[int, int] | None] = field(default_factory=dict)

    @property
    def has_materials(self) -> bool:
        """True if the file has materials or vertex colors."""
        return self.face_materials is not None or self.part.colors is not None


def plain_primitive(
    vertices: np.ndarray,
    faces: np.ndarray,
    normals: np.ndarray | None = None,
    texcoords: np.ndarray | None = None,
    colors: np.ndarray | None = None,
) -> MeshPrimitive:
    """Builds a MeshPrimitive without a material; the arrays are shaped as its fields. Colors (n, 3) become opaque."""
    if colors is not None:
        opaque = np.ones((len(colors), 1), "f4")
        colors = np.concatenate([colors, opaque], 1) if colors.shape[1] == 3 else colors
        colors = np.clip(np.nan_to_num(colors), 0, 1).astype("f4", copy=False)
    if texcoords is not None:
        texcoords = np.clip(np.nan_to_num(texcoords), -1e6, 1e6).astype("f4", copy=False)
    return MeshPrimitive(vertices, faces, normals, (texcoords,), -1, None, colors)


def decode(data: bytes) -> str:
    """Decodes a text as UTF-8, UTF-16 or UTF-32; bytes that are not valid UTF-8 are read as Windows-1252."""
    marks = [(codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"), (codecs.BOM_UTF16_LE, "utf-16"),
             (codecs.BOM_UTF16_BE, "utf-16"), (codecs.BOM_UTF8, "utf-8-sig")]  # fmt: skip
    encoding = next((name for mark, name in marks if data.startswith(mark)), "")
    if not encoding and data[:4].count(0) == 2:  # UTF-16 without a byte-order mark: every other byte of ASCII is 0
        encoding = "utf-16-le" if data[1:2] == b"\0" else "utf-16-be"
    if encoding:
        return data.decode(encoding, "replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def text_lines(data: bytes) -> list[bytes]:
    """Splits a text of any encoding into stripped UTF-8 lines; a backslash at a line's end continues the line."""
    if not data.isascii() or b"\0" in data[:4]:
        data = decode(data).encode("utf-8", "replace")
    if b"\\\n" in data or b"\\\r" in data:
        data = data.replace(b"\\\r\n", b" ").replace(b"\\\n", b" ").replace(b"\\\r", b" ")
    return [line.strip() for line in data.splitlines()]


def parse_numbers(lines: Sequence[bytes]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Parses lines chunk by chunk: yields the numbers (n,) of a chunk and the count (lines,) of numbers on each line.

    Raises MeshError that quotes the first word that is not a number.
    """
    for first in range(0, len(lines), CHUNK_LINES):
        chunk = lines[first : first + CHUNK_LINES]
        blob = b"\n".join(chunk)
        counts = token_counts(blob, len(chunk))
        values = numbers_in(blob, "f8")
        if len(values) != counts.sum():
            raise MeshError(_wrong_number(chunk))
        yield values, counts


def numbers_in(blob: bytes, kind: str) -> np.ndarray:
    """Parses the white-space separated numbers of a text, up to the first word that is not a number."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # NumPy before 2.3 warns of words that are no numbers
            return np.asarray(np.fromstring(blob, kind, sep=" "))
    except ValueError:
        return np.zeros(0, kind)


def token_counts(blob: bytes, line_count: int) -> np.ndarray:
    """Number of words on each line of a text."""
    codes = np.frombuffer(blob, "u1")
    starts = codes > ord(" ")
    starts[1:] &= codes[:-1] <= ord(" ")
    ends = np.append(np.flatnonzero(codes == ord("\n")), len(codes))
    # The words that begin before the end of each line, less the words of the lines above it.
    return np.diff(np.searchsorted(np.flatnonzero(starts), ends), prepend=0)[:line_count]


def _wrong_number(lines: Sequence[bytes]) -> str:
    texts = (line.decode("utf-8", "replace").strip() for line in lines)
    wrong = ((word, line) for line in texts for word in line.split() if parse_float(word) is None)
    said = (f"{format_value(word)} is no number in the line of {format_value(line)}" for word, line in wrong)
    return next(said, "a number that cannot be read")


def whole_numbers(lines: Sequence[bytes]) -> np.ndarray:
    """Parses the whole numbers of all lines into one array (n,) int64."""
    return as_indices(np.concatenate([np.zeros(0), *(values for values, _ in parse_numbers(lines))]))


def as_indices(values: np.ndarray) -> np.ndarray:
    """Converts vertex indices (n,) to native integers; raises MeshError for fractions."""
    if values.dtype.kind != "f":
        return values.astype("i4" if values.dtype.itemsize < 4 or values.dtype.kind == "i" else "i8", copy=False)
    if not (np.abs(values) < 2**53).all() or (values != np.floor(values)).any():
        raise MeshError("a face names a vertex by what is no whole number")
    return values.astype("i8")


def number_rows(lines: Sequence[bytes], least: int, most: int, what: str) -> np.ndarray:
    """Parses each line to a row of an array (lines, k), k <= `most`; short lines are padded with NaN.

    Numbers beyond the first `most` are dropped. Raises MeshError for a line of fewer than `least` numbers; `what` is
    the error's name for a line, such as "the vertex".
    """
    parts: list[np.ndarray] = []
    for values, counts in parse_numbers(lines):
        if len(counts) and counts.min() < least:
            row = lines[sum(len(part) for part in parts) + int(np.argmin(counts))].decode("utf-8", "replace")
            raise MeshError(f"{what} {format_value(row)} has fewer than {least} numbers")
        width = min(int(counts.max(initial=least)), most)
        if len(counts) and (counts == counts[0]).all():
            parts.append(values.reshape(len(counts), -1)[:, :width])
            continue
        parts.append(padded_rows(values, counts, width, np.nan))
    width = max((part.shape[1] for part in parts), default=least)
    wide = [np.pad(part, ((0, 0), (0, width - part.shape[1])), constant_values=np.nan) for part in parts]
    return np.concatenate([np.zeros((0, width)), *wide])


def padded_rows(values: np.ndarray, counts: np.ndarray, width: int, fill: float) -> np.ndarray:
    """Arranges numbers, counts[i] of them in row i, as rows (n, width): longer rows are cut, shorter ones filled."""
    out = np.full((len(counts), width), fill, values.dtype)
    begin = np.cumsum(counts) - counts
    for column in range(width):
        has = counts > column
        out[has, column] = values[begin[has] + column]
    return out


def check_polygons(counts: np.ndarray, vertex_count: int) -> None:
    """Raises MeshError for a polygon that must repeat vertices, InputError if the triangles take too much memory.

    counts[i] is the number of corners of polygon i. A polygon with holes passes each vertex twice at most.
    """
    most = int(counts.max(initial=0))
    if most > max(MAX_FAN, 2 * vertex_count):
        raise MeshError(f"a face has {most} corners; {vertex_count} vertices make {2 * vertex_count} at most")
    check_memory(TRIANGLE_BYTES * int(np.maximum(counts - 2, 0).sum()), FACES)


def fans(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Triangulates polygons as fans about their first corner; returns triangles (m, 3) and the polygon (m,) of each.

    counts[i] is the number of corners of polygon i. Triangles hold corner numbers, counted through all polygons.
    Polygons of fewer than three corners have no triangle. Those of more than MAX_FAN are halved again and again
    instead: all triangles of a large fan meet in one corner, so that a ray near that corner would test most of them.
    """
    counts = counts.astype("i8")
    if counts.sum() > MAX_CORNERS:
        raise MeshError(f"its polygons have more than the {MAX_CORNERS} corners allowed")
    pieces = np.maximum(counts - 2, 0)  # triangles of each polygon
    owner = np.repeat(np.arange(len(counts)), pieces)  # the polygon of each triangle
    # By polygon, the number of its first corner and of its first triangle; by triangle, the same corner, and its number
    # within the polygon.
    corners, begins = np.cumsum(counts) - counts, np.cumsum(pieces) - pieces
    first, nth = corners[owner], np.arange(len(owner)) - begins[owner]
    out = np.stack([first, first + nth + 1, first + nth + 2], 1)
    second = np.flatnonzero((counts[owner] == 4) & (nth == 1))
    out[second] = out[second][:, [1, 2, 0]]  # a quad's halves: (0, 1, 2) and (2, 3, 0), alike under a half turn
    for polygon in np.flatnonzero(counts > MAX_FAN):
        out[begins[polygon] : begins[polygon] + pieces[polygon]] = corners[polygon] + _halved(int(counts[polygon]))
    return out, owner


def _halved(count: int) -> np.ndarray:
    """Triangles (count - 2, 3) of a polygon: each cuts a run of corners in its middle, until runs have two corners."""
    low, high, out = np.zeros(1, "i8"), np.full(1, count - 1), []
    while len(low):
        is_open = high - low > 1
        low, high = low[is_open], high[is_open]
        middle = (low + high) // 2
        out.append(np.stack([low, middle, high], 1))
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    return np.concatenate(out)


def strips(corners: np.ndarray) -> np.ndarray:
    """Splits triangle strips, separated by -1, into triangles (m, 3) of one winding; drops degenerate triangles."""
    if len(corners) < 3:
        return np.zeros((0, 3), corners.dtype)
    begin = np.concatenate([[0], np.flatnonzero(corners < 0) + 1])
    position = np.arange(len(corners)) - np.repeat(begin, np.diff(np.append(begin, len(corners))))  # in its strip
    triangles = np.stack([corners[:-2], corners[1:-1], corners[2:]], 1)
    is_odd = position[:-2] % 2 == 1
    triangles[is_odd] = triangles[is_odd][:, [1, 0, 2]]
    a, b, c = triangles.T
    is_proper = (triangles >= 0).all(1) & (a != b) & (b != c) & (a != c)
    return np.asarray(triangles[is_proper])


def merge_corners(columns: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Merges the several indices of a corner (vertex, texture coordinate, normal) into one.

    `columns` are arrays (k,) of indices, -1 for none. Corners whose indices are all equal share a combination. Returns
    the first corner of each combination (c,) and the combination of each corner (k,). The indices of a corner are the
    digits of one number `key` below `size`, in the mixed radix of the columns' ranges.
    """
    key, size = np.zeros(len(columns[0]), "i8"), 1
    for column in columns:
        span = int(column.max(initial=-1)) + 2
        if size > (1 << 62) // span:  # the key would overflow 64 bits: renumber the combinations so far densely
            key = np.unique(key, return_inverse=True)[1].astype("i8")
            size = int(key.max(initial=0)) + 1
        key, size = key * span + column + 1, size * span
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    return first, inverse
