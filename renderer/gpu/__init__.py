"""Devices: the contract that CUDA and OpenCL fulfill (device.py), opening.py, and OpenGL passes (gl.py)."""

from renderer.gpu.device import Buffer, Device
from renderer.gpu.kernel_source import DeviceProperties
from renderer.gpu.opening import (
    DeviceContext,
    DeviceInfo,
    list_devices,
    open_context,
    open_device,
    self_test,
)

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
