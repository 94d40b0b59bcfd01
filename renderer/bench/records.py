"""Record files of `bench`: JSON objects, one a line. Appending, and checks of values that were read from a file.

Rows are appended one by one, so that a killed run loses at most the line that it was writing.
"""

import json
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from pathlib import Path

from renderer.errors import UserError
from renderer.plain import Json, is_finite_number
from renderer.system.outputs import append_line, check_output, claimed

SCHEMA = "bench/1"
MAX_NAME = 200  # characters


class RecordFile:
    """Appends rows to the file of the option -o, which no other process may do meanwhile; with path None it drops them.

    UserError for a file that cannot be written, or that another process writes.
    """

    def __init__(self, path: Path | None):
        self.path = path
        self._claim = ExitStack()  # until this object is deleted
        if path is not None:
            check_output(path, appends=True)
            with suppress(OSError), open(path, "rb") as file:
                if path.is_file() and file.read(1) not in (b"", b"{"):
                    raise UserError(f"-o {path}: holds no records of a bench; name another file")
            self._claim.enter_context(claimed(path))

    def add(self, row: Json) -> None:
        """Appends a row; DiskFullError if there is no room."""
        if self.path is not None:
            append_line(self.path, json.dumps(row))


def case_name(case: str) -> str:
    """The name of a record's case without its subsystem, the first component."""
    return case.partition("/")[2] or case


def latest_records(rows: Iterable[Json]) -> list[Json]:
    """The last record of each case."""
    return list({row["case"]: row for row in rows}.values())


def is_count(value: object, low: int = 0) -> bool:
    """True if a value read from a file is an integer from `low` to 2^63 - 1."""
    return type(value) is int and low <= value < 1 << 63


def are_positive_integers(values: object) -> bool:
    """True if a value read from a file is a list of positive integers, such as times in ns."""
    return isinstance(values, list) and all(is_count(value, 1) for value in values)


def is_rate(value: object) -> bool:
    """True if a value read from a file is between 1e-30 and 1e30, so that products of a few do not overflow."""
    return is_finite_number(value) and 1e-30 < value < 1e30


def is_name(value: object) -> bool:
    """True if a value read from a file is a printable line of at most MAX_NAME characters, for tables and titles."""
    return isinstance(value, str) and value.isprintable() and len(value) <= MAX_NAME
