"""One device's part of a band LU: its block columns, the kernels that work on them and the stages they come through."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np

from renderer.gpu import Device
from renderer.host import available_cores
from renderer.numerics.band_lu.block_columns import Layout, divisor
from renderer.numerics.band_lu.memory import TRAYS, bunch, loads

STORAGE, LEAVES, CLUSTER = (
    "numerics/band_lu/transfers.cu",
    "numerics/band_lu/panel.cu",
    "numerics/band_lu/panel_cluster.cu",
)
UPDATE, AHEAD = "numerics/band_lu/trailing_update.cu", "numerics/band_lu/lookahead.cu"
LOCAL_BYTES = 48 << 10  # that every GPU with clusters has without being asked for more
COPIERS = 16  # threads that gather block columns from the rows of ab
MOST_BOUND = 1 << 15  # launches whose arguments are kept, some hundred bytes each
EXTREMES = 32  # groups that look for the largest element of a block column
MOST_THREADS = 768  # of a group of a cluster: more have too few registers
WIDE_CLUSTER, WIDE_ROWS = 16, 2048  # groups for a panel of more rows, where a GPU takes so many
SIZES_AHEAD = 64, 128, 192, 256  # block sizes that the kernels for the next block column take
LEAF_SHAPES = (128, 16, 176), (256, 16, 168), (256, 8, 168), (512, 4, 80), (1024, 4, 40)  # threads, columns, registers


def leaf_shape(rows: int, s: int, itemsize: int, wide: bool) -> tuple[int, int, int]:
    """Threads, columns and rows a thread of the kernel that factors a piece of a panel in one group's registers."""
    if not wide:
        held = -(-rows // 16)
        return 16, 8, 1 << (held - 1).bit_length()  # few texts to compile; a CPU keeps them in memory anyway
    for threads, width, registers in LEAF_SHAPES:
        held = -(-rows // threads)
        if s % width == 0 and held * width * (itemsize // 4) <= registers:
            break
    return threads, width, held


def supports_cluster_size(device: Device) -> bool:
    """Whether groups of the device can work on a panel together; its warps multiply small float64 matrices then."""
    return device.properties.max_cluster_size > 1


def panel_shape(rows: int, s: int, cluster: int, itemsize: int) -> dict[str, int] | None:
    """GROUP threads, ROWS of a thread and columns at a time of the kernel that factors a panel by a cluster.

    None where neither registers nor local memory suffice.
    """
    each = -(-rows // cluster)
    held = -(-each // MOST_THREADS)
    threads = max(32 * -(-each // (32 * held)), 64)
    for width in (16, 8, 4):
        needed = (width * s + 2 * width * -(-s // cluster) + 3 * width * (cluster + 2)) * itemsize + 2048
        if s % width == 0 and needed <= LOCAL_BYTES and held * width * itemsize <= 512:
            votes = int(cluster == WIDE_CLUSTER)  # 2% faster there, 4% slower with 8 groups
            return dict(GROUP=threads, ROWS=held, CLUSTER=cluster, WIDTH=width, BATCH=4, VOTES=votes)
    return None


class Share:
    """One device's block columns, the kernels that work on them and the stages they come through."""

    def __init__(self, device: Device, index: int, devices: int, layout: Layout, dtype, resident: bool, vendor: bool):
        self.device, self.index, self.devices, self.layout, self.dtype = device, index, devices, layout, np.dtype(dtype)
        needed = layout.p if resident else layout.u + 1
        self.slots = max(-(-needed // devices), 1)
        self.matrix = device.buffer(self.slots * layout.stride, dtype)
        self.pivots = device.buffer(layout.p * layout.s, "i4")
        self.largest = device.buffer((layout.p, EXTREMES), dtype)
        self.info, self._step = device.buffer(1, "i4"), device.buffer(1, "i4")
        step = self.dtype.itemsize
        self.pivots_in_panel = min(layout.l + 1, layout.p) * layout.s**2 * step // 4  # a panel, then its pivots
        size = self.pivots_in_panel * 4 // step + layout.s
        self.panels = [device.buffer(size, dtype) for _ in range(2)]
        self.queue = device.priority_queue()  # of panels, so that they overtake the updates
        self._updated = self._made = self._free = None  # the places that each queue was at last
        self._told: dict[int, object] = {}  # and at which it had published for another device
        self.loads = loads(layout, dtype, devices)
        self._columns = [
            device.staging_buffer((layout.kl + layout.ku + 1) * layout.s * step) for _ in range(self.loads)
        ]
        self._panels = [device.staging_buffer(layout.s * 4 + self.panels[0].nbytes) for _ in range(2)]
        self._trays = [device.readback_buffer(layout.stride * step) for _ in range(TRAYS)]
        self.product = device.vendor_blas(dtype) if vendor else None
        self._compile()

    def _compile(self) -> None:
        s, layout = self.layout.s, self.layout
        wide = not self.device.properties.scalar_threads
        word = {"f4": "float", "f8": "double"}[self.dtype.str[1:]]
        rows = min(layout.l + 1, layout.p) * s
        leaf, self.width, held = leaf_shape(rows, s, self.dtype.itemsize, wide)
        self.tile = next(n for n in (64, 48, 32, 16) if s % n == 0)
        self.group_columns = divisor(s, max(1, 1024 // s))
        middle = 256 if wide else 16
        self.sides = (1, 2, 4, 8) if wide else (4,)
        constants = dict(
            S=s, REAL=word, DOUBLE=int(word == "double"), TILE_COLUMNS=self.tile, GROUP_COLUMNS=self.group_columns,
            TILE=divisor(s, 4096 // s),
        )  # fmt: skip
        self._constants = constants
        storage = "copy_elements", "copy_panel", "copy_pivots", "publish_panel", "place_columns", "largest_element"
        self._copy, self._copy_panel, self._copy_pivots, self._publish, self._place, self._extremes, self._facts = (
            self.kernel(STORAGE, entry, middle) for entry in (*storage, "upper_facts")
        )
        self._factor_panel = self._cluster_kernel(rows) if supports_cluster_size(self.device) else None
        if not self._factor_panel:
            held_by = dict(WIDTH=self.width, ROWS=held, APPLY_ROWS=held if leaf == middle else -(-rows // middle))
            self._next_panel = self.kernel(LEAVES, "next_panel", leaf, **held_by)
            self._factor_leaf = self.kernel(LEAVES, "factor_leaf", leaf, **held_by)
            self._apply_leaf = self.kernel(LEAVES, "apply_leaf", middle, **held_by)
        self._swap, self._solve = (self.kernel(UPDATE, entry, middle) for entry in ("swap_rows", "solve_rows"))
        update, group = ("update_tiles", 4 * self.tile) if wide else ("update_runs", 16)
        self._update = self.kernel(UPDATE, update, group)
        self._solve_ahead = self._update_ahead = None
        if supports_cluster_size(self.device) and word == "double" and s in SIZES_AHEAD:
            self._solve_ahead, self._update_ahead = (
                self.kernel(AHEAD, entry, 256) for entry in ("solve_ahead", "update_ahead")
            )
        self._panel_launches = None
        self._launches: dict[tuple, Any] = {}

    def _cluster_kernel(self, rows: int):
        """The kernel that factors panels of so many rows by one cluster, of as many groups as are worth it, or None."""
        usual = self.device.properties.max_cluster_size
        for self._cluster in (WIDE_CLUSTER, usual) if rows > WIDE_ROWS else (usual,):
            shape = panel_shape(rows, self.layout.s, self._cluster, self.dtype.itemsize)
            if shape:
                kernel = self.kernel(CLUSTER, "factor_panel", shape.pop("GROUP"), **shape)
                if kernel.supports_cluster_size(self._cluster):
                    return kernel
        return None

    def kernel(self, file: str, entry: str, group: int, **constants):
        return self.device.kernel(file, entry, group_size=group, **{**self._constants, **constants})

    def slot_at(self, t: int) -> int:
        """The first element of block column t in the matrix."""
        return (t // self.devices) % self.slots * self.layout.stride

    def diagonal_at(self, t: int) -> int:
        """Where the diagonal block of block column t, and so its panel, begins."""
        return self.slot_at(t) + self.layout.u * self.layout.s

    def open_column(self, t: int) -> np.ndarray:
        """The memory (kl + ku + 1, width) from which load(t) goes on; `loads` block columns may be under way."""
        layout = self.layout
        shape = layout.kl + layout.ku + 1, max(min(layout.s, layout.n - t * layout.s), 0)
        count = shape[0] * shape[1] * self.dtype.itemsize
        return self._columns[t // self.devices % self.loads].map()[:count].view(self.dtype).reshape(shape)

    def load(self, t: int) -> None:
        """Starts to bring the block column t that was opened and filled to the device."""
        layout = self.layout
        width = max(min(layout.s, layout.n - t * layout.s), 0)
        count = (layout.kl + layout.ku + 1) * width * self.dtype.itemsize
        at, sizes = np.uint64(self.slot_at(t)), (layout.n, layout.kl, layout.ku)

        def work(buffer) -> None:
            where = self.matrix, at, t, width, *sizes, layout.u, layout.height
            self._bound(("place", t), self._place.bind_launch, layout.stride, buffer, *where)()
            threads = EXTREMES * self._extremes.group_size
            self._bound(("extremes", t), self._extremes.bind_launch, threads, buffer, self.largest, t, width, *sizes)()

        self._columns[t // self.devices % self.loads].upload_then(count, work)

    def fetch(self, t: int) -> None:
        """Starts to bring block column t home."""
        stride, tray = self.layout.stride, self._trays[t // self.devices % TRAYS]
        self._copy(stride, self.matrix, tray.buffer, np.uint64(self.slot_at(t)), np.uint64(0), np.uint64(stride))
        tray.start_copy()

    def fetched(self, t: int) -> np.ndarray:
        """The elements (stride,) of block column t; waits for its fetch."""
        return self._trays[t // self.devices % TRAYS].wait().view(self.dtype)

    def receive(self, i: int, panel: np.ndarray, pivots: np.ndarray) -> None:
        """Brings a panel (S, rows: its columns) that the host factored, and its pivots; the owner puts it in place."""
        s, rows = self.layout.s, panel.shape[1]
        stage = self._panels[i % 2]
        array = stage.map()
        array[: s * 4].view("i4")[:] = pivots
        count = s * 4 + panel.nbytes
        array[s * 4 : count].view(self.dtype).reshape(panel.shape)[:] = panel
        start = np.uint64(s * 4 // self.dtype.itemsize)

        def work(buffer) -> None:
            self._copy_pivots(s, buffer, self.pivots, i * s)
            self._copy_panel(rows * s, buffer, self.panels[i % 2], start, rows, np.uint64(0), rows, rows)
            if i % self.devices == self.index:
                place = np.uint64(self.diagonal_at(i))
                self._copy_panel(rows * s, buffer, self.matrix, start, rows, place, self.layout.height, rows)

        stage.upload_then(count, work)

    def rewind(self) -> None:
        """Makes the first of this device's panels the next one, and forgets zero pivots."""
        self.info.fill(0)
        self._step.write(np.array([self.index - self.devices], "i4"))

    def factor_panel(self, i: int) -> None:
        """Factors panel i, the next of this device's, on the device: by one cluster, or leaf by leaf."""
        layout = self.layout
        where = (layout.p, layout.l, layout.u, layout.height, self.devices, self.slots)
        if self._factor_panel:
            kernel = self._factor_panel
            threads = self._cluster * kernel.group_size
            self._bound(("panel", i), kernel.bind_launch, threads, self.matrix, i, self.pivots, self.info, *where)()
            return
        if self._panel_launches is None:
            self._panel_launches = self.device.capture_graph(lambda: self._launch_leaves(where))
        self._panel_launches()

    def _bound(self, key: tuple, make: Callable, *arguments) -> Callable[[], None]:
        """make(*arguments), made once: a launch's arguments take longer to convert than the launch takes."""
        if key not in self._launches:
            if len(self._launches) >= MOST_BOUND:
                return make(*arguments)
            self._launches[key] = make(*arguments)
        return self._launches[key]

    def panels_follow(self) -> None:
        """What the queue of panels gets now comes after what the device's own was given."""
        self._updated = self.device.record_event(self._updated)
        with self.queue:
            self.device.wait_event(self._updated)

    def follow_panels(self) -> None:
        """The reverse."""
        with self.queue:
            self._made = self.device.record_event(self._made)
        self.device.wait_event(self._made)

    def _launch_leaves(self, where: tuple) -> None:
        s, width, leaf, apply = self.layout.s, self.width, self._factor_leaf, self._apply_leaf
        self._next_panel(1, self._step, self.devices)
        for first in range(0, s, width):
            leaf(1, self.matrix, self._step, first, self.pivots, self.info, *where)
            if s > width:
                apply((s - width) * apply.group_size, self.matrix, self._step, first, self.pivots, *where)

    def publish(self, i: int, others: list["Share"], keep: bool) -> None:
        """Puts the panel that this device factored, and its pivots, in the panel buffers of the others.

        `keep` puts it in this device's own as well, for when its place is filled anew.
        """
        reached = [other for other in others if self.device.can_access_peer(other.device)]
        for other in reached:
            with other.queue:
                other._free = other.device.record_event(other._free)
            self.device.wait_event(other._free)
            self._publish_into(other, i)
            self._told[other.index] = self.device.record_event(self._told.get(other.index))
            with other.queue:
                other.device.wait_event(self._told[other.index])
        if keep or len(reached) < len(others):
            self._publish_into(self, i)
        for other in others:
            if other not in reached:
                with other.queue:
                    other.panels[i % 2].copy_from(self.panels[i % 2])

    def _publish_into(self, other: "Share", i: int) -> None:
        s, rows, at = self.layout.s, self.layout.rows(i), np.uint64(self.diagonal_at(i))
        where = self.matrix, self.pivots, other.panels[i % 2], at, self.layout.height, rows, i * s, self.pivots_in_panel
        self._bound(("publish", i, other.index), self._publish.bind_launch, (rows + 1) * s, *where)()

    def own(self, first: int, last: int) -> tuple[int, int]:
        """The first of this device's block columns from `first` to `last`, and how many there are."""
        start = first + (self.index - first) % self.devices
        return start, max(0, (last - start) // self.devices + 1)

    def step(self, i: int, first: int, count: int, place: tuple, marks, ahead: bool = False) -> None:
        """Swap, solve, update of `count` block columns from `first` on.

        place is (buffer, element, ld) of panel i and (buffer, element) of its pivots. `ahead` of the others a block
        column is updated by the own kernel on any number of devices.
        """
        if count <= 0:
            return
        for part, launch in self._bound((i, first, count), self._launches_of, i, first, count, place, ahead):
            marks(part, self)
            launch()

    def _launches_of(self, i: int, first: int, count: int, place: tuple, ahead: bool) -> list[tuple[str, Callable]]:
        """The launches of a step with the parts that they belong to."""
        layout, s = self.layout, self.layout.s
        groups = count * (s // self.group_columns)
        where = (i, first, count, layout.u, layout.height, self.devices, self.slots)
        (buffer, at, ld), pivots = place
        panel, rows = (buffer, np.uint64(at), ld), layout.rows(i)
        if ahead and self._solve_ahead:
            return self._launches_ahead(panel, pivots, rows, (i, first, *where[3:]))
        swap = self._swap.bind_launch(groups * self._swap.group_size, self.matrix, *pivots, *where)
        solve = self._solve.bind_launch(groups * self._solve.group_size, self.matrix, *panel, *where)
        if rows == s:
            update = []
        elif self.product and not ahead:
            update = list(self._updates_by_vendor(i, first, count, place[0]))
        elif not self.device.properties.scalar_threads:
            tiles = -(-(rows - s) // 64) * (s // self.tile) * count
            update = [self._update.bind_launch(tiles * self._update.group_size, self.matrix, *panel, rows, *where)]
        else:
            items = (rows - s) // 16 * (s // 4) * count
            update = [self._update.bind_launch(items, self.matrix, *panel, rows, *where)]
        return [("swap", swap), ("solve", solve), *(("update", launch) for launch in update)]

    def _launches_ahead(self, panel: tuple, pivots: tuple, rows: int, where: tuple) -> list[tuple[str, Callable]]:
        """The same for one block column, by kernels that take little time for it."""
        s, solve, update = self.layout.s, self._solve_ahead, self._update_ahead
        launches = [("solve", solve.bind_launch(s * 32, self.matrix, *pivots, *panel, *where))]
        if rows > s:
            tiles = (rows - s) // 64 * (s // 64)
            launches.append(
                ("update", update.bind_launch(tiles * update.group_size, self.matrix, *panel, rows, *where))
            )
        return launches

    def _updates_by_vendor(self, i: int, first: int, count: int, place: tuple) -> Iterator[Callable[[], None]]:
        """One product for each run of neighbouring slots: there block columns of one device are parts of one matrix."""
        layout, s, height, devices = self.layout, self.layout.s, self.layout.height, self.devices
        buffer, at, ld = place
        below, subtract = layout.rows(i) - s, self.product.bind_gemm_subtract
        while count:
            slot = first // devices % self.slots
            run = min(count, self.slots - slot)
            top = slot * layout.stride + (i - first + layout.u) * s
            left, upper, rest = (buffer, at + s, ld), (self.matrix, top, height), (self.matrix, top + s, height)
            if devices == 1:
                yield subtract(below, run * s, s, left, upper, rest)
            else:
                gap = layout.stride - devices * s
                yield subtract(below, s, s, left, upper, rest, (run, 0, gap, gap))
            first, count = first + run * devices, count - run

    def facts(self) -> tuple[np.ndarray, np.ndarray]:
        """The largest |u| and the diagonal of U by column (n,); zero where another device has the column."""
        layout = self.layout
        high, diagonal = (self.device.buffer(layout.n, self.dtype).fill(0) for _ in range(2))
        threads = self.slots * layout.s
        where = (layout.u, layout.height, self.devices, self.slots)
        self._facts(threads, self.matrix, high, diagonal, layout.n, self.index, *where)
        return high.read(), diagonal.read()


@cache
def _copiers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(min(available_cores(), COPIERS))


class Feed:
    """Brings the block columns of ab to the devices in order, gathered in bunches by several cores.

    Rows of a band are far apart in memory, so that a bunch is gathered in rows of several block columns, and the next
    bunch while the caller launches work on the last.
    """

    def __init__(self, shares: list[Share], ab: np.ndarray):
        layout = shares[0].layout
        self._shares, self._ab, self._width, self._end = shares, ab, layout.s, layout.p
        self._bunch, self._room = bunch(layout, ab.dtype), shares[0].loads * len(shares)
        self._jobs: deque[list[Future]] = deque()
        self._gathered = self._ready = self._sent = 0  # block columns: begun to be gathered, gathered, on their way

    def until(self, t: int) -> None:
        """Starts to bring all block columns to t that are not on their way yet."""
        while self._sent < min(t + 1, self._end):
            self._gather()
            if self._sent == self._ready:
                for job in self._jobs.popleft():
                    job.result()
                self._ready = min(self._ready + self._bunch, self._end)
            self._shares[self._sent % len(self._shares)].load(self._sent)
            self._sent += 1
        self._gather()

    def _gather(self) -> None:
        """Begins to gather what the stages have room for."""
        while self._gathered < self._end and self._gathered + self._bunch - self._sent <= self._room:
            columns = range(self._gathered, min(self._gathered + self._bunch, self._end))
            parts = [(self._shares[t % len(self._shares)].open_column(t), t * self._width) for t in columns]
            threads = min(available_cores(), COPIERS, max(1, len(parts) * parts[0][0].nbytes >> 17))
            bounds = np.linspace(0, len(self._ab), threads + 1).astype(int)
            jobs = [_copiers().submit(self._copy, parts, a, b) for a, b in zip(bounds, bounds[1:], strict=False)]
            self._jobs.append(jobs)
            self._gathered += len(columns)

    def _copy(self, parts: list, first: int, end: int) -> None:
        for part, column in parts:
            part[first:end] = self._ab[first:end, column : column + part.shape[1]]
