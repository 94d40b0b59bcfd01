"""What exact sums give besides themselves: mean, variance, norm, sums by key; extremes; the error of halving.

Mean, variance and norm are ratios and roots of exact integers, rounded once.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from renderer.errors import InputError, UnavailableError
from renderer.formats.npy import source_of
from renderer.gpu import Device
from renderer.numerics.sums.device_sums import C_TYPES, block_length, total
from renderer.numerics.sums.exact_sum import Total, rounded_fraction, rounded_root


def mean(devices: list[Device], numbers) -> float:
    """The arithmetic mean, rounded once; nan of no numbers."""
    return mean_of(total(devices, numbers))


def mean_of(exact: Total) -> float:
    if exact.special is not None or exact.count == 0:
        return math.nan if exact.special is None else exact.special
    return rounded_fraction(exact.fraction() / exact.count)


def variance(devices: list[Device], numbers, ddof: int = 0) -> float:
    """The mean square distance from the mean, rounded once; the divisor is count - ddof."""
    x = source_of(numbers)
    if x.count <= ddof:
        return math.nan
    sums, squares = total(devices, x), total(devices, x, other=x)
    if sums.special is not None:
        return math.nan
    return rounded_fraction((squares.fraction() - sums.fraction() ** 2 / x.count) / (x.count - ddof))


def norm(devices: list[Device], numbers) -> float:
    """The Euclidean norm, rounded once: squares neither overflow nor vanish on the way."""
    squares = total(devices, numbers, other=numbers)
    return squares.special if squares.special is not None else rounded_root(squares.fraction())


def dot(devices: list[Device], x, y) -> float:
    """The dot product, rounded once."""
    return total(devices, x, other=y).rounded()


def extremes(devices: list[Device], numbers) -> tuple:
    """The smallest and the largest number, as Python numbers; nan when a nan is among them."""
    x = source_of(numbers)
    if x.count == 0:
        raise InputError(f"{x.path}: the array is empty; it has no smallest number")
    device, dtype = devices[0], x.dtype
    value = np.dtype("f4") if dtype == np.float16 else np.dtype("u1") if dtype == np.bool_ else dtype
    group = 1 if device.properties.scalar_threads else 256
    groups = device.properties.compute_units * 8
    constants = {"ELEMENT": C_TYPES[dtype.str[1:]], "LOWEST": 8 * dtype.itemsize}
    kernel = device.kernel("numerics/minmax.cu", "extremes", group_size=group, **constants)
    block = block_length(device, dtype)
    stage, out = device.staging_buffer(min(block, x.count) * dtype.itemsize), device.buffer(2 * groups, value)
    nans, found = device.buffer(1, "u4").fill(0), []
    for start in range(0, x.count, block):
        count = min(block, x.count - start)
        each = -(-count // (8 * group * groups))
        used = -(-count // (8 * group * each))
        x.read_into(stage.map()[: count * dtype.itemsize], start)
        sizes = np.uint64(count), np.uint64(each)
        stage.upload_then(count * dtype.itemsize, lambda b, s=sizes, used=used: kernel(used * group, b, *s, out, nans))
        found.append(out.read()[: 2 * used])
    if nans.read()[0]:
        return math.nan, math.nan
    every = np.concatenate(found)
    return every[::2].min().item(), every[1::2].max().item()


@dataclass(frozen=True)
class Groups:
    """Aggregates by key: `keys` (k,) sorted, and for each the count, the exact Total, the extremes."""

    keys: np.ndarray
    counts: np.ndarray
    totals: list[Total]
    smallest: np.ndarray
    largest: np.ndarray

    def sums(self) -> list:
        integers = self.smallest.dtype.kind in "iub"
        return [t.units << t.exponent if integers else t.rounded() for t in self.totals]

    def means(self) -> list[float]:
        return [mean_of(t) for t in self.totals]


# For each kind of number the limbs of a key, 8 bytes each, and the exponent of the lowest: that of a double's last bit.
BY_KEY = {"f2": (5, -96), "f4": (13, -224), "f8": (68, -1088)}


def by_key(device: Device, keys, numbers) -> Groups:
    """Exact sums, counts and extremes of `numbers` by equal integer `keys`: arrays or .npy files of one shape."""
    k, x = source_of(keys), source_of(numbers)
    if k.shape != x.shape:
        raise InputError(f"{k.path}: keys of shape {k.shape}, but {x.path} has the shape {x.shape}")
    if k.dtype.kind not in "iub":
        raise InputError(f"{k.path}: keys are {k.dtype}; integers are wanted")
    found = _Table(x.dtype)
    block = min(1 << 22, block_length(device, np.int64))
    for start in range(0, k.count, block):
        count = min(block, k.count - start)
        some_keys, some = np.empty(count, k.dtype), np.empty(count, x.dtype)
        k.read_into(some_keys.view("u1"), start)
        x.read_into(some.view("u1"), start)
        found.add(device, some_keys, some)
    return found.groups()


class _Table:
    """Limbs, counts and extremes of the keys seen so far, sorted by key."""

    def __init__(self, dtype):
        self.dtype = dtype
        self.limbs, self.base = BY_KEY.get(dtype.str[1:], (4, 0))
        self.keys = None

    def add(self, device: Device, keys: np.ndarray, numbers: np.ndarray) -> None:
        unique, places, counts = np.unique(keys, return_inverse=True, return_counts=True)
        words = self._limbs(device, places, numbers, len(unique))
        limbs, flags = np.ascontiguousarray(words[:, :-2]).view("i8"), words[:, -2]
        with np.errstate(invalid="ignore"):
            starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
            ordered = numbers[np.argsort(places, kind="stable")]
            low, high = np.minimum.reduceat(ordered, starts), np.maximum.reduceat(ordered, starts)
        if self.keys is None:
            self.keys, self.counts, self.low, self.high, self.flags = unique, counts, low, high, flags
            self.sums = [int_of_limbs(row) for row in limbs]
            return
        every = np.union1d(self.keys, unique)
        old, new = np.searchsorted(every, self.keys), np.searchsorted(every, unique)
        self.counts = _merged(len(every), old, self.counts, new, counts, np.add, 0)
        self.flags = _merged(len(every), old, self.flags, new, flags, np.bitwise_or, 0)
        with np.errstate(invalid="ignore"):
            self.low = _merged(len(every), old, self.low, new, low, np.minimum, None)
            self.high = _merged(len(every), old, self.high, new, high, np.maximum, None)
        sums = [0] * len(every)
        for places_of, values in ((old, self.sums), (new, [int_of_limbs(row) for row in limbs])):
            for place, value in zip(places_of, values, strict=True):
                sums[place] += value
        self.keys, self.sums = every, sums

    def _limbs(self, device: Device, places, numbers, keys: int) -> np.ndarray:
        size = keys * (2 * self.limbs + 2)
        if 4 * size > device.properties.max_buffer_bytes:
            raise UnavailableError(
                f"{device.name}: {keys} keys take {4 * size >> 20} MiB, more than one buffer may have"
            )
        kind = {"f": 1, "i": 2}.get(self.dtype.kind, 3)
        constants = {
            "ELEMENT": C_TYPES[self.dtype.str[1:]],
            "BY_KEY": kind,
            "LIMBS": self.limbs,
            "LIMB_BASE": self.base,
        }
        kernel = device.kernel("numerics/sum_by_key.cu", "add_by_key", HALF=int(self.dtype == np.float16), **constants)
        out = device.buffer((keys, 2 * self.limbs + 2), "u4").fill(0)
        buffers = device.buffer(numbers.size, numbers.dtype).write(numbers), device.buffer(places.size, "u4")
        buffers[1].write(places.ravel().astype("u4"))
        kernel(numbers.size, *buffers, np.uint64(numbers.size), out)
        return out.read()

    def groups(self) -> Groups:
        flags = self.flags if self.dtype.kind == "f" else np.full(len(self.keys), 8)
        totals = [
            Total(units, self.base, int(flag), int(count))
            for units, flag, count in zip(self.sums, flags, self.counts, strict=True)
        ]
        return Groups(self.keys, self.counts, totals, self.low, self.high)


def int_of_limbs(row: np.ndarray) -> int:
    """The integer of int64 limbs of weight 2^(32 i)."""
    return sum(int(limb) << 32 * i for i, limb in enumerate(row) if limb)


def _merged(size: int, old, old_values, new, new_values, join, empty) -> np.ndarray:
    """Values at places `old` and `new` of an array of `size`, joined where both are there."""
    out = np.full(size, 0 if empty is None else empty, old_values.dtype)
    out[old] = old_values
    both = np.isin(new, old)
    out[new[both]] = join(out[new[both]], new_values[both])
    out[new[~both]] = new_values[~both]
    return out


@dataclass(frozen=True)
class Halving:
    """The paper's halving beside the truth: its value, its true error, and the bound known in advance."""

    value: float
    error: float
    bound: float
    depth: int


def halving(device: Device, numbers) -> Halving:
    """The sum of float32 or float64 numbers by the paper's algorithm, in their own precision, block by block.

    Bound: depth * u / (1 - depth * u) * sum |x|, with u half a unit in the last place (Higham, section 4.2).
    """
    x = source_of(numbers)
    if x.dtype not in (np.float32, np.float64):
        raise InputError(f"{x.path}: holds {x.dtype}; halving is told for float32 and float64")
    block = 1 << (block_length(device, x.dtype).bit_length() - 1)
    constants = {"ELEMENT": C_TYPES[x.dtype.str[1:]], "SINGLE": int(x.dtype == np.float32), "CONTIGUOUS": 1, "DOT": 0}
    constants |= {"ABSOLUTE": 0, "STRICT": 1}
    halve = device.kernel("numerics/sum_fast.cu", "halve", group_size=64, **constants)
    parts = [_halved(device, halve, x, start, min(block, x.count - start)) for start in range(0, x.count, block)]
    depth = (min(block, x.count) - 1).bit_length() + (len(parts) - 1).bit_length()
    sums = np.array(parts, x.dtype)
    with np.errstate(all="ignore"):
        while sums.size > 1:
            half = -(-sums.size // 2)
            sums = np.concatenate([sums[: sums.size - half] + sums[half:], sums[sums.size - half : half]])
    true, magnitude = total([device], x), total([device], x, absolute=True)
    return halving_beside(float(sums[0]), depth, Fraction(float(np.finfo(x.dtype).eps)) / 2, true, magnitude)


def halving_beside(value: float, depth: int, unit: Fraction, true: Total, magnitude: Total) -> Halving:
    """The Halving of a sum made by `depth` additions that lose half a unit each, beside the exact sum of |x| too."""
    if true.special is not None or not math.isfinite(value):
        return Halving(value, math.nan, math.inf, depth)
    bound = depth * unit / (1 - depth * unit) * magnitude.fraction()
    return Halving(value, rounded_fraction(abs(Fraction(value) - true.fraction())), rounded_fraction(bound), depth)


def _halved(device: Device, halve, x, start: int, count: int):
    """The sum of one block in its own precision: log2(count) launches, each over half of the one before."""
    numbers = np.empty(count, x.dtype)
    x.read_into(numbers.view("u1"), start)
    buffer = device.buffer(count, x.dtype).write(numbers)
    while count > 1:
        half = -(-count // 2)
        halve(half, buffer, np.uint32(count), np.uint32(half))
        count = half
    return buffer.read()[0]
