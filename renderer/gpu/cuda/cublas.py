"""NVIDIA's matrix product (cuBLAS) on buffers of a CUDA device, called by ctypes; optional."""

import ctypes
from collections.abc import Callable

import numpy as np
from numpy.typing import DTypeLike

from renderer.errors import KernelError
from renderer.gpu.cuda.streams import StreamDevice
from renderer.gpu.device import Matrix, VendorBlas

OP_N = 0  # CUBLAS_OP_N: not transposed


def open_blas(device: StreamDevice, dtype: DTypeLike) -> VendorBlas | None:
    """Opens cuBLAS for "f4" or "f8"; None if NVIDIA's finder (cuda-pathfinder) finds no library."""
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib

        library = ctypes.CDLL(load_nvidia_dynamic_lib("cublas").abs_path)
    except (ImportError, RuntimeError, OSError):  # pathfinder's own error is a RuntimeError
        return None
    return Cublas(device, library, np.dtype(dtype))


class Cublas(VendorBlas):
    """Products on the default stream, the handle's; float32 products are computed in float32, without TF32."""

    def __init__(self, device: StreamDevice, library: ctypes.CDLL, dtype: np.dtype) -> None:
        self.device, self.dtype = device, dtype
        letter, self._real = {"f4": ("S", ctypes.c_float), "f8": ("D", ctypes.c_double)}[dtype.str[1:]]
        self._gemm = getattr(library, f"cublas{letter}gemm_v2_64")
        self._batched = getattr(library, f"cublas{letter}gemmStridedBatched_64")
        # The calls end in _64: sizes and strides are int64.
        self._one, self._minus_one = ctypes.byref(self._real(1)), ctypes.byref(self._real(-1))
        self._handle = ctypes.c_void_p()
        version = ctypes.c_int()
        with device:  # makes the device's context current
            self._check("cublasCreate", library.cublasCreate_v2(ctypes.byref(self._handle)))
            self._check("cublasGetVersion", library.cublasGetVersion_v2(self._handle, ctypes.byref(version)))
        self.name = f"cuBLAS {version.value // 10000}.{version.value // 100 % 100}"

    def _check(self, call: str, status: int) -> None:
        """Raises KernelError unless the status of a cuBLAS call is 0, success."""
        if status:
            raise KernelError(f"{self.device.name}: {call} failed with status {status}")

    def _matrix_argument(self, matrix: Matrix) -> tuple[object, ...]:
        """A matrix as gemm takes it: the address of its first element, and its leading dimension."""
        buffer, first, leading = matrix
        assert buffer.dtype == self.dtype and buffer.device.index == self.device.index, (
            "a matrix of another kind or device"
        )
        return ctypes.c_void_p(buffer.pointer + first * self.dtype.itemsize), ctypes.c_int64(leading)

    def bind_gemm_subtract(
        self, m: int, n: int, k: int, a: Matrix, b: Matrix, c: Matrix, batch: tuple[int, int, int, int] = (1, 0, 0, 0)
    ) -> Callable[[], None]:
        """See VendorBlas."""
        if min(m, n, k, batch[0]) <= 0:
            return lambda: None
        sizes = ctypes.c_int64(m), ctypes.c_int64(n), ctypes.c_int64(k)
        matrix_arguments = [self._matrix_argument(matrix) for matrix in (a, b, c)]
        # `batch`: number of products, then the elements from one a, b and c to the next
        count, *strides = (ctypes.c_int64(number) for number in batch)
        call, last = self._gemm, []
        if batch[0] > 1:
            matrix_arguments = [(*argument, stride) for argument, stride in zip(matrix_arguments, strides, strict=True)]
            call, last = self._batched, [count]
        a_arguments, b_arguments, c_arguments = matrix_arguments
        scaled = self._minus_one, *a_arguments, *b_arguments, self._one, *c_arguments
        arguments = self._handle, OP_N, OP_N, *sizes, *scaled, *last

        def multiply() -> None:
            with self.device:
                status = call(*arguments)
            self._check("gemm", status)

        return multiply
