"""Moves of subtrees: what they save against trying all of them, and what a tree keeps through many."""

import numpy as np
import pytest

from renderer.bvh import build
from renderer.bvh.reinsertion import Reinsertion
from renderer.formats.mesh import PRIMITIVE, numbered
from tests.bvh.test_traversal import CASES, improved_of, soup

NOTHING = 2**32 - 1


def started(device, primitives):
    tree = build.build(*build.boxes_of(primitives), 1)
    nodes = device.buffer((len(tree.nodes), 16)).write(tree.nodes.view("f4").reshape(-1, 16))
    return Reinsertion(device, nodes, len(primitives))


def children_of(nodes):
    """For every node its two codes, and for every leaf code its box (6,)."""
    codes = nodes.view("i4")[:, 12:14].astype(int)
    boxes = {}
    for node, pair in enumerate(codes):
        for side, code in enumerate(pair):
            row = nodes[node].astype("f8")
            xy, z = row[4 * side : 4 * side + 4], row[8 + 2 * side : 10 + 2 * side]
            boxes[code] = np.array([xy[0], xy[2], z[0], xy[1], xy[3], z[1]])
    return codes.tolist(), {code: box for code, box in boxes.items() if code < 0}


def total_area(codes, boxes, root=0):
    """Half surfaces of all inner nodes' boxes together; the boxes are made anew from the leaves."""
    total = 0.0

    def box(code):
        nonlocal total
        if code < 0:
            return boxes[code]
        a, b = (box(child) for child in codes[code])
        both = np.concatenate([np.minimum(a[:3], b[:3]), np.maximum(a[3:], b[3:])])
        x, y, z = both[3:] - both[:3]
        total += x * y + y * z + z * x
        return both

    box(root)
    return total


def below(codes, code):
    return {code} if code < 0 else {code}.union(*(below(codes, child) for child in codes[code]))


def moved(codes, slot, target):
    """Codes after the content of `slot` and its node were put in at `target`, or None where that is no move."""
    out = [list(pair) for pair in codes]
    node, sibling = slot >> 1, codes[slot >> 1][1 - (slot & 1)]
    up = {child: (n, side) for n, pair in enumerate(codes) for side, child in enumerate(pair)}
    there = codes[target >> 1][target & 1]
    if node == 0 or target >> 1 == node or there == node or (target >> 1) in below(codes, codes[node][slot & 1]):
        return None
    out[up[node][0]][up[node][1]] = sibling
    out[node][1 - (slot & 1)] = there
    out[target >> 1][target & 1] = node
    return out


@pytest.mark.parametrize("count", [3, 4, 9, 14])
def test_searches_find_the_best_of_all_places(device, rng, count):
    primitives = numbered(soup(rng, count, 0.6))
    work = started(device, primitives)
    codes, boxes = children_of(work.nodes.read())
    work.find()
    gains, targets = work.gains.read(), work.moves.read()[:, 0]
    before = total_area(codes, boxes)
    for slot in range(work.slots):
        options = [moved(codes, slot, target) for target in range(work.slots)]
        best = max([before - total_area(option, boxes) for option in options if option], default=0.0)
        if targets[slot] == NOTHING:
            assert best <= 1e-3 * before, slot
        else:
            made = moved(codes, slot, int(targets[slot]))
            assert np.isclose(before - total_area(made, boxes), gains[slot], rtol=1e-3, atol=1e-4 * before)
            assert gains[slot] >= best - 1e-3 * before, slot


@pytest.mark.parametrize("case", ["soup", "slivers", "duplicates", "exponential", "mixed"])
def test_every_round_keeps_the_tree_and_makes_it_cheaper(device, rng, case):
    primitives = numbered(CASES[case](rng))
    work = started(device, primitives)
    before = total_area(*children_of(work.nodes.read()))
    fell = False
    for _ in range(4):
        work.round()
        codes, boxes = children_of(work.nodes.read())
        assert below(codes, 0) == set(range(work.inner)) | {~(8 * i) for i in range(len(primitives))}
        after = total_area(codes, boxes)
        assert after <= before * (1 + 1e-5)
        fell |= after < before * (1 - 1e-5)
        before = after
    assert fell or case == "duplicates"


def test_improved_trees_cost_less_than_before(device, rng):
    """Also than the host's own, and their leaves hold at most three primitives in boxes that enclose them."""
    primitives = numbered(soup(rng, 3000, 0.1))
    low, high = build.boxes_of(primitives)
    host = build.build(low, high)
    few, many = (improved_of(device, primitives, rounds) for rounds in (0, 8))
    assert many.cost < few.cost and many.cost < host.cost
    words, rows = many.nodes.read(), many.primitives.read().view(PRIMITIVE).ravel()
    low, high = build.boxes_of(rows)
    seen, codes = np.zeros(len(rows), int), words.view("i4")[:, [3, 7]]
    assert np.array_equal(np.sort(codes[codes > 0]), np.arange(1, len(words)))
    for node, side in np.argwhere(codes < 0):
        first, count = ~codes[node, side] >> 3, (~codes[node, side] & 7) + 1
        assert count <= build.LARGEST_LEAF
        centre, half = words[node, 8 * side : 8 * side + 3], words[node, 8 * side + 4 : 8 * side + 7]
        assert (low[first : first + count] >= centre.astype("f8") - half).all()
        assert (high[first : first + count] <= centre.astype("f8") + half).all()
        seen[first : first + count] += 1
    assert (seen == 1).all()
    assert np.array_equal(np.sort(rows["corner"].view("i4")[:, 3]), np.arange(len(rows)))
