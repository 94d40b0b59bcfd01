"""Detects NVIDIA's driver without importing CUDA's packages, which is slow."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from renderer.host import IS_LINUX

# One of the two exists if NVIDIA's driver is loaded (dxg: WSL).
NVIDIA_CONTROL_FILES = Path("/dev/nvidiactl"), Path("/dev/dxg")
NO_NVIDIA_DRIVER = "no NVIDIA driver is loaded"


def has_nvidia_driver(control_files: Iterable[Path] = NVIDIA_CONTROL_FILES) -> bool:
    """True if NVIDIA's driver is loaded (Linux) or its tool nvidia-smi is installed (other systems)."""
    return any(file.exists() for file in control_files) if IS_LINUX else bool(shutil.which("nvidia-smi"))
