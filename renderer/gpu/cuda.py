"""The device contract over PyCUDA; nvrtc.py compiles the kernels, cuda_streams.py has streams, events and graphs.

The context is CUDA's retained primary one, so that GL interop, CuPy and PyTorch in the same process share it. It is
pushed around every call and popped after it: PyCUDA aborts the process if a context is on the stack at exit.
"""

import ctypes
import struct
import sys
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike

from renderer.errors import KernelError, UnavailableError
from renderer.gpu import nvrtc
from renderer.gpu.cuda_streams import (
    NON_BLOCKING,
    CudaGraph,
    CudaTimestamp,
    Event,
    PeerCopy,
    PriorityStream,
    check,
    cu,
    pycuda_driver,
)
from renderer.gpu.device import Buffer, Device, DeviceInfo, Kernel, ReadbackBuffer, convert_errors
from renderer.gpu.kernel_source import DeviceProperties, alignment
from renderer.gpu.nvrtc import compile_cubin

PEER_ACCESS_ALREADY_ENABLED = cu.CUresult.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED if cu else None
NVIDIA_CONTROL_FILE = Path("/dev/nvidiactl")  # exists if NVIDIA's driver is loaded
PORTABLE_CLUSTER = 8  # groups; supported by every GPU with clusters


def list_devices() -> tuple[list[DeviceInfo], str]:
    """This machine's CUDA devices, and the reason if there is none."""
    if not NVIDIA_CONTROL_FILE.exists():
        return [], "no NVIDIA driver is loaded"
    if pycuda_driver is None:
        packages = "pycuda cuda-bindings nvidia-cuda-nvrtc nvidia-cublas"
        return [], f"PyCUDA is missing: pip install {packages} (PyCUDA is built with a C++ compiler)"
    if nvrtc.nvrtc is None:
        return [], f"NVRTC is missing ({nvrtc.IMPORT_ERROR}): pip install cuda-bindings nvidia-cuda-nvrtc"
    try:
        pycuda_driver.init()
    except pycuda_driver.Error as error:
        return [], f"the CUDA driver does not start: {error}"
    names = [pycuda_driver.Device(index).name() for index in range(pycuda_driver.Device.count())]
    devices = [DeviceInfo(f"cuda:{i}", name, "cuda", "gpu", partial(CudaDevice, i)) for i, name in enumerate(names)]
    return devices, "" if devices else "the CUDA driver shows no device"


class CudaDevice(Device):
    """An NVIDIA GPU; `architecture` is such as "sm_90"."""

    def __init__(self, index: int) -> None:
        super().__init__()
        pycuda_driver.init()
        handle = pycuda_driver.Device(index)
        self.index = index
        self.name = f"{handle.name()} (cuda:{index})"
        version = pycuda_driver.get_driver_version()
        self.driver = f"CUDA {version // 1000}.{version % 1000 // 10}"
        self.architecture = "sm_{}{}".format(*handle.compute_capability())
        self.has_float4_atomics = handle.compute_capability() >= (9, 0)
        self.context = handle.retain_primary_context()
        self._vendor_blas: dict = {}
        self._peer_copies: dict = {}
        self._peer_access = {index: True}
        self._stream = None  # the current stream; None is the default one
        attribute = pycuda_driver.device_attribute
        memory = handle.total_memory()
        units = handle.get_attribute(attribute.MULTIPROCESSOR_COUNT)
        cluster = PORTABLE_CLUSTER if handle.compute_capability() >= (9, 0) else 1
        copies = handle.compute_capability() >= (8, 0)
        self.properties = DeviceProperties(units, 32, memory, memory, True, True, cluster, copies)
        with self:
            self._events = pycuda_driver.Event(), pycuda_driver.Event()
            self._copy_stream = pycuda_driver.Stream(NON_BLOCKING)  # beside the default stream, which kernels use

    def __enter__(self) -> Self:
        self.context.push()
        return self

    def __exit__(self, *error: object) -> None:
        pycuda_driver.Context.pop()

    @property
    def stream_handle(self) -> int:
        """Handle of the current stream; 0 is the default one."""
        return self._stream.handle if self._stream else 0

    def peer_copy_to(self, other: "CudaDevice") -> "PeerCopy":
        """The stream and events for copies to another device."""
        if other.index not in self._peer_copies:
            self._peer_copies[other.index] = PeerCopy(self, other)
        return self._peer_copies[other.index]

    def can_access_peer(self, other: Any) -> bool:
        """Whether kernels of this device may read and write buffers of the other."""
        if not isinstance(other, CudaDevice):
            return False
        if other.index not in self._peer_access:
            with self:
                status, *_ = cu.cuCtxEnablePeerAccess(cu.CUcontext(other.context.handle), 0)
            self._peer_access[other.index] = status in (cu.CUresult.CUDA_SUCCESS, PEER_ACCESS_ALREADY_ENABLED)
        return self._peer_access[other.index]

    def buffer(self, shape: Any, dtype: Any = "f4") -> "CudaBuffer":
        """Allocate device memory; see Device."""
        return CudaBuffer(self, shape, dtype)

    def staging_buffer(self, count: int) -> "CudaStagingBuffer":
        """Allocate a staging buffer; see Device."""
        return CudaStagingBuffer(self, count)

    def readback_buffer(self, count: int) -> "CudaReadback":
        """Allocate a readback buffer; see Device."""
        return CudaReadback(self, count)

    def vendor_blas(self, dtype: DTypeLike) -> Any:
        """The vendor's BLAS for a dtype, or None."""
        from renderer.gpu import cublas  # loads a library of 500 MB: only for those who multiply

        if np.dtype(dtype) not in self._vendor_blas:
            self._vendor_blas[np.dtype(dtype)] = cublas.open_blas(self, dtype)
        return self._vendor_blas[np.dtype(dtype)]

    def capture_graph(self, work: Callable[..., None]) -> "CudaGraph":
        """A function that launches the kernels of work() again; see Device."""
        return CudaGraph(self, work)

    def timestamp(self) -> "CudaTimestamp":
        """Record a timestamp in the current queue."""
        return CudaTimestamp(self)

    def priority_queue(self) -> "PriorityStream":
        """A high-priority queue; see Device."""
        return PriorityStream(self)

    def record_event(self, reuse: Any = None) -> "Event":
        """Record an event in the current queue; see Device."""
        with self:
            event = reuse or Event()
            event.record(self._stream)
        return event

    def wait_event(self, event: Any) -> None:
        """Make later work of the current queue wait for the event."""
        with self:
            event.block_stream(self._stream)

    def synchronize_stream(self, stream: Any = None) -> None:
        """Wait until all work of a stream, by default the default one, is done."""
        with self:
            event = Event()
            event.record(stream)
            event.synchronize()

    def _build(self, text: str, name: str, strict: bool, key: bytes) -> "Module":
        with self:
            return Module(compile_cubin(text, self.architecture, name, strict=strict))

    def _kernel_of(self, program: "Module", entry: str, name: str, group_size: int) -> "CudaKernel":
        with self:
            try:
                return CudaKernel(self, program, entry, f"{name}:{entry}", group_size)
            except pycuda_driver.LogicError as error:
                raise KernelError(f"{name} has no kernel {entry}") from error

    def finish(self) -> None:
        """Wait for all work; raises KernelError if a kernel failed."""
        with self, convert_errors(pycuda_driver.Error, f"{self.name}: a kernel failed"):
            pycuda_driver.Context.synchronize()

    def time_seconds(self, work: Callable[..., None]) -> float:
        """Device time in seconds of what work() launches."""
        start, end = self._events
        with self:
            start.record()
            work()
            end.record()
            end.synchronize()
            return end.time_since(start) * 1e-3


class CudaBuffer(Buffer):
    """Device memory of a CUDA device; see Buffer."""

    device: CudaDevice

    def _allocate(self) -> None:
        with self.device:
            try:
                self._memory = pycuda_driver.mem_alloc(max(self.nbytes, 4))
            except pycuda_driver.MemoryError as error:
                raise UnavailableError(f"{self.device.name}: no room for {self.nbytes / 2**20:.0f} MiB") from error
        self.pointer = int(self._memory)

    def __del__(self) -> None:
        _free(self.device, getattr(self, "_memory", None))

    def _upload(self, array: np.ndarray) -> None:
        with self.device as device:
            if device._stream:
                device.synchronize_stream(device._stream)
            pycuda_driver.memcpy_htod(self.pointer, array)
            if device._stream:  # the host's memory may be reused now, but the copy may still run
                device.synchronize_stream()

    def _download(self, array: np.ndarray) -> None:
        with self.device as device:
            if device._stream:
                device.synchronize_stream(device._stream)
            with convert_errors(pycuda_driver.Error, f"{device.name}: a kernel failed"):
                pycuda_driver.memcpy_dtoh(array, self.pointer)

    def _fill(self, byte: int) -> None:
        with self.device:
            check(cu.cuMemsetD8Async(self.pointer, byte, self.nbytes, self.device.stream_handle))

    def _can_copy(self, source: Any) -> bool:
        return isinstance(source, CudaBuffer)

    def _copy(self, source: Any) -> None:
        with self.device:
            if source.device is self.device:
                self._copy_same_device(source, self.device.stream_handle)
            else:
                self._copy_from_peer(source)

    def _copy_same_device(self, source: "CudaBuffer", stream: int) -> None:
        """From the same GPU."""
        check(cu.cuMemcpyDtoDAsync(self.pointer, source.pointer, self.nbytes, stream))

    def _copy_from_peer(self, source: "CudaBuffer") -> None:
        """From another device: a stream between the two waits for both queues, and both queues wait for the copy."""
        between = source.device.peer_copy_to(self.device)
        with self.device:
            between.target_ready.record(self.device._stream)
        with source.device:
            between.source_ready.record(source.device._stream)
            between.source_ready.block_stream(between.stream)
            between.target_ready.block_stream(between.stream)
            if source.device.index == self.device.index:  # one GPU, opened twice
                self._copy_same_device(source, between.stream.handle)
            else:
                contexts = self.device.context, source.device.context
                pycuda_driver.memcpy_peer_async(self.pointer, source.pointer, self.nbytes, *contexts, between.stream)
            between.copied.record(between.stream)
            between.copied.block_stream(source.device._stream)
        with self.device:
            between.copied.block_stream(self.device._stream)


def _free(device: CudaDevice, memory: Any) -> None:
    """Gives memory back with its context entered: PyCUDA frees in the thread that made the context, or not at all."""
    if memory is not None and not sys.is_finalizing():
        with device:
            memory.free()


class PageLocked:
    """A buffer of `count` bytes and page-locked host memory of the same size."""

    def __init__(self, device: CudaDevice, count: int) -> None:
        self._array: Any = None  # for __del__ if the next line raises
        self.device, self.buffer = device, CudaBuffer(device, count, "u1")
        place = f"{device.name}: {count / 2**20:.0f} MiB cannot be page-locked"
        with device, convert_errors(pycuda_driver.Error, place, UnavailableError):
            self._array = pycuda_driver.pagelocked_empty(count, np.uint8)
            self._ready, self._arrived = Event(), Event()  # the source of a copy may be read; the copy is done

    def __del__(self) -> None:
        if self._array is not None:
            _free(self.device, self._array.base)

    def _wait(self) -> np.ndarray:
        """The host's bytes after the last copy."""
        with self.device:
            self._arrived.synchronize()
        return self._array


class CudaReadback(PageLocked, ReadbackBuffer):
    """Memory to read results from; its copies run on a stream of their own, not behind uploads."""

    buffer: CudaBuffer

    def __init__(self, device: CudaDevice, count: int) -> None:
        super().__init__(device, count)
        with device:
            self._stream = pycuda_driver.Stream(NON_BLOCKING)

    def start_copy(self) -> None:
        """Start to copy the buffer to the host after earlier work."""
        with self.device:
            self._ready.record(self.device._stream)
            self._ready.block_stream(self._stream)
            pycuda_driver.memcpy_dtoh_async(self._array, self.buffer.pointer, self._stream)
            self._arrived.record(self._stream)

    def wait(self) -> np.ndarray:
        """Wait for the last start_copy(); the host's bytes."""
        return self._wait()


class CudaStagingBuffer(PageLocked):
    """Memory to upload from; copies run on a second stream, ordered with the kernels by two events."""

    def map(self) -> np.ndarray:
        """The host's bytes, to be filled; waits until the last upload has read them."""
        return self._wait()

    def upload_then(self, count: int, work: Callable[..., None]) -> None:
        """Start to upload the first `count` bytes, then call work(buffer)."""
        self.device.counters.count_upload(count)
        with self.device:
            copies = self.device._copy_stream
            self._ready.block_stream(copies)
            pycuda_driver.memcpy_htod_async(self.buffer.pointer, self._array[:count], copies)
            self._arrived.record(copies)
            self._arrived.block_stream(self.device._stream)
        work(self.buffer)
        with self.device:
            self._ready.record(self.device._stream)


class Module:
    """A cubin as PyCUDA loads it, and for streams that PyCUDA cannot make as cuda.bindings does."""

    def __init__(self, code: bytes) -> None:
        self._code, self._loaded = code, pycuda_driver.module_from_buffer(code)

    def function(self, entry: str) -> Any:
        """The kernel as a PyCUDA function."""
        return self._loaded.get_function(entry)

    @cached_property
    def _driver_function(self) -> Any:
        return check(cu.cuModuleLoadData(self._code))

    def driver_function(self, entry: str) -> Any:
        """The kernel as a handle of cuda.bindings."""
        return check(cu.cuModuleGetFunction(self._driver_function, entry.encode()))


class CudaKernel(Kernel):
    """Packs arguments as C aligns them and launches on the default stream, or on the queue that is entered."""

    def __init__(self, device: CudaDevice, module: Module, entry: str, name: str, group_size: int) -> None:
        self.device, self.name, self.group_size = device, name, group_size
        self._module, self._entry = module, entry
        self._function, self._block = module.function(entry), (group_size, 1, 1)
        self.registers, self.local_bytes = self._function.num_regs, self._function.local_size_bytes
        self._nonportable_cluster = False  # whether its clusters are larger than PyCUDA can launch

    def supports_cluster_size(self, groups: int) -> bool:
        """Whether the device can run clusters of so many groups."""
        if groups <= PORTABLE_CLUSTER:
            return True
        with self.device:
            allowed = cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
            status, *_ = cu.cuFuncSetAttribute(self._driver_function, allowed, 1)
            if status == cu.CUresult.CUDA_SUCCESS:
                shape = cu.CUlaunchConfig()
                shape.gridDimX, shape.gridDimY, shape.gridDimZ = groups, 1, 1
                shape.blockDimX, shape.blockDimY, shape.blockDimZ = self._block
                status, count = cu.cuOccupancyMaxActiveClusters(self._driver_function, shape)
                self._nonportable_cluster = status == cu.CUresult.CUDA_SUCCESS and count > 0
        return self._nonportable_cluster

    def warm_up(self, threads: int, *arguments: Any) -> None:
        """Launch once beside the queue and wait; see Kernel."""
        grid = (-(-threads // self.group_size), 1, 1)
        with self.device as device, convert_errors(pycuda_driver.Error, self.name):
            self._function._launch_kernel(grid, self._block, self._packed(arguments), 0, device._copy_stream)
            device._copy_stream.synchronize()

    def _packed(self, arguments: Any) -> bytes:
        packed = b""
        for argument in arguments:
            align, data = _pack(argument, self)
            packed = packed.ljust(-(-len(packed) // align) * align, b"\0") + data
        return packed

    def bind_launch(self, threads: int, *arguments: Any) -> Callable[[], None]:
        """A launch with these arguments converted once."""
        packed = self._packed(arguments)
        grid, block, start = (-(-threads // self.group_size), 1, 1), self._block, self._function._launch_kernel
        bare = DriverArguments(packed)

        def launch(_kept_alive: Any = arguments) -> None:
            self.device.counters.launches += 1
            with self.device:
                try:
                    if self._nonportable_cluster or isinstance(self.device._stream, PriorityStream):
                        self._launch_with_driver(grid, bare)
                    else:
                        start(grid, block, packed, 0, self.device._stream)
                except pycuda_driver.Error as error:
                    raise KernelError(f"{self.name}: {error}") from error

        return launch if threads > 0 else lambda: None

    @cached_property
    def _driver_function(self) -> Any:
        return self._module.driver_function(self._entry)

    def _launch_with_driver(self, grid: tuple, bare: "DriverArguments") -> None:
        stream = self.device.stream_handle
        check(cu.cuLaunchKernel(self._driver_function, *grid, *self._block, 0, stream, 0, bare.address))


class DriverArguments:
    """An argument block as the driver's own launch takes it: CU_LAUNCH_PARAM_BUFFER_POINTER (1), _BUFFER_SIZE (2)."""

    def __init__(self, packed: bytes) -> None:
        self._packed = packed

    @cached_property
    def address(self) -> int:
        """Address of the argument block for cuLaunchKernel."""
        self._kept = ctypes.create_string_buffer(self._packed, len(self._packed)), ctypes.c_size_t(len(self._packed))
        block, size = (ctypes.addressof(part) for part in self._kept)
        self._words = (ctypes.c_void_p * 5)(1, block, 2, size, 0)
        return ctypes.addressof(self._words)


def _pack(argument: Any, kernel: CudaKernel) -> tuple[int, bytes]:
    """Alignment and bytes of one kernel argument."""
    if isinstance(argument, CudaBuffer):
        assert kernel.device.can_access_peer(argument.device), f"{kernel.name}: a buffer of another device"
        return 8, struct.pack("P", argument.pointer)
    if type(argument) is int:
        return 4, struct.pack("i", argument)
    if type(argument) is float:
        return 4, struct.pack("f", argument)
    if isinstance(argument, np.generic):
        return alignment(argument.dtype), argument.tobytes()
    raise TypeError(f"{kernel.name}: {type(argument).__name__} is no kernel argument")
