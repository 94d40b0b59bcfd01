"""Factors of a band matrix on the host by one call of a LAPACK routine; BandedLU (solver.py) chooses the class.

GbtrfFactors for narrow bands, whose blocks would be mostly zeros; TridiagonalFactors (gttrf); CholeskyFactors (pbtrf)
for symmetric positive definite matrices; ComplexFactors (zgbtrf) for the real form of complex matrices.
"""

import time
from contextlib import nullcontext

import numpy as np
from scipy.linalg import get_lapack_funcs

from renderer.errors import InputError
from renderer.numerics.band_lu.block_columns import BlockLayout, FlushSubnormals, NotFinite, max_abs, transposed_band
from renderer.numerics.band_lu.host_factors import PHASES, single_threaded_blas

COPY_COLUMNS = 512  # columns transposed at a time: their rows stay in the cache


class LapackFactors:
    """Base class: the checks and timing around the routine. Subclasses also have pivots(), diagonal() and solve().

    `info` is LAPACK's info, `max_abs_a` is max |a_ij| of the matrix, `step_seconds` one entry of seconds by phase.
    """

    name = "host"

    def __init__(self, layout: BlockLayout, dtype: np.dtype):
        self.layout, self.dtype, self.info, self.max_abs_a = layout, np.dtype(dtype), 0, 0.0
        self.step_seconds: list[dict[str, float]] = []
        self.seconds: dict[str, float] = {}

    def factor(self, ab: np.ndarray, flush_above: float) -> None:
        """Factors ab; subnormal numbers are flushed to zero if max |a_ij| > flush_above. NotFinite for NaN or inf."""
        began = time.perf_counter()
        self.max_abs_a = max_abs(ab, self.layout.kl, self.layout.ku)
        if not np.isfinite(self.max_abs_a):
            raise NotFinite
        matrix = self._prepare(ab)
        copied = time.perf_counter()
        with single_threaded_blas(), FlushSubnormals() if self.max_abs_a > flush_above else nullcontext():
            self._factor(matrix)
        self.seconds = dict.fromkeys(PHASES, 0.0) | {"panel": time.perf_counter() - copied, "copy": copied - began}
        self.step_seconds = [self.seconds]

    def _prepare(self, ab: np.ndarray) -> np.ndarray:
        """The argument of the LAPACK routine."""
        return ab

    def _factor(self, matrix: np.ndarray) -> None:
        raise NotImplementedError

    def upper(self) -> np.ndarray:
        """U (kl + ku + 1, n) as LAPACK's band array."""
        raise NotImplementedError

    def max_abs_u(self) -> float:
        """The maximum of |u_ij|."""
        return float(np.abs(self.upper()).max())


class GbtrfFactors(LapackFactors):
    """P L U by partial pivoting (gbtrf)."""

    def __init__(self, layout: BlockLayout, dtype: np.dtype):
        super().__init__(layout, dtype)
        self._kl, self._ku = layout.kl, layout.ku
        self._allocate(self.dtype, layout.n)

    def _allocate(self, dtype: np.dtype, n: int) -> None:
        self._storage = np.zeros((2 * self._kl + self._ku + 1, n), dtype, order="F")
        self._gbtrf, self._gbtrs = get_lapack_funcs(("gbtrf", "gbtrs"), (self._storage,))
        self._factors, self._pivots = self._storage, np.zeros(n, np.int32)

    def _prepare(self, ab: np.ndarray) -> np.ndarray:
        for first in range(0, ab.shape[1], COPY_COLUMNS):
            columns = slice(first, first + COPY_COLUMNS)
            self._storage[self._kl :, columns] = ab[:, columns]
        return self._storage

    def _factor(self, matrix: np.ndarray) -> None:
        self._factors, self._pivots, self.info = self._gbtrf(matrix, self._kl, self._ku, overwrite_ab=True)  # in place

    def pivots(self) -> np.ndarray:
        """LAPACK's ipiv - 1: SciPy's wrapper of gbtrf has subtracted the 1."""
        return np.asarray(self._pivots, np.int32)

    def upper(self) -> np.ndarray:
        """U as LAPACK stores it."""
        kv = self._kl + self._ku
        upper = np.array(self._factors[: kv + 1])
        for column in range(min(kv, upper.shape[1])):
            upper[: kv - column, column] = 0
        return upper

    def max_abs_u(self) -> float:
        """The maximum of |u_ij|, without a copy of U."""
        reach = self._kl + self._ku
        return max_abs(self._factors[: reach + 1], 0, reach)

    def diagonal(self) -> np.ndarray:
        """U's diagonal."""
        return np.array(self._factors[self._kl + self._ku])

    def solve(self, b: np.ndarray, transposed: bool) -> np.ndarray:
        """The solution x of A x = b, or of the transposed system."""
        return _solution(*self._gbtrs(self._factors, self._kl, self._ku, b, self._pivots, trans=int(transposed)))


class ComplexFactors(GbtrfFactors):
    """P L U by partial pivoting (zgbtrf) of a complex matrix of order n given in its real form of order 2 n.

    In the real form (complex_systems.py) an entry a + b i is the block [[a, -b], [b, a]]. Factoring the complex matrix
    takes half the operations and memory. All arguments and results of this class, also pivots and U, are in the real
    form; transposing the real form is the conjugate transposition of the complex matrix.
    """

    def _allocate(self, dtype: np.dtype, n: int) -> None:
        self._kl, self._ku = (self._kl - 1) // 2, (self._ku - 1) // 2
        super()._allocate(np.result_type(dtype, np.complex64), n // 2)

    def _prepare(self, ab: np.ndarray) -> np.ndarray:
        matrix = self._storage[self._kl :]  # below the rows for fill-in; the inverse of real_band()
        matrix.real, matrix.imag = ab[1:-1:2, 0::2], ab[2::2, 0::2]
        return self._storage

    def _factor(self, matrix: np.ndarray) -> None:
        super()._factor(matrix)
        self.info = max(2 * self.info - 1, 0)  # the first of the two real columns, from 1

    def pivots(self) -> np.ndarray:
        """(2 n,) int32: a complex interchange interchanges both rows of a block with both rows of another."""
        return (2 * np.asarray(self._pivots, np.int32)[:, None] + np.array([0, 1], np.int32)).ravel()

    def upper(self) -> np.ndarray:
        """The real form of U, (kl + ku + 1, 2 n); it has 2 x 2 blocks on its diagonal."""
        return real_band(super().upper())

    def diagonal(self) -> np.ndarray:
        """|u_jj| (2 n,), each twice: the determinant of the block of u_jj is |u_jj|^2."""
        return np.repeat(np.abs(super().diagonal()), 2)

    def max_abs_u(self) -> float:
        """The maximum magnitude of a real or an imaginary part of U."""
        upper = super().upper()
        return float(max(np.abs(upper.real).max(), np.abs(upper.imag).max()))

    def solve(self, b: np.ndarray, transposed: bool) -> np.ndarray:
        """The solution x of A x = b, or of the transposed system."""
        complex_b = np.ascontiguousarray(b.T).view(self._storage.dtype).T
        trans = 2 * int(transposed)
        x = _solution(*self._gbtrs(self._factors, self._kl, self._ku, complex_b, self._pivots, trans=trans))
        return np.ascontiguousarray(x.T).view(self.dtype).T


class TridiagonalFactors(LapackFactors):
    """P L U of a tridiagonal matrix of order 3 or more, by partial pivoting (gttrf)."""

    def __init__(self, layout: BlockLayout, dtype: np.dtype):
        super().__init__(layout, dtype)
        self._gttrf, self._gttrs = get_lapack_funcs(("gttrf", "gttrs"), dtype=self.dtype)
        self._factors: list[np.ndarray] = []  # dl, d, du, du2 and ipiv of gttrf

    def _factor(self, matrix: np.ndarray) -> None:
        *self._factors, self.info = self._gttrf(matrix[2, :-1], matrix[1], matrix[0, 1:])

    def pivots(self) -> np.ndarray:
        """LAPACK's ipiv - 1: SciPy's wrapper of gttrf does not subtract the 1."""
        return np.asarray(self._factors[4], np.int32) - 1

    def upper(self) -> np.ndarray:
        """U as LAPACK stores it."""
        upper = np.zeros((3, self.layout.n), self.dtype)
        upper[2], upper[1, 1:], upper[0, 2:] = self._factors[1:4]
        return upper

    def max_abs_u(self) -> float:
        """The maximum of |u_ij|, without a copy of U."""
        return max(float(max(diagonal.max(), -diagonal.min())) for diagonal in self._factors[1:4])

    def diagonal(self) -> np.ndarray:
        """U's diagonal."""
        return np.array(self._factors[1])

    def solve(self, b: np.ndarray, transposed: bool) -> np.ndarray:
        """The solution x of A x = b, or of the transposed system."""
        return _solution(*self._gttrs(*self._factors, b, trans="T" if transposed else "N"))


class CholeskyFactors(LapackFactors):
    """L L^T of a symmetric positive definite band matrix (pbtrf): half the operations of LU and no interchanges.

    InputError for a matrix that is not symmetric or not positive definite.
    """

    def __init__(self, layout: BlockLayout, dtype: np.dtype):
        super().__init__(layout, dtype)
        self._pbtrf, self._pbtrs = get_lapack_funcs(("pbtrf", "pbtrs"), dtype=self.dtype)
        self._factors = np.zeros((0, 0))

    def _factor(self, matrix: np.ndarray) -> None:
        """Checks that the matrix is symmetric and factors it; InputError if it is not positive definite."""
        kl, ku = self.layout.kl, self.layout.ku
        if kl != ku:
            raise InputError(f"the matrix is not symmetric: it has {kl} diagonals below the main one and {ku} above")
        mirrored = transposed_band(matrix, kl, ku)
        for d in range(ku):
            first = ku - d
            wrong = matrix[d, first:] != mirrored[d, first:]
            if wrong.any():
                column = first + int(np.argmax(wrong))
                row = column + d - ku
                found = f"row {row}, column {column} is {matrix[d, column]}, row {column}, column {row} is not"
                raise InputError(f"the matrix is not symmetric: {found}")
        self._factors, info = self._pbtrf(matrix[ku:], lower=True)
        if info:
            raise InputError(f"the matrix is not positive definite: its leading minor of order {info} is not positive")

    def pivots(self) -> np.ndarray:
        """(n,) int32: 0 to n - 1, since no rows are interchanged."""
        return np.arange(self.layout.n, dtype=np.int32)

    def upper(self) -> np.ndarray:
        """The U of A = L' U with unit lower triangular L', (kl + ku + 1, n): U = diag(L) L^T."""
        kl, n = self.layout.kl, self.layout.n
        upper = np.zeros((2 * kl + 1, n), self.dtype)
        for k in range(kl + 1):  # element (j, j + k) is l_jj l_(j+k)j
            upper[2 * kl - k, k:] = (self._factors[k] * self._factors[0])[: n - k]
        return upper

    def diagonal(self) -> np.ndarray:
        """The diagonal of U (n,): l_jj^2."""
        return np.asarray(self._factors[0] ** 2)

    def solve(self, b: np.ndarray, transposed: bool) -> np.ndarray:
        """The solution x (n, m) of A x = b; A is symmetric, so `transposed` changes nothing."""
        return _solution(*self._pbtrs(self._factors, b, lower=True))


AnyFactors = GbtrfFactors | TridiagonalFactors | CholeskyFactors


def _solution(x: np.ndarray, info: int) -> np.ndarray:
    """The solution x that a routine of LAPACK returned with `info`, which is 0 for correct arguments."""
    assert info == 0, info
    return x


def real_band(ab: np.ndarray) -> np.ndarray:
    """The real form (2 d + 1, 2 n) of a complex band array (d, n); it has 2 kl + 1 sub- and 2 ku + 1 superdiagonals."""
    real = np.zeros((2 * len(ab) + 1, 2 * ab.shape[1]), ab.real.dtype)
    real[1:-1:2, 0::2] = real[1:-1:2, 1::2] = ab.real  # [[a, .], [., a]] of each block
    real[2::2, 0::2] = ab.imag
    real[:-2:2, 1::2] = -ab.imag
    return real
