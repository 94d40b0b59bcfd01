"""Starts NVIDIA's driver beside other work, without CUDA's Python packages, whose import takes a third as long."""

import ctypes
import importlib.util
import platform
import threading
from functools import partial
from pathlib import Path

from renderer.gpu import cuda_trial, nvrtc
from renderer.gpu.compilation import start_thread
from renderer.gpu.nvidia import has_nvidia_driver
from renderer.gpu.trial import Verdict, recall_verdicts, run_trial
from renderer.host import IS_LINUX

NVIDIA_VERSION_FILE = Path("/proc/driver/nvidia/version")

_deciding = threading.Lock()  # held while the driver is tried: who asks meanwhile waits for the verdict


def start_driver(index: int) -> None:
    """Tries the driver and opens a GPU's context on a thread: 0.5 s at a first start, then 0.2 s, beside imports."""
    if has_nvidia_driver() and importlib.util.find_spec("cuda"):
        start_thread(partial(_start, index))


def _start(index: int) -> None:
    """Retains the context that cuda_driver.py will retain, and that meets any failure again and reports it."""
    if why_driver_fails():
        return
    start_thread(nvrtc.prepare)
    driver = ctypes.CDLL("libcuda.so.1" if IS_LINUX else "nvcuda.dll")
    handle, context = ctypes.c_int(), ctypes.c_void_p()
    if driver.cuInit(0) == 0 and driver.cuDeviceGet(ctypes.byref(handle), index) == 0:
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), handle)


def why_driver_fails() -> str:
    """What the driver did in a child process, or "" if it works."""
    with _deciding:
        return recall_verdicts({f"cuda {platform.node()} {_driver_version()}": _try_driver}).popitem()[1].reason


def _driver_version() -> str:
    """What NVIDIA's kernel module says about itself; it and libcuda come together."""
    try:
        return NVIDIA_VERSION_FILE.read_text(encoding="utf-8").partition("\n")[0]
    except OSError:
        return ""


def _try_driver() -> Verdict:
    """Starts the driver in a child: one that hangs or aborts is not started here."""
    return Verdict(run_trial(cuda_trial.__file__).reason)
