"""Bodies for the makers of scenes: turned on a lathe, shells, sheets, and how they are turned and placed.

A body is points (n, 3), normals (n, 3), texture coordinates (n, 2) and faces (m, 3), outsides counter-clockwise.
"""

import numpy as np

from assets.makers.glassware import curve

Body = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def grid_faces(rows: int, columns: int) -> np.ndarray:
    """The triangles (m, 3) of a grid of rows x columns points."""
    first = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)).ravel()
    above = first + columns
    return np.concatenate([np.stack([first, above, above + 1], 1), np.stack([first, above + 1, first + 1], 1)])


def grid_body(points: np.ndarray) -> Body:
    """A grid of points (rows, columns, 3), with normals by central differences; u along columns, v along rows."""
    rows, columns, _ = points.shape
    normals = np.cross(np.gradient(points, axis=0), np.gradient(points, axis=1))
    normals /= np.maximum(np.linalg.norm(normals, axis=2, keepdims=True), 1e-12)
    u, v = np.meshgrid(np.linspace(0, 1, columns), np.linspace(0, 1, rows))
    return points.reshape(-1, 3), normals.reshape(-1, 3), np.stack([u.ravel(), v.ravel()], 1), grid_faces(rows, columns)


def lathe(points: list[tuple[float, float]], sides: int = 48, steps: int = 3) -> Body:
    """A profile of (radius, height) turned around y; u once around, v along the profile by its length, from 1 to 0."""
    places, ways = curve(points, steps)
    turn = np.linspace(0, 2 * np.pi, sides + 1)
    around = np.stack([np.cos(turn), np.zeros(sides + 1), -np.sin(turn)], 1)
    up = np.array([0, 1, 0])
    found = places[:, None, :1] * around + places[:, None, 1:] * up
    normals = ways[:, None, 1:] * around - ways[:, None, :1] * up
    far = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(places, axis=0), axis=1))])
    u, v = np.meshgrid(turn / (2 * np.pi), 1 - far / far[-1])
    faces = grid_faces(len(places), sides + 1)[:, [0, 2, 1]]
    return found.reshape(-1, 3), normals.reshape(-1, 3), np.stack([u.ravel(), v.ravel()], 1), faces


def nautilus(turns: float = 2.3, growth: float = 3.1, rows: int = 72, columns: int = 24) -> Body:
    """A logarithmic spiral of ellipses about z, 1 from axis to lip; u around the section, v from core to lip."""
    angle = np.linspace(-2 * np.pi * turns, 0, rows)[:, None]
    size = growth ** (angle / (2 * np.pi)) * (1 + 0.07 * np.clip(angle / 0.5 + 1, 0, 1) ** 2)  # the lip flares
    section = np.linspace(0, 2 * np.pi, columns)[None, :]
    radius = size * (0.6 + 0.4 * np.cos(section))
    side = 0.54 * size * np.sin(section) * np.cos(section / 2 - np.pi * (section > np.pi)) ** 0.15
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle), side], 2)
    vertices, normals, uv, faces = grid_body(points)
    return vertices, -normals, uv, faces[:, [0, 2, 1]]


def moved(body: Body, move: tuple = (0, 0, 0), turn: np.ndarray | None = None, scale: float = 1.0) -> Body:
    """The body scaled, then turned by a matrix (3, 3), then moved."""
    points, normals, uv, faces = body
    turn = np.eye(3) if turn is None else turn
    return scale * points @ turn.T + move, normals @ turn.T, uv, faces


def joined(bodies: list[Body]) -> Body:
    """Bodies as one."""
    starts = np.cumsum([0, *[len(body[0]) for body in bodies]])[:-1]
    faces = [body[3] + start for body, start in zip(bodies, starts, strict=True)]
    points, normals, uv = (np.concatenate([body[k] for body in bodies]) for k in range(3))
    return points, normals, uv, np.concatenate(faces)


def turned(x: float, y: float, z: float) -> np.ndarray:
    """The rotation (3, 3) by degrees about x, then y, then z."""
    (cx, cy, cz), (sx, sy, sz) = np.cos(np.radians([x, y, z])), np.sin(np.radians([x, y, z]))
    about_x = np.array([[1, 0, 0], [0, cx, -sx], [0, sx, cx]])
    about_y = np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
    return np.array([[cz, -sz, 0], [sz, cz, 0], [0, 0, 1]]) @ about_y @ about_x


def quaternion(matrix: np.ndarray) -> list[float]:
    """The unit quaternion (x, y, z, w) of a rotation (3, 3): the eigenvector of K. Shepperd's symmetric form."""
    m = matrix
    form = np.array([
        [m[0, 0] - m[1, 1] - m[2, 2], m[1, 0] + m[0, 1], m[2, 0] + m[0, 2], m[2, 1] - m[1, 2]],
        [m[1, 0] + m[0, 1], m[1, 1] - m[0, 0] - m[2, 2], m[2, 1] + m[1, 2], m[0, 2] - m[2, 0]],
        [m[2, 0] + m[0, 2], m[2, 1] + m[1, 2], m[2, 2] - m[0, 0] - m[1, 1], m[1, 0] - m[0, 1]],
        [m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1], m[0, 0] + m[1, 1] + m[2, 2]]])  # fmt: skip
    found = np.linalg.eigh(form)[1][:, -1]
    return (found * (1 if found[3] >= 0 else -1)).round(6).tolist()
