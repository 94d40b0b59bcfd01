"""Verifies PoCL's cache of compiled kernels, kept in a folder of this program.

A program's folder is XX/HASH in the cache. PoCL maps cached files into memory; a truncated file would cause a SIGBUS in
every later run. When a process ends normally, it flushes new files to the disk and records their sizes, times and
checksums. Each process removes entries that differ from the record at its start; if no other process is running, it
also removes unrecorded entries, whose writer was killed or lost power.
"""

import atexit
import hashlib
import json
import os
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from renderer.gpu.cache import cache_folder, write_atomically
from renderer.host import IS_LINUX, SharedLock

VERSION = 2
CLOCK_SECONDS = 2.0  # a file's time may lag time.time() by so much, because file systems round it
MAX_PROGRAMS = 1000  # programs kept; 0.1 MB each
CHECKED = (".so", ".bc", ".o")  # files that PoCL reads back; the others are locks and time stamps
State = tuple[int, int]  # of a file: its bytes, and its modification time in nanoseconds


class PoclCache:
    """The cache folder of this process."""

    def __init__(self) -> None:
        self.folder = cache_folder() / f"pocl-{VERSION}"
        self._record = self.folder / "files.json"
        self._lock: SharedLock | None = None
        self._opened = 0.0  # time of open(), in seconds

    def open(self) -> None:
        """Directs PoCL in this process and its children to the folder, and checks its entries."""
        if not IS_LINUX or os.environ.get("POCL_CACHE_DIR"):
            return  # PoCL is hardly used off Linux; or the user has chosen another folder
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = SharedLock(self.folder / "users.lock")
        except OSError:
            return
        with suppress(OSError):
            self.check(alone=self._lock.alone)
        self._lock.share()
        self._opened = time.time() - CLOCK_SECONDS
        os.environ["POCL_CACHE_DIR"] = str(self.folder)
        atexit.register(self.record)

    def discard(self) -> bool:
        """Removes all entries; returns False if the folder is not this program's."""
        if self._lock is None:
            return False
        with suppress(OSError):
            for path in self.folder.iterdir():
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
            self._record.unlink()
        return True

    def check(self, alone: bool = True) -> None:
        """Removes entries that differ from the record and, if no other process is running, unrecorded ones."""
        recorded, found = self._read_record(), self._files()
        changed = [name for name, state in found.items() if name in recorded and recorded[name][0] != state]
        damaged = {name for name in changed if recorded[name][1] != self._checksum(name)}
        if alone:
            damaged |= found.keys() - recorded.keys()
        self._remove({Path(*Path(name).parts[:2]) for name in damaged})
        if alone:
            programs = self._programs()
            self._remove({Path(name) for name in sorted(programs, key=programs.__getitem__)[:-MAX_PROGRAMS]})
            for leftover in self.folder.glob("tempfile_*"):
                leftover.unlink(missing_ok=True)

    def _remove(self, programs: set[Path]) -> None:
        for program in programs:
            shutil.rmtree(self.folder / program, ignore_errors=True)

    def record(self) -> None:
        """Adds the files of programs that were used since open() to the record; PoCL notes when it uses a program.

        A row of the record is [bytes, time, checksum] by the file's path in the folder.
        """
        programs = self._programs()
        found = self._files([f"{name}/" for name, used in programs.items() if used >= self._opened])
        recorded = self._read_record() if found else {}
        new = {name: [*state, self._checksum(name)] for name, state in found.items() if name not in recorded}
        if new:
            old = {name: [*state, checksum] for name, (state, checksum) in recorded.items()}
            kept = {name: row for name, row in old.items() if str(Path(*Path(name).parts[:2])) in programs}
            write_atomically(self._record, json.dumps(kept | new).encode())

    def _read_record(self) -> dict[str, tuple[State, str]]:
        """The state and the checksum of each recorded file; {} without a readable record."""
        try:
            rows = json.loads(self._record.read_text(encoding="utf-8")).items()
        except (OSError, ValueError, AttributeError, RecursionError):
            return {}
        return {name: ((row[0], row[1]), row[2]) for name, row in rows if isinstance(row, list) and len(row) == 3}

    def _programs(self) -> dict[str, float]:
        """Lists the times of last use, in seconds, of the programs by path in the folder."""
        times: dict[str, float] = {}
        for group in os.listdir(self.folder):
            with suppress(OSError):
                for name in os.listdir(os.path.join(self.folder, group)) if len(group) == 2 else ():
                    with suppress(OSError):
                        times[f"{group}/{name}"] = os.stat(f"{self.folder}/{group}/{name}/last_accessed").st_mtime
        return times

    def _files(self, folders: Sequence[str] = ("",)) -> dict[str, State]:
        """Lists the states of the files in these folders that PoCL reads back, by path in the cache's folder."""
        states: dict[str, State] = {}
        folders = [*folders]
        while folders:  # strings, not Paths, for speed: every start of the program scans thousands of files
            inner = folders.pop()
            with suppress(OSError), os.scandir(os.path.join(self.folder, inner)) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(f"{inner}{entry.name}/")
                    elif entry.name.endswith(CHECKED) and not entry.name.startswith("tempfile"):
                        status = entry.stat()
                        states[f"{inner}{entry.name}"] = status.st_size, status.st_mtime_ns
        return states

    def _checksum(self, name: str) -> str:
        """Flushes a file to the disk and returns the checksum of its content."""
        try:
            with open(self.folder / name, "rb") as file:
                os.fsync(file.fileno())
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            return ""
