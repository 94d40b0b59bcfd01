"""NumPy's files .npy and .npz, for sums, band matrices and light fields: the one reader, which never unpickles.

The header is read and judged before any data. Arrays that may be larger than memory are read chunk by chunk, straight
into the device's staging memory and not mapped: touching a mapped page behind the end of a file that has shrunk kills
the process, whereas a short read is an error like any other; a mapping's pages count as the process's memory until the
system takes them back; and staging memory needs the copy that a mapping would save.
Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
"""

import os
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any

import numpy as np

from renderer.errors import InputError, reading

NUMBERS = "float16, float32, float64 and integers can be summed"
MAX_HEADER_BYTES = 1 << 16
_READERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
# zipfile raises NotImplementedError for unknown compressions and RuntimeError for encrypted files.
ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, ValueError)


@dataclass(frozen=True)
class NpyHeader:
    """Shape, order and dtype of an array in a file."""

    shape: tuple[int, ...]
    is_fortran: bool
    dtype: np.dtype

    @property
    def count(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=object))

    @property
    def nbytes(self) -> int:
        """Bytes of the data."""
        return self.count * self.dtype.itemsize


def read_header(file: IO[bytes], name: str) -> NpyHeader:
    """The header at the beginning of a .npy stream, which then stands at the data; InputError, with `name`, if bad."""
    try:
        version = np.lib.format.read_magic(file)
        if version not in _READERS:
            raise ValueError(f"version {version[0]}.{version[1]} of the format is unknown; 1.0 and 2.0 are allowed")
        shape, is_fortran, dtype = _READERS[version](file, max_header_size=MAX_HEADER_BYTES)
    except (TypeError, SyntaxError, TokenError, RecursionError, MemoryError, *ZIP_ERRORS) as error:
        raise InputError(f"{name}: not a .npy file: {str(error).splitlines()[0]}") from error
    if any(not isinstance(n, int) or n < 0 for n in shape):
        raise InputError(f"{name}: not a .npy file: its shape is {shape}")
    return NpyHeader(shape, is_fortran, dtype)


def read_data(file: IO[bytes], header: NpyHeader, name: str) -> np.ndarray:
    """The array of numbers of a stream that stands behind its header; InputError when it is too short."""
    data = file.read(header.nbytes)
    if len(data) < header.nbytes:
        raise InputError(f"{name}: ends after {len(data)} of {header.nbytes} bytes")
    array = np.frombuffer(data, header.dtype)
    return array.reshape(header.shape[::-1]).T if header.is_fortran else array.reshape(header.shape)


@dataclass(frozen=True)
class ArraySource:
    """Numbers that are read chunk by chunk: `shape` of `dtype`, in C order; `path` names them in messages."""

    path: Path | str
    dtype: np.dtype
    shape: tuple[int, ...]

    @property
    def count(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=object))

    def read_into(self, out: np.ndarray, first: int) -> None:
        """Fills out, bytes (n,) uint8, from element `first` on; InputError when a file has shrunk."""
        raise NotImplementedError


@dataclass(frozen=True)
class NpyFile(ArraySource):
    """The numbers of a .npy file, from byte `start` on."""

    start: int

    def read_into(self, out: np.ndarray, first: int) -> None:
        """See ArraySource."""
        view, offset = memoryview(out.data), self.start + first * self.dtype.itemsize
        with reading(self.path), open(self.path, "rb", buffering=0) as file:
            file.seek(offset)
            while len(view):
                done = file.readinto(view)
                if not done:
                    raise InputError(f"{self.path}: became shorter while it was read: it ends before byte {offset + 1}")
                view, offset = view[done:], offset + done


@dataclass(frozen=True)
class HostArray(ArraySource):
    """The numbers of a C-order array in memory."""

    array: np.ndarray

    def read_into(self, out: np.ndarray, first: int) -> None:
        """See ArraySource."""
        flat = self.array.reshape(-1)[first : first + out.size // self.dtype.itemsize]
        np.copyto(out.view(self.dtype), flat)


def as_source(numbers: Any) -> ArraySource:
    """What can be read chunk by chunk: an ArraySource as it is, the path of a .npy file, or an array."""
    if isinstance(numbers, ArraySource):
        return numbers
    if isinstance(numbers, (str, os.PathLike)):
        return open_npy(Path(numbers))
    array = np.ascontiguousarray(numbers)
    check_numbers(array.dtype, "array", NUMBERS)
    return HostArray("array", array.dtype, array.shape, array)


def open_npy(path: Path | str, wanted: str = NUMBERS) -> NpyFile:
    """The file, its header read and its length checked.

    InputError, which says what is `wanted`, for other files than C-order arrays of numbers.
    """
    with reading(path), open(path, "rb") as file:
        header = read_header(file, str(path))
        start, size = file.tell(), os.fstat(file.fileno()).st_size
    check_numbers(header.dtype, path, wanted)
    if header.is_fortran and len(header.shape) > 1:
        raise InputError(f"{path}: the array is in Fortran order; C order is wanted (numpy.ascontiguousarray makes it)")
    if header.count == 0:
        raise InputError(f"{path}: the array is empty: its shape is {header.shape}")
    if size < start + header.nbytes:
        raise InputError(f"{path}: truncated: {size} bytes, where its header promises {start + header.nbytes}")
    return NpyFile(Path(path), header.dtype, header.shape, start)


def check_numbers(dtype: np.dtype, path: Path | str, wanted: str, kinds: str = "iufb") -> None:
    """InputError, which says what is `wanted`, unless these are native numbers of the kinds and at most 8 bytes."""
    if dtype.hasobject:
        raise InputError(f"{path}: holds Python objects; {wanted}")
    if dtype.kind not in kinds or dtype.itemsize > 8:
        raise InputError(f"{path}: holds {dtype}; {wanted}")
    if not dtype.isnative:
        raise InputError(f"{path}: holds {dtype.str}, in the other byte order; {dtype.newbyteorder('=').str} is wanted")
