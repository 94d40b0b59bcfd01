"""The Standard Procedural Databases: rays of each kind that a ray tracer counts in them, against the published numbers.

E. Haines's rules: 513 x 513 rays through the corners of pixels; five rays deep, the eye's counted; a mirror spawns
a reflected ray, glass a reflected and, but for total reflection, a refracted one; each hit a shadow ray to every light
that its normal does not turn away from. All counts are to be within 10%.
"""

from dataclasses import dataclass

import numpy as np
import pytest

from renderer.bvh.build import build_bvh
from renderer.bvh.primitives import PRIMITIVE, spheres, triangles, with_primitive_ids
from renderer.raytracing import procedural
from tests.bvh.ray_queries import RayQuery

MATTE, MIRROR, GLASS = 0, 1, 2
DEPTH = 5


@dataclass(frozen=True)
class Database:
    """Who looks from where at what under which lights, and the published counts: hits of eye rays, reflected, refracted
    and shadow rays."""

    level: int
    primitives: int
    eye: tuple
    target: tuple
    up: tuple
    lights: tuple
    published: tuple


S = 1 / np.sin(np.pi / 8)
DATABASES = {
    "sphereflake": Database(
        4, 7381, (2.1, 1.3, 1.7), (0, 0, 0), (0, 0, 1), ((4, 3, 2), (1, -4, 4), (-3, 1, 5)), (263169, 175095, 0, 954368)
    ),
    "tetra": Database(
        6, 4096, (1.022846, -3.177154, -2.174512), (-0.004103, -0.004103, 0.216539), (-0.816497, -0.816497, 0.816497),
        ((2, -18, -5),), (49788, 0, 0, 46112),
    ),
    "mount": Database(
        6, 8192, (-1.6, 1.6, 1.7), (0, 0, 0), (0, 0, 1), ((-100, -100, 100),), (173125, 354769, 354769, 412922)
    ),
    "gears": Database(
        4, 64 * 576, (-1.1, -2.1, 2.6), (0, 0, 0), (0, 0, 1),
        ((2, 4, 4), (-2, 4, 3), (2, -2.5, 2.5), (-1, -4, 2), (-1.111, -2.121, 2.626)),
        (245086, 304643, 207564, 2246955),
    ),
    "rings": Database(
        7, 4200 * 33, (-1, -S, 0.5), (-1, 1 - S, 0.5), (0, 0, 1), ((3, -S, 3), (-4, -S, 1), (2, -S, -4)),
        (263169, 315236, 0, 1085002),
    ),
    "tree": Database(
        11, 4095 * 33, (4.5, 0.4, 2.0), (0, 0, 1.5), (0, 0, 1),
        ((-5, 5, 50), (30, -30, 30), (-40, -30, 20), (10, 30, 40), (-30, 40, 10), (50, 25, 20), (-10, -60, 30)),
        (169836, 0, 0, 1097419),
    ),
}  # fmt: skip


def square(corners, kind):
    return triangles(np.array(corners, float), np.array([[0, 1, 2], [0, 2, 3]]), kind)


def floor(half, z, kind):
    return square([[half, half, z], [-half, half, z], [-half, -half, z], [half, -half, z]], kind)


def glass_balls():
    """A pyramid of four."""
    place, top = np.array([-0.8, 0.8, 1.0]), 0.17 * np.sqrt(1.5) * np.array([0, 0, 1.0])
    tip = procedural._rotation(np.array([1, 1, 0]) / np.sqrt(2), np.arccos(-1 / 3)) @ top
    turned = [procedural._rotation(np.array([0, 0, 1.0]), 2 * np.pi * k / 3) @ tip for k in range(3)]
    return spheres(place + np.array([top, *turned]), np.full(4, 0.17), GLASS)


def database(name):
    """Its primitives, with the kind of surface as material, and the index of its glass."""
    made = procedural.generate(name, DATABASES[name].level)
    assert len(made) == DATABASES[name].primitives
    kinds = made["edge1"].view("i4")[:, 3]
    if name == "sphereflake":
        kinds[:] = MIRROR
        return np.concatenate([made, floor(12, -0.5, MATTE)]), 1.0
    if name == "mount":
        return np.concatenate([made, glass_balls()]), 1.5
    if name == "gears":
        z, y, x = (i.ravel() for i in np.indices((4, 4, 4)))
        kinds[:] = np.repeat(np.where((4 * x + 2 * y + z) % 5 == 0, GLASS, MATTE), 576)
        return np.concatenate([made, floor(2, 0, MIRROR)]), 1.1
    if name == "rings":
        kinds[:] = MIRROR
        y = S * 8
        half = 1.01 * (y + S) * np.tan(np.pi / 8)
        wall = [[a * half - 1, y, b * half + 0.5] for a, b in ((1, 1), (-1, 1), (-1, -1), (1, -1))]
        return np.concatenate([made, square(wall, MATTE)]), 1.0
    return (np.concatenate([made, floor(50, 0, MATTE)]) if name == "tree" else made), 1.0


def eye_rays(view: Database):
    forward = np.subtract(view.target, view.eye) / np.linalg.norm(np.subtract(view.target, view.eye))
    right = np.cross(forward, view.up)
    right /= np.linalg.norm(right)
    across = np.tan(np.radians(22.5)) * np.linspace(-1, 1, 513)
    direction = forward + across[None, :, None] * right + across[:, None, None] * np.cross(right, forward)
    direction = direction.reshape(-1, 3)
    return np.broadcast_to(np.array(view.eye, float), direction.shape), unit(direction)


def unit(a):
    return a / np.linalg.norm(a, axis=-1, keepdims=True)


def dot(a, b):
    return (a * b).sum(-1)


class Counter:
    """A database on a device, and its ray counts."""

    def __init__(self, device, name: str):
        self.device, self.view = device, DATABASES[name]
        primitives, self.ior = database(name)
        self.bvh = build_bvh(device, with_primitive_ids(primitives), layout="bvh2")
        self.rows = self.bvh.primitives.read().view(PRIMITIVE).ravel()
        self.query = RayQuery(self.bvh, spheres=True)

    def meet(self, origin, direction):
        """For the rays that hit: which, points, outward normals and kinds."""
        rays = np.zeros((len(origin), 2, 4), "f4")
        rays[:, 0, :3], rays[:, 0, 3], rays[:, 1, :3] = origin, 3e38, direction
        hits = self.device.buffer((len(rays), 4))
        self.query(self.device.buffer(rays.shape).write(rays), hits, len(rays))
        hits = hits.read()
        row = hits[:, 3].copy().view("i4")
        found = np.flatnonzero(row >= 0)
        p = self.rows[row[found]]
        point = origin[found] + hits[found, :1].astype("f8") * direction[found]
        flat = np.cross(p["edge1"][:, :3].astype("f8"), p["edge2"][:, :3].astype("f8"))
        normal = np.where(p["edge2"][:, 3:] > 0, point - p["v0"][:, :3], flat)
        return found, point, unit(normal), p["edge1"].view("i4")[:, 3]

    def count(self) -> list[int]:
        counts = [0, 0, 0, 0]
        origin, direction = eye_rays(self.view)
        for depth in range(1, DEPTH + 1):
            if not len(origin):
                break
            found, point, normal, kind = self.meet(origin, direction)
            counts[0] += len(found) if depth == 1 else 0
            way = direction[found]
            towards = dot(normal, way)[:, None] < 0
            facing = np.where(towards, normal, -normal)
            counts[3] += sum(int((dot(facing, light - point) > 0).sum()) for light in np.array(self.view.lights, float))
            if depth == DEPTH:
                break
            mirrored = way - 2 * dot(way, facing)[:, None] * facing
            ratio = np.where(towards[:, 0], 1 / self.ior, self.ior)
            cosine = -dot(way, facing)
            rest = 1 - ratio**2 * (1 - cosine**2)
            through = ratio[:, None] * way + (ratio * cosine - np.sqrt(np.maximum(rest, 0)))[:, None] * facing
            reflects, refracts = kind != MATTE, (kind == GLASS) & (rest > 0)
            counts[1] += int(reflects.sum())
            counts[2] += int(refracts.sum())
            start = np.concatenate([(point + 1e-4 * facing)[reflects], (point - 1e-4 * facing)[refracts]])
            origin, direction = start, unit(np.concatenate([mirrored[reflects], through[refracts]]))
        return counts


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n == "rings" else n for n in DATABASES])
def test_rays_are_counted_as_published(device, name):
    counts = Counter(device, name).count()
    print(name, counts, DATABASES[name].published)
    for counted, published in zip(counts, DATABASES[name].published, strict=True):
        assert abs(counted - published) <= 0.1 * published
