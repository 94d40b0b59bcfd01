"""The window in a browser."""
