"""Proven bounds of A^-1 r for a band matrix A, at the price of one factorization, for certified.py.

Two theorems, with roundings. u is EPSILON, c = kl + ku + 1 the most elements of a row or column, and gamma(m) = m u /
(1 - m u), which bounds the relative error of a product or sum of m roundings in any order, also with fused
multiply-adds (N. Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 3.1).

by_comparison(): C = <A> is A's comparison matrix, |a_ii| on and -|a_ij| off the diagonal. If v > 0 and w = C v > 0,
then A is an H-matrix, |A^-1| <= C^-1, and C^-1 r <= max(r_i / w_i) C^-1 w = max(r_i / w_i) v for any r >= 0 (A.
Neumaier, Interval Methods for Systems of Equations, 1990, section 3.7). Any v will do; an approximate solution of C v =
1 is near the best. Roundings: let d_i = |a_ii| v_i and o_i be the other terms' sum. The computed w_i is within gamma(c
+ 1) (d_i + o_i) of d_i - o_i. If it is above 2 gamma(c + 1) d_i, then d_i (1 - gamma) > o_i (1 - gamma), so o_i < d_i
and w_i >= computed - 2 gamma(c + 1) d_i.

by_singular_value(): |A^-1 r|_2 <= |r|_2 / sigma with sigma^2 the least eigenvalue of A^T A (S. M. Rump, Verification
methods, Acta Numerica 2010, section 10.8, and Verification of positive definiteness, BIT 2006). G = fl(A^T A) has an
error of at most gamma(c) |A|^T |A|, whose 2-norm is at most g = gamma(c) |A|_1 |A|_inf. If a Cholesky factorization of
H = fl(G - s I) of half-width k = kl + ku ends with a triangle R, then R^T R = H + E with |E| <= gamma(2 k + 10) |R|^T
|R|. (An element takes k products, a root and a quotient, or a product with a reciprocal: k + 3 roundings; the rest is a
margin.) Columns of R have |R_j|^2 <= h_jj / (1 - gamma), so |E|_2 <= |E|_inf <= f = (2 k + 1) gamma / (1 - gamma) max
h_jj. As R^T R has no negative eigenvalue, sigma^2 >= s - f - g - u max g_jj. With s = 4 (f + g + u max g_jj) sigma^2 is
at least s / 2: so small a shift proves matrices of a condition up to about 1e6, and is enough for corrections of 1e-16.
Magnitudes in MAGNITUDES keep all underflow, at most 2^-1022 times n 2^100, far below the margin of s / 4.
"""

import numpy as np
from scipy.linalg import get_lapack_funcs

from renderer.errors import UserError
from renderer.numerics.band_lu.accuracy.residuals import EPSILON, TINY
from renderer.numerics.band_lu.block_columns import band_matvec, diagonals, max_abs, norm1, row_blocks
from renderer.numerics.band_lu.host_factors import single_threaded_blas
from renderer.numerics.band_lu.solver import BandedLU

INFLATION = 1 + 1e-8  # bounds the relative rounding error of a sum of MAX_TERMS magnitudes
MAX_TERMS = 1 << 24  # most terms of a sum, and so the largest n: MAX_TERMS * EPSILON is 1.9e-9
MAGNITUDES = 2.0**-200, 2.0**200  # range of max |a_ij| of matrices whose singular values are bounded


def by_comparison(
    ab: np.ndarray, kl: int, ku: int, r: np.ndarray, row_sums: np.ndarray, uncertainty: float
) -> np.ndarray | None:
    """Upper bounds (n, m) of |A^-1 r| for all right-hand sides of magnitudes at most r (n, m), or None.

    None if no bound is found, and without an attempt if the diagonal is less than the other elements in most rows.
    `row_sums` (n,) are absolute_sums() of the rows. Elements of A may be wrong by `uncertainty`.
    """
    if np.count_nonzero(row_sums > 2.01 * np.abs(ab[ku])) > len(row_sums) // 2:
        return None
    comparison = np.zeros_like(ab)  # C = <A>, as a band array
    for d, columns, _rows in diagonals(ab, kl, ku):
        np.abs(ab[d, columns], out=comparison[d, columns])
        if d != ku:
            np.negative(comparison[d, columns], out=comparison[d, columns])
    try:
        v = BandedLU(comparison, kl, ku).solve(np.ones((ab.shape[1], 1)))
    except UserError:
        return None
    if not v.min() > 0:
        return None
    terms = kl + ku + 4  # the proof's c + 1, and a margin of 2
    with np.errstate(over="ignore", invalid="ignore"):
        # w: a lower bound of C v, by 2 gamma(c + 1) d_i and the uncertain elements.
        w = band_matvec(comparison, kl, ku, v) - 2 * terms * EPSILON * INFLATION * comparison[ku, :, None] * v
        w -= (uncertainty * float(v.max()) + TINY) * terms * INFLATION
        w *= 1 - 4 * EPSILON
        bounds = ((r / w).max(axis=0) + TINY) * v * INFLATION + TINY
    return np.asarray(bounds) if w.min() > 0 and np.isfinite(bounds).all() else None


def by_singular_value(
    ab: np.ndarray, kl: int, ku: int, r: np.ndarray, row_sums: np.ndarray, uncertainty: float
) -> np.ndarray | None:
    """Upper bounds (1, m) of |A^-1 r| as by_comparison(); None if the least singular value has no proven bound."""
    n, reach = ab.shape[1], min(kl + ku, ab.shape[1] - 1)
    if not MAGNITUDES[0] < max_abs(ab, kl, ku) < MAGNITUDES[1]:
        return None
    gram = np.zeros((reach + 1, n), order="F")  # G as a lower band array: gram[s, j] = (A^T A)[j + s, j]
    for block in row_blocks(n, 1):
        sums = np.zeros((reach + 1, block.stop - block.start))
        for s in range(reach + 1):
            for d in range(s, kl + ku + 1):
                first, end = max(block.start, ku - d), min(block.stop, n - s, n - d + ku)
                if first < end:
                    product = ab[d, first:end] * ab[d - s, first + s : end + s]
                    sums[s, first - block.start : end - block.start] += product
        gram[:, block] = sums
    largest, roundings = float(gram[0].max()), 2 * reach + 10
    norms = norm1(ab, kl, ku) * float(row_sums.max())
    # margin: f + g + u max g_jj of the proof, in this order; `shift` is its s.
    margin = EPSILON * INFLATION**4 * ((2 * reach + 1) * roundings * largest + (kl + ku + 1) * norms + largest)
    shift = 4 * margin
    gram[0] -= shift
    with single_threaded_blas():
        info = get_lapack_funcs("pbtrf", (gram,))(gram, lower=1, overwrite_ab=1)[1]
    sigma = np.sqrt(shift / 2) * (1 - 4 * EPSILON) - uncertainty * (kl + ku + 1) * INFLATION
    if info or not sigma > 0:
        return None
    sizes = r.max(axis=0)  # |r|_2 of each column, scaled so that no square underflows
    lengths = np.sqrt(np.square(r / np.where(sizes > 0, sizes, 1)).sum(axis=0)) * sizes * INFLATION
    return np.asarray(((lengths + TINY) / sigma * INFLATION + TINY)[None])
