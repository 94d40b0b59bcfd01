"""Radix sort by shaders/cdollar/radix_sort.cu: for GPUs with warps of 32 and ballots, less than 2^30 keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from renderer.gpu import Buffer, Device

GROUP_SIZE, ITEMS = 256, 24  # of 8 to 24 keys a thread the fastest for both sorts (1e8 elements, H200)
TILE = GROUP_SIZE * ITEMS
MAX_PASSES, DIGITS = 4, 256
MAX_KEYS = (1 << 30) - 1
KINDS = {"int": {"SIGN": 0x80000000, "FLOATS": 0}, "uint": {"SIGN": 0, "FLOATS": 0}, "float": {"SIGN": 0, "FLOATS": 1}}


class RadixSort:
    """Sorts on one device; `launch(kernel, threads, arguments)` runs each kernel."""

    def __init__(self, device: Device, launch: Callable[[Any, int, list], None]) -> None:
        """Compile nothing yet."""
        self.device, self.launch = device, launch

    def sort(self, source: Buffer, count: int, scalar: str, out: Buffer) -> None:
        """Write the sorted elements."""
        self.run(source, None, out, (count, 32, scalar), numbered=False)

    def argsort(self, source: Buffer, count: int, scalar: str, out: Buffer) -> None:
        """Write the indices of the sorted elements; of equal ones the first comes first."""
        self.run(source, source, out, (count, 32, scalar), numbered=True)

    def sort_values(self, keys: Buffer, values: Buffer, count: int, bits: int, out: Buffer) -> None:
        """Write 32-bit values in the order of their keys, unsigned integers of so many bits."""
        self.run(keys, values, out, (count, bits, "uint"), numbered=False)

    def run(
        self, source: Buffer, values: Buffer | None, out: Buffer, sizes: tuple[int, int, str], numbered: bool
    ) -> None:
        """Sort by 8 bits a pass; the passes write in turn to two buffers, the last one to `out`."""
        (count, bits, scalar), device = sizes, self.device
        constants = KINDS[scalar] | {"PAYLOAD": int(values is not None), "EQUAL_ZEROS": int(numbered), "ITEMS": ITEMS}

        def launch(entry: str, groups: int, *arguments: Any) -> None:
            kernel = device.kernel("cdollar/radix_sort.cu", entry, group_size=GROUP_SIZE, **constants)
            self.launch(kernel, groups * GROUP_SIZE, list(arguments))

        passes, tiles, resident = -(-bits // 8), -(-count // TILE), 8 * device.properties.compute_units
        words = MAX_PASSES * (DIGITS + 1)
        counters, status = device.buffer(words, "u4"), device.buffer(tiles * DIGITS, "u4")
        launch("zero_words", 1, words, counters)
        launch("count_digits", min(tiles, resident), count, passes, source, counters)
        launch("begin_digits", passes, counters)
        moved = out if values is None else device.buffer(count, "u4")  # the keys
        spare = [device.buffer(count if passes > 1 else 1, "u4") for _ in range(1 if values is None else 2)]
        keys_in, values_in = source, values or counters
        for k in range(passes):
            is_last, ends_here = k == passes - 1, (passes - 1 - k) % 2 == 0
            keys_out = moved if ends_here else spare[0]
            values_out = counters if values is None else out if ends_here else spare[1]
            launch("zero_words", min(tiles, resident), tiles * DIGITS, status)
            flags = int(k == 0), int(numbered), int(is_last)
            launch("sort_pass", tiles, count, k, *flags, keys_in, values_in, keys_out, values_out, counters, status)
            keys_in, values_in = keys_out, values_out
