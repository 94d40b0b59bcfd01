"""DLPack 1.0: tensors of other libraries as plain facts, and our buffers as tensors of theirs, without a copy.

The structures are those of dlpack.h; the capsule's protocol is the Python array API's `__dlpack__`.
"""

from __future__ import annotations

import ctypes
import math
import struct
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

CPU, CUDA, CUDA_MANAGED = 1, 2, 13  # kDLCPU, kDLCUDA, kDLCUDAManaged
LEGACY_HANDLE, NO_WAIT = 0, -1  # of that stream in CUDA; the consumer waits for no stream
LEGACY_STREAM = 1  # CUDA's legacy default stream, the one that our kernels use
KINDS = {0: "i", 1: "u", 2: "f", 6: "b"}  # DLDataTypeCode to NumPy's kind
CODES = {kind: code for code, kind in KINDS.items()}
SIZES = {"i": (8, 16, 32, 64), "u": (8, 16, 32, 64), "f": (16, 32, 64), "b": (8,)}
DTYPES = {(code, bits): np.dtype(f"{kind}{bits // 8}") for code, kind in KINDS.items() for bits in SIZES[kind]}


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
_TENSOR = struct.Struct("PiiiBBHPPQ")  # of a DLTensor: read at once, as ctypes takes a microsecond for a few fields
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
NEW, USED = b"dltensor", b"used_dltensor"  # names of capsules; kept alive here, as capsules only point to them
_exported: dict[int, tuple] = {}  # what each exported tensor keeps alive, by its address
_capsules: list[tuple[Any, int]] = []  # that were given away, with the addresses of their tensors


class Tensor(NamedTuple):
    """A tensor of another library without gaps, in C order of `shape`; its memory lives as long as `owner`.

    `axes` are the owner's axes from the slowest to the fastest in memory, to which the shape belongs; () where they are
    in order.
    """

    pointer: int
    device_type: int
    device_id: int
    dtype: np.dtype
    shape: tuple[int, ...]
    owner: Any
    axes: tuple[int, ...] = ()


class _Consumed:
    """A managed tensor that was taken over; the library that made it is notified when it is no longer needed."""

    def __init__(self, managed: int, source: Any) -> None:
        self._managed, self._source = managed, source

    def __del__(self) -> None:
        deleter = ctypes.c_void_p.from_address(self._managed + _DELETER_AT).value
        if deleter:
            _Free(deleter)(self._managed)


def import_tensor(source: Any, any_order: bool = False) -> Tensor:
    """The tensor behind an object with `__dlpack__`; BufferError if it is not in C order or has no NumPy type.

    With `any_order` its axes may lie in another order, but without gaps.
    """
    device_type, index = source.__dlpack_device__()
    if device_type in (CUDA, CUDA_MANAGED):
        capsule = source.__dlpack__(stream=NO_WAIT if _is_on_default_stream(source, index) else LEGACY_STREAM)
    else:
        capsule = source.__dlpack__()
    pointer = _api.PyCapsule_GetPointer(capsule, NEW)
    _api.PyCapsule_SetName(capsule, USED)
    owner = _Consumed(pointer, source)
    data, kind, number, ndim, code, bits, lanes, shape_at, strides_at, offset = _TENSOR.unpack_from(
        _TensorBytes.from_address(pointer)
    )
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
    """The shape in the order of memory, and its axes as Tensor has them, of strides in elements.

    BufferError for elements with gaps between them, and without `any_order` for another order than C's.
    """
    if 0 in shape:
        return shape, ()
    axes = tuple(range(len(shape)))
    if any_order:
        axes = tuple(sorted(axes, key=lambda axis: -strides[axis] if shape[axis] > 1 else -math.inf))
    expected = 1
    for axis in reversed(axes):
        if shape[axis] != 1 and strides[axis] != expected:
            wanted = "has gaps between its elements" if any_order else "is not in C order"
            raise BufferError(f"the tensor {wanted}; make it contiguous first")
        expected *= shape[axis]
    is_plain = tuple(axis for axis in axes if shape[axis] > 1) == tuple(k for k, n in enumerate(shape) if n > 1)
    return (shape, ()) if is_plain else (tuple(shape[axis] for axis in axes), axes)


def _is_on_default_stream(source: Any, index: int) -> bool:
    """Whether a tensor is PyTorch's, whose work on that GPU goes to our stream; asked so, it takes 8 us less."""
    if type(source).__module__.partition(".")[0] != "torch":
        return False
    current = getattr(sys.modules["torch"]._C, "_cuda_getCurrentRawStream", None)  # what its compiled code calls
    return current is not None and current(index) == LEGACY_HANDLE


def _numbers_at(address: int, count: int) -> tuple[int, ...]:
    """64-bit integers in memory."""
    return tuple((ctypes.c_int64 * count).from_address(address)) if count else ()


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
def _forget(managed: Any, exported: dict = _exported, address_of: Callable = ctypes.addressof) -> None:
    """Defaults hold what it needs: a consumer may free its array when this module is already gone, at exit."""
    exported.pop(address_of(managed.contents), None)


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
