"""Four-wide trees of shaders/bvh/traverse_bvh4.h, collapsed from binary ones by levels with arrays."""

import numpy as np

STEPS = 2.0**15  # of a grid between a node's word of its corner and the corner: what a byte becomes a float by
ROOM = 0.03  # steps that boxes grow by, for the rounding of planes
EMPTY = -(2**31)
MOST_KEPT = 98  # children that the stack of bvh/traverse_warp.h has room for


def collapse(words: np.ndarray) -> tuple[np.ndarray, int]:
    """Nodes (k, 16) uint32 of the four-wide tree, breadth first, over a binary one's (n, 16) float32 of
    bvh/traverse_bvh2.h, and
    how many children a walk keeps for later at most.

    A node opens its inner child of the largest area until it has four.
    """
    box = words.reshape(-1, 2, 2, 4)[..., :3].astype("f8")  # without the codes, which as floats may be no numbers
    low, high = (box[:, :, 0] - box[:, :, 1]).reshape(-1, 3), (box[:, :, 0] + box[:, :, 1]).reshape(-1, 3)
    code = np.ascontiguousarray(words).view("i4")[:, [3, 7]].reshape(-1)
    x, y, z = np.maximum(high - low, 0).T
    area = x * y + y * z + z * x
    level, out, first = np.array([0]), [], 1
    kept, most = np.array([0]), 0  # on the way to each node, and on any
    while len(level):
        child, filled = _opened(level, code, area)
        empty = (np.arange(4) >= filled[:, None]) | ~(low <= high).all(1)[child]
        codes = code[child]
        inner = (codes >= 0) & ~empty
        numbers = first + np.cumsum(inner.ravel()).reshape(inner.shape) - 1
        out.append(_rows(low[child], high[child], np.where(empty, EMPTY, np.where(inner, numbers, codes)), empty))
        level, below = codes[inner], kept + filled - 1
        kept = np.repeat(below, inner.sum(1))
        most = max(most, int(below.max()))
        first += len(level)
    return np.concatenate(out), most


def _opened(level, code, area) -> tuple[np.ndarray, np.ndarray]:
    """The up to four children (k, 4) of binary nodes, as 2 node + side, and how many there are (k,)."""
    count = len(level)
    child = np.zeros((count, 4), "i8")
    child[:, :2] = 2 * level[:, None] + [0, 1]
    filled = np.full(count, 2)
    for _ in range(2):
        openable = (code[child] >= 0) & (np.arange(4) < filled[:, None])
        areas = np.where(openable, area[child], -1.0)
        largest = areas.argmax(1)
        opens = np.flatnonzero(areas[np.arange(count), largest] >= 0)
        inner = code[child[opens, largest[opens]]]
        child[opens, largest[opens]] = 2 * inner
        child[opens, filled[opens]] = 2 * inner + 1
        filled[opens] += 1
    return child, filled


def _rows(low, high, codes, empty) -> np.ndarray:
    """Nodes (k, 16) uint32 of children with boxes low, high (k, 4, 3), of which some are empty."""
    corner = np.where(empty[..., None], np.inf, low).min(1)
    far = np.where(empty[..., None], -np.inf, high).max(1)
    alone = empty.all(1)
    corner[alone], far[alone] = 0, 0
    exponent = np.ceil(np.log2(np.maximum(far - corner, 1e-30) / 250))
    for _ in range(12):  # a grid far from the origin starts lower than asked, and may need larger steps
        step = 2.0**exponent
        wanted = corner - (STEPS + ROOM) * step
        start = wanted.astype("f4")
        start = np.where(start > wanted, np.nextafter(start, np.float32(-np.inf)), start)
        origin = start.astype("f8") + STEPS * step
        exponent = np.where(np.ceil((far - origin) / step + ROOM) > 255, exponent + 1, exponent)
    biased = exponent + 15 + 127
    assert ((biased >= 1) & (biased <= 254)).all(), "a scene beyond 2^100 is no scene"
    first = np.floor((low - origin[:, None]) / step[:, None] - ROOM)
    last = np.ceil((high - origin[:, None]) / step[:, None] + ROOM)
    out = np.zeros((len(low), 16), "u4")
    out[:, :3] = start.astype("f4").view("u4")
    out[:, 3] = (biased.astype("u4") << np.array([0, 8, 16], "u4")).sum(1)
    out[:, 4:8] = codes.astype("i4").view("u4")
    for axis in range(3):
        for side, planes in enumerate((first, last)):
            bytes_ = np.where(empty, 0, planes[..., axis]).clip(0, 255).astype("u1")
            out[:, 8 + 2 * axis + side] = np.ascontiguousarray(bytes_).view("<u4").ravel()
    return out


class Quads:
    """The four-wide tree over a binary one's primitives, where they lie; one that keeps too many has no walk."""

    def __init__(self, tree):
        nodes, self.kept = collapse(tree.nodes.read())
        self.nodes, self.primitives = tree.device.buffer(nodes.shape, "u4").write(nodes), tree.primitives
