"""Shared services of commands: argument types, input files, signals and streams, profiles, progress bars, `--farm`."""
