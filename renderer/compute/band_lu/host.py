"""Band LU on the cores of the host alone, and the solves with factors that lie in host memory.

The block algorithm of paper 4 with cores in the place of devices: one core prepares the next block column and factors
its panel while the others update the rest (look-ahead). Each core runs a BLAS of one thread.
"""

import functools
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

import numpy as np
from scipy.linalg import get_lapack_funcs
from threadpoolctl import ThreadpoolController

from renderer.compute.band_lu.blocks import FlushSubnormals, Layout, cores, pack, unpack_upper
from renderer.compute.band_lu.lapack import Lapack

STEPS = ("panel", "swap", "solve", "update", "copy")


@functools.cache
def _pools() -> ThreadpoolController:
    return ThreadpoolController()


def one_thread():
    """A context in which the BLAS uses the calling thread only."""
    return _pools().limit(limits=1, user_api="blas")


class BlockFactors:
    """Block columns in host memory: flat (layout.size,), panel_pivots (p s,) int32 from 1 in each panel, info."""

    def __init__(self, layout: Layout, dtype):
        self.layout, self.dtype = layout, np.dtype(dtype)
        self.lapack = Lapack(dtype)
        self.flat = np.zeros(layout.size, self.dtype)
        self.panel_pivots = np.zeros(layout.p * layout.s, np.int32)
        self.info = 0

    def at(self, row: int, column: int) -> int:
        """The address of element (row, column)."""
        return self.flat.ctypes.data + self.layout.offset(row, column) * self.dtype.itemsize

    def pivots(self) -> np.ndarray:
        """(n,) int32 row that was exchanged with row j at step j, from 0: LAPACK's ipiv - 1."""
        layout = self.layout
        starts = np.repeat(np.arange(layout.p, dtype=np.int32) * layout.s, layout.s)
        return (self.panel_pivots - 1 + starts)[: layout.n]

    def upper(self) -> np.ndarray:
        """U (kl + ku + 1, n) as LAPACK stores it."""
        return unpack_upper(self.flat, self.layout)

    def diagonal(self) -> np.ndarray:
        """The pivots' values, U's diagonal (n,)."""
        layout = self.layout
        return self.flat[layout.u * layout.s :: layout.height + 1][: layout.n].copy()

    def largest(self) -> float:
        """max |u_ij|."""
        layout, worst = self.layout, 0.0
        for t in range(layout.p):
            part = self.flat[t * layout.stride : t * layout.stride + layout.s * layout.height]
            column = part.reshape(layout.s, layout.height)
            above = min(t, layout.u) * layout.s
            top = (layout.u * layout.s) - above
            width = min(layout.s, layout.n - t * layout.s)
            square = column[:width, layout.u * layout.s :][:, :width].T
            worst = max(worst, float(np.abs(np.triu(square)).max()))
            if above:
                worst = max(worst, float(np.abs(column[:width, top : layout.u * layout.s]).max()))
        return worst

    def solve(self, b: np.ndarray, transposed: bool) -> np.ndarray:
        """x (n, m) of A x = b, or of the transposed system."""
        layout = self.layout
        ld = layout.p * layout.s
        x = np.zeros((b.shape[1], ld), self.dtype)  # column-major (ld, m)
        x[:, : layout.n] = b.T
        with one_thread(), FlushSubnormals():  # its panels are too small for two threads
            (self._solve_transposed if transposed else self._solve)(x.ctypes.data, ld, b.shape[1])
        return x[:, : layout.n].T

    def _solve(self, x: int, ld: int, m: int) -> None:
        layout, lapack, s, height, step = (
            self.layout,
            self.lapack,
            self.layout.s,
            self.layout.height,
            self.dtype.itemsize,
        )
        for i in range(layout.p):
            top, first = i * s, x + i * s * step
            lapack.swap(m, first, ld, self.panel_pivots[top : top + s])
            lapack.solve(s, m, self.at(top, top), height, first, ld, b"LNU")
            below = first + s * step
            lapack.subtract(layout.rows(i) - s, m, s, self.at(top + s, top), height, first, ld, below, ld)
        for i in reversed(range(layout.p)):
            top, first, above = i * s, x + i * s * step, min(i, layout.u) * s
            lapack.solve(s, m, self.at(top, top), height, first, ld, b"UNN")
            lapack.subtract(above, m, s, self.at(top - above, top), height, first, ld, first - above * step, ld)

    def _solve_transposed(self, x: int, ld: int, m: int) -> None:
        layout, lapack, s, height, step = (
            self.layout,
            self.lapack,
            self.layout.s,
            self.layout.height,
            self.dtype.itemsize,
        )
        for i in range(layout.p):
            top, first, above = i * s, x + i * s * step, min(i, layout.u) * s
            lapack.subtract(s, m, above, self.at(top - above, top), height, first - above * step, ld, first, ld, b"T")
            lapack.solve(s, m, self.at(top, top), height, first, ld, b"UTN")
        for i in reversed(range(layout.p)):
            top, first = i * s, x + i * s * step
            below = layout.rows(i) - s
            lapack.subtract(s, m, below, self.at(top + s, top), height, first + s * step, ld, first, ld, b"T")
            lapack.solve(s, m, self.at(top, top), height, first, ld, b"LTU")
            lapack.swap(m, first, ld, self.panel_pivots[top : top + s], back=True)


class Crew:
    """Threads that each run the tasks put to them, in order, with subnormals flushed."""

    def __init__(self, count: int, flush: bool):
        self._inboxes = [SimpleQueue() for _ in range(count)]
        self._done = threading.Semaphore(0)
        self._errors: list[BaseException] = []
        self._pool = ThreadPoolExecutor(max(count, 1))
        for inbox in self._inboxes:
            self._pool.submit(self._serve, inbox, flush)

    def __len__(self) -> int:
        return len(self._inboxes)

    def _serve(self, inbox, flush: bool) -> None:
        guard = FlushSubnormals() if flush else one_thread()
        with guard:
            while (task := inbox.get()) is not None:
                try:
                    task()
                except BaseException as error:  # told by wait() in the thread that gave the task
                    self._errors.append(error)
                self._done.release()

    def give(self, worker: int, task) -> None:
        self._inboxes[worker].put(task)

    def wait(self, count: int) -> None:
        for _ in range(count):
            self._done.acquire()
        if self._errors:
            raise self._errors[0]

    def close(self) -> None:
        for inbox in self._inboxes:
            inbox.put(None)
        self._pool.shutdown()


class HostFactors(BlockFactors):
    """Factors made by the cores of the host."""

    name = "host"

    def __init__(self, layout: Layout, dtype):
        super().__init__(layout, dtype)
        self.timeline: list[dict] = []

    def factor(self, ab: np.ndarray, flush: bool) -> None:
        began = time.perf_counter()
        pack(ab, self.layout, self.flat)
        copied = time.perf_counter() - began
        self.info, self.timeline = 0, []
        crew = Crew(max(cores() - 1, 0), flush)
        try:
            with one_thread(), FlushSubnormals() if flush else one_thread():
                self._run(crew)
        finally:
            crew.close()
        self.timeline[0]["copy"] = copied

    def _panel(self, i: int) -> float:
        layout, s = self.layout, self.layout.s
        began = time.perf_counter()
        pivots = self.panel_pivots[i * s : (i + 1) * s]
        info = self.lapack.factor(layout.rows(i), s, self.at(i * s, i * s), layout.height, pivots)
        if info and not self.info:
            self.info = i * s + info
        return time.perf_counter() - began

    def _columns(self, i: int, first: int, end: int, seconds: dict) -> None:
        """Swap, solve and update columns first to end (of the matrix) with the panel of block column i."""
        if first >= end:
            return
        layout, lapack, s, height = self.layout, self.lapack, self.layout.s, self.layout.height
        top, count = i * s, end - first
        at = [time.perf_counter()]
        lapack.swap(count, self.at(top, first), height, self.panel_pivots[top : top + s])
        at.append(time.perf_counter())
        lapack.solve(s, count, self.at(top, top), height, self.at(top, first), height, b"LNU")
        at.append(time.perf_counter())
        below, left = self.at(top + s, first), self.at(top + s, top)
        lapack.subtract(layout.rows(i) - s, count, s, left, height, self.at(top, first), height, below, height)
        at.append(time.perf_counter())
        for step, start, stop in zip(("swap", "solve", "update"), at, at[1:], strict=False):
            seconds[step] += stop - start

    def _run(self, crew: Crew) -> None:
        layout, s = self.layout, self.layout.s
        panel = self._panel(0)
        for i in range(layout.p):
            seconds = [dict.fromkeys(STEPS, 0.0) for _ in range(len(crew) + 1)]
            seconds[0]["panel"] = panel
            end = (layout.last(i) + 1) * s
            ahead = min((i + 2) * s, end)
            shares = self._shares(i, ahead, end, len(crew))
            for worker in range(len(crew)):
                span = shares[worker + 1], shares[worker + 2]
                crew.give(worker, functools.partial(self._columns, i, *span, seconds[worker + 1]))
            self._columns(i, (i + 1) * s, ahead, seconds[0])
            panel = self._panel(i + 1) if i + 1 < layout.p else 0.0
            self._columns(i, shares[0], shares[1], seconds[0])
            crew.wait(len(crew))
            self.timeline.append({step: sum(part[step] for part in seconds) for step in STEPS})

    def _shares(self, i: int, first: int, end: int, others: int) -> list[int]:
        """Bounds of the columns from first to end that this core and the others take: this one has the panel as well.

        A panel's operations take twice the time of the update's.
        """
        s, rows = self.layout.s, self.layout.rows(i)
        column = 2 * rows * s
        ahead = s * column + 2 * rows * s * s
        own = (((end - first) * column + ahead) / (others + 1) - ahead) / column
        own = int(min(max(own, 0), end - first)) if others else end - first
        rest = end - first - own
        return [first, first + own, *(first + own + rest * (k + 1) // others for k in range(others))]


class ThinFactors:
    """LAPACK's own unblocked routine: for bands so thin that a block would be mostly zeros."""

    name = "host"

    def __init__(self, layout: Layout, dtype):
        self.layout, self.dtype, self.info = layout, np.dtype(dtype), 0
        kl, ku, n = layout.kl, layout.ku, layout.n
        self._storage = np.zeros((2 * kl + ku + 1, n), self.dtype, order="F")
        self._gbtrf, self._gbtrs = get_lapack_funcs(("gbtrf", "gbtrs"), (self._storage,))
        self.timeline: list[dict] = []

    def factor(self, ab: np.ndarray, flush: bool) -> None:
        layout, began = self.layout, time.perf_counter()
        self._storage[layout.kl :] = ab
        copied = time.perf_counter() - began
        with one_thread(), FlushSubnormals() if flush else one_thread():
            self._factors, self._pivots, self.info = self._gbtrf(self._storage, layout.kl, layout.ku)
        seconds = time.perf_counter() - began - copied
        self.timeline = [dict.fromkeys(STEPS, 0.0) | {"panel": seconds, "copy": copied}]

    def pivots(self) -> np.ndarray:
        return np.asarray(self._pivots, np.int32)

    def upper(self) -> np.ndarray:
        """U (kl + ku + 1, n) as LAPACK stores it."""
        reach = self.layout.kl + self.layout.ku
        upper = np.array(self._factors[: reach + 1])
        for column in range(min(reach, self.layout.n)):
            upper[: reach - column, column] = 0
        return upper

    def diagonal(self) -> np.ndarray:
        return np.array(self._factors[self.layout.kl + self.layout.ku])

    def largest(self) -> float:
        return float(np.abs(self.upper()).max())

    def solve(self, b: np.ndarray, transposed: bool) -> np.ndarray:
        layout = self.layout
        x, info = self._gbtrs(self._factors, layout.kl, layout.ku, b, self._pivots, trans=int(transposed))
        assert info == 0, info
        return x
