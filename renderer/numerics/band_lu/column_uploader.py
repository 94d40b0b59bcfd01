"""Uploads the block columns of a band matrix to its devices in order, while they work on earlier ones."""

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache

import numpy as np

from renderer.host import available_cores
from renderer.numerics.band_lu.device_columns import DeviceColumns
from renderer.numerics.band_lu.memory import gather_chunk

MAX_GATHER_THREADS = 16
MIN_THREAD_BYTES = 1 << 19  # that are worth a thread


@cache
def _gather_threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(min(available_cores(), MAX_GATHER_THREADS))


class ColumnUploader:
    """Gathers block columns of ab from its rows, several at a time by several cores, and uploads them.

    Rows of ab are far apart in memory, so a thread copies a range of rows of all block columns of a chunk. The next
    chunk is gathered while the caller launches work on the last. One device that has all block columns gets the chunk
    by one copy: with narrow bands a copy for each takes the host longer than the device takes to factor it.
    """

    def __init__(self, per_device: list[DeviceColumns], ab: np.ndarray):
        layout = per_device[0].layout
        self._per_device, self._ab, self._width, self._end = per_device, ab, layout.s, layout.p
        self._chunk, self._span = gather_chunk(layout, ab.dtype), per_device[0].upload_span
        self._slots = per_device[0].upload_slots * len(per_device)
        self._jobs: deque[list[Future]] = deque()
        self._started = self._gathered = self._uploaded = 0  # block columns: being gathered, gathered, being uploaded

    def upload_through(self, t: int) -> None:
        """Starts to upload all block columns up to t that are not on their way yet."""
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
        """Starts to gather as many chunks as the staging buffers have room for."""
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
