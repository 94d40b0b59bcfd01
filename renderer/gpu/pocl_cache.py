"""PoCL's cache of compiled kernels, in a folder of ours that is checked.

PoCL maps what it finds there into memory; a truncated file would be a SIGBUS in every later run.
Files are recorded with their sizes and checksums when a process ends well. The next process that finds itself alone
removes the entries that have changed, and those that were not recorded: their writer was killed.
"""

import atexit
import hashlib
import json
import os
import shutil
from contextlib import suppress
from pathlib import Path

from renderer.gpu.cache import cache_folder, write_atomically

try:
    import fcntl
except ImportError:  # no POSIX: PoCL is not among the drivers there
    fcntl = None  # type: ignore[assignment]  # checked before use

VERSION = 1
MAX_PROGRAMS = 1000  # the most that are kept; 0.1 MB each
CHECKED = (".so", ".bc", ".o")  # what is read back; beside them lie locks and times of use


class PoclCache:
    """The folder, as this process uses it."""

    def __init__(self) -> None:
        self.folder = cache_folder() / f"pocl-{VERSION}"
        self._record = self.folder / "files.json"
        self._lock: int | None = None

    def open(self) -> None:
        """Makes the folder PoCL's in this process and its children, checked where no other process is using it."""
        if fcntl is None or os.environ.get("POCL_CACHE_DIR"):
            return  # the user's own choice
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.folder / "users.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return
        with suppress(OSError):  # another process uses it
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.check()
        with suppress(OSError):
            fcntl.flock(self._lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        os.environ["POCL_CACHE_DIR"] = str(self.folder)
        atexit.register(self.record)

    def discard(self) -> bool:
        """Removes all entries; whether the folder is ours to empty."""
        if self._lock is None:
            return False
        for path in self.folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
        self._record.unlink(missing_ok=True)
        return True

    def check(self) -> None:
        """Removes entries with files that differ from the record, or that are in none."""
        recorded = self._read_record()
        found = self._files()
        damaged = {name for name, size in found.items() if recorded.get(name, [None])[0] != size}
        if damaged:  # some process was killed: look at the contents of the others too
            damaged |= {name for name in found.keys() - damaged if recorded[name][1] != self._checksum(name)}
        unused = sorted(self.folder.glob("??/*/last_accessed"), key=lambda path: path.stat().st_mtime)[:-MAX_PROGRAMS]
        for program in {self.folder.joinpath(*Path(name).parts[:2]) for name in damaged} | {
            path.parent for path in unused
        }:
            shutil.rmtree(program, ignore_errors=True)
        for leftover in self.folder.glob("tempfile_*"):
            leftover.unlink(missing_ok=True)

    def record(self) -> None:
        """Adds the files that are new to the record."""
        recorded, found = self._read_record(), self._files()
        new = {name: [size, self._checksum(name)] for name, size in found.items() if name not in recorded}
        kept = {name: row for name, row in recorded.items() if name in found}
        if new or len(kept) < len(recorded):
            write_atomically(self._record, json.dumps(kept | new).encode())

    def _read_record(self) -> dict[str, list]:
        try:
            record = json.loads(self._record.read_text(encoding="utf-8"))
            return {name: row for name, row in record.items() if isinstance(row, list) and len(row) == 2}
        except (OSError, ValueError, AttributeError):
            return {}

    def _files(self) -> dict[str, int]:
        """Sizes of the files that PoCL reads back, by their path in the folder."""
        sizes = {}
        for folder, _, names in os.walk(self.folder):
            for name in names:
                if name.endswith(CHECKED) and not name.startswith("tempfile"):
                    path = Path(folder, name)
                    with suppress(OSError):
                        sizes[str(path.relative_to(self.folder))] = path.stat().st_size
        return sizes

    def _checksum(self, name: str) -> str:
        try:
            with open(self.folder / name, "rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            return ""
