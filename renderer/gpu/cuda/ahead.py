"""Starts NVIDIA's driver on a thread by ctypes: importing CUDA's Python packages for it would be slow itself.

The driver is tried in a child process first (trial.py), since a bad driver may end or hang its process.
"""

import ctypes
import importlib.util
import platform
import threading
from functools import partial
from pathlib import Path

from renderer.gpu.compilation import start_thread
from renderer.gpu.cuda import nvrtc, trial
from renderer.gpu.nvidia import has_nvidia_driver
from renderer.gpu.verdicts import try_once
from renderer.host import IS_LINUX

NVIDIA_VERSION_FILE = Path("/proc/driver/nvidia/version")

_deciding = threading.Lock()  # held while the driver is tried, so that other threads wait for the verdict


def start_driver(index: int) -> None:
    """Tries the driver and opens a GPU's context on a thread: 0.5 s at the first start ever, 0.2 s later."""
    if has_nvidia_driver() and importlib.util.find_spec("cuda"):
        start_thread(partial(_start, index))


def _start(index: int) -> None:
    """Retains the primary context, as driver.py will do; driver.py then meets and reports any failure."""
    if why_driver_fails():
        return
    start_thread(nvrtc.prepare)  # loads the compiler's library meanwhile
    driver = ctypes.CDLL("libcuda.so.1" if IS_LINUX else "nvcuda.dll")
    handle, context = ctypes.c_int(), ctypes.c_void_p()
    if driver.cuInit(0) == 0 and driver.cuDeviceGet(ctypes.byref(handle), index) == 0:
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), handle)


def why_driver_fails() -> str:
    """Returns why the driver failed in a child process, "" if it works."""
    with _deciding:
        return try_once(f"cuda {platform.node()} {_driver_version()}", trial.__file__).reason


def _driver_version() -> str:
    """Version text of NVIDIA's kernel module; libcuda has the same version."""
    try:
        return NVIDIA_VERSION_FILE.read_text(encoding="utf-8").partition("\n")[0]
    except OSError:
        return ""
