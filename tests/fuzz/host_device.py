"""A device that computes nothing: buffers are host memory of zeros, kernels check their arguments and return.

Everything that a picture does on the host before and between its kernels runs as ever, without a compiler: reading the
files of a scene, packing records, building trees, choosing schedules. A draw takes milliseconds in place of seconds.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from renderer.errors import UnavailableError
from renderer.gpu.device import Buffer, Device, Kernel
from renderer.gpu.properties import DeviceProperties

MOST = 1 << 30  # bytes of a buffer


class HostBuffer(Buffer):
    """Zeros on the host."""

    def _allocate(self) -> None:
        if self.nbytes > MOST:
            raise UnavailableError(f"{self.nbytes} bytes are more than this device has")
        self.data = np.zeros(self.nbytes, "u1")

    def _upload(self, array: np.ndarray) -> None:
        self.data[:] = array.reshape(-1).view("u1")

    def _download(self, array: np.ndarray) -> None:
        array.reshape(-1).view("u1")[:] = self.data

    def _fill(self, byte: int) -> None:
        self.data[:] = byte

    def _copy(self, source: Any) -> None:
        self.data[:] = source.data

    def _can_copy(self, source: Buffer) -> Any:
        return isinstance(source, HostBuffer)


class HostKernel(Kernel):
    """Converts the arguments as the back ends do, which warns of numbers that float32 or int32 cannot hold."""

    sets_single_arguments = True

    def __init__(self, group_size: int) -> None:
        self.group_size = group_size

    def bind_launch(self, threads: int, *arguments: object) -> Callable[[], None]:
        for argument in arguments:
            self.set(0, argument)
        launch: Any = lambda: None  # noqa: E731
        launch.set = self.set
        return launch

    def set(self, position: int, argument: object) -> None:
        if isinstance(argument, float):
            np.float32(argument)
        elif isinstance(argument, int):
            np.int32(argument)
        else:
            assert argument is None or isinstance(argument, (HostBuffer, np.generic, np.ndarray)), type(argument)


class HostDevice(Device):
    """See the module."""

    name, driver = "host", "none"
    properties = DeviceProperties(2, 1, 1 << 33, 1 << 32, True, simd_width=16)
    simd_width = 16

    def buffer(self, shape: Any, dtype: Any = "f4") -> HostBuffer:
        return HostBuffer(self, shape, dtype)

    def kernel(self, file: Any, entry: str, group_size: int = 256, **constants: object) -> HostKernel:
        return HostKernel(group_size)

    def staging_buffer(self, count: int) -> Any:
        buffer = self.buffer(count, "u1")
        return SimpleNamespace(map=lambda: buffer.data, upload_then=lambda n, work: work(buffer))

    def readback_buffer(self, count: int) -> Any:
        buffer = self.buffer(count, "u1")
        return SimpleNamespace(buffer=buffer, start_copy=lambda: None, wait=lambda: buffer.data)

    def timestamp(self) -> Any:
        return SimpleNamespace(seconds_since=lambda earlier: 1e-3)

    def finish(self) -> None:
        pass
