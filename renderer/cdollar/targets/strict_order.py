"""The order of operations of float sums and products under `--strict`: a tree of blocks of 64, alike on every target.

Elements are numbered in row-major order of the reduced variables. A block of the first level combines 64 neighboring
elements from left to right, starting from the neutral element; a block of the next level combines the values of 64
blocks in the same way, up to one block at the top. The result therefore has the same bits however the work is divided
among threads, if each thread takes complete blocks: fixed_chunk() says how many elements. The NumPy target reduces with
BlockTree; the text of kernels follows the same order (accumulator.py).
"""

import numpy as np

from renderer.cdollar.ir.dag import Node, Reduction
from renderer.cdollar.ir.types import FLOATS

BLOCK = 64
MAX_PARTIALS = 16384  # partial results of one output at most


def adds_in_blocks(reduction: Reduction, type_: str | tuple[str, ...], strict: bool) -> bool:
    """True if a reduction of type `type_` takes the order of this module: float sums and products, if `strict`."""
    return strict and reduction.name in ("+", "*") and type_ in FLOATS


def fixed_chunk(node: Node, elements: int, strict: bool) -> int | None:
    """The number of neighboring elements that one thread combines in a "reduce" node, where the order is fixed.

    A float sum or product in blocks gets chunks of complete blocks. One thread combines all `elements` of a fold, and
    under `strict` of any user function. None for other reductions: the target may divide them as it likes.
    """
    reduction = node.attribute[0]
    if adds_in_blocks(reduction, node.type, strict):
        return chunk_size(elements)
    return elements if reduction.ordered or strict and reduction.function is not None else None


def level_count(length: int) -> int:
    """The number of levels of blocks over `length` elements, at least one."""
    levels, size = 1, BLOCK
    while size < length:
        levels, size = levels + 1, size * BLOCK
    return levels


def chunk_size(length: int) -> int:
    """The elements that a thread reduces: the least power of BLOCK that gives at most MAX_PARTIALS partial results."""
    chunk = BLOCK
    while -(-length // chunk) > MAX_PARTIALS:
        chunk *= BLOCK
    return chunk


class BlockTree:
    """Reduces arrays along their first axis in the order of this module; push() takes their rows in batches."""

    def __init__(self, combine: np.ufunc, neutral: float, dtype: type, length: int) -> None:
        """Start from `neutral`: `combine` adds or multiplies, `length` is the number of rows that push() will get."""
        self.combine, self.neutral, self.dtype = combine, dtype(neutral), dtype
        self.levels: list[np.ndarray] = [np.asarray(self.neutral)] * level_count(length)
        self.counts = [0] * len(self.levels)  # elements in the open block of each level

    def push(self, rows: np.ndarray, level: int = 0) -> None:
        """Combine the next rows (m, ...) into a level: elements in level 0, values of blocks in the levels above.

        A block that becomes full is pushed to the level above; the last level has one block without a limit.
        """
        rows, is_last = np.asarray(rows, self.dtype), level == len(self.levels) - 1
        while len(rows):
            if self.counts[level] == 0 and len(rows) >= BLOCK and not is_last:
                taken = len(rows) // BLOCK * BLOCK
                self.push(self.reduce_blocks(rows[:taken]), level + 1)
            else:
                taken = len(rows) if is_last else min(len(rows), BLOCK - self.counts[level])
                for row in rows[:taken]:
                    self.levels[level] = self.combine(self.levels[level], row)
                self.counts[level] += taken
                if self.counts[level] == BLOCK and not is_last:
                    self.push(self.levels[level][None], level + 1)
                    self.levels[level], self.counts[level] = np.asarray(self.neutral), 0
            rows = rows[taken:]

    def reduce_blocks(self, rows: np.ndarray) -> np.ndarray:
        """Reduce rows (m * BLOCK, ...) to the values (m, ...) of their blocks."""
        blocks = rows.reshape((-1, BLOCK, *rows.shape[1:]))
        values = np.full(blocks[:, 0].shape, self.neutral)
        for row in range(BLOCK):
            values = self.combine(values, blocks[:, row])
        return values

    def value(self) -> np.ndarray:
        """Return the reduction of all rows: combine the open blocks, from the lowest level up."""
        total = self.levels[0]
        for level in self.levels[1:]:
            total = self.combine(level, total)
        return total
