"""The boxes of a BVH by level, read from its device, to be looked at. Layouts: shaders/bvh/traverse_bvh2.h, _bvh8.h."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from renderer.bvh.bvh8 import LINE
from renderer.gpu import Buffer

MAX_LEVELS = 64
LEAF_BIT = 0x80000000


class Level(NamedTuple):
    """The boxes of the nodes and leaves at one depth: corners (n, 2, 3), and which are leaves, (n,) bool."""

    boxes: np.ndarray
    is_leaf: np.ndarray

    @property
    def area(self) -> float:
        """The sum of the boxes' surface areas."""
        size = self.boxes[:, 1].astype("f8") - self.boxes[:, 0]
        return float(2 * (size[:, 0] * size[:, 1] + size[:, 1] * size[:, 2] + size[:, 2] * size[:, 0]).sum())


def levels_of(bvh: Any) -> list[Level]:
    """The levels of a layouts.Bvh from its root, whose box is level 0; [] for one without primitives."""
    if not bvh.count:
        return []
    return levels_of_nodes(bvh.nodes, bvh.layout == "bvh8")


def levels_of_nodes(nodes: Buffer, is_bvh8: bool = False) -> list[Level]:
    """The levels of a BVH whose nodes these are; those before the first that is none, where they are damaged."""
    lines = nodes.read().reshape(-1, LINE)
    children: Callable = _children_bvh8 if is_bvh8 else _children_bvh2
    levels: list[Level] = []
    here, left = np.zeros(1, "i8"), len(lines)  # nodes of a tree, each of which is seen once
    while 0 < here.size <= left and len(levels) < MAX_LEVELS and here.max() < len(lines):
        left -= here.size
        boxes, refs, is_leaf = children(lines, here)
        is_used = (boxes[:, 1] >= boxes[:, 0]).all(1)
        boxes, refs, is_leaf = boxes[is_used], refs[is_used], is_leaf[is_used]
        if not levels and len(boxes):
            root = np.stack([boxes[:, 0].min(0), boxes[:, 1].max(0)])
            levels.append(Level(root[None], np.zeros(1, bool)))
        if len(boxes):
            levels.append(Level(boxes, is_leaf))
        here = refs[~is_leaf]
    return levels


def _children_bvh2(lines: np.ndarray, here: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The boxes (2 n, 2, 3) of the children of nodes, their references, and which are leaves."""
    rows = lines[here]
    center, half = rows[:, [0, 1, 2, 8, 9, 10]].reshape(-1, 3), rows[:, [4, 5, 6, 12, 13, 14]].reshape(-1, 3)
    refs = np.ascontiguousarray(rows[:, [3, 7]]).view("i4").ravel().astype("i8")
    return np.stack([center - half, center + half], 1), refs, refs < 0


def _children_bvh8(lines: np.ndarray, here: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The boxes (8 n, 2, 3) of the children of nodes of four lines, their first lines, and which are leaves."""
    rows = lines[here[:, None] + np.arange(4)].reshape(-1, 4 * LINE)
    planes = rows[:, :48].reshape(-1, 3, 2, 8)  # axis, min and max, child
    refs = np.ascontiguousarray(rows[:, 48:56]).view("u4").ravel()
    boxes = planes.transpose(0, 3, 2, 1).reshape(-1, 2, 3)
    return boxes, (refs & np.uint32(LEAF_BIT - 1)).astype("i8"), refs >= LEAF_BIT
