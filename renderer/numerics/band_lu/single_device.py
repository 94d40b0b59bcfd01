"""The LU factorization of a band matrix where a picture needs it: on its own device, or on the host."""

import numpy as np

from renderer.gpu import Device
from renderer.numerics.band_lu import BandedLU


def factor_for(device: Device, ab: np.ndarray, block: int | None = None) -> BandedLU:
    """Factor ab (2 m + 1, n), a matrix of m sub- and m superdiagonals, on `device` if it is a GPU.

    On a CPU the host's own LAPACK makes the best use of the cores. `block`: block size on GPUs; by default the LU's.
    """
    half = (ab.shape[0] - 1) // 2
    if device.properties.scalar_threads:
        return BandedLU(ab, half, half, ())
    return BandedLU(ab, half, half, (device,), block)
