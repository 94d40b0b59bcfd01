"""Devices: the contract that CUDA and OpenCL fulfill (device.py), opening.py, and OpenGL passes (gl.py).

Names are imported when they are first asked for: what starts drivers beside imports (ahead.py) does not wait for NumPy.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
# PyOpenCL's own caches are databases and pickles without checksums; a damaged one would end every command. It reads
# this as it is imported, which modules of this package alone do.
os.environ.setdefault("PYOPENCL_NO_CACHE", "1")
_HOMES = {"Buffer": "device", "Device": "device", "DeviceProperties": "kernel_source"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'renderer.gpu' has no attribute {name!r}")
    return getattr(import_module(f"renderer.gpu.{_HOMES.get(name, 'opening')}"), name)
