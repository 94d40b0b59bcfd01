"""Stands in for pycuda.driver and cuda.bindings.driver: what renderer.gpu.cuda calls of them, over emulated devices.

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
CAPABILITY, UNITS, MEMORY = (9, 0), 4, 4 << 30


class Error(Exception):
    """pycuda.driver.Error."""


class LogicError(Error):
    pass


class DeviceMemoryError(Error):
    pass


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
            raise LogicError("no context is entered")
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
            raise LogicError(f"a stream of device {stream.device} while device {self.device} is entered")
        return stream

    def raise_failures(self) -> None:
        with self.schedule.lock:
            if self.schedule.failures:
                told, self.schedule.failures[:] = "; ".join(self.schedule.failures), []
                raise LogicError(told)

    def synchronize(self, operation) -> None:
        self.schedule.until(operation)
        self.raise_failures()

    # ------------------------------------------------------------------------------------------------------ memory
    def allocate(self, count: int) -> "Allocation":
        with self.schedule.lock:
            address = self.memories[self.device].take(count)
        if address is None:
            raise DeviceMemoryError("out of memory")
        return Allocation(self, self.device, address)

    def poison(self, array: np.ndarray) -> None:
        array.reshape(-1).view(np.uint8)[:] = GARBAGE[self.rng.integers(len(GARBAGE))]

    # ----------------------------------------------------------------------------------------------------- kernels
    def launch(self, function: "Function", grid, block, packed: bytes, stream: Stream) -> None:
        if len(packed) != function.size:
            raise LogicError(f"{function.name}: {len(packed)} bytes of arguments, {function.size} wanted")
        if not 0 < block[0] <= 1024 or grid[0] <= 0:
            raise LogicError(f"{function.name}: {grid[0]} groups of {block[0]} threads")
        if function.device != stream.device:
            raise LogicError(f"{function.name}: a kernel of device {function.device} on one of {stream.device}")
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


class Allocation:
    def __init__(self, emulation: Emulation, device: int, address: int):
        self._emulation, self._device, self._address = emulation, device, address

    def __int__(self) -> int:
        return self._address

    def free(self) -> None:
        """As cuMemFree: waits for the device."""
        self._emulation.schedule.lock.behind(self._give)

    def _give(self) -> None:
        self._emulation.schedule.drain(self._device)
        self._emulation.memories[self._device].give(self._address)


@cache
def _loaded(code: bytes) -> ctypes.CDLL:
    file = os.memfd_create("kernels")  # stays open, for addr2line
    os.write(file, code)
    return ctypes.CDLL(f"/proc/{os.getpid()}/fd/{file}")


class Module:
    """A shared object of compiler.py, loaded."""

    def __init__(self, emulation: Emulation, code: bytes):
        self.emulation, self.device = emulation, emulation.device
        self.runtime = compiler.runtime(emulation.folder)
        self.library = _loaded(code)
        self.library.emulated_module_address.restype = ctypes.c_void_p
        self.address = self.library.emulated_module_address()

    def get_function(self, entry: str) -> "Function":
        try:
            return Function(self, entry)
        except AttributeError:
            raise LogicError(f"cuModuleGetFunction failed: no {entry}") from None


class Function:
    num_regs, local_size_bytes = 32, 0

    def __init__(self, module: Module, entry: str):
        self.module, self.name, self.device = module, entry, module.device
        self.entry = ctypes.cast(getattr(module.library, f"emulated_entry_{entry}"), ctypes.c_void_p)
        self.size = getattr(module.library, f"emulated_size_{entry}")()
        self.cluster = getattr(module.library, f"emulated_cluster_{entry}")()

    def _launch_kernel(self, grid, block, packed: bytes, shared: int, stream) -> None:
        emulation = self.module.emulation
        emulation.launch(self, grid, block, packed, emulation.stream(stream.handle if stream else 0))


def host_memory(emulation: Emulation, count: int) -> np.ndarray:
    """Page-locked bytes whose base can be freed."""

    class Bytes:
        def __init__(self):
            self._bytes = np.empty(count, np.uint8)
            self.__array_interface__ = self._bytes.__array_interface__

        def free(self) -> None:
            emulation.schedule.lock.behind(self._leave)

        def _leave(self) -> None:  # bound, it keeps the bytes until then
            emulation.schedule.drain()

    array = np.asarray(Bytes())
    emulation.poison(array)
    return array


def pycuda_driver(emulation: Emulation) -> SimpleNamespace:
    """pycuda.driver."""
    schedule = emulation.schedule

    class Context:
        def __init__(self, device: int):
            self.handle, self._device = device, device

        def push(self) -> None:
            emulation.push(self._device)

        @staticmethod
        def pop() -> None:
            emulation.pop()

        @staticmethod
        def synchronize() -> None:
            schedule.drain(emulation.device)
            emulation.raise_failures()

    class Device:
        def __init__(self, index: int):
            if not 0 <= index < emulation.count:
                raise LogicError(f"no device {index}")
            self._index = index

        @staticmethod
        def count() -> int:
            return emulation.count

        def name(self) -> str:
            return "Emulated CUDA"

        def compute_capability(self) -> tuple[int, int]:
            return CAPABILITY

        multiprocessor_count = UNITS

        def get_attribute(self, attribute: str) -> int:
            return {"units": UNITS}[attribute]

        def total_memory(self) -> int:
            return MEMORY

        def retain_primary_context(self) -> Context:
            return Context(self._index)

    class TheStream:
        def __init__(self, flags: int):
            assert flags == NON_BLOCKING, "a stream that the default stream waits for"
            self.handle = emulation.new_stream()

        def synchronize(self) -> None:
            emulation.synchronize(emulation.stream(self.handle).last)

    class TheEvent:
        def __init__(self):
            self._event = Event(emulation.device)

        def record(self) -> None:
            self._event.operation = emulation.stream(0).add(self._event.reached)

        def synchronize(self) -> None:
            emulation.synchronize(self._event.operation)

        def time_since(self, earlier: "TheEvent") -> float:
            return max(self._event.at - earlier._event.at, 0.0) * 1e3

    def upload(pointer: int, array: np.ndarray) -> None:
        emulation.stream(0).add(_upload(pointer, array.copy()))  # the call may return as soon as it has read the array

    def download(array: np.ndarray, pointer: int) -> None:
        emulation.poison(array)
        operation = emulation.stream(0).add(lambda: ctypes.memmove(array.ctypes.data, pointer, array.nbytes))
        emulation.synchronize(operation)

    def upload_later(pointer: int, array: np.ndarray, stream: TheStream) -> None:
        emulation.stream(stream.handle).add(_upload(pointer, array))

    def download_later(array: np.ndarray, pointer: int, stream: TheStream) -> None:
        emulation.poison(array)
        emulation.stream(stream.handle).add(lambda: ctypes.memmove(array.ctypes.data, pointer, array.nbytes))

    def copy_between(to: int, source: int, count: int, target_context, source_context, stream: TheStream) -> None:
        if target_context.handle == source_context.handle:
            raise LogicError("a copy between devices inside one")
        emulation.stream(stream.handle).add(lambda: ctypes.memmove(to, source, count))

    return SimpleNamespace(
        Error=Error,
        LogicError=LogicError,
        MemoryError=DeviceMemoryError,
        init=lambda: None,
        get_driver_version=lambda: 12090,
        device_attribute=SimpleNamespace(MULTIPROCESSOR_COUNT="units"),
        Context=Context,
        Device=Device,
        Stream=TheStream,
        Event=TheEvent,
        mem_alloc=emulation.allocate,
        memcpy_htod=upload,
        memcpy_dtoh=download,
        memcpy_htod_async=upload_later,
        memcpy_dtoh_async=download_later,
        memcpy_peer_async=copy_between,
        pagelocked_empty=lambda count, dtype: host_memory(emulation, count),
        module_from_buffer=lambda code: Module(emulation, code),
    )


def _upload(pointer: int, array: np.ndarray):
    return lambda: ctypes.memmove(pointer, array.ctypes.data, array.nbytes)


def bindings_driver(emulation: Emulation) -> SimpleNamespace:
    """cuda.bindings.driver: functions that answer (status, value)."""

    def answered(function):
        def answer(*arguments):
            try:
                value = function(*arguments)
            except Error as error:
                return SimpleNamespace(name=str(error)), None
            return SUCCESS, value

        return answer

    def record(event: Event, handle) -> None:
        stream = emulation.stream(handle)
        if stream.device != event.device:
            raise LogicError(f"an event of device {event.device} recorded on device {stream.device}")
        event.operation = stream.add(event.reached)

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

    def launch(function: Function, gx, gy, gz, bx, by, bz, shared, handle, parameters, extra) -> None:
        block, size = (ctypes.c_void_p * 5).from_address(extra)[1:4:2]
        packed = ctypes.string_at(block, ctypes.c_size_t.from_address(size).value)
        emulation.launch(function, (gx, gy, gz), (bx, by, bz), packed, emulation.stream(handle))

    return SimpleNamespace(
        CUresult=SimpleNamespace(CUDA_SUCCESS=SUCCESS, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED=None),
        CUevent_flags=SimpleNamespace(CU_EVENT_DISABLE_TIMING=2),
        CUstreamCaptureMode=SimpleNamespace(CU_STREAM_CAPTURE_MODE_RELAXED=2),
        CUfunction_attribute=SimpleNamespace(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED=14),
        CUlaunchConfig=SimpleNamespace,
        CUcontext=lambda handle: handle,
        cuFuncSetAttribute=answered(lambda function, attribute, value: None),
        cuOccupancyMaxActiveClusters=answered(lambda function, shape: shape.gridDimX <= 16),
        cuCtxEnablePeerAccess=answered(lambda context, flags: None),
        cuCtxGetStreamPriorityRange=lambda: (SUCCESS, 0, -1),
        cuStreamCreateWithPriority=answered(lambda flags, priority: emulation.new_stream()),
        cuStreamDestroy=answered(lambda handle: None),
        cuStreamWaitEvent=answered(hold),
        cuStreamBeginCapture=answered(begin_capture),
        cuStreamEndCapture=answered(end_capture),
        cuEventCreate=answered(lambda flags: Event(emulation.device)),
        cuEventDestroy=answered(lambda event: None),
        cuEventRecord=answered(record),
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
