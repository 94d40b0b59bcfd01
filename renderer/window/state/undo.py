"""Undo and redo: the states that were noted, and those that were taken undo."""

MAX_STATES = 500  # states


class UndoStack:
    """States of which the newest is the one at hand; what a state is, the caller knows."""

    def __init__(self, state):
        self._past, self._future = [state], []

    def differs(self, state) -> bool:
        """Whether the state is not noted yet."""
        return state != self._past[-1]

    def push(self, state) -> None:
        self._past = (self._past + [state])[-MAX_STATES:]
        self._future = []

    def undo(self, state):
        """The state before `state`, which is at hand and may not be noted yet; None where there is none."""
        if self.differs(state):
            self._past.append(state)
        if len(self._past) < 2:
            return None
        self._future.append(self._past.pop())
        return self._past[-1]

    def redo(self):
        """The state that was taken undo last; None where there is none."""
        if not self._future:
            return None
        self._past.append(self._future.pop())
        return self._past[-1]
