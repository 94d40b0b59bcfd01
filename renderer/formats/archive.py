"""Untrusted folders and zip files behind one interface: sorted file names, and the bytes of a named file.

Light fields are read through Folder and Zip; .npz files through open_zip() and open_member(). Only requested members
are opened, nothing is unpacked to disk, every size is bounded, and a member with a suspicious compression ratio is
refused before it is expanded.
"""

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import IO

from renderer.errors import InputError, reading
from renderer.system.files import open_input, read_file
from renderer.system.trust import check_memory, named_file

MAX_MEMBER_BYTES = 1 << 30  # bytes of one view of a light field
MAX_NAMES = 1 << 16  # names read from one folder or zip
MAX_DIRECTORY_BYTES = 8 << 20  # bytes of a zip's central directory
TRUSTED_GROWTH = 100  # largest ratio of expanded to packed bytes of a member above TRUSTED_SIZE; images hardly grow
TRUSTED_SIZE = 16 << 20  # bytes
# zipfile raises NotImplementedError for unknown features, RuntimeError for encrypted files, and its parser's errors.
ZIP_ERRORS = (
    OSError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, ValueError,
    IndexError, KeyError, struct.error,
)  # fmt: skip


def check_growth(name: str, packed: int, expanded: int) -> None:
    """Raises InputError for a zip bomb: `packed` bytes that would expand to suspiciously many."""
    if expanded > max(TRUSTED_SIZE, TRUSTED_GROWTH * packed):
        raise InputError(f"{name}: a zip bomb: its {packed} bytes would grow to {expanded}")


class _ZipInput(io.BufferedReader):
    """Bounds the one read() by which zipfile loads the central directory: the file itself states that read's size."""

    is_open = False

    def read(self, size: int | None = -1, /) -> bytes:
        """Reads as BufferedReader does; raises BadZipFile for a directory above MAX_DIRECTORY_BYTES."""
        if not self.is_open and size is not None and size > MAX_DIRECTORY_BYTES:
            raise zipfile.BadZipFile(f"its directory has {size} bytes; {MAX_DIRECTORY_BYTES} are allowed")
        return super().read(size)


@contextmanager
def open_zip(path: Path) -> Iterator[zipfile.ZipFile]:
    """Opens the zip file at `path`; raises InputError if it is not a zip, or proves damaged within the block."""
    try:
        with _ZipInput(open_input(path).detach()) as file, zipfile.ZipFile(file) as archive:
            file.is_open = True
            yield archive
    except ZIP_ERRORS as error:
        raise InputError(f"{path}: not a zip file that can be read: {error or type(error).__name__}") from error


@contextmanager
def open_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> Iterator[IO[bytes]]:
    """Opens a member for reading; raises InputError, prefixed by `name`, if it is damaged or a zip bomb."""
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # zipfile expands others without a limit
        raise InputError(f"{name}: is packed by method {info.compress_type}; stored and deflate can be read")
    check_growth(name, info.compress_size, info.file_size)
    try:
        with archive.open(info) as member:
            yield member
    except ZIP_ERRORS as error:
        raise InputError(f"{name}: the zip is damaged: {error or type(error).__name__}") from error


class Folder:
    """The files of one folder, without its subfolders."""

    def __init__(self, path: Path):
        self.path = Path(path)
        with reading(path):
            found = (entry.name for entry in self.path.iterdir() if entry.is_file() and not entry.name.startswith("."))
            self.names = sorted(islice(found, MAX_NAMES))

    def full_name(self, name: str) -> str:
        """The path of a file, for messages."""
        return str(self.path / name)

    def read(self, name: str) -> bytes:
        """The bytes of a file; InputError when it cannot be read or is too large."""
        # Checked, as the member may be a link out of the folder.
        path = named_file(name, self.path, (Path(name).suffix.lower(),), f"{self.path}: a member")
        return read_file(path, MAX_MEMBER_BYTES)


class Zip:
    """The members of a zip by file name; the folders in their paths are dropped."""

    def __init__(self, path: Path):
        self.path = Path(path)
        with open_zip(self.path) as archive:
            infos = archive.infolist()[:MAX_NAMES]
        # macOS adds a folder __MACOSX with a second file for each.
        kept = [info for info in infos if not info.filename.endswith("/") and "__MACOSX" not in info.filename]
        self._infos = {PurePosixPath(info.filename).name: info for info in kept}
        self.names = sorted(name for name in self._infos if name and not name.startswith("."))

    def full_name(self, name: str) -> str:
        """The path of the zip and the name within, for messages."""
        return f"{self.path}: {self._infos[name].filename}"

    def read(self, name: str) -> bytes:
        """The bytes of a member; InputError when it is damaged, too large or a zip bomb."""
        info = self._infos[name]
        if info.file_size > MAX_MEMBER_BYTES:
            raise InputError(f"{self.full_name(name)}: {info.file_size >> 20} MiB are more than a view may have")
        check_memory(info.file_size, self.full_name(name))
        with open_zip(self.path) as archive, open_member(archive, info, self.full_name(name)) as member:
            data = member.read(info.file_size + 1)
        if len(data) != info.file_size:
            sizes = f"{len(data)} bytes, where its directory says {info.file_size}"
            raise InputError(f"{self.full_name(name)}: the zip is damaged: {sizes}")
        return data
