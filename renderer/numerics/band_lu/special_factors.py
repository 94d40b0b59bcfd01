"""Factors of special band matrices on the host: tridiagonal ones, and symmetric positive definite ones (Cholesky).

LAPACK's gttrf and pbtrf, with the interface of host_factors.GbtrfFactors.
"""

import time
from contextlib import nullcontext

import numpy as np
from scipy.linalg import get_lapack_funcs

from renderer.errors import InputError
from renderer.numerics.band_lu.block_columns import BlockLayout, FlushSubnormals, NotFinite, max_abs, transposed_band
from renderer.numerics.band_lu.host_factors import PHASES, single_threaded_blas


class _LapackFactors:
    """What the factors by one call of LAPACK share."""

    name = "host"

    def __init__(self, layout: BlockLayout, dtype):
        self.layout, self.dtype, self.info, self.max_abs_a = layout, np.dtype(dtype), 0, 0.0
        self.step_seconds: list[dict] = []
        self.seconds: dict[str, float] = {}

    def factor(self, ab: np.ndarray, flush_above: float) -> None:
        """Factors ab; subnormals are flushed if max |a_ij| is above `flush_above`; NotFinite if ab is not finite."""
        began = time.perf_counter()
        self.max_abs_a = max_abs(ab, self.layout.kl, self.layout.ku)
        if not np.isfinite(self.max_abs_a):
            raise NotFinite
        with single_threaded_blas(), FlushSubnormals() if self.max_abs_a > flush_above else nullcontext():
            self._factor(ab)
        self.seconds = dict.fromkeys(PHASES, 0.0) | {"panel": time.perf_counter() - began}
        self.step_seconds = [self.seconds]

    def _factor(self, ab: np.ndarray) -> None:
        raise NotImplementedError

    def upper(self) -> np.ndarray:
        """U (kl + ku + 1, n) as LAPACK stores it."""
        raise NotImplementedError

    def max_abs_u(self) -> float:
        """The maximum of |u_ij|."""
        return float(np.abs(self.upper()).max())


class TridiagonalFactors(_LapackFactors):
    """P L U of a tridiagonal matrix of order 3 or more, by partial pivoting (gttrf)."""

    def __init__(self, layout: BlockLayout, dtype):
        super().__init__(layout, dtype)
        self._gttrf, self._gttrs = get_lapack_funcs(("gttrf", "gttrs"), dtype=self.dtype)
        self._factors: tuple = ()

    def _factor(self, ab: np.ndarray) -> None:
        *self._factors, self.info = self._gttrf(ab[2, :-1], ab[1], ab[0, 1:])

    def pivots(self) -> np.ndarray:
        """(n,) int32: the row that was interchanged with row j at step j, from 0."""
        return np.asarray(self._factors[4], np.int32) - 1

    def upper(self) -> np.ndarray:
        """U (3, n) as LAPACK stores it."""
        upper = np.zeros((3, self.layout.n), self.dtype)
        upper[2], upper[1, 1:], upper[0, 2:] = self._factors[1:4]
        return upper

    def diagonal(self) -> np.ndarray:
        """U's diagonal (n,)."""
        return np.array(self._factors[1])

    def solve(self, b: np.ndarray, transposed: bool) -> np.ndarray:
        """The solution x (n, m) of A x = b, or of the transposed system."""
        x, info = self._gttrs(*self._factors, b, trans="T" if transposed else "N")
        assert info == 0, info
        return x


class CholeskyFactors(_LapackFactors):
    """L L^T of a symmetric positive definite band matrix (pbtrf): half the operations of LU and no interchanges.

    InputError for a matrix that is not symmetric or not positive definite.
    """

    def __init__(self, layout: BlockLayout, dtype):
        super().__init__(layout, dtype)
        self._pbtrf, self._pbtrs = get_lapack_funcs(("pbtrf", "pbtrs"), dtype=self.dtype)
        self._factors = np.zeros((0, 0))

    def _factor(self, ab: np.ndarray) -> None:
        kl, ku = self.layout.kl, self.layout.ku
        if kl != ku:
            raise InputError(f"the matrix is not symmetric: it has {kl} diagonals below the main one and {ku} above")
        mirrored = transposed_band(ab, kl, ku)
        for d in range(ku):
            first = ku - d
            wrong = ab[d, first:] != mirrored[d, first:]
            if wrong.any():
                column = first + int(np.argmax(wrong))
                row = column + d - ku
                found = f"row {row}, column {column} is {ab[d, column]}, row {column}, column {row} is not"
                raise InputError(f"the matrix is not symmetric: {found}")
        self._factors, info = self._pbtrf(ab[ku:], lower=True)
        if info:
            raise InputError(f"the matrix is not positive definite: its leading minor of order {info} is not positive")

    def pivots(self) -> np.ndarray:
        """(n,) int32: row j itself at step j."""
        return np.arange(self.layout.n, dtype=np.int32)

    def upper(self) -> np.ndarray:
        """U = D L^T of A = L' U with a unit L', (kl + ku + 1, n) as LAPACK stores it."""
        kl, n = self.layout.kl, self.layout.n
        upper = np.zeros((2 * kl + 1, n), self.dtype)
        for k in range(kl + 1):  # element (j, j + k) is l_jj l_(j+k)j
            upper[2 * kl - k, k:] = (self._factors[k] * self._factors[0])[: n - k]
        return upper

    def diagonal(self) -> np.ndarray:
        """U's diagonal (n,): the squares of L's."""
        return self._factors[0] ** 2

    def solve(self, b: np.ndarray, transposed: bool) -> np.ndarray:
        """The solution x (n, m) of A x = b, which is that of the transposed system too."""
        x, info = self._pbtrs(self._factors, b, lower=True)
        assert info == 0, info
        return x
