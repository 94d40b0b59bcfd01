"""DLPack 1.0: shares arrays with PyTorch, CuPy, JAX and others without a copy, in both directions.

import_tensor() takes an object with `__dlpack__` and returns its Tensor: a pointer, a shape and a type, which live as
long as the object. export_tensor() makes a capsule of our memory. The structures mirror dlpack.h; the capsule's
protocol is the Python array API's `__dlpack__`.
"""

from __future__ import annotations

import ctypes
import math
import struct
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeGuard

import numpy as np

CPU, CUDA, CUDA_MANAGED = 1, 2, 13  # kDLCPU, kDLCUDA, kDLCUDAManaged
LEGACY_HANDLE, NO_WAIT = 0, -1  # the default stream's handle in CUDA; the consumer waits for no stream
LEGACY_STREAM = 1  # CUDA's legacy default stream, the one that our kernels use
KINDS = {0: "i", 1: "u", 2: "f", 6: "b"}  # NumPy's kind by DLDataTypeCode
CODES = {kind: code for code, kind in KINDS.items()}
SIZES = {"i": (8, 16, 32, 64), "u": (8, 16, 32, 64), "f": (16, 32, 64), "b": (8,)}
DTYPES = {(code, bits): np.dtype(f"{kind}{bits // 8}") for code, kind in KINDS.items() for bits in SIZES[kind]}


# A DLTensor: data, device type, device id, ndim, type code, bits, lanes, shape, strides, byte offset. Packed and
# unpacked at once, since ctypes is slow for single fields.
_TENSOR = struct.Struct("PiiiBBHPPQ")


class _DLManagedTensor(ctypes.Structure):
    pass


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(_DLManagedTensor))
_DLManagedTensor._fields_ = (
    ("tensor", ctypes.c_uint8 * _TENSOR.size),
    ("context", ctypes.c_void_p),
    ("deleter", _Deleter),
)
_TensorBytes = ctypes.c_char * _TENSOR.size
_DELETER_AT = _DLManagedTensor.deleter.offset
_Free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_api = ctypes.pythonapi
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
_api.PyCapsule_SetName.argtypes = (ctypes.py_object, ctypes.c_char_p)
_api.PyCapsule_IsValid.argtypes = (ctypes.py_object, ctypes.c_char_p)
NEW, USED = b"dltensor", b"used_dltensor"  # capsule names; capsules only point to them, so these objects must live on
_exported: dict[int, tuple[object, ...]] = {}  # objects that each exported tensor keeps alive, by the tensor's address
_capsules: list[tuple[object, int]] = []  # exported capsules with the addresses of their tensors


class HasDlpack(Protocol):
    """An array of a library that implements DLPack."""

    def __dlpack__(self, *, stream: Any = None) -> Any:
        """Exports a capsule with the tensor."""

    def __dlpack_device__(self) -> tuple[int, int]:
        """The type and index of the array's device."""


def has_dlpack(value: object) -> TypeGuard[HasDlpack]:
    """True if an object implements DLPack."""
    return hasattr(value, "__dlpack__")


class Tensor(NamedTuple):
    """A dense tensor of another library, in C order of `shape`; its memory lives as long as `owner`.

    If the owner's axes are permuted in memory, `axes` lists them from slowest to fastest and `shape` is in that order;
    else `axes` is ().
    """

    pointer: int
    device_type: int
    device_id: int
    dtype: np.dtype
    shape: tuple[int, ...]
    owner: object
    axes: tuple[int, ...] = ()


class _Consumed:
    """An imported managed tensor; its deleter is called when this object is freed."""

    def __init__(self, managed: int, source: object) -> None:
        self._managed, self._source = managed, source

    def __del__(self) -> None:
        deleter = ctypes.c_void_p.from_address(self._managed + _DELETER_AT).value
        if deleter:
            _Free(deleter)(self._managed)


def import_tensor(source: HasDlpack, any_order: bool = False) -> Tensor:
    """Imports the tensor of an object with `__dlpack__`.

    Raises BufferError if NumPy lacks its type or its elements are not in C order; `any_order` allows permuted axes, but
    no gaps.
    """
    device_type, index = source.__dlpack_device__()
    if device_type in (CUDA, CUDA_MANAGED):
        capsule = source.__dlpack__(stream=NO_WAIT if _is_on_default_stream(source, index) else LEGACY_STREAM)
    else:
        capsule = source.__dlpack__()
    pointer = _api.PyCapsule_GetPointer(capsule, NEW)
    _api.PyCapsule_SetName(capsule, USED)  # from now on the consumer, which is _Consumed, calls the deleter
    owner = _Consumed(pointer, source)
    fields = _TENSOR.unpack_from(_TensorBytes.from_address(pointer))
    data, kind, number, ndim, code, bits, lanes, shape_at, strides_at, offset = fields
    dtype = DTYPES.get((code, bits)) if lanes == 1 else None
    if dtype is None:
        raise BufferError(f"a tensor of DLPack type {code} with {bits} bits has no NumPy type")
    shape = _numbers_at(shape_at, ndim)
    axes: tuple[int, ...] = ()
    if strides_at:
        shape, axes = dense_order(shape, _numbers_at(strides_at, ndim), any_order)
    return Tensor(data + offset, kind, number, dtype, shape, owner, axes)


def dense_order(
    shape: tuple[int, ...], strides: tuple[int, ...], any_order: bool
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Converts shape and strides (in elements) to Tensor's shape in memory order and its axes.

    Raises BufferError for gaps between elements and, without `any_order`, for another order than C's.
    """
    if 0 in shape:
        return shape, ()
    axes = tuple(range(len(shape)))
    if any_order:  # axes of length 1 first, since their strides mean nothing
        axes = tuple(sorted(axes, key=lambda axis: -strides[axis] if shape[axis] > 1 else -math.inf))
    expected = 1
    for axis in reversed(axes):
        if shape[axis] != 1 and strides[axis] != expected:
            wanted = "has gaps between its elements" if any_order else "is not in C order"
            raise BufferError(f"the tensor {wanted}; make it contiguous first")
        expected *= shape[axis]
    is_plain = tuple(axis for axis in axes if shape[axis] > 1) == tuple(k for k, n in enumerate(shape) if n > 1)
    return (shape, ()) if is_plain else (tuple(shape[axis] for axis in axes), axes)


def _is_on_default_stream(source: object, index: int) -> bool:
    """True if a tensor is PyTorch's and PyTorch's current stream on that GPU is ours.

    Then no streams need synchronizing, which saves 8 us.
    """
    if type(source).__module__.partition(".")[0] != "torch":
        return False
    current = getattr(sys.modules["torch"]._C, "_cuda_getCurrentRawStream", None)  # as its compiler does
    return current is not None and current(index) == LEGACY_HANDLE


def _numbers_at(address: int, count: int) -> tuple[int, ...]:
    """Reads `count` 64-bit integers at an address."""
    return tuple((ctypes.c_int64 * count).from_address(address)) if count else ()


def export_tensor(
    pointer: int, device: tuple[int, int], dtype: np.dtype, shape: tuple[int, ...], owner: object
) -> object:
    """Exports memory at `pointer` on a device (type, index) as a capsule; `owner` lives until the consumer is done."""
    sizes = (ctypes.c_int64 * max(1, len(shape)))(*shape)
    _forget_unused()
    managed = _DLManagedTensor()
    kind = CODES[dtype.kind], 8 * dtype.itemsize, 1
    managed.tensor[:] = _TENSOR.pack(pointer, *device, len(shape), *kind, ctypes.addressof(sizes), 0, 0)
    managed.deleter = _forget
    # The consumer calls the deleter; _exported keeps the structure, the sizes and the owner alive until then.
    address = ctypes.addressof(managed)
    _exported[address] = (managed, sizes, owner)
    _capsules.append((_api.PyCapsule_New(address, NEW, None), address))
    return _capsules[-1][0]


@_Deleter  # type: ignore[untyped-decorator]  # a type that ctypes makes
def _forget(
    managed: ctypes._Pointer[_DLManagedTensor],
    exported: dict[int, tuple[object, ...]] = _exported,
    address_of: Callable[..., int] = ctypes.addressof,
) -> None:
    """The deleter: releases a tensor's owner. Default arguments keep the globals it needs alive at exit."""
    exported.pop(address_of(managed.contents), None)


def _forget_unused() -> None:
    """Releases the tensors of capsules that were neither consumed nor are still referenced.

    A capsule destructor in Python cannot do this: a consumer that refuses a capsule frees it while an exception is set.
    """
    kept = []
    for entry in _capsules:
        if sys.getrefcount(entry[0]) > 2:  # the list's reference and getrefcount's argument
            kept.append(entry)
        elif _api.PyCapsule_IsValid(entry[0], NEW):
            _exported.pop(entry[1], None)
    _capsules[:] = kept
