"""The solves L y = P b and U x = y on the one device that holds all factors."""

from functools import partial

import numpy as np

from renderer.gpu import Buffer
from renderer.numerics.band_lu.device_columns import Share

STEPS, NARROW = "numerics/band_lu/solve_blocked.cu", "numerics/band_lu/solve_fused.cu"
LARGEST_GRAPH = 4096  # block columns whose substitution is recorded as one graph
NARROW_BLOCK = 32  # the block whose triangle one warp solves in registers
LARGEST_GROUP = {"f4": 1024, "f8": 512}  # threads that can each hold a row of NARROW_BLOCK factors
FEW_SIDES = 16


class Substitution:
    """Launches for one share; the launches of a number of right-hand sides are recorded when it first comes."""

    def __init__(self, share: Share):
        self.share, self.layout, self.device = share, share.layout, share.device
        layout = self.layout
        self._window = (layout.l + 1) * layout.s
        self._sources: Buffer = self.device.buffer((layout.p, self._window), "i4")
        self._known_pivots = False
        self._recorded: dict[int, tuple] = {}

    def forget_pivots(self) -> None:
        """The next solve is with other factors."""
        self._known_pivots = False

    def __call__(self, known: Buffer, panel_pivots: np.ndarray) -> None:
        """Replaces right-hand sides (m, p s), zero from column n on, by the solutions."""
        layout, count = self.layout, known.shape[0]
        assert known.shape[1] == layout.p * layout.s and known.dtype == self.share.dtype
        if not self._known_pivots:
            self._sources.write(source_rows(layout, panel_pivots))
            self._known_pivots = True
        if self.narrow and count <= FEW_SIDES:
            self._by_two_launches(known)
            return
        if count not in self._recorded:
            sides, y = (self.device.buffer(known.shape, known.dtype) for _ in range(2))
            windows = [self.device.buffer((count, self._window), known.dtype) for _ in range(2)]
            work = partial(self._launch_steps, sides, y, windows)
            self._recorded = {count: (sides, self.device.capture_graph(work) if layout.p <= LARGEST_GRAPH else work)}
        sides, launches = self._recorded[count]
        sides.copy_from(known)
        launches()
        known.copy_from(sides)

    @property
    def narrow(self) -> bool:
        """Whether a group has a thread for every row that a step changes."""
        rows = max(self._window, (self.layout.u + 1) * self.layout.s)
        wide = not self.device.properties.scalar_threads
        return wide and self.layout.s == NARROW_BLOCK and rows <= LARGEST_GROUP[self.share.dtype.str[1:]]

    def _by_two_launches(self, known: Buffer) -> None:
        layout, share, (count, order) = self.layout, self.share, known.shape
        right = min(count, 4 if self.share.dtype == np.float32 else 2)
        above = layout.u * layout.s
        sizes = dict(RIGHT=right, WINDOW=self._window, ABOVE=above)
        forward = share.kernel(NARROW, "forward_all", -(-self._window // 32) * 32, **sizes)
        backward = share.kernel(NARROW, "backward_all", -(-(above + layout.s) // 32) * 32, **sizes)
        groups, rest = -(-count // right), (layout.p, order, count, layout.u, layout.height)
        forward(groups * forward.group_size, share.matrix, known, self._sources, *rest)
        backward(groups * backward.group_size, share.matrix, known, *rest)

    def _launch_steps(self, sides: Buffer, y: Buffer, windows: list[Buffer]) -> None:
        layout, s, share = self.layout, self.layout.s, self.share
        count, order = sides.shape
        most = min(count, share.sides[-1], max(1, 1024 // s))
        right = next(r for r in share.sides if r >= most)
        group = 128 if not share.device.properties.scalar_threads else 16
        forward = share.kernel(STEPS, "forward_step", group, RIGHT=right)
        backward = share.kernel(STEPS, "backward_step", group, RIGHT=right)
        chunks, sizes, matrix = -(-count // right), (order, count, layout.u, layout.height), share.matrix
        for i in range(layout.p):
            rows, old = layout.rows(i), layout.rows(i - 1) - s if i else 0
            groups = chunks * max(-(-(rows - s) // group), 1)
            now, following = windows[i % 2], windows[(i + 1) % 2]
            forward(groups * group, matrix, sides, y, now, following, self._sources, i, rows, old, *sizes)
        for i in reversed(range(layout.p)):
            above = min(i, layout.u) * s
            groups = chunks * max(-(-above // group), 1)
            backward(groups * group, matrix, y, sides, i, above, *sizes)


def source_rows(layout, panel_pivots: np.ndarray) -> np.ndarray:
    """(p, (l + 1) s) int32: the row, from a panel's first, whose value its exchanges bring to each row."""
    steps = np.arange(layout.p)
    sources = np.tile(np.arange((layout.l + 1) * layout.s, dtype=np.int32), (layout.p, 1))
    exchanges = panel_pivots.reshape(layout.p, layout.s) - 1
    for own, other in enumerate(exchanges.T):
        before = sources[:, own].copy()
        sources[:, own] = sources[steps, other]
        sources[steps, other] = before
    return sources
