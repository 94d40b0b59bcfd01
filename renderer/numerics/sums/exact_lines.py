"""Launches numerics/exact_reduction.cu: correctly rounded sums, dot products or variances of many lines of numbers.

For exact_blas.py. The kernel reports which results may be rounded wrongly; exact_blas.py recomputes those on the host.
"""

from typing import Any, NamedTuple

import numpy as np

from renderer.errors import InputError, UnavailableError
from renderer.gpu import Buffer, Device
from renderer.gpu.device import Kernel
from renderer.numerics.sums.tensors import borrow_tensor, is_tensor

FILE = "numerics/exact_reduction.cu"
KINDS = {"sum": 0, "product": 1, "variance": 2}
MANY_LINES = 1 << 14  # lines that fill a GPU with one thread per line
LONG_LINE = 1 << 13  # length from which a group shares a line, if there are fewer than MANY_LINES lines
GROUP = 256
CPU_GROUP = 16


class Operand(NamedTuple):
    """An array in the memory of a device.

    `shape` lists the axes in the order of memory, the slowest first; `axes` are their numbers in the `given` array:
    (1, 0) for a transposed matrix, whose columns follow one another in memory; () if both orders are the same.
    """

    buffer: Buffer
    shape: tuple[int, ...]
    given: Any
    axes: tuple[int, ...] = ()

    def read(self) -> np.ndarray:
        """The numbers on the host as float64 (shape)."""
        return (self.buffer.read().reshape(self.shape) if is_tensor(self.given) else self.given).astype("f8")


class Strides(NamedTuple):
    """Distances in elements: between rows of lines, between columns of lines, between the terms of a line."""

    row: int
    column: int
    step: int


def device_operand(device: Device, numbers: Any, single: bool) -> Operand:
    """The numbers in the memory of `device`: arrays of other libraries in place (DLPack), NumPy arrays copied.

    A NumPy array is copied as float64, or with its dtype, float32, if `single`. UnavailableError if the device has no
    float64.
    """
    if not device.properties.has_fp64:
        raise UnavailableError(f"{device.name}: computes no float64, which sums are kept in")
    if is_tensor(numbers):
        borrowed = borrow_tensor(numbers, [device], any_order=True)
        if isinstance(borrowed, tuple):
            tensor = borrowed[1]
            if tensor.dtype not in (np.float32, np.float64):
                raise InputError(f"array: {tensor.dtype} on a device; float32 and float64 are added there")
            buffer = device.borrow(tensor)
            assert buffer is not None  # borrow_tensor() returned the device that can
            return Operand(buffer, tensor.shape, numbers, tensor.axes)
        numbers = borrowed
    array = np.ascontiguousarray(numbers, None if single else "f8")
    values = array.ravel() if array.size else np.zeros(1, array.dtype)
    return Operand(device.buffer(values.size, array.dtype).write(values), array.shape, array)


def reduce_lines(
    device: Device,
    kind: str,
    shape: tuple[int, int, int],
    a: tuple[Operand, Strides],
    b: tuple[Operand, Strides] | None = None,
    divisor: float = 1.0,
    centers: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The results (rows, columns) float64 of lines of `length` terms, and which may be wrong (rows, columns) bool.

    `shape` is (rows, columns, length). `kind` is "sum" of a, "product" (the dot product of a and b) or "variance" of a
    around `centers` (rows, columns), any numbers near the means. The sum is divided by `divisor`.

    With the Strides s of a, line (i, j) has the terms a[i s.row + j s.column + k s.step]. A product multiplies them by
    b[j t.column + k t.step], with the Strides t of b, whose row is not used: b is a matrix of `columns` columns.
    """
    rows, columns, length = shape
    lines, (left, left_strides) = rows * columns, a
    right, right_strides = b or a  # without b the kernel reads only a
    team = team_size(device, lines, length)
    is_cpu = device.properties.scalar_threads
    element = "float" if left.buffer.dtype == np.float32 else "double"
    kernel = _kernel(device, KINDS[kind], element, team, CPU_GROUP if is_cpu else GROUP)
    out, doubts = device.buffer(lines, "f8"), device.buffer(lines, "u4")
    center_buffer = out  # any buffer: only variances read centers
    if centers is not None:
        center_buffer = device.buffer(lines, "f8").write(np.ascontiguousarray(centers, "f8").ravel())
    sizes = [np.uint64(n) for n in (lines, columns, length, *left_strides, right_strides.column, right_strides.step)]
    kernel(lines * team, left.buffer, right.buffer, center_buffer, out, doubts, *sizes, np.float64(divisor))
    return out.read().reshape(rows, columns), doubts.read().reshape(rows, columns) != 0


def _kernel(device: Device, kind: int, element: str, team: int, group: int) -> Kernel:
    """The kernel for these constants, cached in the device object: finding it by its text takes half a millisecond."""
    kept: dict[tuple[int, str, int, int], Kernel] = vars(device).setdefault("_line_kernels", {})
    key = kind, element, team, group
    if key not in kept:
        kept[key] = device.kernel(FILE, "reduce_lines", group, KIND=kind, ELEMENT=element, TEAM=team, STRICT=1)
    return kept[key]


def team_size(device: Device, lines: int, length: int) -> int:
    """Threads that share a line: 1 on CPUs and for many or short lines, else a warp or, for long lines, a group."""
    if device.properties.scalar_threads or lines >= MANY_LINES or length < 64:
        return 1
    return GROUP if length >= LONG_LINE else 32
