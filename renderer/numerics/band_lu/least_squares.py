"""Linear least squares, min |A x - b|, by the augmented system of a sparse or band matrix, without normal equations.

    alpha r' + A x = b,  A^T r' = 0,  r = alpha r' the residual

is square, so all of band LU applies: an order that makes it narrow, pivoting, refinement with residuals in twice the
precision (A. Bjorck, Iterative refinement of linear least squares solutions, BIT 1967), bounds and enclosures. The
normal equations square the condition of A. The augmented matrix has the condition of A times a constant where alpha is
near its smallest singular value, and grows slowly to both sides (Bjorck, Numerical Methods for Least Squares Problems,
1996, section 2.5); ALPHA suits conditions up to about 1e10.
"""

from dataclasses import dataclass

import numpy as np

from renderer.errors import InputError
from renderer.formats.matrix_market import Entries

ALPHA = 2.0**-17  # of columns whose largest magnitude is about 1


@dataclass(frozen=True)
class Augmented:
    """The augmented system of a matrix (rows, columns): unknowns r' (rows), then y (columns), x = y 2^exponents."""

    rows: int
    columns: int
    exponents: np.ndarray
    entries: Entries

    def right_hand_side(self, b: np.ndarray) -> np.ndarray:
        """b (rows, ...), then zeros."""
        return np.concatenate([b.astype("f8"), np.zeros((self.columns, *b.shape[1:]))])

    def solution(self, y: np.ndarray) -> np.ndarray:
        """x (columns, ...) of the augmented solution."""
        return np.ldexp(y[self.rows :], self.exponents.reshape(-1, *[1] * (y.ndim - 1)))

    def radius(self, radii: np.ndarray) -> np.ndarray:
        """Radii of x, of those of the augmented solution."""
        return self.solution(radii)

    def residual_norms(self, y: np.ndarray) -> np.ndarray:
        """|A x - b| of each right-hand side."""
        return ALPHA * np.linalg.norm(y[: self.rows].reshape(self.rows, -1), axis=0)


def augmented(entries: Entries) -> Augmented:
    """The augmented system of a matrix of at least as many rows as columns, else InputError."""
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
