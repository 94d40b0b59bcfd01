"""Opens the arrays of a .npz file as sources for sums: stored members are read in chunks, deflated ones at once."""

import zipfile
from pathlib import Path

import numpy as np

from renderer.errors import InputError, UnavailableError
from renderer.formats.archive import open_member, open_zip
from renderer.formats.npy import NUMBERS, REAL, ArraySource, HostArray, NpyFile, check_numbers, read_data, read_header
from renderer.host import available_memory, format_bytes
from renderer.system.files import file_size, open_input

LOCAL_HEADER = 30  # bytes before the name of a member, in front of its data (PKWARE's APPNOTE, 4.3.7)


def open_npz(path: Path | str, wanted: str = NUMBERS, kinds: str = REAL) -> list[ArraySource]:
    """Opens a .npz file's arrays, sorted by name; raises InputError for damaged files and arrays of other types."""
    path = Path(path)
    with open_zip(path) as archive:
        arrays = (info for info in archive.infolist() if info.filename.endswith(".npy"))
        infos = sorted(arrays, key=lambda info: info.filename)
        if not infos:
            raise InputError(f"{path}: holds no arrays")
        return [_open_array(path, archive, info, wanted, kinds) for info in infos]


def _open_array(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo, wanted: str, kinds: str) -> ArraySource:
    """Opens a member as a source: a stored one in the file, a packed one read into memory."""
    name = f"{path}: {info.filename.removesuffix('.npy')}"
    with open_member(archive, info, name) as file:
        header = read_header(file, name, info.file_size)
        native = header.dtype.newbyteorder("=")
        check_numbers(native, name, wanted, kinds)
        if info.compress_type == zipfile.ZIP_STORED:
            start, is_swapped = _data_offset(path, info) + file.tell(), header.dtype != native
            return NpyFile(path, native, header.shape, start, fortran=header.is_fortran, is_swapped=is_swapped)
        free = available_memory()
        if header.nbytes > free // 2:
            sizes = f"{format_bytes(header.nbytes)}, and {format_bytes(free)} of memory are free"
            raise UnavailableError(f"{name}: is packed and takes {sizes}; numpy.savez stores it unpacked")
        array = np.ascontiguousarray(read_data(file, header, name).astype(native))
    return HostArray(name, native, array.shape, array)


def _data_offset(path: Path, info: zipfile.ZipInfo) -> int:
    """Byte offset in the zip file of a stored member's data, which follow its local header and name."""
    with open_input(path) as file:
        file.seek(info.header_offset)
        head = file.read(LOCAL_HEADER)
        if len(head) < LOCAL_HEADER:
            raise InputError(f"{path}: the zip is damaged: {info.filename} begins behind its end")
        start = info.header_offset + LOCAL_HEADER + int.from_bytes(head[26:28], "little")
        start += int.from_bytes(head[28:30], "little")
        if start + info.file_size > file_size(file):
            raise InputError(f"{path}: the zip is damaged: {info.filename} goes beyond its end")
    return start
