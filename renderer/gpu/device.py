"""Devices: the contract that CUDA and OpenCL meet; opening.py opens them.

Code above this package must not ask which backend a device has. A difference between backends is a method of the
contract, a field of DeviceProperties or a macro of shaders/common/portable.h. The idea is that of tinygrad's and
Futhark's small device layers.
"""

import hashlib
import math
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import DTypeLike

from renderer.errors import KernelError
from renderer.gpu.compilation import CompilePool, Compiler, interruptible, result, start_thread
from renderer.gpu.dlpack import CPU, Tensor
from renderer.gpu.kernel_source import Counters, DeviceProperties, GeneratedSource, preprocess, source_name
from renderer.profile import stage

Matrix = tuple[Any, int, int]  # buffer, first element, leading dimension; column-major


@contextmanager
def convert_errors(kinds: Any, context: str) -> Iterator[None]:
    """Raise a driver's errors of these kinds as a KernelError, with `context` in front."""
    try:
        yield
    except kinds as error:
        raise KernelError(f"{context}: {error}") from error


class Buffer(Protocol):
    """Device memory of `shape` and `dtype`, C order, uninitialized; freed with the object.

    A backend defines _allocate, _upload, _download, _fill, _can_copy and _copy; the last four only for nbytes > 0.
    """

    device: "Device"
    shape: tuple[int, ...]
    dtype: np.dtype
    nbytes: int
    is_borrowed: bool = False  # whether another library owns the memory

    def __init__(self, device: "Device", shape: Any, dtype: DTypeLike = "f4") -> None:
        self.device = device
        self.shape = (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(int(n) for n in shape)
        self.dtype = np.dtype(dtype)
        self.nbytes = math.prod(self.shape) * self.dtype.itemsize
        device.counters.allocations += 1
        self._allocate()

    def write(self, array: Any) -> Self:
        """Copy a host array of the same size and dtype into the buffer; returns the buffer."""
        array = np.ascontiguousarray(array)
        found, expected = (array.dtype, array.nbytes), (self.dtype, self.nbytes)
        assert found == expected, (array.dtype, array.shape, self.dtype, self.shape)
        self.device.counters.count_upload(self.nbytes)
        if self.nbytes:
            self._upload(array)
        return self

    def read(self) -> np.ndarray:
        """The contents as a new host array; waits for earlier work."""
        array = np.empty(self.shape, self.dtype)
        self.device.counters.downloads += 1
        if self.nbytes:
            self._download(array)
        return array

    def fill(self, byte: int) -> Self:
        """Set every byte; returns the buffer."""
        if self.nbytes:
            self._fill(byte)
        return self

    def copy_from(self, source: Any) -> Self:
        """Copy from a buffer of the same number of bytes, on this device or another; returns the buffer.

        The copy runs after earlier work of the current queues of both devices, and before their later work.
        """
        assert source.nbytes == self.nbytes, (source.shape, self.shape)
        if not self._can_copy(source):
            return self.write(source.read().view(self.dtype).reshape(self.shape))
        if self.nbytes:
            self._copy(source)
        return self

    def _allocate(self) -> None: ...
    def _upload(self, array: np.ndarray) -> None: ...
    def _download(self, array: np.ndarray) -> None: ...
    def _fill(self, byte: int) -> None: ...
    def _copy(self, source: Any) -> None: ...

    def _can_copy(self, source: Any) -> bool:
        """Whether _copy() can copy from the buffer without the host."""


class Kernel(Protocol):
    """A compiled entry, launched over at least `threads` work-items, rounded up to whole groups.

    Arguments: int -> int32, float -> float32, NumPy scalars keep their type (a record is passed by value),
    Buffer -> pointer.
    """

    group_size: int
    sets_single_arguments: bool = False  # whether launches of bind_launch() have a method set()

    def __call__(self, threads: int, *arguments: Any) -> None:
        """Launch the kernel over at least `threads` work-items."""
        self.bind_launch(threads, *arguments)()

    def bind_launch(self, threads: int, *arguments: Any) -> Callable[[], None]:
        """The launch of __call__ with its arguments converted once: for small kernels that are launched very often.

        If `sets_single_arguments`, its method set(position, argument) replaces one of them.
        """

    def supports_cluster_size(self, groups: int) -> bool:
        """Whether the device runs this kernel, compiled for clusters of so many groups; asked before it is launched."""
        return groups == 1

    def reserve_local(self, count: int) -> bool:
        """Whether a group may have a LARGE_LOCAL_ARRAY (common/portable.h) of `count` bytes; asked before launches."""
        return False

    def warm_up(self, threads: int, *arguments: Any) -> None:
        """Launch once beside the queue and wait: drivers that translate a kernel at its first run have then done so.

        Called from a thread of its own; no other kernel may use the buffers.
        """


class StagingBuffer(Protocol):
    """Host memory that the device reads fast, in front of device memory of the same size: half of a double buffer."""

    def map(self) -> np.ndarray:
        """The host bytes (n,) uint8, to be filled; waits until the last upload has left them."""

    def upload_then(self, count: int, work: Callable[[Buffer], None]) -> None:
        """Starts to copy the first `count` bytes, then work(buffer), which launches kernels on the (n,) uint8 buffer.

        Returns at once: the copy runs beside kernels of other stages. The array of map() is not to be touched again.
        """


class ReadbackBuffer(Protocol):
    """The way back: device memory in front of host memory of the same size, read while later kernels run."""

    buffer: Buffer  # (n,) uint8, filled by kernels

    def start_copy(self) -> None:
        """Starts to copy the buffer to the host after the work before it; later kernels must not write the buffer."""

    def wait(self) -> np.ndarray:
        """Waits for the last start_copy; the host bytes (n,) uint8, valid until the next start_copy."""


class Timestamp(Protocol):
    """A place in the queue of a device."""

    def seconds_since(self, earlier: Any) -> float:
        """Device time between two marks of one device; waits for both."""


class VendorBlas(Protocol):
    """The vendor's own matrix product. Matrices are column-major: (buffer, first element, leading dimension)."""

    name: str

    def gemm_subtract(
        self, m: int, n: int, k: int, a: Matrix, b: Matrix, c: Matrix, batch: tuple[int, int, int, int] = (1, 0, 0, 0)
    ) -> None:
        """Product c (m, n) -= a (m, k) b (k, n); batch is (count, elements from one a to the next, of b, of c)."""
        self.bind_gemm_subtract(m, n, k, a, b, c, batch)()

    def bind_gemm_subtract(
        self, m: int, n: int, k: int, a: Matrix, b: Matrix, c: Matrix, batch: tuple[int, int, int, int] = (1, 0, 0, 0)
    ) -> Callable[[], None]:
        """A gemm_subtract() with its arguments converted once: for products that are made very often."""


class Device(Protocol):
    """A device with one in-order queue. The methods with a body are for backends without the feature.

    `simd_width`: preferred vector length, in floats, of one work-item: 1 on GPUs, which vectorize across work-items in
    hardware; 4, 8 or 16 on CPUs. `has_float4_atomics`: whether atomic_add_float4 (common/portable.h) is a single
    instruction. `has_reliable_timer`: whether time_seconds() is more accurate than a wall clock. `has_graphs`: whether
    capture_graph() makes launches cheaper.
    """

    name: str
    driver: str
    properties: DeviceProperties
    counters: Counters
    simd_width: int = 1
    has_float4_atomics: bool = False
    has_reliable_timer: bool = True
    has_graphs: bool = False
    compile_pool: CompilePool | None = None  # of a window: compiles in child processes
    _programs: dict[bytes, Any]  # compiled, by the hash of their text and options
    compiles_beside_work: bool = False  # whether compile_ahead() does anything
    _compiling: dict[Any, Future]  # in the pool, or ahead

    def __init__(self) -> None:
        self.counters, self._programs, self._compiling = Counters(), {}, {}

    def can_access_peer(self, other: Any) -> bool:
        """Whether kernels of this device may read and write buffers of the other."""
        return other is self

    def buffer(self, shape: Any, dtype: DTypeLike = "f4") -> Buffer:
        """New device memory; UnavailableError if there is not enough."""

    def replace_contents(self, buffer: Buffer, array: np.ndarray) -> Buffer:
        """A buffer with the bytes of an array: the given one, or a new one where that spares waiting for kernels."""
        return buffer.write(array)

    def borrow(self, tensor: Tensor) -> Buffer | None:
        """A buffer over memory of another library, without a copy; None where that is not this device's memory."""
        return None

    def export(self, buffer: Any, dtype: np.dtype, shape: tuple[int, ...], owner: Any) -> Any:
        """A DLPack capsule over a buffer's own memory; waits for earlier work. None if others cannot use it."""
        return None

    def staging_buffer(self, count: int) -> StagingBuffer:
        """New staging memory of `count` bytes, page-locked if the device has memory of its own."""

    def readback_buffer(self, count: int) -> ReadbackBuffer:
        """New memory of `count` bytes for results that are copied to the host beside later work."""

    def vendor_blas(self, dtype: DTypeLike) -> VendorBlas | None:
        """The vendor's BLAS for "f4" or "f8" if its library is installed, else None."""
        return None

    def capture_graph(self, work: Callable[[], None]) -> Callable[[], None]:
        """A function that launches the kernels of work(), and nothing else, at less cost: a CUDA graph."""
        return work

    def timestamp(self) -> Timestamp:
        """Record a timestamp in the current queue."""

    def dlpack_device(self) -> tuple[int, int]:
        """The DLPack type and index of the memory that export() gives."""
        return CPU, 0

    def priority_queue(self) -> AbstractContextManager:
        """A second queue of higher priority; while it is entered, kernels, copies, fills and events use it.

        Only record_event() and wait_event() order the two queues. A device without a second queue uses its own.
        """
        return nullcontext()

    def record_event(self, reuse: Any = None) -> Any:
        """Record an event in the current queue; `reuse` is an earlier event that is no longer needed."""
        return None

    def wait_event(self, event: Any) -> None:
        """Make later work of the current queue wait for an event of this device or another."""
        return None

    def kernel(self, file: str | GeneratedSource, entry: str, group_size: int = 256, **constants: Any) -> Any:
        """The Kernel `entry` of shaders/`file` (or of a GeneratedSource); number -> #define, dtype -> typedef struct.

        STRICT=1 forbids the contraction of a * b + c into one rounding. KernelError if it does not compile.
        """
        with stage("compiling"):
            return self._kernel(file, entry, group_size, constants)

    def compile_ahead(self, file: str | GeneratedSource, group_size: int = 256, **constants: Any) -> None:
        """Begin to compile what kernel() will be asked for, beside other work.

        Nothing happens on a device whose compiler serves one caller at a time, as PoCL's does.
        """
        if not self.compiles_beside_work:
            return
        program = self._program_text(file, group_size, constants)
        if program.key not in self._programs and program.key not in self._compiling:
            work = partial(self._compile, program)
            pool = self.compile_pool
            self._compiling[program.key] = pool.submit(work) if pool else start_thread(partial(work, None))

    def _kernel(self, file: str | GeneratedSource, entry: str, group_size: int, constants: dict[str, Any]) -> Any:
        program = self._program_text(file, group_size, constants)
        key, name = program.key, program.name
        if key not in self._programs:
            self._programs[key] = self.run_compiler(key, f"{name}:{entry}", partial(self._compile, program))
        return self._kernel_of(self._programs[key], entry, name, group_size)

    def _program_text(self, file: str | GeneratedSource, group_size: int, constants: dict[str, Any]) -> "ProgramText":
        strict = bool(constants.get("STRICT"))
        text = preprocess(file, GROUP_SIZE=group_size, **constants)
        return ProgramText(text, source_name(file), strict, hashlib.sha256(f"{strict}\0{text}".encode()).digest())

    def run_compiler(self, key: Any, what: str, work: Callable[[Compiler | None], Any]) -> Any:
        """What work(compiler) returns, on a thread of its own; see compilation.py. `key` identifies the work."""
        if key not in self._compiling:
            if self.compile_pool is None:
                return interruptible(partial(work, None))
            self._compiling[key] = self.compile_pool.submit(work)
        future = self._compiling[key]
        try:
            return result(future, what)
        finally:
            if future.done():
                self._compiling.pop(key, None)

    def _compile(self, program: "ProgramText", compiler: Compiler | None) -> Any:
        if compiler is not None:
            self._compile_to_cache(compiler, program.text, program.name, program.strict)
        return self._build(program.text, program.name, program.strict, program.key)

    def _compile_to_cache(self, compiler: Compiler, text: str, name: str, strict: bool) -> None:
        """Makes a child process compile, for a backend whose _build() then finds the program on disk."""

    def _build(self, text: str, name: str, strict: bool, key: bytes) -> Any:
        """The compiled program; `key` identifies its text and options."""

    def _kernel_of(self, program: Any, entry: str, name: str, group_size: int) -> Any:
        """The Kernel of a compiled program."""

    def finish(self) -> None:
        """Wait for all work; raises KernelError if a kernel failed."""

    def time_seconds(self, work: Callable[[], None]) -> float:
        """Device time in seconds of the launches of work()."""
        self.finish()
        start = self.timestamp()
        work()
        return self.timestamp().seconds_since(start)


@dataclass(frozen=True)
class ProgramText:
    """The whole text of kernels, with the name for error messages; `key` identifies text and options."""

    text: str
    name: str
    strict: bool
    key: bytes
