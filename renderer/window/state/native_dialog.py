"""The system's own file dialog, where there is one: imgui-bundle's portable_file_dialogs, which runs beside the window.

macOS and Windows have one; on Linux a program shows it (PROGRAMS). A browser and a terminal over ssh have none: there
the window draws its own.
"""

import os
import shutil
import sys
from pathlib import Path

from renderer.window.controls.toolkit import file_dialogs

PROGRAMS = ("zenity", "matedialog", "qarma", "kdialog")


def is_available() -> bool:
    """Whether the system has a file dialog."""
    if sys.platform in ("darwin", "win32"):
        return True
    has_display = bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    return has_display and any(map(shutil.which, PROGRAMS))


class NativeDialog:
    """A dialog of the system that is open: asks for a file to open, or with `saves` for one to write."""

    def __init__(self, title: str, start: Path, suffixes: tuple[str, ...], saves: bool):
        kinds = [", ".join(suffixes), " ".join(f"*{suffix}" for suffix in suffixes), "all files", "*"]
        ask = file_dialogs.save_file if saves else file_dialogs.open_file
        self._asked = ask(title, str(start), kinds)

    def is_done(self) -> bool:
        """Whether it was answered or closed."""
        return bool(self._asked.ready(0))

    def path(self) -> Path | None:
        """The file that was chosen; None for none."""
        found = self._asked.result()
        name = found if isinstance(found, str) else found[0] if found else ""
        return Path(name) if name else None

    def close(self) -> None:
        """Closes it without an answer."""
        self._asked.kill()
