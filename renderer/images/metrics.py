"""How much two images differ: for tests and the benchmarks."""

import numpy as np


def psnr(a: np.ndarray, b: np.ndarray, peak: float = 255.0) -> float:
    """Peak signal-to-noise ratio in dB of two images of one shape; infinite for equal images."""
    error = float(np.mean((np.asarray(a, "f8") - np.asarray(b, "f8")) ** 2))
    return float("inf") if error == 0 else 10 * float(np.log10(peak * peak / error))
