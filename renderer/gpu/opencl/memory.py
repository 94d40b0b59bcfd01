"""Memory of OpenCL devices: buffers, borrowed and exported memory, staging and readback buffers.

A staging buffer uploads what the host writes, a readback buffer brings results back; both copy on the device's second
queue, beside the kernels, and events order the two queues. A device that shares the host's memory uses staged bytes in
place. gpu/device.py says what each class does for its caller.
"""

from __future__ import annotations

import ctypes
import signal
from collections.abc import Callable
from typing import Protocol, Self, TypeGuard

import numpy as np

from renderer.errors import UnavailableError
from renderer.gpu.device import BorrowedBuffer, Buffer, Device, ReadbackBuffer, convert_errors
from renderer.host import ask_for_large_pages
from renderer.system.process import stop_signals

# Signals during the import of PyOpenCL wait for its end: its C++ initialization calls Python, and a KeyboardInterrupt
# there would abort() the process.
_came: list[int] = []
try:
    with stop_signals(lambda number, frame: _came.append(number)):
        import pyopencl as cl
except ImportError:  # renderer.gpu.opencl.device reports it and lists no device
    cl = None  # type: ignore[assignment]
for _number in _came[:1]:
    signal.raise_signal(_number)

MIN_LARGE_PAGES = 4 << 20  # smallest buffer in bytes for which a processor asks for large pages


class MemoryDevice(Device, Protocol):
    """The members of OpenclDevice that this module uses; opencl/device.py imports this module."""

    _handle: cl.Device
    _context: cl.Context
    _queue: cl.CommandQueue
    _copy_queue: cl.CommandQueue
    _unified: bool  # the device shares the host's memory

    def wait_for_compiler(self) -> None:
        """Waits, open to Ctrl-C, for launches during which the driver may compile."""


class OpenclBuffer(Buffer):
    """Device memory of an OpenCL device; see Buffer."""

    device: MemoryDevice

    def _allocate(self) -> None:
        """Allocates the memory, at least 4 bytes; UnavailableError if it is too large."""
        limit = self.device._handle.max_mem_alloc_size
        try:
            if self.nbytes > limit:  # the error of a driver that refuses; not every driver does
                raise cl.MemoryError("clCreateBuffer", cl.status_code.MEM_OBJECT_ALLOCATION_FAILURE)
            self._memory = cl.Buffer(self.device._context, cl.mem_flags.READ_WRITE, max(self.nbytes, 4))
        except cl.MemoryError as error:
            sizes = f"{self.nbytes / 2**20:.0f} MiB; one buffer may have {limit / 2**20:.0f} MiB"
            raise UnavailableError(f"{self.device.name}: no room for {sizes}") from error
        if self.nbytes >= MIN_LARGE_PAGES and self.device.properties.scalar_threads:
            self._ask_for_large_pages()

    def _ask_for_large_pages(self) -> None:
        """Advises large pages for a processor's untouched memory; sums of it then take two thirds of the time.

        NumPy does the same. A refusal by the operating system has no effect.
        """
        queue, flags = self.device._queue, cl.map_flags.WRITE_INVALIDATE_REGION
        array, _ = cl.enqueue_map_buffer(queue, self._memory, flags, 0, (self.nbytes,), np.dtype(np.uint8))
        ask_for_large_pages(array.ctypes.data, self.nbytes)
        array.base.release(queue)  # unmaps the memory

    def _upload(self, array: np.ndarray) -> None:
        self.device.wait_for_compiler()
        cl.enqueue_copy(self.device._queue, self._memory, array)

    def write_later(self, array: np.ndarray) -> OpenclBuffer:
        """Writes a few bytes without waiting: copies the array now and queues the transfer."""
        self.device.counters.count_upload(self.nbytes)
        self.device.wait_for_compiler()
        # The event keeps the copy alive; releasing the event early would wait for the transfer.
        self._pending = cl.enqueue_copy(self.device._queue, self._memory, array.copy(), is_blocking=False)
        return self

    def _download(self, array: np.ndarray) -> None:
        with convert_errors(cl.Error, f"{self.device.name}: a kernel failed"):
            self.device.wait_for_compiler()
            cl.enqueue_copy(self.device._queue, array, self._memory)

    def _fill(self, byte: int) -> None:
        cl.enqueue_fill_buffer(self.device._queue, self._memory, np.full(1, byte, np.uint8), 0, self.nbytes)

    def _can_copy(self, source: Buffer) -> TypeGuard[Self]:
        return isinstance(source, OpenclBuffer) and source.device is self.device

    def _copy(self, source: Self) -> None:
        cl.enqueue_copy(self.device._queue, self._memory, source._memory)


class FilledBuffer(OpenclBuffer):
    """Memory created as a copy of a host array."""

    def __init__(self, device: MemoryDevice, array: np.ndarray) -> None:
        self._array: np.ndarray | None = array  # for _allocate(), which the constructor calls
        super().__init__(device, array.shape, array.dtype)
        self._array = None

    def _allocate(self) -> None:
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        self.device.counters.count_upload(self.nbytes)
        self._memory = cl.Buffer(self.device._context, flags, hostbuf=self._array)


class BorrowedOpenclBuffer(BorrowedBuffer, OpenclBuffer):
    """Memory of the host that another library owns."""

    def _allocate(self) -> None:
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
        memory = (ctypes.c_uint8 * self.nbytes).from_address(self._tensor.pointer)
        self._memory = cl.Buffer(self.device._context, flags, hostbuf=np.ctypeslib.as_array(memory))


class OpenclStagingBuffer:
    """Host memory allocated by OpenCL; kernels use it directly if the device shares memory, else it is copied."""

    def __init__(self, device: MemoryDevice, count: int) -> None:
        self.device, self.buffer = device, OpenclBuffer(device, count, "u1")
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR
        self._memory = cl.Buffer(device._context, flags, count)
        if device._unified:
            self.buffer._memory = self._memory
        self._count = count
        self._array: np.ndarray | None = None  # the mapped memory; None while a device that shares memory uses it
        self._pending_events: list[cl.Event] = []  # after which the host may write the memory

    def map(self) -> np.ndarray:
        """Return the host's bytes to fill, after the last upload has read them."""
        self.device.wait_for_compiler()
        if self._array is None:
            queue, flags = self.device._copy_queue, cl.map_flags.WRITE
            self._array, _ = cl.enqueue_map_buffer(
                queue, self._memory, flags, 0, (self._count,), np.dtype(np.uint8), wait_for=self._pending_events
            )
        else:
            cl.wait_for_events(self._pending_events)
        return self._array

    def upload_then(self, count: int, work: Callable[..., None]) -> None:
        """Start to upload the first `count` bytes, then call work(buffer)."""
        queue, copies = self.device._queue, self.device._copy_queue
        self.device.counters.count_upload(count)
        assert self._array is not None, "map() comes first"
        if self.device._unified:  # kernels use the memory itself, once it is unmapped
            arrived = self._array.base.release(copies)  # type: ignore[union-attr]  # PyOpenCL's MemoryMap
            self._array = None
        else:
            source, earlier = self._array[:count], self._pending_events
            arrived = cl.enqueue_copy(copies, self.buffer._memory, source, is_blocking=False, wait_for=earlier)
        copies.flush()
        cl.enqueue_barrier(queue, wait_for=[arrived])
        work(self.buffer)
        self._pending_events = [cl.enqueue_marker(queue)]
        queue.flush()


class OpenclTimestamp:
    """A marker in the queue; see Timestamp."""

    def __init__(self, device: MemoryDevice) -> None:
        self._device, self._event = device, cl.enqueue_marker(device._queue)
        device._queue.flush()

    @property
    def has_passed(self) -> bool:
        """See Timestamp; a failed kernel is reported by seconds_since()."""
        # negative: the command failed
        return bool(self._event.command_execution_status <= cl.command_execution_status.COMPLETE)

    def seconds_since(self, earlier: OpenclTimestamp) -> float:
        """Device time in seconds between two timestamps; waits for both."""
        self._device.wait_for_compiler()
        with convert_errors(cl.Error, f"{self._device.name}: a kernel failed"):
            cl.wait_for_events([earlier._event, self._event])
            return (self._event.profile.end - earlier._event.profile.end) * 1e-9


class OpenclReadback(ReadbackBuffer):
    """A device buffer and host memory; copies run on the second queue."""

    def __init__(self, device: MemoryDevice, count: int) -> None:
        self.device, self.buffer = device, OpenclBuffer(device, count, "u1")
        self._array = np.empty(count, np.uint8)
        self._arrived: cl.Event | None = None  # of the last start_copy()

    def start_copy(self) -> None:
        """Start to copy the buffer to the host after earlier work."""
        queue, copies = self.device._queue, self.device._copy_queue
        filled = cl.enqueue_marker(queue)
        queue.flush()
        self._arrived = cl.enqueue_copy(copies, self._array, self.buffer._memory, is_blocking=False, wait_for=[filled])
        copies.flush()

    def wait(self) -> np.ndarray:
        """Wait for the last start_copy() and return the host's bytes."""
        with convert_errors(cl.Error, f"{self.device.name}: a kernel failed"):
            self.device.wait_for_compiler()
            assert self._arrived is not None, "start_copy() comes first"
            self._arrived.wait()
        return self._array
