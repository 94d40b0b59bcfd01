"""DLPack 1.0: tensors of other libraries as plain facts, and our buffers as tensors of theirs, without a copy.

The structures are those of dlpack.h; the capsule's protocol is the Python array API's `__dlpack__`.
"""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

CPU, CUDA, CUDA_MANAGED = 1, 2, 13  # kDLCPU, kDLCUDA, kDLCUDAManaged
LEGACY_STREAM = 1  # CUDA's legacy default stream, the one that our kernels use
KINDS = {0: "i", 1: "u", 2: "f", 6: "b"}  # DLDataTypeCode to NumPy's kind
CODES = {kind: code for code, kind in KINDS.items()}


class _DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _DLManagedTensor(ctypes.Structure):
    pass


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(_DLManagedTensor))
_DLManagedTensor._fields_ = (
    ("tensor", _DLTensor),
    ("context", ctypes.c_void_p),
    ("deleter", _Deleter),
)
_api = ctypes.pythonapi
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
_api.PyCapsule_SetName.argtypes = (ctypes.py_object, ctypes.c_char_p)
_api.PyCapsule_IsValid.argtypes = (ctypes.py_object, ctypes.c_char_p)
NEW, USED = b"dltensor", b"used_dltensor"  # names of capsules; kept alive here, as capsules only point to them
_exported: dict[int, tuple] = {}  # what each exported tensor keeps alive, by its address
_capsules: list[tuple[Any, int]] = []  # that were given away, with the addresses of their tensors


@dataclass(frozen=True)
class Tensor:
    """A tensor in C order of another library; its memory lives as long as `owner`."""

    pointer: int
    device_type: int
    device_id: int
    dtype: np.dtype
    shape: tuple[int, ...]
    owner: Any


class _Consumed:
    """A managed tensor that was taken over; the library that made it is told when it is no longer needed."""

    def __init__(self, managed: Any, source: Any) -> None:
        self._managed, self._source = managed, source

    def __del__(self) -> None:
        if self._managed.contents.deleter:
            self._managed.contents.deleter(self._managed)


def import_tensor(source: Any) -> Tensor:
    """The tensor behind an object with `__dlpack__`; BufferError if it is not in C order or has no NumPy type."""
    device_type = source.__dlpack_device__()[0]
    if device_type in (CUDA, CUDA_MANAGED):
        capsule = source.__dlpack__(stream=LEGACY_STREAM)
    else:
        capsule = source.__dlpack__()
    pointer = _api.PyCapsule_GetPointer(capsule, NEW)
    _api.PyCapsule_SetName(capsule, USED)
    managed = ctypes.cast(pointer, ctypes.POINTER(_DLManagedTensor))
    owner, tensor = _Consumed(managed, source), managed.contents.tensor
    if tensor.code not in KINDS or tensor.lanes != 1 or tensor.bits not in (8, 16, 32, 64):
        raise BufferError(f"a tensor of DLPack type {tensor.code} with {tensor.bits} bits has no NumPy type")
    dtype = np.dtype(f"{KINDS[tensor.code]}{tensor.bits // 8}")
    shape = tuple(tensor.shape[k] for k in range(tensor.ndim))
    if tensor.strides and 0 not in shape:
        expected = 1
        for k in reversed(range(tensor.ndim)):
            if shape[k] != 1 and tensor.strides[k] != expected:
                raise BufferError("the tensor is not in C order; make it contiguous first")
            expected *= shape[k]
    address = (tensor.data or 0) + tensor.byte_offset
    return Tensor(address, tensor.device_type, tensor.device_id, dtype, shape, owner)


def export_tensor(pointer: int, device: tuple[int, int], dtype: np.dtype, shape: tuple[int, ...], owner: Any) -> Any:
    """A capsule with the memory at `pointer` on a device (type, id); `owner` lives until the consumer is done."""
    sizes = (ctypes.c_int64 * max(1, len(shape)))(*shape)
    _forget_unused()
    managed = _DLManagedTensor()
    managed.tensor = _DLTensor(
        pointer, *device, len(shape), CODES[dtype.kind], 8 * dtype.itemsize, 1,
        ctypes.cast(sizes, ctypes.POINTER(ctypes.c_int64)), None, 0,
    )  # fmt: skip
    managed.deleter = _forget
    address = ctypes.addressof(managed)
    _exported[address] = (managed, sizes, owner)
    _capsules.append((_api.PyCapsule_New(address, NEW, None), address))
    return _capsules[-1][0]


@_Deleter
def _forget(managed: Any) -> None:
    _exported.pop(ctypes.addressof(managed.contents), None)


def _forget_unused() -> None:
    """Let go what capsules that nobody holds any more, and nobody consumed, keep alive.

    A destructor in Python could not do it: a consumer that refuses a capsule frees it while its exception is set.
    """
    kept = []
    for entry in _capsules:
        if sys.getrefcount(entry[0]) > 2:  # the entry's and the argument's
            kept.append(entry)
        elif _api.PyCapsule_IsValid(entry[0], NEW):
            _exported.pop(entry[1], None)
    _capsules[:] = kept
