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
from renderer.numerics.band_lu.accuracy.residuals import Residual, accurate_residual, quotients, residuals_on
from renderer.numerics.band_lu.solver import BandedLU

MAX_CORRECTIONS = 5
FEW = 4  # safety factor on a contraction that PROBES random vectors estimate; one vector takes FEW sqrt(n)
PROBES = 16
MAX_CONTRACTION = 0.5  # largest contraction, times its safety factor, from which an error is bounded


class RefinedSolution(NamedTuple):
    """A refined solution x, (n,) or (n, m), with a bound of the error of each component.

    `error`, in the shape of x: |x_i - exact x_i| is at most error_i. solve_refined() estimates it with a safety factor,
    System proves it for small systems; it is infinite if the factors are too inaccurate for an estimate.
    `backward_error` (componentwise): x is the exact solution of a system in which each element of A and b is changed by
    at most this relative amount. `corrections` is the number of corrections. `scaled` is x in the order and scale of
    the factored matrix.
    """

    x: np.ndarray
    error: np.ndarray
    backward_error: float
    corrections: int
    scaled: np.ndarray

    @property
    def bounds(self) -> np.ndarray:
        """The forward bound of each right-hand side (m,): max_i |x_i - exact x_i| / max_i |x_i| is at most this."""
        return relative_bounds(self.x, self.error)

    @property
    def forward_bound(self) -> float:
        """The largest of `bounds`."""
        return float(self.bounds.max(initial=0.0))

    @property
    def correct_digits(self) -> int:
        """Correct decimal digits of the largest component of every solution, by `forward_bound`."""
        return digits_of(self.forward_bound)


def relative_bounds(x: np.ndarray, error: np.ndarray) -> np.ndarray:
    """max error / max |x| of each column of (n,) or (n, m) arrays, rounded up."""
    largest, largest_error = (np.abs(v).reshape(len(v), -1).max(axis=0).astype("f8") for v in (x, error))
    return quotients(largest_error, largest) * (1 + 4 * float(np.finfo("f8").eps))


def digits_of(bound: float) -> int:
    """The whole decimal digits that a relative error bound leaves: 0 to 99."""
    return max(0, int(-np.log10(max(bound, 1e-99)))) if np.isfinite(bound) else 0


def solve_refined(
    lu: BandedLU, b: np.ndarray, device: Device | None = None, units: np.ndarray | None = None
) -> RefinedSolution:
    """The refined solution of A x = b, (n,) or (n, m), with the factors `lu` of A.

    `device` computes the residuals if residuals.pays(), with the same bits as the host. `units` (n,), powers of two,
    are the column scales of equilibration: errors are then small relative to the largest component of units * x, the
    unscaled solution, which may be a small one of x. Raises the errors of BandedLU.solve().
    """
    unit = np.ones((1, 1)) if units is None else units.reshape(-1, 1)
    x = lu.solve(b)
    columns, sides = x.reshape(lu.n, -1).astype("f8"), np.asarray(b, lu.dtype).reshape(lu.n, -1).astype("f8")
    residual_of, epsilon = _residual_function(lu, device), float(np.finfo(lu.dtype).eps)
    residual, step, contraction = _probed(lu, residual_of, columns, sides, unit, 1)
    safety = FEW * np.sqrt(lu.n)

    def is_enough(current: Iterate) -> bool:
        bound = max(current.ratio, contraction) * safety
        is_accurate = current.change * bound < epsilon and current.error <= ENOUGH * epsilon
        return is_accurate and bound < MAX_CONTRACTION

    correct = partial(_correction, lu)
    limits = MAX_CORRECTIONS, lu.dtype, unit, is_enough
    last = correct_repeatedly(columns, sides, residual, step, correct, residual_of, *limits)
    if last.change and max(last.ratio, contraction) * safety >= MAX_CONTRACTION > contraction * FEW:
        more = _probed(lu, residual_of, last.x[:, :0], sides[:, :0], unit, min(PROBES, lu.n))[2]
        contraction, safety = max(contraction, more), FEW
    is_zero = ~(sides.any(axis=0) | last.x.any(axis=0))
    error = np.where(is_zero, 0.0, _error(lu, last, max(last.ratio, contraction) * safety, unit))
    x = last.x.astype(lu.dtype, copy=False).reshape(x.shape)
    return RefinedSolution(x, np.broadcast_to(error, last.x.shape).reshape(x.shape), last.error, last.corrections, x)


def _error(lu: BandedLU, last: Iterate, contraction: float, unit: np.ndarray) -> np.ndarray:
    """Bounds, (n, m) or (1, m), of the error of the last iterate, from a safe bound of the contraction.

    Corrections are the first terms of a geometric series, whose sum is the error. `last` may hold the last correction
    applied (`is_enough`) or the next one. Rounding x adds a unit in its last place, and residuals in twice the
    precision are uncertain by some units in the last place of the correction that they give.
    """
    if not contraction < MAX_CONTRACTION:
        return np.full((1, 1), np.inf)
    changes = last.changes * (contraction if last.is_enough else 1.0) / (1 - contraction)
    terms = lu.kl + lu.ku + 3
    sizes = np.abs(unit * last.x).max(axis=0)
    rounding = float(np.finfo(lu.dtype).eps) * (1 + contraction * terms) * sizes
    error = (changes + rounding) / unit
    return np.where(np.isnan(error), np.inf, error)


def _probed(
    lu: BandedLU,
    residual_of: ResidualFunction,
    x: np.ndarray,
    b: np.ndarray,
    unit: np.ndarray,
    probes: int,
) -> tuple[Residual, np.ndarray, float]:
    """The residual of x, its correction, and an estimate of the contraction, the factor by which corrections shrink.

    The estimate is the largest |(I - (LU)^-1 A) v|_max of `probes` random vectors v, which have components in all
    directions; their magnitudes differ, so that no two terms cancel. They are extra columns in the residual and in the
    solve, so they cost no extra pass over the band.
    """
    count, rng = x.shape[1], np.random.default_rng(lu.n + probes)
    random = (rng.integers(0, 2, (lu.n, probes)) * 2 - 1) * rng.uniform(0.5, 1, (lu.n, probes))
    vectors = random.astype(lu.dtype).astype("f8") / unit
    residual = residual_of(np.hstack([x, vectors]), np.hstack([b, np.zeros((lu.n, probes))]))
    step = _correction(lu, residual)
    contraction = 2 * float(np.abs(unit * (step[:, count:] + vectors)).max())  # magnitudes are down to a half
    if not np.isfinite(step).all():  # any column may have overflowed: solve again without the extra ones
        step, contraction = _correction(lu, Residual(*(array[:, :count] for array in residual))), np.inf
    return Residual(*(np.ascontiguousarray(array[:, :count]) for array in residual)), step[:, :count], contraction


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
