"""Memory for results: an array that would not fit is refused before it is computed."""

from __future__ import annotations

import math

import numpy as np

from renderer.cdollar.ir.types import DTYPES
from renderer.errors import UnavailableError
from renderer.host import available_memory, format_bytes


def check_memory(sizes: tuple[int, ...], types: tuple[str, ...], name: str, limit: int | None = None) -> None:
    """Raise UnavailableError for an array of more than 3/4 of `limit` bytes, by default of the host's free memory."""
    needed = math.prod(sizes) * sum(np.dtype(DTYPES[type_]).itemsize for type_ in types)
    free = available_memory() if limit is None else limit
    if needed > free * 3 // 4:
        shape = " x ".join(map(str, sizes))
        raise UnavailableError(
            f"{name} of {shape} elements needs {format_bytes(needed)}, but {format_bytes(free)} of memory are free"
        )
