"""Arrays that may be larger than memory: .npy files read block by block, and host arrays by the same two words.

Files are read straight into the device's staging memory and not mapped: touching a mapped page behind the end of a
file that has shrunk kills the process, whereas a short read is an error like any other; a mapping's pages count as the
process's memory until the system takes them back; and staging memory needs the copy that a mapping would save.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError

import numpy as np

from renderer.errors import InputError

KINDS = "iufb"
NUMBERS = "float16, float32, float64 and integers can be summed"
LARGEST_HEADER = 1 << 16


@dataclass(frozen=True)
class NpyFile:
    """The numbers of a .npy file: `count` of `dtype` from byte `start` on."""

    path: Path
    dtype: np.dtype
    shape: tuple[int, ...]
    start: int

    @property
    def count(self) -> int:
        return int(np.prod(self.shape, dtype=object))

    def read_into(self, out: np.ndarray, first: int) -> None:
        """Fills out, bytes (n,) uint8, with the numbers from number `first` on; InputError when the file has shrunk."""
        view, at = memoryview(out), self.start + first * self.dtype.itemsize
        try:
            with open(self.path, "rb", buffering=0) as file:
                file.seek(at)
                while len(view):
                    done = file.readinto(view)
                    if not done:
                        raise InputError(f"{self.path}: became shorter while it was read: it ends before byte {at + 1}")
                    view, at = view[done:], at + done
        except OSError as error:
            raise InputError(f"{self.path}: {error.strerror or error}") from error


@dataclass(frozen=True)
class HostArray:
    """The numbers of an array in memory, C order."""

    array: np.ndarray
    path = "array"

    @property
    def dtype(self) -> np.dtype:
        return self.array.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def count(self) -> int:
        return self.array.size

    def read_into(self, out: np.ndarray, first: int) -> None:
        flat = self.array.reshape(-1)[first : first + out.size // self.dtype.itemsize]
        np.copyto(out.view(self.dtype), flat)


def source_of(numbers) -> NpyFile | HostArray:
    """What can be read block by block: an NpyFile, the path of one, or an array."""
    if isinstance(numbers, (NpyFile, HostArray)):
        return numbers
    if isinstance(numbers, (str, os.PathLike)):
        return open_npy(Path(numbers))
    array = np.ascontiguousarray(numbers)
    _check_dtype(array.dtype, "array")
    return HostArray(array)


def open_npy(path: Path, wanted: str = NUMBERS) -> NpyFile:
    """The file, its header read and its length checked; InputError, which says what is `wanted`, for all others."""
    try:
        with open(path, "rb") as file:
            shape, fortran, dtype = _header(file, path)
            start, size = file.tell(), os.fstat(file.fileno()).st_size
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    _check_dtype(dtype, path, wanted)
    if fortran and len(shape) > 1:
        raise InputError(f"{path}: the array is in Fortran order; C order is wanted (numpy.ascontiguousarray makes it)")
    npy = NpyFile(path, dtype, shape, start)
    if npy.count == 0:
        raise InputError(f"{path}: the array is empty: its shape is {shape}")
    promised = start + npy.count * dtype.itemsize
    if size < promised:
        raise InputError(f"{path}: truncated: {size} bytes, where its header promises {promised}")
    return npy


def _header(file, path) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, whether in Fortran order, and dtype."""
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    try:
        version = np.lib.format.read_magic(file)
        if version not in read:
            raise ValueError(f"version {version[0]}.{version[1]} of the format is not known; 1.0 and 2.0 are")
        shape, fortran, dtype = read[version](file, max_header_size=LARGEST_HEADER)
    except (ValueError, TypeError, SyntaxError, TokenError, RecursionError, MemoryError) as error:
        raise InputError(f"{path}: not a .npy file: {str(error).splitlines()[0]}") from error
    if any(not isinstance(n, int) or n < 0 for n in shape):
        raise InputError(f"{path}: not a .npy file: its shape is {shape}")
    return shape, fortran, dtype


def _check_dtype(dtype: np.dtype, path, wanted: str = NUMBERS) -> None:
    if dtype.hasobject:
        raise InputError(f"{path}: holds Python objects; {wanted}")
    if dtype.kind not in KINDS or dtype.itemsize > 8:
        raise InputError(f"{path}: holds {dtype}; {wanted}")
    if not dtype.isnative:
        raise InputError(f"{path}: holds {dtype.str}, in the other byte order; {dtype.newbyteorder('=').str} is wanted")
