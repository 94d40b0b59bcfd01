"""Streams, events, timestamps and graphs of CUDA (CUDA driver API); see device.py.

Work of one stream runs in order, different streams run concurrently, and an event lets one stream wait for a point in
another. All objects free their handle when they are garbage collected, on any thread. A `with` block of a device makes
its context current; `device._stream` is the stream of its current queue, None for the default stream.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Protocol, Self

from renderer.gpu.cuda.driver import check, cu
from renderer.gpu.device import Device

NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING: does not synchronize with the default stream


class StreamDevice(Device, Protocol):
    """The members of CudaDevice that this module and cublas.py use; cuda/device.py imports this module."""

    index: int  # of the GPU, as in cuda:0
    _stream: Stream | None

    @property
    def stream_handle(self) -> int:
        """Handle of the current stream; 0 is the default one."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *error: object) -> None: ...


class Stream:
    """A stream that runs concurrently with the default stream; the GPU's scheduler prefers an `urgent` one."""

    def __init__(self, device: StreamDevice, urgent: bool = False) -> None:
        with device:
            priority = cu.cuCtxGetStreamPriorityRange()[2] if urgent else 0  # status, least, greatest
            self.handle = int(check(cu.cuStreamCreateWithPriority(NON_BLOCKING, priority)))
        # Not at exit, when the driver may be shut down: the end of the process frees all handles.
        weakref.finalize(self, _destroy, device, cu.cuStreamDestroy, self.handle).atexit = False

    def synchronize(self) -> None:
        """Wait on the host for the stream's work; the caller makes the device current."""
        check(cu.cuStreamSynchronize(self.handle))


def _destroy(device: StreamDevice, destroy: Callable[..., object], handle: object) -> None:
    """Calls a cuXDestroy function for a handle of the device."""
    with device:
        destroy(handle)


class Event:
    """A point in a stream that other streams can wait for. The caller makes the device current.

    Methods without a stream use the default stream. seconds_since() needs `timed` events.
    """

    def __init__(self, timed: bool = False) -> None:
        self._event = check(cu.cuEventCreate(0 if timed else cu.CUevent_flags.CU_EVENT_DISABLE_TIMING))
        weakref.finalize(self, cu.cuEventDestroy, self._event).atexit = False

    def record(self, stream: Stream | None = None) -> None:
        """Record the event at the end of the stream's work."""
        check(cu.cuEventRecord(self._event, stream.handle if stream else 0))

    def block_stream(self, stream: Stream | None = None) -> None:
        """Make later work of the stream wait for the event."""
        check(cu.cuStreamWaitEvent(stream.handle if stream else 0, self._event, 0))

    def synchronize(self) -> None:
        """Wait on the host until the event has happened."""
        check(cu.cuEventSynchronize(self._event))

    @property
    def has_passed(self) -> bool:
        """True if the event has happened; does not wait."""
        status = cu.cuEventQuery(self._event)
        return status[0] != cu.CUresult.CUDA_ERROR_NOT_READY and check(status, "a kernel failed") is None

    def seconds_since(self, earlier: Event) -> float:
        """Device time in seconds between two timed events; waits for this one."""
        self.synchronize()
        return float(check(cu.cuEventElapsedTime(earlier._event, self._event))) * 1e-3


class PriorityStream(Stream):
    """A high-priority stream; as a context manager it becomes the device's current stream."""

    def __init__(self, device: StreamDevice) -> None:
        super().__init__(device, urgent=True)
        self.device = device
        self._previous_streams: list[Stream | None] = []  # of the `with` blocks that are open

    def __enter__(self) -> PriorityStream:
        self._previous_streams.append(self.device._stream)
        self.device._stream = self
        return self

    def __exit__(self, *error: object) -> None:
        self.device._stream = self._previous_streams.pop()


class CudaTimestamp:
    """A timed event in the queue; see Timestamp."""

    def __init__(self, device: StreamDevice) -> None:
        self.device = device
        with device:
            self._event = Event(timed=True)
            self._event.record(device._stream)

    @property
    def has_passed(self) -> bool:
        """See Timestamp."""
        with self.device:
            return self._event.has_passed

    def seconds_since(self, earlier: CudaTimestamp) -> float:
        """Device time in seconds between two timestamps; waits for both."""
        with self.device:
            return self._event.seconds_since(earlier._event)


class CudaGraph:
    """A CUDA graph of launches, started by one call: about ten times faster than single launches from Python."""

    def __init__(self, device: StreamDevice, work: Callable[[], None]) -> None:
        self.device, self._kept_alive = device, work  # `work` holds the buffers that the graph uses
        before = device.counters.launches
        stream = Stream(device)  # the default stream cannot be captured
        with device:
            mode = cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
            check(cu.cuStreamBeginCapture(stream.handle, mode))
            entered, device._stream = device._stream, stream
            try:
                work()
            finally:
                device._stream = entered
                graph = check(cu.cuStreamEndCapture(stream.handle))
            self._graph = check(cu.cuGraphInstantiate(graph, 0))
            check(cu.cuGraphDestroy(graph))
        weakref.finalize(self, _destroy, device, cu.cuGraphExecDestroy, self._graph).atexit = False
        self._launches = device.counters.launches - before  # counted at each call: a capture launches nothing
        device.counters.launches = before

    def __call__(self) -> None:
        """Launch all kernels of the graph."""
        self.device.counters.launches += self._launches
        with self.device:
            check(cu.cuGraphLaunch(self._graph, self.device.stream_handle))


class PeerCopy:
    """A stream and events for copies from one GPU to another; construct it with the source's context current."""

    def __init__(self, source: StreamDevice, target: StreamDevice) -> None:
        with target:
            self.target_ready = Event()
        with source:
            self.stream, self.source_ready, self.copied = Stream(source), Event(), Event()
        source.can_access_peer(target), target.can_access_peer(source)  # enables peer access, which makes copies faster
