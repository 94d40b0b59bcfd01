"""Which drivers this machine has installed, so that a broken one fails the tests in place of skipping them.

A test may skip for want of a device only where no driver for it is installed. Where Mesa or PoCL is installed and
does not work, a skip would turn the whole suite green without a single picture drawn.
"""

import platform
from pathlib import Path
from typing import NoReturn

import pytest

from renderer.gpu.cuda import nvrtc
from renderer.gpu.nvidia import has_nvidia_driver
from renderer.gpu.opencl.icd import icd_files
from tests.seeds import FRESH

VENDOR_FOLDERS = "/usr/share/glvnd/egl_vendor.d", "/etc/glvnd/egl_vendor.d"
MESA_FOLDERS = "/usr/lib/dri", "/usr/lib64/dri", f"/usr/lib/{platform.machine()}-linux-gnu/dri"


def gl_drivers() -> list[str]:
    """Files of the installed OpenGL drivers: GLVND vendors of EGL, with Mesa's only beside a driver of its own."""
    vendors = [path for folder in VENDOR_FOLDERS for path in sorted(Path(folder).glob("*.json"))]
    mesa = [path for folder in MESA_FOLDERS for path in sorted(Path(folder).glob("*_dri.so"))]
    return [str(path) for path in vendors if mesa or "mesa" not in path.name]


def compute_drivers() -> list[str]:
    """The installed drivers of compute devices: NVIDIA's, and the installable client drivers of OpenCL."""
    return ["NVIDIA's driver"] * has_nvidia_driver() + [str(path) for path in icd_files()]


# As found before any is tried: icd.select_drivers() leaves broken ones out of this process's environment.
COMPUTE_DRIVERS, GL_DRIVERS = compute_drivers(), gl_drivers()


def skip_without(drivers: list[str], reason: str) -> NoReturn:
    """Skips the test where no driver is installed; fails it where one is installed and does not work."""
    if drivers:
        pytest.fail(f"installed but not working: {', '.join(drivers)}: {reason}", pytrace=False)
    pytest.skip(reason)


def check_for_cuda(text: str, name: str = "kernel.cu", strict: bool = False) -> None:
    """NVRTC takes a text for sm_90, with no GPU needed; KernelError with its log if it does not.

    A quick run asks its front end alone (syntax, names, types): machine code, which `make test-all` makes, takes about
    ten times as long. Texts whose machine code a quick run makes: test_headers.py, test_matmul.py, test_band_lu_*.py.
    """
    if FRESH:
        nvrtc.compile_cubin(text, "sm_90", name, strict)
        return
    options = [*nvrtc._options("sm_90", strict), "-fdevice-syntax-only"]
    nvrtc._compile(nvrtc._binding(), text, options, name)
