"""H-PLOC on a device (C. Benthin et al. 2024): the fastest build, for BVHs that are rebuilt when primitives move."""

from functools import cache, partial

import numpy as np

from renderer.bvh.layouts import GROUP, Bvh2, center_nodes
from renderer.gpu import Buffer, Device

KEYS_PER_THREAD = 16  # of the radix sort


class HplocBvh2(Bvh2):
    """A BVH over primitives (count, 12) on a device, count >= 2; `rebuild` takes them as they are then.

    No BVH is deeper than the traversal stack, whatever the primitives.
    """

    def __init__(self, device: Device, primitives: Buffer, count: int):
        """Allocates the buffers of a build and builds."""
        assert count >= 2, "a BVH of fewer than two primitives is built on the host"
        super().__init__(device, device.buffer((count - 1, 16)), device.buffer((count, 12)), count, 0.0)
        self.unsorted = primitives
        self._boxes = device.buffer((count, 8))
        self._keys, self._rows = ([device.buffer(count, "u4") for _ in range(2)] for _ in range(2))
        self._tiles = -(-count // (GROUP * KEYS_PER_THREAD))
        self._counts, self._totals = device.buffer((256, self._tiles), "u4"), device.buffer(256, "u4")
        self._visits, self._clusters = (device.buffer(count, "u4") for _ in range(2))
        self._initial_state = device.buffer(7, "u4").write(np.array([2**32 - 1] * 3 + [0] * 4, "u4"))
        self._state = device.buffer(7, "u4")  # bounds (6,) and the number of nodes made
        self._kernel = cache(partial(device.kernel, "bvh/build_hploc.cu", group_size=GROUP, STRICT=1))
        self.rebuild()

    def rebuild(self) -> None:
        """Builds the BVH again from the present contents of `unsorted`."""
        kernel, count, primitives = self._kernel, self.count, self.unsorted
        self._state.copy_from(self._initial_state)
        kernel("find_bounds")(min(count, 1 << 18), primitives, count, self._state)
        kernel("morton_codes")(count, primitives, count, self._state, self._keys[0], self._rows[0])
        for digit in range(4):
            keys, rows = self._keys[digit % 2], self._rows[digit % 2]
            shift, threads = 8 * digit, self._tiles * GROUP
            kernel("count_digits")(threads, keys, count, shift, self._counts)
            kernel("scan_tiles")(256 * GROUP, self._counts, self._tiles, self._totals)
            out = self._keys[1 - digit % 2], self._rows[1 - digit % 2]
            kernel("scatter_digits")(threads, keys, rows, count, shift, self._counts, self._totals, *out)
        kernel("start_clusters")(
            count, primitives, count, self._rows[0], self.primitives, self._boxes, self._clusters, self._visits
        )
        kernel("hploc_merge")(
            count, self._keys[0], count, self._visits, self._clusters, self._boxes, self.nodes, self._state
        )
        center_nodes(self.device, self.nodes)
