"""Stands in for cuBLAS's library: the calls of renderer/gpu/cuda/cublas.py by NumPy, on the entered device's stream."""

import ctypes

import numpy as np

from .driver import Emulation
from .schedule import KernelFault

VERSION = 120900
NO = 0


class Library:
    """The functions by their names in C; all but products without transposition are refused."""

    def __init__(self, emulation: Emulation):
        self._emulation = emulation
        for letter, dtype in (("S", np.dtype("f4")), ("D", np.dtype("f8"))):
            setattr(self, f"cublas{letter}gemm_v2_64", self._product(dtype))
            setattr(self, f"cublas{letter}gemmStridedBatched_64", self._products(dtype))

    def cublasCreate_v2(self, handle) -> int:
        handle._obj.value = 1
        return 0

    def cublasGetVersion_v2(self, handle, version) -> int:
        version._obj.value = VERSION
        return 0

    def _matrix(self, address: int, rows: int, columns: int, leading: int, dtype: np.dtype) -> np.ndarray:
        """(rows, columns), column-major, in device memory."""
        count = (leading * (columns - 1) + rows) * dtype.itemsize
        if leading < rows or not any(memory.holds(address, count) for memory in self._emulation.memories):
            raise KernelFault(f"cuBLAS: {rows} x {columns} with leading dimension {leading} is not in a buffer")
        flat = np.frombuffer((ctypes.c_char * count).from_address(address), dtype)
        return np.lib.stride_tricks.as_strided(flat, (rows, columns), (dtype.itemsize, leading * dtype.itemsize))

    def _products(self, dtype: np.dtype):
        def call(
            handle, a_as, b_as, m, n, k, alpha, a, lda, step_a, b, ldb, step_b, beta, c, ldc, step_c, count
        ) -> int:
            assert a_as == b_as == NO
            sizes = m.value, n.value, k.value
            scales = dtype.type(alpha._obj.value), dtype.type(beta._obj.value)
            places = [
                (a.value, lda.value, step_a.value),
                (b.value, ldb.value, step_b.value),
                (c.value, ldc.value, step_c.value),
            ]

            def multiply() -> None:
                m, n, k = sizes
                for which in range(count.value):
                    left, right, out = (
                        self._matrix(at + which * step * dtype.itemsize, rows, columns, leading, dtype)
                        for (at, leading, step), (rows, columns) in zip(places, ((m, k), (k, n), (m, n)), strict=True)
                    )
                    out[:] = scales[0] * (left @ right) + scales[1] * out

            self._emulation.stream(0).add(multiply)
            return 0

        return call

    def _product(self, dtype: np.dtype):
        many = self._products(dtype)

        def call(handle, a_as, b_as, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc) -> int:
            none, one = ctypes.c_int64(0), ctypes.c_int64(1)
            return many(handle, a_as, b_as, m, n, k, alpha, a, lda, none, b, ldb, none, beta, c, ldc, none, one)

        return call
