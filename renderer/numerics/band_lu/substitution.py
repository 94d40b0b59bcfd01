"""The triangular solves L y = P b and U x = y, and the transposed ones, on the devices that have the factors.

Where groups form clusters, one launch makes a whole sweep (solve_clusters.cu); elsewhere, and where the inverse of a
triangle is large, each block column is a launch (solve_blocked.cu), recorded as a graph.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from renderer.errors import UnavailableError
from renderer.gpu import Buffer
from renderer.gpu.device import Kernel
from renderer.numerics.band_lu.device_columns import WIDE_CLUSTER, DeviceColumns, has_clusters

FILE, FUSED_FILE, TRANSPOSED_FILE = "solve_blocked.cu", "solve_fused.cu", "solve_transposed.cu"
CLUSTERS_FILE = "solve_clusters.cu"
SWEPT_BLOCKS = 32, 64, 96, 128  # block sizes of solve_clusters.cu: a group has four threads a column
SWEPT_RHS = 1, 2, 4  # right-hand sides of a cluster
INVERTED_COLUMNS = 32  # that a group of invert_triangles computes
FUSED_BLOCK = 32  # the block whose triangle one warp solves in registers
FUSED_MAX_GROUP = {"f4": 1024, "f8": 512}  # threads that can each hold a row of FUSED_BLOCK factors
FUSED_MAX_RHS = 16
KEPT_COUNTS = 2  # numbers of right-hand sides, beside the last one, whose buffers and graphs are kept
MAX_GRAPH_STEPS = 4096  # block columns whose substitution is recorded as one graph

Launches = Iterator[Callable[[], None]]


@dataclass
class _Vectors:
    """One device's b, y and x (count, p s) for `count` right-hand sides, and two windows (count, reach)."""

    b: Buffer
    y: Buffer
    x: Buffer
    windows: list[Buffer]
    sides: Buffer  # (2, count, s): of one triangle, or of two in turn

    @property
    def count(self) -> int:
        """The number of right-hand sides."""
        return self.b.shape[0]


class Substitution:
    """Forward and backward substitution where the factors are: on one device, or handed along from device to device.

    The owner of block column i makes step i; the window of rows that the step changes goes on to the next owner, so
    that x has the same bits on any number of devices. Launches are recorded at the first use.
    """

    def __init__(self, per_device: list[DeviceColumns]):
        self._per_device, self.columns, self.layout = per_device, per_device[0], per_device[0].layout
        layout = self.layout
        self._window = (layout.l + 1) * layout.s
        self._reach = max(self._window, layout.u * layout.s)
        self._permutations = [c.device.buffer((layout.p, self._window), "i4") for c in per_device]
        self._has_pivots = self._has_inverses = self._is_swept = False
        self._inverses: list[tuple[Buffer, Buffer]] = []  # of each device's lower and upper triangles
        self._vectors: list[_Vectors] = []
        self._recorded: dict[tuple[str, bool], Callable[[], None]] = {}
        self._kept: dict[int, tuple[list[_Vectors], dict[tuple[str, bool], Callable[[], None]]]] = {}

    def invalidate_pivots(self) -> None:
        """Makes permutations and inverses again at the next solve, which is with other factors."""
        self._has_pivots = self._has_inverses = False

    def solve(self, rhs: np.ndarray, panel_pivots: np.ndarray, transposed: bool) -> np.ndarray:
        """The solutions of A x = b, or of A^T x = b, for right-hand sides (m, p s), zero from column n on."""
        if not transposed and len(self._per_device) == 1:
            buffer = self.columns.device.buffer(rhs.shape, rhs.dtype).write(rhs)
            self.solve_in_place(buffer, panel_pivots)
            return buffer.read()
        self._prepare(len(rhs), panel_pivots)
        self._invert()
        for vectors in self._vectors:
            vectors.b.write(rhs)
        blocks, count = np.arange(self.layout.p), len(self._per_device)
        if transposed:
            self._run("upper_transposed")
            self._run("lower_transposed")
            owners = np.maximum(blocks - self.layout.l, 0) % count  # who undoes the last interchange of a block
        else:
            self._run("forward")
            y = self._merge([vectors.y for vectors in self._vectors], blocks % count)
            for vectors in self._vectors:
                vectors.y.write(y)
            self._run("backward")
            owners = blocks % count
        return self._merge([vectors.x for vectors in self._vectors], owners)

    def _merge(self, parts: list[Buffer], owners: np.ndarray) -> np.ndarray:
        """The blocks (m, p s) that each device has made: block i is owners[i]'s."""
        merged = parts[0].read()
        for index, part in enumerate(parts[1:], 1):
            own = np.repeat(owners == index, self.layout.s)
            merged[:, own] = part.read()[:, own]
        return merged

    def solve_in_place(self, rhs: Buffer, panel_pivots: np.ndarray) -> None:
        """Replaces right-hand sides (m, p s), zero from column n on, on the one device by the solutions."""
        layout, count = self.layout, rhs.shape[0]
        assert rhs.shape[1] == layout.p * layout.s and rhs.dtype == self.columns.dtype
        if self.is_fused and count <= FUSED_MAX_RHS:
            self._upload_pivots(panel_pivots)
            self._solve_fused(rhs)
            return
        self._prepare(count, panel_pivots)
        self._invert()
        (vectors,) = self._vectors
        vectors.b.copy_from(rhs)
        self._run("forward")
        self._run("backward")
        rhs.copy_from(vectors.x)

    def _upload_pivots(self, panel_pivots: np.ndarray) -> None:
        if self._has_pivots:
            return
        for columns, permutations in zip(self._per_device, self._permutations, strict=True):
            pivots = columns.device.buffer(len(panel_pivots), "i4").write(panel_pivots)
            compose = columns.kernel(CLUSTERS_FILE, "compose_permutations", columns.plan.solve_group)
            compose(self.layout.p * compose.group_size, pivots, permutations, self._window)
        self._has_pivots = True

    def _invert(self) -> None:
        """The inverses of the diagonal blocks' triangles, where sweeps are by clusters.

        None where one is large or a device has no room for them: x is found by substitution then.
        """
        if self._has_inverses or not self.can_sweep:
            return
        dtype, flags = self.columns.dtype, []
        self._has_inverses, self._is_swept = True, self._has_room_for_inverses()
        for columns, inverses in zip(self._per_device, self._inverses, strict=self._is_swept):
            flags.append(columns.device.buffer(1, "u4").fill(0))
            invert = columns.kernel(CLUSTERS_FILE, "invert_triangles", 256)
            threads = 2 * columns.slots * (self.layout.s // INVERTED_COLUMNS) * invert.group_size
            limit = dtype.type(np.finfo(dtype).eps ** -0.5)
            storage = columns.index, self.layout.p, self.layout.u, self.layout.ld, columns.devices, columns.slots
            invert(threads, columns.matrix, *inverses, flags[-1], limit, *storage)
        if any(int(flag.read()[0]) for flag in flags):
            self._is_swept = False

    def _has_room_for_inverses(self) -> bool:
        """Allocates them on every device, or on none."""
        shape = self.columns.slots, self.layout.s, self.layout.s
        try:
            for columns in self._per_device[len(self._inverses) :]:
                made = [columns.device.buffer(shape, columns.dtype) for _ in range(2)]
                self._inverses.append((made[0], made[1]))
        except UnavailableError:
            self._inverses.clear()
        return bool(self._inverses)

    def _prepare(self, count: int, panel_pivots: np.ndarray) -> None:
        """Pivots, and vectors for `count` right-hand sides, on every device."""
        self._upload_pivots(panel_pivots)
        if self._vectors and self._vectors[0].count == count:
            return
        layout, dtype = self.layout, self.columns.dtype
        if self._vectors:
            self._kept[self._vectors[0].count] = self._vectors, self._recorded
        self._vectors, self._recorded = self._kept.pop(count, ([], {}))
        while len(self._kept) > KEPT_COUNTS:
            del self._kept[next(iter(self._kept))]
        if self._vectors:
            return
        for columns in self._per_device:
            make = partial(columns.device.buffer, dtype=dtype)
            b, y, x = (make((count, layout.p * layout.s)) for _ in range(3))
            windows = [make((count, self._reach)) for _ in range(2)]
            self._vectors.append(_Vectors(b, y, x, windows, make((2, count, layout.s))))

    def _run(self, sweep: str) -> None:
        """Launches all steps of a sweep: of forward, backward, upper_transposed or lower_transposed."""
        key = sweep, self._is_swept
        if key not in self._recorded:
            if self._is_swept and len(self._per_device) == 1:
                (vectors,), steps = self._vectors, range(self.layout.p)
                self._recorded[key] = self._sweep(sweep, steps, self.columns, vectors, *vectors.windows)
            elif len(self._per_device) > 1:
                self._recorded[key] = partial(_launch_all, list(self._launches(sweep)))
            else:
                work = lambda: _launch_all(self._launches(sweep))  # noqa: E731
                is_short = self.layout.p <= MAX_GRAPH_STEPS
                self._recorded[key] = self.columns.device.capture_graph(work) if is_short else work
        self._recorded[key]()

    def _launches(self, sweep: str) -> Iterator[Callable[[], None]]:
        """The launches of each step on the owner of its block column; the next owner gets the changed window."""
        ascending = range(self.layout.p)
        steps = ascending if sweep in ("forward", "upper_transposed") else ascending[::-1]
        make, count = getattr(self, f"_{sweep}"), len(self._per_device)
        for number, i in enumerate(steps):
            owner = i % count
            windows = self._vectors[owner].windows
            turn = number % 2 if count == 1 else 0
            place = self._per_device[owner], self._vectors[owner], windows[turn], windows[1 - turn]
            if self._is_swept:
                yield self._sweep(sweep, range(i, i + 1), *place)
            else:
                yield from make(i, *place)
            if count > 1 and number + 1 < len(steps):
                target = self._vectors[steps[number + 1] % count].windows[0]
                yield partial(_copy, target, windows[1])

    @cached_property
    def can_sweep(self) -> bool:
        """Whether clusters can solve: not where one group is enough, so that x has the same bits on any devices."""
        can = self.layout.s in SWEPT_BLOCKS and not self.is_fused
        return can and all(has_clusters(columns.device) for columns in self._per_device)

    def _sweep(
        self, sweep: str, steps: range, columns: DeviceColumns, vectors: _Vectors, now: Buffer, following: Buffer
    ) -> Callable[[], None]:
        """The launch of some steps of a sweep by clusters, a few right-hand sides each."""
        layout, count = self.layout, vectors.count
        rhs = next((r for r in SWEPT_RHS if r >= count), SWEPT_RHS[-1])
        kernel, cluster = self._cluster_kernel(f"{sweep}_sweep", columns, rhs)
        lower, upper = self._inverses[columns.index]
        permutations = self._permutations[columns.index], self._window
        sizes = steps.start, steps.stop, layout.p, self._reach, layout.p * layout.s, count
        storage = layout.u, layout.ld, columns.devices, columns.slots
        places: tuple[Any, ...] = {
            "forward": (lower, vectors.b, vectors.y, now, following, *permutations),
            "backward": (upper, vectors.y, vectors.x, now, following),
            "upper_transposed": (upper, vectors.b, vectors.y, now, following, vectors.sides, int(columns.devices > 1)),
            "lower_transposed": (lower, vectors.y, vectors.x, now, following, vectors.sides, *permutations),
        }[sweep]
        threads = -(-count // rhs) * cluster * kernel.group_size
        return kernel.bind_launch(threads, columns.matrix, *places, *sizes, *storage)

    def _cluster_kernel(self, entry: str, columns: DeviceColumns, rhs: int) -> tuple[Kernel, int]:
        """A sweep's kernel for the largest cluster that has work and that the device runs, and its groups."""
        s, usual = self.layout.s, columns.device.properties.max_cluster_size
        rows = self._window - s if entry in ("forward_sweep", "lower_transposed_sweep") else self.layout.u * s
        needed = 1 << max(-(-rows // (s // 2)) - 1, 0).bit_length()
        for cluster in (min(needed, WIDE_CLUSTER), min(needed, usual)):
            kernel = columns.kernel(CLUSTERS_FILE, entry, 4 * s, CLUSTER=cluster, RHS_PER_GROUP=rhs)
            if kernel.supports_cluster_size(cluster):
                break
        return kernel, cluster

    @property
    def is_fused(self) -> bool:
        """Whether one group has a thread for every row that a step changes: then each solve is one launch."""
        rows = max(self._window, (self.layout.u + 1) * self.layout.s)
        fits = self.layout.s == FUSED_BLOCK and rows <= FUSED_MAX_GROUP[self.columns.dtype.str[1:]]
        return fits and not self.columns.plan.is_cpu

    def _solve_fused(self, rhs: Buffer) -> None:
        layout, columns, (count, padded_n) = self.layout, self.columns, rhs.shape
        rhs_per_group = min(count, 4 if columns.dtype == np.float32 else 2)
        above = layout.u * layout.s
        sizes = dict(RHS_PER_GROUP=rhs_per_group, WINDOW=self._window, ABOVE=above)
        forward = columns.kernel(FUSED_FILE, "forward_fused", -(-self._window // 32) * 32, **sizes)
        backward = columns.kernel(FUSED_FILE, "backward_fused", -(-(above + layout.s) // 32) * 32, **sizes)
        groups, rest = -(-count // rhs_per_group), (layout.p, padded_n, count, layout.u, layout.ld)
        forward(groups * forward.group_size, columns.matrix, rhs, self._permutations[0], *rest)
        backward(groups * backward.group_size, columns.matrix, rhs, *rest)

    def _kernel(self, columns: DeviceColumns, file: str, entry: str, group: int) -> tuple[Kernel, int]:
        """A kernel for the number of right-hand sides, and the groups that take a part of them each."""
        count = self._vectors[0].count
        most = min(count, columns.plan.rhs_per_group[-1], max(1, 1024 // self.layout.s))
        rhs_per_group = next(r for r in columns.plan.rhs_per_group if r >= most)
        return columns.kernel(file, entry, group, RHS_PER_GROUP=rhs_per_group), -(-count // rhs_per_group)

    def _forward(self, i: int, columns: DeviceColumns, vectors: _Vectors, now: Buffer, following: Buffer) -> Launches:
        layout, s, group = self.layout, self.layout.s, columns.plan.solve_group
        kernel, chunks = self._kernel(columns, FILE, "forward_step", group)
        rows, changed = layout.panel_rows(i), layout.panel_rows(i - 1) - s if i else 0
        threads = chunks * max(-(-(rows - s) // group), 1) * group
        places = vectors.b, vectors.y, now, following, self._permutations[columns.index], self._top(columns, i)
        sizes = (self._window, self._reach, layout.p * s, vectors.count, layout.ld)
        yield kernel.bind_launch(threads, columns.matrix, *places, i, rows, changed, *sizes)

    def _backward(self, i: int, columns: DeviceColumns, vectors: _Vectors, now: Buffer, following: Buffer) -> Launches:
        layout, s, group = self.layout, self.layout.s, columns.plan.solve_group
        kernel, chunks = self._kernel(columns, FILE, "backward_step", group)
        above, changed = min(i, layout.u) * s, min(i + 1, layout.u) * s if i + 1 < layout.p else 0
        threads = chunks * max(-(-above // group), 1) * group
        places = vectors.y, vectors.x, now, following, self._top(columns, i)
        sizes = (self._reach, layout.p * s, vectors.count, layout.u, layout.ld)
        yield kernel.bind_launch(threads, columns.matrix, *places, i, above, changed, *sizes)

    def _upper_transposed(
        self, i: int, columns: DeviceColumns, vectors: _Vectors, now: Buffer, following: Buffer
    ) -> Launches:
        layout, s = self.layout, self.layout.s
        above = min(i, layout.u) * s
        yield self._products(columns, vectors, vectors.b, i, (-above, above), now, layout.u * s - above)
        kernel, chunks = self._kernel(columns, TRANSPOSED_FILE, "upper_transposed", columns.plan.solve_group)
        places = self._top(columns, i), vectors.sides, vectors.y, now, following
        sizes = (self._reach, layout.p * s, vectors.count, layout.u, layout.ld)
        yield kernel.bind_launch(chunks * kernel.group_size, columns.matrix, *places, i, *sizes)

    def _lower_transposed(
        self, i: int, columns: DeviceColumns, vectors: _Vectors, now: Buffer, following: Buffer
    ) -> Launches:
        layout, s, rows = self.layout, self.layout.s, self.layout.panel_rows(i)
        yield self._products(columns, vectors, vectors.y, i, (s, rows - s), now, 0)
        kernel, chunks = self._kernel(columns, TRANSPOSED_FILE, "lower_transposed", columns.plan.solve_group)
        places = self._top(columns, i), vectors.sides, vectors.x, now, following, self._permutations[columns.index]
        first_final = layout.l * s if i else 0
        sizes = (self._window, self._reach, layout.p * s, vectors.count, layout.ld)
        yield kernel.bind_launch(chunks * kernel.group_size, columns.matrix, *places, i, rows, first_final, *sizes)

    def _products(
        self,
        columns: DeviceColumns,
        vectors: _Vectors,
        base: Buffer,
        i: int,
        part: tuple[int, int],
        values: Buffer,
        first: int,
    ) -> Callable[[], None]:
        """sides = block i of `base` minus the products of part (first row, rows) of its columns with values[first:]."""
        layout, s = self.layout, self.layout.s
        kernel, chunks = self._kernel(columns, TRANSPOSED_FILE, "subtract_column_products", columns.plan.solve_group)
        at = np.uint64(columns.diagonal_offset(i) + part[0])
        sizes = (values, first, self._reach, base, i * s, layout.p * s, vectors.sides, vectors.count)
        return kernel.bind_launch(chunks * s * kernel.group_size, columns.matrix, at, part[1], layout.ld, *sizes)

    @staticmethod
    def _top(columns: DeviceColumns, i: int) -> np.uint64:
        return np.uint64(columns.diagonal_offset(i))


def _launch_all(launches: Iterable[Callable[[], None]]) -> None:
    for launch in launches:
        launch()


def _copy(target: Buffer, source: Buffer) -> None:
    target.copy_from(source)
