"""Lists, selects, tests and opens compute devices (--device); DeviceContext holds the devices of a process.

A value of --device is auto, cpu, or one device, such as cuda:0 or opencl:0:1. The first device that it may mean and
that computes the self-test right is opened.
"""

import importlib
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from renderer.errors import KernelError, UnavailableError, UserError
from renderer.gpu.compilation import CompilePool, result
from renderer.gpu.device import Device
from renderer.gpu.kernel_source import preprocess
from renderer.gpu.nvidia import NO_NVIDIA_DRIVER, has_nvidia_driver
from renderer.gpu.verdicts import pass_once
from renderer.records import dataclass
from renderer.system.profile import stage

if TYPE_CHECKING:
    from renderer.gpu.gl import GlContext  # moderngl is optional on a machine that only computes

SELF_TEST = "common/self_test.cu"
BACKENDS = ("cuda", "opencl")  # subpackages whose device.py defines list_devices(), in order of preference


@dataclass(frozen=True)
class DeviceInfo:
    """A listed device, not yet opened or tested; `device_id` is its name for --device, open() opens it."""

    device_id: str
    name: str
    backend: str  # "cuda", "opencl"
    device_type: str  # "gpu", "cpu", "other"
    open: Callable[[], Device]


def list_devices() -> tuple[list[DeviceInfo], dict[str, str]]:
    """Lists the devices of all installed drivers, best first, and the reason for each back end without devices."""
    found: list[DeviceInfo] = []
    missing: dict[str, str] = {}
    for backend in BACKENDS:
        devices, reason = list_backend(backend)
        found += devices
        if reason:
            missing[backend] = reason
    return found, missing


def list_backend(backend: str) -> tuple[list[DeviceInfo], str]:
    """Lists the devices of one back end, best first; also returns the reason if there is none."""
    if backend == "cuda" and "renderer.gpu.cuda.device" not in sys.modules and not has_nvidia_driver():
        return [], NO_NVIDIA_DRIVER  # decided without importing CUDA's packages, which is slow
    with stage("importing"):
        module = importlib.import_module(f"renderer.gpu.{backend}.device")
    devices, reason = module.list_devices()
    return sorted(devices, key=lambda device: ("gpu", "other", "cpu").index(device.device_type)), reason


def self_test(device: Device) -> None:
    """Runs a kernel with a known result, scaled numbers and the bits of their signs; KernelError if it is wrong."""
    count = 1000
    values = (2 * np.cos(1.7 * np.arange(count))).astype("f4")  # numbers of both signs; numpy.random is slow to import
    flags = device.buffer(count // 32 + 1, "u4").fill(0)
    output = device.buffer(count, "f4").fill(255)
    kernel = device.kernel(SELF_TEST, "self_test", group_size=64)
    kernel(count, device.buffer(count).write(values), output, flags, count, 0.5)
    wanted = np.where(values > 0, values * np.float32(2) + np.float32(0.5), -values)
    bits = np.packbits(values > 0, bitorder="little")
    bits = np.frombuffer(bits.tobytes().ljust(4 * (count // 32 + 1), b"\0"), "u4")
    answer = output.read()
    if not np.allclose(answer, wanted, rtol=1e-6, atol=0):
        worst = int(np.nanargmax(np.abs(answer - wanted)))
        raise KernelError(f"common/self_test.cu: element {worst} is {answer[worst]} and should be {wanted[worst]}")
    if not np.array_equal(flags.read(), bits):
        raise KernelError("common/self_test.cu: the gathered bits are wrong")


def _test(device: Device) -> None:
    """Runs self_test(); on CPUs only once per driver and kernel text, since loading the kernel takes 60 ms."""
    if device.properties.scalar_threads:  # a CPU
        key = f"self test {device.name} {device.driver} {preprocess(SELF_TEST)}"
        pass_once(key, partial(self_test, device))
    else:
        self_test(device)


def _select(device_id: str) -> Iterator[DeviceInfo]:
    """Yields the devices that a --device value may mean, best first; lazily, since each back end is slow to start."""
    if device_id == "auto":
        for backend in BACKENDS:
            yield from list_backend(backend)[0]
        return
    backend = "opencl" if device_id == "cpu" else device_id.partition(":")[0]  # CPUs are OpenCL devices
    devices = list_backend(backend)[0]
    matches = [d for d in devices if d.device_id == device_id or (device_id == "cpu" and d.device_type == "cpu")]
    if not matches:
        found, missing = list_devices()
        cpu = ["cpu"] if any(d.device_type == "cpu" for d in found) else []
        known = ["auto", *cpu, *(d.device_id for d in found)]
        reasons = "".join(f"; {kind}: {reason}" for kind, reason in missing.items())
        raise UnavailableError(f"device {device_id}: not on this machine, which has {', '.join(known)}{reasons}")
    yield from matches


def open_device(device_id: str = "auto") -> Device:
    """Opens the first device that `device_id` may mean and that passes self_test()."""
    kinds = ("auto", "cpu", "cuda:", "opencl:")
    if not device_id.startswith(kinds):
        raise UserError(f"device {device_id}: unknown; allowed are auto, cpu, cuda:INDEX, opencl:PLATFORM:INDEX")
    reasons = []
    for found in _select(device_id):
        try:
            device = found.open()
            _test(device)
        except (KernelError, UnavailableError) as error:
            reasons.append(f"{found.device_id} ({found.name}): {str(error).splitlines()[0]}")
            continue
        return device
    reason = "; ".join(reasons) or "no driver shows one (`rayfold doctor` says what is missing)"
    raise UnavailableError(f"device {device_id}: no compute device works here: {reason}")


class DeviceContext:
    """The compute devices and the GL context of one process, each opened at its first use.

    `gl` is the window's context if one is given, else a headless one.
    """

    def __init__(self, device_ids: tuple[str, ...] = ("auto",), gl: "GlContext | None" = None) -> None:
        self.device_ids = device_ids
        self.compile_pool: CompilePool | None = None
        self._opening: Future[list[Device]] | None = None
        if gl is not None:
            self.gl = gl  # takes the place of the cached property

    def compile_in_children(self, pool: CompilePool) -> None:
        """Opens devices and compiles kernels in `pool`: background tasks of a window then wait, not its UI thread."""
        self.compile_pool = pool
        for device in self.__dict__.get("devices", []):  # none if the cached property was not read yet
            device.compile_pool = pool

    @cached_property
    def devices(self) -> list[Device]:
        """The compute devices, opened at the first use.

        With a pool, one of its threads opens them. result() meanwhile suspends the window's Task (compilation.py) that
        asks for them, and blocks any other caller.
        """
        if self.compile_pool is None:
            return self._open_devices()
        # `_` is the pool's Compiler, which the self test does not need
        self._opening = self._opening or self.compile_pool.submit(lambda _: self._open_devices())
        return result(self._opening, "the self test")

    def _open_devices(self) -> list[Device]:
        with stage("opening"):
            devices = [open_device(device_id) for device_id in self.device_ids]
        for device in devices:
            device.compile_pool = self.compile_pool
        return devices

    @property
    def device(self) -> Device:
        """The first compute device."""
        return self.devices[0]

    @cached_property
    def gl(self) -> "GlContext":
        """The GL context, opened at the first use."""
        from renderer.gpu.gl import GlContext

        return GlContext.headless()


def open_context(*device_ids: str, gl: "GlContext | None" = None) -> DeviceContext:
    """Creates the DeviceContext of --device options (default "auto"); devices other than auto are opened at once."""
    gpu = DeviceContext(device_ids or ("auto",), gl)
    if any(device_id != "auto" for device_id in gpu.device_ids):
        gpu.devices  # noqa: B018  (opens them: a wrong --device fails before any work starts)
    return gpu
