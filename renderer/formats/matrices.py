"""Band matrices and right-hand sides in files: .npz, .npy, and Matrix Market's .mtx, as public collections have it.

Each array's size is checked against the free memory and against what the file holds before it is read.
"""

import zipfile
from pathlib import Path
from typing import IO

import numpy as np

from renderer.errors import InputError, UnavailableError, UserError, reading
from renderer.files import file_size, open_input
from renderer.formats.archive import TRUSTED_SIZE, open_member, open_zip
from renderer.formats.images import atomic_write
from renderer.formats.matrix_market import read_matrix_market
from renderer.formats.npy import NpyHeader, check_numbers, read_data, read_header
from renderer.host import available_memory, format_bytes

ONE_NUMBER = "one whole number of at least 0"


def is_matrix_market(path: Path) -> bool:
    """Whether a file's name says that it is a Matrix Market file."""
    return path.name.lower().endswith((".mtx", ".mtx.gz"))


def read_band(path: Path) -> tuple[np.ndarray, int, int]:
    """Reads ab (kl + ku + 1, n), kl and ku from a band file (.npz) or a sparse matrix (.mtx); else InputError."""
    return _read_market_band(path) if is_matrix_market(path) else _read_band_arrays(path)


def _read_market_band(path: Path) -> tuple[np.ndarray, int, int]:
    """The narrowest band that holds all entries of a square Matrix Market matrix, in float64."""
    matrix = read_matrix_market(path)
    n = matrix.shape[0]
    if n != matrix.shape[1] or n == 0:
        raise InputError(f"{path}: the matrix is {matrix.shape}; it must be square")
    if isinstance(matrix, np.ndarray):
        rows, columns = np.nonzero(matrix)
        values = matrix[rows, columns]
    else:
        rows, columns, values = matrix.rows, matrix.columns, matrix.values
    below = rows - columns
    kl, ku = max(int(below.max(initial=0)), 0), max(int(-below.min(initial=0)), 0)
    name = f"the band of {kl} diagonals below and {ku} above the main one"
    _check_room(path, name, (kl + ku + 1) * n * 8, n, len(values))
    ab = np.zeros((kl + ku + 1, n))
    np.add.at(ab, (ku + below, columns), values)  # duplicate entries add up
    return ab, kl, ku


def _read_band_arrays(path: Path) -> tuple[np.ndarray, int, int]:
    with open_zip(path) as archive:
        names = archive.namelist()
        missing = [name for name in ("ab", "kl", "ku") if f"{name}.npy" not in names]
        if missing:
            found = ", ".join(name.removesuffix(".npy") for name in names[:9]) or "nothing"
            raise InputError(
                f"{path}: holds no {missing[0]!r}; a band file holds ab, kl and ku, and this one holds {found}"
            )
        ab = _read_member(path, archive, "ab")
        kl, ku = (_diagonals(path, name, _read_member(path, archive, name, 1)) for name in ("kl", "ku"))
    return ab, kl, ku


def _read_member(path: Path, archive: zipfile.ZipFile, name: str, most: int | None = None) -> np.ndarray:
    """The real numbers of a member, at most `most`."""
    info, where = archive.getinfo(f"{name}.npy"), f"{path}: {name}"
    with open_member(archive, info, where) as file:
        header = _real_header(where, file, info.file_size)
        if most is not None and header.count > most:
            raise InputError(f"{where} is an array {header.shape} ({header.dtype}); it must be {ONE_NUMBER}")
        _check_memory(path, name, header.nbytes)
        return read_data(file, header, where)


def _diagonals(path: Path, name: str, array: np.ndarray) -> int:
    """One number of diagonals."""
    if array.size != 1 or array.dtype.kind not in "iu" or array.ravel()[0] < 0:
        found = array.ravel()[0] if array.size == 1 else f"an array {array.shape}"
        raise InputError(f"{path}: {name} is {found} ({array.dtype}); it must be {ONE_NUMBER}")
    return int(array.ravel()[0])


def _real_header(where: str, file: IO[bytes], size: int) -> NpyHeader:
    header = read_header(file, where, size)
    check_numbers(header.dtype, where, "real numbers of at most 8 bytes are wanted", "fiu")
    return header


def _check_memory(path: Path, name: str, needed: int) -> None:
    free = available_memory()
    if needed > free:
        raise UnavailableError(
            f"{path}: {name} takes {format_bytes(needed)} of memory, and {format_bytes(free)} are free here"
        )


def _check_room(path: Path, name: str, needed: int, vectors: int, entries: int) -> None:
    """_check_memory() of a sparse file's array, whose empty rows or columns no byte of the file accounts for."""
    if vectors > entries and needed > TRUSTED_SIZE:
        raise InputError(f"{path}: {name} would take {format_bytes(needed)} for {entries} entries")
    _check_memory(path, name, needed)


def read_rhs(path: Path, n: int) -> np.ndarray:
    """Reads right-hand sides (n,) or (n, m) from a .npy or .mtx file; InputError unless all are finite."""
    array = _read_market_rhs(path, n) if is_matrix_market(path) else _read_npy_rhs(path, n)
    wrong = ~np.isfinite(array) if array.dtype.kind == "f" else np.zeros(1, bool)
    if wrong.any():
        index = [int(k) for k in np.argwhere(wrong)[0]]
        raise InputError(f"{path}: element {index} is {array[tuple(index)]}; it must be finite")
    return array


def _read_market_rhs(path: Path, n: int) -> np.ndarray:
    matrix = read_matrix_market(path)
    rows, columns = matrix.shape
    if rows != n:
        raise InputError(f"{path}: is {matrix.shape}; the matrix has {n} rows, so it must be ({n}, m)")
    if isinstance(matrix, np.ndarray):
        return matrix
    _check_room(path, "the right-hand side", n * columns * 8, columns, len(matrix.values))
    dense = np.zeros((n, columns))
    np.add.at(dense, (matrix.rows, matrix.columns), matrix.values)
    return dense


def _read_npy_rhs(path: Path, n: int) -> np.ndarray:
    with open_input(path) as file, reading(path):
        header = _real_header(f"{path}: the right-hand side", file, file_size(file))
        shape = header.shape
        if len(shape) not in (1, 2) or shape[0] != n:
            raise InputError(f"{path}: is {shape}; the matrix has {n} rows, so it must be ({n},) or ({n}, m)")
        _check_memory(path, "the right-hand side", header.nbytes)
        return read_data(file, header, str(path))


def write_npy(path: Path, array: np.ndarray) -> None:
    """Writes a .npy file completely or not at all; UserError where the name or the folder is wrong."""
    if path.suffix.lower() != ".npy":
        raise UserError(f"--output {path}: must end in .npy")
    with atomic_write(path) as temporary, open(temporary, "wb") as file:
        np.save(file, array, allow_pickle=False)
