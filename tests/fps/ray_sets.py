"""Sets of rays with the camera, size and order of the Mitsuba peer script, made on the host in float32."""

import numpy as np

AWAY = np.array([0.5, 0.35, 1.0]) / np.linalg.norm([0.5, 0.35, 1.0])


def camera_rays(low, high, size: int) -> np.ndarray:
    """Rays (size * size, 2, 4) of a square picture in 8 x 4 pixel tiles, from 1.6 half-diagonals away."""
    centre, radius = (low + high) / 2, np.linalg.norm(high - low) / 2
    right = np.cross(-AWAY, [0, 1, 0])
    right /= np.linalg.norm(right)
    up = np.cross(right, -AWAY)
    i = np.arange(size * size, dtype="u4")
    x = (i & 7) | (((i >> 5) % (size // 8)) << 3)
    y = ((i >> 3) & 3) | (((i >> 5) // (size // 8)) << 2)
    sx, sy = (((p + np.float32(0.5)) / size * 2 - 1) * np.float32(0.75) for p in (x.astype("f4"), y.astype("f4")))
    rays = np.zeros((len(i), 2, 4), "f4")
    rays[:, 0, :3], rays[:, 0, 3] = centre + 1.6 * radius * AWAY, 3e38
    for axis in range(3):
        rays[:, 1, axis] = -AWAY[axis] + sx * np.float32(right[axis]) + sy * np.float32(up[axis])
    rays[:, 1, :3] /= np.sqrt((rays[:, 1, :3] ** 2).sum(1, keepdims=True))
    return rays


def diffuse_rays(rays, hits, primitives, radius: float, seed: int = 0) -> np.ndarray:
    """Cosine-distributed rays (m, 2, 4) from the hits (n, 4) of primary rays on primitives in the tree's order.

    As many from each hit as make about n rays, in the order of the hits.
    """
    row = hits[:, 3].copy().view("i4")
    hit = np.flatnonzero(row >= 0)
    each = max(1, len(rays) // max(len(hit), 1))
    p = primitives[row[hit]]
    normal = np.cross(p["edge1"][:, :3], p["edge2"][:, :3])
    normal /= np.sqrt((normal**2).sum(1, keepdims=True))
    normal[(normal * rays[hit, 1, :3]).sum(1) > 0] *= -1
    point = rays[hit, 0, :3] + rays[hit, 1, :3] * hits[hit, :1] + np.float32(2e-4 * radius) * normal
    out = np.zeros((len(hit) * each, 2, 4), "f4")
    out[:, 0, :3], out[:, 0, 3] = np.repeat(point, each, 0), 3e38
    rng = np.random.default_rng(seed)
    height = rng.uniform(-1, 1, len(out)).astype("f4")
    angle = rng.uniform(0, 2 * np.pi, len(out)).astype("f4")
    side = np.sqrt(1 - height * height)
    ball = np.stack([side * np.cos(angle), side * np.sin(angle), height], 1)
    direction = np.repeat(normal, each, 0) * np.float32(1.0001) + ball  # a ball's surface about the tip of the normal
    out[:, 1, :3] = direction / np.sqrt((direction**2).sum(1, keepdims=True))
    return out
