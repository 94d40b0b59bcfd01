"""Reads untrusted Matrix Market files, .mtx and .mtx.gz, the format of public matrix collections, for `solve`.

SciPy parses the numbers. It allocates what the header claims, reads a word such as 1x as 1, and skips what
follows the last word of a line, so bytes, words and their number are checked first. Format: R. F. Boisvert, R. Pozo and
K. A. Remington, The Matrix Market Exchange Formats (1996), https://math.nist.gov/MatrixMarket
"""

import gzip
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import IO, Any, NoReturn, cast

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
CHUNK = 1 << 18  # bytes read and checked at a time, in the cache
INTEGER_BYTES = b"0123456789+- \t\r\n"
NUMBER_BYTES = INTEGER_BYTES + b".eE"
# Kinds of bytes in the lines of numbers, and which kind may follow which.
SPACE, DIGIT, SIGN, POINT, EXPONENT, OTHER = range(6)
_KIND_OF = dict.fromkeys(b" \t\r\n", SPACE) | dict.fromkeys(b"0123456789", DIGIT)
_KIND_OF |= dict.fromkeys(b"+-", SIGN) | dict.fromkeys(b".", POINT) | dict.fromkeys(b"eE", EXPONENT)
KINDS = bytes(_KIND_OF.get(byte, OTHER) for byte in range(256))
USUAL_PAIRS = bytes(
    8 * before + after
    for before, after in (
        (SPACE, SPACE), (SPACE, DIGIT), (SPACE, SIGN), (SPACE, POINT), (SIGN, DIGIT), (SIGN, POINT), (DIGIT, DIGIT),
        (DIGIT, SPACE), (DIGIT, POINT), (DIGIT, EXPONENT), (POINT, DIGIT), (POINT, SPACE), (POINT, EXPONENT),
        (EXPONENT, DIGIT), (EXPONENT, SIGN),
    )
)  # fmt: skip
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
    """The first line and the sizes of a file."""

    path: Path
    is_array: bool  # dense, one value a line in column order; else coordinates and value of an entry a line
    field: str  # one of FIELDS
    symmetry: str  # one of SYMMETRIES; not general: only the lower triangle is stored
    shape: tuple[int, int]
    lines: int  # number of lines with entries

    @property
    def numbers(self) -> int:
        """Number of words on each line of numbers."""
        coordinates = 0 if self.is_array else 2
        return coordinates + {"pattern": 0, "complex": 2}.get(self.field, 1)


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
    return _parse(header, chunks)


def _parse(header: _Header, chunks: list[bytes]) -> np.ndarray | Entries:
    """Parses the lines of numbers; InputError that quotes the first malformed one.

    Integers are read as such if all words are; else, and if one exceeds 8 bytes, as floats, and _check_integers()
    checks that float64 holds them.
    """
    words, is_usual = sum(map(_count_words, chunks)), all(map(_has_usual_words, chunks))
    if words != header.lines * header.numbers or not is_usual:
        _refuse(header, b"".join(chunks))
    if not words:  # SciPy ends the process by a signal at an array of 0 x 0
        kind, none = "c16" if header.field == "complex" else "f8", np.zeros(0, "i8")
        if header.is_array:  # without numbers: of no row or column, or skew-symmetric of 1 x 1
            return np.zeros(header.shape, kind)
        return Entries(header.shape, none, none, np.zeros(0, kind))
    is_integer = "integer" in header.field and not any(text.translate(None, INTEGER_BYTES) for text in chunks)
    try:
        matrix = _read_by_scipy(header, header.field if is_integer or "integer" not in header.field else "real", chunks)
    except OverflowError:  # an integer of more than 8 bytes
        matrix = _read_by_scipy(header, "real", chunks)
        is_integer = False
    except ValueError:
        _refuse(header, b"".join(chunks))
    if "integer" in header.field and not is_integer:
        _check_integers(header, b"".join(chunks))
    values = in_double(matrix if header.is_array else matrix.data, str(header.path))
    if not np.isfinite(values).all():
        _refuse(header, b"".join(chunks))
    if header.is_array:
        return values
    return Entries(header.shape, matrix.row.astype("i8"), matrix.col.astype("i8"), values)


def _read_by_scipy(header: _Header, field: str, chunks: list[bytes]) -> Any:
    """SciPy's array or coo_matrix from the lines of numbers; ValueError, OverflowError."""
    layout, sizes = ("array", []) if header.is_array else ("coordinate", [header.lines])
    shape = " ".join(map(str, [*header.shape, *sizes]))
    text = b"".join([f"%%MatrixMarket matrix {layout} {field} {header.symmetry}\n{shape}\n".encode(), *chunks])
    for space in (b" ", b"\t", b"\r", b"\n") if b"+" in text else ():
        text = text.replace(space + b"+", space)  # SciPy takes no leading plus
    return mmread(io.BytesIO(text))


def _count_words(text: bytes) -> int:
    is_text = np.frombuffer(text, "u1") > 32
    return int(np.count_nonzero(is_text[1:] > is_text[:-1])) + int(is_text[:1].any())


def _has_usual_words(text: bytes) -> bool:
    """True if every word is [sign] digits, with at most one point and then at most one exponent of [sign] digits."""
    kinds = b"\0" + text.translate(KINDS) + b"\0"
    each = np.frombuffer(kinds, "u1")
    if (8 * each[:-1] + each[1:]).tobytes().translate(None, USUAL_PAIRS):
        return False
    marks = kinds.translate(None, bytes([DIGIT, SIGN]))
    return not any(bytes(pair) in marks for pair in ((POINT, POINT), (EXPONENT, POINT), (EXPONENT, EXPONENT)))


def _check_integers(header: _Header, text: bytes) -> None:
    """InputError for a value of an integer matrix that float64 does not hold."""
    for word in text.split()[header.numbers - 1 :: header.numbers]:
        number = float(word)
        if 1 << 53 < abs(number) < np.inf and Fraction(word.decode("latin-1")) != Fraction(number):
            where = f"{header.path}: holds the integer {_shown(word)}"
            raise InputError(f"{where}, which float64 does not hold exactly (it holds all up to 2^53)")


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


def _refuse(header: _Header, text: bytes) -> NoReturn:
    """Raises InputError that quotes the first malformed line of numbers, or counts the lines."""
    refused, count = f"{header.path}: not a Matrix Market file", 0
    for count, line in enumerate(filter(bytes.strip, text.split(b"\n")), 1):
        words = line.split()
        try:
            numbers = [float(word) for word in words]
        except ValueError:
            numbers = []
        if line.translate(None, NUMBER_BYTES) or len(numbers) != header.numbers or not np.isfinite(numbers).all():
            wanted = f"{header.numbers} finite numbers" if header.numbers > 1 else "one finite number"
            raise InputError(f"{refused}: line {count} of its numbers is {_shown(line)}; it must be {wanted}")
        indices = () if header.is_array else tuple(zip(words, numbers, header.shape, strict=False))
        if not all(word.isdigit() and 1 <= number <= size for word, number, size in indices):
            rows, columns = header.shape
            entry = f"an entry at ({numbers[0]:g}, {numbers[1]:g}) of a matrix of {rows} x {columns}"
            raise InputError(f"{refused}: {entry}")
        if count > header.lines:
            raise InputError(f"{refused}: says {header.lines} lines of numbers and holds more")
    raise InputError(f"{refused}: says {header.lines} lines of numbers and holds {count} lines of numbers")


def _shown(line: bytes) -> str:
    return repr(printable(line.decode("latin-1").strip(), 60))
