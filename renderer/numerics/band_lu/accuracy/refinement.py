"""solve_refined(): solutions by iterative refinement, with error bounds, as LAPACK's gbrfs and gbrfsx compute them.

For systems/system.py. The residual r = b - A x is computed in twice the precision of the system and solved for a
correction of x, until corrections are below the last bit or no longer halve (correction_loop.py). Refinement makes
partial pivoting backward stable even for large pivot growth (R. Skeel 1980), and x correct to nearly all bits if growth
times the condition number is below 1 / epsilon (J. Demmel et al., Error bounds from extra-precise iterative refinement,
ACM TOMS 2006).
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from renderer.gpu import Device
from renderer.numerics.band_lu import block_columns
from renderer.numerics.band_lu.accuracy.correction_loop import ENOUGH, Iterate, ResidualFunction, correct_repeatedly
from renderer.numerics.band_lu.accuracy.residuals import Residual, accurate_residual, residuals_on
from renderer.numerics.band_lu.solver import BandedLU, inverse_norm1

MAX_CORRECTIONS = 5
FEW = 4  # safety factor: a random vector underestimates the contraction by more with a probability of a fifth
MAX_RATIO = 0.5  # largest ratio of successive corrections from which the error is estimated


class RefinedSolution(NamedTuple):
    """A refined solution x with the maxima of its errors over the right-hand sides.

    `backward_error` (componentwise): x is the exact solution of a system in which each element of A and b is changed by
    at most this relative amount. `forward_bound` bounds max_i |x_i - exact x_i| / max_i |x_i|; the bound is an
    estimate, but almost never too low. `corrections` is the number of corrections.
    """

    x: np.ndarray
    backward_error: float
    forward_bound: float
    corrections: int

    @property
    def correct_digits(self) -> int:
        """Correct decimal digits of the largest component, by `forward_bound`."""
        return max(0, int(-np.log10(max(self.forward_bound, 1e-99)))) if np.isfinite(self.forward_bound) else 0


def solve_refined(
    lu: BandedLU, b: np.ndarray, device: Device | None = None, units: np.ndarray | None = None
) -> RefinedSolution:
    """The refined solution of A x = b, (n,) or (n, m), with the factors `lu` of A.

    `device` computes the residuals if residuals.pays(), with the same bits as the host. `units` (n,), powers of two,
    are the column scales of equilibration: the forward bound is then relative to units * x, the unscaled solution,
    whose largest component may be a small one of x. Raises the errors of BandedLU.solve().
    """
    unit = np.ones((1, 1)) if units is None else units.reshape(-1, 1)
    x = lu.solve(b)
    columns, sides = x.reshape(lu.n, -1).astype("f8"), np.asarray(b, lu.dtype).reshape(lu.n, -1).astype("f8")
    residual_of, epsilon = _residual_function(lu, device), float(np.finfo(lu.dtype).eps)
    residual, step, contraction = _probed(lu, residual_of, columns, sides, unit)

    def safety_factor(is_first: bool) -> float:
        """The factor on the contraction: larger if it is known from the random vector only."""
        return 4 * np.sqrt(lu.n) if is_first else FEW

    def is_enough(current: Iterate) -> bool:
        ratio, factor = max(current.ratio, contraction), safety_factor(current.corrections == 1)
        is_accurate = current.change * ratio * factor < epsilon and current.error <= ENOUGH * epsilon
        return is_accurate and ratio * factor < MAX_RATIO

    correct = partial(_correction, lu)
    limits = MAX_CORRECTIONS, lu.dtype, unit, is_enough
    last = correct_repeatedly(columns, sides, residual, step, correct, residual_of, *limits)
    columns, change, ratio = last.x, last.change, max(last.ratio, contraction)
    if last.is_enough:
        bound = change * ratio * safety_factor(last.corrections == 1) + epsilon
    elif change == 0 or (ratio * safety_factor(last.corrections == 0) <= MAX_RATIO and change < np.inf):
        bound = change / (1 - ratio) + (epsilon if columns.any() else 0.0)
    else:
        bound = _forward_bound(lu, columns, last.residual, unit)
        if ratio <= MAX_RATIO and bound < 1:  # the error is at most the sum of the next corrections, a geometric series
            bound = min(bound, change / (1 - ratio) + epsilon)
    return RefinedSolution(columns.astype(lu.dtype).reshape(x.shape), last.error, bound, last.corrections)


def _probed(
    lu: BandedLU,
    residual_of: ResidualFunction,
    x: np.ndarray,
    b: np.ndarray,
    unit: np.ndarray,
) -> tuple[Residual, np.ndarray, float]:
    """The residual of x, its correction, and an estimate of the contraction, the factor by which corrections shrink.

    The estimate is |(I - (LU)^-1 A) v|_max for a vector v of random signs, which has components in all directions. It
    is an extra column in the residual and in the solve, so it costs no extra pass over the band.
    """
    signs = (np.random.default_rng(lu.n).integers(0, 2, (lu.n, 1)) * 2.0 - 1) / unit
    residual = residual_of(np.hstack([x, signs]), np.hstack([b, np.zeros((lu.n, 1))]))
    step = _correction(lu, residual)
    contraction = float(np.abs(unit * (step[:, -1:] + signs)).max())
    if not np.isfinite(step).all():  # any column may have overflowed: solve again without the extra one
        step = _correction(lu, Residual(*(array[:, :-1] for array in residual)))
    else:
        step = step[:, :-1]
    return Residual(*(np.ascontiguousarray(array[:, :-1]) for array in residual)), step, contraction


def _residual_function(lu: BandedLU, device: Device | None) -> ResidualFunction:
    """The function that computes residuals of the system, on the device or by NumPy."""
    on_device = residuals_on(device, lu.matrix, lu.kl, lu.ku, lu.band_on(device)) if device else None
    return on_device or partial(_residual, lu)


def _residual(lu: BandedLU, x: np.ndarray, b: np.ndarray) -> Residual:
    """The residual (n, m) in twice the precision of the system, by NumPy."""
    if lu.dtype == np.float64:
        return accurate_residual(lu.matrix, lu.kl, lu.ku, x, b)
    matrix = lu.matrix
    values = b - block_columns.band_matvec(matrix, lu.kl, lu.ku, x)
    size = np.abs(b) + block_columns.band_matvec(np.abs(matrix), lu.kl, lu.ku, np.abs(x))
    return Residual(values, size, (lu.kl + lu.ku + 2) * float(np.finfo(np.float64).eps) * size)


def _correction(lu: BandedLU, residual: Residual) -> np.ndarray:
    """The correction for a residual; inf in all elements if it overflows."""
    with np.errstate(over="ignore"):
        values = residual.values.astype(lu.dtype)
    if np.isfinite(values).all():
        try:
            return lu.solve(values).astype("f8")
        except block_columns.SolutionOverflows:
            pass
    return np.full(values.shape, np.inf)


def _forward_bound(lu: BandedLU, x: np.ndarray, residual: Residual, unit: np.ndarray) -> float:
    """An estimate of max_i (|A^-1| (|r| + doubt of r))_i / max_i |x_i|, one for all columns; x in units of `unit`."""
    largest = np.abs(unit * x).max(axis=0)
    doubt = np.abs(residual.values) + residual.doubt
    nonzero = largest > 0
    weights = (doubt[:, nonzero] / largest[nonzero]).max(axis=1, initial=0.0)[:, None]
    scale = weights.max(initial=0.0)
    if not 0 < scale < np.inf:
        return float(scale)
    weights /= scale  # the maximum norm of unit |A^-1| diag(weights) is the 1-norm of its transpose
    with np.errstate(over="ignore", invalid="ignore"):
        norm = inverse_norm1(
            lu.n,
            lambda v: weights * lu.solve((unit * v).astype(lu.dtype), "T"),
            lambda v: unit * lu.solve((weights * v).astype(lu.dtype)),
            np.float64,
        )
        return float(norm * scale) + float(np.finfo(lu.dtype).eps)
