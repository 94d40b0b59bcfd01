"""Reads untrusted sparse matrices in the layout of scipy.sparse.save_npz: csr, csc, coo and dia.

Every index is checked against the matrix's shape before it is used.
"""

import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from renderer.errors import InputError
from renderer.formats.archive import open_member
from renderer.formats.matrix_market import Entries
from renderer.formats.npy import in_double, read_header

MAX_SIDE = 1 << 50  # rows or columns
ARRAYS = {
    "csr": ("data", "indices", "indptr"),
    "csc": ("data", "indices", "indptr"),
    "coo": ("data", "row", "col"),
    "dia": ("data", "offsets"),
}
ReadMember = Callable[[str], np.ndarray]  # reads a member of the .npz by its name without .npy


def is_sparse(names: list[str]) -> bool:
    """True if the members of a .npz form a sparse matrix of SciPy."""
    return {"format.npy", "shape.npy", "data.npy"} <= set(names)


def read_entries(path: Path, archive: zipfile.ZipFile, read: ReadMember) -> Entries:
    """Reads the sparse matrix of an open .npz as float64 or complex128 entries; raises InputError if it is damaged."""
    kind = _format(path, archive)
    names = archive.namelist()
    missing = [name for name in ARRAYS[kind] if f"{name}.npy" not in names]
    if missing:
        raise InputError(f"{path}: a sparse matrix of format {kind} without {missing[0]!r}")
    shape = read("shape")
    if shape.shape != (2,) or shape.dtype.kind not in "iu" or (shape < 0).any() or (shape > MAX_SIDE).any():
        raise InputError(f"{path}: shape is {shape.shape} {shape.dtype}; it must be two whole numbers of at least 0")
    rows, columns = int(shape[0]), int(shape[1])
    arrays = [read(name) for name in ARRAYS[kind]]
    for name, array in zip(ARRAYS[kind][1:], arrays[1:], strict=True):
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise InputError(f"{path}: {name} is {array.shape} {array.dtype}; it must be a list of whole numbers")
    data = in_double(arrays[0], f"{path}: data")
    if kind == "dia":
        return _from_diagonals(path, (rows, columns), data, arrays[1].astype("i8"))
    if data.ndim != 1:
        raise InputError(f"{path}: data is {data.shape}; it must be a list of numbers")
    if kind == "coo":
        indices = arrays[1].astype("i8"), arrays[2].astype("i8")
        lengths = {len(data), *map(len, indices)}
    else:
        major = rows if kind == "csr" else columns  # csr stores row by row, csc column by column
        minor_indices, starts = arrays[1].astype("i8"), arrays[2].astype("i8")
        if len(starts) != major + 1 or starts[0] != 0 or (np.diff(starts) < 0).any() or starts[-1] != len(data):
            raise InputError(f"{path}: indptr does not divide {len(data)} entries among {major} rows or columns")
        major_indices = np.repeat(np.arange(major), np.diff(starts))
        indices = (major_indices, minor_indices) if kind == "csr" else (minor_indices, major_indices)
        lengths = {len(data), len(minor_indices)}
    if len(lengths) > 1:
        raise InputError(f"{path}: {' and '.join(map(str, sorted(lengths)))} numbers for the entries of one matrix")
    for name, index, count in (("row", indices[0], rows), ("column", indices[1], columns)):
        wrong = (index < 0) | (index >= count)
        if wrong.any():
            raise InputError(f"{path}: an entry in {name} {index[wrong][0]} of a matrix of {rows} x {columns}")
    return _finite(path, Entries((rows, columns), *indices, data))


def _format(path: Path, archive: zipfile.ZipFile) -> str:
    """Reads the format's name, which save_npz stores as an array of one string."""
    info, where = archive.getinfo("format.npy"), f"{path}: format"
    with open_member(archive, info, where) as file:
        header = read_header(file, where, info.file_size)
        if header.count != 1 or header.dtype.kind not in "SU" or header.nbytes > 64:
            raise InputError(f"{where} is {header.shape} {header.dtype}; it must be one of {', '.join(ARRAYS)}")
        text = np.frombuffer(file.read(header.nbytes).ljust(header.nbytes, b"\0"), header.dtype)[0]
    name = text.decode("latin-1") if isinstance(text, bytes) else str(text)
    if name not in ARRAYS:
        raise InputError(f"{where} is {name!r}; it must be one of {', '.join(ARRAYS)}")
    return name


def _from_diagonals(path: Path, shape: tuple[int, int], data: np.ndarray, offsets: np.ndarray) -> Entries:
    """Converts format dia: data[k, j] is element (j - offsets[k], j) of the matrix."""
    if data.ndim != 2 or len(data) != len(offsets) or len(np.unique(offsets)) != len(offsets):
        raise InputError(f"{path}: data is {data.shape} for {len(offsets)} offsets, which must differ")
    columns = np.broadcast_to(np.arange(data.shape[1]), data.shape)
    rows = columns - offsets[:, None]
    inside = (rows >= 0) & (rows < shape[0]) & (columns < shape[1])
    return _finite(path, Entries(shape, rows[inside], columns[inside], data[inside]))


def _finite(path: Path, entries: Entries) -> Entries:
    """Returns the entries; InputError for one that is not finite."""
    wrong = ~np.isfinite(entries.values)
    if wrong.any():
        k = int(np.argmax(wrong))
        shown = f"row {entries.rows[k]}, column {entries.columns[k]}"
        raise InputError(f"{path}: the entry in {shown} is {entries.values[k]}; it must be finite")
    return entries
