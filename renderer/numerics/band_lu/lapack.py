"""BLAS and LAPACK routines on submatrices in place, by address and leading dimension, for block factorizations.

Calls the C functions of scipy.linalg.cython_blas and cython_lapack through ctypes, which neither copy nor hold the GIL;
SciPy's Python wrappers copy arrays that are not contiguous and hold it.
"""

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy.linalg import cython_blas, cython_lapack

_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_get_name = ctypes.pythonapi.PyCapsule_GetName
_get_name.restype, _get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
ARGUMENTS = {"getrf": 6, "laswp": 7, "trsm": 11, "trmm": 11, "gemm": 13, "trtri": 6}


@functools.cache
def _routine(letter: str, name: str) -> Callable[..., None]:
    """The C function of a Fortran routine; all arguments are addresses, passed as integers, the fastest conversion."""
    module = cython_blas if letter + name in cython_blas.__pyx_capi__ else cython_lapack
    capsule = module.__pyx_capi__[letter + name]
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * ARGUMENTS[name])(_get_pointer(capsule, _get_name(capsule)))


class _Constants(dict[object, int]):
    """The addresses of read-only C values, cached without limit: there are few different sizes and options."""

    def __init__(self, kind: Callable[[Any], Any]) -> None:
        super().__init__()
        self._kind: Callable[[Any], Any] = kind
        self._values: list[Any] = []  # keeps the memory alive

    def __missing__(self, value: object) -> int:
        self._values.append(self._kind(value))
        self[value] = ctypes.addressof(self._values[-1])
        return self[value]


_INT, _CHAR = _Constants(ctypes.c_int), _Constants(ctypes.c_char)  # of integers: a byte of b"LNU" is one, too


class Lapack:
    """BLAS and LAPACK routines of one precision.

    A matrix is the address of its first element and a leading dimension, column-major; `pivots` is the address of
    int32 rows counted from 1.
    """

    def __init__(self, dtype: DTypeLike):
        self.dtype = np.dtype(dtype)
        letter = {"f4": "s", "f8": "d"}[self.dtype.str[1:]]
        real = {"f4": ctypes.c_float, "f8": ctypes.c_double}[self.dtype.str[1:]]
        self._reals = _Constants(real)  # referenced here, since routines get only addresses
        self._getrf, self._laswp, self._trsm, self._trmm, self._gemm, self._trtri = (
            _routine(letter, name) for name in ARGUMENTS
        )
        self._one, self._minus_one = self._reals[1], self._reals[-1]

    def getrf(self, rows: int, columns: int, a: int, ld: int, pivots: int) -> int:
        """Factors a panel P L U in place; returns info: 0, or 1 + the first column whose pivot is zero."""
        info = ctypes.c_int()
        self._getrf(_INT[rows], _INT[columns], a, _INT[ld], pivots, ctypes.addressof(info))
        assert info.value >= 0, f"getrf: argument {-info.value} is wrong"
        return info.value

    def laswp(self, columns: int, a: int, ld: int, pivots: int, count: int, inverse: bool = False) -> None:
        """Applies the row interchanges of `count` pivots to a, or undoes them if `inverse`."""
        self._laswp(_INT[columns], a, _INT[ld], _INT[1], _INT[count], pivots, _INT[-1 if inverse else 1])

    def trsm(self, order: int, columns: int, a: int, ld: int, x: int, ldx: int, uplo_trans_diag: bytes) -> None:
        """Computes x = op(T)^-1 x in place; `uplo_trans_diag`, such as b"LNU", selects the triangle T of a and op."""
        kind = [_CHAR[letter] for letter in uplo_trans_diag]
        self._trsm(_CHAR[b"L"[0]], *kind, _INT[order], _INT[columns], self._one, a, _INT[ld], x, _INT[ldx])

    def trmm_unit_lower(self, order: int, columns: int, a: int, ld: int, x: int, ldx: int) -> None:
        """Computes x = L x in place, L the unit lower triangle of a."""
        kind = [_CHAR[letter] for letter in b"LLNU"]
        self._trmm(*kind, _INT[order], _INT[columns], self._one, a, _INT[ld], x, _INT[ldx])

    def trtri_unit_lower(self, order: int, a: int, ld: int) -> None:
        """Inverts the unit lower triangle of a in place."""
        info = ctypes.c_int()
        self._trtri(_CHAR[b"L"[0]], _CHAR[b"U"[0]], _INT[order], a, _INT[ld], ctypes.addressof(info))
        assert info.value == 0, info.value

    def gemm_subtract(
        self, m: int, n: int, k: int, a: int, lda: int, b: int, ldb: int, c: int, ldc: int, trans: bytes = b"N"
    ) -> None:
        """Computes c (m, n) -= op(a) (m, k) b (k, n) in place."""
        if m > 0 and n > 0 and k > 0:
            sizes = _INT[m], _INT[n], _INT[k]
            operands = a, _INT[lda], b, _INT[ldb], self._one, c, _INT[ldc]
            self._gemm(_CHAR[trans[0]], _CHAR[b"N"[0]], *sizes, self._minus_one, *operands)
