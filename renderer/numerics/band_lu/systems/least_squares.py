"""Linear least squares, min |A x - b|, by the augmented system, for `rayfold solve --least-squares`.

    alpha r' + A x = b,  A^T r' = 0,  with r = alpha r' the residual

The system is square and sparse, so band LU applies with reordering, pivoting, refinement (A. Bjorck, Iterative
refinement of linear least squares solutions, BIT 1967), error bounds and enclosures. The normal equations would square
the condition number of A. If alpha is near the smallest singular value of A, the condition number of the augmented
matrix is a constant times A's; it grows slowly with the distance of alpha (A. Bjorck, Numerical Methods for Least
Squares Problems, 1996, section 2.5). ALPHA suits condition numbers up to about 1e10.
"""

import numpy as np

from renderer.errors import InputError
from renderer.formats.matrix_market import Entries
from renderer.numerics.band_lu.systems.scaling import unscaled
from renderer.records import dataclass

ALPHA = 2.0**-17  # for a matrix whose columns are scaled to a largest magnitude of about 1


@dataclass(frozen=True)
class Augmented:
    """The augmented system of a matrix (rows, columns): the unknowns are r' (rows), then y (columns).

    Column j of A is scaled by 2^exponents[j], so x = y 2^exponents.
    """

    rows: int
    columns: int
    exponents: np.ndarray
    entries: Entries

    def right_hand_side(self, b: np.ndarray) -> np.ndarray:
        """The right-hand side of the augmented system: b (rows, ...), then zeros."""
        return np.concatenate([b.astype("f8"), np.zeros((self.columns, *b.shape[1:]))])

    def solution(self, y: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """x (columns, ...) and its error from the solution of the augmented system and its error."""
        exponents = self.exponents.reshape(-1, *[1] * (y.ndim - 1))
        return unscaled(y[self.rows :], error[self.rows :], exponents)

    def residual_norms(self, y: np.ndarray) -> np.ndarray:
        """The 2-norms |A x - b| (m,) from the augmented solution."""
        return np.asarray(ALPHA * np.linalg.norm(y[: self.rows].reshape(self.rows, -1), axis=0))


def augmented(entries: Entries) -> Augmented:
    """The augmented system of a real matrix; InputError if it has fewer rows than columns or a column of zeros."""
    rows, columns = entries.shape
    if entries.values.dtype.kind == "c":
        raise InputError("the matrix is complex; least squares take real ones")
    if rows < columns or columns == 0:
        raise InputError(f"the matrix is {entries.shape}; least squares take at least as many rows as columns")
    largest = np.zeros(columns)
    np.maximum.at(largest, entries.columns, np.abs(entries.values))
    exponents = -np.frexp(largest)[1]
    if not largest.all():
        empty = int(np.argmin(largest))
        raise InputError(f"column {empty} (counted from 0) of the matrix is zero: its unknown is free")
    values = np.ldexp(entries.values, exponents[entries.columns])
    if not np.array_equal(np.ldexp(values, -exponents[entries.columns]), entries.values):
        raise InputError(
            "the magnitudes in a column of the matrix differ by more than 1e300; least squares scale columns"
        )
    unit = np.arange(rows)
    below, right = rows + entries.columns, entries.rows
    return Augmented(
        rows, columns, exponents,
        Entries(
            (rows + columns, rows + columns),
            np.concatenate([unit, right, below]),
            np.concatenate([unit, below, right]),
            np.concatenate([np.full(rows, ALPHA), values, values]),
        ),
    )  # fmt: skip
