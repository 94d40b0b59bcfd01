"""A compute device whose kernels do nothing and whose buffers are host memory, zero at first.

What a window does around kernels is tried with it thousands of times: nothing is compiled and no draw takes time.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from renderer.gpu.device import Buffer, Device, Kernel
from renderer.gpu.properties import DeviceProperties


class HostBuffer(Buffer):
    """Host memory."""

    def _allocate(self) -> None:
        self.bytes = np.zeros(self.nbytes, "u1")

    def _upload(self, array: np.ndarray) -> None:
        self.bytes[:] = array.reshape(-1).view("u1")

    def _download(self, array: np.ndarray) -> None:
        array.reshape(-1).view("u1")[:] = self.bytes

    def _fill(self, byte: int) -> None:
        self.bytes[:] = byte

    def _can_copy(self, source: Any) -> bool:
        return True

    def _copy(self, source: Any) -> None:
        self.bytes[:] = source.bytes


class NoopKernel(Kernel):
    """Launches nothing."""

    def __init__(self, group_size: int):
        self.group_size = group_size

    def bind_launch(self, threads: int, *arguments: Any) -> Callable[[], None]:
        return lambda: None


class Moment:
    """A mark in a queue in which nothing takes time."""

    has_passed = True

    def seconds_since(self, earlier: Any) -> float:
        return 1e-6


class Stage:
    """Both halves of a double buffer, and the way back."""

    def __init__(self, device: Device, count: int):
        self.buffer = HostBuffer(device, count, "u1")

    def map(self) -> np.ndarray:
        return self.buffer.bytes

    def upload_then(self, count: int, work: Callable[[Any], None]) -> None:
        work(self.buffer)

    def start_copy(self) -> None:
        pass

    def wait(self) -> np.ndarray:
        return self.buffer.bytes


class NoopDevice(Device):
    """A device that has every buffer and runs nothing."""

    def __init__(self, properties: DeviceProperties):
        super().__init__()
        self.name, self.driver, self.properties = "no device", "none", properties

    def buffer(self, shape: Any, dtype: Any = "f4") -> HostBuffer:
        return HostBuffer(self, shape, dtype)

    def staging_buffer(self, count: int) -> Stage:
        return Stage(self, count)

    def readback_buffer(self, count: int) -> Stage:
        return Stage(self, count)

    def timestamp(self) -> Moment:
        return Moment()

    def _build(self, program: object) -> bool:
        return True

    def _make_kernel(self, program: Any, entry: str, name: str, group_size: int) -> NoopKernel:
        return NoopKernel(group_size)

    def finish(self) -> None:
        pass
