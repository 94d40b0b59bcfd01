"""The callbacks of settings controls to the window: names to choose from, key frames, file dialogs, refusals.

state/edit_actions.py makes a ControlContext for a panel; controls/settings.py calls it.
"""

from collections.abc import Callable, Collection
from dataclasses import Field, dataclass


def _nothing(*_: object) -> None:
    return None


def _no_names(*_: object) -> list[str]:
    return []


@dataclass(frozen=True)
class ControlContext:
    """The answers of one panel; a path names a setting as in --set. The defaults suit settings of no scene."""

    refuse: Callable[[str], None] = _nothing  # shows why a value is not taken
    names: Callable[[str], list[str]] = _no_names  # names of the items that a field may refer to
    item_label: Callable[[str, int], str | None] = _nothing  # label of an item, by the path of its list and its index
    browse: Callable[[str, Field, str], None] | None = None  # asks for the file of a setting, by path, field and value
    rename: Callable[[str, str], None] | None = None  # renames an item, by its path and the new name
    add_key: Callable[[str], None] | None = None
    remove_track: Callable[[str], None] | None = None
    tracks: Collection[str] = ()  # the paths that have key frames
    hidden: Collection[str] = ()  # paths of settings that another editor shows


PLAIN = ControlContext()
