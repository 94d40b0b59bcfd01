"""Reads band matrices and right-hand sides for `solve`: .npz, .npy, SciPy's sparse .npz, and Matrix Market .mtx.

Before an array is read, its size is checked against the free memory (check_memory) and against the bytes that the file
holds (read_header).
"""

import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO

import numpy as np

from renderer.errors import InputError, reading
from renderer.formats.archive import TRUSTED_SIZE, open_member, open_zip
from renderer.formats.matrix_market import Entries, read_matrix_market
from renderer.formats.npy import NpyHeader, check_numbers, in_double, read_data, read_header
from renderer.formats.scipy_npz import is_sparse, read_entries
from renderer.host import format_bytes
from renderer.records import dataclass
from renderer.system.files import file_size, open_input
from renderer.system.trust import check_memory

ONE_NUMBER = "one whole number of at least 0"


def is_matrix_market(path: Path) -> bool:
    """True if a file's name says that it is a Matrix Market file."""
    return path.name.lower().endswith((".mtx", ".mtx.gz"))


@dataclass(frozen=True)
class Band:
    """A band matrix in LAPACK's layout: ab (kl + ku + 1, n) real or complex, ab[ku + i - j, j] = A[i, j].

    If `order` (n,) is given, A is the file's matrix symmetrically permuted: A[i, j] = file[order[i], order[j]].
    `natural` is the (kl, ku) of the file's matrix before the permutation. `is_rounded`: a sum of several entries of one
    element was rounded.
    """

    ab: np.ndarray
    kl: int
    ku: int
    natural: tuple[int, int]
    order: np.ndarray | None = None
    is_rounded: bool = False


Reorder = Callable[[Entries], np.ndarray | None]


def read_band(path: Path, reorder: Reorder | None = None) -> Band:
    """Reads a band matrix: the arrays ab, kl and ku of a .npz, or the narrowest band around a sparse or dense matrix.

    Sparse and dense matrices come from Matrix Market files, .npz files of scipy.sparse and square arrays in .npy files;
    `reorder` may permute their rows and columns to narrow the band. Raises InputError for other files. Arrays ab, kl
    and ku are returned as stored: BandedLU checks that their shapes match.
    """
    matrix = _read_matrix(path)
    return matrix if isinstance(matrix, Band) else narrowest_band(path, matrix, reorder)


def read_rectangular(path: Path) -> Entries:
    """Reads the entries of a matrix of any shape, from any file that read_band() accepts."""
    matrix = _read_matrix(path)
    if isinstance(matrix, Entries):
        return matrix
    ab, n = matrix.ab, matrix.ab.shape[1] if matrix.ab.ndim == 2 else 0
    if ab.shape != (matrix.kl + matrix.ku + 1, n):
        raise InputError(f"{path}: ab is {ab.shape}; with kl = {matrix.kl} and ku = {matrix.ku} it does not fit")
    d, columns = np.nonzero(ab)
    rows = d + columns - matrix.ku  # LAPACK's layout: see Band
    inside = (rows >= 0) & (rows < n)  # elements of ab in its corners belong to no element of the matrix
    rows, columns, values = rows[inside], columns[inside], in_double(ab[d[inside], columns[inside]], f"{path}: ab")
    if not np.isfinite(values).all():
        raise InputError(f"{path}: ab holds {values[~np.isfinite(values)][0]}; it must be finite")
    return Entries((n, n), rows, columns, values)


def _read_matrix(path: Path) -> Band | Entries:
    """Reads a file: a Band from arrays ab, kl and ku, unchecked, or the entries of a sparse or dense matrix."""
    if is_matrix_market(path):
        return _as_entries(path, read_matrix_market(path))
    if path.suffix.lower() == ".npy":
        wanted = "a matrix in a .npy file must be (n, n)"
        array = _read_npy(path, "the matrix", lambda shape: len(shape) == 2, wanted)
        return _as_entries(path, _check_finite(path, array))
    _check_suffix(path, ".npz")
    with open_zip(path) as archive:
        if is_sparse(archive.namelist()):
            return read_entries(path, archive, partial(_read_member, path, archive))
        ab, kl, ku = _read_band_arrays(path, archive)
    return Band(ab, kl, ku, (kl, ku))


def _check_suffix(path: Path, *others: str) -> None:
    """InputError for a file that by its name is neither of `others`, .npy nor of Matrix Market."""
    if path.suffix.lower() not in (*others, ".npy"):
        taken = ", ".join((*others, ".npy", ".mtx"))
        raise InputError(f"{path}: taken are {taken} and .mtx.gz; numpy.save writes .npy")


def _as_entries(path: Path, matrix: np.ndarray | Entries) -> Entries:
    if isinstance(matrix, Entries):
        return matrix
    rows, columns = np.nonzero(matrix)
    return Entries((matrix.shape[0], matrix.shape[1]), rows, columns, in_double(matrix[rows, columns], str(path)))


def _read_npy(path: Path, what: str, fits: Callable[[tuple[int, ...]], bool], wanted: str) -> np.ndarray:
    """The array of a .npy file; InputError, which states what is `wanted`, unless its shape fits."""
    with open_input(path) as file, reading(path):
        header = _number_header(f"{path}: {what}", file, file_size(file))
        if not fits(header.shape):
            raise InputError(f"{path}: is {header.shape}; {wanted}")
        check_memory(header.nbytes, f"{path}: {what}")
        return read_data(file, header, str(path))


def _check_finite(path: Path, array: np.ndarray) -> np.ndarray:
    """The array; InputError for an element that is not finite."""
    if array.dtype.kind in "fc" and not np.isfinite(array).all():
        index = [int(k) for k in np.argwhere(~np.isfinite(array))[0]]
        raise InputError(f"{path}: element {index} is {array[tuple(index)]}; it must be finite")
    return array


def narrowest_band(path: Path, entries: Entries, reorder: Reorder | None) -> Band:
    """Stores a square matrix as the narrowest band, float64 or complex128, that holds all entries."""
    n = entries.shape[0]
    if n != entries.shape[1] or n == 0:
        raise InputError(f"{path}: the matrix is {entries.shape}; it must be square")
    natural = _count_diagonals(entries)
    rows, columns, order = entries.rows, entries.columns, None
    if reorder:
        _check_room(path, "an order of the rows", 24 * n, n, len(entries.values))
        order = reorder(entries)
    if order is not None:
        position = np.empty(n, "i8")  # the inverse permutation
        position[order] = np.arange(n)
        rows, columns = position[rows], position[columns]
    kl, ku = _count_diagonals(Entries(entries.shape, rows, columns, entries.values))
    name = f"the band of {kl} diagonals below and {ku} above the main one"
    _check_room(path, name, (kl + ku + 1) * n * entries.values.itemsize, n, len(entries.values))
    ab = np.zeros((kl + ku + 1, n), entries.values.dtype)
    is_rounded = _add_entries(ab, (ku + rows - columns) * n + columns, entries.values)
    return Band(ab, kl, ku, natural, order, is_rounded)


def _add_entries(array: np.ndarray, indices: np.ndarray, values: np.ndarray) -> bool:
    """Stores values at indices of the flat array, duplicates added one after another; True if a sum was rounded.

    Indices without duplicates are the usual case: then each element holds the number of its entry after the numbers are
    stored. Else entries are sorted by index, and the rank of an entry within its index is the number of the
    vectorized addition that adds it.
    """
    flat, numbers = array.reshape(-1), np.arange(1, len(values) + 1)
    flat[indices] = numbers
    if np.array_equal(flat[indices], numbers):
        flat[indices] = values
        return False
    flat[indices] = 0
    order = np.argsort(indices, kind="stable")
    indices, values = indices[order], values[order]
    firsts = np.flatnonzero(np.diff(indices, prepend=-1))
    ranks = np.arange(len(indices)) - np.repeat(firsts, np.diff(firsts, append=len(indices)))
    by_rank, is_rounded = np.argsort(ranks, kind="stable"), False
    for entries in np.split(by_rank, np.cumsum(np.bincount(ranks))[:-1]):
        before, added = flat[indices[entries]], values[entries]
        total = before + added
        is_rounded |= not (np.array_equal(total - before, added) and np.array_equal(total - added, before))
        flat[indices[entries]] = total
    return is_rounded


def _count_diagonals(entries: Entries) -> tuple[int, int]:
    """Returns (kl, ku): the number of diagonals below and above the main one up to the outermost entries."""
    below = entries.rows - entries.columns
    return max(int(below.max(initial=0)), 0), max(int(-below.min(initial=0)), 0)


def _read_band_arrays(path: Path, archive: zipfile.ZipFile) -> tuple[np.ndarray, int, int]:
    """Reads the members ab, kl and ku of a .npz."""
    names = archive.namelist()
    missing = [name for name in ("ab", "kl", "ku") if f"{name}.npy" not in names]
    if missing:
        found = ", ".join(name.removesuffix(".npy") for name in names[:9]) or "nothing"
        wanted = "a band file holds ab, kl and ku, a sparse matrix of SciPy format, shape and data"
        raise InputError(f"{path}: holds no {missing[0]!r}; {wanted}, and this one holds {found}")
    ab = _read_member(path, archive, "ab")
    kl, ku = (_diagonals(path, name, _read_member(path, archive, name, 1)) for name in ("kl", "ku"))
    return ab, kl, ku


def _read_member(path: Path, archive: zipfile.ZipFile, name: str, most: int | None = None) -> np.ndarray:
    """Reads a member of the .npz, which may hold `most` elements at most."""
    info, where = archive.getinfo(f"{name}.npy"), f"{path}: {name}"
    with open_member(archive, info, where) as file:
        header = _number_header(where, file, info.file_size)
        if most is not None and header.count > most:
            raise InputError(f"{where} is an array {header.shape} ({header.dtype}); it must be {ONE_NUMBER}")
        check_memory(header.nbytes, f"{path}: {name}")
        return read_data(file, header, where)


def _diagonals(path: Path, name: str, array: np.ndarray) -> int:
    """Checks that `array` is one whole number of at least 0 and returns it."""
    if array.size != 1 or array.dtype.kind not in "iu" or array.ravel()[0] < 0:
        found = array.ravel()[0] if array.size == 1 else f"an array {array.shape}"
        raise InputError(f"{path}: {name} is {found} ({array.dtype}); it must be {ONE_NUMBER}")
    return int(array.ravel()[0])


def _number_header(where: str, file: IO[bytes], size: int) -> NpyHeader:
    header = read_header(file, where, size)
    check_numbers(header.dtype, where, "real numbers of at most 8 bytes or complex ones of 16 are wanted", "fiuc")
    return header


def _check_room(path: Path, name: str, needed: int, vectors: int, entries: int) -> None:
    """Checks the size of an array made from a sparse file, whose empty rows or columns take no bytes in the file.

    Raises InputError if there are fewer entries than `vectors` (rows or columns) and the array exceeds TRUSTED_SIZE: a
    file of a few bytes must not claim gigabytes.
    """
    if vectors > entries and needed > TRUSTED_SIZE:
        raise InputError(f"{path}: {name} would take {format_bytes(needed)} for {entries} entries")
    check_memory(needed, f"{path}: {name}")


def read_rhs(path: Path, n: int) -> np.ndarray:
    """Reads right-hand sides (n,) or (n, m) from a .npy or .mtx file; raises InputError unless all are finite."""
    return _check_finite(path, _read_market_rhs(path, n) if is_matrix_market(path) else _read_npy_rhs(path, n))


def _read_market_rhs(path: Path, n: int) -> np.ndarray:
    """Reads right-hand sides (n, m) from a Matrix Market file."""
    matrix = read_matrix_market(path)
    rows, columns = matrix.shape
    if rows != n:
        raise InputError(f"{path}: is {matrix.shape}; the matrix has {n} rows, so it must be ({n}, m)")
    if isinstance(matrix, np.ndarray):
        return matrix
    _check_room(path, "the right-hand side", n * columns * matrix.values.itemsize, columns, len(matrix.values))
    dense = np.zeros((n, columns), matrix.values.dtype)
    if _add_entries(dense, matrix.rows * columns + matrix.columns, matrix.values):
        raise InputError(f"{path}: entries of one place add up to a number that float64 does not hold")
    return dense


def _read_npy_rhs(path: Path, n: int) -> np.ndarray:
    _check_suffix(path)
    wanted = f"the matrix has {n} rows, so it must be ({n},) or ({n}, m)"
    array = _read_npy(path, "the right-hand side", lambda shape: len(shape) in (1, 2) and shape[0] == n, wanted)
    return in_double(array, str(path)) if array.dtype.kind in "iu" else array
