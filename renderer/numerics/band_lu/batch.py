"""Many small band systems at once: one thread per system, elements of neighboring systems adjacent in memory.

For pictures/focus.py, whose rows and columns are tridiagonal systems: a batch takes one launch.
"""

import numpy as np

from renderer.gpu import Buffer, Device

FILE = "numerics/band_lu/batched.cu"


class BandedBatch:
    """P L U of `count` band matrices of order n in one launch, and their solutions in another.

    `matrix` (n, 2 kl + ku + 1, count) holds column j of system b as LAPACK's factor storage does, matrix[j, kl + ku +
    i - j, b] = A[i, j]; its first kl rows are reserved for fill-in. A picture fills it on the device; factor() works in
    place. `infos` (count,) are LAPACK's info of the systems.
    """

    def __init__(self, device: Device, count: int, n: int, kl: int, ku: int, dtype="f4"):
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
        """Factors `matrix` in place; its rows of fill-in must be zero."""
        self._factor(self.count, self.matrix, self.pivots, self.infos, self.n, self.count)
        return self

    def solve_in_place(self, rhs: Buffer) -> None:
        """Replaces right-hand sides (n, m, count) by the solutions, which are not finite where a system is singular."""
        n, nrhs, count = rhs.shape
        assert (n, count) == (self.n, self.count) and rhs.dtype == self.dtype
        self._solve(count * nrhs, self.matrix, self.pivots, rhs, n, count, nrhs)
