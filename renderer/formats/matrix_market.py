"""Reads untrusted Matrix Market files, .mtx and .mtx.gz, the format of public matrix collections, for `solve`.

SciPy parses the numbers. It allocates what the header claims, reads a word such as 1x as 1 and the words 1 2.5 as the
value .5 in row 1, column 2, and skips what follows the last word of a line, so every line is checked first. Format: R.
F. Boisvert, R. Pozo and K. A. Remington, The Matrix Market Exchange Formats (1996), https://math.nist.gov/MatrixMarket
"""

import gzip
import zlib
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import IO, NoReturn, cast

import numpy as np
from scipy.io import mmread

from renderer.errors import InputError, reading
from renderer.formats.archive import check_growth
from renderer.plain import parse_whole, printable
from renderer.records import dataclass
from renderer.system.files import file_size, open_input

MAX_LINE = 1 << 10  # bytes of a line of numbers; comments before the numbers may be longer
MAX_COMMENTS = 1 << 24  # bytes of comments before the numbers
MAX_SIDE = 1 << 50  # rows, columns or entries
CHUNK = 1 << 18  # bytes read and checked at a time, in the cache
NUMBER_BYTES = b"0123456789+-.eE \t\r\n"
TO_USUAL = bytes.maketrans(b"\t\r", b" \n")  # a tab is a space, and a carriage return ends its line
LAYOUTS = ("coordinate", "array")
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
    lines_before: int  # number of lines of the file above these

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
    """Parses the lines of numbers; InputError that quotes the first malformed one, or an integer that is rounded.

    Each chunk's lines are counted by the fastest check that passes. The first takes one space between words alone; the
    second, which takes a third longer, any spaces; the last rewrites the chunk.
    """
    given, count, is_single_spaced = list(chunks), 0, True
    for k, text in enumerate(chunks):
        lines = _count_lines(header, text) if is_single_spaced else None
        if lines is None:
            is_single_spaced = False  # nor are, probably, the chunks after this one
            lines = _count_lines(header, text, is_any_space_allowed=True)
        if lines is None:
            chunks[k] = _normalized(text)
            lines = _count_lines(header, chunks[k])
        if lines is None:
            _refuse(header, b"".join(given))
        count += lines
    if count != header.lines:
        _refuse(header, b"".join(given))
    if not header.lines:  # SciPy ends the process by a signal at an array of 0 x 0; also skew-symmetric arrays of 1 x 1
        values = np.zeros(header.shape if header.is_array else 0, "c16" if header.field == "complex" else "f8")
        return values if header.is_array else Entries(header.shape, np.zeros(0, "i8"), np.zeros(0, "i8"), values)
    try:
        matrix = _read_by_scipy(header, chunks)
    except ValueError:
        _refuse(header, b"".join(given))
    values = matrix if isinstance(matrix, np.ndarray) else matrix.values
    if not np.isfinite(values).all():
        _refuse(header, b"".join(given))
    if "integer" in header.field and np.abs(values).max() >= 1 << 53:
        _check_integers(header, b"".join(chunks))
    return matrix


def _read_by_scipy(header: _Header, chunks: list[bytes]) -> np.ndarray | Entries:
    """Parses the checked lines of numbers, integers as float64; ValueError."""
    layout, sizes = ("array", []) if header.is_array else ("coordinate", [header.lines])
    shape = " ".join(map(str, [*header.shape, *sizes]))
    field = "real" if "integer" in header.field else header.field
    banner = f"%%MatrixMarket matrix {layout} {field} {header.symmetry}\n{shape}\n".encode()
    pieces = filter(None, [banner, *chunks])  # SciPy takes pieces of any size, and an empty one for the end
    matrix = mmread(SimpleNamespace(read=lambda size: next(pieces, b"")), spmatrix=False)
    if header.is_array:
        return np.asarray(matrix)
    return Entries(header.shape, matrix.row.astype("i8"), matrix.col.astype("i8"), np.asarray(matrix.data))


def _count_lines(header: _Header, text: bytes, is_any_space_allowed: bool = False) -> int | None:
    """The number of lines; None unless each has as many words as the header says, all of them numbers.

    A word is [-] digits, with at most one point, then at most one exponent: e, [sign], digits. An index is digits. One
    space is between words, and none around lines; if `is_any_space_allowed`, any number of spaces and tabs is, but
    none after the last word.

    Two steps, with no loop over lines. First each byte is compared with the one before it: this finds signs and spaces
    in wrong places. Then digits and signs are deleted. What is left of a line are its marks (points and e) and the
    spaces and newline that end its words: "  .e" and a newline of "1 2 -3.5e-7". Their number and order must be right.
    Whether a word begins as a number is left to SciPy, which refuses others.
    """
    text = b"\n" + text
    codes = np.frombuffer(text, "u1")
    before, code, is_space = codes[:-1], codes[1:], codes <= ord(" ")
    follows_space, follows_letter = is_space[:-1], before > ord("9")  # e; other letters are refused below
    follows_digit = (before >= ord(".")) & ~follows_letter  # or a point
    is_wrong = is_space[1:] & ~follows_digit
    if is_any_space_allowed:
        is_wrong &= ~follows_space
    is_wrong |= (code == ord("+")) & ~follows_letter
    is_wrong |= (code == ord("-")) & ~(follows_letter | follows_space)
    if is_wrong.any():
        return None
    if not is_any_space_allowed:
        rest = text.translate(None, b"0123456789+-")  # with bytes of no number, which `ends` keeps
    elif text.translate(None, NUMBER_BYTES):
        return None
    else:  # of the spaces in a row, the first, which ends a word
        is_kept = is_space[1:] & follows_digit | (code > ord("9")) | (code == ord("."))
        rest = b"\n" + code[is_kept].tobytes().translate(TO_USUAL)
    codes = np.frombuffer(rest, "u1")
    is_mark, is_point = codes > ord(" "), codes == ord(".")
    # Of two marks without a space between them, the first must be a point and the second an e.
    is_second = is_mark[1:] & is_mark[:-1] & ~(is_point[:-1] & ~is_point[1:])
    is_in_column = is_mark[2:] & (codes[:-2] == ord("\n"))  # a line's second word; SciPy refuses marks in the first
    ends, line = rest.translate(None, b".eE")[1:], b" " * (header.numbers - 1) + b"\n"
    count = len(ends) // header.numbers
    is_malformed = is_second.any() or ends != line * count or (not header.is_array and is_in_column.any())
    return None if is_malformed else count


def _normalized(text: bytes) -> bytes:
    """The lines without empty ones, with one space between words, and with no leading plus, which SciPy refuses."""
    # With the pluses gone, +-1 and ++1 would be numbers: a chunk with them keeps all, and is refused.
    pluses = () if b"++" in text or b"+-" in text else ((b" +", b" "), (b"\n+", b"\n"))
    text = b"\n" + text.replace(b"\t", b" ").replace(b"\r", b" ")
    for old, new in ((b"  ", b" "), (b"\n ", b"\n"), (b" \n", b"\n"), (b"\n\n", b"\n"), *pluses):
        while old in text:
            text = text.replace(old, new)
    return text[1:]


def _check_integers(header: _Header, text: bytes) -> None:
    """InputError for a value of an integer matrix that float64 does not hold."""
    for word in text.split()[header.numbers - 1 :: header.numbers]:
        number = float(word)
        if abs(number) >= 1 << 53 and Fraction(word.decode("latin-1")) != Fraction(number):
            where = f"{header.path}: holds the integer {_shown(word)}"
            raise InputError(f"{where}, which float64 does not hold exactly (it holds all up to 2^53)")


def _read_header(path: Path, file: IO[bytes]) -> _Header:
    """Reads the banner and the sizes; raises InputError for what no Matrix Market file has."""
    line = file.readline(MAX_LINE)
    banner = line.decode("latin-1").lower().split()
    if len(banner) != 5 or banner[:2] != ["%%matrixmarket", "matrix"]:
        found = f"{path}: not a Matrix Market file: its first line is {_shown(line)}"
        raise InputError(f"{found}; a usual one is '%%MatrixMarket matrix coordinate real general'")
    layout, field, symmetry = banner[2:]
    fields = FIELDS[:-1] if layout == "array" else FIELDS
    for word, allowed in ((layout, LAYOUTS), (field, fields), (symmetry, SYMMETRIES)):
        if word not in allowed:
            found = f"{path}: not a Matrix Market file: its first line names {printable(word, 60)!r}"
            raise InputError(f"{found}; allowed are {', '.join(allowed)}")
    wanted = 2 if layout == "array" else 3
    size, lines_before = _first_line(path, file)
    sizes = [parse_whole(word, 0, MAX_SIDE) for word in size.decode("latin-1").split()]
    if len(sizes) != wanted or None in sizes:
        raise InputError(f"{path}: not a Matrix Market file: the line of its size must hold {wanted} whole numbers")
    rows, columns, *more = cast(list[int], sizes)
    if symmetry != "general" and rows != columns:
        raise InputError(f"{path}: a {symmetry} matrix of {rows} x {columns}; it must be square")
    lines = more[0] if more else rows * columns
    if layout == "array" and symmetry != "general":
        lines = rows * (rows + (-1 if symmetry == "skew-symmetric" else 1)) // 2
    return _Header(path, layout == "array", field, symmetry, (rows, columns), lines, 1 + lines_before)


def _first_line(path: Path, file: IO[bytes]) -> tuple[bytes, int]:
    """Returns the first line that is neither empty nor a comment, and its number in the rest of the file, from 1."""
    left, in_comment, number = MAX_COMMENTS, False, 0
    while line := file.readline(MAX_LINE):
        left, number = left - len(line), number + line.count(b"\n")
        if left < 0:
            raise InputError(f"{path}: more than {MAX_COMMENTS >> 20} MiB of comments")
        is_comment = in_comment or line[:1] == b"%"
        in_comment = is_comment and line[-1:] != b"\n"  # the comment is longer than MAX_LINE, and goes on
        if line.strip() and not is_comment:
            return line, number
    raise InputError(f"{path}: not a Matrix Market file: it ends before its size")


def _chunks(path: Path, file: IO[bytes], packed: int) -> Iterator[bytes]:
    """Yields the rest of the file in chunks of complete lines."""
    total = 0
    while data := file.read(CHUNK):
        tail = b"" if data[-1:] == b"\n" else file.readline(MAX_LINE + 1)
        if len(tail) > MAX_LINE:
            raise InputError(f"{path}: a line of more than {MAX_LINE} characters")
        total += len(data) + len(tail)
        check_growth(str(path), packed, total)
        text = data + tail
        yield text if text[-1:] == b"\n" else text + b"\n"


def _refuse(header: _Header, text: bytes) -> NoReturn:
    """Raises InputError that quotes the first malformed line of numbers, or counts the lines."""
    refused, count = f"{header.path}: not a Matrix Market file", 0
    for number, line in enumerate(text.split(b"\n"), 1 + header.lines_before):
        words = line.split()
        count += bool(words)
        if not words:
            continue
        try:
            numbers = [float(word) for word in words]
        except ValueError:
            numbers = []
        if line.translate(None, NUMBER_BYTES) or len(numbers) != header.numbers or not np.isfinite(numbers).all():
            wanted = f"{header.numbers} finite numbers" if header.numbers > 1 else "one finite number"
            raise InputError(f"{refused}: line {number} is {_shown(line)}; it must be {wanted}")
        indices = () if header.is_array else tuple(zip(words, numbers, header.shape, strict=False))
        if not all(word.isdigit() and 1 <= number <= size for word, number, size in indices):
            rows, columns = header.shape
            entry = f"line {number} has an entry at ({numbers[0]:g}, {numbers[1]:g}) of a matrix of {rows} x {columns}"
            raise InputError(f"{refused}: {entry}; rows and columns are counted from 1")
        if count > header.lines:
            raise InputError(f"{refused}: says {header.lines} lines of numbers and holds more")
    raise InputError(f"{refused}: says {header.lines} lines of numbers and holds {count} lines of numbers")


def _shown(line: bytes) -> str:
    return repr(printable(line.decode("latin-1").strip(), 60))
