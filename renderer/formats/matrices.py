"""Band matrices and right-hand sides in files: .npz, .npy, and Matrix Market's .mtx, as public collections have it.

Each array's size is checked against the free memory before it is read. Matrix Market: https://math.nist.gov/MatrixMarket
"""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import io

from renderer.errors import InputError, UnavailableError, UserError, reading
from renderer.formats.images import atomic_write
from renderer.formats.npy import ZIP_ERRORS, NpyHeader, check_numbers, read_data, read_header
from renderer.host import available_memory, format_bytes

MAX_ENTRY_BYTES = 64  # of one entry of a Matrix Market file while it is read


def is_matrix_market(path: Path) -> bool:
    """Whether a file's name says that it is a Matrix Market file."""
    return path.name.lower().endswith((".mtx", ".mtx.gz"))


def read_band(path: Path) -> tuple[np.ndarray, int, int]:
    """Reads ab (kl + ku + 1, n), kl and ku from a band file (.npz) or a sparse matrix (.mtx); else InputError."""
    return _read_market_band(path) if is_matrix_market(path) else _read_band_arrays(path)


def _read_market_band(path: Path) -> tuple[np.ndarray, int, int]:
    """The narrowest band that holds all entries of a square Matrix Market matrix, in float64."""
    matrix = _read_matrix_market(path)
    n = matrix.shape[0]
    if matrix.ndim != 2 or n != matrix.shape[1] or n == 0:
        raise InputError(f"{path}: the matrix is {matrix.shape}; it must be square")
    rows, columns = np.nonzero(matrix) if isinstance(matrix, np.ndarray) else matrix.coords
    values = matrix[rows, columns] if isinstance(matrix, np.ndarray) else matrix.data
    below = rows.astype(np.int64) - columns
    kl, ku = max(int(below.max(initial=0)), 0), max(int(-below.min(initial=0)), 0)
    _check_memory(path, f"the band of {kl} diagonals below and {ku} above the main one", (kl + ku + 1) * n * 8)
    ab = np.zeros((kl + ku + 1, n))
    np.add.at(ab, (ku + below, columns), values)  # duplicate entries add up
    return ab, kl, ku


def _read_matrix_market(path: Path) -> Any:
    """A dense array or a sparse matrix of real numbers; its memory is known from the header and checked first."""
    try:
        with reading(path):
            rows, columns, entries, kind, field, _symmetry = io.mminfo(path)
            if field not in ("real", "integer", "unsigned-integer", "double", "pattern"):
                raise InputError(f"{path}: holds {field} numbers; they must be real")
            needed = rows * columns * 8 if kind == "array" else 2 * entries * MAX_ENTRY_BYTES
            _check_memory(path, "the matrix", needed)
            return io.mmread(path, spmatrix=False)
    except (ValueError, TypeError, OverflowError, EOFError, zipfile.error) as error:
        raise InputError(f"{path}: not a Matrix Market file: {error}") from error


def _read_band_arrays(path: Path) -> tuple[np.ndarray, int, int]:
    try:
        with reading(path), zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            missing = [name for name in ("ab", "kl", "ku") if f"{name}.npy" not in names]
            if missing:
                found = ", ".join(name.removesuffix(".npy") for name in names[:9]) or "nothing"
                raise InputError(
                    f"{path}: holds no {missing[0]!r}; a band file holds ab, kl and ku, and this one holds {found}"
                )
            with archive.open("ab.npy") as file:
                header = _real_header(path, "ab", file)
                _check_memory(path, "ab", header.nbytes)
                ab = read_data(file, header, f"{path}: ab")
            kl, ku = (_read_integer(path, archive, name) for name in ("kl", "ku"))
    except ZIP_ERRORS as error:
        raise InputError(f"{path}: not a band file (.npz with ab, kl, ku): {error}") from error
    return ab, kl, ku


def _read_integer(path: Path, archive: zipfile.ZipFile, name: str) -> int:
    """One number of diagonals."""
    with archive.open(f"{name}.npy") as file:
        header = _real_header(path, name, file)
        found = f"an array {header.shape}"
        if header.count == 1:
            value = read_data(file, header, f"{path}: {name}").ravel()[0]
            if header.dtype.kind in "iu" and value >= 0:
                return int(value)
            found = str(value)
    raise InputError(f"{path}: {name} is {found} ({header.dtype}); it must be one whole number of at least 0")


def _real_header(path: Path, name: str, file: Any) -> NpyHeader:
    header = read_header(file, f"{path}: {name}")
    check_numbers(header.dtype, f"{path}: {name}", "real numbers of at most 8 bytes are wanted", "fiu")
    return header


def _check_memory(path: Path, name: str, needed: int) -> None:
    free = available_memory()
    if needed > free:
        raise UnavailableError(
            f"{path}: {name} takes {format_bytes(needed)} of memory, and {format_bytes(free)} are free here"
        )


def read_rhs(path: Path, n: int) -> np.ndarray:
    """Reads right-hand sides (n,) or (n, m) from a .npy or .mtx file; InputError unless all are finite."""
    array = _read_market_rhs(path, n) if is_matrix_market(path) else _read_npy_rhs(path, n)
    wrong = ~np.isfinite(array) if array.dtype.kind == "f" else np.zeros(1, bool)
    if wrong.any():
        index = [int(k) for k in np.argwhere(wrong)[0]]
        raise InputError(f"{path}: element {index} is {array[tuple(index)]}; it must be finite")
    return array


def _read_market_rhs(path: Path, n: int) -> np.ndarray:
    matrix = _read_matrix_market(path)
    if matrix.shape[0] != n:
        raise InputError(f"{path}: is {matrix.shape}; the matrix has {n} rows, so it must be ({n}, m)")
    _check_memory(path, "the right-hand side", int(np.prod(matrix.shape, dtype=object)) * 8)
    return matrix if isinstance(matrix, np.ndarray) else matrix.toarray()


def _read_npy_rhs(path: Path, n: int) -> np.ndarray:
    with reading(path), open(path, "rb") as file:
        header = _real_header(path, "the right-hand side", file)
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
