"""Enclosures of solutions of band systems: a proven error radius for every component, for `rayfold solve --certified`.

With Z an approximate inverse, G = I - Z A and r = b - A x, the error e of x satisfies e = Z r + G e. If the maximum
norm |G| is less than 1, A is not singular and |e_i| <= |Z r|_i + |G|_i delta, where |G|_i is the sum of row i of |G|
and delta = max |Z r| / (1 - |G|) (S. M. Rump, Verification methods, Acta Numerica 2010, section 10). Rounding errors of
the computation are added to the bounds. A row of Z is a solution with A^T; rows are computed in blocks, so the proof
takes n solves but little memory.

Systems of more than ROWS unknowns are first tried without Z (inverse_bounds.py). With y the computed correction of x,
an array of float64, and s = b - A (x + y) = r - A y, the error is y + A^-1 s, and so at most |y| + |A^-1| |s|. Three
roundings enter s: of r, of at most kl + ku + 1 products and sums of A y, and of the difference; (kl + ku + 4) EPSILON
(|r| + |A|_inf max |y|) bounds the last two. As s is about EPSILON^2 |A| |x|, a coarse bound of A^-1 costs no
digit. In the code `r_error` bounds the error of the computed r, `s_bound` is a bound of |s|, and a product with
INFLATION covers the roundings of a bound's own computation.

enclose_extended() does the same with Z, y and residuals in twice the precision, for conditions beyond 1 / EPSILON.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from renderer.errors import IncompleteError, UserError
from renderer.numerics.band_lu import block_columns
from renderer.numerics.band_lu.accuracy.extended import ExtendedFactors
from renderer.numerics.band_lu.accuracy.inverse_bounds import INFLATION, MAX_TERMS, by_comparison, by_singular_value
from renderer.numerics.band_lu.accuracy.refinement import RefinedSolution
from renderer.numerics.band_lu.accuracy.residuals import EPSILON, MAX_SPLIT, TINY, accurate_residual
from renderer.numerics.band_lu.block_columns import band_matvec, transposed_band
from renderer.numerics.band_lu.solver import BandedLU

ROWS = 64  # rows of Z computed at a time


class Enclosure(NamedTuple):
    """Each component of the exact solution differs from x by at most `radius` (same shape as x).

    `proof`: "comparison matrix" or "singular value" (inverse_bounds.py), "inverse" or "extended inverse". With an
    inverse `norm` < 1 is the proven bound of |I - Z A|; else it is None.
    """

    x: np.ndarray
    radius: np.ndarray
    norm: float | None
    proof: str

    @property
    def certain_digits(self) -> int:
        """Decimal digits proven for every component of x that is not 0; 0 if the sign of one is not proven."""
        ratio = float((self.radius[self.x != 0] / np.abs(self.x[self.x != 0])).max(initial=1e-16))
        return int(-np.log10(ratio)) if ratio < 1 else 0


def enclose(
    lu: BandedLU,
    refined: RefinedSolution,
    b: np.ndarray,
    progress: Callable[[int], None] | None = None,
    uncertainty: float = 0.0,
    may_invert: bool = True,
) -> Enclosure:
    """The Enclosure around the refined solution of A x = b, with A the matrix of `lu` and b (n,) or (n, m).

    progress(count) is called after `count` rows each. Elements of A and b may be wrong by `uncertainty`, an absolute
    error: of an equilibrated system (system.py), the rounding error of the scaling. Without `may_invert` only proofs
    that take about one solution are tried.
    IncompleteError, with the digits lost to the condition number, if no enclosure can be proven.
    """
    matrix, n = lu.matrix.astype("f8", copy=False), lu.n
    assert n <= MAX_TERMS
    x, sides = (np.asarray(v, "f8").reshape(n, -1) for v in (refined.x, b))
    residual = accurate_residual(matrix, lu.kl, lu.ku, x, sides)
    r_error = residual.error_bounds(lu.kl, lu.ku)
    r_error += uncertainty * ((lu.kl + lu.ku + 1) * np.abs(x).max(axis=0) + 1) * INFLATION
    largest = max(block_columns.max_abs(matrix, lu.kl, lu.ku), *(float(np.abs(v).max(initial=0)) for v in (x, sides)))
    if not (largest < MAX_SPLIT and np.isfinite(r_error).all()):
        raise IncompleteError(f"no enclosure: numbers up to {largest:.1e} overflow in its proof")
    cheap_proof = None if n <= ROWS else _without_inverse(lu, matrix, residual.values, r_error, uncertainty)
    if not (cheap_proof or may_invert):
        raise IncompleteError("no enclosure can be proven without an inverse of the matrix")
    bound_rows = partial(_rows_of_proof, lu, matrix, residual.values, r_error)
    failure = partial(_ill_conditioned, lu, refined)
    proof, norm, radius = cheap_proof or ("inverse", *_by_inverse(x.shape, bound_rows, progress, failure))
    radius[:, ~(sides.any(axis=0) | x.any(axis=0))] = 0  # b = 0 and x = 0: exact, since A is not singular
    return Enclosure(refined.x, radius.reshape(refined.x.shape), norm, proof)


def enclose_extended(
    factors: ExtendedFactors,
    refined: RefinedSolution,
    b: np.ndarray,
    progress: Callable[[int], None] | None = None,
    uncertainty: float = 0.0,
) -> Enclosure:
    """The Enclosure by double-double `factors` of A, for conditions up to about 1e28; otherwise as enclose()."""
    n, width, band = factors.n, factors.kl + factors.ku + 1, (np.abs(factors.ab), factors.kl, factors.ku)
    x, sides = (np.asarray(v, "f8").reshape(n, -1) for v in (refined.x, b))
    transposed = ExtendedFactors(transposed_band(factors.ab, factors.kl, factors.ku), factors.ku, factors.kl)

    def bound_rows(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        """As _rows_of_proof(), with z and `left` in pairs of high and low parts (2, n, k)."""
        unit = np.eye(n, rows.stop - rows.start, -rows.start)
        z = transposed.solve((unit, np.zeros_like(unit)))
        left, size = transposed.residual(z, unit), np.abs(z).sum(axis=0)
        norms = np.abs(left).sum(axis=0) + uncertainty * width * size
        norms += transposed.residual_errors(left, band_matvec(*band, size, transposed=True) + unit)
        return (size.T @ s_bound + n * TINY) * INFLATION, norms.sum(axis=0) * INFLATION

    # r, y and s of the head, as pairs (2, n, m): y is a correction of x, and `size` is |y|
    with np.errstate(over="ignore", invalid="ignore"):
        r = factors.residual(x[None], sides)
        y = factors.solve(r)
        s, size = factors.residual(y, r[0]), np.abs(y).sum(axis=0)  # r's low part is added in the next line
        s_bound = np.abs(s[0] + r[1]) + np.abs(s[1]) + uncertainty * (width * (np.abs(x) + size).max(axis=0) + 1)
        s_bound += factors.residual_errors(r, band_matvec(*band, np.abs(x)) + np.abs(sides))
        s_bound = (s_bound + factors.residual_errors(s, band_matvec(*band, size) + np.abs(r[0]))) * INFLATION
        failure = "no enclosure can be proven: the condition of the matrix is too large for twice the precision"
        norm, radius = _by_inverse(x.shape, bound_rows, progress, lambda: failure)  # bounds |A^-1 s|
        radius = np.where(sides.any(axis=0) | x.any(axis=0), (radius + size) * INFLATION, 0.0)
    return Enclosure(refined.x, radius.reshape(refined.x.shape), norm, "extended inverse")


def _without_inverse(
    lu: BandedLU, matrix: np.ndarray, residual: np.ndarray, r_error: np.ndarray, uncertainty: float
) -> tuple[str, None, np.ndarray] | None:
    """The proof and its radii (n, m) from bounds of |A^-1 s| (inverse_bounds.py); None if there is no such bound."""
    band, terms = (matrix, lu.kl, lu.ku), lu.kl + lu.ku + 4
    try:
        y = lu.solve(residual).astype("f8", copy=False)
    except UserError:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        s_bound = np.abs(residual - block_columns.band_matvec(*band, y))
        row_sums = block_columns.absolute_sums(*band, of_rows=True)
        sizes = np.abs(residual).max(axis=0) + row_sums.max() * np.abs(y).max(axis=0)
        y_size = np.abs(y).max(axis=0)
        s_bound += r_error + (terms * (EPSILON * sizes + TINY) + terms * uncertainty * y_size) * INFLATION
        s_bound *= INFLATION
    if not np.isfinite(s_bound).all():
        return None
    for name, bound in (("comparison matrix", by_comparison), ("singular value", by_singular_value)):
        bounds = bound(*band, s_bound, row_sums, uncertainty)
        if bounds is not None:
            return name, None, (np.abs(y) + bounds) * INFLATION
    return None


def _by_inverse(
    shape: tuple[int, ...],
    bound_rows: Callable[[slice], tuple[np.ndarray, np.ndarray]],
    progress: Callable[[int], None] | None,
    failure: Callable[[], str],
) -> tuple[float, np.ndarray]:
    """The proven norm of I - Z A and the radii, in the `shape` (n, m) of x, by an approximate inverse Z.

    bound_rows() bounds |Z r| and the row sums of |I - Z A| in some rows; IncompleteError(failure()) if Z is too bad.
    """
    products, norms = np.empty(shape), np.empty(shape[0])
    for first in range(0, shape[0], ROWS):
        rows = slice(first, min(first + ROWS, shape[0]))
        products[rows], norms[rows] = bound_rows(rows)
        if not (norms[rows] < 1).all():
            if progress:
                progress(-first)  # another proof may begin
            raise IncompleteError(failure())
        if progress:
            progress(rows.stop - rows.start)
    norm = float(norms.max()) * INFLATION
    if not norm < 1:
        raise IncompleteError(failure())
    delta = products.max(axis=0) / (1 - norm) * INFLATION
    return norm, (products + norms[:, None] * delta) * INFLATION


def _rows_of_proof(
    lu: BandedLU, matrix: np.ndarray, residual: np.ndarray, r_error: np.ndarray, rows: slice
) -> tuple[np.ndarray, np.ndarray]:
    """Upper bounds of |Z r| and of the row sums of |I - Z A|, for a block of rows of Z.

    `residual` is r, known to within `r_error`. The columns of z are rows of Z, the columns of `left` rows of I - Z A.
    """
    n = lu.n
    unit = np.eye(n, rows.stop - rows.start, -rows.start)  # column k is the unit vector of row rows.start + k
    z = lu.solve(unit, "T").astype("f8", copy=False)
    # Roundings of a term of I - Z A: at most a product, kl + ku + 1 additions and a subtraction, and one as a margin.
    terms = lu.kl + lu.ku + 4
    if n <= ROWS:  # a single block: twice the working precision takes little time, and gives closer bounds
        left = accurate_residual(transposed_band(matrix, lu.kl, lu.ku), lu.ku, lu.kl, z, unit)
        norms = (np.abs(left.values) + left.error_bounds(lu.ku, lu.kl)).sum(axis=0) * INFLATION
    else:
        sizes = band_matvec(np.abs(matrix), lu.kl, lu.ku, np.abs(z), transposed=True) + unit
        left = np.abs(unit - band_matvec(matrix, lu.kl, lu.ku, z, transposed=True))
        norms = (left + terms * EPSILON * INFLATION * sizes + terms * TINY).sum(axis=0) * INFLATION
    rounding = n * EPSILON * INFLATION * (np.abs(z).T @ np.abs(residual))
    return (np.abs(z.T @ residual) + rounding + np.abs(z).T @ r_error + n * TINY) * INFLATION, norms


def _ill_conditioned(lu: BandedLU, refined: RefinedSolution) -> str:
    """The error sentence for a matrix that is too close to a singular one."""
    rcond = lu.rcond()
    lost = f"about {int(np.ceil(-np.log10(rcond)))} digits of 16" if rcond > 0 else "all digits"
    return (
        f"no enclosure can be proven: the condition of the matrix (rcond {rcond:.1e}) costs {lost}, "
        f"and {refined.correct_digits} digits are estimated to be right"
    )
