"""Devices: the contract that CUDA and OpenCL fulfill (device.py), OpenGL passes (gl.py), and what opens them."""

from renderer.errors import KernelError
from renderer.gpu.device import (
    Buffer,
    Device,
    DeviceContext,
    DeviceInfo,
    Kernel,
    Timestamp,
    list_devices,
    open_context,
    open_device,
    self_test,
)
from renderer.gpu.kernel_source import Counters, DeviceProperties

__all__ = [
    "Buffer",
    "Counters",
    "Device",
    "DeviceContext",
    "DeviceInfo",
    "DeviceProperties",
    "Kernel",
    "KernelError",
    "Timestamp",
    "list_devices",
    "open_context",
    "open_device",
    "self_test",
]
