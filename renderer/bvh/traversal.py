"""How rays traverse a BVH: the compile-time choice of pictures, and the same for sets of rays (bvh/ray_queries.cu)."""

from dataclasses import dataclass
from functools import cache

from renderer.bvh.layouts import Bvh
from renderer.gpu import Buffer, Device


@cache
def has_ballot(device: Device) -> bool:
    """Whether kernels of the device have warps of 32 with ballots (CUDA, NVIDIA OpenCL)."""
    answer = device.buffer(1, "u4")
    device.kernel("bvh/query_ballot.cu", "query_ballot", group_size=64)(1, answer)
    return bool(answer.read()[0])


@dataclass(frozen=True)
class TraversalConfig:
    """The traversal of one BVH.

    `constants` select it in shaders/raytracing/scene.h and in ray_queries.cu, where the kernels are closest_`kernels`
    and occluded_`kernels`, launched with `rays_per_thread` and `group_size`.
    """

    kernels: str
    rays_per_thread: int
    group_size: int
    constants: dict[str, int]


def traversal_of(bvh: Bvh) -> TraversalConfig:
    """The traversal that pictures use for a BVH: packets of 32 rays in a BVH8, else single rays."""
    if bvh.layout == "bvh8":
        return TraversalConfig("packet", 32, 16, {"BVH8": 1})
    return TraversalConfig("bvh2", 1, 64, {"BVH8": 0})


class RayQuery:
    """Closest or any hits of sets of rays, by the traversal of traversal_of."""

    def __init__(self, bvh: Bvh, any_hit: bool = False, spheres: bool = False):
        """Compiles the kernel; `spheres`: whether any primitive is a sphere."""
        config = traversal_of(bvh)
        self._bvh, self._rays_per_thread = bvh, config.rays_per_thread
        self.entry = f"{'occluded' if any_hit else 'closest'}_{config.kernels}"
        constants = dict(STRICT=1, SPHERES=int(spheres), **config.constants)
        self._kernel = bvh.device.kernel("bvh/ray_queries.cu", self.entry, group_size=config.group_size, **constants)

    def __call__(self, rays: Buffer, hits: Buffer, count: int) -> None:
        """Launches the kernel: rays (n, 2, 4) to hits (n, 4) float32, or with any_hit to (n,) uint32, 1 for a hit.

        A ray is its origin, t_max, its direction and a spare word. A hit is t, u, v and the primitive's index in leaf
        order as int32 bits, -1 for none.
        """
        threads = -(-count // self._rays_per_thread)
        self._kernel(threads, rays, hits, self._bvh.nodes, self._bvh.primitives, count)
