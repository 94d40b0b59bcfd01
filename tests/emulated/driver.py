"""Stands in for cuda.bindings.driver: what renderer.gpu.cuda.device calls of it, over emulated devices.

Copies, fills and launches are put off as far as CUDA allows (schedule.py). Contexts, streams and events of the wrong
device are errors, as they are in CUDA.
"""

import ctypes
import os
import re
import subprocess
import threading
import time
from functools import cache
from types import SimpleNamespace

import numpy as np

from . import compiler
from .memory import GARBAGE, Memory
from .schedule import KernelFault, Schedule, Stream

NON_BLOCKING = 1
SUCCESS, INVALID = SimpleNamespace(name="CUDA_SUCCESS"), SimpleNamespace(name="CUDA_ERROR_INVALID_VALUE")
CAPABILITY, UNITS, MEMORY, LOCAL_BYTES = (9, 0), 4, 4 << 30, 227 << 10


class DriverError(Exception):
    """An answer that is not CUDA_SUCCESS."""


class Event:
    def __init__(self, device: int):
        self.device, self.operation, self.at = device, None, 0.0

    def reached(self) -> None:
        self.at = time.perf_counter()


class Emulation:
    """`count` devices with streams, events and memory; everything that is drawn comes from the seed."""

    def __init__(self, count: int, seed: int, races: bool, folder):
        self.count, self.races, self.folder = count, races, folder
        self.schedule = Schedule(seed)
        self.rng = np.random.default_rng([seed, 1])
        self.memories = [Memory(MEMORY, self.rng) for _ in range(count)]
        self.defaults = [self.schedule.stream(device) for device in range(count)]
        self.handles: dict[int, Stream] = {}
        self.host_arrays: dict[int, np.ndarray] = {}  # page-locked, by address
        self._entered = threading.local()
        self._next = 1

    # ---------------------------------------------------------------------------------------------------- contexts
    def push(self, device: int) -> None:
        stack = self._entered.__dict__.setdefault("stack", [])
        stack.append(device)

    def pop(self) -> None:
        self._entered.stack.pop()

    @property
    def device(self) -> int:
        stack = getattr(self._entered, "stack", None)
        if not stack:
            raise DriverError("no context is entered")
        return stack[-1]

    # ----------------------------------------------------------------------------------------------------- streams
    def new_stream(self) -> int:
        with self.schedule.lock:
            self._next += 1
            self.handles[self._next] = self.schedule.stream(self.device)
            return self._next

    def stream(self, handle) -> Stream:
        """The stream of a handle (0: the entered device's own), which must be of the entered device."""
        stream = self.handles[int(handle)] if handle else self.defaults[self.device]
        if stream.device != self.device:
            raise DriverError(f"a stream of device {stream.device} while device {self.device} is entered")
        return stream

    def raise_failures(self) -> None:
        with self.schedule.lock:
            if self.schedule.failures:
                told, self.schedule.failures[:] = "; ".join(self.schedule.failures), []
                raise DriverError(told)

    def synchronize(self, operation) -> None:
        self.schedule.until(operation)
        self.raise_failures()

    # ------------------------------------------------------------------------------------------------------ memory
    def allocate(self, count: int) -> int:
        with self.schedule.lock:
            address = self.memories[self.device].take(count)
        if address is None:
            raise DriverError("CUDA_ERROR_OUT_OF_MEMORY")
        return address

    def free(self, address: int) -> None:
        """As cuMemFree: waits for the device."""
        device = self.device

        def give() -> None:
            self.schedule.drain(device)
            self.memories[device].give(address)

        self.schedule.lock.behind(give)

    def allocate_host(self, count: int) -> int:
        """The address of page-locked bytes."""
        array = np.empty(count, np.uint8)
        self.poison(array)
        self.host_arrays[array.ctypes.data] = array
        return array.ctypes.data

    def free_host(self, address: int) -> None:
        def give() -> None:
            self.schedule.drain()
            del self.host_arrays[address]

        self.schedule.lock.behind(give)

    def poison(self, array: np.ndarray) -> None:
        array.reshape(-1).view(np.uint8)[:] = GARBAGE[self.rng.integers(len(GARBAGE))]

    # ----------------------------------------------------------------------------------------------------- kernels
    def launch(self, function: "Function", grid, block, packed: bytes, stream: Stream) -> None:
        if len(packed) != function.size:
            raise DriverError(f"{function.name}: {len(packed)} bytes of arguments, {function.size} wanted")
        if not 0 < block[0] <= 1024 or grid[0] <= 0:
            raise DriverError(f"{function.name}: {grid[0]} groups of {block[0]} threads")
        if function.device != stream.device:
            raise DriverError(f"{function.name}: a kernel of device {function.device} on one of {stream.device}")
        stream.add(lambda: self._run(function, grid[0], block[0], packed))

    def _run(self, function: "Function", groups: int, threads: int, packed: bytes) -> None:
        message = ctypes.create_string_buffer(1024)
        seed = int(self.rng.integers(1 << 63))
        module = function.module
        failed = module.runtime.emulated_launch(
            function.entry,
            packed,
            groups,
            threads,
            function.cluster,
            module.address,
            self.races,
            seed,
            message,
            len(message),
        )
        if failed:
            raise KernelFault(f"{function.name}: {self._explained(message.value.decode())}")

    def _explained(self, told: str) -> str:
        """With the buffer and the line of the text, where the words hold addresses."""
        address = re.search(r"address 0x([0-9a-f]+)", told)
        if address:
            places = [memory.piece_at(int(address[1], 16)) for memory in self.memories]
            told += "; " + next((place for place in places if place != "in no buffer"), "in no buffer")
        return re.sub(r"code at \+(0x[0-9a-f]+) of ([^\s;]+)", _line, told)


def _line(match: re.Match) -> str:
    """The line of the text for an address in its code, and those from where that was called."""
    command = ["addr2line", "-i", "-e", match[2], match[1]]
    lines = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    return "at " + " from ".join(os.path.basename(line).split(" ")[0] for line in lines)


@cache
def _loaded(code: bytes) -> ctypes.CDLL:
    file = os.memfd_create("kernels")  # stays open, for addr2line
    os.write(file, code)
    return ctypes.CDLL(f"/proc/{os.getpid()}/fd/{file}")


_runtime_lock = threading.Lock()


class Module:
    """A shared object of compiler.py, loaded."""

    def __init__(self, emulation: Emulation, code: bytes):
        self.emulation, self.device = emulation, emulation.device
        with _runtime_lock:  # two threads that compile would load it twice
            self.runtime = compiler.runtime(emulation.folder)
        self.library = _loaded(code)
        self.library.emulated_module_address.restype = ctypes.c_void_p
        self.address = self.library.emulated_module_address()

    def get_function(self, entry: str) -> "Function":
        try:
            return Function(self, entry)
        except AttributeError:
            raise DriverError(f"cuModuleGetFunction failed: no {entry}") from None


class Function:
    def __init__(self, module: Module, entry: str):
        self.module, self.name, self.device = module, entry, module.device
        self.entry = ctypes.cast(getattr(module.library, f"emulated_entry_{entry}"), ctypes.c_void_p)
        self.size = getattr(module.library, f"emulated_size_{entry}")()
        self.cluster = getattr(module.library, f"emulated_cluster_{entry}")()


def bindings_driver(emulation: Emulation) -> SimpleNamespace:
    """cuda.bindings.driver: functions that answer (status, value)."""
    schedule = emulation.schedule

    not_ready = SimpleNamespace(name="CUDA_ERROR_NOT_READY")

    def answered(function):
        def answer(*arguments):
            try:
                value = function(*arguments)
            except DriverError as error:
                return SimpleNamespace(name=str(error)), None
            return SUCCESS, value

        return answer

    def record(event: Event, handle) -> None:
        stream = emulation.stream(handle)
        if stream.device != event.device:
            raise DriverError(f"an event of device {event.device} recorded on device {stream.device}")
        event.operation = stream.add(event.reached)

    def query(event: Event) -> tuple:
        if event.operation and not event.operation.done:
            return (not_ready,)
        emulation.raise_failures()
        return SUCCESS, None

    def hold(handle, event: Event, flags) -> None:
        stream = emulation.stream(handle)
        if event.operation:
            stream.add(None, (event.operation,))

    def elapsed(earlier: Event, event: Event) -> float:
        emulation.synchronize(earlier.operation)
        emulation.synchronize(event.operation)
        return (event.at - earlier.at) * 1e3

    def begin_capture(handle, mode) -> None:
        stream = emulation.stream(handle)
        stream.captured = []

    def end_capture(handle) -> list:
        stream = emulation.stream(handle)
        graph, stream.captured = stream.captured, None
        return graph

    def launch_graph(graph: list, handle) -> None:
        stream = emulation.stream(handle)
        for run in graph:
            stream.add(run)

    def fill(to: int, byte: int, count: int, stream: Stream) -> None:
        stream.add(lambda: ctypes.memset(to, byte, count))

    def copy(to: int, source: int, count: int, stream: Stream) -> None:
        stream.add(lambda: ctypes.memmove(to, source, count))

    def device_handle(index: int) -> int:
        if not 0 <= index < emulation.count:
            raise DriverError("CUDA_ERROR_INVALID_DEVICE")
        return index

    def new_stream(flags: int, priority: int) -> int:
        assert flags == NON_BLOCKING, "a stream that the default stream waits for"
        return emulation.new_stream()

    def synchronize_context() -> None:
        schedule.drain(emulation.device)
        emulation.raise_failures()

    def upload(to: int, source: int, count: int) -> None:
        bytes_now = ctypes.string_at(source, count)  # the call may return as soon as it has read the array
        emulation.stream(0).add(lambda: ctypes.memmove(to, bytes_now, count))

    def download(to: int, source: int, count: int) -> None:
        emulation.synchronize(download_later(to, source, count, 0))

    def download_later(to: int, source: int, count: int, handle: int):
        emulation.poison(np.ctypeslib.as_array((ctypes.c_uint8 * count).from_address(to)))
        return emulation.stream(handle).add(lambda: ctypes.memmove(to, source, count))

    def copy_between(to: int, target_context: int, source: int, source_context: int, count: int, handle: int) -> None:
        if target_context == source_context:
            raise DriverError("a copy between devices inside one")
        copy(to, source, count, emulation.stream(handle))

    def launch(function: Function, gx, gy, gz, bx, by, bz, shared, handle, parameters, extra) -> None:
        block, size = (ctypes.c_void_p * 5).from_address(extra)[1:4:2]
        packed = ctypes.string_at(block, ctypes.c_size_t.from_address(size).value)
        emulation.launch(function, (gx, gy, gz), (bx, by, bz), packed, emulation.stream(handle))

    return SimpleNamespace(
        CUresult=SimpleNamespace(
            CUDA_SUCCESS=SUCCESS, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED=None, CUDA_ERROR_NOT_READY=not_ready
        ),
        CUdevice_attribute=SimpleNamespace(
            CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT=UNITS,
            CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN=LOCAL_BYTES,
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR=CAPABILITY[0],
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR=CAPABILITY[1],
        ),
        CUevent_flags=SimpleNamespace(CU_EVENT_DISABLE_TIMING=2),
        CUstreamCaptureMode=SimpleNamespace(CU_STREAM_CAPTURE_MODE_RELAXED=2),
        CUfunction_attribute=SimpleNamespace(
            CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED=14, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES=8
        ),
        CUlaunchConfig=SimpleNamespace,
        cuInit=answered(lambda flags: None),
        cuDriverGetVersion=answered(lambda: 12090),
        cuDeviceGetCount=answered(lambda: emulation.count),
        cuDeviceGet=answered(device_handle),
        cuDeviceGetName=answered(lambda length, device: b"Emulated CUDA".ljust(length, b"\0")),
        cuDeviceTotalMem=answered(lambda device: MEMORY),
        cuDeviceGetAttribute=answered(lambda value, device: value),
        cuDevicePrimaryCtxRetain=answered(lambda device: device),
        cuCtxPushCurrent=answered(emulation.push),
        cuCtxPopCurrent=answered(emulation.pop),
        cuCtxSynchronize=answered(synchronize_context),
        cuMemAlloc=answered(emulation.allocate),
        cuMemFree=answered(emulation.free),
        cuMemHostAlloc=answered(lambda count, flags: emulation.allocate_host(count)),
        cuMemFreeHost=answered(emulation.free_host),
        cuMemcpyHtoD=answered(upload),
        cuMemcpyDtoH=answered(download),
        cuMemcpyHtoDAsync=answered(lambda to, source, count, handle: copy(to, source, count, emulation.stream(handle))),
        cuMemcpyDtoHAsync=answered(lambda *copy_arguments: download_later(*copy_arguments) and None),
        cuMemcpyPeerAsync=answered(copy_between),
        cuFuncSetAttribute=answered(lambda function, attribute, value: None),
        cuOccupancyMaxActiveClusters=answered(lambda function, shape: shape.gridDimX <= 16),
        cuCtxEnablePeerAccess=answered(lambda context, flags: None),
        cuCtxGetStreamPriorityRange=lambda: (SUCCESS, 0, -1),
        cuStreamCreateWithPriority=answered(new_stream),
        cuStreamSynchronize=answered(lambda handle: emulation.synchronize(emulation.stream(handle).last)),
        cuStreamDestroy=answered(lambda handle: None),
        cuStreamWaitEvent=answered(hold),
        cuStreamBeginCapture=answered(begin_capture),
        cuStreamEndCapture=answered(end_capture),
        cuEventCreate=answered(lambda flags: Event(emulation.device)),
        cuEventDestroy=answered(lambda event: None),
        cuEventRecord=answered(record),
        cuEventQuery=query,
        cuEventSynchronize=answered(lambda event: emulation.synchronize(event.operation)),
        cuEventElapsedTime=answered(elapsed),
        cuGraphInstantiate=answered(lambda graph, flags: graph),
        cuGraphDestroy=answered(lambda graph: None),
        cuGraphExecDestroy=answered(lambda graph: None),
        cuGraphLaunch=answered(launch_graph),
        cuMemsetD8Async=answered(lambda to, byte, count, handle: fill(to, byte, count, emulation.stream(handle))),
        cuMemcpyDtoDAsync=answered(lambda to, source, count, handle: copy(to, source, count, emulation.stream(handle))),
        cuModuleLoadData=answered(lambda code: Module(emulation, code)),
        cuModuleGetFunction=answered(lambda module, entry: module.get_function(entry.decode())),
        cuLaunchKernel=answered(launch),
    )
