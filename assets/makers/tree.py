"""Makes the trees of scenes/grove.toml: `python -m assets.makers.tree assets/tree.glb` (tree_2 and _3: seeds 44 and 3).

A trunk forks again and again; the cross-section of a branch is the sum of its children's (Leonardo's rule). Limbs
are tubes with a picture of bark and its normals, twigs carry squares with a picture of leaves, cut out by its alpha.
"""

import sys
from pathlib import Path

import numpy as np

from assets.makers.gltf_builder import Maker

SIDES, TRUNK, TWIG = 7, 0.17, 0.016  # sides of a tube; radii at the ground and of the thinnest branch that forks
LEAF_SIDE, SEED = 0.42, 12


def grow(rng: np.random.Generator) -> tuple[list[tuple[np.ndarray, np.ndarray]], np.ndarray]:
    """Limbs, each with points (n, 3) and radii (n,); and the points (m, 3) that carry leaves. y is up."""
    branches, leaves = [], []
    waiting = [(np.zeros(3), np.array([0.04, 1.0, 0.02]), TRUNK)]
    while waiting:
        at, way, radius = waiting.pop()
        points, radii = [at], [radius * (1.5 if radius == TRUNK else 1.0)]
        steps = 5 if radius == TRUNK else 4
        for _ in range(steps):
            way = way + rng.normal(0, 0.13, 3) + [0, 0.05, 0]
            way /= np.linalg.norm(way)
            points.append(points[-1] + way * (1.15 * radius**0.55))
            radii.append(radius * (1 - 0.12 * len(radii) / steps))
            if radius < 4 * TWIG:
                leaves.append(points[-1] + rng.normal(0, 0.1, 3))
        branches.append((np.array(points), np.array(radii)))
        if radius < TWIG:
            leaves += [points[-1] + rng.normal(0, 0.16, 3) for _ in range(3)]
            continue
        share = rng.dirichlet([4, 4, 4] if radius > 0.06 else [5, 5])
        turn = rng.uniform(0, 2 * np.pi)
        for k, part in enumerate(share):
            side = np.array([np.cos(turn), 0.25, np.sin(turn)])
            side -= way * (side @ way)
            turn += 2 * np.pi / len(share) + rng.normal(0, 0.3)
            bend = rng.uniform(0.55, 1.0) if k or len(share) > 2 else 0.3
            waiting.append((points[-1], way + bend * side / np.linalg.norm(side), 0.94 * radii[-1] * np.sqrt(part)))
    return branches, np.array(leaves)


def tubes(branches: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Points, normals, places in the picture and faces of the branches."""
    turn = np.linspace(0, 2 * np.pi, SIDES + 1)
    parts, start = [], 0
    for line, radii in branches:
        along = np.gradient(line, axis=0)
        along /= np.linalg.norm(along, axis=1, keepdims=True)
        across = np.cross(along, [0.3, 0.1, 1.0])
        across /= np.linalg.norm(across, axis=1, keepdims=True)
        third = np.cross(along, across)
        out = np.cos(turn)[:, None] * across[:, None] + np.sin(turn)[:, None] * third[:, None]
        far = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(line, axis=0), axis=1))])
        u, v = np.meshgrid(turn / (2 * np.pi) * max(1, round(radii[0] * 18)), 1.4 * far)
        first = (np.arange(len(line) - 1)[:, None] * (SIDES + 1) + np.arange(SIDES)).ravel() + start
        up = first + SIDES + 1
        faces = np.concatenate([np.stack([first, first + 1, up + 1], 1), np.stack([first, up + 1, up], 1)])
        parts.append(((line[:, None] + radii[:, None, None] * out).reshape(-1, 3), out.reshape(-1, 3),
                      np.stack([u.ravel(), v.ravel()], 1), faces))  # fmt: skip
        start += out.shape[0] * out.shape[1]
    points, normals, uv, faces = (np.concatenate(part) for part in zip(*parts, strict=True))
    return points, normals, uv, faces


def foliage(at: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A square at each point, turned at random, with normals that lean out of the crown: as a crown they shade."""
    first, second = rng.normal(0, 1, (2, len(at), 3))
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    second -= first * (first * second).sum(1, keepdims=True)
    second /= np.linalg.norm(second, axis=1, keepdims=True)
    outwards = at - (at.mean(0) - [0, 0.6, 0])
    second *= np.sign((np.cross(first, second) * outwards).sum(1, keepdims=True))  # so that fronts face outwards
    half = LEAF_SIDE / 2 * rng.uniform(0.7, 1.15, (len(at), 1))
    corners = np.stack([at + half * (a * first + b * second) for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))], 1)
    normals = np.cross(first, second) + 0.8 * outwards / np.linalg.norm(outwards, axis=1, keepdims=True)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    uv = np.tile([[0, 1], [1, 1], [1, 0], [0, 0]], (len(at), 1))
    faces = (np.arange(len(at))[:, None, None] * 4 + np.array([[0, 1, 2], [0, 2, 3]])).reshape(-1, 3)
    return corners.reshape(-1, 3), np.repeat(normals, 4, 0), uv, faces


def bark(rng: np.random.Generator, size: int = 128) -> tuple[np.ndarray, np.ndarray]:
    """Color and normal pictures (size, size, 3) uint8 of furrowed bark; both repeat."""
    frequency = np.hypot(np.fft.fftfreq(size)[:, None] * 3.5, np.fft.fftfreq(size)[None, :]) + 0.5 / size
    noise = np.fft.ifft2(np.fft.fft2(rng.normal(0, 1, (size, size))) * frequency**-1.15).real
    height = -np.abs(noise / noise.std())  # ridges
    height = np.clip((height - height.min()) / (np.quantile(height, 0.97) - height.min()), 0, 1) ** 1.6
    color = np.array([52, 38, 28]) + height[..., None] * np.array([96, 78, 60])
    slope = [9 * (np.roll(height, 1, axis) - np.roll(height, -1, axis)) for axis in (1, 0)]
    normal = np.stack([slope[0], -slope[1], np.full(height.shape, 2.0)], 2)
    normal /= np.linalg.norm(normal, axis=2, keepdims=True)
    return color.astype("u1"), np.round((normal + 1) * 127.5).astype("u1")


def sprig(size: int = 128) -> np.ndarray:
    """A picture (size, size, 4) uint8 of seven pointed leaves with veins on a stalk."""
    y, x = np.mgrid[:size, :size] / (size - 1)
    picture = np.zeros((size, size, 4))
    picture[..., :3] = (70, 100, 30)
    for k, (px, py, turn) in enumerate([(0.5, 0.62, -1.2), (0.5, 0.62, 1.2), (0.5, 0.42, -0.9), (0.5, 0.42, 0.9),
                                        (0.5, 0.88, -1.4), (0.5, 0.88, 1.4), (0.5, 0.36, 0.0)]):  # fmt: skip
        along = (x - px) * np.sin(turn) - (y - py) * np.cos(turn)
        across = (x - px) * np.cos(turn) + (y - py) * np.sin(turn)
        t = along / 0.36
        inside = (t > 0) & (t < 1) & (np.abs(across) < 0.26 * np.clip(t, 0, 1) ** 0.6 * np.clip(1 - t, 0, 1) ** 0.8)
        vein = (np.abs(across) < 0.008) | (np.abs((along - 0.9 * np.abs(across)) % 0.06) < 0.007)
        color = np.array([(84, 122, 34), (74, 112, 30), (96, 130, 40)])[k % 3] * (0.85 + 0.3 * t[..., None])
        color = np.where(vein[..., None], color * 1.25, color)
        picture[inside, :3], picture[inside, 3] = color[inside], 255
    picture[(np.abs(x - 0.5) < 0.008) & (y > 0.36), 3] = 255
    return np.clip(picture, 0, 255).astype("u1")


def tree(seed: int = SEED) -> Maker:
    """The tree of a seed as a glTF file."""
    rng = np.random.default_rng(seed)
    branches, at = grow(rng)
    maker = Maker()
    maker.tree["extensionsUsed"] = ["KHR_materials_diffuse_transmission"]
    color, normal = bark(rng)
    repeat = {"wrapS": 10497, "wrapT": 10497}
    rough = maker.add("materials", {
        "name": "bark", "normalTexture": {"index": maker.texture(normal, **repeat)},
        "pbrMetallicRoughness": {"baseColorTexture": {"index": maker.texture(color, **repeat)},
                                 "metallicFactor": 0, "roughnessFactor": 0.9},
    })  # fmt: skip
    through = {"diffuseTransmissionFactor": 0.4, "diffuseTransmissionColorFactor": [0.75, 0.85, 0.3]}
    thin = maker.add("materials", {
        "name": "leaves", "doubleSided": True, "alphaMode": "MASK", "alphaCutoff": 0.5,
        "extensions": {"KHR_materials_diffuse_transmission": through},
        "pbrMetallicRoughness": {"baseColorTexture": {"index": maker.texture(sprig())},
                                 "metallicFactor": 0, "roughnessFactor": 0.55},
    })  # fmt: skip
    for (points, normals, uv, faces), material in ((tubes(branches), rough), (foliage(at, rng), thin)):
        arrays = (np.asarray(a, "f4") for a in (points, normals, uv))
        points, normals, uv = arrays
        maker.node(mesh=maker.mesh(points, faces, normals=normals, uv=uv, material=material))
    return maker


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(tree(*map(int, sys.argv[2:])).glb())
