"""The primitives of ir/primitives.py on compute devices: prefix sums, radix sort, scatters.

One text for CUDA and OpenCL, shaders/cdollar/primitives.cu. Float prefix sums are added in one order on every device,
that of numpy_primitives.py. Sums by key of floats are added in the order of the elements if `strict`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from renderer.cdollar.targets.radix_sort import KINDS, MAX_KEYS, RadixSort
from renderer.errors import UnavailableError
from renderer.gpu import Buffer, Device
from renderer.gpu.warps import has_ballot

BLOCK, GROUP_SIZE, LOCAL_BINS = 4096, 256, 4096
MAX_PRIVATE_BINS = 1 << 22  # of all work-items of a CPU together
SUM_TYPES = {"int": "uint", "uint": "uint", "float": "float", "double": "double"}  # unsigned sums wrap
STORED = {"int": "i4", "uint": "u4", "float": "f4", "double": "f8"}
OPERATIONS = {"scatter_add": 0, "scatter_mul": 1, "scatter_max": 2, "scatter_min": 3}


class PrimitiveKernels:
    """Launches of primitives on one device; `launch(kernel, threads, arguments)` runs each of them."""

    def __init__(self, device: Device, launch: Callable[[Any, int, list], None], strict: bool = False) -> None:
        """Compile nothing yet; `strict`: sums by key are added in the order of the elements."""
        self.device, self.launch, self.strict = device, launch, strict
        self.radix = RadixSort(device, launch)
        self.is_scalar = device.properties.scalar_threads
        self.parts = min(device.properties.compute_units, 64) if self.is_scalar else 0

    def kernel(self, entry: str, group_size: int, constants: dict[str, Any]) -> Any:
        """A kernel of the file; `constants` hold the part (SCAN, SORT, RADIX or SCATTER) with its types."""
        more = {"DOUBLES": 1} if "double" in constants.values() else {}
        file, scalar = "cdollar/primitives.cu", int(self.is_scalar)
        return self.device.kernel(file, entry, group_size=group_size, SCALAR=scalar, **more, **constants)

    def run(self, entry: str, groups: int, arguments: list, **constants: Any) -> None:
        """Launch one group for each part of the work; a work-item on CPUs."""
        group_size = 1 if self.is_scalar else GROUP_SIZE
        self.launch(self.kernel(entry, group_size, constants), groups * group_size, arguments)

    def map(self, entry: str, count: int, arguments: list, **constants: Any) -> None:
        """Launch a thread for each of `count` elements."""
        self.launch(self.kernel(entry, GROUP_SIZE, constants), count, arguments)

    # Prefix sums

    def scan(self, source: Buffer, rows: int, length: int, scalar: str) -> Buffer:
        """The inclusive prefix sums of rows, in a new buffer."""
        type_ = SUM_TYPES[scalar]
        out = self.device.buffer(max(1, rows * length), STORED[type_])
        if not rows * length:
            return out
        blocks, offsets = -(-length // BLOCK), source
        if blocks > 1:
            totals = self.device.buffer(rows * blocks, STORED[type_])
            self.run("scan", rows * blocks, [length, blocks, source, source, totals], SCAN=1, SUM=type_, WRITES=0)
            offsets = self.scan(totals, rows, blocks, scalar)
        self.run("scan", rows * blocks, [length, blocks, source, offsets, out], SCAN=1, SUM=type_, WRITES=1)
        return out

    # Sorting

    def sort(self, source: Buffer, count: int, scalar: str, pairs: bool) -> Buffer:
        """The sorted elements, or the indices of the sorted elements."""
        if scalar not in ("int", "uint", "float"):
            raise UnavailableError(f"devices sort int, uint and float, not {scalar}; --target numpy does")
        out = self.device.buffer(max(1, count), "i4" if pairs else {"int": "i4", "uint": "u4", "float": "f4"}[scalar])
        if not count:
            return out
        if self.has_onesweep(count):
            (self.radix.argsort if pairs else self.radix.sort)(source, count, scalar, out)
            return out
        constants = {"SORT": 1, "PAIRS": int(pairs), "EQUAL_ZEROS": int(pairs)} | KINDS[scalar]
        keys, order = self.new_pair(count, pairs)
        self.map("make_keys", count, [count, source, keys, order], **constants)
        keys, order = self.radix_sort(keys, order, count, 32, pairs)
        if pairs:
            return order
        self.map("make_elements", count, [count, keys, out], **constants)
        return out

    def has_onesweep(self, count: int) -> bool:
        """Whether radix_sort.py sorts so many keys here."""
        return count <= MAX_KEYS and has_ballot(self.device)

    def new_pair(self, count: int, pairs: bool) -> tuple[Buffer, Buffer]:
        """Buffers for keys and their order; one that is not used has one element."""
        return self.device.buffer(count, "u4"), self.device.buffer(count if pairs else 1, "u4")

    def radix_sort(self, keys: Buffer, order: Buffer, count: int, bits: int, pairs: bool) -> tuple[Buffer, Buffer]:
        """Keys of so many bits in increasing order, stable, and their order with them; the buffers are overwritten."""
        digit_bits = 8 if self.is_scalar else 4
        parts = min(self.parts, -(-count // BLOCK)) if self.is_scalar else -(-count // BLOCK)
        per_part = -(-count // parts) if self.is_scalar else BLOCK
        other = self.new_pair(count, pairs)
        constants = {"RADIX": 1, "BITS": digit_bits, "PAIRS": int(pairs)}
        for shift in range(0, bits, digit_bits):
            counts = self.device.buffer(parts << digit_bits, "u4")
            self.run("radix_count", parts, [count, parts, per_part, shift, keys, counts], **constants)
            places = self.scan(counts, 1, parts << digit_bits, "uint")
            arguments = [count, parts, per_part, shift, places, keys, order, *other]
            self.run("radix_move", parts, arguments, **constants)
            (keys, order), other = other, (keys, order)
        return keys, order

    # Scatters

    def scatter(
        self, name: str, keys: Buffer, values: Buffer | None, sizes: tuple[int, int, int], scalar: str
    ) -> Buffer:
        """The sums (or products, maxima, minima: `name`) of the values, 1 without values, of each key.

        `sizes`: the number of elements, that of keys, and the least key.
        """
        count, bins, low = sizes
        is_extremum = name in ("scatter_max", "scatter_min")
        type_ = scalar if is_extremum else SUM_TYPES[scalar]
        constants: dict[str, Any] = {"SCATTER": 1, "SUM": type_, "COUNTS": int(values is None)}
        is_free = type_ == "uint" or is_extremum and type_ != "double" or type_ == "float" and not self.strict
        constants |= {"LOCAL_BINS": LOCAL_BINS, "IS_FLOAT": int(type_ == "float"), "OPERATION": OPERATIONS[name]}
        constants["ATOMICS"] = int(is_free and name != "scatter_mul" and not self.is_scalar)
        # Keys of floats in their order, for which devices have atomic maxima
        constants["KEYED"] = int(is_extremum and type_ == "float" and bool(constants["ATOMICS"]))
        constants["START"] = start_word(name, "key" if constants["KEYED"] else type_)
        out = self.device.buffer(max(1, bins), STORED[type_])
        if not count or not bins:
            if bins:
                self.map("clear", bins, [bins, out], **constants | {"KEYED": 0, "START": start_word(name, type_)})
            return out
        given = values or out
        if self.is_scalar:
            self.scatter_on_cpu(keys, given, out, sizes, constants)
        elif constants["ATOMICS"]:
            self.map("clear", bins, [bins, out], **constants)
            groups = min(-(-count // BLOCK), 8 * self.device.properties.compute_units)
            self.map("scatter_atomic", groups * GROUP_SIZE, [count, bins, low, keys, given, out], **constants)
            if constants["KEYED"]:
                self.map("decode", bins, [bins, out], **constants)
        else:
            self.scatter_sorted(keys, given, out, sizes, constants)
        return out

    def scatter_on_cpu(
        self, keys: Buffer, values: Buffer, out: Buffer, sizes: tuple[int, int, int], constants: dict
    ) -> None:
        """Work-items have bins of their own, which are added, or, where these are many, a part of the bins.

        In `strict` order one work-item adds all: that is faster than several that each look at every key for theirs.
        """
        count, bins, low = sizes
        is_any_order = constants["SUM"] == "uint" or constants["OPERATION"] >= OPERATIONS["scatter_max"]
        is_any_order |= not self.strict
        parts = min(self.parts, -(-count // BLOCK)) if is_any_order else 1
        by_bins = bins * parts > MAX_PRIVATE_BINS
        is_shared = by_bins or parts == 1
        sums = out if is_shared else self.device.buffer(bins * parts, STORED[constants["SUM"]])
        arguments = [count, bins, low, parts, int(by_bins), keys, values, sums]
        self.launch(self.kernel("scatter", 1, constants), parts, arguments)
        if sums is not out:
            self.map("add_parts", bins, [bins, parts, sums, out], **constants)

    def scatter_sorted(
        self, keys: Buffer, values: Buffer, out: Buffer, sizes: tuple[int, int, int], constants: dict
    ) -> None:
        """Elements are sorted by their bins; a thread combines those of a bin in their order."""
        count, bins, low = sizes
        places, order = self.new_pair(count, True)
        self.map("make_places", count, [count, bins, low, keys, places, order], **constants)
        counts = self.scatter("scatter_add", keys, None, sizes, "uint")
        ends, bits = self.scan(counts, 1, bins, "uint"), max(1, math.ceil(math.log2(bins + 1)))
        if constants["SUM"] == "float" and not constants["OPERATION"] and self.has_onesweep(count):
            moved = self.device.buffer(count, "f4")
            self.radix.sort_values(places, values, count, bits, moved)
            self.run("add_runs", -(-bins * 32 // GROUP_SIZE), [bins, ends, moved, out], **constants)
            return
        _, order = self.radix_sort(places, order, count, bits, True)
        self.map("add_sorted", bins, [bins, ends, order, values, out], **constants)


def start_word(name: str, type_: str) -> str:
    """What a key without values has: a number or a macro of primitives.cu."""
    number = {"scatter_add": "0", "scatter_mul": "1"}.get(name)
    return number or f"{'LOWEST' if name == 'scatter_max' else 'HIGHEST'}_{type_}"
