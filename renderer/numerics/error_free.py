"""Error-free transformations of float64 arrays (T. J. Dekker 1971)."""

import numpy as np

SPLITTER = 2.0**27 + 1


def split(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The upper and the lower half of the bits of a, high + low = a; of magnitudes below 2^996."""
    scaled = a * SPLITTER
    high = scaled - (scaled - a)
    return high, a - high
