"""Triangles in parts: what parts hold, what trees of them are hit by, and when they are taken."""

import numpy as np
import pytest

from renderer.bvh import build, instances, presplit, traversal
from renderer.bvh.bvh4 import Quads
from renderer.bvh.presplit import Parts, waste_of
from renderer.formats.mesh import PRIMITIVE, numbered, triangles
from renderer.raytracing import procedural
from tests.bvh.test_traversal import CASES, Walks, rays_at, soup
from tests.fps.rays import hair


def needles(rng):
    """Both edges of a corner nearly parallel, where hits are far off their triangle."""
    corner, way = rng.uniform(-1, 1, (200, 3)), rng.normal(size=(200, 3))
    off = rng.normal(size=(200, 3)) * 10.0 ** rng.uniform(-4, -1, (200, 1))
    corners = np.stack([corner, corner + way, corner + rng.uniform(0.3, 1, (200, 1)) * way + off], 1)
    return triangles(corners.reshape(-1, 3), np.arange(600).reshape(-1, 3))


def scaled(primitives, scale):
    for field in PRIMITIVE.names:
        primitives[field][:, :3] *= np.float32(scale)
    return primitives


SHAPES = CASES | {
    "hair": lambda rng: hair(400),
    "needles": needles,
    "huge": lambda rng: scaled(needles(rng), 1e11),
}
TINY = {"tiny": lambda rng: scaled(needles(rng), 1e-11)}  # hits from far away are chance


def flatness_of(primitives):
    """How much longer edges (m,) are than what they span is high."""
    a, b = primitives["edge1"][:, :3].astype("f8"), primitives["edge2"][:, :3].astype("f8")
    size = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return size / np.maximum(np.linalg.norm(np.cross(a, b), axis=1), 1e-6 * size + 1e-300)


def cut(device, primitives, cuts):
    on_device = device.buffer((len(primitives), 12)).write(primitives.view("f4").reshape(-1, 12))
    return Parts(device, on_device, cuts.astype("u4"), *presplit.corners_of(primitives))


@pytest.mark.parametrize("case", SHAPES | TINY)
def test_parts_hold_all_of_their_triangle_and_stay_in_its_box(device, rng, case):
    primitives = numbered((SHAPES | TINY)[case](rng))
    cuts = rng.integers(0, 40, len(primitives)) * rng.integers(0, 2, len(primitives))
    parts = cut(device, primitives, cuts)
    number = parts.primitives.read().view("i4")[:, 3]
    assert np.array_equal(parts.primitives.read(), primitives[number].view("f4").reshape(-1, 12))
    made = np.bincount(number, minlength=len(primitives))
    assert (made >= 1).all() and (made <= cuts + 1).all() and (np.diff(number) >= 0).all()
    boxes = parts.boxes.read().reshape(-1, 2, 4)[:, :, :3]
    low, high = build.boxes_of(primitives)
    reach, flatness = np.abs(np.concatenate([low, high], 1)).max(1), flatness_of(primitives)
    room = (reach * (1e-6 + 2.4e-7 * flatness * (0.002 + 6e-7 * flatness)))[:, None]  # devices round that of boxes up
    assert (boxes[:, 0] >= (low - room)[number]).all() and (boxes[:, 1] <= (high + room)[number]).all()
    whole = cuts[number] == 0
    assert (boxes[whole, 0] <= low[number[whole]]).all() and (boxes[whole, 1] >= high[number[whole]]).all()
    weights = np.concatenate([rng.dirichlet((0.3, 0.3, 0.3), 60), np.eye(3)]).astype("f8")
    corner, edge1, edge2 = (primitives[f][:, None, :3].astype("f8") for f in ("corner", "edge1", "edge2"))
    points = corner + weights[:, 1:2] * edge1 + weights[:, 2:] * edge2
    held = np.zeros(points.shape[:2], bool)
    for part, row in zip(boxes.astype("f8"), number, strict=True):
        held[row] |= ((points[row] >= part[0]) & (points[row] <= part[1])).all(1)
    assert held.all()


def test_parts_of_a_long_triangle_are_as_small_as_they_can_be(device):
    """A diagonal in 64 parts: boxes with sides of a 64th, so that their areas together are a 64th of the whole's."""
    corners = np.array([[0, 0, 0], [1e-4, 0, 0], [1, 1, 1]])
    primitives = numbered(triangles(corners, np.array([[0, 1, 2]])))
    parts = cut(device, primitives, np.array([63]))
    assert parts.count == 64
    low, high = parts.boxes.read()[:, :3], parts.boxes.read()[:, 4:7]
    assert np.allclose((high - low).sum(0), 1, rtol=0.02)
    assert np.allclose(high - low, 1 / 64, rtol=0.05)


@pytest.mark.parametrize("nodes", ["binary", "wide", "auto"])
@pytest.mark.parametrize("case", SHAPES)
def test_trees_of_parts_are_hit_as_brute_force_says(device, rng, case, nodes):
    primitives = numbered(SHAPES[case](rng))
    walks = Walks(device, primitives)
    rays = rays_at(rng, primitives)
    brute = walks.brute(rays)
    walks.tree = build.tree_of(device, primitives, "split", nodes)
    walks.in_order = walks.tree.primitives.read()[: walks.tree.count].view(PRIMITIVE).ravel()
    assert all(np.array_equal(a, b) for a, b in zip(walks.closest(rays), brute, strict=True))
    assert np.array_equal(walks.any(rays), brute[1] >= 0)
    if nodes == "binary":
        found = walks._hits("closest_quad", rays, Quads(walks.tree).nodes, walks.tree.primitives)
        assert all(np.array_equal(a, b) for a, b in zip(found, brute, strict=True))


@pytest.mark.parametrize("rays_class", ["primary", "scattered", "primary shadow", "scattered shadow"])
def test_every_selected_walk_finds_parts_as_it_finds_triangles(device, rng, rays_class):
    primitives = numbered(hair(2000))
    rays = rays_at(rng, primitives)
    brute_t, brute_number = Walks(device, primitives).brute(rays)
    tree = build.tree_of(device, primitives)
    shadow = rays_class.endswith("shadow")
    hits = device.buffer(len(rays) if shadow else (len(rays), 4), "u4" if shadow else "f4")
    traversal.Walk(tree, rays_class)(device.buffer(rays.shape).write(rays), hits, len(rays))
    if shadow:
        assert np.array_equal(hits.read() > 0, np.isfinite(brute_t))
        return
    row = hits.read()[:, 3].copy().view("i4")
    numbers = tree.primitives.read().view("i4")[:, 3]
    assert np.array_equal(np.where(row >= 0, numbers[row], -1), brute_number)
    assert np.array_equal(np.where(row >= 0, hits.read()[:, 0], np.inf), brute_t)


def test_parts_are_taken_where_they_save_much(device, rng):
    """Hair costs less than half; a sponge, a soup and a floor stay whole."""
    primitives = numbered(hair(3000))
    whole, best = build.tree_of(device, primitives, "host", "binary"), build.tree_of(device, primitives, nodes="binary")
    assert best.cost < 0.45 * whole.cost and 2 * len(primitives) < best.count <= 16 * len(primitives)
    assert set(best.primitives.read().view("i4")[:, 3]) == set(range(len(primitives)))
    for other in (procedural.menger(2), soup(rng, 2000), CASES["coplanar quads"](rng)):
        assert build.tree_of(device, numbered(other), nodes="binary").count == len(other)


def test_a_few_long_triangles_among_many_are_cut_alone(rng):
    primitives = numbered(np.concatenate([soup(rng, 20000, 0.005), hair(200)]))
    cuts = presplit.budget_of(primitives, 25.0)
    assert 2 * 200 < cuts.sum() <= len(primitives) / 4 and cuts[20000:].min() > 0
    assert cuts[:20000].sum() < 0.1 * cuts.sum()


def test_cuts_keep_to_their_budget_and_go_where_most_is_wasted(rng):
    primitives = numbered(np.concatenate([soup(rng, 500), hair(20), CASES["mixed"](rng)]))
    waste = waste_of(primitives)
    before = np.zeros(len(primitives))
    for share in (0, 0.1, 1, 7, 300):
        cuts = waste.cuts(share)
        assert 0.8 * share * len(primitives) - 10 <= cuts.sum() <= share * len(primitives)
        order = np.argsort(waste.boxes - waste.least)
        assert (np.diff(cuts[order].astype(int)) >= 0).all() and (cuts >= before).all()
        before = cuts
    assert not waste.cuts(7)[primitives["edge2"][:, 3] > 0].any()
    assert np.array_equal(waste_of(primitives[::-1]).cuts(3), waste.cuts(3)[::-1])


def test_what_parts_leave_is_foretold(device):
    primitives = numbered(hair(1000))
    waste = waste_of(primitives)
    for share in (1, 7):
        parts = cut(device, primitives, waste.cuts(share))
        x, y, z = (parts.boxes.read()[:, 4:7] - parts.boxes.read()[:, :3]).astype("f8").T
        assert np.isclose((x * y + y * z + z * x).sum(), waste.left(waste.cuts(share)), rtol=0.2)


@pytest.mark.parametrize("share", [-1, float("nan"), 2.0**31, float("inf")])
def test_budgets_that_are_none_are_refused(rng, share):
    with pytest.raises(AssertionError, match="no budget"):
        waste_of(numbered(soup(rng, 3))).cuts(share)


def test_points_waste_nothing_and_no_primitives_need_no_cuts(device):
    points = numbered(triangles(np.zeros((1, 3)), np.zeros((5, 3), int)))
    assert not waste_of(points).cuts(7).any() and not len(waste_of(points[:0]).cuts(7))
    assert presplit.budget_of(points, 1.0) is None and presplit.budget_of(points, 0.0) is None
    assert build.tree_of(device, points, "split", "binary").count == 5
    with pytest.raises(AssertionError, match="whole numbers"):
        Parts(device, device.buffer((5, 12)), np.zeros(5), np.zeros(3, "f4"), np.ones(3, "f4"))


def test_instances_of_shapes_in_parts_are_hit_as_whole_ones_are(device, rng, monkeypatch):
    shapes = [numbered(hair(800)), numbered(soup(rng, 100, 0.3))]
    turns = np.linalg.qr(rng.normal(size=(9, 3, 3)))[0]
    matrices = np.concatenate([turns, rng.uniform(-3, 3, (9, 3, 1))], 2).astype("f4")
    rays = rays_at(rng, np.concatenate(shapes), 3000)
    shape_of, found = rng.permutation(9) % 2, []
    for promises in (presplit.PROMISES, 1e9):
        monkeypatch.setattr(presplit, "PROMISES", promises)
        placed = instances.Instances(device, shapes, shape_of)
        placed.place(matrices)
        hits, which = device.buffer((3000, 4)), device.buffer(3000, "i4")
        placed.closest(device.buffer(rays.shape).write(rays), hits, which, 3000, spheres=False)
        row = hits.read()[:, 3].copy().view("i4")
        number = np.where(row >= 0, placed.ordered["corner"].view("i4")[row, 3], -1)
        found.append((len(placed.ordered), which.read(), hits.read()[:, 0], number))
    (parts, *first), (whole, *second) = found
    assert parts > whole == 900 and (first[0] >= 0).mean() > 0.05
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("share", [0, 1 / 32, 1 / 4, 1, 3, 7, 15])
def test_no_more_parts_are_made_than_a_device_has_room_for(device, share):
    primitives = numbered(hair(1000))
    most = int((1 + share) * len(primitives))
    cuts = presplit.budget_of(primitives, 60.0, most)
    assert (0 if cuts is None else cuts.sum()) <= share * len(primitives)
    assert cuts is None or share >= 1 / 4
    assert 1000 < presplit.most_parts(device.properties) <= device.properties.memory_bytes / 4096
