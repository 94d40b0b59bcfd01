"""Binned SAH on the device, against the host's."""

import numpy as np
import pytest

from renderer.bvh import device_sah
from renderer.bvh.build import build_bvh
from renderer.bvh.host_sah import MAX_LEAF, build_host_sah, primitive_boxes, refitted
from renderer.bvh.hploc import HplocBvh2
from renderer.bvh.layouts import upload_bvh2, upload_primitives
from renderer.bvh.primitives import PRIMITIVE, with_primitive_ids
from renderer.raytracing import procedural
from tests.bvh.test_traversal import CASES, Queries, rays_at, soup
from tests.fps.rays import hair

SHAPES = {
    "soup": lambda rng: soup(rng, 4000, 0.1),
    "menger": lambda rng: procedural.menger(2),
    "hair": lambda rng: hair(2000),
    "exponential": CASES["exponential"],
    "duplicates": lambda rng: np.repeat(soup(rng, 20, 0.5), 100),
}


@pytest.mark.parametrize("count", [2, 3, 15, 16, 17, 18, 33, 300, 5000])
def test_any_number_of_primitives_is_split_into_a_complete_bvh(device, rng, count):
    primitives = upload_primitives(device, with_primitive_ids(soup(rng, count, 0.1)))
    nodes, ordered = device_sah.split_to_leaves(device, primitives, count)
    refs = nodes.read().view("i4")[:, 12:14].ravel()
    assert np.array_equal(np.sort(refs[refs >= 0]), np.arange(1, count - 1))
    assert np.array_equal(np.sort(~refs[refs < 0]), np.arange(0, 8 * count, 8))
    assert np.array_equal(np.sort(ordered.read().view("i4")[:, 3]), np.arange(count))


@pytest.mark.parametrize("shape", SHAPES)
def test_the_device_reaches_the_cost_of_the_host_and_the_hits_of_brute_force(device, rng, shape):
    primitives = with_primitive_ids(SHAPES[shape](rng))
    host = build_host_sah(*primitive_boxes(primitives))
    queries = Queries(device, primitives, "sah")
    assert not isinstance(queries.bvh, HplocBvh2) and queries.bvh.cost < 1.05 * host.cost
    rays = rays_at(rng, primitives)
    assert all(np.array_equal(a, b) for a, b in zip(queries.closest(rays), queries.brute(rays), strict=True))


def test_compacted_leaves_hold_up_to_three_primitives_in_boxes_that_enclose_them(device, rng):
    primitives = with_primitive_ids(soup(rng, 3000, 0.1))
    bvh = build_bvh(device, primitives, "sah", "bvh2")
    words, rows = bvh.nodes.read(), bvh.primitives.read().view(PRIMITIVE).ravel()
    low, high = primitive_boxes(rows)
    seen, refs = np.zeros(len(rows), int), words.view("i4")[:, [3, 7]]
    assert np.array_equal(np.sort(refs[refs > 0]), np.arange(1, len(words)))
    for node, side in np.argwhere(refs < 0):
        first, count = ~refs[node, side] >> 3, (~refs[node, side] & 7) + 1
        assert count <= MAX_LEAF
        center, half = words[node, 8 * side : 8 * side + 3], words[node, 8 * side + 4 : 8 * side + 7]
        assert (low[first : first + count] >= center.astype("f8") - half).all()
        assert (high[first : first + count] <= center.astype("f8") + half).all()
        seen[first : first + count] += 1
    assert (seen == 1).all()
    assert np.array_equal(np.sort(rows["v0"].view("i4")[:, 3]), np.arange(len(rows)))


def test_the_same_primitives_give_the_same_bvh(device, rng):
    primitives = upload_primitives(device, with_primitive_ids(soup(rng, 3000, 0.1)))
    first, second = (device_sah.split_to_leaves(device, primitives, 3000) for _ in range(2))
    assert np.array_equal(first[1].read(), second[1].read())
    assert np.array_equal(first[0].read().view("i4")[:, 12:14], second[0].read().view("i4")[:, 12:14])


def test_a_bvh_too_deep_for_the_traversal_stack_is_built_by_hploc(device, rng, monkeypatch):
    monkeypatch.setattr(device_sah, "MAX_DEPTH", 3)
    for builder in ("sah", "presplit"):
        assert isinstance(build_bvh(device, with_primitive_ids(soup(rng, 300)), builder, "bvh2"), HplocBvh2)


def moved(rng, primitives, by):
    """The primitives with each coordinate of a vertex or an edge moved by at most `by`."""
    out = primitives.copy()
    for field in ("v0", "edge1", "edge2"):
        out[field][:, :3] += rng.uniform(-by, by, (len(out), 3)).astype("f4")
    return out


@pytest.mark.parametrize("shape", ["soup", "two triangles", "mixed", "duplicates"])
def test_a_refitted_bvh_has_the_hits_of_brute_force(device, rng, shape):
    primitives = with_primitive_ids((SHAPES | CASES)[shape](rng))
    built = build_host_sah(*primitive_boxes(primitives))
    same = built.refit(*primitive_boxes(primitives))
    assert np.array_equal(same.nodes, built.nodes) and same.cost == pytest.approx(built.cost, rel=1e-6)
    later = moved(rng, primitives, 0.3)
    refitted = built.refit(*primitive_boxes(later))
    assert np.array_equal(refitted.nodes["child"], built.nodes["child"]) and refitted.built_cost == built.cost
    queries = Queries(device, later)
    queries.set_bvh(upload_bvh2(device, later, refitted))
    rays = rays_at(rng, later)
    assert all(np.array_equal(a, b) for a, b in zip(queries.closest(rays), queries.brute(rays), strict=True))


def test_only_a_tree_of_the_same_primitives_that_has_not_decayed_is_refitted(rng):
    primitives = soup(rng, 300, 0.05)
    last = build_host_sah(*primitive_boxes(primitives))

    def refit(later, last=last):
        return refitted(last, *primitive_boxes(later))

    assert refit(moved(rng, primitives, 1e-4)).order is last.order
    assert refit(rng.permutation(primitives)) is None and refit(primitives, None) is None
    for count in (0, 1, 299):
        assert refit(primitives[:count]) is None
        assert refit(primitives[:1], build_host_sah(*primitive_boxes(primitives[:count]))) is None


def test_the_device_builds_what_the_host_traverses_and_refits(device, rng):
    """build_for_host() returns nodes and an order as the host's builder does, here of 3,000 triangles."""
    primitives = with_primitive_ids(soup(rng, 3000, 0.1))
    boxes = primitive_boxes(primitives)
    built, host = device_sah.build_for_host(device, *boxes), build_host_sah(*boxes)
    assert built.cost < 1.05 * host.cost and np.array_equal(np.sort(built.order), np.arange(3000))
    same = built.refit(*boxes)
    assert np.array_equal(same.nodes, built.nodes) and same.built_cost == built.cost == pytest.approx(same.cost, 1e-5)
    queries = Queries(device, primitives)
    queries.set_bvh(upload_bvh2(device, primitives, built))
    rays = rays_at(rng, primitives)
    assert all(np.array_equal(a, b) for a, b in zip(queries.closest(rays), queries.brute(rays), strict=True))
