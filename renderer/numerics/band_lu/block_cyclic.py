"""Band LU over q devices (paper 4): block column i on device i mod q; panels by the host or the device.

Either all block columns of a device stay resident, or only the u + 1 that a step can change: then a finished block
column goes home to host memory while the next one comes in, so that the matrix may be larger than the devices'
memory. The next block column is updated first, on a queue that overtakes, so that its panel is factored, and travels,
while the devices still update the rest.
"""

import time
from contextlib import nullcontext
from functools import cached_property, partial

import numpy as np

from renderer.gpu import Buffer, Device
from renderer.numerics.band_lu.block_columns import FlushSubnormals, Layout, NotFinite, largest
from renderer.numerics.band_lu.device_columns import Feed, Share
from renderer.numerics.band_lu.host_factors import STEPS, BlockFactors, one_thread
from renderer.numerics.band_lu.memory import TRAYS
from renderer.numerics.band_lu.substitution import Substitution

LOADED = 2  # block columns that come before the step that needs them, where there is room
SAMPLED = 64  # steps at most whose times are taken: a step has a dozen marks, of some microseconds of the host each


class Timeline:
    """Marks at the beginnings of the parts of a step in every device's queue, read when all is done."""

    def __init__(self, steps: int):
        self._steps, self._every = steps, -(-steps // SAMPLED)
        self._lines: dict[int, list] = {}
        self._host: dict[int, dict] = {}
        self._now: list | None = None

    def begin(self, i: int) -> None:
        self._now = self._lines.setdefault(i, []) if i % self._every == 0 else None

    def mark(self, part: str, share: Share, queue: str = "") -> None:
        if self._now is not None:
            self._now.append(((share.index, queue), part, share.device.timestamp()))

    def host(self, i: int, part: str, seconds: float) -> None:
        """Seconds that the host spent on a part of step i."""
        line = self._host.setdefault(i, dict.fromkeys(STEPS, 0.0))
        line[part] += seconds

    def steps(self) -> list[dict]:
        """For each timed step its number and the seconds of its parts, added over the devices and the host."""
        return [
            {"step": i} | {part: seconds + self._host.get(i, {}).get(part, 0.0) for part, seconds in parts.items()}
            for i, parts in self._by_devices().items()
        ]

    def totals(self) -> dict[str, float]:
        """Seconds of each part over all steps: the host's, and the devices' as if every step were like those timed."""
        timed = self._by_devices().values()
        return {
            part: sum(parts[part] for parts in timed) * self._steps / max(len(timed), 1)
            + sum(line[part] for line in self._host.values())
            for part in STEPS
        }

    def _by_devices(self) -> dict[int, dict]:
        """Seconds of the parts of the timed steps, added over the devices."""
        out = {}
        for i, line in self._lines.items():
            told = out[i] = dict.fromkeys(STEPS, 0.0)
            for index in {entry[0] for entry in line}:
                marks = [(part, mark) for where, part, mark in line if where == index]
                for (part, mark), (_, following) in zip(marks, marks[1:], strict=False):
                    if part in told:
                        told[part] += following.seconds_since(mark)
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
        self.seconds = dict.fromkeys(STEPS, 0.0)

    @property
    def name(self) -> str:
        names = [share.device.name for share in self.shares]
        product = next((share.product.name for share in self.shares if share.product), "own kernels")
        return f"{', '.join(names)}; {product}"

    def _share(self, t: int) -> Share:
        return self.shares[t % len(self.shares)]

    def factor(self, ab: np.ndarray, flush_above: float) -> None:
        """Factors ab; where the host makes panels subnormals are flushed if max |a_ij| is above `flush_above`."""
        times, size = Timeline(self.layout.p), 0.0
        if self.host_panels:  # a pivot search of LAPACK among NaN may answer anything; devices look for it in passing
            size = largest(ab, self.layout.kl, self.layout.ku)
            if not np.isfinite(size):
                raise NotFinite
        with one_thread(), FlushSubnormals() if size > flush_above else nullcontext():
            self.run(Feed(self.shares, ab), times)
        if not np.isfinite(self.largest_given):
            raise NotFinite
        self._gather_pivots()
        if self.on_one_device:
            self._substitution.forget_pivots()
        if self.home is not None:
            self.home.panel_pivots, self.home.info = self._panel_pivots, self.info
        elif hasattr(self, "_copy_home"):
            del self._copy_home
        self.timeline, self.seconds = times.steps(), times.totals()

    def run(self, feed: Feed | None, times: Timeline) -> None:
        """All steps, and waits for them; without a feed the matrix is where it should be already."""
        self.info = 0
        for share in self.shares:
            share.rewind()
        if feed:
            began = time.perf_counter()
            feed.until(self.layout.last(0) + (LOADED if self.resident else 0))
            times.host(0, "copy", time.perf_counter() - began)
        if self.host_panels:
            self._share(0).fetch(0)
            for i in range(self.layout.p):
                self._step_with_host(i, feed, times)
        else:
            self._factor_on_devices(feed, times)
        for share in self.shares:
            share.device.finish()

    @property
    def largest_given(self) -> float:
        """max |a_ij| of the matrix that was brought to the devices; infinite where it holds NaN."""
        return float(max(share.largest.read()[share.index :: len(self.shares)].max(initial=0) for share in self.shares))

    def _factor_on_devices(self, feed: Feed | None, times: Timeline) -> None:
        """Two queues a device: the panel of step i + 1 is made while step i updates the block columns behind it."""
        layout, lag = self.layout, 0 if self.resident else TRAYS - 2
        self._begin_panel(0, times)
        for share in self.shares:
            share.follow_panels()
        for i in range(layout.p):
            times.begin(i)
            if feed and not self.resident:
                self._feed(i, feed, times)
            if i + 1 < layout.p:
                self._begin_panel(i + 1, times)
            if feed and self.resident:  # later, so that the panel does not wait for what comes
                self._feed(i, feed, times)
            for share in self.shares:
                start, columns = share.own(i + 2, layout.last(i))
                share.step(i, start, columns, self._place(share, i), times.mark)
                times.mark("end", share)
            for share in self.shares:
                share.follow_panels()
            if i >= lag:
                self._bring_home(i - lag, times)
        for i in range(max(layout.p - lag, 0), layout.p):
            self._bring_home(i, times)

    def _begin_panel(self, i: int, times: Timeline) -> None:
        """Panel i on the overtaking queue: step i - 1 of its block column, the panel, and its way to all devices."""
        maker = self._share(i)
        for share in self.shares:
            share.panels_follow()
        mark = partial(times.mark, queue="panels")
        with maker.queue:
            if 0 < i <= self.layout.last(i - 1):
                maker.step(i - 1, i, 1, self._place(maker, i - 1), mark, ahead=True)
            mark("panel", maker)
            maker.factor_panel(i)
            mark("copy", maker)
            if len(self.shares) > 1 or not self.resident:  # a slot that streams is refilled while the panel is in use
                following = maker.index + 1  # needs it first
                maker.publish(i, self.shares[following:] + self.shares[: maker.index], not self.resident)
            if not self.resident:
                maker.fetch(i)
            mark("end", maker)

    def _feed(self, i: int, feed: Feed, times: Timeline) -> None:
        """Brings the block columns of the coming steps; one that streams takes the place of block column i."""
        began = time.perf_counter()
        feed.until(i + self.layout.u + (LOADED + 1 if self.resident else 1))
        times.host(i, "copy", time.perf_counter() - began)

    def _bring_home(self, i: int, times: Timeline) -> None:
        if self.resident:
            return
        began = time.perf_counter()
        self.home.flat[i * self.layout.stride : (i + 1) * self.layout.stride] = self._share(i).fetched(i)
        times.host(i, "copy", time.perf_counter() - began)

    def _place(self, share: Share, i: int) -> tuple:
        """Where a device finds panel i, in its own matrix or in a panel buffer, and the panel's pivots."""
        if self.resident and not self.host_panels and share is self._share(i):
            panel = share.matrix, share.diagonal_at(i), self.layout.height
        else:
            panel = share.panels[i % 2], 0, self.layout.rows(i)
        if self.host_panels or share is self._share(i):
            return panel, (share.pivots, i * self.layout.s)
        return panel, (share.panels[i % 2], share.pivots_in_panel)

    def _step_with_host(self, i: int, feed: Feed | None, times: Timeline) -> None:
        """The paper's step: the next block column first, so that the host has its panel while the rest is updated."""
        layout = self.layout
        self._host_panel(i, times)
        times.begin(i)
        if i + 1 < layout.p:
            share = self._share(i + 1)
            share.step(i, i + 1, int(i + 1 <= layout.last(i)), self._place(share, i), times.mark, ahead=True)
            share.fetch(i + 1)
            times.mark("end", share)
        if feed:
            self._feed(i, feed, times)
        for share in self.shares:
            start, columns = share.own(i + 2, layout.last(i))
            share.step(i, start, columns, self._place(share, i), times.mark)
            times.mark("end", share)

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
        start = chunk.ctypes.data + layout.u * s * self.dtype.itemsize
        info = self._lapack.factor(rows, s, start, layout.height, pivots.ctypes.data)
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
            from renderer.numerics.band_lu.lapack import Lapack

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
        self._substitution(known, self._panel_pivots)

    @cached_property
    def _substitution(self) -> Substitution:
        return Substitution(self.shares[0])
