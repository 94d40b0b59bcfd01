"""Devices: the contract that CUDA and OpenCL meet, and the one place that opens them.

A device has these names: `name`, `driver`, `processor`, `buffer`, `stage`, `tray`, `kernel`, `repeat`,
`vendor_product`, `mark`, `queue`, `place`, `wait`, `reaches`, `finish`, `seconds`. Nothing above this package may ask
which kind of device it holds; a difference between kinds is a method of the contract, a figure of its Processor or a
word of shaders/common/portable.h. After tinygrad's and Futhark's tiny device layers.
"""

import importlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from renderer.errors import UnavailableError, UserError
from renderer.gpu.kernel_source import Counters, KernelError, Processor

__all__ = [
    "Buffer",
    "Counters",
    "Device",
    "Found",
    "Gpu",
    "Kernel",
    "KernelError",
    "Mark",
    "Processor",
    "Stage",
    "Tray",
    "VendorProduct",
    "find_devices",
    "open_gpu",
]

KINDS = ("cuda", "opencl")  # the modules of this package that define found() and are asked in this order


class Buffer(Protocol):
    """Device memory of `shape` and `dtype`, C order, uninitialised; freed with the object."""

    device: "Device"
    shape: tuple[int, ...]
    dtype: np.dtype

    def write(self, array) -> "Buffer":
        """Copies a host array of the same size and dtype into the buffer; returns the buffer."""

    def read(self) -> np.ndarray:
        """The contents as a new host array; waits for the work before it."""

    def fill(self, byte: int) -> "Buffer":
        """Sets every byte; returns the buffer."""

    def copy(self, source: "Buffer") -> "Buffer":
        """Copies from a buffer of the same number of bytes, on this device or another; returns the buffer.

        The copy comes after what the entered queues of both devices hold, and before what they get later.
        """


class Kernel(Protocol):
    """A compiled entry, launched over at least `threads` work items, rounded up to whole groups.

    Arguments: int -> int32, float -> float32, NumPy scalars as they are (a record goes by value), Buffer -> pointer.
    """

    def __call__(self, threads: int, *arguments) -> None: ...

    def bound(self, threads: int, *arguments) -> Callable[[], None]:
        """The launch of __call__ with its arguments converted once: for small kernels that are launched very often."""

    def takes_clusters(self, groups: int) -> bool:
        """Whether the device runs this kernel, compiled for clusters of so many groups; asked before it is launched."""

    def prepare(self, threads: int, *arguments) -> None:
        """The launch beside the queue, waited for: drivers that translate a kernel at its first run have then done so.

        From a thread of its own; the buffers must be no other kernel's.
        """


class Stage(Protocol):
    """Host memory that the device reads fast, in front of device memory of the same size: half of a double buffer."""

    def open(self) -> np.ndarray:
        """The host bytes (n,) uint8, to be filled; waits until the last send has left them."""

    def send(self, count: int, work: Callable[[Buffer], None]) -> None:
        """Starts to copy the first `count` bytes, then work(buffer), which launches kernels on the (n,) uint8 buffer.

        Returns at once: the copy runs beside kernels of other stages. The array of open() is not to be touched again.
        """


class Tray(Protocol):
    """The way back: device memory in front of host memory of the same size, read while later kernels run."""

    buffer: Buffer  # (n,) uint8, filled by kernels

    def send(self) -> None:
        """Starts to copy the buffer to the host after the work before it; later kernels must not write the buffer."""

    def read(self) -> np.ndarray:
        """Waits for the last send; the host bytes (n,) uint8, valid until the next send."""


class Mark(Protocol):
    """A place in the queue of a device."""

    def seconds_since(self, earlier: "Mark") -> float:
        """Device time between two marks of one device; waits for both."""


class VendorProduct(Protocol):
    """The vendor's own matrix product. Matrices are column-major: (buffer, first element, leading dimension)."""

    name: str

    def subtract(self, m: int, n: int, k: int, a, b, c, batch=(1, 0, 0, 0)) -> None:
        """c (m, n) -= a (m, k) b (k, n); batch is (count, elements from one a to the next, of b, of c)."""

    def bound_subtract(self, m: int, n: int, k: int, a, b, c, batch=(1, 0, 0, 0)) -> Callable[[], None]:
        """subtract() with its arguments converted once: for products that are made very often."""

    def solve_unit_lower(self, m: int, n: int, a, b) -> None:
        """b (m, n) = L^-1 b, L the unit lower triangle of a (m, m)."""


class Device(Protocol):
    """One in-order queue on one processor.

    `vector_width`: floats that a work item does well to carry as one vector, 1 where the hardware joins work items
    itself (GPUs), 4, 8 or 16 on CPUs. `units`: cores or multiprocessors, each worth a private copy of small results.
    `vector_adds`: whether add_vector of common/portable.h is one operation.
    """

    name: str
    driver: str
    vector_width: int
    units: int
    vector_adds: bool
    processor: Processor
    counters: Counters
    trusted_clock: bool  # whether seconds() is better than a wall clock

    def reaches(self, other: "Device") -> bool:
        """Whether kernels of this device may read and write buffers of the other."""

    def buffer(self, shape, dtype="f4") -> Buffer:
        """New device memory; UnavailableError when there is not enough."""

    def stage(self, count: int) -> Stage:
        """New staging memory of `count` bytes, page-locked where the device has memory of its own."""

    def tray(self, count: int) -> Tray:
        """New memory of `count` bytes for results that travel to the host beside later work."""

    def vendor_product(self, dtype) -> VendorProduct | None:
        """The vendor's product for "f4" or "f8" where its library is installed, else None."""

    def repeat(self, work: Callable[[], None]) -> Callable[[], None]:
        """What makes the launches of work(), and nothing else, again at less cost than calling it: a CUDA graph."""

    def mark(self) -> Mark:
        """Marks this place in the queue, to measure from or to."""

    def queue(self) -> AbstractContextManager:
        """A further queue that is served first: while it is entered, kernels, copies, fills, marks and places go to it.

        The two are ordered only by place() and wait(). Where a device has one queue alone it is that one.
        """

    def place(self, again: object = None) -> object:
        """The place that the entered queue has come to; `again` is one that is needed no more and is used for it."""

    def wait(self, place: object) -> None:
        """Later work of the entered queue waits until the place, of this device or another, is reached."""

    def kernel(self, file, entry: str, group: int = 256, **constants) -> Kernel:
        """The entry of shaders/`file` (or of a source.Generated text); number -> #define, dtype -> typedef struct.

        STRICT=1 forbids the contraction of a * b + c into one rounding. KernelError when it does not compile.
        """

    def finish(self) -> None:
        """Waits for all work; raises what went wrong in it."""

    def seconds(self, work: Callable[[], None]) -> float:
        """Device time of what work() launches."""


@dataclass(frozen=True)
class Found:
    """A device of this machine that may or may not work; `spelling` is what --device takes, `open` opens it."""

    spelling: str
    name: str
    kind: str  # "cuda", "opencl"
    processor: str  # "gpu", "cpu", "other"
    open: Callable[[], Device]


def find_devices() -> tuple[list[Found], dict[str, str]]:
    """Every device the installed drivers show, unopened, best first, and for each kind with none the reason."""
    found: list[Found] = []
    missing: dict[str, str] = {}
    for kind in KINDS:
        devices, reason = importlib.import_module(f"renderer.gpu.{kind}").found()
        found += devices
        if reason:
            missing[kind] = reason
    rank = {"gpu": 0, "other": 1, "cpu": 2}
    return sorted(found, key=lambda device: (device.kind != "cuda", rank[device.processor])), missing


def probe(device: Device) -> None:
    """Runs a kernel of known answer; raises KernelError with what it answered instead."""
    count = 1000
    rng = np.random.default_rng(7)
    values = rng.standard_normal(count).astype("f4")
    flags = device.buffer(count // 32 + 1, "u4").fill(0)
    result = device.buffer(count, "f4").fill(255)
    device.kernel("common/self_test.cu", "probe", group=64)(
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


def _select(spelling: str) -> Iterator[Found]:
    """The devices a --device spelling may mean, best first."""
    found, missing = find_devices()
    if spelling == "auto":
        yield from found
        return
    matches = [d for d in found if d.spelling == spelling or (spelling == "cpu" and d.processor == "cpu")]
    if not matches:
        known = ["auto", *(["cpu"] if any(d.processor == "cpu" for d in found) else []), *(d.spelling for d in found)]
        reasons = "".join(f"; {kind}: {reason}" for kind, reason in missing.items())
        raise UnavailableError(f"--device {spelling}: not on this machine, which has {', '.join(known)}{reasons}")
    yield from matches


def open_device(spelling: str = "auto") -> Device:
    """The first device that `spelling` may mean and that passes its probe."""
    kinds = ("auto", "cpu", "cuda:", "opencl:")
    if not spelling.startswith(kinds):
        raise UserError(f"--device {spelling}: unknown; allowed are auto, cpu, cuda:INDEX, opencl:PLATFORM:INDEX")
    reasons = []
    for found in _select(spelling):
        try:
            device = found.open()
            probe(device)
        except (KernelError, UnavailableError) as error:
            reasons.append(f"{found.spelling} ({found.name}): {str(error).splitlines()[0]}")
            continue
        return device
    told = "; ".join(reasons) or "no driver shows one (`rayfold doctor` says what is missing)"
    raise UnavailableError(f"--device {spelling}: no compute device works here: {told}")


class Gpu:
    """The compute devices and the GL context of one process, each opened when first asked for.

    `gl` opens a headless context unless the viewer hands over its window's.
    """

    def __init__(self, spellings: tuple[str, ...] = ("auto",), gl=None):
        self.spellings = spellings
        if gl is not None:
            self.gl = gl

    @cached_property
    def devices(self) -> list[Device]:
        return [open_device(spelling) for spelling in self.spellings]

    @property
    def device(self) -> Device:
        return self.devices[0]

    @cached_property
    def gl(self):
        from renderer.gpu.gl import Gl  # GL is optional on a machine that only computes

        return Gl.headless()


def open_gpu(*spellings: str, gl=None) -> Gpu:
    """The Gpu of these --device spellings ("auto" if none); spellings other than auto are opened at once."""
    gpu = Gpu(spellings or ("auto",), gl)
    if any(spelling != "auto" for spelling in gpu.spellings):
        gpu.devices  # noqa: B018  (opens them: a wrong --device is told before any work starts)
    return gpu
