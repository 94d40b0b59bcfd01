"""Residuals b - A x of band systems as if computed in twice the working precision, with a proven bound on their error.

Products and sums are error-free transformations, and their errors are added up separately (T. Ogita, S. M. Rump,
S. Oishi, Accurate Sum and Dot Product, SIAM J. Sci. Comput. 2005, Dot2; T. J. Dekker 1971; D. E. Knuth).
"""

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from renderer.host import available_cores
from renderer.numerics.band_lu.block_columns import diagonals
from renderer.numerics.error_free import split

EPSILON = 2.0**-53  # half a unit in the last place
MAX_SPLIT = 2.0**990  # larger numbers would overflow where they are split into halves
TINY = 2.0**-1070  # more than what an underflowing error of one product loses
BLOCK = 1 << 13  # rows of a block: their intermediate results stay in the cache


class Residual(NamedTuple):
    """b - A x, |A| |x| + |b| and a bound on the error of the first, each (n, m) float64."""

    values: np.ndarray
    size: np.ndarray
    doubt: np.ndarray


def accurate_residual(ab: np.ndarray, kl: int, ku: int, x: np.ndarray, b: np.ndarray) -> Residual:
    """The residual of x (n, m) for right-hand sides b (n, m), with A the band matrix of ab (kl + ku + 1, n).

    All are of at most MAX_SPLIT in magnitude; where products overflow the residual is not finite.
    """
    x, b = x.astype("f8", copy=False), b.astype("f8", copy=False)
    values, size = np.empty(b.shape), np.abs(b)
    with np.errstate(over="ignore", invalid="ignore"):
        halves = split(x)

        def work(start: int) -> None:
            part = slice(start, min(start + BLOCK, len(b)))
            values[part] = _block_residual(ab, kl, ku, x, halves, b, part, size[part])

        starts = range(0, len(b), BLOCK)
        with ThreadPoolExecutor(min(available_cores(), len(starts) or 1)) as pool:
            list(pool.map(work, starts))
        terms = kl + ku + 3
        doubt = EPSILON * np.abs(values) + 2 * (terms * EPSILON) ** 2 * size + terms * TINY
    return Residual(values, size, doubt)


def _block_residual(
    ab: np.ndarray, kl: int, ku: int, x: np.ndarray, halves: tuple, b: np.ndarray, part: slice, size: np.ndarray
) -> np.ndarray:
    """Rows `part` of b - A x; adds |A| |x| to `size`, the same rows. `halves` are those of x."""
    total, errors, (x_high, x_low) = b[part].copy(), np.zeros_like(b[part]), halves
    with np.errstate(over="ignore", invalid="ignore"):
        for d, columns, rows in diagonals(ab, kl, ku):
            first, stop = max(rows.start, part.start), min(rows.stop, part.stop)
            if first >= stop:
                continue
            shift = columns.start - rows.start
            at, here = slice(first + shift, stop + shift), slice(first - part.start, stop - part.start)
            a = ab[d, at, None].astype("f8", copy=False)
            a_high, a_low = split(a)
            product = a * x[at]
            lost = a_low * x_low[at] - ((product - a_high * x_high[at]) - a_low * x_high[at] - a_high * x_low[at])
            before = total[here]
            after = before - product
            rest = after - before
            errors[here] += (before - (after - rest)) - (product + rest)
            errors[here] -= lost
            total[here] = after
            size[here] += np.abs(product)
        return total + errors
