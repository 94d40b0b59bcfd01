"""H-PLOC on a device (C. Benthin et al. 2024): the builder that rebuilds fastest.

instances.py rebuilds the TLAS with it whenever instances move; build.py offers it as the builder "hploc". The kernels
are in shaders/bvh/build_hploc.cu, whose head describes their buffers.
"""

from functools import cache, partial

import numpy as np

from renderer.bvh.layouts import GROUP, Bvh2, center_nodes
from renderer.gpu import Buffer, Device
from renderer.gpu.radix_sort import RadixSort


class HplocBvh2(Bvh2):
    """A BVH over primitives (count, 12) on a device, count >= 2; rebuild() reads the primitives again.

    The depth fits into the traversal stack for all inputs.
    """

    def __init__(self, device: Device, primitives: Buffer, count: int):
        """Allocates the build's buffers and builds."""
        assert count >= 2, "a BVH of fewer than two primitives is built on the host"
        super().__init__(device, device.buffer((count - 1, 16)), device.buffer((count, 12)), count, 0.0)
        self.unsorted = primitives
        self._boxes = device.buffer((count, 8))
        self._codes, self._rows, self._visits, self._clusters = (device.buffer(count, "u4") for _ in range(4))
        self._sort = RadixSort(device, count, "elements and indices")
        # Minima (3,) and maxima (3,) of the centroids, encoded as unsigned integers, and the number of nodes made.
        self._state = device.buffer(7, "u4")
        self._initial_state = device.buffer(7, "u4").write(np.array([2**32 - 1] * 3 + [0] * 4, "u4"))
        self._kernel = cache(partial(device.kernel, "bvh/build_hploc.cu", group_size=GROUP, STRICT=1))
        self.rebuild()

    def rebuild(self) -> None:
        """Builds the BVH from the present values of `unsorted`, the primitives that the constructor got."""
        kernel, count, primitives = self._kernel, self.count, self.unsorted
        self._state.copy_from(self._initial_state)
        kernel("find_bounds")(min(count, 1 << 18), primitives, count, self._state)
        kernel("morton_codes")(count, primitives, count, self._state, self._codes)
        self._sort(self._codes, elements_out=self._codes, values_out=self._rows)
        kernel("start_clusters")(
            count, primitives, count, self._rows, self.primitives, self._boxes, self._clusters, self._visits
        )
        kernel("hploc_merge")(
            count, self._codes, count, self._visits, self._clusters, self._boxes, self.nodes, self._state
        )
        center_nodes(self.device, self.nodes)
