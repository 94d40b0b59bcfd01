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

from renderer.compute.band_lu.blocks import FlushSubnormals, Layout, NotFinite, cores, largest, pack, scratch
from renderer.compute.band_lu.host import STEPS, BlockFactors, one_thread, totals

LARGEST_INVERSE = 16.0  # of the elements of a triangle's inverse; where it is larger, substitution is the safer
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
        self._threads = cores()
        self._lead = max(self._threads - 1, 1) if self._threads > 1 else 2  # steps that a block column is placed early
        self._pieces = [scratch(layout, dtype) for _ in range(self._threads)]
        self._spans = [spans_of(layout, i, self._threads) for i in range(layout.p)]
        order = 32 if layout.s % 32 == 0 else 16
        self._inverses = np.zeros((layout.p, layout.s // order, order, order), self.dtype)
        self._inverses_address = self._inverses.ctypes.data
        self._invertible = np.zeros(layout.p, bool)
        step = self.dtype.itemsize
        strides = layout.stride * step, order * (layout.height + 1) * step, layout.height * step, step
        corner = self.flat[layout.u * layout.s :]
        self._triangles = np.lib.stride_tricks.as_strided(corner, self._inverses.shape, strides)
        self._below = np.tri(order, k=-1, dtype=self.dtype).T  # in memory a line is a column

    def factor(self, ab: np.ndarray, flush_above: float) -> None:
        """Factors ab; subnormal numbers are flushed where max |a_ij| is above `flush_above`."""
        layout, threads = self.layout, self._threads
        self.info, self._seconds = 0, np.zeros((threads, layout.p, len(STEPS)))
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
        self.timeline = [dict(zip(STEPS, parts, strict=True)) for parts in self._seconds.sum(axis=0).tolist()]

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
                    self._update(i, *ahead, 0)
                self._hand_out(crew, i + 1)
            self._part(crew, i, 0)
        for thread in range(1, self._threads):
            crew.wait(thread, layout.p)

    def _hand_out(self, crew: Crew, i: int) -> None:
        """Makes panel i and sets the other cores to step i."""
        self._wait_for_column(crew, i)
        began = time.perf_counter()
        self._panel(i)
        self._seconds[0, i, STEPS.index("panel")] += time.perf_counter() - began
        for thread in range(1, self._threads):
            crew.give(thread, partial(self._part, crew, i, thread))

    def _part(self, crew: Crew, i: int, thread: int) -> None:
        """A core's part of step i: its columns, and in turn with the others the placing of a block column to come."""
        span = self._spans[i][thread]
        if span[0] < span[1]:
            self._follow(crew, i, thread, span)
            self._update(i, *span, thread)
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
            self._seconds[thread, max(t - self.layout.u - self._lead, 0), STEPS.index("copy")] += (
                time.perf_counter() - began
            )

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
        layout, s, order = self.layout, self.layout.s, len(self._below)
        pivots = self.panel_pivots[i * s : (i + 1) * s]
        info = self.lapack.factor(layout.rows(i), s, self.at(i * s, i * s), layout.height, pivots)
        if info and not self.info:
            self.info = i * s + info
        inverses = np.multiply(self._triangles[i], self._below, out=self._inverses[i]).reshape(-1)
        for k in range(s // order):
            self.lapack.invert_unit_lower(order, self._inverses_at(i, k), order)
        self._invertible[i] = max(inverses.max(), -inverses.min()) <= LARGEST_INVERSE

    def _inverses_at(self, i: int, k: int) -> int:
        """The address of the inverse of triangle k of panel i."""
        return self._inverses_address + (i * self.layout.s + k * len(self._below)) * self._below[0].nbytes

    def _update(self, i: int, first: int, end: int, thread: int) -> None:
        """Swap, solve and update columns first to end (of the matrix) with the panel of block column i."""
        layout, lapack, s, height = self.layout, self.lapack, self.layout.s, self.layout.height
        top, count, upper = i * s, end - first, self.at(i * s, first)
        at = [time.perf_counter()]
        lapack.swap(count, upper, height, self.panel_pivots[top : top + s])
        at.append(time.perf_counter())
        self._solve_triangle(i, count, upper)
        at.append(time.perf_counter())
        below, left = self.at(top + s, first), self.at(top + s, top)
        lapack.subtract(layout.rows(i) - s, count, s, left, height, upper, height, below, height)
        at.append(time.perf_counter())
        self._seconds[thread, i, 1:4] += np.diff(at)

    def _solve_triangle(self, i: int, count: int, x: int) -> None:
        """x (s, count) = L^-1 x, L the unit lower triangle of panel i: with inverses in half of the time of a trsm."""
        lapack, s, height, step = self.lapack, self.layout.s, self.layout.height, self.dtype.itemsize
        order, invertible = len(self._below), self._invertible[i]
        for k, row in enumerate(range(0, s, order)):
            here = x + row * step
            if invertible:
                lapack.multiply_unit_lower(order, count, self._inverses_at(i, k), order, here, height)
            else:
                lapack.solve(order, count, self.at(i * s + row, i * s + row), height, here, height, b"LNU")
            left, rest = self.at(i * s + row + order, i * s + row), here + order * step
            lapack.subtract(s - row - order, count, order, left, height, here, height, rest, height)


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
