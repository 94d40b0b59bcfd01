"""Primitives, the records that a BVH is built over: triangles and spheres as arrays.

A triangle is a vertex and two edges, a sphere a center and a radius above 0; see shaders/bvh/geometry.h.
"""

import numpy as np

# 48 bytes: vertex 0 or center, primitive id | first edge, index of the material | second edge, radius.
PRIMITIVE = np.dtype([("v0", "f4", (4,)), ("edge1", "f4", (4,)), ("edge2", "f4", (4,))])
GEOMETRY_WORDS = [0, 1, 2, 4, 5, 6, 8, 9, 10]  # of the 12 of a primitive: no id, material and radius
CHUNK = 1 << 16  # primitives that are gone through together, so that float64 copies take a few MiB


def triangles(vertices: np.ndarray, faces: np.ndarray, material: int | np.ndarray = 0) -> np.ndarray:
    """Primitives (m,) of triangles: vertices (n, 3), faces (m, 3), material an index or (m,)."""
    vertices = np.asarray(vertices).astype("f4", copy=False)
    out = np.zeros(len(faces), PRIMITIVE)
    rows = out.view("f4").reshape(-1, 12)
    for begin in range(0, len(faces), CHUNK):
        chunk, corners = rows[begin : begin + CHUNK], vertices.take(faces[begin : begin + CHUNK], axis=0)
        chunk[:, :3] = corners[:, 0]
        np.subtract(corners[:, 1], corners[:, 0], out=chunk[:, 4:7])
        np.subtract(corners[:, 2], corners[:, 0], out=chunk[:, 8:11])
    out["edge1"].view("i4")[:, 3] = material
    return out


def joined(arrays: list[np.ndarray]) -> np.ndarray:
    """All primitives of a list, which is emptied; the only array of a list of one. NumPy copies records field by field.

    Rows of floats are copied ten times as fast. The largest array grows in place where nobody else holds it, so that a
    mesh that gets a ground is not there twice.
    """
    sizes = [len(array) for array in arrays]
    at = int(np.argmax(sizes))
    out, before, count = arrays.pop(at), sum(sizes[:at]), sum(sizes)
    if not arrays:
        return out
    try:
        out.resize(count)
    except ValueError:  # it is a view, or has one
        out = np.concatenate([out, np.empty(count - len(out), PRIMITIVE)])
    rows = _rows(out)
    for end in range(sizes[at], 0, -CHUNK) if before else ():  # from the end, which the next chunk may overwrite
        begin = max(end - CHUNK, 0)
        rows[before + begin : before + end] = rows[begin:end].copy()
    for place, size in enumerate(sizes):
        if place != at:
            begin = sum(sizes[:place])
            rows[begin : begin + size] = _rows(arrays.pop(0))
    return out


def _rows(primitives: np.ndarray) -> np.ndarray:
    """Rows (m, 12) of floats."""
    return np.ascontiguousarray(primitives).view("f4").reshape(-1, 12)


def spheres(centers: np.ndarray, radii: np.ndarray, material: int | np.ndarray = 0) -> np.ndarray:
    """Primitives (m,) of spheres: centers (m, 3), radii (m,), material an index or (m,)."""
    out = np.zeros(len(centers), PRIMITIVE)
    out["v0"][:, :3] = centers
    out["edge2"][:, 3] = radii
    out["edge1"].view("i4")[:, 3] = material
    return out


def collapse_duplicates(primitives: np.ndarray) -> np.ndarray:
    """The triangles (m,) of one shape; those equal to an earlier one, but for the material, collapse to points.

    Ties in t are broken by lower primitive id, so no ray ever hits a duplicate first; but a thousand triangles in one
    place would cost every ray that gets there a thousand tests. The array is changed in place.
    """
    words = np.ascontiguousarray(primitives).view("u4").reshape(-1, 12)
    keys = np.zeros(len(words), "u8")
    for begin in range(0, len(words), CHUNK):
        chunk = keys[begin : begin + CHUNK]
        for column in GEOMETRY_WORDS:
            chunk *= np.uint64(0x9E3779B97F4A7C15)
            chunk += words[begin : begin + CHUNK, column]
    in_order = np.sort(keys)
    if not (in_order[1:] == in_order[:-1]).any():
        return primitives
    words = words[:, GEOMETRY_WORDS]
    order = np.argsort(keys, kind="stable")
    same = np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
    later, earlier = order[same + 1], order[same]
    duplicates = later[(words[later] == words[earlier]).all(1)]
    primitives["edge1"][duplicates, :3] = primitives["edge2"][duplicates, :3] = 0
    return primitives


def with_primitive_ids(primitives: np.ndarray, first: int = 0) -> np.ndarray:
    """The primitives with ids from `first` on written into them; ties in t are broken by lower id.

    Slivers, triangles whose area is a rounding error, collapse to points, which no ray hits. The array is changed in
    place.
    """
    primitives["v0"].view("i4")[:, 3] = np.arange(first, first + len(primitives))
    for begin in range(0, len(primitives), CHUNK):
        chunk = primitives[begin : begin + CHUNK]
        (a, b, c), (d, e, f) = (chunk[edge][:, :3].astype("f8").T.copy() for edge in ("edge1", "edge2"))
        area2 = (b * f - c * e) ** 2 + (c * d - a * f) ** 2 + (a * e - b * d) ** 2
        sliver = area2 <= 1e-12 * (a * a + b * b + c * c) * (d * d + e * e + f * f)
        if sliver.any():
            chunk["edge1"][sliver, :3] = chunk["edge2"][sliver, :3] = 0
    return primitives


class HostPrimitives:
    """Primitives (m,) PRIMITIVE on the host that a builder may free once they are on the device: 48 MB a million.

    `rows` are none after that; `count` stays.
    """

    def __init__(self, rows: np.ndarray):
        self.rows, self.count = rows, len(rows)

    def free(self) -> None:
        """Gives the rows up; the memory is free where nobody else holds them."""
        self.rows = np.zeros(0, PRIMITIVE)


def bounds_by_material(primitives: np.ndarray) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Min and max corners (3,) float64 of the primitives of each material, by its index."""
    found: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    for begin in range(0, len(primitives), CHUNK):
        chunk = primitives[begin : begin + CHUNK]
        material = chunk["edge1"].view("i4")[:, 3]
        for index in np.flatnonzero(np.bincount(material)).tolist():
            low, high = _bounds(chunk if len(chunk) == (material == index).sum() else chunk[material == index])
            before = found.get(index, (low, high))
            found[index] = np.minimum(low, before[0]), np.maximum(high, before[1])
    return found


def _bounds(chunk: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Min and max corner (3,) float64 of a few primitives, axis by axis."""
    corner, edge1, edge2 = (chunk[field][:, :3].astype("f8").T.copy() for field in ("v0", "edge1", "edge2"))
    radius = np.maximum(chunk["edge2"][:, 3].astype("f8"), 0)
    flat = radius <= 0
    ends = [corner - radius, corner + radius] if radius.any() else [corner]
    ends += [np.where(flat, corner + edge, corner) for edge in (edge1, edge2)]
    return np.min([end.min(1) for end in ends], 0), np.max([end.max(1) for end in ends], 0)


def areas(primitives: np.ndarray) -> np.ndarray:
    """Surface areas (m,) float64 of triangles and spheres."""
    sides = np.cross(primitives["edge1"][:, :3].astype("f8"), primitives["edge2"][:, :3].astype("f8"))
    return np.linalg.norm(sides, axis=1) / 2 + 4 * np.pi * np.maximum(primitives["edge2"][:, 3].astype("f8"), 0) ** 2
