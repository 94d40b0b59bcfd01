"""Refined solutions with bounds on their errors, as LAPACK's gbrfs and gbrfsx give them.

A residual r = b - A x, computed in twice the precision of the system, is solved for a correction until corrections are
below the last bit or no longer halve. That makes partial pivoting backward stable even where its growth is large
(R. Skeel 1980), and the solution right to nearly all bits as long as growth times the condition number stays below
1 / epsilon (J. Demmel et al., Error bounds from extra-precise iterative refinement, ACM TOMS 2006).
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from renderer.gpu import Device
from renderer.numerics.band_lu import block_columns
from renderer.numerics.band_lu.device_residuals import residuals_on
from renderer.numerics.band_lu.residuals import Residual, accurate_residual
from renderer.numerics.band_lu.solver import BandedLU, inverse_norm1

MAX_CORRECTIONS = 5
ENOUGH = 64  # a backward error below so many epsilons is left as it is
FEW = 4  # a random vector shows a contraction that many times too small with a probability of a fifth
MAX_RATIO = 0.5  # of successive corrections, for their limit to be trusted as an estimate of the error


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


def solve_refined(
    lu: BandedLU, b: np.ndarray, device: Device | None = None, units: np.ndarray | None = None
) -> RefinedSolution:
    """The solution of A x = b, (n,) or (n, m), from the factors of A, corrected while that helps.

    Residuals are computed by `device` where it pays, with the same bits as without one. With `units` (n,), powers of
    two, the forward bound is that of units * x, the solution before columns were scaled: a component that is small in
    x may be the largest of those. Errors are those of BandedLU.solve.
    """
    unit = np.ones((1, 1)) if units is None else units.reshape(-1, 1)
    x = lu.solve(b)
    columns, sides = x.reshape(lu.n, -1).astype("f8"), np.asarray(b, lu.dtype).reshape(lu.n, -1).astype("f8")
    epsilon, corrections, previous, ratio = float(np.finfo(lu.dtype).eps), 0, np.inf, 0.0
    residual_of = _residuals(lu, device)
    residual, step, contraction = _probed(lu, residual_of, columns, sides, unit)
    error, margin = _largest_ratio(residual), 4 * np.sqrt(lu.n)
    while True:
        change = _relative_size(unit * step, unit * columns)
        ratio = max(ratio, change / previous)
        if corrections == MAX_CORRECTIONS or change == 0 or not change < previous / 2:
            break
        if change < epsilon and error <= ENOUGH * epsilon:
            break
        with np.errstate(over="ignore"):
            trial = (columns + step).astype(lu.dtype).astype("f8")
        trial_residual = residual_of(trial, sides)
        trial_error = _largest_ratio(trial_residual)
        if not trial_error <= max(error, ENOUGH * epsilon):
            break
        columns, residual, error, corrections, previous = trial, trial_residual, trial_error, corrections + 1, change
        left = change * max(ratio, contraction) * margin  # what the next correction would be, at most
        if left < epsilon and max(ratio, contraction) * margin < MAX_RATIO and error <= ENOUGH * epsilon:
            return RefinedSolution(columns.astype(lu.dtype).reshape(x.shape), error, left + epsilon, corrections)
        margin = FEW  # two successive corrections were seen, not only random numbers
        step = _correction(lu, residual)
    ratio = max(ratio, contraction)
    if change == 0 or (ratio * margin <= MAX_RATIO and change < np.inf):
        bound = change / (1 - ratio) + (epsilon if columns.any() else 0.0)
    else:
        bound = _forward_bound(lu, columns, residual, unit)
        if ratio <= MAX_RATIO and bound < 1:  # the next correction is the error but for what converges after it
            bound = min(bound, change / (1 - ratio) + epsilon)
    return RefinedSolution(columns.astype(lu.dtype).reshape(x.shape), error, bound, corrections)


def _probed(
    lu: BandedLU,
    residual_of: Callable[[np.ndarray, np.ndarray], Residual],
    x: np.ndarray,
    b: np.ndarray,
    unit: np.ndarray,
) -> tuple[Residual, np.ndarray, float]:
    """The residual of x, its correction, and by what fraction the factors fail to solve for random signs.

    The last is how corrections shrink: (LU)^-1 A - I applied to a vector with parts of all directions. It takes a
    column beside the others in the same two passes.
    """
    signs = (np.random.default_rng(lu.n).integers(0, 2, (lu.n, 1)) * 2.0 - 1) / unit
    found = residual_of(np.hstack([x, signs]), np.hstack([b, np.zeros((lu.n, 1))]))
    step = _correction(lu, found)
    contraction = float(np.abs(unit * (step[:, -1:] + signs)).max())
    if not np.isfinite(step).all():  # of which column is not known
        step = _correction(lu, Residual(*(part[:, :-1] for part in found)))
    else:
        step = step[:, :-1]
    return Residual(*(np.ascontiguousarray(part[:, :-1]) for part in found)), step, contraction


def _residuals(lu: BandedLU, device: Device | None) -> Callable[[np.ndarray, np.ndarray], Residual]:
    """What computes residuals of the system, on the device or by NumPy."""
    on_device = residuals_on(device, lu.matrix, lu.kl, lu.ku, lu.band_on(device)) if device else None
    return on_device or partial(_residual, lu)


def _residual(lu: BandedLU, x: np.ndarray, b: np.ndarray) -> Residual:
    """The residual in twice the precision of the system, (n, m) float64."""
    if lu.dtype == np.float64:
        return accurate_residual(lu.matrix, lu.kl, lu.ku, x, b)
    matrix = lu.matrix
    values = b - block_columns.band_matvec(matrix, lu.kl, lu.ku, x)
    size = np.abs(b) + block_columns.band_matvec(np.abs(matrix), lu.kl, lu.ku, np.abs(x))
    return Residual(values, size, (lu.kl + lu.ku + 2) * float(np.finfo(np.float64).eps) * size)


def _correction(lu: BandedLU, residual: Residual) -> np.ndarray:
    """The solution for a residual; infinite where it overflows."""
    with np.errstate(over="ignore"):
        values = residual.values.astype(lu.dtype)
    if np.isfinite(values).all():
        try:
            return lu.solve(values).astype("f8")
        except block_columns.SolutionOverflows:
            pass
    return np.full(values.shape, np.inf)


def _relative_size(step: np.ndarray, x: np.ndarray) -> float:
    """The largest change of a column over its largest element."""
    sizes, largest = np.abs(step).max(axis=0), np.abs(x).max(axis=0)
    return float(np.divide(sizes, largest, out=np.where(sizes == 0, 0.0, np.inf), where=largest > 0).max(initial=0.0))


def _largest_ratio(found: Residual) -> float:
    """The componentwise backward error; rows of zeros that are solved exactly have none."""
    residual, size = found.values, found.size
    ratio = np.divide(np.abs(residual), size, out=np.where(residual == 0, 0.0, np.inf), where=size > 0)
    return float(ratio.max(initial=0.0))


def _forward_bound(lu: BandedLU, x: np.ndarray, residual: Residual, unit: np.ndarray) -> float:
    """The largest element of |A^-1| (|r| + rounding of r) over that of |x|, for all columns by one estimate.

    Both in the units given.
    """
    largest = np.abs(unit * x).max(axis=0)
    doubt = np.abs(residual.values) + residual.doubt
    nonzero = largest > 0
    weights = (doubt[:, nonzero] / largest[nonzero]).max(axis=1, initial=0.0)[:, None]
    scale = weights.max(initial=0.0)
    if not 0 < scale < np.inf:
        return float(scale)
    weights /= scale  # unit |A^-1| diag(weights) has the maximum norm that its transpose has as a norm of column sums
    with np.errstate(over="ignore", invalid="ignore"):
        norm = inverse_norm1(
            lu.n,
            lambda v: weights * lu.solve((unit * v).astype(lu.dtype), "T"),
            lambda v: unit * lu.solve((weights * v).astype(lu.dtype)),
            np.float64,
        )
        return float(norm * scale) + float(np.finfo(lu.dtype).eps)
