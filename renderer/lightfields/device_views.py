"""Holds the views of a light field on a device, or streams them in bands of rows through two staging buffers.

renderer/pictures/lightfield.py launches its kernels by DeviceViews.for_each_band(), which hides the difference.
"""

from collections.abc import Callable, Sequence

import numpy as np

from renderer.errors import UnavailableError
from renderer.gpu import Buffer, Device
from renderer.gpu.device import StagingBuffer
from renderer.lightfields.aperture import VIEW_SHIFT
from renderer.lightfields.light_field import LightField

GUARD_ROWS = 12  # rows of bytes before and after the views that a kernel may read, and ignore
STAGING_BYTES = 64 << 20  # bytes that are uploaded at a time
MEMORY_FRACTION = 0.7  # fraction of the device's memory that a light field may use
GROUP_SIZE = 64  # threads of a group


def row_pitch(field: LightField) -> int:
    """Returns the bytes from one row of a view to the next on the device: a multiple of 16."""
    return -(-int(field.pixels.shape[2]) * int(field.pixels.shape[3]) // 16) * 16


class DeviceViews:
    """Views in device memory if they fit into `max_bytes` (0: MEMORY_FRACTION of the device's), else streamed."""

    def __init__(self, device: Device, field: LightField, max_bytes: int) -> None:
        """Upload the views, if they fit."""
        count, height = field.pixels.shape[:2]
        self._device, self._field, self._pitch = device, field, row_pitch(field)
        self._guard = GUARD_ROWS * self._pitch
        self._bytes = 2 * self._guard + count * height * self._pitch
        properties = device.properties
        self._max_bytes = max_bytes or min(int(MEMORY_FRACTION * properties.memory_bytes), properties.max_buffer_bytes)
        self._staging_buffers: list[StagingBuffer] = []
        self._capacity = 0  # bytes of a staging buffer
        self._records: np.ndarray | None = None
        self._views = self._upload() if self._bytes <= self._max_bytes else None

    @property
    def storage(self) -> str:
        """Returns a description of the views' storage, for reports."""
        if self._views is None:
            return "streamed in bands of rows"
        return f"{self._bytes / 2**20:.0f} MiB on the device"

    def for_each_band(
        self, records: np.ndarray, target: Buffer, work: Callable[[Buffer, int, int, int, int], None]
    ) -> None:
        """Writes the VIEW_SHIFT records to the buffer `target`, and calls `work` for each band of rows.

        work(views, first_stored_row, stored_rows, begin_row, end_row) computes rows begin_row to end_row from a buffer
        that holds `stored_rows` rows of each view.
        """
        height = self._field.pixels.shape[1]
        if self._views is not None:
            self._write_records(records, records, target)
            work(self._views, 0, height, 0, height)
            return
        chosen = records["view"].copy()
        renumbered = records.copy()
        renumbered["view"] = np.arange(len(records))
        self._write_records(records, renumbered, target)
        above, below = (-int(records["row"].min()), int(records["row"].max()) + 1) if len(records) else (0, 0)
        rows = self._band_rows(len(chosen), above + below)
        for number, begin in enumerate(range(0, height, rows)):
            end = min(begin + rows, height)
            first = min(max(begin - above, 0), height - 1)
            last = max(min(end + below, height), first + 1)
            staging = self._staging_buffers[number % 2]
            used = self._pack(staging.map(), chosen, first, last)
            band = first, last - first, begin, end

            def work_on(views: Buffer, band: tuple[int, int, int, int] = band) -> None:
                work(views, *band)

            staging.upload_then(used, work_on)

    def _write_records(self, records: np.ndarray, renumbered: np.ndarray, target: Buffer) -> None:
        """Write the renumbered records to the start of the buffer, unless they are there already."""
        if records is not self._records:  # a picture keeps its array of records until its camera changes
            padded = np.zeros(target.shape, VIEW_SHIFT)
            padded[: len(records)] = renumbered
            target.write(padded)
            self._records = records

    def _band_rows(self, views: int, margin: int) -> int:
        """Returns the rows of a band for which the rows of `views` views fit a staging buffer; allocates the buffers.

        `margin` is the number of further rows that shifts need. UnavailableError if one row of a band is too large.
        """
        row_bytes = max(views, 1) * self._pitch
        least = 2 * self._guard + (margin + 1) * row_bytes
        wanted = max(min(STAGING_BYTES, self._max_bytes // 2), least)
        if wanted > self._device.properties.max_buffer_bytes:
            raise UnavailableError(
                f"{self._device.name}: one row of the refocused picture needs {least >> 20} MiB of the views; "
                "a smaller aperture or disparity needs less"
            )
        if not self._staging_buffers or self._capacity < wanted:
            self._staging_buffers, self._capacity = [], wanted  # free the old ones first
            self._staging_buffers = [self._device.staging_buffer(wanted), self._device.staging_buffer(wanted)]
        return max(1, (self._capacity - 2 * self._guard) // row_bytes - margin)

    def _pack(self, staging: np.ndarray, chosen: Sequence[int] | np.ndarray, first: int, last: int) -> int:
        """Copies rows first to last of the chosen views in the kernels' layout; returns the bytes used."""
        pixels = self._field.pixels
        line = pixels.shape[2] * pixels.shape[3]
        used = 2 * self._guard + len(chosen) * (last - first) * self._pitch
        rows = staging[self._guard : used - self._guard].reshape(len(chosen), last - first, self._pitch)
        for index, view in enumerate(chosen):
            rows[index, :, :line] = pixels[view, first:last].reshape(last - first, line)
        return used

    def _upload(self) -> Buffer:
        """Allocates a device buffer and copies all views into it, in blocks of at most about STAGING_BYTES."""
        count, height = self._field.pixels.shape[:2]
        view_bytes = height * self._pitch
        views = self._device.buffer(self._bytes, "u1")
        block = max(1, STAGING_BYTES // view_bytes)
        staging_buffers = [
            self._device.staging_buffer(min(block, count) * view_bytes + 2 * self._guard) for _ in range(2)
        ]
        # the file needs all constants; copy_views reads GUARD_BYTES alone
        constants = dict(WIDTH=1, HEIGHT=1, CHANNELS=3, PITCH=16, GUARD_BYTES=self._guard, VIEW_SHIFT=VIEW_SHIFT)
        copy = self._device.kernel("lightfields/lightfield.cu", "copy_views", group_size=GROUP_SIZE, **constants)
        for number, start in enumerate(range(0, count, block)):
            staging, chosen = staging_buffers[number % 2], range(start, min(start + block, count))
            used = self._pack(staging.map(), chosen, 0, height)
            words, offset = (used - 2 * self._guard) // 16, np.uint64(self._guard + start * view_bytes)

            def copy_block(staged: Buffer, offset: np.uint64 = offset, words: int = words) -> None:
                copy(words, staged, views, offset, words)

            staging.upload_then(used, copy_block)
        self._device.finish()
        return views
