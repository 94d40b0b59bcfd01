"""Factors in host memory and the solves with them; LAPACK's gbtrf for bands of few diagonals."""

import functools
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
from scipy.linalg import get_lapack_funcs
from threadpoolctl import ThreadpoolController

from renderer.host import available_cores
from renderer.numerics.band_lu.block_columns import (
    BlockLayout,
    FlushSubnormals,
    NotFinite,
    max_abs,
    max_abs_upper,
    unpack_upper,
)
from renderer.numerics.band_lu.lapack import Lapack

RHS_PER_CORE = 8  # right-hand sides that are worth a core
PHASES = ("panel", "laswp", "trsm", "update", "copy")  # of a step, as LAPACK calls them; copy: uploads and packing


@functools.cache
def _pools() -> ThreadpoolController:
    return ThreadpoolController()


def total_seconds(step_seconds: list[dict]) -> dict[str, float]:
    """Seconds of each phase over all steps."""
    return {phase: sum(step[phase] for step in step_seconds) for phase in PHASES}


def single_threaded_blas():
    """A context in which the BLAS uses the calling thread only."""
    return _pools().limit(limits=1, user_api="blas")


class BlockFactors:
    """Factored block columns in host memory.

    `flat` (layout.size,) is their storage; `panel_pivots` (p s,) int32 count from 1 in each panel; `info` is LAPACK's.
    """

    def __init__(self, layout: BlockLayout, dtype):
        self.layout, self.dtype = layout, np.dtype(dtype)
        self.lapack = Lapack(dtype)
        self.flat = np.zeros(layout.size, self.dtype)
        self.panel_pivots = np.zeros(layout.p * layout.s, np.int32)
        self._address = self.flat.ctypes.data
        self.info = 0

    def at(self, row: int, column: int) -> int:
        """The address of element (row, column)."""
        return self._address + self.layout.offset(row, column) * self.dtype.itemsize

    def column(self, t: int) -> np.ndarray:
        """A view of the elements (stride,) of block column t."""
        return self.flat[t * self.layout.stride : (t + 1) * self.layout.stride]

    def pivots_at(self, i: int) -> int:
        """The address of panel i's pivots."""
        return self.panel_pivots.ctypes.data + i * self.layout.s * self.panel_pivots.itemsize

    def pivots(self) -> np.ndarray:
        """(n,) int32: the row that was interchanged with row j at step j, from 0: LAPACK's ipiv - 1."""
        return self.layout.global_pivots(self.panel_pivots)

    def upper(self) -> np.ndarray:
        """U (kl + ku + 1, n) as LAPACK stores it."""
        return unpack_upper(self.flat, self.layout)

    def diagonal(self) -> np.ndarray:
        """U's diagonal (n,)."""
        layout = self.layout
        return self.flat[layout.u * layout.s :: layout.ld + 1][: layout.n].copy()

    def max_abs_u(self) -> float:
        """The maximum of |u_ij|."""
        return max_abs_upper(self.flat, self.layout)

    def solve(self, b: np.ndarray, transposed: bool) -> np.ndarray:
        """The solution x (n, m) of A x = b, or of the transposed system."""
        layout = self.layout
        ld = layout.p * layout.s
        x = np.zeros((b.shape[1], ld), self.dtype)  # column-major (ld, m)
        x[:, : layout.n] = b.T
        solve = self._solve_transposed if transposed else self._solve

        def work(rhs: np.ndarray) -> None:
            with FlushSubnormals():
                solve(rhs.ctypes.data, ld, len(rhs))

        parts = np.array_split(x, min(available_cores(), max(len(x) // RHS_PER_CORE, 1)))
        with single_threaded_blas(), ThreadPoolExecutor(len(parts)) as pool:  # panels are too small for BLAS threads
            list(pool.map(work, parts))
        return x[:, : layout.n].T

    def _solve(self, x: int, ld: int, m: int) -> None:
        layout, lapack, step = self.layout, self.lapack, self.dtype.itemsize
        s, lda = layout.s, layout.ld
        for i in range(layout.p):
            top, first = i * s, x + i * s * step
            lapack.laswp(m, first, ld, self.pivots_at(i), s)
            lapack.trsm(s, m, self.at(top, top), lda, first, ld, b"LNU")
            below = first + s * step
            lapack.gemm_subtract(layout.panel_rows(i) - s, m, s, self.at(top + s, top), lda, first, ld, below, ld)
        for i in reversed(range(layout.p)):
            top, first, above = i * s, x + i * s * step, min(i, layout.u) * s
            lapack.trsm(s, m, self.at(top, top), lda, first, ld, b"UNN")
            lapack.gemm_subtract(above, m, s, self.at(top - above, top), lda, first, ld, first - above * step, ld)

    def _solve_transposed(self, x: int, ld: int, m: int) -> None:
        layout, lapack, step = self.layout, self.lapack, self.dtype.itemsize
        s, lda = layout.s, layout.ld
        for i in range(layout.p):
            top, first, above = i * s, x + i * s * step, min(i, layout.u) * s
            lapack.gemm_subtract(s, m, above, self.at(top - above, top), lda, first - above * step, ld, first, ld, b"T")
            lapack.trsm(s, m, self.at(top, top), lda, first, ld, b"UTN")
        for i in reversed(range(layout.p)):
            top, first = i * s, x + i * s * step
            below = layout.panel_rows(i) - s
            lapack.gemm_subtract(s, m, below, self.at(top + s, top), lda, first + s * step, ld, first, ld, b"T")
            lapack.trsm(s, m, self.at(top, top), lda, first, ld, b"LTU")
            lapack.laswp(m, first, ld, self.pivots_at(i), s, inverse=True)


class GbtrfFactors:
    """Factors by LAPACK's gbtrf: for bands of so few diagonals that a block would be mostly zeros."""

    name = "host"

    def __init__(self, layout: BlockLayout, dtype):
        self.layout, self.dtype, self.info, self.max_abs_a = layout, np.dtype(dtype), 0, 0.0
        kl, ku, n = layout.kl, layout.ku, layout.n
        self._storage = np.zeros((2 * kl + ku + 1, n), self.dtype, order="F")
        self._gbtrf, self._gbtrs = get_lapack_funcs(("gbtrf", "gbtrs"), (self._storage,))
        self._factors, self._pivots = self._storage, np.zeros(n, np.int32)
        self.step_seconds: list[dict] = []
        self.seconds: dict[str, float] = {}

    def factor(self, ab: np.ndarray, flush_above: float) -> None:
        """Factors ab; subnormals are flushed if max |a_ij| is above `flush_above`; NotFinite if ab is not finite."""
        layout, began = self.layout, time.perf_counter()
        self.max_abs_a = max_abs(ab, layout.kl, layout.ku)
        if not np.isfinite(self.max_abs_a):
            raise NotFinite
        self._storage[layout.kl :] = ab
        copied = time.perf_counter() - began
        with single_threaded_blas(), FlushSubnormals() if self.max_abs_a > flush_above else nullcontext():
            self._factors, self._pivots, self.info = self._gbtrf(self._storage, layout.kl, layout.ku)
        seconds = time.perf_counter() - began - copied
        self.seconds = dict.fromkeys(PHASES, 0.0) | {"panel": seconds, "copy": copied}
        self.step_seconds = [self.seconds]

    def pivots(self) -> np.ndarray:
        """(n,) int32: the row that was interchanged with row j at step j, from 0."""
        return np.asarray(self._pivots, np.int32)

    def upper(self) -> np.ndarray:
        """U (kl + ku + 1, n) as LAPACK stores it."""
        kv = self.layout.kl + self.layout.ku
        upper = np.array(self._factors[: kv + 1])
        for column in range(min(kv, self.layout.n)):
            upper[: kv - column, column] = 0
        return upper

    def diagonal(self) -> np.ndarray:
        """U's diagonal (n,)."""
        return np.array(self._factors[self.layout.kl + self.layout.ku])

    def max_abs_u(self) -> float:
        """The maximum of |u_ij|."""
        return float(np.abs(self.upper()).max())

    def solve(self, b: np.ndarray, transposed: bool) -> np.ndarray:
        """The solution x (n, m) of A x = b, or of the transposed system."""
        layout = self.layout
        x, info = self._gbtrs(self._factors, layout.kl, layout.ku, b, self._pivots, trans=int(transposed))
        assert info == 0, info
        return x
