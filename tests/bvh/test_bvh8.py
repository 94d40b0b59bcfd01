"""BVH8 and its traversals on CPUs, against brute force and BVH2, bit for bit."""

import numpy as np
import pytest

from renderer.bvh.build import build_bvh
from renderer.bvh.host_sah import primitive_boxes
from renderer.bvh.layouts import Bvh8
from renderer.bvh.primitives import PRIMITIVE, spheres, with_primitive_ids
from tests.bvh.ray_queries import query_kernel
from tests.bvh.test_traversal import CASES, KERNELS, rays_at, soup

TRAVERSALS = "bvh8", "packet"  # single rays, packets of 32


@pytest.fixture
def cpu(device):
    if not device.properties.scalar_threads:
        pytest.skip(f"{device.name} has warps")
    return device


class Queries:
    """A BVH8 on a device, and the answers of its traversals and of brute force."""

    def __init__(self, device, primitives, builder="host_sah"):
        self.device = device
        self.bvh = build_bvh(device, primitives, builder)
        assert isinstance(self.bvh, Bvh8)
        self.rows = self.bvh.primitives.read()[: len(primitives)].view(PRIMITIVE).ravel()
        self.constants = {**KERNELS, "SPHERES": int((primitives["edge2"][:, 3] > 0).any())}

    def brute(self, rays):
        hits = self.device.buffer((len(rays), 4))
        self._kernel("brute_force")(len(rays), self._upload(rays), hits, self.bvh.primitives, self.bvh.count, len(rays))
        return hits.read().view("u4")

    def closest(self, rays, traversal):
        """The bits (n, 4) of all hits by one of TRAVERSALS."""
        hits = self.device.buffer((len(rays), 4)).fill(255)
        self._query(f"closest_{traversal}", rays, hits)
        return hits.read().view("u4")

    def any(self, rays, traversal):
        hits = self.device.buffer(len(rays), "u4").fill(255)
        self._query(f"occluded_{traversal}", rays, hits)
        return hits.read()

    def _query(self, entry, rays, hits):
        threads = -(-len(rays) // 32) if entry.endswith("packet") else len(rays)
        self._kernel(entry)(threads, self._upload(rays), hits, self.bvh.nodes, self.bvh.primitives, len(rays))

    def _kernel(self, entry):
        return query_kernel(self.device, entry, **self.constants)

    def _upload(self, rays):
        return self.device.buffer(rays.shape).write(rays)


def bundles_at(rng, primitives, count=40):
    """Rays (32 * count - 5, 2, 4), 32 of which go nearly the same way: from one place or from places around it, towards
    a target inside the primitives; some along an axis, some too far apart for a frustum, some that end early or never,
    and a few that are no rays.
    """
    aims = rays_at(rng, primitives, 4 * count)[rng.permutation(4 * count)[:count]]
    span = float(np.ptp(primitives["v0"][:, :3], axis=0).max()) + 1
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


def assert_all_traversals(queries, rays):
    wanted = queries.brute(rays)
    hit = wanted[:, 3].view("i4") >= 0
    for traversal in TRAVERSALS:
        found = queries.closest(rays, traversal)
        assert np.array_equal(found[:, 3], wanted[:, 3]), traversal
        assert np.array_equal(found[hit], wanted[hit]), traversal
        assert np.array_equal(queries.any(rays, traversal), hit), traversal
    return hit


@pytest.mark.parametrize("builder", ["host_sah", "hploc"])
@pytest.mark.parametrize("case", CASES)
def test_single_rays_and_packets_equal_brute_force(cpu, rng, case, builder):
    primitives = with_primitive_ids(CASES[case](rng))
    queries = Queries(cpu, primitives, builder)
    hit = assert_all_traversals(queries, np.concatenate([bundles_at(rng, primitives), rays_at(rng, primitives, 500)]))
    assert hit.any() and not hit.all()


def test_rays_that_start_on_surfaces(cpu, rng):
    primitives = with_primitive_ids(
        np.concatenate([soup(rng, 100, 0.5), spheres(rng.uniform(-1, 1, (60, 3)), np.full(60, 0.2))])
    )
    queries = Queries(cpu, primitives)
    rays = rays_at(rng, primitives, 960)
    hits = queries.brute(rays).view("f4")
    found = hits[:, 3].view("i4") >= 0
    rays[found, 0, :3] += rays[found, 1, :3] * hits[found, :1]
    assert_all_traversals(queries, rays)
    rays[found, 1, :3] *= -1
    assert_all_traversals(queries, rays)


def test_hits_equal_those_of_bvh2(cpu, rng):
    """On a scene of more nodes than brute force could try, seen by a camera and from inside."""
    parts = (
        soup(rng, 20_000, 0.02),
        soup(rng, 40, 1.0),
        spheres(rng.uniform(-1, 1, (2000, 3)), rng.uniform(0, 0.03, 2000)),
    )
    primitives = with_primitive_ids(np.concatenate(parts))
    queries = Queries(cpu, primitives)
    bvh2 = build_bvh(cpu, primitives, "host_sah", "bvh2")
    across = np.stack(np.meshgrid(np.linspace(-0.7, 0.7, 128), np.linspace(-0.7, 0.7, 128)), -1).reshape(-1, 2)
    camera = np.zeros((len(across), 2, 4), "f4")
    camera[:, 0, 2:], camera[:, 1, :2], camera[:, 1, 2] = (3.0, 3e38), across, -1
    for rays in (camera, rays_at(rng, primitives, 5000)):
        hits = cpu.buffer((len(rays), 4))
        kernel = query_kernel(cpu, "closest_bvh2", **queries.constants)
        kernel(len(rays), cpu.buffer(rays.shape).write(rays), hits, bvh2.nodes, bvh2.primitives, len(rays))
        wanted = hits.read().view("u4")
        for traversal in TRAVERSALS:
            assert np.array_equal(queries.closest(rays, traversal), wanted)
            assert np.array_equal(queries.any(rays, traversal), wanted[:, 3].view("i4") >= 0)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("builder", ["host_sah", "hploc"])
def test_every_primitive_is_in_one_leaf_inside_its_boxes(cpu, rng, case, builder):
    primitives = with_primitive_ids(CASES[case](rng))
    queries = Queries(cpu, primitives, builder)
    lines, seen, leaves = queries.bvh.nodes.read(), np.zeros(len(primitives), int), 0
    low, high = primitive_boxes(queries.rows)
    stack = [(0, np.full(3, -np.inf), np.full(3, np.inf), 0)]
    while stack:
        ref, box_low, box_high, depth = stack.pop()
        assert depth < 64
        if ref < 0:
            leaves += 1
            leaf = lines[ref & 0x7FFFFFFF :][:6].reshape(12, 8)
            rows = leaf[9].view("i4")
            assert (rows[rows.argmin() :] == -1).all() or (rows >= 0).all()
            rows = rows[rows >= 0]
            seen[rows] += 1
            assert (low[rows] >= box_low).all() and (high[rows] <= box_high).all()
            numbers = queries.rows["v0"][rows].view("i4")[:, 3]
            assert (np.diff(numbers) > 0).all()
            fields = np.concatenate([queries.rows[field][rows, :3] for field in ("v0", "edge1", "edge2")], 1)
            assert np.array_equal(leaf[:9, : len(rows)].T, fields)
            assert np.array_equal(leaf[10, : len(rows)], queries.rows["edge2"][rows, 3])
            continue
        node = lines[ref:][:4].reshape(8, 8)
        for k in range(8):
            child_low, child_high = node[[0, 2, 4], k], node[[1, 3, 5], k]
            if (child_low <= child_high).all():
                stack.append((int(node[6].view("i4")[k]), child_low, child_high, depth + 1))
            else:
                assert np.isinf(child_low).all()
    assert (seen == 1).all() and leaves <= max(1, len(primitives))
    assert lines[3, 8] >= max(np.abs(low).max(), np.abs(high).max())


def test_an_empty_scene(cpu, rng):
    queries = Queries(cpu, np.zeros(0, PRIMITIVE))
    rays = np.zeros((70, 2, 4), "f4")
    rays[:, 0, 3], rays[:, 1, :3] = 1e30, (0.1, 0.2, -1)
    for traversal in TRAVERSALS:
        assert (queries.closest(rays, traversal)[:, 3].view("i4") == -1).all()
        assert not queries.any(rays, traversal).any()
