"""Undo and redo: the recorded states of a window's panels, as frozen values, and the stack of them.

AppState records a state before and after each change.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from renderer.records import dataclass, field, replace
from renderer.window.document.document import Document
from renderer.window.document.items import Item, groups
from renderer.window.panels.panel import Panel
from renderer.window.panels.panel_scene import SceneFile
from renderer.window.state.layout import LayoutNode

MAX_STATES = 500  # recorded steps of undo
State = TypeVar("State")


@dataclass(frozen=True)
class PanelsState:
    """The open panels, their documents and their files.

    Fields with compare=False are kept with a state but make no step of undo. AppState restores `active` and `layout`
    only where undo or redo opens or closes panels; it never restores the selection of a document.
    """

    panels: tuple[Panel, ...]
    documents: tuple[Document, ...]
    files: tuple[SceneFile, ...] = field(compare=False)
    active: int = field(compare=False)
    layout: LayoutNode | None = field(compare=False)


def renamed(state: PanelsState, panel: Panel, path: Path, old_title: str, title: str) -> PanelsState:
    """The state, in which the panel's scene has another path, and another title if its title was `old_title`."""
    documents = list(state.documents)
    for index in (k for k, each in enumerate(state.panels) if each is panel):
        scene = documents[index].scene
        scene = replace(scene, path=path, title=title if scene.title == old_title else scene.title)
        documents[index] = replace(documents[index], scene=scene)
    return replace(state, documents=tuple(documents))


def difference(state: PanelsState, other: PanelsState, is_undo: bool = True) -> str:
    """The names of what two states differ in, panels, files or settings, where `other` is shown in place of `state`."""
    if state.panels != other.panels:
        return f"{len(other.panels)} panels in place of {len(state.panels)}"
    for before, after in zip(state.documents, other.documents, strict=True):
        if before.scene.path != after.scene.path:
            return f"{after.scene.path.name} in place of {before.scene.path.name}"
        one, two = vars(before.scene.settings), vars(after.scene.settings)
        if before != after:
            old, new = (after, before) if is_undo else (before, after)
            names = [_edit(name, old, new) for name in one if one[name] != two.get(name)]
            return ", ".join(names) or "title, tone, key frames or text"
    return "the layout"


def _edit(name: str, old: Document, new: Document) -> str:
    """What an edit did to a setting: the one item that it deleted, added or changed, else the setting's name."""
    if name in groups(old.scene.settings) and type(old.scene.settings) is type(new.scene.settings):
        before, after = (getattr(document.scene.settings, name) for document in (old, new))
        # The first item that differs; behind the shorter list, if all items of this are equal.
        pairs = enumerate(zip(before, after, strict=False))
        first = next((k for k, (a, b) in pairs if a != b), min(len(before), len(after)))
        item = Item(name, first)
        if len(before) == len(after) and before[first + 1 :] == after[first + 1 :]:
            return old.label(item)
        if before[first + 1 :] == after[first:]:
            return f"delete {old.label(item)}"
        if before[first:] == after[first + 1 :]:
            return f"add {new.label(item)}"
    return name.replace("_", " ")


class UndoStack(Generic[State]):
    """A stack of recorded states, the newest last, and a stack of undone states."""

    def __init__(self, state: State):
        self._past, self._future = [state], list[State]()

    @property
    def steps(self) -> int:
        """The number of steps that can be undone."""
        return len(self._past) - 1

    def differs(self, state: State) -> bool:
        """True if the state differs from the last recorded state."""
        return state != self._past[-1]

    def push(self, state: State) -> None:
        """Records a state, after which nothing can be redone. A state that equals the last one replaces it."""
        if self.differs(state):
            self._past = (self._past + [state])[-MAX_STATES:]
            self._future = []
        else:
            self._past[-1] = state

    def rewrite(self, change: Callable[[State], State], state: State) -> None:
        """Replaces the last state by `state` and each other by change(it), for what is no step, such as a new name."""
        self._past = [*map(change, self._past[:-1]), state]
        self._future = [*map(change, self._future)]

    def previous(self, state: State) -> State | None:
        """The state that undo() would return."""
        if self.differs(state):
            return self._past[-1]
        return self._past[-2] if len(self._past) > 1 else None

    def undo(self, state: State) -> State | None:
        """Undoes one step and returns the state before it; None if there is none.

        `state` is the current one; it is recorded first if it was not.
        """
        if self.differs(state):
            self._past.append(state)
        if len(self._past) < 2:
            return None
        self._future.append(self._past.pop())
        return self._past[-1]

    def redo(self) -> State | None:
        """The state that was undone last; None if there is none."""
        if not self._future:
            return None
        self._past.append(self._future.pop())
        return self._past[-1]
