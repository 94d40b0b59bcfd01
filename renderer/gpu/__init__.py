"""Devices: the contract that CUDA and OpenCL fulfill (device.py), OpenGL passes (gl.py), and what opens them."""

from renderer.gpu.device import (
    Buffer,
    Device,
    DeviceContext,
    DeviceInfo,
    list_devices,
    open_context,
    open_device,
    self_test,
)
from renderer.gpu.kernel_source import DeviceProperties

__all__ = [
    "Buffer",
    "Device",
    "DeviceContext",
    "DeviceInfo",
    "DeviceProperties",
    "list_devices",
    "open_context",
    "open_device",
    "self_test",
]
