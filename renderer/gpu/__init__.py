"""Compute devices and OpenGL: the device contract (device.py), its CUDA and OpenCL back ends, opening.py, and gl.py.

The package's names are imported lazily, at their first use, so that ahead.py can start drivers before NumPy is loaded.
"""

import os
from typing import TYPE_CHECKING

from renderer.lazy import lazy_names

if TYPE_CHECKING:
    from renderer.gpu.device import Buffer as Buffer
    from renderer.gpu.device import Device as Device
    from renderer.gpu.opening import BACKENDS as BACKENDS
    from renderer.gpu.opening import DeviceContext as DeviceContext
    from renderer.gpu.opening import DeviceInfo as DeviceInfo
    from renderer.gpu.opening import list_backend as list_backend
    from renderer.gpu.opening import list_devices as list_devices
    from renderer.gpu.opening import open_context as open_context
    from renderer.gpu.opening import open_device as open_device
    from renderer.gpu.opening import self_test as self_test
    from renderer.gpu.properties import DeviceProperties as DeviceProperties

# Disables PyOpenCL's caches, databases and pickles without checksums: a damaged one would end every command. PyOpenCL
# reads the variable when it is imported, which only modules of this package do.
os.environ.setdefault("PYOPENCL_NO_CACHE", "1")
_OPENING = "BACKENDS DeviceContext DeviceInfo list_backend list_devices open_context open_device self_test".split()
_HOMES = dict.fromkeys(_OPENING, "opening")  # the module that defines each name
_HOMES |= {"Buffer": "device", "Device": "device", "DeviceProperties": "properties"}

if not TYPE_CHECKING:  # else a misspelled name would be Any
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
