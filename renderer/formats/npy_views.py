"""Reads light fields stored as one array (rows, columns, height, width[, channels]) in a .npy or .npz file.

For renderer.lightfields; rows and columns count the cameras of the grid.
"""

from pathlib import Path
from typing import Any

import numpy as np

from renderer.errors import InputError, reading
from renderer.formats.archive import open_member, open_zip
from renderer.formats.npy import NpyHeader, read_data, read_header
from renderer.system.files import file_size, open_input

MAX_FIELD_BYTES = 1 << 36  # limit of a uint8 field
MAX_CONVERTED_BYTES = 1 << 32  # limit of a field that is not uint8 and is converted in memory
MAX_MEMBERS = 16  # members of a .npz file that are read


def read_array(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Reads the views (rows, columns, height, width, 3 or 4) uint8 and the camera positions (rows * columns, 2): v, u.

    Positions are NaN where the file gives none. A .npy file is memory-mapped. A .npz file holds the views under any
    name and, optionally, the positions under "u" and "v", each (rows, columns). Raises InputError for other files.
    """
    if path.suffix.lower() == ".npy":
        array = _map(path)
        return _views(array, str(path)), np.full((array.shape[0] * array.shape[1], 2), np.nan)
    arrays = _read_members(path)
    fields = [name for name, array in arrays.items() if array.ndim in (4, 5)]
    if len(fields) != 1:
        found = ", ".join(f"{name} {array.shape}" for name, array in list(arrays.items())[:8])
        wanted = "one array (rows, columns, height, width, channels) is wanted"
        raise InputError(f"{path}: {wanted}; found {found or 'none'}")
    array = arrays[fields[0]]
    positions = np.full((array.shape[0] * array.shape[1], 2), np.nan)
    if "u" in arrays and "v" in arrays:
        for column, name in enumerate("vu"):
            if arrays[name].shape != array.shape[:2] or arrays[name].dtype.kind not in "iuf":
                wanted = f"numbers of shape {array.shape[:2]}"
                raise InputError(f"{path}: {name} is {arrays[name].shape}; it must be {wanted}")
            positions[:, column] = arrays[name].reshape(-1)
        if not np.isfinite(positions).all():
            raise InputError(f"{path}: u and v must be finite")
    return _views(array, f"{path}: {fields[0]}"), positions


def _map(path: Path) -> np.ndarray:
    """The array of a .npy file, memory-mapped."""
    with open_input(path) as file, reading(path):
        header = read_header(file, str(path), file_size(file))
        _check_header(str(path), header)
        if not header.count:
            return np.empty(header.shape, header.dtype)
        order: Any = "F" if header.is_fortran else "C"
        return np.memmap(file, header.dtype, "r", file.tell(), header.shape, order)


def _check_header(name: str, header: NpyHeader) -> None:
    """Raises InputError for an array of other elements than numbers, or of too many bytes."""
    dtype, needed = header.dtype, header.nbytes
    if dtype.kind not in "uif":
        raise InputError(f"{name}: its elements are {dtype}; numbers are wanted")
    limit = MAX_FIELD_BYTES if dtype == np.uint8 else MAX_CONVERTED_BYTES
    if needed > limit:
        raise InputError(f"{name}: {needed >> 20} MiB of {dtype} are more than the {limit >> 20} MiB allowed")


def _read_members(path: Path) -> dict[str, np.ndarray]:
    """Reads the arrays of a .npz file by name."""
    arrays = {}
    with open_zip(path) as archive:
        for info in archive.infolist()[:MAX_MEMBERS]:
            if not info.filename.endswith(".npy"):
                continue
            name = f"{path}: {info.filename}"
            with open_member(archive, info, name) as file:
                header = read_header(file, name, info.file_size)
                _check_header(name, header)
                arrays[info.filename.removesuffix(".npy")] = read_data(file, header, name)
    return arrays


def _views(array: np.ndarray, name: str) -> np.ndarray:
    """Converts the field to uint8 with 3 or 4 channels; gray becomes three equal channels."""
    if array.ndim == 4:
        array = array[..., None]
    if array.ndim != 5 or array.shape[4] not in (1, 3, 4) or 0 in array.shape:
        raise InputError(f"{name}: shape {array.shape}; (rows, columns, height, width, 1, 3 or 4) is wanted")
    if array.dtype != np.uint8:
        array = _to_bytes(array, name)
    return np.repeat(array, 3, axis=4) if array.shape[4] == 1 else array


def _to_bytes(array: np.ndarray, name: str) -> np.ndarray:
    """Quantizes floats in [0, 1], and unsigned integers over their type's range, to uint8, one view at a time."""
    if array.dtype.kind == "i":
        raise InputError(f"{name}: its elements are {array.dtype}; uint8, uint16 or floats of 0 to 1 are wanted")
    out = np.empty(array.shape, "u1")
    for row, column in np.ndindex(array.shape[:2]):
        view = array[row, column]
        if array.dtype.kind == "u":
            out[row, column] = np.round(view * (255.0 / np.iinfo(array.dtype).max))
            continue
        if not np.isfinite(view).all() or view.min() < -1e-3 or view.max() > 1.001:
            raise InputError(f"{name}: floats must be of 0 to 1; view ({row}, {column}) has others")
        out[row, column] = np.round(np.clip(view, 0, 1) * 255.0)
    return out
