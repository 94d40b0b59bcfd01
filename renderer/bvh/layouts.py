"""Node layouts of BVHs on a device: BVH2, which every builder writes, and BVH8, which is collapsed from a BVH2.

The names follow tinybvh. BVH8 is for CPUs with wide vector registers: a ray is tested against the eight boxes of a node
or the eight primitives of a leaf in vector registers, and 32 coherent rays traverse as a packet behind their common
frustum (shaders/bvh/traverse_packet.h). On two cores it traces 5.9 times the camera rays and 2.2 times the incoherent
rays a second of a BVH2, in a Menger sponge (tests/fps/results/cpu_2cores_rays.jsonl). build.py chooses the layout.
"""

import numpy as np

from renderer.bvh.host_sah import HostBvh
from renderer.gpu import Buffer, Device

GROUP = 256
MAX_LEVELS = 64  # largest depth of a BVH
COLLAPSE_GROUP = 16  # threads of a group of bvh/collapse_bvh8.cu
MAX_COLLAPSE_THREADS = 1 << 12  # threads of a level's launch; each handles several nodes of a large level
LINE = 16  # floats of a cache line of 64 bytes: BVH8 nodes take four lines
ROOT_AND_EMPTY_LEAF = 10  # lines of the root and of the empty leaf that follows it


class Bvh:
    """A BVH on a device: its nodes, and its primitives in the order of its leaves.

    `primitives` holds records of primitives.PRIMITIVE, (count, 12) float32. A presplit BVH has more of them than the
    scene: a primitive occurs once for each of its references. `cost` is the SAH cost: the expected number of node
    visits and primitive tests of a ray that hits the root's box; 0 where it was not computed. `host` is the BVH that
    host_sah.py built, from which the next frame of an animation is refitted; None for other builders.
    """

    layout = ""
    host: HostBvh | None = None

    def __init__(self, device: Device, nodes: Buffer, primitives: Buffer, count: int, cost: float):
        """Keeps the buffers that a builder has filled."""
        self.device, self.nodes, self.primitives, self.count, self.cost = device, nodes, primitives, count, cost


class Bvh2(Bvh):
    """A binary BVH: nodes (n, 16) float32 of shaders/bvh/traverse_bvh2.h."""

    layout = "bvh2"


class Bvh8(Bvh):
    """An eight-wide BVH over the primitives of a Bvh2: nodes and leaves are lines of 64 bytes, (n, 16) float32."""

    layout = "bvh8"

    def __init__(self, device: Device, bvh: Bvh2):
        """Collapses a Bvh2 in two passes: the first counts lines, the second writes them."""
        super().__init__(device, device.buffer((1, LINE)), bvh.primitives, bvh.count, bvh.cost)
        self.host = bvh.host
        lines = self._collapse(bvh, self.nodes, 0)
        self.nodes = device.buffer((lines, LINE))
        assert self._collapse(bvh, self.nodes, lines) == lines

    def _collapse(self, bvh: Bvh2, lines: Buffer, capacity: int) -> int:
        """Writes at most `capacity` lines into `lines`; returns the number of lines that the BVH takes."""
        device, max_nodes = self.device, bvh.nodes.shape[0]
        queue = device.buffer((max_nodes, 2), "u4").fill(0)
        counts = device.buffer(2, "u4").write(np.array([1, ROOT_AND_EMPTY_LEAF], "u4"))  # nodes, lines
        # levels[k]: the index in `queue` of the first node of level k; next_level() writes levels[k + 2] after level k.
        levels = device.buffer(MAX_LEVELS + 2, "u4").write(np.append([0, 1], np.zeros(MAX_LEVELS)).astype("u4"))
        collapse, next_level = (
            device.kernel("bvh/collapse_bvh8.cu", entry, group_size=COLLAPSE_GROUP, STRICT=1)
            for entry in ("collapse_bvh8", "next_level")
        )
        for level in range(MAX_LEVELS):
            threads = min(max_nodes, 8 ** min(level, 8), MAX_COLLAPSE_THREADS)  # a level has at most 8^level nodes
            collapse(threads, bvh.nodes, bvh.primitives, queue, counts, levels, level, lines, capacity)
            next_level(1, counts, levels, level)
        return int(counts.read()[1])


def upload_primitives(device: Device, primitives: np.ndarray) -> Buffer:
    """Uploads primitives (m,) PRIMITIVE as rows (m, 12) float32; a buffer of one row where m is 0."""
    buffer = device.buffer((max(len(primitives), 1), 12))
    return buffer.write(primitives.view("f4").reshape(-1, 12)) if len(primitives) else buffer


def upload_bvh2(device: Device, primitives: np.ndarray, host: HostBvh) -> Bvh2:
    """Uploads a BVH that build_host_sah() has built over primitives (m,) PRIMITIVE."""
    nodes = device.buffer((len(host.nodes), 16)).write(host.nodes.view("f4").reshape(-1, 16))
    center_nodes(device, nodes)
    bvh = Bvh2(device, nodes, upload_primitives(device, primitives[host.order]), len(primitives), host.cost)
    bvh.host = host
    return bvh


def center_nodes(device: Device, nodes: Buffer) -> None:
    """Converts builders' nodes (n, 16), host_sah.NODE, to BVH2 nodes in place: min and max to center and half."""
    # CPUs have the kernel in the program that collapses BVH2 to BVH8: each further one costs PoCL 0.13 CPU seconds.
    on_cpu, count = device.properties.scalar_threads, nodes.shape[0]
    file, group = ("bvh/collapse_bvh8.cu", COLLAPSE_GROUP) if on_cpu else ("bvh/center_nodes.cu", GROUP)
    device.kernel(file, "center_nodes", group_size=group, STRICT=1)(count, nodes, count)
