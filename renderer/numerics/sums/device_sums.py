"""Sums of huge arrays (paper 2): fast, reproducible and exact; dot products, extremes; on one device or many at once.

    total([device], numbers, "exact").rounded()        numbers: an array or the path of a .npy file, any size
    total([device], x, "exact", y).rounded()           the dot product

An exact or reproducible total has the same bits for every order, grid, chunking, device and number of devices, since
what devices hand back are integers, merged by integer addition.
"""

import threading
from dataclasses import dataclass, replace

import numpy as np

from renderer.errors import InputError, UnavailableError
from renderer.formats.npy import source_of
from renderer.gpu import Device
from renderer.numerics.sums.exact_sum import NOT_MINUS_ZERO, Total, total_of_limbs

FILES = {
    "fast": "numerics/sum_fast.cu",
    "reproducible": "numerics/sum_reproducible.cu",
    "exact": "numerics/sum_exact.cu",
}
MODES = tuple(FILES)
LIMBS = 136  # of 32 bits, from 2^-2176 on: products of doubles fit
LOWEST_EXPONENT = -2176
BINS = 53  # of 40 bits, from 2^-1074 on: see numerics/sum_reproducible.cu
BIN_WIDTH = 40
EXACT_RESIDENT = 2  # groups of the exact sum of floats that a GPU's unit is to hold at a time
LONGEST_SUM = 1023  # tiles that a group may take: see numerics/sum_exact_float.cu
MOST_BEFORE_TAKE = 1 << 29  # numbers that a device's limbs take before they are read: see numerics/superaccumulator.h
C_TYPES = {"f2": "ushort", "f4": "float", "f8": "double", "i1": "char", "u1": "uchar", "b1": "uchar", "i2": "short",
           "u2": "ushort", "i4": "int", "u4": "uint", "i8": "long", "u8": "ulong"}  # fmt: skip


@dataclass(frozen=True)
class Slices:
    """A reproducible sum: units in each bin of 40 bits, of which the `folds` highest up to `top` count."""

    bins: tuple[int, ...]
    top: int
    flags: int
    count: int
    folds: int

    def __add__(self, other: "Slices") -> "Slices":
        bins = tuple(a + b for a, b in zip(self.bins, other.bins, strict=True))
        return Slices(bins, max(self.top, other.top), self.flags | other.flags, self.count + other.count, self.folds)

    def total(self) -> Total:
        kept = range(max(0, self.top - self.folds + 1), self.top + 1)
        return Total(sum(self.bins[j] << BIN_WIDTH * j for j in kept), -1074, self.flags | NOT_MINUS_ZERO, self.count)

    def rounded(self, dtype=np.float64) -> float:
        return self.total().rounded(dtype)


@dataclass(frozen=True)
class Partial:
    """A fast sum in double: a part from each device."""

    parts: tuple[float, ...]
    count: int

    def __add__(self, other: "Partial") -> "Partial":
        return Partial(self.parts + other.parts, self.count + other.count)

    def rounded(self, dtype=np.float64) -> float:
        with np.errstate(all="ignore"):
            return float(np.dtype(dtype).type(np.sum(self.parts)))


class Reducer:
    """Adds device buffers up, in one mode; `take` reads the sum so far and starts anew."""

    def __init__(self, device: Device, dtype, mode: str, dot: bool = False, absolute: bool = False):
        dtype = np.dtype(dtype)
        self.device, self.dtype, self.mode = device, dtype, mode
        self.scale = (-48 if dot else -24) if dtype == np.float16 else 0
        self.floating = dtype in (np.float32, np.float64)
        lanes = device.properties.warp_size
        self.group = 1 if lanes == 1 else 256
        self.groups, self.longest = device.properties.compute_units * 8, 1 << 62
        constants = {"ELEMENT": C_TYPES[dtype.str[1:]], "DOT": int(dot), "ABSOLUTE": int(absolute)}
        if self.floating:
            constants |= self._floating_constants(dtype, lanes)
            file = FILES[mode]
            if mode == "exact" and dtype == np.float32 and not dot and lanes > 1:
                file, self.longest = "numerics/sum_exact_float.cu", LONGEST_SUM
        else:
            self.limbs = 7
            wide = 16 if dtype == np.float16 else 1
            constants |= {"WHOLE": wide, "LIMBS": self.limbs, "SIGNED": int(dtype.kind in "if")}
            constants |= {"NARROW": int(dtype.itemsize <= 4 and dtype.kind != "f")}
            self.entry, file = "whole", "numerics/sum_integers.cu"
        self.kernel = device.kernel(file, self.entry, group_size=self.group, **constants)
        if self.entry == "fast":
            self.out = device.buffer(self.groups, "f8").fill(0)
        else:
            self.out = device.buffer(2 * self.limbs + 2, "u4").fill(0)
        self.count = 0

    def _floating_constants(self, dtype, lanes: int) -> dict:
        if not self.device.properties.has_fp64:
            raise UnavailableError(f"{self.device.name}: computes no float64, which sums are kept in")
        single = dtype == np.float32
        self.folds = 2 if single else 3
        self.entry = self.mode
        self.limbs = 2 * BINS if self.mode == "reproducible" else LIMBS
        return {
            "SINGLE": int(single), "CONTIGUOUS": int(lanes == 1), "LEVELS": 1 if single else 2, "FOLDS": self.folds,
            "LIMBS": self.limbs, "LIMB_BASE": LOWEST_EXPONENT, "STRICT": 1, "EXACT_RESIDENT": EXACT_RESIDENT,
        }  # fmt: skip

    def add(self, count: int, x, y=None, y_start: int = 0) -> None:
        """Launches the sum of the first `count` numbers of x, or of their products with those of y from y_start on."""
        self.kernel(*self._launch(count, x, y, y_start))
        self.count += count

    def bound(self, count: int, x, y=None, y_start: int = 0):
        """The launch that add makes, to be called again and again; it leaves the count of numbers to its caller."""
        return self.kernel.bind_launch(*self._launch(count, x, y, y_start))

    def _launch(self, count: int, x, y, y_start: int) -> tuple:
        """Threads and arguments of the kernel."""
        tiles = -(-count // (8 * self.group))
        each = min(-(-tiles // self.groups), self.longest)
        groups = -(-tiles // max(1, each))
        sizes = (np.uint64(n) for n in (y_start, count, each))
        return groups * self.group, x, x if y is None else y, *sizes, self.out

    def take(self):
        """The Total, Slices or Partial of what was added since the last take."""
        words, count = self.out.read(), self.count
        self.out.fill(0)
        self.count = 0
        if self.entry == "fast":
            with np.errstate(all="ignore"):
                return Partial((float(np.sum(words)),), count)
        if self.entry == "reproducible":
            halves = words[:-2].view("i8")
            bins = tuple(int(low) + (int(high) << 32) for low, high in zip(halves[::2], halves[1::2], strict=True))
            return Slices(bins, int(words[-1]), int(words[-2]), count, self.folds)
        exponent = LOWEST_EXPONENT if self.floating else self.scale
        total = total_of_limbs(words, exponent, count)
        return total if self.dtype.kind == "f" else replace(total, flags=NOT_MINUS_ZERO)


def nothing(mode: str, dtype):
    """The sum of no numbers."""
    dtype = np.dtype(dtype)
    if mode == "exact" or dtype not in (np.float32, np.float64):
        return Total()
    return Partial((), 0) if mode == "fast" else Slices((0,) * BINS, 0, 0, 0, 2 if dtype == np.float32 else 3)


def block_length(device: Device, dtype) -> int:
    """Numbers in one staged block: 64 MiB hide a copy's start; a CPU's block is still in its caches when summed."""
    size = 4 << 20 if device.properties.scalar_threads else 64 << 20
    return min(size, device.properties.max_buffer_bytes // 4) // np.dtype(dtype).itemsize


def total(devices: list[Device], numbers, mode="exact", other=None, absolute=False, block=None, window=None, told=None):
    """The sum of `numbers`, or of their products with `other`: a Total (exact, integers), Slices or Partial.

    Arrays or .npy paths, streamed in blocks of `block` numbers that the devices take in turn; `window` (first, last)
    sums a part; told(count) hears of every block.
    """
    x = source_of(numbers)
    y = None if other is None else source_of(other)
    if y is not None and (x.shape != y.shape or x.dtype != y.dtype):
        raise InputError(f"{y.path}: {y.dtype} of shape {y.shape}, but {x.path} is {x.dtype} of shape {x.shape}")
    if mode == "reproducible" and (y is not None or absolute):
        mode = "exact"  # the one way here to add products or magnitudes with the same bits always
    first, last = window or (0, x.count)
    block = block or min(block_length(device, x.dtype) for device in devices)
    blocks = iter(range(first, last, block))
    lock, states, failures = threading.Lock(), [], []

    def work(device: Device) -> None:
        try:
            states.extend(_share(device, x, y, mode, absolute, blocks, lock, block, last, told))
        except BaseException as error:  # carried to the caller's thread, whatever it is
            failures.append(error)

    if len(devices) == 1:
        work(devices[0])
    else:
        threads = [threading.Thread(target=work, args=(device,)) for device in devices]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]
    return sum(states, start=nothing(mode, x.dtype))


def _share(device, x, y, mode, absolute, blocks, lock, block, last, told) -> list:
    """The sums of the blocks that this device takes, read into two stages in turn."""
    reducer = Reducer(device, x.dtype, mode, y is not None, absolute)
    size = -(-min(block, max(1, last)) * x.dtype.itemsize // 64) * 64
    stages = [device.staging_buffer(size * (1 if y is None else 2)) for _ in range(2)]
    states, turn = [], 0
    while True:
        with lock:
            start = next(blocks, None)
        if start is None:
            return [*states, reducer.take()] if reducer.count else states
        if reducer.count > MOST_BEFORE_TAKE - block:
            states.append(reducer.take())
        _send(stages[turn], reducer, x, y, start, min(block, last - start))
        turn ^= 1
        if told:
            told(min(block, last - start))


def _send(stage, reducer: Reducer, x, y, start: int, count: int) -> None:
    """Reads a block into a stage and sends it to the device, both operands one after the other."""
    memory, length = stage.map(), count * x.dtype.itemsize
    x.read_into(memory[:length], start)
    if y is None:
        stage.upload_then(length, lambda buffer: reducer.add(count, buffer))
        return
    place = -(-length // 64) * 64
    y.read_into(memory[place : place + length], start)
    y_start = place // x.dtype.itemsize
    stage.upload_then(place + length, lambda buffer: reducer.add(count, buffer, buffer, y_start))
