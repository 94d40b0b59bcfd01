"""Rays a second of closest and any hit: the walk that the program picks, beside a plain walk.

Camera, ray sets and size are those of the Mitsuba peer script. The yardstick, in the same run, is a plain
BVH2 kernel: binned SAH, leaves of up to four, boxes by lowest and highest corner, nearer child first, one thread a ray.
Trees are those that the program picks. `build/` measures trees built on the device, from primitives that lie there;
`improve/` counts the improvement in.
"""

from functools import cache, partial
from pathlib import Path

import numpy as np

from renderer.bench.cases import Case
from renderer.bvh import build, traversal
from renderer.formats.mesh import load_mesh, numbered, spheres, triangles
from renderer.paths import ASSETS
from renderer.raytracing import procedural

AWAY = np.array([0.5, 0.35, 1.0]) / np.linalg.norm([0.5, 0.35, 1.0])
PLAIN = {"primary": "closest_plain", "scattered": "closest_plain"}
PLAIN |= {f"{rays} shadow": "occluded_plain" for rays in PLAIN}


def cases(gpu) -> list[Case]:
    """Each shape's four sets of rays; smaller ones where no warps are."""
    small = gpu.device.properties.scalar_threads  # a CPU
    shapes = {
        "menger": lambda: procedural.menger(3 if small else 4),
        "sphereflake": lambda: procedural.tessellated(procedural.sphereflake(2 if small else 3), 2),
    }
    shapes |= {
        "hair": lambda: hair(2_000 if small else 100_000),
        "terrain": lambda: terrain(100 if small else 1_000),
        "stadium": lambda: stadium(1 if small else 3),
    }
    for path in sorted(ASSETS.glob("*.obj")):
        shapes[path.stem] = partial(_mesh, path)
    size = 1024 if small else 2048
    found = []
    for name, make in shapes.items():
        trees = cache(partial(Trees, gpu.device, cache(partial(_plain_tree, make))))
        found += [ray_case(gpu.device, name, trees, rays, size) for rays in PLAIN]
    levels = (2, 3) if small else (4, 5)
    return found + [build_case(gpu.device, level, better) for level in levels for better in (False, True)]


def hair(count: int) -> np.ndarray:
    """Long thin triangles in all directions, whose boxes are nearly empty and overlap each other's."""
    rng = np.random.default_rng(1)
    root, way, across = (rng.normal(size=(count, 3)) for _ in range(3))
    tip = root + 2 * way / np.linalg.norm(way, axis=1, keepdims=True)
    corners = np.stack([root, root + 2e-3 * across, tip], 1).reshape(-1, 3)
    return triangles(corners, np.arange(3 * count).reshape(-1, 3))


def terrain(side: int) -> np.ndarray:
    """2 side^2 triangles over a square, as high as waves of falling size."""
    x, z = np.meshgrid(np.linspace(-1, 1, side + 1), np.linspace(-1, 1, side + 1))
    turns = 2.0 ** np.arange(9)
    y = sum(np.sin(3 * k * x + k) * np.sin(3 * k * z + 2 * k) / (6 * k) for k in turns)
    corner = (np.arange(side)[:, None] * (side + 1) + np.arange(side)).ravel()
    faces = [np.stack([corner, corner + side + 1, corner + 1], 1)]
    faces.append(np.stack([corner + 1, corner + side + 1, corner + side + 2], 1))
    return triangles(np.stack([x, y, z], 2).reshape(-1, 3), np.concatenate(faces))


def stadium(level: int) -> np.ndarray:
    """A small thing in a large place, and so on six times: balls inside each other, the last a sphereflake."""
    balls = procedural.tessellated(procedural.sphereflake(level), 1)
    parts = [balls]
    for shell in range(1, 7):
        hull = procedural.tessellated(spheres(np.zeros((1, 3)), np.array([8.0**shell])), 4)
        middle = hull["corner"][:, :3] + (hull["edge1"][:, :3] + hull["edge2"][:, :3]) / 3
        parts.append(hull[middle @ AWAY < 0])  # open towards the camera
    return np.concatenate(parts)


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


def _mesh(path: Path) -> np.ndarray:
    return triangles(*load_mesh(path))


def _plain_tree(make) -> tuple[np.ndarray, build.Tree]:
    """The primitives of a shape, numbered, and the yardstick's tree."""
    primitives = numbered(make())
    return primitives, build.build(*build.boxes_of(primitives), 4)


class Trees:
    """A shape's tree and the yardstick's, on a device."""

    def __init__(self, device, plain):
        self.primitives, tree = plain()
        self.tree = build.tree_of(device, self.primitives)
        self.plain_nodes = device.buffer((len(tree.nodes), 16)).write(tree.nodes.view("f4").reshape(-1, 16))
        ordered = self.primitives[tree.order].view("f4").reshape(-1, 12)
        self.plain_primitives = device.buffer(ordered.shape).write(ordered)


class Shape:
    """A shape's rays of one class on a device, and their walks."""

    def __init__(self, device, trees: Trees, rays_class: str, size: int):
        self.tree, self.trees = trees.tree, trees
        low, high = build.boxes_of(trees.primitives)
        low, high = low.min(0).astype("f8"), high.max(0).astype("f8")
        rays = camera_rays(low, high, size)
        if rays_class.startswith("scattered"):
            hits = device.buffer((len(rays), 4))
            traversal.Walk(self.tree, "primary")(device.buffer(rays.shape).write(rays), hits, len(rays))
            rows = self.tree.primitives.read().view(trees.primitives.dtype).ravel()
            rays = diffuse_rays(rays, hits.read(), rows, float(np.linalg.norm(high - low)) / 2)
        self.host_rays, self.count = rays, len(rays)
        self.rays = device.buffer(rays.shape).write(rays)
        shadow = rays_class.endswith("shadow")
        self.hits = device.buffer(self.count if shadow else (self.count, 4), "u4" if shadow else "f4")
        self.walk = traversal.Walk(self.tree, rays_class)
        self.plain = device.kernel("bvh/ray_queries.cu", PLAIN[rays_class], group_size=64, SPHERES=0)
        self.shadow, self.device = shadow, device

    def run(self) -> None:
        self.walk(self.rays, self.hits, self.count)

    def run_plain(self) -> None:
        self.plain(self.count, self.rays, self.hits, self.trees.plain_nodes, self.trees.plain_primitives, self.count)

    def check(self) -> None:
        """All rays agree with the plain walk but for edges; 200 of them with every primitive, bit for bit."""
        self.run_plain()
        plain = self._found()
        self.run()
        found = self._found()
        assert (found[0] == plain[0]).mean() > 0.9999, (found[0] == plain[0]).mean()
        both = found[0] & plain[0]
        assert np.isclose(found[1][both], plain[1][both], rtol=1e-3).mean() > 0.999
        picked = np.random.default_rng(5).integers(0, self.count, 200)
        hits = self.device.buffer((200, 4))
        rays = self.device.buffer((200, 2, 4)).write(self.host_rays[picked])
        brute = self.device.kernel("bvh/ray_queries.cu", "brute", group_size=64, STRICT=1, SPHERES=0)
        brute(200, rays, hits, self.tree.primitives, self.tree.count, 200)
        wanted = hits.read()
        assert np.array_equal(found[0][picked], wanted[:, 3].copy().view("i4") >= 0)
        if not self.shadow:
            assert np.array_equal(found[1][picked], wanted[:, 0])

    def _found(self) -> tuple[np.ndarray, np.ndarray]:
        hits = self.hits.read()
        if self.shadow:
            return hits > 0, hits.astype("f4")
        return hits[:, 3].copy().view("i4") >= 0, hits[:, 0].copy()


def ray_case(device, name: str, trees, rays_class: str, size: int) -> Case:
    shape = cache(lambda: Shape(device, trees(), rays_class, size))

    def check() -> None:
        shape().check()
        case.work = shape().count / 1e6
        case.facts |= {"triangles": len(shape().trees.primitives), "rays": shape().count, "walk": shape().walk.entry}

    def peer() -> float:
        return min(device.time_seconds(shape().run_plain) for _ in range(5))

    label = f"{name}/{rays_class.replace(' ', '-')}"
    case = Case(label, "Mrays/s", 1.0, lambda: shape().run(), check, device, peer, "plain BVH2 walk")
    return case


def build_case(device, level: int, better: bool) -> Case:
    """A tree over the Menger sponge of a level, built on the device, or there and then improved."""

    @cache
    def tree():
        primitives = numbered(procedural.menger(level))
        on_device = device.buffer((len(primitives), 12)).write(primitives.view("f4").reshape(-1, 12))
        return build.Built(device, on_device, len(primitives))

    def check() -> None:
        numbers = tree().primitives.read().view("i4")[:, 3]
        assert np.array_equal(np.sort(numbers), np.arange(tree().count))
        words = tree().nodes.read()
        codes = words.view("i4")[:, [3, 7]].ravel()
        assert np.array_equal(np.sort(codes[codes > 0]), np.arange(1, tree().count - 1))
        assert np.array_equal(np.sort(~codes[codes < 0] >> 3), np.arange(tree().count))

    count = 4 * 20**level + 8 * 8**level
    if better:
        return Case(f"improve/level={level}", "Mtriangles/s", count / 1e6, lambda: tree().improved(), check, device)
    return Case(f"build/level={level}", "Mtriangles/s", count / 1e6, lambda: tree().rebuild(), check, device)
