"""BlockFactors: factored block columns in host memory, and solves with them by BLAS on the cores of the host.

Filled by multicore.HostFactors, or downloaded from devices by devices/block_cyclic.py.
"""

import functools
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager

import numpy as np
from numpy.typing import DTypeLike
from threadpoolctl import ThreadpoolController

from renderer.host import available_cores
from renderer.numerics.band_lu.block_columns import BlockLayout, FlushSubnormals, max_abs_upper, unpack_upper
from renderer.numerics.band_lu.lapack import Lapack

RHS_PER_CORE = 8  # a core is worth its overhead for this many right-hand sides
PHASES = ("panel", "laswp", "trsm", "update", "copy")  # phases of a step; copy: uploads and packing


@functools.cache
def _pools() -> ThreadpoolController:
    return ThreadpoolController()


def single_threaded_blas() -> AbstractContextManager[object]:
    """A context in which the BLAS uses the calling thread only."""
    context: AbstractContextManager[object] = _pools().limit(limits=1, user_api="blas")
    return context


class BlockFactors:
    """Factored block columns in host memory.

    `flat` (layout.size,) is the storage that BlockLayout describes; `panel_pivots` (p s,) int32 are rows counted from 1
    within each panel; `info` is the info of gbtrf.
    """

    def __init__(self, layout: BlockLayout, dtype: DTypeLike):
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
        """(n,) int32: the row, counted from 0, that was interchanged with row j in step j (LAPACK's ipiv - 1)."""
        return self.layout.global_pivots(self.panel_pivots)

    def upper(self) -> np.ndarray:
        """U (kl + ku + 1, n) as LAPACK's band array."""
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

        chunks = np.array_split(x, min(available_cores(), max(len(x) // RHS_PER_CORE, 1)))
        with single_threaded_blas(), ThreadPoolExecutor(len(chunks)) as pool:  # panels are too small for BLAS threads
            list(pool.map(work, chunks))
        return x[:, : layout.n].T

    def _solve(self, x: int, ld: int, m: int) -> None:
        """Overwrites m right-hand sides at address x, leading dimension ld, with the solutions: L y = P b, U x = y."""
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
        """As _solve(), for A^T x = b: U^T y = b, then L^T z = y and x = P^T z."""
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
