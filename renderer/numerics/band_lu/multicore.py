"""Block band LU on the cores of the host: block_cyclic.py's algorithm with cores in place of devices (as PLASMA).

HostFactors is BandedLU's choice for wide bands without devices, and the subject of the step-by-step picture
(stepped.py). Every core runs a single-threaded BLAS and updates a range of the columns of a step. Core 0 first updates
the next block column and factors its panel, then updates its own range (look-ahead), so the other cores do not wait for
panels. A core waits only for the cores that updated its columns in the previous step. On 2 cores the rate is 0.64 to
0.99 of LAPACK's dgbtrf (cpu_2cores.jsonl, band_lu/factor-256).

Letters as in block_columns.py: p block columns of s columns, l blocks below and u blocks above the diagonal block,
leading dimension ld. Step i factors panel i and updates the block columns t from i + 1 to i + u with it.
"""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from threading import Condition, get_ident

import numpy as np
from numpy.typing import DTypeLike

from renderer.host import available_cores
from renderer.numerics.band_lu import block_columns
from renderer.numerics.band_lu.block_columns import BlockLayout, FlushSubnormals, NotFinite
from renderer.numerics.band_lu.host_factors import PHASES, BlockFactors, single_threaded_blas

MAX_INVERSE_ENTRY = 16.0  # a triangle whose inverse has a larger entry is solved by substitution, for accuracy
MIN_COLUMNS_PER_CORE = 32  # a core is worth its overhead for this many columns of a step
MAX_INVERTED_ORDER = 128  # order of inverted triangles: a product with an inverse has twice the operations of a trsm
PACK_COST = 110  # operations of an update that take as long as packing one element of a block column
PANELS = -1  # index, in Progress, of the counter of factored panels; threads are 0, 1, ...
ClockEntry = tuple[int, tuple[str, ...], tuple[float, ...], int]  # step, phases, times between them, thread


class Progress:
    """The number of steps that each thread has finished, and of PANELS that are factored; threads wait for both."""

    def __init__(self, threads: int):
        self._changed, self._done = Condition(), [0] * (threads + 1)
        self._error: BaseException | None = None

    def finish(self, counter: int, count: int) -> None:
        """Records that `counter`, a thread or PANELS, has reached a count."""
        with self._changed:
            self._done[counter] = count
            self._changed.notify_all()

    def fail(self, error: BaseException) -> None:
        """Ends the waits of all threads by an exception; the first one counts."""
        with self._changed:
            self._error = self._error or error
            self._changed.notify_all()

    def wait_for(self, counter: int, count: int) -> None:
        """Waits until `counter` has reached a count; raises the first exception of any thread."""
        if self._done[counter] < count:
            with self._changed:
                self._changed.wait_for(lambda: self._done[counter] >= count or self._error is not None)
        if self._error is not None:
            raise self._error


class HostFactors(BlockFactors):
    """P L U of a band matrix in block columns, computed by the cores of the host."""

    name = "host"

    def __init__(self, layout: BlockLayout, dtype: DTypeLike, threads: int | None = None):
        """Allocates the storage; `threads` is the number of cores, by default one per MIN_COLUMNS_PER_CORE columns."""
        super().__init__(layout, dtype)
        # For stepped.py: called as watch(phase, i) after the phases look-ahead, panel and update of step i.
        self.watch: Callable[[str, int], None] = lambda phase, i: None
        self.step_seconds: list[dict[str, float]] = []
        self.seconds: dict[str, float] = {}
        self.max_abs_a, self._ab = 0.0, np.zeros((0, 0), self.dtype)
        self.packed = 0  # block columns that one core has packed
        self._sizes = np.zeros(layout.p)  # max |a_ij| of each block column
        self.clock: list[ClockEntry] = []  # phases of all threads, in the order in which they ended
        self._threads = threads or max(min(available_cores(), layout.u * layout.s // MIN_COLUMNS_PER_CORE), 1)
        # Steps between the packing of a block column and its first use: the cores but core 0 pack in turn.
        self._pack_distance = self._threads - 1 if self._threads > 1 else 2
        self._workspaces = [block_columns.pack_workspace(layout, dtype) for _ in range(self._threads)]
        self._spans = [partition_columns(layout, i, self._threads) for i in range(layout.p)]
        self._inverse_order = order = block_columns.largest_divisor(layout.s, MAX_INVERTED_ORDER)
        ring = min(self._threads + 2, layout.p)  # panels whose inverses are stored at a time: panel i in slot i % ring
        self._inverses = np.zeros((ring, layout.s // order, order, order), self.dtype)
        self._invertible = [False] * ring
        self._below = np.tri(order, k=-1, dtype=self.dtype).T  # stored by columns
        self._triangles = self._triangle_views()
        self._inverses_address, self._pivots_address = self._inverses.ctypes.data, self.panel_pivots.ctypes.data

    def _triangle_views(self) -> np.ndarray:
        """Views (p, s / order, order, order) of the squares on the diagonal, whose lower triangles are inverted."""
        layout, order, step = self.layout, self._inverse_order, self.dtype.itemsize
        strides = layout.stride * step, order * (layout.ld + 1) * step, layout.ld * step, step
        shape = layout.p, *self._inverses.shape[1:]
        return np.lib.stride_tricks.as_strided(self.flat[layout.u * layout.s :], shape, strides)

    def factor(self, ab: np.ndarray, flush_above: float) -> None:
        """Factors ab; subnormal numbers are flushed to zero if max |a_ij| > flush_above. NotFinite for NaN or inf."""
        layout, threads = self.layout, self._threads
        self.info, self.clock, self._ab, self.packed = 0, [], ab, 0
        self._sizes[:] = 0
        first = min(layout.u + self._pack_distance, layout.p)
        with ThreadPoolExecutor(threads) as pool:
            for task in [pool.submit(self._pack_columns, range(k, first, threads), k) for k in range(threads)]:
                task.result()
        # `_sizes` has the block columns packed so far: if one is large enough, ab need not be searched
        flush = self._sizes.max() > flush_above or block_columns.max_abs(ab, layout.kl, layout.ku) > flush_above
        progress = Progress(threads)
        with single_threaded_blas(), ThreadPoolExecutor(threads) as pool:
            others = [pool.submit(self._run, progress, flush, thread) for thread in range(1, threads)]
            self._run(progress, flush, 0)
            for other in others:
                other.result()
        self.max_abs_a, self._ab = float(self._sizes.max()), np.zeros((0, 0), self.dtype)
        self.step_seconds = [dict.fromkeys(PHASES, 0.0) for _ in range(layout.p)]
        for i, phases, times, _thread in self.clock:
            for phase, began, ended in zip(phases, times, times[1:], strict=False):
                self.step_seconds[i][phase] += ended - began
        self.seconds = {phase: sum(step[phase] for step in self.step_seconds) for phase in PHASES}

    def _run(self, progress: Progress, flush: bool, thread: int) -> None:
        """All steps of one core; with `flush` it flushes subnormal numbers to zero."""
        errors = np.errstate(invalid="ignore", over="ignore")
        with FlushSubnormals() if flush else nullcontext(), errors:
            try:
                if thread == 0:
                    self._factor_next_panel(progress, 0)
                for i in range(self.layout.p):
                    if thread == 0 and i + 1 < self.layout.p:
                        self._look_ahead(progress, i)
                    progress.wait_for(PANELS, i + 1)
                    self._step(progress, i, thread)
            except BaseException as error:  # raised by the waits of every other thread too
                progress.fail(error)
                raise

    def _look_ahead(self, progress: Progress, i: int) -> None:
        """Step i of block column i + 1, whose panel core 0 then factors, before it updates its range of columns."""
        if i + 1 <= self.layout.last_updated(i):
            ahead = (i + 1) * self.layout.s, (i + 2) * self.layout.s
            self._wait_for_columns(progress, i, 0, ahead)
            self._update(i, *ahead)
            self.watch("look-ahead", i)
        self._factor_next_panel(progress, i + 1)

    def _factor_next_panel(self, progress: Progress, i: int) -> None:
        """Factors panel i, for which the other cores wait, once it may overwrite the inverses of an earlier panel."""
        self._wait_for_packing(progress, i)
        for thread in range(1, self._threads):
            progress.wait_for(thread, i + 1 - len(self._inverses))  # the step of the panel whose slot this one takes
        began = time.perf_counter()
        self._factor_panel(i)
        self.clock.append((i, ("panel",), (began, time.perf_counter()), get_ident()))
        self.watch("panel", i)
        progress.finish(PANELS, i + 1)

    def _step(self, progress: Progress, i: int, thread: int) -> None:
        """Step i of one core: updates its columns and, if it is this core's turn, packs a block column."""
        span = self._spans[i][thread]
        if span[0] < span[1]:
            self._wait_for_columns(progress, i, thread, span)
            self._update(i, *span)
        column = i + self.layout.u + self._pack_distance
        if column < self.layout.p and self._packing_core(i) == thread:
            self._pack_columns([column], thread)
        progress.finish(thread, i + 1)
        if thread == 0:
            self.watch("update", i)

    def _packing_core(self, i: int) -> int:
        """The core that packs a block column in step i."""
        return 1 + i % (self._threads - 1) if self._threads > 1 else 0

    def _pack_columns(self, columns: Iterable[int], thread: int) -> None:
        """Packs block columns and records their max |a_ij|; NotFinite for NaN or infinity."""
        for t in columns:
            began = time.perf_counter()
            workspace = self._workspaces[thread]
            self._sizes[t] = block_columns.pack_block_column(self._ab, self.layout, self.flat, t, workspace)
            if not np.isfinite(self._sizes[t]):
                raise NotFinite  # LAPACK's pivot search is undefined for NaN
            self.packed = max(self.packed, t + 1)
            step = max(t - self.layout.u - self._pack_distance, 0)
            self.clock.append((step, ("copy",), (began, time.perf_counter()), get_ident()))

    def _wait_for_packing(self, progress: Progress, t: int) -> None:
        """Waits until block column t is packed."""
        step = t - self.layout.u - self._pack_distance
        if step >= 0:
            progress.wait_for(self._packing_core(step), step + 1)

    def _wait_for_columns(self, progress: Progress, i: int, thread: int, span: tuple[int, int]) -> None:
        """Waits until the columns of a span are packed and step i - 1 has updated them."""
        for other, (first, end) in enumerate(self._spans[i - 1] if i else ()):
            if other != thread and first < span[1] and span[0] < end:
                progress.wait_for(other, i)
        if span[1] > self.layout.last_updated(i) * self.layout.s:
            self._wait_for_packing(progress, self.layout.last_updated(i))

    def _factor_panel(self, i: int) -> None:
        """Factors panel i and inverts the triangles of order `_inverse_order` on the diagonal of its L."""
        layout, s, order, slot = self.layout, self.layout.s, self._inverse_order, i % len(self._inverses)
        corner, pivots = self.at(i * s, i * s), self._pivots_address + i * s * 4
        info = self.lapack.getrf(layout.panel_rows(i), s, corner, layout.ld, pivots)
        if info and not self.info:
            self.info = i * s + info
        # copies the triangles below the diagonal; the ones on it are implied
        inverses = np.multiply(self._triangles[i], self._below, out=self._inverses[slot]).reshape(-1)
        for row in range(0, s, order):
            self.lapack.trtri_unit_lower(order, self._inverse_at(i, row), order)
        self._invertible[slot] = max(inverses.max(), -inverses.min()) <= MAX_INVERSE_ENTRY

    def _inverse_at(self, i: int, row: int) -> int:
        """The address of the inverse of the triangle of panel i that begins at `row` of the panel."""
        slot = i % len(self._inverses)
        return self._inverses_address + (slot * self.layout.s + row) * self._inverse_order * self.dtype.itemsize

    def _update(self, i: int, first: int, end: int) -> None:
        """Interchanges rows, solves for U and updates by panel i, in columns first to end - 1 of the matrix."""
        layout, lapack, s, lda = self.layout, self.lapack, self.layout.s, self.layout.ld
        count, step, left = end - first, self.dtype.itemsize, self.at(i * s, i * s)
        upper = left + (first - i * s) * lda * step
        began = time.perf_counter()
        lapack.laswp(count, upper, lda, self._pivots_address + i * s * 4, s)
        swapped = time.perf_counter()
        self._solve_triangle(i, count, left, upper)
        solved, below = time.perf_counter(), s * step
        lapack.gemm_subtract(layout.panel_rows(i) - s, count, s, left + below, lda, upper, lda, upper + below, lda)
        times = began, swapped, solved, time.perf_counter()
        self.clock.append((i, ("laswp", "trsm", "update"), times, get_ident()))

    def _solve_triangle(self, i: int, count: int, left: int, x: int) -> None:
        """Computes x = L^-1 x in place, x (s, count), by the inverse of L's triangles: twice as fast as trsm."""
        lapack, s, lda, step = self.lapack, self.layout.s, self.layout.ld, self.dtype.itemsize
        order, invertible = self._inverse_order, self._invertible[i % len(self._inverses)]
        for row in range(0, s, order):
            triangle, here = left + row * (lda + 1) * step, x + row * step
            if invertible:
                lapack.trmm_unit_lower(order, count, self._inverse_at(i, row), order, here, lda)
            else:
                lapack.trsm(order, count, triangle, lda, here, lda, b"LNU")
            below = order * step
            lapack.gemm_subtract(s - row - order, count, order, triangle + below, lda, here, lda, here + below, lda)


def partition_columns(layout: BlockLayout, i: int, threads: int) -> list[tuple[int, int]]:
    """The columns (first, end) that each core updates in step i, right of the look-ahead block column.

    Core 0 gets fewer columns, since it also factors the next panel, whose operations take three times as long as those
    of an update.
    """
    s, rows = layout.s, layout.panel_rows(i)
    end = (layout.last_updated(i) + 1) * s
    first = min((i + 2) * s, end)
    if threads == 1:
        return [(first, end)]
    column = 2 * rows * s  # operations to update a column
    ahead = s * column + 3 * rows * s * s  # operations of look-ahead update and panel, in units of update time
    work = (end - first) * column + ahead + PACK_COST * layout.stride
    of_core_0 = min(max(int((work / threads - ahead) / column), 0), end - first) // 8 * 8
    rest = end - first - of_core_0
    bounds = [first, *(first + of_core_0 + rest * k // (threads - 1) for k in range(threads))]
    return list(zip(bounds, bounds[1:], strict=False))
