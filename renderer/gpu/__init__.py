"""Compute devices and OpenGL: the device contract (device.py), its CUDA and OpenCL back ends, opening.py, and gl.py.

The package's names are imported lazily, at their first use, so that ahead.py can start drivers before NumPy is loaded.
"""

import os
from typing import TYPE_CHECKING

from renderer.lazy import lazy_names

if TYPE_CHECKING:
    from renderer.gpu.device import Buffer, Device
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
    from renderer.gpu.properties import DeviceProperties

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
_HOMES = dict.fromkeys(__all__, "opening")
_HOMES |= {"Buffer": "device", "Device": "device", "DeviceProperties": "properties"}

if not TYPE_CHECKING:  # else a misspelled name would be Any
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
