"""Procedural shapes as arrays of PRIMITIVE records (bvh/primitives.py), for scenes and benchmarks.

Each generator takes a recursion level, which sets the number of primitives. `sphereflake`, `tetra`, `mount`, `gears`,
`rings` and `tree` follow E. Haines's Standard Procedural Databases (SPD). `menger` is the Menger sponge, and
attractor() the attractor of an iterated function system. shapes.py calls generate(), attractor() and place().
"""

from collections.abc import Callable

import numpy as np

from renderer.bvh.primitives import PRIMITIVE, material_of, radius_of, spheres, triangles
from renderer.raytracing.instances import Point

# Largest level by kind. At that level the shapes have 0.6, 13, 4, 1/30, 6, 42 and 2 million primitives.
MAX_LEVELS = {"sphereflake": 6, "menger": 5, "tetra": 11, "mount": 7, "gears": 22, "rings": 50, "tree": 15}


COUNTS: dict[str, Callable[[int], int]] = {  # number of primitives by kind, as a function of the level
    "sphereflake": lambda level: (9 ** (level + 1) - 1) // 8,
    "menger": lambda level: 4 * 20**level + 8 * 8**level,
    "tetra": lambda level: 4 ** max(level, 1),
    "mount": lambda level: 2 * 4**level,
    "gears": lambda level: 576 * max(level, 1) ** 3,
    "rings": lambda level: 165 * max(level, 1) * (max(level, 1) + 1) * (2 * max(level, 1) + 1),
    "tree": lambda level: 33 * (2 ** (level + 1) - 1),
}


def generate(kind: str, level: int) -> np.ndarray:
    """Returns the primitives (m,) PRIMITIVE of a GENERATORS kind at a level, about the origin, of material 0."""
    return GENERATORS[kind](level)


def place(primitives: np.ndarray, scale: float, position: Point, material: int, z_up: bool = False) -> None:
    """Scales and moves primitives (m,) PRIMITIVE and sets their material, in place; `z_up` maps z to y before."""
    for field in ("v0", "edge1", "edge2"):
        if z_up:
            x, y, z = primitives[field][:, :3].T.copy()
            primitives[field][:, :3] = np.stack([y, z, x], 1)
        primitives[field][:, :3] *= np.float32(scale)
    primitives["v0"][:, :3] += np.array(position, "f4")
    radius_of(primitives)[:] *= np.float32(scale)
    material_of(primitives)[:] = material


def attractor(maps: np.ndarray, level: int, radius: float) -> np.ndarray:
    """Returns k^level spheres on the attractor of the affine maps (k, 3, 4), one for each sequence of `level` maps.

    A sphere's center is the image of the first map's fixed point under the sequence. Its radius is `radius` times the
    cube root of the sequence's determinant, but at least a thousandth of `radius`, so that singular maps stay visible.
    """
    linear, shift = maps[:, :, :3], maps[:, :, 3]
    centers = np.linalg.lstsq(np.eye(3) - linear[0], shift[0], rcond=None)[0][None]
    sizes = np.array([1.0])
    shrink = np.cbrt(np.abs(np.linalg.det(linear)))
    for _ in range(level):
        centers = (np.einsum("kij,nj->kni", linear, centers) + shift[:, None]).reshape(-1, 3)
        sizes = np.outer(shrink, sizes).ravel()
    return spheres(centers, radius * np.maximum(sizes, 1e-3))


def sphereflake(level: int) -> np.ndarray:
    """Returns 9^k spheres for each k = 0..level: the root has radius 1/2; nine spheres of a third touch each sphere."""
    directions = _sphereflake_directions()
    centers, axes, radius = np.zeros((1, 3)), np.array([[0.0, 0.0, 1.0]]), 0.5
    parts = [(centers, radius)]
    for _ in range(level):
        axes = np.einsum("nij,kj->nki", _from_z(axes), directions).reshape(-1, 3)
        centers = np.repeat(centers, len(directions), 0) + axes * radius * (1 + 1 / 3)
        radius /= 3
        parts.append((centers, radius))
    return np.concatenate([spheres(c, np.full(len(c), r)) for c, r in parts])


def _sphereflake_directions() -> np.ndarray:
    """Returns the unit directions (9, 3) from a sphere to its children, for a sphere whose axis is z."""
    d = 1 / np.sqrt(2)
    three = np.array([[d, d, 0], [d, 0, -d], [0, d, -d]])
    tilted = three @ _rotation(np.array([d, -d, 0]), np.arcsin(2 / np.sqrt(6))).T
    turns = [_rotation(np.array([0.0, 0.0, 1.0]), angle) for angle in np.radians([0, 120, 240])]
    return np.concatenate([tilted @ turn.T for turn in turns])


def _rotation(axis: np.ndarray, angle: float) -> np.ndarray:
    """The rotation (3, 3) by `angle` about a unit axis."""
    x, y, z = axis
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.asarray(np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross)


def _from_z(axes: np.ndarray) -> np.ndarray:
    """The rotations (n, 3, 3) by the smallest angle from z to each unit axis (n, 3)."""
    x, y, z = axes.T
    k = np.where(z > -1 + 1e-9, 1 / np.maximum(1 + z, 1e-9), 0)
    rows = [[1 - k * x * x, -k * x * y, x], [-k * x * y, 1 - k * y * y, y], [-x, -y, z]]
    matrices = np.moveaxis(np.array(rows), 2, 0)
    matrices[z <= -1 + 1e-9] = np.diag([1.0, -1.0, -1.0])
    return matrices


def menger(level: int) -> np.ndarray:
    """Returns 4 * 20^level + 8 * 8^level triangles: the Menger sponge in [-1/2, 1/2]^3 without its inner faces."""
    solid = np.ones((1, 1, 1), bool)
    cell = (np.indices((3, 3, 3)) == 1).sum(0) < 2  # of 27 cubes, 20 have at most one coordinate in the middle
    for _ in range(level):
        solid = np.kron(solid, cell).astype(bool)
    side = 1 / len(solid)
    quads = []
    for axis in range(3):
        for direction in (-1, 1):
            neighbor = np.roll(np.pad(solid, 1), -direction, axis)[1:-1, 1:-1, 1:-1]
            quads.append(_faces(np.argwhere(solid & ~neighbor), axis, direction, side))
    return np.concatenate(quads)


def _faces(cells: np.ndarray, axis: int, direction: int, side: float) -> np.ndarray:
    """Returns two triangles for each cell (m, 3): its face towards `direction`, -1 or 1, of `axis`."""
    corner = cells * side - 0.5
    first, second = np.zeros(3), np.zeros(3)
    first[(axis + 1) % 3] = second[(axis + 2) % 3] = side
    if direction > 0:
        corner[:, axis] += side
    else:
        first, second = second, first  # the normal points out of the cell
    out = np.zeros((len(cells), 2), PRIMITIVE)
    out["v0"][:, 0, :3] = corner
    out["edge1"][:, 0, :3], out["edge2"][:, 0, :3] = first, second
    out["v0"][:, 1, :3] = corner + first + second
    out["edge1"][:, 1, :3], out["edge2"][:, 1, :3] = -first, -second
    return out.ravel()


def _copies(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Returns the n * f triangles of n meshes that have vertices (n, v, 3) and share the faces (f, 3)."""
    count, per_mesh, _ = vertices.shape
    return triangles(vertices.reshape(-1, 3), (np.arange(count)[:, None, None] * per_mesh + faces).reshape(-1, 3))


def tetra(level: int) -> np.ndarray:
    """Returns 4^level triangles of the recursive tetrahedral pyramid inside the cube [-1, 1]^3; level 0 is level 1."""
    corners = np.array([[-1, -1, 1], [-1, 1, -1], [1, -1, -1], [1, 1, 1]], "f8")
    centers, half = np.zeros((1, 3)), 1.0
    for _ in range(max(level, 1) - 1):
        half /= 2
        centers = (centers[:, None] + half * corners).reshape(-1, 3)
    faces = np.array([[0, 1, 2], [3, 2, 1], [2, 3, 0], [1, 0, 3]])
    return _copies(centers[:, None] + half * corners, faces)


def mount(level: int) -> np.ndarray:
    """Returns 2 * 4^level triangles of L. Carpenter's fractal mountain over [-1, 1]^2, z up, with SPD's random numbers.

    Squares are subdivided by moving the middles of their edges and of the square up or down. (x, y) is a square's lower
    left grid point of `points` x `points`, `width` its side in grid steps, `heights` (n, 4) the heights of its corners.
    """
    points = 1 << level
    ratio = 2.0 / np.exp(np.log(2.0) / (2.2 - 1.0))  # fractal dimension 2.2
    roughness = np.sqrt(ratio * ratio - 1)
    x = y = np.zeros(1, "i8")
    heights, width = np.zeros((1, 4)), points  # corners: lower left, lower right, upper right, upper left
    while width > 1:
        half = width // 2
        rise = half * 2.0 / points * roughness
        a, b, c, d = heights.T  # in the order of `heights`
        lower = (a + b) / 2 + rise * _gauss(x + half, y, level)
        right = (b + c) / 2 + rise * _gauss(x + width, y + half, level)
        upper = (c + d) / 2 + rise * _gauss(x + half, y + width, level)
        left = (d + a) / 2 + rise * _gauss(x, y + half, level)
        middle = (a + b + c + d) / 4 + 1.4142136 * rise * _gauss(x + half, y + half, level)
        quarters = (
            (a, lower, middle, left),
            (lower, b, right, middle),
            (middle, right, c, upper),
            (left, middle, upper, d),
        )
        heights = np.concatenate([np.stack(quarter, 1) for quarter in quarters])
        x, y = np.concatenate([x, x + half, x + half, x]), np.concatenate([y, y, y + half, y + half])
        width = half
    across = np.stack([x, x + 1, x + 1, x], 1) * 2 / points - 1
    along = np.stack([y, y, y + 1, y + 1], 1) * 2 / points - 1
    return _copies(np.stack([across, along, heights], 2), np.array([[0, 1, 2], [2, 3, 0]]))


def _gauss(a: np.ndarray, b: np.ndarray, level: int) -> np.ndarray:
    """Returns normal random numbers (n,) of SPD's generator, seeded by grid coordinates (polar method).

    The constants are SPD's: a linear congruential generator of period 134456, and shifts that mix the coordinates.
    """
    second = 21 + (((a << (23 - level)) + (b << (15 - level)) + (a << (7 - level))) & 0xFFFF)
    out, pending = np.zeros(len(a)), np.arange(len(a))
    while len(pending):
        first = (28411 + second * 8121) % 134456
        second = (28411 + first * 8121) % 134456
        v1, v2 = first * 2.0 / 134456 - 1, second * 2.0 / 134456 - 1
        square = v1 * v1 + v2 * v2
        inside = square < 1
        out[pending[inside]] = v1[inside] * np.sqrt(-2 * np.log(square[inside]) / square[inside])
        pending, second = pending[~inside], second[~inside]
    return out


def gears(level: int) -> np.ndarray:
    """Returns level^3 meshed gears of 36 teeth, 576 triangles each, in a block on z = 0..1.

    A gear has 144 vertices on its upper rim (four a tooth, at the angles `turns` and radii `reach`), 144 on its lower
    rim, and the centers of both sides. Every second gear is turned by half a tooth, so that neighbors mesh.
    """
    size = max(level, 1)
    radius = 1 / (size - (size - 1) * 0.1 / 2)
    thickness = min(0.1, 1 / (2 * size))
    tooth = 2 * np.pi / 36
    turns = tooth * (np.arange(36)[:, None] + np.array([-0.19, 0.19, 0.3, 0.7])).ravel()
    reach = np.tile([0.995 * radius, 0.995 * radius, 0.9 * radius, 0.9 * radius], 36)
    iz, iy, ix = (i.ravel() for i in np.indices((size, size, size)))
    centers = np.stack([radius - 1 + ix * radius * 1.9, radius - 1 + iy * radius * 1.9, 1 - iz / size], 1)
    angle = turns + (np.pi / 36 * ((ix + iy + iz) % 2))[:, None]
    rim = np.stack([reach * np.cos(angle), reach * np.sin(angle), np.zeros_like(angle)], 2)
    below = np.array([0, 0, -thickness])
    top, bottom = centers[:, None] + rim, centers[:, None] + rim + below
    vertices = np.concatenate([top, bottom, centers[:, None], centers[:, None] + below], 1)
    k = np.arange(144)
    n = (k + 1) % 144  # the vertex after k on the rim
    # Fans about the centers, vertices 288 and 289, and two triangles for each side of the rim.
    corners = [(0 * k + 288, k, n), (0 * k + 289, n + 144, k + 144), (k, k + 144, n + 144), (k, n + 144, n)]
    return _copies(vertices, np.concatenate([np.stack(face, 1) for face in corners]))


def rings(level: int) -> np.ndarray:
    """Returns 5 n (n + 1) (2n + 1) spheres, n = level, and as many cylinders of SIDES sides: rings of six pentagons.

    A ring has a pentagon and five more, tilted as the faces of a dodecahedron; `before` is the index of the corner
    before each corner. Rings fill a pyramid: (depth + 1)^2 of them at each depth.
    """
    size, radius = max(level, 1), 0.07412  # the radius of spheres and cylinders is SPD's
    angle = 2 * np.pi / 5 * np.arange(5)
    pentagon = np.stack([np.cos(angle), np.sin(angle), 0 * angle], 1) / (1 + radius)
    tilt = _rotation(np.array([1.0, 0, 0]), 2 * np.arccos(np.cos(np.pi / 3) / np.sin(np.pi / 5)))
    pentagons = [pentagon]
    pentagons += [pentagon @ tilt.T @ _rotation(np.array([0, 0, 1.0]), np.pi * (2 * k + 1) / 5).T for k in range(5)]
    points = np.concatenate(pentagons)
    before = np.concatenate([np.roll(np.arange(5), 1) + 5 * k for k in range(6)])
    spread = 1 / np.sin(np.pi / 8)
    offsets = np.array([
        (2 * i - depth, spread * (depth + 1), 2 * k - depth)
        for depth in range(size) for k in range(depth + 1) for i in range(depth + 1)
    ])  # fmt: skip
    base = (offsets[:, None] + points).reshape(-1, 3)
    apex = (offsets[:, None] + points[before]).reshape(-1, 3)
    radii = np.full(len(base), radius)
    return np.concatenate([spheres(base, radii), _cones(base, apex, radii, radii)])


def tree(level: int) -> np.ndarray:
    """Returns 2^(level + 1) - 1 branches, z up: cones of SIDES sides with spheres as tips (M. Aono, T. Kunii 1984)."""
    branches = []
    # The two branches of a branch, as in SPD: rotations about x and z in degrees, and scale.
    for x_degrees, z_degrees, shrink in ((40.0, 90.0, 0.65), (25.0, 230.0, 0.70)):
        matrix = np.eye(4)  # for row vectors: rotate about x, then about z, scale, and move to the parent's tip
        about_x = _rotation(np.array([1.0, 0, 0]), np.radians(x_degrees)).T
        about_z = _rotation(np.array([0, 0, 1.0]), np.radians(z_degrees)).T
        matrix[:3, :3] = about_x @ about_z * shrink
        matrix[3, 2] = 1
        branches.append(matrix)
    frames, scale, parts = np.eye(4)[None], 0.15, []
    for _ in range(level + 1):
        base, apex = frames[:, 3, :3], frames[:, 2, :3] + frames[:, 3, :3]
        wide, narrow = np.full(len(frames), scale), np.full(len(frames), scale * 0.67)
        parts += [_cones(base, apex, wide, narrow), spheres(apex, narrow)]
        frames, scale = np.concatenate([branch @ frames for branch in branches]), scale * 0.67
    return np.concatenate(parts)


SIDES = 16  # side faces of cylinders and cones


def _cones(base: np.ndarray, apex: np.ndarray, wide: np.ndarray, narrow: np.ndarray) -> np.ndarray:
    """Returns 2 * SIDES triangles for each open cone from `base` (n, 3), radius `wide`, to `apex`, `narrow`."""
    axis = apex - base
    axis = axis / np.linalg.norm(axis, axis=1, keepdims=True)
    side = np.cross(axis, np.where(np.abs(axis[:, :1]) < 0.7, [1.0, 0, 0], [0, 1.0, 0]))
    side /= np.linalg.norm(side, axis=1, keepdims=True)
    other = np.cross(axis, side)
    angle = 2 * np.pi / SIDES * np.arange(SIDES)
    around = np.cos(angle)[:, None] * side[:, None] + np.sin(angle)[:, None] * other[:, None]
    rings_ = [center[:, None] + radius[:, None, None] * around for center, radius in ((base, wide), (apex, narrow))]
    vertices = np.concatenate(rings_, 1)
    k = np.arange(SIDES)
    n = (k + 1) % SIDES  # the vertex after k on the ring
    return _copies(vertices, np.concatenate([np.stack(v, 1) for v in ((k, n, n + SIDES), (k, n + SIDES, k + SIDES))]))


GENERATORS: dict[str, Callable[[int], np.ndarray]] = {
    make.__name__: make for make in (sphereflake, menger, tetra, mount, gears, rings, tree)
}
