"""Complex band systems by the real systems of twice the order that they are.

An entry a + b i becomes the block [[a, -b], [b, a]], the real and the imaginary part of an unknown neighbors, so the
band stays as narrow: 2 kl + 1 and 2 ku + 1 diagonals. All that real systems have holds: devices, equilibration,
refinement, bounds. A complex factorization would take half the operations and half the memory.
"""

from collections.abc import Sequence
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
    matrix, sides = _complex(ab, "ab"), _complex(b, "the right-hand side")
    for name, value in (("kl", kl), ("ku", ku)):
        check_integer(name, value, 0)
    if matrix.ndim != 2 or matrix.shape[0] != kl + ku + 1 or matrix.shape[1] == 0:
        raise InputError(f"ab is {matrix.shape}; with kl = {kl} and ku = {ku} it must be ({kl + ku + 1}, n)")
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
