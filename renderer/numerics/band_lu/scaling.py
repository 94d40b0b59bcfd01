"""Row and column equilibration of band matrices by powers of two, which round nothing (LAPACK's gbequb).

(R A C) y = R b, x = C y, with diagonal R and C that make the largest magnitude of every row and column about 1.
"""

from dataclasses import dataclass

import numpy as np

from renderer.numerics.band_lu.block_columns import diagonals

SMALL_RATIO = 0.1  # of the smallest to the largest row or column maximum: LAPACK equilibrates below it
USUAL = 2.0**-60, 2.0**60  # of the largest magnitude; the matrix is scaled outside of it
SWEEPS = 10  # of averages over rows and columns
SMALLEST_UNIT = -60  # its exponent
LIMITS = {"f4": 120, "f8": 1000}  # of an exponent, so that a scaled number of the usual size stays normal


@dataclass(frozen=True)
class Scaling:
    """The exponents (n,) of R and C: row i is multiplied by 2^rows[i], column j by 2^columns[j]."""

    rows: np.ndarray
    columns: np.ndarray

    def apply(self, ab: np.ndarray, kl: int, ku: int) -> np.ndarray:
        """R A C in the layout of ab."""
        scaled = np.array(ab)
        for d, columns, rows in diagonals(ab, kl, ku):
            scaled[d, columns] = np.ldexp(ab[d, columns], self.rows[rows] + self.columns[columns])
        return scaled

    @property
    def units(self) -> np.ndarray:
        """C (n,) over its largest number, from 2^-60 on: a component of y, times these, as part of the largest of x."""
        return np.ldexp(1.0, np.maximum(self.columns - self.columns.max(), SMALLEST_UNIT))

    def is_exact(self, ab: np.ndarray, scaled: np.ndarray, kl: int, ku: int) -> bool:
        """Whether no element of R A C was rounded, as subnormal numbers are."""
        before = Scaling(-self.rows, -self.columns).apply(scaled, kl, ku)
        return all(np.array_equal(before[d, at], ab[d, at]) for d, at, _rows in diagonals(ab, kl, ku))

    def scale_rhs(self, b: np.ndarray) -> np.ndarray:
        """R b."""
        return np.ldexp(b, self.rows if b.ndim == 1 else self.rows[:, None])

    def unscale_solution(self, y: np.ndarray) -> np.ndarray:
        """C y."""
        with np.errstate(over="ignore"):
            return np.ldexp(y, self.columns if y.ndim == 1 else self.columns[:, None])


def equilibration(ab: np.ndarray, kl: int, ku: int) -> Scaling | None:
    """The Scaling of a finite band matrix, or None where LAPACK would not equilibrate it either, or a row is zero."""
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


def _least_squares_exponents(ab: np.ndarray, kl: int, ku: int, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """Exponents r and c that bring all r_i + c_j + log2 |a_ij| near 0 (A. R. Curtis, J. K. Reid 1972).

    Rows and columns are averaged in turn: the maximum of a row alone would follow the scale of its columns.
    """
    n = ab.shape[1]
    logs = [(columns, rows, np.abs(ab[d, columns])) for d, columns, rows in diagonals(ab, kl, ku)]
    terms = [(columns, rows, np.frexp(a)[1] * (a > 0), a > 0) for columns, rows, a in logs]
    r, c = np.zeros(n), np.zeros(n)
    for _ in range(SWEEPS):
        for exponents, others, by_rows in ((r, c, True), (c, r, False)):
            total, count = np.zeros(n), np.zeros(n)
            for columns, rows, log, is_there in terms:
                here, there = (rows, columns) if by_rows else (columns, rows)
                total[here] += log + others[there] * is_there
                count[here] += is_there
            exponents[:] = -total / count
    return np.rint(r).astype(int).clip(-limit, limit), np.rint(c).astype(int).clip(-limit, limit)


def _row_maxima(ab: np.ndarray, kl: int, ku: int) -> np.ndarray:
    largest = np.zeros(ab.shape[1], ab.dtype)
    for d, columns, rows in diagonals(ab, kl, ku):
        np.maximum(largest[rows], np.abs(ab[d, columns]), out=largest[rows])
    return largest


def _column_maxima(ab: np.ndarray, kl: int, ku: int, exponents: np.ndarray) -> np.ndarray:
    """The largest magnitude of each column of R A."""
    largest = np.zeros(ab.shape[1], ab.dtype)
    for d, columns, rows in diagonals(ab, kl, ku):
        scaled = np.ldexp(np.abs(ab[d, columns]), exponents[rows])
        np.maximum(largest[columns], scaled, out=largest[columns])
    return largest
