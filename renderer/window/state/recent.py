"""The scene files that were opened or saved last, the newest first, in a file beside the session file.

The menu "File" lists them.
"""

import json
from contextlib import suppress
from pathlib import Path

from renderer.errors import UserError
from renderer.system.files import parse_json, read_text, resolve
from renderer.system.outputs import atomic_write

MAX_FILES = 12
MAX_BYTES = 1 << 18


class RecentFiles:
    """The list of recent files; `path` is the file that holds it, None keeps it in memory."""

    def __init__(self, path: Path | None):
        self._path = path
        self.files: list[Path] = []
        if path is not None and path.is_file():
            with suppress(UserError, ValueError):  # a damaged list is an empty one
                saved = parse_json(read_text(path, MAX_BYTES))
                names = saved if isinstance(saved, list) else []
                shown = [
                    name for name in names if isinstance(name, str) and 0 < len(name) < 4096 and name.isprintable()
                ]
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
                with atomic_write(self._path) as temporary:
                    temporary.write_text(json.dumps([str(file) for file in self.files]), encoding="utf-8")
