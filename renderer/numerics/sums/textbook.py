"""The sums of the textbooks beside the exact one, each with its error: what `rayfold sum --compare` shows.

After N. Higham, Accuracy and Stability of Numerical Algorithms, chapter 4.
"""

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from renderer.errors import InputError
from renderer.formats.npy import as_source
from renderer.gpu import Device
from renderer.numerics.sums.aggregates import pairwise_sum
from renderer.numerics.sums.device_sums import C_TYPES, Numbers, array_sum, chunk_length
from renderer.numerics.sums.exact_sum import rounded_fraction

MAX_COUNT = 1 << 24  # numbers that one work-item adds one after another


class TextbookSum(NamedTuple):
    """A method's sum in the precision of the numbers, and the distance from the exact sum; NaN where either is not."""

    method: str
    value: float
    error: float


def textbook_sums(device: Device, numbers: Numbers) -> list[TextbookSum]:
    """The sums of float32 or float64 numbers one after another, by Kahan, by Neumaier, pairwise, by halving, and exact.

    InputError for other dtypes, for no numbers and for more than MAX_COUNT.
    """
    x = as_source(numbers)
    if not 0 < x.count <= MAX_COUNT:
        raise InputError(f"{x.path}: holds {x.count} numbers; sums one after another take 1 to {MAX_COUNT}")
    halved = pairwise_sum(device, x)
    plain, kahan, _lost, neumaier, rest = _sequential(device, x.dtype, x)
    whole = np.empty(x.count, x.dtype)
    x.read_into(whole.view("u1"), 0)
    with np.errstate(all="ignore"):
        values = {
            "one after another": plain,
            "Kahan": kahan,
            "Neumaier": neumaier + rest,
            "pairwise (NumPy)": np.add.reduce(whole),
            "halving": halved.value,
        }
    exact = array_sum([device], x)
    found = []
    for method, value in values.items():
        finite = exact.non_finite is None and np.isfinite(value)
        error = rounded_fraction(abs(Fraction(float(value)) - exact.fraction())) if finite else float("nan")
        found.append(TextbookSum(method, float(value), error))
    rounded = exact.rounded(x.dtype)
    error = rounded_fraction(abs(Fraction(rounded) - exact.fraction())) if np.isfinite(rounded) else float("nan")
    return [*found, TextbookSum("exact, rounded once", rounded, error)]


def _sequential(device: Device, dtype: np.dtype, numbers: Numbers) -> np.ndarray:
    """The state (5,) of numerics/sum_sequential.cu after all numbers."""
    x = as_source(numbers)
    kernel = device.kernel("numerics/sum_sequential.cu", "sum_sequential", 1, ELEMENT=C_TYPES[dtype.str[1:]], STRICT=1)
    chunk = min(chunk_length(device, dtype), x.count)
    buffer, state = device.buffer(chunk, dtype), device.buffer(5, dtype).fill(0)
    for start in range(0, x.count, chunk):
        part = np.zeros(chunk, dtype)
        count = min(chunk, x.count - start)
        x.read_into(part[:count].view("u1"), start)
        kernel(1, buffer.write(part), np.uint64(count), state)
    return state.read()
