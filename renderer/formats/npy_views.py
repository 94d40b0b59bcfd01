"""Light fields in .npy and .npz files: (rows, columns, height, width[, channels]), never by pickle.

The header is read and judged before any of the data; the bytes of a .npy are memory-mapped where they can be.
"""

import zipfile
import zlib
from pathlib import Path

import numpy as np

from renderer.errors import InputError
from renderer.formats.archive import TRUSTED_GROWTH, TRUSTED_SIZE

LARGEST_FIELD = 1 << 36  # bytes
LARGEST_CONVERTED = 1 << 32  # bytes of a field that is not of bytes and has to be converted in memory


def read_array(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """The views (rows, columns, height, width, 3 or 4) uint8 and the cameras' places (n, 2) v, u, NaN where not told.

    A .npz holds the views under any name, and the places under "u" and "v", each (rows, columns), if at all.
    """
    if path.suffix.lower() == ".npy":
        with open(path, "rb") as file:
            shape, _, dtype = _header(file, str(path))
        _judge(str(path), shape, dtype, path.stat().st_size, path.stat().st_size)
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        return _views(array, str(path)), np.full((array.shape[0] * array.shape[1], 2), np.nan)
    arrays = _members(path)
    fields = [name for name, array in arrays.items() if array.ndim in (4, 5)]
    if len(fields) != 1:
        told = ", ".join(f"{name} {array.shape}" for name, array in list(arrays.items())[:8])
        raise InputError(
            f"{path}: one array (rows, columns, height, width, channels) is wanted; found {told or 'none'}"
        )
    array = arrays[fields[0]]
    places = np.full((array.shape[0] * array.shape[1], 2), np.nan)
    if "u" in arrays and "v" in arrays:
        for column, name in enumerate("vu"):
            if arrays[name].shape != array.shape[:2] or arrays[name].dtype.kind not in "iuf":
                raise InputError(
                    f"{path}: {name} is {arrays[name].shape}; it must be numbers of shape {array.shape[:2]}"
                )
            places[:, column] = arrays[name].reshape(-1)
        if not np.isfinite(places).all():
            raise InputError(f"{path}: u and v must be finite")
    return _views(array, f"{path}: {fields[0]}"), places


def _header(file, where: str):
    """Shape, Fortran order and dtype of a .npy stream, which then stands at its data."""
    try:
        version = np.lib.format.read_magic(file)
        read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
        if read is None:
            raise ValueError(f"version {version} is not known")
        return read(file)
    except (ValueError, EOFError, OSError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{where}: not a NumPy array that can be read: {str(error).splitlines()[0]}") from error


def _judge(where: str, shape, dtype, expanded: int, packed: int) -> None:
    """InputError for what is no field, or is too large."""
    if dtype.kind not in "uif" or dtype.hasobject:
        raise InputError(f"{where}: its elements are {dtype}; numbers are wanted")
    wanted = int(np.prod(shape, dtype=object)) * dtype.itemsize if shape else dtype.itemsize
    if wanted > expanded:
        raise InputError(f"{where}: tells {wanted} bytes of data and holds {expanded}")
    limit = LARGEST_FIELD if dtype == np.uint8 else LARGEST_CONVERTED
    if wanted > limit:
        raise InputError(f"{where}: {wanted >> 20} MiB of {dtype} are more than the {limit >> 20} MiB allowed")
    if expanded > max(TRUSTED_SIZE, TRUSTED_GROWTH * packed):
        raise InputError(f"{where}: a zip bomb: its {packed} bytes would grow to {expanded}")


def _members(path: Path) -> dict[str, np.ndarray]:
    arrays = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist()[:16]:
                if not info.filename.endswith(".npy"):
                    continue
                where = f"{path}: {info.filename}"
                with archive.open(info) as file:
                    shape, _, dtype = _header(file, where)
                _judge(where, shape, dtype, info.file_size, info.compress_size)
                with archive.open(info) as file:
                    arrays[info.filename.removesuffix(".npy")] = np.lib.format.read_array(file, allow_pickle=False)
    except (OSError, zipfile.BadZipFile, zlib.error, ValueError, EOFError, NotImplementedError) as error:
        raise InputError(f"{path}: not an .npz file that can be read: {error}") from error
    return arrays


def _views(array: np.ndarray, where: str) -> np.ndarray:
    """The field as bytes with 3 or 4 channels; grey becomes three equal channels."""
    if array.ndim == 4:
        array = array[..., None]
    if array.ndim != 5 or array.shape[4] not in (1, 3, 4) or 0 in array.shape:
        raise InputError(f"{where}: shape {array.shape}; (rows, columns, height, width, 1, 3 or 4) is wanted")
    if array.dtype != np.uint8:
        array = _bytes(array, where)
    return np.repeat(array, 3, axis=4) if array.shape[4] == 1 else array


def _bytes(array: np.ndarray, where: str) -> np.ndarray:
    """Floats of 0 to 1, and integers over the whole range of their type, as bytes, one view at a time."""
    if array.dtype.kind == "i":
        raise InputError(f"{where}: its elements are {array.dtype}; uint8, uint16 or floats of 0 to 1 are wanted")
    out = np.empty(array.shape, "u1")
    for row, column in np.ndindex(array.shape[:2]):
        view = array[row, column]
        if array.dtype.kind == "u":
            out[row, column] = np.round(view * (255.0 / np.iinfo(array.dtype).max))
            continue
        if not np.isfinite(view).all() or view.min() < -1e-3 or view.max() > 1.001:
            raise InputError(f"{where}: floats must be of 0 to 1; view ({row}, {column}) has others")
        out[row, column] = np.round(np.clip(view, 0, 1) * 255.0)
    return out
