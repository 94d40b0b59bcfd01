"""The state of a window and the user's actions on it: panels, layout, session, undo, files."""
