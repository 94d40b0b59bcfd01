"""Queries of sets of rays, for tests and benches: the traversals that pictures compile, a baseline and brute force.

A ray (2, 4) float32 is its origin and t_max, then its direction and a spare word. A hit (4,) is t, u, v and the
primitive's index in leaf order as int32 bits, -1 for none.
"""

from pathlib import Path

from renderer.bvh.instances import Instances
from renderer.bvh.layouts import Bvh
from renderer.gpu import Buffer, Device
from renderer.gpu.device import Kernel
from renderer.gpu.kernel_source import GeneratedSource

SOURCE = GeneratedSource("ray_queries.cu", Path(__file__).with_suffix(".cu").read_text())


def query_kernel(device: Device, entry: str, **constants: int) -> Kernel:
    """The kernel `entry` of ray_queries.cu."""
    return device.kernel(SOURCE, entry, **(dict(group_size=64, SPHERES=0) | constants))


QUEUE_THREADS = 2048  # of each multiprocessor, which has no more resident


class RayQuery:
    """Closest or any hits of sets of rays, by the traversal that pictures use for a BVH.

    GPUs trace coherent rays one a thread. `incoherent` rays come from a queue, as in the later bounces of pictures, if
    the device has ballots.
    """

    def __init__(
        self, bvh: Bvh, any_hit: bool = False, spheres: bool = False, incoherent: bool = False, **constants: int
    ):
        """Compiles the kernel with `constants`; `spheres`: whether any primitive is a sphere."""
        packets = bvh.layout == "bvh8"
        queue = incoherent and not packets and bvh.device.properties.has_ballot
        self._bvh, self._rays_per_thread = bvh, 32 if packets else 1
        self._next = bvh.device.buffer(1, "u4") if queue else None
        kind = "packet" if packets else "queue" if queue else "bvh2"
        self.entry = f"{'occluded' if any_hit else 'closest'}_{kind}"
        group_size = 16 if packets else 64
        constants = dict(group_size=group_size, STRICT=1, SPHERES=int(spheres)) | constants
        self._kernel = query_kernel(bvh.device, self.entry, **constants)

    def __call__(self, rays: Buffer, hits: Buffer, count: int) -> None:
        """Launches the kernel: rays (n, 2, 4) to hits (n, 4) float32, or with any_hit to (n,) uint32, 1 for a hit."""
        arguments = rays, hits, self._bvh.nodes, self._bvh.primitives, count
        if self._next:
            resident = QUEUE_THREADS * self._bvh.device.properties.compute_units
            self._kernel(min(count, resident), *arguments, self._next.fill(0))
        else:
            self._kernel(-(-count // self._rays_per_thread), *arguments)


def closest_instanced(
    placed: Instances, rays: Buffer, hits: Buffer, instances: Buffer, count: int, spheres: bool
) -> None:
    """Traces rays (n, 2, 4) to hits (n, 4) and instances (n,) int32; primitives are indices of placed.ordered."""
    kernel = query_kernel(placed.device, "closest_instanced", STRICT=1, SPHERES=int(spheres))
    kernel(count, rays, hits, instances, count, *placed.kernel_args)
