"""Trees and walks for processors without warps, against brute force and the walk of binary trees, bit for bit."""

import numpy as np
import pytest

from renderer.bvh import build
from renderer.formats.mesh import PRIMITIVE, numbered, spheres
from tests.bvh.test_traversal import CASES, KERNELS, rays_at, soup

SHADOWS = {"lone": "occluded_lone", "beam": "occluded_beam"}


@pytest.fixture
def processor(device):
    if not device.properties.scalar_threads:
        pytest.skip(f"{device.name} has warps")
    return device


class Walks:
    """One tree of branches on a device, and the answers of its walks and of brute force."""

    def __init__(self, device, primitives, builder="host"):
        self.device = device
        self.tree = build.tree_of(device, primitives, builder)
        assert isinstance(self.tree, build.Branches)
        self.rows = self.tree.primitives.read()[: len(primitives)].view(PRIMITIVE).ravel()
        self.constants = {**KERNELS, "SPHERES": int((primitives["edge2"][:, 3] > 0).any())}

    def brute(self, rays):
        hits = self.device.buffer((len(rays), 4))
        self._kernel("brute")(len(rays), self._upload(rays), hits, self.tree.primitives, self.tree.count, len(rays))
        return hits.read().view("u4")

    def closest(self, rays, way):
        """The bits (n, 4) of all hits by "lone" or "beam"."""
        hits = self.device.buffer((len(rays), 4)).fill(255)
        self._walk(f"closest_{way}", rays, hits)
        return hits.read().view("u4")

    def any(self, rays, way):
        hits = self.device.buffer(len(rays), "u4").fill(255)
        self._walk(f"occluded_{way}", rays, hits)
        return hits.read()

    def _walk(self, entry, rays, hits):
        threads = -(-len(rays) // 32) if entry.endswith("beam") else len(rays)
        self._kernel(entry)(threads, self._upload(rays), hits, self.tree.nodes, self.tree.primitives, len(rays))

    def _kernel(self, entry):
        return self.device.kernel("bvh/ray_queries.cu", entry, **self.constants)

    def _upload(self, rays):
        return self.device.buffer(rays.shape).write(rays)


def bundles_at(rng, primitives, count=40):
    """Rays (32 * count - 5, 2, 4), 32 of which go nearly the same way: from one place or from places around it, towards
    a target inside the primitives; some along an axis, some too far apart for a beam, some that end early or never,
    and a few that are no rays.
    """
    aims = rays_at(rng, primitives, 4 * count)[rng.permutation(4 * count)[:count]]
    span = float(np.ptp(primitives["corner"][:, :3], axis=0).max()) + 1
    rays = np.repeat(aims, 32, 0).reshape(count, 32, 2, 4)
    spread = rng.choice([0.0, 1e-4, 0.01, 0.1, 2.0], (count, 1, 1)) * (rng.random((count, 1, 1)) < 0.9)
    rays[:, :, 1, :3] += (spread * rng.normal(size=(count, 32, 3))).astype("f4")
    apart = rng.choice([0.0, 1e-3, 0.1], (count, 1, 1)) * span
    rays[:, :, 0, :3] += (apart * rng.normal(size=(count, 32, 3))).astype("f4")
    lengths = np.float32([3e38, np.inf, span, 0.1 * span, 0.0, -1.0])
    rays[:, :, 0, 3] = lengths[rng.choice(6, (count, 32), p=[0.5, 0.1, 0.2, 0.1, 0.05, 0.05])]
    rays[:, :, 1, :3] *= rng.choice([1.0, 1e-3, 1e3], (count, 1, 1)).astype("f4")
    odd = rng.random((count, 32)) < 0.01
    rays[odd, rng.integers(0, 2), rng.integers(0, 3)] = rng.choice(np.float32([np.nan, np.inf, -np.inf]))
    zero = rays[:, :, 1, :3] == 0
    rays[:, :, 1, :3][zero] = rng.choice(np.float32([0.0, -0.0]), zero.sum())
    return rays.reshape(-1, 2, 4)[:-5].copy()


def assert_all_ways(walks, rays):
    wanted = walks.brute(rays)
    hit = wanted[:, 3].view("i4") >= 0
    for way in ("lone", "beam"):
        found = walks.closest(rays, way)
        assert np.array_equal(found[:, 3], wanted[:, 3]), way
        assert np.array_equal(found[hit], wanted[hit]), way
        assert np.array_equal(walks.any(rays, way), hit), way
    return hit


@pytest.mark.parametrize("builder", ["host", "device"])
@pytest.mark.parametrize("case", CASES)
def test_lone_rays_and_beams_equal_brute_force(processor, rng, case, builder):
    primitives = numbered(CASES[case](rng))
    walks = Walks(processor, primitives, builder)
    hit = assert_all_ways(walks, np.concatenate([bundles_at(rng, primitives), rays_at(rng, primitives, 500)]))
    assert hit.any() and not hit.all()


def test_rays_that_start_on_surfaces(processor, rng):
    primitives = numbered(np.concatenate([soup(rng, 100, 0.5), spheres(rng.uniform(-1, 1, (60, 3)), np.full(60, 0.2))]))
    walks = Walks(processor, primitives)
    rays = rays_at(rng, primitives, 960)
    hits = walks.brute(rays).view("f4")
    found = hits[:, 3].view("i4") >= 0
    rays[found, 0, :3] += rays[found, 1, :3] * hits[found, :1]
    assert_all_ways(walks, rays)
    rays[found, 1, :3] *= -1
    assert_all_ways(walks, rays)


def test_hits_equal_those_of_the_binary_tree(processor, rng):
    """On a scene of more branches than brute force could try, seen by a camera and from inside."""
    parts = (
        soup(rng, 20_000, 0.02),
        soup(rng, 40, 1.0),
        spheres(rng.uniform(-1, 1, (2000, 3)), rng.uniform(0, 0.03, 2000)),
    )
    primitives = numbered(np.concatenate(parts))
    walks = Walks(processor, primitives)
    flat = build.tree_of(processor, primitives, "host", "binary")
    across = np.stack(np.meshgrid(np.linspace(-0.7, 0.7, 128), np.linspace(-0.7, 0.7, 128)), -1).reshape(-1, 2)
    camera = np.zeros((len(across), 2, 4), "f4")
    camera[:, 0, 2:], camera[:, 1, :2], camera[:, 1, 2] = (3.0, 3e38), across, -1
    for rays in (camera, rays_at(rng, primitives, 5000)):
        hits = processor.buffer((len(rays), 4))
        kernel = processor.kernel("bvh/ray_queries.cu", "closest", **walks.constants)
        kernel(len(rays), processor.buffer(rays.shape).write(rays), hits, flat.nodes, flat.primitives, len(rays))
        wanted = hits.read().view("u4")
        for way in ("lone", "beam"):
            assert np.array_equal(walks.closest(rays, way), wanted)
            assert np.array_equal(walks.any(rays, way), wanted[:, 3].view("i4") >= 0)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("builder", ["host", "device"])
def test_every_primitive_is_in_one_block_inside_its_boxes(processor, rng, case, builder):
    primitives = numbered(CASES[case](rng))
    walks = Walks(processor, primitives, builder)
    units, seen, blocks = walks.tree.nodes.read(), np.zeros(len(primitives), int), 0
    low, high = build.boxes_of(walks.rows)
    stack = [(0, np.full(3, -np.inf), np.full(3, np.inf), 0)]
    while stack:
        code, box_low, box_high, depth = stack.pop()
        assert depth < 64
        if code < 0:
            blocks += 1
            block = units[code & 0x7FFFFFFF :][:6].reshape(12, 8)
            rows = block[9].view("i4")
            assert (rows[rows.argmin() :] == -1).all() or (rows >= 0).all()
            rows = rows[rows >= 0]
            seen[rows] += 1
            assert (low[rows] >= box_low).all() and (high[rows] <= box_high).all()
            numbers = walks.rows["corner"][rows].view("i4")[:, 3]
            assert (np.diff(numbers) > 0).all()
            fields = np.concatenate([walks.rows[field][rows, :3] for field in ("corner", "edge1", "edge2")], 1)
            assert np.array_equal(block[:9, : len(rows)].T, fields)
            assert np.array_equal(block[10, : len(rows)], walks.rows["edge2"][rows, 3])
            continue
        branch = units[code:][:4].reshape(8, 8)
        for k in range(8):
            child_low, child_high = branch[[0, 2, 4], k], branch[[1, 3, 5], k]
            if (child_low <= child_high).all():
                stack.append((int(branch[6].view("i4")[k]), child_low, child_high, depth + 1))
            else:
                assert np.isinf(child_low).all()
    assert (seen == 1).all() and blocks <= max(1, len(primitives))
    assert units[3, 8] >= max(np.abs(low).max(), np.abs(high).max())


def test_an_empty_scene(processor, rng):
    walks = Walks(processor, np.zeros(0, PRIMITIVE))
    rays = np.zeros((70, 2, 4), "f4")
    rays[:, 0, 3], rays[:, 1, :3] = 1e30, (0.1, 0.2, -1)
    for way in ("lone", "beam"):
        assert (walks.closest(rays, way)[:, 3].view("i4") == -1).all()
        assert not walks.any(rays, way).any()
