"""Record files: JSON objects, one a line, appended so that a killed run loses at most the line that it was writing."""

import json
from pathlib import Path

from renderer.errors import UserError

SCHEMA = "bench/1"


class RecordFile:
    """Appends rows to the file of the option -o; with path None it keeps nothing."""

    def __init__(self, path: Path | None):
        self._path = path
        if path is None:
            return
        try:
            with open(path, "ab+") as file:
                if file.tell() and file.seek(-1, 2) is not None and file.read(1) != b"\n":
                    file.write(b"\n")  # ends a last line that a killed run left incomplete
        except OSError as error:
            raise UserError(f"-o {path}: cannot be written: {error.strerror}") from error

    def add(self, row: dict) -> None:
        """Appends a row."""
        if self._path:
            with open(self._path, "a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")


def are_positive_integers(values: object) -> bool:
    """Whether a value read from a file is a list of integers above 0, as times in ns are."""
    return isinstance(values, list) and all(type(value) is int and value > 0 for value in values)
