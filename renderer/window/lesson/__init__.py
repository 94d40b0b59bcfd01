"""A lesson in the window: its text beside the panels, what its steps measure, and the command that opens it."""
