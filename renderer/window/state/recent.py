"""The scene files that were opened or saved last, the newest first, in a file beside the session file.

The menu "File" lists them.
"""

import json
from contextlib import suppress
from pathlib import Path

from renderer.errors import UserError
from renderer.system.files import parse_json, read_text, resolve
from renderer.system.outputs import write_text

MAX_FILES = 12
MAX_BYTES = 1 << 18
MAX_NAME = 4096  # characters of a path


class RecentFiles:
    """The list of recent files; `path` is the file that holds it, None keeps it in memory."""

    def __init__(self, path: Path | None):
        self._path = path
        self.files: list[Path] = []
        if path is not None and path.is_file():
            with suppress(UserError, ValueError):  # a damaged list is an empty one
                saved = parse_json(read_text(path, MAX_BYTES))
                names = saved if isinstance(saved, list) else []
                texts = [name for name in names if isinstance(name, str)]
                shown = [text for text in texts if 0 < len(text) < MAX_NAME and text.isprintable()]
                self.files = list(dict.fromkeys(map(Path, shown)))[:MAX_FILES]

    def add(self, path: Path) -> None:
        """Puts a file at the front of the list."""
        path = resolve(path)
        if self.files[:1] == [path]:
            return
        self.files = [path, *(other for other in self.files if other != path)][:MAX_FILES]
        if self._path is not None:
            with suppress(UserError, OSError):  # a list that cannot be kept is no reason to stop work
                self._path.parent.mkdir(parents=True, exist_ok=True)
                write_text(self._path, json.dumps([str(file) for file in self.files]))
