"""Band LU over q devices (paper 4): block column i on device i mod q; panels factored by the host or the device.

Either all block columns of a device stay resident, or only the u + 1 that a step can change: then a finished block
column is downloaded while the next one is uploaded, so that the matrix may be larger than the devices' memory. The
next block column is updated first (look-ahead, as in HPL and MAGMA), on a priority queue, so that its panel is
factored and broadcast while the devices still update the rest.
"""

import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np

from renderer.gpu import Buffer, Device
from renderer.numerics.band_lu.block_columns import BlockLayout, FlushSubnormals, NotFinite, max_abs
from renderer.numerics.band_lu.column_uploader import ColumnUploader
from renderer.numerics.band_lu.device_columns import DeviceColumns, PanelPlace
from renderer.numerics.band_lu.host_factors import PHASES, BlockFactors, single_threaded_blas
from renderer.numerics.band_lu.lapack import Lapack
from renderer.numerics.band_lu.memory import READBACKS
from renderer.numerics.band_lu.phase_timer import PhaseTimer
from renderer.numerics.band_lu.substitution import Substitution

PREFETCHED_COLUMNS = 2  # block columns that resident factors upload before the step that needs them


@dataclass(frozen=True)
class Schedule:
    """Where block columns are and who factors panels.

    With our own GEMM instead of the vendor's the factors have the same bits on any number of devices, resident or
    streamed; the vendor's float32 GEMM may round otherwise where block columns are stored otherwise.
    """

    is_resident: bool  # all block columns stay on the devices; else only those of one step
    host_panels: bool  # the host factors panels, else the devices
    vendor_gemm: bool = True
    keeps_band: bool = False  # the one device keeps the matrix too, for residuals


class BlockCyclicFactors:
    """Factors made by devices. With `is_resident` they stay there until download(), else they go to the host."""

    def __init__(self, layout: BlockLayout, dtype, devices: Sequence[Device], schedule: Schedule):
        self.layout, self.dtype, self.devices = layout, np.dtype(dtype), devices
        self.is_resident, self.host_panels, self.info = schedule.is_resident, schedule.host_panels, 0
        keeps_band = schedule.keeps_band and len(devices) == 1
        self.per_device = [
            DeviceColumns(
                device, k, len(devices), layout, dtype, schedule.is_resident, schedule.vendor_gemm, keeps_band
            )
            for k, device in enumerate(devices)
        ]
        self._host = None if schedule.is_resident else BlockFactors(layout, dtype)  # or what download() has made
        self._panel_pivots = np.zeros(layout.p * layout.s, np.int32)
        self._lapack = Lapack(dtype) if self.host_panels else None
        self._substitution: Substitution | None = None
        self.step_seconds: list[dict] = []
        self.seconds = dict.fromkeys(PHASES, 0.0)

    @property
    def name(self) -> str:
        """The devices, and whose GEMM they run."""
        names = [columns.device.name for columns in self.per_device]
        gemm = next((columns.vendor_blas.name for columns in self.per_device if columns.vendor_blas), "own kernels")
        return f"{', '.join(names)}; {gemm}"

    def _owner(self, t: int) -> DeviceColumns:
        return self.per_device[t % len(self.per_device)]

    def factor(self, ab: np.ndarray, flush_above: float) -> None:
        """Factors ab; where the host factors panels, subnormals are flushed if max |a_ij| is above `flush_above`.

        NotFinite if ab holds NaN or infinity. LAPACK's pivot search is undefined for NaN, so the host checks first;
        devices check while they load block columns.
        """
        timer, size = PhaseTimer(self.layout.p), 0.0
        if self.host_panels:
            size = max_abs(ab, self.layout.kl, self.layout.ku)
            if not np.isfinite(size):
                raise NotFinite
        with single_threaded_blas(), FlushSubnormals() if size > flush_above else nullcontext():
            self.run(ColumnUploader(self.per_device, ab), timer)
        if not np.isfinite(self.max_abs_a):
            raise NotFinite
        self._gather_pivots()
        if self._substitution:
            self._substitution.invalidate_pivots()
        self.step_seconds, self.seconds = timer.step_seconds(), timer.totals()

    def run(self, uploader: ColumnUploader | None, timer: PhaseTimer) -> None:
        """All steps, and waits for them; without an uploader the matrix is on the devices already."""
        self.info = 0
        if self.is_resident:
            self._host = None
        for columns in self.per_device:
            columns.reset()
        if uploader:
            began = time.perf_counter()
            uploader.upload_through(self.layout.last_updated(0) + (PREFETCHED_COLUMNS if self.is_resident else 0))
            timer.add_host_seconds(0, "copy", time.perf_counter() - began)
        if self.host_panels:
            self._owner(0).start_download(0)
            for i in range(self.layout.p):
                self._step_with_host(i, uploader, timer)
        else:
            self._factor_on_devices(uploader, timer)
        for columns in self.per_device:
            columns.device.finish()

    @property
    def max_abs_a(self) -> float:
        """The maximum of |a_ij| of the matrix that was uploaded; infinite where it holds NaN."""
        count = len(self.per_device)
        return float(max(c.max_abs.read()[c.index :: count].max(initial=0) for c in self.per_device))

    def _factor_on_devices(self, uploader: ColumnUploader | None, timer: PhaseTimer) -> None:
        """Two queues a device: the panel of step i + 1 is factored while step i updates the block columns behind it."""
        layout, lag = self.layout, 0 if self.is_resident else READBACKS - 2
        self._start_panel(0, timer)
        for columns in self.per_device:
            columns.update_queue_waits()
        for i in range(layout.p):
            timer.start_step(i)
            if uploader and not self.is_resident:
                self._upload(i, uploader, timer)
            if i + 1 < layout.p:
                self._start_panel(i + 1, timer)
            if uploader and self.is_resident:  # later, so that the panel does not wait for uploads
                self._upload(i, uploader, timer)
            self._update_trailing(i, timer)
            for columns in self.per_device:
                columns.update_queue_waits()
            if i >= lag:
                self._download_column(i - lag, timer)
        for i in range(max(layout.p - lag, 0), layout.p):
            self._download_column(i, timer)

    def _update_trailing(self, i: int, timer: PhaseTimer) -> None:
        """Step i of all block columns behind the look-ahead one."""
        for columns in self.per_device:
            start, count = columns.local_columns(i + 2, self.layout.last_updated(i))
            columns.launch_step(i, start, count, self._panel_place(columns, i), timer.timestamp)
            timer.timestamp("end", columns)

    def _start_panel(self, i: int, timer: PhaseTimer) -> None:
        """Panel i on the priority queue: step i - 1 of its block column, its factorization, its broadcast."""
        owner = self._owner(i)
        for columns in self.per_device:
            columns.panel_queue_waits()
        timestamp = timer.in_panel_queue()
        with owner.queue:
            if 0 < i <= self.layout.last_updated(i - 1):
                owner.launch_step(i - 1, i, 1, self._panel_place(owner, i - 1), timestamp, ahead=True)
            timestamp("panel", owner)
            owner.factor_panel(i)
            timestamp("copy", owner)
            if len(self.per_device) > 1 or not self.is_resident:  # a streamed slot is overwritten while still in use
                following = owner.index + 1  # needs it first
                others = self.per_device[following:] + self.per_device[: owner.index]
                owner.broadcast_panel(i, others, not self.is_resident)
            if not self.is_resident:
                owner.start_download(i)
            timestamp("end", owner)

    def _upload(self, i: int, uploader: ColumnUploader, timer: PhaseTimer) -> None:
        """Uploads the block columns of the coming steps; a streamed one takes the slot of block column i."""
        began = time.perf_counter()
        uploader.upload_through(i + self.layout.u + (PREFETCHED_COLUMNS + 1 if self.is_resident else 1))
        timer.add_host_seconds(i, "copy", time.perf_counter() - began)

    def _download_column(self, i: int, timer: PhaseTimer) -> None:
        if self._host is None:
            return
        began = time.perf_counter()
        self._host.column(i)[:] = self._owner(i).wait_download(i)
        timer.add_host_seconds(i, "copy", time.perf_counter() - began)

    def _panel_place(self, columns: DeviceColumns, i: int) -> PanelPlace:
        """Where a device has panel i, in its own matrix or in a panel buffer, and the panel's pivots."""
        is_owner = columns is self._owner(i)
        if self.is_resident and not self.host_panels and is_owner:
            panel = columns.matrix, columns.diagonal_offset(i), self.layout.ld
        else:
            panel = columns.panels[i % 2], 0, self.layout.panel_rows(i)
        if is_owner and not self.host_panels:
            return panel, (columns.pivots, i * self.layout.s)
        return panel, (columns.panels[i % 2], columns.pivots_in_panel)

    def _step_with_host(self, i: int, uploader: ColumnUploader | None, timer: PhaseTimer) -> None:
        """The paper's step: the next block column first, so that the host has its panel while the rest is updated."""
        layout = self.layout
        self._factor_host_panel(i, timer)
        timer.start_step(i)
        if i + 1 < layout.p:
            owner = self._owner(i + 1)
            count = int(i + 1 <= layout.last_updated(i))
            owner.launch_step(i, i + 1, count, self._panel_place(owner, i), timer.timestamp, ahead=True)
            owner.start_download(i + 1)
            timer.timestamp("end", owner)
        if uploader:
            self._upload(i, uploader, timer)
        self._update_trailing(i, timer)

    def _factor_host_panel(self, i: int, timer: PhaseTimer) -> None:
        """The panel of block column i by LAPACK on one core, and its upload to every device."""
        assert self._lapack is not None
        layout, s = self.layout, self.layout.s
        began = time.perf_counter()
        column = self._owner(i).wait_download(i)
        chunk = column.copy() if self._host is None else self._host.column(i)
        chunk[:] = column
        downloaded = time.perf_counter()
        rows, pivots = layout.panel_rows(i), self._panel_pivots[i * s : (i + 1) * s]
        start = chunk.ctypes.data + layout.u * s * self.dtype.itemsize
        info = self._lapack.getrf(rows, s, start, layout.ld, pivots.ctypes.data)
        if info and not self.info:
            self.info = i * s + info
        factored = time.perf_counter()
        panel = chunk[: s * layout.ld].reshape(s, layout.ld)[:, layout.u * s : layout.u * s + rows]
        for columns in self.per_device:
            columns.upload_panel(i, panel, pivots)
        timer.add_host_seconds(i, "panel", factored - downloaded)
        timer.add_host_seconds(i, "copy", downloaded - began + time.perf_counter() - factored)

    def _gather_pivots(self) -> None:
        """Reads the pivots and info of panels that devices factored."""
        if self.host_panels:
            return
        owners = np.arange(self.layout.p) % len(self.per_device)
        for columns in self.per_device:
            is_own = np.repeat(owners == columns.index, self.layout.s)
            self._panel_pivots[is_own] = columns.pivots.read()[is_own]
            info = int(columns.info.read()[0])
            if info and (not self.info or info < self.info):
                self.info = info

    def download(self) -> BlockFactors:
        """The factors in host memory, downloaded once."""
        if self._host is None:
            self._host = BlockFactors(self.layout, self.dtype)
            for columns in self.per_device:
                slots = columns.matrix.read().reshape(columns.slots, self.layout.stride)
                for t, slot in zip(range(columns.index, self.layout.p, len(self.per_device)), slots, strict=False):
                    self._host.column(t)[:] = slot
        self._host.panel_pivots = self._panel_pivots
        return self._host

    def pivots(self) -> np.ndarray:
        """(n,) int32: the row that was interchanged with row j at step j, from 0: LAPACK's ipiv - 1."""
        return self.layout.global_pivots(self._panel_pivots)

    def upper(self) -> np.ndarray:
        """U (kl + ku + 1, n) as LAPACK stores it."""
        return self.download().upper()

    def diagonal(self) -> np.ndarray:
        """U's diagonal (n,)."""
        return self._upper_stats()[1]

    def max_abs_u(self) -> float:
        """The maximum of |u_ij|."""
        return float(self._upper_stats()[0].max())

    def _upper_stats(self) -> tuple[np.ndarray, np.ndarray]:
        if not self.is_resident:
            factors = self.download()
            return np.array([factors.max_abs_u()]), factors.diagonal()
        stats = [columns.upper_stats() for columns in self.per_device]
        return np.sum([s[0] for s in stats], axis=0), np.sum([s[1] for s in stats], axis=0)

    def solve(self, b: np.ndarray, transposed: bool) -> np.ndarray:
        """The solution x (n, m): on the devices where they have all factors, else by the host."""
        if not self.is_resident:
            return self.download().solve(b, transposed)
        layout = self.layout
        padded = np.zeros((b.shape[1], layout.p * layout.s), self.dtype)
        padded[:, : layout.n] = b.T
        return self._made_substitution().solve(padded, self._panel_pivots, transposed)[:, : layout.n].T

    @property
    def on_one_device(self) -> bool:
        """Whether one device holds all factors, so that it can solve by itself."""
        return self.is_resident and len(self.per_device) == 1

    def solve_in_place(self, rhs: Buffer) -> None:
        """Replaces right-hand sides (m, p s), zero from column n on, on the one device by the solutions."""
        self._made_substitution().solve_in_place(rhs, self._panel_pivots)

    def _made_substitution(self) -> Substitution:
        if self._substitution is None:
            self._substitution = Substitution(self.per_device)
        return self._substitution
