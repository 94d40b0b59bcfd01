"""The state of a file dialog: the folder that is open, its entries, the name, and why a choice is refused.

app/file_browser.py draws it. It needs no program of the system, so that it works in a browser and over ssh too; where
the system has a dialog, that one asks first, and this one goes on with an answer that is refused.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from renderer.errors import UserError
from renderer.window.state.native_dialog import NativeDialog

MAX_ENTRIES = 5000  # of a folder, that are listed


class Entry(NamedTuple):
    """A file or a folder of the list."""

    name: str
    is_folder: bool


class FileDialog:
    """Asks for a file with one of the suffixes; choose(path) takes it, or raises UserError or ValueError."""

    def __init__(
        self, title: str, start: Path, suffixes: tuple[str, ...], choose: Callable[[Path], None], saves: bool = False
    ):
        self.title, self.suffixes, self.saves = title, suffixes, saves
        self._choose = choose
        self.name = start.name if saves else ""
        self.message = ""  # why the last choice was refused
        self.is_open = True
        self.confirms: Path | None = None  # a file that exists, which the next save replaces
        self.shows_all = False
        self.native: NativeDialog | None = None  # the system's dialog, while it asks
        self._listed: tuple | None = None
        self._entries: list[Entry] = []
        self.folder = self._existing(start if not saves and start.is_dir() else start.parent)

    def ask_system(self) -> None:
        """Lets the system's dialog ask; poll() takes its answer."""
        start = self.folder / self.name if self.saves else self.folder
        try:
            self.native = NativeDialog(self.title, start, self.suffixes, self.saves)
        except (OSError, RuntimeError) as error:
            self.message = f"the system's file dialog does not open: {error}"

    def poll(self) -> None:
        """Takes the answer of the system's dialog, once there is one."""
        if self.native is None or not self.native.is_done():
            return
        chosen, self.native = self.native.path(), None
        if chosen is None:
            self.cancel()
        else:  # it has asked whether to replace a file
            self.name, self.confirms = str(chosen), chosen if self.saves else None
            self.folder = self._existing(chosen.parent)
            self.accept()

    @staticmethod
    def _existing(folder: Path) -> Path:
        folder = folder.absolute()
        while not folder.is_dir() and folder != folder.parent:
            folder = folder.parent
        return folder

    def entries(self) -> list[Entry]:
        """The folders and the files of the kinds that are asked for, in this order, by name."""
        key = self.folder, self.shows_all, _stamp(self.folder)
        if key != self._listed:
            self._listed, self._entries = key, self._read()
        return self._entries

    def _read(self) -> list[Entry]:
        try:
            with os.scandir(self.folder) as found:
                entries = [Entry(e.name, e.is_dir()) for e in found if not e.name.startswith(".")]
        except OSError as error:
            self.message = f"{self.folder}: {error.strerror}"
            return []
        wanted = [e for e in entries if e.is_folder or self.shows_all or e.name.lower().endswith(self.suffixes)]
        return sorted(wanted, key=lambda e: (not e.is_folder, e.name.lower()))[:MAX_ENTRIES]

    def enter(self, folder: Path) -> None:
        """Opens a folder."""
        self.folder, self.message, self.confirms = self._existing(folder), "", None

    def up(self) -> None:
        """Opens the folder that holds this one."""
        self.enter(self.folder.parent)

    def pick(self, entry: Entry) -> None:
        """Opens a folder, or takes over the name of a file."""
        if entry.is_folder:
            self.enter(self.folder / entry.name)
        else:
            self.name, self.message, self.confirms = entry.name, "", None

    def accept(self) -> None:
        """Takes the named file and closes the dialog; opens a named folder; says why a name is refused."""
        self.message = ""
        name = self.name.strip()
        if not name:
            self.message = "the name is empty"
            return
        try:
            path = Path(os.path.expanduser(name))
            path = path if path.is_absolute() else self.folder / path
            if path.is_dir():
                self.name = ""
                self.enter(path)
                return
            self._take(path)
        except (UserError, ValueError, OSError, RuntimeError) as error:  # also names that no file can have
            self.message = str(error)

    def _take(self, path: Path) -> None:
        if self.saves:
            path = path if path.suffix.lower() in self.suffixes else path.with_name(path.name + self.suffixes[0])
            if path.exists() and self.confirms != path:
                self.confirms, self.message = path, f"{path.name} exists; save again to replace it"
                return
        elif not path.exists():
            raise UserError(f"there is no {path}")
        elif path.suffix.lower() not in self.suffixes:
            raise UserError(f"{path.name} is not of the kinds that are wanted here: {', '.join(self.suffixes)}")
        self._choose(path)
        self.is_open = False

    def cancel(self) -> None:
        """Closes the dialog without a choice."""
        if self.native is not None:
            self.native.close()
            self.native = None
        self.is_open = False


def _stamp(folder: Path) -> int:
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return 0
