"""The files that model files name: pictures, buffers, material libraries. What shows a model watches them for edits."""

from collections.abc import Iterable
from pathlib import Path

MAX_REMEMBERED = 1024  # model files
_linked: dict[Path, frozenset[Path]] = {}


def remember_links(path: Path, files: Iterable[Path]) -> None:
    """Notes the files that a file named when it was read last, those that were missing too."""
    _linked.pop(path, None)
    _linked[path] = frozenset(files)
    while len(_linked) > MAX_REMEMBERED:
        del _linked[next(iter(_linked))]


def linked_files(path: Path) -> frozenset[Path]:
    """The files that a file named when it was read last; none for one that was not read. Reads nothing."""
    return _linked.get(path, frozenset())
