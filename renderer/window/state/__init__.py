"""The state of a window and the user's actions on it: panels, layout, session, undo, files."""

from renderer.window.state.app_state import AppState as AppState
