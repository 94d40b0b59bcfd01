"""Binary trees of 32-byte nodes on a grid over the scene, made from others on the device (bvh/quantize_bvh2.cu)."""

from functools import cache

GROUP = 128
SMALL = 4000  # nodes: fewer lie in a multiprocessor's cache whatever they are made of
MOST_COARSE = 0.1  # of a tree's boxes that may be much larger on the grid; with a small thing in a large place more are


@cache
def has_votes(device) -> bool:
    """Whether the warps of a device vote and pick bytes: it has the walks of bvh/traverse_warp.h, and narrow ones
    are quick."""
    answer = device.buffer(1, "u4")
    device.kernel("bvh/quantize_bvh2.cu", "votes_here", group_size=GROUP, STRICT=1)(1, answer)
    return bool(answer.read()[0])


class Narrow:
    """The tree of another one's primitives, where they lie: nodes (n + 1, 8) uint32, the first of them the grid.

    `coarse` is the share of its boxes whose surface has grown by a tenth or more.
    """

    layout = "narrow"
    entries = "closest", "occluded"

    def __init__(self, tree):
        device, count = tree.device, tree.nodes.shape[0]
        self.device, self.count, self.cost, self.primitives = device, tree.count, tree.cost, tree.primitives
        self.nodes, coarse = device.buffer((count + 1, 8), "u4"), device.buffer(1, "u4")
        lay, narrow = (
            device.kernel("bvh/quantize_bvh2.cu", name, group_size=GROUP, STRICT=1)
            for name in ("lay_grid", "narrow_nodes")
        )
        lay(1, tree.nodes, self.nodes, coarse)
        narrow(count, tree.nodes, count, self.nodes, coarse)
        self.coarse = float(coarse.read()[0]) / (2 * count)


def narrowed(tree):
    """The narrow tree of a binary one where that is walked faster, else the one given."""
    if tree.nodes.shape[0] < SMALL or not has_votes(tree.device):
        return tree
    narrow = Narrow(tree)
    return narrow if narrow.coarse <= MOST_COARSE else tree
