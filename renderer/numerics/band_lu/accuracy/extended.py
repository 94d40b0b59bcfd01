"""Band LU in double-double arithmetic on the host, for condition numbers from 1e15 to about 1e30.

For `rayfold solve --extended`. Numbers are unevaluated sums of two doubles (T. J. Dekker 1971; Y. Hida, X. S. Li, D. H.
Bailey 2001). Partial pivoting as in LAPACK's gbtf2, column by column; NumPy processes all rows below a pivot at once.
One operation costs about 40 in float64; a column of a narrow band takes some 60 us, most of it NumPy's overhead.
"""

import numpy as np

from renderer.errors import InputError
from renderer.numerics.band_lu.accuracy.refinement import MAX_CONTRACTION, SAFETY, RefinedSolution
from renderer.numerics.band_lu.accuracy.residuals import TINY, accurate_residual
from renderer.numerics.band_lu.block_columns import SingularMatrix, diagonals, row_blocks
from renderer.numerics.error_free import product_error, split, two_sum

MAX_WORK = 10**10  # limit of n kl (kl + ku): about ten minutes at 50 ns
PROBES = 4  # random vectors from which the contraction is estimated
EPSILON = float(np.finfo("f8").eps)


# Double-double numbers high + low: two arrays of one shape, or one array (2, ...); high is the sum rounded to float64.
Pair = tuple[np.ndarray, np.ndarray] | np.ndarray


def _product(a: Pair, b: Pair) -> Pair:
    """a b with broadcasting, with a relative error of about 2^-104."""
    (a_high, a_low), (b_high, b_low) = a, b
    high = a_high * b_high
    return high, product_error(high, split(a_high), split(b_high)) + (a_high * b_low + a_low * b_high)


def _difference(a: Pair, b: Pair) -> Pair:
    """a - b with broadcasting, with an error of about 2^-104 (|a| + |b|), which may be more than the difference."""
    (a_high, a_low), (b_high, b_low) = a, b
    high, error = two_sum(a_high, -b_high)
    return two_sum(high, error + (a_low - b_low))


def _quotient(a: Pair, b: Pair) -> Pair:
    """a / b: the quotient of the high parts, plus the remainder over b's high part."""
    first = a[0] / b[0]
    rest = _difference(a, _product((first, np.zeros_like(first)), b))
    return two_sum(first, rest[0] / b[0])


def _subtract(target: np.ndarray, factors: np.ndarray, row: np.ndarray) -> None:
    """Subtracts factors (2, height, 1) times row (2, 1, m) from the rows `target` (2, height, m)."""
    target[0], target[1] = _difference(target, _product(factors, row))


class ExtendedFactors:
    """P L U of the matrix in LAPACK's band array ab (kl + ku + 1, n), stored by rows; L as multipliers, as in gbtf2.

    SingularMatrix if a pivot is exactly zero; InputError above MAX_WORK.
    """

    def __init__(self, ab: np.ndarray, kl: int, ku: int):
        n = ab.shape[1]
        self.n, self.kl, self.ku = n, min(kl, n - 1), min(ku, n - 1)
        self.ab = ab[ku - self.ku : ku + self.kl + 1]  # without diagonals outside the matrix
        work = n * self.kl * (self.kl + self.ku)
        if work > MAX_WORK:
            raise InputError(f"the matrix takes {work:.1e} steps in twice the precision; at most {MAX_WORK:.0e}")
        self._reach = reach = self.kl + self.ku  # superdiagonals of U
        width, rows = self.kl + reach + 1, reach + n + self.kl  # zeros above and below: every view has all its rows
        storage = np.zeros((2, rows * width + reach + 1))
        stored = storage[0, reach * width : rows * width].reshape(-1, width)
        for d, columns, rows_of_a in diagonals(ab, kl, ku):
            stored[rows_of_a, ku - d + self.kl] = ab[d, columns]

        def from_diagonal(first: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
            """A view (2, n, *shape) whose entry j begins `first` elements after the diagonal element of row j."""
            start = storage[:, reach * width + self.kl + first :]
            strides = storage.strides[0], width * 8, *strides
            return np.lib.stride_tricks.as_strided(start, (2, n, *shape), strides)

        down = (width - 1) * 8  # row r begins at column r - kl
        self._windows = from_diagonal(0, (self.kl + 1, reach + 1), (down, 8))  # right of and below element (j, j)
        self._above = from_diagonal(-reach * (width - 1), (reach, 1), (down, 8))  # the column above element (j, j)
        self.pivots = np.zeros(n, "i8")
        for j in range(n):
            self._eliminate(j)

    def _eliminate(self, j: int) -> None:
        """Step j: pivot search, row interchange, and elimination below the pivot."""
        window = self._windows[:, j]
        pivot = int(np.abs(window[0, :, 0]).argmax())
        self.pivots[j] = j + pivot
        if window[0, pivot, 0] == 0:
            raise SingularMatrix(j)
        if pivot:
            window[:, [0, pivot]] = window[:, [pivot, 0]]
        if self.kl:
            below = window[:, 1:, :1]
            below[0], below[1] = _quotient(below, window[:, :1, :1])
            _subtract(window[:, 1:, 1:], below, window[:, :1, 1:])

    def solve(self, b: Pair) -> np.ndarray:
        """The solution (2, n, m) of A x = b."""
        padded = np.zeros((2, self._reach + self.n + self.kl, b[0].shape[1]))
        x = padded[:, self._reach :]
        x[0, : self.n], x[1, : self.n] = b
        for j, other in enumerate(self.pivots.tolist()):
            if other != j:
                x[:, [j, other]] = x[:, [other, j]]
            _subtract(x[:, j + 1 : j + 1 + self.kl], self._windows[:, j, 1:, :1], x[:, j : j + 1])
        for j in reversed(range(self.n)):
            row = x[:, j : j + 1]
            row[0], row[1] = _quotient(row, self._windows[:, j, :1, :1])
            _subtract(padded[:, j : j + self._reach], self._above[:, j], row)
        return x[:, : self.n]

    def residual(self, x: np.ndarray, b: np.ndarray) -> np.ndarray:
        """b - A x (2, n, m) for x (2 or 1, n, m), in three times the precision of float64 (Dot3 of Ogita et al.)."""
        sums = [b.copy(), np.zeros_like(b), np.zeros_like(b)]
        for block in row_blocks(*b.shape):
            for d, columns, rows in diagonals(self.ab, self.kl, self.ku, block):
                a = -self.ab[d, columns, None]
                for part in x:
                    product = a * part[columns]
                    for term in (product, product_error(product, split(a), split(part[columns]))):
                        for total in sums[:2]:
                            total[rows], term = two_sum(total[rows], term)
                        sums[2][rows] += term
        high, low = two_sum(sums[0], sums[1])
        return np.array(two_sum(high, low + sums[2]))

    def residual_errors(self, residual: np.ndarray, size: np.ndarray) -> np.ndarray:
        """Proven bounds (n, m) of the errors of residual(), for `size` |A| |x| + |b|, of both halves of x.

        A row sums N terms, at most 4 (kl + ku + 1) + 1 halves of products and b, exactly into two sums. The errors of
        the second one are N numbers of at most N u^2 size, u = EPSILON / 2, and are added with an error of N^3 u^3
        size. The last sum rounds by u^2 |residual| + N^2 u^3 size.
        """
        terms = 4 * (self.kl + self.ku + 1) + 2
        return np.asarray(EPSILON**2 * np.abs(residual[0]) + (terms * EPSILON) ** 3 * size + terms * TINY)


def solve_extended(factors: ExtendedFactors, b: np.ndarray, units: np.ndarray | None = None) -> RefinedSolution:
    """The solution of A x = b, (n,) or (n, m), by double-double factors and one correction, with its error.

    The error follows from the last correction and the contraction of random vectors as in solve_refined(), which
    explains `units`. It is infinite for condition numbers beyond about 1e29.
    """
    n, sides = factors.n, np.asarray(b, "f8").reshape(factors.n, -1)
    count, unit = sides.shape[1], np.ones((1, 1)) if units is None else units.reshape(-1, 1)
    probes = np.random.default_rng(n).uniform(-1, 1, (n, PROBES)) / unit
    with np.errstate(over="ignore", invalid="ignore"):
        x = factors.solve((sides, np.zeros_like(sides)))
        pairs = factors.residual(x, sides), factors.residual(probes[None], np.zeros_like(probes))
        steps = factors.solve(np.concatenate(pairs, axis=2))
        # moved = A^-1 (0 - A p) by the factors, so p + moved is what one refinement step leaves of a random vector p.
        step, moved = steps[:, :, :count], steps[:, :, count:]
        vanished = np.abs(unit * (moved[0] + probes + moved[1]))
        contraction = SAFETY * np.sqrt(n) * vanished.max()
        high, low = _difference(x, -step)  # x + step
        changes = np.abs(unit * step[0]).max(axis=0) * contraction / (1 - contraction)
        # Bound of the rounding errors of residuals and sums.
        rounding = EPSILON * (contraction + 4 * EPSILON) * np.abs(unit * high).max(axis=0)
        error = ((changes + rounding) / unit + np.abs(low)) * (1 + 8 * EPSILON)
    if not contraction < MAX_CONTRACTION:
        error = np.full(sides.shape, np.inf)
    after = accurate_residual(factors.ab, factors.kl, factors.ku, high, sides)
    is_zero = ~(sides.any(axis=0) | high.any(axis=0))
    error = np.where(is_zero, 0.0, np.where(np.isnan(error), np.inf, error)).reshape(b.shape)
    solution = high.reshape(b.shape)
    return RefinedSolution(solution, error, after.backward_error, corrections=1, scaled=solution, residual=after.values)
