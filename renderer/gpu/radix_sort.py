"""Stable radix sort of 32-bit elements on a device, by shaders/common/radix_sort.cu.

A pass sorts by one digit of the key, from the lowest digit to the highest: 8 bits on GPUs with ballots, which sort by
Onesweep (Adinets and Merrill 2022), and on CPUs; else 4. Keys are the elements as unsigned integers in the same order
(shaders/common/sort_keys.h). C$'s sort and the builder of the BVH call it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Literal

from renderer.gpu.device import Buffer, Device, Kernel

Launch = Callable[[Kernel, int, Sequence[object]], None]  # takes a kernel, its threads and its arguments
GROUP_SIZE = 256
ONESWEEP_ITEMS = 24  # keys a thread; the fastest of 8 to 24, for keys and for pairs (1e8 elements, H200)
ITEMS = 16  # keys a thread on GPUs without ballots; a CPU's work-item takes at least GROUP_SIZE * ITEMS keys
ONESWEEP_MAX_KEYS = (1 << 30) - 1  # two bits of a 32-bit counter are flags
MAX_PASSES = 4  # passes of Onesweep: 32-bit keys in digits of 8 bits
MAX_CPU_TILES = 64  # most work-items of a pass on a CPU
GROUPS_PER_UNIT = 8  # groups of a kernel that loops over all tiles, by compute unit: 2,048 threads, which fill it
KEY_CONSTANTS = {
    "int": {"SIGN": 0x80000000, "FLOATS": 0},
    "uint": {"SIGN": 0, "FLOATS": 0},
    "float": {"SIGN": 0, "FLOATS": 1},
}
Output = Literal["elements", "indices", "values", "elements and indices"]


class RadixSort:
    """Sorts `count` elements (count >= 1) of type int, uint or float by their lowest `bits` bits, as often as called.

    Output: the sorted elements; the indices of the elements in sorted order, of equal ones the first index first; or
    32-bit values in the order of their elements. It holds the buffers that passes write in between. NaN comes last.

    A tile is the range of keys that a group, or a CPU's work-item, sorts.
    """

    def __init__(
        self,
        device: Device,
        count: int,
        output: Output = "elements",
        scalar: str = "uint",
        bits: int = 32,
        launch: Launch = lambda kernel, threads, arguments: kernel(threads, *arguments),
    ) -> None:
        """`launch(kernel, threads, arguments)` runs each kernel."""
        self.device, self.count, self.launch = device, count, launch
        self.is_scalar = device.properties.scalar_threads
        self.is_onesweep = has_onesweep(device, count)
        self.has_values, self.writes_elements = output != "elements", output.startswith("elements")
        self.numbered = int(output.endswith("indices"))  # the values are elements' indices, made by the first pass
        digit_bits = 8 if self.is_onesweep or self.is_scalar else 4
        self.shifts = range(0, bits, digit_bits)
        constants = KEY_CONSTANTS[scalar] | {  # described in shaders/common/radix_sort.cu and sort_keys.h
            "ONESWEEP": int(self.is_onesweep),
            "SCALAR": int(self.is_scalar),
            "DIGIT_BITS": digit_bits,
            "ITEMS": ONESWEEP_ITEMS if self.is_onesweep else ITEMS,
            "PAYLOAD": int(self.has_values),
            "KEEPS_KEYS": int(output == "elements and indices"),
            "EQUAL_ZEROS": int(output == "indices"),  # -0 and 0 are equal, so their indices keep their order
        }
        self.group_size, self.digits = 1 if self.is_scalar else GROUP_SIZE, 1 << digit_bits
        self.kernel = cache(partial(self.compile, constants))
        self.tile_size = GROUP_SIZE * constants["ITEMS"]
        if self.is_scalar:  # a tile for each core, unless tiles would be smaller than tile_size
            most = min(device.properties.compute_units, MAX_CPU_TILES)
            self.tile_size = -(-count // min(most, -(-count // self.tile_size)))
        self.tiles = -(-count // self.tile_size)
        # Passes write in turn to the spare buffers and to the output; `last_keys` takes the place of an output that
        # the caller does not want. `unused` stands for buffers that no kernel reads or writes.
        self.unused = device.buffer(1, "u4")
        has_spare = len(self.shifts) > 1
        self.spare_keys = device.buffer(count, "u4") if has_spare else self.unused
        self.spare_values = device.buffer(count, "u4") if has_spare and self.has_values else self.unused
        self.last_keys = device.buffer(count, "u4") if has_spare and not self.writes_elements else self.unused
        # Keys by tile and digit, with flags in Onesweep (its `status`).
        self.counts = device.buffer(self.tiles * self.digits, "u4")
        # Keys by digit; in Onesweep by pass and digit, then the tiles that each pass has begun (its `counters`).
        self.totals = device.buffer(MAX_PASSES * (self.digits + 1), "u4")

    def __call__(
        self,
        elements: Buffer,
        values: Buffer | None = None,
        elements_out: Buffer | None = None,
        values_out: Buffer | None = None,
    ) -> None:
        """Write what `output` names; `values_out` takes values and indices.

        `elements_out` may be `elements` itself if the number of passes is even.
        """
        passes = len(self.shifts)
        assert elements_out is not elements or passes % 2 == 0, "the first pass would overwrite its input"
        spare = self.spare_keys, self.spare_values
        output = elements_out or self.last_keys, values_out or self.unused
        if self.is_onesweep:
            self.run("zero_words", 1, self.totals.shape[0], self.totals)
            self.run("count_digits", self.resident_groups, self.count, passes, elements, self.totals)
            self.run("scan_digits", passes, self.totals)
        source = elements, values or self.unused
        for k, shift in enumerate(self.shifts):
            target = output if (passes - 1 - k) % 2 == 0 else spare  # the last pass writes to the output
            self.run_pass(k, shift, (*source, *target))
            source = target

    def compile(self, constants: dict[str, int], entry: str) -> Kernel:
        """A kernel of the file; a group of a CPU is one work-item."""
        return self.device.kernel("common/radix_sort.cu", entry, group_size=self.group_size, **constants)

    @property
    def resident_groups(self) -> int:
        """Groups of a kernel that loops over all tiles."""
        return min(self.tiles, GROUPS_PER_UNIT * self.device.properties.compute_units)

    def run_pass(self, number: int, shift: int, buffers: tuple[Buffer, Buffer, Buffer, Buffer]) -> None:
        """Sort by the digit of pass `number`; `buffers`: keys and values of the input, then of the output."""
        count, tiles, tile_size, counts, totals = self.count, self.tiles, self.tile_size, self.counts, self.totals
        first, last = int(number == 0), int(number == len(self.shifts) - 1)
        if self.is_onesweep:
            self.run("zero_words", self.resident_groups, counts.shape[0], counts)
            self.run("sort_pass", tiles, count, number, first, self.numbered, last, *buffers, totals, counts)
            return
        self.run("count_tile_digits", tiles, count, tiles, tile_size, shift, first, buffers[0], counts)
        self.run("scan_tile_counts", self.digits, tiles, counts, totals)
        flags = first, self.numbered, last
        self.run("move_tile", tiles, count, tiles, tile_size, shift, *flags, counts, totals, *buffers)

    def run(self, entry: str, groups: int, *arguments: object) -> None:
        """Launch `groups` groups of a kernel."""
        self.launch(self.kernel(entry), groups * self.group_size, arguments)


def has_onesweep(device: Device, count: int) -> bool:
    """True if the device sorts `count` keys by Onesweep: one read and one write of the keys in each pass."""
    return count <= ONESWEEP_MAX_KEYS and device.properties.has_ballot
