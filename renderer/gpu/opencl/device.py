"""The device contract over PyOpenCL: GPUs of every vendor, and CPUs through PoCL or Intel's runtime.

list_devices() finds the devices, an OpenclDevice compiles programs, an OpenclKernel launches one of their kernels;
memory.py has the buffers. gpu/device.py says what each method does for its caller. PoCL compiles again at the first
launch of each shape; pocl_compile.py does that ahead, in another process.
"""

import hashlib
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from renderer.errors import KernelError
from renderer.gpu.cache import cache_folder, read_entry, write_entry
from renderer.gpu.compilation import Compiler, interruptible
from renderer.gpu.device import Buffer, Device, Kernel, ProgramText, Shape, convert_errors
from renderer.gpu.dlpack import CPU, Tensor, export_tensor
from renderer.gpu.opencl import memory
from renderer.gpu.opencl.icd import SYSTEM_LIST, VENDOR_VARIABLES, icd_files, select_drivers
from renderer.gpu.opencl.pocl_compile import MAX_SMALL_GRID, Launch, PoclCompile
from renderer.gpu.opening import DeviceInfo
from renderer.gpu.properties import DeviceProperties
from renderer.host import locked
from renderer.system.install import OPENCL, pip_install, system_advice
from renderer.system.trust import check_memory

try:
    import pyopencl as cl
    from pyopencl.characterize import has_src_build_cache
except ImportError as error:
    cl, IMPORT_ERROR = None, str(error)  # type: ignore[assignment]  # checked before use

STRICT_OPTIONS = ["-cl-std=CL1.2", "-w", "-cl-fp32-correctly-rounded-divide-sqrt"]  # correct rounding, as in CUDA
OPTIONS = [*STRICT_OPTIONS, "-cl-mad-enable"]
HOST_ALIGNMENT = 16  # bytes of a float4, which kernels load in one instruction
MAX_NEW_BYTES = 1 << 20  # largest array for which a new buffer is cheaper than waiting for kernels
POCL, NVIDIA = "Portable Computing Language", "NVIDIA CUDA"  # names of platforms


def list_devices() -> tuple[list[DeviceInfo], str]:
    """Lists this machine's OpenCL devices; also returns the reason if there is none."""
    if cl is None:
        return [], f"PyOpenCL is missing ({IMPORT_ERROR}): {pip_install('pyopencl')}"
    rejected = select_drivers()  # the loader now skips these; SYSTEM_LIST stands for all drivers (icd.py)
    try:
        platforms = [] if str(SYSTEM_LIST) in rejected else cl.get_platforms()
    except cl.Error:
        platforms = []
    devices = []
    for p, platform in enumerate(platforms):
        try:
            handles = platform.get_devices()
        except cl.Error:  # a platform without devices reports an error
            continue
        for d, handle in enumerate(handles):
            names: dict[int, str] = {int(cl.device_type.GPU): "gpu", int(cl.device_type.CPU): "cpu"}
            device_type = names.get(int(handle.type) & 6, "other")  # 6: CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_GPU
            name = f"{handle.name.strip()}, {platform.name.strip()}"
            devices.append(DeviceInfo(f"opencl:{p}:{d}", name, "opencl", device_type, partial(OpenclDevice, p, d)))
    return devices, "" if devices else _why_no_device()


def _why_no_device() -> str:
    """Explains why there is no device (no driver, hidden by a variable, or broken) and what helps."""
    rejected = select_drivers()
    if rejected:
        reasons = "; ".join(f"{driver}: {verdict.reason}" for driver, verdict in rejected.items())
        return f"no OpenCL driver works here: {reasons}. {system_advice(OPENCL)}"
    if icd_files():
        return f"the OpenCL drivers show no device. {system_advice(OPENCL)}"
    named = [f"{name}={os.environ[name]}" for name in VENDOR_VARIABLES if os.environ.get(name)]
    if named:
        return f"no OpenCL driver is installed where {named[0]} points: unset it. {system_advice(OPENCL)}"
    return f"no OpenCL driver is installed. {system_advice(OPENCL)}"


class Program(NamedTuple):
    """A built program with its text and options; `key` identifies it."""

    handle: "cl.Program"
    key: bytes
    text: str
    options: list[str]


class OpenclDevice(Device):
    """One device of an OpenCL platform, or, if `handle` is given, a sub-device of it.

    `_queue` runs kernels, `_copy_queue` copies beside them.
    """

    def __init__(self, platform: int, index: int, handle: "cl.Device | None" = None) -> None:
        super().__init__()
        handle = handle or cl.get_platforms()[platform].get_devices()[index]
        self.name = f"{handle.name.strip()} (opencl:{platform}:{index})"
        self.driver = f"{handle.platform.version.strip()}, driver {handle.driver_version.strip()}"
        self._handle = handle
        self.compiles_beside_work = bool(handle.type & cl.device_type.GPU)  # drivers of GPUs compile on any thread
        if handle.type & cl.device_type.CPU:
            self.simd_width = max(width for width in (4, 8, 16) if width <= max(handle.native_vector_width_float, 4))
        self._context = cl.Context([handle])
        profiling = cl.command_queue_properties.PROFILING_ENABLE
        self._queue = cl.CommandQueue(self._context, properties=profiling)
        self._copy_queue = cl.CommandQueue(self._context)
        self._unified = bool(handle.host_unified_memory)  # True if the device shares the host's memory
        self._is_compiling = False  # True if a launch in the queue may be compiling
        self.launched: set[tuple[bytes, Launch]] = set()  # launches for which PoCL has compiled
        self._pocl: PoclCompile | None = None
        if handle.platform.name == POCL and os.environ.get("POCL_CACHE_DIR"):
            self._pocl = PoclCompile(platform, index, f"{self.name}\0{self.driver}")
        extensions = handle.extensions.split()
        self.properties = DeviceProperties(
            compute_units=handle.max_compute_units,
            warp_size=1 if handle.type & cl.device_type.CPU else 32,
            memory_bytes=handle.global_mem_size,
            max_buffer_bytes=handle.max_mem_alloc_size,
            has_fp64="cl_khr_fp64" in extensions,
            simd_width=self.simd_width,
            has_ballot=handle.platform.name == NVIDIA,
        )

    def buffer(self, shape: Shape, dtype: DTypeLike = "f4") -> "memory.OpenclBuffer":
        """Allocate device memory; see Device."""
        if self._unified:
            check_memory(int(np.prod(shape, dtype="f8")) * np.dtype(dtype).itemsize, f"{self.name}: a buffer")
        return memory.OpenclBuffer(self, shape, dtype)

    def replace_contents(self, buffer: Buffer, array: np.ndarray) -> Buffer:
        """Replaces a few bytes without waiting for kernels that read the old ones: a new buffer, or a queued copy."""
        assert isinstance(buffer, memory.OpenclBuffer)
        if not 0 < array.nbytes <= MAX_NEW_BYTES:
            return buffer.write(array)
        if not self._unified:
            return buffer.write_later(array)
        return memory.FilledBuffer(self, np.ascontiguousarray(array))

    def borrow(self, tensor: Tensor) -> "memory.OpenclBuffer | None":
        """Wrap host memory if the device shares it and it is aligned for kernels; see Device."""
        if tensor.device_type != CPU or not self._unified or tensor.pointer % HOST_ALIGNMENT or 0 in tensor.shape:
            return None
        return memory.BorrowedOpenclBuffer(self, tensor)

    def export(self, buffer: Buffer, dtype: np.dtype, shape: tuple[int, ...], owner: object) -> object:
        """Map the buffer for the host if the device shares its memory; see Device."""
        assert isinstance(buffer, memory.OpenclBuffer)
        if not self._unified or 0 in shape:
            return None
        self.wait_for_compiler()
        with convert_errors(cl.Error, f"{self.name}: a kernel failed"):
            array, _ = cl.enqueue_map_buffer(self._queue, buffer._memory, cl.map_flags.READ, 0, shape, dtype)
        return export_tensor(array.ctypes.data, (CPU, 0), dtype, shape, (array, owner))

    def staging_buffer(self, count: int) -> "memory.OpenclStagingBuffer":
        """Allocate a staging buffer; see Device."""
        return memory.OpenclStagingBuffer(self, count)

    def readback_buffer(self, count: int) -> "memory.OpenclReadback":
        """Allocate a readback buffer; see Device."""
        return memory.OpenclReadback(self, count)

    def timestamp(self) -> "memory.OpenclTimestamp":
        """Record a timestamp in the current queue."""
        return memory.OpenclTimestamp(self)

    def wait_for_compiler(self) -> None:
        """Waits, open to Ctrl-C, for launches during which the driver may compile."""
        if self._is_compiling:
            interruptible(self._queue.finish)
            self._is_compiling = False

    def _build(self, program: ProgramText) -> Program:
        with _build_lock(program.key), warnings.catch_warnings():
            warnings.simplefilter("ignore", cl.CompilerWarning)  # builds that succeed may print
            text, options = program.text, STRICT_OPTIONS if program.strict else OPTIONS
            try:
                return Program(self._build_or_load(text, options, program.key), program.key, text, options)
            except cl.Error as error:
                raise KernelError(f"{program.name}: {self.name} refuses it\n{_log(error)}") from error

    def _build_or_load(self, text: str, options: list[str], key: bytes) -> "cl.Program":
        """Builds a program, or loads its binary from the cache on disk (gpu/cache.py) for drivers without a cache."""
        program = cl.Program(self._context, text)
        if has_src_build_cache(self._handle):
            program.build(options)
            return program
        path = cache_folder() / "opencl" / hashlib.sha256(f"{self.name}{self.driver}".encode() + key).hexdigest()
        binary = read_entry(path)
        if binary is not None:
            with suppress(cl.Error):  # the binary is another driver's of the same name
                loaded = cl.Program(self._context, [self._handle], [binary])
                loaded.build(options)
                return loaded
        program.build(options)
        binaries: Any = program.get_info(cl.program_info.BINARIES)  # of each device
        write_entry(path, binaries[0])
        return program

    def _compile_to_cache(self, compiler: Compiler, program: ProgramText) -> None:
        if self._pocl:
            options = STRICT_OPTIONS if program.strict else OPTIONS
            self._pocl.program(compiler, program.text, options, program.name)

    def before_first_launch(self, program: Program, launch: Launch, name: str) -> None:
        """Compiles in the pool what PoCL would compile during the first launch; without a pool, notes that it will."""
        if self._pocl and self.compile_pool:
            pocl = self._pocl

            def compile_function(compiler: Compiler | None) -> None:
                assert compiler is not None  # given by the pool
                pocl.kernel(compiler, program.text, program.options, launch, name)

            self.run_compiler((program.key, launch), name, compile_function)
        else:
            self._is_compiling = True
        self.launched.add((program.key, launch))

    def _make_kernel(self, program: Program, entry: str, name: str, group_size: int) -> "OpenclKernel":
        with convert_errors(cl.Error, f"{name} has no kernel {entry}"):
            return OpenclKernel(self, program, entry, f"{name}:{entry}", group_size)

    def finish(self) -> None:
        """Wait for all work; raises KernelError if a kernel failed."""
        with convert_errors(cl.Error, f"{self.name}: a kernel failed"):
            self.wait_for_compiler()
            self._queue.finish()


@contextmanager
def _build_lock(key: bytes) -> Iterator[None]:
    """A lock across processes for each key, a byte of the file builds.lock.

    PoCL 3.1 reads half-written programs of other processes from its cache and fails silently.
    """
    folder = Path(os.environ.get("POCL_CACHE_DIR") or cache_folder())
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / "builds.lock", int.from_bytes(key[:4], "little")):
        yield


def _log(error: object) -> str:
    """Extracts the compiler's log from PyOpenCL's message."""
    text = str(error)
    return text.split("Build on", 1)[-1].split("(options:", 1)[0].strip() if "Build on" in text else text


class OpenclKernel(Kernel):
    """A kernel of an OpenCL program; see Kernel."""

    sets_single_arguments = True

    def __init__(self, device: OpenclDevice, program: Program, entry: str, name: str, group_size: int) -> None:
        self.device, self.name, self.group_size = device, name, group_size
        self._program, self._entry = program, entry
        self._was_launched = [False, False]  # for small and for large grids
        self._create = partial(cl.Kernel, program.handle, entry)
        # Kernel objects by the types of their arguments; under None one without declared types. It is created now, so
        # that a missing entry is an error here.
        self._kernels: dict[tuple[object, ...] | None, cl.Kernel] = {None: self._create()}

    def bind_launch(self, threads: int, *arguments: object) -> Callable[[], None]:
        """A launch with arguments set once: setting a dozen arguments can take as long as a small matrix product."""
        if threads <= 0:
            return lambda: None
        kernel = self._create()
        with convert_errors(cl.Error, self.name):
            kernel.set_args(*self._values(arguments))
        self._before_launch(threads, arguments)
        return OpenclLaunch(self, kernel, threads, arguments)

    def warm_up(self, threads: int, *arguments: object) -> None:
        """Launch once beside the queue and wait; see Kernel."""
        self._before_launch(threads, arguments)
        self._enqueue(self.device._copy_queue, self._kernel_with_args(arguments), threads)
        self.device._copy_queue.finish()

    def __call__(self, threads: int, *arguments: object) -> None:
        """Launch the kernel over at least `threads` work-items."""
        if threads > 0:
            self._before_launch(threads, arguments)
            self._launch(self._kernel_with_args(arguments), threads)

    def _before_launch(self, threads: int, arguments: tuple[object, ...]) -> None:
        """Waits until the functions that a first launch needs are compiled: PoCL compiles one for each Launch."""
        # launches are rounded up to whole groups: the most groups of a small grid
        large = threads > MAX_SMALL_GRID // self.group_size * self.group_size
        if self._was_launched[large]:
            return
        sizes = tuple(0 if isinstance(value, cl.Buffer) else value.nbytes for value in self._values(arguments))
        launch = Launch(self._entry, self.group_size, large, sizes)
        if (self._program.key, launch) not in self.device.launched:
            self.device.before_first_launch(self._program, launch, self.name)
        self._was_launched[large] = True

    def _values(self, arguments: tuple[object, ...]) -> "list[np.generic | cl.Buffer]":
        with convert_errors(TypeError, self.name):
            return [self._argument(argument) for argument in arguments]

    def _argument(self, argument: object) -> "np.generic | cl.Buffer":
        """An argument as OpenCL takes it."""
        if type(argument) is int:  # tested first: isinstance with a Protocol takes microseconds
            return np.int32(argument)
        if type(argument) is float:
            return np.float32(argument)
        if isinstance(argument, np.generic):
            return argument
        if isinstance(argument, memory.OpenclBuffer):
            assert argument.device is self.device, f"{self.name}: a buffer of another device"
            return argument._memory
        raise TypeError(f"{type(argument).__name__} is no kernel argument")

    def _launch(self, kernel: "cl.Kernel", threads: int) -> None:
        """Enqueues a kernel whose arguments are set."""
        self.device.counters.launches += 1
        self._enqueue(self.device._queue, kernel, threads)

    def _kernel_with_args(self, arguments: tuple[object, ...]) -> "cl.Kernel":
        """Returns the kernel object for arguments of these types, with the arguments set.

        PyOpenCL sets scalars of declared types many times faster than scalars whose type it must detect.
        """
        try:
            values = [self._argument(argument) for argument in arguments]
            types = tuple(type(value) if isinstance(value, np.generic) else None for value in values)  # None: a buffer
            if np.void in types:  # records, whose type cannot be declared
                kernel = self._kernels[None]
                kernel.set_args(*values)
                return kernel
            if types not in self._kernels:
                self._kernels[types] = self._create()
                self._kernels[types].set_arg_types(types)
            kernel = self._kernels[types]
            kernel.set_args(*(value.item() if isinstance(value, np.generic) else value for value in values))
        except (cl.Error, TypeError) as error:
            raise KernelError(f"{self.name}: {error}") from error
        return kernel

    def _enqueue(self, queue: "cl.CommandQueue", kernel: "cl.Kernel", threads: int) -> None:
        try:
            size = -(-threads // self.group_size) * self.group_size
            cl.enqueue_nd_range_kernel(queue, kernel, (size,), (self.group_size,))
        except cl.Error as error:
            raise KernelError(f"{self.name}: {error}") from error


class OpenclLaunch:
    """A launch with a separate kernel object, whose arguments are set once and kept alive."""

    def __init__(self, kernel: OpenclKernel, handle: "cl.Kernel", threads: int, arguments: tuple[object, ...]) -> None:
        self._kernel, self._handle, self._threads, self._kept = kernel, handle, threads, list(arguments)

    def set(self, position: int, argument: object) -> None:
        """Replace an argument, for later launches."""
        self._handle.set_arg(position, self._kernel._argument(argument))
        self._kept[position] = argument

    def __call__(self) -> None:
        """Launch."""
        self._kernel._launch(self._handle, self._threads)
