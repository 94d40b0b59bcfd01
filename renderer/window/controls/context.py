"""What controls ask of the window around them: names to choose from, key frames, file dialogs, refusals."""

from collections.abc import Callable, Collection
from dataclasses import Field, dataclass
from typing import Any


def _nothing(*_: Any) -> None:
    return None


def _no_names(*_: Any) -> list[str]:
    return []


@dataclass(frozen=True)
class ControlContext:
    """The answers of one panel; a path names a setting as in --set. The defaults are those of plain settings."""

    refuse: Callable[[str], None] = _nothing  # shows why a value is not taken
    names: Callable[[str], list[str]] = _no_names  # of the items that a field may refer to
    item_label: Callable[[str, int], str | None] = _nothing  # of an item of the list at a path
    browse: Callable[[str, Field, str], None] | None = None  # asks for the file of a setting: path, field, value
    rename: Callable[[str, str], None] | None = None  # of the item at a path
    add_key: Callable[[str], None] | None = None
    remove_track: Callable[[str], None] | None = None
    tracks: Collection[str] = ()  # the paths that have key frames
    hidden: Collection[str] = ()  # settings that have an editor of their own


PLAIN = ControlContext()
