"""A registry of the files that model files refer to: pictures, buffers, material libraries.

Readers of models fill it; the window's file watcher reads it, so that an edited texture reloads the model that uses it.
"""

from collections.abc import Iterable
from pathlib import Path

MAX_REMEMBERED = 1024  # model files; the oldest are forgotten
_linked: dict[Path, frozenset[Path]] = {}


def remember_links(path: Path, files: Iterable[Path]) -> None:
    """Records the `files` that the model file `path` refers to, missing ones included; replaces an earlier record."""
    _linked.pop(path, None)
    _linked[path] = frozenset(files)
    while len(_linked) > MAX_REMEMBERED:
        del _linked[next(iter(_linked))]


def linked_files(path: Path) -> frozenset[Path]:
    """Returns the recorded files of a model file; empty if it was never read. Touches no file."""
    return _linked.get(path, frozenset())
