"""Complex band systems by the real systems of twice the order that they are.

An entry a + b i becomes the block [[a, -b], [b, a]], the real and the imaginary part of an unknown neighbors, so the
band stays as narrow: 2 kl + 1 and 2 ku + 1 diagonals. All that real systems have holds: devices, equilibration,
refinement, bounds. A complex factorization would take half the operations and half the memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from renderer.errors import InputError, UserError
from renderer.formats.matrices import Band
from renderer.gpu import Device
from renderer.numerics.band_lu.block_columns import check_integer
from renderer.numerics.band_lu.system import System


class ComplexSolution(NamedTuple):
    """x (n,) or (n, m) complex128, and the bounds of refinement.RefinedSolution for real and imaginary parts."""

    x: np.ndarray
    backward_error: float
    forward_bound: float
    correct_digits: int


def solve_complex(
    ab: np.ndarray, kl: int, ku: int, b: np.ndarray, devices: Sequence[Device] = (), trans: str = "N"
) -> ComplexSolution:
    """The refined solution of A x = b, A the complex band matrix of ab (kl + ku + 1, n) in LAPACK's layout.

    With trans "T" of A^T x = b, with "C" of A^H x = b. b is (n,) or (n, m), real or complex. Errors are those of
    BandedLU and its solve().
    """
    if trans not in ("N", "T", "C"):
        raise UserError(f"trans is {trans!r}; allowed are N, T and C")
    matrix, sides = checked_complex(ab, kl, ku), _complex(b, "the right-hand side")
    n = matrix.shape[1]
    if sides.ndim not in (1, 2) or sides.shape[0] != n:
        raise InputError(f"the right-hand side is {sides.shape}; it must be ({n},) or ({n}, m)")
    real, below, above = real_band(matrix, kl, ku)
    system = System(Band(real, below, above, (below, above)), trans != "N", devices)
    own = sides.conj() if trans == "T" else sides  # the real system's transpose is that of A^H
    y, refined = system.solve(_parts(own))
    x = y[0::2] + 1j * y[1::2]
    return ComplexSolution(
        x.conj() if trans == "T" else x, refined.backward_error, refined.forward_bound, refined.correct_digits
    )


def checked_complex(ab, kl: int, ku: int) -> np.ndarray:
    """ab as complex128 of the shape that kl and ku ask for, or InputError."""
    matrix = _complex(ab, "ab")
    for name, value in (("kl", kl), ("ku", ku)):
        check_integer(name, value, 0)
    if matrix.ndim != 2 or matrix.shape[0] != kl + ku + 1 or matrix.shape[1] == 0:
        raise InputError(f"ab is {matrix.shape}; with kl = {kl} and ku = {ku} it must be ({kl + ku + 1}, n)")
    return matrix


@dataclass(frozen=True)
class RealForm:
    """A system with complex numbers as a real one, of twice the order where the matrix is complex.

    Where only the right-hand sides b are, their real and imaginary parts become right-hand sides of their own. With
    `is_conjugate` b and x are conjugated: the transpose of the real system is that of A^H, not of A^T.
    """

    band: Band
    is_matrix: bool
    is_conjugate: bool
    shape: tuple[int, ...]  # of b

    def right_hand_side(self, b: np.ndarray) -> np.ndarray:
        """The real right-hand sides for b."""
        own = b.conj() if self.is_conjugate else b
        if self.is_matrix:
            return _parts(own)
        columns = own.reshape(len(b), -1)
        return np.hstack([columns.real, columns.imag])

    def solution(self, y: np.ndarray) -> np.ndarray:
        """x (b's shape) complex128 of the real solution."""
        real, imaginary = self._halves(y)
        return real - 1j * imaginary if self.is_conjugate else real + 1j * imaginary

    def radius(self, radii: np.ndarray) -> np.ndarray:
        """Radii of the complex components around those of x, of the radii of their parts."""
        size = np.hypot(*self._halves(radii))
        return np.nextafter(size * (1 + 4 * np.finfo("f8").eps), np.inf)

    def _halves(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.is_matrix:
            return y[0::2], y[1::2]
        count = y.shape[1] // 2
        return y[:, :count].reshape(self.shape), y[:, count:].reshape(self.shape)


def real_form(band: Band, b: np.ndarray, is_transposed: bool) -> RealForm | None:
    """What makes the system real, None where it is already; InputError for an ab of another shape."""
    is_matrix = band.ab.dtype.kind == "c"
    if not is_matrix and b.dtype.kind != "c":
        return None
    if is_matrix:
        real, below, above = real_band(checked_complex(band.ab, band.kl, band.ku), band.kl, band.ku)
        order = None if band.order is None else (2 * band.order[:, None] + [0, 1]).ravel()
        band = Band(real, below, above, (2 * band.natural[0] + 1, 2 * band.natural[1] + 1), order)
    return RealForm(band, is_matrix, is_matrix and is_transposed, b.shape)


def real_band(ab: np.ndarray, kl: int, ku: int) -> tuple[np.ndarray, int, int]:
    """The real band (2 kl + 2 ku + 3, 2 n), and its diagonals below and above, of a complex one."""
    below, above = 2 * kl + 1, 2 * ku + 1
    real = np.zeros((below + above + 1, 2 * ab.shape[1]))
    same = slice(1, 2 * (kl + ku) + 2, 2)  # diagonals of the blocks' diagonals
    real[same, 0::2] = real[same, 1::2] = ab.real
    real[2 : 2 * (kl + ku) + 3 : 2, 0::2] = ab.imag
    real[0 : 2 * (kl + ku) + 1 : 2, 1::2] = -ab.imag
    return real, below, above


def _parts(b: np.ndarray) -> np.ndarray:
    """Real and imaginary parts of b (n, ...) in turn, (2 n, ...)."""
    out = np.empty((2 * len(b), *b.shape[1:]))
    out[0::2], out[1::2] = b.real, b.imag
    return out


def _complex(values, name: str) -> np.ndarray:
    array = np.asarray(values)
    if array.dtype.kind not in "fiubc" or array.dtype.itemsize > 16:
        raise InputError(f"{name} is {array.shape} {array.dtype}; it must be of complex or real numbers")
    return array.astype("c16", copy=False)
