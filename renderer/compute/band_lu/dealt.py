"""Band LU over q devices (paper 4): block column i on device i mod q; panels by the host or the device.

Either all block columns of a device stay resident, or only the u + 1 that a step can change: then a finished block
column goes home to host memory while the next one comes in, so that the matrix may be larger than the devices'
memory. The next block column is updated first, so that its panel is factored, and travels, while the devices still
update the rest.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import cache, partial

import numpy as np

from renderer.compute.band_lu.blocks import FlushSubnormals, Layout, cores
from renderer.compute.band_lu.host import STEPS, BlockFactors, one_thread
from renderer.gpu import Buffer, Device

FILE = "band_lu.cu"
LARGEST_GRAPH = 4096  # block columns whose substitution is recorded as one graph
COPIERS = 8  # threads that gather a block column from the rows of ab
LEAVES = ((128, 16, 176), (256, 16, 168), (256, 8, 168), (512, 4, 80), (1024, 4, 40))  # threads, columns, registers
SAMPLED = 256  # steps at most whose times are taken: a mark in the queue costs some microseconds


def divisor(number: int, most: int) -> int:
    """The largest divisor of number that is at most `most`."""
    return next(n for n in range(min(number, most), 0, -1) if number % n == 0)


def leaf_shape(rows: int, s: int, itemsize: int, wide: bool) -> tuple[int, int, int]:
    """Threads, columns and rows a thread of the kernel that factors a piece of a panel in one group's registers."""
    if not wide:
        held = -(-rows // 16)
        return 16, 8, 1 << (held - 1).bit_length()  # few texts to compile; a CPU keeps them in memory anyway
    for threads, width, registers in LEAVES:
        held = -(-rows // threads)
        if s % width == 0 and held * width * (itemsize // 4) <= registers:
            break
    return threads, width, held


def panel_shape(rows: int, s: int, cluster: int) -> dict[str, int]:
    """GROUP threads, ROWS of a thread and columns at a time of the kernel that factors a panel by one cluster."""
    each = -(-rows // cluster)
    held = -(-each // 320)
    group = max(32 * -(-each // (32 * held)), 64)
    return dict(GROUP=group, ROWS=held, CLUSTER=cluster, WIDTH=divisor(s, 16), BATCH=8 if held == 1 else 4)


class Share:
    """One device's block columns, the kernels that work on them and the stages they come through."""

    def __init__(self, device: Device, index: int, devices: int, layout: Layout, dtype, resident: bool, vendor: bool):
        self.device, self.index, self.devices, self.layout, self.dtype = device, index, devices, layout, np.dtype(dtype)
        needed = layout.p if resident else layout.u + 1
        self.slots = max(-(-needed // devices), 1)
        self.matrix = device.buffer(self.slots * layout.stride, dtype)
        self.pivots = device.buffer(layout.p * layout.s, "i4")
        self.info, self._step = device.buffer(1, "i4"), device.buffer(1, "i4")
        self.panel = device.buffer(min(layout.l + 1, layout.p) * layout.s * layout.s, dtype)
        step = self.dtype.itemsize
        self._columns = [device.stage((layout.kl + layout.ku + 1) * layout.s * step) for _ in range(2)]
        self._panels = [device.stage(layout.s * 4 + self.panel.nbytes) for _ in range(2)]
        self._trays = [device.tray(layout.stride * step) for _ in range(2)]
        self.product = device.vendor_product(dtype) if vendor else None
        self._compile()

    def _compile(self) -> None:
        s, layout = self.layout.s, self.layout
        wide = self.device.processor.lanes > 1
        word = {"f4": "float", "f8": "double"}[self.dtype.str[1:]]
        rows = min(layout.l + 1, layout.p) * s
        leaf, self.width, held = leaf_shape(rows, s, self.dtype.itemsize, wide)
        self.tile = next(n for n in (64, 48, 32, 16) if s % n == 0)
        self.group_columns = divisor(s, max(1, 1024 // s))
        middle = 256 if wide else 16
        self.sides = (1, 2, 4, 8) if wide else (4,)
        constants = dict(
            S=s, REAL=word, DOUBLE=int(word == "double"), WIDTH=self.width, ROWS=held, TILE_COLUMNS=self.tile,
            GROUP_COLUMNS=self.group_columns, TILE=divisor(s, 4096 // s), RIGHT=self.sides[0],
            APPLY_ROWS=held if leaf == middle else -(-rows // middle),
        )  # fmt: skip
        self._constants = constants

        def kernel(entry: str, group: int):
            return self.device.kernel(FILE, entry, group=group, **constants)

        self._copy, self._copy_panel, self._copy_pivots, self._place = (
            kernel(entry, middle) for entry in ("copy_elements", "copy_panel", "copy_pivots", "place_columns")
        )
        cluster = self.device.processor.cluster
        if cluster > 1:
            shape = panel_shape(rows, s, cluster)
            self._factor_panel = self.kernel("factor_panel", shape.pop("GROUP"), **shape)
        else:
            self._factor_panel = None
            self._factor_leaf, self._apply_leaf = kernel("factor_leaf", leaf), kernel("apply_leaf", middle)
        self._swap, self._solve = kernel("swap_rows", middle), kernel("solve_rows", middle)
        self._update = kernel("update_tiles", 4 * self.tile) if wide else kernel("update_runs", 16)
        self._facts, self._next_panel = kernel("upper_facts", middle), kernel("next_panel", middle)
        self._panel_launches = None

    def kernel(self, entry: str, group: int, **constants):
        return self.device.kernel(FILE, entry, group=group, **{**self._constants, **constants})

    def slot_at(self, t: int) -> int:
        """The first element of block column t in the matrix."""
        return (t // self.devices) % self.slots * self.layout.stride

    def diagonal_at(self, t: int) -> int:
        """Where the diagonal block of block column t, and so its panel, begins."""
        return self.slot_at(t) + self.layout.u * self.layout.s

    def load(self, t: int, ab: np.ndarray) -> None:
        """Starts to bring block column t from ab (kl + ku + 1, n)."""
        layout, s = self.layout, self.layout.s
        width = max(min(s, layout.n - t * s), 0)
        stage = self._columns[t // self.devices % 2]
        count = ab.shape[0] * width * self.dtype.itemsize
        part = stage.open()[:count].view(self.dtype).reshape(ab.shape[0], width)
        _copy_rows(part, ab[:, t * s : t * s + width])
        at, sizes = np.uint64(self.slot_at(t)), (layout.kl, layout.ku, layout.u, layout.height)
        stage.send(
            count, lambda buffer: self._place(layout.stride, buffer, self.matrix, at, t, width, layout.n, *sizes)
        )

    def fetch(self, t: int) -> None:
        """Starts to bring block column t home."""
        stride, tray = self.layout.stride, self._trays[t // self.devices % 2]
        self._copy(stride, self.matrix, tray.buffer, np.uint64(self.slot_at(t)), np.uint64(0), np.uint64(stride))
        tray.send()

    def fetched(self, t: int) -> np.ndarray:
        """The elements (stride,) of block column t; waits for its fetch."""
        return self._trays[t // self.devices % 2].read().view(self.dtype)

    def receive(self, i: int, panel: np.ndarray, pivots: np.ndarray) -> None:
        """Brings a panel (S, rows: its columns) that the host factored, and its pivots; the owner puts it in place."""
        s, rows = self.layout.s, panel.shape[1]
        stage = self._panels[i % 2]
        array = stage.open()
        array[: s * 4].view("i4")[:] = pivots
        count = s * 4 + panel.nbytes
        array[s * 4 : count].view(self.dtype).reshape(panel.shape)[:] = panel
        start = np.uint64(s * 4 // self.dtype.itemsize)

        def work(buffer) -> None:
            self._copy_pivots(s, buffer, self.pivots, i * s)
            self._copy_panel(rows * s, buffer, self.panel, start, rows, np.uint64(0), rows, rows)
            if i % self.devices == self.index:
                place = np.uint64(self.diagonal_at(i))
                self._copy_panel(rows * s, buffer, self.matrix, start, rows, place, self.layout.height, rows)

        stage.send(count, work)

    def rewind(self) -> None:
        """Makes the first of this device's panels the next one, and forgets zero pivots."""
        self.info.fill(0)
        self._step.write(np.array([self.index - self.devices], "i4"))

    def factor_panel(self) -> None:
        """Factors the panel of this device's next block column on the device, leaf by leaf."""
        if self._panel_launches is None:
            self._panel_launches = self.device.repeat(self._launch_panel)
        self._panel_launches()

    def _launch_panel(self) -> None:
        layout, s, width = self.layout, self.layout.s, self.width
        where = (layout.p, layout.l, layout.u, layout.height, self.devices, self.slots)
        leaf, apply = self._factor_leaf, self._apply_leaf
        self._next_panel(1, self._step, self.devices)
        if self._factor_panel:
            groups = self.device.processor.cluster
            self._factor_panel(groups * self._factor_panel.group, self.matrix, self._step, self.pivots, self.info, *where)
            return
        for first in range(0, s, width):
            leaf(1, self.matrix, self._step, first, self.pivots, self.info, *where)
            if s > width:
                apply((s - width) * apply.group, self.matrix, self._step, first, self.pivots, *where)

    def publish(self, i: int, others: list["Share"]) -> None:
        """Copies the panel that this device factored, and its pivots, to the other devices."""
        layout, s = self.layout, self.layout.s
        rows, at = layout.rows(i), np.uint64(self.diagonal_at(i))
        self._copy_panel(rows * s, self.matrix, self.panel, at, layout.height, np.uint64(0), rows, rows)
        for other in others:
            other.panel.copy(self.panel)
            other.pivots.copy(self.pivots)

    def own(self, first: int, last: int) -> tuple[int, int]:
        """The first of this device's block columns from `first` to `last`, and how many there are."""
        start = first + (self.index - first) % self.devices
        return start, max(0, (last - start) // self.devices + 1)

    def step(self, i: int, first: int, count: int, place: tuple, marks) -> None:
        """Swap, solve, update of `count` block columns from `first` on; place is (buffer, element, ld) of panel i."""
        if count <= 0:
            return
        layout, s = self.layout, self.layout.s
        groups = count * (s // self.group_columns)
        where = (layout.u, layout.height, self.devices, self.slots)
        buffer, at, ld = place
        marks("swap", self)
        self._swap(groups * self._swap.group, self.matrix, self.pivots, i, first, count, *where)
        marks("solve", self)
        solve = self._solve
        solve(groups * solve.group, self.matrix, buffer, np.uint64(at), ld, i, first, count, *where)
        marks("update", self)
        rows = layout.rows(i)
        if rows == s:
            return
        if self.product:
            self._update_by_vendor(i, first, count, place)
        elif self.device.processor.lanes > 1:
            tiles = -(-(rows - s) // 64) * (s // self.tile) * count
            self._update(
                tiles * self._update.group, self.matrix, buffer, np.uint64(at), ld, rows, i, first, count, *where
            )
        else:
            items = (rows - s) // 16 * (s // 4) * count
            self._update(items, self.matrix, buffer, np.uint64(at), ld, rows, i, first, count, *where)

    def _update_by_vendor(self, i: int, first: int, count: int, place: tuple) -> None:
        """One product for each run of neighbouring slots: there block columns of one device are parts of one matrix."""
        layout, s, height, devices = self.layout, self.layout.s, self.layout.height, self.devices
        buffer, at, ld = place
        below = layout.rows(i) - s
        while count:
            slot = first // devices % self.slots
            run = min(count, self.slots - slot)
            top = slot * layout.stride + (i - first + layout.u) * s
            left, upper, rest = (buffer, at + s, ld), (self.matrix, top, height), (self.matrix, top + s, height)
            if devices == 1:
                self.product.subtract(below, run * s, s, left, upper, rest)
            else:
                gap = layout.stride - devices * s
                self.product.subtract(below, s, s, left, upper, rest, (run, 0, gap, gap))
            first, count = first + run * devices, count - run

    def facts(self) -> tuple[np.ndarray, np.ndarray]:
        """The largest |u| and the diagonal of U by column (n,); zero where another device has the column."""
        layout = self.layout
        high, diagonal = (self.device.buffer(layout.n, self.dtype).fill(0) for _ in range(2))
        threads = self.slots * layout.s
        where = (layout.u, layout.height, self.devices, self.slots)
        self._facts(threads, self.matrix, high, diagonal, layout.n, self.index, *where)
        return high.read(), diagonal.read()


def _copy_rows(to: np.ndarray, rows: np.ndarray) -> None:
    """to[:] = rows, by several cores where it takes long: rows of a band are far apart in memory."""
    if to.nbytes < 1 << 19:
        to[:] = rows
        return
    bounds = np.linspace(0, len(to), min(cores(), COPIERS) + 1).astype(int)
    list(_copiers().map(lambda a, b: np.copyto(to[a:b], rows[a:b]), bounds[:-1], bounds[1:]))


@cache
def _copiers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(min(cores(), COPIERS))


class Timeline:
    """Marks at the beginnings of the parts of a step in every device's queue, read when all is done."""

    def __init__(self, steps: int):
        self._every = -(-steps // SAMPLED)
        self._lines: dict[int, list] = {}
        self._host: dict[int, dict] = {}
        self._now: list | None = None

    def begin(self, i: int) -> None:
        self._now = self._lines.setdefault(i, []) if i % self._every == 0 else None

    def mark(self, part: str, share: Share) -> None:
        if self._now is not None:
            self._now.append((share.index, part, share.device.mark()))

    def host(self, i: int, part: str, seconds: float) -> None:
        """Seconds that the host spent on a part of step i."""
        line = self._host.setdefault(i, dict.fromkeys(STEPS, 0.0))
        line[part] += seconds

    def steps(self) -> list[dict]:
        """For each timed step its number and the seconds of its parts, added over the devices and the host."""
        out = []
        for i, line in self._lines.items():
            told = dict.fromkeys(STEPS, 0.0) | self._host.get(i, {})
            for index in {entry[0] for entry in line}:
                marks = [(part, mark) for where, part, mark in line if where == index]
                for (part, mark), (_, following) in zip(marks, marks[1:], strict=False):
                    if part in told:
                        told[part] += following.seconds_since(mark)
            out.append({"step": i, **told})
        return out


class DealtFactors:
    """Factors made by devices. With `resident` they stay there, else `home` holds them in host memory."""

    def __init__(self, layout: Layout, dtype, devices: list[Device], resident: bool, host_panels: bool, vendor: bool):
        self.layout, self.dtype, self.devices = layout, np.dtype(dtype), devices
        self.resident, self.host_panels, self.info = resident, host_panels, 0
        count = len(devices)
        self.shares = [Share(d, k, count, layout, dtype, resident, vendor) for k, d in enumerate(devices)]
        self.home = None if resident else BlockFactors(layout, dtype)
        self._panel_pivots = np.zeros(layout.p * layout.s, np.int32)
        self.timeline: list[dict] = []
        self._substitutions: dict[int, tuple] = {}
        self._sources: Buffer | None = None
        self._sources_are_known = False

    @property
    def name(self) -> str:
        names = [share.device.name for share in self.shares]
        product = next((share.product.name for share in self.shares if share.product), "own kernels")
        return f"{', '.join(names)}; {product}"

    def _share(self, t: int) -> Share:
        return self.shares[t % len(self.shares)]

    def factor(self, ab: np.ndarray, flush: bool) -> None:
        layout = self.layout
        self.info, times = 0, Timeline(layout.p)
        for share in self.shares:
            share.rewind()
        with one_thread(), FlushSubnormals() if flush else nullcontext():
            began = time.perf_counter()
            for t in range(layout.p if self.resident else layout.last(0) + 1):
                self._share(t).load(t, ab)
            times.host(0, "copy", time.perf_counter() - began)
            self._begin_panel(0, times)
            for i in range(layout.p):
                self._step(i, ab, times)
        for share in self.shares:
            share.device.finish()
        self._gather_pivots()
        self._sources_are_known = False
        if self.home is not None:
            self.home.panel_pivots, self.home.info = self._panel_pivots, self.info
        elif hasattr(self, "_copy_home"):
            del self._copy_home
        self.timeline = times.steps()

    def _begin_panel(self, i: int, times: Timeline) -> None:
        """Has the panel of block column i factored by its device, or starts to fetch it."""
        share = self._share(i)
        if self.host_panels:
            share.fetch(i)
        else:
            times.mark("panel", share)
            share.factor_panel()
            if not self.resident:
                share.fetch(i)

    def _step(self, i: int, ab: np.ndarray, times: Timeline) -> None:
        layout, count = self.layout, len(self.shares)
        if self.host_panels:
            self._host_panel(i, times)
        elif count > 1 or not self.resident:  # a slot that streams is refilled while the panel is in use
            self._share(i).publish(i, [share for share in self.shares if share is not self._share(i)])
        times.begin(i)
        last, ahead = layout.last(i), i + 1 < layout.p
        first = i + 1
        if ahead and (self.host_panels or count > 1):  # the next panel is begun before the rest is updated
            share = self._share(i + 1)
            share.step(i, i + 1, 1, self._place(share, i), times.mark)
            times.mark("end", share)
            self._begin_panel(i + 1, times)
            times.mark("end", share)
            first = i + 2
        if not self.resident:
            self._stream(i, ab, times)
        for share in self.shares:
            start, columns = share.own(first, last)
            share.step(i, start, columns, self._place(share, i), times.mark)
            times.mark("end", share)
        if ahead and first == i + 1:
            self._begin_panel(i + 1, times)
            times.mark("end", self._share(i + 1))

    def _stream(self, i: int, ab: np.ndarray, times: Timeline) -> None:
        """Brings block column i home, if the host does not have it, and the next one in."""
        layout = self.layout
        began = time.perf_counter()
        if not self.host_panels:
            self.home.flat[i * layout.stride : (i + 1) * layout.stride] = self._share(i).fetched(i)
        if (following := i + layout.u + 1) < layout.p:
            self._share(following).load(following, ab)
        times.host(i, "copy", time.perf_counter() - began)

    def _place(self, share: Share, i: int) -> tuple:
        """Where a device finds panel i: in its matrix if the device made it, else in its panel buffer."""
        if self.resident and not self.host_panels and share is self._share(i):
            return share.matrix, share.diagonal_at(i), self.layout.height
        return share.panel, 0, self.layout.rows(i)

    def _host_panel(self, i: int, times: Timeline) -> None:
        """The panel of block column i by LAPACK on one core, and its way to every device."""
        layout, s = self.layout, self.layout.s
        began = time.perf_counter()
        column = self._share(i).fetched(i)
        if self.home is not None:
            chunk = self.home.flat[i * layout.stride : (i + 1) * layout.stride]
            chunk[:] = column
        else:
            chunk = column.copy()
        fetched = time.perf_counter()
        rows, pivots = layout.rows(i), self._panel_pivots[i * s : (i + 1) * s]
        lapack = self._lapack
        start = chunk.ctypes.data + layout.u * s * self.dtype.itemsize
        info = lapack.factor(rows, s, start, layout.height, pivots)
        if info and not self.info:
            self.info = i * s + info
        factored = time.perf_counter()
        panel = chunk[: s * layout.height].reshape(s, layout.height)[:, layout.u * s : layout.u * s + rows]
        for share in self.shares:
            share.receive(i, panel, pivots)
        times.host(i, "panel", factored - fetched)
        times.host(i, "copy", fetched - began + time.perf_counter() - factored)

    @property
    def _lapack(self):
        if not hasattr(self, "_lapack_made"):
            from renderer.compute.band_lu.lapack import Lapack

            self._lapack_made = Lapack(self.dtype)
        return self._lapack_made

    def _gather_pivots(self) -> None:
        """The pivots and info of panels that devices factored."""
        if self.host_panels:
            return
        layout = self.layout
        owners = np.arange(layout.p) % len(self.shares)
        for share in self.shares:
            mine = np.repeat(owners == share.index, layout.s)
            self._panel_pivots[mine] = share.pivots.read()[mine]
            info = int(share.info.read()[0])
            if info and (not self.info or info < self.info):
                self.info = info

    def copy_home(self) -> BlockFactors:
        """The factors in host memory, fetched once."""
        if self.home is not None:
            return self.home
        if not hasattr(self, "_copy_home"):
            layout, home = self.layout, BlockFactors(self.layout, self.dtype)
            for share in self.shares:
                parts = share.matrix.read().reshape(share.slots, layout.stride)
                for slot in range(share.slots):
                    t = slot * len(self.shares) + share.index
                    if t < layout.p:
                        home.flat[t * layout.stride : (t + 1) * layout.stride] = parts[slot]
            home.panel_pivots, home.info = self._panel_pivots, self.info
            self._copy_home = home
        return self._copy_home

    def pivots(self) -> np.ndarray:
        """(n,) int32 row that was exchanged with row j at step j, from 0: LAPACK's ipiv - 1."""
        starts = np.repeat(np.arange(self.layout.p, dtype=np.int32) * self.layout.s, self.layout.s)
        return (self._panel_pivots - 1 + starts)[: self.layout.n]

    def upper(self) -> np.ndarray:
        return self.copy_home().upper()

    def diagonal(self) -> np.ndarray:
        return self._facts()[1]

    def largest(self) -> float:
        return float(self._facts()[0].max())

    def _facts(self) -> tuple[np.ndarray, np.ndarray]:
        if self.home is not None:
            return np.array([self.home.largest()]), self.home.diagonal()
        parts = [share.facts() for share in self.shares]
        return tuple(sum(part[k] for part in parts) for k in range(2))

    def solve(self, b: np.ndarray, transposed: bool) -> np.ndarray:
        """x (n, m): on the device where one device has all factors, else by the host."""
        if transposed or not self.on_one_device:
            return self.copy_home().solve(b, transposed)
        return self._solve_on_device(b)

    @property
    def on_one_device(self) -> bool:
        """Whether one device holds all factors, so that it can solve by itself."""
        return self.home is None and len(self.shares) == 1

    def _solve_on_device(self, b: np.ndarray) -> np.ndarray:
        layout, device = self.layout, self.shares[0].device
        padded = np.zeros((b.shape[1], layout.p * layout.s), self.dtype)
        padded[:, : layout.n] = b.T
        known = device.buffer(padded.shape, self.dtype).write(padded)
        self.substitute(known)
        return known.read()[:, : layout.n].T

    def substitute(self, known: Buffer) -> None:
        """Replaces right-hand sides (m, p s), zero from column n on, on the one device by the solutions."""
        layout, device = self.layout, self.shares[0].device
        assert known.shape[1] == layout.p * layout.s and known.dtype == self.dtype
        if self._sources is None:
            self._sources = device.buffer((layout.p, (layout.l + 1) * layout.s), "i4")
        if known.shape[0] not in self._substitutions:
            sides = device.buffer(known.shape, self.dtype)
            y = device.buffer(known.shape, self.dtype)
            windows = [device.buffer((known.shape[0], (layout.l + 1) * layout.s), self.dtype) for _ in range(2)]
            work = partial(self._launch_substitution, sides, y, windows)
            self._substitutions = {known.shape[0]: (sides, device.repeat(work) if layout.p <= LARGEST_GRAPH else work)}
        if not self._sources_are_known:
            self._sources.write(self._source_rows())
            self._sources_are_known = True
        sides, launches = self._substitutions[known.shape[0]]
        sides.copy(known)
        launches()
        known.copy(sides)

    def _source_rows(self) -> np.ndarray:
        """(p, (l + 1) s) int32: the row, from a panel's first, whose value its exchanges bring to each row."""
        layout, steps = self.layout, np.arange(self.layout.p)
        sources = np.tile(np.arange((layout.l + 1) * layout.s, dtype=np.int32), (layout.p, 1))
        exchanges = self._panel_pivots.reshape(layout.p, layout.s) - 1
        for own, other in enumerate(exchanges.T):
            before = sources[:, own].copy()
            sources[:, own] = sources[steps, other]
            sources[steps, other] = before
        return sources

    def _launch_substitution(self, sides: Buffer, y: Buffer, windows: list[Buffer]) -> None:
        layout, s, share = self.layout, self.layout.s, self.shares[0]
        count, order = sides.shape
        most = min(count, share.sides[-1], max(1, 1024 // s))
        right = next(r for r in share.sides if r >= most)
        group = 128 if share.device.processor.lanes > 1 else 16
        forward = share.kernel("forward_step", group, RIGHT=right)
        backward = share.kernel("backward_step", group, RIGHT=right)
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
