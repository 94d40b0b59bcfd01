"""File dialogs: the system's dialog, where the system has one, and a dialog drawn with Dear ImGui.

The system's dialog (imgui-bundle's portable_file_dialogs) is a process beside the window: macOS and Windows have one,
on Linux a program of PROGRAMS shows it. A browser, a terminal over ssh and a bare machine have none: there, and after
the system's dialog gave a file that is refused, the window draws its own.

imgui-bundle 1.93 has ImFileDialog too, which cannot take its place: outside of HelloImGui its open() ends in an
assertion, as the binding does not pass on the function that makes textures of its icons; and it is one object a
process, where `serve` draws up to 32 windows.
"""

import os
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from renderer.errors import UserError
from renderer.plain import printable
from renderer.window.controls import theme
from renderer.window.controls.toolkit import file_dialogs, imgui, imgui_ctx

PROGRAMS = ("zenity", "matedialog", "qarma", "kdialog")
MAX_ENTRIES = 5000  # listed of a folder
MAX_ROWS = 14  # visible rows of the list


def has_system_dialog() -> bool:
    """True if the system has a file dialog."""
    if sys.platform in ("darwin", "win32"):
        return True
    has_display = bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    return has_display and any(map(shutil.which, PROGRAMS))


class SystemDialog:
    """An open dialog of the system: asks for a file to open, or with `saves` for one to write."""

    def __init__(self, title: str, start: Path, suffixes: tuple[str, ...], saves: bool):
        kinds = [", ".join(suffixes), " ".join(f"*{suffix}" for suffix in suffixes), "all files", "*"]
        ask = file_dialogs.save_file if saves else file_dialogs.open_file
        self._process = ask(title, str(start), kinds)

    def is_done(self) -> bool:
        """True once the user has answered or closed the dialog."""
        return bool(self._process.ready(0))

    def path(self) -> Path | None:
        """The chosen file; None if the dialog was closed without a choice."""
        answer = self._process.result()
        name = answer if isinstance(answer, str) else answer[0] if answer else ""
        return Path(name) if name else None

    def close(self) -> None:
        """Closes the dialog without a choice."""
        self._process.kill()


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
        self.note: Callable[[Path], str] = lambda path: ""  # what a file holds that saving would replace, a sentence
        self.append: Callable[[Path], None] | None = None  # adds to a file that has a note
        self.name = start.name if saves else ""
        self.message = ""  # why the last choice was refused
        self.is_open = True
        self._replaces: Path | None = None  # a file that exists, which the next accept() replaces
        self._shows_all = False
        self.system: SystemDialog | None = None  # while it is open
        self._listed: tuple[Path, bool, int] | None = None  # the folder, _shows_all and the time of _entries
        self._entries: list[Entry] = []
        self.folder = _existing(start if not saves and start.is_dir() else start.parent)

    # State

    def ask_system(self) -> None:
        """Opens the system's dialog; draw() takes its answer."""
        start = self.folder / self.name if self.saves else self.folder
        try:
            self.system = SystemDialog(self.title, start, self.suffixes, self.saves)
        except (OSError, RuntimeError) as error:
            self.message = f"the system's file dialog does not open: {error}"

    def _take_answer(self, dialog: SystemDialog) -> None:
        """Takes the answer of the system's dialog, which has asked whether to replace a file."""
        chosen, self.system = dialog.path(), None
        if chosen is None:
            self.cancel()
        else:
            self.enter(chosen.parent)
            self.name, self._replaces = str(chosen), chosen if self.saves and not self.note(chosen) else None
            self.accept()

    def entries(self) -> list[Entry]:
        """The folders, then the files with the suffixes, each sorted by name."""
        try:
            key = self.folder, self._shows_all, self.folder.stat().st_mtime_ns
            if key != self._listed:
                self._listed, self._entries = key, self._read()
        except OSError as error:
            self.message, self._entries = f"{self.folder}: {error.strerror}", []
        return self._entries

    def _read(self) -> list[Entry]:
        with os.scandir(self.folder) as listed:
            entries = [Entry(e.name, e.is_dir()) for e in listed if not e.name.startswith(".")]
        wanted = [e for e in entries if e.is_folder or self._shows_all or e.name.lower().endswith(self.suffixes)]
        return sorted(wanted, key=lambda e: (not e.is_folder, e.name.lower()))[:MAX_ENTRIES]

    def enter(self, folder: Path) -> None:
        """Opens a folder, or the nearest folder above it that exists."""
        self.folder, self.message, self._replaces = _existing(folder), "", None

    def _pick(self, entry: Entry) -> None:
        """Opens a folder, or takes over the name of a file."""
        if entry.is_folder:
            self.enter(self.folder / entry.name)
        else:
            self.name, self.message, self._replaces = printable(entry.name), "", None

    def accept(self, appends: bool = False) -> None:
        """Takes the named file and closes the dialog; opens a named folder; shows why a name is refused."""
        self.message = ""
        try:
            if not self.name.strip():
                raise UserError("the name is empty")
            path = self.folder / os.path.expanduser(self.name.strip())
            if path.is_dir():
                self.name = ""
                self.enter(path)
            else:
                self._take(path, self.append if appends and self.append else self._choose)
        except (UserError, ValueError, OSError, RuntimeError) as error:  # ValueError: a name that no file can have
            self.message = str(error)

    def _take(self, path: Path, choose: Callable[[Path], None]) -> None:
        """Chooses a file; UserError if it is missing, of another kind, or would be replaced without a second press."""
        if self.saves:
            path = path if path.suffix.lower() in self.suffixes else path.with_name(path.name + self.suffixes[0])
            if path.exists() and self._replaces != path:
                self._replaces = path
                raise UserError(self.note(path) or f"{path.name} exists; save again to replace it")
        elif not path.exists():
            raise UserError(f"there is no {path}")
        elif path.suffix.lower() not in self.suffixes:
            raise UserError(f"{path.name} is not of the kinds that are wanted here: {', '.join(self.suffixes)}")
        choose(path)
        self.is_open = False

    def cancel(self) -> None:
        """Closes the dialog without a choice."""
        if self.system is not None:
            self.system.close()
            self.system = None
        self.is_open = False

    # Drawing

    def draw(self, width: float, height: float, scale: float) -> None:
        """Draws over a window of width x height units, unless the system's dialog is open."""
        if self.system is not None and self.system.is_done():
            self._take_answer(self.system)
        if self.system is not None or not self.is_open:
            return
        size = min(width * 0.94, 680 * scale), min(height * 0.9, (MAX_ROWS * 24 + 170) * scale)
        imgui.set_next_window_pos((width / 2, height / 2), imgui.Cond_.always, (0.5, 0.5))
        imgui.set_next_window_size(size)
        flags = imgui.WindowFlags_.no_saved_settings | imgui.WindowFlags_.no_collapse | imgui.WindowFlags_.no_resize
        if not imgui.is_popup_open("###file dialog"):
            imgui.open_popup("###file dialog")
        visible, is_open = imgui.begin_popup_modal(f"{self.title}###file dialog", True, flags)
        if visible:
            self._folder_row(scale)
            self._list(scale)
            self._name_row(scale)
            if not self.is_open or imgui.is_key_pressed(imgui.Key.escape):
                self.is_open = False
                imgui.close_current_popup()
            imgui.end_popup()
        if not is_open:
            self.cancel()

    def _folder_row(self, scale: float) -> None:
        """Buttons to other folders, and the path of this one."""
        for label, folder in (("Up", self.folder.parent), ("Home", Path("~")), ("Here", Path())):
            if imgui.button(label):
                self.enter(folder.expanduser())
            imgui.same_line(0, 4 * scale)
        theme.hint("the folder that the program was started in")  # of the last button, Here
        text, room = printable(str(self.folder)), imgui.get_content_region_avail().x
        while len(text) > 8 and imgui.calc_text_size(text).x > room:
            text = "..." + text[5:]
        imgui.align_text_to_frame_padding()
        imgui.text_disabled(text)

    def _list(self, scale: float) -> None:
        """The folders and files of the folder."""
        below = 3 * imgui.get_frame_height_with_spacing() + 4 * scale
        with imgui_ctx.begin_child("entries", (0, max(imgui.get_content_region_avail().y - below, 40 * scale))):
            entries = self.entries()
            clipper = imgui.ListClipper()
            clipper.begin(len(entries))
            while clipper.step():
                for entry in entries[clipper.display_start : clipper.display_end]:
                    name = printable(entry.name)  # Dear ImGui takes only UTF-8
                    label = f"{name}/" if entry.is_folder else name
                    flags = imgui.SelectableFlags_.allow_double_click
                    if imgui.selectable(f"{label}##{name}", name == self.name, flags)[0]:
                        self._pick(entry)
                        if imgui.is_mouse_double_clicked(0) and not entry.is_folder:
                            self.accept()
            clipper.end()
            if not entries:
                imgui.text_disabled(f"no folder and no {', '.join(self.suffixes)} here")

    def _name_row(self, scale: float) -> None:
        """The input of the file's name, with the buttons; above it the kinds of files, or an error."""
        self._shows_all = imgui.checkbox("all files", self._shows_all)[1]
        imgui.same_line(0, 12 * scale)
        with imgui_ctx.push_text_wrap_pos(0.0):
            if self.message:
                imgui.text_colored(theme.WARNING, self.message)
            else:
                imgui.text_disabled(", ".join(suffix[1:] for suffix in self.suffixes))  # a line may end behind a dot
        accept = "Save" if self.saves else "Open"
        # The message is then the note of the file, which offers to append.
        appends = self.append is not None and self._replaces is not None and "Append" in self.message
        buttons = imgui.calc_text_size(accept + "Cancel" + "Append" * appends).x + (60 + 26 * appends) * scale
        imgui.set_next_item_width(-buttons)
        if imgui.is_window_appearing():
            imgui.set_keyboard_focus_here()
        entered, self.name = imgui.input_text("##name", self.name, imgui.InputTextFlags_.enter_returns_true)
        appended: list[tuple[str, Callable[[], None]]] = [("Append", partial(self.accept, True))] * appends
        for name, run in ((accept, self.accept), *appended, ("Cancel", self.cancel)):
            imgui.same_line(0, theme.UNIT * scale)
            if imgui.button(name) or entered and name == accept:
                run()


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    folder = folder.absolute()
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    return folder
