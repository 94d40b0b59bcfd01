"""Sums of arrays of other libraries (PyTorch, CuPy, JAX) where they are, by DLPack: nothing is copied."""

from typing import Any

import numpy as np

from renderer.errors import InputError, UnavailableError
from renderer.formats.npy import NUMBERS, check_numbers
from renderer.gpu import Device
from renderer.gpu.dlpack import CPU, Tensor, import_tensor

LAUNCH = 1 << 28  # numbers of one launch; DeviceSum reads its limbs before 2^29


def is_tensor(numbers: Any) -> bool:
    """Whether an array is another library's, with DLPack."""
    return hasattr(numbers, "__dlpack__") and not isinstance(numbers, (np.ndarray, np.generic))


def borrow_tensor(numbers: Any, devices: list[Device]) -> tuple[Device, Tensor] | np.ndarray:
    """The tensor and the device that can read it in place, or, of the host's memory, a NumPy array of it.

    InputError for tensors that are not in C order or hold no numbers, UnavailableError for those of a GPU that is not
    among the devices.
    """
    try:
        tensor = import_tensor(numbers)
    except BufferError as error:
        raise InputError(f"array: {error}") from None
    check_numbers(tensor.dtype, "array", NUMBERS)
    for device in devices:
        if device.borrow(tensor) is not None:
            return device, tensor
    if tensor.device_type == CPU:
        return np.from_dlpack(numbers)
    where = f"on device {tensor.device_id} of DLPack type {tensor.device_type}"
    raise UnavailableError(f"array: it is {where}, which {', '.join(device.name for device in devices)} cannot read")


def parts_of(tensor: Tensor) -> list[Tensor]:
    """The tensor in pieces of at most LAUNCH numbers."""
    count, size = int(np.prod(tensor.shape, dtype=object)), tensor.dtype.itemsize
    starts = range(0, count, LAUNCH)
    return [tensor._replace(pointer=tensor.pointer + k * size, shape=(min(LAUNCH, count - k),)) for k in starts]
