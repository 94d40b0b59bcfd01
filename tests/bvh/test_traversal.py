"""Every tree and walk against brute force, on hard cases too."""

import itertools

import numpy as np
import pytest

from renderer.bvh import build, instances, traversal
from renderer.bvh.bvh2_quantized import Narrow, narrowed
from renderer.bvh.bvh4 import MOST_KEPT, Quads
from renderer.formats.mesh import PRIMITIVE, numbered, spheres, triangles
from renderer.raytracing import procedural
from tests.bvh.brute_force import closest_hits

KINDS = "flat", "wide", "narrow", "built", "wide built", "narrow built", "improved", "improved built", "sah"
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
    out["corner"][:, 0, :3], out["corner"][:, 1, :3] = corner, corner + [1 / 6, 0, 1 / 6]
    out["edge1"][:, 0, 0] = out["edge2"][:, 0, 2] = 1 / 6
    out["edge1"][:, 1, 0] = out["edge2"][:, 1, 2] = -1 / 6
    return out.ravel()


def far_away(rng):
    out = soup(rng, 300, 5.0)
    out["corner"][:, :3] = out["corner"][:, :3] * 50 + np.float32(1e6)
    return out


def duplicates(rng):
    return np.repeat(soup(rng, 20, 0.5), 10)


def exponential(rng, octaves=16):
    """Sizes and distances that halve again and again: SAH would make a tree as deep as there are primitives."""
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
    corner, edge1, edge2 = (picked[f][:, :3] for f in ("corner", "edge1", "edge2"))
    target = corner + weights[:, :1] * edge1 + weights[:, 1:2] * edge2
    span = float(np.ptp(primitives["corner"][:, :3], axis=0).max()) + 1
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


def improved_of(device, primitives, rounds=3):
    """The host's tree, improved."""
    tree = build.build(*build.boxes_of(primitives), 1)
    nodes = device.buffer((len(tree.nodes), 16)).write(tree.nodes.view("f4").reshape(-1, 16))
    ordered = device.buffer((len(primitives), 12)).write(primitives[tree.order].view("f4").reshape(-1, 12))
    return build.Improved(device, nodes, ordered, len(primitives), rounds)


class Walks:
    """One tree on a device, and the answers of its walks."""

    def __init__(self, device, primitives, kind="flat"):
        self.device, self.original = device, primitives
        if kind.endswith("built"):
            on_device = device.buffer((len(primitives), 12)).write(primitives.view("f4"))
            self.tree = build.Built(device, on_device, len(primitives))
            if kind.startswith("improved"):
                self.tree = self.tree.improved()
        elif kind == "sah":
            self.tree = build.tree_of(device, primitives, "sah", "binary")
        elif kind == "improved":
            self.tree = improved_of(device, primitives)
        else:
            self.tree = build.Flat(device, primitives, build.build(*build.boxes_of(primitives)))
        if kind.startswith("wide"):
            self.tree = build.Wide(device, self.tree)
        if kind.startswith("narrow"):
            self.tree = Narrow(self.tree)
        self.in_order = self.tree.primitives.read()[: len(primitives)].view(PRIMITIVE).ravel()
        spheres = int((primitives["edge2"][:, 3] > 0).any())
        self.constants = {**KERNELS, "SPHERES": spheres, "NARROW": int(self.tree.layout == "narrow")}

    def closest(self, rays):
        """Distances (n,) and numbers (n,) of the primitives before sorting."""
        return self._hits(self.tree.entries[0], rays, self.tree.nodes, self.tree.primitives)

    def brute(self, rays):
        return self._hits("brute", rays, self.tree.primitives, len(self.in_order))

    def _hits(self, entry, rays, *arguments):
        count = len(rays)
        hits = self.device.buffer((count, 4))
        on_device = self.device.buffer(rays.shape).write(rays)
        self.device.kernel("bvh/ray_queries.cu", entry, **self.constants)(count, on_device, hits, *arguments, count)
        hits = hits.read()
        row = hits[:, 3].copy().view("i4")
        numbers = self.in_order["corner"].view("i4")[:, 3]
        return np.where(row >= 0, hits[:, 0], np.inf), np.where(row >= 0, numbers[row], -1)

    def any(self, rays):
        hits = self.device.buffer(len(rays), "u4")
        on_device = self.device.buffer(rays.shape).write(rays)
        kernel = self.device.kernel("bvh/ray_queries.cu", self.tree.entries[1], **self.constants)
        kernel(len(rays), on_device, hits, self.tree.nodes, self.tree.primitives, len(rays))
        return hits.read().astype(bool)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", CASES)
def test_walks_equal_brute_force(device, rng, case, kind, **constants):
    primitives = numbered(CASES[case](rng))
    if kind not in ("flat", "wide", "narrow") and len(primitives) < 2:
        pytest.skip("a tree of one primitive is built on the host")
    walks = Walks(device, primitives, kind)
    walks.constants |= constants
    assert np.array_equal(np.sort(walks.in_order["corner"].view("i4")[:, 3]), np.arange(len(primitives)))
    rays = rays_at(rng, primitives)
    t, number = walks.closest(rays)
    brute_t, brute_number = walks.brute(rays)
    assert np.array_equal(t, brute_t) and np.array_equal(number, brute_number)
    assert np.array_equal(walks.any(rays), number >= 0)


@pytest.mark.parametrize("case", ["slivers", "coplanar quads", "exponential", "mixed"])
def test_walks_without_vectors_equal_brute_force(device, rng, case):
    """The box tests of GPUs, on processors too, and threads that take turns at leaves."""
    for kind in ("wide", "flat", "narrow"):
        test_walks_equal_brute_force(device, rng, case, kind, SCALAR_BOXES=1, WALK_STEPS=3)


@pytest.mark.parametrize("case", CASES)
def test_walks_of_four_wide_nodes_equal_brute_force(device, rng, case):
    primitives = numbered(CASES[case](rng))
    walks = Walks(device, primitives)
    rays = rays_at(rng, primitives)
    found = walks._hits("closest_quad", rays, Quads(walks.tree).nodes, walks.tree.primitives)
    assert all(np.array_equal(a, b) for a, b in zip(found, walks.brute(rays), strict=True))


@pytest.mark.parametrize("case", ["soup", "mixed", "coplanar quads", "three spheres"])
def test_hits_equal_the_float64_twin(device, rng, case):
    primitives = numbered(CASES[case](rng))
    walks = Walks(device, primitives)
    rays = rays_at(rng, primitives)
    t, number = walks.closest(rays)
    true_t, true_number = closest_hits(rays, primitives)
    agree = np.isclose(t, true_t, rtol=1e-4, atol=1e-5)
    assert agree.mean() > 0.995  # float32 may fall to the other side of an edge
    assert (number[agree] == true_number[agree]).mean() > 0.99
    assert (number >= 0).mean() > 0.5


def test_greatest_t_is_respected(device, rng):
    primitives = numbered(soup(rng, 100, 0.5))
    walks = Walks(device, primitives)
    rays = rays_at(rng, primitives)
    t, number = walks.closest(rays)
    rays[:, 0, 3] = np.where(np.isfinite(t), t, 1e30) * np.where(
        rng.random(len(t)) < 0.5, np.float32(0.999), np.float32(1)
    )
    shorter, _ = walks.closest(rays)
    assert (shorter[np.isfinite(shorter)] <= rays[:, 0, 3][np.isfinite(shorter)]).all()
    assert np.array_equal(walks.any(rays), np.isfinite(shorter))
    whole = rays[:, 0, 3] == t
    assert np.array_equal(shorter[whole], t[whole])


@pytest.mark.parametrize("case", [*CASES, "bottomless"])
def test_tree_holds_every_primitive_in_boxes_that_enclose_it(rng, case):
    primitives = numbered(exponential(rng, 99) if case == "bottomless" else CASES[case](rng))
    low, high = build.boxes_of(primitives)
    tree = build.build(low, high)
    assert np.array_equal(np.sort(tree.order), np.arange(len(primitives)))
    assert tree.depth < 64
    seen = np.zeros(len(primitives), int)
    stack = [(0, 1)]
    while stack:
        node, depth = stack.pop()
        assert depth <= tree.depth
        row = tree.nodes[node]
        for side, field in enumerate(("first_xy", "second_xy")):
            box_low = np.array([row[field][0], row[field][2], row["z"][2 * side]])
            box_high = np.array([row[field][1], row[field][3], row["z"][2 * side + 1]])
            code = int(row["child"][side])
            if code >= 0:
                stack.append((code, depth + 1))
                continue
            if not (box_low <= box_high).all():
                continue  # the empty half of a tree with one primitive
            rows = tree.order[~code >> 3 : (~code >> 3) + (~code & 7) + 1]
            seen[rows] += 1
            assert (low[rows] >= box_low).all() and (high[rows] <= box_high).all()
    assert (seen == 1).all()


@pytest.mark.parametrize("count", [2, 3, 15, 16, 17, 31, 33, 100, 1000, 5000])
def test_trees_built_on_the_device_are_whole(device, rng, count):
    """Every primitive in one leaf, every box around what is below it, any number of primitives."""
    primitives = numbered(soup(rng, count, 0.05))
    built = Walks(device, primitives, "built")
    words = built.tree.nodes.read()
    low, high = build.boxes_of(built.in_order)
    seen, boxes, stack = np.zeros(count, int), {}, [(0, False)]
    while stack:
        node, done = stack.pop()
        codes = [int(code) for code in words[node].view("i4")[[3, 7]]]
        if not done:
            stack += [(node, True), *((code, False) for code in codes if code >= 0)]
            continue
        own = []
        for side, code in enumerate(codes):
            centre, half = words[node, 8 * side : 8 * side + 3], words[node, 8 * side + 4 : 8 * side + 7]
            own.append((centre.astype("f8") - half, centre.astype("f8") + half))
            first = ~code >> 3
            seen[first] += code < 0
            below = (low[first], high[first]) if code < 0 else boxes[code]
            assert (own[-1][0] <= below[0]).all() and (own[-1][1] >= below[1]).all()
            assert np.allclose(own[-1][0], below[0], atol=1e-5) and np.allclose(own[-1][1], below[1], atol=1e-5)
        # what the builder had joined, before the rounding of centres
        boxes[node] = np.minimum(own[0][0], own[1][0]) + 1e-6, np.maximum(own[0][1], own[1][1]) - 1e-6
    assert (seen == 1).all()


def test_a_tree_is_rebuilt_when_its_primitives_have_moved(device, rng):
    primitives = numbered(soup(rng, 500))
    walks = Walks(device, primitives, "built")
    moved = numbered(soup(rng, 500))
    walks.tree.unsorted.write(moved.view("f4").reshape(-1, 12))
    walks.tree.rebuild()
    walks.in_order = walks.tree.primitives.read().view(PRIMITIVE).ravel()
    rays = rays_at(rng, moved)
    assert all(np.array_equal(a, b) for a, b in zip(walks.closest(rays), walks.brute(rays), strict=True))


def deep_balls(kind):
    """Balls whose nearest neighbours merge into chains."""
    count = 2000
    sizes, turn = 0.97 ** np.arange(count), np.exp(0.3j * np.arange(count))
    spiral = sizes[:, None] * np.stack([turn.real, turn.imag, np.ones(count)], 1)
    places = spiral if kind == "spiral" else np.zeros((count, 3))
    return spheres(places, np.ones(count) if kind == "one place" else 0.2 * sizes)


@pytest.mark.parametrize("kind", ["one place", "shells", "spiral"])
def test_no_tree_is_deeper_than_the_stacks_of_walks(device, kind, monkeypatch):
    monkeypatch.setattr(traversal, "SMALL", 0)
    primitives = numbered(deep_balls(kind))
    for builder in "device", "sah", "improved":
        tree = build.tree_of(device, primitives, builder, "binary")
        codes, level, depth = tree.nodes.read().view("i4")[:, [3, 7]], np.array([0]), 0
        while len(level):
            below = codes[level]
            level, depth = below[below >= 0], depth + 1
        assert depth < 64, builder
        assert build.Wide(device, tree).whole
        tree.cost = 0
        walk = traversal.Walk(tree, "scattered", spheres=True)
        assert not walk.entry.endswith("quads") or walk.tree.kept <= MOST_KEPT


def test_a_thousand_instances_inside_one_another_are_hit(device, rng):
    """Nested shells: rays from outside meet the largest, rays from the middle the smallest."""
    count = 1000
    sizes = np.float32(0.98) ** np.arange(count, dtype="f4")
    matrices = np.zeros((count, 3, 4), "f4")
    matrices[:, :, :3] = np.eye(3, dtype="f4") * sizes[:, None, None]
    placed = instances.Instances(device, [numbered(spheres(np.zeros((1, 3)), np.ones(1)))], np.zeros(count, int))
    placed.place(matrices)
    rays = np.zeros((64, 2, 4), "f4")
    rays[:, 1, :3] = rng.normal(size=(64, 3))
    rays[:, 1, :3] /= np.linalg.norm(rays[:, 1, :3], axis=1, keepdims=True)
    rays[:32, 0, :3], rays[:, 0, 3] = -3 * rays[:32, 1, :3], 1e30
    hits, which = device.buffer((64, 4)), device.buffer(64, "i4")
    placed.closest(device.buffer(rays.shape).write(rays), hits, which, 64, spheres=True)
    assert (which.read()[:32] == 0).all() and (which.read()[32:] == count - 1).all()
    assert np.allclose(hits.read()[:, 0], np.repeat([2, sizes[-1]], 32), rtol=1e-4)


def test_trees_are_narrow_where_their_boxes_fit_a_grid(device, rng):
    """One grid has room for a sponge's boxes, none for a small thing in a large place or far from the origin."""
    sponge = Walks(device, numbered(procedural.menger(2))).tree
    narrow = Narrow(sponge)
    assert narrow.coarse < 0.01
    if not traversal.has_votes(device):
        assert narrowed(sponge) is sponge
    for primitives in (exponential(rng, 40), far_away(rng)):
        assert Narrow(Walks(device, numbered(primitives)).tree).coarse > 0.2
    steps = [traversal.steps_of(tree) for tree in (sponge, narrow)]
    assert steps[0] <= steps[1] < 1.1 * steps[0]


@pytest.mark.parametrize("nodes", ["binary", "wide"])
def test_an_empty_scene_is_hit_by_nothing(device, rng, nodes):
    tree = build.tree_of(device, np.zeros(0, PRIMITIVE), nodes=nodes)
    rays = np.zeros((64, 2, 4), "f4")
    rays[:, 0, 3], rays[:, 1, :3] = 1e30, rng.normal(size=(64, 3))
    hits = device.buffer((64, 4))
    traversal.Walk(tree, "primary")(device.buffer(rays.shape).write(rays), hits, 64)
    assert (hits.read()[:, 3].copy().view("i4") == -1).all()


def test_sah_beats_halving(rng):
    """The cost that the builder reports is what a walk over its nodes adds up to, and far below that of halving."""
    primitives = numbered(np.concatenate([soup(rng, 1500, 0.02), soup(rng, 20, 1.0)]))
    low, high = build.boxes_of(primitives)
    builder = build._Builder(low, high, 4)
    good = builder.tree()
    before, build.HALVES_FROM = build.HALVES_FROM, 0
    try:
        halved = build.build(low, high)
    finally:
        build.HALVES_FROM = before
    assert good.cost < 0.7 * halved.cost


@pytest.mark.parametrize("rays_class", ["primary", "scattered", "primary shadow", "scattered shadow"])
@pytest.mark.parametrize("case", ["soup", "mixed", "exponential", "one triangle"])
def test_every_selected_walk_equals_brute_force(device, rng, case, rays_class, monkeypatch):
    """Any number of rays; the walks by warps where a device has them, and the other choices of the table too."""
    primitives = numbered(CASES[case](rng))
    walks = Walks(device, primitives)
    trees = walks.tree, Narrow(walks.tree)
    for tree, cost, small, steps in itertools.product(trees, (0, 1000), (0, 1e9), (10, 1000)):
        if (cost == 0 or small) and steps == 1000 or (small and tree.layout == "narrow"):
            continue  # nothing else than with 10
        tree.cost, tree.steps = cost, steps
        monkeypatch.setattr(traversal, "SMALL", small)
        rays = rays_at(rng, primitives, int(rng.integers(1, 3000)))
        walk = traversal.Walk(tree, rays_class, spheres=bool(walks.constants["SPHERES"]))
        brute_t, _ = walks.brute(rays)
        on_device = device.buffer(rays.shape).write(rays)
        if rays_class.endswith("shadow"):
            hits = device.buffer(len(rays), "u4").fill(255)
            walk(on_device, hits, len(rays))
            assert np.array_equal(hits.read(), np.isfinite(brute_t))
        else:
            hits = device.buffer((len(rays), 4)).fill(255)
            walk(on_device, hits, len(rays))
            hits = hits.read()
            assert np.array_equal(np.where(hits[:, 3].copy().view("i4") >= 0, hits[:, 0], np.inf), brute_t)


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
        for field, move in (("corner", 1), ("edge1", 0), ("edge2", 0)):
            part[field][:, :3] = part[field][:, :3] @ matrix[:, :3].T + move * matrix[:, 3]
        parts.append(part)
    return numbered(np.concatenate(parts))


@pytest.mark.parametrize("count", [2, 5, 64])
def test_instances_are_hit_as_their_copies_would_be(device, rng, count):
    """Also when they are moved and the upper tree rebuilt, and when 64 of them lie inside one another."""
    shapes = [numbered(soup(rng, 60, 0.3)), numbered(soup(rng, 200)), numbered(soup(rng, 1, 1.0))]
    shape_of = rng.integers(0, 3, count)
    placed = instances.Instances(device, shapes, shape_of)
    for moment in range(3):
        matrices = placements(rng, count)
        if moment == 2:
            matrices[:, :, 3] = 0
        placed.place(matrices)
        world = placed_flat(shapes, shape_of, matrices)
        rays = rays_at(rng, world, 600)
        hits, which = device.buffer((600, 4)), device.buffer(600, "i4")
        placed.closest(device.buffer(rays.shape).write(rays), hits, which, 600, spheres=False)
        hits, which = hits.read(), which.read()
        true_t, true_row = closest_hits(rays, world)
        assert np.array_equal(which >= 0, hits[:, 3].copy().view("i4") >= 0)
        t = np.where(which >= 0, hits[:, 0], np.inf)
        agree = np.isclose(t, true_t, rtol=1e-3, atol=1e-4)
        assert agree.mean() > 0.98, moment  # float32 may fall to the other side of an edge
        edges = np.append(0, np.cumsum([len(shapes[s]) for s in shape_of]))
        true_which = np.searchsorted(edges, true_row, "right") - 1
        assert (which[agree] == np.where(true_row >= 0, true_which, -1)[agree]).mean() > 0.98
