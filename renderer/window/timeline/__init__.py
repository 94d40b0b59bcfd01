"""The timeline of key frames."""
