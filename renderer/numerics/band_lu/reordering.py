"""An order of rows and columns that makes the band of a sparse matrix narrower: reverse Cuthill-McKee (1969)."""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from renderer.formats.matrix_market import Entries

MIN_GAIN = 0.75  # an order is used if it leaves at most this many of the diagonals
MAX_ORDER = (1 << 31) - 1  # rows that csgraph can count


def narrowing_order(entries: Entries) -> np.ndarray | None:
    """The order (n,) of the rows and columns of a square matrix, or None where it makes the band hardly narrower."""
    n = entries.shape[0]
    if n > MAX_ORDER or not len(entries.values):
        return None
    one_way = csr_array((np.ones(len(entries.rows), "i1"), (entries.rows, entries.columns)), shape=(n, n))
    pattern = csr_array(one_way + one_way.T)
    order = np.asarray(reverse_cuthill_mckee(pattern, symmetric_mode=True), "i8")
    place = np.empty(n, "i8")
    place[order] = np.arange(n)
    before = entries.rows - entries.columns
    after = place[entries.rows] - place[entries.columns]
    widths = [int(d.max(initial=0)) - int(d.min(initial=0)) + 1 for d in (before, after)]
    return order if widths[1] <= MIN_GAIN * widths[0] else None
