"""Arrays of other libraries (PyTorch, CuPy, JAX, Numba), read where they are, and results as arrays of those libraries.

In by DLPack or `__cuda_array_interface__`, out by DLPack to the library that the array came from: nothing is copied.
"""

import sys
from typing import Any

import numpy as np

from renderer.errors import InputError, UnavailableError
from renderer.formats.npy import NUMBERS, check_numbers
from renderer.gpu import Device
from renderer.gpu.array_interface import has_interface, import_interface, interface_of
from renderer.gpu.dlpack import CPU, CUDA, Tensor, import_tensor

LAUNCH = 1 << 28  # numbers of one launch; DeviceSum reads its limbs before 2^29


def is_tensor(numbers: Any) -> bool:
    """Whether an array is another library's, with DLPack or `__cuda_array_interface__`."""
    if isinstance(numbers, (np.ndarray, np.generic)):
        return False
    return hasattr(numbers, "__dlpack__") or has_interface(numbers)


def is_dask_array(numbers: Any) -> bool:
    """Whether an array is Dask's, whose chunks are computed when they are asked for."""
    return hasattr(numbers, "to_delayed") and hasattr(numbers, "chunks")


def borrow_tensor(numbers: Any, devices: list[Device], any_order: bool = False) -> tuple[Device, Tensor] | np.ndarray:
    """The tensor and the device that can read it in place, or, of the host's memory, a NumPy array of it.

    With `any_order` its axes may lie in another order than C's. InputError for a GPU's tensors that do not lie so and
    for those of no numbers, UnavailableError for those of a GPU that is not among the devices.
    """
    try:
        tensor = (import_tensor if hasattr(numbers, "__dlpack__") else import_interface)(numbers, any_order)
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


def is_on_host(numbers: Any) -> bool:
    """Whether an array of any library is in the host's memory."""
    return not is_tensor(numbers) or hasattr(numbers, "__dlpack__") and numbers.__dlpack_device__()[0] == CPU


def on_host(numbers: Any) -> np.ndarray:
    """An array of any library that is in the host's memory as NumPy's; UnavailableError for those of a GPU."""
    if not is_tensor(numbers):
        return np.asarray(numbers)
    if not is_on_host(numbers):
        found = borrow_tensor(numbers, [], any_order=True)
        assert isinstance(found, np.ndarray)  # of no numbers: without devices there are no others
        return found
    try:
        return np.from_dlpack(numbers)
    except (BufferError, RuntimeError) as error:  # of types that NumPy does not have
        raise InputError(f"array: {error}") from None


def parts_of(tensor: Tensor) -> list[Tensor]:
    """The tensor in pieces of at most LAUNCH numbers."""
    count, size = int(np.prod(tensor.shape, dtype=object)), tensor.dtype.itemsize
    starts = range(0, count, LAUNCH)
    return [tensor._replace(pointer=tensor.pointer + k * size, shape=(min(LAUNCH, count - k),)) for k in starts]


class DeviceArray:
    """A result in a GPU's memory: `__dlpack__` and `__cuda_array_interface__` give it away without a copy."""

    def __init__(self, device: Any, values: np.ndarray) -> None:
        self.device, self.shape, self.dtype, self._values = device, values.shape, values.dtype, values
        self._buffer = device.buffer(max(1, values.size), values.dtype)
        if values.size:
            self._buffer.write(values.ravel())

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device.dlpack_device()

    def __dlpack__(self, *, stream: Any = None, **options: Any) -> Any:
        return self.device.export(self._buffer, self.dtype, self.shape, self)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        self.device.finish()
        return interface_of(self._buffer.pointer, self.dtype, self.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._values, dtype=dtype, copy=copy)

    def __float__(self) -> float:
        return float(self._values)


def as_given(source: Any, values: np.ndarray | float, device: Device | None) -> Any:
    """The values as `source` is: an array of its library, in the memory where it is.

    NumPy's for NumPy's; a DeviceArray for a library of a GPU without from_dlpack().
    """
    values = np.asarray(values)
    if not is_tensor(source):
        return values if values.ndim else values[()]
    in_gpu = device is not None and not is_on_host(source) and device.dlpack_device()[0] == CUDA
    found = DeviceArray(device, values) if in_gpu else values
    library = _library_of(source)
    if library is None:
        return found
    result = library.from_dlpack(found)
    if not str(result.dtype).endswith("float64"):
        raise UnavailableError(
            f"{library.__name__} made {result.dtype} of float64, which rounds again; JAX keeps float64 with "
            "jax.config.update('jax_enable_x64', True)"
        )
    return result


def _library_of(source: Any) -> Any:
    """The namespace with from_dlpack() of an array's library: the array API's, or else its module."""
    if hasattr(source, "__array_namespace__"):
        return source.__array_namespace__()
    module = sys.modules.get(type(source).__module__.partition(".")[0])
    return module if hasattr(module, "from_dlpack") and hasattr(module, "asarray") else None
