"""The boxes of a BVH by level, for the traversal views of raytracing/traversal_cost.py.

bvh_levels() reads the nodes back from the device. shaders/bvh/traverse_bvh2.h and traverse_bvh8.h tell their layouts.
"""

from typing import NamedTuple

import numpy as np

from renderer.bvh.layouts import LINE, MAX_LEVELS, Bvh
from renderer.bvh.primitives import half_area

LEAF_BIT = 0x80000000


class Level(NamedTuple):
    """The boxes of the nodes and leaves at one depth: corners (n, 2, 3), and a mask (n,) bool of the leaves."""

    boxes: np.ndarray
    is_leaf: np.ndarray

    @property
    def areas(self) -> np.ndarray:
        """The surface areas (n,) of the boxes."""
        return 2 * half_area((self.boxes[:, 1].astype("f8") - self.boxes[:, 0]).T)


def bvh_levels(bvh: Bvh) -> list[Level]:
    """Returns the levels of a BVH2 or BVH8; level 0 is the root's box. [] for a BVH without primitives.

    If nodes are damaged, the result ends before the first level that cannot belong to a tree.
    """
    if not bvh.count:
        return []
    lines = bvh.nodes.read().reshape(-1, LINE)
    children, lines_per_node = (_children_bvh8, 4) if bvh.layout == "bvh8" else (_children_bvh2, 1)
    levels: list[Level] = []
    # A tree has each node once: damaged nodes that form a cycle exceed the number of lines in the end.
    nodes, unseen = np.zeros(1, "i8"), len(lines)
    while 0 < nodes.size <= unseen and len(levels) < MAX_LEVELS and nodes.max() + lines_per_node <= len(lines):
        unseen -= nodes.size
        boxes, refs, is_leaf = children(lines, nodes)
        is_used = (boxes[:, 1] >= boxes[:, 0]).all(1)
        boxes, refs, is_leaf = boxes[is_used], refs[is_used], is_leaf[is_used]
        if not levels and len(boxes):
            root = np.stack([boxes[:, 0].min(0), boxes[:, 1].max(0)])
            levels.append(Level(root[None], np.zeros(1, bool)))
        if len(boxes):
            levels.append(Level(boxes, is_leaf))
        nodes = refs[~is_leaf]
    return levels


def _children_bvh2(lines: np.ndarray, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns boxes (2 n, 2, 3), references (2 n,) and leaf mask (2 n,) of the children of `nodes` (n,)."""
    rows = lines[nodes]
    center, half = rows[:, [0, 1, 2, 8, 9, 10]].reshape(-1, 3), rows[:, [4, 5, 6, 12, 13, 14]].reshape(-1, 3)
    refs = np.ascontiguousarray(rows[:, [3, 7]]).view("i4").ravel().astype("i8")
    return np.stack([center - half, center + half], 1), refs, refs < 0


def _children_bvh8(lines: np.ndarray, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Boxes (8 n, 2, 3), first lines (8 n,) and leaf mask (8 n,) of the children of `nodes` (n,), four lines each."""
    rows = lines[nodes[:, None] + np.arange(4)].reshape(-1, 4 * LINE)
    planes = rows[:, :48].reshape(-1, 3, 2, 8)  # axis, min and max, child
    refs = np.ascontiguousarray(rows[:, 48:56]).view("u4").ravel()
    boxes = planes.transpose(0, 3, 2, 1).reshape(-1, 2, 3)
    return boxes, (refs & np.uint32(LEAF_BIT - 1)).astype("i8"), refs >= LEAF_BIT
