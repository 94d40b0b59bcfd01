"""Node layouts of BVHs on a device: what all of them offer, and BVH2, the layout that every builder writes.

bvh8.py makes the other layout from a BVH2. The names follow tinybvh.
"""

import numpy as np

from renderer.bvh.host_sah import HostBvh
from renderer.gpu import Buffer, Device

GROUP = 256
COLLAPSE_GROUP = 16  # threads of bvh/collapse_bvh8.cu


class Bvh:
    """A BVH on a device: its nodes, and its primitives in the order of its leaves.

    `primitives` holds records of primitives.PRIMITIVE, (count, 12) float32. A presplit BVH has more of them than the
    scene: a primitive occurs once for each of its references. `cost` is the SAH cost, in visits of a node or tests of a
    primitive by a ray that hits the root's box and nothing else; 0 where it was not computed.
    """

    layout = ""

    def __init__(self, device: Device, nodes: Buffer, primitives: Buffer, count: int, cost: float):
        """Keeps what a builder has made."""
        self.device, self.nodes, self.primitives, self.count, self.cost = device, nodes, primitives, count, cost


class Bvh2(Bvh):
    """A binary BVH: nodes (n, 16) float32 of shaders/bvh/traverse_bvh2.h, at most 64 levels."""

    layout = "bvh2"


def upload_primitives(device: Device, primitives: np.ndarray) -> Buffer:
    """Uploads primitives (m,) PRIMITIVE as rows (m, 12) float32; a buffer of one row where m is 0."""
    buffer = device.buffer((max(len(primitives), 1), 12))
    return buffer.write(primitives.view("f4").reshape(-1, 12)) if len(primitives) else buffer


def upload_bvh2(device: Device, primitives: np.ndarray, host: HostBvh) -> Bvh2:
    """Uploads a BVH that the host has built over primitives (m,) PRIMITIVE."""
    nodes = device.buffer((len(host.nodes), 16)).write(host.nodes.view("f4").reshape(-1, 16))
    center_nodes(device, nodes)
    return Bvh2(device, nodes, upload_primitives(device, primitives[host.order]), len(primitives), host.cost)


def center_nodes(device: Device, nodes: Buffer) -> None:
    """Turns nodes (n, 16) of builders, host_sah.NODE, into those of BVH2: boxes by center and half extent."""
    count = nodes.shape[0]
    if device.properties.scalar_threads:  # collapse_bvh8.cu has it too
        center = device.kernel("bvh/collapse_bvh8.cu", "center_nodes", group_size=COLLAPSE_GROUP, STRICT=1)
    else:
        center = device.kernel("bvh/center_nodes.cu", "center_nodes", group_size=GROUP, STRICT=1)
    center(count, nodes, count)
