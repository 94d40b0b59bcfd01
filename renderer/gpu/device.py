"""Devices: the contract that CUDA and OpenCL meet, and the one place that opens them.

Code above this package must not ask which backend a device has. A difference between backends is a method of the
contract, a field of DeviceProperties or a macro of shaders/common/portable.h. The idea is that of tinygrad's and
Futhark's small device layers.
"""

import importlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike

from renderer.errors import KernelError, UnavailableError, UserError
from renderer.gpu.kernel_source import Counters, DeviceProperties, GeneratedSource

Matrix = tuple[Any, int, int]  # buffer, first element, leading dimension; column-major
BACKENDS = ("cuda", "opencl")  # the modules of this package that define list_devices() and are asked in this order


class Buffer(Protocol):
    """Device memory of `shape` and `dtype`, C order, uninitialised; freed with the object."""

    device: "Device"
    shape: tuple[int, ...]
    dtype: np.dtype
    nbytes: int

    def write(self, array: Any) -> "Buffer":
        """Copies a host array of the same size and dtype into the buffer; returns the buffer."""

    def read(self) -> np.ndarray:
        """The contents as a new host array; waits for the work before it."""

    def fill(self, byte: int) -> "Buffer":
        """Sets every byte; returns the buffer."""

    def copy_from(self, source: "Buffer") -> "Buffer":
        """Copies from a buffer of the same number of bytes, on this device or another; returns the buffer.

        The copy comes after what the entered queues of both devices hold, and before what they get later.
        """


class Kernel(Protocol):
    """A compiled entry, launched over at least `threads` work items, rounded up to whole groups.

    Arguments: int -> int32, float -> float32, NumPy scalars as they are (a record goes by value), Buffer -> pointer.
    """

    group_size: int

    def __call__(self, threads: int, *arguments: Any) -> None: ...

    def bind_launch(self, threads: int, *arguments: Any) -> Callable[[], None]:
        """The launch of __call__ with its arguments converted once: for small kernels that are launched very often."""

    def supports_cluster_size(self, groups: int) -> bool:
        """Whether the device runs this kernel, compiled for clusters of so many groups; asked before it is launched."""

    def warm_up(self, threads: int, *arguments: Any) -> None:
        """The launch beside the queue, waited for: drivers that translate a kernel at its first run have then done so.

        From a thread of its own; the buffers must be no other kernel's.
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

    def seconds_since(self, earlier: "Timestamp") -> float:
        """Device time between two marks of one device; waits for both."""


class VendorBlas(Protocol):
    """The vendor's own matrix product. Matrices are column-major: (buffer, first element, leading dimension)."""

    name: str

    def gemm_subtract(
        self, m: int, n: int, k: int, a: Matrix, b: Matrix, c: Matrix, batch: tuple[int, int, int, int] = (1, 0, 0, 0)
    ) -> None:
        """Product c (m, n) -= a (m, k) b (k, n); batch is (count, elements from one a to the next, of b, of c)."""

    def bind_gemm_subtract(
        self, m: int, n: int, k: int, a: Matrix, b: Matrix, c: Matrix, batch: tuple[int, int, int, int] = (1, 0, 0, 0)
    ) -> Callable[[], None]:
        """A gemm_subtract() with its arguments converted once: for products that are made very often."""

    def trsm_unit_lower(self, m: int, n: int, a: Matrix, b: Matrix) -> None:
        """Triangular solve b (m, n) = L^-1 b, L the unit lower triangle of a (m, m)."""


class Device(Protocol):
    """A device with one in-order queue.

    `simd_width`: preferred vector length, in floats, of one work-item: 1 on GPUs, which vectorize across work-items in
    hardware; 4, 8 or 16 on CPUs. `has_float4_atomics`: whether atomic_add_float4 (common/portable.h) is a single
    instruction. `has_reliable_timer`: whether time_seconds() is more accurate than a wall clock.
    """

    name: str
    driver: str
    simd_width: int
    has_float4_atomics: bool
    properties: DeviceProperties
    counters: Counters
    has_reliable_timer: bool  # whether seconds() is better than a wall clock

    def can_access_peer(self, other: "Device") -> bool:
        """Whether kernels of this device may read and write buffers of the other."""

    def buffer(self, shape: Any, dtype: DTypeLike = "f4") -> Buffer:
        """New device memory; UnavailableError when there is not enough."""

    def staging_buffer(self, count: int) -> StagingBuffer:
        """New staging memory of `count` bytes, page-locked where the device has memory of its own."""

    def readback_buffer(self, count: int) -> ReadbackBuffer:
        """New memory of `count` bytes for results that travel to the host beside later work."""

    def vendor_blas(self, dtype: DTypeLike) -> VendorBlas | None:
        """The vendor's product for "f4" or "f8" where its library is installed, else None."""

    def capture_graph(self, work: Callable[[], None]) -> Callable[[], None]:
        """What makes the launches of work(), and nothing else, again at less cost than calling it: a CUDA graph."""

    def timestamp(self) -> Timestamp:
        """Marks this place in the queue, to measure from or to."""

    def priority_queue(self) -> AbstractContextManager:
        """A further queue that is served first: while it is entered, kernels, copies, fills, marks and places go to it.

        The two are ordered only by place() and wait(). Where a device has one queue alone it is that one.
        """

    def record_event(self, reuse: object = None) -> object:
        """The place that the entered queue has come to; `again` is one that is needed no more and is used for it."""

    def wait_event(self, event: object) -> None:
        """Later work of the entered queue waits until the place, of this device or another, is reached."""

    def kernel(self, file: str | GeneratedSource, entry: str, group_size: int = 256, **constants: Any) -> Kernel:
        """The entry of shaders/`file` (or of a GeneratedSource); number -> #define, dtype -> typedef struct.

        STRICT=1 forbids the contraction of a * b + c into one rounding. KernelError when it does not compile.
        """

    def finish(self) -> None:
        """Waits for all work; raises what went wrong in it."""

    def time_seconds(self, work: Callable[[], None]) -> float:
        """Device time of what work() launches."""


@dataclass(frozen=True)
class DeviceInfo:
    """A device of this machine that may or may not work; `device_id` is what --device takes, `open` opens it."""

    device_id: str
    name: str
    backend: str  # "cuda", "opencl"
    device_type: str  # "gpu", "cpu", "other"
    open: Callable[[], Device]


def list_devices() -> tuple[list[DeviceInfo], dict[str, str]]:
    """Every device the installed drivers show, unopened, best first, and for each kind with none the reason."""
    found: list[DeviceInfo] = []
    missing: dict[str, str] = {}
    for backend in BACKENDS:
        devices, reason = importlib.import_module(f"renderer.gpu.{backend}").list_devices()
        found += devices
        if reason:
            missing[backend] = reason
    rank = {"gpu": 0, "other": 1, "cpu": 2}
    return sorted(found, key=lambda device: (device.backend != "cuda", rank[device.device_type])), missing


def self_test(device: Device) -> None:
    """Runs a kernel of known answer; raises KernelError with what it answered instead."""
    count = 1000
    rng = np.random.default_rng(7)
    values = rng.standard_normal(count).astype("f4")
    flags = device.buffer(count // 32 + 1, "u4").fill(0)
    result = device.buffer(count, "f4").fill(255)
    device.kernel("common/self_test.cu", "self_test", group_size=64)(
        count, device.buffer(count).write(values), result, flags, count, 0.5
    )
    wanted = np.where(values > 0, values * np.float32(2) + np.float32(0.5), -values)
    bits = np.packbits(values > 0, bitorder="little")
    bits = np.frombuffer(bits.tobytes().ljust(4 * (count // 32 + 1), b"\0"), "u4")
    answer = result.read()
    if not np.allclose(answer, wanted, rtol=1e-6, atol=0):
        worst = int(np.nanargmax(np.abs(answer - wanted)))
        raise KernelError(f"common/self_test.cu: element {worst} is {answer[worst]} and should be {wanted[worst]}")
    if not np.array_equal(flags.read(), bits):
        raise KernelError("common/self_test.cu: the gathered bits are wrong")


def _select(device_id: str) -> Iterator[DeviceInfo]:
    """The devices a --device device_id may mean, best first."""
    found, missing = list_devices()
    if device_id == "auto":
        yield from found
        return
    matches = [d for d in found if d.device_id == device_id or (device_id == "cpu" and d.device_type == "cpu")]
    if not matches:
        known = [
            "auto",
            *(["cpu"] if any(d.device_type == "cpu" for d in found) else []),
            *(d.device_id for d in found),
        ]
        reasons = "".join(f"; {kind}: {reason}" for kind, reason in missing.items())
        raise UnavailableError(f"--device {device_id}: not on this machine, which has {', '.join(known)}{reasons}")
    yield from matches


def open_device(device_id: str = "auto") -> Device:
    """The first device that `device_id` may mean and that passes its self_test."""
    kinds = ("auto", "cpu", "cuda:", "opencl:")
    if not device_id.startswith(kinds):
        raise UserError(f"--device {device_id}: unknown; allowed are auto, cpu, cuda:INDEX, opencl:PLATFORM:INDEX")
    reasons = []
    for found in _select(device_id):
        try:
            device = found.open()
            self_test(device)
        except (KernelError, UnavailableError) as error:
            reasons.append(f"{found.device_id} ({found.name}): {str(error).splitlines()[0]}")
            continue
        return device
    told = "; ".join(reasons) or "no driver shows one (`rayfold doctor` says what is missing)"
    raise UnavailableError(f"--device {device_id}: no compute device works here: {told}")


class DeviceContext:
    """The compute devices and the GL context of one process, each opened when first asked for.

    `gl` opens a headless context unless the viewer hands over its window's.
    """

    def __init__(self, device_ids: tuple[str, ...] = ("auto",), gl: Any = None) -> None:
        self.device_ids = device_ids
        if gl is not None:
            self.gl = gl

    @cached_property
    def devices(self) -> list[Device]:
        """The compute devices, opened at the first use."""
        return [open_device(device_id) for device_id in self.device_ids]

    @property
    def device(self) -> Device:
        """The first compute device."""
        return self.devices[0]

    @cached_property
    def gl(self) -> Any:
        """The GL context, opened at the first use."""
        from renderer.gpu.gl import GlContext  # moderngl is optional on a machine that only computes

        return GlContext.headless()


def open_context(*device_ids: str, gl: Any = None) -> DeviceContext:
    """The DeviceContext of these --device options ("auto" if none); devices other than auto are opened at once."""
    gpu = DeviceContext(device_ids or ("auto",), gl)
    if any(device_id != "auto" for device_id in gpu.device_ids):
        gpu.devices  # noqa: B018  (opens them: a wrong --device is told before any work starts)
    return gpu
