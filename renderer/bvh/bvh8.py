"""Trees for processors without warps: branches of eight boxes, blocks of eight primitives, and the walks for them.

One ray meets a branch or a block in wide registers; 32 rays that go the same way walk as one beam (shaders/
bvh/traverse_bvh8.h).
"""

import numpy as np

BEAM = 32  # rays
GROUP = 16  # threads of a walk
UNIT = 16  # floats
LEVELS = 64  # as many as the binary tree below may have
LARGEST_LAUNCH = 1 << 12


class Branches:
    """A tree on a device, collapsed there from a binary one: nodes (n, 16) in units, and that one's primitives."""

    layout = "branches"
    entries = "closest_lone", "occluded_lone"

    def __init__(self, device, flat):
        self.device, self.count, self.cost, self.primitives = device, flat.count, flat.cost, flat.primitives
        nothing = device.buffer((1, UNIT))
        units = self._collapse(flat, nothing, 0)
        self.nodes = device.buffer((units, UNIT))
        assert self._collapse(flat, self.nodes, units) == units

    def _collapse(self, flat, units, capacity: int) -> int:
        """Writes what fits into `capacity` units; how many all would take."""
        device, room = self.device, max(self.count, 1)
        queue = device.buffer((room, 2), "u4").fill(0)
        counts = device.buffer(2, "u4").write(np.array([1, 10], "u4"))  # the root and its units, and an empty block
        levels = device.buffer(LEVELS + 2, "u4").write(np.append([0, 1], np.zeros(LEVELS)).astype("u4"))
        collapse, next_level = (
            device.kernel("bvh/collapse_bvh8.cu", entry, group_size=GROUP, STRICT=1)
            for entry in ("collapse_branches", "next_level")
        )
        for level in range(LEVELS):
            threads = min(room, 8 ** min(level, 8), LARGEST_LAUNCH)
            collapse(threads, flat.nodes, flat.primitives, queue, counts, levels, level, units, capacity)
            next_level(1, counts, levels, level)
        return int(counts.read()[1])


def walk_of(rays_class: str) -> str:
    """The fastest walk of bvh/ray_queries.cu for rays of a class of bvh_walks.Walk: rays that begin alike go
    together."""
    kind = "occluded" if rays_class.endswith("shadow") else "closest"
    return f"{kind}_{'beam' if rays_class.startswith('primary') else 'lone'}"
