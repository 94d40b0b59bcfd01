"""SciPy's own BLAS and LAPACK on parts of arrays in place: pointers and leading dimensions, no copies, no GIL."""

import ctypes
import functools

import numpy as np
from scipy.linalg import cython_blas, cython_lapack

_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_name_of = ctypes.pythonapi.PyCapsule_GetName
_name_of.restype, _name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
ARGUMENTS = {"getrf": 6, "laswp": 7, "trsm": 11, "trmm": 11, "gemm": 13, "trtri": 6}


@functools.cache
def _routine(letter: str, name: str):
    """The C function of a Fortran routine. Its arguments are addresses, given as integers, which convert fastest."""
    module = cython_blas if letter + name in cython_blas.__pyx_capi__ else cython_lapack
    capsule = module.__pyx_capi__[letter + name]
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * ARGUMENTS[name])(_pointer_of(capsule, _name_of(capsule)))


class Constants(dict):
    """The addresses of values that a routine only reads, kept for ever: sizes and leading dimensions are few."""

    def __init__(self, kind):
        self._kind, self._kept = kind, []

    def __missing__(self, value) -> int:
        self._kept.append(self._kind(value))
        self[value] = ctypes.addressof(self._kept[-1])
        return self[value]


_INT, _CHAR = Constants(ctypes.c_int), Constants(ctypes.c_char)


class Lapack:
    """The routines of one precision. Matrices are (address, leading dimension), column-major; pivots are an address."""

    def __init__(self, dtype):
        self.dtype = np.dtype(dtype)
        letter = {"f4": "s", "f8": "d"}[self.dtype.str[1:]]
        real = Constants({"f4": ctypes.c_float, "f8": ctypes.c_double}[self.dtype.str[1:]])
        self._getrf, self._laswp, self._trsm, self._trmm, self._gemm, self._trtri = (
            _routine(letter, name) for name in ARGUMENTS
        )
        self._reals, self._one, self._minus = real, real[1], real[-1]

    def factor(self, rows: int, columns: int, a: int, ld: int, pivots: int) -> int:
        """P L U of a panel in place, pivots (columns,) int32 from 1; returns info: 0 or 1 + the first zero pivot."""
        info = ctypes.c_int()
        self._getrf(_INT[rows], _INT[columns], a, _INT[ld], pivots, ctypes.addressof(info))
        assert info.value >= 0, f"getrf: argument {-info.value} is wrong"
        return info.value

    def swap(self, columns: int, a: int, ld: int, pivots: int, count: int, back: bool = False) -> None:
        """Exchanges rows of a as `count` pivots (from 1) say, or undoes it."""
        self._laswp(_INT[columns], a, _INT[ld], _INT[1], _INT[count], pivots, _INT[-1 if back else 1])

    def solve(self, order: int, columns: int, a: int, ld: int, x: int, ldx: int, which: bytes) -> None:
        """x = T^-1 x in place; `which` is uplo, trans, diag of the triangle T in a, such as b"LNU"."""
        kind = [_CHAR[letter] for letter in which]
        self._trsm(_CHAR[b"L"[0]], *kind, _INT[order], _INT[columns], self._one, a, _INT[ld], x, _INT[ldx])

    def multiply_unit_lower(self, order: int, columns: int, a: int, ld: int, x: int, ldx: int) -> None:
        """x = L x in place, L the unit lower triangle in a."""
        kind = [_CHAR[letter] for letter in b"LLNU"]
        self._trmm(*kind, _INT[order], _INT[columns], self._one, a, _INT[ld], x, _INT[ldx])

    def invert_unit_lower(self, order: int, a: int, ld: int) -> None:
        """The inverse of a unit lower triangle in its place."""
        info = ctypes.c_int()
        self._trtri(_CHAR[b"L"[0]], _CHAR[b"U"[0]], _INT[order], a, _INT[ld], ctypes.addressof(info))
        assert info.value == 0, info.value

    def subtract(
        self, m: int, n: int, k: int, a: int, lda: int, b: int, ldb: int, c: int, ldc: int, trans=b"N"
    ) -> None:
        """c (m, n) -= op(a) (m, k) b (k, n) in place."""
        if m > 0 and n > 0 and k > 0:
            sizes = _INT[m], _INT[n], _INT[k]
            places = a, _INT[lda], b, _INT[ldb], self._one, c, _INT[ldc]
            self._gemm(_CHAR[trans[0]], _CHAR[b"N"[0]], *sizes, self._minus, *places)
