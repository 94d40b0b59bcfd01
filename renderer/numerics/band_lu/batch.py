"""Band LU of many small systems in one launch, one thread per system (shaders/numerics/band_lu/batched.cu).

For pictures/focus.py, which solves a tridiagonal system for every row and every column of an image.
"""

import numpy as np
from numpy.typing import DTypeLike

from renderer.gpu import Buffer, Device

FILE = "numerics/band_lu/batched.cu"


class BandedBatch:
    """P L U of `count` band matrices of order n, and solutions with them, one launch each.

    `matrix` (n, 2 kl + ku + 1, count) holds LAPACK's factor storage with the system as the last index:
    matrix[j, kl + ku + i - j, b] = A[i, j] of system b; the first kl rows are reserved for fill-in. The caller fills
    `matrix` on the device, and factor() overwrites it. `infos` (count,) are the info values of LAPACK's gbtrf.
    """

    def __init__(self, device: Device, count: int, n: int, kl: int, ku: int, dtype: DTypeLike = "f4"):
        self.count, self.n, self.dtype = count, n, np.dtype(dtype)
        self.kl, self.ku = min(kl, n - 1), min(ku, n - 1)
        self.matrix = device.buffer((n, 2 * self.kl + self.ku + 1, count), dtype)
        self.pivots = device.buffer((n, count), "i4")
        self.infos = device.buffer(count, "i4")
        word = {"f4": "float", "f8": "double"}[self.dtype.str[1:]]
        group = 64 if not device.properties.scalar_threads else 16
        constants = dict(REAL=word, KL=self.kl, KU=self.ku)
        self._factor = device.kernel(FILE, "factor_systems", group_size=group, **constants)
        self._solve = device.kernel(FILE, "solve_systems", group_size=group, **constants)

    def factor(self) -> "BandedBatch":
        """Factors `matrix` in place; the rows for fill-in must be zero."""
        self._factor(self.count, self.matrix, self.pivots, self.infos, self.n, self.count)
        return self

    def solve_in_place(self, rhs: Buffer) -> None:
        """Overwrites right-hand sides (n, m, count) with the solutions, which are not finite for singular systems."""
        n, nrhs, count = rhs.shape
        assert (n, count) == (self.n, self.count) and rhs.dtype == self.dtype
        self._solve(count * nrhs, self.matrix, self.pivots, rhs, n, count, nrhs)
