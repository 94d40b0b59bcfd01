"""The loop of iterative refinement: solve for a correction of x from its residual, as long as corrections shrink.

Used by BandedLU with float32 factors of a float64 matrix (LAPACK: dsgesv) and by solve_refined() (LAPACK: gbrfsx).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from renderer.numerics.band_lu.accuracy.residuals import Residual, quotients

ENOUGH = 64  # a backward error below this many epsilons of the factors' dtype is accepted

Correct = Callable[[np.ndarray], np.ndarray]  # the correction (n, m) of x for a residual (n, m), inf if it overflows
ResidualFunction = Callable[[np.ndarray, np.ndarray], Residual]  # the residual of x (n, m) for right-hand sides (n, m)
# (old residual, move, change, ratio) -> the residual of x + move if no further correction is needed, else None. `move`
# (n, m) is the rounded correction, `change` its size relative to x, `ratio` the largest quotient of successive changes.
LastResidual = Callable[[Residual, np.ndarray, float, float], Residual | None]


class Iterate(NamedTuple):
    """A solution with its residual, and the size of a correction: of the next one, which was computed but not applied.

    With `is_last`, of the last one that was applied: last_residual() ended the loop, so the next one is not known.
    """

    x: np.ndarray  # (n, m)
    residual: Residual
    backward_error: float  # componentwise
    corrections: int  # applied so far
    change: float  # size of the correction relative to x, the largest of all right-hand sides
    changes: np.ndarray  # (m,) its absolute sizes
    ratio: float  # largest quotient of successive changes
    is_last: bool = False


def correct_repeatedly(
    x: np.ndarray,
    b: np.ndarray,
    residual: Residual,
    step: np.ndarray,
    correct: Correct,
    residual_of: ResidualFunction,
    max_corrections: int,
    dtype: np.dtype,
    unit: np.ndarray | float = 1.0,
    last_residual: LastResidual = lambda residual, move, change, ratio: None,
) -> Iterate:
    """Corrects x repeatedly and returns the last iterate; `residual` belongs to x, and `step` is its first correction.

    x + step is rounded to `dtype`. The loop ends when a correction is not less than half of the previous one, increases
    the backward error, or is below the last bit; when last_residual() returns a residual; or after `max_corrections`.
    `unit` (n, 1): sizes are maxima over the components of unit * step and unit * x.
    """
    epsilon, previous = float(np.finfo(dtype).eps), np.inf
    error, corrections, ratio = residual.backward_error, 0, 0.0  # `error` is the backward error of x
    while True:
        changes, sizes = np.abs(unit * step).max(axis=0), np.abs(unit * x).max(axis=0)
        change = float(quotients(changes, sizes).max(initial=0.0))
        ratio = max(ratio, change / previous)
        current = Iterate(x, residual, error, corrections, change, changes, ratio)
        if corrections == max_corrections or change == 0 or not change < previous / 2:
            return current
        if change < epsilon and error <= ENOUGH * epsilon:
            return current
        with np.errstate(over="ignore"):
            trial = (x + step).astype(dtype).astype("f8")
        last = last_residual(residual, trial - x, change, ratio)
        trial_residual = last or residual_of(trial, b)
        trial_error = trial_residual.backward_error
        if not trial_error <= max(error, ENOUGH * epsilon):
            return current
        x, residual, error, corrections, previous = trial, trial_residual, trial_error, corrections + 1, change
        if last:
            return Iterate(x, residual, error, corrections, change, changes, ratio, is_last=True)
        step = correct(residual.values)
