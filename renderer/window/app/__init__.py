"""The application: state, session, undo, files, shortcuts, the main window."""
