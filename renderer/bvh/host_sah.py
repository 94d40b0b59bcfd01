"""Binned SAH on the host (I. Wald 2007): splits all ranges of a level at once, with NumPy arrays.

build.py uses it for small scenes, instances.py for the BLASes; both refit the BVH of an animation's last frame instead
where that is possible. The input is boxes; the output is nodes, and an order of the primitives, to whose positions the
leaves refer. A primitive (PRIMITIVE of primitives.py) is a triangle, with vertex v0, edge1, edge2 and radius 0, or a
sphere, with center v0 and edges 0; the radius is the fourth number of edge2.
"""

import numpy as np

from renderer.bvh.primitives import half_area
from renderer.records import dataclass

# An inner node as builders write it, 64 bytes: the minimum and maximum of x and of y, for each child's box; the minimum
# and maximum of z, for both boxes; the child references, ~(8 * first + count - 1) for a leaf, which has at most 8
# primitives. bvh/center_nodes.cu converts it to the node that is traversed (bvh/traverse_bvh2.h), which has the same
# references.
NODE = np.dtype([("first_xy", "f4", (4,)), ("second_xy", "f4", (4,)), ("z", "f4", (4,)),
                 ("child", "i4", (2,)), ("spare", "i4", (2,))])  # fmt: skip
BINS = 16
MAX_LEAF = 3  # most primitives of a leaf
# From this level on ranges are halved, so that the depth is at most 40 + log2(primitives). With fewer than 2^24
# primitives it is less than 64, the STACK_SIZE of bvh/traverse_bvh2.h.
FORCE_MEDIAN = 40
# Largest SAH cost of a refitted BVH, relative to its cost when it was built; beyond it the frame gets a new BVH. Costs
# 6, 12 and 21 % above a new BVH's slow pictures by 0, 2 and 16 % on a CPU, by 2, 6 and 11 % on an H200.
MAX_GROWTH = 1.05


@dataclass(frozen=True)
class HostBvh:
    """Nodes (n,) NODE in depth-first order; order (m,) of the primitives in the leaves; depth in levels; SAH cost.

    `built_cost` is the cost at the frame for which the tree was built, 0 for the same as `cost`, which refit() changes.
    """

    nodes: np.ndarray
    order: np.ndarray
    depth: int
    cost: float = 0.0
    built_cost: float = 0.0

    def refit(self, low: np.ndarray, high: np.ndarray) -> "HostBvh":
        """Returns the same tree around moved primitives, whose boxes have the corners low and high (m, 3), m >= 2.

        69,451 triangles take 0.022 CPU seconds, a build 0.45.
        """
        refs, nodes, signs = self.nodes["child"], self.nodes.copy(), np.repeat(np.array([-1, 1], "f4"), 3)
        extents = np.empty((*refs.shape, 6), "f4")  # negated min and max corners, so that a union is one maximum
        # Leaves: the union of their primitives, which are consecutive in `order`.
        node, side = np.nonzero(refs < 0)
        starts = ~refs[node, side] >> 3  # of the leaves' primitives in `order` (NODE)
        by_start = np.argsort(starts)
        in_order = np.concatenate([-low[self.order], high[self.order]], 1)
        extents[node[by_start], side[by_start]] = np.maximum.reduceat(in_order, starts[by_start])
        # Inner children: the union of their two children, from the deepest level up.
        levels = [np.zeros(1, "i8")]
        while len(levels[-1]):
            children = refs[levels[-1]]
            levels.append(children[children >= 0])
        for level in reversed(levels):
            row, side = np.nonzero(refs[level] >= 0)
            extents[level[row], side] = extents[refs[level[row], side]].max(1)
        boxes = extents * signs
        _write_boxes(nodes, boxes)
        # A ray visits an inner child as one node; of a leaf it tests all primitives, whose number is in the reference.
        areas = _half_area(boxes.reshape(-1, 6)) * np.where(refs < 0, (~refs & 7) + 1, 1).ravel()
        cost = 1 + float(areas.sum() / max(_half_area(extents[:1].max(1) * signs)[0], 1e-30))
        return HostBvh(nodes, self.order, self.depth, cost, self.built_cost or self.cost or cost)


def primitive_boxes(primitives: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the AABBs of primitives (m,): min and max corners (m, 3) float32, padded for the rounding error of hits.

    The padding is 2^-22 of the coordinates. Slivers get more, because nearly parallel edges multiply the rounding error
    of t. shaders/bvh/aabb.h computes the same boxes on the device.
    """
    corner, radius = primitives["v0"][:, :3], primitives["edge2"][:, 3:]
    edge1, edge2 = primitives["edge1"][:, :3], primitives["edge2"][:, :3]
    low = np.minimum(np.minimum(corner, corner + edge1), corner + edge2) - radius
    high = np.maximum(np.maximum(corner, corner + edge1), corner + edge2) + radius
    extent = np.maximum(np.abs(low), np.abs(high))
    pad = extent * np.float32(2**-22) + np.float32(1e-30)
    a, b = edge1.astype("f8"), edge2.astype("f8")
    # size2 is |a|^2 |b|^2, area2 is |a x b|^2; their ratio is 1 / sin^2 of the angle between the edges.
    size2 = np.einsum("ij,ij->i", a, a) * np.einsum("ij,ij->i", b, b)
    area2 = size2 - np.einsum("ij,ij->i", a, b) ** 2
    sliver_error = np.sqrt(np.divide(size2, area2, out=np.ones(len(a)), where=area2 > size2 * 2**-40))
    pad += ((sliver_error - 1) * 2**-22 * extent.max(1)).astype("f4")[:, None]
    return low - pad, high + pad


def build_host_sah(low: np.ndarray, high: np.ndarray, max_leaf: int = MAX_LEAF) -> HostBvh:
    """Builds a BVH over boxes with min and max corners (m, 3); leaves hold at most `max_leaf` (1 to 8) primitives."""
    return _Builder(np.asarray(low, "f4"), np.asarray(high, "f4"), max_leaf).build()


def refitted(last: HostBvh | None, low: np.ndarray, high: np.ndarray) -> HostBvh | None:
    """Refits an earlier frame's BVH to boxes (m, 3); None if no BVH has this many boxes or it has become too slow.

    Hits do not depend on the tree, so a frame has the same bits whichever frame was drawn before it.
    """
    if not last or not len(last.order) == len(low) > 1:
        return None
    bvh = last.refit(low, high)
    return bvh if bvh.cost <= MAX_GROWTH * bvh.built_cost else None


class _Builder:
    """One build. A node is a range of `order`, a permutation of the primitives; all ranges of a level split at once.

    Ranges are given by arrays (k,) of their starts and sizes.
    """

    def __init__(self, low: np.ndarray, high: np.ndarray, max_leaf: int):
        self.low, self.high, self.max_leaf = low, high, max_leaf
        self.centroid = (low + high) * np.float32(0.5)
        self.order = np.arange(len(low))
        self.child_refs: list[np.ndarray] = []  # by level: (k, 2); an inner child by its index in the next level

    def build(self) -> HostBvh:
        """Splits all ranges of a level at once, from the root down, until every range is a leaf."""
        count = len(self.low)
        if count <= 1:
            return self._tiny(count)
        start, size, level = np.array([0]), np.array([count]), 0
        while len(start):
            left_count = self._split(start, size, level)
            start = np.stack([start, start + left_count], 1).ravel()
            size = np.stack([left_count, size - left_count], 1).ravel()
            leaf = self._leaves(start, size)
            inner = np.cumsum(~leaf) - 1
            self.child_refs.append(np.where(leaf, ~(start * 8 + size - 1), inner).reshape(-1, 2))
            start, size = start[~leaf], size[~leaf]
            level += 1
        return HostBvh(self._depth_first(), self.order, level).refit(self.low, self.high)

    def _tiny(self, count: int) -> HostBvh:
        """The BVH of 0 or 1 primitives: one node, whose boxes without a primitive are empty; its leaves are unused."""
        nodes = np.zeros(1, NODE)
        boxes = np.full((2, 6), -np.inf, "f4")
        boxes[:, :3] = np.inf
        if count:
            boxes[0] = np.concatenate([self.low[0], self.high[0]])
        _write_boxes(nodes, boxes[None])
        nodes["child"] = ~0
        return HostBvh(nodes, self.order, 1, 1.0 + count)

    def _rows(self, start: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns the primitives (n,) of all ranges, the index (k,) of each range's first, and their positions (n,)."""
        offsets = np.cumsum(size) - size
        positions = np.repeat(start - offsets, size) + np.arange(int(size.sum()))
        return self.order[positions], offsets, positions

    def _leaves(self, start: np.ndarray, size: np.ndarray) -> np.ndarray:
        """Returns the mask (k,) of ranges that become leaves: up to two primitives, or max_leaf if a split costs more.

        A split costs at least 1 for the node, plus the areas of the primitives' boxes over the node's.
        """
        is_leaf: np.ndarray = size <= min(self.max_leaf, 2)
        unsure = np.flatnonzero((size > 2) & (size <= self.max_leaf))
        if len(unsure):
            rows, offsets, _ = self._rows(start[unsure], size[unsure])
            boxes = np.concatenate([self.low[rows], self.high[rows]], 1)
            low, high = np.minimum.reduceat(boxes[:, :3], offsets), np.maximum.reduceat(boxes[:, 3:], offsets)
            area = np.maximum(_half_area(np.concatenate([low, high], 1)), 1e-30)
            is_leaf[unsure] = 1 + np.add.reduceat(_half_area(boxes), offsets) / area >= size[unsure]
        return is_leaf

    def _split(self, start: np.ndarray, size: np.ndarray, level: int) -> np.ndarray:
        """Partitions every range at its best plane; returns the sizes of the left sides, 1 to size - 1.

        Arrays over all primitives of the level: `rows` are their indices, `owner` the number of their range, `bins` (m,
        3) their bins on each axis, `left` True on the left side. A range without a plane is halved in its order. The
        partition keeps the order on both sides.
        """
        if level >= FORCE_MEDIAN:
            return size // 2
        rows, offsets, positions = self._rows(start, size)
        owner = np.repeat(np.arange(len(start)), size)
        centroid = self.centroid[rows]
        low, high = np.minimum.reduceat(centroid, offsets), np.maximum.reduceat(centroid, offsets)
        # A little less than BINS, so that the highest centroid is in the last bin.
        scale = np.where(high > low, np.float32(BINS * (1 - 1e-6)) / np.maximum(high - low, 1e-30), np.float32(0))
        bins = np.clip(((centroid - low[owner]) * scale[owner]).astype("i4"), 0, BINS - 1)
        axis, plane = self._best_planes(rows, owner, bins, len(start))
        left = bins[np.arange(len(rows)), axis[owner]] <= plane[owner]
        left_count = np.add.reduceat(left.astype("i8"), offsets)
        halved = (left_count == 0) | (left_count == size)
        left_count = np.where(halved, size // 2, left_count)
        rank = np.arange(len(rows)) - offsets[owner]  # position of a primitive within its range
        left = np.where(halved[owner], rank < left_count[owner], left)
        lefts_before = np.cumsum(left) - left
        lefts_before -= lefts_before[offsets][owner]  # within the range
        index = offsets[owner] + np.where(left, lefts_before, left_count[owner] + rank - lefts_before)
        self.order[positions[index]] = rows
        return left_count

    def _best_planes(
        self, rows: np.ndarray, owner: np.ndarray, bins: np.ndarray, count: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns each range's axis (k,) and last bin left of its plane (k,) of least SAH cost."""
        best = np.full(count, np.inf)
        axis, plane = np.zeros(count, "i4"), np.zeros(count, "i4")
        for a in range(3):
            key = owner * BINS + bins[:, a]
            in_bin = np.bincount(key, minlength=count * BINS).reshape(count, BINS)
            low = np.full((3, count * BINS), np.inf, "f4")
            high = np.full((3, count * BINS), -np.inf, "f4")
            for k in range(3):
                np.minimum.at(low[k], key, self.low[rows, k])
                np.maximum.at(high[k], key, self.high[rows, k])
            lows, highs = low.reshape(3, count, BINS), high.reshape(3, count, BINS)
            area_left = _swept_area(lows, highs)[:, :-1]
            area_right = _swept_area(lows[..., ::-1], highs[..., ::-1])[:, ::-1][:, 1:]
            left = np.cumsum(in_bin, 1)[:, :-1]
            right = in_bin.sum(1, keepdims=True) - left
            cost = np.where((left > 0) & (right > 0), area_left * left + area_right * right, np.inf)
            best_bin = np.argmin(cost, 1)
            least = cost[np.arange(count), best_bin]
            better = least < best
            best, axis = np.where(better, least, best), np.where(better, a, axis)
            plane = np.where(better, best_bin, plane)
        return axis, plane

    def _depth_first(self) -> np.ndarray:
        """The nodes (n,) NODE, without boxes, in depth-first order: a node's left subtree follows it."""
        sizes: list[np.ndarray] = [np.zeros(0, "i8")]  # node counts of the subtrees, by level
        for refs in reversed(self.child_refs):
            sizes.append(1 + _sizes_below(refs, sizes[-1]).sum(1))
        sizes.reverse()
        nodes = np.zeros(int(sizes[0][0]), NODE)
        index = np.array([0])
        for refs, sizes_below in zip(self.child_refs, sizes[1:], strict=True):
            children = np.stack([index + 1, index + 1 + _sizes_below(refs[:, 0], sizes_below)], 1)
            nodes["child"][index] = np.where(refs >= 0, children, refs)
            index = children[refs >= 0]
        return nodes


def _sizes_below(refs: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The node counts of the subtrees of child references, 0 for leaves; `sizes` are the counts of the next level.

    The reference of a leaf is negative: the index -1 selects the appended 0.
    """
    return np.asarray(np.append(sizes, 0)[np.maximum(refs, -1)])


def _half_area(boxes: np.ndarray) -> np.ndarray:
    """Half the surface (k,) of boxes (k, 6)."""
    return half_area(np.maximum(boxes[:, 3:] - boxes[:, :3], 0).astype("f8").T)


def _swept_area(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Half the surface (k, bins) of the union of bins 0..i, from bin boxes (3, k, bins); 0 where all are empty."""
    low, high = np.minimum.accumulate(low, 2), np.maximum.accumulate(high, 2)
    with np.errstate(invalid="ignore"):
        return half_area(np.where(high >= low, high - low, 0).astype("f8"))


def _write_boxes(nodes: np.ndarray, boxes: np.ndarray) -> None:
    """Writes child boxes (n, 2, 6) into the nodes' fields."""
    for child, field in enumerate(("first_xy", "second_xy")):
        nodes[field] = boxes[:, child][:, [0, 3, 1, 4]]
    nodes["z"] = boxes[:, [0, 0, 1, 1], [2, 5, 2, 5]]
