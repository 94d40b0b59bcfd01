"""Converts points and lines of glTF to geometry that rays hit: spheres, and tubes with a sphere at each end.

Rasterizers draw points and lines one pixel wide. Geometry with a size in world units reflects, casts shadows and looks
alike at every resolution. The radius is a fraction of the model's size.
"""

from collections import Counter
from dataclasses import replace

import numpy as np

from renderer.formats.gltf.model import Material, MeshPrimitive, Model

POINT_RADIUS, LINE_RADIUS = 3e-3, 1.5e-3  # fractions of the diagonal of the model's AABB
CROWDED = 0.5  # the radius of n points is at most this fraction of the diagonal divided by sqrt(n)
SIDES = 6  # faces around a tube
TRIANGLES_PER_LINE = 2 * SIDES
WHITE = Material("white")


def points_or_lines(corners: np.ndarray, mode: int) -> np.ndarray:
    """Splits corners by the primitive mode into distinct points (m, 1) or lines (m, 2) int32.

    Modes are POINTS (0), LINES, LINE_LOOP and LINE_STRIP.
    """
    if mode == 0:
        return np.unique(corners).astype("i4")[:, None]
    if mode == 1:
        pairs = corners[: len(corners) // 2 * 2].reshape(-1, 2)
    else:
        ends = np.roll(corners, -1) if mode == 2 else corners[1:]
        pairs = np.stack([corners[: len(ends)], ends], 1)
    return np.unique(np.sort(pairs, 1), axis=0).astype("i4").reshape(-1, 2)


def without_light(
    meshes: list[list[MeshPrimitive]], materials: list[Material], ignored: Counter[str]
) -> tuple[list[list[MeshPrimitive]], list[Material]]:
    """Gives points and lines without normals unlit materials, as the specification asks (section 3.9.7).

    Their radiance is base color plus emission. With a texture or vertex colors, which multiply only the base color, the
    emission is dropped and counted in `ignored`.
    """
    # `rows`: the unlit copies, by the material's index and whether textures or vertex colors vary it.
    materials, rows = list(materials), dict[tuple[int, bool], int]()

    def changed(primitive: MeshPrimitive) -> MeshPrimitive:
        """The primitive with an unlit copy of its material, if it has points or lines without normals."""
        if primitive.faces.shape[1] == 3 or primitive.normals is not None:
            return primitive
        material = materials[primitive.material] if primitive.material >= 0 else WHITE
        is_varied = primitive.colors is not None or bool(material.textures)
        glow = np.zeros(3) if is_varied else np.array(material.emission)
        if is_varied and any(material.emission):
            ignored["emission beside colors of points and lines primitives"] += 1
        if (primitive.material, is_varied) not in rows:
            rows[primitive.material, is_varied] = len(materials)
            color = (*(float(c) for c in np.array(material.color[:3]) + glow), material.color[3])
            materials.append(replace(material, unlit=True, color=color))
        return replace(primitive, material=rows[primitive.material, is_varied])

    return [[changed(primitive) for primitive in primitives] for primitives in meshes], materials


def with_radii(model: Model) -> Model:
    """Sets the model's point and line radii from its bounding box at rest; no change without points and lines."""
    primitives = [(primitive, matrix) for mesh, matrix in model.mesh_nodes for primitive in model.meshes[mesh]]
    if all(primitive.faces.shape[1] == 3 for primitive, _ in primitives):
        return model
    low, high, count = np.full(3, np.inf), np.full(3, -np.inf), 0
    for primitive, matrix in primitives:
        used = primitive.vertices[np.unique(primitive.faces)].astype("f8") @ matrix[:3, :3].T + matrix[:3, 3]
        low, high = np.minimum(low, used.min(0)), np.maximum(high, used.max(0))
        count += len(primitive.faces) * (primitive.faces.shape[1] == 1)
    size = float(np.linalg.norm(high - low)) or 1.0
    point_radius = size * min(POINT_RADIUS, CROWDED / max(count, 1) ** 0.5)
    return replace(model, point_radius=point_radius, line_radius=size * LINE_RADIUS)


def balls_and_tubes(
    primitive: MeshPrimitive, matrix: np.ndarray, radius: float
) -> tuple[MeshPrimitive, MeshPrimitive | None]:
    """Transforms points or lines by a matrix (4, 4); returns sphere centers and, for lines, the triangles of tubes."""
    used = np.unique(primitive.faces)
    vertices = primitive.vertices.astype("f8") @ matrix[:3, :3].T + matrix[:3, 3]
    balls = _with_vertices(primitive, used, vertices[used])
    if primitive.faces.shape[1] == 1:
        return balls, None
    begin, end = vertices[primitive.faces[:, 0]], vertices[primitive.faces[:, 1]]
    across, upwards = _perpendicular(end - begin)
    angles = np.arange(SIDES) * (2 * np.pi / SIDES)
    radial = across[:, None] * np.cos(angles)[:, None] + upwards[:, None] * np.sin(angles)[:, None]  # (m, SIDES, 3)
    rings = np.stack([begin[:, None] + radius * radial, end[:, None] + radius * radial], 1)  # (m, 2, SIDES, 3)
    rows = np.repeat(primitive.faces.reshape(-1), SIDES)  # the end of a line at each vertex of `rings`
    this = np.arange(SIDES)  # around the begin of a line; + SIDES: around its end
    following = (this + 1) % SIDES
    sides = np.concatenate([
        np.stack([this, following, following + SIDES], 1), np.stack([this, following + SIDES, this + SIDES], 1)
    ])  # fmt: skip
    faces = (sides + 2 * SIDES * np.arange(len(primitive.faces))[:, None, None]).reshape(-1, 3).astype("i4")
    tubes = _with_vertices(primitive, rows, rings.reshape(-1, 3))
    normals = np.repeat(radial[:, None], 2, 1).reshape(-1, 3).astype("f4")
    return balls, replace(tubes, faces=faces, normals=normals)


def _with_vertices(primitive: MeshPrimitive, rows: np.ndarray, vertices: np.ndarray) -> MeshPrimitive:
    """Replaces the vertices; texture coordinates and colors are the given rows of the primitive's."""
    texcoords = tuple(None if uv is None else uv[rows] for uv in primitive.texcoords)
    colors = None if primitive.colors is None else primitive.colors[rows]
    return replace(
        primitive, vertices=vertices, faces=np.zeros((0, 3), "i4"), normals=None, texcoords=texcoords, tangents=None,
        colors=colors,
    )  # fmt: skip


def _perpendicular(axes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Completes each axis (m, 3) to a right-handed frame: two unit vectors (m, 3); arbitrary for a zero axis."""
    size = np.linalg.norm(axes, axis=1, keepdims=True)
    unit = np.divide(axes, size, out=np.tile([0.0, 1.0, 0.0], (len(axes), 1)), where=size > 0)
    helper = np.zeros_like(unit)
    helper[np.arange(len(unit)), np.abs(unit).argmin(1)] = 1.0
    across = np.cross(helper, unit)
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    return across, np.cross(unit, across)
