"""solve_refined(): solutions by iterative refinement, with error bounds, as LAPACK's gbrfs and gbrfsx compute them.

For systems/system.py. The residual r = b - A x is computed in twice the precision of the system and solved for a
correction of x, until corrections are below the last bit or no longer halve (correction_loop.py). Refinement makes
partial pivoting backward stable even for large pivot growth (R. Skeel 1980), and x correct to nearly all bits if growth
times the condition number is below 1 / epsilon (J. Demmel et al., Error bounds from extra-precise iterative refinement,
ACM TOMS 2006).
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from renderer.gpu import Device
from renderer.numerics.band_lu import block_columns
from renderer.numerics.band_lu.accuracy.correction_loop import ENOUGH, Iterate, ResidualFunction, correct_repeatedly
from renderer.numerics.band_lu.accuracy.residuals import Residual, accurate_residual, quotients, residuals_on
from renderer.numerics.band_lu.solver import BandedLU

MAX_CORRECTIONS = 5
# The contraction is the factor by which the error of x shrinks with each correction, |I - (LU)^-1 A|; random vectors
# estimate it from below, so it is used times a safety factor.
SAFETY = 4  # safety factor if PROBES random vectors estimate the contraction; SAFETY sqrt(n) if one vector does
PROBES = 16  # random vectors of the second, closer estimate
MAX_CONTRACTION = 0.5  # largest contraction, times its safety factor, from which an error is bounded


class RefinedSolution(NamedTuple):
    """A refined solution x, (n,) or (n, m), with a bound of the error of each component.

    `error`, in the shape of x: |x_i - exact x_i| is at most error_i. solve_refined() estimates it with a safety factor,
    System proves it for small systems; it is infinite if the factors are too inaccurate for an estimate.
    `backward_error` (componentwise): x is the exact solution of a system in which each element of A and b is changed by
    at most this relative amount. `corrections` is the number of corrections. `scaled` is x in the order and scale of
    the factored matrix, `residual` (n, m) its b - A x.
    """

    x: np.ndarray
    error: np.ndarray
    backward_error: float
    corrections: int
    scaled: np.ndarray
    residual: np.ndarray

    @property
    def forward_bound(self) -> float:
        """The largest bound of a right-hand side: max_i |x_i - exact x_i| / max_i |x_i| is at most this."""
        return float(relative_bounds(self.x, self.error).max(initial=0.0))

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

    Plan: (1) Solve for x. With the first correction, estimate the contraction from one random vector v, as a further
    right-hand side A v. (2) Correct x repeatedly; if the next correction is sure to be below the last bit, skip it and
    update the residual instead of computing it anew. (3) Bound the error by the geometric series of the corrections; if
    the large safety factor of one vector prevents that, estimate the contraction again from PROBES vectors.

    `device` computes residuals if residuals.is_faster_on(); x has the same bits either way. `units` (n,), powers of
    two, are the column scales of equilibration: errors are then small relative to the largest component of units * x,
    the unscaled solution; the same component of x may be small. Raises the errors of BandedLU.solve().
    """
    unit = np.ones((1, 1)) if units is None else units.reshape(-1, 1)
    x = lu.solve(b)
    solution, sides = (np.asarray(v, lu.dtype).reshape(lu.n, -1).astype("f8", copy=False) for v in (x, b))
    residual_of, multiply = _products(lu, device)
    residual, vectors = residual_of(solution, sides), _random_vectors(lu, 1) / unit
    steps = _correction(lu, np.hstack([residual.values, multiply(vectors)]))
    step, contraction = steps[:, :-1], _contraction(unit, vectors, steps[:, -1:])
    if not np.isfinite(contraction):  # any column may have overflowed: solve again without the random vector
        step = _correction(lu, residual.values)
    safety, epsilon = SAFETY * np.sqrt(lu.n), float(np.finfo(lu.dtype).eps)

    def last_residual(old: Residual, move: np.ndarray, change: float, ratio: float) -> Residual | None:
        """The residual after the last correction `move`; None unless the next is sure to be below the last bit."""
        bound = max(ratio, contraction) * safety
        if change * bound >= epsilon or bound >= MAX_CONTRACTION:
            return None
        new = old._replace(values=old.values - multiply(move))  # rounds little, since `move` is small
        return new if new.backward_error <= ENOUGH * epsilon else None

    correct, limits = partial(_correction, lu), (MAX_CORRECTIONS, lu.dtype, unit)
    last = correct_repeatedly(solution, sides, residual, step, correct, residual_of, *limits, last_residual)
    # The large factor of one vector prevents a bound, and the factor SAFETY of PROBES vectors would allow it.
    if last.change and max(last.ratio, contraction) * safety >= MAX_CONTRACTION > contraction * SAFETY:
        vectors = _random_vectors(lu, min(PROBES, lu.n)) / unit
        # The residual of v for the right-hand side 0 is 0 - A v, so the correction is -(LU)^-1 A v.
        solved = -_correction(lu, residual_of(vectors, np.zeros_like(vectors)).values)
        contraction, safety = max(contraction, _contraction(unit, vectors, solved)), SAFETY
    is_zero = ~(sides.any(axis=0) | last.x.any(axis=0))  # right-hand sides whose solution 0 is exact
    error = np.where(is_zero, 0.0, _error(lu, last, max(last.ratio, contraction) * safety, unit))
    x = last.x.astype(lu.dtype, copy=False).reshape(x.shape)
    error = np.broadcast_to(error, last.x.shape).reshape(x.shape)
    return RefinedSolution(x, error, last.backward_error, last.corrections, scaled=x, residual=last.residual.values)


def _error(lu: BandedLU, last: Iterate, contraction: float, unit: np.ndarray) -> np.ndarray:
    """Bounds, (n, m) or (1, 1), of the error of the last iterate, from a safe bound of the contraction.

    Corrections are the first terms of a geometric series, whose sum is the error. If `last` holds the last correction
    applied (`is_last`), the next one is at most the contraction times it. Rounding x adds a unit in its last place, and
    residuals in twice the precision are uncertain by some units in the last place of the correction that they give.
    """
    if not contraction < MAX_CONTRACTION:
        return np.full((1, 1), np.inf)
    changes = last.changes * (contraction if last.is_last else 1.0) / (1 - contraction)
    summands = lu.kl + lu.ku + 3  # as in Residual.error_bounds(): a row of b - A x has kl + ku + 1 products and b
    sizes = np.abs(unit * last.x).max(axis=0)
    # 1: rounding x; contraction * summands: the uncertainty of the residuals
    rounding = float(np.finfo(lu.dtype).eps) * (1 + contraction * summands) * sizes
    error = (changes + rounding) / unit
    return np.where(np.isnan(error), np.inf, error)


def _random_vectors(lu: BandedLU, count: int) -> np.ndarray:
    """(n, count) random numbers, in the precision of the system, of magnitudes 0.5 to 1, so that no terms cancel."""
    random = np.random.default_rng(lu.n + count).random((lu.n, count), "f4") - np.float32(0.5)
    return np.asarray(random + np.copysign(np.float32(0.5), random), "f8")


def _contraction(unit: np.ndarray, vectors: np.ndarray, solved: np.ndarray) -> float:
    """An estimate of the factor by which corrections shrink; inf if `solved` is not finite.

    The largest |(I - (LU)^-1 A) v|_max of random vectors v, which have components in all directions; `solved` is
    (LU)^-1 A v. Rounding in A v only makes the estimate larger.
    """
    contraction = 2 * float(np.abs(unit * (solved - vectors)).max())  # magnitudes of v are down to a half
    return contraction if np.isfinite(contraction) else np.inf


def _products(lu: BandedLU, device: Device | None) -> tuple[ResidualFunction, Callable[[np.ndarray], np.ndarray]]:
    """Functions for residuals in twice the precision and for products A v, on the device or by NumPy."""
    on_device = residuals_on(device, lu.matrix, lu.kl, lu.ku, lu.band_on(device)) if device else None
    if on_device:
        return on_device, lambda v: -on_device(v, np.zeros_like(v)).values
    band = lu.matrix, lu.kl, lu.ku
    return partial(accurate_residual, *band), partial(block_columns.band_matvec, *band)


def _correction(lu: BandedLU, residual: np.ndarray) -> np.ndarray:
    """The correction for a residual; inf in all elements if it overflows."""
    with np.errstate(over="ignore"):
        values = residual.astype(lu.dtype, copy=False)
    if np.isfinite(values).all():
        try:
            return lu.solve(values).astype("f8", copy=False)
        except block_columns.SolutionOverflows:
            pass
    return np.full(values.shape, np.inf)
