"""Binned SAH on a device (I. Wald 2007): builds trees of the same cost as host_sah.py, level by level from the root.

On CPUs one thread splits a range, on GPUs all threads split all ranges of a level. shaders/bvh/build_sah.cu splits
ranges of primitives down to single ones; its head describes the buffers. compact_bvh2.cu then refits the boxes, joins
small subtrees into leaves and writes nodes and primitives depth first. build.py calls build_device_sah().
"""

from collections.abc import Callable
from functools import cache, partial

import numpy as np

from renderer.bvh.host_sah import NODE, HostBvh
from renderer.bvh.layouts import Bvh2, center_nodes
from renderer.gpu import Buffer, Device
from renderer.gpu.device import Kernel

GROUP = 128
TILE = GROUP * 16  # primitives that a group scans
SMALL_RANGE = 16  # largest range, in primitives, that one thread splits down to the leaves
MEDIUM_RANGE = 1 << 14  # largest range, on CPUs, that one work-item splits down to the leaves
MEDIAN_FROM_LEVEL = 30  # first level whose ranges are split at the median, so that few BVHs exceed MAX_DEPTH
MAX_DEPTH = 62  # levels of a BVH; the traversal stack has two entries more
RANGE = 8  # words of struct Range in build_sah.cu
MAX_LARGE_LEVELS = 64  # levels with ranges above MEDIUM_RANGE: 30 by SAH; then 18 halvings of 2^32 reach MEDIUM_RANGE
BIN_WORDS = 3 * 16 * 7  # words of a range's bins: 3 axes, 16 bins, a box of 6 words and a count
# Words of `counts`: ranges of this level, ranges of the next level (CPUs: of all levels so far), ranges for split_rest,
# and the index of the root's node before it is swapped with node 0.
THIS_LEVEL, NEXT_LEVEL = 0, 1
BUILD_FILE, COMPACT_FILE = "bvh/build_sah.cu", "bvh/compact_bvh2.cu"
CONSTANTS = {"STRICT": 1, "SMALL_RANGE": SMALL_RANGE, "MEDIUM_RANGE": MEDIUM_RANGE,
             "MEDIAN_FROM_LEVEL": MEDIAN_FROM_LEVEL}  # fmt: skip
KernelOf = Callable[[str], Kernel]  # a kernel of build_sah.cu by its entry


def build_device_sah(
    device: Device, upload: Callable[[], Buffer], count: int, boxes: Buffer | None = None
) -> tuple[Bvh2 | None, Buffer]:
    """Builds a BVH over primitives (count, 12), count >= 2; None instead of the BVH if it is deeper than MAX_DEPTH.

    A primitive is the 12 words of shaders/bvh/geometry.h; word 3 is its id.
    Also returns the primitives in the order of the leaves. upload() returns a buffer of the primitives in any order,
    which is freed as soon as they are sorted. `boxes` (count, 8) are presplit references' boxes; None for the boxes of
    the primitives.
    """
    nodes, ordered = split_to_leaves(device, upload(), count, boxes)
    nodes, depth, cost = compact(device, nodes, count)
    if depth > MAX_DEPTH:
        return None, ordered
    center_nodes(device, nodes)
    return Bvh2(device, nodes, ordered, count, cost), ordered


def build_for_host(device: Device, low: np.ndarray, high: np.ndarray) -> HostBvh | None:
    """Builds over boxes (m, 3), m >= 2, of the host as build_host_sah() does; None if deeper than MAX_DEPTH."""
    count, boxes = len(low), np.zeros((len(low), 8), "f4")
    boxes[:, :3], boxes[:, 4:7] = low, high
    rows = np.zeros((count, 12), "f4")
    rows.view("i4")[:, 3] = np.arange(count)  # the ids, read back in the order of the leaves
    primitives, boxes_there = (device.buffer(array.shape).write(array) for array in (rows, boxes))
    nodes, ordered = split_to_leaves(device, primitives, count, boxes_there)
    nodes, depth, cost = compact(device, nodes, count)
    order = ordered.read().view("i4")[:, 3].astype("i8")
    return HostBvh(nodes.read().view(NODE).ravel(), order, depth, cost) if depth <= MAX_DEPTH else None


def split_to_leaves(
    device: Device, primitives: Buffer, count: int, boxes: Buffer | None = None
) -> tuple[Buffer, Buffer]:
    """Splits down to leaves of one primitive: nodes (count - 1, 16) and primitives (count, 12) in leaf order.

    The nodes are host_sah.NODE, in which only the boxes of leaves are set.
    """
    assert count >= 2, "a BVH of fewer than two primitives is built on the host"
    kernel = cache(partial(_kernel, device))
    has_boxes, boxes = int(boxes is not None), device.buffer((count, 8)) if boxes is None else boxes
    nodes = device.buffer((count - 1, 16))
    # the parameters of start_ranges that both ways of splitting share; they add their buffers
    start = partial(kernel("start_ranges"), count, primitives, count, has_boxes, boxes)
    split = _split_serially if device.properties.scalar_threads else _split_levels
    order = split(device, kernel, start, count, boxes, nodes)
    del start  # it holds the boxes, a tenth of a build's memory
    boxes = boxes if has_boxes else device.buffer((1, 8))
    sorted_ = device.buffer((count, 12))
    kernel("sort_primitives")(count, primitives, order, count, sorted_)
    del primitives
    kernel("write_leaves")(count, sorted_, has_boxes, boxes, order, count, nodes)
    return nodes, sorted_


def _kernel(device: Device, entry: str) -> Kernel:
    """A kernel of build_sah.cu; GPUs compile it in two parts."""
    scalar = device.properties.scalar_threads
    part = int(entry == "split_rest" and not scalar)
    return device.kernel(BUILD_FILE, entry, GROUP, **CONSTANTS, SCALAR_THREADS=int(scalar), PART=part)


def compile_ahead(device: Device) -> None:
    """Begins to compile the programs of build_device_sah() beside one another, on devices that can."""
    for part in (0, 1):
        device.compile_ahead(BUILD_FILE, GROUP, **CONSTANTS, SCALAR_THREADS=0, PART=part)
    device.compile_ahead(COMPACT_FILE, GROUP, STRICT=1)


def _split_serially(
    device: Device, kernel: KernelOf, start: Callable[..., None], count: int, boxes: Buffer, nodes: Buffer
) -> Buffer:
    """Splits on a CPU: a work-item splits a large range, and finishes one of at most MEDIUM_RANGE primitives.

    A work-item is launched as a group of GROUP threads; CPUs run one of them.
    """
    order, spare = (device.buffer(count, "u4") for _ in range(2))
    is_large = count > MEDIUM_RANGE
    # Each level has at most count // (MEDIUM_RANGE + 1) large ranges; each of these leaves at most two for `rest`.
    capacity = MAX_LARGE_LEVELS * (count // (MEDIUM_RANGE + 1)) + 1
    ranges, rest = device.buffer((capacity, RANGE), "u4"), device.buffer((2 * capacity, RANGE), "u4")
    counts = device.buffer(4, "u4").write(np.array([0, is_large, not is_large, 0], "u4"))
    start(order, spare, ranges, rest)
    begin, end = 0, int(is_large)
    while begin < end:
        work = boxes, order, spare, begin, end, ranges, rest, counts, nodes
        kernel("split_large_ranges")(GROUP * (end - begin), *work)
        begin, end = end, int(counts.read()[NEXT_LEVEL])
    kernel("split_rest")(GROUP * min(2 * capacity, 1 << 10), boxes, order, spare, rest, counts, nodes)
    return order


def _split_levels(
    device: Device, kernel: KernelOf, start: Callable[..., None], count: int, boxes: Buffer, nodes: Buffer
) -> Buffer:
    """Splits on a GPU: all ranges of a level at once, down to SMALL_RANGE primitives."""
    max_ranges, tiles = count // (SMALL_RANGE + 1) + 1, -(-count // TILE)
    orders = [device.buffer(count, "u4") for _ in range(2)]
    owners = [device.buffer(count, "u4") for _ in range(2)]
    ranges = [device.buffer((max_ranges, RANGE), "u4") for _ in range(2)]
    rest = device.buffer((count // 2, RANGE), "u4")  # ranges that one thread finishes
    lefts, sums = device.buffer(count, "u4"), device.buffer(tiles, "u4")
    bounds, bins = device.buffer((max_ranges, 6), "u4"), device.buffer((max_ranges, BIN_WORDS), "u4")
    range_count = int(count > SMALL_RANGE)
    counts = device.buffer(4, "u4").write(np.array([range_count, 0, 1 - range_count, 0], "u4"))
    start(orders[0], owners[0], ranges[0], rest)
    level = 0
    while range_count:
        kernel("empty_bins")(min(range_count * BIN_WORDS, 1 << 18), bounds, bins, counts)
        state = boxes, orders[0], owners[0], count, bounds
        kernel("bound_centroids")(tiles * GROUP, *state)
        kernel("fill_bins")(tiles * GROUP, *state, bins)
        force_median = int(level >= MEDIAN_FROM_LEVEL)
        kernel("choose_planes")(range_count, bins, force_median, *ranges, rest, counts, nodes)
        kernel("count_lefts")(tiles * GROUP, *state, ranges[0], lefts, sums)
        kernel("scan_tiles")(GROUP, sums, tiles, counts)  # also makes the next level the current one in `counts`
        kernel("partition_ranges")(count, *state, ranges[0], lefts, sums, orders[1], owners[1])
        orders, owners, ranges, level = orders[::-1], owners[::-1], ranges[::-1], level + 1
        range_count = int(counts.read()[THIS_LEVEL])
    kernel("split_rest")(min(count // 2, 1 << 18), boxes, orders[0], rest, counts, nodes)
    return orders[0]


def compact(device: Device, nodes: Buffer, count: int) -> tuple[Buffer, int, float]:
    """Turns the nodes of split_to_leaves(), which it overwrites, into host_sah.NODE; returns nodes, depth and SAH cost.

    The primitives are in depth-first order already: the halves of a range follow one another, the left one first.
    """
    scalar = device.properties.scalar_threads  # CPUs have these kernels in the program of build_sah.cu
    kernel = partial(_kernel, device) if scalar else partial(device.kernel, COMPACT_FILE, group_size=GROUP, STRICT=1)
    inner, slots = count - 1, 2 * (count - 1)
    parent_slot, visits = (device.buffer(inner, "u4") for _ in range(2))
    stats, kept_and_depth = device.buffer((inner, 4)), device.buffer(2, "u4").fill(0)
    kernel("link_nodes")(inner, nodes, inner, parent_slot)
    kernel("refit")(slots, nodes, inner, parent_slot, visits.fill(0), stats, kept_and_depth)
    del visits
    out, areas = device.buffer((int(kept_and_depth.read()[0]), 16)), device.buffer(2).fill(0)
    kernel("compact_nodes")(min(inner, 1 << 16), nodes, inner, stats, parent_slot, out, areas, kept_and_depth)
    total, root = (float(area) for area in areas.read())
    return out, int(kept_and_depth.read()[1]), total / max(root, 1e-30) + 1
