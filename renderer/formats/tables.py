"""Reads and writes tables of numbers as comma-separated text (RFC 4180 without quotes), for C$ and `sum`.

A first line without any number holds the columns' names.
"""

from pathlib import Path

import numpy as np

from renderer.errors import InputError
from renderer.plain import format_value, parse_float
from renderer.system.files import read_text

MAX_TABLE_BYTES = 256 << 20
MAX_COLUMNS = 100_000


def read_table(path: Path, shown: str = "") -> tuple[tuple[str, ...], np.ndarray]:
    """Reads a table: the columns' names, () if the file has none, and the numbers (rows, columns) int64 or float64.

    Raises InputError that names the line of the first cell that is not a number; messages show the file as `shown`.
    """
    shown = shown or str(path)
    lines = [line for line in enumerate(read_text(path, MAX_TABLE_BYTES).splitlines(), 1) if line[1].strip()]
    if not lines:
        raise InputError(f"{shown}: holds no numbers")
    first = _cells(lines[0][1])
    names: tuple[str, ...] = ()
    if len(first) > MAX_COLUMNS:
        raise InputError(f"{shown}: has {len(first)} columns, more than {MAX_COLUMNS}")
    if all(parse_float(cell) is None for cell in first):
        names, lines = tuple(first), lines[1:]
    if not lines:
        raise InputError(f"{shown}: holds names, but no numbers")
    rows = [_row(text, number, len(first), shown) for number, text in lines]
    is_integer = not any(set(text) & set(".eEnNiI") for _, text in lines)  # no point, exponent, nan or inf
    table = np.array(rows, "f8")
    if is_integer and np.abs(table).max() < 2**53:
        return names, table.astype("i8")
    return names, table


def _cells(line: str) -> list[str]:
    """Splits a line into its cells, stripped of white space."""
    return [cell.strip() for cell in line.split(",")]


def _row(line: str, number: int, count: int, shown: str) -> list[float]:
    """Parses one line of `count` cells; `number` is the line's number in messages."""
    cells = _cells(line)
    if len(cells) != count:
        raise InputError(f"{shown}:{number}: has {len(cells)} cells, but the first line has {count}")
    try:
        return [float(cell) for cell in cells]
    except ValueError:
        wrong = next(cell for cell in cells if parse_float(cell) is None)
        raise InputError(f"{shown}:{number}: {format_value(wrong)} is not a number") from None


def table_text(array: np.ndarray) -> str:
    """Formats an array of up to 2 dimensions, or records under a line of field names; text reads back bit for bit."""
    names = array.dtype.names or ()
    rows = np.atleast_1d(array) if names else np.asarray(array).reshape(len(array) if array.ndim else 1, -1)
    lines = [",".join(names)] if names else []
    for row in rows:
        cells = [row[name] for name in names] if names else row
        lines.append(",".join(_text(cell) for cell in cells))
    return "\n".join(lines) + "\n"


def _text(cell: np.generic) -> str:
    """Formats one number with the fewest digits that read back to the same bits."""
    if isinstance(cell, np.floating):
        return np.format_float_scientific(cell, unique=True, trim="-") if np.isfinite(cell) else str(cell)
    return str(int(cell))
