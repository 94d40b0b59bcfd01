"""State of the window and what user actions change in it: panels, layout, session, undo, files."""
