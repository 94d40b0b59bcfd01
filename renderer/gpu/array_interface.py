"""Imports and exports GPU arrays by `__cuda_array_interface__` (version 3), for libraries without DLPack such as Numba.

https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from renderer.errors import UnavailableError
from renderer.gpu.dlpack import CUDA, Tensor, dense_order
from renderer.system.install import pip_install

OUR_STREAM = 1  # the legacy default stream: our kernels run after its earlier work


def has_interface(source: object) -> bool:
    """True if an object has `__cuda_array_interface__`."""
    return isinstance(getattr(source, "__cuda_array_interface__", None), dict)


def import_interface(source: Any, any_order: bool = False) -> Tensor:
    """Imports the tensor of `__cuda_array_interface__` after its stream's work is done; see dlpack.import_tensor.

    Raises BufferError for masked arrays, gaps between elements, another order than requested, and unsupported types.
    """
    facts = source.__cuda_array_interface__
    if facts.get("mask") is not None:
        raise BufferError("the array has a mask")
    try:
        dtype, shape = np.dtype(facts["typestr"]), tuple(int(n) for n in facts["shape"])
        pointer, strides = int(facts["data"][0]), facts.get("strides")
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise BufferError(f"its __cuda_array_interface__ is damaged: {error!r}") from None
    axes: tuple[int, ...] = ()  # C order; else the axes from slowest to fastest (dlpack.Tensor)
    if strides is not None:
        if len(strides) != len(shape) or not dtype.itemsize or any(stride % dtype.itemsize for stride in strides):
            raise BufferError(f"its strides are {strides}, for elements of {dtype.itemsize} bytes")
        shape, axes = dense_order(shape, tuple(stride // dtype.itemsize for stride in strides), any_order)
    index = _pointer_device(pointer, facts.get("stream")) if 0 not in shape else 0
    return Tensor(pointer, CUDA, index, dtype, shape, source, axes)


def interface_facts(pointer: int, dtype: np.dtype, shape: tuple[int, ...]) -> dict[str, object]:
    """Builds the `__cuda_array_interface__` of an array at a GPU address whose work is finished."""
    address = pointer, False  # False: not read-only
    return {"shape": shape, "typestr": dtype.str, "data": address, "version": 3, "strides": None, "stream": None}


def _pointer_device(pointer: int, stream: int | None) -> int:
    """Returns the index of the GPU that owns an address, after waiting for `stream`."""
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise UnavailableError(f"CUDA's driver is not there: {pip_install('cuda')}") from error
    ordinal = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    try:
        if stream not in (None, OUR_STREAM):
            (status,) = driver.cuStreamSynchronize(driver.CUstream(stream))
            if status != driver.CUresult.CUDA_SUCCESS:
                raise BufferError(f"its stream {stream} is not one of CUDA's: {status.name}")
        status, index = driver.cuPointerGetAttribute(ordinal, pointer)
    except RuntimeError as error:  # libcuda is missing
        raise UnavailableError(f"NVIDIA's driver library is missing: {' '.join(str(error).split())}") from None
    if status != driver.CUresult.CUDA_SUCCESS:
        raise BufferError(f"its address {pointer:#x} is in no GPU's memory: {status.name}")
    return int(index)
