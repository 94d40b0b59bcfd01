"""Devices: the contract that CUDA and OpenCL fulfill (device.py), opening.py, and OpenGL passes (gl.py)."""

from renderer.gpu.device import Buffer, Device
from renderer.gpu.kernel_source import DeviceProperties
from renderer.gpu.opening import (
    BACKENDS,
    DeviceContext,
    DeviceInfo,
    list_backend,
    list_devices,
    open_context,
    open_device,
    self_test,
)

__all__ = [
    "BACKENDS",
    "Buffer",
    "Device",
    "DeviceContext",
    "DeviceInfo",
    "DeviceProperties",
    "list_backend",
    "list_devices",
    "open_context",
    "open_device",
    "self_test",
]
