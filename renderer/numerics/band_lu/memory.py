"""Memory that a factorization needs on the host and on devices: solver.py checks it before it allocates.

The sizes of the upload and readback buffers are fixed here too, since is_resident() counts them.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import DTypeLike

from renderer.errors import UnavailableError
from renderer.gpu import Device
from renderer.host import available_cores, available_memory, format_bytes
from renderer.numerics.band_lu.block_columns import BlockLayout

READBACKS = 4  # readback buffers of a device, of one block column each
GATHER_CHUNK_BYTES, MAX_GATHER_CHUNK = 1 << 26, 32  # bytes and number of block columns that the host gathers at once
USABLE = 0.9  # fraction of device memory for factors: the driver and the kernels need the rest


def host_bytes(layout: BlockLayout, dtype: DTypeLike, is_blocked: bool) -> int:
    """Bytes of the factors in host memory, plus the workspaces in which each core packs block columns."""
    # twice gbtrf's storage: a bound for every class of lapack_factors.py with its copies
    per_column = layout.ld + 1 if is_blocked else 2 * (2 * layout.kl + layout.ku + 1)
    packing = available_cores() * (layout.kl + layout.ku + 1) * (layout.s + 8) if is_blocked else 0
    return (layout.p * layout.s * per_column + packing) * np.dtype(dtype).itemsize


def check_host(needed: int, matrix_bytes: int) -> None:
    """UnavailableError unless `needed` bytes of host memory are free; the matrix is allocated already."""
    free = available_memory()
    if needed > free:
        raise UnavailableError(
            f"the factors take {format_bytes(needed)} of memory beside the matrix's {format_bytes(matrix_bytes)}, "
            f"and {format_bytes(free)} are free"
        )


def gather_chunk(layout: BlockLayout, dtype: DTypeLike) -> int:
    """The number of block columns that the host gathers at once."""
    column = (layout.kl + layout.ku + 1) * layout.s * np.dtype(dtype).itemsize
    return min(max(GATHER_CHUNK_BYTES // column, 1), MAX_GATHER_CHUNK)


def upload_slots(layout: BlockLayout, dtype: DTypeLike, devices: int) -> int:
    """The number of block columns being uploaded to one device at a time: its part of three chunks, at least four."""
    return max(3 * -(-gather_chunk(layout, dtype) // devices), 4)


def is_resident(layout: BlockLayout, dtype: DTypeLike, devices: Sequence[Device], matrix_bytes: int) -> bool:
    """True if all block columns fit in the memory of the devices; False if only the u + 1 of one step fit.

    UnavailableError if neither fits, or if in the second case the host lacks the memory for all.
    """
    step, count = np.dtype(dtype).itemsize, len(devices)
    column = layout.stride * step
    columns = upload_slots(layout, dtype, count) + READBACKS
    extra = 6 * (layout.l + 1) * layout.s * layout.s * step + columns * column  # panels, staging and readback buffers
    all_columns, step_columns = (-(-number // count) * column for number in (layout.p, layout.u + 1))
    properties = [device.properties for device in devices]
    available = min(int(min(USABLE * p.memory_bytes, p.max_buffer_bytes + extra)) for p in properties)
    limit = min(p.max_buffer_bytes for p in properties)

    def fits(amount: int) -> bool:
        return amount + extra <= available and amount <= limit

    if fits(all_columns):
        return True
    if not fits(step_columns):
        raise UnavailableError(
            f"{layout.u + 1} block columns of {layout.s} take {format_bytes(step_columns + extra)} on each device; "
            f"{format_bytes(min(available, limit))} are there. A smaller --block or more devices take less"
        )
    check_host(host_bytes(layout, dtype, is_blocked=True), matrix_bytes)
    return False


def has_room_for_band(layout: BlockLayout, ab: np.ndarray, devices: Sequence[Device]) -> bool:
    """True if there is one device and it can hold the band, all block columns and the inverses of the triangles."""
    if len(devices) != 1 or ab.nbytes > devices[0].properties.max_buffer_bytes:
        return False
    factors = layout.p * (layout.stride + 2 * layout.s**2) * ab.itemsize
    return factors + ab.nbytes <= USABLE / 2 * devices[0].properties.memory_bytes
