"""Arrays of other libraries (PyTorch, CuPy, JAX, Numba) as inputs and results of sums, without copies.

Inputs are read in place through DLPack or `__cuda_array_interface__`; results go to the library of the input by DLPack.
For device_sums.py, aggregates.py and exact_blas.py.
"""

import sys
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from renderer.errors import InputError, UnavailableError
from renderer.formats.npy import NUMBERS, check_numbers, refuse_mask
from renderer.gpu import Device
from renderer.gpu.array_interface import has_interface, import_interface, interface_facts
from renderer.gpu.dlpack import CPU, CUDA, Tensor, has_dlpack, import_tensor

LAUNCH = 1 << 28  # numbers per launch, so that DeviceSum reads its limbs before 2^29 terms


def is_tensor(numbers: object) -> bool:
    """True for an array of another library than NumPy that has DLPack or `__cuda_array_interface__`."""
    return not isinstance(numbers, (np.ndarray, np.generic)) and (has_dlpack(numbers) or has_interface(numbers))


def is_dask_array(numbers: object) -> bool:
    """True for a Dask array."""
    dask_array = sys.modules.get("dask.array")
    return dask_array is not None and isinstance(numbers, dask_array.Array)


def dask_blocks(x: Any, y: Any) -> list[tuple[Any, Any]]:
    """The delayed blocks of a Dask array, each with the block of `y` or with None if y is None.

    InputError unless y is a Dask array in the same chunks.
    """
    blocks = x.to_delayed().ravel()
    if y is None:
        return [(block, None) for block in blocks]
    if not is_dask_array(y) or x.chunks != y.chunks:
        raise InputError("the arrays of a product must be Dask's, in the same chunks of each axis: y.rechunk(x.chunks)")
    return list(zip(blocks, y.to_delayed().ravel(), strict=True))


def borrow_tensor(
    numbers: object, devices: list[Device], any_order: bool = False
) -> tuple[Device, Tensor] | np.ndarray:
    """A device that can read the array in place, with its tensor; else the array in host memory as a NumPy array.

    `any_order` allows axes in another order than C's. InputError for a GPU array with gaps (or another order) and for
    dtypes that are not numbers, UnavailableError for an array in a GPU that none of the devices can read.
    """
    try:
        tensor = import_tensor(numbers, any_order) if has_dlpack(numbers) else import_interface(numbers, any_order)
    except BufferError as error:
        if is_on_host(numbers):
            return on_host(numbers)
        raise InputError(f"array: {error}") from None
    check_numbers(tensor.dtype, "array", NUMBERS)
    if 0 in tensor.shape:
        return np.empty(tensor.shape, tensor.dtype)
    for device in devices:
        if device.borrow(tensor) is not None:
            return device, tensor
    if is_on_host(numbers):
        return on_host(numbers)
    where = f"on device {tensor.device_id} of DLPack type {tensor.device_type}"
    readers = ", ".join(device.name for device in devices) or "the host"
    raise UnavailableError(f"array: it is {where}, which {readers} cannot read")


def is_on_host(numbers: object) -> bool:
    """True for an array of any library in host memory."""
    return not is_tensor(numbers) or has_dlpack(numbers) and numbers.__dlpack_device__()[0] == CPU


def on_host(numbers: object) -> np.ndarray:
    """An array of any library in host memory as a NumPy array; UnavailableError for a GPU array that is not empty."""
    if not is_tensor(numbers):
        refuse_mask(numbers, "array")
        return np.asarray(numbers)
    if not is_on_host(numbers):
        empty = borrow_tensor(numbers, [], any_order=True)
        assert isinstance(empty, np.ndarray)  # without devices borrow_tensor() refuses all other GPU arrays
        return empty
    try:
        assert has_dlpack(numbers)  # is_on_host() asks for its device
        return np.from_dlpack(numbers)
    except (BufferError, RuntimeError) as error:  # a dtype that NumPy does not have
        raise InputError(f"array: {error}") from None


def launch_chunks(tensor: Tensor) -> list[Tensor]:
    """The tensor as flat tensors of at most LAUNCH numbers, one per launch."""
    count, size = int(np.prod(tensor.shape, dtype=object)), tensor.dtype.itemsize
    starts = range(0, count, LAUNCH)
    return [tensor._replace(pointer=tensor.pointer + k * size, shape=(min(LAUNCH, count - k),)) for k in starts]


class DeviceArray:
    """A result in GPU memory, which other libraries import by `__dlpack__` or `__cuda_array_interface__` uncopied."""

    def __init__(self, device: Any, values: np.ndarray) -> None:
        self.device, self.shape, self.dtype, self._values = device, values.shape, values.dtype, values
        self._buffer = device.buffer(max(1, values.size), values.dtype)
        if values.size:
            self._buffer.write(values.ravel())

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, number = self.device.dlpack_device()
        return int(kind), int(number)

    def __dlpack__(self, *, stream: object = None, **options: object) -> object:
        return self.device.export(self._buffer, self.dtype, self.shape, self)

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        self.device.finish()
        return interface_facts(self._buffer.pointer, self.dtype, self.shape)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._values, dtype=dtype, copy=copy)

    def __float__(self) -> float:
        return float(self._values)


def as_given(source: Any, values: np.ndarray | complex, device: Device | None) -> Any:
    """The values as an array of the library of `source`, in the same memory as `source`.

    A NumPy array for NumPy; a DeviceArray if the library has no from_dlpack(). UnavailableError if the library converts
    float64 to another dtype.
    """
    values = np.asarray(values)
    if not is_tensor(source):
        return values if values.ndim else values[()]
    in_gpu = device is not None and not is_on_host(source) and device.dlpack_device()[0] == CUDA
    exported = DeviceArray(device, values) if in_gpu else values
    library = _array_namespace(source)
    if library is None:
        return exported
    result = library.from_dlpack(exported)
    if not str(result.dtype).endswith("float64"):
        raise UnavailableError(
            f"{library.__name__} made {result.dtype} of float64, which rounds again; JAX keeps float64 with "
            "jax.config.update('jax_enable_x64', True)"
        )
    return result


def _array_namespace(source: object) -> Any:
    """The array API namespace of an array, else the module of its library; None if neither has from_dlpack()."""
    if namespace := getattr(source, "__array_namespace__", None):
        return namespace()
    module = sys.modules.get(type(source).__module__.partition(".")[0])
    is_library = all(getattr(module, name, None) for name in ("from_dlpack", "asarray"))
    return module if is_library else None
