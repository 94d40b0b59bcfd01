"""The device contract over PyCUDA; kernels compiled by NVRTC (no host compiler), cubins cached on disk by content.

The context is CUDA's retained primary one, so that GL interop, CuPy and PyTorch in the same process share it. It is
pushed around every call and popped after it: PyCUDA aborts the process when a context is left on the stack at exit.
"""

import ctypes
import hashlib
import os
import struct
import sys
import tempfile
import weakref
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from renderer.errors import UnavailableError
from renderer.gpu.kernel_source import Counters, KernelError, Processor, alignment, assemble

try:
    import pycuda.driver as driver
except ImportError as error:
    driver, DRIVER_MISSING = None, str(error)
try:
    from cuda.bindings import driver as streams
    from cuda.bindings import nvrtc
except ImportError as error:
    nvrtc, NVRTC_MISSING = None, str(error)

ENABLED = streams.CUresult.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED if nvrtc else None
LOADED = Path("/dev/nvidiactl")  # is there where NVIDIA's driver is
PORTABLE_CLUSTER = 8  # groups that every GPU with clusters takes
NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING: beside the default stream


def found():
    """This machine's CUDA devices as gpu.Found, and the reason when there is none."""
    from renderer.gpu import Found  # the package defines it above this module

    if not LOADED.exists():
        return [], "no NVIDIA driver is loaded"
    if driver is None:
        return (
            [],
            f"PyCUDA is missing ({DRIVER_MISSING}): pip install pycuda cuda-bindings nvidia-cuda-nvrtc nvidia-cublas "
            "(PyCUDA is built with a C++ compiler)",
        )
    if nvrtc is None:
        return [], f"NVRTC is missing ({NVRTC_MISSING}): pip install cuda-bindings nvidia-cuda-nvrtc"
    try:
        driver.init()
    except driver.Error as error:
        return [], f"the CUDA driver does not start: {error}"
    names = [driver.Device(index).name() for index in range(driver.Device.count())]
    devices = [Found(f"cuda:{i}", name, "cuda", "gpu", partial(CudaDevice, i)) for i, name in enumerate(names)]
    return devices, "" if devices else "the CUDA driver shows no device"


def cache_folder() -> Path:
    """Where compiled kernels are kept: RAYFOLD_CACHE, or rayfold/ in the user's cache folder."""
    root = os.environ.get("RAYFOLD_CACHE")
    return Path(root) if root else Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "rayfold"


def cubin(text: str, architecture: str, name: str = "kernel.cu", strict: bool = False) -> bytes:
    """The machine code of CUDA text for an architecture such as "sm_90".

    From the disk cache when it was compiled before.
    """
    if nvrtc is None:
        raise UnavailableError(f"NVRTC is missing ({NVRTC_MISSING}): pip install cuda-bindings nvidia-cuda-nvrtc")
    options = [f"--gpu-architecture={architecture}", "--std=c++17", "--generate-line-info"]
    options += ["--diag-suppress=1444"]  # of double4, which OpenCL has too
    options += ["--fmad=false"] if strict else []
    _, major, minor = nvrtc.nvrtcVersion()
    key = hashlib.sha256("\0".join([text, *options, f"nvrtc {major}.{minor}"]).encode()).hexdigest()
    path = cache_folder() / "cubin" / f"{key}.cubin"
    try:
        return path.read_bytes()
    except OSError:
        code = _compile(text, options, name)
    _keep(path, code)
    return code


def _keep(path: Path, code: bytes) -> None:
    """Writes the cache file whole or not at all; a cache that cannot be written is no error."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(code)
        os.replace(file.name, path)
    except OSError:
        pass


def _compile(text: str, options: list[str], name: str) -> bytes:
    status, program = nvrtc.nvrtcCreateProgram(text.encode(), name.encode(), 0, None, None)
    try:
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            _, size = nvrtc.nvrtcGetProgramLogSize(program)
            log = b" " * size
            nvrtc.nvrtcGetProgramLog(program, log)
            raise KernelError(f"{name}: NVRTC refuses it\n{log.decode(errors='replace').strip(chr(0)).strip()}")
        _, size = nvrtc.nvrtcGetCUBINSize(program)
        code = b" " * size
        nvrtc.nvrtcGetCUBIN(program, code)
        return code
    finally:
        nvrtc.nvrtcDestroyProgram(program)


class CudaDevice:
    """An NVIDIA GPU; `architecture` is such as "sm_90"."""

    def __init__(self, index: int):
        driver.init()
        handle = driver.Device(index)
        self.index = index
        self.name = f"{handle.name()} (cuda:{index})"
        self.driver = f"CUDA {driver.get_driver_version() // 1000}.{driver.get_driver_version() % 1000 // 10}"
        self.architecture = "sm_{}{}".format(*handle.compute_capability())
        self.vector_width, self.units = 1, handle.multiprocessor_count
        self.vector_adds = handle.compute_capability() >= (9, 0)
        self.context = handle.retain_primary_context()
        self._kernels: dict = {}
        self.counters, self.trusted_clock = Counters(), True
        self._products: dict = {}
        self._ways: dict = {}
        self._reached = {index: True}
        self._stream = None  # where kernels go: the default stream, but while a graph is made
        attribute = driver.device_attribute
        memory = handle.total_memory()
        units = handle.get_attribute(attribute.MULTIPROCESSOR_COUNT)
        cluster = PORTABLE_CLUSTER if handle.compute_capability() >= (9, 0) else 1
        copies = handle.compute_capability() >= (8, 0)
        self.processor = Processor(units, 32, memory, memory, True, True, cluster, copies)
        with self:
            self._events = driver.Event(), driver.Event()
            self._copies = driver.Stream(NON_BLOCKING)  # beside the default stream, which kernels use

    def __enter__(self):
        self.context.push()
        return self

    def __exit__(self, *error):
        driver.Context.pop()

    @property
    def stream_handle(self) -> int:
        """Of the stream that work goes to now; 0 is the default one."""
        return self._stream.handle if self._stream else 0

    def way_to(self, other: "CudaDevice") -> "Way":
        if other.index not in self._ways:
            self._ways[other.index] = Way(self, other)
        return self._ways[other.index]

    def reaches(self, other) -> bool:
        if not isinstance(other, CudaDevice):
            return False
        if other.index not in self._reached:
            with self:
                status, *_ = streams.cuCtxEnablePeerAccess(streams.CUcontext(other.context.handle), 0)
            self._reached[other.index] = status in (streams.CUresult.CUDA_SUCCESS, ENABLED)
        return self._reached[other.index]

    def buffer(self, shape, dtype="f4") -> "CudaBuffer":
        return CudaBuffer(self, shape, dtype)

    def stage(self, count: int) -> "CudaStage":
        return CudaStage(self, count)

    def tray(self, count: int) -> "CudaTray":
        return CudaTray(self, count)

    def vendor_product(self, dtype):
        from renderer.gpu import cublas  # loads a library of 500 MB: only for those who multiply

        if np.dtype(dtype) not in self._products:
            self._products[np.dtype(dtype)] = cublas.open_product(self, dtype)
        return self._products[np.dtype(dtype)]

    def repeat(self, work) -> "CudaRepeat":
        return CudaRepeat(self, work)

    def mark(self) -> "CudaMark":
        return CudaMark(self)

    def queue(self) -> "CudaQueue":
        return CudaQueue(self)

    def place(self, again: "Place | None" = None) -> "Place":
        with self:
            place = again or Place()
            place.record(self._stream)
        return place

    def wait(self, place: "Place") -> None:
        with self:
            place.hold(self._stream)

    def catch_up(self, stream=None) -> None:
        """Waits until all that a stream, the default one without, was given is done."""
        with self:
            place = Place()
            place.record(stream)
            place.synchronize()

    def kernel(self, file, entry: str, group: int = 256, **constants) -> "CudaKernel":
        name = getattr(file, "name", file)
        text = assemble(file, GROUP_SIZE=group, **constants)
        key = hashlib.sha256(text.encode()).digest()
        with self:
            if key not in self._kernels:
                code = cubin(text, self.architecture, name, strict=bool(constants.get("STRICT")))
                self._kernels[key] = Module(code)
            try:
                return CudaKernel(self, self._kernels[key], entry, f"{name}:{entry}", group)
            except driver.LogicError as error:
                raise KernelError(f"{name} has no kernel {entry}") from error

    def finish(self) -> None:
        with self:
            try:
                driver.Context.synchronize()
            except driver.Error as error:
                raise KernelError(f"{self.name}: a kernel failed: {error}") from error

    def seconds(self, work) -> float:
        start, end = self._events
        with self:
            start.record()
            work()
            end.record()
            end.synchronize()
            return end.time_since(start) * 1e-3


class CudaBuffer:
    def __init__(self, device: CudaDevice, shape, dtype="f4"):
        self.device = device
        self.shape = (int(shape),) if np.isscalar(shape) else tuple(int(n) for n in shape)
        self.dtype = np.dtype(dtype)
        self.nbytes = int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize
        device.counters.allocations += 1
        with device:
            try:
                self._memory = driver.mem_alloc(max(self.nbytes, 4))
            except driver.MemoryError as error:
                raise UnavailableError(f"{device.name}: no room for {self.nbytes / 2**20:.0f} MiB") from error
        self.pointer = int(self._memory)

    def __del__(self):
        _free(self.device, getattr(self, "_memory", None))

    def write(self, array) -> "CudaBuffer":
        array = np.ascontiguousarray(array)
        assert array.dtype == self.dtype and array.nbytes == self.nbytes, (
            array.dtype,
            array.shape,
            self.dtype,
            self.shape,
        )
        self.device.counters.uploads += 1
        self.device.counters.uploaded_bytes += self.nbytes
        if self.nbytes:
            with self.device as device:
                if device._stream:
                    device.catch_up(device._stream)
                driver.memcpy_htod(self.pointer, array)
                if device._stream:  # the host's memory is free by now, but the copy may be under way
                    device.catch_up()
        return self

    def read(self) -> np.ndarray:
        array = np.empty(self.shape, self.dtype)
        self.device.counters.downloads += 1
        if self.nbytes:
            with self.device as device:
                if device._stream:
                    device.catch_up(device._stream)
                try:
                    driver.memcpy_dtoh(array, self.pointer)
                except driver.Error as error:
                    raise KernelError(f"{self.device.name}: a kernel failed: {error}") from error
        return array

    def fill(self, byte: int) -> "CudaBuffer":
        if self.nbytes:
            with self.device:
                checked(streams.cuMemsetD8Async(self.pointer, byte, self.nbytes, self.device.stream_handle))
        return self

    def copy(self, source) -> "CudaBuffer":
        assert source.nbytes == self.nbytes, (source.shape, self.shape)
        if not isinstance(source, CudaBuffer):
            return self.write(source.read().view(self.dtype).reshape(self.shape))
        if not self.nbytes:
            return self
        with self.device:
            if source.device is self.device:
                self._pull(source, self.device.stream_handle)
            else:
                self._push(source)
        return self

    def _pull(self, source: "CudaBuffer", stream: int) -> None:
        """From the same GPU."""
        checked(streams.cuMemcpyDtoDAsync(self.pointer, source.pointer, self.nbytes, stream))

    def _push(self, source: "CudaBuffer") -> None:
        """From another device: a stream between the two waits for both queues, and both queues wait for the copy."""
        between = source.device.way_to(self.device)
        with self.device:
            between.free.record(self.device._stream)
        with source.device:
            between.ready.record(source.device._stream)
            between.ready.hold(between.stream)
            between.free.hold(between.stream)
            if source.device.index == self.device.index:  # one GPU, opened twice
                self._pull(source, between.stream.handle)
            else:
                contexts = self.device.context, source.device.context
                driver.memcpy_peer_async(self.pointer, source.pointer, self.nbytes, *contexts, between.stream)
            between.arrived.record(between.stream)
            between.arrived.hold(source.device._stream)
        with self.device:
            between.arrived.hold(self.device._stream)


class Way:
    """From one GPU to another: a stream and the places of the copy that it is at; made with the source entered."""

    def __init__(self, source: CudaDevice, target: CudaDevice):
        with target:
            self.free = Place()
        with source:
            self.stream, self.ready, self.arrived = driver.Stream(NON_BLOCKING), Place(), Place()
        source.reaches(target), target.reaches(source)  # copies are faster then


def _free(device: CudaDevice, memory) -> None:
    """Gives memory back with its context entered: PyCUDA frees in the thread that made the context, or not at all."""
    if memory is not None and not sys.is_finalizing():
        with device:
            memory.free()


class Place:
    """A place in a stream that other streams can wait for: an event, from cuda.bindings, since PyCUDA's have no handle.

    Its device is entered when it is made and used; no stream means the default one, which kernels use.
    """

    def __init__(self):
        self._event = checked(streams.cuEventCreate(streams.CUevent_flags.CU_EVENT_DISABLE_TIMING))
        weakref.finalize(self, streams.cuEventDestroy, self._event).atexit = False

    def record(self, stream=None) -> None:
        checked(streams.cuEventRecord(self._event, stream.handle if stream else 0))

    def hold(self, stream=None) -> None:
        """Later work of the stream waits until this place is reached."""
        checked(streams.cuStreamWaitEvent(stream.handle if stream else 0, self._event, 0))

    def synchronize(self) -> None:
        checked(streams.cuEventSynchronize(self._event))


def checked(answer):
    """The value of a cuda.bindings answer; KernelError when its status is not success."""
    status, *values = answer
    if status != streams.CUresult.CUDA_SUCCESS:
        raise KernelError(f"CUDA: a kernel or a copy failed: {status.name}")
    return values[0] if values else None


class CudaQueue:
    """A stream that the scheduler prefers to the default one; entered, it takes the launches of the thread."""

    def __init__(self, device: CudaDevice):
        self.device, self._outer = device, []
        with device:
            _, _, urgent = streams.cuCtxGetStreamPriorityRange()
            self.handle = int(checked(streams.cuStreamCreateWithPriority(NON_BLOCKING, urgent)))
        weakref.finalize(self, _destroy_stream, device, self.handle).atexit = False

    def __enter__(self) -> "CudaQueue":
        self._outer.append(self.device._stream)
        self.device._stream = self
        return self

    def __exit__(self, *error) -> None:
        self.device._stream = self._outer.pop()


def _destroy_stream(device: CudaDevice, handle: int) -> None:
    with device:
        streams.cuStreamDestroy(handle)


class CudaMark:
    def __init__(self, device: CudaDevice):
        self.device = device
        with device:
            self._event = checked(streams.cuEventCreate(0))
            checked(streams.cuEventRecord(self._event, device.stream_handle))
        weakref.finalize(self, streams.cuEventDestroy, self._event).atexit = False

    def seconds_since(self, earlier: "CudaMark") -> float:
        with self.device:
            checked(streams.cuEventSynchronize(self._event))
            return checked(streams.cuEventElapsedTime(earlier._event, self._event)) * 1e-3


class CudaRepeat:
    """A CUDA graph of launches: one call starts them all, some ten times faster than Python starts them one by one."""

    def __init__(self, device: CudaDevice, work):
        self.device, self._kept_alive = device, work
        before = device.counters.launches
        with device:
            stream = driver.Stream(NON_BLOCKING)  # the default stream cannot be captured
            mode = streams.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
            checked(streams.cuStreamBeginCapture(stream.handle, mode))
            entered, device._stream = device._stream, stream
            try:
                work()
            finally:
                device._stream = entered
                graph = checked(streams.cuStreamEndCapture(stream.handle))
            self._graph = checked(streams.cuGraphInstantiate(graph, 0))
            checked(streams.cuGraphDestroy(graph))
        weakref.finalize(self, _destroy_graph, device, self._graph).atexit = False  # the process's end frees it too
        self._launches = device.counters.launches - before
        device.counters.launches = before

    def __call__(self) -> None:
        self.device.counters.launches += self._launches
        with self.device:
            checked(streams.cuGraphLaunch(self._graph, self.device.stream_handle))


def _destroy_graph(device: CudaDevice, graph) -> None:
    with device:
        streams.cuGraphExecDestroy(graph)


class CudaTray:
    """A buffer and page-locked memory; the copy runs on a second stream."""

    def __init__(self, device: CudaDevice, count: int):
        self.device, self.buffer = device, CudaBuffer(device, count, "u1")
        with device:
            try:
                self._array = driver.pagelocked_empty(count, np.uint8)
            except driver.Error as error:
                raise UnavailableError(
                    f"{device.name}: {count / 2**20:.0f} MiB cannot be page-locked: {error}"
                ) from error
            self._filled, self._arrived = Place(), Place()
            self._back = driver.Stream(NON_BLOCKING)  # not behind uploads

    def __del__(self):
        if hasattr(self, "_array"):
            _free(self.device, self._array.base)

    def send(self) -> None:
        with self.device:
            self._filled.record(self.device._stream)
            self._filled.hold(self._back)
            driver.memcpy_dtoh_async(self._array, self.buffer.pointer, self._back)
            self._arrived.record(self._back)

    def read(self) -> np.ndarray:
        with self.device:
            self._arrived.synchronize()
        return self._array


class CudaStage:
    """Page-locked memory and a buffer; copies run on a second stream, ordered with the kernels by two events."""

    def __init__(self, device: CudaDevice, count: int):
        self.device, self.buffer = device, CudaBuffer(device, count, "u1")
        with device:
            try:
                self._array = driver.pagelocked_empty(count, np.uint8)
            except driver.Error as error:
                raise UnavailableError(
                    f"{device.name}: {count / 2**20:.0f} MiB cannot be page-locked: {error}"
                ) from error
            self._arrived, self._used = Place(), Place()

    def __del__(self):
        if hasattr(self, "_array"):
            _free(self.device, self._array.base)

    def open(self) -> np.ndarray:
        with self.device:
            self._arrived.synchronize()
        return self._array

    def send(self, count: int, work) -> None:
        self.device.counters.uploads += 1
        self.device.counters.uploaded_bytes += count
        with self.device:
            copies = self.device._copies
            self._used.hold(copies)
            driver.memcpy_htod_async(self.buffer.pointer, self._array[:count], copies)
            self._arrived.record(copies)
            self._arrived.hold(self.device._stream)
        work(self.buffer)
        with self.device:
            self._used.record(self.device._stream)


class Module:
    """A cubin as PyCUDA loads it, and for streams that PyCUDA cannot make as cuda.bindings does."""

    def __init__(self, code: bytes):
        self._code, self._loaded = code, driver.module_from_buffer(code)

    def function(self, entry: str):
        return self._loaded.get_function(entry)

    @cached_property
    def _bare(self):
        return checked(streams.cuModuleLoadData(self._code))

    def bare_function(self, entry: str):
        return checked(streams.cuModuleGetFunction(self._bare, entry.encode()))


class CudaKernel:
    """Packs arguments as C aligns them and launches on the default stream, or on the queue that is entered."""

    def __init__(self, device: CudaDevice, module: Module, entry: str, name: str, group: int):
        self.device, self.name, self.group = device, name, group
        self._module, self._entry, self._function, self._block = module, entry, module.function(entry), (group, 1, 1)
        self.registers, self.local_bytes = self._function.num_regs, self._function.local_size_bytes
        self._wide = False  # whether its clusters are larger than PyCUDA can launch

    def takes_clusters(self, groups: int) -> bool:
        if groups <= PORTABLE_CLUSTER:
            return True
        with self.device:
            allowed = streams.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
            status, *_ = streams.cuFuncSetAttribute(self._bare, allowed, 1)
            if status == streams.CUresult.CUDA_SUCCESS:
                shape = streams.CUlaunchConfig()
                shape.gridDimX, shape.gridDimY, shape.gridDimZ = groups, 1, 1
                shape.blockDimX, shape.blockDimY, shape.blockDimZ = self._block
                status, count = streams.cuOccupancyMaxActiveClusters(self._bare, shape)
                self._wide = status == streams.CUresult.CUDA_SUCCESS and count > 0
        return self._wide

    def __call__(self, threads: int, *arguments) -> None:
        self.bound(threads, *arguments)()

    def prepare(self, threads: int, *arguments) -> None:
        grid = (-(-threads // self.group), 1, 1)
        with self.device:
            copies = self.device._copies
            try:
                self._function._launch_kernel(grid, self._block, self._packed(arguments), 0, copies)
                copies.synchronize()
            except driver.Error as error:
                raise KernelError(f"{self.name}: {error}") from error

    def _packed(self, arguments) -> bytes:
        packed = b""
        for argument in arguments:
            align, data = _pack(argument, self)
            packed = packed.ljust(-(-len(packed) // align) * align, b"\0") + data
        return packed

    def bound(self, threads: int, *arguments):
        packed = self._packed(arguments)
        grid, block, start = (-(-threads // self.group), 1, 1), self._block, self._function._launch_kernel
        bare = BareArguments(packed)

        def launch(_kept_alive=arguments) -> None:
            self.device.counters.launches += 1
            with self.device:
                try:
                    if self._wide or isinstance(self.device._stream, CudaQueue):
                        self._launch_bare(grid, bare)
                    else:
                        start(grid, block, packed, 0, self.device._stream)
                except driver.Error as error:
                    raise KernelError(f"{self.name}: {error}") from error

        return launch if threads > 0 else lambda: None

    @cached_property
    def _bare(self):
        return self._module.bare_function(self._entry)

    def _launch_bare(self, grid: tuple, bare: "BareArguments") -> None:
        stream = self.device.stream_handle
        checked(streams.cuLaunchKernel(self._bare, *grid, *self._block, 0, stream, 0, bare.address))


class BareArguments:
    """An argument block as the driver's own launch takes it: CU_LAUNCH_PARAM_BUFFER_POINTER (1), _BUFFER_SIZE (2)."""

    def __init__(self, packed: bytes):
        self._packed = packed

    @cached_property
    def address(self) -> int:
        self._kept = ctypes.create_string_buffer(self._packed, len(self._packed)), ctypes.c_size_t(len(self._packed))
        block, size = (ctypes.addressof(part) for part in self._kept)
        self._words = (ctypes.c_void_p * 5)(1, block, 2, size, 0)
        return ctypes.addressof(self._words)


def _pack(argument, kernel: CudaKernel) -> tuple[int, bytes]:
    """Alignment and bytes of one kernel argument."""
    if isinstance(argument, CudaBuffer):
        assert kernel.device.reaches(argument.device), f"{kernel.name}: a buffer of another device"
        return 8, struct.pack("P", argument.pointer)
    if type(argument) is int:
        return 4, struct.pack("i", argument)
    if type(argument) is float:
        return 4, struct.pack("f", argument)
    if isinstance(argument, np.generic):
        return alignment(argument.dtype), argument.tobytes()
    raise TypeError(f"{kernel.name}: {type(argument).__name__} is no kernel argument")
