"""Textbook summation algorithms with their errors, beside the exact sum.

One number after another (recursive summation), Kahan, Neumaier, and pairwise summation in two versions.

For `rayfold sum --compare` and the lessons. After N. Higham, Accuracy and Stability of Numerical Algorithms, chapter 4.
"""

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from renderer.errors import InputError
from renderer.formats.npy import as_source
from renderer.gpu import Device
from renderer.numerics.sums.aggregates import pairwise_sum
from renderer.numerics.sums.device_sums import C_TYPES, Numbers, array_sum, read_numbers
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
    on_host = read_numbers(x, 0, x.count)
    plain, kahan, _lost, neumaier, rest = _sequential(device, on_host)
    with np.errstate(all="ignore"):
        values = {
            "one after another": plain,
            "Kahan": kahan,
            "Neumaier": neumaier + rest,
            "pairwise (NumPy)": np.add.reduce(on_host),  # halves down to blocks, which it adds one after another
            "halving": halved.value,  # pairwise_sum() halves down to single numbers
        }
    exact = array_sum([device], x)
    values["exact, rounded once"] = exact.rounded(x.dtype)
    sums = []
    for method, value in values.items():
        finite = exact.non_finite is None and np.isfinite(value)
        error = rounded_fraction(abs(Fraction(float(value)) - exact.fraction())) if finite else float("nan")
        sums.append(TextbookSum(method, float(value), error))
    return sums


def _sequential(device: Device, numbers: np.ndarray) -> np.ndarray:
    """The sums (5,) of numerics/sum_sequential.cu: plain sum, Kahan's sum and error, Neumaier's sum and rest."""
    constants = {"ELEMENT": C_TYPES[numbers.dtype.str[1:]], "STRICT": 1}
    kernel = device.kernel("numerics/sum_sequential.cu", "sum_sequential", 1, **constants)
    out = device.buffer(5, numbers.dtype)
    kernel(1, device.buffer(numbers.size, numbers.dtype).write(numbers), np.uint64(numbers.size), out)
    return out.read()
