"""Makes the glass of scenes/glassware.toml: `python -m assets.makers.glassware assets/glassware.glb` (a second).

Profiles are turned on a lathe: a curve of radius and height through a few points, up the outside and down the inside.
A sweep of paper lies below and rises behind, so that the picture has no horizon.
"""

import sys
from pathlib import Path

import numpy as np

from assets.makers.gltf_builder import Maker

SIDES, STEPS = 56, 3  # around the axis; along the curve between two points

# Points (radius, height) from the middle of the foot over the rim to the middle of the inside.
GOBLET = [(0, 0), (0.18, 0), (0.33, 0.004), (0.35, 0.014), (0.33, 0.026), (0.14, 0.05), (0.045, 0.11), (0.03, 0.25),
          (0.03, 0.45), (0.05, 0.56), (0.18, 0.64), (0.31, 0.82), (0.345, 1.02), (0.315, 1.24), (0.285, 1.38),
          (0.279, 1.388), (0.273, 1.38), (0.302, 1.24), (0.332, 1.02), (0.297, 0.83), (0.17, 0.665), (0.06, 0.61),
          (0, 0.605)]  # fmt: skip
BOTTLE = [(0, 0.05), (0.15, 0.03), (0.25, 0), (0.295, 0.03), (0.3, 0.1), (0.3, 0.5), (0.3, 0.9), (0.27, 1.08),
          (0.16, 1.25), (0.095, 1.42), (0.085, 1.6), (0.085, 1.8), (0.105, 1.82), (0.112, 1.86), (0.105, 1.9),
          (0.085, 1.915), (0.065, 1.9), (0.062, 1.8), (0.062, 1.6), (0.07, 1.43), (0.13, 1.26), (0.24, 1.07),
          (0.272, 0.9), (0.272, 0.5), (0.272, 0.12), (0.24, 0.06), (0.12, 0.08), (0, 0.1)]  # fmt: skip
VASE = [(0, 0), (0.15, 0), (0.21, 0.015), (0.235, 0.06), (0.32, 0.2), (0.42, 0.42), (0.42, 0.64), (0.31, 0.86),
        (0.19, 1.02), (0.16, 1.14), (0.2, 1.28), (0.27, 1.36), (0.28, 1.375), (0.265, 1.375), (0.18, 1.29),
        (0.135, 1.14), (0.165, 1.01), (0.28, 0.85), (0.38, 0.64), (0.38, 0.43), (0.28, 0.22), (0.15, 0.1),
        (0, 0.08)]  # fmt: skip
BOWL = [(0, 0), (0.14, 0), (0.2, 0.012), (0.2, 0.04), (0.3, 0.07), (0.45, 0.18), (0.54, 0.34), (0.575, 0.46),
        (0.57, 0.472), (0.558, 0.465), (0.52, 0.35), (0.43, 0.205), (0.28, 0.1), (0.12, 0.068), (0, 0.06)]  # fmt: skip
TUMBLER = [(0, 0), (0.15, 0), (0.215, 0.006), (0.235, 0.03), (0.245, 0.2), (0.26, 0.4), (0.272, 0.58), (0.267, 0.59),
           (0.26, 0.58), (0.247, 0.4), (0.23, 0.2), (0.215, 0.12), (0.15, 0.095), (0, 0.09)]  # fmt: skip


def curve(points: list[tuple[float, float]], steps: int = STEPS) -> tuple[np.ndarray, np.ndarray]:
    """Places and tangents (n, 2) of the centripetal Catmull-Rom curve through the points, as cubic Hermite pieces."""
    p = np.array(points)
    gaps = np.sqrt(np.linalg.norm(np.diff(p, axis=0), axis=1))  # centripetal: no loops at narrow rims
    slope = np.diff(p, axis=0) / gaps[:, None]
    inner = (slope[:-1] * gaps[1:, None] + slope[1:] * gaps[:-1, None]) / (gaps[:-1] + gaps[1:])[:, None]
    tangents = np.concatenate([slope[:1], inner, slope[-1:]])
    t = np.arange(steps)[:, None] / steps
    places, ways = [], []
    for k, gap in enumerate(gaps):
        a, b, da, db = p[k], p[k + 1], gap * tangents[k], gap * tangents[k + 1]
        places.append(
            (2 * t**3 - 3 * t**2 + 1) * a + (t**3 - 2 * t**2 + t) * da + (3 * t**2 - 2 * t**3) * b + (t**3 - t**2) * db
        )
        ways.append((6 * t**2 - 6 * t) * (a - b) + (3 * t**2 - 4 * t + 1) * da + (3 * t**2 - 2 * t) * db)
    places, ways = np.concatenate([*places, p[-1:]]), np.concatenate([*ways, tangents[-1:]])
    ways[[0, -1]] = [(1, 0), (-1, 0)]  # flat where the axis is
    places[:, 0] = np.maximum(places[:, 0], 0)
    return places, ways / np.linalg.norm(ways, axis=1, keepdims=True)


def lathe(points: list[tuple[float, float]], sides: int = SIDES) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points, normals and faces of a profile turned around the y axis."""
    places, ways = curve(points)
    turn = np.linspace(0, 2 * np.pi, sides, endpoint=False)
    around = np.stack([np.cos(turn), np.zeros(sides), np.sin(turn)], 1)
    up = np.array([0, 1, 0])
    found = places[:, None, :1] * around + places[:, None, 1:] * up
    normals = ways[:, None, 1:] * around - ways[:, None, :1] * up
    first = np.arange(len(places) - 1)[:, None] * sides + np.arange(sides)
    beside = np.arange(len(places) - 1)[:, None] * sides + (np.arange(sides) + 1) % sides
    a, b, c, d = (n.ravel() for n in (first, beside, beside + sides, first + sides))
    return (
        found.reshape(-1, 3),
        normals.reshape(-1, 3),
        np.concatenate([np.stack([a, d, c], 1), np.stack([a, c, b], 1)]),
    )


def sweep(width: float = 30.0, front: float = 14.0, back: float = -3.5, radius: float = 3.0, height: float = 16.0):
    """Points, normals and faces of a sheet that lies on the ground and rises behind in a quarter of a circle."""
    turn = np.linspace(0, np.pi / 2, 25)
    arc = np.stack([back - radius * np.sin(turn), radius - radius * np.cos(turn)], 1)
    line = np.concatenate([[[front, 0.0]], arc, [[back - radius, height]]])
    out = np.concatenate([[[0.0, 1.0]], np.stack([np.sin(turn), np.cos(turn)], 1), [[1.0, 0.0]]])
    points = np.array([[x, y, z] for z, y in line for x in (-width / 2, width / 2)])
    normals = np.array([[0.0, y, z] for z, y in out for _ in range(2)])
    first = np.arange(len(line) - 1)[:, None] * 2
    return points, normals, np.concatenate([first + [0, 1, 3], first + [0, 3, 2]])


def glass(maker: Maker, name: str, color: tuple, distance: float, roughness: float = 0.0, ior: float = 1.5) -> int:
    """A material that transmits all and absorbs to `color` in `distance`."""
    return maker.add("materials", {
        "name": name, "pbrMetallicRoughness": {"metallicFactor": 0, "roughnessFactor": roughness},
        "extensions": {"KHR_materials_transmission": {"transmissionFactor": 1.0},
                       "KHR_materials_ior": {"ior": ior},
                       "KHR_materials_volume": {"thicknessFactor": 1.0, "attenuationDistance": distance,
                                                "attenuationColor": list(color)}},
    })  # fmt: skip


def glassware() -> Maker:
    """The set as a glTF file."""
    maker = Maker()
    maker.tree["extensionsUsed"] = ["KHR_materials_transmission", "KHR_materials_ior", "KHR_materials_volume"]
    clear = glass(maker, "clear", (0.97, 0.99, 0.98), 1.0)
    green = glass(maker, "green", (0.08, 0.5, 0.22), 0.06)
    amber = glass(maker, "amber", (0.95, 0.45, 0.06), 0.09)
    cobalt = glass(maker, "cobalt", (0.06, 0.16, 0.85), 0.06)
    rose = glass(maker, "rose", (0.95, 0.42, 0.5), 0.08, 0.22)
    paper = maker.add("materials", {
        "name": "paper",
        "pbrMetallicRoughness": {"baseColorFactor": [0.74, 0.68, 0.6, 1], "metallicFactor": 0, "roughnessFactor": 0.75},
    })  # fmt: skip
    pieces = [(BOTTLE, green, [(-1.2, -0.6)]), (GOBLET, clear, [(-0.5, -0.1), (-1.25, 0.75)]),
              (VASE, cobalt, [(0.7, -0.55)]), (BOWL, amber, [(1.6, 0.25)]), (TUMBLER, rose, [(0.35, 0.8)])]  # fmt: skip
    for profile, material, places in pieces:
        points, normals, faces = (
            array.astype(kind) for array, kind in zip(lathe(profile), ("f4", "f4", "u2"), strict=True)
        )
        mesh = maker.mesh(points, faces, normals=normals, material=material)
        for x, z in places:
            maker.node(mesh=mesh, translation=[x, 0.002, z])
    points, normals, faces = sweep()
    maker.node(mesh=maker.mesh(points.astype("f4"), faces, normals=normals.astype("f4"), material=paper))
    return maker


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(glassware().glb())
