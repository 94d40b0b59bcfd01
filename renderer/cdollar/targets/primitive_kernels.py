"""Launches the kernels of primitives (ir/primitives.py) on a device, for DeviceTarget: prefix sums, sorts, scatters.

A scatter combines the values that have the same integer key; a bin is the result of one key. The kernels are in
shaders/cdollar/scan.cu and scatter.cu, and shaders/common/radix_sort.cu. Float prefix sums are added in one order on
every device, and in targets/numpy/primitives.py. Under `strict`, a scatter adds floats in the order of the elements.
"""

import math
from collections.abc import Sequence

from renderer.cdollar.ir.types import DTYPES
from renderer.errors import UnavailableError
from renderer.gpu import Buffer, Device
from renderer.gpu.device import Kernel
from renderer.gpu.radix_sort import Launch, RadixSort, has_onesweep

BLOCK, GROUP_SIZE = 4096, 256  # elements and threads of a group; scan.cu has both
LOCAL_BINS = 4096  # keys whose results a group first combines in local memory
MAX_PRIVATE_BINS = 1 << 22  # bins of all work-items of a CPU together
MAX_CPU_ITEMS = 64  # work-items of a scatter on a CPU
SUM_TYPES = {"int": "uint", "uint": "uint", "float": "float", "double": "double"}  # unsigned sums wrap
OPERATIONS = {"scatter_add": 0, "scatter_mul": 1, "scatter_max": 2, "scatter_min": 3}
Constants = dict[str, int | str]
Sizes = tuple[int, int, int]  # a scatter's number of elements, number of keys (bins), and least key


class PrimitiveKernels:
    """Launches primitives on one device; `launch(kernel, threads, arguments)` runs each kernel."""

    def __init__(self, device: Device, launch: Launch, strict: bool = False) -> None:
        """`strict`: scatters add floats in the order of the elements."""
        self.device, self.launch, self.strict = device, launch, strict
        self.is_scalar = device.properties.scalar_threads

    def kernel(self, file: str, entry: str, group_size: int, constants: Constants) -> Kernel:
        """The kernel `entry` of a file of shaders/cdollar, compiled with `constants`."""
        doubles = {"DOUBLES": 1} if "double" in constants.values() else {}
        return self.device.kernel(f"cdollar/{file}", entry, group_size=group_size, **doubles, **constants)

    def launch_scatter(self, entry: str, threads: int, arguments: Sequence[object], constants: Constants) -> None:
        """Launch a kernel of scatter.cu."""
        self.launch(self.kernel("scatter.cu", entry, GROUP_SIZE, constants), threads, arguments)

    # Prefix sums

    def scan(self, source: Buffer, rows: int, length: int, scalar: str) -> Buffer:
        """The inclusive prefix sums of each of `rows` rows of `length` numbers of type `scalar`, in a new buffer."""
        type_ = SUM_TYPES[scalar]
        out = self.device.buffer(max(1, rows * length), DTYPES[type_])
        if not rows * length:
            return out
        blocks, offsets = -(-length // BLOCK), source
        if blocks > 1:
            totals = self.device.buffer(rows * blocks, DTYPES[type_])
            self.scan_blocks(rows, length, (source, source, totals), type_, writes=False)
            offsets = self.scan(totals, rows, blocks, scalar)
        self.scan_blocks(rows, length, (source, offsets, out), type_, writes=True)
        return out

    def scan_blocks(
        self, rows: int, length: int, buffers: tuple[Buffer, Buffer, Buffer], type_: str, writes: bool
    ) -> None:
        """Scan each block of each row if `writes`, else only sum it; a group, or on CPUs a work-item, takes a block.

        `buffers`: the elements, the sums of the blocks up to each block (read if there are several), and the result.
        """
        group_size, blocks = 1 if self.is_scalar else GROUP_SIZE, -(-length // BLOCK)
        constants: Constants = {"SUM": type_, "WRITES": int(writes), "SCALAR": int(self.is_scalar)}
        kernel = self.kernel("scan.cu", "scan", group_size, constants)
        self.launch(kernel, rows * blocks * group_size, (length, blocks, *buffers))

    # Sorting

    def sort(self, source: Buffer, count: int, scalar: str, pairs: bool) -> Buffer:
        """The sorted elements, or, if `pairs`, the indices of the sorted elements. UnavailableError for double."""
        if scalar == "double":
            raise UnavailableError(f"devices sort int, uint and float, not {scalar}; --target numpy does")
        out = self.device.buffer(max(1, count), "i4" if pairs else DTYPES[scalar])
        if count:
            sort = RadixSort(self.device, count, "indices" if pairs else "elements", scalar, launch=self.launch)
            sort(source, elements_out=None if pairs else out, values_out=out if pairs else None)
        return out

    # Scatters

    def scatter(self, name: str, keys: Buffer, values: Buffer | None, sizes: Sizes, scalar: str) -> Buffer:
        """The sums (or products, maxima, minima: `name`) of the values, 1 without values, of each key.

        `sizes`: the number of elements, the number of keys (bins), and the least key.
        """
        count, bins, low = sizes
        is_extremum = name in ("scatter_max", "scatter_min")
        type_ = scalar if is_extremum else SUM_TYPES[scalar]
        is_any_order = type_ == "uint" or is_extremum or not self.strict and type_ == "float"  # no fixed order
        has_atomics = is_any_order and type_ != "double" and name != "scatter_mul" and not self.is_scalar
        # Devices have atomic maxima of integers only: floats become integers in their order (sort_keys.h), and the
        # kernel `decode` turns the results back.
        is_keyed = is_extremum and type_ == "float" and has_atomics
        constants: Constants = {
            "SUM": type_,
            "COUNTS": int(values is None),
            "LOCAL_BINS": LOCAL_BINS,
            "IS_FLOAT": int(type_ == "float"),
            "OPERATION": OPERATIONS[name],
            "ATOMICS": int(has_atomics),
            "KEYED": int(is_keyed),
            "START": start_word(name, "key" if is_keyed else type_),
        }
        out = self.device.buffer(max(1, bins), DTYPES[type_])
        if not bins:
            return out
        if not count:
            self.launch_scatter("clear", bins, [bins, out], constants | {"KEYED": 0, "START": start_word(name, type_)})
            return out
        elements = values or out  # without values the kernels count, and do not read this argument
        if self.is_scalar:
            self.scatter_on_cpu(keys, elements, out, sizes, constants)
        elif has_atomics:
            self.launch_scatter("clear", bins, [bins, out], constants)
            threads = GROUP_SIZE * min(-(-count // BLOCK), 8 * self.device.properties.compute_units)
            self.launch_scatter("scatter_atomic", threads, [count, bins, low, keys, elements, out], constants)
            if is_keyed:
                self.launch_scatter("decode", bins, [bins, out], constants)
        else:
            self.scatter_sorted(keys, elements, out, sizes, constants)
        return out

    def scatter_on_cpu(self, keys: Buffer, values: Buffer, out: Buffer, sizes: Sizes, constants: Constants) -> None:
        """Scatter with a row of all bins for each work-item, then add the rows; or divide many bins among work-items.

        In `strict` order one work-item adds all values: several would each have to read every key to find theirs.
        """
        count, bins, low = sizes
        is_extremum = constants["OPERATION"] in (OPERATIONS["scatter_max"], OPERATIONS["scatter_min"])
        is_any_order = constants["SUM"] == "uint" or is_extremum or not self.strict
        items = min(self.device.properties.compute_units, MAX_CPU_ITEMS, -(-count // BLOCK)) if is_any_order else 1
        by_bins = bins * items > MAX_PRIVATE_BINS
        sums = out if by_bins or items == 1 else self.device.buffer(bins * items, DTYPES[str(constants["SUM"])])
        arguments = [count, bins, low, items, int(by_bins), keys, values, sums]
        self.launch(self.kernel("scatter.cu", "scatter", 1, constants), items, arguments)
        if sums is not out:
            self.launch_scatter("add_rows", bins, [bins, items, sums, out], constants)

    def scatter_sorted(self, keys: Buffer, values: Buffer, out: Buffer, sizes: Sizes, constants: Constants) -> None:
        """Sort the elements by bin; then a thread, or a warp for float sums, combines each bin in order."""
        count, bins, low = sizes
        element_bins, bits = self.device.buffer(count, "u4"), max(1, math.ceil(math.log2(bins + 1)))
        self.launch_scatter("find_bins", count, [count, bins, low, keys, element_bins], constants)
        counts = self.scatter("scatter_add", keys, None, sizes, "uint")
        ends = self.scan(counts, 1, bins, "uint")
        is_float_sum = constants["SUM"] == "float" and constants["OPERATION"] == OPERATIONS["scatter_add"]
        if is_float_sum and has_onesweep(self.device, count):
            sorted_values = self.device.buffer(count, "f4")
            sort = RadixSort(self.device, count, "values", bits=bits, launch=self.launch)
            sort(element_bins, values, values_out=sorted_values)
            self.launch_scatter("add_runs", 32 * bins, [bins, ends, sorted_values, out], constants)
            return
        order = self.device.buffer(count, "u4")
        RadixSort(self.device, count, "indices", bits=bits, launch=self.launch)(element_bins, values_out=order)
        self.launch_scatter("add_sorted", bins, [bins, ends, order, values, out], constants)


def start_word(name: str, type_: str) -> str:
    """The result of a key without values: a number or a macro of scatter.cu."""
    number = {"scatter_add": "0", "scatter_mul": "1"}.get(name)
    return number or f"{'LOWEST' if name == 'scatter_max' else 'HIGHEST'}_{type_}"
