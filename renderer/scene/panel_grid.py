"""Rectangles of panels in a grid, for the pictures `layout` and `lightfield` and for the window."""

import math


def grid(count: int, size: tuple[int, int], columns: int = 0, gap: int = 0) -> list[tuple[int, int, int, int]]:
    """Divides `size` (width, height) into `count` panels (x, y, width, height), in pixels, `gap` pixels apart.

    0 columns chooses the grid whose panels are nearest to 16:9. The panels of the last row share the full width. Every
    rectangle has at least one pixel.
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
    """Returns the start of item k of `count`; items, each followed by a gap, divide `length` + `gap` evenly."""
    return (length + gap) * k // count
