"""The device contract over the CUDA driver API (driver.py, streams.py); nvrtc.py compiles the kernels.

A CudaDevice allocates CudaBuffers and makes CudaKernels; gpu/device.py says what each method does for its caller. The
context is the GPU's primary context, so that GL interop, CuPy and PyTorch in the same process share it. Every call
makes it current and restores the previous one.
"""

import ctypes
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, Self, TypeGuard

import numpy as np
from numpy.typing import DTypeLike

from renderer.errors import UnavailableError
from renderer.gpu.compilation import Compiler
from renderer.gpu.cuda import nvrtc
from renderer.gpu.cuda.ahead import why_driver_fails
from renderer.gpu.cuda.driver import ArgumentBlock, DeviceQueries, Function, check, cu, list_device_names, open_context
from renderer.gpu.cuda.nvrtc import compile_cubin
from renderer.gpu.cuda.streams import CudaGraph, CudaTimestamp, Event, PeerCopy, PriorityStream, Stream
from renderer.gpu.device import BorrowedBuffer, Buffer, Device, Kernel, ProgramText, ReadbackBuffer, Shape, VendorBlas
from renderer.gpu.dlpack import CUDA, CUDA_MANAGED, Tensor, export_tensor
from renderer.gpu.kernel_source import argument_layout
from renderer.gpu.nvidia import NO_NVIDIA_DRIVER, NVIDIA_CONTROL_FILES, has_nvidia_driver
from renderer.gpu.opening import DeviceInfo
from renderer.gpu.properties import DeviceProperties
from renderer.system.install import pip_install

POINTER_ALIGNMENT = 16  # bytes of a float4, which kernels load in one instruction
PORTABLE_CLUSTER = 8  # groups of a cluster that every GPU with clusters supports


def list_devices() -> tuple[list[DeviceInfo], str]:
    """Lists this machine's CUDA devices; also returns the reason if there is none."""
    if reason := _why_unusable():
        return [], reason
    try:
        names = list_device_names()
    except UnavailableError as error:
        return [], str(error)
    devices = [DeviceInfo(f"cuda:{i}", name, "cuda", "gpu", partial(CudaDevice, i)) for i, name in enumerate(names)]
    return devices, "" if devices else "the CUDA driver shows no device"


def _why_unusable() -> str:
    """Returns why the driver must not be started in this process, or ""."""
    if not has_nvidia_driver(NVIDIA_CONTROL_FILES):
        return NO_NVIDIA_DRIVER
    if cu is None or nvrtc.why_missing():
        missing = nvrtc.why_missing() or "no module cuda.bindings.driver"
        return f"CUDA's Python packages are missing ({missing}): {pip_install('cuda')}"
    if reason := why_driver_fails():
        return f"the CUDA driver is skipped: {reason}. Restart the machine, or install the driver again"
    return ""


class CudaDevice(Device):
    """An NVIDIA GPU; `architecture` is its compute capability, as in "sm_90"."""

    compiles_beside_work = has_graphs = True

    def __init__(self, index: int) -> None:
        super().__init__()
        queries = DeviceQueries(index)
        capability, memory = queries.compute_capability, queries.memory_bytes
        self.index, self.driver = index, queries.driver
        self.name = f"{queries.name} (cuda:{index})"
        self.architecture = "sm_{}{}".format(*capability)
        self.has_float4_atomics = capability >= (9, 0)
        self.context = open_context(index)
        self._vendor_blas: dict[np.dtype[Any], VendorBlas | None] = {}
        self._peer_copies: dict[int, PeerCopy] = {}
        self._peer_access = {index: True}  # by the index of the other GPU; True: kernels may use its memory
        self._stream: Stream | None = None  # the current stream; None: the default stream
        self.properties = DeviceProperties(
            compute_units=queries.multiprocessors,
            warp_size=32,
            memory_bytes=memory,
            max_buffer_bytes=memory,
            has_fp64=True,
            max_cluster_size=PORTABLE_CLUSTER if capability >= (9, 0) else 1,
            has_ballot=True,
            has_async_copy=capability >= (8, 0),
            has_bulk_copy=capability >= (9, 0),
            local_bytes=queries.local_bytes,
        )
        self._copy_stream = Stream(self)  # uploads, concurrent with kernels on the default stream
        with self:
            self._timer = Event(timed=True), Event(timed=True)

    def __enter__(self) -> Self:
        self.context.push()
        return self

    def __exit__(self, *error: object) -> None:
        self.context.pop()

    @property
    def stream_handle(self) -> int:
        """Handle of the current stream; 0 is the default one."""
        return self._stream.handle if self._stream else 0

    def peer_copy_to(self, other: "CudaDevice") -> "PeerCopy":
        """Returns the stream and events for copies to another device, created at the first copy."""
        if other.index not in self._peer_copies:
            self._peer_copies[other.index] = PeerCopy(self, other)
        return self._peer_copies[other.index]

    def can_access_peer(self, other: Device) -> bool:
        """True if kernels of this device may read and write buffers of the other."""
        if not isinstance(other, CudaDevice):
            return False
        if other.index not in self._peer_access:
            with self:
                status, *_ = cu.cuCtxEnablePeerAccess(other.context.handle, 0)
            enabled = cu.CUresult.CUDA_SUCCESS, cu.CUresult.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
            self._peer_access[other.index] = status in enabled
        return self._peer_access[other.index]

    def buffer(self, shape: Shape, dtype: DTypeLike = "f4") -> "CudaBuffer":
        """Allocate device memory; see Device."""
        return CudaBuffer(self, shape, dtype)

    def borrow(self, tensor: Tensor) -> "CudaBuffer | None":
        """Wrap memory of this GPU that another library owns; see Device."""
        is_here = tensor.device_type in (CUDA, CUDA_MANAGED) and tensor.device_id == self.index
        if not is_here or tensor.pointer % POINTER_ALIGNMENT or 0 in tensor.shape:
            return None
        return BorrowedCudaBuffer(self, tensor)

    def dlpack_device(self) -> tuple[int, int]:
        """See Device."""
        return CUDA, self.index

    def export(self, buffer: Buffer, dtype: np.dtype, shape: tuple[int, ...], owner: object) -> object:
        """Export the buffer's memory; see Device."""
        assert isinstance(buffer, CudaBuffer)
        self.finish()
        return export_tensor(buffer.pointer, (CUDA, self.index), dtype, shape, (buffer, owner))

    def staging_buffer(self, count: int) -> "CudaStagingBuffer":
        """Allocate a staging buffer; see Device."""
        return CudaStagingBuffer(self, count)

    def readback_buffer(self, count: int) -> "CudaReadback":
        """Allocate a readback buffer; see Device."""
        return CudaReadback(self, count)

    def vendor_blas(self, dtype: DTypeLike) -> VendorBlas | None:
        """The vendor's BLAS for a dtype, or None."""
        from renderer.gpu.cuda import cublas  # imported here, since few commands multiply matrices

        if np.dtype(dtype) not in self._vendor_blas:
            self._vendor_blas[np.dtype(dtype)] = cublas.open_blas(self, dtype)
        return self._vendor_blas[np.dtype(dtype)]

    def capture_graph(self, work: Callable[..., None]) -> "CudaGraph":
        """Capture a CUDA graph; see Device."""
        return CudaGraph(self, work)

    def timestamp(self) -> "CudaTimestamp":
        """Record a timestamp in the current queue."""
        return CudaTimestamp(self)

    def priority_queue(self) -> "PriorityStream":
        """A high-priority queue; see Device."""
        return PriorityStream(self)

    def record_event(self, reuse: Event | None = None) -> "Event":
        """Record an event in the current queue; see Device."""
        with self:
            event = reuse or Event()
            event.record(self._stream)
        return event

    def wait_event(self, event: Event) -> None:
        """Make later work of the current queue wait for the event."""
        with self:
            event.block_stream(self._stream)

    def synchronize_stream(self, stream: Stream | None = None) -> None:
        """Wait until all work of a stream (default: the default stream) is done."""
        with self:
            check(cu.cuStreamSynchronize(stream.handle if stream else 0))

    def _build(self, program: ProgramText) -> object:
        cubin = compile_cubin(program.text, self.architecture, program.name, program.strict)
        with self:
            return check(cu.cuModuleLoadData(cubin), program.name)

    def _compile_to_cache(self, compiler: Compiler, program: ProgramText) -> None:
        text, name, strict = program.text, program.name, program.strict
        if not nvrtc.is_cached(text, self.architecture, strict):
            job = dict(text=text, architecture=self.architecture, name=name, strict=strict)
            compiler.run({"do": "cubin", **job}, name)

    def _make_kernel(self, program: object, entry: str, name: str, group_size: int) -> "CudaKernel":
        with self:
            return CudaKernel(self, Function(program, entry, name), f"{name}:{entry}", group_size)

    def finish(self) -> None:
        """Wait for all work; raises KernelError if a kernel failed."""
        with self:
            check(cu.cuCtxSynchronize(), f"{self.name}: a kernel failed")

    def time_seconds(self, work: Callable[[], None]) -> float:
        """Time the launches of work() in seconds by two events, which are kept: creating one takes 10 us."""
        start, end = self._timer
        with self:
            start.record(self._stream)
            work()
            end.record(self._stream)
            return end.seconds_since(start)


class CudaBuffer(Buffer):
    """Device memory of a CUDA device; see Buffer."""

    device: CudaDevice

    pointer = 0  # defined before allocation for __del__

    def _allocate(self) -> None:
        with self.device:
            no_room = f"{self.device.name}: no room for {self.nbytes / 2**20:.0f} MiB"
            self.pointer = int(check(cu.cuMemAlloc(max(self.nbytes, 4)), no_room, UnavailableError))

    def __del__(self) -> None:
        if cu is not None:  # modules are None while the interpreter shuts down
            _free(self.device, cu.cuMemFree, self.pointer)

    def _upload(self, array: np.ndarray) -> None:
        with self.device as device:
            if device._stream:  # cuMemcpyHtoD and DtoH run on the default stream, which does not wait for this one
                device.synchronize_stream(device._stream)
            check(cu.cuMemcpyHtoD(self.pointer, array.ctypes.data, array.nbytes))
            if device._stream:  # the copy may still run, but the caller may reuse its array once this returns
                device.synchronize_stream()

    def _download(self, array: np.ndarray) -> None:
        with self.device as device:
            if device._stream:
                device.synchronize_stream(device._stream)
            check(cu.cuMemcpyDtoH(array.ctypes.data, self.pointer, array.nbytes), f"{device.name}: a kernel failed")

    def _fill(self, byte: int) -> None:
        with self.device:
            check(cu.cuMemsetD8Async(self.pointer, byte, self.nbytes, self.device.stream_handle))

    def _can_copy(self, source: Buffer) -> TypeGuard[Self]:
        return isinstance(source, CudaBuffer)

    def _copy(self, source: Self) -> None:
        with self.device:
            if source.device is self.device:
                check(cu.cuMemcpyDtoDAsync(self.pointer, source.pointer, self.nbytes, self.device.stream_handle))
            else:
                self._copy_from_peer(source)

    def _copy_from_peer(self, source: "CudaBuffer") -> None:
        """Copy from another GPU on a separate stream, which waits for both queues; both queues then wait for it."""
        between = source.device.peer_copy_to(self.device)
        with self.device:
            between.target_ready.record(self.device._stream)
        with source.device:
            between.source_ready.record(source.device._stream)
            between.source_ready.block_stream(between.stream)
            between.target_ready.block_stream(between.stream)
            if source.device.index == self.device.index:  # both devices are one GPU, opened twice
                check(cu.cuMemcpyDtoDAsync(self.pointer, source.pointer, self.nbytes, between.stream.handle))
            else:
                ends = self.pointer, self.device.context.handle, source.pointer, source.device.context.handle
                check(cu.cuMemcpyPeerAsync(*ends, self.nbytes, between.stream.handle))
            between.copied.record(between.stream)
            between.copied.block_stream(source.device._stream)
        with self.device:
            between.copied.block_stream(self.device._stream)


class BorrowedCudaBuffer(BorrowedBuffer, CudaBuffer):
    """Memory of this GPU that another library owns."""

    def _allocate(self) -> None:
        self.pointer = self._tensor.pointer

    def __del__(self) -> None:
        """Do nothing: the owner frees the memory."""


def _free(device: CudaDevice, free: Callable[..., object], pointer: int) -> None:
    """Free memory, if any; callable from any thread, since garbage collection runs on any."""
    if pointer and not sys.is_finalizing():
        with device:
            free(pointer)


class PageLocked:
    """A buffer of `count` bytes and page-locked host memory of the same size."""

    _pointer = 0  # defined before allocation for __del__

    def __init__(self, device: CudaDevice, count: int) -> None:
        self.device, self.buffer = device, CudaBuffer(device, count, "u1")
        no_room = f"{device.name}: {count / 2**20:.0f} MiB cannot be page-locked"
        with device:
            self._pointer = int(check(cu.cuMemHostAlloc(max(count, 1), 0), no_room, UnavailableError))
            # _ready: the copy may start (results are there, or the last work() has read the buffer);
            # _arrived: it is done.
            self._ready, self._arrived = Event(), Event()
        self._array = np.ctypeslib.as_array((ctypes.c_uint8 * count).from_address(self._pointer))

    def __del__(self) -> None:
        _free(self.device, cu.cuMemFreeHost, self._pointer)

    def wait(self) -> np.ndarray:
        """Wait for the last copy and return the host's bytes."""
        with self.device:
            self._arrived.synchronize()
        return self._array


class CudaReadback(PageLocked, ReadbackBuffer):
    """Memory for results; copies to the host run on a separate stream, so that they do not wait for uploads."""

    buffer: CudaBuffer

    def __init__(self, device: CudaDevice, count: int) -> None:
        super().__init__(device, count)
        self._stream = Stream(device)

    def start_copy(self) -> None:
        """Start to copy the buffer to the host after earlier work."""
        with self.device:
            self._ready.record(self.device._stream)
            self._ready.block_stream(self._stream)
            check(cu.cuMemcpyDtoHAsync(self._pointer, self.buffer.pointer, self.buffer.nbytes, self._stream.handle))
            self._arrived.record(self._stream)


class CudaStagingBuffer(PageLocked):
    """Memory for uploads; copies run on a second stream, which two events order with the kernels' stream."""

    def map(self) -> np.ndarray:
        """Return the host's bytes to fill, after the last upload has read them."""
        return self.wait()

    def upload_then(self, count: int, work: Callable[..., None]) -> None:
        """Start to upload the first `count` bytes, then call work(buffer)."""
        self.device.counters.count_upload(count)
        with self.device:
            copies = self.device._copy_stream
            self._ready.block_stream(copies)
            check(cu.cuMemcpyHtoDAsync(self.buffer.pointer, self._pointer, count, copies.handle))
            self._arrived.record(copies)
            self._arrived.block_stream(self.device._stream)
        work(self.buffer)
        with self.device:
            self._ready.record(self.device._stream)


class CudaKernel(Kernel):
    """A kernel of a cubin; launches pack the arguments as C aligns them and use the device's current stream."""

    def __init__(self, device: CudaDevice, function: Function, name: str, group_size: int) -> None:
        self.device, self.name, self.group_size = device, name, group_size
        self._function = function

    def supports_cluster_size(self, groups: int) -> bool:
        """True if the device, whose properties.max_cluster_size is above 1, can run clusters of so many groups."""
        with self.device:
            return groups <= PORTABLE_CLUSTER or self._function.supports_cluster_size(groups, self.group_size)

    def reserve_local(self, count: int) -> bool:
        """Ask for dynamic shared memory; see Kernel."""
        with self.device:
            return self._function.reserve_local(count)

    def warm_up(self, threads: int, *arguments: object) -> None:
        """Launch once beside the queue and wait; see Kernel."""
        packed, queue = ArgumentBlock(self._packed(arguments)), self.device._copy_stream
        with self.device:
            self._function.launch(-(-threads // self.group_size), self.group_size, packed, queue.handle, self.name)
            queue.synchronize()

    def _packed(self, arguments: tuple[Any, ...]) -> bytes:
        """Pack the arguments consecutively, aligned as in C."""
        kinds: list[Any] = []
        values: list[Any] = []
        for argument in arguments:
            kind: Any = type(argument)
            if kind is int or kind is float:  # the frequent types first: isinstance with a Protocol takes microseconds
                values.append(argument)
            elif kind is CudaBuffer and argument.device is self.device:
                kind = bytes  # stands for a pointer in argument_layout()
                values.append(argument.pointer)
            elif isinstance(argument, np.generic):
                kind = argument.dtype
                values.append(argument.tobytes())
            elif isinstance(argument, CudaBuffer):
                assert self.device.can_access_peer(argument.device), f"{self.name}: a buffer of another device"
                kind = bytes
                values.append(argument.pointer)
            else:
                raise TypeError(f"{self.name}: {kind.__name__} is no kernel argument")
            kinds.append(kind)
        return argument_layout(tuple(kinds)).pack(*values)

    def bind_launch(self, threads: int, *arguments: object) -> Callable[[], None]:
        """A launch with these arguments converted once."""
        block, groups, device = ArgumentBlock(self._packed(arguments)), -(-threads // self.group_size), self.device
        start, group_size, name = self._function.launch, self.group_size, self.name

        def launch(_kept_alive: object = arguments) -> None:  # the buffers live as long as the function
            device.counters.launches += 1
            with device:
                start(groups, group_size, block, device.stream_handle, name)

        return launch if threads > 0 else lambda: None
