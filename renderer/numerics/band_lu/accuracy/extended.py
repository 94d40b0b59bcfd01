"""Band LU in double-double arithmetic on the host, for condition numbers from 1e15 to about 1e30.

For `rayfold solve --extended`. Numbers are unevaluated sums of two doubles (T. J. Dekker 1971; Y. Hida, X. S. Li, D. H.
Bailey 2001). Partial pivoting as in LAPACK's gbtf2, column by column; NumPy processes all rows below a pivot at once.
One operation costs about 40 in float64; a column of a narrow band takes some 60 us, most of it NumPy's overhead.
"""

from typing import NamedTuple

import numpy as np

from renderer.errors import InputError
from renderer.numerics.band_lu.accuracy.refinement import FEW, MAX_CONTRACTION, PROBES, RefinedSolution
from renderer.numerics.band_lu.accuracy.residuals import accurate_residual
from renderer.numerics.band_lu.block_columns import SingularMatrix, diagonals
from renderer.numerics.error_free import product_error, split, two_sum

MAX_WORK = 10**10  # limit of n kl (kl + ku): about ten minutes at 50 ns
EPSILON = float(np.finfo("f8").eps)


class Pair(NamedTuple):
    """Double-double numbers high + low, two arrays of one shape; high is the sum rounded to float64."""

    high: np.ndarray
    low: np.ndarray


def _product(a: Pair, b: Pair) -> Pair:
    """a b with broadcasting, with a relative error of about 2^-104."""
    high = a.high * b.high
    return Pair(high, product_error(high, split(a.high), split(b.high)) + (a.high * b.low + a.low * b.high))


def _difference(a: Pair, b: Pair) -> Pair:
    high, error = two_sum(a.high, -b.high)
    return Pair(*two_sum(high, error + (a.low - b.low)))


def _sum(a: Pair, b: Pair) -> Pair:
    return _difference(a, Pair(-b.high, -b.low))


def _quotient(a: Pair, b: Pair) -> Pair:
    first = a.high / b.high
    rest = _difference(a, _product(Pair(first, np.zeros_like(first)), b))
    return Pair(*two_sum(first, rest.high / b.high))


class ExtendedFactors:
    """P L U of the matrix in LAPACK's band array ab (kl + ku + 1, n), stored by rows; L as multipliers, as in gbtf2.

    SingularMatrix if a pivot is exactly zero; InputError above MAX_WORK.
    """

    def __init__(self, ab: np.ndarray, kl: int, ku: int):
        n = ab.shape[1]
        self.ab, self.n, self.kl, self.ku = ab, n, min(kl, n - 1), min(ku, n - 1)
        work = n * self.kl * (self.kl + self.ku)
        if work > MAX_WORK:
            raise InputError(f"the matrix takes {work:.1e} steps in twice the precision; at most {MAX_WORK:.0e}")
        self._reach = self.kl + self.ku  # superdiagonals of U
        width = self.kl + self._reach + 1
        rows = n + self.kl  # kl rows of padding, so that every window has all its rows
        self._storage = Pair(*(np.zeros(rows * width + self._reach + 1) for _ in range(2)))
        stored = self._storage.high[: rows * width].reshape(rows, width)
        for d, columns, rows_of_a in diagonals(ab, kl, ku):
            stored[rows_of_a, ku - d + self.kl] = ab[d, columns]
        self._width, self.pivots = width, np.zeros(n, "i8")
        for j in range(n):
            self._eliminate(j)

    def _window(self, row: int, column: int, height: int, length: int) -> Pair:
        """A view (height, length) of the matrix from element (row, column) on.

        Row r of the storage begins at column r - kl, so a step down in a column is `_width` - 1 elements.
        """
        start = row * self._width + column - row + self.kl
        strides = (self._width - 1) * 8, 8
        return Pair(
            *(np.lib.stride_tricks.as_strided(part[start:], (height, length), strides) for part in self._storage)
        )

    def _eliminate(self, j: int) -> None:
        """Step j: pivot search, row interchange, and elimination below the pivot."""
        window = self._window(j, j, self.kl + 1, self._reach + 1)
        pivot = int(np.abs(window.high[:, 0]).argmax())
        self.pivots[j] = j + pivot
        if window.high[pivot, 0] == 0:
            raise SingularMatrix(j)
        if pivot:
            for part in window:
                part[[0, pivot]] = part[[pivot, 0]]
        if not self.kl:
            return
        factors = _quotient(Pair(*(p[1:, :1] for p in window)), Pair(*(p[:1, :1] for p in window)))
        rest = _difference(Pair(*(p[1:, 1:] for p in window)), _product(factors, Pair(*(p[:1, 1:] for p in window))))
        for part, factor, updated in zip(window, factors, rest, strict=True):
            part[1:, :1], part[1:, 1:] = factor, updated

    def solve(self, b: Pair) -> Pair:
        """The solution (n, m) of A x = b."""
        x = Pair(*(np.concatenate([part, np.zeros((self.kl, part.shape[1]))]) for part in b))
        for j in range(self.n):
            other = self.pivots[j]
            for part in x:
                part[[j, other]] = part[[other, j]]
            factors = self._window(j + 1, j, self.kl, 1)
            self._subtract(x, slice(j + 1, j + 1 + self.kl), factors, j)
        for j in reversed(range(self.n)):
            pivot = self._window(j, j, 1, 1)
            solved = _quotient(Pair(*(part[j : j + 1] for part in x)), pivot)
            for part, new in zip(x, solved, strict=True):
                part[j] = new[0]
            first = max(0, j - self._reach)
            self._subtract(x, slice(first, j), self._window(first, j, j - first, 1), j)
        return Pair(*(part[: self.n] for part in x))

    def residual(self, x: Pair, b: np.ndarray) -> Pair:
        """b - A x for x and b (n, m), as if computed in three times the precision of float64 (Dot3 of Ogita et al.)."""
        sums = [b.copy(), np.zeros_like(b), np.zeros_like(b)]
        for d, columns, rows in diagonals(self.ab, self.kl, self.ku):
            a = self.ab[d, columns, None]
            for part in x:
                product = -a * part[columns]
                for term in (product, product_error(product, split(-a), split(part[columns]))):
                    for total in sums[:2]:
                        total[rows], term = two_sum(total[rows], term)
                    sums[2][rows] += term
        high, low = two_sum(sums[0], sums[1])
        return Pair(*two_sum(high, low + sums[2]))

    @staticmethod
    def _subtract(x: Pair, rows: slice, factors: Pair, j: int) -> None:
        """Subtracts the factors (height, 1) times row j from `rows` of x."""
        if rows.start < rows.stop:
            product = _product(factors, Pair(*(part[j : j + 1] for part in x)))
            for part, new in zip(x, _difference(Pair(*(part[rows] for part in x)), product), strict=True):
                part[rows] = new


def solve_extended(factors: ExtendedFactors, b: np.ndarray, units: np.ndarray | None = None) -> RefinedSolution:
    """The solution of A x = b, (n,) or (n, m), by double-double factors and one correction, with its error.

    The error follows from the last correction and the contraction of random vectors as in solve_refined(), which
    explains `units`. It is infinite for condition numbers beyond about 1e29.
    """
    n, sides = factors.n, np.asarray(b, "f8").reshape(factors.n, -1)
    count, unit = sides.shape[1], np.ones((1, 1)) if units is None else units.reshape(-1, 1)
    probes = np.random.default_rng(n).uniform(-1, 1, (n, PROBES)) / unit
    with np.errstate(over="ignore", invalid="ignore"):
        x = factors.solve(Pair(sides, np.zeros_like(sides)))
        pairs = factors.residual(x, sides), factors.residual(Pair(probes, 0 * probes), 0 * probes)
        steps = factors.solve(Pair(*(np.hstack(parts) for parts in zip(*pairs, strict=True))))
        step, moved = (Pair(*(part[:, columns] for part in steps)) for columns in (slice(count), slice(count, None)))
        vanished = np.abs(unit * _sum(moved, Pair(probes, 0 * probes)).high)
        contraction = FEW * np.sqrt(n) * vanished.max()
        x = _sum(x, step)
        changes = np.abs(unit * step.high).max(axis=0) * contraction / (1 - contraction)
        rounding = EPSILON * (contraction + 4 * EPSILON) * np.abs(unit * x.high).max(axis=0)  # of residuals and sums
        error = ((changes + rounding) / unit + np.abs(x.low)) * (1 + 8 * EPSILON)
    if not contraction < MAX_CONTRACTION:
        error = np.full(sides.shape, np.inf)
    after = accurate_residual(factors.ab, factors.kl, factors.ku, x.high, sides)
    is_zero = ~(sides.any(axis=0) | x.high.any(axis=0))
    error = np.where(is_zero, 0.0, np.where(np.isnan(error), np.inf, error)).reshape(b.shape)
    solution = x.high.reshape(b.shape)
    return RefinedSolution(solution, error, after.backward_error, 1, solution, after.values)
