"""Equilibration of band matrices by powers of two, which do not round (LAPACK: gbequb); for systems/system.py.

(R A C) y = R b, x = C y, with diagonal R and C that make the largest magnitude of every row and column about 1. All
decisions need only the exponents of the elements: 2 bytes each instead of 8.
"""

import numpy as np

from renderer.numerics.band_lu.block_columns import SolutionOverflows, diagonals, row_blocks
from renderer.numerics.band_lu.solver import checked_max_abs
from renderer.records import dataclass

MAX_SPREAD = 10  # equilibrate if the exponents of row (or column) maxima differ by more; refinement corrects the rest
USUAL_EXPONENTS = -60, 60  # equilibrate if the exponent of max |a_ij| is outside of this range
SWEEPS, SETTLED = 10, 0.25  # iterations of _least_squares_exponents, and the change of exponents at which they end
SMALLEST_NORMAL = 2.0**-1022
MIN_UNIT_EXPONENT = -60  # lower limit of the exponents of Scaling.units
LIMITS = {"f4": 120, "f8": 1000}  # limits of exponents, so that a scaled number of usual size stays normal
OF_ZERO = -(1 << 13)  # exponent that stands for a zero: less than any sum of three exponents


@dataclass(frozen=True)
class Scaling:
    """The exponents (n,) int32 of R and C: row i is multiplied by 2^rows[i], column j by 2^columns[j].

    `is_exact`: no element of R A C is subnormal, so none was rounded.
    """

    rows: np.ndarray
    columns: np.ndarray
    is_exact: bool

    def apply(self, ab: np.ndarray, kl: int, ku: int, out: np.ndarray | None = None) -> np.ndarray:
        """R A C as a band array, in `out`, which may be ab, or in a new array."""
        out = np.zeros_like(ab) if out is None else out
        for d, columns, rows in diagonals(ab, kl, ku):
            np.ldexp(ab[d, columns], self.rows[rows] + self.columns[columns], out=out[d, columns])
        return out

    @property
    def units(self) -> np.ndarray:
        """C / max C, (n,), clipped to at least 2^-60: units * y is about x up to a common factor.

        Corrections of y are measured in units * y.
        """
        return np.asarray(np.ldexp(1.0, np.maximum(self.columns - self.columns.max(), MIN_UNIT_EXPONENT)))


def equilibration(ab: np.ndarray, kl: int, ku: int) -> Scaling | None:
    """The Scaling of a band matrix, or None if a row or column is zero or the matrix needs no scaling.

    It needs none if row maxima differ by a factor of at most about 2^MAX_SPREAD, column maxima too, and max |a_ij| is
    in the range of USUAL_EXPONENTS.
    """
    maxima = _maxima(ab, kl, ku)
    if not maxima.min() > 0:
        return None
    smallest, largest = np.frexp(maxima.min(axis=1))[1], np.frexp(maxima.max(axis=1))[1]
    if (largest - smallest).max() <= MAX_SPREAD and USUAL_EXPONENTS[0] <= largest[0] <= USUAL_EXPONENTS[1]:
        return None
    exponents = _exponents(ab, kl, ku)
    start = _least_squares_exponents(exponents, kl, ku)
    limit = LIMITS[ab.dtype.str[1:]]
    rows = -_largest(exponents, kl, ku, of_rows=True, others=start.clip(-limit, limit)).clip(-limit, limit)
    columns = -_largest(exponents, kl, ku, of_rows=False, others=rows).clip(-limit, limit)
    smallest_normal = int(np.finfo(ab.dtype).minexp) + 1  # exponent of frexp
    is_exact = not any(
        ((exponents[d, j] + rows[i] + columns[j] < smallest_normal) & (exponents[d, j] != OF_ZERO)).any()
        for d, j, i in diagonals(ab, kl, ku)
    )
    return Scaling(rows.astype("i4"), columns.astype("i4"), is_exact)


def rhs_exponents(b: np.ndarray, rows: np.ndarray | int) -> np.ndarray:
    """The exponents (m,) that bring the largest magnitude of each column of b (n, m), scaled by 2^rows, below 1."""
    # -(1 << 20) stands for a zero: no number has such an exponent
    exponents = np.where(b == 0, -(1 << 20), np.frexp(b)[1] + rows)
    largest = exponents.max(axis=0)
    return np.where(largest == -(1 << 20), 0, -largest)


def unscaled(y: np.ndarray, error: np.ndarray, exponents: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """y 2^exponents and its error, given the error of y; subnormal results are rounded, which the error includes.

    SolutionOverflows if a component is beyond the largest number of y's dtype.
    """
    with np.errstate(over="ignore"):
        x, scaled_error = np.ldexp(y, exponents), np.ldexp(error, exponents)
    if not np.isfinite(x).all():
        raise SolutionOverflows(y.dtype)
    smallest = np.finfo(y.dtype).smallest_normal
    is_rounded = ((np.abs(x) < smallest) | (scaled_error < SMALLEST_NORMAL)) & ((y != 0) | (error != 0))
    return x, scaled_error + np.where(is_rounded, smallest * 2.0 * float(np.finfo(y.dtype).eps), 0.0)


def _maxima(ab: np.ndarray, kl: int, ku: int) -> np.ndarray:
    """The largest magnitudes (2, n) of rows and of columns; InputError for NaN or infinity."""
    maxima = np.zeros((2, ab.shape[1]), ab.dtype)
    for block in row_blocks(ab.shape[1], 1):
        for d, columns, rows in diagonals(ab, kl, ku, block):
            sizes = np.abs(ab[d, columns])
            for largest, lines in zip(maxima, (rows, columns), strict=True):
                np.maximum(largest[lines], sizes, out=largest[lines])
    if not np.isfinite(maxima[1]).all():
        checked_max_abs(ab, kl, ku)  # names the element
    return maxima


def _exponents(ab: np.ndarray, kl: int, ku: int) -> np.ndarray:
    """The exponents (kl + ku + 1, n) int16 of the elements, as of frexp(); OF_ZERO for 0 and outside of the matrix."""
    out = np.full(ab.shape, OF_ZERO, "i2")
    mantissas, exponents = np.empty(ab.shape[1], ab.dtype), np.empty(ab.shape[1], "i4")
    for d, columns, _rows in diagonals(ab, kl, ku):
        count = columns.stop - columns.start
        mantissa, exponent = np.frexp(ab[d, columns], mantissas[:count], exponents[:count])
        np.copyto(out[d, columns], exponent, casting="same_kind", where=mantissa != 0)
    return out


def _largest(exponents: np.ndarray, kl: int, ku: int, of_rows: bool, others: np.ndarray) -> np.ndarray:
    """The largest exponent (n,) int16 of each row, after columns are scaled by 2^others; or of each column likewise."""
    largest = np.full(exponents.shape[1], OF_ZERO, "i2")
    for d, columns, rows in diagonals(exponents, kl, ku):
        lines, crossed = (rows, columns) if of_rows else (columns, rows)
        np.maximum(largest[lines], exponents[d, columns] + others[crossed], out=largest[lines])
    return largest


def _least_squares_exponents(exponents: np.ndarray, kl: int, ku: int) -> np.ndarray:
    """Integer exponents c (n,) int16 that, with some r, minimize the squares of r_i + c_j + log2 |a_ij|.

    A. R. Curtis and J. K. Reid 1972, by alternating averages of rows and columns; maxima of rows would depend on the
    scale of the columns.
    """
    n = exponents.shape[1]
    terms = [
        (rows, columns, exponents[d, columns] != OF_ZERO, exponents[d, columns])
        for d, columns, rows in diagonals(exponents, kl, ku)
    ]
    r, c, before = np.zeros(n, "f4"), np.zeros(n, "f4"), np.full(n, np.inf, "f4")
    sums, counts = np.zeros((2, n), "f4"), np.zeros((2, n), "f4")  # by row in [0], by column in [1]
    for rows, columns, is_nonzero, exponent in terms:
        for k, lines in enumerate((rows, columns)):
            counts[k, lines] += is_nonzero
            sums[k, lines] += np.where(is_nonzero, exponent, 0)
    for _ in range(SWEEPS):
        if np.abs(before - c).max() < SETTLED:
            break
        before = c.copy()
        for k, (average, other) in enumerate(((r, c), (c, r))):
            total = sums[k].copy()
            for rows, columns, is_nonzero, _exponent in terms:
                lines, crossed = (columns, rows) if k else (rows, columns)
                total[lines] += other[crossed] * is_nonzero
            np.divide(total, -counts[k], out=average)
    return np.rint(c).astype("i2")
