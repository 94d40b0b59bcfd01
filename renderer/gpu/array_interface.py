"""Arrays in a GPU's memory by `__cuda_array_interface__` (Numba's protocol, version 3): what has no DLPack, as Numba's.

https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from renderer.errors import UnavailableError
from renderer.gpu.dlpack import CUDA, Tensor, dense_order

OUR_STREAM = 1  # the legacy default stream, behind whose earlier work our kernels run


def has_interface(source: Any) -> bool:
    """Whether an array says where it is in a GPU's memory."""
    return isinstance(getattr(source, "__cuda_array_interface__", None), dict)


def import_interface(source: Any, any_order: bool = False) -> Tensor:
    """The tensor behind `__cuda_array_interface__`, once its stream is done; see dlpack.import_tensor.

    BufferError for masks, gaps, another order than asked for, and what has no NumPy type.
    """
    facts = source.__cuda_array_interface__
    if facts.get("mask") is not None:
        raise BufferError("the array has a mask")
    try:
        dtype, shape = np.dtype(facts["typestr"]), tuple(int(n) for n in facts["shape"])
        pointer, strides = int(facts["data"][0]), facts.get("strides")
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise BufferError(f"its __cuda_array_interface__ is damaged: {error!r}") from None
    axes: tuple[int, ...] = ()
    if strides is not None:
        if len(strides) != len(shape) or not dtype.itemsize or any(stride % dtype.itemsize for stride in strides):
            raise BufferError(f"its strides are {strides}, for elements of {dtype.itemsize} bytes")
        shape, axes = dense_order(shape, tuple(stride // dtype.itemsize for stride in strides), any_order)
    index = _device_of(pointer, facts.get("stream")) if 0 not in shape else 0
    return Tensor(pointer, CUDA, index, dtype, shape, source, axes)


def interface_of(pointer: int, dtype: np.dtype, shape: tuple[int, ...]) -> dict[str, Any]:
    """The `__cuda_array_interface__` of finished work at an address of a GPU's memory."""
    return {
        "shape": shape,
        "typestr": dtype.str,
        "data": (pointer, False),
        "version": 3,
        "strides": None,
        "stream": None,
    }


def _device_of(pointer: int, stream: int | None) -> int:
    """The GPU of an address, whose `stream` has finished then."""
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise UnavailableError("CUDA's driver is not there: pip install 'rayfold[cuda]'") from error
    ordinal = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    try:
        if stream not in (None, OUR_STREAM):
            (status,) = driver.cuStreamSynchronize(driver.CUstream(stream))
            if status != driver.CUresult.CUDA_SUCCESS:
                raise BufferError(f"its stream {stream} is not one of CUDA's: {status.name}")
        status, index = driver.cuPointerGetAttribute(ordinal, pointer)
    except RuntimeError as error:  # the library libcuda is not found
        raise UnavailableError(f"NVIDIA's driver library is missing: {' '.join(str(error).split())}") from None
    if status != driver.CUresult.CUDA_SUCCESS:
        raise BufferError(f"its address {pointer:#x} is in no GPU's memory: {status.name}")
    return int(index)
