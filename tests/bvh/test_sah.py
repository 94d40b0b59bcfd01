"""Trees split by costs on the device, against the host's, and the choice among the trees and walks there are."""

import numpy as np
import pytest

from renderer.bvh import build, device_sah, traversal
from renderer.bvh.reinsertion import Improved
from renderer.formats.mesh import numbered
from renderer.raytracing import procedural
from tests.bvh.test_traversal import CASES, Walks, rays_at, soup
from tests.fps.rays import hair


def on_device(device, primitives):
    return device.buffer((len(primitives), 12)).write(primitives.view("f4").reshape(-1, 12))


@pytest.mark.parametrize("count", [2, 3, 15, 16, 17, 18, 33, 300, 5000])
def test_any_number_of_primitives_is_split_into_a_whole_tree(device, rng, count):
    primitives = numbered(soup(rng, count, 0.1))
    nodes, ordered = device_sah.split(device, on_device(device, primitives), count)
    codes = nodes.read().view("i4")[:, 12:14].ravel()
    assert np.array_equal(np.sort(codes[codes >= 0]), np.arange(1, count - 1))
    assert np.array_equal(np.sort(~codes[codes < 0]), np.arange(0, 8 * count, 8))
    assert np.array_equal(np.sort(ordered.read().view("i4")[:, 3]), np.arange(count))


@pytest.mark.parametrize("shape", ["soup", "menger", "hair", "exponential", "duplicates"])
def test_trees_split_on_the_device_cost_what_the_hosts_do(device, rng, shape):
    primitives = numbered(
        {
            "soup": lambda: soup(rng, 4000, 0.1),
            "menger": lambda: procedural.menger(2),
            "hair": lambda: hair(2000),
            "exponential": lambda: CASES["exponential"](rng),
            "duplicates": lambda: np.repeat(soup(rng, 20, 0.5), 100),
        }[shape]()
    )
    host = build.build(*build.boxes_of(primitives))
    tree = build.tree_of(device, primitives, "sah", "binary")
    assert isinstance(tree, Improved) and tree.cost < 1.05 * host.cost


def test_the_same_primitives_give_the_same_tree(device, rng):
    primitives = on_device(device, numbered(soup(rng, 3000, 0.1)))
    first, second = (device_sah.split(device, primitives, 3000) for _ in range(2))
    assert np.array_equal(first[1].read(), second[1].read())
    assert np.array_equal(first[0].read().view("i4")[:, 12:14], second[0].read().view("i4")[:, 12:14])


def test_the_cheapest_of_the_trees_is_taken(device, rng):
    """Hair gains by moved subtrees, a sponge does not; neither choice changes a hit."""
    for primitives, least in ((numbered(hair(3000)), 0.98), (numbered(procedural.menger(2)), 1.001)):
        plain, best = (build.tree_of(device, primitives, builder, "binary") for builder in ("sah", "improved"))
        assert best.cost <= least * plain.cost
        walks = Walks(device, primitives)
        walks.tree, walks.in_order = best, best.primitives.read().view(primitives.dtype).ravel()
        rays = rays_at(rng, primitives)
        assert all(np.array_equal(a, b) for a, b in zip(walks.closest(rays), walks.brute(rays), strict=True))


def test_trees_that_no_stack_is_deep_enough_for_are_not_taken(device, rng, monkeypatch):
    monkeypatch.setattr(build.bvh_improve, "DEEPEST", 3)
    for builder in ("sah", "improved"):
        tree = build.tree_of(device, numbered(soup(rng, 300)), builder, "binary")
        assert isinstance(tree, build.Built)


def test_kinds_of_trees_are_told_by_costs_and_by_nodes_met(device, monkeypatch):
    monkeypatch.setattr(traversal, "SMALL", 0)
    """Rays in hair meet what its cost says; in a sponge they are stopped long before."""
    trees = [build.tree_of(device, numbered(p), "host", "binary") for p in (hair(3000), procedural.menger(3))]
    assert traversal.kind_of(trees[0]) == "tangled"
    assert traversal.steps_of(trees[1]) < traversal.STOPPED * trees[1].cost
    trees[1].cost = 4 * traversal.COSTLY
    assert traversal.kind_of(trees[1]) == "stopped"
