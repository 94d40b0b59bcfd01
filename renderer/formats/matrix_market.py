"""Reads untrusted Matrix Market files, .mtx and .mtx.gz, the format of public matrix collections, for `solve`.

The file is read in chunks, so that memory is allocated for numbers that the file holds and not for those its header
claims. The bytes of each chunk are checked before NumPy parses them. Format: R. F. Boisvert, R. Pozo and
K. A. Remington, The Matrix Market Exchange Formats (1996), https://math.nist.gov/MatrixMarket
"""

import gzip
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import IO, NoReturn, cast

import numpy as np
from scipy.io import mmread

from renderer.errors import InputError, reading
from renderer.formats.archive import check_growth
from renderer.formats.npy import in_double
from renderer.plain import parse_whole, printable
from renderer.system.files import file_size, open_input

MAX_LINE = 1 << 10  # bytes of a line of numbers; comments before the numbers may be longer
MAX_COMMENTS = 1 << 24  # bytes of comments before the numbers
MAX_SIDE = 1 << 50  # rows, columns or entries
CHUNK = 1 << 22  # bytes parsed at a time
INTEGER_BYTES = b"0123456789+- \t\r\n"
NUMBER_BYTES = INTEGER_BYTES + b".eE"
# Kinds of bytes in the lines of numbers, and which kind may follow which.
SPACE, DIGIT, SIGN, POINT, EXPONENT = range(5)
KINDS = bytes.maketrans(
    b" \t\r\n0123456789+-.eE", bytes([SPACE] * 4 + [DIGIT] * 10 + [SIGN] * 2 + [POINT] + [EXPONENT] * 2)
)
USUAL_PAIRS = {
    (SPACE, SPACE), (SPACE, DIGIT), (SPACE, SIGN), (SIGN, DIGIT), (DIGIT, DIGIT), (DIGIT, SPACE), (DIGIT, POINT),
    (DIGIT, EXPONENT), (POINT, DIGIT), (POINT, SPACE), (POINT, EXPONENT), (EXPONENT, DIGIT), (EXPONENT, SIGN),
}  # fmt: skip
USUAL = np.array([divmod(pair, 8) in USUAL_PAIRS for pair in range(64)])
FIELDS = ("real", "double", "complex", "integer", "unsigned-integer", "pattern")
SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")


@dataclass(frozen=True)
class Entries:
    """A sparse matrix of `shape` in coordinate form: row, column and value of each entry; duplicates add up."""

    shape: tuple[int, int]
    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray


@dataclass(frozen=True)
class _Header:
    path: Path
    is_array: bool
    field: str
    symmetry: str
    shape: tuple[int, int]
    lines: int  # of numbers

    @property
    def numbers(self) -> int:
        """Number of words on each line of numbers."""
        places = 0 if self.is_array else 2
        return places + {"pattern": 0, "complex": 2}.get(self.field, 1)


def read_matrix_market(path: Path) -> np.ndarray | Entries:
    """Reads a dense array (rows, columns), or the entries of a sparse matrix, float64 or complex128.

    Raises InputError for other files.
    """
    with open_input(path) as packed:
        file = cast(IO[bytes], gzip.GzipFile(fileobj=packed)) if path.suffix.lower() == ".gz" else packed
        try:
            with reading(path):
                header = _read_header(path, file)
                chunks = list(_chunks(path, file, file_size(packed)))
        except (EOFError, zlib.error) as error:  # gzip.BadGzipFile is an OSError
            raise InputError(f"{path}: the compressed file is damaged: {error}") from error
    matrix = _read_by_scipy(header, b"".join(chunks))
    if matrix is not None:
        return matrix
    table = _read_lines(header, chunks)
    return _dense(header, _values(header, table)) if header.is_array else _entries(header, table)


def _read_by_scipy(header: _Header, text: bytes) -> np.ndarray | Entries | None:
    """Reads the lines of numbers by SciPy, five times as fast as this module; None if that fails or may be inexact.

    SciPy allocates what the header claims and skips what follows the last wanted word of a line, so lines and words are
    counted first. Lines that are wrong, or that no integer of 8 bytes holds, are left to this module.
    """
    is_integer = "integer" in header.field
    is_text = np.frombuffer(text, "u1") > 32
    words = np.count_nonzero(is_text[1:] > is_text[:-1]) + int(is_text[:1].any())
    if (
        words != header.lines * header.numbers
        or not words
        or text.translate(None, INTEGER_BYTES if is_integer else NUMBER_BYTES)
    ):
        return None
    if not _has_usual_numbers(text):
        return None
    layout, sizes = ("array", []) if header.is_array else ("coordinate", [header.lines])
    banner = f"%%MatrixMarket matrix {layout} {header.field} {header.symmetry}\n"
    shape = " ".join(map(str, [*header.shape, *sizes]))
    try:
        matrix = mmread(io.BytesIO(f"{banner}{shape}\n".encode() + text))
    except (ValueError, OverflowError):
        return None
    values = in_double(matrix if header.is_array else matrix.data, str(header.path))
    if not np.isfinite(values).all():
        return None
    return (
        values if header.is_array else Entries(header.shape, matrix.row.astype("i8"), matrix.col.astype("i8"), values)
    )


def _read_header(path: Path, file: IO[bytes]) -> _Header:
    line = file.readline(MAX_LINE)
    banner = line.decode("latin-1").lower().split()
    if len(banner) != 5 or banner[:2] != ["%%matrixmarket", "matrix"]:
        raise InputError(f"{path}: not a Matrix Market file: its first line is {_shown(line)}")
    layout, field, symmetry = banner[2:]
    if layout not in ("coordinate", "array") or symmetry not in SYMMETRIES or (layout, field) == ("array", "pattern"):
        raise InputError(f"{path}: not a Matrix Market file: {_shown(line)} names no known layout")
    if field not in FIELDS:
        raise InputError(f"{path}: holds {printable(field, 60)} numbers; allowed are {', '.join(FIELDS)}")
    wanted = 2 if layout == "array" else 3
    sizes = [parse_whole(word, 0, MAX_SIDE) for word in _first_line(path, file).decode("latin-1").split()]
    if len(sizes) != wanted or None in sizes:
        raise InputError(f"{path}: not a Matrix Market file: the line of its size must hold {wanted} whole numbers")
    rows, columns, *more = cast(list[int], sizes)
    if symmetry != "general" and rows != columns:
        raise InputError(f"{path}: a {symmetry} matrix of {rows} x {columns}; it must be square")
    lines = more[0] if more else rows * columns
    if layout == "array" and symmetry != "general":
        lines = rows * (rows + (-1 if symmetry == "skew-symmetric" else 1)) // 2
    return _Header(path, layout == "array", field, symmetry, (rows, columns), lines)


def _first_line(path: Path, file: IO[bytes]) -> bytes:
    """Returns the first line that is neither empty nor a comment."""
    left, in_comment = MAX_COMMENTS, False
    while line := file.readline(MAX_LINE):
        left -= len(line)
        if left < 0:
            raise InputError(f"{path}: more than {MAX_COMMENTS >> 20} MiB of comments")
        in_comment, was_in_comment = (in_comment or line[:1] == b"%") and line[-1:] != b"\n", in_comment
        if line.strip() and not (in_comment or was_in_comment or line[:1] == b"%"):
            return line
    raise InputError(f"{path}: not a Matrix Market file: it ends before its size")


def _has_usual_numbers(text: bytes) -> bool:
    """True if every word is [sign] digits [. digits] [e [sign] digits]: of others SciPy reads what their start says."""
    kinds = np.frombuffer(b"\0" + text.translate(KINDS) + b"\0", "u1")
    is_usual = USUAL[8 * kinds[:-1] + kinds[1:]].all()
    marks = kinds[(kinds == SPACE) | (kinds == POINT) | (kinds == EXPONENT)]
    repeated = (marks[:-1] == marks[1:]) & (marks[1:] != SPACE) | (marks[:-1] == EXPONENT) & (marks[1:] == POINT)
    return bool(is_usual) and not repeated.any()


def _read_lines(header: _Header, chunks: list[bytes]) -> np.ndarray:
    """Reads the lines of numbers as an array (numbers a line, lines)."""
    parts, lines = [np.zeros((0, header.numbers))], 0
    for chunk in chunks:
        parts.append(_parse(header, chunk, lines))
        lines += len(parts[-1])
        if lines > header.lines:
            break
    if lines != header.lines:
        more = "more" if lines > header.lines else f"{lines} lines of numbers"
        raise InputError(
            f"{header.path}: not a Matrix Market file: says {header.lines} lines of numbers and holds {more}"
        )
    return np.concatenate(parts).T


def _chunks(path: Path, file: IO[bytes], packed: int) -> Iterator[bytes]:
    """Yields the rest of the file in chunks of complete lines."""
    rest, total = b"", 0
    while data := file.read(CHUNK):
        total += len(data)
        check_growth(str(path), packed, total)
        data, newline, tail = (rest + data).rpartition(b"\n")
        if len(tail) > MAX_LINE:
            raise InputError(f"{path}: a line of more than {MAX_LINE} characters")
        if newline:
            yield data + newline
        rest = tail
    if rest:
        yield rest + b"\n"


def _parse(header: _Header, chunk: bytes, before: int) -> np.ndarray:
    """Parses a chunk of complete lines to an array (lines, numbers a line); `before` counts the lines above it."""
    if chunk.translate(None, NUMBER_BYTES):
        _refuse(header, chunk, before)
    characters = np.frombuffer(chunk, "u1")
    is_text = characters > 32
    starts = is_text & ~np.concatenate([[False], is_text[:-1]])
    counts = np.diff(np.cumsum(starts)[characters == 10], prepend=0)  # words of each line
    counts = counts[counts > 0]
    words = chunk.split()
    try:
        numbers = np.fromiter(map(float, words), "f8", len(words))
    except ValueError:
        _refuse(header, chunk, before)
    if (counts != header.numbers).any() or not np.isfinite(numbers).all():
        _refuse(header, chunk, before)
    table = numbers.reshape(-1, header.numbers)
    if "integer" in header.field:
        for k in np.flatnonzero(np.abs(table[:, -1]) > 1 << 53):
            word = words[(k + 1) * header.numbers - 1]
            if Fraction(word.decode("latin-1")) != Fraction(numbers[(k + 1) * header.numbers - 1]):
                where = f"{header.path}: holds the integer {_shown(word)}"
                raise InputError(f"{where}, which float64 does not hold exactly (it holds all up to 2^53)")
    if not header.is_array:
        indices = table[:, :2]
        wrong = (indices < 1) | (indices > header.shape) | (indices != np.floor(indices))
        if wrong.any():
            index = indices[np.flatnonzero(wrong.any(1))[0]]
            shape = " x ".join(map(str, header.shape))
            entry = f"an entry at ({index[0]:g}, {index[1]:g}) of a matrix of {shape}"
            raise InputError(f"{header.path}: not a Matrix Market file: {entry}")
    return table


def _refuse(header: _Header, chunk: bytes, before: int) -> NoReturn:
    """Raises InputError that quotes the first malformed line of the chunk."""
    for line in filter(bytes.strip, chunk.split(b"\n")):
        words = line.split()
        try:
            good = not line.translate(None, NUMBER_BYTES) and len(words) == header.numbers
            good = good and bool(np.isfinite([float(word) for word in words]).all())
        except ValueError:
            good = False
        if not good:
            break
        before += 1
    wanted = f"{header.numbers} finite numbers" if header.numbers > 1 else "one finite number"
    found = f"line {before + 1} of its numbers is {_shown(line)}; it must be {wanted}"
    raise InputError(f"{header.path}: not a Matrix Market file: {found}")


def _shown(line: bytes) -> str:
    return repr(printable(line.decode("latin-1").strip(), 60))


def _values(header: _Header, table: np.ndarray) -> np.ndarray:
    """Extracts the values of the lines, without row and column indices."""
    if header.field == "pattern":
        return np.ones(table.shape[1])
    return table[-2] + 1j * table[-1] if header.field == "complex" else table[-1]


def _mirrored(header: _Header, values: np.ndarray) -> np.ndarray:
    """Computes the elements mirrored at the diagonal, by the header's symmetry."""
    if header.symmetry == "skew-symmetric":
        return -values
    return values.conj() if header.symmetry == "hermitian" else values


def _entries(header: _Header, table: np.ndarray) -> Entries:
    """Builds all entries of the matrix; a symmetric file stores one triangle, and the other is added."""
    rows, columns = table[0].astype("i8") - 1, table[1].astype("i8") - 1
    values = _values(header, table)
    if header.symmetry != "general":
        off = np.flatnonzero(rows != columns)
        rows, columns = np.concatenate([rows, columns[off]]), np.concatenate([columns, rows[off]])
        values = np.concatenate([values, _mirrored(header, values[off])])
    return Entries(header.shape, rows, columns, values)


def _dense(header: _Header, numbers: np.ndarray) -> np.ndarray:
    """Builds the dense array from numbers in column-major order; a symmetric file stores the lower triangle."""
    rows, columns = header.shape
    if header.symmetry == "general":
        return numbers.reshape(columns, rows).T
    out = np.zeros((rows, rows), numbers.dtype)
    i, j = np.triu_indices(rows, 1 if header.symmetry == "skew-symmetric" else 0)
    out[i, j] = _mirrored(header, numbers)
    out[j, i] = numbers
    return out
