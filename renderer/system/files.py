"""Reads input files safely: regular files of a bounded size, as bytes, text, TOML or JSON; InputError for others.

A path given by a user may name a pipe that nobody writes, a device that never ends, a folder, or a file larger than
memory; it may contain characters that no file system accepts. All readers of the program open their files here.
"""

import io
import json
import os
import re
import stat
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from renderer.errors import InputError, reading
from renderer.plain import Json
from renderer.system import drafts

MAX_TEXT_BYTES = 2 << 20  # size of a scene file; the largest of the project has 10 KiB
MAX_LINES_BYTES = 256 << 20  # size of a file of records or of a manifest
MAX_KEY_NAMES = 32  # names of a dotted key; tomllib's time grows with the square of their number
FLOAT_DIGITS = 15  # float64 holds every decimal number of so many digits
# Tokens of a line of TOML: a name of a dotted key, bare or in quotes, a dot, or any other character.
_TOKEN = re.compile(r"""(?P<name>"(?:[^"\\]|\\.)*+"?|'[^']*+'?|[\w \t-]++)|(?P<dot>\.)|(?P<other>.)""")
KINDS = ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))


def open_input(path: Path | str, max_bytes: int | None = None) -> io.BufferedReader:
    """Opens a regular file for reading bytes; InputError for other kinds of files and above `max_bytes`."""
    try:
        with reading(path):
            _check_regular(path, os.stat(path))  # first, because opening a device can change its state
            flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
            file = os.fdopen(os.open(path, flags), "rb")
    except ValueError as error:  # a name with NUL or with an unpaired surrogate
        raise InputError(f"{path}: no file can have this name") from error
    try:
        state = os.fstat(file.fileno())
        _check_regular(path, state)
        # An empty file may have been written to meanwhile: file_size() asks again.
        if not state.st_size and _gives_bytes(path, file) and not file_size(file):
            raise InputError(f"{path}: is made by the system as it is read; a file on a disk is wanted")
        if max_bytes is not None and state.st_size > max_bytes:
            raise InputError(f"{path}: larger than the {max_bytes >> 20} MiB that such a file may have")
    except BaseException:
        file.close()
        raise
    return file


def resolve(path: Path | str) -> Path:
    """Returns the absolute path with links followed; a loop of links stays, where Path.resolve() raises RuntimeError.

    Raises ValueError for a name that no file can have.
    """
    return Path(os.path.realpath(path))


def check_is_text(path: Path) -> None:
    """InputError for a path that is not UTF-8: no window can show it."""
    try:
        os.fspath(path).encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{path}: the name is not UTF-8, so that no window can show it; rename the file") from error


def _check_regular(path: Path | str, state: os.stat_result) -> None:
    if not stat.S_ISREG(state.st_mode):
        raise InputError(f"{path}: is {file_kind(state)}; a file is wanted")


def file_kind(state: os.stat_result) -> str:
    """The kind of a path that is no regular file, for messages: a folder, a pipe, a socket or a device."""
    return next((name for test, name in KINDS if test(state.st_mode)), "a device")


def _gives_bytes(path: Path | str, file: io.BufferedReader) -> bool:
    """Returns True for a regular file that is not as empty as it says: files of /proc, for example, some endless."""
    with reading(path):
        found = file.raw.read(1) != b""  # None: one would have to wait for it
        file.seek(0)
        return found


def file_size(file: IO[bytes]) -> int:
    """Returns the size of an open file in bytes."""
    return os.fstat(file.fileno()).st_size


def file_stamp(path: Path | str) -> tuple[int, int] | None:
    """Returns a file's modification time in ns and its size in bytes, to detect changes; None without a file."""
    with suppress(OSError):
        state = os.stat(path)
        return state.st_mtime_ns, state.st_size
    return None


def read_file(path: Path | str, max_bytes: int = MAX_TEXT_BYTES) -> bytes:
    """Returns the content of an input file; InputError if it cannot be read or exceeds `max_bytes`.

    A text that is edited and not saved yet stands for its file; see renderer.system.drafts.
    """
    if (draft := drafts.text_of(path)) is not None:
        return draft.encode()
    with open_input(path, max_bytes) as file, reading(path):
        size = min(file_size(file), max_bytes)
        data = file.read(size + 1)  # read(max_bytes) would allocate max_bytes, which may be a GiB
        if len(data) > size:  # the file has grown
            data += file.read(max_bytes + 1 - len(data))
    if len(data) > max_bytes:  # the file has grown
        raise InputError(f"{path}: larger than the {max_bytes >> 20} MiB that such a file may have")
    return data


def read_text(path: Path | str, max_bytes: int = MAX_TEXT_BYTES) -> str:
    """Returns the UTF-8 text of an input file, without a byte order mark; InputError for other encodings."""
    try:
        return read_file(path, max_bytes).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start})") from error


class WrittenFloat(float):
    """A float of a TOML text, and the text itself, which has more digits or a smaller exponent than float64."""

    text: str


def _parse_float(text: str) -> float:
    number = float(text)
    if len(text) > FLOAT_DIGITS or number == 0:
        number = WrittenFloat(number)
        number.text = text
    return number


def parse_toml(text: str) -> Json:
    """Parses a TOML text; ValueError with the reason if it is invalid or too large for the parser.

    A float that float64 may have rounded is a WrittenFloat.
    """
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") >= MAX_KEY_NAMES and _longest_key(line) > MAX_KEY_NAMES:
            raise ValueError(f"a key of more than {MAX_KEY_NAMES} names in line {number}")
    try:
        return tomllib.loads(text, parse_float=_parse_float)
    except tomllib.TOMLDecodeError:
        raise
    except (ValueError, RecursionError) as error:
        raise ValueError(_too_much(error)) from error


def _longest_key(line: str) -> int:
    """Returns the number of names in the longest dotted key of a line."""
    longest, names, before = 1, 1, ""
    for token in _TOKEN.finditer(line):
        kind = str(token.lastgroup)
        if kind != "name":
            names = names + 1 if kind == "dot" and before == "name" else 1
            longest = max(longest, names)
        before = kind
    return longest


def read_toml(path: Path | str) -> Json:
    """Parses a TOML file; InputError with the line of the mistake."""
    try:
        return parse_toml(read_text(path))
    except ValueError as error:
        raise InputError(f"{path}: not a TOML file: {error}") from error


def parse_json(text: str | bytes) -> Any:
    """Parses a JSON text; ValueError with the reason if it is invalid, too large for the parser, or not Unicode."""
    try:
        text = text if isinstance(text, str) else text.decode(json.detect_encoding(text))
        value = json.loads(text)
        if "\\ud" in text.lower():  # an escape of half a surrogate pair, which no window and no file can show
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except json.JSONDecodeError:
        raise
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError is a ValueError
        raise ValueError(_too_much(error)) from error


def read_json_lines(path: Path | str) -> list[Json]:
    """Returns the JSON objects of a file with one on each line; skips other lines, which killed runs may leave."""
    rows = []
    for line in read_text(path, MAX_LINES_BYTES).split("\n"):
        with suppress(ValueError):
            rows.append(parse_json(line))
    return [row for row in rows if isinstance(row, dict)]


def _too_much(error: ValueError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if isinstance(error, UnicodeEncodeError):
        return "a text has half of a surrogate pair, which is no Unicode character"
    return "an integer of more than 4300 digits" if "integer string conversion" in str(error) else str(error)
