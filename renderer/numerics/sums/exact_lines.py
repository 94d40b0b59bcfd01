"""Correctly rounded sums, products and variances of many lines by a device (numerics/exact_reduction.cu).

The device says of each result whether it is certain; exact_blas.py computes the others, so that all have its bits.
"""

from typing import Any, NamedTuple

import numpy as np

from renderer.errors import InputError, UnavailableError
from renderer.gpu import Buffer, Device
from renderer.numerics.sums.tensors import borrow_tensor, is_tensor

FILE = "numerics/exact_reduction.cu"
KINDS = {"sum": 0, "product": 1, "variance": 2}
MANY_LINES = 1 << 14  # of which one thread a line fills a GPU
LONG_LINE = 1 << 13  # that a whole group shares where there are few
GROUP = 256
CPU_GROUP = 16


class Operand(NamedTuple):
    """Numbers in a device's memory, and the same on the host, once they are asked for.

    `shape` is in the order of memory, whose axes are those of the given array, () for the same order.
    """

    buffer: Buffer
    shape: tuple[int, ...]
    given: Any
    axes: tuple[int, ...] = ()

    def read(self) -> np.ndarray:
        """The numbers on the host in float64, in the order of memory."""
        return (self.buffer.read().reshape(self.shape) if is_tensor(self.given) else self.given).astype("f8")


class Strides(NamedTuple):
    """Numbers from one row of lines to the next, from one column of lines to the next, from one term to the next."""

    row: int
    column: int
    step: int


def place(device: Device, numbers: Any, single: bool) -> Operand:
    """The numbers in the device's memory: another library's where they are (DLPack), others copied.

    `single` copies float32 as they are; else as float64. UnavailableError without float64 on the device.
    """
    if not device.properties.has_fp64:
        raise UnavailableError(f"{device.name}: computes no float64, which sums are kept in")
    if is_tensor(numbers):
        found = borrow_tensor(numbers, [device], any_order=True)
        if isinstance(found, tuple):
            tensor = found[1]
            if tensor.dtype not in (np.float32, np.float64):
                raise InputError(f"array: {tensor.dtype} on a device; float32 and float64 are added there")
            buffer = device.borrow(tensor)
            assert buffer is not None  # as borrow_tensor found
            return Operand(buffer, tensor.shape, numbers, tensor.axes)
        numbers = found
    array = np.ascontiguousarray(numbers, None if single else "f8")
    return Operand(device.buffer(max(array.size, 1), array.dtype).write(_padded(array)), array.shape, array)


def _padded(array: np.ndarray) -> np.ndarray:
    return array.ravel() if array.size else np.zeros(1, array.dtype)


def reduce_lines(
    device: Device,
    kind: str,
    shape: tuple[int, int, int],
    a: tuple[Operand, Strides],
    b: tuple[Operand, Strides] | None = None,
    divisor: float = 1.0,
    centers: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The results (rows, columns) of lines of `length` terms, shape (rows, columns, length), and which are doubtful.

    `kind` is "sum", "product" or "variance"; sums are divided by the divisor. `centers` (rows, columns) are numbers
    near the means, for variances.
    """
    rows, columns, length = shape
    lines, (left, strides), other = rows * columns, a, b or a
    team = team_size(device, lines, length)
    is_cpu = device.properties.scalar_threads
    element = "float" if left.buffer.dtype == np.float32 else "double"
    kernel = _kernel(device, KINDS[kind], element, team, CPU_GROUP if is_cpu else GROUP)
    out, doubts = device.buffer(lines, "f8"), device.buffer(lines, "u4")
    near = out if centers is None else device.buffer(lines, "f8").write(np.ascontiguousarray(centers, "f8").ravel())
    sizes = [np.uint64(n) for n in (lines, columns, length, *strides, other[1].column, other[1].step)]
    kernel(lines * team, left.buffer, other[0].buffer, near, out, doubts, *sizes, np.float64(divisor))
    return out.read().reshape(rows, columns), doubts.read().reshape(rows, columns) != 0


def _kernel(device: Device, kind: int, element: str, team: int, group: int) -> Any:
    """The kernel of these constants, kept with the device: to find it by its text takes half a millisecond."""
    kept, key = vars(device).setdefault("_line_kernels", {}), (kind, element, team, group)
    if key not in kept:
        kept[key] = device.kernel(FILE, "reduce_lines", group, KIND=kind, ELEMENT=element, TEAM=team, STRICT=1)
    return kept[key]


def team_size(device: Device, lines: int, length: int) -> int:
    """Threads that share a line: one where lines are many or the device is a CPU, else a warp or a group."""
    if device.properties.scalar_threads or lines >= MANY_LINES or length < 64:
        return 1
    return GROUP if length >= LONG_LINE else 32
