"""The factorization of a small band matrix part by part, to be looked at: HostFactors itself, watched.

A step of the algorithm has three parts: the panel, the look-ahead update of the next block column, and the update of
the others. As in every factorization, panel i + 1 is factored before the update of step i.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from renderer.errors import InputError
from renderer.numerics.band_lu.block_columns import BlockLayout
from renderer.numerics.band_lu.multicore import HostFactors

MAX_ORDER = 256
LINE_BLOCK = 64  # columns of a block of the time line


class Bar(NamedTuple):
    """A phase of a step on one core, in seconds from the beginning."""

    core: int
    step: int
    phase: str
    begin: float
    end: float


@dataclass(frozen=True)
class Part:
    """The state when a part of a step is done: "panel", "look-ahead" or "update".

    `matrix` (n, n) holds what is stored, U on and above the diagonal of finished columns and L below; NaN outside of
    the stored band and where block columns are not packed yet. `factored` columns are finished; `pivots` (factored,)
    are the rows interchanged with theirs.
    """

    name: str
    step: int
    matrix: np.ndarray
    factored: int
    pivots: np.ndarray

    @property
    def largest(self) -> float:
        """The largest |a_ij| of U and of what is not factored yet."""
        rows, columns = np.indices(self.matrix.shape)
        is_upper = (rows <= columns) | (columns >= self.factored)
        return float(np.nanmax(np.abs(np.where(is_upper, self.matrix, np.nan))))


class SteppedFactors:
    """The parts of the factorization of ab (kl + ku + 1, n), LAPACK's layout, in blocks of `block` columns."""

    def __init__(self, ab: np.ndarray, kl: int, ku: int, block: int):
        n = ab.shape[1]
        if n > MAX_ORDER:
            raise InputError(f"n is {n}; at most {MAX_ORDER} can be stepped")
        self.layout = BlockLayout(n, kl, ku, block)
        factors = HostFactors(self.layout, np.float64, threads=1)
        self.parts: list[Part] = []
        self._factored = 0
        factors.watch = lambda name, step: self._note(factors, name, step)
        factors.factor(np.asarray(ab, "f8"), 0.0)
        self.info, self.pivots = factors.info, factors.pivots()

    def _note(self, factors: HostFactors, name: str, step: int) -> None:
        layout = self.layout
        if name == "panel":
            self._factored = min((step + 1) * layout.s, layout.n)
        pivots = factors.pivots()[: self._factored]
        self.parts.append(Part(name, step, stored_matrix(layout, factors.flat, factors.packed), self._factored, pivots))


def stored_matrix(layout: BlockLayout, flat: np.ndarray, packed: int) -> np.ndarray:
    """The matrix (n, n) that the first `packed` block columns store, NaN where they store nothing."""
    matrix = np.full((layout.n, layout.n), np.nan)
    for column in range(min(packed * layout.s, layout.n)):
        top = column // layout.s * layout.s
        first = max(top - layout.u * layout.s, 0)
        end = min(top + (layout.l + 1) * layout.s, layout.n)
        start = layout.offset(first, column)
        matrix[first:end, column] = flat[start : start + end - first]
    return matrix


def time_line(layout: BlockLayout, cores: int, seed: int = 0) -> list[Bar]:
    """When each core works on what, in a factorization by that many cores.

    Of random numbers with the layout's block structure in blocks of LINE_BLOCK columns, where updates take longer than
    handing them over: with small blocks one core does all.
    """
    scale = max(LINE_BLOCK // layout.s, 1)
    n, kl, ku, block = (scale * size for size in (layout.n, layout.kl, layout.ku, layout.s))
    ab = np.random.default_rng(seed).normal(size=(kl + ku + 1, n))
    factors = HostFactors(BlockLayout(n, kl, ku, block), np.float64, threads=cores)
    for _ in range(2):  # threads and caches are warm in the second
        factors.factor(ab, 0.0)
    clock = [entry for entry in factors.clock if entry[1] != ("copy",)]
    began = min(times[0] for _, _, times, _ in clock)
    own = next(thread for _, phases, _, thread in clock if phases == ("panel",))  # of core 0
    threads = [own, *sorted({entry[3] for entry in clock} - {own})]
    return [
        Bar(threads.index(thread), step, phase, begin - began, end - began)
        for step, phases, times, thread in clock
        for phase, begin, end in zip(phases, times, times[1:], strict=False)
    ]
