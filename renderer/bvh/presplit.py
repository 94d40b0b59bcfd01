"""Triangles cut into parts for trees of still scenes, where long thin ones would fill a tree with nearly empty boxes.

A part is a box and a copy of its triangle's row, so that every builder takes parts for primitives and every walk finds
in them what it finds in whole triangles (T. Karras and T. Aila 2013, M. Ganestam and M. Doggett 2016).
"""

from dataclasses import dataclass

import numpy as np

GROUP = 64
MOST_PARTS = 1 << 21  # of a scene, whose tree takes 170 MB then
ROOM = 4096  # bytes of a device's memory for a part: an eighth of them while the tree is built
SHARES = 1 / 32, 1 / 4, 1, 3, 7, 15  # cuts for each primitive of a scene, on average
FALLS = 0.76  # of the power by which parts become more, that by which their areas must become less, for more cuts
PROMISES = 0.08  # of a tree's cost: what cuts must be expected to save for a tree of them to be built
STEP = 0.25  # of PROMISES, that more cuts must be expected to save beyond those before
WORTH = 0.9  # of a tree's cost: a tree of parts takes more memory, and is not taken where it saves less
REACH = 4.0  # diagonals of a scene from which rays come


@dataclass(frozen=True)
class Waste:
    """What the boxes of primitives (m,) hold in vain: half surfaces (m,) of the boxes as they are, and of so many small
    ones that nothing is saved by more."""

    boxes: np.ndarray
    least: np.ndarray

    def cuts(self, share: float) -> np.ndarray:
        """How often (m,) uint32 each primitive is to be cut, `share` times the primitives in all at most."""
        assert 0 <= share < 2**31, f"{share} cuts a primitive are no budget"
        wish = np.cbrt(np.maximum(self.boxes - self.least, 0))
        largest = wish.max(initial=0)
        if not largest > 0:
            return np.zeros(len(wish), "u4")
        wish /= largest
        budget, total = int(share * len(wish)), wish.sum()
        least, most = budget / total, (budget + len(wish)) / total  # without rounding down, and with all of it
        for _ in range(20):
            middle = (least + most) / 2
            within = np.floor(wish * middle).sum() <= budget
            least, most = (middle, most) if within else (least, middle)
        return np.floor(wish * least).astype("u4")

    def left(self, cuts: np.ndarray) -> float:
        """About what the half surfaces of all parts together will be."""
        return float((self.least + np.maximum(self.boxes - self.least, 0) / (1.0 + cuts)).sum())


def waste_of(primitives: np.ndarray) -> Waste:
    """The Waste of primitives (m,) PRIMITIVE; spheres are never cut."""
    edge1, edge2 = primitives["edge1"][:, :3].astype("f8"), primitives["edge2"][:, :3].astype("f8")
    size = np.maximum(np.maximum(edge1, edge2), 0) - np.minimum(np.minimum(edge1, edge2), 0)
    size += 2 * np.maximum(primitives["edge2"][:, 3:].astype("f8"), 0)
    x, y, z = size.T
    boxes = x * y + y * z + z * x
    sphere = primitives["edge2"][:, 3] > 0
    return Waste(boxes, np.where(sphere, boxes, np.abs(np.cross(edge1, edge2)).sum(1) / 2))


def corners_of(primitives: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest corner (3,) float32 of primitives (m,) PRIMITIVE together."""
    corner, radius = primitives["corner"][:, :3], np.maximum(primitives["edge2"][:, 3:], 0)
    ends = [corner - radius, corner + radius, *(corner + primitives[edge][:, :3] for edge in ("edge1", "edge2"))]
    return np.min([end.min(0) for end in ends], 0), np.max([end.max(0) for end in ends], 0)


def most_parts(properties) -> int:
    """How many parts of a scene a device has room and its user time for."""
    return min(MOST_PARTS if not properties.scalar_threads else MOST_PARTS // 2, properties.memory_bytes // ROOM)


def budget_of(primitives: np.ndarray, cost: float, most: int = MOST_PARTS) -> np.ndarray | None:
    """The cuts (m,) of primitives (m,) into `most` parts that are expected to pay where their tree costs `cost` by the
    SAH; None where none are."""
    if (1 + SHARES[0]) * len(primitives) > most:
        return None
    low, high = corners_of(primitives)
    x, y, z = (high - low).astype("f8")
    waste, asked = waste_of(primitives), PROMISES * cost * (x * y + y * z + z * x)
    whole = before = float(waste.boxes.sum())
    if not whole - waste.least.sum() >= asked > 0:
        return None
    best, parts = None, 1.0
    for share in SHARES:
        cuts = waste.cuts(share)
        after = waste.left(cuts)
        falls = after <= before * (parts / (1 + share)) ** FALLS and before - after >= STEP * asked
        if falls and (1 + share) * len(primitives) <= most:
            best, before, parts = cuts, after, 1 + share
    return best if whole - before >= asked else None


class Parts:
    """Parts of primitives (m, 12) on a device, each cut as often as cuts (m,) say: boxes (count, 8) and copies of the
    primitives (count, 12). low and high (3,) are the scene's corners."""

    def __init__(self, device, primitives, cuts: np.ndarray, low: np.ndarray, high: np.ndarray):
        assert cuts.dtype == np.uint32 and len(cuts), "cuts are whole numbers, one for each primitive"
        grid = np.zeros((2, 4), "f4")
        grid[0, :3], grid[0, 3] = low, max(float((high - low).max()), 1e-30)
        grid[1, 0] = REACH * float(np.linalg.norm((high - low).astype("f8")))
        kernel = device.kernel("bvh/presplit.cu", "cut_primitives", group_size=GROUP, STRICT=1)
        given = primitives, len(cuts), device.buffer(len(cuts), "u4").write(cuts), device.buffer((2, 4)).write(grid)
        ends, nothing = device.buffer(len(cuts), "u4"), device.buffer((1, 4))
        kernel(len(cuts), *given, 0, ends, nothing, nothing)
        places = np.cumsum(ends.read(), dtype="u8")
        self.count = int(places[-1])
        assert self.count < 2**31, "more parts than a tree can have"
        ends.write(places.astype("u4"))
        self.boxes, self.primitives = device.buffer((self.count, 8)), device.buffer((self.count, 12))
        kernel(len(cuts), *given, 1, ends, self.boxes, self.primitives)
