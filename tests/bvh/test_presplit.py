"""Presplit references: what they contain, what rays hit in BVHs over them, and when they are used."""

import numpy as np
import pytest

from renderer.bvh import instances, presplit
from renderer.bvh.build import build_bvh
from renderer.bvh.host_sah import primitive_boxes
from renderer.bvh.presplit import PrimRefs, split_potential
from renderer.bvh.primitives import PRIMITIVE, bounds, half_area, triangles, with_primitive_ids
from renderer.raytracing import procedural
from tests.bvh.ray_queries import RayQuery, closest_instanced
from tests.bvh.test_traversal import CASES, Queries, rays_at, soup
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


def sliver_error(primitives):
    """The product of both edges' lengths over the length of their cross product, (m,): large for slivers."""
    a, b = primitives["edge1"][:, :3].astype("f8"), primitives["edge2"][:, :3].astype("f8")
    size = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return size / np.maximum(np.linalg.norm(np.cross(a, b), axis=1), 1e-6 * size + 1e-300)


def split(device, primitives, splits):
    return PrimRefs(device, primitives, splits.astype("u4"))


@pytest.mark.parametrize("case", SHAPES | TINY)
def test_references_cover_their_triangle_and_stay_in_its_box(device, rng, case):
    primitives = with_primitive_ids((SHAPES | TINY)[case](rng))
    splits = rng.integers(0, 40, len(primitives)) * rng.integers(0, 2, len(primitives))
    refs = split(device, primitives, splits)
    prim_id = refs.primitives.read().view("i4")[:, 3]
    assert np.array_equal(refs.primitives.read(), primitives[prim_id].view("f4").reshape(-1, 12))
    made = np.bincount(prim_id, minlength=len(primitives))
    assert (made >= 1).all() and (made <= splits + 1).all() and (np.diff(prim_id) >= 0).all()
    boxes = refs.boxes.read().reshape(-1, 2, 4)[:, :, :3]
    low, high = primitive_boxes(primitives)
    reach, error = np.abs(np.concatenate([low, high], 1)).max(1), sliver_error(primitives)
    room = (reach * (1e-6 + 2.4e-7 * error * (0.002 + 6e-7 * error)))[:, None]  # devices round up the room of boxes
    assert (boxes[:, 0] >= (low - room)[prim_id]).all() and (boxes[:, 1] <= (high + room)[prim_id]).all()
    whole = splits[prim_id] == 0
    assert (boxes[whole, 0] <= low[prim_id[whole]]).all() and (boxes[whole, 1] >= high[prim_id[whole]]).all()
    weights = np.concatenate([rng.dirichlet((0.3, 0.3, 0.3), 60), np.eye(3)]).astype("f8")
    corner, edge1, edge2 = (primitives[f][:, None, :3].astype("f8") for f in ("v0", "edge1", "edge2"))
    points = corner + weights[:, 1:2] * edge1 + weights[:, 2:] * edge2
    held = np.zeros(points.shape[:2], bool)
    for box, row in zip(boxes.astype("f8"), prim_id, strict=True):
        held[row] |= ((points[row] >= box[0]) & (points[row] <= box[1])).all(1)
    assert held.all()


def test_references_to_a_long_triangle_are_as_small_as_they_can_be(device):
    """A diagonal in 64 references: boxes with sides of a 64th, whose summed areas are a 64th of the whole box's."""
    corners = np.array([[0, 0, 0], [1e-4, 0, 0], [1, 1, 1]])
    primitives = with_primitive_ids(triangles(corners, np.array([[0, 1, 2]])))
    refs = split(device, primitives, np.array([63]))
    assert refs.count == 64
    low, high = refs.boxes.read()[:, :3], refs.boxes.read()[:, 4:7]
    assert np.allclose((high - low).sum(0), 1, rtol=0.02)
    assert np.allclose(high - low, 1 / 64, rtol=0.05)


@pytest.mark.parametrize("layout", [pytest.param("bvh2", marks=pytest.mark.slow), "auto"])
@pytest.mark.parametrize("case", SHAPES)
def test_hits_in_presplit_bvhs_equal_brute_force(device, rng, case, layout):
    primitives = with_primitive_ids(SHAPES[case](rng))
    queries = Queries(device, primitives)
    rays = rays_at(rng, primitives)
    brute = queries.brute(rays)
    queries.set_bvh(build_bvh(device, primitives, "presplit", layout))
    if layout == "bvh2":
        assert all(np.array_equal(a, b) for a, b in zip(queries.closest(rays), brute, strict=True))
        assert np.array_equal(queries.any(rays), brute[1] >= 0)
    else:
        assert_query_equals(queries, rays, brute)


def test_hits_in_the_chosen_bvh_equal_brute_force(device, rng):
    primitives = with_primitive_ids(hair(2000))
    queries = Queries(device, primitives)
    rays = rays_at(rng, primitives)
    brute = queries.brute(rays)
    queries.set_bvh(build_bvh(device, primitives))
    assert queries.bvh.count > len(primitives)
    assert_query_equals(queries, rays, brute)


def assert_query_equals(queries, rays, brute):
    """The traversal of pictures finds the hits of brute force, (t, id)."""
    device, spheres = queries.device, bool(queries.constants["SPHERES"])
    on_device = device.buffer(rays.shape).write(rays)
    hits, occluded = device.buffer((len(rays), 4)), device.buffer(len(rays), "u4")
    RayQuery(queries.bvh, False, spheres)(on_device, hits, len(rays))
    RayQuery(queries.bvh, True, spheres)(on_device, occluded, len(rays))
    row = hits.read()[:, 3].copy().view("i4")
    ids = queries.in_order["v0"].view("i4")[:, 3]
    assert np.array_equal(np.where(row >= 0, ids[row], -1), brute[1])
    assert np.array_equal(np.where(row >= 0, hits.read()[:, 0], np.inf), brute[0])
    assert np.array_equal(occluded.read() > 0, np.isfinite(brute[0]))


def test_presplit_is_chosen_where_it_saves_much(device, rng):
    """Hair costs less than half; a sponge, a soup and a floor stay whole."""
    primitives = with_primitive_ids(hair(3000))
    whole = build_bvh(device, primitives, "host_sah", "bvh2")
    best = build_bvh(device, primitives, layout="bvh2")
    assert best.cost < 0.45 * whole.cost and 2 * len(primitives) < best.count <= 16 * len(primitives)
    assert set(best.primitives.read().view("i4")[:, 3]) == set(range(len(primitives)))
    for other in (procedural.menger(2), soup(rng, 2000), CASES["coplanar quads"](rng)):
        assert build_bvh(device, with_primitive_ids(other), layout="bvh2").count == len(other)


def test_only_the_few_long_triangles_among_many_are_split(rng):
    primitives = with_primitive_ids(np.concatenate([soup(rng, 20000, 0.005), hair(200)]))
    splits = presplit.choose_splits(primitives, 25.0)
    assert 2 * 200 < splits.sum() <= len(primitives) / 4 and splits[20000:].min() > 0
    assert splits[:20000].sum() < 0.1 * splits.sum()


def test_splits_must_save_a_part_of_the_cost(rng):
    """Chosen splits save what is wanted of a cost, whatever the cost; some save too little and are not chosen."""
    primitives = with_primitive_ids(np.concatenate([hair(400), soup(rng, 300)]))
    low, high = bounds(primitives)
    potential, chosen = split_potential(primitives), 0
    for cost in np.geomspace(0.1, 1000, 60):
        splits = presplit.choose_splits(primitives, cost)
        if splits is not None:
            wanted = max(presplit.MIN_PREDICTED_SAVING * cost, presplit.MIN_SAVED_VISITS) * half_area(high - low)
            assert potential.boxes.sum() - potential.area_after(splits) >= wanted, cost
            chosen += 1
    assert 0 < chosen < 60


def test_splits_keep_to_their_budget_and_go_where_boxes_are_emptiest(rng):
    primitives = with_primitive_ids(np.concatenate([soup(rng, 500), hair(20), CASES["mixed"](rng)]))
    potential = split_potential(primitives)
    before = np.zeros(len(primitives))
    for splits_per_prim in (0, 0.1, 1, 7, 300):
        splits = potential.splits(splits_per_prim)
        assert 0.8 * splits_per_prim * len(primitives) - 10 <= splits.sum() <= splits_per_prim * len(primitives)
        order = np.argsort(potential.boxes - potential.least)
        assert (np.diff(splits[order].astype(int)) >= 0).all() and (splits >= before).all()
        before = splits
    assert not potential.splits(7)[primitives["edge2"][:, 3] > 0].any()
    assert np.array_equal(split_potential(primitives[::-1]).splits(3), potential.splits(3)[::-1])


def test_the_area_of_references_is_predicted(device):
    primitives = with_primitive_ids(hair(1000))
    potential = split_potential(primitives)
    for splits_per_prim in (1, 7):
        refs = split(device, primitives, potential.splits(splits_per_prim))
        x, y, z = (refs.boxes.read()[:, 4:7] - refs.boxes.read()[:, :3]).astype("f8").T
        assert np.isclose(
            (x * y + y * z + z * x).sum(), potential.area_after(potential.splits(splits_per_prim)), rtol=0.2
        )


@pytest.mark.parametrize("splits_per_prim", [-1, float("nan"), 2.0**31, float("inf")])
def test_invalid_budgets_are_refused(rng, splits_per_prim):
    with pytest.raises(AssertionError, match="no budget"):
        split_potential(with_primitive_ids(soup(rng, 3))).splits(splits_per_prim)


def test_points_and_empty_scenes_are_not_split(device):
    points = with_primitive_ids(triangles(np.zeros((1, 3)), np.zeros((5, 3), int)))
    assert not split_potential(points).splits(7).any() and not len(split_potential(points[:0]).splits(7))
    assert presplit.choose_splits(points, 1.0) is None and presplit.choose_splits(points, 0.0) is None
    assert build_bvh(device, points, "presplit", "bvh2").count == 5
    with pytest.raises(AssertionError, match="whole numbers"):
        PrimRefs(device, points, np.zeros(5))


def test_instances_of_presplit_shapes_are_hit_as_whole_ones_are(device, rng, monkeypatch):
    shapes = [with_primitive_ids(hair(800)), with_primitive_ids(soup(rng, 100, 0.3))]
    turns = np.linalg.qr(rng.normal(size=(9, 3, 3)))[0]
    matrices = np.concatenate([turns, rng.uniform(-3, 3, (9, 3, 1))], 2).astype("f4")
    rays = rays_at(rng, np.concatenate(shapes), 3000)
    shape_of, found = rng.permutation(9) % 2, []
    for saving in (presplit.MIN_PREDICTED_SAVING, 1e9):
        monkeypatch.setattr(presplit, "MIN_PREDICTED_SAVING", saving)
        instanced = instances.Instances(device, shapes, shape_of)
        instanced.update(matrices)
        hits, which = device.buffer((3000, 4)), device.buffer(3000, "i4")
        closest_instanced(instanced, device.buffer(rays.shape).write(rays), hits, which, 3000, spheres=False)
        row = hits.read()[:, 3].copy().view("i4")
        number = np.where(row >= 0, instanced.ordered["v0"].view("i4")[row, 3], -1)
        found.append((len(instanced.ordered), which.read(), hits.read()[:, 0], number))
    (refs, *first), (whole, *second) = found
    assert refs > whole == 900 and (first[0] >= 0).mean() > 0.05
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("splits_per_prim", [0, 1 / 32, 1 / 4, 1, 3, 7, 15])
def test_no_more_references_are_made_than_a_device_has_memory_for(device, splits_per_prim):
    primitives = with_primitive_ids(hair(1000))
    most = int((1 + splits_per_prim) * len(primitives))
    splits = presplit.choose_splits(primitives, 60.0, most)
    assert (0 if splits is None else splits.sum()) <= splits_per_prim * len(primitives)
    assert splits is None or splits_per_prim >= 1 / 4
    assert 1000 < presplit.max_refs(device.properties) <= device.properties.memory_bytes / 4096


def test_two_triangles_under_a_mesh_are_not_split(device, rng):
    """Their references raise the SAH cost, that of the default picture of a bunny from 4.8 to 10.8."""
    ground = triangles([[-4, -1, -4], [4, -1, -4], [4, -1, 4], [-4, -1, 4]], [[0, 1, 2], [0, 2, 3]])
    scene = with_primitive_ids(np.concatenate([soup(rng, 1500, 0.02), ground]))
    whole = build_bvh(device, scene, "host_sah", "bvh2")
    splits = presplit.split_potential(scene).splits(1 / 4)
    assert splits[-2:].min() > 10
    split, _ = presplit.PrimRefs(device, scene, splits).build_for_host()
    assert split.cost > 1.2 * whole.cost
    assert not presplit.may_pay(scene, presplit.MAX_REFS) and presplit.choose_splits(scene, whole.cost) is None
    assert presplit.may_pay(hair(400), presplit.MAX_REFS) and not presplit.may_pay(hair(400), 400)
    assert not presplit.may_pay(scene[:1], presplit.MAX_REFS) and not presplit.may_pay(scene[:0], presplit.MAX_REFS)
