"""Folders and zip files as one thing: sorted names, and the bytes of a name, never more than a limit.

Archives come from strangers: only the members that are wanted are opened, nothing is unpacked to disk, and a member
whose compression ratio is suspicious is refused before it is expanded.
"""

import zipfile
import zlib
from itertools import islice
from pathlib import Path, PurePosixPath

from renderer.errors import InputError, reading
from renderer.scene.schema import read_file

MAX_MEMBER_BYTES = 1 << 30  # bytes of one file of a field
MAX_NAMES = 1 << 16  # names looked at in one folder or zip
TRUSTED_GROWTH = 100  # times a packed member may grow when it ends up larger than TRUSTED_SIZE; images hardly grow
TRUSTED_SIZE = 16 << 20  # bytes


def check_growth(name: str, packed: int, expanded: int) -> None:
    """InputError for a zip bomb: a member whose size in bytes would grow suspiciously."""
    if expanded > max(TRUSTED_SIZE, TRUSTED_GROWTH * packed):
        raise InputError(f"{name}: a zip bomb: its {packed} bytes would grow to {expanded}")


class Folder:
    """The files of one folder, not of folders inside it."""

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
        return read_file(self.path / name, MAX_MEMBER_BYTES)


class Zip:
    """The files of a zip, by their names without folders."""

    def __init__(self, path: Path):
        self.path = Path(path)
        try:
            with zipfile.ZipFile(self.path) as archive:
                infos = [info for info in archive.infolist()[:MAX_NAMES] if not info.is_dir()]
        except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise InputError(f"{path}: not a zip file that can be read: {error}") from error
        kept = [info for info in infos if "__MACOSX" not in info.filename]
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
        check_growth(self.full_name(name), info.compress_size, info.file_size)
        try:
            with zipfile.ZipFile(self.path) as archive, archive.open(info) as member:
                data = member.read(info.file_size + 1)
        except (OSError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
            raise InputError(f"{self.full_name(name)}: the zip is damaged: {error}") from error
        if len(data) != info.file_size:
            raise InputError(
                f"{self.full_name(name)}: the zip is damaged: {len(data)} bytes, where its directory says "
                f"{info.file_size}"
            )
        return data
