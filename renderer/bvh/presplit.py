"""Presplit references: splits long thin triangles before a BVH is built, because their boxes are nearly empty.

T. Karras and T. Aila 2013, M. Ganestam and M. Doggett 2016. A reference is a box around one piece of a triangle, with a
copy of the triangle's record (12 float32: PRIMITIVE in primitives.py). Builders therefore take references as
primitives, and traversal needs no change. A split makes two references of one. build.py and instances.py ask
choose_splits() how often to split each of the m primitives, and PrimRefs splits on the device.
"""

from collections.abc import Callable

import numpy as np

from renderer.bvh.host_sah import HostBvh, build_host_sah
from renderer.bvh.layouts import upload_primitives
from renderer.bvh.primitives import CHUNK, PRIMITIVE, bounds, half_area, radius_of
from renderer.gpu import Device, DeviceProperties
from renderer.records import dataclass

GROUP = 64  # work-items per group
COUNT_REFS, WRITE_REFS = 0, 1  # passes of split_primitives in shaders/bvh/presplit.cu
MAX_REFS = 1 << 21  # most references of a scene; their BVH takes 170 MB
BYTES_PER_REF = 4096  # memory that a device must have for each reference; building the BVH takes an eighth of it
SPLITS_PER_PRIM = 1 / 32, 1 / 4, 1, 3, 7, 15  # split budgets that are tried, on average for each primitive
AREA_EXPONENT = 0.76  # a larger budget is tried if the area falls at least as (number of references)^-AREA_EXPONENT
MIN_PREDICTED_SAVING = 0.08  # fraction of the SAH cost that splits must save before a presplit BVH is built
# Least saving in node visits: the two triangles of a ground are predicted to save up to 1, but their references need
# more inner nodes, so that the SAH cost of a mesh on it doubles.
MIN_SAVED_VISITS = 2
MIN_NEXT_SAVING = 0.25  # fraction of MIN_PREDICTED_SAVING that each larger budget must save beyond the last one
MAX_COST_RATIO = 0.9  # a presplit BVH, which takes more memory, is kept if its cost is below this times the unsplit one
RAY_DISTANCE = 4.0  # largest distance of ray origins, in diagonals of the scene


@dataclass(frozen=True)
class SplitPotential:
    """Half surface areas (m,): `boxes` of the unsplit primitives' boxes, `least` the limit for ever more splits."""

    boxes: np.ndarray
    least: np.ndarray

    def splits(self, splits_per_prim: float) -> np.ndarray:
        """Distributes at most m * `splits_per_prim` splits over the primitives; returns their numbers (m,) uint32."""
        assert 0 <= splits_per_prim < 2**31, f"{splits_per_prim} splits for each primitive are no budget"
        priority = np.cbrt(np.maximum(self.boxes - self.least, 0))
        largest = priority.max(initial=0)
        if not largest > 0:
            return np.zeros(len(priority), "u4")
        priority /= largest
        budget, total = int(splits_per_prim * len(priority)), priority.sum()
        # Bisect the scale by which priorities become whole numbers of splits. Without rounding down, `low` spends the
        # budget; rounding down loses less than one split a primitive, so `high` spends more than the budget.
        low, high = budget / total, (budget + len(priority)) / total
        for _ in range(20):
            scale = (low + high) / 2
            is_within = np.floor(priority * scale).sum() <= budget
            low, high = (scale, high) if is_within else (low, scale)
        return np.asarray(np.floor(priority * low), "u4")

    def area_after(self, splits: np.ndarray) -> float:
        """Predicts the sum of the half surface areas of all references after `splits` (m,)."""
        return float((self.least + np.maximum(self.boxes - self.least, 0) / (1.0 + splits)).sum())


def split_potential(primitives: np.ndarray) -> SplitPotential:
    """Returns the SplitPotential of primitives (m,) PRIMITIVE; spheres are never split.

    The limit of a triangle for ever more splits is the sum of the areas of its projections on the three coordinate
    planes.
    """
    boxes, least = (np.empty(len(primitives)) for _ in range(2))
    for begin in range(0, len(primitives), CHUNK):
        chunk, rows = primitives[begin : begin + CHUNK], slice(begin, begin + CHUNK)
        edge1, edge2 = (chunk[name][:, :3].astype("f8").T.copy() for name in ("edge1", "edge2"))
        size = np.maximum(np.maximum(edge1, edge2), 0) - np.minimum(np.minimum(edge1, edge2), 0)
        size += 2 * np.maximum(radius_of(chunk).astype("f8"), 0)
        (a, b, c), (d, e, f) = edge1, edge2
        boxes[rows] = half_area(size)
        least[rows] = (np.abs(b * f - c * e) + np.abs(c * d - a * f) + np.abs(a * e - b * d)) / 2
        np.copyto(least[rows], boxes[rows], where=radius_of(chunk) > 0)
    return SplitPotential(boxes, least)


def max_refs(properties: DeviceProperties) -> int:
    """Returns the most references that a device's memory allows, half as many on a CPU, which builds slowly."""
    return min(MAX_REFS // 2 if properties.scalar_threads else MAX_REFS, properties.memory_bytes // BYTES_PER_REF)


def may_pay(primitives: np.ndarray, limit: int) -> bool:
    """Returns False if choose_splits() will split none of the primitives (m,), whatever the cost of their BVH is."""
    if len(primitives) < 2 or (1 + SPLITS_PER_PRIM[0]) * len(primitives) > limit:
        return False
    (low, high), potential = bounds(primitives), split_potential(primitives)
    return bool(potential.boxes.sum() - potential.least.sum() >= MIN_SAVED_VISITS * half_area(high - low))


def choose_splits(primitives: np.ndarray, cost: float, limit: int = MAX_REFS) -> np.ndarray | None:
    """Returns the splits (m,) of primitives (m,) into at most `limit` references; None if splits would not pay.

    `cost` is the SAH cost of the BVH over the unsplit primitives, for which may_pay() is True.
    """
    low, high = bounds(primitives)
    # Areas here are sums of half surface areas of boxes. A SAH cost is relative to the half area of the scene's box.
    potential = split_potential(primitives)
    wanted = max(MIN_PREDICTED_SAVING * cost, MIN_SAVED_VISITS) * half_area(high - low)
    unsplit = best_area = float(potential.boxes.sum())
    if not unsplit - potential.least.sum() >= wanted > 0:
        return None
    best, refs_per_prim = None, 1.0
    for splits_per_prim in SPLITS_PER_PRIM:
        splits = potential.splits(splits_per_prim)
        area = potential.area_after(splits)
        pays = area <= best_area * (refs_per_prim / (1 + splits_per_prim)) ** AREA_EXPONENT
        pays = pays and best_area - area >= MIN_NEXT_SAVING * wanted
        if pays and (1 + splits_per_prim) * len(primitives) <= limit:
            best, best_area, refs_per_prim = splits, area, 1 + splits_per_prim
    return best if unsplit - best_area >= wanted else None


class PrimRefs:
    """References on a device to primitives (m,) PRIMITIVE; primitive i is split splits[i] times.

    `boxes` (count, 8) float32 are the references' boxes: low x, y, z, unused, high x, y, z, unused. `primitives`
    (count, 12) float32 are copies of the primitives' records, in the order of the boxes.
    """

    def __init__(self, device: Device, primitives: np.ndarray, splits: np.ndarray):
        """Splits in two passes: the first counts references, the second writes them."""
        assert splits.dtype == np.uint32 and len(splits), "splits are whole numbers, one for each primitive"
        low, high = bounds(primitives)
        side = max(float((high - low).max()), 1e-30)  # side of the cube at `low` that the splitting planes divide
        # Rows: where the grid of planes begins, and its side; the distance from which rays come, and zeros.
        grid = np.array([[*low, side], [RAY_DISTANCE * np.linalg.norm(high - low), 0, 0, 0]], "f4")
        kernel = device.kernel("bvh/presplit.cu", "split_primitives", group_size=GROUP, STRICT=1)
        count = len(splits)
        rows = upload_primitives(device, primitives)
        args = rows, count, device.buffer(count, "u4").write(splits), device.buffer((2, 4)).write(grid)
        ends, unused = device.buffer(count, "u4"), device.buffer((1, 4))
        kernel(count, *args, COUNT_REFS, ends, unused, unused)  # ends = the number of references of each primitive
        offsets = np.cumsum(ends.read(), dtype="u8")  # the ends of the primitives' ranges of references
        self.count = int(offsets[-1])
        assert self.count < 2**31, "more references than a BVH can have"
        ends.write(offsets.astype("u4"))
        self.boxes, self.primitives = device.buffer((self.count, 8)), device.buffer((self.count, 12))
        kernel(count, *args, WRITE_REFS, ends, self.boxes, self.primitives)

    def build_for_host(
        self, build: Callable[[np.ndarray, np.ndarray], HostBvh] = build_host_sah
    ) -> tuple[HostBvh, np.ndarray]:
        """Builds over the references' boxes; returns the BVH and the references' primitives (count,)."""
        boxes = self.boxes.read()
        return build(boxes[:, :3], boxes[:, 4:7]), self.primitives.read().view(PRIMITIVE).ravel()
