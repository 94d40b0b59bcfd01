"""What a factorisation takes, told before it starts."""

import numpy as np

from renderer.errors import UnavailableError
from renderer.host import available_cores, available_memory, format_bytes
from renderer.numerics.band_lu.block_columns import Layout

TRAYS = 4  # block columns of a device that are on their way home
BUNCH_BYTES, LARGEST_BUNCH = 1 << 26, 16  # of block columns that are gathered at a time
USABLE = 0.9  # of a device's memory: the rest is the driver's and the kernels'


def host_bytes(layout: Layout, dtype, thin: bool) -> int:
    """Bytes of the factors in host memory, and of what every core places a block column with."""
    per_column = 2 * (2 * layout.kl + layout.ku + 1) if thin else layout.height + 1
    placing = 0 if thin else available_cores() * (layout.kl + layout.ku + 1) * (layout.s + 8)
    return (layout.p * layout.s * per_column + placing) * np.dtype(dtype).itemsize


def check_host(needed: int, given: int) -> None:
    """UnavailableError unless `needed` bytes fit beside the `given` ones, which are in memory already."""
    free = available_memory()
    if needed > free:
        raise UnavailableError(
            f"the factors take {format_bytes(needed)} of memory beside the matrix's {format_bytes(given)}, "
            f"and {format_bytes(free)} are free"
        )


def bunch(layout: Layout, dtype) -> int:
    """Block columns that the host gathers at a time."""
    return min(
        max(BUNCH_BYTES // ((layout.kl + layout.ku + 1) * layout.s * np.dtype(dtype).itemsize), 1), LARGEST_BUNCH
    )


def loads(layout: Layout, dtype, devices: int) -> int:
    """Block columns of a device that may be on their way in: two bunches, and four at least."""
    return max(2 * -(-bunch(layout, dtype) // devices), 4)


def residence(layout: Layout, dtype, devices, wanted: str, given: int) -> bool:
    """Whether all block columns stay on the devices; UnavailableError when not even u + 1 of them fit."""
    step, count = np.dtype(dtype).itemsize, len(devices)
    column = layout.stride * step
    columns = loads(layout, dtype, count) + TRAYS
    extra = 6 * (layout.l + 1) * layout.s * layout.s * step + columns * column  # panels, stages and trays
    whole, ring = (-(-number // count) * column for number in (layout.p, layout.u + 1))
    room = min(int(min(USABLE * d.properties.memory_bytes, d.properties.max_buffer_bytes + extra)) for d in devices)
    limit = min(d.properties.max_buffer_bytes for d in devices)

    def fits(amount: int) -> bool:
        return amount + extra <= room and amount <= limit

    if wanted == "whole" or (wanted == "auto" and fits(whole)):
        if not fits(whole):
            raise UnavailableError(
                f"the whole band takes {format_bytes(whole + extra)} on each device; "
                f"{format_bytes(min(room, limit))} are there"
            )
        return True
    if not fits(ring):
        raise UnavailableError(
            f"{layout.u + 1} block columns of {layout.s} take {format_bytes(ring + extra)} on each device; "
            f"{format_bytes(min(room, limit))} are there. A smaller --block or more devices take less"
        )
    check_host(host_bytes(layout, dtype, False), given)
    return False
