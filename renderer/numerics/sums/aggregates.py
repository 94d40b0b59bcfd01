"""Statistics of arrays and .npy files, for `rayfold sum` and as the API of renderer.numerics.sums.

Mean, variance, norm and dot product are ratios and roots of exact sums (device_sums.py), rounded once. Minimum and
maximum come from numerics/minmax.cu. pairwise_sum() adds in the precision of the input and reports the true
error beside the a-priori bound of N. Higham, Accuracy and Stability of Numerical Algorithms, section 4.2.
"""

import math
from fractions import Fraction
from functools import partial

import numpy as np

from renderer.errors import InputError
from renderer.formats.npy import COMPLEX, REAL, SUMMABLE, ArraySource, as_reals, as_source
from renderer.gpu import Buffer, Device
from renderer.gpu.device import Kernel
from renderer.gpu.dlpack import Tensor
from renderer.numerics.sums import exact_sum
from renderer.numerics.sums.device_sums import C_TYPES, LaunchPlan, Numbers, array_sum, chunk_length, read_numbers
from renderer.numerics.sums.exact_sum import ComplexSum, ExactSum, mean_of, rounded_fraction
from renderer.numerics.sums.tensors import borrow_tensor, is_dask_array, is_tensor, launch_chunks
from renderer.records import dataclass


def mean(devices: list[Device], numbers: Numbers) -> complex:
    """The arithmetic mean, rounded once (for complex numbers each part is rounded); NaN for no numbers."""
    return mean_of(array_sum(devices, numbers))


def variance(devices: list[Device], numbers: Numbers, ddof: int = 0) -> float:
    """The mean squared deviation from the mean, rounded once; the divisor is count - ddof."""
    x = _reread_source(numbers)
    return variance_of(array_sum(devices, x), squares_sum(devices, x), ddof)


def variance_of(sums: ExactSum | ComplexSum, squares: ExactSum, ddof: int = 0) -> float:
    """The variance, rounded once, from the sum of the numbers and the sum of their squared magnitudes."""
    parts = (sums.real, sums.imaginary) if isinstance(sums, ComplexSum) else (sums,)
    if sums.count <= ddof or any(part.non_finite is not None for part in parts):
        return math.nan
    square = sum((part.fraction() ** 2 for part in parts), start=Fraction(0))
    return rounded_fraction((squares.fraction() - square / sums.count) / (sums.count - ddof))


def squares_sum(devices: list[Device], numbers: Numbers, index_range: tuple[int, int] | None = None) -> ExactSum:
    """The exact sum of the squared magnitudes of numbers, complex ones too; see array_sum."""
    x = _reread_source(numbers)
    if isinstance(x, ArraySource):
        if index_range and x.dtype.kind == "c":
            index_range = 2 * index_range[0], 2 * index_range[1]
        x = as_reals(x)
    squares: ExactSum = array_sum(devices, x, y=x, index_range=index_range)
    return squares


def norm(devices: list[Device], numbers: Numbers) -> float:
    """The Euclidean norm, rounded once; the intermediate squares neither overflow nor underflow."""
    return norm_of(squares_sum(devices, numbers))


def norm_of(squares: ExactSum) -> float:
    """The root of a sum of squares, rounded once."""
    return squares.non_finite if squares.non_finite is not None else exact_sum.rounded_root(squares.fraction())


def weighted_mean(devices: list[Device], numbers: Numbers, weights: Numbers) -> float:
    """sum(x w) / sum(w), rounded once; NaN if the sum of the weights is zero."""
    x, w = _reread_source(numbers), _reread_source(weights)
    return weighted_mean_of(array_sum(devices, x, y=w), array_sum(devices, w))


def weighted_mean_of(products: ExactSum, total: ExactSum) -> float:
    """`products` / `total`, rounded once; NaN if `total`, the sum of the weights, is zero."""
    if products.non_finite is not None or total.non_finite is not None or total.fraction() == 0:
        return math.nan
    return rounded_fraction(products.fraction() / total.fraction())


def _reread_source(numbers: Numbers) -> Numbers:
    """The numbers in a form that several sums can read: an array of another library as given, else an ArraySource."""
    return numbers if is_tensor(numbers) or is_dask_array(numbers) else as_source(numbers, SUMMABLE, REAL + COMPLEX)


def dot(devices: list[Device], x: Numbers, y: Numbers) -> float:
    """The dot product, rounded once."""
    return float(array_sum(devices, x, y=y).rounded())


def minmax(devices: list[Device], numbers: Numbers, index_range: tuple[int, int] | None = None) -> tuple[float, float]:
    """The minimum and the maximum as Python numbers, computed by the first device; both are NaN if any number is NaN.

    `index_range` (first, end) restricts them to the indices first to end - 1. InputError for no numbers.
    """
    borrowed = borrow_tensor(numbers, devices, any_order=True) if is_tensor(numbers) else numbers
    if isinstance(borrowed, tuple):
        return _minmax_in_place(*borrowed)
    x = as_source(borrowed)
    first, end = index_range or (0, x.count)
    if first >= end:
        raise InputError(f"{x.path}: the array is empty; it has no minimum")
    extremes, chunk = _Extremes(devices[0], x.dtype), chunk_length(devices[0], x.dtype)
    staging = devices[0].staging_buffer(min(chunk, end - first) * x.dtype.itemsize)
    for start in range(first, end, chunk):
        count = min(chunk, end - start)
        x.read_into(staging.map()[: count * x.dtype.itemsize], start)
        staging.upload_then(count * x.dtype.itemsize, partial(extremes.add, count))
    return extremes.result()


def _minmax_in_place(device: Device, tensor: Tensor) -> tuple[float, float]:
    """The minimum and the maximum of another library's array in the memory of `device`."""
    extremes = _Extremes(device, tensor.dtype)
    for chunk in launch_chunks(tensor):
        buffer = device.borrow(chunk)
        assert buffer is not None  # the device could borrow all of `tensor`
        extremes.add(chunk.shape[0], buffer)
    return extremes.result()


class _Extremes:
    """Minimum and maximum over several buffers on one device (numerics/minmax.cu)."""

    def __init__(self, device: Device, dtype: np.dtype):
        self._plan = LaunchPlan.of(device)
        value = np.dtype("f4") if dtype == np.float16 else np.dtype("u1") if dtype == np.bool_ else dtype
        constants = {"ELEMENT": C_TYPES[dtype.str[1:]], "IS_HALF": int(dtype == np.float16)}
        self._kernel = device.kernel("numerics/minmax.cu", "minmax", group_size=self._plan.group, **constants)
        self._out, self._nans = device.buffer(2 * self._plan.groups, value), device.buffer(1, "u4").fill(0)
        self._of_groups: list[np.ndarray] = []  # minimum and maximum of each work-group, by launches

    def add(self, count: int, numbers: Buffer) -> None:
        """Launches the kernel on the first `count` numbers and reads the results of its work-groups."""
        group = self._plan.group
        tiles_per_group = -(-count // (8 * group * self._plan.groups))
        groups = -(-count // (8 * group * tiles_per_group))
        sizes = np.uint64(count), np.uint64(tiles_per_group)
        self._kernel(groups * group, numbers, *sizes, self._out, self._nans)
        self._of_groups.append(self._out.read()[: 2 * groups])

    def result(self) -> tuple[float, float]:
        """The minimum and the maximum as Python numbers; both NaN if any number was NaN."""
        if self._nans.read()[0]:
            return math.nan, math.nan
        extremes = np.concatenate(self._of_groups)
        return extremes[::2].min().item(), extremes[1::2].max().item()


@dataclass(frozen=True)
class PairwiseSum:
    """The result of pairwise summation: value, true error, a-priori error bound, and depth of the summation tree."""

    value: float
    error: float
    bound: float
    depth: int


def pairwise_sum(device: Device, numbers: Numbers) -> PairwiseSum:
    """The sum of float32 or float64 numbers by pairwise summation (halving: sums/__init__.py) in their own precision.

    Error bound: depth * u / (1 - depth * u) * sum |x|, with u half a unit in the last place. InputError for other
    dtypes and for no numbers.
    """
    x = as_source(numbers)
    if x.dtype not in (np.float32, np.float64):
        raise InputError(f"{x.path}: holds {x.dtype}; pairwise summation takes float32 and float64")
    if x.count == 0:
        raise InputError(f"{x.path}: the array is empty; pairwise summation begins with one number")
    chunk = 1 << (chunk_length(device, x.dtype).bit_length() - 1)  # a power of two: all chunks have trees of one depth
    constants = {"ELEMENT": C_TYPES[x.dtype.str[1:]], "SINGLE": int(x.dtype == np.float32), "DOT": 0, "ABSOLUTE": 0}
    constants |= {"BLOCKED_ARRANGEMENT": 1, "STRICT": 1}  # the file needs an arrangement, pairwise_step does not
    step = device.kernel("numerics/sum_fast.cu", "pairwise_step", group_size=64, **constants)
    starts = range(0, x.count, chunk)
    chunks = [_pairwise_chunk(device, step, x, start, min(chunk, x.count - start)) for start in starts]
    depth = (min(chunk, x.count) - 1).bit_length() + (len(chunks) - 1).bit_length()
    sums = np.array(chunks, x.dtype)
    with np.errstate(all="ignore"):
        while sums.size > 1:  # adds the upper half to the lower one; of an odd number, the middle one stays
            half = -(-sums.size // 2)
            sums = np.concatenate([sums[: sums.size - half] + sums[half:], sums[sums.size - half : half]])
    exact, magnitude = array_sum([device], x), array_sum([device], x, magnitudes=True)
    return pairwise_error(float(sums[0]), depth, Fraction(float(np.finfo(x.dtype).eps)) / 2, exact, magnitude)


def pairwise_error(value: float, depth: int, unit: Fraction, exact: ExactSum, magnitude: ExactSum) -> PairwiseSum:
    """The PairwiseSum of a value to which every number contributes through `depth` additions of relative error `unit`.

    `exact` is the exact sum of the numbers, `magnitude` the exact sum of their magnitudes.
    """
    if exact.non_finite is not None or not math.isfinite(value):
        return PairwiseSum(value, math.nan, math.inf, depth)
    bound = depth * unit / (1 - depth * unit) * magnitude.fraction()
    return PairwiseSum(value, rounded_fraction(abs(Fraction(value) - exact.fraction())), rounded_fraction(bound), depth)


def _pairwise_chunk(device: Device, step: Kernel, x: ArraySource, start: int, count: int) -> float:
    """The sum of one chunk in its own precision: log2(count) launches, each with half the additions of the previous."""
    buffer = device.buffer(count, x.dtype).write(read_numbers(x, start, count))
    while count > 1:
        half = -(-count // 2)
        step(half, buffer, np.uint32(count), np.uint32(half))
        count = half
    return float(buffer.read()[0])
