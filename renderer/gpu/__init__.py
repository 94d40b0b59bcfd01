"""Compute devices and OpenGL: the device contract (device.py), its CUDA and OpenCL back ends, opening.py, and gl.py.

The package's names are imported lazily, at their first use, so that ahead.py can start drivers before NumPy is loaded.
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
# Disables PyOpenCL's caches, databases and pickles without checksums: a damaged one would end every command. PyOpenCL
# reads the variable when it is imported, which only modules of this package do.
os.environ.setdefault("PYOPENCL_NO_CACHE", "1")
_HOMES = {"Buffer": "device", "Device": "device", "DeviceProperties": "kernel_source"}


def __dir__() -> list[str]:
    return sorted([*__all__, "__all__", "__doc__", "__file__", "__name__", "__path__"])


if not TYPE_CHECKING:  # else a misspelled name would be Any

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module 'renderer.gpu' has no attribute {name!r}")
        return getattr(import_module(f"renderer.gpu.{_HOMES.get(name, 'opening')}"), name)
