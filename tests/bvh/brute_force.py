"""Brute-force ray queries in NumPy, in float64: the reference of tests."""

import numpy as np


def closest_hits(rays: np.ndarray, primitives: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distances t (n,) and primitive rows (n,), inf and -1 for none, of rays (n, 2, 4) against every PRIMITIVE."""
    origin, direction = rays[:, 0, :3].astype("f8"), rays[:, 1, :3].astype("f8")
    best, row = rays[:, 0, 3].astype("f8").copy(), np.full(len(rays), -1)
    for index, p in enumerate(primitives):
        corner, edge1, edge2 = (p[field][:3].astype("f8") for field in ("v0", "edge1", "edge2"))
        radius = float(p["edge2"][3])
        t = (
            _sphere(origin, direction, corner, radius)
            if radius > 0
            else _triangle(origin, direction, corner, edge1, edge2)
        )
        nearer = t < best
        best[nearer], row[nearer] = t[nearer], index
    best[row < 0] = np.inf
    return best, row


def _triangle(origin, direction, corner, edge1, edge2) -> np.ndarray:
    """Distances (n,) to one triangle by solving the 3 x 3 system, inf where it is missed."""
    normal = np.cross(edge1, edge2)
    with np.errstate(all="ignore"):
        t = ((corner - origin) @ normal) / (direction @ normal)
        inside = origin + t[:, None] * direction - corner
        square = normal @ normal
        u, v = np.cross(inside, edge2) @ normal / square, np.cross(edge1, inside) @ normal / square
        return np.where((u >= 0) & (v >= 0) & (u + v <= 1) & (t > 0), t, np.inf)


def _sphere(origin, direction, center, radius) -> np.ndarray:
    """Distances (n,) to the nearer root in front of the origin, inf where there is none."""
    a = (direction**2).sum(1)
    b = ((origin - center) * direction).sum(1)
    c = ((origin - center) ** 2).sum(1) - radius**2
    with np.errstate(all="ignore"):
        root = np.sqrt(b * b - a * c)
        near, far = (-b - root) / a, (-b + root) / a
        t = np.where(near > 0, near, far)
        return np.where(t > 0, t, np.inf)
