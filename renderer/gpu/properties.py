"""Plain data about a device: the properties that decide launch configurations, and counts of its operations.

For every back end (CUDA, OpenCL, GL) and the code that launches kernels; no module of a driver is imported.
"""

from renderer.records import dataclass


@dataclass
class Counters:
    """Exact counts of a device's operations since it was opened; performance tests assert that none rises."""

    launches: int = 0
    uploads: int = 0
    uploaded_bytes: int = 0
    downloads: int = 0
    allocations: int = 0
    allocated_bytes: int = 0

    def count_upload(self, nbytes: int) -> None:
        """Counts a copy of `nbytes` to the device."""
        self.uploads += 1
        self.uploaded_bytes += nbytes

    def count_allocation(self, nbytes: int) -> None:
        """Counts device memory of `nbytes` that a buffer or texture takes."""
        self.allocations += 1
        self.allocated_bytes += nbytes


@dataclass(frozen=True)
class DeviceProperties:
    """Device properties that determine launch configurations.

    `compute_units` execute work-groups concurrently; `warp_size` threads execute in lockstep. If warp_size is 1 (CPUs),
    each work-item should process a contiguous range of data with vector types. `max_cluster_size` is the number of
    groups of a thread block cluster, which can write to one another's shared memory.
    """

    compute_units: int
    warp_size: int
    memory_bytes: int
    max_buffer_bytes: int
    has_fp64: bool
    max_cluster_size: int = 1
    has_ballot: bool = False  # kernels have warps of 32 threads with ballots: HAS_BALLOT of shaders/common/portable.h
    has_async_copy: bool = False  # cp.async: copies global to shared memory while the thread computes
    has_bulk_copy: bool = False  # cp.async.bulk: one thread copies many bytes from global to shared memory
    simd_width: int = 1  # floats in a work-item's vector register
    local_bytes: int = 48 << 10  # local memory available to a group (Kernel.reserve_local)

    @property
    def scalar_threads(self) -> bool:
        """True if threads do not execute in lockstep (warp_size is 1): CPUs."""
        return self.warp_size == 1
