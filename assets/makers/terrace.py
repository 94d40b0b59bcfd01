"""Makes the solids of scenes/terrace.toml: `python -m assets.makers.terrace assets/terrace.glb` (two seconds).

A floor of tiles, a balustrade and columns above a sea with waves, a lemon tree in a pot, a table laid for the
evening, a lantern. Units are meters; the balustrade stands along x, the sea lies behind it, towards -z.
"""

import sys
from pathlib import Path

import numpy as np

from assets.makers.glassware import BOTTLE, BOWL, GOBLET, glass, lathe
from assets.makers.gltf_builder import Maker

SEED, RAIL, SEA = 5, -2.0, -9.0  # z of the balustrade, y of the sea
REPEAT = {"wrapS": 10497, "wrapT": 10497}

# Profiles (radius, height) from the middle of the foot to the middle of the top; two close points are an edge.
BALUSTER = [(0, 0), (0.085, 0), (0.09, 0.004), (0.09, 0.05), (0.085, 0.055), (0.06, 0.065), (0.055, 0.09),
        (0.07, 0.11), (0.1, 0.2), (0.102, 0.26), (0.08, 0.36), (0.05, 0.5), (0.042, 0.58), (0.06, 0.6),
        (0.062, 0.62), (0.044, 0.64), (0.05, 0.665), (0.085, 0.69), (0.09, 0.695), (0.09, 0.72),
        (0, 0.722)]  # fmt: skip
COLUMN = [(0, 0), (0.3, 0), (0.305, 0.006), (0.305, 0.09), (0.29, 0.1), (0.3, 0.13), (0.3, 0.17),
        (0.27, 0.2), (0.235, 0.21), (0.24, 0.24), (0.225, 0.28), (0.222, 0.4), (0.222, 1.2), (0.215, 2.0),
        (0.2, 2.9), (0.19, 3.3), (0.22, 3.32), (0.22, 3.36), (0.19, 3.38), (0.19, 3.5), (0.28, 3.6),
        (0, 3.61)]  # fmt: skip
POT = [(0, 0), (0.2, 0), (0.21, 0.008), (0.225, 0.05), (0.215, 0.07), (0.27, 0.3), (0.3, 0.44),
        (0.335, 0.45), (0.34, 0.46), (0.34, 0.53), (0.33, 0.54), (0.3, 0.54), (0.295, 0.53), (0.285, 0.47),
        (0.1, 0.48), (0, 0.48)]  # fmt: skip
TOP = [(0, 0), (0.47, 0), (0.485, 0.008), (0.485, 0.024), (0.475, 0.032), (0, 0.032)]
STEM = [(0, 0), (0.24, 0), (0.245, 0.008), (0.23, 0.022), (0.09, 0.045), (0.035, 0.08), (0.03, 0.2),
        (0.05, 0.26), (0.055, 0.28), (0.03, 0.34), (0.026, 0.55), (0.03, 0.62), (0.08, 0.69), (0.2, 0.712),
        (0, 0.714)]  # fmt: skip
LAMP_FOOT = [(0, 0), (0.15, 0), (0.155, 0.008), (0.15, 0.03), (0.12, 0.045), (0.115, 0.07), (0, 0.07)]
LAMP_CAP = [(0.125, 0.41), (0.13, 0.405), (0.13, 0.42), (0.09, 0.46), (0.05, 0.5), (0.03, 0.52),
        (0.045, 0.54), (0.03, 0.56), (0, 0.565)]  # fmt: skip
CHIMNEY = [(0.108, 0.07), (0.112, 0.07), (0.113, 0.1), (0.12, 0.24), (0.113, 0.39), (0.112, 0.41),
        (0.108, 0.41), (0.109, 0.39), (0.116, 0.24), (0.109, 0.1), (0.108, 0.07)]  # fmt: skip
CANDLE = [(0, 0.07), (0.04, 0.07), (0.042, 0.075), (0.042, 0.22), (0.036, 0.226), (0, 0.222)]
LEMON = [(0, -1.15), (0.14, -1.1), (0.25, -0.98), (0.7, -0.68), (0.95, -0.2), (0.95, 0.2), (0.7, 0.7),
        (0.22, 1.05), (0.16, 1.2), (0, 1.27)]  # fmt: skip


def tiles(rng: np.random.Generator, count: int = 6, side: int = 48) -> np.ndarray:
    """A picture (size, size, 3) uint8 of two kinds of fired tiles with joints, which repeats."""
    size = count * side
    y, x = np.mgrid[:size, :size]
    kind = (x // side + y // side) % 2
    frequency = np.hypot(np.fft.fftfreq(size)[:, None], np.fft.fftfreq(size)[None, :]) + 1 / size
    cloud = np.fft.ifft2(np.fft.fft2(rng.normal(0, 1, (size, size))) * frequency**-1.3).real
    cloud /= cloud.std()
    tone = 1 + 0.09 * rng.normal(0, 1, (count, count))[y // side, x // side] + 0.045 * cloud
    color = np.where(kind[..., None], (196, 178, 150), (158, 98, 70)) * tone[..., None]
    edge = np.minimum.reduce([x % side, y % side, side - 1 - x % side, side - 1 - y % side])
    joint = np.clip(1 - (edge - 0.5) / 1.2, 0, 1)
    color = color * (1 - joint[..., None]) + np.array([92, 84, 74]) * joint[..., None]
    return np.clip(color, 0, 255).astype("u1")


def sea(rng: np.random.Generator, rings: int = 150, rays: int = 130):
    """Points, normals and faces of waves, finer near the terrace; those that the rings cannot show are left out."""
    far = 12 * (5000 / 12) ** (np.arange(rings) / (rings - 1))
    turn = np.radians(np.linspace(-62, 62, rays))
    x, z = far[:, None] * np.sin(turn), -far[:, None] * np.cos(turn)
    spacing = np.gradient(far)[:, None]
    height, slope_x, slope_z = np.zeros((3, *x.shape))
    for _ in range(60):
        length = np.exp(rng.uniform(np.log(0.9), np.log(16)))
        angle, phase = rng.normal(0.5, 0.7), rng.uniform(0, 2 * np.pi)
        k = 2 * np.pi / length * np.array([np.sin(angle), np.cos(angle)])
        a = 0.0062 * length**0.85
        seen = np.clip((length / spacing - 2) / 2, 0, 1)
        at = k[0] * x + k[1] * z + phase
        height += a * seen * np.sin(at)
        slope_x += a * k[0] * np.cos(at) * np.clip(seen, 0.3, 1)
        slope_z += a * k[1] * np.cos(at) * np.clip(seen, 0.3, 1)
    points = np.stack([x, SEA + height, z], 2).reshape(-1, 3)
    normals = np.stack([-slope_x, np.ones(x.shape), -slope_z], 2).reshape(-1, 3)
    first = (np.arange(rings - 1)[:, None] * rays + np.arange(rays - 1)).ravel()
    faces = np.concatenate([np.stack([first, first + 1, first + rays + 1], 1),
                            np.stack([first, first + rays + 1, first + rays], 1)])  # fmt: skip
    return points, normals / np.linalg.norm(normals, axis=1, keepdims=True), faces


def headland(rng: np.random.Generator, west: float, east: float, far: float, high: float, count: int = 160):
    """Points and faces of a ridge on the horizon, between two azimuths in degrees."""
    t = np.linspace(0, 1, count)
    ridge = sum(rng.normal(0, 1) / k**1.1 * np.sin(2 * np.pi * k * t + rng.uniform(0, 6)) for k in range(2, 24))
    tops = high * np.clip(np.sin(np.pi * t) ** 0.7 * (1 + 0.3 * ridge), 0, None)
    turn = np.radians(west + (east - west) * t)
    foot = np.stack([far * np.sin(turn), np.full(count, SEA - 1), -far * np.cos(turn)], 1)
    points = np.concatenate([foot, foot + np.stack([0 * t, tops + 1, -tops], 1) * [1, 1, 2.0]])
    first = np.arange(count - 1)
    return points, np.concatenate([np.stack([first, first + 1, first + count + 1], 1),
                                   np.stack([first, first + count + 1, first + count], 1)])  # fmt: skip


def leaves(rng: np.random.Generator, center: tuple, radius: float, count: int):
    """Points and faces of folded leaves in a round crown; no pictures, so rays need no alpha."""
    way = rng.normal(0, 1, (count, 3))
    way /= np.linalg.norm(way, axis=1, keepdims=True)
    at = center + way * radius * rng.uniform(0.5, 1.0, (count, 1)) ** 0.5 * [1, 0.92, 1]
    along = way + rng.normal(0, 0.75, (count, 3)) + [0, -0.1, 0]
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    side = np.cross(along, rng.normal(0, 1, (count, 3)))
    side /= np.linalg.norm(side, axis=1, keepdims=True)
    up = np.cross(side, along)
    long, wide = rng.uniform(0.05, 0.09, (2, count, 1)) * np.array([[[1.0]], [[0.42]]])
    shape = [
        (0, 0, 0),
        (0.3, 1, 0.3),
        (0.75, 0.75, 0.2),
        (1, 0, -0.15),
        (0.75, -0.75, 0.2),
        (0.3, -1, 0.3),
        (0.5, 0, 0),
    ]
    points = np.stack([at + a * long * along + b * wide * side + c * wide * up for a, b, c in shape], 1)
    fan = np.array([[0, 6, 1], [1, 6, 2], [2, 6, 3], [3, 6, 4], [4, 6, 5], [5, 6, 0]])[:, ::-1]
    faces = (np.arange(count)[:, None, None] * 7 + fan).reshape(-1, 3)
    return points.reshape(-1, 3), faces


def box(low: tuple, high: tuple):
    """Points, normals and faces of a box."""
    corners, normals, faces = [], [], []
    for axis in range(3):
        for end in (0, 1):
            out = np.zeros(3)
            out[axis] = 2 * end - 1
            a, b = (axis + 1) % 3, (axis + 2) % 3
            square = np.zeros((4, 3))
            square[:, axis], square[:, a], square[:, b] = end, [0, 1, 1, 0], [0, 0, 1, 1]
            start = len(corners)
            corners += list(square)
            normals += [out] * 4
            faces += [np.array(f)[:: 2 * end - 1] + start for f in ((0, 1, 2), (0, 2, 3))]
    return np.array(low) + np.array(corners) * np.subtract(high, low), np.array(normals), np.array(faces)


class Builder(Maker):
    """Solids by material, and the nodes that place them."""

    def solid(self, points, normals, faces, material: int, **more) -> int:
        arrays = [np.asarray(a, "f4") for a in (points, normals)]
        return self.mesh(arrays[0], np.asarray(faces, "u2"), normals=arrays[1], material=material, **more)

    def paint(self, name: str, color: tuple, roughness: float, metallic: float = 0.0, **more) -> int:
        surface = {"baseColorFactor": [*color, 1], "metallicFactor": metallic, "roughnessFactor": roughness}
        return self.add("materials", {"name": name, "pbrMetallicRoughness": surface, **more})

    def turned(self, profile: list, material: int, *places: tuple, scale: float = 1.0, sides: int = 36) -> None:
        mesh = self.solid(*lathe(profile, sides), material)
        for place in places:
            self.node(mesh=mesh, translation=list(place), scale=[scale] * 3)


def architecture(maker: Builder, rng: np.random.Generator) -> None:
    """Floor, balustrade and columns."""
    floor = maker.add("materials", {"name": "tiles", "pbrMetallicRoughness": {
        "baseColorTexture": {"index": maker.texture(tiles(rng), **REPEAT)}, "metallicFactor": 0,
        "roughnessFactor": 0.36}})  # fmt: skip
    corners = np.array([[-9, 0, 8], [9, 0, 8], [9, 0, RAIL - 0.3], [-9, 0, RAIL - 0.3]], "f4")
    turn = np.array([[0.7071, 0.7071], [-0.7071, 0.7071]])
    uv = (corners[:, [0, 2]] @ turn / (6 * 0.36)).astype("f4")
    maker.node(mesh=maker.mesh(corners, [[0, 1, 2], [0, 2, 3]], uv=uv, material=floor))
    stone = maker.paint("limestone", (0.72, 0.64, 0.53), 0.8)
    half = 0.13
    for low, high in (((-9, 0, RAIL - half), (9, 0.13, RAIL + half)), ((-9, 0.85, RAIL - 0.15), (9, 0.95, RAIL + 0.15)),
                      ((-9, 0.83, RAIL - 0.12), (9, 0.85, RAIL + 0.12))):  # fmt: skip
        maker.node(mesh=maker.solid(*box(low, high), stone))
    piers = (-4.75, -1.75, 1.25, 4.25)
    for x in piers:
        maker.node(mesh=maker.solid(*box((x - 0.2, 0, RAIL - 0.18), (x + 0.2, 0.85, RAIL + 0.18)), stone))
        maker.node(mesh=maker.solid(*box((x - 0.24, 0.95, RAIL - 0.22), (x + 0.24, 1.0, RAIL + 0.22)), stone))
    places = [(pier + 0.2 + (k + 0.5) * 2.6 / 9, 0.12, RAIL) for pier in piers[:-1] for k in range(9)]
    maker.turned(BALUSTER, stone, *places, sides=24)
    maker.turned(COLUMN, stone, (-2.15, 0, -0.4), (5.0, 0, -0.35))
    maker.node(mesh=maker.solid(*box((-9, 3.6, -0.65), (9, 4.0, -0.05)), stone))


def garden(maker: Builder, rng: np.random.Generator, at: tuple) -> None:
    """A lemon tree in a pot of clay."""
    clay, earth = maker.paint("clay", (0.5, 0.21, 0.11), 0.75), maker.paint("earth", (0.06, 0.04, 0.03), 0.95)
    wood, lemon = maker.paint("wood", (0.2, 0.14, 0.09), 0.85), maker.paint("lemon", (0.9, 0.6, 0.03), 0.4)
    through = {"diffuseTransmissionFactor": 0.45, "diffuseTransmissionColorFactor": [0.6, 0.85, 0.12]}
    green = maker.paint("leaf", (0.07, 0.15, 0.035), 0.35, doubleSided=True,
                        extensions={"KHR_materials_diffuse_transmission": through})  # fmt: skip
    x, y, z = at
    maker.turned(POT, clay, at)
    maker.turned([(0, 0.478), (0.29, 0.485), (0.2, 0.5), (0, 0.505)], earth, at)
    maker.turned([(0.03, 0.48), (0.026, 0.7), (0.022, 0.95), (0.02, 1.2)], wood, at)
    crown = np.array([x, y + 1.3, z])
    points, faces = leaves(rng, crown, 0.46, 1700)
    maker.node(mesh=maker.mesh(points.astype("f4"), faces, material=green))
    fruit = maker.solid(*lathe(LEMON, 16), lemon)
    for _ in range(15):
        way = rng.normal(0, 1, 3) + [0, -0.2, 0.7]
        way *= rng.uniform(0.4, 0.46) / np.linalg.norm(way)
        maker.node(mesh=fruit, translation=list(crown + way + [0, -0.05, 0]), scale=[0.036, 0.04, 0.036])


def table(maker: Builder, rng: np.random.Generator, x: float, z: float) -> None:
    """A table of marble and brass with a bottle, two goblets and a bowl of lemons."""
    brass, marble = maker.paint("brass", (0.82, 0.6, 0.28), 0.22, 1.0), maker.paint("marble", (0.82, 0.79, 0.74), 0.15)
    lemon = maker.paint("lemon", (0.9, 0.6, 0.03), 0.4)
    clear, green = glass(maker, "clear", (0.97, 0.99, 0.98), 1.0), glass(maker, "green", (0.1, 0.5, 0.2), 0.03)
    amber = glass(maker, "amber", (0.95, 0.45, 0.06), 0.05)
    y = 0.714 + 0.032
    maker.turned(STEM, brass, (x, 0, z))
    maker.turned(TOP, marble, (x, 0.714, z))
    maker.turned(BOTTLE, green, (x - 0.2, y + 0.001, z - 0.12), scale=0.18)
    maker.turned(GOBLET, clear, (x - 0.13, y + 0.001, z + 0.17), (x + 0.06, y + 0.001, z - 0.2), scale=0.165)
    maker.turned(BOWL, amber, (x + 0.2, y + 0.001, z + 0.1), scale=0.27)
    fruit = maker.solid(*lathe(LEMON, 16), lemon)
    lying = (-0.05, 0.075, 0.03), (0.05, 0.075, 0.04), (0.0, 0.075, -0.05), (0.01, 0.125, 0.015)
    for dx, dy, dz in lying:
        q = rng.normal(0, 1, 4)
        maker.node(mesh=fruit, translation=[x + 0.2 + dx, y + dy, z + 0.1 + dz], scale=[0.033] * 3,
                   rotation=list(q / np.linalg.norm(q)))  # fmt: skip
    foot = (x - 1.4, 0.0, z - 0.1)
    maker.turned(LAMP_FOOT, brass, foot)
    maker.turned(LAMP_CAP, brass, foot)
    maker.turned(CHIMNEY, clear, foot)
    maker.turned(CANDLE, maker.paint("wax", (0.85, 0.78, 0.65), 0.6), foot)
    for k in range(3):
        angle = 2 * np.pi * (k + 0.3) / 3
        dx, dz = 0.135 * np.cos(angle), 0.135 * np.sin(angle)
        low = foot[0] + dx - 0.005, 0.02, foot[2] + dz - 0.005
        maker.node(mesh=maker.solid(*box(low, (low[0] + 0.01, 0.41, low[2] + 0.01)), brass))


def terrace() -> Maker:
    """The terrace as a glTF file."""
    rng, maker = np.random.default_rng(SEED), Builder()
    maker.tree["extensionsUsed"] = ["KHR_materials_transmission", "KHR_materials_ior", "KHR_materials_volume",
                                    "KHR_materials_diffuse_transmission"]  # fmt: skip
    architecture(maker, rng)
    garden(maker, rng, (2.0, 0, -1.3))
    table(maker, rng, 0.5, 0.95)
    water = maker.paint("water", (0.012, 0.05, 0.06), 0.18, extensions={"KHR_materials_ior": {"ior": 1.33}})
    maker.node(mesh=maker.solid(*sea(rng), water))
    for west, east, far, high, color in (
        (4, 60, 4200, 330, (0.13, 0.16, 0.21)),
        (13, 48, 3000, 210, (0.07, 0.09, 0.12)),
    ):
        points, faces = headland(rng, west, east, far, high)
        maker.node(mesh=maker.mesh(points.astype("f4"), faces, material=maker.paint("headland", color, 1.0)))
    return maker


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(terrace().glb())
