"""The triangular solves L y = P b and U x = y on the one device that has all factors."""

from functools import partial

import numpy as np

from renderer.gpu import Buffer
from renderer.numerics.band_lu.block_columns import BlockLayout
from renderer.numerics.band_lu.device_columns import DeviceColumns

FILE, FUSED_FILE = "solve_blocked.cu", "solve_fused.cu"
FUSED_BLOCK = 32  # the block whose triangle one warp solves in registers
FUSED_MAX_GROUP = {"f4": 1024, "f8": 512}  # threads that can each hold a row of FUSED_BLOCK factors
FUSED_MAX_RHS = 16
MAX_GRAPH_STEPS = 4096  # block columns whose substitution is recorded as one graph


class Substitution:
    """Forward and backward substitution; the launches for a number of right-hand sides are recorded at first use."""

    def __init__(self, columns: DeviceColumns):
        self.columns, self.layout, self.device = columns, columns.layout, columns.device
        layout = self.layout
        self._window = (layout.l + 1) * layout.s
        self._permutations: Buffer = self.device.buffer((layout.p, self._window), "i4")
        self._has_pivots = False
        self._recorded: dict[int, tuple] = {}

    def invalidate_pivots(self) -> None:
        """Uploads the pivots again at the next solve, which is with other factors."""
        self._has_pivots = False

    def __call__(self, rhs: Buffer, panel_pivots: np.ndarray) -> None:
        """Replaces right-hand sides (m, p s), zero from column n on, by the solutions."""
        layout, count = self.layout, rhs.shape[0]
        assert rhs.shape[1] == layout.p * layout.s and rhs.dtype == self.columns.dtype
        if not self._has_pivots:
            self._permutations.write(permutations(layout, panel_pivots))
            self._has_pivots = True
        if self.is_fused and count <= FUSED_MAX_RHS:
            self._solve_fused(rhs)
            return
        if count not in self._recorded:
            x, y = (self.device.buffer(rhs.shape, rhs.dtype) for _ in range(2))
            windows = [self.device.buffer((count, self._window), rhs.dtype) for _ in range(2)]
            work = partial(self._launch_steps, x, y, windows)
            self._recorded = {count: (x, self.device.capture_graph(work) if layout.p <= MAX_GRAPH_STEPS else work)}
        x, launches = self._recorded[count]
        x.copy_from(rhs)
        launches()
        rhs.copy_from(x)

    @property
    def is_fused(self) -> bool:
        """Whether one group has a thread for every row that a step changes: then each solve is one launch."""
        rows = max(self._window, (self.layout.u + 1) * self.layout.s)
        fits = self.layout.s == FUSED_BLOCK and rows <= FUSED_MAX_GROUP[self.columns.dtype.str[1:]]
        return fits and not self.columns.plan.is_cpu

    def _solve_fused(self, rhs: Buffer) -> None:
        layout, columns, (count, padded_n) = self.layout, self.columns, rhs.shape
        rhs_per_group = min(count, 4 if columns.dtype == np.float32 else 2)
        above = layout.u * layout.s
        sizes = dict(RHS_PER_GROUP=rhs_per_group, WINDOW=self._window, ABOVE=above)
        forward = columns.kernel(FUSED_FILE, "forward_fused", -(-self._window // 32) * 32, **sizes)
        backward = columns.kernel(FUSED_FILE, "backward_fused", -(-(above + layout.s) // 32) * 32, **sizes)
        groups, rest = -(-count // rhs_per_group), (layout.p, padded_n, count, layout.u, layout.ld)
        forward(groups * forward.group_size, columns.matrix, rhs, self._permutations, *rest)
        backward(groups * backward.group_size, columns.matrix, rhs, *rest)

    def _launch_steps(self, x: Buffer, y: Buffer, windows: list[Buffer]) -> None:
        layout, s, columns = self.layout, self.layout.s, self.columns
        count, padded_n = x.shape
        most = min(count, columns.plan.rhs_per_group[-1], max(1, 1024 // s))
        rhs_per_group = next(r for r in columns.plan.rhs_per_group if r >= most)
        group = columns.plan.solve_group
        forward = columns.kernel(FILE, "forward_step", group, RHS_PER_GROUP=rhs_per_group)
        backward = columns.kernel(FILE, "backward_step", group, RHS_PER_GROUP=rhs_per_group)
        chunks, sizes, matrix = -(-count // rhs_per_group), (padded_n, count, layout.u, layout.ld), columns.matrix
        for i in range(layout.p):
            rows, old = layout.panel_rows(i), layout.panel_rows(i - 1) - s if i else 0
            groups = chunks * max(-(-(rows - s) // group), 1)
            now, following = windows[i % 2], windows[(i + 1) % 2]
            forward(groups * group, matrix, x, y, now, following, self._permutations, i, rows, old, *sizes)
        for i in reversed(range(layout.p)):
            above = min(i, layout.u) * s
            groups = chunks * max(-(-above // group), 1)
            backward(groups * group, matrix, y, x, i, above, *sizes)


def permutations(layout: BlockLayout, panel_pivots: np.ndarray) -> np.ndarray:
    """(p, (l + 1) s) int32: each panel's interchanges composed into one permutation.

    out[i, r] is the row whose value ends up in row r after the interchanges of step i, both counted from the panel's
    first row.
    """
    steps = np.arange(layout.p)
    out = np.tile(np.arange((layout.l + 1) * layout.s, dtype=np.int32), (layout.p, 1))
    interchanges = panel_pivots.reshape(layout.p, layout.s) - 1
    for row, other in enumerate(interchanges.T):
        before = out[:, row].copy()
        out[:, row] = out[steps, other]
        out[steps, other] = before
    return out
