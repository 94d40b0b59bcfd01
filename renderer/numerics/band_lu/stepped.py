"""Snapshots of a band LU factorization for the picture `band_factors` (pictures/band_lu.py).

SteppedFactors runs multicore.HostFactors on a small matrix and records the matrix after each part of a step: the panel,
the look-ahead update of the next block column, and the update of the remaining columns. Panel i + 1 is factored before
the update of step i. time_line() measures which core works on what, and when.
"""

from typing import NamedTuple

import numpy as np

from renderer.errors import InputError
from renderer.numerics.band_lu.block_columns import BlockLayout
from renderer.numerics.band_lu.multicore import HostFactors
from renderer.records import dataclass

MAX_ORDER = 256
LINE_BLOCK = 64  # block size of the factorization that time_line() measures


class Bar(NamedTuple):
    """A phase of a step on one core; `begin` and `end` are seconds from the start of the factorization."""

    core: int
    step: int
    phase: str
    begin: float
    end: float


@dataclass(frozen=True)
class Part:
    """The state after one part of a step; `name` is "panel", "look-ahead" or "update".

    `matrix` (n, n) holds the stored values, in the first `factored` columns U and below its diagonal L; NaN outside the
    stored band and in block columns that are not packed yet. `pivots` (factored,) are the pivot rows.
    """

    name: str
    step: int
    matrix: np.ndarray
    factored: int
    pivots: np.ndarray

    @property
    def largest(self) -> float:
        """The largest magnitude in U and in the columns that are not factored yet."""
        rows, columns = np.indices(self.matrix.shape)
        is_upper = (rows <= columns) | (columns >= self.factored)
        return float(np.nanmax(np.abs(np.where(is_upper, self.matrix, np.nan))))


class SteppedFactors:
    """The `parts` of the factorization of ab (kl + ku + 1, n), LAPACK's band array, in blocks of `block` columns.

    InputError if n is above MAX_ORDER.
    """

    def __init__(self, ab: np.ndarray, kl: int, ku: int, block: int):
        n = ab.shape[1]
        if n > MAX_ORDER:
            raise InputError(f"n is {n}; at most {MAX_ORDER} can be stepped")
        self.layout = BlockLayout(n, kl, ku, block)
        factors = HostFactors(self.layout, np.float64, threads=1)
        self.parts: list[Part] = []
        self._factored = 0
        factors.watch = lambda name, step: self._note(factors, name, step)
        factors.factor(np.asarray(ab, "f8"), flush_above=0.0)  # subnormal numbers are always flushed to zero
        self.info, self.pivots = factors.info, factors.pivots()

    def _note(self, factors: HostFactors, name: str, step: int) -> None:
        layout = self.layout
        if name == "panel":
            self._factored = min((step + 1) * layout.s, layout.n)
        pivots = factors.pivots()[: self._factored]
        self.parts.append(Part(name, step, stored_matrix(layout, factors.flat, factors.packed), self._factored, pivots))


def stored_matrix(layout: BlockLayout, flat: np.ndarray, packed: int) -> np.ndarray:
    """The first `packed` block columns as a matrix (n, n), NaN outside their storage."""
    matrix = np.full((layout.n, layout.n), np.nan)
    for column in range(min(packed * layout.s, layout.n)):
        top = column // layout.s * layout.s
        first = max(top - layout.u * layout.s, 0)
        end = min(top + (layout.l + 1) * layout.s, layout.n)
        start = layout.offset(first, column)
        matrix[first:end, column] = flat[start : start + end - first]
    return matrix


def time_line(layout: BlockLayout, cores: int, seed: int = 0) -> list[Bar]:
    """The measured phases of a factorization by `cores` cores, to be drawn as a time line.

    The matrix is random and has the block structure of `layout`, enlarged to blocks of LINE_BLOCK columns: with small
    blocks an update takes less time than its dispatch, and core 0 does all the work.
    """
    scale = max(LINE_BLOCK // layout.s, 1)
    n, kl, ku, block = (scale * size for size in (layout.n, layout.kl, layout.ku, layout.s))
    ab = np.random.default_rng(seed).normal(size=(kl + ku + 1, n))
    factors = HostFactors(BlockLayout(n, kl, ku, block), np.float64, threads=cores)
    for _ in range(2):  # the first run warms up threads and caches
        factors.factor(ab, flush_above=0.0)
    # ClockEntry (multicore.py): step, phases, the times between them, thread
    clock = [entry for entry in factors.clock if entry[1] != ("copy",)]
    began = min(times[0] for _, _, times, _ in clock)
    core_0 = next(thread for _, phases, _, thread in clock if phases == ("panel",))
    threads = [core_0, *sorted({entry[3] for entry in clock} - {core_0})]
    return [
        Bar(threads.index(thread), step, phase, begin - began, end - began)
        for step, phases, times, thread in clock
        for phase, begin, end in zip(phases, times, times[1:], strict=False)
    ]
