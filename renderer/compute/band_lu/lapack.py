"""SciPy's own BLAS and LAPACK on parts of arrays in place: pointers and leading dimensions, no copies, no GIL."""

import ctypes
import functools

import numpy as np
from scipy.linalg import cython_blas, cython_lapack

_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_name_of = ctypes.pythonapi.PyCapsule_GetName
_name_of.restype, _name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]


@functools.cache
def _routine(name: str):
    """The C function of a Fortran routine; all its arguments are addresses."""
    module = cython_blas if name in cython_blas.__pyx_capi__ else cython_lapack
    capsule = module.__pyx_capi__[name]
    return ctypes.CFUNCTYPE(None)(_pointer_of(capsule, _name_of(capsule)))


@functools.lru_cache(4096)  # LAPACK only reads them
def _int(value: int):
    return ctypes.byref(ctypes.c_int(value))


class Lapack:
    """The routines of one precision. Matrices are (address, leading dimension) of column-major memory."""

    def __init__(self, dtype):
        self.dtype = np.dtype(dtype)
        letter = {"f4": "s", "f8": "d"}[self.dtype.str[1:]]
        real = {"f4": ctypes.c_float, "f8": ctypes.c_double}[self.dtype.str[1:]]
        names = ("getrf", "laswp", "trsm", "gemm")
        self._getrf, self._laswp, self._trsm, self._gemm = (_routine(letter + name) for name in names)
        self._one, self._minus = ctypes.byref(real(1)), ctypes.byref(real(-1))

    def factor(self, rows: int, columns: int, a: int, ld: int, pivots: np.ndarray) -> int:
        """P L U of a panel in place, pivots (columns,) int32 from 1; returns info: 0 or 1 + the first zero pivot."""
        info = ctypes.c_int()
        address = ctypes.c_void_p(pivots.ctypes.data)
        self._getrf(_int(rows), _int(columns), ctypes.c_void_p(a), _int(ld), address, ctypes.byref(info))
        assert info.value >= 0, f"getrf: argument {-info.value} is wrong"
        return info.value

    def swap(self, columns: int, a: int, ld: int, pivots: np.ndarray, back: bool = False) -> None:
        """Exchanges rows of a as the pivots (counted from 1) say, or undoes it."""
        address = ctypes.c_void_p(pivots.ctypes.data)
        order = _int(-1 if back else 1)
        self._laswp(_int(columns), ctypes.c_void_p(a), _int(ld), _int(1), _int(len(pivots)), address, order)

    def solve(self, order: int, columns: int, a: int, ld: int, x: int, ldx: int, which: bytes) -> None:
        """x = T^-1 x in place; `which` is uplo, trans, diag of the triangle T in a, such as b"LNU"."""
        uplo, trans, diag = (ctypes.c_char_p(which[k : k + 1]) for k in range(3))
        sizes = _int(order), _int(columns)
        self._trsm(
            ctypes.c_char_p(b"L"), uplo, trans, diag, *sizes, self._one,
            ctypes.c_void_p(a), _int(ld), ctypes.c_void_p(x), _int(ldx),
        )  # fmt: skip

    def subtract(
        self, m: int, n: int, k: int, a: int, lda: int, b: int, ldb: int, c: int, ldc: int, trans=b"N"
    ) -> None:
        """c (m, n) -= op(a) (m, k) b (k, n) in place."""
        if m > 0 and n > 0 and k > 0:
            self._gemm(
                ctypes.c_char_p(trans), ctypes.c_char_p(b"N"), _int(m), _int(n), _int(k), self._minus,
                ctypes.c_void_p(a), _int(lda), ctypes.c_void_p(b), _int(ldb), self._one, ctypes.c_void_p(c), _int(ldc),
            )  # fmt: skip
