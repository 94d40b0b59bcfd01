"""Reads untrusted .npy data (files, pipes, .npz members) for sums, band matrices and light fields; writes results.

Nothing is unpickled. The header is checked before any data is read. Arrays that may exceed memory are ArraySources,
read chunk by chunk into the device's staging memory. They are not memory-mapped, for three reasons: touching a mapped
page beyond the end of a file that has shrunk kills the process, whereas a short read raises an error; mapped pages
count as the process's memory until the system reclaims them; and the data must be copied to staging memory in any
case.
Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
"""

import io
import json
import math
import os
import re
import struct
import threading
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from renderer.errors import InputError, reading
from renderer.plain import format_value, printable
from renderer.records import dataclass, field, replace
from renderer.system.files import file_size, open_input, parse_json
from renderer.system.outputs import atomic_write

# Ends of error sentences about a dtype that a reader refuses: readers of real numbers, and of real or complex ones.
NUMBERS = "float16, float32, float64 and integers can be summed"
SUMMABLE = "float16, float32, float64, integers, complex64 and complex128 can be summed"
REAL, COMPLEX = "iufb", "c"  # NumPy's dtype.kind: signed, unsigned, floating-point and bool; complex
MAX_HEADER_BYTES = 1 << 16
MAX_DIMENSIONS = 32  # NumPy's limit before version 2
MAGIC = b"\x93NUMPY"
MARK_SPACES = 128  # at the end of a header that this program writes; is_own() of system/outputs.py looks for them
_SCALAR_TYPE = re.compile(r"[<>|=]?[?A-Za-z]\d{0,4}(\[\w{1,8}\])?", re.ASCII)


@dataclass(frozen=True)
class NpyHeader:
    """Shape, order and dtype of an array in a file."""

    shape: tuple[int, ...]
    is_fortran: bool
    dtype: np.dtype

    @property
    def count(self) -> int:
        """Number of elements, as a product of Python's integers, which do not overflow."""
        return int(np.prod(self.shape, dtype=object))

    @property
    def nbytes(self) -> int:
        """Bytes of the data."""
        return self.count * self.dtype.itemsize


def read_header(file: IO[bytes], name: str, size: int) -> NpyHeader:
    """Reads the header of a .npy stream of `size` bytes and leaves the stream at the first byte of the data.

    Raises InputError, prefixed by `name`, if the header is malformed or states more data than the stream holds.
    """
    try:
        header, start = _parse_header(file)
    except ValueError as error:
        raise InputError(f"{name}: not a .npy file: {error}") from error
    if size - start < header.nbytes:
        raise InputError(f"{name}: truncated: {size} bytes, where its header promises {start + header.nbytes}")
    return header


def _parse_header(file: IO[bytes]) -> tuple[NpyHeader, int]:
    """Reads the header; returns it and the byte offset of the data. Raises ValueError."""
    magic = file.read(8)
    if magic[:6] != MAGIC or len(magic) < 8:
        raise ValueError(f"it does not begin with {MAGIC!r}")
    if tuple(magic[6:]) not in ((1, 0), (2, 0)):
        raise ValueError(f"version {magic[6]}.{magic[7]} of the format is unknown; 1.0 and 2.0 are allowed")
    width = 2 * magic[6]  # bytes of the header's length: 2 in version 1, 4 in version 2
    length = int.from_bytes(file.read(width), "little")
    if length > MAX_HEADER_BYTES:
        raise ValueError(f"its header has {length} bytes; {MAX_HEADER_BYTES} are allowed")
    text = file.read(length)
    if len(text) < length:
        raise ValueError("it ends within its header")
    table = _parse_literal(text.decode("latin-1"))
    if not isinstance(table, dict) or table.keys() != {"descr", "fortran_order", "shape"}:
        raise ValueError("its header must have the keys descr, fortran_order, shape")
    shape, is_fortran, dtype = table["shape"], table["fortran_order"], _parse_dtype(table["descr"])
    if not isinstance(shape, list) or len(shape) > MAX_DIMENSIONS or any(type(n) is not int or n < 0 for n in shape):
        raise ValueError(f"its shape is {format_value(shape)}")
    if math.prod(max(n, 1) for n in shape) * dtype.itemsize >= 1 << 63:
        raise ValueError(f"its shape is {format_value(shape)}, more than memory can address")
    if not isinstance(is_fortran, bool):
        raise ValueError(f"its fortran_order is {format_value(is_fortran)}; it must be True or False")
    return NpyHeader(tuple(shape), is_fortran, dtype), 8 + width + length


def _parse_literal(text: str) -> object:
    """Parses a header's Python literal without eval: rewrites it as JSON outside its strings; tuples become lists."""
    marks = {"(": "[", ")": "]", "True": "true", "False": "false"}

    def as_json(match: re.Match[str]) -> str:
        token = match[0]
        if token[0] == "'":
            return json.dumps(token[1:-1])
        return marks.get(token, "")  # a trailing comma becomes nothing

    try:
        return parse_json(re.sub(r"'[^'\\]*'|[()]|True|False|,(?=\s*[\])}])", as_json, text))
    except ValueError as error:
        raise ValueError(f"its header is damaged: {printable(text.strip(), 60)!r}") from error


def _parse_dtype(description: object) -> np.dtype:
    """Converts `descr` to a dtype: a string such as "<f8", or a list of [name, type] or [name, type, shape]."""

    def convert(entry: object) -> Any:
        if isinstance(entry, list):
            return [(name, convert(kind), *map(tuple, shape)) for name, kind, *shape in entry]
        if isinstance(entry, str) and _SCALAR_TYPE.fullmatch(entry):
            return entry
        raise ValueError

    try:
        dtype: np.dtype = np.dtype(convert(description))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"its elements are {format_value(description)}") from error
    if not dtype.itemsize:  # empty strings: any count of them fits any file, yet NumPy allocates a byte for each
        raise ValueError(f"its elements are {format_value(description)}, of no bytes")
    return dtype


def read_data(file: IO[bytes], header: NpyHeader, name: str) -> np.ndarray:
    """Reads the data of a stream positioned after its header; raises InputError if the stream is too short."""
    data, done = np.empty(header.nbytes, "u1"), 0
    while chunk := file.read(min(1 << 20, header.nbytes - done)):
        data[done : done + len(chunk)] = np.frombuffer(chunk, "u1")
        done += len(chunk)
    if done < header.nbytes:
        raise InputError(f"{name}: ends after {done} of {header.nbytes} bytes")
    array = data.view(header.dtype)
    return array.reshape(header.shape[::-1]).T if header.is_fortran else array.reshape(header.shape)


@dataclass(frozen=True)
class ArraySource:
    """An array that is read chunk by chunk into native byte order; error messages name it as `path`.

    `fortran`: the elements are stored first index fastest; `is_swapped`: in the other byte order.
    """

    path: Path | str
    dtype: np.dtype
    shape: tuple[int, ...]
    fortran: bool = field(default=False, kw_only=True)
    is_swapped: bool = field(default=False, kw_only=True)

    @property
    def count(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=object))

    @property
    def is_fortran(self) -> bool:
        """True if the order of the elements matters and is first index fastest."""
        return self.fortran and len(self.shape) > 1

    def read_into(self, out: np.ndarray, first: int) -> None:
        """Fills `out` (n,) uint8 with the bytes from element `first` on; raises InputError if the file has shrunk."""
        raise NotImplementedError


@dataclass(frozen=True)
class NpyFile(ArraySource):
    """The array of a .npy file, whose data begin at byte `start`; read_into() converts to native byte order."""

    start: int

    def read_into(self, out: np.ndarray, first: int) -> None:
        """See ArraySource."""
        view, offset = memoryview(out.data), self.start + first * self.dtype.itemsize
        with reading(self.path), open_input(self.path) as file:
            file.seek(offset)
            while len(view):
                done = file.readinto(view)
                if not done:
                    raise InputError(f"{self.path}: became shorter while it was read: it ends before byte {offset + 1}")
                view, offset = view[done:], offset + done
        if self.is_swapped:
            out.view(self.dtype).byteswap(inplace=True)


@dataclass(frozen=True, eq=False)
class PipeSource(ArraySource):
    """The array of a .npy pipe, which can be read once, from the first element to the last.

    Several threads may call read_into() for disjoint chunks: each waits until the pipe has reached its chunk.
    """

    file: IO[bytes]
    changed: threading.Condition = field(default_factory=threading.Condition)
    # [the next element]; [-1] once the pipe has ended early. A list, because the fields of a source do not change.
    position: list[int] = field(default_factory=lambda: [0])

    def read_into(self, out: np.ndarray, first: int) -> None:
        """See ArraySource; if the pipe ends too early, every waiting thread raises InputError."""
        with self.changed:
            self.changed.wait_for(lambda: not 0 <= self.position[0] < first)  # until its turn, or the early end
            assert self.position[0] in (first, -1), "a pipe is read once, in order"
            view = memoryview(out.data)
            while len(view) and self.position[0] >= 0:
                done = self.file.readinto(view) if isinstance(self.file, io.BufferedIOBase) else 0
                view = view[done:]
                if not done:
                    self.position[0] = -1
            if self.position[0] >= 0:
                self.position[0] = first + out.size // self.dtype.itemsize
            self.changed.notify_all()
            if self.position[0] < 0:
                raise InputError(f"{self.path}: ends before the {self.count} numbers that its header promises")
        if self.is_swapped:
            out.view(self.dtype).byteswap(inplace=True)


def open_pipe(file: IO[bytes], name: str, wanted: str = NUMBERS, kinds: str = REAL) -> PipeSource:
    """Opens a .npy pipe; raises InputError, which states what is `wanted`, unless the dtype's kind is in `kinds`."""
    header = read_header(file, name, 1 << 64)  # the length of a pipe is not known
    native = header.dtype.newbyteorder("=")
    check_numbers(native, name, wanted, kinds)
    return PipeSource(name, native, header.shape, file, fortran=header.is_fortran, is_swapped=header.dtype != native)


@dataclass(frozen=True)
class HostArray(ArraySource):
    """A C-order array in memory, in either byte order."""

    array: np.ndarray

    def read_into(self, out: np.ndarray, first: int) -> None:
        """See ArraySource."""
        flat = self.array.reshape(-1)[first : first + out.size // self.dtype.itemsize]
        np.copyto(out.view(self.dtype), flat)


def in_double(array: np.ndarray, name: str) -> np.ndarray:
    """The numbers as float64 or complex128; InputError that names the first integer that float64 does not hold.

    float64 holds an integer exactly if its magnitude, divided by its lowest set bit, is below 2^53.
    """
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8 and array.size:
        bits = array.astype("u8")
        magnitudes = np.where(array < 0, ~bits + np.uint64(1), bits)
        lowest_bit = np.maximum(magnitudes & (~magnitudes + np.uint64(1)), np.uint64(1))
        wrong = magnitudes // lowest_bit >= np.uint64(1 << 53)
        if wrong.any():
            found = f"the integer {array[wrong][0]}, which float64 does not hold exactly (it holds all up to 2^53)"
            raise InputError(f"{name} holds {found}; convert it to float64 to solve with the rounded number")
    return array.astype("c16" if array.dtype.kind == "c" else "f8", copy=False)


def refuse_mask(numbers: object, name: str) -> None:
    """InputError for a masked array of NumPy, whose masked elements would be used as numbers."""
    if isinstance(numbers, np.ma.MaskedArray):
        advice = "x.compressed() leaves its masked elements out, and x.filled(0) replaces them"
        raise InputError(f"{name} is a masked array; {advice}")


def as_source(numbers: object, wanted: str = NUMBERS, kinds: str = REAL) -> ArraySource:
    """Converts `numbers` to an ArraySource: an ArraySource unchanged, the path of a .npy file, or an array-like.

    Raises InputError, which states what is `wanted`, unless the dtype's kind is one of `kinds`.
    """
    if isinstance(numbers, ArraySource):
        check_numbers(numbers.dtype, numbers.path, wanted, kinds)
        return numbers
    if isinstance(numbers, (str, os.PathLike)):
        return open_npy(Path(numbers), wanted, kinds)
    refuse_mask(numbers, "array")
    array = np.ascontiguousarray(numbers)
    native = array.dtype.newbyteorder("=")
    check_numbers(native, "array", wanted, kinds)
    return HostArray("array", native, array.shape, array)


def as_reals(source: ArraySource) -> ArraySource:
    """Views a complex source as real numbers (..., 2), real and imaginary parts; returns other sources unchanged."""
    if source.dtype.kind != "c":
        return source
    dtype, shape = real_dtype(source.dtype), (*source.shape, 2)
    if isinstance(source, HostArray):
        stored = dtype if source.array.dtype.isnative else dtype.newbyteorder()
        return HostArray(source.path, dtype, shape, source.array.reshape(-1).view(stored))
    return replace(source, dtype=dtype, shape=shape)


def real_dtype(dtype: np.dtype) -> np.dtype:
    """Returns the dtype of a complex dtype's real part; other dtypes unchanged."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def open_npy(path: Path | str, wanted: str = NUMBERS, kinds: str = REAL) -> NpyFile:
    """Opens a .npy file of any layout: reads its header and checks its length.

    Raises InputError, which states what is `wanted`, for arrays of other kinds.
    """
    with open_input(path) as file, reading(path):
        header = read_header(file, str(path), file_size(file))
        start = file.tell()
    native = header.dtype.newbyteorder("=")
    check_numbers(native, path, wanted, kinds)
    is_swapped = header.dtype != native
    return NpyFile(Path(path), native, header.shape, start, fortran=header.is_fortran, is_swapped=is_swapped)


def check_numbers(dtype: np.dtype, path: Path | str, wanted: str, kinds: str = REAL) -> None:
    """Raises InputError, which states what is `wanted`, unless `dtype` is native and its kind is one of `kinds`.

    Real numbers may have 8 bytes at most, complex numbers 16.
    """
    if dtype.hasobject:
        raise InputError(f"{path}: holds Python objects; {wanted}")
    if dtype.kind not in kinds or dtype.itemsize > (16 if dtype.kind == "c" else 8):
        raise InputError(f"{path}: holds {dtype}; {wanted}")
    if not dtype.isnative:
        raise InputError(f"{path}: holds {dtype.str}, in the other byte order; {dtype.newbyteorder('=').str} is wanted")


def write_arrays(path: Path | str, arrays: np.ndarray | Mapping[str, np.ndarray]) -> None:
    """Writes an array as .npy, several by name as .npz, whole or not at all, with this program's mark. UserError."""
    with atomic_write(path) as temporary, open(temporary, "r+b") as file:
        if isinstance(arrays, Mapping):
            np.savez(file, allow_pickle=False, **arrays)
            with zipfile.ZipFile(file, "a") as archive:
                archive.comment = b"Rayfold"
            return
        facts = np.lib.format.header_data_from_array_1_0(arrays)
        text = f"{facts!r}".encode()
        # Version 1 has room for the padding too if the text takes half; version 3 is in UTF-8.
        version, size = (1, "<H") if text.isascii() and len(text) < MAX_HEADER_BYTES // 2 else (3, "<I")
        length = len(MAGIC) + 2 + struct.calcsize(size)
        text += b" " * (MARK_SPACES + -(length + len(text) + MARK_SPACES + 1) % 64) + b"\n"
        file.write(MAGIC + bytes((version, 0)) + struct.pack(size, len(text)) + text)
        (arrays.T if facts["fortran_order"] else arrays).tofile(file)
