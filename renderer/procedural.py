"""Scenes made from a number: primitives of any count, so that nobody needs a download.

`sphereflake` is the `balls` of E. Haines's Standard Procedural Databases; `menger` shows each visible unit face once.
"""

import numpy as np

from renderer.mesh import PRIMITIVE, spheres

LEVELS = {"sphereflake": 6, "menger": 5}  # the highest level of each: 600,000 spheres, 13 million triangles


def make(kind: str, level: int) -> np.ndarray:
    """Primitives (m,) PRIMITIVE of a kind at a level, about the origin, material 0."""
    return MAKERS[kind](level)


def sphereflake(level: int) -> np.ndarray:
    """Sum of 9^k spheres, k = 0..level: the root of radius 1/2, a child a third as large and touching its parent."""
    directions = _sphereflake_directions()
    centres, axes, radius = np.zeros((1, 3)), np.array([[0.0, 0.0, 1.0]]), 0.5
    parts = [(centres, radius)]
    for _ in range(level):
        axes = np.einsum("nij,kj->nki", _from_z(axes), directions).reshape(-1, 3)
        centres = np.repeat(centres, len(directions), 0) + axes * radius * (1 + 1 / 3)
        radius /= 3
        parts.append((centres, radius))
    return np.concatenate([spheres(c, np.full(len(c), r)) for c, r in parts])


def _sphereflake_directions() -> np.ndarray:
    """The nine directions (9, 3) of a sphere's children, the sphere's own axis being z."""
    d = 1 / np.sqrt(2)
    three = np.array([[d, d, 0], [d, 0, -d], [0, d, -d]])
    tilted = three @ _rotation(np.array([d, -d, 0]), np.arcsin(2 / np.sqrt(6))).T
    turns = [_rotation(np.array([0.0, 0.0, 1.0]), angle) for angle in np.radians([0, 120, 240])]
    return np.concatenate([tilted @ turn.T for turn in turns])


def _rotation(axis: np.ndarray, angle: float) -> np.ndarray:
    """The matrix (3, 3) that turns by `angle` about a unit axis."""
    x, y, z = axis
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross


def _from_z(axes: np.ndarray) -> np.ndarray:
    """Matrices (n, 3, 3) that turn z into each unit axis (n, 3) by the shortest way."""
    x, y, z = axes.T
    k = np.where(z > -1 + 1e-9, 1 / np.maximum(1 + z, 1e-9), 0)
    rows = [[1 - k * x * x, -k * x * y, x], [-k * x * y, 1 - k * y * y, y], [-x, -y, z]]
    matrices = np.moveaxis(np.array(rows), 2, 0)
    matrices[z <= -1 + 1e-9] = np.diag([1.0, -1.0, -1.0])
    return matrices


def menger(level: int) -> np.ndarray:
    """4 * 20^n + 8 * 8^n triangles of the sponge in [-1/2, 1/2]^3: no face between two solid cubes."""
    solid = np.ones((1, 1, 1), bool)
    cell = (np.indices((3, 3, 3)) == 1).sum(0) < 2  # of 27 cubes, 20 have at most one coordinate in the middle
    for _ in range(level):
        solid = np.kron(solid, cell).astype(bool)
    side = 1 / len(solid)
    quads = []
    for axis in range(3):
        for direction in (-1, 1):
            beside = np.zeros_like(solid)
            inside = [slice(None)] * 3
            outside = [slice(None)] * 3
            inside[axis] = slice(1, None) if direction < 0 else slice(None, -1)
            outside[axis] = slice(None, -1) if direction < 0 else slice(1, None)
            beside[tuple(inside)] = solid[tuple(outside)]
            quads.append(_faces(np.argwhere(solid & ~beside), axis, direction, side))
    return np.concatenate(quads)


def _faces(cells: np.ndarray, axis: int, direction: int, side: float) -> np.ndarray:
    """Two triangles for the face of each cell (m, 3) towards `direction` along `axis`."""
    corner = cells * side - 0.5
    first, second = np.zeros(3), np.zeros(3)
    first[(axis + 1) % 3] = second[(axis + 2) % 3] = side
    if direction > 0:
        corner[:, axis] += side
    else:
        first, second = second, first  # the normal points out of the cell
    out = np.zeros((len(cells), 2), PRIMITIVE)
    out["corner"][:, 0, :3] = corner
    out["edge1"][:, 0, :3], out["edge2"][:, 0, :3] = first, second
    out["corner"][:, 1, :3] = corner + first + second
    out["edge1"][:, 1, :3], out["edge2"][:, 1, :3] = -first, -second
    return out.ravel()


def tessellated(balls: np.ndarray, level: int) -> np.ndarray:
    """20 * 4^level triangles (m,) PRIMITIVE for each sphere: an icosahedron whose edges are halved `level` times."""
    corners = _icosahedron()
    for _ in range(level):
        a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
        ab, bc, ca = (m / np.linalg.norm(m, axis=1, keepdims=True) for m in (a + b, b + c, c + a))
        corners = np.concatenate([np.stack(t, 1) for t in ((a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca))])
    corners = corners.astype("f4")
    edges = corners[:, 1:] - corners[:, :1]
    radius = balls["edge2"][:, None, 3:]
    out = np.zeros((len(balls), len(corners)), PRIMITIVE)
    out["corner"][..., :3] = balls["corner"][:, None, :3] + corners[:, 0] * radius
    out["edge1"][..., :3], out["edge2"][..., :3] = edges[:, 0] * radius, edges[:, 1] * radius
    return out.ravel()


def _icosahedron() -> np.ndarray:
    """Corners (20, 3, 3) of triangles on the unit sphere, counter-clockwise from outside."""
    g = (1 + np.sqrt(5)) / 2
    points = np.array([[s, t * g, 0] for s in (-1, 1) for t in (-1, 1)])
    points = np.concatenate([points, np.roll(points, 1, 1), np.roll(points, 2, 1)]) / np.sqrt(1 + g * g)
    near = np.linalg.norm(points[:, None] - points[None], axis=2) < 1.1
    faces = [
        (i, j, k) for i in range(12) for j in range(i) for k in range(j) if near[i, j] and near[j, k] and near[k, i]
    ]
    corners = points[np.array(faces)]
    inwards = (
        np.einsum("ni,ni->n", np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), corners[:, 0]) < 0
    )
    corners[inwards] = corners[inwards][:, [0, 2, 1]]
    return corners


MAKERS = {"sphereflake": sphereflake, "menger": menger}
