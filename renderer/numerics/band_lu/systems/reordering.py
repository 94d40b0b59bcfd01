"""Reverse Cuthill-McKee (1969): a symmetric permutation that makes the band of a sparse matrix narrower.

For `rayfold solve`, which applies it to files of sparse matrices.
"""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from renderer.formats.matrix_market import Entries

MIN_GAIN = 0.75  # the permutation is used if the band then has at most this fraction of the diagonals
MAX_ORDER = (1 << 31) - 1  # csgraph indexes rows by int32


def narrowing_order(entries: Entries) -> np.ndarray | None:
    """The permutation (n,) of the rows and columns of a square matrix, or None if it would gain too little."""
    n = entries.shape[0]
    if n > MAX_ORDER or not len(entries.values):
        return None
    nonzeros = csr_array((np.ones(len(entries.rows), "i1"), (entries.rows, entries.columns)), shape=(n, n))
    pattern = csr_array(nonzeros + nonzeros.T)
    order = np.asarray(reverse_cuthill_mckee(pattern, symmetric_mode=True), "i8")
    inverse = np.empty(n, "i8")
    inverse[order] = np.arange(n)
    before = entries.rows - entries.columns
    after = inverse[entries.rows] - inverse[entries.columns]
    widths = [int(d.max(initial=0)) - int(d.min(initial=0)) + 1 for d in (before, after)]
    return order if widths[1] <= MIN_GAIN * widths[0] else None
