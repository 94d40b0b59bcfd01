"""DeviceColumns: the block columns of a band LU on one device, with their kernels, uploads, downloads and broadcasts.

For block_cyclic.py, which calls it for each step, and substitution.py. Storage of block columns: block_columns.py and
shaders/numerics/band_lu/band_lu.h. Kernels: panel_cluster.cu factors panels on GPUs with thread block clusters,
panel.cu elsewhere; trailing_update.cu and lookahead.cu update block columns; transfers.cu copies.
"""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from renderer.gpu import Buffer, Device
from renderer.gpu.device import Kernel, StagingBuffer
from renderer.numerics.band_lu.block_columns import BlockLayout, largest_divisor
from renderer.numerics.band_lu.memory import READBACKS, gather_chunk, upload_slots

FOLDER = "numerics/band_lu/"
LOCAL_BYTES = 48 << 10  # local memory per group that every GPU with clusters offers by default
LARGEST_LOCAL_BYTES = 220 << 10  # local memory that a group can reserve on such a GPU
PANEL_PADDING = 8  # rows between the columns of a panel in local memory, so that a warp uses different banks
MAX_BOUND_LAUNCHES = 1 << 15  # cached launches, some hundred bytes each
GROUP = 256  # work-items per group of most kernels
MAX_ABS_GROUPS = 32  # work-groups of the max-abs reduction of a block column
MAX_CLUSTER_THREADS = 768  # threads per group of a cluster: with more, each has too few registers
NARROW_ROWS = 640  # panels of at most so many rows are factored by one group, which is faster than a cluster
WIDE_CLUSTER, WIDE_ROWS = 16, 2048  # groups per cluster for panels of more than WIDE_ROWS rows, if the GPU allows it
NARROW_TILES = 264  # 64 x 64 tiles of a narrow update: two for each multiprocessor of an H200
LOOKAHEAD_BLOCKS = 64, 128, 192, 256  # block sizes that the look-ahead kernels support
SUBPANEL_SHAPES = (128, 16, 176), (256, 16, 168), (256, 8, 168), (512, 4, 80), (1024, 4, 40)
# (threads, columns, most registers per thread) of a sub-panel

Panel = tuple[Buffer, int, int]  # buffer, offset, leading dimension
PanelArguments = tuple[Buffer, np.uint64, int]  # the same as arguments of a kernel
Pivots = tuple[Buffer, int]  # of a panel: buffer, offset
PanelMemory = tuple[Panel, Pivots]
Key = tuple[object, ...]
Bound = TypeVar("Bound")
PhaseMark = Callable[[str, "DeviceColumns"], None]  # called with the name of a phase before it begins
Launches = list[tuple[str, Callable[[], None]]]  # (phase, launch)


def has_clusters(device: Device) -> bool:
    """True for GPUs with thread block clusters (CUDA compute capability 9); they also have float64 tensor cores."""
    return device.properties.max_cluster_size > 1


def subpanel_shape(rows: int, s: int, itemsize: int) -> tuple[int, int, int]:
    """(threads, columns, rows per thread) of panel.cu, which factors a sub-panel in the registers of one group.

    The last shape is taken if none fits: its registers spill to memory.
    """
    for threads, width, registers in SUBPANEL_SHAPES:
        thread_rows = -(-rows // threads)
        if s % width == 0 and thread_rows * width * (itemsize // 4) <= registers:
            break
    return threads, width, thread_rows


def panel_shape(rows: int, s: int, cluster: int, itemsize: int) -> dict[str, int] | None:
    """The constants of panel_cluster.cu for a panel of `rows` x s, by a cluster of `cluster` groups.

    None if the registers or the local memory do not suffice.
    """
    group_rows = -(-rows // cluster)
    thread_rows = -(-group_rows // MAX_CLUSTER_THREADS)
    threads = max(32 * -(-group_rows // (32 * thread_rows)), 64)
    for width in (16, 8, 4):
        # Bytes of factor_panel's local memory: `upper`, `moved`, pivot and diagonal rows, candidates; 2,048 for others.
        needed = (width * s + 2 * width * -(-s // cluster) + 3 * width * (cluster + 2)) * itemsize + 2048
        if s % width == 0 and needed <= LOCAL_BYTES and thread_rows * width * itemsize <= 512:
            pitch = threads * thread_rows + PANEL_PADDING
            fits_local = cluster == 1 and needed + pitch * s * itemsize <= LARGEST_LOCAL_BYTES
            constants = dict(GROUP=threads, ROWS=thread_rows, CLUSTER=cluster, INNER_BLOCK=width, BATCH=4)
            return constants | {"HELD_PITCH": pitch if fits_local else 0}
    return None


class DeviceColumns:
    """The block columns on device `index` of `devices` devices: block columns t with t mod devices = index.

    Block column t is stored in slot (t // devices) mod slots of `matrix`. Panels are factored on a priority queue, so
    that they overtake the updates in the main queue of the device.
    """

    def __init__(
        self,
        device: Device,
        index: int,
        devices: int,
        layout: BlockLayout,
        dtype: DTypeLike,
        is_resident: bool,
        use_vendor_gemm: bool,
        keeps_band: bool = False,
    ):
        self.device, self.index, self.devices, self.layout, self.dtype = device, index, devices, layout, np.dtype(dtype)
        needed = layout.p if is_resident else layout.u + 1
        self.slots = max(-(-needed // devices), 1)
        self.matrix = device.buffer(self.slots * layout.stride, dtype)
        self.pivots = device.buffer(layout.p * layout.s, "i4")
        self.max_abs = device.buffer((layout.p, MAX_ABS_GROUPS), dtype)
        self.max_abs.fill(0)  # block columns uploaded together write only the row of the first one
        self.band = device.buffer((layout.kl + layout.ku + 1, layout.n), dtype) if keeps_band else None
        self.info, self._panel_index = device.buffer(1, "i4"), device.buffer(1, "i4")
        step = self.dtype.itemsize
        self.pivots_in_panel = min(layout.l + 1, layout.p) * layout.s**2 * step // 4  # int32 offset behind the panel
        size = self.pivots_in_panel * 4 // step + layout.s
        self.panels = [device.buffer(size, dtype) for _ in range(2)]
        self.queue = device.priority_queue()
        self._update_event: object = None
        self._panel_event: object = None
        self._free_event: object = None
        self._broadcast_events: dict[int, object] = {}  # by the index of the receiving device
        self.upload_slots = upload_slots(layout, dtype, devices)
        self.upload_span = gather_chunk(layout, dtype) if is_resident and devices == 1 else 1
        column_bytes = (layout.kl + layout.ku + 1) * layout.s * step
        staged = self.upload_slots // self.upload_span
        self._columns = [device.staging_buffer(self.upload_span * column_bytes) for _ in range(staged)]
        self._readbacks = [device.readback_buffer(layout.stride * step) for _ in range(READBACKS)]
        self.vendor_blas = device.vendor_blas(dtype) if use_vendor_gemm else None
        self._panel_launches: Callable[[], None] | None = None
        self._launches: dict[Key, Any] = {}
        self._kernels: dict[Key, Kernel] = {}
        self._cluster = 0
        self._compile()

    def _compile(self) -> None:
        """Chooses and compiles the kernels of the factorization."""
        s, layout, group = self.layout.s, self.layout, GROUP
        is_double = self.dtype == np.float64
        rows = min(layout.l + 1, layout.p) * s
        self.tile = next(n for n in (64, 48, 32, 16) if s % n == 0)
        self.group_columns = largest_divisor(s, max(1, 1024 // s))
        # The compile-time inputs that band_lu.h describes.
        self._constants: dict[str, Any] = dict(
            S=s, REAL="double" if is_double else "float", DOUBLE=int(is_double), TILE_COLUMNS=self.tile,
            GROUP_COLUMNS=self.group_columns, TILE=largest_divisor(s, 4096 // s),
        )  # fmt: skip
        entries = "copy_elements", "broadcast_panel", "unpack_columns", "max_abs", "upper_stats"
        self._copy, self._broadcast, self._unpack, self._max_abs, self._stats = (
            self.kernel("transfers.cu", entry, group) for entry in entries
        )
        self._factor_panel = self._cluster_kernel(rows) if has_clusters(self.device) else None
        if not self._factor_panel:
            threads, self._inner_block, thread_rows = subpanel_shape(rows, s, self.dtype.itemsize)
            apply_rows = thread_rows if threads == group else -(-rows // group)
            constants = dict(INNER_BLOCK=self._inner_block, ROWS=thread_rows, APPLY_ROWS=apply_rows)
            self._advance_panel = self.kernel("panel.cu", "advance_panel", threads, **constants)
            self._factor_subpanel = self.kernel("panel.cu", "factor_subpanel", threads, **constants)
            self._apply_subpanel = self.kernel("panel.cu", "apply_subpanel", group, **constants)
        self._laswp, self._trsm = (self.kernel("trailing_update.cu", entry, group) for entry in ("laswp", "trsm_rows"))
        self._gemm = self.kernel("trailing_update.cu", "gemm_tiles", 4 * self.tile)
        self._lookahead: tuple[Kernel, Kernel] | None = None
        if has_clusters(self.device) and is_double and s in LOOKAHEAD_BLOCKS:
            swap_trsm, gemm = (self.kernel("lookahead.cu", f"lookahead_{name}", 256) for name in ("swap_trsm", "gemm"))
            self._lookahead = swap_trsm, gemm

    def _cluster_kernel(self, rows: int) -> Kernel | None:
        """The kernel that factors panels of `rows` rows by one cluster, whose size it sets; None if no size fits."""
        usual = self.device.properties.max_cluster_size
        sizes = (WIDE_CLUSTER, usual) if rows > WIDE_ROWS else (1, usual) if rows <= NARROW_ROWS else (usual,)
        for self._cluster in sizes:
            shape = panel_shape(rows, self.layout.s, self._cluster, self.dtype.itemsize)
            if shape:
                held_bytes = shape["HELD_PITCH"] * self.layout.s * self.dtype.itemsize
                kernel = self.kernel("panel_cluster.cu", "factor_panel", shape.pop("GROUP"), **shape)
                has_room = not held_bytes or kernel.reserve_local(held_bytes)
                if kernel.supports_cluster_size(self._cluster) and has_room:
                    return kernel
        return None

    def kernel(self, file: str, entry: str, group: int, **constants: int) -> Kernel:
        """A kernel of shaders/numerics/band_lu compiled for this layout and precision."""
        key = file, entry, group, tuple(constants.items())
        if key not in self._kernels:  # cached: preprocessing the text takes a millisecond
            self._kernels[key] = self.device.kernel(
                FOLDER + file, entry, group_size=group, **{**self._constants, **constants}
            )
        return self._kernels[key]

    def slot_offset(self, t: int) -> int:
        """The index in `matrix` of the first element of block column t."""
        return (t // self.devices) % self.slots * self.layout.stride

    def diagonal_offset(self, t: int) -> int:
        """The index in `matrix` of the first element of the diagonal block, and so of the panel, of block column t."""
        return self.slot_offset(t) + self.layout.u * self.layout.s

    def _span(self, t: int) -> tuple[int, StagingBuffer, tuple[int, int]]:
        """The end of the block columns from t on that are uploaded by one copy, their staging buffer and its shape.

        The shape is (kl + ku + 1, columns of the matrix in these block columns).
        """
        layout, end = self.layout, min(t + self.upload_span, self.layout.p)
        width = max(min(end * layout.s, layout.n) - t * layout.s, 0)
        staging = self._columns[t // self.devices // self.upload_span % len(self._columns)]
        return end, staging, (layout.kl + layout.ku + 1, width)

    def map_column(self, t: int) -> np.ndarray:
        """The host memory (kl + ku + 1, width) to be filled for upload_columns(t).

        It holds the columns of block columns t to t + upload_span - 1. At most `upload_slots` block columns may be
        mapped or in transfer at a time.
        """
        _end, staging, (rows, width) = self._span(t)
        count = rows * width * self.dtype.itemsize
        return np.asarray(staging.map()[:count].view(self.dtype).reshape(rows, width))

    def upload_columns(self, t: int) -> None:
        """Starts the upload of map_column(t), unpacks it into block columns and computes its max |a_ij|."""
        layout, (end, staging, (rows, width)) = self.layout, self._span(t)
        count = rows * width * self.dtype.itemsize
        offset, sizes = np.uint64(self.slot_offset(t)), (layout.n, layout.kl, layout.ku)

        def work(buffer: Buffer) -> None:
            """Unpacks uploaded columns on the device, keeps them if asked for, and finds their largest magnitude."""
            target = self.matrix, offset, t, width, *sizes, layout.u, layout.ld
            threads = (end - t) * layout.stride
            self._bound(("unpack", t), self._unpack.bind_launch, threads, buffer, *target, end - t)()
            if self.band:
                keep = self.kernel("transfers.cu", "keep_band", GROUP)
                columns = self.band, np.uint64(layout.n), np.uint64(t * layout.s), width
                self._bound(("keep", t), keep.bind_launch, rows * width, buffer, *columns, rows)()
            threads = MAX_ABS_GROUPS * self._max_abs.group_size
            self._bound(("max_abs", t), self._max_abs.bind_launch, threads, buffer, self.max_abs, t, width, *sizes)()

        staging.upload_then(count, work)

    def start_download(self, t: int) -> None:
        """Starts to copy block column t to the host."""
        stride, readback = self.layout.stride, self._readbacks[t // self.devices % READBACKS]
        offset = np.uint64(self.slot_offset(t))
        self._copy(stride, self.matrix, readback.buffer, offset, np.uint64(0), np.uint64(stride))
        readback.start_copy()

    def wait_download(self, t: int) -> np.ndarray:
        """Waits for start_download(t) and returns the elements (stride,) of block column t."""
        return self._readbacks[t // self.devices % READBACKS].wait().view(self.dtype)

    def reset(self) -> None:
        """Prepares for another factorization: clears `info` and restarts the panel counter of the recorded graph."""
        self.info.fill(0)
        # advance_panel adds `devices` before each panel of this device; the first is panel `index`
        self._panel_index.write(np.array([self.index - self.devices], "i4"))

    def factor_panel(self, i: int) -> None:
        """Factors panel i on the device, by one cluster or by sub-panels. Panels must be factored in order."""
        layout = self.layout
        sizes = (layout.p, layout.l, layout.u, layout.ld, self.devices, self.slots)
        if self._factor_panel:
            kernel = self._factor_panel
            threads = self._cluster * kernel.group_size
            self._bound(("panel", i), kernel.bind_launch, threads, self.matrix, i, self.pivots, self.info, *sizes)()
            return
        if self._panel_launches is None:
            self._panel_launches = self.device.capture_graph(lambda: self._launch_subpanels(sizes))
        self._panel_launches()

    def _bound(self, key: Key, make: Callable[..., Bound], *arguments: object) -> Bound:
        """make(*arguments), cached by `key`: converting the arguments of a launch takes longer than the launch."""
        bound: Bound | None = self._launches.get(key)
        if bound is None:
            bound = make(*arguments)
            if len(self._launches) < MAX_BOUND_LAUNCHES:
                self._launches[key] = bound
        return bound

    def panel_queue_waits_for_main(self) -> None:
        """Makes the panel queue wait for all work submitted to the main queue so far."""
        self._update_event = self.device.record_event(self._update_event)
        with self.queue:
            self.device.wait_event(self._update_event)

    def main_queue_waits_for_panels(self) -> None:
        """Makes the main queue wait for all work submitted to the panel queue so far."""
        with self.queue:
            self._panel_event = self.device.record_event(self._panel_event)
        self.device.wait_event(self._panel_event)

    def _launch_subpanels(self, sizes: tuple[int, ...]) -> None:
        s, width, factor, apply = self.layout.s, self._inner_block, self._factor_subpanel, self._apply_subpanel
        self._advance_panel(1, self._panel_index, self.devices)
        for first in range(0, s, width):
            factor(1, self.matrix, self._panel_index, first, self.pivots, self.info, *sizes)
            if s > width:
                apply((s - width) * apply.group_size, self.matrix, self._panel_index, first, self.pivots, *sizes)

    def broadcast_panel(self, i: int, others: list["DeviceColumns"], keep: bool) -> None:
        """Copies panel i, which this device factored, and its pivots into the panel buffers of the `others`.

        With `keep` also into the panel buffer of this device, for the time after the slot in the matrix is overwritten.
        """
        peers = [other for other in others if self.device.can_access_peer(other.device)]
        for other in peers:
            with other.queue:
                other._free_event = other.device.record_event(other._free_event)
            self.device.wait_event(other._free_event)
            self._broadcast_into(other, i)
            self._broadcast_events[other.index] = self.device.record_event(self._broadcast_events.get(other.index))
            with other.queue:
                other.device.wait_event(self._broadcast_events[other.index])
        if keep or len(peers) < len(others):
            self._broadcast_into(self, i)
        for other in others:
            if other not in peers:
                with other.queue:
                    other.panels[i % 2].copy_from(self.panels[i % 2])

    def _broadcast_into(self, other: "DeviceColumns", i: int) -> None:
        """Launches the copy of panel i and its pivots into the panel buffer of `other`."""
        s, rows, offset = self.layout.s, self.layout.panel_rows(i), np.uint64(self.diagonal_offset(i))
        source = self.matrix, self.pivots
        target = other.panels[i % 2], offset, self.layout.ld, rows, i * s, self.pivots_in_panel
        self._bound(("broadcast", i, other.index), self._broadcast.bind_launch, (rows + 1) * s, *source, *target)()

    def local_columns(self, first: int, last: int) -> tuple[int, int]:
        """The first block column on this device from `first` to `last`, and the number of them."""
        start = first + (self.index - first) % self.devices
        return start, max(0, (last - start) // self.devices + 1)

    def launch_step(
        self, i: int, first: int, count: int, panel_memory: PanelMemory, timestamp: PhaseMark, ahead: bool = False
    ) -> None:
        """Applies panel i to `count` block columns of this device from `first` on: interchanges, trsm and update.

        `panel_memory` is ((buffer, offset, ld) of panel i, (buffer, offset) of its pivots). `ahead` marks the
        look-ahead block column, which our own kernel updates, never the vendor's GEMM: that runs on the default stream,
        not on the priority queue. timestamp(phase, self) is called before each launch.
        """
        if count <= 0:
            return
        for phase, launch in self._bound((i, first, count), self._step_launches, i, first, count, panel_memory, ahead):
            timestamp(phase, self)
            launch()

    def _step_launches(self, i: int, first: int, count: int, panel_memory: PanelMemory, ahead: bool) -> Launches:
        """The launches of launch_step() with their phases."""
        layout, s = self.layout, self.layout.s
        groups = count * (s // self.group_columns)
        target = (i, first, count, layout.u, layout.ld, self.devices, self.slots)
        (buffer, offset, ld), pivots = panel_memory
        panel, rows = (buffer, np.uint64(offset), ld), layout.panel_rows(i)
        if self._lookahead and (ahead or self.is_narrow):
            return self._lookahead_launches(panel, pivots, rows, count, (i, first, *target[3:]))
        laswp = self._laswp.bind_launch(groups * self._laswp.group_size, self.matrix, *pivots, *target)
        trsm = self._trsm.bind_launch(groups * self._trsm.group_size, self.matrix, *panel, *target)
        if rows == s:
            update = []
        elif self.vendor_blas and not ahead:
            update = list(self._vendor_updates(i, first, count, panel_memory[0]))
        else:
            threads = -(-(rows - s) // 64) * (s // self.tile) * count * self._gemm.group_size
            update = [self._gemm.bind_launch(threads, self.matrix, *panel, rows, *target)]
        return [("laswp", laswp), ("trsm", trsm), *(("update", launch) for launch in update)]

    @property
    def is_narrow(self) -> bool:
        """True if a step updates so few tiles that the low-latency kernels of lookahead.cu are faster than cuBLAS."""
        layout = self.layout
        return layout.l * layout.u * (layout.s // 64) ** 2 <= NARROW_TILES

    def _lookahead_launches(
        self, panel: PanelArguments, pivots: Pivots, rows: int, count: int, target: tuple[int, ...]
    ) -> Launches:
        """The launches of launch_step() by the two kernels of lookahead.cu."""
        assert self._lookahead
        s, (swap_trsm, gemm) = self.layout.s, self._lookahead
        launches = [("trsm", swap_trsm.bind_launch(count * s * 32, self.matrix, *pivots, *panel, *target))]
        if rows > s:
            threads = count * (rows - s) // 64 * (s // 64) * gemm.group_size
            launches.append(("update", gemm.bind_launch(threads, self.matrix, *panel, rows, *target)))
        return launches

    def _vendor_updates(self, i: int, first: int, count: int, panel: Panel) -> Iterator[Callable[[], None]]:
        """One GEMM of the vendor's library for each run of adjacent slots.

        With one device a run is a single column-major matrix; with several it is a strided batch of block columns.
        """
        assert self.vendor_blas is not None
        layout, s, ld, devices = self.layout, self.layout.s, self.layout.ld, self.devices
        buffer, offset, panel_ld = panel
        below, bind_gemm = layout.panel_rows(i) - s, self.vendor_blas.bind_gemm_subtract
        while count:
            slot = first // devices % self.slots
            run = min(count, self.slots - slot)
            top = slot * layout.stride + (i - first + layout.u) * s
            left, upper, rest = (buffer, offset + s, panel_ld), (self.matrix, top, ld), (self.matrix, top + s, ld)
            if devices == 1:
                yield bind_gemm(below, run * s, s, left, upper, rest)
            else:
                # from a slot to the next, whose block column is devices * s rows further down
                gap = layout.stride - devices * s
                yield bind_gemm(below, s, s, left, upper, rest, (run, 0, gap, gap))
            first, count = first + run * devices, count - run

    def upper_stats(self) -> tuple[np.ndarray, np.ndarray]:
        """The maximum |u| of each column and the diagonal of U, (n,); 0 for the columns of other devices."""
        layout = self.layout
        max_abs, diagonal = (self.device.buffer(layout.n, self.dtype).fill(0) for _ in range(2))
        sizes = (layout.u, layout.ld, self.devices, self.slots)
        self._stats(self.slots * layout.s, self.matrix, max_abs, diagonal, layout.n, self.index, *sizes)
        return max_abs.read(), diagonal.read()
