"""Binary trees by binned SAH, as good as the host's, built on the device from the root down (bvh/build_sah.cu)."""

import numpy as np

GROUP = 128
TILE = GROUP * 16  # primitives whose sums a group makes together
SMALL = 16  # primitives of a range that one thread finishes
HALVES_FROM = 30  # the level from which ranges are halved, so that only freaks are too deep to be walked
RANGE = np.dtype([(name, "u4") for name in ("start", "size", "slot", "cut", "axis", "plane", "left", "right")])
RANGE_WORDS = 3 * 16 * 7  # of the bins of a range
HERE, NEXT, SMALLS, ROOT = range(4)  # of counts


def split(device, primitives, count: int, boxes=None):
    """Nodes (count - 1, 16) with one primitive a leaf, lowest and highest corners and only leaves' boxes filled in; the
    primitives (count, 12) in the order of the leaves. `boxes` (count, 8) are taken in the place of the primitives' own.
    """
    assert count >= 2, "a tree of fewer than two primitives is built on the host"
    names = "start_ranges", "empty_bins", "bound_middles", "fill_bins", "choose_planes", "mark_lefts", "add_up"
    names += "part_ranges", "finish_smalls", "lay_leaves"
    run = {name: device.kernel("bvh/build_sah.cu", name, group_size=GROUP, STRICT=1, SMALL=SMALL) for name in names}
    most, tiles = count // (SMALL + 1) + 1, -(-count // TILE)
    nodes, sorted_ = device.buffer((count - 1, 16)), device.buffer((count, 12))
    boxed, boxes = int(boxes is not None), device.buffer((count, 8)) if boxes is None else boxes
    order, owner = ([device.buffer(count, "u4") for _ in range(2)] for _ in range(2))
    ranges = [device.buffer((most, len(RANGE)), "u4") for _ in range(2)]
    smalls = device.buffer((count // 2, len(RANGE)), "u4")
    lefts, sums = device.buffer(count, "u4"), device.buffer(tiles, "u4")
    bounds, bins = device.buffer((most, 6), "u4"), device.buffer((most, RANGE_WORDS), "u4")
    here = int(count > SMALL)
    counts = device.buffer(4, "u4").write(np.array([here, 0, 1 - here, 0], "u4"))
    run["start_ranges"](count, primitives, count, boxed, boxes, order[0], owner[0], ranges[0], smalls)
    level = 0
    while here:
        run["empty_bins"](min(here * RANGE_WORDS, 1 << 18), bounds, bins, counts)
        sorted_now = boxes, order[0], owner[0], count, bounds
        run["bound_middles"](tiles * GROUP, *sorted_now)
        run["fill_bins"](tiles * GROUP, *sorted_now, bins)
        run["choose_planes"](here, bins, int(level >= HALVES_FROM), *ranges, smalls, counts, nodes)
        run["mark_lefts"](tiles * GROUP, *sorted_now, ranges[0], lefts, sums)
        run["add_up"](GROUP, sums, tiles, counts)
        run["part_ranges"](count, *sorted_now, ranges[0], lefts, sums, order[1], owner[1])
        order, owner, ranges, level = order[::-1], owner[::-1], ranges[::-1], level + 1
        here = int(counts.read()[HERE])
    run["finish_smalls"](min(count // 2, 1 << 18), boxes, order[0], smalls, counts, nodes)
    run["lay_leaves"](count, primitives, boxes, order[0], count, sorted_, nodes)
    return nodes, sorted_
