"""The one order of `--strict` sums and products of floats: a tree of blocks of 64 neighbors, added from left to right.

Elements are counted in row-major order of the reduced variables. A block starts from the neutral element; the values of
64 blocks are the elements of a block of the next level, up to one last block. A thread that owns whole blocks needs no
other thread, so that every division of the work among threads gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from renderer.cdollar.ir.dag import Reduction
from renderer.cdollar.ir.types import FLOATS

BLOCK = 64
MAX_PARTIALS = 16384  # partial results that one thread combines


def depends_on_order(reduction: Reduction, type_: str | tuple[str, ...]) -> bool:
    """Whether the bits of a reduction depend on the order of its elements: sums and products of floats."""
    return reduction.name in ("+", "*") and type_ in FLOATS


def level_count(length: int) -> int:
    """The levels of blocks above so many elements, at least one."""
    levels, size = 1, BLOCK
    while size < length:
        levels, size = levels + 1, size * BLOCK
    return levels


def chunk_size(length: int) -> int:
    """The elements, a whole block of some level, of a thread: at most MAX_PARTIALS threads, at least one."""
    chunk = BLOCK
    while -(-length // chunk) > MAX_PARTIALS:
        chunk *= BLOCK
    return chunk


class BlockTree:
    """Reduces rows of arrays, given one after another, along their first axis in the order of this module."""

    def __init__(self, combine: Callable, neutral: float, dtype: type, length: int) -> None:
        """`combine` is a ufunc, `length` the number of rows that will be given."""
        self.combine, self.neutral, self.dtype = combine, dtype(neutral), dtype
        self.levels: list[np.ndarray] = [np.asarray(self.neutral)] * level_count(length)
        self.counts = [0] * len(self.levels)  # elements of the block of each level that is not full

    def push(self, rows: np.ndarray, level: int = 0) -> None:
        """Add the next rows (m, ...) of a level."""
        rows, is_last = np.asarray(rows, self.dtype), level == len(self.levels) - 1
        while len(rows):
            if self.counts[level] == 0 and len(rows) >= BLOCK and not is_last:
                whole = len(rows) // BLOCK * BLOCK
                self.push(self.reduce_blocks(rows[:whole]), level + 1)
            else:
                whole = len(rows) if is_last else min(len(rows), BLOCK - self.counts[level])
                for row in rows[:whole]:
                    self.levels[level] = self.combine(self.levels[level], row)
                self.counts[level] += whole
                if self.counts[level] == BLOCK and not is_last:
                    self.push(self.levels[level][None], level + 1)
                    self.levels[level], self.counts[level] = np.asarray(self.neutral), 0
            rows = rows[whole:]

    def reduce_blocks(self, rows: np.ndarray) -> np.ndarray:
        """The value of each block of rows (m * BLOCK, ...)."""
        blocks = rows.reshape((-1, BLOCK, *rows.shape[1:]))
        values = np.full(blocks[:, 0].shape, self.neutral)
        for row in range(BLOCK):
            values = self.combine(values, blocks[:, row])
        return values

    def value(self) -> np.ndarray:
        """The value of all rows: the blocks that are not full end, from the lowest level."""
        total = self.levels[0]
        for level in self.levels[1:]:
            total = self.combine(level, total)
        return total
