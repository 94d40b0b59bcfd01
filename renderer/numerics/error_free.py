"""Error-free transformations of float64 arrays: TwoSum and TwoProduct, a rounded result and its exact rounding error.

T. J. Dekker, A floating-point technique for extending the available precision, 1971; D. E. Knuth, The Art of Computer
Programming, volume 2, section 4.2.2. The kernels' TwoSum is in shaders/numerics/error_free.h.
"""

import numpy as np

SPLITTER = 2.0**27 + 1


def split(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Veltkamp's split: high + low = a exactly, each of at most 26 bits, for magnitudes below 2^996."""
    scaled = a * SPLITTER
    high = scaled - (scaled - a)
    return high, a - high


def two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """TwoSum: fl(a + b) and its rounding error, a + b - fl(a + b)."""
    total = a + b
    rounded_b = total - a
    return total, (a - (total - rounded_b)) + (b - rounded_b)


def product_error(
    product: np.ndarray, a: tuple[np.ndarray, np.ndarray], b: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """TwoProduct: the rounding error a b - product, from the halves split(a) and split(b) of the factors.

    Exact if neither the product nor its error underflows or overflows.
    """
    (a_high, a_low), (b_high, b_low) = a, b
    return np.asarray(a_low * b_low - ((product - a_high * b_high) - a_low * b_high - a_high * b_low))
