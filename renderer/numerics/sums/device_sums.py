"""Sums and dot products of huge arrays on one device or several: fast, reproducible or exact.

    array_sum([device], numbers).rounded()                 numbers: an array or the path of a .npy file of any size
    array_sum([device], x, "exact", y).rounded()           the dot product

An exact or reproducible sum has the same bits for every order, launch size, chunk size and choice of devices: devices
return integers, which are merged by integer addition. Exact sums use a superaccumulator (Kulisch; Neal 2015; Collange,
Defour, Graillat, Iakymchuk: ExBLAS), reproducible sums use binned summation (Demmel, Nguyen: ReproBLAS). Kernels:
shaders/numerics/sum_*.cu. Statistics made from these sums: aggregates.py; the command line: command.py.
"""

import itertools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from renderer.errors import InputError, UnavailableError
from renderer.formats.npy import COMPLEX, REAL, SUMMABLE, ArraySource, as_source, real_dtype
from renderer.gpu import Buffer, Device
from renderer.gpu.device import StagingBuffer
from renderer.gpu.dlpack import Tensor
from renderer.numerics.sums import tensors
from renderer.numerics.sums.exact_sum import NOT_NEGATIVE_ZERO, ComplexSum, DecimalSum, ExactSum, exact_sum_from_limbs
from renderer.records import dataclass, replace

MODES = ("fast", "reproducible", "exact")
LIMBS = 136  # 32-bit limbs of an exact sum: products of doubles fit
INTEGER_LIMBS = 7  # of a sum of integers: products of 64-bit integers fit
LOWEST_EXPONENT = -2176  # weight of limb 0: 2^LOWEST_EXPONENT
BINS = 53  # bins of a reproducible sum: see numerics/sum_reproducible.cu
FOLD = {"f4": 2, "f8": 3}  # the highest bins that count, by the type of the numbers
BIN_WIDTH = 40  # bits; bin 0 counts units of 2^-1074
EXACT_MIN_GROUPS_PER_SM = 2  # __launch_bounds__ of the exact sum of floats
CHUNK_BYTES = 66 * 8  # local memory per thread of numerics/sum_bins.cu
BINNED_GROUPS = (384, 256, 128)  # group sizes of sum_bins.cu; the first that fits the local memory is used
MAX_TILES_PER_GROUP = 1023  # further tiles could round in the window of numerics/sum_exact_float.cu
MAX_TERMS_BEFORE_READ = 1 << 29  # further terms could overflow a limb: see numerics/superaccumulator.h
C_TYPES = {"f2": "ushort", "f4": "float", "f8": "double", "i1": "char", "u1": "uchar", "b1": "uchar", "i2": "short",
           "u2": "ushort", "i4": "int", "u4": "uint", "i8": "long", "u8": "ulong"}  # fmt: skip

Numbers = ArraySource | str | Any  # an argument of as_source(), or an array of another library


@dataclass(frozen=True)
class BinnedSum:
    """A reproducible sum: units in each bin of 40 bits, up to `highest_bin`; only the `fold` highest bins count."""

    bins: tuple[int, ...]
    highest_bin: int
    flags: int
    count: int
    fold: int

    def __add__(self, other: "BinnedSum") -> "BinnedSum":
        bins = tuple(a + b for a, b in zip(self.bins, other.bins, strict=True))
        highest = max(self.highest_bin, other.highest_bin)
        return BinnedSum(bins, highest, self.flags | other.flags, self.count + other.count, self.fold)

    def exact(self) -> ExactSum:
        """The exact value of the `fold` highest bins."""
        kept = range(max(0, self.highest_bin - self.fold + 1), self.highest_bin + 1)
        significand = sum(self.bins[j] << BIN_WIDTH * j for j in kept)
        return ExactSum(significand, -1074, self.flags | NOT_NEGATIVE_ZERO, self.count)

    def rounded(self, dtype: DTypeLike = np.float64) -> float:
        """The value of the `fold` highest bins, rounded once to a floating-point format."""
        return self.exact().rounded(dtype)


@dataclass(frozen=True)
class FastSum:
    """A fast sum in double precision: a partial sum from each device."""

    partial_sums: tuple[float, ...]
    count: int

    def __add__(self, other: "FastSum") -> "FastSum":
        return FastSum(self.partial_sums + other.partial_sums, self.count + other.count)

    def rounded(self, dtype: DTypeLike = np.float64) -> float:
        """The sum of the partial sums in a floating-point format."""
        with np.errstate(all="ignore"):
            return float(np.dtype(dtype).type(np.sum(self.partial_sums)))


ArraySum = ExactSum | BinnedSum | FastSum


@dataclass(frozen=True)
class LaunchPlan:
    """The division of an array among the groups of a device."""

    is_blocked: bool  # blocked arrangement: a work-item reads adjacent numbers (CPUs); else neighboring threads do
    group: int  # work-items per group
    groups: int
    chunk_bytes: int  # bytes of one streamed chunk

    @classmethod
    def of(cls, device: Device) -> "LaunchPlan":
        """The plan for a device. Chunks of 64 MiB hide the latency of a copy; 4 MiB stay in the caches of a CPU."""
        is_blocked = device.properties.scalar_threads
        size = 4 << 20 if is_blocked else 64 << 20
        size = min(size, device.properties.max_buffer_bytes // 4)
        return cls(is_blocked, 1 if is_blocked else 256, device.properties.compute_units * 8, size)


class DeviceSum:
    """Accumulates the sum of several buffers on one device, in one mode; also of products (`dot`) or `magnitudes`.

    For exact sums, GPUs run numerics/sum_exact_float.cu (floats) or numerics/sum_bins.cu (doubles and products), other
    devices numerics/sum_exact.cu.
    """

    def __init__(self, device: Device, dtype: DTypeLike, mode: str, dot: bool = False, magnitudes: bool = False):
        self.device, self.dtype, self.mode = device, np.dtype(dtype), mode
        self.plan = LaunchPlan.of(device)
        self.max_tiles_per_group, self.count = 1 << 62, 0  # no limit, until _float_kernel() sets one
        self.is_floating = self.dtype in (np.float32, np.float64)
        self.is_fast = self.is_floating and mode == "fast"
        self.fold = FOLD.get(self.dtype.str[1:], 0)
        constants: dict[str, int | str] = {
            "ELEMENT": C_TYPES[self.dtype.str[1:]], "DOT": int(dot), "ABSOLUTE": int(magnitudes),
        }  # fmt: skip
        choose = self._float_kernel if self.is_floating else self._integer_kernel
        entry, file, more_constants = choose(dot)
        constants |= more_constants
        self.kernel = device.kernel(file, entry, group_size=self.plan.group, **constants)
        if entry == "sum_bins" and not self.kernel.reserve_local(CHUNK_BYTES * self.plan.group):
            raise UnavailableError(f"{device.name} refuses {CHUNK_BYTES * self.plan.group} bytes of local memory")
        # Limbs, flags and the highest bin (superaccumulator.h, sum_reproducible.cu), or a double for each group.
        words = (self.plan.groups, "f8") if self.is_fast else (2 * int(constants["LIMBS"]) + 2, "u4")
        self.out = device.buffer(*words).fill(0)

    def _float_kernel(self, dot: bool) -> tuple[str, str, dict[str, int | str]]:
        """The kernel for float32 and float64: its name, file and constants; sets the plan where it differs."""
        if not self.device.properties.has_fp64:
            raise UnavailableError(f"{self.device.name}: computes no float64, which sums are kept in")
        self.exponent = LOWEST_EXPONENT
        entry, is_single, is_exact = f"sum_{self.mode}", self.dtype == np.float32, self.mode == "exact"
        file = f"numerics/{entry}.cu"
        constants: dict[str, int | str] = {
            "SINGLE": int(is_single), "BLOCKED_ARRANGEMENT": int(self.plan.is_blocked), "FOLD": self.fold,
            "LIMBS": 2 * BINS if self.mode == "reproducible" else LIMBS,
            "LIMB_BASE": LOWEST_EXPONENT, "STRICT": 1, "EXACT_MIN_GROUPS_PER_SM": EXACT_MIN_GROUPS_PER_SM,
        }  # fmt: skip
        if is_exact and is_single and not dot:
            if not self.plan.is_blocked:
                file, self.max_tiles_per_group = "numerics/sum_exact_float.cu", MAX_TILES_PER_GROUP
        elif is_exact and (group := self._binned_group()):
            entry, file = "sum_bins", "numerics/sum_bins.cu"
            self.plan = replace(self.plan, group=group, groups=self.device.properties.compute_units)
        return entry, file, constants

    def _integer_kernel(self, dot: bool) -> tuple[str, str, dict[str, int | str]]:
        """The kernel for integers and float16, a fixed-point number in units of 2^-24: its name, file and constants."""
        is_half = self.dtype == np.float16
        self.exponent = (-48 if dot else -24) if is_half else 0
        return "sum_integers", "numerics/sum_integers.cu", {
            "IS_HALF": int(is_half), "LIMBS": INTEGER_LIMBS, "SIGNED": int(self.dtype.kind in "if"),
            "FITS_32_BITS": int(self.dtype.itemsize <= 4 and not is_half),
        }  # fmt: skip

    def _binned_group(self) -> int:
        """The group size of numerics/sum_bins.cu; 0 if the local memory of the device is too small for that kernel."""
        room = 0 if self.plan.is_blocked else self.device.properties.local_bytes - 4 * (2 * LIMBS + 1)
        return next((group for group in BINNED_GROUPS if CHUNK_BYTES * group <= room), 0)

    def add(self, count: int, x: Buffer, y: Buffer | None = None, y_start: int = 0) -> None:
        """Launches the sum of x[k], k < count, or of x[k] y[y_start + k] if the DeviceSum is a dot product."""
        self.bind_launch(count, x, y, y_start)()
        self.count += count

    def bind_launch(self, count: int, x: Buffer, y: Buffer | None = None, y_start: int = 0) -> Callable[[], None]:
        """The launch of add(), for repeated calls; `self.count` is not increased."""
        group = self.plan.group
        tiles = -(-count // (8 * group))
        tiles_per_group = min(-(-tiles // self.plan.groups), self.max_tiles_per_group)
        groups = -(-tiles // max(1, tiles_per_group))
        sizes = (np.uint64(n) for n in (y_start, count, tiles_per_group))
        return self.kernel.bind_launch(groups * group, x, x if y is None else y, *sizes, self.out)

    def read_and_reset(self) -> ArraySum:
        """The sum of everything added since the last call; clears the accumulator."""
        words, count = self.out.read(), self.count
        self.out.fill(0)
        self.count = 0
        if self.is_fast:
            with np.errstate(all="ignore"):
                return FastSum((float(np.sum(words)),), count)
        if self.is_floating and self.mode == "reproducible":
            halves = words[:-2].view("i8")
            bins = tuple(int(low) + (int(high) << 32) for low, high in zip(halves[::2], halves[1::2], strict=True))
            return BinnedSum(bins, int(words[-1]), int(words[-2]), count, self.fold)
        result = exact_sum_from_limbs(words, self.exponent, count)
        return result if self.dtype.kind == "f" else replace(result, flags=NOT_NEGATIVE_ZERO)


def empty_sum(mode: str, dtype: DTypeLike) -> Any:
    """The sum of no numbers: the neutral element of + for the sums of one mode and dtype."""
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        return ComplexSum(*[empty_sum(mode, real_dtype(dtype))] * 2)
    if mode == "exact" or dtype not in (np.float32, np.float64):
        return ExactSum()
    return FastSum((), 0) if mode == "fast" else BinnedSum((0,) * BINS, 0, 0, 0, FOLD[dtype.str[1:]])


def total_value(total: ArraySum | ComplexSum | DecimalSum) -> int | float | complex | Decimal:
    """The value of a sum: an integer for integers, a Decimal for decimals, else rounded once."""
    if isinstance(total, DecimalSum):
        return total.decimal()
    if isinstance(total, ExactSum) and total.count and total.exponent == 0:  # a sum of integers
        return total.significand
    value: float | complex = total.rounded()
    return value


def check_same_order(x: ArraySource, y: ArraySource) -> None:
    """InputError if one of two arrays is in Fortran order and the other in C order."""
    if x.is_fortran != y.is_fortran:
        fortran, c = (x, y) if x.is_fortran else (y, x)
        raise InputError(f"{fortran.path}: is in Fortran order, but {c.path} is in C order; both must be in one")


def read_numbers(source: ArraySource, first: int, count: int) -> np.ndarray:
    """`count` numbers of a source (count,), from index `first` on."""
    numbers = np.empty(count, source.dtype)
    source.read_into(numbers.view("u1"), first)
    return numbers


def chunk_length(device: Device, dtype: DTypeLike) -> int:
    """The number of elements in one streamed chunk."""
    return LaunchPlan.of(device).chunk_bytes // np.dtype(dtype).itemsize


def array_sum(
    devices: list[Device],
    numbers: Numbers,
    mode: str = "exact",
    y: Numbers = None,
    magnitudes: bool = False,
    chunk: int | None = None,
    index_range: tuple[int, int] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Any:
    """The sum of `numbers`, of their products with `y`, or of their magnitudes.

    `numbers` is an array, the path of a .npy file, or an array of another library (DLPack), which is read in place if a
    device can. NumPy arrays and files are streamed in chunks of `chunk` numbers, which the devices take in turn; the
    chunks of a Dask array are computed one after another. Only indices first to end - 1 of `index_range` (first, end)
    are added; progress(count) is called after every chunk. The result is an ExactSum (mode "exact", integers, float16),
    BinnedSum or FastSum, or a ComplexSum of two; each has rounded() and +. Products and magnitudes have no reproducible
    kernel; their exact sum is returned, which is reproducible too. InputError if shapes or dtypes of a pair differ, and
    for products and magnitudes of complex numbers.
    """
    if mode == "reproducible" and (y is not None or magnitudes):
        mode = "exact"
    if tensors.is_tensor(numbers) and index_range is None:
        in_place = _tensor_sum(devices, numbers, mode, y, magnitudes)
        if in_place is not None:
            return in_place
    if tensors.is_dask_array(numbers):
        return _sum_of_chunks(devices, numbers, mode, y, magnitudes, progress)
    numbers, y = _in_order_of_memory(*(tensors.on_host(v) if tensors.is_tensor(v) else v for v in (numbers, y)))
    is_plain = y is None and not magnitudes  # as complex numbers may be added
    x = as_source(numbers, SUMMABLE, REAL + COMPLEX) if is_plain else as_source(numbers)
    factors = None if y is None else as_source(y)
    if factors is not None and (x.shape != factors.shape or x.dtype != factors.dtype):
        raise InputError(
            f"{factors.path}: {factors.dtype} of shape {factors.shape}, but {x.path} is {x.dtype} of shape {x.shape}"
        )
    if factors is not None:
        check_same_order(x, factors)
    first, end = index_range or (0, x.count)
    chunk = chunk or min(chunk_length(device, x.dtype) for device in devices)
    stream = _ChunkStream(x, factors, range(first, end, chunk), progress)

    real, components = real_dtype(x.dtype), 2 if x.dtype.kind == "c" else 1

    def work(device: Device) -> list[list[ArraySum]]:
        accumulators = [DeviceSum(device, real, mode, factors is not None, magnitudes) for _ in range(components)]
        return stream.sum_on(accumulators)

    with ThreadPoolExecutor(len(devices)) as pool:  # a single device is driven by the calling thread
        per_device = list(map(work, devices) if len(devices) == 1 else pool.map(work, devices))
    sums = [sum(itertools.chain(*(sums[k] for sums in per_device)), empty_sum(mode, real)) for k in range(components)]
    return sums[0] if components == 1 else ComplexSum(*sums)


def _sum_of_chunks(
    devices: list[Device], x: Any, mode: str, y: Any, magnitudes: bool, progress: Callable[[int], None] | None
) -> Any:
    """The sum of a Dask array, computed one chunk at a time; dask_sums.py sums where Dask's workers are."""
    total = empty_sum(mode, x.dtype)
    for block, other in tensors.dask_blocks(x, y):
        numbers, factors = block.compute(), None if other is None else other.compute()
        total += array_sum(devices, numbers, mode, factors, magnitudes)
        if progress:
            progress(numbers.size)
    return total


def _in_order_of_memory(x: Numbers, y: Numbers) -> tuple[Numbers, Numbers]:
    """Both arrays transposed if they are in Fortran order, so that they need no copy; else both as given."""
    if isinstance(x, np.ndarray) and x.flags.f_contiguous:
        if y is None:
            return x.T, None
        if isinstance(y, np.ndarray) and y.flags.f_contiguous and y.shape == x.shape:
            return x.T, y.T
    return x, y


def _tensor_sum(devices: list[Device], numbers: Numbers, mode: str, y: Numbers, magnitudes: bool) -> ArraySum | None:
    """The sum of another library's array, read in place; None for an array in host memory, which must be streamed."""
    borrowed = tensors.borrow_tensor(numbers, devices, any_order=True)
    if isinstance(borrowed, np.ndarray):
        return None
    device, x = borrowed
    chunks: list[tuple[Tensor, Tensor | None]] = [(chunk, None) for chunk in tensors.launch_chunks(x)]
    if y is not None:
        other = tensors.borrow_tensor(y, [device], any_order=True) if tensors.is_tensor(y) else y
        wanted = f"{x.dtype} {x.shape} in the memory of {device.name}"
        if not isinstance(other, tuple) or (other[1].dtype, sorted(other[1].shape)) != (x.dtype, sorted(x.shape)):
            raise InputError(f"the arrays of a product must both be {wanted}")
        if (other[1].shape, other[1].axes) != (x.shape, x.axes):  # numbers in other orders: the host can copy them
            if tensors.is_on_host(numbers) and tensors.is_on_host(y):
                return None
            raise InputError(f"the arrays of a product must both be {wanted}, their axes in one order")
        chunks = list(zip(tensors.launch_chunks(x), tensors.launch_chunks(other[1]), strict=True))
    result = empty_sum(mode, x.dtype)
    with _idle_sum(device, x.dtype, mode, y is not None, magnitudes) as accumulator:
        for chunk, factor in chunks:
            buffer = device.borrow(chunk)
            assert buffer is not None  # the device could borrow all of `numbers`
            accumulator.add(chunk.shape[0], buffer, None if factor is None else device.borrow(factor))
            result += accumulator.read_and_reset()
    total: ArraySum = result
    return total


@contextmanager
def _idle_sum(device: Device, dtype: np.dtype, mode: str, dot: bool, magnitudes: bool) -> Iterator[DeviceSum]:
    """A DeviceSum that no other thread uses, cached in the device object: creating one takes a millisecond."""
    kept = vars(device).setdefault("_idle_sums", {})
    idle = kept.setdefault((dtype.str, mode, dot, magnitudes, LaunchPlan.of(device)), [])
    try:
        accumulator = idle.pop()
    except IndexError:
        accumulator = DeviceSum(device, dtype, mode, dot, magnitudes)
    yield accumulator
    idle.append(accumulator)  # not after an exception: the accumulator may then hold a partial sum


class _ChunkStream:
    """The chunks of one sum; the thread of each device takes the next one when its device is ready."""

    def __init__(self, x: ArraySource, y: ArraySource | None, starts: range, progress: Callable[[int], None] | None):
        self._x, self._y, self._end, self._chunk, self._progress = x, y, starts.stop, starts.step, progress
        self._starts = iter(starts)
        self._lock = threading.Lock()

    def sum_on(self, accumulators: list[DeviceSum]) -> list[list[ArraySum]]:
        """The sums of the chunks that one device takes, for each accumulator.

        There is one accumulator, or two for the real and imaginary parts. Chunks are uploaded through two staging
        buffers in turn, so that one is filled while the other is copied.
        """
        # A chunk of x, and one of y behind it, each of a multiple of 64 bytes (y_start of numerics/sum_tiles.h).
        size = -(-min(self._chunk, max(1, self._end)) * accumulators[0].dtype.itemsize // 64) * 64
        size, device = size * (1 if self._y is None else 2), accumulators[0].device
        staging_buffers = [[device.staging_buffer(size) for _ in accumulators] for _ in range(2)]
        sums: list[list[ArraySum]] = [[] for _ in accumulators]
        turn = 0
        while True:
            with self._lock:
                start = next(self._starts, None)
            is_full = accumulators[0].count > MAX_TERMS_BEFORE_READ - self._chunk
            if accumulators[0].count and (start is None or is_full):
                for sums_of_component, accumulator in zip(sums, accumulators, strict=True):
                    sums_of_component.append(accumulator.read_and_reset())
            if start is None:
                return sums
            count = min(self._chunk, self._end - start)
            if len(accumulators) == 1:
                self._upload_and_add(staging_buffers[turn][0], accumulators[0], start, count)
            else:
                self._upload_and_add_complex(staging_buffers[turn], accumulators, start, count)
            turn ^= 1
            if self._progress:
                with self._lock:
                    self._progress(count)

    def _upload_and_add_complex(
        self, staging: list[StagingBuffer], accumulators: list[DeviceSum], start: int, count: int
    ) -> None:
        """Reads a chunk of complex numbers and launches the sums of their real parts and of their imaginary parts."""
        numbers = read_numbers(self._x, start, count).view(accumulators[0].dtype)
        for k, (buffer, accumulator) in enumerate(zip(staging, accumulators, strict=True)):
            np.copyto(buffer.map()[: count * numbers.itemsize].view(numbers.dtype), numbers[k::2])
            buffer.upload_then(count * numbers.itemsize, partial(accumulator.add, count))

    def _upload_and_add(self, staging: StagingBuffer, accumulator: DeviceSum, start: int, count: int) -> None:
        """Reads a chunk of x, then of y if there is one, into the staging buffer and launches its sum."""
        memory, length = staging.map(), count * self._x.dtype.itemsize
        self._x.read_into(memory[:length], start)
        if self._y is None:
            staging.upload_then(length, lambda buffer: accumulator.add(count, buffer))
            return
        offset = -(-length // 64) * 64
        self._y.read_into(memory[offset : offset + length], start)
        y_start = offset // self._x.dtype.itemsize
        staging.upload_then(offset + length, lambda buffer: accumulator.add(count, buffer, buffer, y_start))
