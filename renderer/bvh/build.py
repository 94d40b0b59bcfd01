"""Acceleration structures: a binary tree of 64-byte nodes by binned SAH (I. Wald 2007), built by levels with arrays.

Primitives are rows of mesh.PRIMITIVE, put into leaf order; shaders/bvh/traverse_bvh2.h walks the nodes.
"""

from dataclasses import dataclass

import numpy as np

from renderer.bvh import device_sah, presplit, reinsertion
from renderer.bvh.bvh2_quantized import narrowed
from renderer.bvh.bvh8 import Branches
from renderer.bvh.reinsertion import Improved

# One inner node as the builders write it, 64 bytes: x and y of the first and the second child's box, lowest and highest
# in turn, z of both, and their codes; see bvh/traverse_bvh2.h.
NODE = np.dtype([("first_xy", "f4", (4,)), ("second_xy", "f4", (4,)), ("z", "f4", (4,)),
                 ("child", "i4", (2,)), ("spare", "i4", (2,))])  # fmt: skip
BINS = 16
LARGEST_LEAF = 3  # as many as a leaf of an 8-wide node may hold
SORT_GROUP = 256
HOST_BUILDS = 150_000  # primitives from which "auto" builds on a processor's device: more would take a second
FEW = 1_000  # primitives from which it builds on a GPU, where moving subtrees makes trees 1 to 3 % faster
WORTH = 0.98  # of a tree's cost: a less regular one that is not cheaper than that is walked no faster
WIDE_LEVELS = 32  # of an 8-wide tree; the walk keeps a group of children for each
HALVES_FROM = 40  # the level from which ranges are halved, so that no tree is deeper than 40 + log2(primitives) < 64


@dataclass(frozen=True)
class Tree:
    """Nodes (n,) NODE, depth first; order (m,) of the primitives in its leaves; depth in levels; cost by the SAH."""

    nodes: np.ndarray
    order: np.ndarray
    depth: int
    cost: float


def boxes_of(primitives: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest corners (m, 3) float32 of the primitives' boxes, with room for the rounding of hits.

    An ulp; and where edges are nearly parallel, as many as hits' distances are wrong by.
    """
    corner, radius = primitives["corner"][:, :3], primitives["edge2"][:, 3:]
    edge1, edge2 = primitives["edge1"][:, :3], primitives["edge2"][:, :3]
    low = np.minimum(np.minimum(corner, corner + edge1), corner + edge2) - radius
    high = np.maximum(np.maximum(corner, corner + edge1), corner + edge2) + radius
    reach = np.maximum(np.abs(low), np.abs(high))
    pad = reach * np.float32(2**-22) + np.float32(1e-30)
    a, b = edge1.astype("f8"), edge2.astype("f8")
    size2 = np.einsum("ij,ij->i", a, a) * np.einsum("ij,ij->i", b, b)
    area2 = size2 - np.einsum("ij,ij->i", a, b) ** 2
    flatness = np.sqrt(np.divide(size2, area2, out=np.ones(len(a)), where=area2 > size2 * 2**-40))
    pad += ((flatness - 1) * 2**-22 * reach.max(1)).astype("f4")[:, None]
    return low - pad, high + pad


def build(low: np.ndarray, high: np.ndarray, largest_leaf: int = LARGEST_LEAF) -> Tree:
    """The tree over boxes low, high (m, 3)."""
    return _Builder(np.asarray(low, "f4"), np.asarray(high, "f4"), largest_leaf).tree()


class _Builder:
    """One build: the ranges of `order` that are still to split, level by level."""

    def __init__(self, low, high, largest_leaf: int):
        self.low, self.high, self.largest_leaf = low, high, largest_leaf
        self.centre = (low + high) * np.float32(0.5)
        self.order = np.arange(len(low))
        self.codes: list[np.ndarray] = []  # by level: (k, 2) children, an inner one as its number within the next level
        self.child_boxes: list[np.ndarray] = []  # by level: (k, 2, 6)
        self.cost = 0.0

    def tree(self) -> Tree:
        count = len(self.low)
        if count <= 1:
            return self._tiny(count)
        start, size = np.array([0]), np.array([count])
        boxes = np.concatenate([self.low.min(0), self.high.max(0)])[None]
        root_area, level = _area(boxes)[0], 0
        while len(start):
            cut = self._split(start, size, level)
            start = np.stack([start, start + cut], 1).ravel()
            size = np.stack([cut, size - cut], 1).ravel()
            boxes = self._boxes(start, size)
            leaf = self._leaves(start, size, boxes)
            inner = np.cumsum(~leaf) - 1
            self.codes.append(np.where(leaf, ~(start * 8 + size - 1), inner).reshape(-1, 2))
            self.child_boxes.append(boxes.reshape(-1, 2, 6))
            area = _area(boxes) / max(root_area, 1e-30)
            self.cost += float(np.sum(np.where(leaf, area * size, area)))
            start, size = start[~leaf], size[~leaf]
            level += 1
        return Tree(self._depth_first(), self.order, level, self.cost + 1)

    def _tiny(self, count: int) -> Tree:
        nodes = np.zeros(1, NODE)
        boxes = np.full((2, 6), -np.inf, "f4")
        boxes[:, :3] = np.inf
        if count:
            boxes[0] = np.concatenate([self.low[0], self.high[0]])
        _write_boxes(nodes, boxes[None])
        nodes["child"] = ~0
        return Tree(nodes, self.order, 1, 1.0 + count)

    def _boxes(self, start, size) -> np.ndarray:
        """Boxes (k, 6) of the ranges, which may leave gaps between them."""
        where, edges = _positions(start, size)
        rows = self.order[where]
        return np.concatenate(
            [np.minimum.reduceat(self.low[rows], edges), np.maximum.reduceat(self.high[rows], edges)], 1
        )

    def _leaves(self, start, size, boxes) -> np.ndarray:
        """Which ranges become leaves: one primitive, or few of them in so small a box that splitting costs more."""
        small = size <= self.largest_leaf
        return small & ((size <= 2) | (self._splitting_cost(start, size, boxes) >= size))

    def _splitting_cost(self, start, size, boxes) -> np.ndarray:
        """A lower bound of a small range's cost when split: 1 for the node and the summed areas of its primitives."""
        where, edges = _positions(start, size)
        rows = self.order[where]
        areas = _area(np.concatenate([self.low[rows], self.high[rows]], 1))
        return 1 + np.add.reduceat(areas, edges) / np.maximum(_area(boxes), 1e-30)

    def _split(self, start, size, level: int) -> np.ndarray:
        """Reorders every range about its best plane and returns the sizes of the left parts, 1 to size - 1."""
        where, edges = _positions(start, size)
        rows = self.order[where]
        owner = np.repeat(np.arange(len(start)), size)
        centre = self.centre[rows]
        least, most = np.minimum.reduceat(centre, edges), np.maximum.reduceat(centre, edges)
        if level >= HALVES_FROM:
            return size // 2
        scale = np.where(most > least, np.float32(BINS * (1 - 1e-6)) / np.maximum(most - least, 1e-30), np.float32(0))
        bins = np.clip(((centre - least[owner]) * scale[owner]).astype("i4"), 0, BINS - 1)
        axis, plane = self._best_planes(rows, owner, bins, len(start))
        left = bins[np.arange(len(rows)), axis[owner]] <= plane[owner]
        cut = np.add.reduceat(left.astype("i8"), edges)
        halved = (cut == 0) | (cut == size)
        cut = np.where(halved, size // 2, cut)
        rank = np.arange(len(rows)) - edges[owner]  # within its range
        left = np.where(halved[owner], rank < cut[owner], left)
        lefts = np.cumsum(left) - left  # how many lefts lie before
        lefts -= lefts[edges][owner]
        place = edges[owner] + np.where(left, lefts, cut[owner] + rank - lefts)
        self.order[where[place]] = rows
        return cut

    def _best_planes(self, rows, owner, bins, count: int):
        """For every range the axis (k,) and the last bin left of the plane (k,) with the least SAH cost."""
        best = np.full(count, np.inf)
        axis, plane = np.zeros(count, "i4"), np.zeros(count, "i4")
        for a in range(3):
            key = owner * BINS + bins[:, a]
            number_in = np.bincount(key, minlength=count * BINS).reshape(count, BINS)
            low = np.full((3, count * BINS), np.inf, "f4")
            high = np.full((3, count * BINS), -np.inf, "f4")
            for k in range(3):
                np.minimum.at(low[k], key, self.low[rows, k])
                np.maximum.at(high[k], key, self.high[rows, k])
            low, high = low.reshape(3, count, BINS), high.reshape(3, count, BINS)
            from_left = _swept_area(low, high)[:, :-1]
            from_right = _swept_area(low[..., ::-1], high[..., ::-1])[:, ::-1][:, 1:]
            many_left = np.cumsum(number_in, 1)[:, :-1]
            many_right = number_in.sum(1, keepdims=True) - many_left
            cost = np.where((many_left > 0) & (many_right > 0), from_left * many_left + from_right * many_right, np.inf)
            here = np.argmin(cost, 1)
            least = cost[np.arange(count), here]
            better = least < best
            best, axis, plane = np.where(better, least, best), np.where(better, a, axis), np.where(better, here, plane)
        return axis, plane

    def _depth_first(self) -> np.ndarray:
        """The levels as one array of nodes in which a node's left subtree follows it."""
        sizes: list[np.ndarray] = [np.zeros(0, "i8")]
        for codes in reversed(self.codes):
            below = np.append(sizes[-1], 0)
            sizes.append(1 + np.where(codes >= 0, below[np.where(codes >= 0, codes, -1)], 0).sum(1))
        sizes.reverse()
        nodes = np.zeros(int(sizes[0][0]), NODE)
        place = np.array([0])
        for level, (codes, boxes) in enumerate(zip(self.codes, self.child_boxes, strict=True)):
            below = np.append(sizes[level + 1], 0)
            is_inner = codes >= 0
            left_size = np.where(is_inner[:, 0], below[np.where(is_inner[:, 0], codes[:, 0], -1)], 0)
            children = np.stack([place + 1, place + 1 + left_size], 1)
            rows = np.zeros(len(place), NODE)
            rows["child"] = np.where(is_inner, children, codes)
            _write_boxes(rows, boxes)
            nodes[place] = rows
            place = children[is_inner]
        return nodes


def _positions(start, size) -> tuple[np.ndarray, np.ndarray]:
    """All positions of the ranges one after another (sum of size,), and where each range begins among them (k,)."""
    edges = np.cumsum(size) - size
    return np.repeat(start - edges, size) + np.arange(int(size.sum())), edges


def _area(boxes: np.ndarray) -> np.ndarray:
    """Half the surface (k,) of boxes (k, 6)."""
    x, y, z = np.maximum(boxes[:, 3:] - boxes[:, :3], 0).astype("f8").T
    return x * y + y * z + z * x


def _swept_area(low, high) -> np.ndarray:
    """Half the surface (k, bins) of the union of bins 0..i, from bin boxes (3, k, bins); 0 where all are empty."""
    low, high = np.minimum.accumulate(low, 2), np.maximum.accumulate(high, 2)
    with np.errstate(invalid="ignore"):
        x, y, z = np.where(high >= low, high - low, 0).astype("f8")
    return x * y + y * z + z * x


def _write_boxes(nodes: np.ndarray, boxes: np.ndarray) -> None:
    """Child boxes (n, 2, 6) into the nodes' fields."""
    for child, field in enumerate(("first_xy", "second_xy")):
        nodes[field] = boxes[:, child][:, [0, 3, 1, 4]]
    nodes["z"] = boxes[:, [0, 0, 1, 1], [2, 5, 2, 5]]


def tree_of(device, primitives: np.ndarray, builder: str = "auto", nodes: str = "auto"):
    """A tree over primitives (m,) on a device.

    It is built by "host" (binned SAH), "sah" (the same on the device), "device" (H-PLOC, for what moves), "improved"
    (the cheapest of several, all made on the device), "split" (that over triangles cut into parts) or "auto": by one of
    the others, and "split" where this makes it much cheaper. Nodes are "binary", "wide" or "auto": narrow or binary
    ones where there are warps, Branches where there are none. Leaves hold a triangle once for each of its parts.
    """
    tree = _picked(device, primitives) if builder == "auto" else _binary(device, primitives, builder)
    if nodes == "wide":
        wide = Wide(device, tree)
        return wide if wide.whole else tree
    if nodes == "binary":
        return tree
    return Branches(device, tree) if device.properties.scalar_threads else narrowed(tree)


def _binary(device, primitives: np.ndarray, builder: str):
    if builder == "host" or len(primitives) < 2:
        return Flat(device, primitives, build(*boxes_of(primitives)))
    if builder == "split":
        cuts = presplit.waste_of(primitives).cuts(1)
        return _cut(device, primitives, cuts) or _binary(device, primitives, "improved")
    return BUILDERS[builder](device, upload(device, primitives), len(primitives))


def _picked(device, primitives: np.ndarray):
    """The tree over still primitives that is walked the fastest and built before anybody waits for it."""
    few, many = (HOST_BUILDS, "sah") if device.properties.scalar_threads else (FEW, "improved")
    whole = _binary(device, primitives, "host" if len(primitives) < few else many)
    if len(primitives) < 2 or not whole.cost:
        return whole
    cuts = presplit.budget_of(primitives, whole.cost, presplit.most_parts(device.properties))
    parts = None if cuts is None else _cut(device, primitives, cuts)
    return parts if parts and parts.cost < presplit.WORTH * whole.cost else whole


def upload(device, primitives: np.ndarray):
    """Primitives (m,) PRIMITIVE as rows (m, 12) on a device."""
    return device.buffer((len(primitives), 12)).write(primitives.view("f4").reshape(-1, 12))


class Flat:
    """A binary tree on a device: nodes (n, 16), primitives (m, 12) in leaf order."""

    layout = "binary"
    entries = "closest", "occluded"

    def __init__(self, device, primitives: np.ndarray, tree: Tree):
        self.device, self.count, self.cost = device, len(primitives), tree.cost
        self.nodes = device.buffer((len(tree.nodes), 16)).write(tree.nodes.view("f4"))
        self.primitives = device.buffer((max(len(primitives), 1), 12))
        if len(primitives):
            self.primitives.write(primitives[tree.order].view("f4"))
        centre = device.kernel("bvh/build_hploc.cu", "centre_nodes", group_size=SORT_GROUP, STRICT=1)
        centre(len(tree.nodes), self.nodes, len(tree.nodes))


class Built:
    """A binary tree built on the device from primitives that are there; `rebuild` takes them as they are then."""

    layout, entries = Flat.layout, Flat.entries

    def __init__(self, device, primitives, count: int):
        assert count >= 2, "a tree of fewer than two primitives is built on the host"
        self.device, self.count, self.cost, self.unsorted = device, count, 0.0, primitives
        self.nodes, self.primitives = device.buffer((count - 1, 16)), device.buffer((count, 12))
        self._boxes = device.buffer((count, 8))
        self._keys, self._rows = ([device.buffer(count, "u4") for _ in range(2)] for _ in range(2))
        self._tiles = -(-count // (SORT_GROUP * 16))
        self._counts, self._totals = device.buffer((256, self._tiles), "u4"), device.buffer(256, "u4")
        self._arrivals, self._clusters = (device.buffer(count, "u4") for _ in range(2))
        self._start = device.buffer(7, "u4").write(np.array([2**32 - 1] * 3 + [0] * 4, "u4"))
        self._state = device.buffer(7, "u4")  # bounds (6,) and nodes made
        names = (
            "find_bounds",
            "morton_codes",
            "count_digits",
            "add_up_tiles",
            "scatter_digits",
            "start_clusters",
            "climb",
            "centre_nodes",
        )
        self._kernels = {
            name: device.kernel("bvh/build_hploc.cu", name, group_size=SORT_GROUP, STRICT=1) for name in names
        }
        self.rebuild()

    def rebuild(self) -> None:
        self._rebuild_corners()
        self._kernels["centre_nodes"](self.count - 1, self.nodes, self.count - 1)

    def improved(self, rounds: int = reinsertion.ROUNDS) -> Improved:
        """A tree that is walked faster and does not follow its primitives; this one needs a `rebuild` afterwards."""
        self._rebuild_corners()
        return Improved(self.device, self.nodes, self.primitives, self.count, rounds)

    def _rebuild_corners(self) -> None:
        run, count, primitives, group = self._kernels, self.count, self.unsorted, SORT_GROUP
        self._state.copy_from(self._start)
        run["find_bounds"](min(count, 1 << 18), primitives, count, self._state)
        run["morton_codes"](count, primitives, count, self._state, self._keys[0], self._rows[0])
        for digit in range(4):
            keys, rows = self._keys[digit % 2], self._rows[digit % 2]
            shift, threads = 8 * digit, self._tiles * group
            run["count_digits"](threads, keys, count, shift, self._counts)
            run["add_up_tiles"](256 * group, self._counts, self._tiles, self._totals)
            out = self._keys[1 - digit % 2], self._rows[1 - digit % 2]
            run["scatter_digits"](threads, keys, rows, count, shift, self._counts, self._totals, *out)
        run["start_clusters"](
            count, primitives, count, self._rows[0], self.primitives, self._boxes, self._clusters, self._arrivals
        )
        run["climb"](count, self._keys[0], count, self._arrivals, self._clusters, self._boxes, self.nodes, self._state)


class Wide:
    """An 8-wide tree on a device, collapsed there from a binary one: nodes (n, 20) uint32, primitives (m, 12)."""

    layout = "wide"
    entries = "closest_wide", "occluded_wide"

    def __init__(self, device, flat):
        self.device, self.count, self.cost = device, flat.count, flat.cost
        room = self.count // 3 + 1  # nodes either have eight children or hold at least four primitives
        self.nodes = device.buffer((room, 20), "u4")
        self.primitives = device.buffer(flat.primitives.shape)
        binary_of = device.buffer(room, "i4").fill(0)
        self.counts = device.buffer(2, "u4").write(np.array([1, 0], "u4"))
        levels = device.buffer(WIDE_LEVELS + 2, "u4").write(np.append([0, 1], np.zeros(WIDE_LEVELS)).astype("u4"))
        collapse = device.kernel("bvh/collapse_cwbvh.cu", "collapse", group_size=64, STRICT=1)
        next_level = device.kernel("bvh/collapse_cwbvh.cu", "next_level", group_size=64, STRICT=1)
        for level in range(WIDE_LEVELS):
            threads = min(room, 8**level, 1 << 18)
            collapse(
                threads, flat.nodes, flat.primitives, binary_of, self.counts, levels, level, self.nodes, self.primitives
            )
            next_level(1, self.counts, levels, level)
        below = levels.read()[WIDE_LEVELS:]
        self.whole = bool(below[0] == below[1])  # no level lies below those that the walk's stack is deep enough for


def _binned(device, primitives, count: int) -> Improved | Built:
    nodes, ordered = device_sah.split(device, primitives, count)
    return _shallow([Improved(device, nodes, ordered, count, rounds=0)]) or Built(device, primitives, count)


def _improved(device, primitives, count: int) -> Improved | Built:
    """The cheapest of the tree by binned SAH, that tree with subtrees moved, and H-PLOC's with subtrees moved."""
    nodes, ordered = device_sah.split(device, primitives, count)
    built = Built(device, primitives, count)
    best = _shallow([*_as_split_and_moved(device, nodes, ordered, count), built.improved()])
    if best is None:
        built.rebuild()
        return built
    return best


def _cut(device, primitives: np.ndarray, cuts: np.ndarray) -> Improved | None:
    """A tree over parts of primitives, of which each is cut so often (m,); None where it is too deep."""
    corners = presplit.corners_of(primitives)
    parts = presplit.Parts(device, upload(device, primitives), cuts, *corners)
    nodes, ordered = device_sah.split(device, parts.primitives, parts.count, parts.boxes)
    if device.properties.scalar_threads:  # which would move subtrees for a minute
        return _shallow([Improved(device, nodes, ordered, parts.count, rounds=0)])
    return _shallow(_as_split_and_moved(device, nodes, ordered, parts.count))


def _as_split_and_moved(device, nodes, ordered, count: int) -> list[Improved]:
    """Trees of what device_sah.split gives: as it is, and with subtrees moved."""
    as_split = device.buffer(nodes.shape).copy_from(nodes)
    return [Improved(device, as_split, ordered, count, rounds=0), Improved(device, nodes, ordered, count)]


def _shallow(trees: list[Improved]) -> Improved | None:
    """The cheapest tree that a walk's stack is deep enough for; the first of those that cost about the same."""
    best = None
    for tree in trees:
        if tree.depth <= reinsertion.DEEPEST and (best is None or tree.cost < WORTH * best.cost):
            best = tree
    return best


BUILDERS = {"sah": _binned, "device": Built, "improved": _improved}
