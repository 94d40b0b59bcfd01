"""Equilibration of band matrices by powers of two, which do not round (LAPACK: gbequb); for systems/system.py.

(R A C) y = R b, x = C y, with diagonal R and C that make the largest magnitude of every row and column about 1.
"""

from dataclasses import dataclass

import numpy as np

from renderer.numerics.band_lu.block_columns import SolutionOverflows, diagonals

SMALL_RATIO = 0.1  # equilibrate if smallest / largest row (or column) maximum is below, as LAPACK does
USUAL = 2.0**-60, 2.0**60  # equilibrate if max |a_ij| is outside of this range
SWEEPS, SETTLED = 10, 0.25  # iterations of _least_squares_exponents, and the change of exponents at which they end
SMALLEST_NORMAL = 2.0**-1022
MIN_UNIT_EXPONENT = -60  # lower limit of the exponents of Scaling.units
LIMITS = {"f4": 120, "f8": 1000}  # limits of exponents, so that a scaled number of usual size stays normal


@dataclass(frozen=True)
class Scaling:
    """The exponents (n,) of R and C: row i is multiplied by 2^rows[i], column j by 2^columns[j]."""

    rows: np.ndarray
    columns: np.ndarray

    def apply(self, ab: np.ndarray, kl: int, ku: int) -> np.ndarray:
        """R A C as a band array."""
        scaled = np.array(ab)
        for d, columns, rows in diagonals(ab, kl, ku):
            scaled[d, columns] = np.ldexp(ab[d, columns], self.rows[rows] + self.columns[columns])
        return scaled

    @property
    def units(self) -> np.ndarray:
        """C / max C, (n,), clipped to at least 2^-60: units * y is about x up to a common factor.

        Corrections of y are measured in units * y.
        """
        return np.ldexp(1.0, np.maximum(self.columns - self.columns.max(), MIN_UNIT_EXPONENT))

    def is_exact(self, ab: np.ndarray, scaled: np.ndarray, kl: int, ku: int) -> bool:
        """True if no element of `scaled`, R A C, was rounded; an element that becomes subnormal may be."""
        before = Scaling(-self.rows, -self.columns).apply(scaled, kl, ku)
        return all(np.array_equal(before[d, columns], ab[d, columns]) for d, columns, _rows in diagonals(ab, kl, ku))


def equilibration(ab: np.ndarray, kl: int, ku: int) -> Scaling | None:
    """The Scaling of a finite band matrix, or None if a row or column is zero or the matrix needs no scaling.

    It needs none if the ratios of row maxima and of column maxima are at least SMALL_RATIO and max |a_ij| is in USUAL.
    """
    largest = _row_maxima(ab, kl, ku)
    if not largest.all():
        return None
    columns = _column_maxima(ab, kl, ku, -np.frexp(largest)[1])
    if not columns.all():
        return None
    ratios = largest.min() / largest.max(), columns.min() / columns.max()
    if min(ratios) >= SMALL_RATIO and USUAL[0] <= float(largest.max()) <= USUAL[1]:
        return None
    limit = LIMITS[ab.dtype.str[1:]]
    start = _least_squares_exponents(ab, kl, ku, limit)
    first = Scaling(*start)
    scaled = first.apply(ab, kl, ku)
    rows = start[0] - np.frexp(_row_maxima(scaled, kl, ku))[1]
    columns = _column_maxima(ab, kl, ku, rows)
    return Scaling(rows.clip(-limit, limit), -np.frexp(columns)[1].clip(-limit, limit))


def rhs_exponents(b: np.ndarray, rows: np.ndarray | int) -> np.ndarray:
    """The exponents (m,) that bring the largest magnitude of each column of b (n, m), scaled by 2^rows, below 1."""
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


def _least_squares_exponents(ab: np.ndarray, kl: int, ku: int, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """Integer exponents r and c that minimize the squares of r_i + c_j + log2 |a_ij| (A. R. Curtis, J. K. Reid 1972).

    Alternating averages of rows and columns; maxima of rows would depend on the scale of the columns.
    """
    n = ab.shape[1]
    bands = [(columns, rows, ab[d, columns]) for d, columns, rows in diagonals(ab, kl, ku)]
    terms = [(columns, rows, np.frexp(a)[1].astype("i2"), a != 0) for columns, rows, a in bands]  # frexp(0) is (0, 0)
    r, c, before = np.zeros(n), np.zeros(n), np.full(n, np.inf)
    for _ in range(SWEEPS):
        if np.abs(before - c).max() < SETTLED:
            break
        before = c.copy()
        for exponents, others, by_rows in ((r, c, True), (c, r, False)):
            total, count = np.zeros(n), np.zeros(n)
            for columns, rows, log, is_nonzero in terms:
                averaged, fixed = (rows, columns) if by_rows else (columns, rows)
                total[averaged] += log + others[fixed] * is_nonzero
                count[averaged] += is_nonzero
            exponents[:] = -total / count
    return np.rint(r).astype(int).clip(-limit, limit), np.rint(c).astype(int).clip(-limit, limit)


def _row_maxima(ab: np.ndarray, kl: int, ku: int) -> np.ndarray:
    largest = np.zeros(ab.shape[1], ab.dtype)
    for d, columns, rows in diagonals(ab, kl, ku):
        np.maximum(largest[rows], np.abs(ab[d, columns]), out=largest[rows])
    return largest


def _column_maxima(ab: np.ndarray, kl: int, ku: int, exponents: np.ndarray) -> np.ndarray:
    """The largest magnitude in each column of diag(2^exponents) A."""
    largest = np.zeros(ab.shape[1], ab.dtype)
    for d, columns, rows in diagonals(ab, kl, ku):
        scaled = np.ldexp(np.abs(ab[d, columns]), exponents[rows])
        np.maximum(largest[columns], scaled, out=largest[columns])
    return largest
