"""BVH8: nodes of eight boxes and leaves of eight primitives, for CPUs with wide vector registers.

One ray is tested against a node or a leaf in vector registers; 32 coherent rays traverse as a packet behind their
common frustum (shaders/bvh/traverse_packet.h). Against a baseline BVH2 on two cores (cpu_2cores_rays.jsonl), Menger
sponge: 5.9 times the camera rays and 2.2 times the incoherent rays a second.
"""

import numpy as np

from renderer.bvh.layouts import COLLAPSE_GROUP, Bvh, Bvh2
from renderer.gpu import Buffer, Device

LINE = 16  # floats of a cache line of 64 bytes, the unit of nodes and leaves
MAX_LEVELS = 64  # as many as the BVH2 below may have
MAX_THREADS = 1 << 12
ROOT_AND_EMPTY_LEAF = 10  # lines


class Bvh8(Bvh):
    """A BVH collapsed on a device from a Bvh2, with that one's primitives: nodes and leaves in lines (n, 16)."""

    layout = "bvh8"

    def __init__(self, device: Device, bvh: Bvh2):
        """Collapses a Bvh2 in two passes: the first counts lines, the second writes them."""
        super().__init__(device, device.buffer((1, LINE)), bvh.primitives, bvh.count, bvh.cost)
        lines = self._collapse(bvh, self.nodes, 0)
        self.nodes = device.buffer((lines, LINE))
        assert self._collapse(bvh, self.nodes, lines) == lines

    def _collapse(self, bvh: Bvh2, lines: Buffer, capacity: int) -> int:
        """Writes what fits into `capacity` lines; returns how many the BVH takes."""
        device, max_nodes = self.device, max(self.count, 1)
        queue = device.buffer((max_nodes, 2), "u4").fill(0)
        counts = device.buffer(2, "u4").write(np.array([1, ROOT_AND_EMPTY_LEAF], "u4"))  # nodes, lines
        levels = device.buffer(MAX_LEVELS + 2, "u4").write(np.append([0, 1], np.zeros(MAX_LEVELS)).astype("u4"))
        collapse, next_level = (
            device.kernel("bvh/collapse_bvh8.cu", entry, group_size=COLLAPSE_GROUP, STRICT=1)
            for entry in ("collapse_bvh8", "next_level")
        )
        for level in range(MAX_LEVELS):
            threads = min(max_nodes, 8 ** min(level, 8), MAX_THREADS)
            collapse(threads, bvh.nodes, bvh.primitives, queue, counts, levels, level, lines, capacity)
            next_level(1, counts, levels, level)
        return int(counts.read()[1])
