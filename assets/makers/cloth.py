"""Makes the cloth of scenes/cloth.toml: `python -m assets.makers.cloth assets/cloth.glb` (a minute).

A square falls over a ball and onto a floor by position-based dynamics (M. Mueller, B. Heidelberger, M. Hennix and
J. Ratcliff 2007): threads, their diagonals and, more weakly, every second thread keep their lengths.
"""

import sys
from pathlib import Path

import numpy as np

from assets.makers.gltf_builder import Maker

THREADS, SIDE = 81, 2.6
BALL, RADIUS, THICKNESS = np.array([0.0, 0.62, 0.0]), 0.62, 0.012
SECONDS_A_STEP, STEPS, ROUNDS = 1 / 240, 900, 14
LINKS = ((0, 1, 1.0), (1, 0, 1.0), (1, 1, 1.0), (1, -1, 1.0), (0, 2, 0.12), (2, 0, 0.12))  # rows, columns, stiffness


def drape() -> np.ndarray:
    """The points (THREADS, THREADS, 3) of the cloth at rest."""
    line = np.linspace(-SIDE / 2, SIDE / 2, THREADS)
    u, v = np.meshgrid(line, line)
    c, s = np.cos(np.radians(27)), np.sin(np.radians(27))
    height = 1.32 + np.random.default_rng(4).normal(0, 1e-3, u.shape)
    points, speed = np.stack([c * u - s * v + 0.12, height, s * u + c * v], -1), np.zeros((*u.shape, 3))
    for _ in range(STEPS):
        speed[..., 1] -= 9.81 * SECONDS_A_STEP
        speed *= 0.996
        moved = points + speed * SECONDS_A_STEP
        for _ in range(ROUNDS):
            for dy, dx, stiffness in LINKS:
                keep_length(moved, dy, dx, stiffness)
            moved, touching = pushed_out(moved)
        speed = (moved - points) / SECONDS_A_STEP
        speed[touching] *= 0.6  # friction
        speed *= np.minimum(1, 4 / np.maximum(np.linalg.norm(speed, axis=-1, keepdims=True), 1e-9))
        points = moved
    return points.astype("f4")


def keep_length(points: np.ndarray, dy: int, dx: int, stiffness: float) -> None:
    """Moves both ends of every second link in turn, so that no two links that are moved at once share an end."""
    rest, n = SIDE / (THREADS - 1) * np.hypot(dx, dy), THREADS
    first, second = points[: n - dy, max(0, -dx) : n - max(0, dx)], points[dy:, max(0, dx) : n + min(0, dx)]
    for parity in (0, 1):
        rows, columns = (np.arange(k) for k in first.shape[:2])
        chosen = (columns // abs(dx) % 2 == parity)[None, :] if dx else (rows // dy % 2 == parity)[:, None]
        between = second - first
        length = np.linalg.norm(between, axis=-1, keepdims=True)
        change = stiffness * 0.5 * (length - rest) / np.maximum(length, 1e-9) * between * chosen[..., None]
        first += change
        second -= change


def pushed_out(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The points outside of ball and floor, and which of them touch one."""
    away = points - BALL
    distance = np.linalg.norm(away, axis=-1, keepdims=True)
    out = np.where(
        distance < RADIUS + THICKNESS, BALL + away / np.maximum(distance, 1e-9) * (RADIUS + THICKNESS), points
    )
    low = out[..., 1] < THICKNESS
    out[..., 1] = np.maximum(out[..., 1], THICKNESS)
    return out, low | (distance[..., 0] < RADIUS + 1.2 * THICKNESS)


def tartan(size: int = 256, texels: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Colors and normals, (size * texels, size * texels, 3) uint8, of stripes across stripes, woven two over two.

    A thread is `texels` wide and round: darker and steeper beside its middle.
    """
    stripes = np.zeros((size, 3))
    for start, end, color in ((0, 96, (120, 18, 24)), (96, 112, (22, 28, 52)), (112, 120, (214, 178, 92)),
                              (120, 176, (22, 28, 52)), (176, 184, (214, 178, 92)), (184, 200, (22, 28, 52)),
                              (200, 256, (120, 18, 24))):  # fmt: skip
        stripes[start * size // 256 : end * size // 256] = color
    stripes = np.repeat(stripes, texels, 0)
    y, x = np.mgrid[: size * texels, : size * texels]
    over = ((x // texels + y // texels) // 2 % 2)[..., None] > 0
    across = (np.where(over[..., 0], x, y) % texels + 0.5) / texels * 2 - 1  # -1 to 1 across the thread on top
    color = np.where(over, stripes[None, :], stripes[:, None]) * (1.15 - 0.55 * across[..., None] ** 2)
    slope, flat = 0.8 * across[..., None], np.zeros((*across.shape, 1))
    normal = np.concatenate([np.where(over, slope, flat), np.where(over, flat, -slope), flat + 1], 2)
    normal /= np.linalg.norm(normal, axis=2, keepdims=True)
    return color.astype("u1"), np.round((normal + 1) * 127.5).astype("u1")


def cloth(points: np.ndarray) -> Maker:
    """The cloth as a glTF file, with smooth normals and a pattern that repeats twice."""
    maker, n = Maker(), THREADS
    across, along = np.gradient(points, axis=1), np.gradient(points, axis=0)
    normals = np.cross(along, across).reshape(-1, 3)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    v, u = np.mgrid[:n, :n] * (2.0 / (n - 1))
    corner = (np.arange(n - 1)[:, None] * n + np.arange(n - 1)).ravel()
    faces = np.concatenate(
        [np.stack([corner, corner + n, corner + n + 1], 1), np.stack([corner, corner + n + 1, corner + 1], 1)]
    )
    sheen = {"sheenColorFactor": [0.5, 0.42, 0.4], "sheenRoughnessFactor": 0.4}
    maker.tree["extensionsUsed"] = ["KHR_materials_sheen", "KHR_materials_specular"]
    pattern, relief = ({"index": maker.texture(pixels, wrapS=10497, wrapT=10497)} for pixels in tartan())
    material = maker.add("materials", {
        "name": "wool", "doubleSided": True, "normalTexture": relief,
        "extensions": {"KHR_materials_sheen": sheen, "KHR_materials_specular": {"specularFactor": 0.3}},
        "pbrMetallicRoughness": {"baseColorTexture": pattern, "metallicFactor": 0, "roughnessFactor": 0.9},
    })  # fmt: skip
    uv = np.stack([u.ravel(), v.ravel()], 1).astype("f4")
    mesh = maker.mesh(points.reshape(-1, 3), faces, normals=normals.astype("f4"), uv=uv, material=material)
    maker.node(mesh=mesh)
    return maker


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(cloth(drape()).glb())
