"""The device contract: protocols that the CUDA and OpenCL back ends implement; opening.py opens devices.

Code outside this package must not ask which back end a device has. A difference between back ends is a method of the
contract, a field of DeviceProperties or a macro of shaders/common/portable.h. Modeled on the small device layers of
tinygrad and Futhark.
"""

import hashlib
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any, Protocol, Self, TypeGuard, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from renderer.errors import KernelError
from renderer.gpu.compilation import CompilePool, Compiler, interruptible, result, start_thread
from renderer.gpu.dlpack import CPU, Tensor
from renderer.gpu.kernel_source import GeneratedSource, preprocess, source_name
from renderer.gpu.properties import Counters, DeviceProperties
from renderer.records import dataclass
from renderer.system.profile import stage

Shape = int | np.integer | Sequence[int]
Result = TypeVar("Result")


@contextmanager
def convert_errors(kinds: type[Exception], context: str) -> Iterator[None]:
    """Within the block, raises a driver's errors of `kinds` as KernelError, prefixed by `context`."""
    try:
        yield
    except kinds as error:
        raise KernelError(f"{context}: {error}") from error


class Buffer(Protocol):
    """Device memory of `shape` and `dtype`, C order, uninitialized; freed with the object.

    A back end defines _allocate, _can_copy, _upload, _download, _fill and _copy; the last four see nbytes > 0 only.
    """

    device: "Device"
    shape: tuple[int, ...]
    dtype: np.dtype
    nbytes: int
    is_borrowed: bool = False  # True if another library owns the memory

    def __init__(self, device: "Device", shape: Shape, dtype: DTypeLike = "f4") -> None:
        self.device = device
        self.shape = (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(int(n) for n in shape)
        self.dtype = np.dtype(dtype)
        self.nbytes = math.prod(self.shape) * self.dtype.itemsize
        device.counters.count_allocation(0 if self.is_borrowed else self.nbytes)
        self._allocate()

    def write(self, array: ArrayLike) -> Self:
        """Copy a host array of the same size and dtype into the buffer; returns the buffer."""
        values = np.ascontiguousarray(array)
        expected = self.dtype, self.nbytes
        assert (values.dtype, values.nbytes) == expected, (values.dtype, values.shape, self.dtype, self.shape)
        self.device.counters.count_upload(self.nbytes)
        if self.nbytes:
            self._upload(values)
        return self

    def read(self) -> np.ndarray:
        """The contents as a new host array; waits for earlier work."""
        array = np.empty(self.shape, self.dtype)
        self.device.counters.downloads += 1
        if self.nbytes:
            self._download(array)
        return array

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        return self.read().astype(dtype or self.dtype, copy=False)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device.dlpack_device()

    def __dlpack__(self, *, stream: object = None, **options: object) -> object:
        """The memory itself where it can be shared, which later work changes, or a copy in the host's memory."""
        return self.device.export(self, self.dtype, self.shape, self) or self.read().__dlpack__()

    def fill(self, byte: int) -> Self:
        """Set every byte; returns the buffer."""
        if self.nbytes:
            self._fill(byte)
        return self

    def copy_from(self, source: "Buffer") -> Self:
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
    def _copy(self, source: Self) -> None: ...

    def _can_copy(self, source: "Buffer") -> TypeGuard[Self]:
        """True if _copy() can copy from the buffer without the host."""


class BorrowedBuffer(Buffer, Protocol):
    """Memory that another library owns; a back end's class derives from it and from the back end's Buffer."""

    is_borrowed: bool = True
    _tensor: Tensor

    def __init__(self, device: "Device", tensor: Tensor) -> None:
        self._tensor = tensor
        super().__init__(device, tensor.shape, tensor.dtype)

    def keep(self, tensor: Tensor) -> None:
        """Keep the tensor's owner alive; called when the same memory is borrowed again."""
        self._tensor = tensor


# A column-major matrix: the buffer (of the vendor's class), its first element, and the leading dimension.
Matrix = tuple[Any, int, int]


class Kernel(Protocol):
    """A compiled entry, launched over at least `threads` work-items, rounded up to whole groups.

    Arguments: int -> int32, float -> float32, NumPy scalars keep their type (a record is passed by value),
    Buffer -> pointer.
    """

    group_size: int
    sets_single_arguments: bool = False  # True if launches of bind_launch() have a method set()

    def __call__(self, threads: int, *arguments: object) -> None:
        """Launch the kernel over at least `threads` work-items."""
        self.bind_launch(threads, *arguments)()

    def bind_launch(self, threads: int, *arguments: object) -> Callable[[], None]:
        """Returns a function that launches with these arguments, converted once; for small kernels launched often.

        If `sets_single_arguments`, the function's method set(position, argument) replaces one argument.
        """

    def supports_cluster_size(self, groups: int) -> bool:
        """True if the device can run this kernel in clusters of `groups` groups; call it before the first launch."""
        return groups == 1

    def reserve_local(self, count: int) -> bool:
        """Reserves `count` bytes a group for a LARGE_LOCAL_ARRAY (common/portable.h); False if they are too many."""
        return False

    def warm_up(self, threads: int, *arguments: object) -> None:
        """Launch once outside the queue and wait, so that a driver that compiles at the first launch has done so.

        May be called from another thread; no other kernel may use the buffers meanwhile.
        """


class StagingBuffer(Protocol):
    """Host memory that the device reads fast, and device memory of the same size: one half of a double buffer."""

    def map(self) -> np.ndarray:
        """Returns the host bytes (n,) uint8 to fill, after the previous upload has read them."""

    def upload_then(self, count: int, work: Callable[[Buffer], None]) -> None:
        """Starts to copy the first `count` bytes, then calls work(buffer) to launch kernels on the (n,) uint8 buffer.

        Returns at once: the copy overlaps kernels of other buffers. The array of map() must not be used any more.
        """


class ReadbackBuffer(Protocol):
    """Device memory and host memory of the same size: results are copied to the host while later kernels run."""

    buffer: Buffer  # (n,) uint8, filled by kernels

    def start_copy(self) -> None:
        """Starts to copy the buffer to the host after earlier work; later kernels must not write the buffer."""

    def wait(self) -> np.ndarray:
        """Waits for the last start_copy; returns the host bytes (n,) uint8, valid until the next start_copy."""


class Timestamp(Protocol):
    """A point in time in the queue of a device."""

    @property
    def has_passed(self) -> bool:
        """True if the device has reached it; does not wait. Raises KernelError if an earlier kernel failed."""

    def seconds_since(self, earlier: Self) -> float:
        """Returns the device time in seconds between two timestamps of one device; waits for both."""


class Timer:
    """The device time from construction to stop(), by two timestamps in the device's queue; nothing waits for it."""

    def __init__(self, device: "Device") -> None:
        self._device = device
        self._start = self._end = device.timestamp()

    def stop(self) -> None:
        """Ends the timed work."""
        self._end = self._device.timestamp()

    @property
    def is_done(self) -> bool:
        """True if the device has done the work; raises KernelError if a kernel failed."""
        return self._end.has_passed

    def seconds(self) -> float:
        """Waits for the work; returns its device time in seconds. Raises KernelError if a kernel failed."""
        return self._end.seconds_since(self._start)


class VendorBlas(Protocol):
    """The vendor's matrix product (cuBLAS). Matrices are column-major: (buffer, first element, leading dimension)."""

    name: str

    def bind_gemm_subtract(
        self, m: int, n: int, k: int, a: Matrix, b: Matrix, c: Matrix, batch: tuple[int, int, int, int] = (1, 0, 0, 0)
    ) -> Callable[[], None]:
        """Returns a function that computes c (m, n) -= a (m, k) b (k, n) for each product of a batch.

        `batch` is (number of products, elements from one a to the next, elements for b, elements for c).
        """


class Device(Protocol):
    """A device with one in-order queue.

    Methods of optional features have a body, the default of back ends without them; kernel(), compile_ahead(),
    run_compiler() and time_seconds() are shared by all back ends.

    `simd_width` is the preferred vector length, in floats, of one work-item: 1 on GPUs, which vectorize across
    work-items in hardware; 4, 8 or 16 on CPUs. The flags are true if: `has_float4_atomics`, atomic_add_float4
    (common/portable.h) is a single instruction; `has_reliable_timer`, time_seconds() is more accurate than a wall
    clock; `has_graphs`, capture_graph() makes launches cheaper; `compiles_beside_work`, compile_ahead() has an effect.
    """

    name: str
    driver: str
    properties: DeviceProperties
    counters: Counters
    simd_width: int = 1
    has_float4_atomics: bool = False
    has_reliable_timer: bool = True
    has_graphs: bool = False
    compiles_beside_work: bool = False
    compile_pool: CompilePool | None = None  # child processes that compile for a window
    _programs: dict[bytes, Any]  # compiled programs, by the hash of their text and options
    _compiling: dict[Hashable, Future[Any]]  # compilations in the pool or started by compile_ahead()

    def __init__(self) -> None:
        self.counters, self._programs, self._compiling = Counters(), {}, {}

    def can_access_peer(self, other: "Device") -> bool:
        """True if kernels of this device may read and write buffers of the other."""
        return other is self

    def buffer(self, shape: Shape, dtype: DTypeLike = "f4") -> Buffer:
        """Allocates device memory; raises UnavailableError if there is not enough."""

    def replace_contents(self, buffer: Buffer, array: np.ndarray) -> Buffer:
        """Returns a buffer of the array's bytes: `buffer` itself, or a new one if that saves waiting for kernels."""
        return buffer.write(array)

    def borrow(self, tensor: Tensor) -> Buffer | None:
        """Wraps memory of another library as a buffer, without a copy; None if the memory is not this device's."""
        return None

    def export(self, buffer: Buffer, dtype: np.dtype, shape: tuple[int, ...], owner: object) -> object:
        """Wraps a buffer's memory as a DLPack capsule after waiting for earlier work; None if it cannot be shared."""
        return None

    def staging_buffer(self, count: int) -> StagingBuffer:
        """Allocates staging memory of `count` bytes, page-locked if the device does not share the host's memory."""

    def readback_buffer(self, count: int) -> ReadbackBuffer:
        """Allocates memory of `count` bytes for results that are copied to the host while later kernels run."""

    def vendor_blas(self, dtype: DTypeLike) -> VendorBlas | None:
        """Opens the vendor's BLAS for "f4" or "f8"; None if its library is not installed."""
        return None

    def capture_graph(self, work: Callable[[], None]) -> Callable[[], None]:
        """Records the launches of work() and returns a function that repeats them at less cost (a CUDA graph)."""
        return work

    def timestamp(self) -> Timestamp:
        """Record a timestamp in the current queue."""

    def start_timer(self) -> Timer:
        """Starts to time the work that is launched until the timer's stop()."""
        return Timer(self)

    def dlpack_device(self) -> tuple[int, int]:
        """The DLPack device type and index of the memory that export() shares."""
        return CPU, 0

    def priority_queue(self) -> AbstractContextManager[object]:
        """A context manager: within it, kernels, copies, fills and events use a second queue of higher priority.

        Only record_event() and wait_event() order the two queues. A device without a second queue uses its only one.
        """
        return nullcontext()

    def record_event(self, reuse: Any = None) -> Any:
        """Record an event in the current queue; `reuse` is an earlier event that is no longer needed."""
        return None

    def wait_event(self, event: Any) -> None:
        """Make later work of the current queue wait for an event of this device or another."""
        return None

    def kernel(self, file: str | GeneratedSource, entry: str, group_size: int = 256, **constants: object) -> Kernel:
        """Compiles kernel `entry` of shaders/`file` or of a GeneratedSource, or returns it from a cache.

        `constants`: a number becomes a #define, a NumPy record dtype a typedef struct. STRICT=1 forbids contracting
        a * b + c into one rounding. Raises KernelError if the text does not compile.
        """
        with stage("compiling"):
            program = self._program_text(file, group_size, constants)
            key, name = program.key, program.name
            if key not in self._programs:
                self._programs[key] = self.run_compiler(key, f"{name}:{entry}", partial(self._compile, program))
            return self._make_kernel(self._programs[key], entry, name, group_size)

    def compile_ahead(
        self, file: str | GeneratedSource, group_size: int = 256, **constants: object
    ) -> Callable[[], bool]:
        """Starts to compile a program that kernel() will need, while other work goes on.

        Returns a function that is true once kernel() need not wait for it. Does nothing unless `compiles_beside_work`:
        PoCL's compiler, for one, serves one caller at a time.
        """
        if not self.compiles_beside_work:
            return lambda: True
        program = self._program_text(file, group_size, constants)
        if program.key in self._programs:
            return lambda: True
        if program.key not in self._compiling:
            work = partial(self._compile, program)
            pool = self.compile_pool
            self._compiling[program.key] = pool.submit(work) if pool else start_thread(partial(work, None))
        return self._compiling[program.key].done

    def _program_text(
        self, file: str | GeneratedSource, group_size: int, constants: dict[str, object]
    ) -> "ProgramText":
        strict = bool(constants.get("STRICT"))
        text = preprocess(file, GROUP_SIZE=group_size, **constants)
        return ProgramText(text, source_name(file), strict, hashlib.sha256(f"{strict}\0{text}".encode()).digest())

    def run_compiler(self, key: Hashable, what: str, work: Callable[[Compiler | None], Result]) -> Result:
        """Runs work(compiler) on another thread (compilation.py) and returns its result; `key` identifies the work."""
        if key not in self._compiling:  # else compile_ahead() has begun it
            if self.compile_pool is None:
                return interruptible(partial(work, None))
            self._compiling[key] = self.compile_pool.submit(work)
        future: Future[Result] = self._compiling[key]
        try:
            return result(future, what)
        finally:
            if future.done():  # else the caller was interrupted, and may ask again
                self._compiling.pop(key, None)

    def _compile(self, program: "ProgramText", compiler: Compiler | None) -> object:
        """Builds a program: by the child process `compiler`, or without one in this process."""
        if compiler is not None:
            self._compile_to_cache(compiler, program)
        return self._build(program)

    def _compile_to_cache(self, compiler: Compiler, program: "ProgramText") -> None:
        """Compiles in a child process into the disk cache, where _build() then finds the program."""

    def _build(self, program: "ProgramText") -> object:
        """Compiles a program, or loads it from the disk cache."""

    def _make_kernel(self, program: Any, entry: str, name: str, group_size: int) -> Kernel:
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
