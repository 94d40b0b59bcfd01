"""The triangular solves L y = P b and U x = y, and the transposed ones, on the devices that have the factors."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from renderer.gpu import Buffer
from renderer.gpu.device import Kernel
from renderer.numerics.band_lu.block_columns import BlockLayout
from renderer.numerics.band_lu.device_columns import DeviceColumns

FILE, FUSED_FILE, TRANSPOSED_FILE = "solve_blocked.cu", "solve_fused.cu", "solve_transposed.cu"
FUSED_BLOCK = 32  # the block whose triangle one warp solves in registers
FUSED_MAX_GROUP = {"f4": 1024, "f8": 512}  # threads that can each hold a row of FUSED_BLOCK factors
FUSED_MAX_RHS = 16
MAX_GRAPH_STEPS = 4096  # block columns whose substitution is recorded as one graph

Launches = Iterator[Callable[[], None]]


@dataclass
class _Vectors:
    """One device's b, y and x (count, p s) for `count` right-hand sides, and two windows (count, reach)."""

    b: Buffer
    y: Buffer
    x: Buffer
    windows: list[Buffer]
    sides: Buffer  # (count, s) of one triangle

    @property
    def count(self) -> int:
        """The number of right-hand sides."""
        return self.b.shape[0]


class Substitution:
    """Forward and backward substitution where the factors are: on one device, or handed along from device to device.

    The owner of block column i makes step i; the window of rows that the step changes goes on to the next owner, so
    that x has the same bits on any number of devices. Launches are recorded at the first use.
    """

    def __init__(self, per_device: list[DeviceColumns]):
        self._per_device, self.columns, self.layout = per_device, per_device[0], per_device[0].layout
        layout = self.layout
        self._window = (layout.l + 1) * layout.s
        self._reach = max(self._window, layout.u * layout.s)
        self._permutations = [c.device.buffer((layout.p, self._window), "i4") for c in per_device]
        self._has_pivots = False
        self._vectors: list[_Vectors] = []
        self._recorded: dict[str, Callable[[], None]] = {}

    def invalidate_pivots(self) -> None:
        """Uploads the pivots again at the next solve, which is with other factors."""
        self._has_pivots = False

    def solve(self, rhs: np.ndarray, panel_pivots: np.ndarray, transposed: bool) -> np.ndarray:
        """The solutions of A x = b, or of A^T x = b, for right-hand sides (m, p s), zero from column n on."""
        if not transposed and len(self._per_device) == 1:
            buffer = self.columns.device.buffer(rhs.shape, rhs.dtype).write(rhs)
            self.solve_in_place(buffer, panel_pivots)
            return buffer.read()
        self._prepare(len(rhs), panel_pivots)
        for vectors in self._vectors:
            vectors.b.write(rhs)
        blocks, count = np.arange(self.layout.p), len(self._per_device)
        if transposed:
            self._run("upper_transposed")
            self._run("lower_transposed")
            owners = np.maximum(blocks - self.layout.l, 0) % count  # who undoes the last interchange of a block
        else:
            self._run("forward")
            y = self._merge([vectors.y for vectors in self._vectors], blocks % count)
            for vectors in self._vectors:
                vectors.y.write(y)
            self._run("backward")
            owners = blocks % count
        return self._merge([vectors.x for vectors in self._vectors], owners)

    def _merge(self, parts: list[Buffer], owners: np.ndarray) -> np.ndarray:
        """The blocks (m, p s) that each device has made: block i is owners[i]'s."""
        merged = parts[0].read()
        for index, part in enumerate(parts[1:], 1):
            own = np.repeat(owners == index, self.layout.s)
            merged[:, own] = part.read()[:, own]
        return merged

    def solve_in_place(self, rhs: Buffer, panel_pivots: np.ndarray) -> None:
        """Replaces right-hand sides (m, p s), zero from column n on, on the one device by the solutions."""
        layout, count = self.layout, rhs.shape[0]
        assert rhs.shape[1] == layout.p * layout.s and rhs.dtype == self.columns.dtype
        if self.is_fused and count <= FUSED_MAX_RHS:
            self._upload_pivots(panel_pivots)
            self._solve_fused(rhs)
            return
        self._prepare(count, panel_pivots)
        (vectors,) = self._vectors
        vectors.b.copy_from(rhs)
        self._run("forward")
        self._run("backward")
        rhs.copy_from(vectors.x)

    def _upload_pivots(self, panel_pivots: np.ndarray) -> None:
        if not self._has_pivots:
            composed = permutations(self.layout, panel_pivots)
            for buffer in self._permutations:
                buffer.write(composed)
            self._has_pivots = True

    def _prepare(self, count: int, panel_pivots: np.ndarray) -> None:
        """Pivots, and vectors for `count` right-hand sides, on every device."""
        self._upload_pivots(panel_pivots)
        if self._vectors and self._vectors[0].count == count:
            return
        layout, dtype = self.layout, self.columns.dtype
        self._recorded, self._vectors = {}, []  # frees the buffers before
        for columns in self._per_device:
            make = partial(columns.device.buffer, dtype=dtype)
            b, y, x = (make((count, layout.p * layout.s)) for _ in range(3))
            windows = [make((count, self._reach)) for _ in range(2)]
            self._vectors.append(_Vectors(b, y, x, windows, make((count, layout.s))))

    def _run(self, sweep: str) -> None:
        """Launches all steps of a sweep: of forward, backward, upper_transposed or lower_transposed."""
        if sweep not in self._recorded:
            if len(self._per_device) > 1:
                self._recorded[sweep] = partial(_launch_all, list(self._launches(sweep)))
            else:
                work = lambda: _launch_all(self._launches(sweep))  # noqa: E731
                is_short = self.layout.p <= MAX_GRAPH_STEPS
                self._recorded[sweep] = self.columns.device.capture_graph(work) if is_short else work
        self._recorded[sweep]()

    def _launches(self, sweep: str) -> Iterator[Callable[[], None]]:
        """The launches of each step on the owner of its block column; the next owner gets the changed window."""
        ascending = range(self.layout.p)
        steps = ascending if sweep in ("forward", "upper_transposed") else ascending[::-1]
        make, count = getattr(self, f"_{sweep}"), len(self._per_device)
        for number, i in enumerate(steps):
            owner = i % count
            windows = self._vectors[owner].windows
            turn = number % 2 if count == 1 else 0
            yield from make(i, self._per_device[owner], self._vectors[owner], windows[turn], windows[1 - turn])
            if count > 1 and number + 1 < len(steps):
                target = self._vectors[steps[number + 1] % count].windows[0]
                yield partial(_copy, target, windows[1])

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
        forward(groups * forward.group_size, columns.matrix, rhs, self._permutations[0], *rest)
        backward(groups * backward.group_size, columns.matrix, rhs, *rest)

    def _kernel(self, columns: DeviceColumns, file: str, entry: str, group: int) -> tuple[Kernel, int]:
        """A kernel for the number of right-hand sides, and the groups that take a part of them each."""
        count = self._vectors[0].count
        most = min(count, columns.plan.rhs_per_group[-1], max(1, 1024 // self.layout.s))
        rhs_per_group = next(r for r in columns.plan.rhs_per_group if r >= most)
        return columns.kernel(file, entry, group, RHS_PER_GROUP=rhs_per_group), -(-count // rhs_per_group)

    def _forward(self, i: int, columns: DeviceColumns, vectors: _Vectors, now: Buffer, following: Buffer) -> Launches:
        layout, s, group = self.layout, self.layout.s, columns.plan.solve_group
        kernel, chunks = self._kernel(columns, FILE, "forward_step", group)
        rows, changed = layout.panel_rows(i), layout.panel_rows(i - 1) - s if i else 0
        threads = chunks * max(-(-(rows - s) // group), 1) * group
        places = vectors.b, vectors.y, now, following, self._permutations[columns.index], self._top(columns, i)
        sizes = (self._window, self._reach, layout.p * s, vectors.count, layout.ld)
        yield kernel.bind_launch(threads, columns.matrix, *places, i, rows, changed, *sizes)

    def _backward(self, i: int, columns: DeviceColumns, vectors: _Vectors, now: Buffer, following: Buffer) -> Launches:
        layout, s, group = self.layout, self.layout.s, columns.plan.solve_group
        kernel, chunks = self._kernel(columns, FILE, "backward_step", group)
        above, changed = min(i, layout.u) * s, min(i + 1, layout.u) * s if i + 1 < layout.p else 0
        threads = chunks * max(-(-above // group), 1) * group
        places = vectors.y, vectors.x, now, following, self._top(columns, i)
        sizes = (self._reach, layout.p * s, vectors.count, layout.u, layout.ld)
        yield kernel.bind_launch(threads, columns.matrix, *places, i, above, changed, *sizes)

    def _upper_transposed(
        self, i: int, columns: DeviceColumns, vectors: _Vectors, now: Buffer, following: Buffer
    ) -> Launches:
        layout, s = self.layout, self.layout.s
        above = min(i, layout.u) * s
        yield self._products(columns, vectors, vectors.b, i, (-above, above), now, layout.u * s - above)
        kernel, chunks = self._kernel(columns, TRANSPOSED_FILE, "upper_transposed", columns.plan.solve_group)
        places = self._top(columns, i), vectors.sides, vectors.y, now, following
        sizes = (self._reach, layout.p * s, vectors.count, layout.u, layout.ld)
        yield kernel.bind_launch(chunks * kernel.group_size, columns.matrix, *places, i, *sizes)

    def _lower_transposed(
        self, i: int, columns: DeviceColumns, vectors: _Vectors, now: Buffer, following: Buffer
    ) -> Launches:
        layout, s, rows = self.layout, self.layout.s, self.layout.panel_rows(i)
        yield self._products(columns, vectors, vectors.y, i, (s, rows - s), now, 0)
        kernel, chunks = self._kernel(columns, TRANSPOSED_FILE, "lower_transposed", columns.plan.solve_group)
        places = self._top(columns, i), vectors.sides, vectors.x, now, following, self._permutations[columns.index]
        first_final = layout.l * s if i else 0
        sizes = (self._window, self._reach, layout.p * s, vectors.count, layout.ld)
        yield kernel.bind_launch(chunks * kernel.group_size, columns.matrix, *places, i, rows, first_final, *sizes)

    def _products(
        self,
        columns: DeviceColumns,
        vectors: _Vectors,
        base: Buffer,
        i: int,
        part: tuple[int, int],
        values: Buffer,
        first: int,
    ) -> Callable[[], None]:
        """sides = block i of `base` minus the products of part (first row, rows) of its columns with values[first:]."""
        layout, s = self.layout, self.layout.s
        kernel, chunks = self._kernel(columns, TRANSPOSED_FILE, "subtract_column_products", columns.plan.solve_group)
        at = np.uint64(columns.diagonal_offset(i) + part[0])
        sizes = (values, first, self._reach, base, i * s, layout.p * s, vectors.sides, vectors.count)
        return kernel.bind_launch(chunks * s * kernel.group_size, columns.matrix, at, part[1], layout.ld, *sizes)

    @staticmethod
    def _top(columns: DeviceColumns, i: int) -> np.uint64:
        return np.uint64(columns.diagonal_offset(i))


def _launch_all(launches: Iterable[Callable[[], None]]) -> None:
    for launch in launches:
        launch()


def _copy(target: Buffer, source: Buffer) -> None:
    target.copy_from(source)


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
