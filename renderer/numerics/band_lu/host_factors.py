"""Factors that lie in host memory, and the solves with them; LAPACK's own routine for thin bands."""

import functools
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
from scipy.linalg import get_lapack_funcs
from threadpoolctl import ThreadpoolController

from renderer.host import available_cores
from renderer.numerics.band_lu.block_columns import FlushSubnormals, Layout, NotFinite, largest, unpack_upper
from renderer.numerics.band_lu.lapack import Lapack

SIDES = 8  # right-hand sides that are worth a core
STEPS = ("panel", "swap", "solve", "update", "copy")


@functools.cache
def _pools() -> ThreadpoolController:
    return ThreadpoolController()


def totals(timeline: list[dict]) -> dict[str, float]:
    """Seconds of each part over all steps."""
    return {part: sum(step[part] for step in timeline) for part in STEPS}


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
        self._address = self.flat.ctypes.data
        self.info = 0

    def at(self, row: int, column: int) -> int:
        """The address of element (row, column)."""
        return self._address + self.layout.offset(row, column) * self.dtype.itemsize

    def pivots_at(self, i: int) -> int:
        """The address of panel i's pivots."""
        return self.panel_pivots.ctypes.data + i * self.layout.s * self.panel_pivots.itemsize

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
        way = self._solve_transposed if transposed else self._solve

        def work(sides: np.ndarray) -> None:
            with FlushSubnormals():
                way(sides.ctypes.data, ld, len(sides))

        parts = np.array_split(x, min(available_cores(), max(len(x) // SIDES, 1)))
        with one_thread(), ThreadPoolExecutor(len(parts)) as pool:  # panels are too small for a BLAS of two threads
            list(pool.map(work, parts))
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
            lapack.swap(m, first, ld, self.pivots_at(i), s)
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
            lapack.swap(m, first, ld, self.pivots_at(i), s, back=True)


class ThinFactors:
    """LAPACK's own unblocked routine: for bands so thin that a block would be mostly zeros."""

    name = "host"

    def __init__(self, layout: Layout, dtype):
        self.layout, self.dtype, self.info = layout, np.dtype(dtype), 0
        kl, ku, n = layout.kl, layout.ku, layout.n
        self._storage = np.zeros((2 * kl + ku + 1, n), self.dtype, order="F")
        self._gbtrf, self._gbtrs = get_lapack_funcs(("gbtrf", "gbtrs"), (self._storage,))
        self.timeline: list[dict] = []

    def factor(self, ab: np.ndarray, flush_above: float) -> None:
        layout, began = self.layout, time.perf_counter()
        self.largest_given = largest(ab, layout.kl, layout.ku)
        if not np.isfinite(self.largest_given):
            raise NotFinite
        self._storage[layout.kl :] = ab
        copied = time.perf_counter() - began
        with one_thread(), FlushSubnormals() if self.largest_given > flush_above else nullcontext():
            self._factors, self._pivots, self.info = self._gbtrf(self._storage, layout.kl, layout.ku)
        seconds = time.perf_counter() - began - copied
        self.timeline = [dict.fromkeys(STEPS, 0.0) | {"panel": seconds, "copy": copied}]

    @property
    def seconds(self) -> dict[str, float]:
        return totals(self.timeline)

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
