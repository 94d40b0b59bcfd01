"""Band matrices and right-hand sides in files: .npz, .npy, and Matrix Market's .mtx, as public collections have it."""

import gzip
import zipfile
from pathlib import Path

import numpy as np
from scipy import io

from renderer.errors import InputError, UnavailableError, UserError
from renderer.host import available_memory, format_bytes

HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
MARKET = (".mtx", ".mtx.gz")
ENTRY_BYTES = 64  # at most, of an entry of a Matrix Market file while it is read


def is_market(path: Path) -> bool:
    return path.name.lower().endswith(MARKET)


def read_band(path: Path) -> tuple[np.ndarray, int, int]:
    """ab (kl + ku + 1, n), kl and ku of a band file (.npz) or of a sparse matrix (.mtx)."""
    return read_market_band(path) if is_market(path) else read_arrays(path)


def read_market_band(path: Path) -> tuple[np.ndarray, int, int]:
    """The narrowest band that holds all entries of a square Matrix Market matrix, in float64."""
    matrix = read_market(path)
    n = matrix.shape[0]
    if matrix.ndim != 2 or n != matrix.shape[1] or n == 0:
        raise InputError(f"{path}: the matrix is {matrix.shape}; it must be square")
    rows, columns = np.nonzero(matrix) if isinstance(matrix, np.ndarray) else matrix.coords
    values = matrix[rows, columns] if isinstance(matrix, np.ndarray) else matrix.data
    below = rows.astype(np.int64) - columns
    kl, ku = max(int(below.max(initial=0)), 0), max(int(-below.min(initial=0)), 0)
    check_room(path, f"the band of {kl} diagonals below and {ku} above the main one", (kl + ku + 1) * n * 8)
    ab = np.zeros((kl + ku + 1, n))
    np.add.at(ab, (ku + below, columns), values)  # entries of one place add up
    return ab, kl, ku


def read_market(path: Path):
    """A dense array or a sparse matrix of real numbers; what it takes is known from the head and checked first."""
    try:
        rows, columns, entries, kind, field, _symmetry = io.mminfo(path)
        if field not in ("real", "integer", "unsigned-integer", "double", "pattern"):
            raise InputError(f"{path}: holds {field} numbers; they must be real")
        check_room(path, "the matrix", (rows * columns * 8) if kind == "array" else 2 * entries * ENTRY_BYTES)
        matrix = io.mmread(path, spmatrix=False)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    except (ValueError, TypeError, OverflowError, EOFError, gzip.BadGzipFile, zipfile.error) as error:
        raise InputError(f"{path}: not a Matrix Market file: {error}") from error
    return matrix


def read_arrays(path: Path) -> tuple[np.ndarray, int, int]:
    """ab, kl and ku of an .npz file, each array's size checked against the memory before it is unpacked."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            missing = [name for name in ("ab", "kl", "ku") if f"{name}.npy" not in names]
            if missing:
                there = ", ".join(name.removesuffix(".npy") for name in names[:9]) or "nothing"
                raise InputError(
                    f"{path}: holds no {missing[0]!r}; a band file holds ab, kl and ku, and this one holds {there}"
                )
            ab = _member(path, archive, "ab")
            sizes = [_member(path, archive, name, most=64) for name in ("kl", "ku")]
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    # zipfile says NotImplementedError of a compression that it does not know, and RuntimeError of an encrypted file
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError) as error:
        raise InputError(f"{path}: not a band file (.npz with ab, kl, ku): {error}") from error
    for name, value in zip(("kl", "ku"), sizes, strict=True):
        if value.size != 1 or value.dtype.kind not in "iu" or value.ravel()[0] < 0:
            shown = value.ravel()[0] if value.size == 1 else f"an array {value.shape}"
            raise InputError(f"{path}: {name} is {shown} ({value.dtype}); it must be one whole number of at least 0")
    kl, ku = (int(value.ravel()[0]) for value in sizes)
    return ab, kl, ku


def _member(path: Path, archive: zipfile.ZipFile, name: str, most: int | None = None) -> np.ndarray:
    """One array of an .npz file."""
    with archive.open(f"{name}.npy") as file:
        shape, fortran, dtype = _header(path, name, file)
        needed = int(np.prod(shape, dtype=object)) * dtype.itemsize
        if most is not None and needed > most:
            raise InputError(f"{path}: {name} is {shape}; it must be one whole number")
        check_room(path, name, needed)
        data = file.read(needed)
    if len(data) < needed:
        raise InputError(f"{path}: {name} ends after {len(data)} of {needed} bytes")
    array = np.frombuffer(data, dtype)
    return array.reshape(shape[::-1]).T if fortran else array.reshape(shape)


def _header(path: Path, name: str, file) -> tuple:
    version = np.lib.format.read_magic(file)
    if version not in HEADERS:
        raise InputError(f"{path}: {name} is a .npy of version {version}; this program reads 1.0 and 2.0")
    shape, fortran, dtype = HEADERS[version](file)
    if dtype.hasobject or dtype.kind not in "fiu" or dtype.itemsize > 8 or not dtype.isnative:
        told = "real numbers of at most 8 bytes, in this machine's byte order"
        raise InputError(f"{path}: {name} is of {dtype}; it must be of {told}")
    return shape, fortran, dtype


def check_room(path: Path, name: str, needed: int) -> None:
    free = available_memory()
    if needed > free:
        raise UnavailableError(
            f"{path}: {name} takes {format_bytes(needed)} of memory, and {format_bytes(free)} are free here"
        )


def read_sides(path: Path, n: int) -> np.ndarray:
    """The right-hand sides (n,) or (n, m) of a .npy or a .mtx file, all finite."""
    array = _market_sides(path, n) if is_market(path) else _array_sides(path, n)
    wrong = ~np.isfinite(array) if array.dtype.kind == "f" else np.zeros(1, bool)
    if wrong.any():
        place = [int(k) for k in np.argwhere(wrong)[0]]
        raise InputError(f"{path}: element {place} is {array[tuple(place)]}; it must be finite")
    return array


def _market_sides(path: Path, n: int) -> np.ndarray:
    matrix = read_market(path)
    if matrix.shape[0] != n:
        raise InputError(f"{path}: is {matrix.shape}; the matrix has {n} rows, so it must be ({n}, m)")
    check_room(path, "the right-hand side", int(np.prod(matrix.shape, dtype=object)) * 8)
    return matrix if isinstance(matrix, np.ndarray) else matrix.toarray()


def _array_sides(path: Path, n: int) -> np.ndarray:
    try:
        with open(path, "rb") as file:
            shape, fortran, dtype = _header(path, "the right-hand side", file)
            if len(shape) not in (1, 2) or shape[0] != n:
                raise InputError(f"{path}: is {shape}; the matrix has {n} rows, so it must be ({n},) or ({n}, m)")
            needed = int(np.prod(shape, dtype=object)) * dtype.itemsize
            check_room(path, "the right-hand side", needed)
            data = file.read(needed)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    except (ValueError, EOFError) as error:
        raise InputError(f"{path}: not a .npy file: {error}") from error
    if len(data) < needed:
        raise InputError(f"{path}: ends after {len(data)} of {needed} bytes")
    array = np.frombuffer(data, dtype)
    return array.reshape(shape[::-1]).T if fortran else array.reshape(shape)


def write_array(path: Path, array: np.ndarray) -> None:
    """Writes a .npy file whole or not at all."""
    from renderer.formats.images import atomic_write  # the one place that knows how files are replaced

    if path.suffix.lower() != ".npy":
        raise UserError(f"--output {path}: must end in .npy")
    with atomic_write(path) as temporary, open(temporary, "wb") as file:
        np.save(file, array, allow_pickle=False)
