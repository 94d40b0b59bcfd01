"""Many small band systems at once: one thread per system, elements of neighboring systems adjacent in memory.

For pictures/focus.py, whose rows and columns are tridiagonal systems: a batch takes one launch.
"""

import numpy as np

from renderer.errors import InputError, UserError
from renderer.gpu import Buffer, Device
from renderer.numerics.band_lu.block_columns import SingularMatrix, check_integer, real_array

FILE = "numerics/band_lu/batched.cu"


class BandedBatch:
    """P L U of `count` band matrices of order n in one launch, and their solutions in another.

    `matrix` (n, 2 kl + ku + 1, count) holds column j of system b as LAPACK's factor storage does, matrix[j, kl + ku +
    i - j, b] = A[i, j]; its first kl rows are reserved for fill-in. A picture may fill it on the device; `factor()`
    then works in place.
    """

    def __init__(self, device: Device, count: int, n: int, kl: int, ku: int, dtype="f4"):
        for name, value, least in (("count", count, 0), ("n", n, 1), ("kl", kl, 0), ("ku", ku, 0)):
            check_integer(name, value, least)
        if np.dtype(dtype) not in (np.float32, np.float64):
            raise UserError(f"dtype is {dtype}; allowed are f4 and f8")
        self.device, self.count, self.n = device, int(count), int(n)
        self.kl, self.ku, self.dtype = min(int(kl), n - 1), min(int(ku), n - 1), np.dtype(dtype)
        self.matrix = device.buffer((n, 2 * self.kl + self.ku + 1, count), dtype)
        self.pivots = device.buffer((n, count), "i4")
        self.infos = device.buffer(count, "i4")
        word = {"f4": "float", "f8": "double"}[self.dtype.str[1:]]
        group = 64 if not device.properties.scalar_threads else 16
        constants = dict(REAL=word, KL=self.kl, KU=self.ku)
        self._factor = device.kernel(FILE, "factor_systems", group_size=group, **constants)
        self._solve = device.kernel(FILE, "solve_systems", group_size=group, **constants)

    def write(self, ab: np.ndarray) -> "BandedBatch":
        """Uploads the matrices ab (count, kl + ku + 1, n), each in LAPACK's layout, and factors them."""
        ab = real_array(ab, "ab")
        wanted = (self.count, self.kl + self.ku + 1, self.n)
        if ab.shape != wanted:
            raise InputError(f"ab is {ab.shape}; the batch takes {wanted}")
        storage = np.zeros(self.matrix.shape, self.dtype)
        storage[:, self.kl :, :] = ab.transpose(2, 1, 0)
        for j in range(min(self.ku, self.n)):  # the unused corners of ab may hold anything
            storage[j, : self.kl + self.ku - j] = 0
        for j in range(max(0, self.n - self.kl), self.n):
            storage[j, self.kl + self.ku + self.n - j :] = 0
        wrong = ~np.isfinite(storage)
        if wrong.any():
            column, _, system = np.argwhere(wrong)[0]
            raise InputError(f"ab of system {system} is not finite in column {column}")
        self.matrix.write(storage)
        return self.factor()

    def factor(self) -> "BandedBatch":
        """Factors `matrix` in place; its rows of fill-in must be zero."""
        self._factor(self.count, self.matrix, self.pivots, self.infos, self.n, self.count)
        return self

    def info(self) -> np.ndarray:
        """(count,): LAPACK's info of every system."""
        return self.infos.read()

    def solve_in_place(self, rhs: Buffer) -> None:
        """Replaces right-hand sides (n, m, count) by the solutions, which are not finite where a system is singular."""
        n, nrhs, count = rhs.shape
        assert (n, count) == (self.n, self.count) and rhs.dtype == self.dtype
        self._solve(count * nrhs, self.matrix, self.pivots, rhs, n, count, nrhs)

    def solve(self, b: np.ndarray) -> np.ndarray:
        """The solutions x (count, n, m) of b (count, n, m)."""
        b = real_array(b, "b")
        if b.ndim != 3 or b.shape[:2] != (self.count, self.n):
            raise InputError(f"the right-hand sides are {b.shape}; they must be ({self.count}, {self.n}, m)")
        info = self.info()
        if info.any():
            system = int(np.argmax(info != 0))
            error = SingularMatrix(int(info[system]) - 1)
            error.args = (f"system {system}: {error}",)
            raise error
        rhs = self.device.buffer((self.n, b.shape[2], self.count), self.dtype)
        rhs.write(np.ascontiguousarray(b.transpose(1, 2, 0), self.dtype))
        self.solve_in_place(rhs)
        return rhs.read().transpose(2, 0, 1)
