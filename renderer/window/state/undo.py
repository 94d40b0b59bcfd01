"""Undo and redo over immutable states."""

from typing import Generic, TypeVar

MAX_STATES = 500

State = TypeVar("State")


class UndoStack(Generic[State]):
    """Recorded states, the newest last, and those undone."""

    def __init__(self, state: State):
        self._past, self._future = [state], list[State]()

    def differs(self, state: State) -> bool:
        """Whether the state is not the one recorded last."""
        return state != self._past[-1]

    def push(self, state: State) -> None:
        """Records a state; nothing can be redone after it. One that equals the last takes its place."""
        if self.differs(state):
            self._past = (self._past + [state])[-MAX_STATES:]
            self._future = []
        else:
            self._past[-1] = state

    def undo(self, state: State) -> State | None:
        """The state before `state`, the current one, which may not be recorded; None if there is none."""
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
