"""Rays a second of closest and any hit, in the BVH and by the traversal that pictures use, beside a baseline.

Camera, ray sets and size are those of the Mitsuba peer script. The baseline, in the same run, is a textbook BVH2
traversal: host SAH, leaves of up to four, boxes by min and max corners, nearer child first, one ray a thread. Meshes
are the files of the folder RAYFOLD_BENCH_MESHES, beside shapes that this file makes.
`build/` times H-PLOC on the device, from primitives that are there.

Records made before pictures and this bench had one traversal name their kernel as "walk". Their figures of packets and
persistent threads on GPUs were deleted with these kernels. Their "closest" on GPUs traversed a
quantized BVH2, if-if, in groups of 128; on CPUs "closest_beam" is closest_packet, and "closest_lone" single rays,
which pictures trace only when a packet is incoherent.
"""

import os
from functools import cache, partial
from pathlib import Path

import numpy as np

from renderer.bench.cases import Case
from renderer.bvh.build import build_bvh
from renderer.bvh.host_sah import HostBvh, build_host_sah, primitive_boxes
from renderer.bvh.hploc import HplocBvh2
from renderer.bvh.layouts import upload_primitives
from renderer.bvh.primitives import PRIMITIVE, spheres, triangles, with_primitive_ids
from renderer.formats.mesh import load_mesh
from renderer.raytracing import procedural
from tests.bvh.ray_queries import RayQuery, query_kernel

TO_CAMERA = np.array([0.5, 0.35, 1.0]) / np.linalg.norm([0.5, 0.35, 1.0])
RAY_SETS = "primary", "incoherent", "primary-shadow", "incoherent-shadow"
MESH_SUFFIXES = ".obj", ".ply", ".stl"


def cases(gpu) -> list[Case]:
    """Four sets of rays in each shape; smaller ones on CPUs."""
    small = gpu.device.properties.scalar_threads
    shapes = {
        "menger": lambda: procedural.menger(3 if small else 4),
        "sphereflake": lambda: icospheres(procedural.sphereflake(2 if small else 3), 2),
    }
    shapes |= {
        "hair": lambda: hair(2_000 if small else 100_000),
        "terrain": lambda: terrain(100 if small else 1_000),
        "stadium": lambda: stadium(1 if small else 3),
    }
    for path in mesh_files():
        shapes[path.stem] = partial(_mesh, path)
    size = 1024 if small else 2048
    found = []
    for name, make in shapes.items():
        bvhs = cache(partial(Bvhs, gpu.device, cache(partial(_baseline_bvh, make))))
        found += [ray_case(gpu.device, name, bvhs, rays, size) for rays in RAY_SETS]
    return found + [build_case(gpu.device, level) for level in ((2, 3) if small else (4, 5))]


def mesh_files() -> list[Path]:
    """The files of the folder RAYFOLD_BENCH_MESHES; none if it is not set."""
    folder = os.environ.get("RAYFOLD_BENCH_MESHES")
    return sorted(path for path in Path(folder).iterdir() if path.suffix in MESH_SUFFIXES) if folder else []


def hair(count: int) -> np.ndarray:
    """Long thin triangles in all directions, whose boxes are nearly empty and overlap."""
    rng = np.random.default_rng(1)
    root, direction, across = (rng.normal(size=(count, 3)) for _ in range(3))
    tip = root + 2 * direction / np.linalg.norm(direction, axis=1, keepdims=True)
    corners = np.stack([root, root + 2e-3 * across, tip], 1).reshape(-1, 3)
    return triangles(corners, np.arange(3 * count).reshape(-1, 3))


def terrain(side: int) -> np.ndarray:
    """A height field of 2 side^2 triangles over a square: a sum of sine waves, each half as long as the last."""
    x, z = np.meshgrid(np.linspace(-1, 1, side + 1), np.linspace(-1, 1, side + 1))
    frequencies = 2.0 ** np.arange(9)
    y = sum(np.sin(3 * k * x + k) * np.sin(3 * k * z + 2 * k) / (6 * k) for k in frequencies)
    corner = (np.arange(side)[:, None] * (side + 1) + np.arange(side)).ravel()
    faces = [np.stack([corner, corner + side + 1, corner + 1], 1)]
    faces.append(np.stack([corner + 1, corner + side + 1, corner + side + 2], 1))
    return triangles(np.stack([x, y, z], 2).reshape(-1, 3), np.concatenate(faces))


def stadium(level: int) -> np.ndarray:
    """A teapot in a stadium, six times over: spheres inside each other, open towards the camera, and a sphereflake."""
    balls = icospheres(procedural.sphereflake(level), 1)
    shells = [balls]
    for index in range(1, 7):
        hull = icospheres(spheres(np.zeros((1, 3)), np.array([8.0**index])), 4)
        centroid = hull["v0"][:, :3] + (hull["edge1"][:, :3] + hull["edge2"][:, :3]) / 3
        shells.append(hull[centroid @ TO_CAMERA < 0])
    return np.concatenate(shells)


def icospheres(balls: np.ndarray, level: int) -> np.ndarray:
    """The spheres as 20 * 4^level triangles each: icosahedra whose edges are halved `level` times."""
    corners = _icosahedron()
    for _ in range(level):
        a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
        ab, bc, ca = (m / np.linalg.norm(m, axis=1, keepdims=True) for m in (a + b, b + c, c + a))
        corners = np.concatenate([np.stack(t, 1) for t in ((a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca))])
    corners = corners.astype("f4")
    edges = corners[:, 1:] - corners[:, :1]
    radius = balls["edge2"][:, None, 3:]
    out = np.zeros((len(balls), len(corners)), PRIMITIVE)
    out["v0"][..., :3] = balls["v0"][:, None, :3] + corners[:, 0] * radius
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


def camera_rays(low, high, size: int) -> np.ndarray:
    """Rays (size * size, 2, 4) of a square picture in 8 x 4 pixel tiles, from 1.6 half-diagonals away."""
    center, radius = (low + high) / 2, np.linalg.norm(high - low) / 2
    right = np.cross(-TO_CAMERA, [0, 1, 0])
    right /= np.linalg.norm(right)
    up = np.cross(right, -TO_CAMERA)
    i = np.arange(size * size, dtype="u4")
    x = (i & 7) | (((i >> 5) % (size // 8)) << 3)
    y = ((i >> 3) & 3) | (((i >> 5) // (size // 8)) << 2)
    sx, sy = (((p + np.float32(0.5)) / size * 2 - 1) * np.float32(0.75) for p in (x.astype("f4"), y.astype("f4")))
    rays = np.zeros((len(i), 2, 4), "f4")
    rays[:, 0, :3], rays[:, 0, 3] = center + 1.6 * radius * TO_CAMERA, 3e38
    for axis in range(3):
        rays[:, 1, axis] = -TO_CAMERA[axis] + sx * np.float32(right[axis]) + sy * np.float32(up[axis])
    rays[:, 1, :3] /= np.sqrt((rays[:, 1, :3] ** 2).sum(1, keepdims=True))
    return rays


def diffuse_rays(rays, hits, primitives, radius: float, seed: int = 0) -> np.ndarray:
    """Cosine-distributed rays (m, 2, 4) from the hits (n, 4) of primary rays on primitives in leaf order.

    Each hit starts about n / (number of hits) rays, in the order of the hits.
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
    direction = np.repeat(normal, each, 0) * np.float32(1.0001) + ball  # a unit sphere around the tip of the normal
    out[:, 1, :3] = direction / np.sqrt((direction**2).sum(1, keepdims=True))
    return out


def _mesh(path: Path) -> np.ndarray:
    return triangles(*load_mesh(path))


def _baseline_bvh(make) -> tuple[np.ndarray, HostBvh]:
    """The primitives of a shape, with their ids, and the baseline's BVH."""
    primitives = with_primitive_ids(make())
    return primitives, build_host_sah(*primitive_boxes(primitives), 4)


class Bvhs:
    """A shape's BVH and the baseline's, on a device."""

    def __init__(self, device, baseline):
        self.primitives, host = baseline()
        self.bvh = build_bvh(device, self.primitives)
        self.baseline_nodes = device.buffer((len(host.nodes), 16)).write(host.nodes.view("f4").reshape(-1, 16))
        self.baseline_primitives = upload_primitives(device, self.primitives[host.order])


class RaySet:
    """One of RAY_SETS in a shape on a device, and its queries."""

    def __init__(self, device, bvhs: Bvhs, name: str, size: int):
        self.bvh, self.bvhs = bvhs.bvh, bvhs
        low, high = primitive_boxes(bvhs.primitives)
        low, high = low.min(0).astype("f8"), high.max(0).astype("f8")
        rays = camera_rays(low, high, size)
        if name.startswith("incoherent"):
            hits = device.buffer((len(rays), 4))
            RayQuery(self.bvh)(device.buffer(rays.shape).write(rays), hits, len(rays))
            rows = self.bvh.primitives.read().view(bvhs.primitives.dtype).ravel()
            rays = diffuse_rays(rays, hits.read(), rows, float(np.linalg.norm(high - low)) / 2)
        self.host_rays, self.count = rays, len(rays)
        self.rays = device.buffer(rays.shape).write(rays)
        self.any_hit, self.device = name.endswith("shadow"), device
        self.hits = device.buffer(self.count if self.any_hit else (self.count, 4), "u4" if self.any_hit else "f4")
        self.query = RayQuery(self.bvh, self.any_hit, incoherent=name.startswith("incoherent"))
        entry = "occluded_baseline" if self.any_hit else "closest_baseline"
        self.baseline = query_kernel(device, entry)

    def run(self) -> None:
        self.query(self.rays, self.hits, self.count)

    def run_baseline(self) -> None:
        bvhs = self.bvhs
        self.baseline(self.count, self.rays, self.hits, bvhs.baseline_nodes, bvhs.baseline_primitives, self.count)

    def check(self) -> None:
        """All rays agree with the baseline but for edges; 200 of them with brute force, bit for bit."""
        self.run_baseline()
        baseline = self._found()
        self.run()
        found = self._found()
        assert (found[0] == baseline[0]).mean() > 0.9999, (found[0] == baseline[0]).mean()
        both = found[0] & baseline[0]
        assert np.isclose(found[1][both], baseline[1][both], rtol=1e-3).mean() > 0.999
        picked = np.random.default_rng(5).integers(0, self.count, 200)
        hits = self.device.buffer((200, 4))
        rays = self.device.buffer((200, 2, 4)).write(self.host_rays[picked])
        brute_force = query_kernel(self.device, "brute_force", STRICT=1)
        brute_force(200, rays, hits, self.bvh.primitives, self.bvh.count, 200)
        wanted = hits.read()
        assert np.array_equal(found[0][picked], wanted[:, 3].copy().view("i4") >= 0)
        if not self.any_hit:
            assert np.array_equal(found[1][picked], wanted[:, 0])

    def _found(self) -> tuple[np.ndarray, np.ndarray]:
        hits = self.hits.read()
        if self.any_hit:
            return hits > 0, hits.astype("f4")
        return hits[:, 3].copy().view("i4") >= 0, hits[:, 0].copy()


def ray_case(device, shape: str, bvhs, rays: str, size: int) -> Case:
    """Times one set of rays in one shape; its BVH is built when the case is first checked or run."""
    ray_set = cache(lambda: RaySet(device, bvhs(), rays, size))

    def check() -> None:
        ray_set().check()
        case.work = ray_set().count / 1e6
        facts = {"triangles": len(ray_set().bvhs.primitives), "rays": ray_set().count}
        case.facts |= facts | {"layout": ray_set().bvh.layout, "kernel": ray_set().query.entry}

    def peer() -> float:
        return min(device.time_seconds(ray_set().run_baseline) for _ in range(5))

    name = f"{shape}/{rays}"
    case = Case(name, "Mrays/s", 1.0, lambda: ray_set().run(), check, device, peer, "baseline BVH2 traversal")
    return case


def build_case(device, level: int) -> Case:
    """H-PLOC over the Menger sponge of a level."""

    @cache
    def bvh():
        primitives = with_primitive_ids(procedural.menger(level))
        return HplocBvh2(device, upload_primitives(device, primitives), len(primitives))

    def check() -> None:
        ids = bvh().primitives.read().view("i4")[:, 3]
        assert np.array_equal(np.sort(ids), np.arange(bvh().count))
        refs = bvh().nodes.read().view("i4")[:, [3, 7]].ravel()
        assert np.array_equal(np.sort(refs[refs > 0]), np.arange(1, bvh().count - 1))
        assert np.array_equal(np.sort(~refs[refs < 0] >> 3), np.arange(bvh().count))

    count = 4 * 20**level + 8 * 8**level
    return Case(f"build/level={level}", "Mtriangles/s", count / 1e6, lambda: bvh().rebuild(), check, device)
