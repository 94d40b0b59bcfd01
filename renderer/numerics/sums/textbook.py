"""Textbook summation algorithms (recursive, Kahan, Neumaier, pairwise) with their errors, beside the exact sum.

For `rayfold sum --compare` and the lessons. After N. Higham, Accuracy and Stability of Numerical Algorithms, chapter 4.
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

MAX_COUNT = 1 << 24  # one work-item adds the numbers one after another: more would take too long


class TextbookSum(NamedTuple):
    """The sum of one method in the precision of the numbers, and its absolute error (NaN if not finite)."""

    method: str
    value: float
    error: float


def textbook_sums(device: Device, numbers: Numbers) -> list[TextbookSum]:
    """The sums of float32 or float64 numbers by each method, the exact sum last.

    InputError for other dtypes, for no numbers and for more than MAX_COUNT numbers.
    """
    x = as_source(numbers)
    if not 0 < x.count <= MAX_COUNT:
        raise InputError(f"{x.path}: holds {x.count} numbers; sums one after another take 1 to {MAX_COUNT}")
    halved = pairwise_sum(device, x)
    plain, kahan, _lost, neumaier, rest = _sequential(device, x.dtype, x)
    values_on_host = np.empty(x.count, x.dtype)
    x.read_into(values_on_host.view("u1"), 0)
    with np.errstate(all="ignore"):
        values = {
            "one after another": plain,
            "Kahan": kahan,
            "Neumaier": neumaier + rest,
            "pairwise (NumPy)": np.add.reduce(values_on_host),
            "halving": halved.value,
        }
    exact = array_sum([device], x)
    values["exact, rounded once"] = exact.rounded(x.dtype)
    sums = []
    for method, value in values.items():
        finite = exact.non_finite is None and np.isfinite(value)
        error = rounded_fraction(abs(Fraction(float(value)) - exact.fraction())) if finite else float("nan")
        sums.append(TextbookSum(method, float(value), error))
    return sums


def _sequential(device: Device, dtype: np.dtype, numbers: Numbers) -> np.ndarray:
    """The final state (5,) of numerics/sum_sequential.cu: plain sum, Kahan's sum and error, Neumaier's sum and rest."""
    x = as_source(numbers)
    kernel = device.kernel("numerics/sum_sequential.cu", "sum_sequential", 1, ELEMENT=C_TYPES[dtype.str[1:]], STRICT=1)
    chunk = min(chunk_length(device, dtype), x.count)
    buffer, state = device.buffer(chunk, dtype), device.buffer(5, dtype).fill(0)
    for start in range(0, x.count, chunk):
        padded = np.zeros(chunk, dtype)
        count = min(chunk, x.count - start)
        x.read_into(padded[:count].view("u1"), start)
        kernel(1, buffer.write(padded), np.uint64(count), state)
    return state.read()
