"""Room for results: what would not fit is refused before it starts."""

from __future__ import annotations

import numpy as np

from renderer.cdollar.ir.types import DTYPES
from renderer.errors import UnavailableError


def available_bytes() -> int:
    """Memory that new arrays may take, by the kernel's estimate, else 8 GiB."""
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 8 << 30


def readable(count: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.0f} PiB"


def check_memory(sizes: tuple[int, ...], parts: tuple[str, ...], what: str, limit: int | None = None) -> None:
    """Refuses an array of these sizes and components if it would not fit with a quarter to spare."""
    needed = sum(np.dtype(DTYPES[part]).itemsize for part in parts)
    for size in sizes:
        needed *= size
    free = available_bytes() if limit is None else limit
    if needed > free * 3 // 4:
        shape = " x ".join(map(str, sizes))
        raise UnavailableError(
            f"{what} of {shape} elements needs {readable(needed)}, but {readable(free)} of memory are free"
        )
