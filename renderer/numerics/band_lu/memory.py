"""Memory that a factorization needs on the host and on devices, checked before it starts."""

from collections.abc import Sequence

import numpy as np

from renderer.errors import UnavailableError
from renderer.gpu import Device
from renderer.host import available_cores, available_memory, format_bytes
from renderer.numerics.band_lu.block_columns import BlockLayout

READBACKS = 4  # block columns of a device on their way to the host
GATHER_CHUNK_BYTES, MAX_GATHER_CHUNK = 1 << 26, 32  # of the block columns that are gathered together
USABLE = 0.9  # of a device's memory: the driver and the kernels need the rest


def host_bytes(layout: BlockLayout, dtype, uses_gbtrf: bool) -> int:
    """Bytes of the factors in host memory, and of every core's workspace for packing block columns."""
    per_column = 2 * (2 * layout.kl + layout.ku + 1) if uses_gbtrf else layout.ld + 1
    packing = 0 if uses_gbtrf else available_cores() * (layout.kl + layout.ku + 1) * (layout.s + 8)
    return (layout.p * layout.s * per_column + packing) * np.dtype(dtype).itemsize


def check_host(needed: int, matrix_bytes: int) -> None:
    """UnavailableError unless `needed` bytes are free beside the matrix, which is in memory already."""
    free = available_memory()
    if needed > free:
        raise UnavailableError(
            f"the factors take {format_bytes(needed)} of memory beside the matrix's {format_bytes(matrix_bytes)}, "
            f"and {format_bytes(free)} are free"
        )


def gather_chunk(layout: BlockLayout, dtype) -> int:
    """Block columns that the host gathers together."""
    column = (layout.kl + layout.ku + 1) * layout.s * np.dtype(dtype).itemsize
    return min(max(GATHER_CHUNK_BYTES // column, 1), MAX_GATHER_CHUNK)


def upload_slots(layout: BlockLayout, dtype, devices: int) -> int:
    """Block columns of a device that may be on their way to it: three gathered chunks, at least four."""
    return max(3 * -(-gather_chunk(layout, dtype) // devices), 4)


def is_resident(layout: BlockLayout, dtype, devices: Sequence[Device], matrix_bytes: int) -> bool:
    """Whether all block columns fit on the devices, so that they stay there.

    UnavailableError when not even the u + 1 block columns of one step fit.
    """
    step, count = np.dtype(dtype).itemsize, len(devices)
    column = layout.stride * step
    columns = upload_slots(layout, dtype, count) + READBACKS
    extra = 6 * (layout.l + 1) * layout.s * layout.s * step + columns * column  # panels, staging and readback buffers
    whole, ring = (-(-number // count) * column for number in (layout.p, layout.u + 1))
    properties = [device.properties for device in devices]
    available = min(int(min(USABLE * p.memory_bytes, p.max_buffer_bytes + extra)) for p in properties)
    limit = min(p.max_buffer_bytes for p in properties)

    def fits(amount: int) -> bool:
        return amount + extra <= available and amount <= limit

    if fits(whole):
        return True
    if not fits(ring):
        raise UnavailableError(
            f"{layout.u + 1} block columns of {layout.s} take {format_bytes(ring + extra)} on each device; "
            f"{format_bytes(min(available, limit))} are there. A smaller --block or more devices take less"
        )
    check_host(host_bytes(layout, dtype, False), matrix_bytes)
    return False


def has_room_for_band(layout: BlockLayout, ab: np.ndarray, devices: Sequence[Device]) -> bool:
    """Whether one device has room for the matrix beside its resident block columns, and the inverses of triangles."""
    if len(devices) != 1 or ab.nbytes > devices[0].properties.max_buffer_bytes:
        return False
    factors = layout.p * (layout.stride + 2 * layout.s**2) * ab.itemsize
    return factors + ab.nbytes <= USABLE / 2 * devices[0].properties.memory_bytes
