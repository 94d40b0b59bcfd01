"""Rectangles of panels in a grid, for layouts of pictures and of the window."""

import math


def grid(count: int, size: tuple[int, int], columns: int = 0, gap: int = 0) -> list[tuple[int, int, int, int]]:
    """Rectangles (x, y, width, height) of `count` panels in rows within `size`; 0 columns takes the squarest grid.

    The last row's panels share its whole width. Every rectangle has at least one pixel.
    """
    columns = columns or max(1, math.ceil(math.sqrt(count * max(size[0], 1) / max(size[1], 1) / 1.78)))
    columns = min(columns, count)
    rows = -(-count // columns)
    out = []
    for row in range(rows):
        in_row = min(columns, count - row * columns)
        top, bottom = (_split_offset(size[1], rows, k, gap) for k in (row, row + 1))
        for column in range(in_row):
            left, right = (_split_offset(size[0], in_row, k, gap) for k in (column, column + 1))
            out.append((left, top, max(1, right - gap - left), max(1, bottom - gap - top)))
    return out


def _split_offset(length: int, count: int, k: int, gap: int) -> int:
    """Where item k of `count` begins when `length` and one more gap are divided evenly."""
    return (length + gap) * k // count
