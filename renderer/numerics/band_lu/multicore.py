"""Band LU by the cores of the host alone: paper 4's algorithm with cores in the place of devices.

Every core runs a BLAS of one thread and takes a part of the columns that a step changes. The first core updates the
next block column, factors its panel and hands it out before it turns to its own part, so that the others need not wait
for panels; and a core waits for no more than the cores whose columns it takes over.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from queue import SimpleQueue
from threading import Condition

import numpy as np

from renderer.host import available_cores
from renderer.numerics.band_lu.block_columns import (
    FlushSubnormals,
    Layout,
    NotFinite,
    divisor,
    largest,
    pack,
    scratch,
)
from renderer.numerics.band_lu.host_factors import STEPS, BlockFactors, one_thread, totals

LARGEST_INVERSE = 16.0  # of the elements of a triangle's inverse; where it is larger, substitution is the safer
LEAST_SPAN = 32  # columns of a step that are worth a core
LARGEST_TRIANGLE = 128  # rows; a product with an inverse has twice the operations of a substitution
PLACING = 110  # operations of an update that take as long as placing one element of a block column


class Crew:
    """Threads that each run the tasks put to them, in order. Thread 0 is the caller; `done[k]` steps are behind k."""

    def __init__(self, threads: int, flush: bool):
        self._inboxes = [SimpleQueue() for _ in range(threads - 1)]
        self._changed, self._flush = Condition(), flush
        self._error: BaseException | None = None
        self._done = [0] * threads
        self._pool = ThreadPoolExecutor(max(threads - 1, 1))
        for inbox in self._inboxes:
            self._pool.submit(self._serve, inbox)

    def __enter__(self) -> "Crew":
        return self

    def __exit__(self, kind, error, trace) -> None:
        if error is not None:
            self._fail(error)
        for inbox in self._inboxes:
            inbox.put(None)
        self._pool.shutdown()

    def _serve(self, inbox: SimpleQueue) -> None:
        with FlushSubnormals() if self._flush else nullcontext():
            while (task := inbox.get()) is not None:
                if self._error is None:
                    try:
                        task()
                    except BaseException as error:  # told by wait() in every other thread
                        self._fail(error)

    def _fail(self, error: BaseException) -> None:
        with self._changed:
            self._error = self._error or error
            self._changed.notify_all()

    def give(self, thread: int, task) -> None:
        self._inboxes[thread - 1].put(task)

    def reach(self, thread: int, steps: int) -> None:
        """Tells that `steps` steps are behind a thread."""
        with self._changed:
            self._done[thread] = steps
            self._changed.notify_all()

    def wait(self, thread: int, steps: int) -> None:
        """Waits until `steps` steps are behind a thread."""
        if self._done[thread] < steps:
            with self._changed:
                self._changed.wait_for(lambda: self._done[thread] >= steps or self._error is not None)
        if self._error is not None:
            raise self._error


class HostFactors(BlockFactors):
    """Factors made by the cores of the host."""

    name = "host"

    def __init__(self, layout: Layout, dtype):
        super().__init__(layout, dtype)
        self.timeline: list[dict] = []
        self.largest_given = 0.0
        self._threads = max(min(available_cores(), layout.u * layout.s // LEAST_SPAN), 1)
        self._lead = max(self._threads - 1, 1) if self._threads > 1 else 2  # steps that a block column is placed early
        self._pieces = [scratch(layout, dtype) for _ in range(self._threads)]
        self._spans = [spans_of(layout, i, self._threads) for i in range(layout.p)]
        self._order = order = divisor(layout.s, LARGEST_TRIANGLE)
        ring = min(self._threads + 2, layout.p)  # panels whose inverses are kept
        self._inverses = np.zeros((ring, layout.s // order, order, order), self.dtype)
        self._invertible = [False] * ring
        self._below = np.tri(order, k=-1, dtype=self.dtype).T  # in memory a line is a column
        step = self.dtype.itemsize
        strides = layout.stride * step, order * (layout.height + 1) * step, layout.height * step, step
        corner = self.flat[layout.u * layout.s :]
        shape = layout.p, *self._inverses.shape[1:]
        self._triangles = np.lib.stride_tricks.as_strided(corner, shape, strides)
        self._inverses_address, self._pivots_address = self._inverses.ctypes.data, self.panel_pivots.ctypes.data

    def factor(self, ab: np.ndarray, flush_above: float) -> None:
        """Factors ab; subnormal numbers are flushed where max |a_ij| is above `flush_above`."""
        layout, threads = self.layout, self._threads
        self.info, self._clock = 0, []
        self._ab, self._sizes = ab, np.zeros(layout.p)
        first = min(layout.u + self._lead, layout.p)
        with ThreadPoolExecutor(threads) as pool:
            for part in [pool.submit(self._place, range(k, first, threads), k) for k in range(threads)]:
                part.result()
        flush = self._sizes.max() > flush_above or largest(ab, layout.kl, layout.ku) > flush_above
        guard = FlushSubnormals() if flush else nullcontext()
        with one_thread(), guard, np.errstate(invalid="ignore", over="ignore"), Crew(threads, flush) as crew:
            self._run(crew)
        self.largest_given, self._ab = float(self._sizes.max()), None
        self.timeline = [dict.fromkeys(STEPS, 0.0) for _ in range(layout.p)]
        for i, parts, times in self._clock:
            for part, began, ended in zip(parts, times, times[1:], strict=False):
                self.timeline[i][part] += ended - began

    @property
    def seconds(self) -> dict[str, float]:
        return totals(self.timeline)

    def _run(self, crew: Crew) -> None:
        """All steps: the panel of the next one is made and handed out before this core takes its part of a step."""
        layout, s = self.layout, self.layout.s
        self._hand_out(crew, 0)
        for i in range(layout.p):
            if i + 1 < layout.p:
                if i + 1 <= layout.last(i):
                    ahead = (i + 1) * s, (i + 2) * s
                    self._follow(crew, i, 0, ahead)
                    self._update(i, *ahead)
                self._hand_out(crew, i + 1)
            self._part(crew, i, 0)
        for thread in range(1, self._threads):
            crew.wait(thread, layout.p)

    def _hand_out(self, crew: Crew, i: int) -> None:
        """Makes panel i and sets the other cores to step i."""
        self._wait_for_column(crew, i)
        for thread in range(1, self._threads):
            crew.wait(thread, i + 1 - len(self._inverses))
        began = time.perf_counter()
        self._panel(i)
        self._clock.append((i, ("panel",), (began, time.perf_counter())))
        for thread in range(1, self._threads):
            crew.give(thread, partial(self._part, crew, i, thread))

    def _part(self, crew: Crew, i: int, thread: int) -> None:
        """A core's part of step i: its columns, and in turn with the others the placing of a block column to come."""
        span = self._spans[i][thread]
        if span[0] < span[1]:
            self._follow(crew, i, thread, span)
            self._update(i, *span)
        column = i + self.layout.u + self._lead
        if column < self.layout.p and self._placer(i) == thread:
            self._place([column], thread)
        crew.reach(thread, i + 1)

    def _placer(self, i: int) -> int:
        """The core that places a block column in step i."""
        return 1 + i % (self._threads - 1) if self._threads > 1 else 0

    def _place(self, columns, thread: int) -> None:
        """Brings block columns of the matrix to their places."""
        for t in columns:
            began = time.perf_counter()
            self._sizes[t] = pack(self._ab, self.layout, self.flat, t, self._pieces[thread])
            if not np.isfinite(self._sizes[t]):
                raise NotFinite  # a pivot search among NaN may answer anything
            step = max(t - self.layout.u - self._lead, 0)
            self._clock.append((step, ("copy",), (began, time.perf_counter())))

    def _wait_for_column(self, crew: Crew, t: int) -> None:
        step = t - self.layout.u - self._lead
        if step >= 0:
            crew.wait(self._placer(step), step + 1)

    def _follow(self, crew: Crew, i: int, thread: int, span: tuple[int, int]) -> None:
        """Waits until the columns of a span are placed and behind step i - 1."""
        for other, (first, end) in enumerate(self._spans[i - 1] if i else ()):
            if other != thread and first < span[1] and span[0] < end:
                crew.wait(other, i)
        if span[1] > self.layout.last(i) * self.layout.s:
            self._wait_for_column(crew, self.layout.last(i))

    def _panel(self, i: int) -> None:
        """P L U of panel i, and the inverses of the triangles on its L's diagonal."""
        layout, s, order, slot = self.layout, self.layout.s, self._order, i % len(self._inverses)
        corner, pivots = self.at(i * s, i * s), self._pivots_address + i * s * 4
        info = self.lapack.factor(layout.rows(i), s, corner, layout.height, pivots)
        if info and not self.info:
            self.info = i * s + info
        inverses = np.multiply(self._triangles[i], self._below, out=self._inverses[slot]).reshape(-1)
        for row in range(0, s, order):
            self.lapack.invert_unit_lower(order, self._inverse_at(i, row), order)
        self._invertible[slot] = max(inverses.max(), -inverses.min()) <= LARGEST_INVERSE

    def _inverse_at(self, i: int, row: int) -> int:
        """The address of the inverse of panel i's triangle at a row."""
        slot = i % len(self._inverses)
        return self._inverses_address + (slot * self.layout.s + row) * self._order * self.dtype.itemsize

    def _update(self, i: int, first: int, end: int) -> None:
        """Swap, solve and update columns first to end (of the matrix) with the panel of block column i."""
        layout, lapack, s, height = self.layout, self.lapack, self.layout.s, self.layout.height
        count, step, left = end - first, self.dtype.itemsize, self.at(i * s, i * s)
        upper = left + (first - i * s) * height * step
        began = time.perf_counter()
        lapack.swap(count, upper, height, self._pivots_address + i * s * 4, s)
        swapped = time.perf_counter()
        self._solve_triangle(i, count, left, upper)
        solved, below = time.perf_counter(), s * step
        lapack.subtract(layout.rows(i) - s, count, s, left + below, height, upper, height, upper + below, height)
        self._clock.append((i, ("swap", "solve", "update"), (began, swapped, solved, time.perf_counter())))

    def _solve_triangle(self, i: int, count: int, left: int, x: int) -> None:
        """x (s, count) = L^-1 x, L the unit lower triangle at `left`: by its inverse in half of the time of trsm."""
        lapack, s, height, step = self.lapack, self.layout.s, self.layout.height, self.dtype.itemsize
        order, invertible = self._order, self._invertible[i % len(self._inverses)]
        for row in range(0, s, order):
            triangle, here = left + row * (height + 1) * step, x + row * step
            if invertible:
                lapack.multiply_unit_lower(order, count, self._inverse_at(i, row), order, here, height)
            else:
                lapack.solve(order, count, triangle, height, here, height, b"LNU")
            below = order * step
            lapack.subtract(s - row - order, count, order, triangle + below, height, here, height, here + below, height)


def spans_of(layout: Layout, i: int, threads: int) -> list[tuple[int, int]]:
    """The columns (first, end) that each core takes of step i, behind the block column that is updated ahead.

    The first core has the next panel as well, whose operations take three times as long as an update's, the second,
    where there are two, the placing of a block column.
    """
    s, rows = layout.s, layout.rows(i)
    end = (layout.last(i) + 1) * s
    first = min((i + 2) * s, end)
    if threads == 1:
        return [(first, end)]
    column = 2 * rows * s
    ahead = s * column + 3 * rows * s * s
    whole = (end - first) * column + ahead + PLACING * layout.stride
    own = min(max(int((whole / threads - ahead) / column), 0), end - first) // 8 * 8
    rest = end - first - own
    bounds = [first, *(first + own + rest * k // (threads - 1) for k in range(threads))]
    return list(zip(bounds, bounds[1:], strict=False))
