"""PRIMITIVE, the record over which BVHs are built: triangles and spheres as arrays.

A triangle is a vertex and two edges, a sphere a center and a radius above 0; shaders/bvh/geometry.h reads the records.
raytracing/shapes.py and the generators of scenes make them; build.py and instances.py build BVHs over them.
"""

from collections.abc import Iterable

import numpy as np

# Three fields of four words, 48 bytes. The first three words of a field are floats, a vector; the fourth words are:
#     v0     vertex 0 or center   | primitive id, int32, by which traversal breaks ties (with_primitive_ids())
#     edge1  vertex 1 - vertex 0  | index of the material, int32
#     edge2  vertex 2 - vertex 0  | radius of a sphere, float32; for a triangle 0, or -1 if its edges were swapped
#                                   because an instance mirrors it (raytracing/geometry.py)
PRIMITIVE = np.dtype([("v0", "f4", (4,)), ("edge1", "f4", (4,)), ("edge2", "f4", (4,))])
GEOMETRY_WORDS = [0, 1, 2, 4, 5, 6, 8, 9, 10]  # a primitive's words but id, material and radius
CHUNK = 1 << 16  # primitives that a NumPy loop handles at once, so that float64 copies take a few MiB


def material_of(primitives: np.ndarray) -> np.ndarray:
    """Returns the indices (m,) int32 of the primitives' materials: a view, so writing changes the primitives."""
    material: np.ndarray = primitives["edge1"].view("i4")[..., 3]
    return material


def radius_of(primitives: np.ndarray) -> np.ndarray:
    """Returns the radii (m,) float32 of spheres, at most 0 for triangles: a view, so writing changes the primitives."""
    radius: np.ndarray = primitives["edge2"][..., 3]
    return radius


def float64_columns(primitives: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Returns v0, edge1, edge2 (m, 3) and the radius (m, 1), 0 for triangles, as float64 copies."""
    v0, edge1, edge2 = (primitives[name][:, :3].astype("f8") for name in ("v0", "edge1", "edge2"))
    return v0, edge1, edge2, np.maximum(radius_of(primitives)[:, None].astype("f8"), 0)


def triangles(vertices: np.ndarray, faces: np.ndarray, material: int | np.ndarray = 0) -> np.ndarray:
    """Makes primitives (m,) of triangles: vertices (n, 3), faces (m, 3), material an index or indices (m,)."""
    vertices = np.asarray(vertices).astype("f4", copy=False)
    out = np.zeros(len(faces), PRIMITIVE)
    rows = out.view("f4").reshape(-1, 12)
    for begin in range(0, len(faces), CHUNK):
        chunk, corners = rows[begin : begin + CHUNK], vertices.take(faces[begin : begin + CHUNK], axis=0)
        chunk[:, :3] = corners[:, 0]
        np.subtract(corners[:, 1], corners[:, 0], out=chunk[:, 4:7])
        np.subtract(corners[:, 2], corners[:, 0], out=chunk[:, 8:11])
    material_of(out)[:] = material
    return out


def joined(arrays: list[np.ndarray]) -> np.ndarray:
    """Concatenates a list of primitive arrays and empties the list.

    The largest array grows in place if no other object holds it, so that a large mesh and a ground beside it never take
    twice the mesh's memory: its rows move up behind the arrays before it, from the last chunk to the first, and the
    other arrays are copied around them. Rows of floats are copied, because NumPy copies records field by field, ten
    times slower.
    """
    sizes = [len(array) for array in arrays]
    largest = int(np.argmax(sizes))
    out, before, count = arrays.pop(largest), sum(sizes[:largest]), sum(sizes)
    if not arrays:
        return out
    try:
        out.resize(count)
    except ValueError:  # `out` is a view, or another array is a view of it
        out = np.concatenate([out, np.empty(count - len(out), PRIMITIVE)])
    rows = _rows(out)
    if before:  # the number of rows before the largest array
        for end in range(sizes[largest], 0, -CHUNK):  # from the last: a moved chunk overwrites only chunks moved before
            begin = max(end - CHUNK, 0)
            rows[before + begin : before + end] = rows[begin:end].copy()
    for index, size in enumerate(sizes):
        if index != largest:
            begin = sum(sizes[:index])
            rows[begin : begin + size] = _rows(arrays.pop(0))
    return out


def _rows(primitives: np.ndarray) -> np.ndarray:
    """The primitives (m,) as rows (m, 12) of floats; a view if the array is contiguous, so writing changes it."""
    return np.ascontiguousarray(primitives).view("f4").reshape(-1, 12)


def spheres(centers: np.ndarray, radii: np.ndarray, material: int | np.ndarray = 0) -> np.ndarray:
    """Makes primitives (m,) of spheres: centers (m, 3), radii (m,), material an index or indices (m,)."""
    out = np.zeros(len(centers), PRIMITIVE)
    out["v0"][:, :3] = centers
    radius_of(out)[:] = radii
    material_of(out)[:] = material
    return out


def collapse_duplicates(primitives: np.ndarray) -> np.ndarray:
    """Collapses duplicates among the triangles (m,) of one shape to points, which no ray hits; changes the array.

    A duplicate has the vertices of an earlier triangle; its material may differ. Ties in t, the ray's parameter, are
    broken by lower primitive id, so rays never report a duplicate, but a thousand equal triangles would cost a thousand
    tests each. Triangles are sorted by a 64-bit hash of their vertices, and those with equal hashes are compared. Three
    equal triangles are collapsed too: the stable sort keeps them in order, and each is compared with the one before.
    """
    words = np.ascontiguousarray(primitives).view("u4").reshape(-1, 12)
    keys = np.zeros(len(words), "u8")
    for begin in range(0, len(words), CHUNK):
        chunk = keys[begin : begin + CHUNK]
        for column in GEOMETRY_WORDS:
            chunk *= np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio, the multiplier of Fibonacci hashing
            chunk += words[begin : begin + CHUNK, column]
    in_order = np.sort(keys)
    if not (in_order[1:] == in_order[:-1]).any():
        return primitives
    order = np.argsort(keys, kind="stable")
    same = np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
    later, earlier = order[same + 1], order[same]
    duplicates = later[(words[later] == words[earlier])[:, GEOMETRY_WORDS].all(1)]
    primitives["edge1"][duplicates, :3] = primitives["edge2"][duplicates, :3] = 0
    return primitives


def with_primitive_ids(primitives: np.ndarray, first: int = 0) -> np.ndarray:
    """Numbers the primitives from `first` on, in place, and returns them; traversal breaks ties in t by lower id.

    Slivers, triangles whose area is a rounding error, become points, which no ray hits: the sine of the angle between
    their edges is at most 1e-6, some ten times the rounding of float32.
    """
    primitives["v0"].view("i4")[:, 3] = np.arange(first, first + len(primitives))
    for begin in range(0, len(primitives), CHUNK):
        chunk = primitives[begin : begin + CHUNK]
        (a, b, c), (d, e, f) = (chunk[edge][:, :3].astype("f8").T.copy() for edge in ("edge1", "edge2"))
        cross2 = (b * f - c * e) ** 2 + (c * d - a * f) ** 2 + (a * e - b * d) ** 2  # |edge1 x edge2|^2
        sliver = cross2 <= 1e-12 * (a * a + b * b + c * c) * (d * d + e * e + f * f)
        if sliver.any():
            chunk["edge1"][sliver, :3] = chunk["edge2"][sliver, :3] = 0
    return primitives


class HostPrimitives:
    """Primitives (m,) PRIMITIVE that a builder may free once they are on the device; a million take 48 MB.

    free() empties `rows`; `count` stays m.
    """

    def __init__(self, rows: np.ndarray):
        self.rows, self.count = rows, len(rows)

    def free(self) -> None:
        """Drops this reference to the rows."""
        self.rows = np.zeros(0, PRIMITIVE)


def bounds_by_material(primitives: np.ndarray) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Returns, by material index, the min and max corner (3,) float64 of the material's primitives."""
    by_material: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    for begin in range(0, len(primitives), CHUNK):
        chunk = primitives[begin : begin + CHUNK]
        material = material_of(chunk)
        for index in np.flatnonzero(np.bincount(material)).tolist():
            low, high = _chunk_bounds(chunk if len(chunk) == (material == index).sum() else chunk[material == index])
            before = by_material.get(index, (low, high))
            by_material[index] = np.minimum(low, before[0]), np.maximum(high, before[1])
    return by_material


def bounds(primitives: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the min and max corner (3,) float64 of all primitives (m,) PRIMITIVE, m >= 1."""
    starts = range(0, len(primitives), CHUNK)
    lows, highs = zip(*(_chunk_bounds(primitives[begin : begin + CHUNK]) for begin in starts), strict=True)
    return np.min(lows, 0), np.max(highs, 0)


def _chunk_bounds(chunk: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Min and max corner (3,) float64 of at most CHUNK primitives; their arrays are (3, m), which NumPy reduces faster.

    `points`: for a triangle its vertices, for a sphere its center minus and plus the radius. A triangle counts as a
    sphere of radius 0, and the edges of a sphere are not read.
    """
    corner, edge1, edge2 = (chunk[field][:, :3].astype("f8").T.copy() for field in ("v0", "edge1", "edge2"))
    radius = np.maximum(radius_of(chunk).astype("f8"), 0)
    is_triangle = radius <= 0
    points = [corner - radius, corner + radius] if radius.any() else [corner]
    points += [np.where(is_triangle, corner + edge, corner) for edge in (edge1, edge2)]
    return np.min([point.min(1) for point in points], 0), np.max([point.max(1) for point in points], 0)


def half_area(size: np.ndarray) -> np.ndarray:
    """Returns half the surface areas (...) of boxes of these sizes (3, ...)."""
    area: np.ndarray = size[0] * size[1] + size[1] * size[2] + size[2] * size[0]
    return area


def triangle_distances(sides: Iterable[np.ndarray], origin: np.ndarray, direction: np.ndarray) -> list[np.ndarray]:
    """Returns the distances (m,) of triangles along a ray, infinite without a hit, and True for fronts (m,).

    `sides`: first corners and the edges from there to the second and third, (m, 3) float64 each. Source: T. Moeller and
    B. Trumbore 1997.
    """
    corner, edge1, edge2 = sides
    p, s = np.cross(direction, edge2), origin - corner
    q = np.cross(s, edge1)
    with np.errstate(all="ignore"):
        inverse = 1 / (edge1 * p).sum(1)
        u, v, t = (s * p).sum(1) * inverse, (q @ direction) * inverse, (edge2 * q).sum(1) * inverse
        return [np.where((u >= 0) & (v >= 0) & (u + v <= 1) & (t > 0), t, np.inf), inverse > 0]


def areas(primitives: np.ndarray) -> np.ndarray:
    """Returns the surface areas (m,) float64 of triangles and spheres (m,) PRIMITIVE."""
    # Each primitive has one of the two terms: the edges of a sphere are 0, the radius of a triangle counts as 0.
    _, edge1, edge2, radius = float64_columns(primitives)
    return np.asarray(np.linalg.norm(np.cross(edge1, edge2), axis=1) / 2 + 4 * np.pi * radius[:, 0] ** 2)
