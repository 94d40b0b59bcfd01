"""Refined solutions with bounds on their errors, as LAPACK's gbrfs gives them.

A residual r = b - A x is solved for a correction until the componentwise backward error, the largest of
|r|_i / (|A| |x| + |b|)_i, no longer halves. One or two corrections make partial pivoting backward stable even where its
growth is large (R. Skeel 1980), as long as growth times the condition number stays below 1 / epsilon. The residuals of
float32 systems are computed in float64.
"""

from typing import NamedTuple

import numpy as np

from renderer.numerics.band_lu import block_columns
from renderer.numerics.band_lu.solver import BandedLU, inverse_norm1

MAX_CORRECTIONS = 5
ENOUGH = 64  # a backward error below so many epsilons is left as it is


class RefinedSolution(NamedTuple):
    """A solution, and the largest errors over its right-hand sides.

    `backward_error`: x solves a system whose numbers differ from those of A and b by at most this fraction of
    themselves. `forward_bound`: a bound on max_i |x_i - true x_i| / max_i |x_i|, estimated but almost never too low.
    """

    x: np.ndarray
    backward_error: float
    forward_bound: float
    corrections: int

    @property
    def correct_digits(self) -> int:
        """Decimal digits of the largest component that the bound guarantees."""
        return max(0, int(-np.log10(max(self.forward_bound, 1e-99)))) if np.isfinite(self.forward_bound) else 0


def solve_refined(lu: BandedLU, b: np.ndarray) -> RefinedSolution:
    """The solution of A x = b, (n,) or (n, m), from the factors of A, corrected while that lowers its backward error.

    Errors are those of BandedLU.solve.
    """
    x = lu.solve(b)
    columns, sides = x.reshape(lu.n, -1).astype("f8"), np.asarray(b, lu.dtype).reshape(lu.n, -1).astype("f8")
    epsilon, corrections = float(np.finfo(lu.dtype).eps), 0
    residual, size = _residual(lu, columns, sides)
    error = _largest_ratio(residual, size)
    while ENOUGH * epsilon < error and corrections < MAX_CORRECTIONS:
        trial = columns + lu.solve(residual.astype(lu.dtype))
        trial = trial.astype(lu.dtype).astype("f8")
        trial_residual, trial_size = _residual(lu, trial, sides)
        trial_error = _largest_ratio(trial_residual, trial_size)
        if not trial_error < error / 2:
            break
        columns, residual, size, error, corrections = trial, trial_residual, trial_size, trial_error, corrections + 1
    bound = _forward_bound(lu, columns, residual, size)
    return RefinedSolution(columns.astype(lu.dtype).reshape(x.shape), error, bound, corrections)


def _residual(lu: BandedLU, x: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """b - A x and |A| |x| + |b|, (n, m) float64."""
    matrix = lu.matrix
    residual = b - block_columns.band_matvec(matrix, lu.kl, lu.ku, x)
    return residual, np.abs(b) + block_columns.band_matvec(np.abs(matrix), lu.kl, lu.ku, np.abs(x))


def _largest_ratio(residual: np.ndarray, size: np.ndarray) -> float:
    """The componentwise backward error; rows of zeros that are solved exactly have none."""
    ratio = np.divide(np.abs(residual), size, out=np.where(residual == 0, 0.0, np.inf), where=size > 0)
    return float(ratio.max(initial=0.0))


def _forward_bound(lu: BandedLU, x: np.ndarray, residual: np.ndarray, size: np.ndarray) -> float:
    """The largest element of |A^-1| (|r| + rounding of r) over that of |x|, for all columns by one estimate."""
    largest = np.abs(x).max(axis=0)
    terms = (lu.kl + lu.ku + 2) * float(np.finfo(np.float64).eps)
    doubt = np.abs(residual) + terms * size
    nonzero = largest > 0
    weights = (doubt[:, nonzero] / largest[nonzero]).max(axis=1, initial=0.0)[:, None]
    scale = weights.max(initial=0.0)
    if not 0 < scale < np.inf:
        return float(scale)
    weights /= scale  # |A^-1| diag(weights) has the maximum norm that its transpose has as the norm of column sums
    with np.errstate(over="ignore", invalid="ignore"):
        norm = inverse_norm1(
            lu.n,
            lambda v: weights * lu.solve(v.astype(lu.dtype), "T"),
            lambda v: lu.solve((weights * v).astype(lu.dtype)),
            np.float64,
        )
        return float(norm * scale) + float(np.finfo(lu.dtype).eps)
