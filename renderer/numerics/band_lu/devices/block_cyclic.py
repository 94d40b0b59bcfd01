"""Band LU over q devices, for solver.py: block column i on device i mod q (block-cyclic, as in ScaLAPACK).

Either all block columns stay resident, or only the u + 1 that one step can change: then finished block columns are
downloaded while the next ones are uploaded, so the matrix may be larger than device memory. Step i updates block column
i + 1 first, on a priority queue (look-ahead, as in HPL and MAGMA), so that its panel is factored and broadcast while
the devices update the remaining block columns. Only tests run this on CPU devices: LAPACK is 6 to 20 times as fast.

BlockCyclicFactors runs the steps, ColumnUploader gathers and uploads block columns, PhaseTimer measures the phases.
device_columns.py has the storage and kernels of one device, substitution.py the solves.

Letters as in block_columns.py: n columns of the matrix in p block columns of s columns, l blocks below and u blocks
above the diagonal block, leading dimension ld; kl, ku and the band array ab (kl + ku + 1, n) as in LAPACK. Step i
factors panel i, which is block column i from its diagonal block down, and updates block columns t > i with it.
"""

import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache

import numpy as np
from numpy.typing import DTypeLike

from renderer.gpu import Buffer, Device
from renderer.gpu.device import Timestamp
from renderer.host import available_cores
from renderer.numerics.band_lu.block_columns import BlockLayout, NotFinite
from renderer.numerics.band_lu.devices.device_columns import DeviceColumns, PanelMemory, PhaseMark
from renderer.numerics.band_lu.devices.substitution import Substitution
from renderer.numerics.band_lu.host_factors import PHASES, BlockFactors
from renderer.numerics.band_lu.memory import READBACKS, gather_chunk
from renderer.records import dataclass

PREFETCHED_COLUMNS = 2  # resident factors upload a block column this many steps before its first use
MAX_GATHER_THREADS = 16
MIN_THREAD_BYTES = 1 << 19  # bytes that a gathering thread must at least have to copy, to be worth its start
MAX_TIMED_STEPS = 64  # a step has a dozen timestamps, and each takes the host some microseconds


@dataclass(frozen=True)
class Schedule:
    """Choices for a factorization on devices.

    Without `vendor_gemm` the factors have the same bits for any number of devices, resident or streamed; the rounding
    of the vendor's float32 GEMM may depend on the addresses of the block columns.
    """

    is_resident: bool  # all block columns stay on the devices; else u + 1 at a time
    vendor_gemm: bool = True  # update by cuBLAS where available, else by our own kernels
    keeps_band: bool = False  # a single device also keeps the matrix, for residuals


class BlockCyclicFactors:
    """P L U computed by devices; resident factors stay there until download(), others are in host memory."""

    def __init__(self, layout: BlockLayout, dtype: DTypeLike, devices: Sequence[Device], schedule: Schedule):
        self.layout, self.dtype, self.devices = layout, np.dtype(dtype), devices
        self.is_resident, self.info = schedule.is_resident, 0
        keeps_band = schedule.keeps_band and len(devices) == 1
        options = layout, dtype, schedule.is_resident, schedule.vendor_gemm, keeps_band
        self.per_device = [DeviceColumns(device, k, len(devices), *options) for k, device in enumerate(devices)]
        self._host = None if schedule.is_resident else BlockFactors(layout, dtype)  # set by download() if resident
        self._panel_pivots = np.zeros(layout.p * layout.s, np.int32)
        self._substitution: Substitution | None = None
        self.step_seconds: list[dict[str, float]] = []
        self.seconds = dict.fromkeys(PHASES, 0.0)

    @property
    def name(self) -> str:
        """The names of the devices and of their GEMM library."""
        names = [columns.device.name for columns in self.per_device]
        gemm = next((columns.vendor_blas.name for columns in self.per_device if columns.vendor_blas), "own kernels")
        return f"{', '.join(names)}; {gemm}"

    def _owner(self, t: int) -> DeviceColumns:
        return self.per_device[t % len(self.per_device)]

    def factor(self, ab: np.ndarray, flush_above: float) -> None:
        """Factors ab; NotFinite if it holds NaN or infinity. `flush_above` is for factors on the host.

        Devices find numbers that are not finite while they load block columns.
        """
        timer = PhaseTimer(self.layout.p)
        self.run(ColumnUploader(self.per_device, ab), timer)
        if not np.isfinite(self.max_abs_a):
            raise NotFinite
        self._gather_pivots()
        if self._substitution:
            self._substitution.invalidate_pivots()
        self.step_seconds, self.seconds = timer.step_seconds(), timer.totals()

    def run(self, uploader: "ColumnUploader | None", timer: "PhaseTimer") -> None:
        """Runs all steps and waits for the devices; without an uploader the matrix is on the devices already."""
        self.info = 0
        if self.is_resident:
            self._host = None
        for columns in self.per_device:
            columns.reset()
        if uploader:
            began = time.perf_counter()
            uploader.upload_through(self.layout.last_updated(0) + (PREFETCHED_COLUMNS if self.is_resident else 0))
            timer.add_host_seconds(0, "copy", time.perf_counter() - began)
        self._factor_on_devices(uploader, timer)
        for columns in self.per_device:
            columns.device.finish()

    @property
    def max_abs_a(self) -> float:
        """The maximum of |a_ij| of the uploaded matrix; infinite if it holds NaN."""
        count = len(self.per_device)
        # Row t of `max_abs` is written by the owner of block column t: devices own every count-th row.
        return float(max(c.max_abs.read()[c.index :: count].max(initial=0) for c in self.per_device))

    def _factor_on_devices(self, uploader: "ColumnUploader | None", timer: "PhaseTimer") -> None:
        """All steps with two queues per device: panel i + 1 is factored while step i updates the remaining columns.

        In step i the host waits for the download of streamed block column i - lag. The downloads of block columns
        i - lag to i + 1 are under way then: lag + 2 of them, as many as a device has readback buffers (memory.py).
        """
        layout, lag = self.layout, 0 if self.is_resident else READBACKS - 2
        self._start_panel(0, timer)
        for columns in self.per_device:
            columns.main_queue_waits_for_panels()
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
                columns.main_queue_waits_for_panels()
            if i >= lag:
                self._download_column(i - lag, timer)
        for i in range(max(layout.p - lag, 0), layout.p):
            self._download_column(i, timer)

    def _update_trailing(self, i: int, timer: "PhaseTimer") -> None:
        """Step i of all block columns right of the look-ahead block column."""
        for columns in self.per_device:
            start, count = columns.local_columns(i + 2, self.layout.last_updated(i))
            columns.launch_step(i, start, count, self._panel_memory(columns, i), timer.timestamp)
            timer.timestamp("end", columns)

    def _start_panel(self, i: int, timer: "PhaseTimer") -> None:
        """Queues on the priority queue: step i - 1 of block column i, the factorization of panel i, its broadcast."""
        owner = self._owner(i)
        for columns in self.per_device:
            columns.panel_queue_waits_for_main()
        timestamp = timer.in_panel_queue()
        with owner.queue:
            if 0 < i <= self.layout.last_updated(i - 1):
                owner.launch_step(i - 1, i, 1, self._panel_memory(owner, i - 1), timestamp, ahead=True)
            timestamp("panel", owner)
            owner.factor_panel(i)
            timestamp("copy", owner)
            if len(self.per_device) > 1 or not self.is_resident:  # a streamed slot is overwritten while still in use
                # The device after the owner factors panel i + 1, so it needs panel i first.
                others = self.per_device[owner.index + 1 :] + self.per_device[: owner.index]
                owner.broadcast_panel(i, others, not self.is_resident)
            if not self.is_resident:
                owner.start_download(i)
            timestamp("end", owner)

    def _upload(self, i: int, uploader: "ColumnUploader", timer: "PhaseTimer") -> None:
        """Uploads block columns for the next steps.

        A streamed upload copies block column i + u + 1 into the slot of block column i, which is finished.
        """
        began = time.perf_counter()
        uploader.upload_through(i + self.layout.u + (PREFETCHED_COLUMNS + 1 if self.is_resident else 1))
        timer.add_host_seconds(i, "copy", time.perf_counter() - began)

    def _download_column(self, i: int, timer: "PhaseTimer") -> None:
        """Waits for the download of block column i and stores it in host memory, unless factors are resident."""
        if self._host is None:
            return
        began = time.perf_counter()
        self._host.column(i)[:] = self._owner(i).wait_download(i)
        timer.add_host_seconds(i, "copy", time.perf_counter() - began)

    def _panel_memory(self, columns: DeviceColumns, i: int) -> PanelMemory:
        """The memory of panel i and of its pivots on a device: in the matrix or in a panel buffer.

        Returns ((buffer, offset, leading dimension) of the panel, (buffer, offset in int32) of the pivots).
        """
        is_owner = columns is self._owner(i)
        if self.is_resident and is_owner:
            panel = columns.matrix, columns.diagonal_offset(i), self.layout.ld
        else:
            panel = columns.panels[i % 2], 0, self.layout.panel_rows(i)
        if is_owner:
            return panel, (columns.pivots, i * self.layout.s)
        return panel, (columns.panels[i % 2], columns.pivots_in_panel)

    def _gather_pivots(self) -> None:
        """Reads the pivots and info of the panels that the devices factored."""
        owners = np.arange(self.layout.p) % len(self.per_device)
        for columns in self.per_device:
            is_owned = np.repeat(owners == columns.index, self.layout.s)
            self._panel_pivots[is_owned] = columns.pivots.read()[is_owned]
        infos = [int(columns.info.read()[0]) for columns in self.per_device]
        self.info = min(filter(None, infos), default=0)  # the first column (from 1) with a zero pivot, or 0

    def download(self) -> BlockFactors:
        """The factors in host memory, downloaded once."""
        if self._host is None:
            self._host = BlockFactors(self.layout, self.dtype)
            for columns in self.per_device:
                slots = columns.matrix.read().reshape(columns.slots, self.layout.stride)
                # slots beyond the last block column of the device are empty, hence not strict
                for t, slot in zip(range(columns.index, self.layout.p, len(self.per_device)), slots, strict=False):
                    self._host.column(t)[:] = slot
        self._host.panel_pivots = self._panel_pivots
        return self._host

    def pivots(self) -> np.ndarray:
        """(n,) int32: the row, counted from 0, that was interchanged with row j in step j (LAPACK's ipiv - 1)."""
        return self.layout.global_pivots(self._panel_pivots)

    def upper(self) -> np.ndarray:
        """U (kl + ku + 1, n) as LAPACK's band array."""
        return self.download().upper()

    def diagonal(self) -> np.ndarray:
        """U's diagonal (n,)."""
        return self._upper_stats()[1]

    def max_abs_u(self) -> float:
        """The maximum of |u_ij|."""
        return float(self._upper_stats()[0].max())

    def _upper_stats(self) -> tuple[np.ndarray, np.ndarray]:
        """Maxima of |u_ij|, by columns or one for all, and the diagonal of U (n,)."""
        if not self.is_resident:
            factors = self.download()
            return np.array([factors.max_abs_u()]), factors.diagonal()
        stats = [columns.upper_stats() for columns in self.per_device]  # 0 for the columns of other devices
        return np.sum([s[0] for s in stats], axis=0), np.sum([s[1] for s in stats], axis=0)

    def solve(self, b: np.ndarray, transposed: bool) -> np.ndarray:
        """The solution x (n, m), computed by the devices if the factors are resident, else by the host."""
        if not self.is_resident:
            return self.download().solve(b, transposed)
        layout = self.layout
        padded = np.zeros((b.shape[1], layout.p * layout.s), self.dtype)
        padded[:, : layout.n] = b.T
        return self._get_substitution().solve(padded, self._panel_pivots, transposed)[:, : layout.n].T

    @property
    def on_one_device(self) -> bool:
        """True if a single device holds all factors."""
        return self.is_resident and len(self.per_device) == 1

    def solve_in_place(self, rhs: Buffer) -> None:
        """Overwrites right-hand sides (m, p s), zero from column n on, on the single device with the solutions."""
        self._get_substitution().solve_in_place(rhs, self._panel_pivots)

    def _get_substitution(self) -> Substitution:
        if self._substitution is None:
            self._substitution = Substitution(self.per_device)
        return self._substitution


@cache
def _gather_threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(min(available_cores(), MAX_GATHER_THREADS))


class ColumnUploader:
    """Uploads the block columns of a band array to their devices in order, while the devices work on earlier ones.

    A block column is a strided piece of every row of ab, so it is gathered in a staging buffer: for a chunk of block
    columns, each thread copies a range of rows. The next chunk is gathered while the caller launches work on the
    previous one. A single device gets a chunk by one copy: for narrow bands a copy per block column would take the host
    longer than the device takes to factor it.
    """

    def __init__(self, per_device: list[DeviceColumns], ab: np.ndarray):
        layout = per_device[0].layout
        self._per_device, self._ab, self._width, self._end = per_device, ab, layout.s, layout.p
        # Numbers of block columns: gathered at once, uploaded by one copy, and held by all staging buffers.
        self._chunk, self._span = gather_chunk(layout, ab.dtype), per_device[0].upload_span
        self._slots = per_device[0].upload_slots * len(per_device)
        self._jobs: deque[list[Future[None]]] = deque()
        self._started = self._gathered = self._uploaded = 0  # block columns: gather begun, gather ended, upload begun

    def upload_through(self, t: int) -> None:
        """Starts the uploads of all block columns up to t that have not started yet."""
        while self._uploaded < min(t + 1, self._end):
            self._gather()
            if self._uploaded == self._gathered:
                for job in self._jobs.popleft():
                    job.result()
                self._gathered = min(self._gathered + self._chunk, self._end)
            self._per_device[self._uploaded % len(self._per_device)].upload_columns(self._uploaded)
            self._uploaded = min(self._uploaded + self._span, self._end)
        self._gather()

    def _gather(self) -> None:
        """Starts to gather as many chunks as the staging buffers can hold."""
        while self._started < self._end and self._started + self._chunk - self._uploaded <= self._slots:
            end = min(self._started + self._chunk, self._end)
            columns = range(self._started, end, self._span)
            targets = [(self._per_device[t % len(self._per_device)].map_column(t), t * self._width) for t in columns]
            threads = max(1, len(targets) * targets[0][0].nbytes // MIN_THREAD_BYTES)
            threads = min(available_cores(), MAX_GATHER_THREADS, threads)
            bounds = np.linspace(0, len(self._ab), threads + 1).astype(int)
            ranges = zip(bounds, bounds[1:], strict=False)
            self._jobs.append([_gather_threads().submit(self._copy_rows, targets, *rows) for rows in ranges])
            self._started = end

    def _copy_rows(self, targets: list[tuple[np.ndarray, int]], first: int, end: int) -> None:
        for target, column in targets:
            target[first:end] = self._ab[first:end, column : column + target.shape[1]]


class PhaseTimer:
    """Seconds of the phases of each step, from timestamps in the queues of the devices that are read at the end.

    At most MAX_TIMED_STEPS steps, equally spaced, are timed; none if not `is_enabled`.
    """

    def __init__(self, steps: int, is_enabled: bool = True):
        self._steps, self._every, self._is_enabled = steps, -(-steps // MAX_TIMED_STEPS), is_enabled
        self._timestamps: dict[int, list[tuple[tuple[int, str], str, Timestamp]]] = {}
        self._host: dict[int, dict[str, float]] = {}
        self._current: list[tuple[tuple[int, str], str, Timestamp]] | None = None

    def start_step(self, i: int) -> None:
        """Begins step i, to which the next timestamps belong."""
        is_timed = self._is_enabled and i % self._every == 0
        self._current = self._timestamps.setdefault(i, []) if is_timed else None

    def timestamp(self, phase: str, columns: DeviceColumns, queue: str = "") -> None:
        """Records the beginning of a phase in a queue of a device; phase "end" only ends the previous phase."""
        if self._current is not None:
            self._current.append(((columns.index, queue), phase, columns.device.timestamp()))

    def in_panel_queue(self) -> PhaseMark:
        """timestamp() for the priority queue of the panels."""
        return lambda phase, columns: self.timestamp(phase, columns, "panels")

    def add_host_seconds(self, i: int, phase: str, seconds: float) -> None:
        """Adds seconds that the host spent on a phase of step i."""
        self._host.setdefault(i, dict.fromkeys(PHASES, 0.0))[phase] += seconds

    def step_seconds(self) -> list[dict[str, float]]:
        """For each timed step its number ("step") and the seconds of its phases, summed over the queues and the host.

        Queues run at the same time, so the sum can exceed the duration of the step.
        """
        return [
            {"step": i} | {phase: seconds + self._host.get(i, {}).get(phase, 0.0) for phase, seconds in phases.items()}
            for i, phases in self._device_seconds().items()
        ]

    def totals(self) -> dict[str, float]:
        """Seconds of each phase over all steps; device seconds are extrapolated from the timed steps."""
        timed = self._device_seconds().values()
        return {
            phase: sum(phases[phase] for phases in timed) * self._steps / max(len(timed), 1)
            + sum(phases[phase] for phases in self._host.values())
            for phase in PHASES
        }

    def _device_seconds(self) -> dict[int, dict[str, float]]:
        """Device seconds of the phases of the timed steps, summed over the queues of all devices."""
        out = {}
        for i, entries in self._timestamps.items():
            seconds = out[i] = dict.fromkeys(PHASES, 0.0)
            for queue in {entry[0] for entry in entries}:
                in_queue = [entry[1:] for entry in entries if entry[0] == queue]
                for (phase, timestamp), (_, following) in zip(in_queue, in_queue[1:], strict=False):
                    if phase in seconds:
                        seconds[phase] += following.seconds_since(timestamp)
        return out
