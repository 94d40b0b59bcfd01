"""BVH2 with nodes of 32 bytes instead of 64, on a grid over the scene (bvh/quantize_bvh2.cu); for GPUs.

Against bvh2, with the same traversal, on an H200 (tests/fps/results/h200_traversals.jsonl): 1.14 times the incoherent
rays a second in a terrain, 1.20 times in a Menger sponge and a sphereflake.
"""

from renderer.bvh.layouts import Bvh, Bvh2
from renderer.gpu import Device

GROUP = 128
MIN_NODES = 4000  # fewer fit into a multiprocessor's cache at 64 bytes, too
MAX_COARSE_FRACTION = 0.1  # of the boxes; a scene with small things in a large place has more


def has_ballot(device: Device) -> bool:
    """Whether kernels of the device have warps of 32 with ballots and byte permutes."""
    answer = device.buffer(1, "u4")
    device.kernel("bvh/quantize_bvh2.cu", "query_ballot", group_size=GROUP, STRICT=1)(1, answer)
    return bool(answer.read()[0])


class QuantizedBvh2(Bvh):
    """A BVH over the primitives of a Bvh2: nodes (n + 1, 8) uint32, of which the first is the grid.

    `coarse` is the fraction of its boxes whose surface grew by more than 10 %.
    """

    layout = "bvh2_quantized"

    def __init__(self, bvh: Bvh2):
        """Quantizes the boxes of a Bvh2 on its device."""
        device, count = bvh.device, bvh.nodes.shape[0]
        super().__init__(device, device.buffer((count + 1, 8), "u4"), bvh.primitives, bvh.count, bvh.cost)
        coarse_boxes = device.buffer(1, "u4")
        fit_grid, quantize_nodes = (
            device.kernel("bvh/quantize_bvh2.cu", name, group_size=GROUP, STRICT=1)
            for name in ("fit_grid", "quantize_nodes")
        )
        fit_grid(1, bvh.nodes, self.nodes, coarse_boxes)
        quantize_nodes(count, bvh.nodes, count, self.nodes, coarse_boxes)
        self.coarse = float(coarse_boxes.read()[0]) / (2 * count)


def quantized_if_faster(bvh: Bvh2) -> Bvh:
    """The quantized BVH where that is traversed faster, else the one given."""
    if bvh.nodes.shape[0] < MIN_NODES or not has_ballot(bvh.device):
        return bvh
    quantized = QuantizedBvh2(bvh)
    return quantized if quantized.coarse <= MAX_COARSE_FRACTION else bvh
