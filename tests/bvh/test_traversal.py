"""Every builder, layout and traversal against brute force, on hard cases too."""

import numpy as np
import pytest

from renderer.bvh import host_sah, instances
from renderer.bvh.build import build_bvh
from renderer.bvh.host_sah import build_host_sah, primitive_boxes
from renderer.bvh.primitives import PRIMITIVE, spheres, triangles, with_primitive_ids
from tests.bvh.brute_force import closest_hits
from tests.bvh.ray_queries import RayQuery, closest_instanced, query_kernel

KINDS = "host_sah", "hploc", "sah"
KERNELS = dict(group_size=64, STRICT=1)


def soup(rng, count=300, size=0.1):
    corners = rng.uniform(-1, 1, (count, 1, 3)) + rng.uniform(-size, size, (count, 3, 3))
    return triangles(corners.reshape(-1, 3), np.arange(3 * count).reshape(-1, 3))


def slivers(rng):
    corners = rng.uniform(-1, 1, (200, 1, 3)) + np.stack(
        [np.zeros((200, 3)), rng.normal(size=(200, 3)), rng.normal(size=(200, 3)) * 1e-4], 1
    )
    return triangles(corners.reshape(-1, 3), np.arange(600).reshape(-1, 3))


def coplanar_quads(rng):
    """A floor of axis-aligned squares in one plane: boxes without thickness."""
    x, z = np.meshgrid(np.arange(12.0), np.arange(12.0))
    corner = np.stack([x.ravel(), np.full(144, 0.25), z.ravel()], 1) / 6 - 1
    out = np.zeros((144, 2), PRIMITIVE)
    out["v0"][:, 0, :3], out["v0"][:, 1, :3] = corner, corner + [1 / 6, 0, 1 / 6]
    out["edge1"][:, 0, 0] = out["edge2"][:, 0, 2] = 1 / 6
    out["edge1"][:, 1, 0] = out["edge2"][:, 1, 2] = -1 / 6
    return out.ravel()


def far_away(rng):
    out = soup(rng, 300, 5.0)
    out["v0"][:, :3] = out["v0"][:, :3] * 50 + np.float32(1e6)
    return out


def duplicates(rng):
    return np.repeat(soup(rng, 20, 0.5), 10)


def exponential(rng, octaves=16):
    """Sizes and distances that halve again and again: SAH would make a BVH as deep as there are primitives."""
    scale = 2.0 ** -np.linspace(0, octaves, 100)[:, None, None]
    corners = scale * (1 + 0.1 * rng.uniform(size=(100, 3, 3)))
    return triangles(corners.reshape(-1, 3), np.arange(300).reshape(-1, 3))


def zero_areas(rng):
    out = soup(rng, 60, 0.3)
    out["edge2"][::3, :3] = rng.normal(size=(20, 1)) * out["edge1"][::3, :3]
    out["edge1"][1::6, :3] = out["edge2"][1::6, :3] = 0
    return out


def mixed(rng):
    return np.concatenate([spheres(rng.uniform(-1, 1, (150, 3)), rng.uniform(0.01, 0.2, 150)), soup(rng, 150)])


CASES = {
    "soup": soup, "slivers": slivers, "coplanar quads": coplanar_quads, "far away": far_away,
    "one triangle": lambda rng: soup(rng, 1, 1.0), "two triangles": lambda rng: soup(rng, 2, 1.0),
    "zero areas": zero_areas, "duplicates": duplicates, "exponential": exponential, "mixed": mixed,
    "three spheres": lambda rng: spheres(rng.uniform(-1, 1, (3, 3)), np.full(3, 0.4)),
}  # fmt: skip


def rays_at(rng, primitives, count=1500):
    """Rays (n, 2, 4) from around the primitives, aimed at points inside them; some run along an axis."""
    picked = primitives[rng.integers(0, len(primitives), count)]
    weights = rng.dirichlet((1, 1, 1), count).astype("f4")
    corner, edge1, edge2 = (picked[f][:, :3] for f in ("v0", "edge1", "edge2"))
    target = corner + weights[:, :1] * edge1 + weights[:, 1:2] * edge2
    span = float(np.ptp(primitives["v0"][:, :3], axis=0).max()) + 1
    direction = rng.normal(size=(count, 3)).astype("f4")
    direction[: count // 4] = np.eye(3, dtype="f4")[rng.integers(0, 3, count // 4)] * rng.choice(
        [-1, 1], (count // 4, 1)
    )
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    rays = np.zeros((count, 2, 4), "f4")
    rays[:, 0, :3] = target - direction * rng.uniform(0.1, 2, (count, 1)) * span
    rays[:, 0, 3] = 3e38
    rays[:, 1, :3] = direction
    return rays


def rays_from_places(rng, primitives, count):
    """rays_at, but every second 32 start near one another, as bounces of neighboring pixels do, with an end each."""
    rays = rays_at(rng, primitives, count)
    places = rays[:, 0] + rays[:, 1] * rng.uniform(0, 2, (count, 1)).astype("f4")
    together = np.arange(count) // 32 % 2 == 0
    near = places[np.arange(count) // 32 * 32, :3] + rng.normal(size=(count, 3)).astype("f4") * np.float32(0.01)
    rays[together, 0, :3] = near[together]
    rays[together, 0, 3] = rng.uniform(0, 3, together.sum())
    return rays


class Queries:
    """One BVH on a device, and the answers of its traversal and of brute force."""

    def __init__(self, device, primitives, kind="host_sah"):
        self.device = device
        self.set_bvh(build_bvh(device, primitives, kind, "bvh2"))
        self.constants = {**KERNELS, "SPHERES": int((primitives["edge2"][:, 3] > 0).any())}

    def set_bvh(self, bvh):
        self.bvh = bvh
        self.in_order = bvh.primitives.read()[: bvh.count].view(PRIMITIVE).ravel()

    def closest(self, rays):
        """Distances (n,) and ids (n,) of the primitives before sorting."""
        return self._hits("closest_bvh2", rays, self.bvh.nodes, self.bvh.primitives)

    def brute(self, rays):
        return self._hits("brute_force", rays, self.bvh.primitives, len(self.in_order))

    def _kernel(self, entry):
        return query_kernel(self.device, entry, **self.constants)

    def _hits(self, entry, rays, *arguments):
        count = len(rays)
        hits = self.device.buffer((count, 4))
        on_device = self.device.buffer(rays.shape).write(rays)
        self._kernel(entry)(count, on_device, hits, *arguments, count)
        hits = hits.read()
        row = hits[:, 3].copy().view("i4")
        ids = self.in_order["v0"].view("i4")[:, 3]
        return np.where(row >= 0, hits[:, 0], np.inf), np.where(row >= 0, ids[row], -1)

    def any(self, rays):
        hits = self.device.buffer(len(rays), "u4")
        on_device = self.device.buffer(rays.shape).write(rays)
        self._kernel("occluded_bvh2")(len(rays), on_device, hits, self.bvh.nodes, self.bvh.primitives, len(rays))
        return hits.read().astype(bool)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", CASES)
def test_hits_equal_brute_force(device, rng, case, kind):
    primitives = with_primitive_ids(CASES[case](rng))
    queries = Queries(device, primitives, kind)
    assert np.array_equal(np.sort(queries.in_order["v0"].view("i4")[:, 3]), np.arange(len(primitives)))
    rays = rays_at(rng, primitives)
    t, prim_id = queries.closest(rays)
    brute_t, brute_id = queries.brute(rays)
    assert np.array_equal(t, brute_t) and np.array_equal(prim_id, brute_id)
    assert np.array_equal(queries.any(rays), prim_id >= 0)


@pytest.mark.parametrize("case", ["soup", "mixed", "coplanar quads", "three spheres"])
def test_hits_equal_the_float64_reference(device, rng, case):
    primitives = with_primitive_ids(CASES[case](rng))
    queries = Queries(device, primitives)
    rays = rays_at(rng, primitives)
    t, prim_id = queries.closest(rays)
    true_t, true_id = closest_hits(rays, primitives)
    agree = np.isclose(t, true_t, rtol=1e-4, atol=1e-5)
    assert agree.mean() > 0.995  # float32 may fall to the other side of an edge
    assert (prim_id[agree] == true_id[agree]).mean() > 0.99
    assert (prim_id >= 0).mean() > 0.5


def test_t_max_is_respected(device, rng):
    primitives = with_primitive_ids(soup(rng, 100, 0.5))
    queries = Queries(device, primitives)
    rays = rays_at(rng, primitives)
    t, prim_id = queries.closest(rays)
    rays[:, 0, 3] = np.where(np.isfinite(t), t, 1e30) * np.where(
        rng.random(len(t)) < 0.5, np.float32(0.999), np.float32(1)
    )
    shorter, _ = queries.closest(rays)
    assert (shorter[np.isfinite(shorter)] <= rays[:, 0, 3][np.isfinite(shorter)]).all()
    assert np.array_equal(queries.any(rays), np.isfinite(shorter))
    whole = rays[:, 0, 3] == t
    assert np.array_equal(shorter[whole], t[whole])


@pytest.mark.parametrize("case", [*CASES, "bottomless"])
def test_a_bvh_holds_every_primitive_in_boxes_that_enclose_it(rng, case):
    primitives = with_primitive_ids(exponential(rng, 99) if case == "bottomless" else CASES[case](rng))
    low, high = primitive_boxes(primitives)
    bvh = build_host_sah(low, high)
    assert np.array_equal(np.sort(bvh.order), np.arange(len(primitives)))
    assert bvh.depth < 64
    seen = np.zeros(len(primitives), int)
    stack = [(0, 1)]
    while stack:
        node, depth = stack.pop()
        assert depth <= bvh.depth
        row = bvh.nodes[node]
        for side, field in enumerate(("first_xy", "second_xy")):
            box_low = np.array([row[field][0], row[field][2], row["z"][2 * side]])
            box_high = np.array([row[field][1], row[field][3], row["z"][2 * side + 1]])
            ref = int(row["child"][side])
            if ref >= 0:
                stack.append((ref, depth + 1))
                continue
            if not (box_low <= box_high).all():
                continue  # the empty half of a BVH with one primitive
            rows = bvh.order[~ref >> 3 : (~ref >> 3) + (~ref & 7) + 1]
            seen[rows] += 1
            assert (low[rows] >= box_low).all() and (high[rows] <= box_high).all()
    assert (seen == 1).all()


@pytest.mark.parametrize("count", [2, 3, 15, 16, 17, 31, 33, 100, 1000, 5000])
def test_bvhs_built_on_the_device_are_complete(device, rng, count):
    """Every primitive in one leaf, every box around what is below it, any number of primitives."""
    primitives = with_primitive_ids(soup(rng, count, 0.05))
    built = Queries(device, primitives, "hploc")
    words = built.bvh.nodes.read()
    low, high = primitive_boxes(built.in_order)
    seen, boxes, stack = np.zeros(count, int), {}, [(0, False)]
    while stack:
        node, done = stack.pop()
        refs = [int(ref) for ref in words[node].view("i4")[[3, 7]]]
        if not done:
            stack += [(node, True), *((ref, False) for ref in refs if ref >= 0)]
            continue
        own = []
        for side, ref in enumerate(refs):
            center, half = words[node, 8 * side : 8 * side + 3], words[node, 8 * side + 4 : 8 * side + 7]
            own.append((center.astype("f8") - half, center.astype("f8") + half))
            first = ~ref >> 3
            seen[first] += ref < 0
            below = (low[first], high[first]) if ref < 0 else boxes[ref]
            assert (own[-1][0] <= below[0]).all() and (own[-1][1] >= below[1]).all()
            assert np.allclose(own[-1][0], below[0], atol=1e-5) and np.allclose(own[-1][1], below[1], atol=1e-5)
        # what the builder had joined, before the rounding of centers
        boxes[node] = np.minimum(own[0][0], own[1][0]) + 1e-6, np.maximum(own[0][1], own[1][1]) - 1e-6
    assert (seen == 1).all()


def test_a_bvh_is_rebuilt_when_its_primitives_have_moved(device, rng):
    primitives = with_primitive_ids(soup(rng, 500))
    queries = Queries(device, primitives, "hploc")
    moved = with_primitive_ids(soup(rng, 500))
    queries.bvh.unsorted.write(moved.view("f4").reshape(-1, 12))
    queries.bvh.rebuild()
    queries.in_order = queries.bvh.primitives.read().view(PRIMITIVE).ravel()
    rays = rays_at(rng, moved)
    assert all(np.array_equal(a, b) for a, b in zip(queries.closest(rays), queries.brute(rays), strict=True))


def deep_balls(kind):
    """Balls whose nearest neighbors merge into chains."""
    count = 2000
    sizes, turn = 0.97 ** np.arange(count), np.exp(0.3j * np.arange(count))
    spiral = sizes[:, None] * np.stack([turn.real, turn.imag, np.ones(count)], 1)
    places = spiral if kind == "spiral" else np.zeros((count, 3))
    return spheres(places, np.ones(count) if kind == "one place" else 0.2 * sizes)


@pytest.mark.parametrize("kind", ["one place", "shells", "spiral"])
def test_no_bvh_is_deeper_than_the_traversal_stack(device, kind):
    primitives = with_primitive_ids(deep_balls(kind))
    for builder in "hploc", "sah":
        bvh = build_bvh(device, primitives, builder, "bvh2")
        refs, level, depth = bvh.nodes.read().view("i4")[:, [3, 7]], np.array([0]), 0
        while len(level):
            below = refs[level]
            level, depth = below[below >= 0], depth + 1
        assert depth < 64, builder


def test_a_thousand_instances_inside_one_another_are_hit(device, rng):
    """Nested shells: rays from outside meet the largest, rays from the middle the smallest."""
    count = 1000
    sizes = np.float32(0.98) ** np.arange(count, dtype="f4")
    matrices = np.zeros((count, 3, 4), "f4")
    matrices[:, :, :3] = np.eye(3, dtype="f4") * sizes[:, None, None]
    instanced = instances.Instances(
        device, [with_primitive_ids(spheres(np.zeros((1, 3)), np.ones(1)))], np.zeros(count, int)
    )
    rays = np.zeros((64, 2, 4), "f4")
    rays[:, 1, :3] = rng.normal(size=(64, 3))
    rays[:, 1, :3] /= np.linalg.norm(rays[:, 1, :3], axis=1, keepdims=True)
    rays[:32, 0, :3], rays[:, 0, 3] = -3 * rays[:32, 1, :3], 1e30
    hits, which = device.buffer((64, 4)), device.buffer(64, "i4")
    for _ in range(2):  # on a CPU the host builds the first TLAS, the device the second
        instanced.update(matrices)
        closest_instanced(instanced, device.buffer(rays.shape).write(rays), hits, which, 64, spheres=True)
        assert (which.read()[:32] == 0).all() and (which.read()[32:] == count - 1).all()
        assert np.allclose(hits.read()[:, 0], np.repeat([2, sizes[-1]], 32), rtol=1e-4)


@pytest.mark.parametrize("layout", ["bvh2", "auto"])
def test_an_empty_scene_is_hit_by_nothing(device, rng, layout):
    bvh = build_bvh(device, np.zeros(0, PRIMITIVE), layout=layout)
    rays = np.zeros((64, 2, 4), "f4")
    rays[:, 0, 3], rays[:, 1, :3] = 1e30, rng.normal(size=(64, 3))
    hits = device.buffer((64, 4))
    RayQuery(bvh)(device.buffer(rays.shape).write(rays), hits, 64)
    assert (hits.read()[:, 3].copy().view("i4") == -1).all()


def test_sah_beats_median_splits(rng, monkeypatch):
    """The SAH cost that the builder reports is far below the cost of median splits."""
    primitives = with_primitive_ids(np.concatenate([soup(rng, 1500, 0.02), soup(rng, 20, 1.0)]))
    low, high = primitive_boxes(primitives)
    good = build_host_sah(low, high, 4)
    monkeypatch.setattr(host_sah, "FORCE_MEDIAN", 0)
    assert good.cost < 0.7 * build_host_sah(low, high).cost


@pytest.mark.parametrize("incoherent", [False, True])
@pytest.mark.parametrize("any_hit", [False, True])
@pytest.mark.parametrize("case", ["soup", "mixed", "exponential", "duplicates", "one triangle"])
def test_the_traversal_of_pictures_equals_brute_force(device, rng, case, any_hit, incoherent):
    """Any number of rays, in every layout that a device may get; equal hits in leaves whose ids have no order."""
    primitives = rng.permutation(with_primitive_ids(CASES[case](rng)))
    queries = Queries(device, primitives)
    for bvh in (queries.bvh, build_bvh(device, primitives)):
        rays = rays_from_places(rng, primitives, int(rng.integers(1, 3000)))
        brute_t, brute_id = queries.brute(rays)
        query = RayQuery(bvh, any_hit, bool(queries.constants["SPHERES"]), incoherent)
        on_device = device.buffer(rays.shape).write(rays)
        if any_hit:
            hits = device.buffer(len(rays), "u4").fill(255)
            query(on_device, hits, len(rays))
            assert np.array_equal(hits.read(), np.isfinite(brute_t))
        else:
            hits = device.buffer((len(rays), 4)).fill(255)
            query(on_device, hits, len(rays))
            hits, ids = hits.read(), bvh.primitives.read().view("i4")[:, 3]
            row = hits[:, 3].copy().view("i4")
            assert np.array_equal(np.where(row >= 0, hits[:, 0], np.inf), brute_t)
            assert np.array_equal(np.where(row >= 0, ids[row], -1), brute_id)


@pytest.mark.slow
@pytest.mark.parametrize("any_hit", [False, True])
def test_a_stream_that_overflows_is_traced_ray_by_ray(device, rng, any_hit):
    """On devices that trace incoherent rays in streams; on others the capacity means nothing."""
    primitives = with_primitive_ids(soup(rng, 3000, 0.5))
    bvh, rays = build_bvh(device, primitives), rays_from_places(rng, primitives, 2000)
    found = []
    for capacity in (512, 96):
        hits = device.buffer(len(rays) if any_hit else (len(rays), 4), "u4" if any_hit else "f4").fill(255)
        query = RayQuery(bvh, any_hit, STREAM_CAPACITY=capacity)
        query(device.buffer(rays.shape).write(rays), hits, len(rays))
        found.append(hits.read())
    assert np.array_equal(found[0], found[1], equal_nan=True)
    brute_t, _ = Queries(device, primitives).brute(rays)
    hit = found[0] > 0 if any_hit else found[0][:, 3].copy().view("i4") >= 0
    assert np.array_equal(hit, np.isfinite(brute_t)) and 0 < hit.sum() < len(hit)


def placements(rng, count):
    """Matrices (n, 3, 4) that turn, scale unevenly and move."""
    out = np.zeros((count, 3, 4))
    for matrix in out:
        turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        matrix[:, :3] = turn * rng.uniform(0.3, 1.5, 3)
        matrix[:, 3] = rng.uniform(-2, 2, 3)
    return out.astype("f4")


def placed_flat(shapes, shape_of, matrices):
    """All instances as one array of triangles, in float32 world space."""
    parts = []
    for which, matrix in zip(shape_of, matrices, strict=True):
        part = shapes[which].copy()
        for field, move in (("v0", 1), ("edge1", 0), ("edge2", 0)):
            part[field][:, :3] = part[field][:, :3] @ matrix[:, :3].T + move * matrix[:, 3]
        parts.append(part)
    return with_primitive_ids(np.concatenate(parts))


@pytest.mark.parametrize("count", [2, 5, 64])
def test_instances_are_hit_as_their_copies_would_be(device, rng, count):
    """Also when they are moved and the TLAS rebuilt, and when 64 of them lie inside one another."""
    shapes = [
        with_primitive_ids(soup(rng, 60, 0.3)),
        with_primitive_ids(soup(rng, 200)),
        with_primitive_ids(soup(rng, 1, 1.0)),
    ]
    shape_of = rng.integers(0, 3, count)
    instanced = instances.Instances(device, shapes, shape_of)
    for moment in range(3):
        matrices = placements(rng, count)
        if moment == 2:
            matrices[:, :, 3] = 0
        instanced.update(matrices)
        world = placed_flat(shapes, shape_of, matrices)
        rays = rays_at(rng, world, 600)
        hits, which = device.buffer((600, 4)), device.buffer(600, "i4")
        ray_buffer = device.buffer(rays.shape).write(rays)
        closest_instanced(instanced, ray_buffer, hits, which, 600, spheres=False)
        first = hits.read(), which.read()
        instanced.update(matrices)  # on a CPU the host built the first TLAS, and the device builds those that follow
        closest_instanced(instanced, ray_buffer, hits, which, 600, spheres=False)
        hits, which = hits.read(), which.read()
        assert hits.tobytes() == first[0].tobytes() and np.array_equal(which, first[1])
        true_t, true_row = closest_hits(rays, world)
        assert np.array_equal(which >= 0, hits[:, 3].copy().view("i4") >= 0)
        t = np.where(which >= 0, hits[:, 0], np.inf)
        agree = np.isclose(t, true_t, rtol=1e-3, atol=1e-4)
        assert agree.mean() > 0.98, moment  # float32 may fall to the other side of an edge
        edges = np.append(0, np.cumsum([len(shapes[s]) for s in shape_of]))
        true_which = np.searchsorted(edges, true_row, "right") - 1
        assert (which[agree] == np.where(true_row >= 0, true_which, -1)[agree]).mean() > 0.98
