"""Complex band systems, solved in their real form of order 2 n; for `rayfold solve` and Python's solve().

An entry a + b i becomes the block [[a, -b], [b, a]]. The real and imaginary parts of an unknown are neighbors, so the
band has only 2 kl + 1 sub- and 2 ku + 1 superdiagonals. Equilibration, refinement, error bounds and enclosures of real
systems apply unchanged. The host factors the complex matrix (lapack_factors.ComplexFactors) with half the operations;
devices factor the real form.
"""

import numpy as np
from numpy.typing import ArrayLike

from renderer.errors import InputError
from renderer.formats.matrices import Band
from renderer.formats.npy import in_double, refuse_mask
from renderer.numerics.band_lu.block_columns import check_band
from renderer.numerics.band_lu.lapack_factors import real_band
from renderer.records import dataclass


def checked_complex(ab: ArrayLike, kl: int, ku: int) -> np.ndarray:
    """`ab` as complex128; InputError unless its shape is (kl + ku + 1, n)."""
    matrix = _complex(ab, "ab")
    check_band(matrix, kl, ku)
    return matrix


@dataclass(frozen=True)
class RealForm:
    """A real system equivalent to a system with a complex matrix (`is_matrix`) or only complex right-hand sides b.

    For a complex matrix the order is 2 n. For a real matrix the real and imaginary parts of b become separate
    right-hand sides. `is_conjugate` is set to solve A^T x = b: transposing the real form gives A^H, so b and x are
    conjugated.
    """

    band: Band
    is_matrix: bool
    is_conjugate: bool
    shape: tuple[int, ...]  # the shape of b

    def right_hand_side(self, b: np.ndarray) -> np.ndarray:
        """The real right-hand sides for b."""
        if self.is_matrix:
            given, out = b.conj() if self.is_conjugate else b, np.empty((2 * len(b), *b.shape[1:]))
            out[0::2], out[1::2] = given.real, given.imag
            return out
        columns = b.reshape(len(b), -1)
        return np.hstack([columns.real, columns.imag])

    def solution(self, y: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """x complex128 and the error of its components, in the shape of b, from the real solution and its error."""
        real, imaginary = self._halves(y)
        size = np.hypot(*self._halves(error))
        size = np.where(size == 0, 0.0, np.nextafter(size * (1 + 4 * np.finfo("f8").eps), np.inf))
        return real - 1j * imaginary if self.is_conjugate else real + 1j * imaginary, size

    def _halves(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The real and the imaginary part of a real solution, each in the shape of b."""
        if self.is_matrix:
            return y[0::2], y[1::2]
        count = y.shape[1] // 2
        return y[:, :count].reshape(self.shape), y[:, count:].reshape(self.shape)


def real_form(band: Band, b: np.ndarray, is_transposed: bool) -> RealForm | None:
    """The real form of a system, or None if matrix and b are real; InputError for a band array of another shape."""
    is_matrix = band.ab.dtype.kind == "c"
    if not is_matrix and b.dtype.kind != "c":
        return None
    if is_matrix:
        real = real_band(checked_complex(band.ab, band.kl, band.ku))
        order = None if band.order is None else (2 * band.order[:, None] + [0, 1]).ravel()
        # (kl, ku) before reordering
        natural = 2 * band.natural[0] + 1, 2 * band.natural[1] + 1
        band = Band(real, 2 * band.kl + 1, 2 * band.ku + 1, natural, order, band.is_rounded)
    return RealForm(band, is_matrix, is_matrix and is_transposed, b.shape)


def _complex(values: ArrayLike, name: str) -> np.ndarray:
    refuse_mask(values, name)
    array = np.asarray(values)
    if array.dtype.kind not in "fiubc" or array.dtype.itemsize > 16:
        raise InputError(f"{name} is {array.shape} {array.dtype}; it must be of complex or real numbers")
    return in_double(array, name).astype("c16", copy=False)
