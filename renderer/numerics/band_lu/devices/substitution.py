"""Forward and backward substitution on the devices that hold the factors; for block_cyclic.py.

A sweep is one of the four triangular solves L y = P b, U x = y, U^T y = b, L^T z = y over all block columns; a step is
the work of a sweep for one block column. There are three implementations, chosen by Substitution:
- solve_sweeps.cu, on GPUs with thread block clusters: one launch per sweep, with inverted triangles. On an H200 4
  to 10 times as fast as steps for one right-hand side (assets/guides/band_lu.md).
- solve_steps.cu, elsewhere and if an inverse has too large elements: one or two launches per step.
- solve_one_group.cu, for narrow bands in blocks of 32 columns on any GPU: one launch per sweep, independent groups.
The three texts stay separate: their synchronization differs (cluster barriers, launches, group barriers), and so does
the arithmetic of a step, so a common text would consist of alternatives.

Letters as in block_columns.py: n columns in p block columns of s columns, l blocks below and u blocks above the
diagonal block; m right-hand sides, arrays (m, p s). The rows of a step are counted from the diagonal block of its block
column, and `window` = (l + 1) s is the number of rows that a panel can interchange.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from renderer.errors import UnavailableError
from renderer.gpu import Buffer
from renderer.gpu.device import Kernel
from renderer.numerics.band_lu.devices.device_columns import WIDE_CLUSTER, DeviceColumns, has_clusters
from renderer.records import dataclass

PREPARE_FILE, STEPS_FILE, SWEEPS_FILE = "solve_prepare.cu", "solve_steps.cu", "solve_sweeps.cu"
ONE_GROUP_FILE = "solve_one_group.cu"
SWEPT_BLOCKS = 32, 64, 96, 128  # block sizes of solve_sweeps.cu, whose groups have four threads per column
SWEPT_RHS = 1, 2, 4  # numbers of right-hand sides per cluster
STEPPED_RHS = 1, 2, 4, 8  # numbers of right-hand sides per group of solve_steps.cu
GROUP = 128  # work-items per group of solve_steps.cu
INVERTED_COLUMNS = 32  # columns of an inverse per group of invert_triangles
ONE_GROUP_BLOCK = 32  # the block whose triangle one warp solves in registers
ONE_GROUP_MAX_ROWS = {"f4": 1024, "f8": 512}  # threads whose registers hold a row of ONE_GROUP_BLOCK factors each
ONE_GROUP_MAX_RHS = 16
KEPT_COUNTS = 3  # numbers of right-hand sides for which buffers and graphs are cached
MAX_GRAPH_STEPS = 4096  # largest number of block columns of a sweep that is recorded as a graph

Launch = Callable[[], object]


class Sweep(NamedTuple):
    """A triangular solve over all block columns: with U or L, transposed or not."""

    upper: bool
    transposed: bool

    @property
    def is_first(self) -> bool:
        """True for the first sweep of a solve, from b to y in ascending order; the second descends from y to x."""
        return self.upper == self.transposed


@dataclass
class _Vectors:
    """The buffers of one device for `count` right-hand sides: b, y, x (count, p s) and two windows (count, reach).

    A step reads the rows that earlier steps changed from one window and writes the other (solve_rows.h).
    """

    b: Buffer
    y: Buffer
    x: Buffer
    windows: list[Buffer]
    sides: Buffer  # (2, count, s): right-hand sides of the triangle of a step; sweeps alternate between the two

    @property
    def count(self) -> int:
        """The number of right-hand sides."""
        return self.b.shape[0]

    def ends(self, sweep: Sweep) -> tuple[Buffer, Buffer]:
        """The input and the output vector of a sweep."""
        return (self.b, self.y) if sweep.is_first else (self.y, self.x)


class Substitution:
    """Solves with the factors of one or several devices, without moving the factors.

    The device that owns block column i executes step i and copies the window of changed rows to the owner of the next
    step, so x has the same bits for any number of devices. Launches are recorded at the first use.
    """

    def __init__(self, per_device: list[DeviceColumns]):
        self._per_device, self.columns, self.layout = per_device, per_device[0], per_device[0].layout
        layout = self.layout
        self._window = (layout.l + 1) * layout.s
        self._reach = max(self._window, layout.u * layout.s)
        self._permutations = [c.device.buffer((layout.p, self._window), "i4") for c in per_device]
        self._has_pivots = self._has_inverses = self._is_swept = False
        self._inverses: list[tuple[Buffer, Buffer]] = []  # inverses of lower and upper triangles, by device
        self._vectors: list[_Vectors] = []
        self._recorded: dict[tuple[Sweep, bool], Launch] = {}
        self._kept: dict[int, tuple[list[_Vectors], dict[tuple[Sweep, bool], Launch]]] = {}

    def invalidate_pivots(self) -> None:
        """Discards permutations and inverses after a new factorization; the next solve computes them again."""
        self._has_pivots = self._has_inverses = False

    def solve(self, rhs: np.ndarray, panel_pivots: np.ndarray, transposed: bool) -> np.ndarray:
        """The solutions (m, p s) of A x = b, or of A^T x = b, for right-hand sides (m, p s), zero from column n on."""
        if not transposed and len(self._per_device) == 1:
            buffer = self.columns.device.buffer(rhs.shape, rhs.dtype).write(rhs)
            self.solve_in_place(buffer, panel_pivots)
            return buffer.read()
        self._prepare(len(rhs), panel_pivots)
        self._invert()
        for vectors in self._vectors:
            vectors.b.write(rhs)
        blocks, count = np.arange(self.layout.p), len(self._per_device)
        self._run(Sweep(upper=transposed, transposed=transposed))  # L, or U^T
        if not transposed:  # the second sweep reads rows of y that other devices computed
            y = self._merge([vectors.y for vectors in self._vectors], blocks % count)
            for vectors in self._vectors:
                vectors.y.write(y)
        self._run(Sweep(upper=not transposed, transposed=transposed))  # U, or L^T
        # The step of L^T that makes the last interchange of a block determines which device has its final rows.
        last_owners = np.maximum(blocks - self.layout.l, 0) if transposed else blocks
        return self._merge([vectors.x for vectors in self._vectors], last_owners % count)

    def _merge(self, vectors: list[Buffer], owners: np.ndarray) -> np.ndarray:
        """The vector (m, p s) whose block i is taken from the device owners[i]."""
        merged = vectors[0].read()
        for index, vector in enumerate(vectors[1:], 1):
            is_owned = np.repeat(owners == index, self.layout.s)
            merged[:, is_owned] = vector.read()[:, is_owned]
        return merged

    def solve_in_place(self, rhs: Buffer, panel_pivots: np.ndarray) -> None:
        """Overwrites right-hand sides (m, p s), zero from column n on, on the single device with the solutions."""
        layout, count = self.layout, rhs.shape[0]
        assert rhs.shape[1] == layout.p * layout.s and rhs.dtype == self.columns.dtype
        if self.fits_one_group and count <= ONE_GROUP_MAX_RHS:
            self._upload_pivots(panel_pivots)
            self._solve_by_one_group(rhs)
            return
        self._prepare(count, panel_pivots)
        self._invert()
        (vectors,) = self._vectors
        vectors.b.copy_from(rhs)
        for upper in (False, True):
            self._run(Sweep(upper, transposed=False))
        rhs.copy_from(vectors.x)

    def _upload_pivots(self, panel_pivots: np.ndarray) -> None:
        """Composes the interchanges of each panel into one permutation, on every device."""
        if self._has_pivots:
            return
        for columns, permutations in zip(self._per_device, self._permutations, strict=True):
            pivots = columns.device.buffer(len(panel_pivots), "i4").write(panel_pivots)
            compose = columns.kernel(PREPARE_FILE, "compose_permutations", GROUP)
            compose(self.layout.p * compose.group_size, pivots, permutations, self._window)
        self._has_pivots = True

    def _invert(self) -> None:
        """Inverts the triangles of the diagonal blocks for solve_sweeps.cu and sets `_is_swept`.

        `_is_swept` is False if an inverse has too large elements or a device has no room for them.
        """
        if self._has_inverses or not self.can_sweep:
            return
        dtype, flags = self.columns.dtype, []
        self._has_inverses, self._is_swept = True, self._has_room_for_inverses()
        # without room `_inverses` is empty, and nothing is launched
        for columns, inverses in zip(self._per_device, self._inverses, strict=self._is_swept):
            flags.append(columns.device.buffer(1, "u4").fill(0))
            invert = columns.kernel(PREPARE_FILE, "invert_triangles", 256)
            threads = 2 * columns.slots * (self.layout.s // INVERTED_COLUMNS) * invert.group_size
            limit = dtype.type(np.finfo(dtype).eps ** -0.5)  # largest magnitude that is not too large
            storage = columns.index, self.layout.p, self.layout.u, self.layout.ld, columns.devices, columns.slots
            invert(threads, columns.matrix, *inverses, flags[-1], limit, *storage)
        if any(int(flag.read()[0]) for flag in flags):
            self._is_swept = False

    def _has_room_for_inverses(self) -> bool:
        """Allocates the inverses on every device, or on none; returns True if they are allocated."""
        shape = self.columns.slots, self.layout.s, self.layout.s
        try:
            for columns in self._per_device[len(self._inverses) :]:
                lower, upper = (columns.device.buffer(shape, columns.dtype) for _ in range(2))
                self._inverses.append((lower, upper))
        except UnavailableError:
            self._inverses.clear()
        return bool(self._inverses)

    def _prepare(self, count: int, panel_pivots: np.ndarray) -> None:
        """Uploads permutations and chooses `_vectors` and `_recorded` for `count` right-hand sides, on every device."""
        self._upload_pivots(panel_pivots)
        layout, dtype = self.layout, self.columns.dtype
        # popped and stored again, so that the most recently used is the last one
        self._kept[count] = self._vectors, self._recorded = self._kept.pop(count, ([], {}))
        if len(self._kept) > KEPT_COUNTS:
            del self._kept[next(iter(self._kept))]  # the least recently used
        if self._vectors:
            return
        for columns in self._per_device:
            make = partial(columns.device.buffer, dtype=dtype)
            b, y, x = (make((count, layout.p * layout.s)) for _ in range(3))
            windows = [make((count, self._reach)) for _ in range(2)]
            self._vectors.append(_Vectors(b, y, x, windows, make((2, count, layout.s))))

    def _run(self, sweep: Sweep) -> None:
        """Launches all steps of a sweep."""
        key = sweep, self._is_swept
        if key not in self._recorded:
            if self._is_swept and len(self._per_device) == 1:
                (vectors,), steps = self._vectors, range(self.layout.p)
                self._recorded[key] = self._sweep_steps(sweep, steps, self.columns, vectors, *vectors.windows)
            elif len(self._per_device) > 1:
                self._recorded[key] = partial(_launch_all, list(self._launches(sweep)))
            else:
                work = lambda: _launch_all(self._launches(sweep))  # noqa: E731
                is_short = self.layout.p <= MAX_GRAPH_STEPS
                self._recorded[key] = self.columns.device.capture_graph(work) if is_short else work
        self._recorded[key]()

    def _launches(self, sweep: Sweep) -> Iterator[Launch]:
        """The launches of each step on the owner of its block column, and the copies of windows to the next owner.

        A single device alternates between its two windows. Of several, each reads its window 0 and writes window 1,
        which is copied into window 0 of the next owner.
        """
        steps = range(self.layout.p)[:: 1 if sweep.is_first else -1]
        make, count = self._transposed_step if sweep.transposed else self._step, len(self._per_device)
        for number, i in enumerate(steps):
            owner = i % count
            windows = self._vectors[owner].windows
            turn = number % 2 if count == 1 else 0
            buffers = self._per_device[owner], self._vectors[owner], windows[turn], windows[1 - turn]
            if self._is_swept:
                yield self._sweep_steps(sweep, range(i, i + 1), *buffers)
            else:
                yield from make(sweep, i, *buffers)
            if count > 1 and number + 1 < len(steps):
                target = self._vectors[steps[number + 1] % count].windows[0]
                yield partial(target.copy_from, windows[1])

    @cached_property
    def can_sweep(self) -> bool:
        """True if solve_sweeps.cu supports the devices and the block size and solve_one_group.cu is not used."""
        can = self.layout.s in SWEPT_BLOCKS and not self.fits_one_group
        return can and all(has_clusters(columns.device) for columns in self._per_device)

    def _sweep_steps(
        self, sweep: Sweep, steps: range, columns: DeviceColumns, vectors: _Vectors, now: Buffer, following: Buffer
    ) -> Launch:
        """The launch of a range of steps by solve_sweeps.cu: a cluster for every few right-hand sides."""
        layout, count = self.layout, vectors.count
        rhs = next((r for r in SWEPT_RHS if r >= count), SWEPT_RHS[-1])
        kernel, cluster = self._cluster_kernel(sweep, columns, rhs)
        inverses = self._inverses[columns.index][sweep.upper]
        vectors_of_step = *vectors.ends(sweep), now, following, self._permutations[columns.index], self._window
        extra = (vectors.sides, int(columns.devices > 1)) if sweep.transposed else ()
        sizes = steps.start, steps.stop, layout.p, self._reach, layout.p * layout.s, count
        storage = layout.u, layout.ld, columns.devices, columns.slots
        threads = -(-count // rhs) * cluster * kernel.group_size
        return kernel.bind_launch(threads, columns.matrix, inverses, *vectors_of_step, *extra, *sizes, *storage)

    def _cluster_kernel(self, sweep: Sweep, columns: DeviceColumns, rhs: int) -> tuple[Kernel, int]:
        """The kernel of a sweep for the largest useful cluster that the device supports, and its number of groups."""
        s, usual = self.layout.s, columns.device.properties.max_cluster_size
        rows = self.layout.u * s if sweep.upper else self._window - s
        # A power of two of groups; a group updates s / 2 rows at a time (ROWS in solve_sweeps.cu).
        needed = 1 << max(-(-rows // (s // 2)) - 1, 0).bit_length()
        entry = "transposed_sweep" if sweep.transposed else "sweep"
        for cluster in (min(needed, WIDE_CLUSTER), min(needed, usual)):
            constants = dict(UPPER=int(sweep.upper), CLUSTER=cluster, RHS_PER_GROUP=rhs)
            kernel = columns.kernel(SWEEPS_FILE, entry, 4 * s, **constants)
            if kernel.supports_cluster_size(cluster):
                break
        return kernel, cluster

    @property
    def fits_one_group(self) -> bool:
        """True if solve_one_group.cu can solve A x = b: a group has a thread for every row that a step reads."""
        rows = max(self._window, (self.layout.u + 1) * self.layout.s)
        return self.layout.s == ONE_GROUP_BLOCK and rows <= ONE_GROUP_MAX_ROWS[self.columns.dtype.str[1:]]

    def _solve_by_one_group(self, rhs: Buffer) -> None:
        layout, columns, (count, padded_n) = self.layout, self.columns, rhs.shape
        rhs_per_group = min(count, 4 if columns.dtype == np.float32 else 2)
        for upper, outside in ((0, self._window - layout.s), (1, layout.u * layout.s)):
            constants = dict(RHS_PER_GROUP=rhs_per_group, OUTSIDE=outside, UPPER=upper)
            group = -(-(outside + layout.s) // 32) * 32
            kernel = columns.kernel(ONE_GROUP_FILE, "solve_by_one_group", group, **constants)
            sizes = layout.p, padded_n, count, layout.u, layout.ld
            kernel(-(-count // rhs_per_group) * group, columns.matrix, rhs, self._permutations[0], *sizes)

    def _step_kernel(self, columns: DeviceColumns, entry: str, upper: bool) -> tuple[Kernel, int]:
        """A kernel of solve_steps.cu for the number of right-hand sides, and the number of groups that share them."""
        count = self._vectors[0].count
        most = min(count, STEPPED_RHS[-1], max(1, 1024 // self.layout.s))
        rhs_per_group = next(r for r in STEPPED_RHS if r >= most)
        constants = dict(UPPER=int(upper), RHS_PER_GROUP=rhs_per_group)
        return columns.kernel(STEPS_FILE, entry, GROUP, **constants), -(-count // rhs_per_group)

    def _rows_outside(self, i: int, upper: bool) -> int:
        """The number of rows of U above, or of L below, the diagonal block of block column i."""
        return min(i, self.layout.u) * self.layout.s if upper else self.layout.panel_rows(i) - self.layout.s

    def _step(
        self, sweep: Sweep, i: int, columns: DeviceColumns, vectors: _Vectors, now: Buffer, following: Buffer
    ) -> Iterator[Launch]:
        """The launch of step i of L y = P b or U x = y by solve_steps.cu."""
        layout, s, group, upper = self.layout, self.layout.s, GROUP, sweep.upper
        kernel, chunks = self._step_kernel(columns, "solve_step", upper)
        # rows outside of block i that this step changes, and rows that the previous step has changed (solve_rows.h)
        outside, previous = self._rows_outside(i, upper), i + 1 if upper else i - 1
        changed = self._rows_outside(previous, upper) if 0 <= previous < layout.p else 0
        threads = chunks * max(-(-outside // group), 1) * group
        top = np.uint64(columns.diagonal_offset(i))
        buffers = *vectors.ends(sweep), now, following, self._permutations[columns.index]
        sizes = i, outside, changed, self._window, self._reach, layout.p * s, vectors.count, layout.u, layout.ld
        yield kernel.bind_launch(threads, columns.matrix, *buffers, top, *sizes)

    def _transposed_step(
        self, sweep: Sweep, i: int, columns: DeviceColumns, vectors: _Vectors, now: Buffer, following: Buffer
    ) -> Iterator[Launch]:
        """The two launches of step i of U^T y = b or L^T z = y: products with solved rows, then the triangle."""
        layout, s, outside = self.layout, self.layout.s, self._rows_outside(i, sweep.upper)
        top, (base, solution) = np.uint64(columns.diagonal_offset(i)), vectors.ends(sweep)
        # the rows outside the block begin `first` rows from its top, their values at `first_value` of the window
        first, first_value = (-outside, layout.u * s - outside) if sweep.upper else (s, 0)
        shared = self._window, self._reach, layout.p * s, vectors.count, layout.u, layout.ld
        kernel, chunks = self._step_kernel(columns, "subtract_column_products", sweep.upper)
        products = np.uint64(int(top) + first), outside, layout.ld, now, first_value, self._reach
        target = base, i * s, layout.p * s, vectors.sides, vectors.count
        yield kernel.bind_launch(chunks * s * kernel.group_size, columns.matrix, *products, *target)
        kernel, chunks = self._step_kernel(columns, "solve_transposed_step", sweep.upper)
        buffers = top, vectors.sides, solution, now, following, self._permutations[columns.index]
        first_final = layout.l * s if i else 0  # rows from here on are interchanged by no later step of L^T
        sizes = i, s + outside, first_final, *shared
        yield kernel.bind_launch(chunks * kernel.group_size, columns.matrix, *buffers, *sizes)


def _launch_all(launches: Iterable[Launch]) -> None:
    for launch in launches:
        launch()
