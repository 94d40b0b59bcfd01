"""Detects NVIDIA's driver, and GPUs at all, without importing the packages of CUDA and OpenCL, which is slow."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from renderer.host import IS_LINUX

# One of the two exists if NVIDIA's driver is loaded (dxg: WSL).
NVIDIA_CONTROL_FILES = Path("/dev/nvidiactl"), Path("/dev/dxg")
# Files in /dev of the drivers of GPUs: Linux's own (dri), AMD's, WSL's, NVIDIA's, Arm's and Qualcomm's.
GPU_FILES = "dri", "kfd", "dxg", "nvidiactl", "nvhost-gpu", "mali0", "kgsl-3d0"
NO_NVIDIA_DRIVER = "no NVIDIA driver is loaded"


def may_have_gpu() -> bool:
    """False on Linux without a device file of any GPU, where no driver need be asked; True elsewhere."""
    return not IS_LINUX or any(Path("/dev", name).exists() for name in GPU_FILES)


def has_nvidia_driver(control_files: Iterable[Path] = NVIDIA_CONTROL_FILES) -> bool:
    """True if NVIDIA's driver is loaded (Linux) or its tool nvidia-smi is installed (other systems)."""
    return any(file.exists() for file in control_files) if IS_LINUX else bool(shutil.which("nvidia-smi"))
